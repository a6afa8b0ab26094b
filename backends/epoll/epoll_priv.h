/* SPDX-License-Identifier: MIT */
/* The epoll backend's structs. */
#ifndef MYI_EPOLL_PRIV_H
#define MYI_EPOLL_PRIV_H

#include <sys/epoll.h>

#include "backends/backend.h"

#define EPOLL_BATCH 256

/* Most buffers of one receive. */
#define RECV_BURST_MAX 8

enum {
    WANT_RECV = 1 << 0,
    WANT_ACCEPT = 1 << 1,
    WANT_SEND = 1 << 2,
    WANT_CONNECT = 1 << 3,
    WANT_POLL_IN = 1 << 4,
    WANT_POLL_OUT = 1 << 5,
    IS_STARVED = 1 << 6, /* on el->starved: not in the kernel's set */
    IS_DEFERRED = 1 << 7 /* on el->deferred */
};

/* What may end a stream, and what makes a receive worth trying. */
#define END_EVENTS ((uint32_t)(EPOLLRDHUP | EPOLLERR | EPOLLHUP))
#define RECV_EVENTS (END_EVENTS | (uint32_t)EPOLLIN)

/* Per descriptor. The lists hold slot + 1, 0 is the end. */
struct epoll_io {
    uint32_t next_deferred;
    uint32_t next_starved;
    uint32_t mask; /* what the kernel was told */
    uint8_t wants;
    uint8_t burst; /* buffers of the next receive, less one */
};

struct myi_slotlist {
    uint32_t head;
    uint32_t tail;
};

struct epoll_loop {
    struct myi_be be;
    int epoll_fd;
    int event_fd;
    struct myi_slotlist deferred;
    struct myi_slotlist starved; /* first come, first served */
    int has_buffers;             /* one came home while somebody starved */
    struct epoll_event events[EPOLL_BATCH];
};

static inline struct myi_io *myi_slotlist_io(const struct myi_be *be,
                                             uint32_t link)
{
    const uint32_t slot = link - 1;

    return (struct myi_io *)(void *)(be->slot_chunks[slot >> MYI_SLOT_SHIFT] +
                                     (size_t)(slot & (MYI_SLOT_CHUNK - 1)) *
                                         be->slot_stride);
}

/* next is the io's own link field for this list, 0 when it is on none. */
static inline void myi_slotlist_append(const struct myi_be *be,
                                       struct myi_slotlist *list,
                                       struct myi_io *io, uint32_t *next)
{
    const size_t offset = (size_t)((uint8_t *)next - (uint8_t *)io);

    *next = 0;
    if (list->tail != 0) {
        struct myi_io *last = myi_slotlist_io(be, list->tail);

        *(uint32_t *)(void *)((uint8_t *)last + offset) = io->slot + 1;
    } else {
        list->head = io->slot + 1;
    }
    list->tail = io->slot + 1;
}

/* epoll.c: tells the kernel what io wants now. */
int myi_epoll_update(struct epoll_loop *el, struct myi_io *io);

/* epoll.c: has_buffers will be set when a buffer comes home. */
void myi_epoll_watch_pool(struct epoll_loop *el);

/* epoll.c: io has a report for the next turn, or more to receive. */
void myi_epoll_defer(struct epoll_loop *el, struct myi_io *io);

/* recv.c: takes what the descriptor has and reports it. is_to_end: a short
 * read is not the last, since the stream may have ended. */
void myi_epoll_recv(struct epoll_loop *el, struct myi_io *io, int is_to_end);
void myi_starved_remove(struct epoll_loop *el, struct myi_io *io);
void myi_starved_resume(struct epoll_loop *el);

#endif
