/* SPDX-License-Identifier: MIT */
/*
 * One request and its response: where it goes, what happens when that fails,
 * and how it ends.
 *
 * What goes upstream is written to the exchange's hold first and stays there
 * while it fits. So a request can go to the next address or target when a
 * connection cannot be made, and once more when a connection ended without a
 * byte of an answer: always if nothing of it had left, else if its method is
 * idempotent.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "proxy.h"

#define EXPECT_WAIT_NS UINT64_C(1000000000)

/* What one step over a held body may write besides the bytes it reads. */
#define HOLD_MARGIN 64

void exchange_log(struct worker *worker, const struct access_log_entry *entry)
{
    worker_tick(worker);
    if (access_log_write(worker->log, myra_loop_now_ns(worker->loop),
                         entry) == 0)
        worker->stats.log_lines++;
    else
        worker->stats.log_dropped++;
}

static void log_exchange(const struct exchange *exchange)
{
    const struct session *session = exchange->session;
    struct worker *worker = session->worker;
    const struct origin *origin = exchange->origin;
    const struct access_log_entry entry = {
        .peer = session->peer,
        .line = exchange->hold,
        .line_len = exchange->line_len,
        .authority = origin && origin->name ? origin->authority : NULL,
        .upstream = origin ? origin->authority : NULL,
        .request_bytes = exchange->request.body.body_len,
        .response_bytes = exchange->response.body.body_len,
        .duration_ns = myra_loop_now_ns(worker->loop) - exchange->start_ns,
        .status = exchange->status ? exchange->status : 499,
        .version_minor = exchange->version_minor,
        .retry_count = exchange->retry_count,
        .is_reused = exchange->flags & EXCHANGE_REUSED ? 1 : 0,
    };

    exchange_log(worker, &entry);
}

/* Counts, logs, and frees all but the upstream connection. */
static void end(struct exchange *exchange)
{
    struct worker *worker = exchange->session->worker;
    struct stats *stats = &worker->stats;

    stats->responses[exchange->status < 600 ? exchange->status / 100 : 0]++;
    stats->request_body_bytes += exchange->request.body.body_len;
    stats->response_body_bytes += exchange->response.body.body_len;
    if (worker->log)
        log_exchange(exchange);
    if (exchange->flags & EXCHANGE_WAITING)
        origin_stop_waiting(exchange->origin, exchange);
    exchange->session->exchange = NULL;
    hold_release(exchange);
    slab_release(&worker->exchange_slab, exchange);
    if (worker->exchange_slab.empty_count > 1)
        worker_tick(worker);
}

static void drop_upstream(struct exchange *exchange)
{
    struct upstream *upstream = exchange->upstream;

    exchange->upstream = NULL;
    if (upstream)
        upstream_drop(upstream);
}

void exchange_fail(struct exchange *exchange, int status,
                   enum stats_error why)
{
    struct session *session = exchange->session;
    const int is_begun = (exchange->flags & EXCHANGE_HEAD_SENT) != 0;
    const int is_kept = (exchange->flags & EXCHANGE_KEEP) != 0 &&
                        exchange->request.is_done && !session->has_ended &&
                        !session->worker->is_draining;
    int err = 0;

    session->worker->stats.errors[why]++;
    drop_upstream(exchange);
    if (!is_begun) {
        exchange->status = (uint16_t)status;
        err = answer_send(session, status, is_kept,
                          exchange->method == MYRA_METHOD_HEAD,
                          exchange->version_minor);
        if (err > 0)
            exchange->response.body.body_len = (uint64_t)err;
    }
    end(exchange);
    if (is_begun || err < 0)
        session_cut(session);
    else
        session_end_exchange(session, is_kept);
}

void exchange_finish(struct exchange *exchange, int is_reusable)
{
    struct session *session = exchange->session;
    struct upstream *upstream = exchange->upstream;
    const int is_whole = exchange->request.is_done;
    const int is_kept = (exchange->flags & EXCHANGE_KEEP) != 0 && is_whole;

    exchange->upstream = NULL;
    session->worker->stats.completed++;
    if (upstream && is_reusable && is_whole)
        upstream_keep(upstream);
    else if (upstream && is_whole)
        upstream_close(upstream);
    else if (upstream)
        upstream_drop(upstream);
    end(exchange);
    session_end_exchange(session, is_kept);
}

