/* SPDX-License-Identifier: MIT */
/*
 * Overflow blocks in five sizes, a slab each. What is in use is counted
 * against one limit a loop.
 */
#include "config.h"

#include "lib/net/block.h"

#include <myra/pool.h>

/* Payloads. The middle ones take what a receive buffer of 4 or 16 KiB holds
 * next to its own slack. */
static const uint32_t class_cap[MYI_BLOCK_CLASSES] = { 944, 4032, 16320,
                                                       65472, MYI_BLOCK_MAX };

/* Twice what an allocator keeps at the end of its heap (glibc: 128 KiB): so a
 * chunk gets a mapping of its own, and leaves no hole when it goes. */
#define CHUNK_BYTES (256u * 1024)

static uint32_t class_size(unsigned class_index)
{
    return class_cap[class_index] + (uint32_t)sizeof(struct myi_block) +
           MYRA_BUF_SLACK;
}

void myi_blocks_init(struct myi_blocks *blocks,
                     const struct myra_allocator *alloc, size_t limit)
{
    for (int i = 0; i < MYI_BLOCK_CLASSES; i++)
        myi_slab_init(&blocks->slab[i], alloc, class_size((unsigned)i),
                      CHUNK_BYTES);
    blocks->limit = limit;
    blocks->used = 0;
}

void myi_blocks_fini(struct myi_blocks *blocks)
{
    for (int i = 0; i < MYI_BLOCK_CLASSES; i++)
        myi_slab_fini(&blocks->slab[i]);
}

struct myi_block *myi_block_new(struct myi_blocks *blocks, size_t cap,
                                int is_over)
{
    struct myi_block *block;
    unsigned i = 0;

    while (i < MYI_BLOCK_CLASSES && class_cap[i] < cap)
        i++;
    if (i == MYI_BLOCK_CLASSES)
        return NULL;
    if (!is_over && blocks->used + class_size(i) > blocks->limit)
        return NULL;
    block = myi_slab_take(&blocks->slab[i]);
    if (block == NULL)
        return NULL;
    block->refs = 1;
    block->cap = class_cap[i];
    block->size = class_size(i);
    block->class_index = i;
    blocks->used += block->size;
    return block;
}

void myi_block_release(struct myi_blocks *blocks, struct myi_block *block)
{
    if (--block->refs > 0)
        return;
    blocks->used -= block->size;
    myi_slab_give(&blocks->slab[block->class_index], block);
}

int myi_blocks_trim(struct myi_blocks *blocks)
{
    int has_more = 0;

    for (int i = 0; i < MYI_BLOCK_CLASSES; i++)
        has_more |= myi_slab_trim(&blocks->slab[i]);
    return has_more;
}
