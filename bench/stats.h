/* SPDX-License-Identifier: MIT */
/*
 * Medians and quartiles of few samples.
 */
#ifndef MYRA_BENCH_STATS_H
#define MYRA_BENCH_STATS_H

#include <stddef.h>

#define SAMPLES_MAX 512

/* A row's samples, in the order of the rounds. */
struct samples {
    size_t count;
    double values[SAMPLES_MAX];
};

struct spread {
    double median;
    double q1; /* the quartiles */
    double q3;
    size_t count; /* of samples behind it; 0: nothing known */
};

/* Samples beyond SAMPLES_MAX are dropped. */
void samples_add(struct samples *samples, double value);

struct spread samples_spread(const struct samples *samples);

/* Of the ratios a / b, round by round. */
struct spread samples_ratio(const struct samples *a, const struct samples *b);

#endif
