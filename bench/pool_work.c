/* SPDX-License-Identifier: MIT */
/*
 * The measured side of table pool: "pool KIND LIBRARY THREADS HELD", KIND
 * myra, malloc or mutex. LIBRARY is part of the path that malloc must come
 * from ("-": any), because a missing LD_PRELOAD library is only a warning to
 * the loader. Each byte on standard input asks for one sample.
 */
#include "config.h"

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <myra/alloc.h>
#include <myra/pool.h>

#include "bench/canary.h"
#include "bench/machine.h"
#include "bench/proc.h"
#include "bench/worker.h"

#define BUF_LEN 4096
#define BUF_COUNT 512
#define HELD_MAX 64
/* Two threads at a mutex take turns in two ways, sleeping or not, and change
 * between them within milliseconds. */
#define SAMPLE_NS 1500000.0
#define SAMPLE_NS_OF_TWO 5000000.0
#define TRIES_MAX 40

struct work;

typedef void (*work_fn)(struct work *work, uint64_t rounds);

struct work {
    work_fn run;    /* rounds of acquire held, release held */
    uint32_t held;
    int thread_count;
    uint64_t rounds; /* of one sample */

    struct myra_pool *pool;
    pthread_mutex_t lock; /* of the mutex list */
    void **list;

    pthread_t second;
    sem_t wanted; /* the second thread's turn */
    sem_t done;
    atomic_int at_line; /* threads that are ready to start */
    double second_ns;
    int is_second_quiet;
};

/* The compiler must not pair up malloc and free and drop both. */
static inline void keep(void *p)
{
    __asm__ volatile("" : : "r"(p) : "memory");
}

/* ---- What is measured ---------------------------------------------------- */

static void run_myra(struct work *work, uint64_t rounds)
{
    struct myra_pool *const pool = work->pool;
    struct myra_buf *held[HELD_MAX];

    if (work->held == 1) {
        for (uint64_t i = 0; i < rounds; i++) {
            if (myra_pool_acquire(pool, &held[0]) < 0)
                abort();
            keep(held[0]);
            myra_buf_release(held[0]);
        }
        return;
    }
    for (uint64_t i = 0; i < rounds; i++) {
        for (uint32_t k = 0; k < work->held; k++) {
            if (myra_pool_acquire(pool, &held[k]) < 0)
                abort();
            keep(held[k]);
        }
        for (uint32_t k = 0; k < work->held; k++)
            myra_buf_release(held[k]);
    }
}

static void run_malloc(struct work *work, uint64_t rounds)
{
    void *held[HELD_MAX];

    if (work->held == 1) {
        for (uint64_t i = 0; i < rounds; i++) {
            held[0] = malloc(BUF_LEN);
            if (!held[0])
                abort();
            keep(held[0]);
            free(held[0]);
        }
        return;
    }
    for (uint64_t i = 0; i < rounds; i++) {
        for (uint32_t k = 0; k < work->held; k++) {
            held[k] = malloc(BUF_LEN);
            if (!held[k])
                abort();
            keep(held[k]);
        }
        for (uint32_t k = 0; k < work->held; k++)
            free(held[k]);
    }
}

static void *take(struct work *work)
{
    pthread_mutex_lock(&work->lock);
    void **const buf = work->list;

    if (buf)
        work->list = *buf;
    pthread_mutex_unlock(&work->lock);
    return buf;
}

static void give(struct work *work, void *p)
{
    void **const buf = p;

    pthread_mutex_lock(&work->lock);
    *buf = work->list;
    work->list = buf;
    pthread_mutex_unlock(&work->lock);
}

static void run_mutex(struct work *work, uint64_t rounds)
{
    void *held[HELD_MAX];

    for (uint64_t i = 0; i < rounds; i++) {
        for (uint32_t k = 0; k < work->held; k++) {
            held[k] = take(work);
            if (!held[k])
                abort();
            keep(held[k]);
        }
        for (uint32_t k = 0; k < work->held; k++)
            give(work, held[k]);
    }
}

/* ---- Set-up -------------------------------------------------------------- */

/* 1 when the calls go to the shared library, as a user's program does it. */
static int is_library_shared(void)
{
    Dl_info info;
    void *const symbol = dlsym(RTLD_DEFAULT, "myra_pool_new");

    return symbol && dladdr(symbol, &info) != 0 && info.dli_fname &&
           strstr(info.dli_fname, "libmyra.so") != NULL;
}

