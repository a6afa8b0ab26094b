/* SPDX-License-Identifier: MIT */
/*
 * The loop and the descriptor as the io_uring backend keeps them.
 *
 * Each descriptor has at most one main operation (accept, receive or poll, by
 * its kind) and one other (send or connect) in flight. What it should be
 * doing stands in state; settle compares that with what is in flight and
 * makes the SQEs. So start and stop only change state, in any order and as
 * often as they like, and every end of a main operation leads to one place.
 */
#ifndef MYI_URING_PRIV_H
#define MYI_URING_PRIV_H

#include <stdint.h>

#include "backends/backend.h"
#include "backends/uring/bufs.h"
#include "backends/uring/ring.h"
#include "lib/base/list.h"

/* The operation in the top byte of user_data; slot (24 bits) and generation
 * (32 bits) are below it. */
enum myi_uring_op {
    MYI_OP_WAKE = 1,
    MYI_OP_ACCEPT,
    MYI_OP_RECV,
    MYI_OP_POLL,
    MYI_OP_SEND,
    MYI_OP_CONNECT,
    MYI_OP_CANCEL_MAIN,
    MYI_OP_CANCEL_AUX,
    MYI_OP_OUT
};

enum {
    MYI_S_WANT = 1 << 0,    /* the main operation should run */
    MYI_S_ARMED = 1 << 1,   /* it does */
    MYI_S_CANCEL = 1 << 2,  /* its cancellation is in flight */
    MYI_S_SEND = 1 << 3,    /* a send is in flight */
    MYI_S_CONNECT = 1 << 4, /* a connect is in flight */
    MYI_S_CANCEL_AUX = 1 << 5,
    MYI_S_STARVED = 1 << 6,   /* on u->starved */
    MYI_S_TODO = 1 << 7,      /* on u->todo */
    MYI_S_DUE = 1 << 8,       /* on u->due */
    MYI_S_TELL_SEND = 1 << 9, /* an on_send of 0 is owed */
    MYI_S_TELL_STARVED = 1 << 10,
    MYI_S_STUBBORN = 1 << 11,  /* a cancellation did not find its target */
    MYI_S_OUT_WAIT = 1 << 12,  /* on_send comes when there is room */
    MYI_S_OUT_KNOWN = 1 << 13  /* to out_fd */
};

/* A descriptor's state, io_priv_offset behind its struct myi_io. */
struct myi_uring_io {
    struct myi_list starved;
    struct myi_uring_io *todo_next;
    struct myi_uring_io *due_next;
    uint32_t state;
    uint16_t poll_events; /* wanted */
    uint16_t poll_armed;  /* in flight */
};

struct myi_uring_queue {
    struct myi_uring_io *first;
    struct myi_uring_io *last;
};

/* Why the loop should not block, set by other threads. */
enum {
    MYI_SIGNAL_WAKE = 1 << 0,
    MYI_SIGNAL_BUFS = 1 << 1 /* a buffer came home while some starve */
};

struct myi_uring {
    struct myi_be be;
    struct myi_ring ring;
    struct myi_bufs bufs;
    struct myi_list starved;     /* waiting for buffers, oldest first */
    struct myi_uring_queue todo; /* to be settled before the next enter */
    struct myi_uring_queue due;  /* reports owed after it */
    uint32_t signals;            /* MYI_SIGNAL_, atomic */
    uint32_t is_parked;          /* in a blocking enter, atomic */
    int wake_fd;
    int out_fd; /* see outwait.c; -1: not needed yet */
    int reports; /* of this turn */
    uint8_t is_spin;
    uint8_t is_awake; /* on_awake was called in this turn */
    uint8_t is_wake_armed;
    uint8_t is_out_armed;
    uint8_t has_multi_accept;
    uint8_t has_multi_recv;
};

static inline struct myi_uring *myi_uring_of(struct myi_be *be)
{
    return (struct myi_uring *)(void *)be;
}

static inline struct myi_uring_io *myi_uring_priv(struct myi_uring *u,
                                                  struct myi_io *io)
{
    return myi_io_priv(&u->be, io);
}

static inline struct myi_io *myi_uring_io_of(const struct myi_uring *u,
                                             struct myi_uring_io *p)
{
    return (struct myi_io *)(void *)((uint8_t *)p - u->be.io_priv_offset);
}

static inline uint64_t myi_user_data(enum myi_uring_op op,
                                     const struct myi_io *io)
{
    return (uint64_t)op << 56 | (uint64_t)io->slot << 32 | io->generation;
}

/* Has p settled before the next enter. Idempotent. */
static inline void myi_uring_add_todo(struct myi_uring *u,
                                      struct myi_uring_io *p)
{
    if (p->state & MYI_S_TODO)
        return;
    p->state |= MYI_S_TODO;
    p->todo_next = NULL;
    if (u->todo.last)
        u->todo.last->todo_next = p;
    else
        u->todo.first = p;
    u->todo.last = p;
}

/* Has what is owed to p's owner reported in this turn, or in the next when
 * none is running. Idempotent. */
static inline void myi_uring_add_due(struct myi_uring *u,
                                     struct myi_uring_io *p)
{
    if (p->state & MYI_S_DUE)
        return;
    p->state |= MYI_S_DUE;
    p->due_next = NULL;
    if (u->due.last)
        u->due.last->due_next = p;
    else
        u->due.first = p;
    u->due.last = p;
}

/* Takes p off the list of those that wait for buffers. Idempotent. */
static inline void myi_uring_unstarve(struct myi_uring_io *p)
{
    if (!(p->state & MYI_S_STARVED))
        return;
    p->state &= ~(unsigned)MYI_S_STARVED;
    myi_list_remove(&p->starved);
}

/* settle.c: from state to SQEs. Queues the SQEs of all on u->todo, gives the
 * kernel buffers and lets as many of the starved go on as there are buffers.
 * Returns 1 when the loop may block now. */
int myi_uring_prepare(struct myi_uring *u);

/* complete.c: from completions to reports. */
void myi_uring_dispatch(struct myi_uring *u);

/* outwait.c: tells on_send(0) for io when its socket has room. 0, or a
 * negative errno. */
int myi_uring_out_wait(struct myi_uring *u, struct myi_io *io);

/* outwait.c: before an enter; at the completion of MYI_OP_OUT; at the end. */
void myi_uring_out_arm(struct myi_uring *u);
void myi_uring_out_take(struct myi_uring *u);
void myi_uring_out_close(struct myi_uring *u);

/* turn.c: the wait of the contract. */
int myi_uring_turn(struct myi_uring *u, int64_t timeout_ns);

/* turn.c: sets a MYI_SIGNAL_ bit and ends a blocking wait. Any thread,
 * async-signal-safe. 0 or a negative errno. */
int myi_uring_signal(struct myi_uring *u, uint32_t bit);

/* probe.c */
int myi_uring_probe(struct myi_probe *out);

/* probe.c: whether multishot accept on this kernel is known to report wrong
 * descriptors. */
int myi_uring_bad_multi_accept(void);

/* probe.c: forgets the cached answer. For tests. */
void myi_uring_probe_reset(void);

#endif
