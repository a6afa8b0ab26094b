/* SPDX-License-Identifier: MIT */
/* The histogram against sorted lists of the same values. */
#include "config.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tools/myra-load/hist.h"

enum { COUNT = 20000 };

static struct hist hist;
static struct hist other;
static uint64_t values[COUNT];

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return *state >> 20;
}

/* From nanoseconds to minutes, as many small ones as large. */
static void fill_values(uint64_t seed)
{
    for (int i = 0; i < COUNT; i++) {
        const unsigned bits = (unsigned)(next_random(&seed) % 38);

        values[i] = next_random(&seed) & ((UINT64_C(2) << bits) - 1);
    }
}

static int compare(const void *a, const void *b)
{
    const uint64_t left = *(const uint64_t *)a;
    const uint64_t right = *(const uint64_t *)b;

    return (left > right) - (left < right);
}

Test(hist, slots_cover_all_values_without_a_gap)
{
    uint64_t next = 0;

    for (uint32_t i = 0; i < HIST_SLOT_COUNT; i++) {
        const uint64_t low = hist_slot_low(i);
        const uint64_t high = hist_slot_high(i);

        cr_assert_eq(low, next, "slot %u starts at the wrong value", i);
        cr_assert_leq(low, high);
        cr_assert_eq(hist_slot(low), i);
        cr_assert_eq(hist_slot(high), i);
        cr_assert_leq(high - low, low / 1024, "slot %u is too wide", i);
        next = high + 1;
    }
    cr_assert_eq(next, UINT64_C(1) << HIST_MAX_BITS);
}

Test(hist, percentiles_are_within_a_slot_of_the_sorted_list)
{
    static const double percents[] = { 0, 1, 25, 50, 90, 99, 99.9, 100 };

    for (uint64_t seed = 1; seed <= 5; seed++) {
        hist_init(&hist);
        fill_values(seed);
        for (int i = 0; i < COUNT; i++)
            hist_record(&hist, values[i]);
        qsort(values, COUNT, sizeof(values[0]), compare);
        for (size_t i = 0; i < sizeof(percents) / sizeof(percents[0]); i++) {
            const double rank = percents[i] / 100 * COUNT;
            const size_t index = rank < 1 ? 0 : (size_t)(rank + 0.5) - 1;
            const uint64_t exact = values[index];
            const uint64_t found = hist_percentile(&hist, percents[i]);

            cr_assert_geq(found, exact, "seed %d", (int)seed);
            cr_assert_leq(found, exact + exact / 1024 + 1, "seed %d",
                          (int)seed);
        }
        cr_assert_eq(hist.max, values[COUNT - 1]);
        cr_assert_eq(hist.min, values[0]);
    }
}

Test(hist, merge_is_the_same_as_recording_in_one)
{
    static struct hist all;

    hist_init(&hist);
    hist_init(&other);
    hist_init(&all);
    fill_values(7);
    for (int i = 0; i < COUNT; i++) {
        hist_record(i % 3 ? &hist : &other, values[i]);
        hist_record(&all, values[i]);
    }
    hist_merge(&hist, &other);
    cr_assert_eq(memcmp(&hist, &all, sizeof(all)), 0);
}

Test(hist, empty_has_no_percentiles)
{
    hist_init(&hist);
    cr_assert_eq(hist_percentile(&hist, 99), 0);
    cr_assert_eq(hist_mean(&hist), 0);
    cr_assert_eq(hist_deviation(&hist), 0);
    hist_init(&other);
    hist_merge(&hist, &other);
    cr_assert_eq(hist.count, 0);
    cr_assert_eq(hist.min, UINT64_MAX);
}

Test(hist, values_beyond_the_range_keep_their_maximum)
{
    const uint64_t beyond = (UINT64_C(1) << HIST_MAX_BITS) + 12345;

    hist_init(&hist);
    hist_record(&hist, 10);
    hist_record(&hist, beyond);
    cr_assert_eq(hist.max, beyond);
    cr_assert_eq(hist_percentile(&hist, 100), beyond);
    cr_assert_eq(hist_percentile(&hist, 50), 10);
}

Test(hist, mean_and_deviation_of_known_values)
{
    hist_init(&hist);
    for (int i = 0; i < 100; i++)
        hist_record(&hist, i % 2 ? 1000 : 2000);
    cr_assert_float_eq(hist_mean(&hist), 1500, 1e-9);
    cr_assert_float_eq(hist_deviation(&hist), 500, 1);
    cr_assert_eq(hist_count_upto(&hist, 1500), 50);
}

Test(hist, hgrm_text_ends_with_all_values)
{
    char text[8192];
    FILE *out = fmemopen(text, sizeof(text), "w");

    cr_assert_not_null(out);
    hist_init(&hist);
    for (uint64_t i = 1; i <= 1000; i++)
        hist_record(&hist, i * 1000);
    cr_assert_eq(hist_print_hgrm(&hist, out, 1000), 0);
    fclose(out);
    cr_assert_not_null(strstr(text, "1000.000 1.000000000000       1000"));
    cr_assert_not_null(strstr(text, "#[Mean    =      500.500"));
}
