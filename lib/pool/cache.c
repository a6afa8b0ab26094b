/* SPDX-License-Identifier: MIT */
/*
 * Who owns which cache, how chains move, and what becomes of a cache when its
 * thread ends.
 *
 * A thread gets its number with its first acquire and gives it back when it
 * ends, after its buffers went to the shared stacks; the next thread that
 * asks takes the number and all caches that go with it.
 */
#include "config.h"

#include "lib/pool/cache.h"
#include "lib/pool/pool_priv.h"
#include "lib/pool/stack.h"

__thread size_t myra_pool_thread;

#define FULL_1 { .front = { .head = NULL, .state = MYI_POOL_FULL } }
#define FULL_4 FULL_1, FULL_1, FULL_1, FULL_1
#define FULL_16 FULL_4, FULL_4, FULL_4, FULL_4

struct myi_pool_cache myi_pool_no_caches[MYI_POOL_CACHES] = { FULL_16,
                                                              FULL_16 };

/* All pools of the process, and a bit for each number that is taken. Locked
 * before a pool's own lock. */
static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static struct myi_list registry = { &registry, &registry };
static uint32_t taken_numbers = 1;

static pthread_once_t exit_key_once = PTHREAD_ONCE_INIT;
static pthread_key_t exit_key;
static int has_exit_key;

/* Notes that the cache holds len buffers behind head. */
static void set_chain(const struct myra_pool *pool,
                      struct myi_pool_cache *cache, struct myra_buf *head,
                      uint32_t len)
{
    const uint64_t acquires =
        cache->front.state & ~(uint64_t)MYI_POOL_FILL_MASK;
    const uint32_t fill = MYI_POOL_FULL - pool->chain_cap + len;

    cache->front.head = head;
    __atomic_store_n(&cache->front.state, acquires | fill, __ATOMIC_RELAXED);
}

static void set_spare(struct myi_pool_cache *cache, struct myra_buf *head,
                      uint32_t len)
{
    cache->spare = head;
    __atomic_store_n(&cache->spare_len, len, __ATOMIC_RELAXED);
}

static void add_given(struct myi_pool_cache *cache, int64_t len)
{
    __atomic_store_n(&cache->given, cache->given + len, __ATOMIC_RELAXED);
}

static void give(struct myra_pool *pool, struct myi_pool_cache *cache,
                 struct myra_buf *head, uint32_t len)
{
    myi_pool_push_chain(pool, head->index, len);
    add_given(cache, len);
    myi_pool_count(&cache->flushes);
}

void myi_pool_flush_cache(struct myra_pool *pool,
                          struct myi_pool_cache *cache)
{
    const uint32_t len = myi_pool_cache_len(pool, cache->front.state);

    if (len > 0)
        give(pool, cache, cache->front.head, len);
    if (cache->spare_len > 0)
        give(pool, cache, cache->spare, cache->spare_len);
    set_chain(pool, cache, NULL, 0);
    set_spare(cache, NULL, 0);
}

void myi_pool_rotate_cache(struct myra_pool *pool,
                           struct myi_pool_cache *cache)
{
    if (cache->spare_len > 0)
        give(pool, cache, cache->spare, cache->spare_len);
    set_spare(cache, cache->front.head,
              myi_pool_cache_len(pool, cache->front.state));
    set_chain(pool, cache, NULL, 0);
}

int myi_pool_refill_cache(struct myra_pool *pool,
                          struct myi_pool_cache *cache)
{
    uint32_t first;
    uint32_t len;

    if (cache->spare_len > 0) {
        set_chain(pool, cache, cache->spare, cache->spare_len);
        set_spare(cache, NULL, 0);
        return 1;
    }
    first = myi_pool_pop_chain(pool, &len);
    if (first == MYI_POOL_NIL)
        return 0;
    set_chain(pool, cache, &pool->bufs[first], len);
    add_given(cache, -(int64_t)len);
    myi_pool_count(&cache->refills);
    return 1;
}

static void set_claimed(struct myi_pool_cache *cache, uint32_t is_claimed)
{
    __atomic_store_n(&cache->is_claimed, is_claimed, __ATOMIC_RELAXED);
}

static void leave_pool(struct myra_pool *pool)
{
    struct myi_pool_cache *cache = myi_pool_own_cache(pool);

    if (!cache->is_claimed)
        return;
    myi_pool_flush_cache(pool, cache);
    set_chain(pool, cache, NULL, pool->chain_cap);
    set_claimed(cache, 0);
}

/* Runs in a thread that ends. What it still releases afterwards goes to the
 * shared stacks; if it acquires, it gets a number and ends once more. */
static void leave_all_pools(void *unused)
{
    const size_t number = myra_pool_thread / sizeof(struct myi_pool_cache);

    (void)unused;
    pthread_mutex_lock(&registry_lock);
    for (struct myi_list *at = registry.next; at != &registry; at = at->next)
        leave_pool(MYI_CONTAINER(at, struct myra_pool, registered));
    myra_pool_thread = 0;
    taken_numbers &= ~((uint32_t)1 << number) | 1;
    pthread_mutex_unlock(&registry_lock);
}

static void make_exit_key(void)
{
    has_exit_key = pthread_key_create(&exit_key, leave_all_pools) == 0;
}

/* The key would call into a library that dlclose took away. */
__attribute__((destructor)) static void delete_exit_key(void)
{
    if (has_exit_key)
        (void)pthread_key_delete(exit_key);
    has_exit_key = 0;
}

/* 1 when the end of this thread will be told. */
static int watch_exit(void)
{
    return pthread_once(&exit_key_once, make_exit_key) == 0 && has_exit_key &&
           pthread_setspecific(exit_key, &myra_pool_thread) == 0;
}

/* 1 when the calling thread has a number. */
static int take_number(void)
{
    if (myra_pool_thread == 0 && watch_exit()) {
        pthread_mutex_lock(&registry_lock);
        if (~taken_numbers) {
            const unsigned number = (unsigned)__builtin_ctz(~taken_numbers);

            taken_numbers |= (uint32_t)1 << number;
            myra_pool_thread = number * sizeof(struct myi_pool_cache);
        }
        pthread_mutex_unlock(&registry_lock);
    }
    return myra_pool_thread != 0;
}

struct myi_pool_cache *myi_pool_claim_cache(struct myra_pool *pool)
{
    struct myi_pool_cache *cache;

    if (!pool->has_caches || !take_number())
        return NULL;
    cache = myi_pool_own_cache(pool);
    if (!cache->is_claimed) {
        set_chain(pool, cache, NULL, 0);
        set_claimed(cache, 1);
    }
    return cache;
}

void myi_pool_register(struct myra_pool *pool)
{
    pthread_mutex_lock(&registry_lock);
    myi_list_append(&registry, &pool->registered);
    pthread_mutex_unlock(&registry_lock);
}

void myi_pool_forget(struct myra_pool *pool)
{
    pthread_mutex_lock(&registry_lock);
    myi_list_remove(&pool->registered);
    pthread_mutex_unlock(&registry_lock);
}
