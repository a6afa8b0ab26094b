/* SPDX-License-Identifier: MIT */
/* The buffer pool in one thread: options, leases, limits, statistics. */
#include "config.h"

#include <stdint.h>
#include <string.h>
#include <sys/resource.h>

#include <criterion/criterion.h>

#include "tests/fault_alloc.h"

#include <myra/pool.h>

static struct myra_pool *make_pool(uint32_t count, uint32_t cache)
{
    struct myra_pool_options options;
    struct myra_pool *pool = NULL;

    myra_pool_options_init(&options);
    options.count = count;
    options.cache = cache;
    options.buf_cap = 128;
    cr_assert_eq(myra_pool_new(&options, &pool), 0);
    return pool;
}

Test(pool, defaults_are_a_page_a_buffer)
{
    struct myra_pool *pool;
    void *base;
    size_t len;
    size_t stride;

    cr_assert_eq(myra_pool_new(NULL, &pool), 0);
    myra_pool_region(pool, &base, &len, &stride);
    cr_assert_eq(stride, 4096);
    cr_assert_eq(len, 256 * 4096);
    cr_assert_eq(myra_pool_at(pool, 0)->data, base);
    cr_assert_eq(myra_pool_at(pool, 0)->cap, 4032);
    cr_assert_eq(myra_pool_free_count(pool), 256);
    cr_assert_eq(myra_pool_free(pool), 0);
}

Test(pool, buffers_are_apart_aligned_and_have_slack)
{
    static const uint32_t aligns[] = { 64, 4096, 2097152 };

    for (int i = 0; i < 3; i++) {
        struct myra_pool_options options;
        struct myra_pool *pool;
        struct myra_buf *buf[3];
        void *base;
        size_t len;
        size_t stride;
        volatile uint8_t sum = 0;

        myra_pool_options_init(&options);
        options.count = 3;
        options.buf_cap = 100;
        options.data_align = aligns[i];
        options.huge = aligns[i] > 4096;
        cr_assert_eq(myra_pool_new(&options, &pool), 0);
        myra_pool_region(pool, &base, &len, &stride);
        cr_assert_eq(stride % aligns[i], 0);
        cr_assert_geq(stride, 164);
        for (uint32_t j = 0; j < 3; j++) {
            cr_assert_eq(myra_pool_acquire(pool, &buf[j]), 0);
            cr_assert_eq((uintptr_t)buf[j]->data % aligns[i], 0);
            cr_assert_eq(buf[j]->data,
                         (uint8_t *)base + buf[j]->index * stride);
            cr_assert_leq(buf[j]->data + buf[j]->cap + MYRA_BUF_SLACK,
                          (uint8_t *)base + len);
            memset(buf[j]->data, 0x11, buf[j]->cap);
            for (uint32_t k = 0; k < MYRA_BUF_SLACK; k++)
                sum = (uint8_t)(sum + buf[j]->data[buf[j]->cap + k]);
        }
        for (uint32_t j = 0; j < 3; j++)
            myra_buf_release(buf[j]);
        cr_assert_eq(myra_pool_free(pool), 0);
    }
}

static int try_options(const struct myra_pool_options *options)
{
    struct myra_pool *pool = (struct myra_pool *)(uintptr_t)1;
    const int err = myra_pool_new(options, &pool);

    if (err == 0)
        myra_pool_free(pool);
    else
        cr_assert_eq((uintptr_t)pool, 1, "written to on failure");
    return err;
}

