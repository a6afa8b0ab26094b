/* SPDX-License-Identifier: MIT */
/*
 * The proxies that are compared: myra-proxy on its backends, nginx, haproxy,
 * and the byte relay. Each is started on a port of its own before one origin.
 */
#ifndef MYRA_BENCH_PEERS_H
#define MYRA_BENCH_PEERS_H

#include <stdint.h>
#include <sys/types.h>

#include "bench/worker.h"

enum peer_kind {
    PEER_MYRA_EPOLL = 0,
    PEER_MYRA_TOKEN,
    PEER_NGINX,
    PEER_HAPROXY,
    PEER_RELAY,
    PEER_COUNT
};

extern const char *const peer_names[PEER_COUNT];

struct peer_options {
    const char *dir;          /* scratch; peer_dir_open made it */
    uint16_t origin_port;
    int cpu;                  /* -1: not pinned */
    int has_log;              /* 1: access log into a file of dir */
    uint32_t conns_max;       /* myra-proxy only; 0: its default */
    const char *const *env;   /* added; NULL: none (myra-proxy only) */
};

struct peer {
    enum peer_kind kind;
    pid_t pid;       /* 0: not running */
    uint16_t port;
    struct worker relay;
    char why[160];   /* why it could not be started */
};

/* A scratch directory; 0 or -errno. close removes it and what is in it. */
int peer_dir_open(char *dir, size_t cap);
void peer_dir_close(const char *dir);

/* Starts it and waits until it takes connections. 0, -ENOENT when it is not
 * installed, or another negative code; why says it in words. */
int peer_start(struct peer *peer, enum peer_kind kind,
               const struct peer_options *options);

void peer_stop(struct peer *peer);

#endif
