/* SPDX-License-Identifier: MIT */
/*
 * The proxy under test, as a process of its own.
 */
#ifndef RUN_CASES_PROXY_H
#define RUN_CASES_PROXY_H

#include <limits.h>
#include <stddef.h>
#include <sys/types.h>

#include "tools/myra/message.h"

struct proxy {
    char program[PATH_MAX];
    pid_t pid; /* 0: not running */
    int port;
    int said_fd;       /* its standard output and error */
    struct bytes said; /* what came there */
};

/* Starts it before the origin on origin_port and waits for its port. 0, or
 * -1 with the reason in why. */
int proxy_start(struct proxy *proxy, int origin_port, struct bytes *why);

/* Ends it with SIGTERM, and with SIGKILL if it does not go in time. 0; -1
 * with the reason in why if it did not end well. */
int proxy_stop(struct proxy *proxy, struct bytes *why);

/* 1 while it runs. Also takes what it says, so that its pipe never fills. */
int proxy_is_alive(struct proxy *proxy);

/* The most memory that it has ever had (address space and resident), in KiB,
 * and the processor time that it has used, in milliseconds. */
struct proxy_usage {
    long peak_kib;
    long resident_kib;
    long cpu_ms;
};

void proxy_read_usage(const struct proxy *proxy, struct proxy_usage *usage);

#endif