Test(pool, options_outside_their_range_are_refused)
{
    struct myra_pool_options good;
    struct myra_pool_options bad;

    myra_pool_options_init(&good);
    good.count = 1;
    good.buf_cap = 1;
    cr_assert_eq(try_options(&good), 0);
#define REFUSES(field, value) \
    bad = good; \
    bad.field = (value); \
    cr_assert_eq(try_options(&bad), MYRA_EINVAL, #field " = " #value)
    REFUSES(buf_cap, 0);
    REFUSES(buf_cap, (16u << 20) + 1);
    REFUSES(count, 0);
    REFUSES(count, (1u << 20) + 1);
    REFUSES(data_align, 32);
    REFUSES(data_align, 96);
    REFUSES(data_align, 4u << 20);
    REFUSES(cache, 65);
    REFUSES(huge, 2);
    REFUSES(struct_size, 0);
#undef REFUSES
}

Test(pool, an_older_options_struct_keeps_later_defaults)
{
    struct myra_pool_options options;
    struct myra_pool *pool;
    struct myra_pool_stats stats;

    memset(&options, 0xff, sizeof(options));
    options.struct_size = offsetof(struct myra_pool_options, data_align);
    options.buf_cap = 64;
    options.count = 5;
    cr_assert_eq(myra_pool_new(&options, &pool), 0);
    myra_pool_read_stats(pool, &stats);
    cr_assert_eq(stats.count, 5);
    myra_pool_free(pool);
}

/* RLIMIT_AS stands for a machine without memory. */
Test(pool, memory_that_cannot_be_mapped_is_refused)
{
    const struct rlimit limit = { 256u << 20, 256u << 20 };
    struct myra_pool_options options;
    struct fault_alloc fault;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    cr_skip("a sanitizer's own mappings exceed the limit");
#endif
    cr_assert_eq(setrlimit(RLIMIT_AS, &limit), 0);
    fault_alloc_init(&fault, 0);
    myra_pool_options_init(&options);
    options.alloc = &fault.base;
    options.buf_cap = 1u << 20;
    options.count = 512;
    cr_assert_eq(try_options(&options), MYRA_ENOMEM);
    cr_assert(fault_alloc_is_clean(&fault));
}

static void use_all(uint32_t count, uint32_t cache)
{
    struct myra_pool *pool = make_pool(count, cache);
    struct myra_buf *bufs[300];
    struct myra_buf *none = NULL;
    struct myra_pool_stats stats;

    for (int round = 0; round < 3; round++) {
        uint8_t seen[300] = { 0 };

        for (uint32_t i = 0; i < count; i++) {
            cr_assert_eq(myra_pool_acquire(pool, &bufs[i]), 0);
            cr_assert_lt(bufs[i]->index, count);
            cr_assert_not(seen[bufs[i]->index]++, "handed out twice");
            cr_assert_eq(myra_pool_free_count(pool), count - i - 1);
        }
        cr_assert_eq(myra_pool_acquire(pool, &none), MYRA_EEXHAUSTED);
        cr_assert_null(none);
        /* In another order than they came. */
        for (uint32_t i = 0; i < count; i++)
            myra_buf_release(bufs[(i * 7 + 3) % count]);
    }
    myra_pool_read_stats(pool, &stats);
    cr_assert_eq(stats.acquires, 3 * count);
    cr_assert_eq(stats.releases, 3 * count);
    cr_assert_eq(stats.exhausted, 3);
    cr_assert_eq(stats.leased, 0);
    cr_assert_eq(myra_pool_free(pool), 0);
}

/* Counts that 7 does not divide, so that (i * 7 + 3) visits all. */
Test(pool, one_thread_gets_every_buffer_whatever_its_cache)
{
    static const uint32_t counts[] = { 1, 2, 5, 8, 15, 16, 17, 64, 100, 256 };
    static const uint32_t caches[] = { 0, 1, 2, 3, 16, 31, 32, 64 };

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        for (size_t j = 0; j < sizeof(caches) / sizeof(caches[0]); j++)
            use_all(counts[i], caches[j]);
}

Test(pool, a_buffer_comes_home_with_its_last_lease)
{
    struct myra_pool *pool = make_pool(4, 0);
    struct myra_buf *buf;

    cr_assert_eq(myra_pool_acquire(pool, &buf), 0);
    cr_assert_eq(buf->refs, 1);
    myra_buf_retain(buf);
    myra_buf_retain(buf);
    cr_assert_eq(buf->refs, 3);
    myra_buf_release(buf);
    myra_buf_release(buf);
    cr_assert_eq(myra_pool_free_count(pool), 3);
    myra_buf_release(buf);
    cr_assert_eq(myra_pool_free_count(pool), 4);
    myra_buf_release(NULL);
    myra_pool_free(pool);
}

Test(pool, free_tells_what_is_still_out)
{
    struct myra_pool *pool = make_pool(64, 32);
    struct myra_buf *buf;

    for (int i = 0; i < 3; i++)
        cr_assert_eq(myra_pool_acquire(pool, &buf), 0);
    myra_buf_release(buf);
    cr_assert_eq(myra_pool_free(pool), 2);
    cr_assert_eq(myra_pool_free(NULL), 0);
}

/* 64 held: the cache of 32 must go to the shared stack and back, in chains
 * of 16 and not buffer by buffer. */
Test(pool, chains_move_between_cache_and_stack)
{
    struct myra_pool *pool = make_pool(256, 32);
    struct myra_buf *bufs[64];
    struct myra_pool_stats before;
    struct myra_pool_stats after;

    for (int round = 0; round < 11; round++) {
        if (round == 1)
            myra_pool_read_stats(pool, &before);
        for (int i = 0; i < 64; i++)
            cr_assert_eq(myra_pool_acquire(pool, &bufs[i]), 0);
        for (int i = 0; i < 64; i++)
            myra_buf_release(bufs[i]);
    }
    myra_pool_read_stats(pool, &after);
    cr_assert_gt(after.refills, before.refills);
    cr_assert_leq(after.refills - before.refills, 40);
    cr_assert_gt(after.flushes, before.flushes);
    cr_assert_leq(after.flushes - before.flushes, 40);
    myra_pool_free(pool);
}

Test(pool, a_cached_pair_stays_off_the_shared_stack)
{
    struct myra_pool *pool = make_pool(256, 32);
    struct myra_buf *buf;
    struct myra_pool_stats stats;

    for (int i = 0; i < 1000; i++) {
        cr_assert_eq(myra_pool_acquire(pool, &buf), 0);
        myra_buf_release(buf);
    }
    myra_pool_read_stats(pool, &stats);
    cr_assert_eq(stats.acquires, 1000);
    cr_assert_eq(stats.releases, 1000);
    cr_assert_eq(stats.refills, 1);
    cr_assert_eq(stats.flushes, 0);
    myra_pool_free(pool);
}

/* A thread's place for one pool must not serve the next. */
Test(pool, many_pools_at_a_time_and_in_turn_do_not_mix)
{
    struct myra_pool *pools[40];
    struct myra_buf *buf;

    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 40; i++) {
            pools[i] = make_pool(64, 8);
            cr_assert_eq(myra_pool_acquire(pools[i], &buf), 0);
            cr_assert_eq(buf->pool, pools[i]);
            myra_buf_release(buf);
        }
        for (int i = 0; i < 40; i++) {
            cr_assert_eq(myra_pool_acquire(pools[i], &buf), 0);
            cr_assert_eq(buf->pool, pools[i]);
            cr_assert_eq(buf, myra_pool_at(pools[i], buf->index));
            myra_buf_release(buf);
            cr_assert_eq(myra_pool_free_count(pools[i]), 64);
        }
        for (int i = 0; i < 40; i++)
            cr_assert_eq(myra_pool_free(pools[i]), 0);
    }
}

