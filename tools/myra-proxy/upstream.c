/* SPDX-License-Identifier: MIT */
/* Connections to origins: dialling, and keeping idle ones for the next
 * request. The one used last goes first, so that few stay warm and the others
 * age out. */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "proxy.h"

static const struct myra_conn_events upstream_events;

static void unlink_idle(struct upstream *upstream)
{
    struct origin *origin = upstream->origin;

    if (upstream->prev)
        upstream->prev->next = upstream->next;
    else
        origin->idle = upstream->next;
    if (upstream->next)
        upstream->next->prev = upstream->prev;
    else
        origin->idle_last = upstream->prev;
    origin->idle_count--;
}

static void link_idle(struct upstream *upstream)
{
    struct origin *origin = upstream->origin;

    upstream->prev = NULL;
    upstream->next = origin->idle;
    if (origin->idle)
        origin->idle->prev = upstream;
    else
        origin->idle_last = upstream;
    origin->idle = upstream;
    origin->idle_count++;
}

static int dial(struct origin *origin, struct upstream **upstream_out)
{
    struct worker *worker = origin->worker;
    const uint32_t at = origin->addr_next % origin->addr_count;
    struct upstream *upstream = slab_acquire(&worker->upstream_slab);
    int err;

    if (!upstream)
        return MYRA_ENOMEM;
    /* Busy ones are no more than clients are: the rest is idle. */
    if (worker->upstream_count >= worker->session_max)
        upstream_drop_oldest(worker);
    memset(upstream, 0, sizeof(*upstream));
    upstream->origin = origin;
    upstream->state = UPSTREAM_CONNECTING;
    err = myra_connect(worker->loop,
                       (const struct sockaddr *)&origin->addrs[at],
                       origin->addr_lens[at], &worker->conn_options,
                       &upstream_events, upstream, &upstream->conn);
    if (err < 0) {
        slab_release(&worker->upstream_slab, upstream);
        return err;
    }
    origin->conn_count++;
    worker->upstream_count++;
    worker->stats.connects++;
    *upstream_out = upstream;
    return 0;
}

int upstream_take(struct origin *origin, int is_fresh,
                  struct upstream **upstream_out)
{
    struct upstream *upstream = origin->idle;
    int err;

    if (upstream && !is_fresh) {
        unlink_idle(upstream);
        upstream->state = UPSTREAM_BUSY;
        upstream->is_reused = 1;
        origin->worker->stats.reuses++;
        *upstream_out = upstream;
        return 0;
    }
    err = dial(origin, upstream_out);
    /* Descriptors are short: an idle connection is worth less than a
     * request. Its descriptor is free in the next turn only. */
    if (err == -EMFILE || err == -ENFILE || err == MYRA_ELIMIT)
        upstream_drop_oldest(origin->worker);
    return err;
}

void upstream_keep(struct upstream *upstream)
{
    struct origin *origin = upstream->origin;
    struct worker *worker = origin->worker;

    upstream->exchange = NULL;
    if (worker->is_draining || upstream->is_high ||
        origin->idle_count >= worker->options->upstream_idle_max) {
        upstream_close(upstream);
        return;
    }
    upstream->state = UPSTREAM_IDLE;
    link_idle(upstream);
    upstream_resume(upstream, upstream->pauses);
    myra_conn_set_deadline(upstream->conn,
                           worker->options->upstream_idle_timeout_ns);
}

/* 0 when it is closing already. */
static int detach(struct upstream *upstream)
{
    upstream->exchange = NULL;
    if (upstream->state == UPSTREAM_CLOSING)
        return 0;
    if (upstream->state == UPSTREAM_IDLE)
        unlink_idle(upstream);
    upstream->state = UPSTREAM_CLOSING;
    return 1;
}

void upstream_close(struct upstream *upstream)
{
    if (detach(upstream))
        myra_conn_close(upstream->conn);
}

void upstream_drop(struct upstream *upstream)
{
    if (detach(upstream))
        myra_conn_abort(upstream->conn);
}

void upstream_pause(struct upstream *upstream, unsigned why)
{
    if (!upstream->pauses)
        myra_conn_pause(upstream->conn);
    upstream->pauses |= (uint8_t)why;
}

void upstream_resume(struct upstream *upstream, unsigned why)
{
    const uint8_t before = upstream->pauses;

    upstream->pauses &= (uint8_t)~why;
    if (before && !upstream->pauses)
        myra_conn_resume(upstream->conn);
}

static struct origin *next_origin(struct worker *worker, uint32_t *at,
                                  struct origin *origin)
{
    const uint32_t table = sizeof(worker->forward) / sizeof(void *);

    if (origin && origin->hash_next)
        return origin->hash_next;
    while (*at < table) {
        origin = worker->forward[(*at)++];
        if (origin)
            return origin;
    }
    return worker->targets ? worker->targets[(*at)++ - table] : NULL;
}

