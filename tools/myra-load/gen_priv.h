/* SPDX-License-Identifier: MIT */
/*
 * The generator's insides: gen.c paces and runs, gen_conn.c is one
 * connection.
 */
#ifndef MYRA_LOAD_GEN_PRIV_H
#define MYRA_LOAD_GEN_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include "tools/myra-load/evq.h"
#include "tools/myra-load/gen.h"
#include "tools/myra-load/resp.h"

#define GEN_SCRATCH_CAP 65536u

enum gen_conn_state {
    GEN_CONN_CLOSED = 0, /* to be opened at retry_at_ns */
    GEN_CONN_OPENING,
    GEN_CONN_IDLE, /* on the idle list */
    GEN_CONN_BUSY  /* a request is out */
};

struct gen_conn {
    struct evq_item item; /* first: an item is its connection */
    struct gen *gen;
    struct gen_conn *prev; /* on the idle list */
    struct gen_conn *next;
    int fd;
    enum gen_conn_state state;
    int was_open;
    uint32_t fail_count;  /* opens that failed in a row */
    uint32_t want_events; /* what the queue watches */
    size_t sent_len;      /* of the request that is out */
    uint64_t intended_ns;
    uint64_t actual_ns;
    uint64_t deadline_ns; /* of the answer, or of the opening */
    uint64_t retry_at_ns;
    struct resp resp;
};

struct gen {
    struct gen_options options;
    struct evq *evq;
    struct evq own_evq;
    struct gen_conn *conns;
    struct gen_conn idle; /* head of the idle list, oldest first */
    uint8_t *scratch;

    /* the run */
    uint64_t start_ns;
    uint64_t end_ns;       /* nothing is due from here on */
    uint64_t planned;      /* requests of this run; UINT64_MAX: until end */
    uint64_t next_index;   /* of the next request */
    double period_ns;      /* between two; 0: closed loop */
    uint64_t last_done_ns; /* the last answer */
    uint32_t opening;      /* connections in that state */
    int open_err;          /* why the last open failed */
    int is_sending;        /* requests leave; 0: draining, or opening */
    struct gen_stats stats;

    /* snapshots */
    uint64_t shot_at_ns;
    uint64_t shot_last_ns;
    uint64_t shot_completed;
    uint64_t shot_errors;
    struct hist *interval;

    struct hist *latency;
    struct hist *latency_actual;
    struct hist *lateness;

    /* other threads */
    atomic_int should_stop;
    atomic_int is_running;
    pthread_t thread;
    int has_thread;
    int thread_err;
    uint64_t thread_duration_ns;
};

uint64_t gen_now_ns(void);

/* Starts to open a closed connection. 0, or -errno of the socket call. */
int gen_conn_open(struct gen_conn *conn, uint64_t now_ns);

/* Closes, whatever the state; what was out is not counted here. */
void gen_conn_close(struct gen_conn *conn, uint64_t retry_at_ns);

/* Counts a failed request and closes its connection. */
void gen_conn_fail(struct gen_conn *conn, enum gen_err err);

/* A connection that could not be opened: closes it until a later time. */
void gen_conn_fail_open(struct gen_conn *conn, int err, uint64_t now_ns);

/* Sends the request on an idle connection. */
void gen_conn_send(struct gen_conn *conn, uint64_t intended_ns,
                   uint64_t now_ns);

/* The item's function. */
void gen_conn_on_events(struct evq_item *item, uint32_t events);

/* Sends what is due and has an idle connection. */
void gen_pump(struct gen *gen, uint64_t now_ns);

/* Takes a right answer into the counts. */
void gen_count_answer(struct gen *gen, const struct gen_conn *conn,
                      uint64_t now_ns);

#endif