static void count_call(void *ctx)
{
    ++*(int *)ctx;
}

Test(pool, a_waiter_is_told_once)
{
    struct myra_pool *pool = make_pool(64, 8);
    struct myra_buf *bufs[64];
    int calls = 0;

    for (int i = 0; i < 64; i++)
        cr_assert_eq(myra_pool_acquire(pool, &bufs[i]), 0);
    cr_assert_eq(myra_pool_acquire(pool, &bufs[0]), MYRA_EEXHAUSTED);
    myra_pool_notify(pool, count_call, &calls);
    cr_assert_eq(calls, 0);
    for (int i = 0; i < 10; i++)
        myra_buf_release(bufs[i]);
    cr_assert_eq(calls, 1);
    myra_pool_notify(pool, count_call, &calls);
    myra_buf_release(bufs[10]);
    cr_assert_eq(calls, 2);
    for (int i = 11; i < 64; i++)
        myra_buf_release(bufs[i]);
    cr_assert_eq(calls, 2);
    cr_assert_eq(myra_pool_free_count(pool), 64);
    myra_pool_free(pool);
}

Test(pool, a_waiter_may_go_and_may_be_replaced)
{
    struct myra_pool *pool = make_pool(4, 0);
    struct myra_buf *a;
    struct myra_buf *b;
    int first = 0;
    int second = 0;

    cr_assert_eq(myra_pool_acquire(pool, &a), 0);
    cr_assert_eq(myra_pool_acquire(pool, &b), 0);
    myra_pool_notify(pool, count_call, &first);
    myra_pool_notify(pool, NULL, NULL);
    myra_buf_release(a);
    cr_assert_eq(first, 0);
    myra_pool_notify(pool, count_call, &first);
    myra_pool_notify(pool, count_call, &second);
    myra_buf_release(b);
    cr_assert_eq(first, 0);
    cr_assert_eq(second, 1);
    myra_pool_free(pool);
}

