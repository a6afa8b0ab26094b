/* SPDX-License-Identifier: MIT */
/* The table of a loop's listeners, connections and watches. */
#ifndef MYI_NET_SLOTS_H
#define MYI_NET_SLOTS_H

#include "backends/backend.h"

struct myi_slots {
    struct myi_be *be; /* whose slot_* fields describe the table */
    uint32_t chunk_cap;
    uint32_t used;
    uint32_t max;
    uint32_t free_head; /* slot + 1 of the last one given back, 0: none */
    uint32_t fresh;     /* first slot never used */
};

/* stride is the size of the largest object plus the backend's state. */
void myi_slots_init(struct myi_slots *slots, struct myi_be *be,
                    uint32_t stride, uint32_t max);
void myi_slots_fini(struct myi_slots *slots);

/* A zeroed object whose io has slot, generation and kind set and fd = -1.
 * 0, MYRA_ELIMIT or MYRA_ENOMEM. */
int myi_slot_take(struct myi_slots *slots, enum myi_io_kind kind,
                  struct myi_io **io_out);

/* Gives it back under a new generation. io->inflight must be 0. */
void myi_slot_give(struct myi_slots *slots, struct myi_io *io);

/* The object in a slot, whatever its state; NULL past the end. */
struct myi_io *myi_slot_at(const struct myi_slots *slots, uint32_t slot);

#endif
