/* SPDX-License-Identifier: MIT */
/*
 * How a message ends: the one place that decides it, from the fields of a
 * parsed head. Everything later (body reader, writer) uses the decision.
 * RFC 9112 section 6.3, and stricter where two readers could differ.
 */
#include "config.h"

#include <string.h>

#include "lib/http/http_priv.h"

/* 18 digits always fit 64 bits; more are refused even when they are zeros. */
#define LENGTH_DIGITS_MAX 18

struct framer {
    const uint8_t *data;
    struct myra_http_head *head;
    const struct myra_http_limits *limits;
    uint64_t seen;
};

static int has(const struct framer *framer, enum myra_http_field_id id)
{
    return (framer->seen & MYRA_FIELD_BIT(id)) != 0;
}

static int fail_at(const struct framer *framer,
                   const struct myra_http_field *field, size_t off, int err)
{
    framer->head->error_offset = field->value_off + (uint32_t)off;
    return err;
}

/* The first field of the id; the caller knows that there is one. */
static const struct myra_http_field *first_of(const struct framer *framer,
                                              enum myra_http_field_id id)
{
    const struct myra_http_field *field = framer->head->fields;

    while (field->id != id)
        field++;
    return field;
}

/* A folded framing field would be read in two ways by two readers. */
static int refuse_folds(const struct framer *framer,
                        const struct myra_http_field *field)
{
    const uint8_t *value = framer->data + field->value_off;

    if (memchr(value, '\n', field->value_len))
        return fail_at(framer, field, 0, MYRA_HTTP_FOLD);
    return 0;
}

/* ---- Content-Length ----------------------------------------------------- */

static int read_digits(const uint8_t *text, size_t len, uint64_t *value_out)
{
    uint64_t value = 0;

    if (len == 0 || len > LENGTH_DIGITS_MAX)
        return MYRA_HTTP_CONTENT_LENGTH;
    for (size_t i = 0; i < len; i++) {
        if (!myi_is_digit(text[i]))
            return MYRA_HTTP_CONTENT_LENGTH;
        value = value * 10 + (uint64_t)(text[i] - '0');
    }
    *value_out = value;
    return 0;
}

/* One Content-Length line, which may be a list of equal numbers (rules 14 and
 * 15). */
static int read_length_field(const struct framer *framer,
                             const struct myra_http_field *field)
{
    struct myra_http_head *head = framer->head;
    const uint8_t *value = framer->data + field->value_off;
    size_t pos = 0;
    size_t off;
    size_t len;

    MYRA_TRY(refuse_folds(framer, field));
    while (myi_http_element_next(value, field->value_len, &pos, &off, &len)) {
        uint64_t number;

        if (read_digits(value + off, len, &number) < 0)
            return fail_at(framer, field, off, MYRA_HTTP_CONTENT_LENGTH);
        if ((head->flags & MYRA_HEAD_HAS_LENGTH) &&
            number != head->content_length)
            return fail_at(framer, field, off, MYRA_HTTP_LENGTH_CONFLICT);
        head->content_length = number;
        head->flags |= MYRA_HEAD_HAS_LENGTH;
    }
    return 0;
}

static int read_lengths(const struct framer *framer)
{
    const struct myra_http_head *head = framer->head;

    if (!has(framer, MYRA_FIELD_CONTENT_LENGTH))
        return 0;
    for (uint32_t i = 0; i < head->field_count; i++) {
        if (head->fields[i].id == MYRA_FIELD_CONTENT_LENGTH)
            MYRA_TRY(read_length_field(framer, &head->fields[i]));
    }
    return 0;
}

static void drop_length(struct myra_http_head *head)
{
    head->flags &= ~MYRA_HEAD_HAS_LENGTH;
    head->content_length = 0;
}

/* ---- Transfer-Encoding -------------------------------------------------- */

/* What the Transfer-Encoding lines say together. */
struct codings {
    int chunked_count;
    int is_chunked_last;
    int has_identity;
    int has_other;   /* a coding to be decoded besides the last chunked */
    int has_unknown; /* one that we have no name for */
};

static int is_known_coding(const uint8_t *name, size_t len)
{
    static const char known[][12] = { "gzip", "x-gzip", "deflate", "compress",
                                      "x-compress" };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strlen(known[i]) == len && myi_http_is_same(name, known[i], len))
            return 1;
    }
    return 0;
}

static void add_coding(struct codings *codings, const uint8_t *name,
                       size_t len)
{
    const int is_chunked = len == 7 && myi_http_is_same(name, "chunked", 7);

    /* A chunked that something follows is one more coding to undo. */
    if (codings->is_chunked_last)
        codings->has_other = 1;
    codings->is_chunked_last = is_chunked;
    if (is_chunked)
        codings->chunked_count++;
    else if (len == 8 && myi_http_is_same(name, "identity", 8))
        codings->has_identity = 1;
    else if (is_known_coding(name, len))
        codings->has_other = 1;
    else
        codings->has_unknown = 1;
}

