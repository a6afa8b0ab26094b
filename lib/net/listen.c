/* SPDX-License-Identifier: MIT */
/*
 * Listeners. A listener that cannot accept for want of descriptors or memory
 * leaves the connection in the system's queue and tries again after 10 ms to
 * 1 s, or when one of ours has closed.
 */
#include "config.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/net/net_priv.h"

#define BACKOFF_MIN_MS 10
#define BACKOFF_MAX_MS 1000

/* At most one line of warning in this time. */
#define WARN_PAUSE_MS 10000

static void accept_update(struct myra_listener *listener)
{
    struct myra_loop *loop = listener->loop;
    const int want = !listener->is_paused && !listener->is_closing &&
                     !myi_timer_is_running(&listener->retry);
    int err;

    if (want && !listener->is_accepting) {
        listener->is_accepting = 1;
        err = loop->ops->accept_start(loop->be, &listener->io);
        if (err < 0) {
            listener->is_accepting = 0;
            myi_log(MYRA_LOG_ERROR, "listener: accepting cannot start: %s",
                    myra_strerror(err));
        }
    } else if (!want && listener->is_accepting) {
        listener->is_accepting = 0;
        loop->ops->accept_stop(loop->be, &listener->io);
    }
}

static void on_retry(struct myra_loop *loop, struct myra_timer *timer)
{
    (void)loop;
    accept_update(timer->user);
}

static void accept_backoff(struct myra_listener *listener, int err)
{
    struct myra_loop *loop = listener->loop;

    loop->stats.accept_pauses++;
    listener->is_accepting = 0;
    if (myi_loop_now_ms(loop) >= listener->warn_ms) {
        listener->warn_ms = myi_loop_now_ms(loop) + WARN_PAUSE_MS;
        myi_log(MYRA_LOG_WARN, "listener: accepting pauses: %s",
                myra_strerror(err));
    }
    if (listener->backoff_ms == 0) {
        listener->backoff_ms = BACKOFF_MIN_MS;
    } else if (listener->backoff_ms < BACKOFF_MAX_MS) {
        listener->backoff_ms *= 2;
    }
    if (!myi_timer_is_running(&listener->retry))
        myra_timer_start(loop, &listener->retry,
                         listener->backoff_ms * MYI_MS_NS);
}

void myi_listener_fd_freed(struct myra_loop *loop)
{
    struct myra_listener *listener;

    for (listener = loop->listeners; listener != NULL;
         listener = listener->next) {
        if (!myi_timer_is_running(&listener->retry))
            continue;
        myra_timer_stop(loop, &listener->retry);
        accept_update(listener);
    }
}

/* A descriptor that was accepted becomes a connection, or is closed. */
static void adopt(struct myra_listener *listener, int fd)
{
    struct myra_loop *loop = listener->loop;
    struct myra_conn *conn;
    int err = myi_conn_new(loop, listener->conf, listener->events,
                           listener->user, &conn);

    if (err < 0) {
        close(fd);
        myi_log(MYRA_LOG_WARN, "listener: a connection is refused: %s",
                myra_strerror(err));
        return;
    }
    conn->io.fd = fd;
    conn->listener = listener;
    listener->conn_count++;
    loop->stats.accepts++;
    /* A failing option is not worth a connection. */
    (void)myi_socket_tune(fd, listener->is_unix ? AF_UNIX : AF_INET,
                          &listener->conf->options);
    myi_conn_opened(conn);
}

void myi_on_accept(struct myi_be *be, struct myi_io *io, int fd)
{
    struct myra_listener *listener = (struct myra_listener *)io;

    (void)be;
    if (fd >= 0) {
        listener->backoff_ms = 0;
        adopt(listener, fd);
        return;
    }
    switch (fd) {
    case -EMFILE:
    case -ENFILE:
    case -ENOBUFS:
    case -ENOMEM:
        accept_backoff(listener, fd);
        break;
    default:
        /* The peer was gone before we came to it (accept(2)). */
        break;
    }
}

static int set_one(int fd, int level, int name)
{
    const int one = 1;

    if (setsockopt(fd, level, name, &one, sizeof(one)) < 0)
        return -errno;
    return 0;
}

/* A socket file that nobody listens on any more is in our way. */
static void unlink_stale(const struct sockaddr *addr, socklen_t addr_len)
{
    const struct sockaddr_un *un = (const void *)addr;
    struct stat st;
    int fd;

    if (un->sun_path[0] == '\0' || stat(un->sun_path, &st) < 0 ||
        !S_ISSOCK(st.st_mode))
        return;
    fd = myi_socket_stream(AF_UNIX);
    if (fd < 0)
        return;
    if (connect(fd, addr, addr_len) < 0 && errno == ECONNREFUSED)
        (void)unlink(un->sun_path);
    close(fd);
}

static int bind_listen(int fd, const struct sockaddr *addr,
                       socklen_t addr_len,
                       const struct myra_listen_options *options)
{
    const int family = addr->sa_family;

    if (family == AF_UNIX) {
        unlink_stale(addr, addr_len);
    } else {
        const int v6_only = options->v6_only != 0;

        MYRA_TRY(set_one(fd, SOL_SOCKET, SO_REUSEADDR));
        if (options->reuse_port)
            MYRA_TRY(set_one(fd, SOL_SOCKET, SO_REUSEPORT));
        if (family == AF_INET6 &&
            setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6_only,
                       sizeof(v6_only)) < 0)
            return -errno;
    }
    if (bind(fd, addr, addr_len) < 0)
        return -errno;
    if (family == AF_UNIX && addr_len == sizeof(struct sockaddr_un)) {
        const struct sockaddr_un *un = (const void *)addr;

        if (chmod(un->sun_path, (mode_t)options->unix_mode) < 0)
            return -errno;
    }
    if (listen(fd, options->backlog) < 0)
        return -errno;
    return 0;
}

