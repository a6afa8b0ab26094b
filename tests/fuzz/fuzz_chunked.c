/* SPDX-License-Identifier: MIT */
/*
 * Chunked bodies. Properties: no cut changes the outcome; a body that is
 * decoded and chunked again decodes to the same bytes and trailers.
 */
#include "config.h"

#include "tests/fuzz/fuzz_feed.h"

/* A decoded body: its bytes, and its trailers as they are sent. */
struct body {
    uint8_t *bytes;
    size_t len;
    struct myra_http_out trailers;
    int is_whole;
};

static void body_init(struct body *body, size_t size)
{
    body->bytes = malloc(size + 1);
    body->len = 0;
    /* "a:b" becomes "a: b", so a line can grow by one of at least four. */
    myra_http_out_init(&body->trailers, malloc(2 * size + 1), 2 * size + 1);
    MUST(body->bytes && body->trailers.p);
    body->is_whole = 0;
}

static void body_fini(struct body *body)
{
    free(body->bytes);
    free(body->trailers.p);
}

static void take_part(struct body *body, const struct myra_http_part *part)
{
    if (part->kind == MYRA_PART_DATA) {
        MUST(part->len > 0);
        memcpy(body->bytes + body->len, part->data, part->len);
        body->len += part->len;
    } else if (part->kind == MYRA_PART_TRAILER &&
               !(part->trailer.flags & MYRA_FIELD_IS_UNSAFE)) {
        myra_http_emit_field_of(&body->trailers, part->data, &part->trailer);
    } else if (part->kind == MYRA_PART_END) {
        body->is_whole = 1;
    }
}

static void decode(const uint8_t *data, size_t size,
                   const struct myra_http_limits *limits, struct body *body)
{
    struct myra_http_chunked chunked;
    struct myra_http_part part;
    size_t used = 0;

    body_init(body, size);
    myra_http_chunked_init(&chunked, limits);
    do {
        const int64_t n = myra_http_chunked_next(&chunked, data + used,
                                                 size - used, &part);

        if (n < 0) {
            MUST(chunked.error_offset <= size);
            return;
        }
        used += (size_t)n;
        MUST(used <= size);
        take_part(body, &part);
    } while (part.kind != MYRA_PART_MORE && part.kind != MYRA_PART_END);
    MUST(chunked.body_len == body->len);
}

/* Chunked again, in pieces of another size. */
static size_t encode(const struct body *body, size_t step, uint8_t *to,
                     size_t cap)
{
    struct myra_http_out out;

    myra_http_out_init(&out, to, cap);
    for (size_t i = 0; i < body->len; i += step) {
        const size_t n = body->len - i < step ? body->len - i : step;

        myra_http_emit_chunk_start(&out, n);
        MUST(!out.err && n <= out.cap - out.len);
        memcpy(out.p + out.len, body->bytes + i, n);
        out.len += n;
        myra_http_emit_chunk_end(&out);
    }
    myra_http_emit_last_chunk(&out);
    MUST(!out.err && body->trailers.len <= out.cap - out.len);
    if (body->trailers.len > 0)
        memcpy(out.p + out.len, body->trailers.p, body->trailers.len);
    out.len += body->trailers.len;
    myra_http_emit_end(&out);
    MUST(!out.err);
    return out.len;
}

static void check_round_trip(const struct body *body, uint64_t hash)
{
    struct myra_http_limits wide;
    const size_t step = 1 + hash % 97;
    const size_t cap = body->len * (1 + MYRA_HTTP_CHUNK_START_MAX +
                                    MYRA_HTTP_CHUNK_END_LEN) +
                       body->trailers.len + 16;
    uint8_t *wire = malloc(cap);
    struct body again;

    MUST(wire);
    myra_http_limits_init(&wide);
    wide.trailer_max *= 2;
    decode(wire, encode(body, step, wire, cap), &wide, &again);
    MUST(again.is_whole && again.len == body->len);
    MUST(memcmp(again.bytes, body->bytes, body->len) == 0);
    MUST(again.trailers.len == body->trailers.len);
    MUST(memcmp(again.trailers.p, body->trailers.p, again.trailers.len) == 0);
    body_fini(&again);
    free(wire);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint64_t hash = hash_of(data, size);
    struct myra_http_limits limits;
    struct feed_plan plan = { .kind = FEED_CHUNKED, .limits = &limits,
                              .is_eof = hash >> 12 & 1 };
    uint8_t *copy = malloc(size ? size : 1);
    struct body body;

    MUST(copy);
    if (size > 0)
        memcpy(copy, data, size);
    myra_http_limits_init(&limits);
    limits.flags = hash >> 32 & MYRA_LENIENT_LF;
    if (hash >> 33 & 1)
        limits.chunk_line_max = 12;
    if (hash >> 34 & 1)
        limits.chunk_ext_max = 16;
    if (hash >> 35 & 1)
        limits.trailer_max = 40;
    check_cuts(&plan, copy, size, hash);
    decode(copy, size, &limits, &body);
    MUST(body.trailers.err == 0);
    if (body.is_whole)
        check_round_trip(&body, hash);
    body_fini(&body);
    free(copy);
    return 0;
}
