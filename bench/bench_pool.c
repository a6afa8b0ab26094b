/* SPDX-License-Identifier: MIT */
/*
 * Table pool: acquire and release of a 4 KiB buffer, through the public API
 * of the shared library, against the allocators that Debian packages and a
 * free list under a mutex. Every subject is a process of its own, the
 * allocators under LD_PRELOAD; the parent asks each in turn for one sample,
 * so all rows lie interleaved in every round.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/worker.h"

#define SET_COUNT 3
#define ROUND_COUNT 15
#define QUIET_ROUNDS_MIN 5
#define SUBJECT_COUNT 6
#define SHAPE_COUNT 5

enum subject { MYRA = 0, GLIBC, JEMALLOC, MIMALLOC, TCMALLOC, MUTEX };
enum shape { ONE = 0, ONE_HELD_16, ONE_HELD_64, TWO, TWO_HELD_64 };

static const struct {
    const char *name;
    const char *kind;    /* of the worker */
    const char *library; /* in the path of malloc's library; NULL: any */
    const char *preload;
} subjects[SUBJECT_COUNT] = {
    [MYRA] = { "myra", "myra", NULL, NULL },
    [GLIBC] = { "glibc malloc", "malloc", "libc.", NULL },
    [JEMALLOC] = { "jemalloc", "malloc", "libjemalloc",
                   "LD_PRELOAD=libjemalloc.so.2" },
    [MIMALLOC] = { "mimalloc", "malloc", "libmimalloc",
                   "LD_PRELOAD=libmimalloc.so.2" },
    [TCMALLOC] = { "tcmalloc-minimal", "malloc", "libtcmalloc",
                   "LD_PRELOAD=libtcmalloc_minimal.so.4" },
    [MUTEX] = { "mutex free list", "mutex", NULL, NULL },
};

static const struct {
    const char *name;
    const char *threads;
    const char *held;
} shapes[SHAPE_COUNT] = {
    [ONE] = { "1 thread", "1", "1" },
    [ONE_HELD_16] = { "1 thread, 16 held", "1", "16" },
    [ONE_HELD_64] = { "1 thread, 64 held", "1", "64" },
    [TWO] = { "2 threads, each", "2", "1" },
    [TWO_HELD_64] = { "2 threads, 64 held", "2", "64" },
};

/* One subject in one shape. */
struct cell {
    struct worker worker;
    int is_absent;     /* the allocator is not installed */
    struct samples ns; /* of all sets, quiet ones only */
};

struct table {
    struct cell cells[SUBJECT_COUNT][SHAPE_COUNT];
    struct samples set_ratios[SUBJECT_COUNT][SHAPE_COUNT]; /* peer / myra */
    struct samples all_ratios[SUBJECT_COUNT][SHAPE_COUNT];
    int is_shared; /* our pool is the shared library's */
    size_t asked;
    size_t disturbed;
};

static int start_cell(struct table *table, int subject, int shape)
{
    struct cell *const cell = &table->cells[subject][shape];
    const char *const args[] = {
        subjects[subject].kind,
        subjects[subject].library ? subjects[subject].library : "-",
        shapes[shape].threads, shapes[shape].held, NULL
    };
    const char *const env[] = { subjects[subject].preload, NULL };
    double is_ready = 0;
    double is_shared = 0;

    if (cell->is_absent)
        return 0;
    const int err = worker_start(&cell->worker, "pool", args, env, 0);

    if (err < 0)
        return err;
    if (worker_ask(&cell->worker, &is_ready, &is_shared) != 2 ||
        is_ready < 0) {
        worker_stop(&cell->worker);
        cell->is_absent = 1;
    }
    if (subject == MYRA)
        table->is_shared = is_shared > 0;
    return 0;
}

static void stop_cells(struct table *table)
{
    for (int i = 0; i < SUBJECT_COUNT; i++)
        for (int k = 0; k < SHAPE_COUNT; k++)
            worker_stop(&table->cells[i][k].worker);
}

static int start_cells(struct table *table)
{
    for (int i = 0; i < SUBJECT_COUNT; i++)
        for (int k = 0; k < SHAPE_COUNT; k++) {
            const int err = start_cell(table, i, k);

            if (err < 0)
                return err;
        }
    return 0;
}

/* One sample of a cell; a disturbed one is 0. */
static double ask_cell(struct table *table, struct cell *cell)
{
    double ns = 0;
    double is_quiet = 0;

    if (cell->is_absent)
        return 0;
    if (worker_ask(&cell->worker, &ns, &is_quiet) != 2) {
        cell->is_absent = 1;
        return 0;
    }
    table->asked++;
    if (is_quiet > 0)
        return ns;
    table->disturbed++;
    return 0;
}

