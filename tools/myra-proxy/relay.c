/* SPDX-License-Identifier: MIT */
/* Bodies on their way through. Their bytes go on in the buffer they came in;
 * chunks are framed anew, so that nothing but data and trailers passes. */
#include "config.h"

#include "proxy.h"

static int send_text(struct myra_conn *conn, struct exchange *hold,
                     const struct myra_http_out *out)
{
    if (out->err)
        return out->err;
    MYRA_TRY(myra_conn_send(conn, out->p, out->len));
    if (hold)
        hold_append(hold, out->p, out->len);
    return 0;
}

/* Writes what stands between the last chunk's data and what follows. */
static void emit_gap(struct relay *relay, struct myra_http_out *out)
{
    if (relay->has_data)
        myra_http_emit_chunk_end(out);
    relay->has_data = 0;
}

static int send_data(struct relay *relay, struct myra_conn *conn,
                     const struct myra_slice *slice, size_t offset,
                     size_t len, struct exchange *hold)
{
    uint8_t text[MYRA_HTTP_CHUNK_START_MAX + MYRA_HTTP_CHUNK_END_LEN];
    struct myra_http_out out;

    if (relay->as == MYRA_FRAMING_CHUNKED) {
        myra_http_out_init(&out, text, sizeof(text));
        emit_gap(relay, &out);
        myra_http_emit_chunk_start(&out, len);
        MYRA_TRY(send_text(conn, hold, &out));
        relay->has_data = 1;
    }
    MYRA_TRY(myra_conn_send_slice(conn, slice, offset, len));
    if (hold)
        hold_append(hold, slice->data + offset, len);
    return 0;
}

static void emit_last(struct relay *relay, struct myra_http_out *out)
{
    emit_gap(relay, out);
    if (!relay->has_last)
        myra_http_emit_last_chunk(out);
    relay->has_last = 1;
}

static int send_trailer(struct relay *relay, struct myra_conn *conn,
                        const struct myra_http_part *part,
                        struct exchange *hold)
{
    const struct myra_http_field *field = &part->trailer;
    struct myra_http_out out;
    uint8_t *room;
    size_t cap;

    if (relay->as != MYRA_FRAMING_CHUNKED ||
        field->flags & (MYRA_FIELD_IS_UNSAFE | MYRA_FIELD_IS_HOP))
        return 0;
    cap = (size_t)field->name_len + field->value_len + 32;
    /* A longer line is dropped: trailers are optional (RFC 9110 6.5). */
    room = cap <= 65536 ? myra_conn_reserve(conn, cap) : NULL;
    if (!room)
        return cap <= 65536 ? MYRA_ECLOSED : 0;
    myra_http_out_init(&out, room, cap);
    emit_last(relay, &out);
    myra_http_emit_field_of(&out, part->data, field);
    if (out.err)
        return out.err;
    if (hold)
        hold_append(hold, room, out.len);
    myra_conn_commit(conn, out.len);
    return 0;
}

static int send_end(struct relay *relay, struct myra_conn *conn,
                    struct exchange *hold)
{
    uint8_t text[16];
    struct myra_http_out out;

    relay->is_done = 1;
    if (relay->as != MYRA_FRAMING_CHUNKED)
        return 0;
    myra_http_out_init(&out, text, sizeof(text));
    emit_last(relay, &out);
    myra_http_emit_end(&out);
    return send_text(conn, hold, &out);
}

/* A receiver may wait for the end of a chunk before it takes the data: it
 * does not have to wait for the next one. */
static int end_chunk(struct relay *relay, struct myra_conn *conn,
                     struct exchange *hold)
{
    uint8_t text[MYRA_HTTP_CHUNK_END_LEN];
    struct myra_http_out out;

    if (!relay->has_data)
        return 0;
    myra_http_out_init(&out, text, sizeof(text));
    emit_gap(relay, &out);
    return send_text(conn, hold, &out);
}

int64_t relay_data(struct relay *relay, struct myra_conn *conn,
                   const struct myra_slice *slice, size_t offset, size_t len,
                   struct exchange *hold)
{
    const uint8_t *data = slice->data + offset;
    size_t used = 0;

    while (!relay->is_done) {
        struct myra_http_part part;
        const int64_t n = myra_http_body_next(&relay->body, data + used,
                                              len - used, &part);

        if (n < 0)
            return n;
        used += (size_t)n;
        if (part.kind == MYRA_PART_MORE) {
            MYRA_TRY(end_chunk(relay, conn, hold));
            break;
        }
        if (part.kind == MYRA_PART_DATA)
            MYRA_TRY(send_data(relay, conn, slice,
                               (size_t)(part.data - slice->data), part.len,
                               hold));
        else if (part.kind == MYRA_PART_TRAILER)
            MYRA_TRY(send_trailer(relay, conn, &part, hold));
        else
            MYRA_TRY(send_end(relay, conn, hold));
    }
    return (int64_t)used;
}

int relay_end(struct relay *relay, struct myra_conn *conn)
{
    return relay->is_done ? 0 : send_end(relay, conn, NULL);
}
