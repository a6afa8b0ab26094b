/* SPDX-License-Identifier: MIT */
/*
 * Reports. Both latencies are always shown and named: from the intended send
 * time (what a user of a service at this rate would see) and from the actual
 * one (what the server took).
 */
#include "config.h"

#include "tools/myra-load/report.h"
#include "tools/myra-load/units.h"

#include <errno.h>
#include <string.h>

#define TIME_CAP 32

static const double percents[] = { 50, 75, 90, 99, 99.9, 99.99, 99.999 };

#define PERCENT_COUNT (sizeof(percents) / sizeof(percents[0]))

static double rate_of(const struct gen_stats *stats)
{
    return stats->elapsed_ns
        ? (double)stats->completed * 1e9 / (double)stats->elapsed_ns
        : 0;
}

static void print_time_cell(FILE *out, uint64_t ns)
{
    char text[TIME_CAP];

    fprintf(out, " %9s", units_print_time(ns, text, sizeof(text)));
}

static void print_latency_row(FILE *out, const char *name,
                              const struct hist *hist)
{
    fprintf(out, "  %-20s", name);
    print_time_cell(out, (uint64_t)hist_mean(hist));
    print_time_cell(out, hist_percentile(hist, 50));
    print_time_cell(out, hist_percentile(hist, 90));
    print_time_cell(out, hist_percentile(hist, 99));
    print_time_cell(out, hist_percentile(hist, 99.9));
    print_time_cell(out, hist->max);
    fputc('\n', out);
}

static void print_errors(FILE *out, const struct gen_stats *stats)
{
    fprintf(out, "errors     %llu", (unsigned long long)stats->errors);
    for (int i = 0; i < GEN_ERR_COUNT; i++)
        if (stats->errors_by_kind[i])
            fprintf(out, ", %s %llu", gen_err_text[i],
                    (unsigned long long)stats->errors_by_kind[i]);
    fputc('\n', out);
}

static void print_thresholds(const struct report *report, FILE *out)
{
    for (int i = 0; i < report->threshold_count; i++) {
        const struct threshold *const threshold = &report->thresholds[i];

        fprintf(out, "fail-if    %s: %s\n", threshold->text,
                threshold_is_crossed(threshold, report->gen) ? "FAILED"
                                                             : "passed");
    }
}

void report_print_text(const struct report *report, FILE *out)
{
    const struct gen_options *const options = report->options;
    struct gen_stats stats;
    char text[TIME_CAP];

    gen_read_stats(report->gen, &stats);
    fprintf(out, "target     %s %s\n", report->method, report->url);
    if (options->rate_per_s > 0)
        fprintf(out, "offered    %.1f req/s, open loop, ",
                options->rate_per_s);
    else
        fputs("offered    as fast as it answers, closed loop, ", out);
    fprintf(out, "%u connections, %s\n", options->conn_count,
            units_print_time(report->duration_ns, text, sizeof(text)));
    fprintf(out, "completed  %llu of %llu (%.1f req/s)\n",
            (unsigned long long)stats.completed,
            (unsigned long long)stats.planned, rate_of(&stats));
    print_errors(out, &stats);
    fprintf(out,
            "traffic    %.1f MB in, %.1f MB out, %llu connects, "
            "%llu of them again\n",
            (double)stats.recv_bytes / 1e6, (double)stats.sent_bytes / 1e6,
            (unsigned long long)stats.connects,
            (unsigned long long)stats.reconnects);
    fprintf(out, "latency%15s %9s %9s %9s %9s %9s %9s\n", "", "mean", "p50",
            "p90", "p99", "p99.9", "max");
    print_latency_row(out, "from intended send", gen_latency(report->gen));
    print_latency_row(out, "from actual send",
                      gen_latency_actual(report->gen));
    print_latency_row(out, "sent late by", gen_lateness(report->gen));
    print_thresholds(report, out);
}

/* ---- JSON --------------------------------------------------------------- */

static void print_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;

        if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (c < 0x20 || c >= 0x7f)
            fprintf(out, "\\u%04x", c);
        else
            fputc(c, out);
    }
    fputc('"', out);
}

