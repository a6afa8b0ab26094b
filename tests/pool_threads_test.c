/* SPDX-License-Identifier: MIT */
/*
 * The buffer pool between threads: no buffer has two owners, what a thread
 * leaves behind is found, and who waits is told.
 */
#include "config.h"

#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>

#include <criterion/criterion.h>

#include <myra/alloc.h>
#include <myra/pool.h>

#define HELD_MAX 24
#define DEADLINE_NS 20000000000u

static struct myra_pool *make_pool(uint32_t count, uint32_t cache)
{
    struct myra_pool_options options;
    struct myra_pool *pool = NULL;

    myra_pool_options_init(&options);
    options.count = count;
    options.cache = cache;
    options.buf_cap = 64;
    cr_assert_eq(myra_pool_new(&options, &pool), 0);
    return pool;
}

struct worker {
    pthread_t thread;
    struct myra_pool *pool;
    uint64_t stamp;
    uint64_t rounds;
    uint64_t acquired;
    uint64_t refused;
    uint64_t stolen; /* buffers that somebody else wrote to */
};

/* Stamps what it acquires and looks again before it releases: a buffer with
 * two owners would carry the other's stamp. TSan sees the same as a race. */
static void *stamp_buffers(void *arg)
{
    struct worker *worker = arg;
    struct myra_buf *held[HELD_MAX];
    uint32_t held_count = 0;
    uint64_t random = worker->stamp;

    for (uint64_t round = 0; round < worker->rounds; round++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        if (held_count < HELD_MAX && (random >> 60) < 9) {
            if (myra_pool_acquire(worker->pool, &held[held_count]) == 0) {
                memcpy(held[held_count++]->data, &worker->stamp, 8);
                worker->acquired++;
            } else {
                worker->refused++;
            }
        } else if (held_count > 0) {
            const uint32_t at = (uint32_t)(random >> 32) % held_count;
            struct myra_buf *buf = held[at];

            worker->stolen += memcmp(buf->data, &worker->stamp, 8) != 0;
            held[at] = held[--held_count];
            myra_buf_release(buf);
        }
    }
    while (held_count > 0)
        myra_buf_release(held[--held_count]);
    return NULL;
}

static void run_workers(uint32_t count, uint32_t cache, int worker_count,
                        uint64_t rounds)
{
    struct myra_pool *pool = make_pool(count, cache);
    struct worker workers[40];
    struct myra_pool_stats stats;
    uint64_t acquired = 0;

    memset(workers, 0, sizeof(workers));
    for (int i = 0; i < worker_count; i++) {
        workers[i].pool = pool;
        workers[i].stamp = 0x1111 * (uint64_t)(i + 1);
        workers[i].rounds = rounds;
        cr_assert_eq(pthread_create(&workers[i].thread, NULL, stamp_buffers,
                                    &workers[i]),
                     0);
    }
    for (int i = 0; i < worker_count; i++) {
        pthread_join(workers[i].thread, NULL);
        cr_assert_eq(workers[i].stolen, 0, "a buffer had two owners");
        acquired += workers[i].acquired;
    }
    myra_pool_read_stats(pool, &stats);
    cr_assert_eq(stats.acquires, acquired);
    cr_assert_eq(stats.releases, acquired);
    cr_assert_eq(stats.leased, 0);
    cr_assert_eq(myra_pool_free(pool), 0);
}

/* No caches: every call swaps the head, the worst case for ABA. */
Test(pool_threads, no_buffer_has_two_owners_on_the_stack)
{
    run_workers(4, 0, 4, 200000);
}

Test(pool_threads, no_buffer_has_two_owners_with_caches)
{
    run_workers(64, 8, 4, 200000);
    run_workers(256, 64, 4, 200000);
    run_workers(16, 2, 3, 200000);
}

Test(pool_threads, more_threads_than_caches_share_the_stack)
{
    run_workers(256, 32, 40, 10000);
}

static void *acquire_and_leave(void *arg)
{
    struct myra_pool *pool = arg;
    struct myra_buf *bufs[16];

    for (int i = 0; i < 16; i++)
        if (myra_pool_acquire(pool, &bufs[i]))
            return arg;
    for (int i = 0; i < 16; i++)
        myra_buf_release(bufs[i]);
    return NULL;
}

static void run_thread(void *(*fn)(void *), void *arg)
{
    pthread_t thread;
    void *result;

    cr_assert_eq(pthread_create(&thread, NULL, fn, arg), 0);
    cr_assert_eq(pthread_join(thread, &result), 0);
    cr_assert_null(result);
}

static void expect_all_here(struct myra_pool *pool, uint32_t count)
{
    struct myra_buf *bufs[256];

    cr_assert_eq(myra_pool_free_count(pool), count);
    for (uint32_t i = 0; i < count; i++)
        cr_assert_eq(myra_pool_acquire(pool, &bufs[i]), 0, "%u of %u", i,
                     count);
    for (uint32_t i = 0; i < count; i++)
        myra_buf_release(bufs[i]);
}

Test(pool_threads, a_thread_that_ends_gives_its_cache_back)
{
    struct myra_pool *pool = make_pool(64, 8);

    /* More threads, one after the other, than there are caches. */
    for (int i = 0; i < 100; i++) {
        run_thread(acquire_and_leave, pool);
        expect_all_here(pool, 64);
    }
    cr_assert_eq(myra_pool_free(pool), 0);
}

Test(pool_threads, a_thread_may_outlive_the_pool_it_used)
{
    for (int i = 0; i < 50; i++) {
        struct myra_pool *pool = make_pool(64, 8);

        run_thread(acquire_and_leave, pool);
        expect_all_here(pool, 64);
        myra_pool_free(pool);
    }
}