struct rearm {
    struct myra_pool *pool;
    int calls;
};

static void take_one(void *ctx)
{
    struct rearm *rearm = ctx;
    struct myra_buf *buf;

    rearm->calls++;
    cr_assert_eq(myra_pool_acquire(rearm->pool, &buf), 0);
    myra_pool_notify(rearm->pool, take_one, rearm);
}

Test(pool, a_waiter_may_acquire_and_wait_again_inside_its_call)
{
    struct rearm rearm = { make_pool(16, 2), 0 };
    struct myra_buf *bufs[16];

    for (int i = 0; i < 16; i++)
        cr_assert_eq(myra_pool_acquire(rearm.pool, &bufs[i]), 0);
    myra_pool_notify(rearm.pool, take_one, &rearm);
    for (int i = 0; i < 16; i++)
        myra_buf_release(bufs[i]);
    cr_assert_eq(rearm.calls, 16);
    cr_assert_eq(myra_pool_free(rearm.pool), 16);
}

Test(pool, a_failed_allocation_leaves_nothing_behind)
{
    int n = 0;
    int has_failed;

    do {
        struct myra_pool_options options;
        struct myra_pool *pool = NULL;
        struct fault_alloc fault;
        int err;

        fault_alloc_init(&fault, ++n);
        myra_pool_options_init(&options);
        options.alloc = &fault.base;
        err = myra_pool_new(&options, &pool);
        has_failed = fault.has_failed;
        cr_assert_eq(err, has_failed ? MYRA_ENOMEM : 0);
        cr_assert_eq(pool == NULL, has_failed);
        myra_pool_free(pool);
        cr_assert(fault_alloc_is_clean(&fault));
    } while (has_failed);
    cr_assert_gt(n, 3);
}

Test(pool, calls_do_not_allocate)
{
    struct myra_pool_options options;
    struct myra_counting_allocator counting;
    struct myra_pool *pool;
    struct myra_buf *bufs[100];
    uint64_t before;
    uint64_t after;

    myra_counting_init(&counting, NULL);
    myra_pool_options_init(&options);
    options.alloc = &counting.base;
    cr_assert_eq(myra_pool_new(&options, &pool), 0);
    myra_counting_read(&counting, &before, NULL, NULL);
    for (int i = 0; i < 100; i++)
        cr_assert_eq(myra_pool_acquire(pool, &bufs[i]), 0);
    for (int i = 0; i < 100; i++)
        myra_buf_release(bufs[i]);
    myra_counting_read(&counting, &after, NULL, NULL);
    cr_assert_eq(before, after);
    myra_pool_free(pool);
}

/* A pointer reaches the library's own functions, which must do the same as
 * what is inlined. */
Test(pool, inline_and_called_functions_work_on_the_same_cache)
{
    int (*volatile acquire)(struct myra_pool *, struct myra_buf **) =
        myra_pool_acquire;
    void (*volatile release)(struct myra_buf *) = myra_buf_release;
    struct myra_pool *pool = make_pool(64, 8);
    struct myra_buf *a;
    struct myra_buf *b;

    for (int i = 0; i < 100; i++) {
        cr_assert_eq(acquire(pool, &a), 0);
        cr_assert_eq(myra_pool_acquire(pool, &b), 0);
        cr_assert_neq(a, b);
        if (i % 2)
            release(b);
        else
            myra_buf_release(b);
        myra_buf_release(a);
        cr_assert_eq(myra_pool_free_count(pool), 64);
    }
    myra_pool_free(pool);
}