static void print_member(FILE *out, const char *name, uint64_t value)
{
    fprintf(out, "  \"%s\": %llu,\n", name, (unsigned long long)value);
}

static void print_hist_json(FILE *out, const char *name,
                            const struct hist *hist, const char *after)
{
    fprintf(out, "  \"%s\": {\"count\": %llu, \"mean\": %.1f, \"min\": %llu",
            name, (unsigned long long)hist->count, hist_mean(hist),
            (unsigned long long)(hist->count ? hist->min : 0));
    for (size_t i = 0; i < PERCENT_COUNT; i++)
        fprintf(out, ", \"p%g\": %llu", percents[i],
                (unsigned long long)hist_percentile(hist, percents[i]));
    fprintf(out, ", \"max\": %llu}%s\n", (unsigned long long)hist->max,
            after);
}

static void print_kinds_json(FILE *out, const struct gen_stats *stats)
{
    fputs("  \"errors_by_kind\": {", out);
    for (int i = 0; i < GEN_ERR_COUNT; i++)
        fprintf(out, "%s\"%s\": %llu", i ? ", " : "", gen_err_text[i],
                (unsigned long long)stats->errors_by_kind[i]);
    fputs("},\n  \"status\": {", out);
    for (int i = 1; i <= 5; i++)
        fprintf(out, "%s\"%dxx\": %llu", i > 1 ? ", " : "", i,
                (unsigned long long)stats->status_class[i]);
    fputs("},\n", out);
}

static void print_thresholds_json(const struct report *report, FILE *out)
{
    fputs("  \"fail_if\": [", out);
    for (int i = 0; i < report->threshold_count; i++) {
        const struct threshold *const threshold = &report->thresholds[i];

        fputs(i ? ", {\"condition\": " : "{\"condition\": ", out);
        print_string(out, threshold->text);
        fprintf(out, ", \"value\": %.3f, \"failed\": %s}",
                threshold_value(threshold, report->gen),
                threshold_is_crossed(threshold, report->gen) ? "true"
                                                             : "false");
    }
    fputs("]\n", out);
}

int report_print_json(const struct report *report, FILE *out)
{
    struct gen_stats stats;

    gen_read_stats(report->gen, &stats);
    fputs("{\n  \"url\": ", out);
    print_string(out, report->url);
    fputs(",\n  \"method\": ", out);
    print_string(out, report->method);
    fprintf(out, ",\n  \"offered_per_s\": %.3f,\n",
            report->options->rate_per_s);
    print_member(out, "connections", report->options->conn_count);
    print_member(out, "duration_ns", report->duration_ns);
    print_member(out, "elapsed_ns", stats.elapsed_ns);
    print_member(out, "planned", stats.planned);
    print_member(out, "sent", stats.sent);
    print_member(out, "completed", stats.completed);
    fprintf(out, "  \"completed_per_s\": %.3f,\n", rate_of(&stats));
    print_member(out, "errors", stats.errors);
    print_kinds_json(out, &stats);
    print_member(out, "recv_bytes", stats.recv_bytes);
    print_member(out, "sent_bytes", stats.sent_bytes);
    print_member(out, "connects", stats.connects);
    print_member(out, "reconnects", stats.reconnects);
    print_hist_json(out, "latency_ns", gen_latency(report->gen), ",");
    print_hist_json(out, "latency_actual_ns",
                    gen_latency_actual(report->gen), ",");
    print_hist_json(out, "lateness_ns", gen_lateness(report->gen), ",");
    print_thresholds_json(report, out);
    fputs("}\n", out);
    return ferror(out) ? -EIO : 0;
}

void report_print_live(const struct gen_snapshot *shot, FILE *out)
{
    char p50[TIME_CAP];
    char p99[TIME_CAP];

    fprintf(out, "%6.1f s %9.0f req/s  p50 %9s  p99 %9s  %llu errors",
            (double)shot->total.elapsed_ns / 1e9, shot->interval_rate_per_s,
            units_print_time(shot->interval_p50_ns, p50, sizeof(p50)),
            units_print_time(shot->interval_p99_ns, p99, sizeof(p99)),
            (unsigned long long)shot->total.errors);
}
