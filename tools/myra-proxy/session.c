/* SPDX-License-Identifier: MIT */
/*
 * One client connection.
 *
 *            first byte        whole head           response complete
 *     IDLE ------------> HEAD ------------> BUSY ---------------------.
 *      ^                  |  refused         |  cut, or not kept      |
 *      |                  v                  v                        |
 *      |               CLOSING <-------------+------------------------|
 *      '---------------------------------------------------- kept ----'
 *
 * BUSY has one exchange, which relays the request's body to the upstream and
 * the response to the client. Requests that come behind it wait, unread, in
 * the connection: reading pauses (PAUSE_NEXT) until the exchange is over, so
 * answers cannot but be in order. One deadline at a time is set: for the
 * idle time, the head, the next piece of the body, or the client's reading.
 */
#include "config.h"

#include <string.h>

#include "proxy.h"

static size_t session_size(const struct worker *worker)
{
    return sizeof(struct session) + (worker->log ? PEER_CAP : 0);
}

void session_pause(struct session *session, unsigned why)
{
    if (!session->pauses)
        myra_conn_pause(session->conn);
    session->pauses |= (uint8_t)why;
}

void session_resume(struct session *session, unsigned why)
{
    const uint8_t before = session->pauses;

    session->pauses &= (uint8_t)~why;
    if (before && !session->pauses)
        myra_conn_resume(session->conn);
}

void session_close(struct session *session)
{
    session->exchange = NULL;
    session->state = SESSION_CLOSING;
    myra_conn_close(session->conn);
}

void session_cut(struct session *session)
{
    session->exchange = NULL;
    session->state = SESSION_CLOSING;
    myra_conn_abort(session->conn);
}

void session_end_exchange(struct session *session, int is_kept)
{
    struct worker *worker = session->worker;

    session->exchange = NULL;
    if (!is_kept || session->has_ended || worker->is_draining) {
        session_close(session);
        return;
    }
    session->state = SESSION_IDLE;
    session->sent_mark = 0;
    myra_conn_set_deadline(session->conn, worker->options->idle_timeout_ns);
    session_resume(session, PAUSE_NEXT | PAUSE_CONNECT | PAUSE_PRESSURE);
}

/* Refuses what cannot be read: nothing behind it is looked at. */
static void refuse(struct session *session, int status,
                   enum stats_error why)
{
    struct worker *worker = session->worker;
    int body_len;

    worker->stats.errors[why]++;
    worker->stats.responses[status / 100]++;
    body_len = answer_send(session, status, 0, 0, 1);
    if (worker->log) {
        const struct access_log_entry entry = {.peer = session->peer,
                                               .response_bytes =
                                                   body_len > 0
                                                       ? (uint64_t)body_len
                                                       : 0,
                                               .status = status,
                                               .version_minor = 1};

        exchange_log(worker, &entry);
    }
    session_close(session);
}

/* Returns the bytes of a whole head, or 0. */
static size_t read_head(struct session *session,
                        const struct myra_slice *slice, size_t offset)
{
    struct worker *worker = session->worker;
    struct myra_http_head head = {
        .fields = worker->fields,
        .field_cap = worker->request_limits.field_count_max};
    int n;

    if (session->is_high) {
        /* It does not read its answers: no more of them until it does. */
        session_pause(session, PAUSE_BACKLOG);
        return 0;
    }
    n = myra_http_request_parse(
        slice->data + offset, slice->len - offset, slice->readable - offset,
        &worker->request_limits, &session->scan, &head);
    if (n == 0) {
        if (session->state == SESSION_IDLE &&
            !myra_http_scan_is_idle(&session->scan)) {
            session->state = SESSION_HEAD;
            if (session->is_used)
                myra_conn_set_deadline(session->conn,
                                       worker->options->header_timeout_ns);
        }
        return 0;
    }
    memset(&session->scan, 0, sizeof(session->scan));
    if (n < 0) {
        refuse(session, myra_http_status_of(n, 0), STATS_BAD_REQUEST);
        return slice->len - offset;
    }
    session->is_used = 1;
    session->state = SESSION_BUSY;
    exchange_start(session, slice->data + offset, &head);
    return (size_t)n;
}

static int64_t on_data(struct myra_conn *conn, const struct myra_slice *data,
                       void *user)
{
    struct session *session = user;
    size_t used = 0;

    (void)conn;
    while (used < data->len && !session->pauses) {
        struct exchange *exchange = session->exchange;
        size_t n;

        if (session->state == SESSION_CLOSING)
            return (int64_t)data->len;
        if (!exchange)
            n = read_head(session, data, used);
        else if (exchange->flags & EXCHANGE_TUNNEL)
            n = tunnel_client_data(exchange, data, used);
        else
            n = exchange_request_data(exchange, data, used);
        if (!n)
            break;
        used += n;
    }
    return session->state == SESSION_CLOSING ? (int64_t)data->len
                                             : (int64_t)used;
}