static int set_up_myra(struct work *work)
{
    struct myra_pool_options options;

    myra_pool_options_init(&options);
    options.buf_cap = BUF_LEN;
    options.count = BUF_COUNT;
    work->run = run_myra;
    return myra_pool_new(&options, &work->pool);
}

static int set_up_mutex(struct work *work)
{
    char *const memory = aligned_alloc(64, (size_t)BUF_LEN * BUF_COUNT);

    if (!memory)
        return -1;
    pthread_mutex_init(&work->lock, NULL);
    for (size_t i = 0; i < BUF_COUNT; i++) {
        void **const buf = (void **)(void *)(memory + i * BUF_LEN);

        *buf = work->list;
        work->list = buf;
    }
    work->run = run_mutex;
    return 0;
}

/* Whether malloc comes from the library that is meant. */
static int set_up_malloc(struct work *work, const char *library)
{
    Dl_info info;
    void *const symbol = dlsym(RTLD_DEFAULT, "malloc");

    work->run = run_malloc;
    if (!symbol || dladdr(symbol, &info) == 0 || !info.dli_fname)
        return -1;
    return strstr(info.dli_fname, library) ? 0 : -1;
}

static int set_up(struct work *work, char **argv)
{
    work->thread_count = atoi(argv[2]);
    work->held = (uint32_t)atoi(argv[3]);
    if (work->held < 1 || work->held > HELD_MAX)
        return -1;
    if (strcmp(argv[0], "myra") == 0)
        return set_up_myra(work);
    if (strcmp(argv[0], "mutex") == 0)
        return set_up_mutex(work);
    return set_up_malloc(work, argv[1]);
}

/* ---- Samples ------------------------------------------------------------- */

static double run_ns(struct work *work)
{
    const uint64_t start_ns = myra_clock_ns();

    work->run(work, work->rounds);
    return (double)(myra_clock_ns() - start_ns);
}

/* Both threads meet here, so that they run at the same time. */
static void meet(struct work *work)
{
    atomic_fetch_add(&work->at_line, 1);
    while (atomic_load(&work->at_line) < work->thread_count)
        ;
}

static void *second_main(void *arg)
{
    struct work *const work = arg;

    proc_pin(machine_cpu_count() > 1 ? 1 : 0);
    canary_learn();
    for (;;) {
        sem_wait(&work->wanted);
        const int was_quiet = canary_is_quiet();

        meet(work);
        work->second_ns = run_ns(work);
        work->is_second_quiet = was_quiet && canary_is_quiet();
        sem_post(&work->done);
    }
    return NULL;
}

/* ns of one acquire and release; with two threads the mean of both. */
static double sample_ns(struct work *work)
{
    const double operations = (double)work->rounds * work->held;

    if (work->thread_count == 1)
        return run_ns(work) / operations;
    atomic_store(&work->at_line, 0);
    sem_post(&work->wanted);
    meet(work);
    const double ns = run_ns(work);

    sem_wait(&work->done);
    return (ns + work->second_ns) / 2 / operations;
}

/* Finds how many rounds fill a sample; warms everything up as well. */
static void calibrate(struct work *work)
{
    const double want_ns =
        work->thread_count > 1 ? SAMPLE_NS_OF_TWO : SAMPLE_NS;

    work->rounds = 1000 / work->held + 1;
    for (int i = 0; i < 5; i++) {
        const double ns = sample_ns(work) * work->held;

        work->rounds = (uint64_t)(want_ns / (ns > 0.2 ? ns : 0.2)) + 1;
    }
}

static void answer_samples(struct work *work)
{
    while (worker_wait()) {
        double ns = 0;
        int is_quiet = 0;

        for (int i = 0; i < TRIES_MAX && !is_quiet; i++) {
            if (!canary_is_quiet())
                continue;
            ns = sample_ns(work);
            is_quiet = canary_is_quiet() &&
                       (work->thread_count == 1 || work->is_second_quiet);
        }
        worker_answer(ns, is_quiet);
    }
}

int worker_pool(int argc, char **argv)
{
    static struct work work;

    if (argc != 4 || !worker_wait())
        return 2;
    if (set_up(&work, argv) < 0) {
        worker_answer(-1, 0);
        return 1;
    }
    sem_init(&work.wanted, 0, 0);
    sem_init(&work.done, 0, 0);
    if (work.thread_count > 1 &&
        pthread_create(&work.second, NULL, second_main, &work) != 0)
        return 1;
    canary_learn();
    calibrate(&work);
    worker_answer(1, is_library_shared());
    answer_samples(&work);
    return 0;
}
