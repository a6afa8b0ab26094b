/* SPDX-License-Identifier: MIT */
/*
 * Receiving into buffers of the pool, and what happens when it is empty: the
 * descriptor leaves the kernel's set, waits its turn on a list, and comes
 * back when a buffer is home. The bytes stay in the socket, so that TCP slows
 * the peer.
 */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "backends/epoll/epoll_priv.h"

/* Receives of one descriptor before the others have their turn. */
#define RECV_ROUNDS 4

static void starve(struct epoll_loop *el, struct myi_io *io)
{
    struct epoll_io *eio = myi_io_priv(&el->be, io);

    if ((eio->wants & IS_STARVED) != 0)
        return;
    eio->wants |= IS_STARVED;
    if (el->starved.head == 0)
        myi_epoll_watch_pool(el);
    myi_slotlist_append(&el->be, &el->starved, io, &eio->next_starved);
    (void)myi_epoll_update(el, io);
    el->be.sink->on_starved(&el->be, io);
}

void myi_starved_remove(struct epoll_loop *el, struct myi_io *io)
{
    struct epoll_io *eio = myi_io_priv(&el->be, io);
    struct epoll_io *before = NULL;
    uint32_t link = el->starved.head;
    uint32_t before_link = 0;

    while (link != io->slot + 1) {
        before = myi_io_priv(&el->be, myi_slotlist_io(&el->be, link));
        before_link = link;
        link = before->next_starved;
    }
    if (before != NULL)
        before->next_starved = eio->next_starved;
    else
        el->starved.head = eio->next_starved;
    if (el->starved.tail == io->slot + 1)
        el->starved.tail = before_link;
    eio->next_starved = 0;
    eio->wants &= (uint8_t)~IS_STARVED;
}

/* As many as there are buffers, in the order of their coming. */
void myi_starved_resume(struct epoll_loop *el)
{
    uint32_t left;

    if (el->starved.head == 0)
        return;
    left = myra_pool_free_count(el->be.pool);
    while (el->starved.head != 0 && left > 0) {
        struct myi_io *io = myi_slotlist_io(&el->be, el->starved.head);

        myi_starved_remove(el, io);
        (void)myi_epoll_update(el, io);
        left--;
    }
    if (el->starved.head != 0) {
        myi_epoll_watch_pool(el);
        /* One that came home before the watch stood. */
        if (myra_pool_free_count(el->be.pool) > 0)
            __atomic_store_n(&el->has_buffers, 1, __ATOMIC_RELEASE);
    }
}

static unsigned acquire(struct epoll_loop *el, unsigned want,
                        struct myra_buf **bufs)
{
    unsigned count = 0;

    while (count < want && myra_pool_acquire(el->be.pool, &bufs[count]) == 0)
        count++;
    return count;
}

static ssize_t receive(struct epoll_loop *el, struct myi_io *io,
                       struct myra_buf **bufs, unsigned count)
{
    ssize_t res;

    do {
        el->be.syscalls++;
        if (count == 1) {
            res = recv(io->fd, bufs[0]->data, bufs[0]->cap, MSG_DONTWAIT);
        } else {
            struct iovec iov[RECV_BURST_MAX];
            struct msghdr message;

            memset(&message, 0, sizeof(message));
            for (unsigned i = 0; i < count; i++) {
                iov[i].iov_base = bufs[i]->data;
                iov[i].iov_len = bufs[i]->cap;
            }
            message.msg_iov = iov;
            message.msg_iovlen = count;
            res = recvmsg(io->fd, &message, MSG_DONTWAIT);
        }
    } while (res < 0 && errno == EINTR);
    return res < 0 ? -errno : res;
}

/* Hands over what was filled and gives the rest back; returns how many
 * buffers were filled. What came is reported even after a recv_stop. */
static unsigned report(struct epoll_loop *el, struct myi_io *io,
                       struct myra_buf **bufs, unsigned count, size_t len)
{
    unsigned used = 0;

    for (unsigned i = 0; i < count; i++) {
        const size_t part = len < bufs[i]->cap ? len : bufs[i]->cap;

        if (part == 0 || io->is_closing) {
            myra_buf_release(bufs[i]);
            continue;
        }
        len -= part;
        used++;
        el->be.sink->on_recv(&el->be, io, bufs[i], (int)part);
    }
    return used;
}

static void ended(struct epoll_loop *el, struct myi_io *io, int err)
{
    struct epoll_io *eio = myi_io_priv(&el->be, io);

    eio->wants &= (uint8_t)~WANT_RECV;
    el->be.sink->on_recv(&el->be, io, NULL, err);
}

void myi_epoll_recv(struct epoll_loop *el, struct myi_io *io, int is_to_end)
{
    struct epoll_io *eio = myi_io_priv(&el->be, io);

    for (int round = 0; round < RECV_ROUNDS; round++) {
        struct myra_buf *bufs[RECV_BURST_MAX];
        const unsigned count =
            acquire(el, el->be.is_tight ? 1 : eio->burst + 1u, bufs);
        ssize_t res;
        size_t cap = 0;
        unsigned used;

        if (count == 0) {
            starve(el, io);
            return;
        }
        for (unsigned i = 0; i < count; i++)
            cap += bufs[i]->cap;
        res = receive(el, io, bufs, count);
        used = report(el, io, bufs, count, res > 0 ? (size_t)res : 0);
        if (io->is_closing || res == -EAGAIN)
            return;
        if (res <= 0) {
            ended(el, io, (int)res);
            return;
        }
        if ((size_t)res < cap) {
            if (used * 2 <= eio->burst)
                eio->burst = (uint8_t)(used - 1);
            if (!is_to_end)
                return;
        } else {
            eio->burst = (uint8_t)(eio->burst * 2 + 1);
            if (eio->burst > RECV_BURST_MAX - 1)
                eio->burst = RECV_BURST_MAX - 1;
        }
        /* Starting again tells of what is left by itself. */
        if ((eio->wants & WANT_RECV) == 0)
            return;
        if (el->be.is_tight)
            break;
    }
    myi_epoll_defer(el, io);
}
