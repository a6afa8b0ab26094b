/* SPDX-License-Identifier: MIT */
/*
 * What `myra demo` shows: a few lines drawn in place on a terminal, or one
 * line a second elsewhere, and a table at the end.
 */
#include "config.h"

#include "tools/myra/demo.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BAR_LEN 30

void demo_view_init(struct demo_view *view)
{
    const char *term = getenv("TERM");
    const char *no_color = getenv("NO_COLOR");

    memset(view, 0, sizeof *view);
    view->is_live = isatty(STDOUT_FILENO) && term != NULL &&
                    strcmp(term, "dumb") != 0;
    view->has_color =
        view->is_live && (no_color == NULL || no_color[0] == '\0');
    view->plain_at_s = 1;
}

void demo_print_time(char *text, size_t text_cap, double ns)
{
    if (ns < 999500)
        snprintf(text, text_cap, "%.*f us", ns < 99950 ? 1 : 0, ns / 1e3);
    else if (ns < 999.5e6)
        snprintf(text, text_cap, "%.2f ms", ns / 1e6);
    else
        snprintf(text, text_cap, "%.2f s", ns / 1e9);
}

static void print_bar(double part)
{
    int full = (int)(part * BAR_LEN + 0.5);

    full = full < 0 ? 0 : full > BAR_LEN ? BAR_LEN : full;
    putchar('[');
    for (int i = 0; i < BAR_LEN; i++)
        putchar(i < full ? '#' : '.');
    putchar(']');
}

static void print_origin(const struct demo_view *view,
                         const struct demo_frame *frame, int i)
{
    const int is_up = frame->is_origin_up[i];
    const char *color = view->has_color ? (is_up ? "\033[32m" : "\033[31m")
                                        : "";

    printf("  origin %c   %s%-7s%s %8.0f/s\033[K\n", 'a' + i, color,
           is_up ? "up" : "killed", view->has_color ? "\033[0m" : "",
           frame->origin_rates[i]);
}

static void draw_live(struct demo_view *view, const struct demo_frame *frame)
{
    char p50[16], p99[16];

    demo_view_clear(view);
    demo_print_time(p50, sizeof p50, (double)frame->p50_ns);
    demo_print_time(p99, sizeof p99, (double)frame->p99_ns);
    printf("  ");
    print_bar(frame->elapsed_s / frame->total_s);
    printf("  %.0f of %.0f s   %s\033[K\n", frame->elapsed_s, frame->total_s,
           frame->note);
    printf("  requests   %8.0f/s   answered %" PRIu64 "   errors %" PRIu64
           "\033[K\n",
           frame->rate_per_s, frame->answered, frame->errors);
    printf("  latency    p50 %s   p99 %s\033[K\n", p50, p99);
    for (int i = 0; i < DEMO_ORIGIN_COUNT; i++)
        print_origin(view, frame, i);
    view->drawn_lines = 3 + DEMO_ORIGIN_COUNT;
    fflush(stdout);
}

static void draw_plain(struct demo_view *view, const struct demo_frame *frame)
{
    char p50[16], p99[16];

    if (frame->elapsed_s < view->plain_at_s)
        return;
    while (view->plain_at_s <= frame->elapsed_s)
        view->plain_at_s += 1;
    demo_print_time(p50, sizeof p50, (double)frame->p50_ns);
    demo_print_time(p99, sizeof p99, (double)frame->p99_ns);
    printf("  %2.0f s  %6.0f req/s  p50 %-8s p99 %-8s errors %" PRIu64
           "   a %.0f/s%s  b %.0f/s%s\n",
           frame->elapsed_s, frame->rate_per_s, p50, p99, frame->errors,
           frame->origin_rates[0], frame->is_origin_up[0] ? "" : " (killed)",
           frame->origin_rates[1], frame->is_origin_up[1] ? "" : " (killed)");
    fflush(stdout);
}

void demo_view_draw(struct demo_view *view, const struct demo_frame *frame)
{
    if (view->is_live)
        draw_live(view, frame);
    else
        draw_plain(view, frame);
}

void demo_view_say(struct demo_view *view, const char *text)
{
    demo_view_clear(view);
    printf("  %s%s\n", text, view->is_live ? "\033[K" : "");
    fflush(stdout);
}

void demo_view_clear(struct demo_view *view)
{
    if (view->drawn_lines > 0)
        printf("\033[%dA\r\033[J", view->drawn_lines);
    view->drawn_lines = 0;
}

static void print_row(const char *name, const char *a, const char *b)
{
    printf("  %-26s %14s %14s\n", name, a, b);
}

/* A row of times: at(result) of both columns. */
static void print_times(const char *name, double a_ns, double b_ns)
{
    char a[16], b[16];

    demo_print_time(a, sizeof a, a_ns);
    demo_print_time(b, sizeof b, b_ns);
    print_row(name, a, b);
}

static void print_counts(const char *name, double a, double b,
                         const char *unit)
{
    char a_text[24], b_text[24];

    snprintf(a_text, sizeof a_text, "%.0f%s", a, unit);
    snprintf(b_text, sizeof b_text, "%.0f%s", b, unit);
    print_row(name, a_text, b_text);
}

void demo_view_table(const struct demo_result *fixed,
                     const struct demo_result *full)
{
    printf("\n");
    print_row("", fixed->title, full->title);
    print_counts("requests answered", (double)fixed->answered,
                 (double)full->answered, "");
    print_counts("rate", fixed->rate_per_s, full->rate_per_s, "/s");
    print_counts("errors", (double)fixed->errors, (double)full->errors, "");
    print_times("latency p50", (double)fixed->p50_ns, (double)full->p50_ns);
    print_times("        p99", (double)fixed->p99_ns, (double)full->p99_ns);
    print_times("        p99.9", (double)fixed->p999_ns,
                (double)full->p999_ns);
    print_times("proxy's CPU per request", fixed->cpu_ns, full->cpu_ns);
}
