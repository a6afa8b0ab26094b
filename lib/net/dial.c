/* SPDX-License-Identifier: MIT */
/* Connections that we open. */
#include "config.h"

#include <errno.h>
#include <unistd.h>

#include "lib/net/net_priv.h"

static int start(struct myra_conn *conn, const struct sockaddr *addr,
                 socklen_t addr_len)
{
    struct myra_loop *loop = conn->loop;
    const struct myra_conn_options *options = &conn->conf->options;
    const int fd = myi_socket_stream(addr->sa_family);
    int err;

    if (fd < 0)
        return fd;
    conn->io.fd = fd;
    err = myi_socket_tune(fd, addr->sa_family, options);
    if (err == 0)
        err = loop->ops->connect(loop->be, &conn->io, addr, addr_len);
    if (err < 0) {
        close(fd);
        conn->io.fd = -1;
        return err;
    }
    if (options->connect_timeout_ns > 0)
        myi_conn_arm(conn, (loop->now_ns + options->connect_timeout_ns +
                            MYI_MS_NS - 1) / MYI_MS_NS);
    return 0;
}

/* Errors that belong to this one address are told by callback, like a
 * refusal that comes later; what is ours is returned. */
static int is_of_peer(int err)
{
    switch (err) {
    case -ECONNREFUSED:
    case -ENETUNREACH:
    case -EHOSTUNREACH:
    case -ENOENT:
    case -EADDRNOTAVAIL:
    case -EACCES:
    case -EPERM:
    case -EAGAIN:
    case -ETIMEDOUT:
    case -ECONNRESET:
        return 1;
    default:
        return 0;
    }
}

/* Told from the next turn's timers. */
static void fail_later(struct myra_loop *loop, struct myra_timer *timer)
{
    struct myra_conn *conn = timer->user;

    myi_on_closed(loop->be, &conn->io);
}

int myra_connect(struct myra_loop *loop, const struct sockaddr *addr,
                 socklen_t addr_len, const struct myra_conn_options *options,
                 const struct myra_conn_events *events, void *user,
                 struct myra_conn **conn_out)
{
    const struct myi_conf *conf;
    struct myra_conn *conn;
    int err;

    MYRA_TRY(myi_loop_check(loop));
    myi_loop_touch(loop);
    if (addr == NULL || events == NULL || events->on_data == NULL)
        return MYRA_EINVAL;
    MYRA_TRY(myi_conf_intern(loop, options, &conf));
    MYRA_TRY(myi_conn_new(loop, conf, events, user, &conn));
    conn->state = MYI_CONNECTING;
    err = start(conn, addr, addr_len);
    if (err < 0 && !is_of_peer(err)) {
        loop->stats.conns--;
        myi_loop_bury(loop, &conn->io);
        return err;
    }
    if (err < 0) {
        conn->state = MYI_DYING;
        conn->reason = MYRA_CLOSE_CONNECT;
        conn->err = err;
        myra_timer_init(&conn->timer, fail_later, conn);
        myi_wheel_add(&loop->wheel, &conn->timer, 0);
    }
    *conn_out = conn;
    return 0;
}

void myi_on_connect(struct myi_be *be, struct myi_io *io, int err)
{
    struct myra_conn *conn = myi_conn_of(io);

    if (conn->state != MYI_CONNECTING)
        return;
    if (err < 0) {
        myi_conn_end(conn, MYRA_CLOSE_CONNECT, err);
        return;
    }
    myi_loop_of(be)->stats.connects++;
    myi_conn_opened(conn);
}
