/* SPDX-License-Identifier: MIT */
/*
 * The reference kernels: eight bytes at a time in a general register.
 *
 * The tests for a byte in a word are the ones without carries between bytes:
 * bit 7 of a byte of the result says that this byte matches, so they tell
 * the first match in either byte order. (The shorter (x - 0x01..) & ~x form
 * may also mark the bytes after a match, which a big-endian word would report
 * first.)
 */
#include "config.h"

#include <string.h>

#include "simd/kernels.h"

#define ONES 0x0101010101010101u
#define LOW7 0x7f7f7f7f7f7f7f7fu
#define HIGH 0x8080808080808080u
#define WORD sizeof(uint64_t)

static inline uint64_t load_word(const uint8_t *p)
{
    uint64_t word;

    memcpy(&word, p, sizeof(word));
    return word;
}

/* Index in memory of the first byte whose bit 7 is set; mask is not 0. */
static inline size_t first_marked(uint64_t mask)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return (size_t)__builtin_clzll(mask) / 8;
#else
    return (size_t)__builtin_ctzll(mask) / 8;
#endif
}

/* Bit 7 of each byte that is 0. */
static inline uint64_t zero_bytes(uint64_t word)
{
    return ~(((word & LOW7) + LOW7) | word | LOW7);
}

static inline uint64_t equal_bytes(uint64_t word, uint8_t byte)
{
    return zero_bytes(word ^ (ONES * byte));
}

static inline uint64_t eol_bytes(uint64_t word)
{
    return equal_bytes(word, '\r') | equal_bytes(word, '\n');
}

static inline uint64_t ctl_bytes(uint64_t word)
{
    /* Bit 7 of the sum: the low seven bits are 0x20 or more. */
    const uint64_t printable = (word & LOW7) + ONES * (0x80 - 0x20);
    const uint64_t below_space = ~(printable | word) & HIGH;

    return (below_space & ~equal_bytes(word, '\t')) | equal_bytes(word, 0x7f);
}

static inline int is_ctl(uint8_t byte)
{
    return (byte < 0x20 && byte != '\t') || byte == 0x7f;
}

size_t myi_scalar_find_eol(const uint8_t *p, size_t len, size_t readable)
{
    size_t i = 0;

    (void)readable;
    for (; len - i >= WORD; i += WORD) {
        const uint64_t mask = eol_bytes(load_word(p + i));

        if (mask)
            return i + first_marked(mask);
    }
    while (i < len && p[i] != '\r' && p[i] != '\n')
        i++;
    return i;
}

size_t myi_scalar_find_byte(const uint8_t *p, size_t len, size_t readable,
                            uint8_t byte)
{
    size_t i = 0;

    (void)readable;
    for (; len - i >= WORD; i += WORD) {
        const uint64_t mask = equal_bytes(load_word(p + i), byte);

        if (mask)
            return i + first_marked(mask);
    }
    while (i < len && p[i] != byte)
        i++;
    return i;
}

size_t myi_scalar_find_ctl(const uint8_t *p, size_t len, size_t readable)
{
    size_t i = 0;

    (void)readable;
    for (; len - i >= WORD; i += WORD) {
        const uint64_t mask = ctl_bytes(load_word(p + i));

        if (mask)
            return i + first_marked(mask);
    }
    while (i < len && !is_ctl(p[i]))
        i++;
    return i;
}

const struct myi_kernels myi_kernels_scalar = {
    .name = "scalar",
    .find_eol = myi_scalar_find_eol,
    .find_byte = myi_scalar_find_byte,
    .find_ctl = myi_scalar_find_ctl,
};