int myra_listen(struct myra_loop *loop, const char *addr_text,
                const struct myra_listen_options *options,
                const struct myra_conn_events *events, void *user,
                struct myra_listener **listener_out)
{
    struct myra_listen_options defaults;
    struct sockaddr_storage addr;
    socklen_t addr_len;
    int fd, err;

    if (options == NULL) {
        myra_listen_options_init(&defaults);
        options = &defaults;
    }
    if (options->struct_size != sizeof(*options) || options->backlog < 1)
        return MYRA_EINVAL;
    MYRA_TRY(myra_addr_parse(addr_text, &addr, &addr_len));
    fd = myi_socket_stream(addr.ss_family);
    if (fd < 0)
        return fd;
    err = bind_listen(fd, (struct sockaddr *)&addr, addr_len, options);
    if (err == 0)
        err = myra_listen_fd(loop, fd, options, events, user, listener_out);
    if (err < 0) {
        close(fd);
        return err;
    }
    (*listener_out)->unlink_path = addr.ss_family == AF_UNIX;
    return 0;
}

int myra_listen_fd(struct myra_loop *loop, int fd,
                   const struct myra_listen_options *options,
                   const struct myra_conn_events *events, void *user,
                   struct myra_listener **listener_out)
{
    struct sockaddr_storage addr;
    socklen_t addr_len = sizeof(addr);
    const struct myi_conf *conf;
    struct myra_listener *listener;
    struct myi_io *io;

    MYRA_TRY(myi_loop_check(loop));
    if (events == NULL || events->on_data == NULL)
        return MYRA_EINVAL;
    if (getsockname(fd, (struct sockaddr *)&addr, &addr_len) < 0)
        return -errno;
    MYRA_TRY(myi_conf_intern(loop, options != NULL ? &options->conn : NULL,
                             &conf));
    MYRA_TRY(myi_slot_take(&loop->slots, MYI_IO_LISTENER, &io));
    listener = (struct myra_listener *)io;
    io->fd = fd;
    listener->loop = loop;
    listener->events = events;
    listener->user = user;
    listener->conf = conf;
    listener->is_unix = addr.ss_family == AF_UNIX;
    myra_timer_init(&listener->retry, on_retry, listener);
    listener->next = loop->listeners;
    loop->listeners = listener;
    accept_update(listener);
    if (!listener->is_accepting) {
        loop->listeners = listener->next;
        io->fd = -1;
        myi_loop_bury(loop, io);
        return MYRA_EBACKEND;
    }
    *listener_out = listener;
    return 0;
}

int myra_listener_addr(const struct myra_listener *listener, char *text,
                       size_t text_cap)
{
    struct sockaddr_storage addr;
    socklen_t len = sizeof(addr);

    if (getsockname(listener->io.fd, (struct sockaddr *)&addr, &len) < 0)
        return -errno;
    return myra_addr_print((struct sockaddr *)&addr, len, text, text_cap);
}

int myra_listener_fd(const struct myra_listener *listener)
{
    return listener->io.fd;
}

void myra_listener_pause(struct myra_listener *listener)
{
    listener->is_paused = 1;
    accept_update(listener);
}

void myra_listener_resume(struct myra_listener *listener)
{
    listener->is_paused = 0;
    accept_update(listener);
}

void myra_listener_close(struct myra_listener *listener)
{
    if (listener == NULL || listener->is_closing)
        return;
    listener->is_closing = 1;
    myra_timer_stop(listener->loop, &listener->retry);
    accept_update(listener);
}

/* What the system had accepted for us would be reset by close(2). */
static void accept_rest(struct myra_listener *listener)
{
    struct pollfd ready = { .fd = listener->io.fd, .events = POLLIN };

    while (poll(&ready, 1, 0) == 1) {
        const int fd = accept4(listener->io.fd, NULL, NULL,
                               SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd < 0) {
            if (errno == EINTR || errno == ECONNABORTED)
                continue;
            return;
        }
        adopt(listener, fd);
    }
}

static void unlink_own(const struct myra_listener *listener)
{
    struct sockaddr_un un;
    socklen_t len = sizeof(un);

    if (listener->unlink_path &&
        getsockname(listener->io.fd, (struct sockaddr *)&un, &len) == 0 &&
        len > sizeof(un.sun_family) && un.sun_path[0] != '\0')
        (void)unlink(un.sun_path);
}

void myi_listener_end_now(struct myra_listener *listener)
{
    if (listener->is_ended)
        return;
    listener->is_closing = 1;
    listener->is_ended = 1;
    myra_timer_stop(listener->loop, &listener->retry);
    unlink_own(listener);
    listener->loop->ops->close(listener->loop->be, &listener->io);
}

void myi_listener_after_turn(struct myra_listener *listener)
{
    if (!listener->is_closing || listener->is_ended ||
        listener->io.inflight > 0)
        return;
    accept_rest(listener);
    myi_listener_end_now(listener);
}

void myi_listener_ended(struct myra_listener *listener)
{
    struct myra_loop *loop = listener->loop;
    struct myra_listener **link = &loop->listeners;

    while (*link != listener)
        link = &(*link)->next;
    *link = listener->next;
    if (listener->conn_count == 0)
        return;
    for (uint32_t slot = 0; slot < loop->slots.fresh; slot++) {
        struct myi_io *io = myi_slot_at(&loop->slots, slot);

        if (io->kind == MYI_IO_CONN &&
            myi_conn_of(io)->listener == listener)
            myi_conn_of(io)->listener = NULL;
    }
}
