/* SPDX-License-Identifier: MIT */
/*
 * Rows, targets and notes: printed as they come, kept for the files.
 */
#include "config.h"

#include "bench/bench.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

static const char *op_text(enum bench_op op)
{
    return op == BENCH_AT_LEAST ? ">=" : "<=";
}

/* Enough digits for the size of the number, no more. */
static int digits_of(double value)
{
    if (value < 0)
        value = -value;
    if (value > 0 && value < 0.01)
        return 6;
    return value < 10 ? 3 : (value < 100 ? 2 : (value < 1000 ? 1 : 0));
}

void bench_row(struct bench *bench, const char *name, const char *subject,
               const char *unit, const struct spread *spread)
{
    const int digits = digits_of(spread->median);

    printf("%-6s %-28s %-18s %10.*f %-9s [%.*f %.*f] n=%zu\n", bench->table,
           name, subject, digits, spread->median, unit, digits, spread->q1,
           digits, spread->q3, spread->count);
    fflush(stdout);
    if (bench->row_count == BENCH_ROWS_MAX)
        return;
    struct bench_row *const row = &bench->rows[bench->row_count++];

    row->table = bench->table;
    row->spread = *spread;
    snprintf(row->name, sizeof(row->name), "%s", name);
    snprintf(row->subject, sizeof(row->subject), "%s", subject);
    snprintf(row->unit, sizeof(row->unit), "%s", unit);
}

static void keep_note(struct bench *bench, const char *text)
{
    printf("%s\n", text);
    fflush(stdout);
    if (bench->note_count < BENCH_NOTES_MAX)
        snprintf(bench->notes[bench->note_count++], BENCH_NOTE_CAP, "%s",
                 text);
}

void bench_note(struct bench *bench, const char *format, ...)
{
    char text[BENCH_NOTE_CAP] = "info ";
    va_list args;

    va_start(args, format);
    vsnprintf(text + 5, sizeof(text) - 5, format, args);
    va_end(args);
    keep_note(bench, text);
}

void bench_skip(struct bench *bench, const char *name, const char *why)
{
    char text[BENCH_NOTE_CAP];

    snprintf(text, sizeof(text), "skipped %s: %s", name, why);
    keep_note(bench, text);
    bench->skip_count++;
}

void bench_fail(struct bench *bench, const char *format, ...)
{
    char text[BENCH_NOTE_CAP];
    const int len =
        snprintf(text, sizeof(text), "failed %s: ", bench->table);
    va_list args;

    va_start(args, format);
    vsnprintf(text + len, sizeof(text) - (size_t)len, format, args);
    va_end(args);
    keep_note(bench, text);
    bench->is_failed = 1;
    bench->skip_count++;
}

void bench_target(struct bench *bench, const char *name,
                  const struct spread *value, enum bench_op op, double bound)
{
    const int is_met = op == BENCH_AT_LEAST ? value->median >= bound
                                            : value->median <= bound;

    if (value->count == 0) {
        bench_skip(bench, name, "no samples");
        return;
    }
    if (bench->is_quick) {
        bench_note(bench, "%s %.3f (bound %s %.2f, not judged)", name,
                   value->median, op_text(op), bound);
        return;
    }
    printf("target %s %.*f %s %.2f %s\n", name, digits_of(value->median),
           value->median, op_text(op), bound, is_met ? "met" : "missed");
    fflush(stdout);
    if (bench->target_count == BENCH_TARGETS_MAX)
        return;
    struct bench_target *const target =
        &bench->targets[bench->target_count++];

    snprintf(target->name, sizeof(target->name), "%s", name);
    target->value = value->median;
    target->op = op;
    target->bound = bound;
    target->is_met = is_met;
}

int bench_exit_status(const struct bench *bench)
{
    if (!bench->is_check)
        return bench->is_failed ? 1 : 0;
    for (size_t i = 0; i < bench->target_count; i++)
        if (!bench->targets[i].is_met)
            return 4;
    if (bench->skip_count > 0 || bench->target_count == 0)
        return 5;
    return 0;
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

static void print_text_member(FILE *out, const char *name, const char *text,
                              const char *after)
{
    fprintf(out, "\"%s\": ", name);
    print_string(out, text);
    fputs(after, out);
}

static void print_card(FILE *out, const struct machine_card *card)
{
    fputs("  \"machine\": {", out);
    print_text_member(out, "commit", card->commit, ", ");
    print_text_member(out, "cpu", card->cpu, ", ");
    print_text_member(out, "kernel", card->kernel, ", ");
    print_text_member(out, "simd", card->simd, ", ");
    fprintf(out, "\"cpus\": %d},\n", card->cpu_count);
}

static void print_rows(FILE *out, const struct bench *bench)
{
    fputs("  \"rows\": [", out);
    for (size_t i = 0; i < bench->row_count; i++) {
        const struct bench_row *const row = &bench->rows[i];

        fputs(i ? ",\n    {" : "\n    {", out);
        print_text_member(out, "table", row->table, ", ");
        print_text_member(out, "name", row->name, ", ");
        print_text_member(out, "subject", row->subject, ", ");
        print_text_member(out, "unit", row->unit, ", ");
        fprintf(out,
                "\"median\": %.6g, \"q1\": %.6g, \"q3\": %.6g, "
                "\"samples\": %zu}",
                row->spread.median, row->spread.q1, row->spread.q3,
                row->spread.count);
    }
    fputs("\n  ],\n", out);
}

static void print_targets(FILE *out, const struct bench *bench)
{
    fputs("  \"targets\": [", out);
    for (size_t i = 0; i < bench->target_count; i++) {
        const struct bench_target *const target = &bench->targets[i];

        fputs(i ? ",\n    {" : "\n    {", out);
        print_text_member(out, "name", target->name, ", ");
        fprintf(out,
                "\"value\": %.6g, \"op\": \"%s\", \"bound\": %.6g, "
                "\"met\": %s}",
                target->value, op_text(target->op), target->bound,
                target->is_met ? "true" : "false");
    }
    fprintf(out, "\n  ],\n  \"skipped\": %zu,\n", bench->skip_count);
}

static void print_json(FILE *out, const struct bench *bench)
{
    fputs("{\n", out);
    print_card(out, &bench->card);
    print_rows(out, bench);
    print_targets(out, bench);
    fputs("  \"notes\": [", out);
    for (size_t i = 0; i < bench->note_count; i++) {
        fputs(i ? ",\n    " : "\n    ", out);
        print_string(out, bench->notes[i]);
    }
    fputs("\n  ]\n}\n", out);
}

int bench_write_json(const struct bench *bench, const char *path)
{
    FILE *const out = strcmp(path, "-") == 0 ? stdout : fopen(path, "w");

    if (!out)
        return -errno;
    print_json(out, bench);
    if ((out == stdout ? fflush(out) : fclose(out)) != 0)
        return -errno;
    return 0;
}
