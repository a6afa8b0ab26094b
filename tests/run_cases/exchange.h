/* SPDX-License-Identifier: MIT */
/*
 * One exchange through the proxy: a client before it, the recording origin
 * behind it, and turns of both until something has come or a deadline is
 * over.
 */
#ifndef RUN_CASES_EXCHANGE_H
#define RUN_CASES_EXCHANGE_H

#include "tests/run_cases/client.h"
#include "tests/run_cases/origin.h"
#include "tests/run_cases/proxy.h"

/* How long an exchange may stand still. */
#define STALL_MS 5000

struct exchange {
    struct origin origin;
    struct proxy proxy;
    struct client client;
    int is_open; /* origin and proxy run */
    struct proxy_usage before; /* at exchange_begin */
    unsigned fence_count;
};

/* Opens the origin and starts the proxy. 0, or -1 with why. */
int exchange_open(struct exchange *exchange, const char *program,
                  struct bytes *why);
/* 0; -1 with why if the proxy did not end well. */
int exchange_close(struct exchange *exchange, struct bytes *why);

/* A new client and an empty record; starts the proxy again if it has gone.
 * 0, or -1 with why. */
int exchange_begin(struct exchange *exchange, struct origin_script *script,
                   struct bytes *why);

/*
 * Turns until done(exchange, arg) is not 0, and returns that; 0 when nothing
 * has moved for STALL_MS or the proxy is gone.
 */
int exchange_run(struct exchange *exchange,
                 int (*done)(const struct exchange *exchange, size_t arg),
                 size_t arg);

/* For exchange_run: the client's connection has ended. */
int exchange_is_ended(const struct exchange *exchange, size_t arg);
/* ... so many final responses have come, a tunnel, or the end. */
int exchange_has_final(const struct exchange *exchange, size_t count);

/* Ends our side of the client and waits for the proxy's. 0, or -1 with
 * why. */
int exchange_finish(struct exchange *exchange, struct bytes *why);

/*
 * Sends a request through a second client and waits for its answer. The
 * proxy has one loop, so all that it did for the first client before is with
 * the origin then. 0, or -1 with why. The request is not in the record;
 * *conn_id_out tells the connection that it came over.
 */
int exchange_fence(struct exchange *exchange, unsigned *conn_id_out,
                   struct bytes *why);

/* Ends all connections of the origin and waits until the proxy has closed
 * them too, so that no idle one is left. 0, or -1 with why. */
int exchange_drop_upstreams(struct exchange *exchange, struct bytes *why);

#endif
