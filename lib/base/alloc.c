/* SPDX-License-Identifier: MIT */
/*
 * The allocator hook: malloc behind it by default, the counting allocator,
 * and the calls that the rest of the library uses.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"

static void *system_alloc(void *ctx, size_t size, size_t align)
{
    void *ptr;

    (void)ctx;
    return posix_memalign(&ptr, align, size) ? NULL : ptr;
}

static void system_free(void *ctx, void *ptr, size_t size)
{
    (void)ctx;
    (void)size;
    free(ptr);
}

static const struct myra_allocator system_allocator = {
    .alloc = system_alloc,
    .free = system_free,
};

static const struct myra_allocator *default_allocator = &system_allocator;

const struct myra_allocator *myra_default_allocator(void)
{
    return default_allocator;
}

void myra_set_default_allocator(const struct myra_allocator *alloc)
{
    default_allocator = alloc ? alloc : &system_allocator;
}

void *myi_alloc_aligned(const struct myra_allocator *alloc, size_t size,
                        size_t align)
{
    void *ptr;

    if (!alloc)
        alloc = default_allocator;
    ptr = alloc->alloc(alloc->ctx, size, align);
    return ptr ? memset(ptr, 0, size) : NULL;
}

void *myi_alloc(const struct myra_allocator *alloc, size_t size)
{
    return myi_alloc_aligned(alloc, size, size >= 64 ? 64 : 16);
}

void myi_free(const struct myra_allocator *alloc, void *ptr, size_t size)
{
    if (!ptr)
        return;
    if (!alloc)
        alloc = default_allocator;
    alloc->free(alloc->ctx, ptr, size);
}

static void *counting_alloc(void *ctx, size_t size, size_t align)
{
    struct myra_counting_allocator *counting = ctx;
    void *ptr = counting->next->alloc(counting->next->ctx, size, align);

    if (!ptr)
        return NULL;
    __atomic_fetch_add(&counting->allocs, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&counting->bytes, size, __ATOMIC_RELAXED);
    return ptr;
}

static void counting_free(void *ctx, void *ptr, size_t size)
{
    struct myra_counting_allocator *counting = ctx;

    __atomic_fetch_add(&counting->frees, 1, __ATOMIC_RELAXED);
    __atomic_fetch_sub(&counting->bytes, size, __ATOMIC_RELAXED);
    counting->next->free(counting->next->ctx, ptr, size);
}

void myra_counting_init(struct myra_counting_allocator *counting,
                        const struct myra_allocator *next)
{
    counting->base.alloc = counting_alloc;
    counting->base.free = counting_free;
    counting->base.ctx = counting;
    counting->next = next ? next : default_allocator;
    counting->allocs = 0;
    counting->frees = 0;
    counting->bytes = 0;
}

void myra_counting_read(const struct myra_counting_allocator *counting,
                        uint64_t *allocs, uint64_t *frees, uint64_t *bytes)
{
    if (allocs)
        *allocs = __atomic_load_n(&counting->allocs, __ATOMIC_RELAXED);
    if (frees)
        *frees = __atomic_load_n(&counting->frees, __ATOMIC_RELAXED);
    if (bytes)
        *bytes = __atomic_load_n(&counting->bytes, __ATOMIC_RELAXED);
}
