/* SPDX-License-Identifier: MIT */
/* Overflow blocks: where bytes go that may not stay in a receive buffer. */
#ifndef MYI_NET_BLOCK_H
#define MYI_NET_BLOCK_H

#include <stddef.h>
#include <stdint.h>

#include <myra/alloc.h>

#include "lib/net/slab.h"

#define MYI_BLOCK_CLASSES 5

/* Payload of the largest block: with header and slack 128 KiB. */
#define MYI_BLOCK_MAX (128u * 1024 - 128)

struct myi_block {
    uint32_t refs;
    uint32_t cap; /* bytes of payload */
    uint32_t size;
    uint32_t class_index;
    uint8_t data[];
};

struct myi_blocks {
    struct myi_slab slab[MYI_BLOCK_CLASSES];
    size_t limit; /* bytes in use at most */
    size_t used;  /* bytes in use */
};

void myi_blocks_init(struct myi_blocks *blocks,
                     const struct myra_allocator *alloc, size_t limit);

/* Every block must be home. */
void myi_blocks_fini(struct myi_blocks *blocks);

/* A block of at least cap bytes with one reference, or NULL: over the limit,
 * larger than the largest class, or no memory. is_over = 1 ignores the limit
 * (for bytes that exist already and have nowhere else to go). */
struct myi_block *myi_block_new(struct myi_blocks *blocks, size_t cap,
                                int is_over);

void myi_block_release(struct myi_blocks *blocks, struct myi_block *block);

/* See myi_slab_trim; of all sizes. */
int myi_blocks_trim(struct myi_blocks *blocks);

#endif
