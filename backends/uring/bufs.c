/* SPDX-License-Identifier: MIT */
/*
 * Receive buffers in the kernel's hands.
 *
 * A buffer id is not a place in the ring: the kernel takes places in order,
 * completions come in any order, so an id is free again only when its own
 * completion was seen.
 */
#include "config.h"

#include "backends/uring/bufs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/alloc.h"

static int fail(struct myi_probe *why, int err, const char *text)
{
    why->err = err;
    if (err > -5000)
        snprintf(why->text, sizeof(why->text), "%s: %s", text, strerror(-err));
    else
        snprintf(why->text, sizeof(why->text), "%s", text);
    return err;
}

static void release_memory(struct myi_bufs *bufs)
{
    if (bufs->shared)
        munmap(bufs->shared, bufs->shared_len);
    myi_free(bufs->alloc, bufs->held, sizeof(*bufs->held) * bufs->count);
    myi_free(bufs->alloc, bufs->free_ids,
             sizeof(*bufs->free_ids) * bufs->count);
    memset(bufs, 0, sizeof(*bufs));
}

static int map_shared(struct myi_bufs *bufs)
{
    void *shared;

    bufs->shared_len = sizeof(struct io_uring_buf) * bufs->count;
    shared = mmap(NULL, bufs->shared_len, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return -errno;
    bufs->shared = shared;
    /* After a fork the first write would move our page away from the one
     * that the kernel reads. */
    (void)madvise(shared, bufs->shared_len, MADV_DONTFORK);
    return 0;
}

int myi_bufs_open(struct myi_bufs *bufs, struct myi_ring *ring,
                  struct myra_pool *pool, uint32_t count,
                  struct myi_probe *why)
{
    struct io_uring_buf_reg reg;
    uint32_t i;
    int err;

    memset(bufs, 0, sizeof(*bufs));
    bufs->pool = pool;
    bufs->alloc = ring->alloc;
    bufs->count = count;
    bufs->held = myi_alloc(bufs->alloc, sizeof(*bufs->held) * count);
    bufs->free_ids = myi_alloc(bufs->alloc, sizeof(*bufs->free_ids) * count);
    err = bufs->held && bufs->free_ids ? map_shared(bufs) : MYRA_ENOMEM;
    if (err) {
        release_memory(bufs);
        return fail(why, err, "no memory for the buffer ring");
    }
    for (i = 0; i < count; i++)
        bufs->free_ids[i] = (uint16_t)(count - 1 - i);
    bufs->free_id_count = count;

    memset(&reg, 0, sizeof(reg));
    reg.ring_addr = (uint64_t)(uintptr_t)bufs->shared;
    reg.ring_entries = count;
    reg.bgid = MYI_BUFS_GROUP;
    err = myi_ring_register(ring, IORING_REGISTER_PBUF_RING, &reg, 1);
    if (err < 0) {
        release_memory(bufs);
        return fail(why, err,
                    err == -ENOMEM ? "register a buffer ring (RLIMIT_MEMLOCK)"
                                   : "register a buffer ring");
    }
    return 0;
}

void myi_bufs_close(struct myi_bufs *bufs, struct myi_ring *ring)
{
    struct io_uring_buf_reg reg;
    uint32_t i;

    if (!bufs->held)
        return;
    if (getpid() == ring->opener_pid) {
        memset(&reg, 0, sizeof(reg));
        reg.bgid = MYI_BUFS_GROUP;
        /* Refused on another thread than the ring's; then the ring's own end
         * does it, and nothing is under way that could use a buffer. */
        (void)myi_ring_register(ring, IORING_UNREGISTER_PBUF_RING, &reg, 1);
    } else {
        bufs->shared = NULL; /* not mapped in a child */
    }
    for (i = 0; i < bufs->count; i++)
        myra_buf_release(bufs->held[i]);
    release_memory(bufs);
}

unsigned myi_bufs_refill(struct myi_bufs *bufs)
{
    const int mask = (int)bufs->count - 1;
    struct myra_buf *buf;
    unsigned added = 0;
    uint16_t id;

    while (bufs->free_id_count > 0) {
        if (myra_pool_acquire(bufs->pool, &buf) < 0)
            break;
        id = bufs->free_ids[--bufs->free_id_count];
        bufs->held[id] = buf;
        io_uring_buf_ring_add(bufs->shared, buf->data, buf->cap, id, mask,
                              (int)added);
        added++;
    }
    if (added > 0)
        io_uring_buf_ring_advance(bufs->shared, (int)added);
    bufs->available += added;
    return added;
}

struct myra_buf *myi_bufs_take(struct myi_bufs *bufs, unsigned id)
{
    struct myra_buf *buf;

    if (id >= bufs->count || !bufs->held[id])
        return NULL;
    buf = bufs->held[id];
    bufs->held[id] = NULL;
    bufs->free_ids[bufs->free_id_count++] = (uint16_t)id;
    bufs->available--;
    return buf;
}