void exchange_abandon(struct exchange *exchange)
{
    exchange->session->worker->stats.errors[STATS_CLIENT_GONE]++;
    drop_upstream(exchange);
    end(exchange);
}

/* ---- Where it goes ------------------------------------------------------ */

/* 0, or the status to refuse with. */
static int route(struct exchange *exchange, const uint8_t *data,
                 const struct myra_http_head *head)
{
    struct session *session = exchange->session;
    const struct myra_http_authority *authority = &head->target.authority;
    const uint8_t scheme = head->target.scheme;
    uint16_t port = authority->port;

    if (head->method == MYRA_METHOD_CONNECT)
        return 501;
    if (head->target.form == MYRA_TARGET_ABSOLUTE &&
        (scheme == MYRA_SCHEME_HTTPS || scheme == MYRA_SCHEME_WSS))
        return 501;
    if (head->target.form != MYRA_TARGET_ABSOLUTE ||
        !session->site->is_forward)
        return session->site->target_count ? 0 : 400;
    if (!authority->host_len)
        return 400;
    if (!port)
        port = myra_http_scheme_port(scheme);
    exchange->flags |= EXCHANGE_FORWARD;
    exchange->origin =
        origin_find(session->worker, data + authority->host_off,
                    authority->host_len, port, authority->is_ipv6);
    return exchange->origin ? 0 : 503;
}

static void set_flags(struct exchange *exchange,
                      const struct myra_http_head *head)
{
    uint32_t flags = EXCHANGE_HELD;

    if (head->flags & MYRA_HEAD_KEEP_ALIVE &&
        head->method != MYRA_METHOD_CONNECT &&
        !exchange->session->worker->is_draining)
        flags |= EXCHANGE_KEEP;
    if (myra_http_method_is_idempotent(head->method))
        flags |= EXCHANGE_IDEMPOTENT;
    if (head->flags & MYRA_HEAD_WEBSOCKET)
        flags |= EXCHANGE_WEBSOCKET;
    if (head->flags & MYRA_HEAD_EXPECT_100 &&
        !myra_http_body_is_complete(&exchange->request.body) &&
        head->framing != MYRA_FRAMING_NONE)
        flags |= EXCHANGE_EXPECT;
    if (head->version_minor == 0 && flags & EXCHANGE_KEEP)
        flags |= EXCHANGE_KEEP_ASKED;
    exchange->flags |= flags;
}

static void count_request(struct worker *worker)
{
    if (++worker->stats.requests == 1000) {
        uint64_t frees, bytes;

        myra_counting_read(&worker->counting, &worker->stats.warm_allocs,
                           &frees, &bytes);
    }
}

static struct exchange *make(struct session *session,
                             const struct myra_http_head *head)
{
    struct worker *worker = session->worker;
    struct exchange *exchange = slab_acquire(&worker->exchange_slab);

    if (!exchange)
        return NULL;
    memset(exchange, 0, sizeof(*exchange));
    exchange->session = session;
    exchange->start_ns = myra_loop_now_ns(worker->loop);
    exchange->hold = exchange->line;
    exchange->hold_cap = EXCHANGE_BLOCK - sizeof(*exchange);
    exchange->method = head->method;
    exchange->version_minor = head->version_minor;
    session->exchange = exchange;
    return exchange;
}

