/* SPDX-License-Identifier: MIT */
/*
 * The client before the proxy: sends bytes at a pace and keeps every
 * response that comes back, as the strict reader sees it.
 */
#ifndef RUN_CASES_CLIENT_H
#define RUN_CASES_CLIENT_H

#include "tests/run_cases/socket.h"

struct client {
    struct channel channel;
    const char **methods; /* of the requests, in order; the caller's */
    size_t method_count;  /* requests behind them count as GET */
    struct message *responses; /* complete ones, interim ones too */
    size_t response_count;
    size_t final_count;     /* without the interim ones */
    struct message partial; /* has_head: one that was cut off */
    int has_tunnel;         /* what is left in channel.in is no HTTP */
    const char *fault;      /* why what came is no strict HTTP, or NULL */
};

/* 0 or a negative errno. */
int client_open(struct client *client, int port);
void client_close(struct client *client);
void client_send(struct client *client, const void *data, size_t len);
void client_turn(struct client *client);

/* The final response number index (from 0), or NULL. */
const struct message *client_final(const struct client *client, size_t index);

/* 1 if the proxy has ended the connection without our asking. */
int client_was_closed(const struct client *client);

#endif
