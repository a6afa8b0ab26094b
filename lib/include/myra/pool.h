/* SPDX-License-Identifier: MIT */
/*
 * Fixed-size buffers in slabs, lent out as counted leases.
 *
 *     struct myra_pool_options options;
 *     struct myra_pool *pool;
 *     struct myra_buf *buf;
 *
 *     myra_pool_options_init(&options);
 *     options.buf_cap = 4032;
 *     options.count = 256;
 *     MYRA_TRY(myra_pool_new(&options, &pool));
 *     MYRA_TRY(myra_pool_acquire(pool, &buf));      a lease of one
 *     memcpy(buf->data, text, text_len);
 *     myra_buf_release(buf);                        the buffer is home
 *     myra_pool_free(pool);
 *
 * All buffers exist after myra_pool_new: acquire never allocates. Each thread
 * that acquires keeps a few buffers of its own; behind those caches stands a
 * lock-free stack whose head carries a tag against ABA (Treiber, IBM RJ 5118,
 * 1986). A thread that only releases keeps none.
 *
 * Threads: acquire, retain and release may be called from any thread; new and
 * free from one, with no other call running.
 */
#ifndef MYRA_POOL_H
#define MYRA_POOL_H

#include <stddef.h>
#include <stdint.h>

#include <myra/alloc.h>
#include <myra/err.h>
#include <myra/export.h>

MYRA_BEGIN_DECLS

struct myra_pool;

/* Bytes behind buf->cap that may be read (never written), so that a kernel
 * may load whole vectors. */
#define MYRA_BUF_SLACK 64

/*
 * One buffer. data and cap are fixed for its life. The header lies apart from
 * the data, so that a free buffer's memory stays cold, and has a line of its
 * own, so that threads with neighbouring buffers do not disturb each other.
 */
struct myra_buf {
    uint8_t *data;
    uint32_t cap;
    uint32_t index; /* place in the pool, 0 .. count - 1 */
    struct myra_pool *pool;
    struct myra_buf *next; /* the pool's own */
    uint32_t refs;         /* leases out, atomic; 1 in a free buffer too */
    uint32_t unused;
} MYRA_ALIGNED(64);

struct myra_pool_options {
    size_t struct_size;  /* set by init */
    uint32_t buf_cap;    /* bytes of a buffer; default 4032, 1 .. 16 MiB */
    uint32_t count;      /* buffers; default 256, 1 .. 2^20 */
    uint32_t data_align; /* of each buffer: 64 (default) .. 2 MiB, power of 2 */
    uint32_t cache;      /* buffers a thread keeps; default 32, 0 .. 64; also
                            limited to count / 8 */
    uint32_t huge;       /* 1: ask for 2 MiB pages; default 0 */
    const struct myra_allocator *alloc;
};

struct myra_pool_stats {
    uint64_t acquires;
    uint64_t releases;  /* buffers that came home */
    uint64_t exhausted; /* acquires refused */
    uint64_t refills;   /* chains moved from the shared stack to a thread */
    uint64_t flushes;   /* chains moved back */
    uint32_t count;
    uint32_t leased; /* buffers out now */
};

MYRA_API void myra_pool_options_init(struct myra_pool_options *options);

/* NULL options are the defaults. Errors: MYRA_EINVAL, MYRA_ENOMEM,
 * MYRA_EOVERFLOW. *pool_out is untouched on failure. */
MYRA_API MYRA_MUST_CHECK int
myra_pool_new(const struct myra_pool_options *options,
              struct myra_pool **pool_out);

/* Returns the number of buffers that were still out, whose memory is gone
 * now. NULL is allowed (0). */
MYRA_API uint32_t myra_pool_free(struct myra_pool *pool);

/*
 * *buf_out is a buffer with one lease, owned by the caller. MYRA_EEXHAUSTED
 * when every buffer is out; *buf_out is untouched then. The contents are not
 * defined (0xDB in debug builds). What other threads keep in their caches
 * (count / 8 each at most, and only threads that acquired) cannot be had and
 * counts as out here.
 */
MYRA_API MYRA_MUST_CHECK int myra_pool_acquire(struct myra_pool *pool,
                                               struct myra_buf **buf_out);

/* One more lease on a buffer that the caller holds a lease on. */
MYRA_API void myra_buf_retain(struct myra_buf *buf);

