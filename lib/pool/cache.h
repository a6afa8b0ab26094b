/* SPDX-License-Identifier: MIT */
/* The caches of a pool, by thread. */
#ifndef MYI_POOL_CACHE_H
#define MYI_POOL_CACHE_H

#include "lib/pool/pool_priv.h"

/* What stands in for caches: no buffer in them, no room, never written. */
extern struct myi_pool_cache myi_pool_no_caches[MYI_POOL_CACHES];

/* From here on, and until myi_pool_forget, a thread that ends gives its
 * buffers of this pool back. */
void myi_pool_register(struct myra_pool *pool);
void myi_pool_forget(struct myra_pool *pool);

/* The calling thread's cache, claimed by it now if it was not; NULL when it
 * gets none. */
struct myi_pool_cache *myi_pool_claim_cache(struct myra_pool *pool);

/* Gets a chain for a cache whose own is empty. 1 when there was one. */
int myi_pool_refill_cache(struct myra_pool *pool,
                          struct myi_pool_cache *cache);

/* Makes the chain in use empty: it becomes the spare, and what was the spare
 * goes to the shared stack. */
void myi_pool_rotate_cache(struct myra_pool *pool,
                           struct myi_pool_cache *cache);

/* Moves all that the cache holds to the shared stack. */
void myi_pool_flush_cache(struct myra_pool *pool,
                          struct myi_pool_cache *cache);

/* The place of the calling thread in a pool, claimed or not. */
static inline struct myi_pool_cache *
myi_pool_own_cache(const struct myra_pool *pool)
{
    return (struct myi_pool_cache *)(void *)((char *)pool->caches +
                                             myra_pool_thread);
}

/* Buffers of the chain in use. */
static inline uint32_t myi_pool_cache_len(const struct myra_pool *pool,
                                          uint64_t state)
{
    return ((uint32_t)state & MYI_POOL_FILL_MASK) -
           (MYI_POOL_FULL - pool->chain_cap);
}

/* Counters have one writer, so that adding needs no locked instruction. */
static inline void myi_pool_count(uint64_t *counter)
{
    __atomic_store_n(counter, *counter + 1, __ATOMIC_RELAXED);
}

/* Takes a buffer of the chain in use, which is not empty. */
static inline struct myra_buf *
myi_pool_pop_cache(struct myi_pool_cache *cache)
{
    struct myra_buf *buf = cache->front.head;

    cache->front.head = buf->next;
    __atomic_store_n(&cache->front.state,
                     cache->front.state + ((1u << MYI_POOL_FILL_BITS) - 1),
                     __ATOMIC_RELAXED);
    return buf;
}

/* Puts a buffer on the chain in use, which is not full. */
static inline void myi_pool_push_cache(struct myi_pool_cache *cache,
                                       struct myra_buf *buf)
{
    buf->next = cache->front.head;
    cache->front.head = buf;
    __atomic_store_n(&cache->front.state, cache->front.state + 1,
                     __ATOMIC_RELAXED);
}

#endif
