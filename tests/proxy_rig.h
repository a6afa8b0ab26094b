/* SPDX-License-Identifier: MIT */
/*
 * A myra-proxy of the test's own, with the test as its clients and its
 * origins: one thread plays all peers with plain blocking sockets, so the
 * order of everything is the test's. No call waits longer than RIG_MS; what
 * does not come by then fails the test.
 */
#ifndef PROXY_RIG_H
#define PROXY_RIG_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define RIG_MS 8000
#define RIG_TEXT 65536

struct rig {
    pid_t pid;
    int port;      /* of the first listener */
    int said_fd;   /* what it prints */
    size_t said_len;
    char said[RIG_TEXT];
};

/* An origin's listener. */
struct origin {
    int fd;
    int port;
    char addr[32]; /* "127.0.0.1:port" */
};

void origin_open(struct origin *origin);
/* Connections are refused from now on. */
void origin_close(struct origin *origin);
int origin_accept(struct origin *origin);

/* Starts "myra-proxy --listen 127.0.0.1:0" with these arguments behind (NULL
 * ends them) and waits until it is ready. */
void rig_start(struct rig *rig, ...);

/* SIGTERM, and the end with status 0. */
void rig_stop(struct rig *rig);
void rig_signal(struct rig *rig, int number);
/* Waits for the end; the exit status, -1 for a signal's. */
int rig_wait(struct rig *rig);
/* Waits until it has said this. */
void rig_expect_said(struct rig *rig, const char *text);
/* Resident memory, KiB. */
long rig_rss_kib(const struct rig *rig);

/* Runs the program to its end: its status; what it said is in rig->said. */
int rig_run(struct rig *rig, ...);

int rig_dial(const struct rig *rig);
int dial_port(int port);

/* ---- Any socket --------------------------------------------------------- */

void say(int fd, const char *text);
void say_bytes(int fd, const void *data, size_t len);

/* Reads into text (terminated, RIG_TEXT bytes) until it ends with, or holds,
 * what is wanted. */
void hear(int fd, char *text, const char *wanted);
/* A head alone, byte by byte up to its empty line. */
void hear_head(int fd, char *text);
/* Exactly len bytes. */
void hear_bytes(int fd, void *data, size_t len);
/* All until the end. 0: ended in order, 1: by a reset. */
int hear_end(int fd, char *text);
/* 1 when nothing can be read for wait_ms. */
int is_quiet(int fd, int wait_ms);

void expect_in(const char *text, const char *wanted);
void expect_not_in(const char *text, const char *unwanted);

/* One plain exchange on open connections: GET, 200 with the body. */
void exchange_ok(int client, int origin, const char *body);

#endif
