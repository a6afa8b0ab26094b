/* SPDX-License-Identifier: MIT */
/*
 * The histogram. A value's slot is found from its highest set bit: the
 * HIST_SUB_BITS bits below that bit choose the slot within the doubling.
 */
#include "config.h"

#include "tools/myra-load/hist.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define SUB_COUNT (1u << HIST_SUB_BITS)

void hist_init(struct hist *hist)
{
    memset(hist, 0, sizeof(*hist));
    hist->min = UINT64_MAX;
}

uint32_t hist_slot(uint64_t value_ns)
{
    if (value_ns < 2 * SUB_COUNT)
        return (uint32_t)value_ns;
    if (value_ns >> HIST_MAX_BITS)
        return HIST_SLOT_COUNT - 1;
    const uint32_t top = 63 - (uint32_t)__builtin_clzll(value_ns);
    const uint32_t shift = top - HIST_SUB_BITS;

    /* value >> shift is in [SUB_COUNT, 2 * SUB_COUNT). */
    return (shift << HIST_SUB_BITS) + (uint32_t)(value_ns >> shift);
}

uint64_t hist_slot_low(uint32_t slot)
{
    if (slot < 2 * SUB_COUNT)
        return slot;
    const uint32_t shift = (slot >> HIST_SUB_BITS) - 1;

    return (uint64_t)((slot & (SUB_COUNT - 1)) + SUB_COUNT) << shift;
}

uint64_t hist_slot_high(uint32_t slot)
{
    if (slot < 2 * SUB_COUNT)
        return slot;
    const uint32_t shift = (slot >> HIST_SUB_BITS) - 1;

    return hist_slot_low(slot) + (UINT64_C(1) << shift) - 1;
}

void hist_record(struct hist *hist, uint64_t value_ns)
{
    hist->slots[hist_slot(value_ns)]++;
    hist->count++;
    hist->sum += value_ns;
    if (value_ns < hist->min)
        hist->min = value_ns;
    if (value_ns > hist->max)
        hist->max = value_ns;
}

void hist_merge(struct hist *hist, const struct hist *from)
{
    hist->count += from->count;
    hist->sum += from->sum;
    if (from->min < hist->min)
        hist->min = from->min;
    if (from->max > hist->max)
        hist->max = from->max;
    for (uint32_t i = 0; i < HIST_SLOT_COUNT; i++)
        hist->slots[i] += from->slots[i];
}

/* A slot's upper end as an answer: never beyond what was recorded. */
static uint64_t slot_value(const struct hist *hist, uint32_t slot)
{
    const uint64_t high = hist_slot_high(slot);

    return slot == HIST_SLOT_COUNT - 1 || high > hist->max ? hist->max : high;
}

uint64_t hist_percentile(const struct hist *hist, double percent)
{
    uint64_t seen = 0;

    if (hist->count == 0)
        return 0;
    /* 99.9 % of 20,000 is not to become 19,981 by a rounding of 99.9. */
    double rank =
        ceil(percent / 100 * (double)hist->count * (1 - 1e-12));

    if (rank < 1)
        rank = 1;
    for (uint32_t i = 0; i < HIST_SLOT_COUNT; i++) {
        seen += hist->slots[i];
        if ((double)seen >= rank)
            return slot_value(hist, i);
    }
    return hist->max;
}

double hist_mean(const struct hist *hist)
{
    return hist->count ? (double)hist->sum / (double)hist->count : 0;
}

static double slot_middle(uint32_t slot)
{
    return ((double)hist_slot_low(slot) + (double)hist_slot_high(slot)) / 2;
}

double hist_deviation(const struct hist *hist)
{
    const double mean = hist_mean(hist);
    double squares = 0;

    if (hist->count == 0)
        return 0;
    for (uint32_t i = 0; i < HIST_SLOT_COUNT; i++) {
        const double off = slot_middle(i) - mean;

        squares += off * off * (double)hist->slots[i];
    }
    return sqrt(squares / (double)hist->count);
}

uint64_t hist_count_upto(const struct hist *hist, uint64_t value_ns)
{
    const uint32_t last = hist_slot(value_ns);
    uint64_t count = 0;

    for (uint32_t i = 0; i <= last; i++)
        count += hist->slots[i];
    return count;
}

/*
 * The percentiles that HdrHistogram's own writer visits: five steps in each
 * halving of the distance to 100 %.
 */
static double next_percentile(double percent)
{
    const double halvings = floor(log2(100.0 / (100.0 - percent))) + 1;

    return percent + 100.0 / (5 * pow(2, halvings));
}

static void print_hgrm_row(const struct hist *hist, FILE *out, uint64_t value,
                           double percent, double unit_ns)
{
    fprintf(out, "%12.3f %2.12f %10llu", (double)value / unit_ns,
            percent / 100,
            (unsigned long long)hist_count_upto(hist, value));
    if (percent < 100)
        fprintf(out, " %14.2f", 1 / (1 - percent / 100));
    fputc('\n', out);
}

int hist_print_hgrm(const struct hist *hist, FILE *out, double unit_ns)
{
    double percent = 0;

    fprintf(out, "%12s %14s %10s %14s\n\n", "Value", "Percentile",
            "TotalCount", "1/(1-Percentile)");
    while (hist->count > 0) {
        const uint64_t value = hist_percentile(hist, percent);

        if (value >= hist->max || percent > 99.99999)
            break;
        print_hgrm_row(hist, out, value, percent, unit_ns);
        percent = next_percentile(percent);
    }
    if (hist->count > 0)
        print_hgrm_row(hist, out, hist->max, 100, unit_ns);
    fprintf(out, "#[Mean    = %12.3f, StdDeviation   = %12.3f]\n",
            hist_mean(hist) / unit_ns, hist_deviation(hist) / unit_ns);
    fprintf(out, "#[Max     = %12.3f, Total count    = %12llu]\n",
            (double)hist->max / unit_ns, (unsigned long long)hist->count);
    fprintf(out, "#[Buckets = %12d, SubBuckets     = %12u]\n",
            HIST_MAX_BITS - HIST_SUB_BITS, 2 * SUB_COUNT);
    return ferror(out) ? -EIO : 0;
}
