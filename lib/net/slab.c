/* SPDX-License-Identifier: MIT */
/*
 * A slab allocator with hysteresis. A burst may need ten thousand blocks at
 * once, and the calm after it must not keep them; but a load that goes up and
 * down every millisecond must not allocate. So an empty chunk is freed only
 * when a whole interval passed in which it was never needed. An object is
 * preceded by a pointer to its chunk.
 */
#include "config.h"

#include "lib/net/slab.h"

#include "lib/base/alloc.h"
#include "lib/base/checked.h"

#define PREFIX 16

struct myi_slab_chunk {
    struct myi_slab_chunk *next;
    struct myi_slab_chunk **link;
    void *free; /* objects given back, linked by their first word */
    uint32_t used;
    uint32_t fresh; /* objects never taken follow this many */
};

#define CHUNK_HEAD 48

static void chunk_link(struct myi_slab_chunk **list,
                       struct myi_slab_chunk *chunk)
{
    chunk->next = *list;
    chunk->link = list;
    if (chunk->next != NULL)
        chunk->next->link = &chunk->next;
    *list = chunk;
}

static void chunk_unlink(struct myi_slab_chunk *chunk)
{
    *chunk->link = chunk->next;
    if (chunk->next != NULL)
        chunk->next->link = chunk->link;
}

void myi_slab_init(struct myi_slab *slab, const struct myra_allocator *alloc,
                   size_t object_size, size_t chunk_bytes)
{
    const size_t stride = myi_align_up(object_size, 16) + PREFIX;

    slab->alloc = alloc;
    slab->partial = NULL;
    slab->full = NULL;
    slab->object_size = (uint32_t)stride;
    slab->per_chunk = 1;
    if (chunk_bytes > CHUNK_HEAD + stride)
        slab->per_chunk = (uint32_t)((chunk_bytes - CHUNK_HEAD) / stride);
    slab->chunk_bytes = (uint32_t)(CHUNK_HEAD + slab->per_chunk * stride);
    if (slab->chunk_bytes < chunk_bytes)
        slab->chunk_bytes = (uint32_t)chunk_bytes;
    slab->empty_count = 0;
    slab->empty_min = 0;
}

static void free_list(struct myi_slab *slab, struct myi_slab_chunk **list)
{
    while (*list != NULL) {
        struct myi_slab_chunk *chunk = *list;

        chunk_unlink(chunk);
        myi_free(slab->alloc, chunk, slab->chunk_bytes);
    }
}

void myi_slab_fini(struct myi_slab *slab)
{
    free_list(slab, &slab->partial);
    free_list(slab, &slab->full);
    slab->empty_count = 0;
}

/* Past myi_alloc: zeros would touch pages that may never be needed. */
static struct myi_slab_chunk *chunk_new(struct myi_slab *slab)
{
    const struct myra_allocator *alloc =
        slab->alloc != NULL ? slab->alloc : myra_default_allocator();
    struct myi_slab_chunk *chunk =
        alloc->alloc(alloc->ctx, slab->chunk_bytes, 64);

    if (chunk == NULL)
        return NULL;
    chunk->free = NULL;
    chunk->used = 0;
    chunk->fresh = 0;
    chunk_link(&slab->partial, chunk);
    slab->empty_count++;
    return chunk;
}

void *myi_slab_take(struct myi_slab *slab)
{
    struct myi_slab_chunk *chunk = slab->partial;
    uint8_t *object;

    if (chunk == NULL)
        chunk = chunk_new(slab);
    if (chunk == NULL)
        return NULL;
    if (chunk->used == 0 && --slab->empty_count < slab->empty_min)
        slab->empty_min = slab->empty_count;
    if (chunk->free != NULL) {
        object = chunk->free;
        chunk->free = *(void **)(void *)object;
    } else {
        object = (uint8_t *)chunk + CHUNK_HEAD +
                 (size_t)chunk->fresh * slab->object_size;
        *(struct myi_slab_chunk **)(void *)object = chunk;
        object += PREFIX;
        chunk->fresh++;
    }
    if (++chunk->used == slab->per_chunk) {
        chunk_unlink(chunk);
        chunk_link(&slab->full, chunk);
    }
    return object;
}

void myi_slab_give(struct myi_slab *slab, void *object)
{
    struct myi_slab_chunk *chunk =
        *(struct myi_slab_chunk **)(void *)((uint8_t *)object - PREFIX);

    *(void **)object = chunk->free;
    chunk->free = object;
    if (chunk->used == slab->per_chunk) {
        chunk_unlink(chunk);
        chunk_link(&slab->partial, chunk);
    }
    if (--chunk->used == 0)
        slab->empty_count++;
}

int myi_slab_trim(struct myi_slab *slab)
{
    struct myi_slab_chunk *chunk = slab->partial;
    uint32_t surplus = slab->empty_min;

    while (chunk != NULL && surplus > 0 && slab->empty_count > 1) {
        struct myi_slab_chunk *next = chunk->next;

        if (chunk->used == 0) {
            chunk_unlink(chunk);
            myi_free(slab->alloc, chunk, slab->chunk_bytes);
            slab->empty_count--;
            surplus--;
        }
        chunk = next;
    }
    slab->empty_min = slab->empty_count;
    return slab->empty_count > 1;
}
