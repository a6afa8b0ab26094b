/* SPDX-License-Identifier: MIT */
/* Heads on their way through: what is for one hop only goes, Via and the
 * framing that was decided come. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "proxy.h"

/* Via, Date, Connection, the longest Host of one's own, and names. */
#define OWN_FIELDS_MAX 640

/* What myra_conn_reserve takes. */
#define RESERVE_MAX 65536

static int hold_grow(struct exchange *exchange, size_t cap)
{
    const struct myra_allocator *alloc =
        &exchange->session->worker->counting.base;
    uint8_t *hold;

    if (cap <= exchange->hold_cap)
        return 0;
    hold = alloc->alloc(alloc->ctx, cap, 16);
    if (!hold)
        return MYRA_ENOMEM;
    memcpy(hold, exchange->hold, exchange->hold_len);
    hold_release(exchange);
    exchange->hold = hold;
    exchange->hold_cap = (uint32_t)cap;
    return 0;
}

void hold_release(struct exchange *exchange)
{
    const struct myra_allocator *alloc =
        &exchange->session->worker->counting.base;

    if (exchange->hold != exchange->line)
        alloc->free(alloc->ctx, exchange->hold, exchange->hold_cap);
}

void hold_append(struct exchange *exchange, const void *data, size_t len)
{
    if (!(exchange->flags & EXCHANGE_HELD))
        return;
    if (len > exchange->hold_cap - exchange->hold_len) {
        exchange->flags &= ~(uint32_t)EXCHANGE_HELD;
        return;
    }
    memcpy(exchange->hold + exchange->hold_len, data, len);
    exchange->hold_len += (uint32_t)len;
}

static void emit_via(struct myra_http_out *out, const struct worker *worker,
                     int version_minor)
{
    const char *value = worker->via[version_minor ? 1 : 0];

    myra_http_emit_field(out, (const uint8_t *)"Via", 3,
                         (const uint8_t *)value, worker->via_len);
}

/* A 1.0 client may send no Host; the upstream is spoken to in 1.1. */
static void emit_host(struct myra_http_out *out,
                      const struct exchange *exchange, const uint8_t *data,
                      const struct myra_http_head *head)
{
    const struct site *site = exchange->session->site;

    if (head->target.authority.host_len || head->host_index >= 0)
        myra_http_emit_host(out, data, head);
    else if (site->target_count)
        myra_http_emit_text(out, "Host", site->targets[0].authority);
    else
        myra_http_emit_host(out, data, head);
}

static uint64_t request_drops(const struct myra_http_head *head)
{
    uint64_t drops = 0;

    /* RFC 9110 10.1.1: from a 1.0 client, Expect has no meaning. */
    if (head->version_minor == 0)
        drops |= MYRA_FIELD_BIT(MYRA_FIELD_EXPECT);
    return drops;
}

int rewrite_request(struct exchange *exchange, const uint8_t *data,
                    const struct myra_http_head *head)
{
    const struct worker *worker = exchange->session->worker;
    struct myra_http_out out;

    MYRA_TRY(hold_grow(exchange,
                       myra_http_forward_bound(head) + OWN_FIELDS_MAX));
    myra_http_out_init(&out, exchange->hold, exchange->hold_cap);
    myra_http_emit_origin_line(&out, data, head);
    if (out.len > 2)
        exchange->line_len = (uint32_t)out.len - 2;
    emit_host(&out, exchange, data, head);
    myra_http_emit_forward(&out, data, head, request_drops(head));
    emit_via(&out, worker, head->version_minor);
    myra_http_emit_framing(&out, data, head,
                           (enum myra_http_framing)exchange->request.as);
    myra_http_emit_end(&out);
    exchange->hold_len = (uint32_t)out.len;
    return out.err;
}

static void emit_response(struct myra_http_out *out,
                          struct exchange *exchange, const uint8_t *data,
                          const struct myra_http_head *head, int is_kept)
{
    struct worker *worker = exchange->session->worker;
    const int is_final =
        head->status >= 200 || head->framing == MYRA_FRAMING_TUNNEL;

    myra_http_emit_forward_status(out, data, head);
    myra_http_emit_forward(out, data, head, 0);
    if (is_final && !(head->flags & MYRA_HEAD_HAS_DATE))
        myra_http_emit_text(out, "Date", worker_date(worker));
    emit_via(out, worker, head->version_minor);
    if (head->status >= 200) {
        myra_http_emit_framing(
            out, data, head, (enum myra_http_framing)exchange->response.as);
        if (!is_kept)
            myra_http_emit_text(out, "Connection", "close");
        else if (exchange->flags & EXCHANGE_KEEP_ASKED)
            myra_http_emit_text(out, "Connection", "keep-alive");
    }
    myra_http_emit_end(out);
}

/* For heads that do not fit what a queue gives room for. */
static int send_large(struct exchange *exchange, const uint8_t *data,
                      const struct myra_http_head *head, int is_kept,
                      size_t cap)
{
    const struct myra_allocator *alloc =
        &exchange->session->worker->counting.base;
    uint8_t *text = alloc->alloc(alloc->ctx, cap, 16);
    struct myra_http_out out;
    int err;

    if (!text)
        return MYRA_ENOMEM;
    myra_http_out_init(&out, text, cap);
    emit_response(&out, exchange, data, head, is_kept);
    err = out.err ? out.err
                  : myra_conn_send(exchange->session->conn, text, out.len);
    alloc->free(alloc->ctx, text, cap);
    return err;
}

int rewrite_response(struct exchange *exchange, const uint8_t *data,
                     const struct myra_http_head *head, int is_kept)
{
    struct myra_conn *conn = exchange->session->conn;
    const size_t cap = myra_http_forward_bound(head) + OWN_FIELDS_MAX;
    struct myra_http_out out;
    uint8_t *room;

    if (cap > RESERVE_MAX)
        return send_large(exchange, data, head, is_kept, cap);
    room = myra_conn_reserve(conn, cap);
    if (!room)
        return MYRA_ECLOSED;
    myra_http_out_init(&out, room, cap);
    emit_response(&out, exchange, data, head, is_kept);
    if (out.err == 0)
        myra_conn_commit(conn, out.len);
    return out.err;
}
