/* SPDX-License-Identifier: MIT */
/*
 * From completions to reports.
 *
 * An operation is over at its own last completion (the one without F_MORE),
 * never at that of its cancellation, and each of the former ends in
 * end_main or end_aux.
 */
#include "config.h"

#include "backends/uring/uring_priv.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTFD_LEN 8

/* Before each report: the owner reads its clock at the first one. */
static const struct myi_sink *sink_of(struct myi_uring *u)
{
    if (!u->is_awake) {
        u->is_awake = 1;
        u->be.sink->on_awake(&u->be);
    }
    u->reports++;
    return u->be.sink;
}

static void close_fd(struct myi_uring *u, int fd)
{
    u->be.syscalls++;
    close(fd);
}

static void op_ended(struct myi_uring *u, struct myi_io *io,
                     struct myi_uring_io *p)
{
    io->inflight--;
    if (io->inflight > 0)
        return;
    /* The owner may be waiting for just this, without a report. */
    u->reports++;
    if (io->is_closing)
        myi_uring_add_due(u, p);
}

static void end_main(struct myi_uring *u, struct myi_io *io,
                     struct myi_uring_io *p)
{
    p->state &= ~(unsigned)MYI_S_ARMED;
    p->poll_armed = 0;
    op_ended(u, io, p);
    if ((p->state & MYI_S_WANT) && !io->is_closing)
        myi_uring_add_todo(u, p);
}

static void stop_main(struct myi_uring *u, struct myi_uring_io *p)
{
    p->state &= ~(unsigned)MYI_S_WANT;
    if (p->state & MYI_S_ARMED)
        myi_uring_add_todo(u, p);
}

/* Errors of an accept that are of one connection, or pass by themselves. */
static int is_passing_accept_error(int err)
{
    switch (err) {
    case -EINTR:
    case -EAGAIN:
    case -ECANCELED:
    case -ECONNABORTED:
    case -EPROTO:
    case -EPERM: /* a packet filter's no */
    case -ENETDOWN:
    case -EHOSTDOWN:
    case -ENONET:
    case -EHOSTUNREACH:
    case -ENETUNREACH:
        return 1;
    default:
        return 0;
    }
}

static void complete_accept(struct myi_uring *u, struct myi_io *io,
                            struct myi_uring_io *p, const struct myi_cqe *cqe)
{
    if (io->is_closing) {
        if (cqe->res >= 0)
            close_fd(u, cqe->res);
        return;
    }
    if (cqe->res >= 0) {
        sink_of(u)->on_accept(&u->be, io, cqe->res);
        return;
    }
    if (cqe->res == -EINTR || cqe->res == -EAGAIN || cqe->res == -ECANCELED)
        return;
    if (!is_passing_accept_error(cqe->res))
        stop_main(u, p);
    sink_of(u)->on_accept(&u->be, io, cqe->res);
}

static void starve(struct myi_uring *u, struct myi_io *io,
                   struct myi_uring_io *p)
{
    if (!(p->state & MYI_S_WANT) || (p->state & MYI_S_ARMED) || io->is_closing)
        return;
    if (!(p->state & MYI_S_STARVED)) {
        p->state |= MYI_S_STARVED;
        myi_list_append(&u->starved, &p->starved);
    }
    sink_of(u)->on_starved(&u->be, io);
}

static void complete_recv(struct myi_uring *u, struct myi_io *io,
                          struct myi_uring_io *p, const struct myi_cqe *cqe,
                          struct myra_buf *buf)
{
    if (io->is_closing) {
        myra_buf_release(buf);
        return;
    }
    if (cqe->res > 0) {
        if (buf)
            sink_of(u)->on_recv(&u->be, io, buf, cqe->res);
        else
            u->ring.err = MYRA_FATAL_RING; /* bytes, but where? */
        return;
    }
    myra_buf_release(buf);
    switch (cqe->res) {
    case -ENOBUFS:
        starve(u, io, p);
        break;
    case -ECANCELED: /* recv_stop */
    case -EINTR:
    case -EAGAIN:
        break;
    default:
        stop_main(u, p);
        sink_of(u)->on_recv(&u->be, io, NULL, cqe->res);
        break;
    }
}

static void complete_poll(struct myi_uring *u, struct myi_io *io,
                          struct myi_uring_io *p, const struct myi_cqe *cqe)
{
    const int asked = p->poll_events | POLLERR | POLLHUP;

