/* SPDX-License-Identifier: MIT */
/*
 * The backend uring-token: the kernel picks the receive buffers.
 *
 * One ring a loop. Accepts and receives re-arm themselves, a receive takes a
 * buffer (the token) from a ring of them only when bytes are there, and all
 * that a turn submits and waits for is one system call.
 */
#include "config.h"

#include "backends/uring/uring_priv.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* MSG_WAITALL: the kernel goes on by itself after a short write. The result
 * may be short all the same. */
#define SEND_FLAGS (MSG_NOSIGNAL | MSG_WAITALL)

static int fail(struct myi_probe *why, int err, const char *text)
{
    why->err = err;
    snprintf(why->text, sizeof(why->text), "%s: %s", text, myra_strerror(err));
    return err;
}

static int check_config(const struct myi_backend_config *config,
                        struct myi_probe *why)
{
    if (!myi_is_pow2(config->recv_buf_count) || config->recv_buf_count > 32768)
        return fail(why, MYRA_EINVAL, "number of receive buffers");
    if (config->off_features & MYI_FEAT_KERNEL_BUFS)
        return fail(why, MYRA_ENOTSUP, "uring-token without kernel buffers");
    return 0;
}

/* The ring and its buffer ring. Both count as locked memory, so where the
 * second does not fit the first is made smaller. */
static int open_rings(struct myi_uring *u, uint32_t buf_count,
                      struct myi_probe *why)
{
    struct myi_be *be = &u->be;
    unsigned size;
    int err = -ENOMEM;

    for (size = 0; size < MYI_RING_SIZES && err == -ENOMEM; size++) {
        err = myi_ring_open(&u->ring, be->alloc, size, &be->syscalls, why);
        if (err)
            return err;
        u->ring.is_unbatched = !(be->features & MYI_FEAT_BATCH);
        err = myi_bufs_open(&u->bufs, &u->ring, be->pool, buf_count, why);
        if (err)
            myi_ring_close(&u->ring);
    }
    return err;
}

static int token_open(struct myi_be *be,
                      const struct myi_backend_config *config,
                      struct myi_probe *why)
{
    struct myi_uring *u = myi_uring_of(be);
    int err = check_config(config, why);

    u->out_fd = -1;
    if (err)
        return err;
    be->features =
        (MYI_FEAT_KERNEL_BUFS | MYI_FEAT_BATCH | MYI_FEAT_MULTISHOT) &
        ~config->off_features;
    u->is_spin = config->is_spin != 0;
    u->has_multi_recv = (be->features & MYI_FEAT_MULTISHOT) != 0;
    u->has_multi_accept = u->has_multi_recv && !myi_uring_bad_multi_accept();
    myi_list_init(&u->starved);
    u->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (u->wake_fd < 0)
        return fail(why, -errno, "eventfd");
    err = open_rings(u, config->recv_buf_count, why);
    if (err) {
        close(u->wake_fd);
        u->wake_fd = -1;
    }
    return err;
}

static void token_close_loop(struct myi_be *be)
{
    struct myi_uring *u = myi_uring_of(be);

    myra_pool_notify(be->pool, NULL, NULL);
    myi_bufs_close(&u->bufs, &u->ring);
    myi_ring_close(&u->ring);
    myi_uring_out_close(u);
    close(u->wake_fd);
    u->wake_fd = -1;
}

static int main_start(struct myi_be *be, struct myi_io *io)
{
    struct myi_uring *u = myi_uring_of(be);
    struct myi_uring_io *p = myi_uring_priv(u, io);

    p->state |= MYI_S_WANT;
    /* While the end of an earlier stop is outstanding it does the arming. */
    if (!(p->state & (MYI_S_ARMED | MYI_S_STARVED)))
        myi_uring_add_todo(u, p);
    return 0;
}

static void main_stop(struct myi_be *be, struct myi_io *io)
{
    struct myi_uring *u = myi_uring_of(be);
    struct myi_uring_io *p = myi_uring_priv(u, io);

    p->state &= ~(unsigned)MYI_S_WANT;
    myi_uring_unstarve(p);
    if (p->state & MYI_S_ARMED)
        myi_uring_add_todo(u, p);
}