int upstream_drop_oldest(struct worker *worker)
{
    uint32_t at = 0;
    struct origin *origin = next_origin(worker, &at, NULL);

    /* Of any origin: which one does not matter where all are short. */
    for (; origin; origin = next_origin(worker, &at, origin)) {
        if (origin->idle_last) {
            upstream_drop(origin->idle_last);
            return 1;
        }
    }
    return 0;
}

void upstream_drop_idle(struct worker *worker)
{
    uint32_t at = 0;
    struct origin *origin = next_origin(worker, &at, NULL);

    for (; origin; origin = next_origin(worker, &at, origin))
        while (origin->idle)
            upstream_close(origin->idle);
}

/* ---- Callbacks ---------------------------------------------------------- */

static void on_open(struct myra_conn *conn, void *user)
{
    struct upstream *upstream = user;

    (void)conn;
    upstream->state = UPSTREAM_BUSY;
    if (upstream->exchange)
        exchange_upstream_open(upstream->exchange);
}

static int64_t on_data(struct myra_conn *conn, const struct myra_slice *data,
                       void *user)
{
    struct upstream *upstream = user;

    (void)conn;
    if (upstream->exchange)
        return (int64_t)response_data(upstream->exchange, data);
    /* Bytes that nobody asked for: it must not be used again. */
    upstream_drop(upstream);
    return (int64_t)data->len;
}

static void on_eof(struct myra_conn *conn, size_t kept_len, void *user)
{
    struct upstream *upstream = user;

    (void)conn;
    if (upstream->exchange)
        response_eof(upstream->exchange, kept_len);
    else
        upstream_close(upstream);
}

/* Whoever is waited for has the deadline. */
static void move_deadline(struct upstream *upstream, int is_high)
{
    const struct exchange *exchange = upstream->exchange;
    struct session *session = exchange->session;
    const struct proxy_options *options = session->worker->options;

    if (is_high) {
        if (!session->is_high)
            myra_conn_set_deadline(session->conn, 0);
        myra_conn_set_deadline(upstream->conn, options->send_timeout_ns);
    } else if (exchange->request.is_done) {
        if (!session->is_high)
            myra_conn_set_deadline(upstream->conn,
                                   options->response_timeout_ns);
    } else {
        myra_conn_set_deadline(session->conn, options->body_timeout_ns);
        if (!(exchange->flags & EXCHANGE_HEAD_SENT))
            myra_conn_set_deadline(upstream->conn, 0);
    }
}

void upstream_set_high(struct upstream *upstream, int is_high)
{
    struct exchange *exchange = upstream->exchange;

    if (upstream->is_high == is_high)
        return;
    upstream->is_high = (uint8_t)is_high;
    if (!exchange)
        return;
    if (is_high)
        session_pause(exchange->session, PAUSE_PRESSURE);
    else
        session_resume(exchange->session, PAUSE_PRESSURE);
    if (!(exchange->flags & EXCHANGE_TUNNEL))
        move_deadline(upstream, is_high);
}

static void on_pressure(struct myra_conn *conn, int is_high, void *user)
{
    (void)conn;
    upstream_set_high(user, is_high);
}

static void on_drained(struct myra_conn *conn, void *user)
{
    (void)conn;
    upstream_set_high(user, 0);
}

static void on_deadline(struct myra_conn *conn, void *user)
{
    struct upstream *upstream = user;
    struct exchange *exchange = upstream->exchange;

    (void)conn;
    if (!exchange) {
        upstream_close(upstream);
        return;
    }
    if (exchange->flags & EXCHANGE_TUNNEL) {
        tunnel_end(exchange);
        return;
    }
    if (!(exchange->flags & EXCHANGE_HEAD_SENT))
        origin_failed(upstream->origin);
    exchange_fail(exchange, 504, STATS_UPSTREAM_TIMEOUT);
}

static void on_closed(struct myra_conn *conn, enum myra_close_reason reason,
                      int err, void *user)
{
    struct upstream *upstream = user;
    struct origin *origin = upstream->origin;
    struct exchange *exchange = upstream->exchange;

    (void)conn;
    if (upstream->state == UPSTREAM_IDLE)
        unlink_idle(upstream);
    upstream->state = UPSTREAM_CLOSING;
    if (exchange)
        exchange_upstream_gone(exchange, reason, err);
    origin->conn_count--;
    origin->worker->upstream_count--;
    slab_release(&origin->worker->upstream_slab, upstream);
}

static const struct myra_conn_events upstream_events = {
    .on_open = on_open,
    .on_data = on_data,
    .on_eof = on_eof,
    .on_pressure = on_pressure,
    .on_drained = on_drained,
    .on_deadline = on_deadline,
    .on_closed = on_closed,
};
