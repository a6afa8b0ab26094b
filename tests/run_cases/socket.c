/* SPDX-License-Identifier: MIT */
/*
 * Non-blocking loopback sockets. Nothing here waits: the exchange polls.
 */
#include "config.h"

#include "tests/run_cases/socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

int64_t clock_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static struct sockaddr_in loopback(int port)
{
    struct sockaddr_in addr;

    memset(&addr, 0, sizeof addr);
    addr.sin_family = AF_INET;
    addr.sin_port = htons((uint16_t)port);
    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return addr;
}

static int close_with(int fd, int err)
{
    close(fd);
    return err;
}

int socket_listen(int *port_out)
{
    struct sockaddr_in addr = loopback(0);
    socklen_t len = sizeof addr;
    const int fd =
        socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -errno;
    if (bind(fd, (struct sockaddr *)&addr, sizeof addr) < 0 ||
        listen(fd, 128) < 0 ||
        getsockname(fd, (struct sockaddr *)&addr, &len) < 0)
        return close_with(fd, -errno);
    *port_out = ntohs(addr.sin_port);
    return fd;
}

static int set_up(int fd)
{
    const int on = 1;
    const int flags = fcntl(fd, F_GETFL);

    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
        return close_with(fd, -errno);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

int socket_connect(int port)
{
    const struct sockaddr_in addr = loopback(port);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -errno;
    if (connect(fd, (const struct sockaddr *)&addr, sizeof addr) < 0)
        return close_with(fd, -errno);
    return set_up(fd);
}

int socket_accept(int listen_fd)
{
    const int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);

    return fd < 0 ? -errno : set_up(fd);
}

void channel_init(struct channel *channel, int fd)
{
    memset(channel, 0, sizeof *channel);
    channel->fd = fd;
}

void channel_fini(struct channel *channel)
{
    const struct linger none = { .l_onoff = 1, .l_linger = 0 };

    if (channel->fd >= 0) {
        setsockopt(channel->fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
        close(channel->fd);
    }
    bytes_fini(&channel->in);
    bytes_fini(&channel->raw);
    bytes_fini(&channel->out);
    channel_init(channel, -1);
}

int channel_has_output(const struct channel *channel)
{
    return channel->fd >= 0 && channel->out_pos < channel->out.len;
}

short channel_events(const struct channel *channel)
{
    short events = 0;

    if (channel->fd < 0)
        return 0;
    if (!channel->is_eof)
        events |= POLLIN;
    if (channel_has_output(channel) ||
        (channel->wants_shutdown && !channel->is_shutdown))
        events |= POLLOUT;
    return events;
}

static void receive(struct channel *channel)
{
    char block[16384];

    while (!channel->is_eof) {
        const ssize_t got = recv(channel->fd, block, sizeof block, 0);

        if (got > 0) {
            bytes_add(&channel->in, block, (size_t)got);
            bytes_add(&channel->raw, block, (size_t)got);
        } else if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
            return;
        } else {
            channel->is_eof = 1;
            channel->is_reset = got < 0;
        }
    }
}

/* How much of the output may go now. */
static size_t allowance(const struct channel *channel)
{
    const size_t left = channel->out.len - channel->out_pos;
    int unsent = 0;

    if (channel->pace == PACE_BYTES)
        return 1;
    if (channel->pace != PACE_CUT)
        return left;
    if (channel->out_pos < channel->cut)
        return channel->cut - channel->out_pos < left
                   ? channel->cut - channel->out_pos
                   : left;
    if (channel->out_pos == channel->cut &&
        ioctl(channel->fd, SIOCOUTQ, &unsent) == 0 && unsent > 0)
        return 0;
    return left;
}

static void transmit(struct channel *channel)
{
    while (channel_has_output(channel)) {
        const size_t len = allowance(channel);
        const ssize_t sent =
            len == 0 ? 0
                     : send(channel->fd, channel->out.data + channel->out_pos,
                            len, MSG_NOSIGNAL);

        if (sent < 0 && errno != EAGAIN && errno != EINTR) {
            /* The peer has closed: what is left can reach nobody. */
            channel->out_pos = channel->out.len;
            channel->is_shutdown = 1;
            return;
        }
        if (sent > 0)
            channel->out_pos += (size_t)sent;
        if (sent <= 0 || channel->pace != PACE_WHOLE)
            break;
    }
    if (channel->wants_shutdown && !channel->is_shutdown &&
        !channel_has_output(channel)) {
        shutdown(channel->fd, SHUT_WR);
        channel->is_shutdown = 1;
    }
}

void channel_turn(struct channel *channel)
{
    if (channel->fd < 0)
        return;
    receive(channel);
    transmit(channel);
}
