/* SPDX-License-Identifier: MIT */
/* The way back: interim responses, the final head, its body. */
#include "config.h"

#include <string.h>

#include "proxy.h"

/* More of them in a row are no progress but a fault. */
#define INTERIM_MAX 16

static void bad_response(struct exchange *exchange)
{
    exchange_fail(exchange, 502, STATS_UPSTREAM_BAD);
}

/* A 1xx goes on to clients that know it, a 100 only once. 0, or -1 after the
 * exchange has failed. */
static int interim(struct exchange *exchange, const uint8_t *data,
                   const struct myra_http_head *head)
{
    const int is_continue = head->status == 100;

    if (++exchange->interim_count > INTERIM_MAX) {
        bad_response(exchange);
        return -1;
    }
    if (exchange->version_minor == 0 ||
        (is_continue && exchange->flags & EXCHANGE_CONTINUED))
        return 0;
    if (is_continue && exchange->flags & EXCHANGE_EXPECT) {
        exchange->flags &= ~(uint32_t)EXCHANGE_EXPECT;
        exchange->flags |= EXCHANGE_CONTINUED;
        myra_conn_set_deadline(
            exchange->session->conn,
            exchange->session->worker->options->body_timeout_ns);
    }
    if (rewrite_response(exchange, data, head, 1) == 0)
        return 0;
    bad_response(exchange);
    return -1;
}

/* How the body goes to the client. */
static uint8_t framing_for_client(const struct exchange *exchange,
                                  const struct myra_http_head *head)
{
    if (head->framing == MYRA_FRAMING_CLOSE && exchange->version_minor)
        return MYRA_FRAMING_CHUNKED;
    if (head->framing == MYRA_FRAMING_CHUNKED && !exchange->version_minor)
        return MYRA_FRAMING_CLOSE;
    return head->framing;
}

/* 0, or -1 after the exchange has failed. */
static int final(struct exchange *exchange, const uint8_t *data,
                 const struct myra_http_head *head)
{
    struct relay *relay = &exchange->response;
    int is_kept;

    origin_succeeded(exchange->origin);
    relay->as = framing_for_client(exchange, head);
    exchange->status = head->status;
    if (head->flags & MYRA_HEAD_KEEP_ALIVE)
        exchange->flags |= EXCHANGE_UPSTREAM_KEEP;
    /* A body that is not read to its end cannot be told from the next
     * request; an end told by closing cannot be told otherwise. */
    if (!exchange->request.is_done || exchange->session->has_ended ||
        exchange->session->worker->is_draining ||
        relay->as == MYRA_FRAMING_CLOSE)
        exchange->flags &= ~(uint32_t)EXCHANGE_KEEP;
    is_kept = (exchange->flags & EXCHANGE_KEEP) != 0;
    if (myra_http_body_init(&relay->body, head,
                            &exchange->session->worker->response_limits) ||
        rewrite_response(exchange, data, head, is_kept)) {
        bad_response(exchange);
        return -1;
    }
    exchange->flags |= EXCHANGE_HEAD_SENT;
    return 0;
}

/* One head. Returns its length, 0 for more bytes, -1 after the exchange has
 * failed. */
static int read_head(struct exchange *exchange,
                     const struct myra_slice *slice, size_t offset)
{
    struct worker *worker = exchange->session->worker;
    const uint8_t *data = slice->data + offset;
    const uint8_t is_websocket = (exchange->flags & EXCHANGE_WEBSOCKET) != 0;
    const struct myra_http_asked asked = {exchange->method, is_websocket,
                                          is_websocket};
    struct myra_http_head head = {
        .fields = worker->fields,
        .field_cap = worker->response_limits.field_count_max};
    const int n = myra_http_response_parse(
        data, slice->len - offset, slice->readable - offset,
        &worker->response_limits, &asked, &exchange->scan, &head);
    int err;

    if (n == 0)
        return 0;
    if (n < 0) {
        origin_failed(exchange->origin);
        bad_response(exchange);
        return -1;
    }
    memset(&exchange->scan, 0, sizeof(exchange->scan));
    if (head.flags & MYRA_HEAD_INTERIM)
        err = interim(exchange, data, &head);
    else
        err = final(exchange, data, &head);
    if (err == 0 && head.framing == MYRA_FRAMING_TUNNEL &&
        !(head.flags & MYRA_HEAD_INTERIM))
        tunnel_start(exchange);
    return err < 0 ? -1 : n;
}

/* The body; the exchange is gone when it is complete or cut. */
static size_t read_body(struct exchange *exchange,
                        const struct myra_slice *slice, size_t offset)
{
    struct session *session = exchange->session;
    const size_t len = slice->len - offset;
    const int64_t used = relay_data(&exchange->response, session->conn,
                                    slice, offset, len, NULL);

    if (used < 0) {
        exchange_fail(exchange, 502,
                      used <= MYRA_HTTP_START ? STATS_UPSTREAM_BAD
                                              : STATS_CLIENT_GONE);
        return len;
    }
    if (exchange->response.is_done) {
        /* Bytes behind the response belong to nobody. */
        exchange_finish(exchange,
                        exchange->flags & EXCHANGE_UPSTREAM_KEEP &&
                            (size_t)used == len);
        return len;
    }
    if (myra_conn_queued(session->conn) >= QUEUE_HIGH)
        session_set_high(session, 1);
    if (!session->is_high)
        myra_conn_set_deadline(
            exchange->upstream->conn,
            session->worker->options->response_timeout_ns);
    return (size_t)used;
}

size_t response_data(struct exchange *exchange,
                     const struct myra_slice *slice)
{
    size_t used = 0;

    if (exchange->flags & EXCHANGE_TUNNEL)
        return tunnel_upstream_data(exchange, slice, 0);
    while (!(exchange->flags & EXCHANGE_HEAD_SENT)) {
        const int n = read_head(exchange, slice, used);

        if (n < 0)
            return slice->len;
        if (n == 0)
            return used;
        used += (size_t)n;
    }
    if (exchange->flags & EXCHANGE_TUNNEL)
        return used + tunnel_upstream_data(exchange, slice, used);
    return used + read_body(exchange, slice, used);
}

void response_eof(struct exchange *exchange, size_t kept_len)
{
    (void)kept_len;
    if (exchange->flags & EXCHANGE_TUNNEL) {
        tunnel_upstream_eof(exchange);
        return;
    }
    if (!(exchange->flags & EXCHANGE_HEAD_SENT) ||
        myra_http_body_eof(&exchange->response.body) < 0) {
        exchange_upstream_gone(exchange, MYRA_CLOSE_EOF, 0);
        return;
    }
    if (relay_end(&exchange->response, exchange->session->conn) < 0)
        exchange_fail(exchange, 502, STATS_CLIENT_GONE);
    else
        exchange_finish(exchange, 0);
}