static void *release_all(void *arg)
{
    struct myra_buf **bufs = arg;

    for (int i = 0; i < 64; i++)
        myra_buf_release(bufs[i]);
    return NULL;
}

/* The releasing thread is still alive when the other acquires again. */
struct handover {
    struct myra_buf *bufs[64];
    uint32_t is_released;
    uint32_t may_end;
};

static void *release_and_stay(void *arg)
{
    struct handover *handover = arg;

    release_all(handover->bufs);
    __atomic_store_n(&handover->is_released, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&handover->may_end, __ATOMIC_ACQUIRE))
        sched_yield();
    return NULL;
}

static void wait_for(const uint32_t *flag)
{
    const uint64_t end = myra_clock_ns() + DEADLINE_NS;

    while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE)) {
        cr_assert_lt(myra_clock_ns(), end, "deadline");
        sched_yield();
    }
}

Test(pool_threads, a_thread_that_only_releases_keeps_nothing)
{
    struct myra_pool *pool = make_pool(64, 8);
    struct handover handover;
    pthread_t thread;

    memset(&handover, 0, sizeof(handover));
    for (int i = 0; i < 64; i++)
        cr_assert_eq(myra_pool_acquire(pool, &handover.bufs[i]), 0);
    cr_assert_eq(
        pthread_create(&thread, NULL, release_and_stay, &handover), 0);
    wait_for(&handover.is_released);
    expect_all_here(pool, 64);
    __atomic_store_n(&handover.may_end, 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    cr_assert_eq(myra_pool_free(pool), 0);
}

static void set_flag(void *ctx)
{
    __atomic_store_n((uint32_t *)ctx, 1, __ATOMIC_RELEASE);
}

/* One that waits while another releases at the same moment: either an acquire
 * after notify succeeds or the call comes. A lost wake ends in the
 * deadline. */
struct race {
    struct myra_buf *buf;
    uint32_t may_release;
};

static void *release_at_once(void *arg)
{
    struct race *race = arg;

    for (int i = 0; i < 3000; i++) {
        while (!__atomic_load_n(&race->may_release, __ATOMIC_ACQUIRE))
            sched_yield();
        __atomic_store_n(&race->may_release, 0, __ATOMIC_RELAXED);
        myra_buf_release(race->buf);
    }
    return NULL;
}

static struct myra_buf *acquire_or_wait(struct myra_pool *pool,
                                        uint32_t *is_told)
{
    struct myra_buf *buf = NULL;

    for (;;) {
        __atomic_store_n(is_told, 0, __ATOMIC_RELAXED);
        myra_pool_notify(pool, set_flag, is_told);
        if (myra_pool_acquire(pool, &buf) == 0)
            break;
        wait_for(is_told);
    }
    myra_pool_notify(pool, NULL, NULL);
    return buf;
}

Test(pool_threads, a_waiter_never_misses_a_release)
{
    struct myra_pool *pool = make_pool(1, 0);
    struct race race = { NULL, 0 };
    pthread_t thread;
    uint32_t is_told;

    cr_assert_eq(myra_pool_acquire(pool, &race.buf), 0);
    cr_assert_eq(pthread_create(&thread, NULL, release_at_once, &race), 0);
    for (int i = 0; i < 3000; i++) {
        __atomic_store_n(&race.may_release, 1, __ATOMIC_RELEASE);
        race.buf = acquire_or_wait(pool, &is_told);
    }
    pthread_join(thread, NULL);
    myra_buf_release(race.buf);
    cr_assert_eq(myra_pool_free(pool), 0);
}

struct shared_lease {
    struct myra_buf *buf;
    uint32_t sum;
};

static void *read_and_release(void *arg)
{
    struct shared_lease *lease = arg;

    lease->sum = lease->buf->data[0];
    myra_buf_release(lease->buf);
    return NULL;
}

/* Leases of one buffer in several threads: it comes home once, after all of
 * them, and is written to again only then (TSan looks at that). */
Test(pool_threads, leases_of_one_buffer_end_in_any_thread)
{
    struct myra_pool *pool = make_pool(16, 2);

    for (int round = 0; round < 300; round++) {
        struct shared_lease leases[3];
        pthread_t threads[3];
        struct myra_buf *buf;

        cr_assert_eq(myra_pool_acquire(pool, &buf), 0);
        buf->data[0] = (uint8_t)round;
        for (int i = 0; i < 3; i++) {
            myra_buf_retain(buf);
            leases[i].buf = buf;
            cr_assert_eq(pthread_create(&threads[i], NULL, read_and_release,
                                        &leases[i]),
                         0);
        }
        myra_buf_release(buf);
        for (int i = 0; i < 3; i++) {
            pthread_join(threads[i], NULL);
            cr_assert_eq(leases[i].sum, (uint8_t)round);
        }
        cr_assert_eq(myra_pool_free_count(pool), 16);
    }
    cr_assert_eq(myra_pool_free(pool), 0);
}

static void *read_stats_often(void *arg)
{
    struct worker *worker = arg;
    struct myra_pool_stats stats;

    for (int i = 0; i < 20000; i++) {
        myra_pool_read_stats(worker->pool, &stats);
        if (stats.leased > stats.count)
            worker->stolen++;
    }
    return NULL;
}

Test(pool_threads, statistics_may_be_read_by_another_thread)
{
    struct worker user;
    struct worker reader;
    pthread_t thread;

    memset(&user, 0, sizeof(user));
    user.pool = make_pool(64, 8);
    user.stamp = 7;
    user.rounds = 100000;
    reader = user;
    cr_assert_eq(pthread_create(&thread, NULL, read_stats_often, &reader),
                 0);
    stamp_buffers(&user);
    pthread_join(thread, NULL);
    cr_assert_eq(reader.stolen, 0);
    cr_assert_eq(myra_pool_free(user.pool), 0);
}
