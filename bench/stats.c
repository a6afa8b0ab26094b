/* SPDX-License-Identifier: MIT */
/*
 * Order statistics by linear interpolation between the two nearest ranks.
 */
#include "config.h"

#include "bench/stats.h"

#include <stdlib.h>

void samples_add(struct samples *samples, double value)
{
    if (samples->count < SAMPLES_MAX)
        samples->values[samples->count++] = value;
}

static int compare(const void *a, const void *b)
{
    const double left = *(const double *)a;
    const double right = *(const double *)b;

    return (left > right) - (left < right);
}

static double quantile(const double *sorted, size_t count, double part)
{
    const double at = part * (double)(count - 1);
    const size_t low = (size_t)at;
    const double rest = at - (double)low;

    if (low + 1 >= count)
        return sorted[count - 1];
    return sorted[low] * (1 - rest) + sorted[low + 1] * rest;
}

struct spread samples_spread(const struct samples *samples)
{
    struct samples sorted = *samples;
    struct spread spread = { .count = samples->count };

    if (samples->count == 0)
        return spread;
    qsort(sorted.values, sorted.count, sizeof(double), compare);
    spread.median = quantile(sorted.values, sorted.count, 0.5);
    spread.q1 = quantile(sorted.values, sorted.count, 0.25);
    spread.q3 = quantile(sorted.values, sorted.count, 0.75);
    return spread;
}

struct spread samples_ratio(const struct samples *a, const struct samples *b)
{
    struct samples ratios = { 0 };
    const size_t count = a->count < b->count ? a->count : b->count;

    for (size_t i = 0; i < count; i++)
        if (b->values[i] > 0)
            samples_add(&ratios, a->values[i] / b->values[i]);
    return samples_spread(&ratios);
}
