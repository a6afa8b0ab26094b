/* SPDX-License-Identifier: MIT */
/*
 * A connection's life, from its slot to its last callback. What the two
 * directions do stands in recv.c and send.c.
 */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/base/checked.h"
#include "lib/net/net_priv.h"

int myi_conn_new(struct myra_loop *loop, const struct myi_conf *conf,
                 const struct myra_conn_events *events, void *user,
                 struct myra_conn **conn_out)
{
    struct myi_io *io;
    struct myra_conn *conn;

    MYRA_TRY(myi_slot_take(&loop->slots, MYI_IO_CONN, &io));
    conn = myi_conn_of(io);
    conn->loop = loop;
    conn->conf = conf;
    conn->events = events;
    conn->user = user;
    myra_timer_init(&conn->timer, myi_conn_timer, NULL);
    loop->stats.conns++;
    *conn_out = conn;
    return 0;
}

enum myra_close_reason myi_reason_of(int err)
{
    switch (err) {
    case -ECONNRESET:
    case -EPIPE:
    case -ENOTCONN:
    case -ECONNABORTED:
        return MYRA_CLOSE_RESET;
    case -ETIMEDOUT:
        return MYRA_CLOSE_TIMEOUT;
    default:
        return MYRA_CLOSE_ERROR;
    }
}

void myi_conn_end(struct myra_conn *conn, enum myra_close_reason reason,
                  int err)
{
    if (conn->state == MYI_DYING)
        return;
    conn->state = MYI_DYING;
    conn->reason = (uint8_t)reason;
    conn->err = err;
    conn->flags &= (uint16_t)~MYI_F_RECV_ON;
    conn->loop->ops->close(conn->loop->be, &conn->io);
}

void myi_on_closed(struct myi_be *be, struct myi_io *io)
{
    struct myra_loop *loop = myi_loop_of(be);
    struct myra_conn *conn = myi_conn_of(io);

    io->fd = -1;
    if (io->kind == MYI_IO_LISTENER) {
        myi_listener_ended((struct myra_listener *)io);
    } else if (io->kind == MYI_IO_CONN) {
        myra_timer_stop(loop, &conn->timer);
        loop->stats.conns--;
        loop->stats.closes++;
        if (conn->listener != NULL)
            conn->listener->conn_count--;
        if (conn->events->on_closed != NULL)
            conn->events->on_closed(conn,
                                    (enum myra_close_reason)conn->reason,
                                    conn->err, conn->user);
        myi_queue_clear(conn, &conn->rx);
        myi_queue_clear(conn, &conn->tx);
        myi_listener_fd_freed(loop);
    }
    myi_loop_bury(loop, io);
}

void myi_conn_opened(struct myra_conn *conn)
{
    conn->state = MYI_OPEN;
    conn->deadline_ms = 0;
    if (conn->events->on_open != NULL)
        conn->events->on_open(conn, conn->user);
    if (conn->state == MYI_OPEN)
        myi_recv_update(conn);
    if (conn->tx_bytes > 0 || (conn->flags & MYI_F_SHUT_WANTED) != 0)
        myi_send_mark(conn);
}

void myi_conn_make_ready(struct myra_conn *conn)
{
    struct myra_loop *loop = conn->loop;

    if ((conn->flags & MYI_F_READY) != 0)
        return;
    conn->flags |= MYI_F_READY;
    conn->ready_next = NULL;
    *loop->ready_end = conn;
    loop->ready_end = &conn->ready_next;
}

/* ---- Deadlines ---------------------------------------------------------- */

void myi_conn_arm(struct myra_conn *conn, uint64_t at_ms)
{
    struct myra_loop *loop = conn->loop;

    conn->deadline_ms = at_ms;
    /* A timer that runs already and fires earlier finds the new deadline by
     * itself: so moving it on, as every request does, is one store. */
    if (myi_timer_is_running(&conn->timer)) {
        if (conn->timer.expiry_ms <= at_ms)
            return;
        myi_wheel_remove(&loop->wheel, &conn->timer);
    }
    myi_wheel_add(&loop->wheel, &conn->timer, at_ms);
}

/* Rounded up, so that a deadline is never early. */
static uint64_t deadline_after(struct myra_loop *loop, uint64_t after_ns)
{
    uint64_t limit;

    myi_loop_touch(loop);
    limit = UINT64_MAX - loop->now_ns - MYI_MS_NS;
    if (after_ns > limit)
        after_ns = limit;
    return (loop->now_ns + after_ns + MYI_MS_NS - 1) / MYI_MS_NS;
}

void myra_conn_set_deadline(struct myra_conn *conn, uint64_t after_ns)
{
    if (conn->state >= MYI_CLOSING || conn->state == MYI_CONNECTING)
        return;
    if (after_ns == 0)
        conn->deadline_ms = 0;
    else
        myi_conn_arm(conn, deadline_after(conn->loop, after_ns));
}

