/* SPDX-License-Identifier: MIT */
/*
 * Objects of one size, in chunks, for one thread. Chunks are allocated when
 * there is no free object; those that stay empty are given back by slab_trim,
 * so that a burst's memory does not stay for ever and a steady load never
 * allocates.
 */
#ifndef PROXY_SLAB_H
#define PROXY_SLAB_H

#include <stddef.h>
#include <stdint.h>

#include <myra/alloc.h>

struct slab_chunk;

struct slab {
    const struct myra_allocator *alloc;
    struct slab_chunk *partial; /* chunks with a free object */
    size_t item_size;
    size_t chunk_size;
    uint32_t item_count; /* of a chunk */
    uint32_t chunk_count;
    uint32_t empty_count;
    uint32_t empty_low; /* least empty_count since the last trim */
};

void slab_init(struct slab *slab, const struct myra_allocator *alloc,
               size_t item_size, size_t chunk_size);
void slab_fini(struct slab *slab);

/* Not zeroed; aligned to 16. NULL: out of memory. */
void *slab_acquire(struct slab *slab);
void slab_release(struct slab *slab, void *item);

/* Gives back chunks, all but one, that were empty since the last call. 1 when
 * more could be given back later. */
int slab_trim(struct slab *slab);

#endif
