/* SPDX-License-Identifier: MIT */
/*
 * Acquire, retain, release, and the life of a pool.
 *
 * The fast paths, here and inline in <myra/pool.h>, touch the thread's cache
 * and the buffer's header: no locked instruction, no line that others write.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/checked.h"
#include "lib/base/log.h"
#include "lib/pool/cache.h"
#include "lib/pool/pool_priv.h"
#include "lib/pool/stack.h"

#define BUF_CAP_DEFAULT 4032
#define BUF_CAP_MAX ((uint32_t)16 << 20)
#define COUNT_DEFAULT 256
#define COUNT_MAX ((uint32_t)1 << 20)
#define ALIGN_MIN 64
#define ALIGN_MAX ((uint32_t)2 << 20)
#define CACHE_DEFAULT 32
#define CACHE_MAX 64

/* A thread's share of a pool: with few buffers, caches must not hide most of
 * them from the other threads. */
#define CACHE_SHARE 8

/* refs of a free buffer. Where calls are checked, 0 tells a release without a
 * lease; elsewhere 1 saves the inline paths two stores. */
#define RESTING_REFS (MYI_POOL_CHECKED ? 0u : 1u)

/*
 * A call without a lease is a mistake of the caller. Debug builds stop there;
 * others leave the buffer alone, since sending it home twice would give it to
 * two owners.
 */
static void report_misuse(const struct myra_buf *buf, const char *what)
{
    myi_log(MYRA_LOG_ERROR, "pool %p: buffer %u: %s", (void *)buf->pool,
            (unsigned)buf->index, what);
#ifdef MYRA_DEBUG
    abort();
#endif
}

#ifdef MYRA_DEBUG

#define POISON 0xdb

static void poison(struct myra_buf *buf)
{
    memset(buf->data, POISON, buf->cap);
}

static void check_poison(const struct myra_buf *buf)
{
    for (uint32_t i = 0; i < buf->cap; i++)
        if (buf->data[i] != POISON) {
            report_misuse(buf, "written to after its release");
            return;
        }
}

#else

static inline void poison(struct myra_buf *buf)
{
    (void)buf;
}

static inline void check_poison(const struct myra_buf *buf)
{
    (void)buf;
}

#endif

/* The buffer leaves the pool with one lease. */
static void lend(struct myra_buf *buf)
{
    myi_pool_asan_open(buf->data, buf->cap);
    check_poison(buf);
    __atomic_store_n(&buf->refs, 1, __ATOMIC_RELAXED);
}

/* The last lease is gone. */
static void shut(struct myra_buf *buf)
{
    __atomic_store_n(&buf->refs, RESTING_REFS, __ATOMIC_RELAXED);
    poison(buf);
    myi_pool_asan_shut(buf->data, buf->cap);
}

/* Takes a buffer for a thread that has no cache, or returns NULL. */
static struct myra_buf *take_outside(struct myra_pool *pool)
{
    uint32_t len;
    const uint32_t first = myi_pool_pop_chain(pool, &len);

    if (first == MYI_POOL_NIL) {
        __atomic_fetch_add(&pool->outside.exhausted, 1, __ATOMIC_RELAXED);
        return NULL;
    }
    if (len > 1)
        myi_pool_push_chain(pool, pool->bufs[first].next->index, len - 1);
    __atomic_fetch_add(&pool->outside.acquires, 1, __ATOMIC_RELAXED);
    return &pool->bufs[first];
}

/* Takes a buffer where the thread's chain in use is empty. */
static struct myra_buf *take_slow(struct myra_pool *pool)
{
    struct myi_pool_cache *cache = myi_pool_claim_cache(pool);

    if (!cache)
        return take_outside(pool);
    if (!myi_pool_refill_cache(pool, cache)) {
        myi_pool_count(&cache->exhausted);
        return NULL;
    }
    return myi_pool_pop_cache(cache);
}

int myra_pool_acquire(struct myra_pool *pool, struct myra_buf **buf_out)
{
    struct myi_pool_cache *cache = myi_pool_own_cache(pool);
    struct myra_buf *buf;

    if (MYRA_LIKELY(cache->front.head))
        buf = myi_pool_pop_cache(cache);
    else
        buf = take_slow(pool);
    if (MYRA_UNLIKELY(!buf))
        return MYRA_EEXHAUSTED;
    lend(buf);
    *buf_out = buf;
    return 0;
}