/* Elements are plain tokens: no empty ones, no parameters. */
static int read_coding_field(const struct framer *framer,
                             const struct myra_http_field *field,
                             struct codings *codings)
{
    const uint8_t *value = framer->data + field->value_off;
    size_t pos = 0;
    size_t off;
    size_t len;

    MYRA_TRY(refuse_folds(framer, field));
    while (myi_http_element_next(value, field->value_len, &pos, &off, &len)) {
        if (!myi_http_is_token(value + off, len))
            return fail_at(framer, field, off, MYRA_HTTP_TRANSFER_ENCODING);
        add_coding(codings, value + off, len);
        if (codings->chunked_count > 1)
            return fail_at(framer, field, off, MYRA_HTTP_TRANSFER_ENCODING);
    }
    return 0;
}

static int read_codings(const struct framer *framer, struct codings *codings)
{
    const struct myra_http_head *head = framer->head;

    memset(codings, 0, sizeof(*codings));
    for (uint32_t i = 0; i < head->field_count; i++) {
        if (head->fields[i].id == MYRA_FIELD_TRANSFER_ENCODING)
            MYRA_TRY(read_coding_field(framer, &head->fields[i], codings));
    }
    return 0;
}

/* Codings besides chunked: known to us, and wanted by the caller. */
static int admit_codings(const struct framer *framer,
                         const struct codings *codings)
{
    if (codings->has_unknown ||
        (codings->has_other && !(framer->limits->flags & MYRA_ACCEPT_CODINGS)))
        return fail_at(framer,
                       first_of(framer, MYRA_FIELD_TRANSFER_ENCODING), 0,
                       MYRA_HTTP_CODING_UNKNOWN);
    if (codings->has_other)
        framer->head->flags |= MYRA_HEAD_HAS_CODING;
    return 0;
}

/* ---- What both kinds share ---------------------------------------------- */

/* Whether the sender keeps the connection (rule 36). */
static void decide_keep(struct myra_http_head *head)
{
    const int is_wanted = head->version_minor >= 1 ||
                          (head->flags & MYRA_HEAD_ASKED_KEEP);

    if (is_wanted && !(head->flags & MYRA_HEAD_ASKED_CLOSE))
        head->flags |= MYRA_HEAD_KEEP_ALIVE;
}

/* ---- Requests ----------------------------------------------------------- */

static int use_host(const struct framer *framer,
                    const struct myra_http_field *field)
{
    struct myra_http_head *head = framer->head;
    struct myra_http_authority authority;

    /* An empty Host is legal: the target has no authority (RFC 9110 7.2). */
    if (field->value_len == 0)
        return 0;
    if (myra_http_authority_parse(framer->data + field->value_off,
                                  field->value_len, &authority) < 0)
        return fail_at(framer, field, 0, MYRA_HTTP_HOST);
    if (head->target.authority.host_len == 0) {
        authority.off += field->value_off;
        authority.host_off += field->value_off;
        head->target.authority = authority;
    }
    return 0;
}

static int read_host(const struct framer *framer)
{
    struct myra_http_head *head = framer->head;

    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct myra_http_field *field = &head->fields[i];

        if (field->id != MYRA_FIELD_HOST)
            continue;
        if (head->host_index >= 0)
            return fail_at(framer, field, 0, MYRA_HTTP_HOST);
        head->host_index = (int32_t)i;
        MYRA_TRY(use_host(framer, field));
    }
    if (head->host_index < 0 && head->version_minor >= 1) {
        head->error_offset = head->fields_end;
        return MYRA_HTTP_HOST;
    }
    return 0;
}

static int frame_coded_request(const struct framer *framer)
{
    const struct myra_http_field *field =
        first_of(framer, MYRA_FIELD_TRANSFER_ENCODING);
    struct codings codings;

    if (framer->head->version_minor == 0)
        return fail_at(framer, field, 0, MYRA_HTTP_TE_VERSION);
    if (has(framer, MYRA_FIELD_CONTENT_LENGTH))
        return fail_at(framer, field, 0, MYRA_HTTP_TE_WITH_LENGTH);
    MYRA_TRY(read_codings(framer, &codings));
    if (!codings.is_chunked_last || codings.has_identity)
        return fail_at(framer, field, 0, MYRA_HTTP_TRANSFER_ENCODING);
    framer->head->framing = MYRA_FRAMING_CHUNKED;
    return admit_codings(framer, &codings);
}

/* What follows a CONNECT is the tunnel. A body before it would be read by one
 * hop and tunnelled by the next, so there may be none (RFC 9110 9.3.6 leaves
 * that to us). */
static int frame_connect(const struct framer *framer)
{
    struct myra_http_head *head = framer->head;

    if (head->framing == MYRA_FRAMING_CHUNKED)
        return fail_at(framer, first_of(framer, MYRA_FIELD_TRANSFER_ENCODING),
                       0, MYRA_HTTP_TRANSFER_ENCODING);
    if (head->content_length > 0)
        return fail_at(framer, first_of(framer, MYRA_FIELD_CONTENT_LENGTH), 0,
                       MYRA_HTTP_CONTENT_LENGTH);
    head->framing = MYRA_FRAMING_NONE;
    drop_length(head);
    return 0;
}

