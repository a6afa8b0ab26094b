/* SPDX-License-Identifier: MIT */
/*
 * A case through the proxy.
 */
#ifndef RUN_CASES_FORWARD_H
#define RUN_CASES_FORWARD_H

#include "tests/run_cases/exchange.h"
#include "tests/run_cases/verdict.h"

/* What one feeding through the proxy has shown. */
struct forward {
    struct exchange *exchange;
    struct bytes raw;       /* all that reached the origin */
    unsigned row_conn_id;   /* response cases: where the row's bytes came */
    unsigned later_conn_id; /* of the request behind it */
    int is_open_after;      /* the proxy left the client's connection open */
    int was_refused;        /* the proxy answered with an error of its own */
    int is_incomplete;      /* request cases: more bytes are awaited */
    const char *pace;       /* for messages */
    struct proxy_usage after;
};

/* Both fill forward and judge it; 0, or -1 with the reason in scene->why.
 * The caller ends forward with forward_fini. */
int forward_request(struct scene *scene, struct exchange *exchange,
                    enum pace pace, struct forward *forward);
int forward_response(struct scene *scene, struct exchange *exchange,
                     enum pace pace, struct forward *forward);
void forward_fini(struct forward *forward);

/* 1 if the case can be sent through a reverse proxy at all. */
int forward_applies(const struct scene *scene);

/* Prefixes the reason with where it was seen. Returns -1. */
int forward_fail(struct scene *scene, const struct forward *forward,
                 const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* 1 if the response comes from the origin's own words. */
int is_origins(const struct message *response);

/* 1 for fields that a proxy takes off or writes itself. */
int field_is_of_hop(const struct fields *fields, const struct bytes *name);

/* Every end-to-end field of sent must be in got, in order and with its
 * value; got may have what a proxy adds. 0 or -1. */
int compare_fields(struct scene *scene, const struct forward *forward,
                   const struct fields *sent, const struct fields *got);

/* The trailers of sent that may be passed on must be those of got. */
int compare_trailers(struct scene *scene, const struct forward *forward,
                     const struct fields *sent, const struct fields *got);

/* Starts the exchange. 0 or -1. */
int forward_start(struct scene *scene, struct forward *forward, enum pace pace,
                  struct exchange *exchange, struct origin_script *script);
/* Ends the client's connection, waits for what is still under way, and fills
 * the record. 0 or -1. */
int forward_end(struct scene *scene, struct forward *forward);

#endif
