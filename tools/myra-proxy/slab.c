/* SPDX-License-Identifier: MIT */
/* A slab: each object has the address of its chunk before it. */
#include "config.h"

#include "slab.h"

#include <string.h>

/* Keeps objects aligned to 16 and has room for the chunk's address. */
#define ITEM_HEAD 16

struct slab_item {
    struct slab_chunk *chunk;
    struct slab_item *next_free;
};

struct slab_chunk {
    struct slab_chunk *next, *prev; /* while in the partial list */
    struct slab_item *free;
    uint32_t used_count;
    uint32_t fresh_count; /* objects at the end that were never used */
};

_Static_assert(sizeof(struct slab_item) == ITEM_HEAD &&
                   sizeof(struct slab_chunk) % 16 == 0,
               "objects stay aligned");

void slab_init(struct slab *slab, const struct myra_allocator *alloc,
               size_t item_size, size_t chunk_size)
{
    memset(slab, 0, sizeof(*slab));
    slab->alloc = alloc;
    slab->item_size = (item_size + ITEM_HEAD + 15) & ~(size_t)15;
    slab->chunk_size = chunk_size;
    slab->item_count = (uint32_t)((chunk_size - sizeof(struct slab_chunk)) /
                                  slab->item_size);
}

static void link_chunk(struct slab *slab, struct slab_chunk *chunk)
{
    chunk->prev = NULL;
    chunk->next = slab->partial;
    if (chunk->next)
        chunk->next->prev = chunk;
    slab->partial = chunk;
}

static void unlink_chunk(struct slab *slab, struct slab_chunk *chunk)
{
    if (chunk->prev)
        chunk->prev->next = chunk->next;
    else
        slab->partial = chunk->next;
    if (chunk->next)
        chunk->next->prev = chunk->prev;
}

static void free_chunk(struct slab *slab, struct slab_chunk *chunk)
{
    unlink_chunk(slab, chunk);
    slab->alloc->free(slab->alloc->ctx, chunk, slab->chunk_size);
    slab->chunk_count--;
    slab->empty_count--;
}

void slab_fini(struct slab *slab)
{
    while (slab->partial)
        free_chunk(slab, slab->partial);
}

static int grow(struct slab *slab)
{
    struct slab_chunk *chunk =
        slab->alloc->alloc(slab->alloc->ctx, slab->chunk_size, 16);

    if (!chunk)
        return -1;
    chunk->free = NULL;
    chunk->used_count = 0;
    chunk->fresh_count = slab->item_count;
    link_chunk(slab, chunk);
    slab->chunk_count++;
    slab->empty_count++;
    return 0;
}

static struct slab_item *take_fresh(struct slab *slab,
                                    struct slab_chunk *chunk)
{
    const uint32_t index = slab->item_count - chunk->fresh_count--;
    struct slab_item *item =
        (struct slab_item *)(void *)((char *)(chunk + 1) +
                                     (size_t)index * slab->item_size);

    item->chunk = chunk;
    return item;
}

void *slab_acquire(struct slab *slab)
{
    struct slab_chunk *chunk;
    struct slab_item *item;

    if (!slab->partial && grow(slab))
        return NULL;
    chunk = slab->partial;
    if (chunk->used_count++ == 0 && --slab->empty_count < slab->empty_low)
        slab->empty_low = slab->empty_count;
    item = chunk->free;
    if (item)
        chunk->free = item->next_free;
    else
        item = take_fresh(slab, chunk);
    if (chunk->used_count == slab->item_count)
        unlink_chunk(slab, chunk);
    return item + 1;
}

void slab_release(struct slab *slab, void *ptr)
{
    struct slab_item *item = (struct slab_item *)ptr - 1;
    struct slab_chunk *chunk = item->chunk;

    item->next_free = chunk->free;
    chunk->free = item;
    if (chunk->used_count == slab->item_count)
        link_chunk(slab, chunk);
    if (--chunk->used_count == 0)
        slab->empty_count++;
}

int slab_trim(struct slab *slab)
{
    struct slab_chunk *chunk = slab->partial, *next;
    uint32_t count = slab->empty_low > 1 ? slab->empty_low - 1 : 0;

    for (; chunk && count; chunk = next) {
        next = chunk->next;
        if (chunk->used_count)
            continue;
        free_chunk(slab, chunk);
        count--;
    }
    slab->empty_low = slab->empty_count;
    return slab->empty_count > 1;
}
