/* SPDX-License-Identifier: MIT */
/*
 * The floor of table proxy: a relay that copies bytes both ways between a
 * client and a connection of its own to the origin, and reads none of them.
 * "relay PORT ORIGIN_PORT".
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/worker.h"

#define BATCH 128
#define FD_MAX 65536
#define COPY_CAP 65536

static int peer_of[FD_MAX]; /* the other side of a pair, by descriptor */
static char copy[COPY_CAP];

static int open_socket(uint16_t port, int is_listener)
{
    const struct sockaddr_in addr = { .sin_family = AF_INET,
                                      .sin_port = htons(port),
                                      .sin_addr = { htonl(
                                          INADDR_LOOPBACK) } };
    const int one = 1;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    if (is_listener)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    const int err =
        is_listener
            ? bind(fd, (const struct sockaddr *)&addr, sizeof(addr)) ||
                  listen(fd, 4096)
            : connect(fd, (const struct sockaddr *)&addr, sizeof(addr));

    if (err) {
        close(fd);
        return -1;
    }
    return fd;
}

static void watch(int epoll, int fd)
{
    struct epoll_event event = { .events = EPOLLIN, .data = { .fd = fd } };

    epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

static void accept_pair(int epoll, int listener, uint16_t origin_port)
{
    const int one = 1;
    const int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    const int origin = client < 0 ? -1 : open_socket(origin_port, 0);

    if (origin < 0 || client >= FD_MAX || origin >= FD_MAX) {
        if (client >= 0)
            close(client);
        if (origin >= 0)
            close(origin);
        return;
    }
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    peer_of[client] = origin;
    peer_of[origin] = client;
    watch(epoll, client);
    watch(epoll, origin);
}

/* Sockets stay blocking: a full peer stops the relay, as it may. */
static int copy_some(int from, int to)
{
    const ssize_t n = recv(from, copy, COPY_CAP, MSG_DONTWAIT);

    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    if (n == 0)
        return -1;
    return send(to, copy, (size_t)n, MSG_NOSIGNAL) == n ? 0 : -1;
}

static void close_pair(int fd)
{
    const int other = peer_of[fd];

    peer_of[fd] = peer_of[other] = -1;
    close(fd);
    close(other);
}

static void serve(int epoll, int listener, uint16_t origin_port)
{
    struct epoll_event events[BATCH];

    for (;;) {
        const int count = epoll_wait(epoll, events, BATCH, -1);

        if (count < 0 && errno != EINTR)
            return;
        for (int i = 0; i < count; i++) {
            const int fd = events[i].data.fd;

            if (fd == listener)
                accept_pair(epoll, listener, origin_port);
            else if (peer_of[fd] >= 0 && copy_some(fd, peer_of[fd]) < 0)
                close_pair(fd);
        }
    }
}

int worker_relay(int argc, char **argv)
{
    if (argc != 2 || !worker_wait())
        return 2;
    memset(peer_of, -1, sizeof(peer_of));
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    const int listener = open_socket((uint16_t)atoi(argv[0]), 1);

    if (epoll < 0 || listener < 0) {
        worker_answer(-1, 0);
        return 1;
    }
    watch(epoll, listener);
    worker_answer(1, 0);
    serve(epoll, listener, (uint16_t)atoi(argv[1]));
    return 1;
}
