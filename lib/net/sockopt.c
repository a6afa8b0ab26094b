/* SPDX-License-Identifier: MIT */
/* Sockets and the options that mean the same on every backend. */
#include "config.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/net/net_priv.h"

int myi_socket_stream(int family)
{
    const int fd =
        socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    return fd < 0 ? -errno : fd;
}

static int set_int(int fd, int level, int name, int value)
{
    if (setsockopt(fd, level, name, &value, sizeof(value)) < 0)
        return -errno;
    return 0;
}

int myi_socket_tune(int fd, int family,
                    const struct myra_conn_options *options)
{
    if (options->send_buf > 0)
        MYRA_TRY(set_int(fd, SOL_SOCKET, SO_SNDBUF, options->send_buf));
    if (options->recv_buf > 0)
        MYRA_TRY(set_int(fd, SOL_SOCKET, SO_RCVBUF, options->recv_buf));
    if (options->keep_alive)
        MYRA_TRY(set_int(fd, SOL_SOCKET, SO_KEEPALIVE, 1));
    if (options->no_delay && (family == AF_INET || family == AF_INET6))
        MYRA_TRY(set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1));
    return 0;
}
