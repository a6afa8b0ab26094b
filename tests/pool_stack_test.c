/* SPDX-License-Identifier: MIT */
/* The shared stack of a pool from the inside: chains and the tag. */
#include "config.h"

#include <criterion/criterion.h>

#include "lib/pool/pool_priv.h"
#include "lib/pool/stack.h"

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

/* The moment that the tag is for, which threads hit too seldom to test it: a
 * swap prepared before must fail though the same buffer is on top again. */
Test(pool_stack, a_head_never_comes_back)
{
    struct myra_pool *pool = make_pool(4, 0);
    const uint64_t old_head = pool->head;
    uint32_t len;
    const uint32_t first = myi_pool_pop_chain(pool, &len);
    const uint32_t second = myi_pool_pop_chain(pool, &len);

    myi_pool_push_chain(pool, first, 1);
    cr_assert_eq((uint32_t)pool->head, (uint32_t)old_head);
    cr_assert_neq(pool->head, old_head);
    myi_pool_push_chain(pool, second, 1);
    cr_assert_eq(myra_pool_free(pool), 0);
}

Test(pool_stack, the_tag_goes_round)
{
    struct myra_pool *pool = make_pool(2, 0);
    uint32_t len;
    uint32_t first;

    pool->head |= (uint64_t)UINT32_MAX << 32;
    first = myi_pool_pop_chain(pool, &len);
    cr_assert_eq(first, 0);
    cr_assert_eq(pool->head >> 32, 0);
    cr_assert_eq((uint32_t)pool->head, 1);
    myi_pool_push_chain(pool, first, 1);
    cr_assert_eq(myra_pool_free(pool), 0);
}

/* 100 buffers, 12 kept by a thread: chains of 6, the last one shorter. */
Test(pool_stack, a_new_pool_is_cut_into_chains)
{
    struct myra_pool *pool = make_pool(100, 64);
    uint32_t chains = 0;
    uint32_t next = 0;
    uint32_t len;

    cr_assert_eq(pool->chain_cap, 6);
    for (;;) {
        const uint32_t first = myi_pool_pop_chain(pool, &len);
        const struct myra_buf *buf;

        if (first == MYI_POOL_NIL)
            break;
        cr_assert_eq(len, next < 96 ? 6 : 4);
        for (buf = &pool->bufs[first]; buf; buf = buf->next)
            cr_assert_eq(buf->index, next++);
        chains++;
    }
    cr_assert_eq(next, 100);
    cr_assert_eq(chains, 17);
    myra_pool_free(pool);
}