void exchange_start(struct session *session, const uint8_t *data,
                    const struct myra_http_head *head)
{
    struct worker *worker = session->worker;
    struct exchange *exchange = make(session, head);
    int status, err;

    count_request(worker);
    if (!exchange) {
        worker->stats.errors[STATS_LIMIT]++;
        answer_send(session, 503, 0, head->method == MYRA_METHOD_HEAD, 1);
        session_close(session);
        return;
    }
    err = myra_http_body_init(&exchange->request.body, head,
                              &worker->request_limits);
    exchange->request.as = head->framing;
    exchange->request.is_done =
        !err && (head->framing == MYRA_FRAMING_NONE ||
                 myra_http_body_is_complete(&exchange->request.body));
    set_flags(exchange, head);
    myra_conn_set_deadline(session->conn,
                           exchange->request.is_done
                               ? 0
                               : worker->options->body_timeout_ns);
    status = err ? myra_http_status_of(err, 0) : route(exchange, data, head);
    if (!status) {
        err = rewrite_request(exchange, data, head);
        status = !err ? 0 : err == MYRA_ENOMEM ? 503 : 400;
    }
    if (status)
        exchange_fail(exchange, status,
                      err ? STATS_BAD_REQUEST
                          : status == 503 ? STATS_LIMIT : STATS_NO_ROUTE);
    else
        exchange_send(exchange);
}

/* A connection could not be made: the next address, or the next target.
 * 0, or -1 after the exchange has failed. */
static int move_on(struct exchange *exchange, int err)
{
    struct origin *origin = exchange->origin;
    const int is_late = err == -ETIMEDOUT || err == MYRA_ETIMEOUT;

    if (err == -EMFILE || err == -ENFILE || err == MYRA_ENOMEM ||
        err == MYRA_ELIMIT || err == -ENOBUFS || err == -ENOMEM) {
        exchange_fail(exchange, 503, STATS_LIMIT);
        return -1;
    }
    origin->addr_next = (origin->addr_next + 1) %
                        (origin->addr_count ? origin->addr_count : 1);
    if (++exchange->addr_tries < origin->addr_count)
        return 0;
    /* One line an outage, not one a request. */
    if (!origin->fail_count &&
        !exchange->session->worker->options->is_quiet)
        fprintf(stderr, "myra-proxy: cannot connect to %s: %s\n",
                origin->authority, myra_strerror(err));
    origin_failed(origin);
    exchange->last_status = is_late ? 504 : 502;
    if (exchange->flags & EXCHANGE_FORWARD) {
        exchange_fail(exchange, exchange->last_status,
                      is_late ? STATS_CONNECT_TIMEOUT : STATS_CONNECT);
        return -1;
    }
    exchange->session->worker->stats.failovers++;
    exchange->origin = NULL;
    return 0;
}

/* An origin with addresses. 1: there is one; 0: waits, or has failed. */
static int find_origin(struct exchange *exchange)
{
    struct session *session = exchange->session;
    int res;

    if (!exchange->origin) {
        exchange->addr_tries = 0;
        exchange->origin = origin_choose(session->worker, session->site,
                                         &exchange->tried);
    }
    if (!exchange->origin) {
        const int is_late = exchange->last_status == 504;

        exchange_fail(exchange,
                      exchange->last_status ? exchange->last_status : 502,
                      is_late ? STATS_CONNECT_TIMEOUT : STATS_CONNECT);
        return 0;
    }
    res = origin_want_name(exchange->origin, exchange);
    if (res == 0) {
        exchange->flags |= EXCHANGE_WAITING;
        myra_conn_set_deadline(session->conn,
                               session->worker->options->connect_timeout_ns);
    } else if (res < 0) {
        exchange_fail(exchange, 503, STATS_LIMIT);
    } else if (!exchange->origin->addr_count) {
        exchange_fail(exchange, 502, STATS_NAME);
    }
    return res == 1 && session->exchange == exchange;
}

/* Sends what is held on a connection that was found for it. */
static void attach(struct exchange *exchange, struct upstream *upstream)
{
    struct session *session = exchange->session;

    exchange->upstream = upstream;
    upstream->exchange = exchange;
    exchange->sent_before = myra_conn_sent_bytes(upstream->conn);
    exchange->recv_before = myra_conn_recv_bytes(upstream->conn);
    memset(&exchange->scan, 0, sizeof(exchange->scan));
    if (upstream->is_reused)
        exchange->flags |= EXCHANGE_REUSED;
    else
        exchange->flags &= ~(uint32_t)EXCHANGE_REUSED;
    if (session->is_high)
        upstream_pause(upstream, PAUSE_PRESSURE);
    if (myra_conn_send(upstream->conn, exchange->hold, exchange->hold_len) <
        0)
        exchange_fail(exchange, 502, STATS_UPSTREAM_GONE);
    else if (upstream->state == UPSTREAM_BUSY)
        exchange_upstream_open(exchange);
}

