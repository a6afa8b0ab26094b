/* SPDX-License-Identifier: MIT */
/*
 * The shared stack of chains (Treiber, IBM RJ 5118, 1986).
 *
 * The head is one 64-bit word: an index and a tag. Between a thread's reading
 * of the head and its compare-and-swap the same chain may be taken and put
 * back with another below it; the tag, raised by every change, makes that
 * swap fail. It would have to come round 2^32 times in that moment to lie.
 */
#ifndef MYI_POOL_STACK_H
#define MYI_POOL_STACK_H

#include "lib/pool/pool_priv.h"

static inline uint64_t myi_pool_next_head(uint64_t head, uint32_t index)
{
    return (((head >> 32) + 1) << 32) | index;
}

/*
 * Puts a chain of len buffers on the stack. The swap publishes what the
 * caller wrote to the buffers. It is sequentially consistent because the
 * caller looks at pool->is_armed afterwards: either it sees that somebody
 * waits, or the waiter's next acquire sees the chain.
 */
static inline void myi_pool_push_chain(struct myra_pool *pool, uint32_t first,
                                       uint32_t len)
{
    uint64_t head = __atomic_load_n(&pool->head, __ATOMIC_RELAXED);

    pool->chains[first].len = len;
    do {
        __atomic_store_n(&pool->chains[first].next, (uint32_t)head,
                         __ATOMIC_RELAXED);
    } while (!__atomic_compare_exchange_n(
        &pool->head, &head, myi_pool_next_head(head, first), 1,
        __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
}

/* Takes the topmost chain: the index of its first buffer and its length, or
 * MYI_POOL_NIL. */
static inline uint32_t myi_pool_pop_chain(struct myra_pool *pool,
                                          uint32_t *len_out)
{
    uint64_t head = __atomic_load_n(&pool->head, __ATOMIC_SEQ_CST);
    uint32_t first;
    uint32_t below;

    do {
        first = (uint32_t)head;
        if (first == MYI_POOL_NIL)
            return MYI_POOL_NIL;
        /* May belong to somebody else by now; then the swap fails. */
        below = __atomic_load_n(&pool->chains[first].next, __ATOMIC_RELAXED);
    } while (!__atomic_compare_exchange_n(
        &pool->head, &head, myi_pool_next_head(head, below), 1,
        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
    *len_out = pool->chains[first].len;
    return first;
}

#endif
