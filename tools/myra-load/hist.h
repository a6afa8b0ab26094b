/* SPDX-License-Identifier: MIT */
/*
 * A histogram of times with three significant digits, from 1 ns to 2^40 ns
 * (18 minutes), in the log-linear form that Gil Tene's HdrHistogram made
 * known: values below 2,048 have a slot each; above, every doubling is split
 * into 1,024 slots, so a slot is never wider than 1/1024 of its values.
 *
 * Recording is a shift and an addition. The struct is 250 KiB of plain data
 * in the caller's memory; it may be copied with =.
 */
#ifndef MYRA_LOAD_HIST_H
#define MYRA_LOAD_HIST_H

#include <stdint.h>
#include <stdio.h>

#define HIST_SUB_BITS 10
#define HIST_MAX_BITS 40
#define HIST_SLOT_COUNT \
    ((uint32_t)(HIST_MAX_BITS - HIST_SUB_BITS + 1) << HIST_SUB_BITS)

struct hist {
    uint64_t count;
    uint64_t sum;
    uint64_t min; /* UINT64_MAX while empty */
    uint64_t max; /* the exact largest value, also beyond the range */
    uint64_t slots[HIST_SLOT_COUNT];
};

/* Makes it empty. */
void hist_init(struct hist *hist);

/* Values beyond the range count in the last slot; max stays exact. */
void hist_record(struct hist *hist, uint64_t value_ns);

/* Adds all of from. */
void hist_merge(struct hist *hist, const struct hist *from);

/*
 * The smallest recorded value that percent (0 .. 100) of all values do not
 * exceed, as the upper end of its slot and never above max. 0 when empty.
 */
uint64_t hist_percentile(const struct hist *hist, double percent);

/* 0 when empty. */
double hist_mean(const struct hist *hist);

/* Standard deviation, from the middle of each slot. 0 when empty. */
double hist_deviation(const struct hist *hist);

/* How many values are at most value_ns (to the width of a slot). */
uint64_t hist_count_upto(const struct hist *hist, uint64_t value_ns);

/* The slot of a value, and the smallest and largest value of a slot. */
uint32_t hist_slot(uint64_t value_ns);
uint64_t hist_slot_low(uint32_t slot);
uint64_t hist_slot_high(uint32_t slot);

/* The percentile distribution as HdrHistogram's .hgrm text; values are
 * divided by unit_ns (1000: microseconds). 0, or -EIO. */
int hist_print_hgrm(const struct hist *hist, FILE *out, double unit_ns);

#endif
