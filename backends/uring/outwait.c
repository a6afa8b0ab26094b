/* SPDX-License-Identifier: MIT */
/*
 * Waiting until a full socket takes bytes again, where the ring cannot.
 *
 * Every poll of the kernel's ring also ends at the peer's FIN. A send on a
 * full socket whose peer has ended its side therefore never sleeps: it is
 * tried many times and ends with -EAGAIN. An epoll descriptor can wait for
 * the room alone; the ring polls that one.
 */
#include "config.h"

#include "backends/uring/uring_priv.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#define OUT_BATCH 32

int myi_uring_out_wait(struct myi_uring *u, struct myi_io *io)
{
    struct myi_uring_io *p = myi_uring_priv(u, io);
    struct epoll_event event = {
        .events = EPOLLOUT | EPOLLONESHOT,
        .data.u64 = myi_user_data(MYI_OP_SEND, io),
    };
    const int op = p->state & MYI_S_OUT_KNOWN ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

    if (u->out_fd < 0) {
        u->be.syscalls++;
        u->out_fd = epoll_create1(EPOLL_CLOEXEC);
        if (u->out_fd < 0)
            return -errno;
    }
    u->be.syscalls++;
    if (epoll_ctl(u->out_fd, op, io->fd, &event) < 0)
        return -errno;
    p->state |= MYI_S_OUT_KNOWN | MYI_S_OUT_WAIT;
    return 0;
}

void myi_uring_out_arm(struct myi_uring *u)
{
    struct io_uring_sqe *sqe;

    if (u->out_fd < 0 || u->is_out_armed)
        return;
    sqe = myi_ring_sqe(&u->ring, NULL);
    if (!sqe)
        return;
    /* One-shot: each arming looks at the level again. */
    io_uring_prep_poll_add(sqe, u->out_fd, POLLIN);
    sqe->user_data = (uint64_t)MYI_OP_OUT << 56;
    u->is_out_armed = 1;
}

void myi_uring_out_take(struct myi_uring *u)
{
    struct epoll_event events[OUT_BATCH];
    int count;

    u->is_out_armed = 0;
    u->be.syscalls++;
    count = epoll_wait(u->out_fd, events, OUT_BATCH, 0);
    for (int i = 0; i < count; i++) {
        const uint64_t data = events[i].data.u64;
        struct myi_io *io = myi_io_at(&u->be, data >> 32 & 0xffffff,
                                      (uint32_t)data);
        struct myi_uring_io *p;

        if (!io || io->is_closing)
            continue;
        p = myi_uring_priv(u, io);
        if (!(p->state & MYI_S_OUT_WAIT))
            continue;
        p->state &= ~(unsigned)MYI_S_OUT_WAIT;
        p->state |= MYI_S_TELL_SEND;
        myi_uring_add_due(u, p);
    }
}

void myi_uring_out_close(struct myi_uring *u)
{
    if (u->out_fd >= 0)
        close(u->out_fd);
    u->out_fd = -1;
}
