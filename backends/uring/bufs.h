/* SPDX-License-Identifier: MIT */
/*
 * The ring of receive buffers that the kernel picks from.
 *
 * Buffers come from the loop's pool with one lease each, which passes to the
 * kernel with the buffer and comes back with a completion that names it.
 *
 * Threads: the loop's.
 */
#ifndef MYI_BUFS_H
#define MYI_BUFS_H

#include <stddef.h>
#include <stdint.h>

#include "backends/uring/ring.h"

struct myra_buf;
struct myra_pool;

struct myi_bufs {
    struct myra_pool *pool;
    const struct myra_allocator *alloc;
    struct io_uring_buf_ring *shared; /* with the kernel */
    size_t shared_len;
    struct myra_buf **held; /* by buffer id; NULL: the id is free */
    uint16_t *free_ids;     /* a stack */
    uint32_t count;         /* a power of two */
    uint32_t free_id_count;
    uint32_t available; /* in the kernel's hands, as far as completions tell */
};

/* The one buffer group of a ring. */
#define MYI_BUFS_GROUP 0

/* An empty ring of count entries (a power of two, 1 .. 32768), registered
 * with ring. 0, or a negative code with the reason in why. */
int myi_bufs_open(struct myi_bufs *bufs, struct myi_ring *ring,
                  struct myra_pool *pool, uint32_t count,
                  struct myi_probe *why);

/* Takes the ring of buffers back from the kernel and gives all to the pool.
 * No receive may be under way. */
void myi_bufs_close(struct myi_bufs *bufs, struct myi_ring *ring);

/* Hands the kernel as many buffers as it lacks and the pool has. Returns how
 * many. */
unsigned myi_bufs_refill(struct myi_bufs *bufs);

/* The buffer of a completion, whose lease is now the caller's; NULL for an id
 * that the kernel does not hold. */
struct myra_buf *myi_bufs_take(struct myi_bufs *bufs, unsigned id);

#endif
