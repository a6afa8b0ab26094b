/* SPDX-License-Identifier: MIT */
/*
 * The inside of a pool.
 *
 * Free buffers are moved in chains: buffers of one owner, linked through
 * buf->next. A thread's cache holds up to two chains, the one it works on and
 * a spare, so that a chain moves between cache and shared stack as a whole,
 * with one compare-and-swap and without a look at its buffers.
 *
 * Every thread that acquires has a number, and every pool one cache for each
 * number: the way from a thread to its cache is one addition. What acquire
 * and release do inline stands in <myra/pool.h>.
 */
#ifndef MYI_POOL_PRIV_H
#define MYI_POOL_PRIV_H

#include <pthread.h>
#include <stdint.h>

#include "lib/base/list.h"

/* Its inline paths are for the callers of the library. */
#define MYRA_POOL_NO_INLINE
#include <myra/pool.h>

/* The index that ends the shared stack. */
#define MYI_POOL_NIL UINT32_MAX

/* Caches of a pool. Number 0 is that of all threads without a number; it
 * stays empty. Threads beyond the last number work on the shared stack. */
#define MYI_POOL_CACHES 32

/* The low bits of a cache's state count the buffers of its chain, from a
 * start that makes the count reach MYI_POOL_FULL with the last that fits. */
#define MYI_POOL_FILL_BITS 8
#define MYI_POOL_FILL_MASK 255u
#define MYI_POOL_FULL 128u

/* Two lines: the adjacent line prefetcher would share one between threads. */
#define MYI_POOL_CACHE_ALIGN 128

/* What a buffer needs while it is the first of a chain on the stack. */
struct myi_pool_chain {
    uint32_t next; /* first buffer of the chain below; atomic */
    uint32_t len;
};

/* One thread's free buffers. Only the owner touches the chains. All numbers
 * are written by the owner, read by all, and go on counting with the next
 * owner. */
struct myi_pool_cache {
    struct myra_pool_cache front;
    struct myra_buf *spare;
    uint32_t spare_len;  /* 0: no spare */
    uint32_t is_claimed; /* the thread has acquired here; atomic */
    int64_t given;       /* buffers moved to the stack less those taken */
    uint64_t exhausted;
    uint64_t refills;
    uint64_t flushes;
} MYRA_ALIGNED(MYI_POOL_CACHE_ALIGN);

struct myi_slab {
    uint8_t *base; /* of buffer 0 */
    size_t stride;
    size_t len; /* of the mapping, which starts at base */
};

struct myra_pool {
    /* Read by every call, written by few. front.caches is what the inline
     * paths see: the same as caches; or the empty ones, while somebody waits
     * for a buffer and in builds that check every call. Atomic. */
    struct myra_pool_front front;
    struct myi_pool_cache *caches;
    struct myra_buf *bufs;
    struct myi_pool_chain *chains; /* by index of the first buffer */
    uint32_t count;
    uint32_t chain_cap; /* buffers of a chain */
    uint32_t has_caches;

    /* The shared stack: index of the first chain's first buffer in the low
     * half, a tag that every change raises in the high one. */
    uint64_t head MYRA_ALIGNED(64);

    /* Threads without a cache; all atomic. */
    struct {
        uint64_t acquires;
        uint64_t releases;
        uint64_t exhausted;
    } outside MYRA_ALIGNED(64);

    /* Somebody waits for a buffer. Atomic; changed under the lock. */
    uint32_t is_armed;
    pthread_mutex_t lock;
    void (*notify_fn)(void *ctx);
    void *notify_ctx;
    struct myi_slab slab;
    struct myi_list registered;
    const struct myra_allocator *alloc;
};

/* slab.c: one mapping of count buffers, every page of it touched. 0,
 * MYRA_ENOMEM or MYRA_EOVERFLOW. */
int myi_slab_map(const struct myra_pool_options *options,
                 struct myi_slab *slab_out);
void myi_slab_unmap(struct myi_slab *slab);

/*
 * Builds that look at every buffer that leaves or comes home: a free buffer
 * is filled with a pattern (--enable-debug), and marked as not to be touched
 * (AddressSanitizer; pool_asan.c).
 */
#if defined(__SANITIZE_ADDRESS__)
#define MYI_POOL_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MYI_POOL_ASAN 1
#endif
#endif

#if defined(MYI_POOL_ASAN) || defined(MYRA_DEBUG)
#define MYI_POOL_CHECKED 1
#else
#define MYI_POOL_CHECKED 0
#endif

#ifdef MYI_POOL_ASAN
void myi_pool_asan_open(const void *data, size_t len);
void myi_pool_asan_shut(const void *data, size_t len);
#else
static inline void myi_pool_asan_open(const void *data, size_t len)
{
    (void)data;
    (void)len;
}

static inline void myi_pool_asan_shut(const void *data, size_t len)
{
    (void)data;
    (void)len;
}
#endif

#endif