/*
 * Notes whether somebody waits, under the lock; returns what was noted before.
 * While one waits, no release may end inline. Sequentially consistent: see
 * myi_pool_push_chain.
 */
static uint32_t arm(struct myra_pool *pool, uint32_t is_armed)
{
    const int is_inline = !is_armed && !MYI_POOL_CHECKED;
    struct myi_pool_cache *caches =
        is_inline ? pool->caches : myi_pool_no_caches;

    __atomic_store_n(&pool->front.caches, (char *)caches, __ATOMIC_RELAXED);
    return __atomic_exchange_n(&pool->is_armed, is_armed, __ATOMIC_SEQ_CST);
}

/* Tells the one who waits for a buffer, if there still is one. Under the
 * lock, so that whoever takes its call back knows that it is not running. */
static void call_waiter(struct myra_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    if (arm(pool, 0))
        pool->notify_fn(pool->notify_ctx);
    pthread_mutex_unlock(&pool->lock);
}

/* Puts a buffer into the thread's cache. Returns 0 when it has none, or when
 * somebody waits for all that this thread can give. */
static int keep(struct myra_pool *pool, struct myi_pool_cache *cache,
                struct myra_buf *buf)
{
    if (!cache->is_claimed)
        return 0;
    if (__atomic_load_n(&pool->is_armed, __ATOMIC_RELAXED)) {
        myi_pool_flush_cache(pool, cache);
        return 0;
    }
    if (cache->front.state & MYI_POOL_FULL)
        myi_pool_rotate_cache(pool, cache);
    myi_pool_push_cache(cache, buf);
    return 1;
}

/* Sends a buffer home that the thread's chain in use could not take. */
static void send_home_slow(struct myra_pool *pool, struct myra_buf *buf)
{
    if (keep(pool, myi_pool_own_cache(pool), buf))
        return;
    __atomic_fetch_add(&pool->outside.releases, 1, __ATOMIC_RELAXED);
    buf->next = NULL;
    myi_pool_push_chain(pool, buf->index, 1);
    /* After the push: see myi_pool_push_chain. */
    if (__atomic_load_n(&pool->is_armed, __ATOMIC_SEQ_CST))
        call_waiter(pool);
}

static void send_home(struct myra_buf *buf)
{
    struct myra_pool *pool = buf->pool;
    struct myi_pool_cache *cache = myi_pool_own_cache(pool);

    shut(buf);
    if (MYRA_LIKELY(!(cache->front.state & MYI_POOL_FULL) &&
                    !__atomic_load_n(&pool->is_armed, __ATOMIC_RELAXED)))
        myi_pool_push_cache(cache, buf);
    else
        send_home_slow(pool, buf);
}

/* More than one lease is out, or none. */
static __attribute__((noinline)) void release_shared(struct myra_buf *buf,
                                                     uint32_t refs)
{
    if (refs == 0) {
        report_misuse(buf, "released without a lease");
        return;
    }
    if (__atomic_fetch_sub(&buf->refs, 1, __ATOMIC_ACQ_REL) == 1)
        send_home(buf);
}

void myra_buf_release(struct myra_buf *buf)
{
    uint32_t refs;

    if (MYRA_UNLIKELY(!buf))
        return;
    /* Who holds the only lease is alone with the buffer, as a new one is made
     * from one that is held. Acquire: what others did before they gave their
     * leases back. */
    refs = __atomic_load_n(&buf->refs, __ATOMIC_ACQUIRE);
    if (MYRA_UNLIKELY(refs != 1)) {
        release_shared(buf, refs);
        return;
    }
    send_home(buf);
}

void myra_buf_retain(struct myra_buf *buf)
{
    if (MYRA_UNLIKELY(__atomic_fetch_add(&buf->refs, 1, __ATOMIC_RELAXED) ==
                      0)) {
        __atomic_store_n(&buf->refs, 0, __ATOMIC_RELAXED);
        report_misuse(buf, "retained without a lease");
    }
}

