/* SPDX-License-Identifier: MIT */
/*
 * Slots in chunks that never move, so that a pointer to a connection is good
 * for the connection's life and a handle (slot + generation) can be looked up
 * with two loads. A free slot keeps the next free one in its fd field.
 */
#include "config.h"

#include "lib/net/slots.h"

#include <assert.h>
#include <string.h>

#include "lib/base/alloc.h"

void myi_slots_init(struct myi_slots *slots, struct myi_be *be,
                    uint32_t stride, uint32_t max)
{
    memset(slots, 0, sizeof(*slots));
    slots->be = be;
    slots->max = max;
    be->slot_stride = stride;
}

static size_t chunk_bytes(const struct myi_slots *slots)
{
    return (size_t)slots->be->slot_stride * MYI_SLOT_CHUNK;
}

void myi_slots_fini(struct myi_slots *slots)
{
    struct myi_be *be = slots->be;

    for (uint32_t i = 0; i < be->slot_chunk_count; i++)
        myi_free(be->alloc, be->slot_chunks[i], chunk_bytes(slots));
    myi_free(be->alloc, be->slot_chunks,
             slots->chunk_cap * sizeof(*be->slot_chunks));
    be->slot_chunks = NULL;
    be->slot_chunk_count = 0;
}

static int grow_index(struct myi_slots *slots)
{
    struct myi_be *be = slots->be;
    const uint32_t cap = slots->chunk_cap > 0 ? slots->chunk_cap * 2 : 16;
    uint8_t **chunks = myi_alloc(be->alloc, cap * sizeof(*chunks));

    if (chunks == NULL)
        return MYRA_ENOMEM;
    if (be->slot_chunk_count > 0)
        memcpy(chunks, be->slot_chunks,
               be->slot_chunk_count * sizeof(*chunks));
    myi_free(be->alloc, be->slot_chunks,
             slots->chunk_cap * sizeof(*chunks));
    be->slot_chunks = chunks;
    slots->chunk_cap = cap;
    return 0;
}

static int grow(struct myi_slots *slots)
{
    struct myi_be *be = slots->be;
    uint8_t *chunk;

    if (be->slot_chunk_count == slots->chunk_cap)
        MYRA_TRY(grow_index(slots));
    chunk = myi_alloc(be->alloc, chunk_bytes(slots));
    if (chunk == NULL)
        return MYRA_ENOMEM;
    be->slot_chunks[be->slot_chunk_count++] = chunk;
    return 0;
}

struct myi_io *myi_slot_at(const struct myi_slots *slots, uint32_t slot)
{
    const struct myi_be *be = slots->be;

    if (slot >= slots->fresh)
        return NULL;
    return (struct myi_io *)(void *)(be->slot_chunks[slot >> MYI_SLOT_SHIFT] +
                                     (size_t)(slot & (MYI_SLOT_CHUNK - 1)) *
                                         be->slot_stride);
}

int myi_slot_take(struct myi_slots *slots, enum myi_io_kind kind,
                  struct myi_io **io_out)
{
    struct myi_io *io;
    uint32_t slot, generation;

    if (slots->used >= slots->max)
        return MYRA_ELIMIT;
    if (slots->free_head != 0) {
        slot = slots->free_head - 1;
        io = myi_slot_at(slots, slot);
        slots->free_head = (uint32_t)io->fd;
    } else {
        slot = slots->fresh;
        if (slot >> MYI_SLOT_SHIFT >= slots->be->slot_chunk_count)
            MYRA_TRY(grow(slots));
        slots->fresh++;
        io = myi_slot_at(slots, slot);
    }
    generation = io->generation;
    memset(io, 0, slots->be->slot_stride);
    io->fd = -1;
    io->slot = slot;
    io->generation = generation;
    io->kind = (uint8_t)kind;
    slots->used++;
    *io_out = io;
    return 0;
}

void myi_slot_give(struct myi_slots *slots, struct myi_io *io)
{
    assert(io->inflight == 0);
    io->generation++;
    io->kind = MYI_IO_FREE;
    io->fd = (int)slots->free_head;
    slots->free_head = io->slot + 1;
    slots->used--;
}
