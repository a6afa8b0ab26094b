/* SPDX-License-Identifier: MIT */
/*
 * Gates on a run's results.
 */
#include "config.h"

#include "tools/myra-load/threshold.h"
#include "tools/myra-load/units.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int is_word(const char *text, size_t len, const char *word)
{
    return len == strlen(word) && memcmp(text, word, len) == 0;
}

static int read_percentile(const char *text, size_t len, double *percent_out)
{
    char *end;

    if (len < 2 || text[0] != 'p' || text[1] < '0' || text[1] > '9')
        return -EINVAL;
    *percent_out = strtod(text + 1, &end);
    return end == text + len && *percent_out <= 100 ? 0 : -EINVAL;
}

static int read_metric(struct threshold *threshold, const char *text,
                       size_t len)
{
    static const struct {
        const char *word;
        enum threshold_metric metric;
    } words[] = {
        { "mean", THRESHOLD_MEAN },
        { "max", THRESHOLD_MAX },
        { "errors", THRESHOLD_ERRORS },
        { "error-rate", THRESHOLD_ERROR_RATE },
        { "rate", THRESHOLD_RATE },
    };

    threshold->is_actual = len > 7 && memcmp(text, "actual.", 7) == 0;
    if (threshold->is_actual) {
        text += 7;
        len -= 7;
    }
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (is_word(text, len, words[i].word)) {
            threshold->metric = words[i].metric;
            return 0;
        }
    }
    threshold->metric = THRESHOLD_PERCENTILE;
    return read_percentile(text, len, &threshold->percent);
}

static int read_bound(struct threshold *threshold, const char *text)
{
    uint64_t ns;
    char *end;

    switch (threshold->metric) {
    case THRESHOLD_ERRORS:
    case THRESHOLD_RATE:
        return units_parse_number(text, &threshold->bound);
    case THRESHOLD_ERROR_RATE:
        threshold->bound = strtod(text, &end);
        return end != text && strcmp(end, "%") == 0 ? 0 : -EINVAL;
    default:
        /* A bare number would be seconds here, which nobody means. */
        if (!strchr(text, 's') && !strchr(text, 'm'))
            return -EINVAL;
        if (units_parse_time(text, &ns) < 0)
            return -EINVAL;
        threshold->bound = (double)ns;
        return 0;
    }
}

int threshold_parse(const char *text, struct threshold *threshold)
{
    const size_t len = strcspn(text, "<>");
    const char *value = text + len;

    memset(threshold, 0, sizeof(*threshold));
    threshold->text = text;
    if (!*value || read_metric(threshold, text, len) < 0)
        return -EINVAL;
    threshold->op = *value == '>' ? THRESHOLD_ABOVE : THRESHOLD_BELOW;
    value++;
    if (*value == '=') {
        threshold->op++;
        value++;
    }
    return read_bound(threshold, value);
}

double threshold_value(const struct threshold *threshold,
                       const struct gen *gen)
{
    const struct hist *const hist = threshold->is_actual
        ? gen_latency_actual(gen)
        : gen_latency(gen);
    struct gen_stats stats;

    gen_read_stats(gen, &stats);
    switch (threshold->metric) {
    case THRESHOLD_MEAN:
        return hist_mean(hist);
    case THRESHOLD_MAX:
        return (double)hist->max;
    case THRESHOLD_ERRORS:
        return (double)stats.errors;
    case THRESHOLD_ERROR_RATE:
        return stats.planned
            ? 100.0 * (double)stats.errors / (double)stats.planned
            : 0;
    case THRESHOLD_RATE:
        return stats.elapsed_ns
            ? (double)stats.completed * 1e9 / (double)stats.elapsed_ns
            : 0;
    default:
        return (double)hist_percentile(hist, threshold->percent);
    }
}

int threshold_is_crossed(const struct threshold *threshold,
                         const struct gen *gen)
{
    const double value = threshold_value(threshold, gen);

    switch (threshold->op) {
    case THRESHOLD_ABOVE:
        return value > threshold->bound;
    case THRESHOLD_AT_LEAST:
        return value >= threshold->bound;
    case THRESHOLD_BELOW:
        return value < threshold->bound;
    default:
        return value <= threshold->bound;
    }
}