void myra_pool_notify(struct myra_pool *pool, void (*fn)(void *ctx),
                      void *ctx)
{
    pthread_mutex_lock(&pool->lock);
    pool->notify_fn = fn;
    pool->notify_ctx = ctx;
    arm(pool, fn != NULL);
    pthread_mutex_unlock(&pool->lock);
}

void myra_pool_options_init(struct myra_pool_options *options)
{
    memset(options, 0, sizeof(*options));
    options->struct_size = sizeof(*options);
    options->buf_cap = BUF_CAP_DEFAULT;
    options->count = COUNT_DEFAULT;
    options->data_align = ALIGN_MIN;
    options->cache = CACHE_DEFAULT;
}

/* What the caller's struct, which may be of another version, says over the
 * defaults. */
static int read_options(const struct myra_pool_options *from,
                        struct myra_pool_options *options)
{
    myra_pool_options_init(options);
    if (from) {
        if (from->struct_size < sizeof(from->struct_size))
            return MYRA_EINVAL;
        memcpy(options, from,
               from->struct_size < sizeof(*options) ? from->struct_size
                                                    : sizeof(*options));
    }
    if (options->buf_cap < 1 || options->buf_cap > BUF_CAP_MAX ||
        options->count < 1 || options->count > COUNT_MAX ||
        options->data_align < ALIGN_MIN || options->data_align > ALIGN_MAX ||
        !myi_is_pow2(options->data_align) || options->cache > CACHE_MAX ||
        options->huge > 1)
        return MYRA_EINVAL;
    if (options->cache > options->count / CACHE_SHARE)
        options->cache = options->count / CACHE_SHARE;
    return 0;
}

static void fill_bufs(struct myra_pool *pool, uint32_t cap)
{
    for (uint32_t i = 0; i < pool->count; i++) {
        struct myra_buf *buf = &pool->bufs[i];

        buf->data = pool->slab.base + i * pool->slab.stride;
        buf->cap = cap;
        buf->index = i;
        buf->pool = pool;
        buf->next = buf + 1;
        shut(buf);
    }
}

/* Chains of neighbours; the lowest indices are handed out first. */
static void fill_stack(struct myra_pool *pool)
{
    uint32_t end = pool->count;

    pool->head = MYI_POOL_NIL;
    while (end > 0) {
        const uint32_t rest = end % pool->chain_cap;
        const uint32_t len = rest ? rest : pool->chain_cap;

        pool->bufs[end - 1].next = NULL;
        end -= len;
        myi_pool_push_chain(pool, end, len);
    }
}

static size_t caches_size(void)
{
    return MYI_POOL_CACHES * sizeof(struct myi_pool_cache);
}

static void free_memory(struct myra_pool *pool)
{
    const struct myra_allocator *alloc = pool->alloc;

    myi_slab_unmap(&pool->slab);
    if (pool->has_caches)
        myi_free(alloc, pool->caches, caches_size());
    myi_free(alloc, pool->chains, pool->count * sizeof(*pool->chains));
    myi_free(alloc, pool->bufs, pool->count * sizeof(*pool->bufs));
    myi_free(alloc, pool, sizeof(*pool));
}

static int make_caches(struct myra_pool *pool)
{
    struct myi_pool_cache *caches = myi_alloc_aligned(
        pool->alloc, caches_size(), MYI_POOL_CACHE_ALIGN);

    if (!caches)
        return MYRA_ENOMEM;
    for (uint32_t i = 0; i < MYI_POOL_CACHES; i++)
        caches[i].front.state = MYI_POOL_FULL;
    pool->caches = caches;
    pool->has_caches = 1;
    return 0;
}

/* Everything but the registration; the caller frees on failure. */
static int fill_pool(struct myra_pool *pool,
                     const struct myra_pool_options *options)
{
    pool->count = options->count;
    pool->chain_cap = options->cache > 1 ? options->cache / 2 : 1;
    pool->caches = myi_pool_no_caches;
    pool->bufs = myi_alloc_aligned(pool->alloc,
                                   pool->count * sizeof(*pool->bufs), 64);
    pool->chains =
        myi_alloc(pool->alloc, pool->count * sizeof(*pool->chains));
    if (!pool->bufs || !pool->chains)
        return MYRA_ENOMEM;
    if (options->cache > 0)
        MYRA_TRY(make_caches(pool));
    MYRA_TRY(myi_slab_map(options, &pool->slab));
    fill_bufs(pool, options->buf_cap);
    fill_stack(pool);
    (void)arm(pool, 0);
    return 0;
}

