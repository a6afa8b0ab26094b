/* SPDX-License-Identifier: MIT */
/* The slot table and the overflow blocks, also without memory. */
#include "config.h"

#include <criterion/criterion.h>
#include <string.h>

#include "lib/net/block.h"
#include "lib/net/slots.h"

Test(slots, a_slot_given_back_has_a_new_generation)
{
    struct myi_be be = { 0 };
    struct myi_slots slots;
    struct myi_io *io[200], *again;
    uint32_t slot, generation;

    myi_slots_init(&slots, &be, 64, 150);
    for (int i = 0; i < 150; i++) {
        cr_assert_eq(myi_slot_take(&slots, MYI_IO_CONN, &io[i]), 0);
        cr_assert_eq(io[i]->slot, (uint32_t)i);
        cr_assert_eq(io[i]->fd, -1);
    }
    cr_assert_eq(myi_slot_take(&slots, MYI_IO_CONN, &again), MYRA_ELIMIT);
    slot = io[77]->slot;
    generation = io[77]->generation;
    cr_assert_eq(myi_io_at(&be, slot, generation), io[77]);
    myi_slot_give(&slots, io[77]);
    cr_assert_null(myi_io_at(&be, slot, generation));
    cr_assert_eq(myi_slot_take(&slots, MYI_IO_WATCH, &again), 0);
    cr_assert_eq(again, io[77]);
    cr_assert_eq(again->slot, slot);
    cr_assert_neq(again->generation, generation);
    cr_assert_null(myi_io_at(&be, 1000000, 0));
    cr_assert_null(myi_slot_at(&slots, 150));
    myi_slots_fini(&slots);
}

static int allocs_left;

static void *limited_alloc(void *ctx, size_t size, size_t align)
{
    (void)ctx;
    if (allocs_left-- <= 0)
        return NULL;
    return myra_default_allocator()->alloc(NULL, size, align);
}

static void limited_free(void *ctx, void *ptr, size_t size)
{
    (void)ctx;
    myra_default_allocator()->free(NULL, ptr, size);
}

Test(slots, no_memory_is_an_error_and_no_more)
{
    const struct myra_allocator alloc = { limited_alloc, limited_free,
                                          NULL };

    for (int n = 0; n < 12; n++) {
        struct myi_be be = { .alloc = &alloc };
        struct myi_slots slots;
        struct myi_io *io;
        int taken = 0;

        allocs_left = n;
        myi_slots_init(&slots, &be, 64, 100000);
        while (myi_slot_take(&slots, MYI_IO_CONN, &io) == 0)
            taken++;
        cr_assert_eq(slots.used, (uint32_t)taken);
        cr_assert_geq(taken, n > 1 ? (n - 1) * 64 - 64 : 0);
        myi_slots_fini(&slots);
    }
}

Test(blocks, come_back_and_keep_to_the_limit)
{
    struct myi_blocks blocks;
    struct myi_block *a, *b;

    myi_blocks_init(&blocks, NULL, 6000);
    a = myi_block_new(&blocks, 100, 0);
    cr_assert_not_null(a);
    cr_assert_geq(a->cap, 900);
    b = myi_block_new(&blocks, 3000, 0);
    cr_assert_not_null(b);
    cr_assert_null(myi_block_new(&blocks, 3000, 0), "over the limit");
    cr_assert_null(myi_block_new(&blocks, MYI_BLOCK_MAX + 1, 1), "too large");
    b->refs++;
    myi_block_release(&blocks, b);
    cr_assert_eq(blocks.used, a->size + b->size);
    myi_block_release(&blocks, b);
    cr_assert_eq(myi_block_new(&blocks, 3000, 0), b, "not reused");
    myi_block_release(&blocks, b);
    myi_block_release(&blocks, a);
    cr_assert_eq(blocks.used, 0);
    myi_blocks_fini(&blocks);
}

Test(slab, keeps_what_a_busy_time_needs_and_gives_back_the_rest)
{
    struct myra_counting_allocator counting;
    struct myi_slab slab;
    static void *objects[1000];
    uint64_t allocs, frees, bytes;

    myra_counting_init(&counting, NULL);
    myi_slab_init(&slab, &counting.base, 100, 4096);
    cr_assert_leq(slab.chunk_bytes, 4096);
    for (int i = 0; i < 1000; i++) {
        objects[i] = myi_slab_take(&slab);
        cr_assert_not_null(objects[i]);
        memset(objects[i], i & 255, 100);
    }
    myra_counting_read(&counting, &allocs, &frees, &bytes);
    cr_assert_eq(allocs, (1000 + slab.per_chunk - 1) / slab.per_chunk);
    for (int i = 0; i < 1000; i++) {
        cr_assert_eq(((uint8_t *)objects[i])[99], i & 255);
        myi_slab_give(&slab, objects[i]);
    }
    /* The interval had needed them all. */
    cr_assert_eq(myi_slab_trim(&slab), 1);
    myra_counting_read(&counting, &allocs, &frees, &bytes);
    cr_assert_eq(frees, 0);
    /* In this one half of them were needed. */
    for (int i = 0; i < 500; i++)
        objects[i] = myi_slab_take(&slab);
    for (int i = 0; i < 500; i++)
        myi_slab_give(&slab, objects[i]);
    cr_assert_eq(myi_slab_trim(&slab), 1);
    cr_assert_geq(slab.empty_count * slab.per_chunk, 500);
    cr_assert_leq(slab.empty_count * slab.per_chunk, 500 + slab.per_chunk);
    /* In this one none. */
    cr_assert_eq(myi_slab_trim(&slab), 0);
    cr_assert_eq(slab.empty_count, 1);
    myi_slab_fini(&slab);
    myra_counting_read(&counting, &allocs, &frees, &bytes);
    cr_assert_eq(allocs, frees);
    cr_assert_eq(bytes, 0);
}