/* Gives one lease back; the last one sends the buffer home. NULL is allowed.
 * In debug builds (--enable-debug) a release without a lease and a write
 * after the last release abort the program with a line that names the
 * buffer. */
MYRA_API void myra_buf_release(struct myra_buf *buf);

/* Buffers that are not out, an instant's value. */
MYRA_API uint32_t myra_pool_free_count(const struct myra_pool *pool);

/*
 * Asks for one call of fn(ctx) when the next buffer comes home, from the
 * thread that released it. One waiter a pool; setting it again replaces it
 * and fn = NULL takes it back; when notify returns, the fn before it is not
 * running in another thread and will not run. fn may acquire, release and
 * call notify again; it must not wait for other threads.
 *
 * A buffer that came home between a refused acquire and this call does not
 * count: acquire once more afterwards. After the call the buffer may have
 * gone to another thread already: who is refused again asks again. While one
 * waits, threads give up what they keep with their next release; what a
 * thread keeps that releases no more stays there.
 */
MYRA_API void myra_pool_notify(struct myra_pool *pool, void (*fn)(void *ctx),
                               void *ctx);

/* A consistent enough copy: each counter is exact for threads that are not
 * inside a call. */
MYRA_API void myra_pool_read_stats(const struct myra_pool *pool,
                                   struct myra_pool_stats *stats);

/* The one mapping that holds all buffers' data, for registration with a
 * kernel. */
MYRA_API void myra_pool_region(const struct myra_pool *pool, void **base_out,
                               size_t *len_out, size_t *stride_out);

/* Buffer number index (< count) without a lease. */
MYRA_API struct myra_buf *myra_pool_at(const struct myra_pool *pool,
                                       uint32_t index);

/*
 * The inline paths of acquire and release. What follows is part of the binary
 * interface but of no use to a reader of this header: call the functions
 * above. A thread's cache lies myra_pool_thread bytes behind front->caches;
 * where there is none, one stands in that is empty and full at once, and the
 * library's own function does the work.
 */
struct myra_pool_cache {
    struct myra_buf *head; /* free buffers, linked through next */
    uint64_t state;        /* acquires << 8 | is full << 7 | fill */
};

struct myra_pool_front {
    char *caches;
};

#if defined(__GNUC__) && defined(__ELF__)

extern MYRA_API __thread size_t myra_pool_thread
    __attribute__((tls_model("initial-exec")));

#ifndef MYRA_POOL_NO_INLINE

#define MYRA_POOL_INLINE \
    extern __inline__ __attribute__((__gnu_inline__, __always_inline__))

int myra_pool_acquire_out(struct myra_pool *pool,
                          struct myra_buf **buf_out)
    __asm__("myra_pool_acquire");
void myra_buf_release_out(struct myra_buf *buf)
    __asm__("myra_buf_release");

MYRA_POOL_INLINE struct myra_pool_cache *
myra_pool_own_cache(const struct myra_pool *pool)
{
    const struct myra_pool_front *front =
        (const struct myra_pool_front *)(const void *)pool;

    char *caches = __atomic_load_n(&front->caches, __ATOMIC_RELAXED);

    return (struct myra_pool_cache *)(void *)(caches + myra_pool_thread);
}

MYRA_POOL_INLINE int myra_pool_acquire(struct myra_pool *pool,
                                       struct myra_buf **buf_out)
{
    struct myra_pool_cache *cache = myra_pool_own_cache(pool);
    struct myra_buf *buf = cache->head;

    if (MYRA_UNLIKELY(!buf))
        return myra_pool_acquire_out(pool, buf_out);
    cache->head = buf->next;
    /* One acquire more, one buffer less. */
    __atomic_store_n(&cache->state, cache->state + 255, __ATOMIC_RELAXED);
    *buf_out = buf;
    return 0;
}

MYRA_POOL_INLINE void myra_buf_release(struct myra_buf *buf)
{
    if (MYRA_LIKELY(
            buf && __atomic_load_n(&buf->refs, __ATOMIC_ACQUIRE) == 1)) {
        struct myra_pool_cache *cache = myra_pool_own_cache(buf->pool);
        const uint64_t state = cache->state;

        if (MYRA_LIKELY((state & 128) == 0)) {
            buf->next = cache->head;
            cache->head = buf;
            __atomic_store_n(&cache->state, state + 1, __ATOMIC_RELAXED);
            return;
        }
    }
    myra_buf_release_out(buf);
}

#endif
#endif

MYRA_END_DECLS

#endif