/* A waiter may wait again from inside its call. */
static void init_lock(pthread_mutex_t *lock)
{
    pthread_mutexattr_t attr;

    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(lock, &attr);
    pthread_mutexattr_destroy(&attr);
}

int myra_pool_new(const struct myra_pool_options *options,
                  struct myra_pool **pool_out)
{
    struct myra_pool_options chosen;
    struct myra_pool *pool;
    int err;

    MYRA_TRY(read_options(options, &chosen));
    if (!chosen.alloc)
        chosen.alloc = myra_default_allocator();
    pool = myi_alloc(chosen.alloc, sizeof(*pool));
    if (!pool)
        return MYRA_ENOMEM;
    pool->alloc = chosen.alloc;
    err = fill_pool(pool, &chosen);
    if (err < 0) {
        free_memory(pool);
        return err;
    }
    init_lock(&pool->lock);
    myi_pool_register(pool);
    *pool_out = pool;
    return 0;
}

uint32_t myra_pool_free(struct myra_pool *pool)
{
    uint32_t leased;

    if (!pool)
        return 0;
    leased = pool->count - myra_pool_free_count(pool);
    myi_pool_forget(pool);
    pthread_mutex_destroy(&pool->lock);
    free_memory(pool);
    return leased;
}

static uint64_t load_counter(const uint64_t *counter)
{
    return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

/*
 * Adds what one cache has seen. Releases are not counted as they happen: a
 * buffer that came home lies in the cache or was given to the stack, if it
 * was not acquired again.
 */
static void add_cache(const struct myra_pool *pool,
                      const struct myi_pool_cache *cache, int64_t *releases,
                      struct myra_pool_stats *stats)
{
    const uint64_t state = load_counter(&cache->front.state);
    const uint64_t acquires = state >> MYI_POOL_FILL_BITS;

    *releases += (int64_t)acquires +
                 __atomic_load_n(&cache->spare_len, __ATOMIC_RELAXED) +
                 __atomic_load_n(&cache->given, __ATOMIC_RELAXED);
    /* Without an owner a cache holds nothing, but says that it is full. */
    if (__atomic_load_n(&cache->is_claimed, __ATOMIC_RELAXED))
        *releases += myi_pool_cache_len(pool, state);
    stats->acquires += acquires;
    stats->exhausted += load_counter(&cache->exhausted);
    stats->refills += load_counter(&cache->refills);
    stats->flushes += load_counter(&cache->flushes);
}

void myra_pool_read_stats(const struct myra_pool *pool,
                          struct myra_pool_stats *stats)
{
    int64_t releases = (int64_t)load_counter(&pool->outside.releases);
    int64_t leased;

    memset(stats, 0, sizeof(*stats));
    for (uint32_t i = 0; i < MYI_POOL_CACHES; i++)
        add_cache(pool, &pool->caches[i], &releases, stats);
    stats->acquires += load_counter(&pool->outside.acquires);
    stats->exhausted += load_counter(&pool->outside.exhausted);
    stats->count = pool->count;
    /* Caches were read one after the other: what others did in between can
     * take the sums past their ends. */
    stats->releases = releases > 0 ? (uint64_t)releases : 0;
    leased = (int64_t)stats->acquires - releases;
    if (leased > 0)
        stats->leased =
            leased < pool->count ? (uint32_t)leased : pool->count;
}

uint32_t myra_pool_free_count(const struct myra_pool *pool)
{
    struct myra_pool_stats stats;

    myra_pool_read_stats(pool, &stats);
    return stats.count - stats.leased;
}

void myra_pool_region(const struct myra_pool *pool, void **base_out,
                      size_t *len_out, size_t *stride_out)
{
    *base_out = pool->slab.base;
    *len_out = pool->slab.len;
    *stride_out = pool->slab.stride;
}

struct myra_buf *myra_pool_at(const struct myra_pool *pool, uint32_t index)
{
    return &pool->bufs[index];
}
