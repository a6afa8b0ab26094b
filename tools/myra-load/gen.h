/* SPDX-License-Identifier: MIT */
/*
 * The load generator: HTTP/1.1 requests at a constant rate over keep-alive
 * connections, open loop.
 *
 *     struct gen_options options;
 *     struct gen *gen;
 *
 *     gen_options_init(&options);
 *     gen_options_set_target(&options, "127.0.0.1:8080", "/");
 *     options.rate_per_s = 5000;
 *     options.conn_count = 64;
 *     gen_new(&options, NULL, &gen);
 *     gen_run(gen, 3000000000);            or gen_start, gen_join
 *     p99_ns = hist_percentile(gen_latency(gen), 99);
 *     gen_free(gen);
 *
 * Request number i is *meant* to leave at start + i / rate, whatever the
 * answers do. A request that finds no free connection waits, and its latency
 * is counted from the time it was meant to leave: a server that stalls for a
 * second is seen by every request of that second, not by one a connection.
 * The time from the actual send is kept beside it. With rate_per_s = 0 every
 * connection sends its next request when the last answer is complete (closed
 * loop, for saturation); both times are then the same.
 *
 * One thread, raw epoll, no code of libmyra's: the judge shares nothing with
 * what it judges. Nothing is allocated after the first run's first moments.
 *
 * Threads: a generator belongs to the thread that runs it; gen_stop and
 * gen_is_running may be called from anywhere, gen_stop from a signal handler
 * as well.
 */
#ifndef MYRA_LOAD_GEN_H
#define MYRA_LOAD_GEN_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "tools/myra-load/hist.h"

struct evq;
struct gen;

/* Why a request failed, or a connection. GEN_ERR_TEXT names them. */
enum gen_err {
    GEN_ERR_CONNECT = 0, /* a connection could not be opened */
    GEN_ERR_RESET,       /* reset, or a send failed, with a request out */
    GEN_ERR_CLOSED,      /* closed by the peer with a request out */
    GEN_ERR_TIMEOUT,     /* no complete answer within timeout_ns */
    GEN_ERR_MALFORMED,   /* not an HTTP/1.x response */
    GEN_ERR_STATUS,      /* not the expected status */
    GEN_ERR_LENGTH,      /* body shorter or longer than expected */
    GEN_ERR_BODY,        /* a wrong byte in the body */
    GEN_ERR_UNSENT,      /* due, but never sent before the run's end */
    GEN_ERR_COUNT
};

struct gen_stats {
    uint64_t elapsed_ns; /* start to the last answer (or now) */
    uint64_t planned;    /* due so far; in a closed loop = sent */
    uint64_t sent;
    uint64_t completed;  /* answered and found right */
    uint64_t errors;     /* all kinds but GEN_ERR_CONNECT */
    uint64_t errors_by_kind[GEN_ERR_COUNT];
    uint64_t status_class[6]; /* [2]: answers with 2xx; [0]: others */
    uint64_t recv_bytes;
    uint64_t sent_bytes;
    uint64_t connects;   /* connections opened, all runs */
    uint64_t reconnects; /* of them in place of one that ended */
    uint32_t conns_open; /* now */
    uint32_t in_flight;  /* now */
};

/* What a snapshot callback sees: the totals, and the last interval alone. */
struct gen_snapshot {
    struct gen_stats total;
    uint64_t interval_ns;
    uint64_t interval_completed;
    uint64_t interval_errors;
    double interval_rate_per_s;
    uint64_t interval_p50_ns; /* from the intended send time; 0: none */
    uint64_t interval_p99_ns;
    int is_last; /* 1: the run is over */
};

/* Called in the generator's thread. */
typedef void (*gen_snapshot_fn)(void *user, const struct gen_snapshot *shot);

struct gen_options {
    struct sockaddr_storage addr; /* the target */
    socklen_t addr_len;
    /* The whole request; copied by gen_new. gen_options_set_target makes a
     * GET without a body. */
    char *request;
    size_t request_len;
    int is_head;             /* 1: the request is a HEAD: no body comes */
    uint32_t conn_count;     /* default 16 */
    double rate_per_s;       /* all connections together; 0: closed loop;
                                default 1000 */
    uint64_t request_max;    /* ends a run after so many; 0: no limit */
    uint64_t timeout_ns;     /* of one request; default 10 s */
    uint64_t drain_ns;       /* wait for the last answers; default 2 s */
    uint64_t spin_ns;        /* polls instead of sleeping so long before a
                                request is due; default 0. A sleep ends some
                                50 us late; polling takes a processor */
    const char *congestion;  /* TCP_CONGESTION of the connections; NULL: the
                                system's. On loopback "reno" is cheapest */
    uint64_t warmup_ns;      /* sent but not counted, before each run */
    int expect_status;       /* 0 (default): any 2xx or 3xx */
    int64_t expect_body_len; /* -1 (default): any */
    const uint8_t *expect_body; /* that many bytes to compare; NULL: no;
                                   must outlive the generator */
    gen_snapshot_fn on_snapshot; /* NULL: none */
    void *snapshot_user;
    uint64_t snapshot_ns; /* default 200 ms */
};

extern const char *const gen_err_text[GEN_ERR_COUNT];

void gen_options_init(struct gen_options *options);

/* Frees the request. */
void gen_options_fini(struct gen_options *options);

/*
 * addr_text: "127.0.0.1:8080" or "[::1]:8080". Sets addr and a GET of path
 * with Host, User-Agent and Accept. 0, MYRA_EADDRESS or -ENOMEM.
 */
int gen_options_set_target(struct gen_options *options, const char *addr_text,
                           const char *path);

/*
 * A request in full: method, target, host, extra field lines (each ending in
 * CR LF; "" for none) and a body (NULL for none). 0 or -ENOMEM.
 */
int gen_options_set_request(struct gen_options *options, const char *method,
                            const char *target, const char *host,
                            const char *fields, const void *body,
                            size_t body_len);

/*
 * evq NULL: the generator waits on a queue of its own. With one, whatever
 * else is registered there (an origin, say) is served while gen_run runs; it
 * must outlive the generator. 0 or a negative code.
 */
int gen_new(const struct gen_options *options, struct evq *evq,
            struct gen **gen_out);

/* Closes the connections. NULL is allowed; not while it runs. */
void gen_free(struct gen *gen);

/*
 * Opens the connections that are not open, then sends for duration_ns and
 * waits for the last answers, in the calling thread. Starts all counts anew;
 * connections stay open for the next run. 0, or an error of the set-up
 * (-ECONNREFUSED when not one connection could be opened, -EMFILE). Failed
 * requests are no error of the run: see gen_read_stats.
 */
int gen_run(struct gen *gen, uint64_t duration_ns);

/* gen_run in a thread of its own; gen_join waits for it and returns its
 * result. */
int gen_start(struct gen *gen, uint64_t duration_ns);
int gen_join(struct gen *gen);

/* Ends the run early: nothing more is sent, answers are waited for. */
void gen_stop(struct gen *gen);
int gen_is_running(const struct gen *gen);

/* After a run, or in the generator's thread. */
void gen_read_stats(const struct gen *gen, struct gen_stats *stats);

/* Latencies of the answers found right: from the intended send time, and from
 * the actual one. */
const struct hist *gen_latency(const struct gen *gen);
const struct hist *gen_latency_actual(const struct gen *gen);

/* From the intended to the actual send time: how late requests left. Empty
 * for a closed loop. */
const struct hist *gen_lateness(const struct gen *gen);

#endif
