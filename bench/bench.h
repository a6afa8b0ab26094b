/* SPDX-License-Identifier: MIT */
/*
 * What every table of myra-bench shares: options, the rows and targets that
 * were found, and how they are printed.
 *
 * A table calls bench_row for each number and bench_target for each claim.
 * All is printed as it comes and kept for the JSON and the page.
 */
#ifndef MYRA_BENCH_BENCH_H
#define MYRA_BENCH_BENCH_H

#include <stdio.h>

#include "bench/machine.h"
#include "bench/stats.h"

#define BENCH_ROWS_MAX 256
#define BENCH_TARGETS_MAX 64
#define BENCH_NOTES_MAX 64
#define BENCH_NAME_CAP 64
#define BENCH_NOTE_CAP 200

enum bench_op {
    BENCH_AT_LEAST = 0, /* >= */
    BENCH_AT_MOST       /* <= */
};

struct bench_row {
    const char *table;
    char name[BENCH_NAME_CAP];   /* "128 B, small head" */
    char subject[BENCH_NAME_CAP]; /* "nginx" */
    char unit[16];               /* "us/req" */
    struct spread spread;
};

struct bench_target {
    char name[BENCH_NAME_CAP];
    double value;
    enum bench_op op;
    double bound;
    int is_met;
};

struct bench {
    /* options */
    int is_check;
    int is_quick;
    const char *json_path;
    const char *html_path;
    char **argv; /* for the page */

    /* found */
    const char *table; /* the one that runs */
    struct machine_card card;
    struct bench_row rows[BENCH_ROWS_MAX];
    size_t row_count;
    struct bench_target targets[BENCH_TARGETS_MAX];
    size_t target_count;
    char notes[BENCH_NOTES_MAX][BENCH_NOTE_CAP];
    size_t note_count;
    size_t skip_count; /* targets not judged */
    int is_failed;     /* a table could not run at all */
};

/* One number of one subject; printed at once. */
void bench_row(struct bench *bench, const char *name, const char *subject,
               const char *unit, const struct spread *spread);

/* A claim. Prints "target NAME VALUE OP BOUND met|missed". With --quick it
 * is an info line and judges nothing. A value of no samples is a skip. */
void bench_target(struct bench *bench, const char *name,
                  const struct spread *value, enum bench_op op, double bound);

/* A claim that could not be judged, and why. */
void bench_skip(struct bench *bench, const char *name, const char *why);

/* A line of information; kept for the JSON. */
void bench_note(struct bench *bench, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The table cannot run: prints why. */
void bench_fail(struct bench *bench, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* What --check makes of it: 0, 4, 5; or 1 where a table failed. */
int bench_exit_status(const struct bench *bench);

/* 0, or -errno. */
int bench_write_json(const struct bench *bench, const char *path);
int bench_write_html(const struct bench *bench, const char *path);

/* The tables. */
void bench_pool(struct bench *bench);
void bench_proxy(struct bench *bench);
void bench_idle(struct bench *bench);
void bench_alloc(struct bench *bench);

#endif