void myi_conn_timer(struct myra_loop *loop, struct myra_timer *timer)
{
    struct myra_conn *conn =
        MYI_CONTAINER(timer, struct myra_conn, timer);
    const uint64_t now_ms = myi_loop_now_ms(loop);

    if (conn->deadline_ms == 0 || conn->state == MYI_DYING)
        return;
    if (conn->deadline_ms > now_ms) {
        myi_wheel_add(&loop->wheel, timer, conn->deadline_ms);
        return;
    }
    conn->deadline_ms = 0;
    if (conn->state == MYI_CONNECTING)
        myi_conn_end(conn, MYRA_CLOSE_CONNECT, -ETIMEDOUT);
    else if (conn->state == MYI_CLOSING || conn->events->on_deadline == NULL)
        myi_conn_end(conn, MYRA_CLOSE_TIMEOUT, MYRA_ETIMEOUT);
    else
        conn->events->on_deadline(conn, conn->user);
}

/* ---- Ending ------------------------------------------------------------- */

void myra_conn_shutdown(struct myra_conn *conn)
{
    if (conn->state >= MYI_CLOSING)
        return;
    conn->flags |= MYI_F_SHUT_WANTED;
    myi_send_mark(conn);
}

void myra_conn_close(struct myra_conn *conn)
{
    if (conn->state >= MYI_CLOSING)
        return;
    if (conn->state == MYI_CONNECTING) {
        myi_conn_end(conn, MYRA_CLOSE_LOCAL, 0);
        return;
    }
    conn->state = MYI_CLOSING;
    conn->reason = MYRA_CLOSE_LOCAL;
    conn->flags |= MYI_F_SHUT_WANTED;
    conn->flags &= (uint16_t)~(MYI_F_PAUSED | MYI_F_STALLED);
    if ((conn->flags & MYI_F_SEND_BROKEN) != 0) {
        myi_conn_end(conn, myi_reason_of(conn->err), conn->err);
        return;
    }
    myi_conn_arm(conn, deadline_after(conn->loop,
                                      conn->conf->options.linger_ns));
    myi_recv_update(conn);
    myi_send_mark(conn);
}

void myi_conn_try_finish(struct myra_conn *conn)
{
    if (conn->state == MYI_CLOSING && conn->tx_bytes == 0 &&
        (conn->flags & (MYI_F_SHUT_DONE | MYI_F_RECV_ENDED)) ==
            (MYI_F_SHUT_DONE | MYI_F_RECV_ENDED))
        myi_conn_end(conn, MYRA_CLOSE_LOCAL, 0);
    /* Both directions ended by themselves. */
    else if (conn->state == MYI_OPEN &&
             (conn->flags & (MYI_F_SHUT_DONE | MYI_F_EOF_TOLD)) ==
                 (MYI_F_SHUT_DONE | MYI_F_EOF_TOLD))
        myi_conn_end(conn, MYRA_CLOSE_EOF, 0);
}

void myra_conn_abort(struct myra_conn *conn)
{
    const struct linger reset = { .l_onoff = 1, .l_linger = 0 };

    if (conn->state == MYI_DYING)
        return;
    (void)setsockopt(conn->io.fd, SOL_SOCKET, SO_LINGER, &reset,
                     sizeof(reset));
    myi_conn_end(conn, MYRA_CLOSE_ABORT, 0);
}

/* ---- What it is --------------------------------------------------------- */

void myra_conn_set_user(struct myra_conn *conn, void *user)
{
    conn->user = user;
}

void *myra_conn_user(const struct myra_conn *conn)
{
    return conn->user;
}

void myra_conn_set_events(struct myra_conn *conn,
                          const struct myra_conn_events *events)
{
    conn->events = events;
}

struct myra_loop *myra_conn_loop(const struct myra_conn *conn)
{
    return conn->loop;
}

struct myra_listener *myra_conn_listener(const struct myra_conn *conn)
{
    return conn->listener;
}

uint64_t myra_conn_recv_bytes(const struct myra_conn *conn)
{
    return conn->recv_bytes;
}

uint64_t myra_conn_sent_bytes(const struct myra_conn *conn)
{
    return conn->sent_bytes;
}

int myra_conn_peer(const struct myra_conn *conn, char *text, size_t text_cap)
{
    struct sockaddr_storage addr;
    socklen_t len = sizeof(addr);

    if (getpeername(conn->io.fd, (struct sockaddr *)&addr, &len) < 0)
        return -errno;
    return myra_addr_print((struct sockaddr *)&addr, len, text, text_cap);
}

int myra_conn_local(const struct myra_conn *conn, char *text, size_t text_cap)
{
    struct sockaddr_storage addr;
    socklen_t len = sizeof(addr);

    if (getsockname(conn->io.fd, (struct sockaddr *)&addr, &len) < 0)
        return -errno;
    return myra_addr_print((struct sockaddr *)&addr, len, text, text_cap);
}
