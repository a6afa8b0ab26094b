/* SPDX-License-Identifier: MIT */
/*
 * The epoll backend: readiness made into completions.
 *
 * One thread. A send is tried at once, since a socket is nearly always
 * writable; only after EAGAIN is EPOLLOUT asked for. A receive takes as many
 * buffers as the descriptor filled the last time, so that a quiet connection
 * costs one recv a message and a busy one few a megabyte. Reports that have
 * no readiness behind them (a descriptor closed, a UNIX socket connected at
 * once, more to receive than one turn takes) wait on a list for the next
 * turn.
 *
 * Connections are edge-triggered: a level-triggered descriptor is polled a
 * second time by the next epoll_wait, to find that it was read empty. A read
 * that did not fill its buffers has emptied the socket (epoll(7), Q9), unless
 * the event told of an end as well. Every change of the mask tells of what is
 * ready once more. Listeners and outside descriptors are level-triggered.
 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "backends/epoll/epoll_priv.h"
#include "lib/base/alloc.h"

/* No slot: the loop's own eventfd. */
#define WAKE_TAG UINT64_MAX

static int probe(struct myi_probe *out)
{
    const int fd = epoll_create1(EPOLL_CLOEXEC);

    if (fd < 0) {
        out->err = -errno;
        snprintf(out->text, sizeof(out->text), "epoll_create1: %s",
                 strerror(-out->err));
        return out->err;
    }
    close(fd);
    return 0;
}

/* Home comes a buffer, on any thread, and somebody waits for it. */
static void on_buffer_home(void *ctx)
{
    struct epoll_loop *el = ctx;
    const uint64_t one = 1;

    __atomic_store_n(&el->has_buffers, 1, __ATOMIC_RELEASE);
    (void)!write(el->event_fd, &one, sizeof(one));
}

static int open_loop(struct myi_be *be,
                     const struct myi_backend_config *config,
                     struct myi_probe *why)
{
    struct epoll_loop *el = (struct epoll_loop *)be;
    struct epoll_event event = { .events = EPOLLIN,
                                 .data.u64 = WAKE_TAG };

    (void)config;
    el->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (el->epoll_fd < 0)
        goto fail;
    el->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (el->event_fd < 0)
        goto fail_epoll;
    if (epoll_ctl(el->epoll_fd, EPOLL_CTL_ADD, el->event_fd, &event) < 0)
        goto fail_event;
    return 0;

fail_event:
    why->err = -errno;
    close(el->event_fd);
    close(el->epoll_fd);
    return why->err;
fail_epoll:
    why->err = -errno;
    close(el->epoll_fd);
    return why->err;
fail:
    why->err = -errno;
    snprintf(why->text, sizeof(why->text), "epoll_create1: %s",
             strerror(-why->err));
    return why->err;
}

static void close_loop(struct myi_be *be)
{
    struct epoll_loop *el = (struct epoll_loop *)be;

    myra_pool_notify(be->pool, NULL, NULL);
    close(el->event_fd);
    close(el->epoll_fd);
}

/* ---- Interest ----------------------------------------------------------- */

static uint32_t wanted_mask(const struct epoll_io *eio, int kind)
{
    uint32_t mask = 0;

    if ((eio->wants & (WANT_RECV | WANT_ACCEPT)) != 0 &&
        (eio->wants & IS_STARVED) == 0)
        mask |= EPOLLIN | EPOLLRDHUP;
    if ((eio->wants & (WANT_SEND | WANT_CONNECT)) != 0)
        mask |= EPOLLOUT;
    if ((eio->wants & WANT_POLL_IN) != 0)
        mask |= EPOLLIN;
    if ((eio->wants & WANT_POLL_OUT) != 0)
        mask |= EPOLLOUT;
    return mask != 0 && kind == MYI_IO_CONN ? mask | EPOLLET : mask;
}

/* Tells the kernel what is wanted now, if it differs from what it knows.
 * With nothing wanted the descriptor is taken out: EPOLLHUP and EPOLLERR
 * cannot be masked and would spin. */
