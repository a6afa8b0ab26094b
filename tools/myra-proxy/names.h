/* SPDX-License-Identifier: MIT */
/*
 * Name look-ups off the loops: getaddrinfo blocks, so one thread does it and
 * posts the results back.
 */
#ifndef PROXY_NAMES_H
#define PROXY_NAMES_H

#include <stdint.h>
#include <sys/socket.h>

#include <myra/loop.h>

#include "options.h"

struct name_result {
    struct sockaddr_storage addrs[TARGET_ADDRS_MAX];
    socklen_t addr_lens[TARGET_ADDRS_MAX];
    uint32_t addr_count; /* 0: failed */
    const char *error_text;
};

struct origin;

/* One look-up. The caller's memory, which must stay until done was called. */
struct name_query {
    struct myra_task task; /* first: done gets a pointer to it */
    struct myra_loop *loop;
    struct name_query *next;
    struct origin *origin; /* who asked */
    char host[256];
    uint16_t port;
    struct name_result result;
};

/* Looks up at once, on the calling thread. */
void names_look_up(const char *host, uint16_t port,
                   struct name_result *result);

struct names;

/* NULL: no thread could be made. */
struct names *names_new(void);

/* No query is answered afterwards. A look-up that is under way is not waited
 * for: its thread ends with the process. */
void names_free(struct names *names);

/* The loop ends: queries that would be answered on it are dropped. */
void names_forget(struct names *names, struct myra_loop *loop);

/* Asks; query->task.fn is called on query->loop when the answer is there.
 * Any thread. */
void names_ask(struct names *names, struct name_query *query);

#endif
