/* SPDX-License-Identifier: MIT */
/*
 * From what a descriptor should be doing to submissions.
 *
 * Everything here runs before an enter and calls no report.
 */
#include "config.h"

#include "backends/uring/uring_priv.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

/* Queues the main operation. 0, or -EAGAIN when there is no SQE. */
static int arm(struct myi_uring *u, struct myi_io *io, struct myi_uring_io *p)
{
    struct io_uring_sqe *sqe = myi_ring_sqe(&u->ring, NULL);

    if (!sqe)
        return -EAGAIN;
    switch (io->kind) {
    case MYI_IO_LISTENER:
        io_uring_prep_accept(sqe, io->fd, NULL, NULL,
                             SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (u->has_multi_accept)
            sqe->ioprio |= IORING_ACCEPT_MULTISHOT;
        sqe->user_data = myi_user_data(MYI_OP_ACCEPT, io);
        break;
    case MYI_IO_CONN:
        io_uring_prep_recv(sqe, io->fd, NULL, 0, 0);
        sqe->flags |= IOSQE_BUFFER_SELECT;
        sqe->buf_group = MYI_BUFS_GROUP;
        if (u->has_multi_recv && !u->be.is_tight)
            sqe->ioprio |= IORING_RECV_MULTISHOT;
        sqe->user_data = myi_user_data(MYI_OP_RECV, io);
        break;
    default:
        /* One-shot: each arming looks at the level again. */
        io_uring_prep_poll_add(sqe, io->fd, p->poll_events);
        p->poll_armed = p->poll_events;
        sqe->user_data = myi_user_data(MYI_OP_POLL, io);
        break;
    }
    p->state |= MYI_S_ARMED;
    io->inflight++;
    return 0;
}

static int cancel(struct myi_uring *u, struct myi_io *io, enum myi_uring_op op,
                  uint64_t target)
{
    struct io_uring_sqe *sqe = myi_ring_sqe(&u->ring, NULL);

    if (!sqe)
        return -EAGAIN;
    io_uring_prep_cancel64(sqe, target, 0);
    sqe->user_data = myi_user_data(op, io);
    io->inflight++;
    return 0;
}

static int cancel_main(struct myi_uring *u, struct myi_io *io,
                       struct myi_uring_io *p)
{
    static const enum myi_uring_op ops[] = {
        [MYI_IO_LISTENER] = MYI_OP_ACCEPT,
        [MYI_IO_CONN] = MYI_OP_RECV,
        [MYI_IO_WATCH] = MYI_OP_POLL,
    };
    const int err =
        cancel(u, io, MYI_OP_CANCEL_MAIN, myi_user_data(ops[io->kind], io));

    if (!err)
        p->state |= MYI_S_CANCEL;
    return err;
}

static int cancel_aux(struct myi_uring *u, struct myi_io *io,
                      struct myi_uring_io *p)
{
    const enum myi_uring_op op =
        p->state & MYI_S_SEND ? MYI_OP_SEND : MYI_OP_CONNECT;
    const int err = cancel(u, io, MYI_OP_CANCEL_AUX, myi_user_data(op, io));

    if (!err)
        p->state |= MYI_S_CANCEL_AUX;
    return err;
}

/* A receive that is armed on an empty buffer ring ends at once, even without
 * data; and nobody overtakes those that wait already. */
static int must_starve(const struct myi_uring *u, const struct myi_io *io)
{
    return io->kind == MYI_IO_CONN &&
           (u->bufs.available == 0 || !myi_list_is_empty(&u->starved));
}

static int settle_main(struct myi_uring *u, struct myi_io *io,
                       struct myi_uring_io *p)
{
    const int is_wanted = !io->is_closing && (p->state & MYI_S_WANT);

    if (p->state & MYI_S_ARMED) {
        if ((is_wanted && p->poll_armed == p->poll_events) ||
            (p->state & MYI_S_CANCEL))
            return 0;
        return cancel_main(u, io, p);
    }
    /* The end of a cancellation settles again, so that none can meet the
     * operation behind the one that it was made for. */
    if (!is_wanted || (p->state & (MYI_S_STARVED | MYI_S_CANCEL)))
        return 0;
    if (!must_starve(u, io))
        return arm(u, io, p);
    p->state |= MYI_S_STARVED | MYI_S_TELL_STARVED;
    myi_list_append(&u->starved, &p->starved);
    myi_uring_add_due(u, p);
    return 0;
}

static void settle(struct myi_uring *u, struct myi_uring_io *p)
{
    struct myi_io *io = myi_uring_io_of(u, p);
    int err = settle_main(u, io, p);

    if (!err && io->is_closing && (p->state & (MYI_S_SEND | MYI_S_CONNECT)) &&
        !(p->state & MYI_S_CANCEL_AUX))
        err = cancel_aux(u, io, p);
    if (err)
        myi_uring_add_todo(u, p);
    else if (io->is_closing && io->inflight == 0)
        myi_uring_add_due(u, p);
}

/* One pass over those that were queued when it began: what finds no SQE is
 * queued again. */
static void settle_todo(struct myi_uring *u)
{
    struct myi_uring_io *p = u->todo.first;
    struct myi_uring_io *next;

    u->todo.first = NULL;
    u->todo.last = NULL;
    for (; p; p = next) {
        next = p->todo_next;
        p->state &= ~(unsigned)MYI_S_TODO;
        settle(u, p);
    }
}

/* Lets the oldest of the starved go on, one for each buffer: more would only
 * find the ring empty again. */
static void feed_starved(struct myi_uring *u)
{
    uint32_t budget = u->bufs.available;
    struct myi_list *first;
    struct myi_uring_io *p;

    while (budget-- > 0 && (first = myi_list_first(&u->starved))) {
        p = MYI_CONTAINER(first, struct myi_uring_io, starved);
        if (arm(u, myi_uring_io_of(u, p), p) < 0)
            return;
        myi_uring_unstarve(p);
    }
}

static void bufs_came_home(void *ctx)
{
    myi_uring_signal(ctx, MYI_SIGNAL_BUFS);
}

static void feed(struct myi_uring *u)
{
    myi_bufs_refill(&u->bufs);
    if (MYRA_LIKELY(myi_list_is_empty(&u->starved)))
        return;
    if (u->bufs.available == 0) {
        myra_pool_notify(u->be.pool, bufs_came_home, u);
        /* One may have come home before the pool knew that we wait. */
        myi_bufs_refill(&u->bufs);
    }
    feed_starved(u);
}

static void arm_wake(struct myi_uring *u)
{
    struct io_uring_sqe *sqe = myi_ring_sqe(&u->ring, NULL);

    if (!sqe)
        return;
    io_uring_prep_poll_multishot(sqe, u->wake_fd, POLLIN);
    sqe->user_data = (uint64_t)MYI_OP_WAKE << 56;
    u->is_wake_armed = 1;
}

int myi_uring_prepare(struct myi_uring *u)
{
    /* A spinning loop reads the signals itself. */
    if (!u->is_wake_armed && !u->is_spin)
        arm_wake(u);
    myi_uring_out_arm(u);
    if (u->todo.first)
        settle_todo(u);
    feed(u);
    return !u->todo.first && !u->due.first &&
           (u->is_wake_armed || u->is_spin) &&
           (u->is_out_armed || u->out_fd < 0) &&
           (myi_list_is_empty(&u->starved) || u->bufs.available == 0);
}