void exchange_send(struct exchange *exchange)
{
    struct upstream *upstream;
    int err;

    while (find_origin(exchange)) {
        /* The retry must not meet a second stale connection. */
        const int is_fresh = (exchange->flags & EXCHANGE_RETRIED) != 0;

        err = upstream_take(exchange->origin, is_fresh, &upstream);
        if (err == 0) {
            attach(exchange, upstream);
            return;
        }
        if (move_on(exchange, err) < 0)
            return;
    }
}

void exchange_name_done(struct exchange *exchange)
{
    struct session *session = exchange->session;

    exchange->flags &= ~(uint32_t)EXCHANGE_WAITING;
    myra_conn_set_deadline(session->conn,
                           exchange->request.is_done
                               ? 0
                               : session->worker->options->body_timeout_ns);
    exchange_send(exchange);
}

/* ---- The upstream connection -------------------------------------------- */

void exchange_upstream_open(struct exchange *exchange)
{
    struct session *session = exchange->session;
    const struct proxy_options *options = session->worker->options;

    session_resume(session, PAUSE_CONNECT);
    if (exchange->request.is_done)
        myra_conn_set_deadline(exchange->upstream->conn,
                               options->response_timeout_ns);
    else if (exchange->flags & EXCHANGE_EXPECT)
        myra_conn_set_deadline(session->conn, EXPECT_WAIT_NS);
}

/* May what is held be sent again? */
static int may_retry(const struct exchange *exchange)
{
    const struct myra_conn *conn = exchange->upstream->conn;

    if (!(exchange->flags & EXCHANGE_HELD) ||
        exchange->flags & EXCHANGE_RETRIED ||
        exchange->session->worker->is_stopping ||
        myra_conn_recv_bytes(conn) != exchange->recv_before)
        return 0;
    return exchange->flags & EXCHANGE_IDEMPOTENT ||
           myra_conn_sent_bytes(conn) == exchange->sent_before;
}

static void retry(struct exchange *exchange, int was_stale)
{
    struct session *session = exchange->session;
    struct worker *worker = session->worker;

    worker->stats.retries++;
    exchange->retry_count++;
    exchange->flags |= EXCHANGE_RETRIED;
    if (!(exchange->flags & EXCHANGE_FORWARD)) {
        /* The next target; this one again only where it has not failed, or
         * is the only one. */
        if (was_stale || session->site->target_count == 1)
            exchange->tried = 0;
        exchange->origin = NULL;
    }
    exchange->addr_tries = 0;
    exchange_send(exchange);
}

void exchange_upstream_gone(struct exchange *exchange,
                            enum myra_close_reason reason, int err)
{
    struct upstream *upstream = exchange->upstream;
    const int is_retry = may_retry(exchange);
    const int was_stale = upstream->is_reused;

    if (reason == MYRA_CLOSE_CONNECT) {
        exchange->upstream = NULL;
        upstream->exchange = NULL;
        if (move_on(exchange, err) == 0)
            exchange_send(exchange);
        return;
    }
    if (exchange->flags & EXCHANGE_TUNNEL && reason != MYRA_CLOSE_RESET) {
        tunnel_end(exchange);
        return;
    }
    /* A tunnel that was cut must not look like one that ended. */
    if (exchange->flags & (EXCHANGE_HEAD_SENT | EXCHANGE_TUNNEL)) {
        exchange->flags |= EXCHANGE_HEAD_SENT;
        exchange_fail(exchange, 502, STATS_UPSTREAM_CUT);
        return;
    }
    if (!was_stale)
        origin_failed(exchange->origin);
    if (!is_retry) {
        exchange_fail(exchange, 502, STATS_UPSTREAM_GONE);
        return;
    }
    drop_upstream(exchange);
    retry(exchange, was_stale);
}