    if (io->is_closing || !(p->state & MYI_S_WANT))
        return;
    if (cqe->res > 0) {
        if (cqe->res & asked)
            sink_of(u)->on_poll(&u->be, io, cqe->res & asked);
        return;
    }
    if (cqe->res == -ECANCELED || cqe->res == -EINTR || cqe->res == -EAGAIN)
        return;
    /* A descriptor that cannot be polled: told once. */
    stop_main(u, p);
    sink_of(u)->on_poll(&u->be, io, POLLERR);
}

/* An operation of the main kind: 1 completion or, multishot, many. */
static void complete_main(struct myi_uring *u, struct myi_io *io,
                          enum myi_uring_op op, const struct myi_cqe *cqe,
                          struct myra_buf *buf)
{
    struct myi_uring_io *p = myi_uring_priv(u, io);

    if (!(cqe->flags & IORING_CQE_F_MORE))
        end_main(u, io, p);
    if (op == MYI_OP_ACCEPT)
        complete_accept(u, io, p, cqe);
    else if (op == MYI_OP_RECV)
        complete_recv(u, io, p, cqe, buf);
    else
        complete_poll(u, io, p, cqe);
}

static void complete_aux(struct myi_uring *u, struct myi_io *io,
                         enum myi_uring_op op, const struct myi_cqe *cqe)
{
    struct myi_uring_io *p = myi_uring_priv(u, io);

    p->state &= ~(unsigned)(MYI_S_SEND | MYI_S_CONNECT);
    op_ended(u, io, p);
    if (io->is_closing)
        return;
    if (op == MYI_OP_CONNECT)
        sink_of(u)->on_connect(&u->be, io, cqe->res < 0 ? cqe->res : 0);
    else if (cqe->res == -EAGAIN && myi_uring_out_wait(u, io) == 0)
        return;
    else if (cqe->res == -EAGAIN || cqe->res == -EINTR)
        sink_of(u)->on_send(&u->be, io, 0);
    else
        sink_of(u)->on_send(&u->be, io, cqe->res);
}

/* A cancellation that found its target says 0; the target's own end comes by
 * itself. One that did not, while the target goes on, is made again; a
 * closing connection that does not let go then is shut down. */
static void complete_cancel(struct myi_uring *u, struct myi_io *io,
                            enum myi_uring_op op, const struct myi_cqe *cqe)
{
    const uint32_t flag =
        op == MYI_OP_CANCEL_MAIN ? MYI_S_CANCEL : MYI_S_CANCEL_AUX;
    const uint32_t targets =
        op == MYI_OP_CANCEL_MAIN ? MYI_S_ARMED : MYI_S_SEND | MYI_S_CONNECT;
    struct myi_uring_io *p = myi_uring_priv(u, io);

    p->state &= ~flag;
    op_ended(u, io, p);
    if (p->state & (targets | MYI_S_WANT))
        myi_uring_add_todo(u, p);
    if (cqe->res >= 0 || !io->is_closing || !(p->state & targets))
        return;
    if ((p->state & MYI_S_STUBBORN) && io->kind != MYI_IO_WATCH) {
        u->be.syscalls++;
        shutdown(io->fd, SHUT_RDWR);
    }
    p->state |= MYI_S_STUBBORN;
}

static void complete_wake(struct myi_uring *u, const struct myi_cqe *cqe)
{
    uint64_t count;

    if (!(cqe->flags & IORING_CQE_F_MORE))
        u->is_wake_armed = 0;
    u->be.syscalls++;
    /* EAGAIN: a wake whose count an earlier read has taken. */
    if (read(u->wake_fd, &count, EVENTFD_LEN) < 0)
        return;
}

/* Is the operation that a completion speaks of under way? */
static int is_under_way(struct myi_uring *u, struct myi_io *io,
                        enum myi_uring_op op)
{
    static const uint32_t flags[] = {
        [MYI_OP_ACCEPT] = MYI_S_ARMED,
        [MYI_OP_RECV] = MYI_S_ARMED,
        [MYI_OP_POLL] = MYI_S_ARMED,
        [MYI_OP_SEND] = MYI_S_SEND,
        [MYI_OP_CONNECT] = MYI_S_CONNECT,
        [MYI_OP_CANCEL_MAIN] = MYI_S_CANCEL,
        [MYI_OP_CANCEL_AUX] = MYI_S_CANCEL_AUX,
    };