/* A websocket opening is a GET of 1.1 and has no body (RFC 6455 4.1). */
static void check_websocket(struct myra_http_head *head)
{
    if (head->method != MYRA_METHOD_GET || head->version_minor == 0 ||
        head->framing == MYRA_FRAMING_CHUNKED || head->content_length > 0)
        head->flags &= ~MYRA_HEAD_WEBSOCKET;
}

int myi_http_frame_request(const uint8_t *data, struct myra_http_head *head,
                           uint64_t seen,
                           const struct myra_http_limits *limits)
{
    const struct framer framer = { data, head, limits, seen };

    if (has(&framer, MYRA_FIELD_TRANSFER_ENCODING)) {
        MYRA_TRY(frame_coded_request(&framer));
    } else {
        MYRA_TRY(read_lengths(&framer));
        if (head->flags & MYRA_HEAD_HAS_LENGTH)
            head->framing = MYRA_FRAMING_LENGTH;
    }
    if (head->method == MYRA_METHOD_CONNECT)
        MYRA_TRY(frame_connect(&framer));
    MYRA_TRY(read_host(&framer));
    decide_keep(head);
    check_websocket(head);
    return 0;
}

/* ---- Responses ---------------------------------------------------------- */

/* 101: only the switch that was asked for (rule 29). */
static int frame_switch(const struct framer *framer,
                        const struct myra_http_asked *asked)
{
    struct myra_http_head *head = framer->head;

    if (!asked->is_upgrade || !(head->flags & MYRA_HEAD_UPGRADE) ||
        (asked->is_websocket && !(head->flags & MYRA_HEAD_WEBSOCKET))) {
        head->error_offset = head->start_off;
        return MYRA_HTTP_UPGRADE;
    }
    head->framing = MYRA_FRAMING_TUNNEL;
    return 0;
}

/* Transfer-Encoding decides; a Content-Length beside it is dropped and the
 * connection is not trusted further (rule 24). */
static int frame_coded_response(const struct framer *framer)
{
    struct myra_http_head *head = framer->head;
    struct codings codings;

    MYRA_TRY(read_codings(framer, &codings));
    head->framing = codings.is_chunked_last ? MYRA_FRAMING_CHUNKED
                                            : MYRA_FRAMING_CLOSE;
    return admit_codings(framer, &codings);
}

/* HEAD and 304 tell a length of a body that does not come (rule 26). */
static int frame_bodyless(const struct framer *framer)
{
    struct myra_http_head *head = framer->head;

    head->framing = MYRA_FRAMING_NONE;
    if (head->status < 200 || head->status == 204)
        return 0;
    MYRA_TRY(read_lengths(framer));
    if (has(framer, MYRA_FIELD_TRANSFER_ENCODING))
        drop_length(head);
    return 0;
}

static int frame_body(const struct framer *framer)
{
    struct myra_http_head *head = framer->head;

    MYRA_TRY(read_lengths(framer));
    if (has(framer, MYRA_FIELD_TRANSFER_ENCODING)) {
        drop_length(head);
        return frame_coded_response(framer);
    }
    head->framing = head->flags & MYRA_HEAD_HAS_LENGTH ? MYRA_FRAMING_LENGTH
                                                       : MYRA_FRAMING_CLOSE;
    return 0;
}

static int is_bodyless(const struct myra_http_head *head,
                       const struct myra_http_asked *asked)
{
    return asked->method == MYRA_METHOD_HEAD || head->status < 200 ||
           head->status == 204 || head->status == 304;
}

static void decide_response_keep(const struct framer *framer)
{
    struct myra_http_head *head = framer->head;
    const int has_coding = has(framer, MYRA_FIELD_TRANSFER_ENCODING);

    decide_keep(head);
    /* Two lengths, or a coding that 1.0 does not have: whoever sent that may
     * see the end of the message elsewhere. */
    if (head->framing >= MYRA_FRAMING_CLOSE ||
        (has_coding && (has(framer, MYRA_FIELD_CONTENT_LENGTH) ||
                        head->version_minor == 0)))
        head->flags &= ~MYRA_HEAD_KEEP_ALIVE;
}

int myi_http_frame_response(const uint8_t *data, struct myra_http_head *head,
                            uint64_t seen,
                            const struct myra_http_limits *limits,
                            const struct myra_http_asked *asked)
{
    const struct framer framer = { data, head, limits, seen };

    if (head->status != 101)
        head->flags &= ~MYRA_HEAD_WEBSOCKET;
    if (head->status < 200 && head->status != 101)
        head->flags |= MYRA_HEAD_INTERIM;
    if (head->status == 101)
        MYRA_TRY(frame_switch(&framer, asked));
    else if (asked->method == MYRA_METHOD_CONNECT && head->status / 100 == 2)
        head->framing = MYRA_FRAMING_TUNNEL;
    else if (is_bodyless(head, asked))
        MYRA_TRY(frame_bodyless(&framer));
    else
        MYRA_TRY(frame_body(&framer));
    decide_response_keep(&framer);
    return 0;
}