/* All rows once; a ratio needs both of its samples quiet. */
static void run_round(struct table *table, struct samples (*ratios)
                                               [SHAPE_COUNT])
{
    for (int k = 0; k < SHAPE_COUNT; k++) {
        double ns[SUBJECT_COUNT];

        for (int i = 0; i < SUBJECT_COUNT; i++) {
            struct cell *const cell = &table->cells[i][k];

            ns[i] = ask_cell(table, cell);
            if (ns[i] > 0)
                samples_add(&cell->ns, ns[i]);
        }
        for (int i = 0; i < SUBJECT_COUNT; i++) {
            if (ns[i] <= 0 || ns[MYRA] <= 0)
                continue;
            samples_add(&ratios[i][k], ns[i] / ns[MYRA]);
            samples_add(&table->all_ratios[i][k], ns[i] / ns[MYRA]);
        }
    }
}

static int run_set(struct table *table, int round_count)
{
    static struct samples ratios[SUBJECT_COUNT][SHAPE_COUNT];
    const int err = start_cells(table);

    memset(ratios, 0, sizeof(ratios));
    for (int i = 0; !err && i < round_count; i++)
        run_round(table, ratios);
    stop_cells(table);
    for (int i = 0; i < SUBJECT_COUNT; i++)
        for (int k = 0; k < SHAPE_COUNT; k++)
            if (ratios[i][k].count >= QUIET_ROUNDS_MIN)
                samples_add(&table->set_ratios[i][k],
                            samples_spread(&ratios[i][k]).median);
    return err;
}

/* The median of the processes' medians, with the quartiles of all rounds. */
static struct spread ratio_of(const struct table *table, int subject,
                              int shape)
{
    struct spread spread =
        samples_spread(&table->all_ratios[subject][shape]);

    if (table->set_ratios[subject][shape].count == 0)
        spread.count = 0;
    else
        spread.median =
            samples_spread(&table->set_ratios[subject][shape]).median;
    return spread;
}

static void print_cells(struct bench *bench, const struct table *table)
{
    for (int k = 0; k < SHAPE_COUNT; k++) {
        for (int i = 0; i < SUBJECT_COUNT; i++) {
            const struct spread spread =
                samples_spread(&table->cells[i][k].ns);

            if (spread.count > 0)
                bench_row(bench, shapes[k].name, subjects[i].name, "ns",
                          &spread);
        }
    }
    for (int i = 0; i < SUBJECT_COUNT; i++)
        if (table->cells[i][ONE].is_absent)
            bench_note(bench, "%s: not installed, left out",
                       subjects[i].name);
    bench_note(bench, "myra: %s",
               table->is_shared ? "through the shared library"
                                : "linked in, no shared library was found");
    bench_note(bench, "%zu of %zu samples disturbed and not counted",
               table->disturbed, table->asked);
}

static void judge(struct bench *bench, const struct table *table,
                  const char *name, int subject, int shape, double bound)
{
    const struct spread ratio = ratio_of(table, subject, shape);

    if (table->cells[subject][shape].is_absent)
        bench_skip(bench, name, "the peer is not installed");
    else if (ratio.count == 0)
        bench_skip(bench, name, "too few quiet samples");
    else
        bench_target(bench, name, &ratio, BENCH_AT_LEAST, bound);
}

static void print_ratios(struct bench *bench, const struct table *table)
{
    for (int k = 0; k < SHAPE_COUNT; k++)
        for (int i = 1; i < SUBJECT_COUNT; i++) {
            const struct spread ratio = ratio_of(table, i, k);

            if (ratio.count > 0)
                bench_note(bench, "%s: %s takes %.2fx [%.2f %.2f]",
                           shapes[k].name, subjects[i].name, ratio.median,
                           ratio.q1, ratio.q3);
        }
}

void bench_pool(struct bench *bench)
{
    static struct table table;
    const int set_count = bench->is_quick ? 1 : SET_COUNT;

    memset(&table, 0, sizeof(table));
    if (machine_cpu_count() < 2)
        bench_note(bench, "one processor: the rows of 2 threads share it");
    for (int i = 0; i < set_count; i++) {
        const int err = run_set(&table, ROUND_COUNT);

        if (err < 0) {
            bench_fail(bench, "a worker could not be started: %s",
                       strerror(-err));
            return;
        }
    }
    print_cells(bench, &table);
    print_ratios(bench, &table);
    judge(bench, &table, "pool.vs_glibc_1t", GLIBC, ONE, 10);
    judge(bench, &table, "pool.vs_tcmalloc_1t", TCMALLOC, ONE, 2.5);
    judge(bench, &table, "pool.vs_mutex_2t", MUTEX, TWO, 40);
}
