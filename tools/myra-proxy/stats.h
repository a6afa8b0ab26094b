/* SPDX-License-Identifier: MIT */
/* Counters of one worker, and the report made of all of them. */
#ifndef PROXY_STATS_H
#define PROXY_STATS_H

#include <stdint.h>

struct worker;

/* Why requests failed; the names are in the report. */
#define STATS_ERROR_MAP(XX) \
    XX(BAD_REQUEST, "bad_request") \
    XX(CLIENT_TIMEOUT, "client_timeout") \
    XX(CLIENT_GONE, "client_gone") \
    XX(CLIENT_STALLED, "client_stalled") \
    XX(NO_ROUTE, "no_route") \
    XX(NAME, "name") \
    XX(CONNECT, "connect") \
    XX(CONNECT_TIMEOUT, "connect_timeout") \
    XX(UPSTREAM_GONE, "upstream_gone") \
    XX(UPSTREAM_BAD, "upstream_bad") \
    XX(UPSTREAM_TIMEOUT, "upstream_timeout") \
    XX(UPSTREAM_CUT, "upstream_cut") \
    XX(LIMIT, "limit") \
    XX(DRAIN, "drain")

enum stats_error {
#define STATS_ERROR_ENUM(name, text) STATS_##name,
    STATS_ERROR_MAP(STATS_ERROR_ENUM)
#undef STATS_ERROR_ENUM
    STATS_ERROR_COUNT
};

struct stats {
    uint64_t connections;
    uint64_t requests;     /* heads read */
    uint64_t completed;    /* answered to the end */
    uint64_t responses[6]; /* by the first digit; 0: none was sent */
    uint64_t errors[STATS_ERROR_COUNT];
    uint64_t retries;
    uint64_t failovers; /* another target after a failed connect */
    uint64_t connects;
    uint64_t reuses;
    uint64_t tunnels;
    uint64_t request_body_bytes;
    uint64_t response_body_bytes;
    uint64_t log_lines;
    uint64_t log_dropped;
    uint64_t warm_allocs; /* allocations by the 1,000th request */
    uint64_t accept_waits; /* times the connection limit was reached */
};

/* Writes the report. 0 or a negative errno. */
int stats_report(const char *path, const struct worker *workers,
                 uint32_t count, uint64_t start_ns);

#endif
