/* SPDX-License-Identifier: MIT */
/*
 * The report as one page that needs nothing else: the machine, the command,
 * the targets, and every row as a bar with its quartiles.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "bench/bench.h"

#define BAR_WIDTH 360.0

static const char head_text[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
    "<title>myra-bench</title>\n<style>\n"
    "body{font:15px/1.5 system-ui,sans-serif;max-width:60em;margin:2em "
    "auto;padding:0 1em;color:#222;background:#fff}\n"
    "table{border-collapse:collapse}td,th{padding:.2em .8em .2em 0;"
    "text-align:left}\n"
    ".n{text-align:right;font-variant-numeric:tabular-nums}\n"
    ".met{color:#176f2c}.missed{color:#b3261e;font-weight:bold}\n"
    "rect.ours{fill:#2563a8}rect{fill:#9aa5b1}line{stroke:#222}\n"
    "@media(prefers-color-scheme:dark){body{color:#ddd;background:#181a1b}"
    "line{stroke:#eee}.met{color:#7fd18b}.missed{color:#ff8a80}}\n"
    "</style></head><body>\n<h1>myra-bench</h1>\n";

static void print_text(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '<')
            fputs("&lt;", out);
        else if (*text == '>')
            fputs("&gt;", out);
        else if (*text == '&')
            fputs("&amp;", out);
        else
            fputc(*text, out);
    }
}

static void print_intro(FILE *out, const struct bench *bench)
{
    const struct machine_card *const card = &bench->card;

    fputs("<p><code>myra-bench", out);
    for (char **arg = bench->argv + 1; *arg; arg++) {
        fputc(' ', out);
        print_text(out, *arg);
    }
    fputs("</code></p>\n<p>Commit ", out);
    print_text(out, card->commit);
    fputs(", ", out);
    print_text(out, card->cpu);
    fprintf(out, ", %d processors, ", card->cpu_count);
    print_text(out, card->kernel);
    fprintf(out, ", SIMD %s. Bars are medians, the thin lines the quartiles "
                 "of the rounds.</p>\n",
            card->simd);
}

static void print_targets(FILE *out, const struct bench *bench)
{
    if (bench->target_count == 0)
        return;
    fputs("<h2>Targets</h2>\n<table><tr><th>target</th><th class=n>value"
          "</th><th></th><th class=n>bound</th><th></th></tr>\n",
          out);
    for (size_t i = 0; i < bench->target_count; i++) {
        const struct bench_target *const target = &bench->targets[i];
        const char *const verdict = target->is_met ? "met" : "missed";

        fputs("<tr><td>", out);
        print_text(out, target->name);
        fprintf(out,
                "</td><td class=n>%.3f</td><td>%s</td><td class=n>%.2f</td>"
                "<td class=%s>%s</td></tr>\n",
                target->value,
                target->op == BENCH_AT_LEAST ? "&ge;" : "&le;",
                target->bound, verdict, verdict);
    }
    fputs("</table>\n", out);
}

static int is_same_group(const struct bench_row *a, const struct bench_row *b)
{
    return strcmp(a->table, b->table) == 0 &&
           strcmp(a->name, b->name) == 0 && strcmp(a->unit, b->unit) == 0;
}

/* 1 for the first row of its group. */
static int is_first(const struct bench *bench, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (is_same_group(&bench->rows[i], &bench->rows[index]))
            return 0;
    return 1;
}

static void print_bar(FILE *out, const struct bench_row *row, double scale)
{
    const double length = row->spread.median * scale;
    const double low = row->spread.q1 * scale;
    const double high = row->spread.q3 * scale;

    fputs("<tr><td>", out);
    print_text(out, row->subject);
    fprintf(out,
            "</td><td class=n>%.4g</td><td><svg width=\"%.0f\" height=\"16\" "
            "role=\"img\"><rect%s width=\"%.1f\" height=\"12\" y=\"2\"/>"
            "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"8\" y2=\"8\"/></svg></td>"
            "<td class=n>n=%zu</td></tr>\n",
            row->spread.median, BAR_WIDTH,
            strncmp(row->subject, "myra", 4) == 0 ? " class=\"ours\"" : "",
            length, low, high, row->spread.count);
}

static void print_group(FILE *out, const struct bench *bench, size_t first)
{
    const struct bench_row *const head = &bench->rows[first];
    double largest = 0;

    for (size_t i = first; i < bench->row_count; i++)
        if (is_same_group(head, &bench->rows[i]) &&
            bench->rows[i].spread.q3 > largest)
            largest = bench->rows[i].spread.q3;
    fputs("<h3>", out);
    print_text(out, head->table);
    fputs(": ", out);
    print_text(out, head->name);
    fputs(", ", out);
    print_text(out, head->unit);
    fputs("</h3>\n<table>\n", out);
    for (size_t i = first; i < bench->row_count; i++)
        if (is_same_group(head, &bench->rows[i]))
            print_bar(out, &bench->rows[i],
                      largest > 0 ? BAR_WIDTH / largest : 0);
    fputs("</table>\n", out);
}

int bench_write_html(const struct bench *bench, const char *path)
{
    FILE *const out = fopen(path, "w");

    if (!out)
        return -errno;
    fputs(head_text, out);
    print_intro(out, bench);
    print_targets(out, bench);
    fputs("<h2>Rows</h2>\n", out);
    for (size_t i = 0; i < bench->row_count; i++)
        if (is_first(bench, i))
            print_group(out, bench, i);
    fputs("<h2>Notes</h2>\n<ul>\n", out);
    for (size_t i = 0; i < bench->note_count; i++) {
        fputs("<li>", out);
        print_text(out, bench->notes[i]);
        fputs("</li>\n", out);
    }
    fputs("</ul>\n</body></html>\n", out);
    return fclose(out) == 0 ? 0 : -EIO;
}