    return op >= MYI_OP_ACCEPT && op <= MYI_OP_CANCEL_AUX &&
           (myi_uring_priv(u, io)->state & flags[op]);
}

static void drop_stale(struct myi_uring *u, enum myi_uring_op op,
                       const struct myi_cqe *cqe, struct myra_buf *buf)
{
    u->be.stale++;
    myra_buf_release(buf);
    if (op == MYI_OP_ACCEPT && cqe->res >= 0)
        close_fd(u, cqe->res);
}

static void complete(struct myi_uring *u, const struct myi_cqe *cqe)
{
    const enum myi_uring_op op = (enum myi_uring_op)(cqe->user_data >> 56);
    struct myra_buf *buf = NULL;
    struct myi_io *io;

    if (op == MYI_OP_WAKE) {
        complete_wake(u, cqe);
        return;
    }
    if (op == MYI_OP_OUT) {
        myi_uring_out_take(u);
        return;
    }
    io = myi_io_at(&u->be, cqe->user_data >> 32 & 0xffffff,
                   (uint32_t)cqe->user_data);
    if (op == MYI_OP_RECV && (cqe->flags & IORING_CQE_F_BUFFER))
        buf = myi_bufs_take(&u->bufs, cqe->flags >> IORING_CQE_BUFFER_SHIFT);
    if (MYRA_UNLIKELY(!io || !is_under_way(u, io, op))) {
        drop_stale(u, op, cqe, buf);
        return;
    }
    switch (op) {
    case MYI_OP_SEND:
    case MYI_OP_CONNECT:
        complete_aux(u, io, op, cqe);
        break;
    case MYI_OP_CANCEL_MAIN:
    case MYI_OP_CANCEL_AUX:
        complete_cancel(u, io, op, cqe);
        break;
    default:
        complete_main(u, io, op, cqe, buf);
        break;
    }
}

static void finish_close(struct myi_uring *u, struct myi_io *io,
                         struct myi_uring_io *p)
{
    myi_uring_unstarve(p);
    if (io->kind != MYI_IO_WATCH)
        close_fd(u, io->fd);
    io->fd = -1;
    sink_of(u)->on_closed(&u->be, io);
}

static void report_due(struct myi_uring *u, struct myi_uring_io *p)
{
    struct myi_io *io = myi_uring_io_of(u, p);
    const uint32_t state = p->state;

    p->state &= ~(unsigned)(MYI_S_TELL_SEND | MYI_S_TELL_STARVED);
    if (io->is_closing) {
        if (io->inflight > 0)
            return; /* its last completion makes it due again */
        if (state & MYI_S_TODO)
            myi_uring_add_due(u, p); /* once it is off that list */
        else
            finish_close(u, io, p);
        return;
    }
    if (state & MYI_S_TELL_STARVED)
        sink_of(u)->on_starved(&u->be, io);
    if ((state & MYI_S_TELL_SEND) && !io->is_closing)
        sink_of(u)->on_send(&u->be, io, 0);
}

/* One pass over what was due when it began. */
static void report_all_due(struct myi_uring *u)
{
    struct myi_uring_io *p = u->due.first;
    struct myi_uring_io *next;

    u->due.first = NULL;
    u->due.last = NULL;
    for (; p; p = next) {
        next = p->due_next;
        p->state &= ~(unsigned)MYI_S_DUE;
        report_due(u, p);
    }
}

static void report_signals(struct myi_uring *u)
{
    const uint32_t signals =
        __atomic_exchange_n(&u->signals, 0, __ATOMIC_SEQ_CST);

    if (signals & MYI_SIGNAL_WAKE)
        sink_of(u)->on_wake(&u->be);
}

void myi_uring_dispatch(struct myi_uring *u)
{
    unsigned left = myi_ring_ready(&u->ring);
    struct myi_cqe cqe;

    while (!u->ring.err && myi_ring_take(&u->ring, &left, &cqe))
        complete(u, &cqe);
    if (__atomic_load_n(&u->signals, __ATOMIC_RELAXED))
        report_signals(u);
    if (u->due.first)
        report_all_due(u);
}