static void on_open(struct myra_conn *conn, void *user)
{
    const struct front *front = user;
    struct worker *worker = front->worker;
    struct session *session = slab_acquire(&worker->session_slab);

    if (!session) {
        myra_conn_set_user(conn, NULL);
        myra_conn_abort(conn);
        return;
    }
    memset(session, 0, session_size(worker));
    session->conn = conn;
    session->worker = worker;
    session->site = front->site;
    if (worker->log)
        myra_conn_peer(conn, session->peer, PEER_CAP);
    myra_conn_set_user(conn, session);
    myra_conn_set_deadline(conn, worker->options->header_timeout_ns);
    worker_add_session(worker, session);
}

static void on_eof(struct myra_conn *conn, size_t kept_len, void *user)
{
    struct session *session = user;
    struct exchange *exchange = session->exchange;

    (void)conn;
    session->has_ended = 1;
    if (exchange && exchange->flags & EXCHANGE_TUNNEL)
        tunnel_client_eof(exchange);
    else if (exchange && !exchange->request.is_done)
        exchange_fail(exchange, 400, STATS_CLIENT_GONE);
    else if (exchange)
        return; /* a client may end its side and wait for the answer */
    else if (session->state == SESSION_HEAD && kept_len)
        refuse(session, 400, STATS_BAD_REQUEST);
    else
        session_close(session);
}

void session_set_high(struct session *session, int is_high)
{
    struct exchange *exchange = session->exchange;
    const struct proxy_options *options = session->worker->options;
    struct upstream *upstream = exchange ? exchange->upstream : NULL;

    if (session->is_high == is_high)
        return;
    session->is_high = (uint8_t)is_high;
    if (!is_high)
        session_resume(session, PAUSE_BACKLOG);
    if (!upstream)
        return;
    if (is_high)
        upstream_pause(upstream, PAUSE_PRESSURE);
    else
        upstream_resume(upstream, PAUSE_PRESSURE);
    if (exchange->flags & EXCHANGE_TUNNEL)
        return;
    /* Whoever is waited for has the deadline. */
    myra_conn_set_deadline(session->conn,
                           is_high ? options->send_timeout_ns
                           : exchange->request.is_done
                               ? 0
                               : options->body_timeout_ns);
    myra_conn_set_deadline(upstream->conn,
                           is_high ? 0 : options->response_timeout_ns);
}

static void on_pressure(struct myra_conn *conn, int is_high, void *user)
{
    (void)conn;
    session_set_high(user, is_high);
}

static void on_drained(struct myra_conn *conn, void *user)
{
    (void)conn;
    session_set_high(user, 0);
}

/* A client that still takes its last answer is not idle. */
static int is_reading(struct session *session)
{
    const uint32_t sent = (uint32_t)myra_conn_sent_bytes(session->conn);

    if (!myra_conn_queued(session->conn) || sent == session->sent_mark)
        return 0;
    session->sent_mark = sent;
    return 1;
}

static void on_deadline(struct myra_conn *conn, void *user)
{
    struct session *session = user;
    const struct proxy_options *options = session->worker->options;

    if (session->exchange)
        exchange_client_deadline(session->exchange);
    else if (session->state == SESSION_HEAD)
        refuse(session, 408, STATS_CLIENT_TIMEOUT);
    else if (is_reading(session))
        myra_conn_set_deadline(conn, options->idle_timeout_ns);
    else if (myra_conn_queued(conn))
        session_cut(session);
    else
        session_close(session);
}

static void on_closed(struct myra_conn *conn, enum myra_close_reason reason,
                      int err, void *user)
{
    struct session *session = user;
    struct worker *worker;

    (void)conn;
    (void)reason;
    (void)err;
    if (!session)
        return;
    worker = session->worker;
    session->state = SESSION_CLOSING;
    if (session->exchange)
        exchange_abandon(session->exchange);
    worker_remove_session(worker, session);
    slab_release(&worker->session_slab, session);
}

const struct myra_conn_events session_events = {
    .on_open = on_open,
    .on_data = on_data,
    .on_eof = on_eof,
    .on_pressure = on_pressure,
    .on_drained = on_drained,
    .on_deadline = on_deadline,
    .on_closed = on_closed,
};
