/* SPDX-License-Identifier: MIT */
/*
 * Every level of every kernel against a loop over bytes: random and special
 * bytes, lengths 0 to 300, all alignments, memory that ends (and begins) at a
 * guard page, and matches just behind the end that must not be seen.
 *
 * MYRA_TEST_SEED repeats a run; a failure names its seed.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "lib/base/checked.h"
#include "simd/kernels.h"
#include "tests/guard.h"

#include <myra/alloc.h>

#define LEN_MAX 300
#define SLACK 64
#define ROUNDS 20000

static const char *const level_names[] = { "scalar", "avx2" };

struct rng {
    uint64_t state;
};

static uint64_t seed;

/* xorshift64*: small, and the same everywhere. */
static uint64_t draw(struct rng *rng)
{
    rng->state ^= rng->state >> 12;
    rng->state ^= rng->state << 25;
    rng->state ^= rng->state >> 27;
    return rng->state * 2685821657736338717u;
}

static void pick_seed(void)
{
    const char *text = getenv("MYRA_TEST_SEED");

    seed = text ? strtoull(text, NULL, 0) : myra_clock_ns() | 1;
}

static int is_eol(uint8_t byte, uint8_t unused)
{
    (void)unused;
    return byte == '\r' || byte == '\n';
}

static int is_byte(uint8_t byte, uint8_t wanted)
{
    return byte == wanted;
}

static int is_ctl(uint8_t byte, uint8_t unused)
{
    (void)unused;
    return (byte < 0x20 && byte != '\t') || byte == 0x7f;
}

static size_t find_plainly(const uint8_t *p, size_t len, uint8_t wanted,
                           int (*matches)(uint8_t byte, uint8_t wanted))
{
    size_t i = 0;

    while (i < len && !matches(p[i], wanted))
        i++;
    return i;
}

static void expect(size_t got, size_t wanted, const char *what,
                   const char *level, size_t len, size_t readable)
{
    cr_assert_eq(got, wanted,
                 "%s, %s: %zu, not %zu; len %zu, readable %zu, "
                 "MYRA_TEST_SEED=%llu",
                 what, level, got, wanted, len, readable,
                 (unsigned long long)seed);
}

static void check_all(const struct myi_kernels *kernels, const uint8_t *p,
                      size_t len, size_t readable, uint8_t wanted)
{
    expect(kernels->find_eol(p, len, readable),
           find_plainly(p, len, 0, is_eol), "find_eol", kernels->name, len,
           readable);
    expect(kernels->find_byte(p, len, readable, wanted),
           find_plainly(p, len, wanted, is_byte), "find_byte", kernels->name,
           len, readable);
    expect(kernels->find_ctl(p, len, readable),
           find_plainly(p, len, 0, is_ctl), "find_ctl", kernels->name, len,
           readable);
}

/* Bytes next to those that the kernels look for, and those themselves. */
static const uint8_t special[] = { 0x00, 0x01, 0x08, 0x09, 0x0a, 0x0b, 0x0c,
                                   0x0d, 0x0e, 0x1f, 0x20, 0x21, 0x7e, 0x7f,
                                   0x80, 0x81, 0x89, 0x8a, 0x8d, 0x9f, 0xa0,
                                   0xff };

/* Text without a match, with a few special bytes strewn in; how many is
 * itself random, so that long searches and early ends both come up. */
static void fill(struct rng *rng, uint8_t *p, size_t len)
{
    const unsigned one_in = 1u << (draw(rng) % 12);

    for (size_t i = 0; i < len; i++) {
        const uint64_t bits = draw(rng);

        if (bits % one_in == 0)
            p[i] = special[(bits >> 32) % sizeof(special)];
        else
            p[i] = (uint8_t)('a' + (bits >> 32) % 26);
    }
}

static void check_level(const struct myi_kernels *kernels)
{
    struct rng rng = { seed };
    struct guard guard;
    uint8_t bytes[LEN_MAX + SLACK];

    guard_open(&guard, LEN_MAX + 2 * SLACK);
    for (int round = 0; round < ROUNDS; round++) {
        const size_t len = draw(&rng) % (LEN_MAX + 1);
        const size_t slack = draw(&rng) % 2 ? draw(&rng) % (SLACK + 1) : 0;
        const size_t shift = draw(&rng) % 64;
        const uint8_t wanted = draw(&rng) % 4
                                   ? special[draw(&rng) % sizeof(special)]
                                   : 'q';

        fill(&rng, bytes, len + slack);
        check_all(kernels, guard_at_end(&guard, bytes, len + slack), len,
                  len + slack, wanted);
        check_all(kernels, guard_at_start(&guard, bytes, len + slack), len,
                  len + slack, wanted);
        memcpy(guard.start + shift, bytes, len + slack);
        check_all(kernels, guard.start + shift, len, len + slack, wanted);
    }
    guard_close(&guard);
}

Test(kernels, all_levels_agree_with_a_loop, .init = pick_seed)
{
    int checked = 0;

    for (size_t i = 0; i < MYI_ARRAY_LEN(level_names); i++) {
        const struct myi_kernels *kernels = myi_kernels_for(level_names[i]);

        if (!kernels) {
            fprintf(stderr, "%s: not on this machine\n", level_names[i]);
            continue;
        }
        cr_assert_str_eq(kernels->name, level_names[i]);
        check_level(kernels);
        checked++;
    }
    cr_assert_geq(checked, 1);
}

/* One byte in a run of others, at each place and each alignment. */
static void check_places(const struct myi_kernels *kernels, uint8_t byte)
{
    struct guard guard;
    uint8_t *at;

    guard_open(&guard, 4096);
    for (size_t len = 1; len <= 140; len++) {
        at = guard.end - len;
        memset(at, 'x', len);
        for (size_t place = 0; place < len; place++) {
            at[place] = byte;
            check_all(kernels, at, len, len, byte);
            /* The end just before it. */
            check_all(kernels, at, place, len, byte);
            at[place] = 'x';
        }
    }
    guard_close(&guard);
}

Test(kernels, every_place_is_looked_at)
{
    for (size_t i = 0; i < MYI_ARRAY_LEN(level_names); i++) {
        const struct myi_kernels *kernels = myi_kernels_for(level_names[i]);

        if (!kernels)
            continue;
        check_places(kernels, '\r');
        check_places(kernels, 0x7f);
        check_places(kernels, 0x00);
    }
}

Test(kernels, every_byte_value_is_classified)
{
    uint8_t bytes[128];

    for (size_t i = 0; i < MYI_ARRAY_LEN(level_names); i++) {
        const struct myi_kernels *kernels = myi_kernels_for(level_names[i]);

        for (unsigned value = 0; kernels && value < 256; value++) {
            memset(bytes, 'x', sizeof(bytes));
            bytes[3] = (uint8_t)value;
            bytes[70] = (uint8_t)value;
            check_all(kernels, bytes, 5, sizeof(bytes), (uint8_t)value);
            check_all(kernels, bytes + 4, 100, 124, (uint8_t)value);
        }
    }
}

Test(kernels, what_the_library_calls_is_one_of_them, .init = pick_seed)
{
    const struct myi_kernels bound = { "bound", myi_find_eol, myi_find_byte,
                                       myi_find_ctl };

    check_level(&bound);
    cr_assert_eq(myi_kernels_for(myra_simd_level_name()), myi_kernels());
    cr_assert_null(myi_kernels_for("mmx"));
    cr_assert_null(myi_kernels_for(""));
}