/* ---- The request's body ------------------------------------------------- */

static int is_http_error(int64_t err)
{
    return err <= MYRA_HTTP_START && err > MYRA_HTTP_START - 99;
}

static size_t body_failed(struct exchange *exchange, int err, size_t len)
{
    if (is_http_error(err)) {
        exchange_fail(exchange, myra_http_status_of(err, 0),
                      STATS_BAD_REQUEST);
        return len;
    }
    if (err == MYRA_ECLOSED) {
        /* The upstream takes no more, but may have answered already: that,
         * or its end, comes next. */
        session_pause(exchange->session, PAUSE_PRESSURE);
        return 0;
    }
    exchange_fail(exchange, 502, STATS_UPSTREAM_GONE);
    return len;
}

static void request_done(struct exchange *exchange)
{
    const struct proxy_options *options =
        exchange->session->worker->options;

    if (!exchange->session->is_high)
        myra_conn_set_deadline(exchange->session->conn, 0);
    if (exchange->upstream->state == UPSTREAM_BUSY)
        myra_conn_set_deadline(exchange->upstream->conn,
                               options->response_timeout_ns);
}

/* How many of len bytes may be relayed now: while the upstream connection is
 * not open, no more than can be held for the next one. */
static size_t allowed(const struct exchange *exchange, size_t len)
{
    size_t room;

    if (!exchange->upstream)
        return 0;
    if (exchange->upstream->state != UPSTREAM_CONNECTING)
        return len;
    room = exchange->hold_cap - exchange->hold_len;
    room = room > HOLD_MARGIN ? room - HOLD_MARGIN : 0;
    return len < room ? len : room;
}

size_t exchange_request_data(struct exchange *exchange,
                             const struct myra_slice *slice, size_t offset)
{
    struct session *session = exchange->session;
    const size_t len = allowed(exchange, slice->len - offset);
    int64_t used;

    if (exchange->request.is_done) {
        session_pause(session, PAUSE_NEXT);
        return 0;
    }
    if (!len) {
        session_pause(session, PAUSE_CONNECT);
        return 0;
    }
    exchange->flags &= ~(uint32_t)EXCHANGE_EXPECT;
    used = relay_data(&exchange->request, exchange->upstream->conn, slice,
                      offset, len, exchange);
    if (used < 0)
        return body_failed(exchange, (int)used, slice->len - offset);
    if (myra_conn_queued(exchange->upstream->conn) >= QUEUE_HIGH)
        upstream_set_high(exchange->upstream, 1);
    if (exchange->request.is_done)
        request_done(exchange);
    else if (!session->pauses)
        myra_conn_set_deadline(session->conn,
                               session->worker->options->body_timeout_ns);
    return (size_t)used;
}

void exchange_continue(struct exchange *exchange)
{
    static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";

    exchange->flags &= ~(uint32_t)EXCHANGE_EXPECT;
    exchange->flags |= EXCHANGE_CONTINUED;
    myra_conn_send(exchange->session->conn, text, sizeof(text) - 1);
    myra_conn_set_deadline(
        exchange->session->conn,
        exchange->session->worker->options->body_timeout_ns);
}

void exchange_client_deadline(struct exchange *exchange)
{
    struct session *session = exchange->session;

    if (exchange->flags & EXCHANGE_TUNNEL) {
        tunnel_end(exchange);
    } else if (exchange->flags & EXCHANGE_WAITING) {
        exchange_fail(exchange, 504, STATS_NAME);
    } else if (session->is_high) {
        exchange->flags |= EXCHANGE_HEAD_SENT;
        exchange_fail(exchange, 0, STATS_CLIENT_STALLED);
    } else if (exchange->flags & EXCHANGE_EXPECT) {
        exchange_continue(exchange);
    } else if (!exchange->request.is_done) {
        exchange_fail(exchange, 408, STATS_CLIENT_TIMEOUT);
    }
}
