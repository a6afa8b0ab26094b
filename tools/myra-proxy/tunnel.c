/* SPDX-License-Identifier: MIT */
/* After a 101: bytes both ways, whatever they are. The end of one direction
 * is passed on and leaves the other one be. */
#include "config.h"

#include "proxy.h"

static void touch(struct exchange *exchange)
{
    const uint64_t timeout_ns =
        exchange->session->worker->options->tunnel_timeout_ns;

    myra_conn_set_deadline(exchange->session->conn, timeout_ns);
    myra_conn_set_deadline(exchange->upstream->conn, timeout_ns);
}

void tunnel_start(struct exchange *exchange)
{
    exchange->flags |= EXCHANGE_TUNNEL;
    exchange->flags &= ~(uint32_t)EXCHANGE_KEEP;
    exchange->session->worker->stats.tunnels++;
    touch(exchange);
    /* Frames that came with the request were waiting. */
    session_resume(exchange->session, PAUSE_NEXT);
}

void tunnel_end(struct exchange *exchange)
{
    exchange->request.is_done = 1;
    exchange_finish(exchange, 0);
}

size_t tunnel_client_data(struct exchange *exchange,
                          const struct myra_slice *slice, size_t offset)
{
    const size_t len = slice->len - offset;

    touch(exchange);
    exchange->request.body.body_len += len;
    if (myra_conn_send_slice(exchange->upstream->conn, slice, offset, len) <
        0)
        tunnel_end(exchange);
    else if (myra_conn_queued(exchange->upstream->conn) >= QUEUE_HIGH)
        upstream_set_high(exchange->upstream, 1);
    return len;
}

size_t tunnel_upstream_data(struct exchange *exchange,
                            const struct myra_slice *slice, size_t offset)
{
    const size_t len = slice->len - offset;

    if (!len)
        return 0;
    touch(exchange);
    exchange->response.body.body_len += len;
    if (myra_conn_send_slice(exchange->session->conn, slice, offset, len) <
        0)
        tunnel_end(exchange);
    else if (myra_conn_queued(exchange->session->conn) >= QUEUE_HIGH)
        session_set_high(exchange->session, 1);
    return len;
}

void tunnel_client_eof(struct exchange *exchange)
{
    if (exchange->upstream->has_ended)
        tunnel_end(exchange);
    else
        myra_conn_shutdown(exchange->upstream->conn);
}

void tunnel_upstream_eof(struct exchange *exchange)
{
    exchange->upstream->has_ended = 1;
    if (exchange->session->has_ended)
        tunnel_end(exchange);
    else
        myra_conn_shutdown(exchange->session->conn);
}