static int token_connect(struct myi_be *be, struct myi_io *io,
                         const struct sockaddr *addr, socklen_t addr_len)
{
    struct myi_uring *u = myi_uring_of(be);
    struct io_uring_sqe *sqe;
    union myi_ring_aux *aux;

    if (addr_len > sizeof(aux->addr))
        return -EINVAL;
    sqe = myi_ring_sqe(&u->ring, &aux);
    if (!sqe)
        return u->ring.err ? u->ring.err : -EAGAIN;
    memcpy(&aux->addr, addr, addr_len);
    io_uring_prep_connect(sqe, io->fd, (struct sockaddr *)&aux->addr,
                          addr_len);
    sqe->user_data = myi_user_data(MYI_OP_CONNECT, io);
    myi_uring_priv(u, io)->state |= MYI_S_CONNECT;
    io->inflight++;
    return 0;
}

static void prepare_gather(struct io_uring_sqe *sqe, int fd,
                           union myi_ring_aux *aux, const struct iovec *iov,
                           unsigned count)
{
    memset(&aux->send.msg, 0, sizeof(aux->send.msg));
    memcpy(aux->send.iov, iov, sizeof(*iov) * count);
    aux->send.msg.msg_iov = aux->send.iov;
    aux->send.msg.msg_iovlen = count;
    io_uring_prep_sendmsg(sqe, fd, &aux->send.msg, SEND_FLAGS);
}

static int token_send(struct myi_be *be, struct myi_io *io,
                      const struct iovec *iov, unsigned count)
{
    struct myi_uring *u = myi_uring_of(be);
    struct myi_uring_io *p = myi_uring_priv(u, io);
    struct io_uring_sqe *sqe;
    union myi_ring_aux *aux;

    if (count == 0 || count > MYI_RING_GATHER)
        return -EINVAL;
    sqe = myi_ring_sqe(&u->ring, &aux);
    if (!sqe) {
        p->state |= MYI_S_TELL_SEND;
        myi_uring_add_due(u, p);
        return 0;
    }
    if (count == 1)
        io_uring_prep_send(sqe, io->fd, iov->iov_base, iov->iov_len,
                           SEND_FLAGS);
    else
        prepare_gather(sqe, io->fd, aux, iov, count);
    sqe->user_data = myi_user_data(MYI_OP_SEND, io);
    p->state |= MYI_S_SEND;
    io->inflight++;
    return 0;
}

static int token_poll(struct myi_be *be, struct myi_io *io, int events)
{
    struct myi_uring *u = myi_uring_of(be);
    struct myi_uring_io *p = myi_uring_priv(u, io);

    p->poll_events = (uint16_t)(events & (POLLIN | POLLOUT));
    if (p->poll_events)
        p->state |= MYI_S_WANT;
    else
        p->state &= ~(unsigned)MYI_S_WANT;
    myi_uring_add_todo(u, p);
    return 0;
}

static void token_close(struct myi_be *be, struct myi_io *io)
{
    struct myi_uring *u = myi_uring_of(be);
    struct myi_uring_io *p = myi_uring_priv(u, io);

    if (io->is_closing)
        return;
    io->is_closing = 1;
    p->state &= ~(unsigned)MYI_S_WANT;
    myi_uring_unstarve(p);
    if (io->inflight == 0)
        myi_uring_add_due(u, p);
    else
        myi_uring_add_todo(u, p);
}

static int token_wake(struct myi_be *be)
{
    return myi_uring_signal(myi_uring_of(be), MYI_SIGNAL_WAKE);
}

static int token_wait(struct myi_be *be, int64_t timeout_ns)
{
    return myi_uring_turn(myi_uring_of(be), timeout_ns);
}

const struct myi_backend_ops myi_backend_uring_token = {
    .name = "uring-token",
    .loop_size = sizeof(struct myi_uring),
    .io_size = sizeof(struct myi_uring_io),
    .max_gather = MYI_RING_GATHER,
    .probe = myi_uring_probe,
    .open = token_open,
    .close_loop = token_close_loop,
    .accept_start = main_start,
    .accept_stop = main_stop,
    .connect = token_connect,
    .recv_start = main_start,
    .recv_stop = main_stop,
    .send = token_send,
    .poll = token_poll,
    .close = token_close,
    .wake = token_wake,
    .wait = token_wait,
};