static int update(struct epoll_loop *el, struct myi_io *io)
{
    struct epoll_io *eio = myi_io_priv(&el->be, io);
    const uint32_t mask = wanted_mask(eio, io->kind);
    struct epoll_event event = {
        .events = mask,
        .data.u64 = (uint64_t)io->generation << 32 | io->slot,
    };
    int op;

    if (mask == eio->mask)
        return 0;
    if (mask == 0)
        op = EPOLL_CTL_DEL;
    else
        op = eio->mask == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    el->be.syscalls++;
    if (epoll_ctl(el->epoll_fd, op, io->fd, &event) < 0)
        return -errno;
    eio->mask = mask;
    return 0;
}

static int want(struct myi_be *be, struct myi_io *io, unsigned wants)
{
    struct epoll_loop *el = (struct epoll_loop *)be;
    struct epoll_io *eio = myi_io_priv(be, io);

    eio->wants |= (uint8_t)wants;
    return update(el, io);
}

static void unwant(struct myi_be *be, struct myi_io *io, unsigned wants)
{
    struct epoll_loop *el = (struct epoll_loop *)be;
    struct epoll_io *eio = myi_io_priv(be, io);

    eio->wants &= (uint8_t)~wants;
    (void)update(el, io);
}

static int accept_start(struct myi_be *be, struct myi_io *io)
{
    return want(be, io, WANT_ACCEPT);
}

static void accept_stop(struct myi_be *be, struct myi_io *io)
{
    unwant(be, io, WANT_ACCEPT);
}

static int recv_start(struct myi_be *be, struct myi_io *io)
{
    return want(be, io, WANT_RECV);
}

static void recv_stop(struct myi_be *be, struct myi_io *io)
{
    unwant(be, io, WANT_RECV);
}

static int poll_outside(struct myi_be *be, struct myi_io *io, int events)
{
    struct epoll_loop *el = (struct epoll_loop *)be;
    struct epoll_io *eio = myi_io_priv(be, io);

    eio->wants &= (uint8_t)~(WANT_POLL_IN | WANT_POLL_OUT);
    if ((events & POLLIN) != 0)
        eio->wants |= WANT_POLL_IN;
    if ((events & POLLOUT) != 0)
        eio->wants |= WANT_POLL_OUT;
    return update(el, io);
}

/* ---- Operations --------------------------------------------------------- */

/* A report for the next turn. */
static void defer(struct epoll_loop *el, struct myi_io *io)
{
    struct epoll_io *eio = myi_io_priv(&el->be, io);

    if ((eio->wants & IS_DEFERRED) != 0)
        return;
    eio->wants |= IS_DEFERRED;
    myi_slotlist_append(&el->be, &el->deferred, io, &eio->next_deferred);
}

void myi_epoll_defer(struct epoll_loop *el, struct myi_io *io)
{
    defer(el, io);
}

static int connect_start(struct myi_be *be, struct myi_io *io,
                         const struct sockaddr *addr, socklen_t addr_len)
{
    struct epoll_loop *el = (struct epoll_loop *)be;
    struct epoll_io *eio = myi_io_priv(be, io);
    int res;

    be->syscalls++;
    do {
        res = connect(io->fd, addr, addr_len);
    } while (res < 0 && errno == EINTR);
    if (res == 0) {
        eio->wants |= WANT_CONNECT;
        defer(el, io);
        return 0;
    }
    if (errno != EINPROGRESS)
        return -errno;
    return want(be, io, WANT_CONNECT);
}

