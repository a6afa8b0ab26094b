/* SPDX-License-Identifier: MIT */
/* Objects of one size in chunks that are given back when they fall empty. */
#ifndef MYI_NET_SLAB_H
#define MYI_NET_SLAB_H

#include <stddef.h>
#include <stdint.h>

#include <myra/alloc.h>

struct myi_slab_chunk;

struct myi_slab {
    const struct myra_allocator *alloc;
    struct myi_slab_chunk *partial; /* chunks with a free object */
    struct myi_slab_chunk *full;
    uint32_t object_size;
    uint32_t per_chunk;
    uint32_t chunk_bytes;
    uint32_t empty_count; /* chunks with no object in use */
    uint32_t empty_min;   /* the least of it since the last trim */
};

/* per chunk as many objects as fit in chunk_bytes, at least one. */
void myi_slab_init(struct myi_slab *slab, const struct myra_allocator *alloc,
                   size_t object_size, size_t chunk_bytes);

/* Frees all chunks, in use or not. */
void myi_slab_fini(struct myi_slab *slab);

/* Room for one object, 16-byte aligned, its contents not defined; or NULL. */
void *myi_slab_take(struct myi_slab *slab);
void myi_slab_give(struct myi_slab *slab, void *object);

/* Frees the chunks that no object has needed since the last call, but one.
 * Returns 1 while there are more empty chunks than that. */
int myi_slab_trim(struct myi_slab *slab);

#endif