static int send_start(struct myi_be *be, struct myi_io *io,
                      const struct iovec *iov, unsigned count)
{
    struct msghdr message;
    ssize_t res;

    do {
        be->syscalls++;
        if (count == 1) {
            res = send(io->fd, iov->iov_base, iov->iov_len,
                       MSG_NOSIGNAL | MSG_DONTWAIT);
        } else {
            memset(&message, 0, sizeof(message));
            message.msg_iov = (struct iovec *)(uintptr_t)iov;
            message.msg_iovlen = count;
            res = sendmsg(io->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        }
    } while (res < 0 && errno == EINTR);
    if (res >= 0)
        return (int)res;
    if (errno != EAGAIN && errno != EWOULDBLOCK)
        return -errno;
    return want(be, io, WANT_SEND);
}

static void close_io(struct myi_be *be, struct myi_io *io)
{
    struct epoll_loop *el = (struct epoll_loop *)be;
    struct epoll_io *eio = myi_io_priv(be, io);

    if (io->is_closing)
        return;
    io->is_closing = 1;
    eio->wants &= IS_STARVED | IS_DEFERRED;
    if (eio->mask != 0) {
        /* Before close(2): a copy of the descriptor elsewhere would keep the
         * registration alive. */
        be->syscalls++;
        (void)epoll_ctl(el->epoll_fd, EPOLL_CTL_DEL, io->fd, NULL);
        eio->mask = 0;
    }
    if (io->kind != MYI_IO_WATCH) {
        be->syscalls++;
        close(io->fd);
    }
    if ((eio->wants & IS_STARVED) != 0)
        myi_starved_remove(el, io);
    defer(el, io);
}

static int wake(struct myi_be *be)
{
    struct epoll_loop *el = (struct epoll_loop *)be;
    const uint64_t one = 1;

    if (write(el->event_fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
        return -errno;
    return 0;
}

/* ---- Reports ------------------------------------------------------------ */

/* Connections of one burst; the rest of the queue comes the next turn. */
#define ACCEPT_BURST 64

static void run_accept(struct epoll_loop *el, struct myi_io *io)
{
    struct epoll_io *eio = myi_io_priv(&el->be, io);

    for (int i = 0; i < ACCEPT_BURST; i++) {
        int fd;

        if (io->is_closing || (eio->wants & WANT_ACCEPT) == 0)
            return;
        el->be.syscalls++;
        fd = accept4(io->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && errno == EINTR)
            continue;
        if (fd < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return;
        if (fd < 0) {
            const int err = errno;

            if (err == EMFILE || err == ENFILE || err == ENOBUFS ||
                err == ENOMEM)
                unwant(&el->be, io, WANT_ACCEPT);
            el->be.sink->on_accept(&el->be, io, -err);
            return;
        }
        el->be.sink->on_accept(&el->be, io, fd);
    }
}

static void run_connect(struct epoll_loop *el, struct myi_io *io)
{
    struct epoll_io *eio = myi_io_priv(&el->be, io);
    socklen_t len = sizeof(int);
    int err = 0;

    el->be.syscalls++;
    if (getsockopt(io->fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0)
        err = errno;
    eio->wants &= (uint8_t)~WANT_CONNECT;
    el->be.sink->on_connect(&el->be, io, -err);
    if (!io->is_closing)
        (void)update(el, io);
}

static void run_poll(struct epoll_loop *el, struct myi_io *io,
                     uint32_t events)
{
    int revents = 0;

    if ((events & EPOLLIN) != 0)
        revents |= POLLIN;
    if ((events & EPOLLOUT) != 0)
        revents |= POLLOUT;
    if ((events & EPOLLERR) != 0)
        revents |= POLLERR;
    if ((events & EPOLLHUP) != 0)
        revents |= POLLHUP;
    el->be.sink->on_poll(&el->be, io, revents);
}

static void run_conn(struct epoll_loop *el, struct myi_io *io,
                     uint32_t events)
{
    struct epoll_io *eio = myi_io_priv(&el->be, io);

    if ((eio->wants & WANT_CONNECT) != 0) {
        run_connect(el, io);
        return;
    }
    if ((eio->wants & WANT_SEND) != 0 &&
        (events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) != 0) {
        eio->wants &= (uint8_t)~WANT_SEND;
        el->be.sink->on_send(&el->be, io, 0);
        el->be.sink->flush(&el->be);
    }
    if (!io->is_closing && (eio->wants & WANT_RECV) != 0 &&
        (events & RECV_EVENTS) != 0)
        myi_epoll_recv(el, io, (events & END_EVENTS) != 0);
    if (!io->is_closing)
        (void)update(el, io);
}

static void run_event(struct epoll_loop *el, const struct epoll_event *event)
{
    struct myi_io *io;

    if (event->data.u64 == WAKE_TAG) {
        uint64_t count;

        el->be.syscalls++;
        (void)!read(el->event_fd, &count, sizeof(count));
        el->be.sink->on_wake(&el->be);
        return;
    }
    io = myi_io_at(&el->be, (uint32_t)event->data.u64,
                   (uint32_t)(event->data.u64 >> 32));
    if (io == NULL || io->is_closing) {
        el->be.stale += io == NULL;
        return;
    }
    if (io->kind == MYI_IO_LISTENER)
        run_accept(el, io);
    else if (io->kind == MYI_IO_WATCH)
        run_poll(el, io, event->events);
    else
        run_conn(el, io, event->events);
}

/* What was put off since the last turn; reports may put off more. */
static int run_deferred(struct epoll_loop *el)
{
    struct myi_slotlist list = el->deferred;
    int count = 0;

    el->deferred.head = el->deferred.tail = 0;
    while (list.head != 0) {
        struct myi_io *io = myi_slotlist_io(&el->be, list.head);
        struct epoll_io *eio = myi_io_priv(&el->be, io);

        list.head = eio->next_deferred;
        eio->next_deferred = 0;
        eio->wants &= (uint8_t)~IS_DEFERRED;
        count++;
        if (io->is_closing) {
            el->be.sink->on_closed(&el->be, io);
        } else if ((eio->wants & WANT_CONNECT) != 0) {
            eio->wants &= (uint8_t)~WANT_CONNECT;
            el->be.sink->on_connect(&el->be, io, 0);
        } else if ((eio->wants & WANT_RECV) != 0) {
            myi_epoll_recv(el, io, 1);
        }
        el->be.sink->flush(&el->be);
    }
    return count;
}

static int timeout_ms(const struct epoll_loop *el, int64_t timeout_ns)
{
    if (el->deferred.head != 0 ||
        (el->starved.head != 0 &&
         __atomic_load_n(&el->has_buffers, __ATOMIC_ACQUIRE)))
        return 0;
    if (timeout_ns < 0)
        return -1;
    if (timeout_ns > INT64_C(1000000) * 1000 * 3600)
        return 1000 * 3600;
    /* Up: a timer must not find itself early and turn in place. */
    return (int)((timeout_ns + 999999) / 1000000);
}

static int wait_turn(struct myi_be *be, int64_t timeout_ns)
{
    struct epoll_loop *el = (struct epoll_loop *)be;
    int count, total;

    be->syscalls++;
    count = epoll_wait(el->epoll_fd, el->events, EPOLL_BATCH,
                       timeout_ms(el, timeout_ns));
    if (count < 0 && errno != EINTR)
        return -errno;
    be->sink->on_awake(be);
    total = run_deferred(el);
    for (int i = 0; i < count; i++) {
        run_event(el, &el->events[i]);
        be->sink->flush(be);
        total++;
    }
    myi_starved_resume(el);
    return total;
}

const struct myi_backend_ops myi_backend_epoll = {
    .name = "epoll",
    .loop_size = sizeof(struct epoll_loop),
    .io_size = sizeof(struct epoll_io),
    .max_gather = 16,
    .probe = probe,
    .open = open_loop,
    .close_loop = close_loop,
    .accept_start = accept_start,
    .accept_stop = accept_stop,
    .connect = connect_start,
    .recv_start = recv_start,
    .recv_stop = recv_stop,
    .send = send_start,
    .poll = poll_outside,
    .close = close_io,
    .wake = wake,
    .wait = wait_turn,
};

int myi_epoll_update(struct epoll_loop *el, struct myi_io *io)
{
    return update(el, io);
}

void myi_epoll_watch_pool(struct epoll_loop *el)
{
    __atomic_store_n(&el->has_buffers, 0, __ATOMIC_RELEASE);
    myra_pool_notify(el->be.pool, on_buffer_home, el);
}
