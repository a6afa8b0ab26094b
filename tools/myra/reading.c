/* SPDX-License-Identifier: MIT */
/*
 * Feeds bytes to the parser as a connection would. They are copied piece by
 * piece into memory that is filled with line ends behind them, so that a
 * parser which looks past what has come gives a wrong result, not a right
 * one by luck.
 */
#include "config.h"

#include "tools/myra/reading.h"

#include <stdlib.h>
#include <string.h>

#include <myra/myra.h>

#define SLACK 64

/* Where the reader stands on its connection. */
enum phase {
    PHASE_HEAD,
    PHASE_BODY,
    PHASE_TUNNEL,
    PHASE_OVER, /* nothing more is read: leftover */
    PHASE_FAILED
};

struct reader {
    const struct reading_options *options;
    struct reading *reading;
    struct myra_http_limits limits;
    struct myra_http_scan scan;
    struct myra_http_field fields[MYRA_HTTP_FIELDS_DEFAULT];
    struct myra_http_head head;
    struct myra_http_body body;
    struct myra_http_chunked chunked;
    struct message message;
    const char *method; /* the next answered one, in options->methods */
    uint8_t *data;
    size_t len;      /* bytes that have come */
    size_t readable; /* from data */
    size_t pos;      /* where the next part starts */
    size_t body_start;
    enum phase phase;
};

static void fail(struct reader *reader, int err, size_t offset)
{
    struct reading *const reading = reader->reading;

    reading->err = err;
    reading->error_offset = offset;
    reading->reason = myra_strerror(err);
    reading->status = myra_http_status_of(
        err, reader->options->kind == READING_RESPONSE);
    reader->phase = PHASE_FAILED;
}

static int is_response(const struct reader *reader)
{
    return reader->options->kind == READING_RESPONSE;
}

/* ---- Requests that are answered ----------------------------------------- */

/* The length of the method that the next response answers; 0 behind the last
 * one of the list. */
static size_t method_len(const struct reader *reader)
{
    return reader->method ? strcspn(reader->method, ",") : 0;
}

static int all_answered(const struct reader *reader)
{
    return reader->options->methods != NULL && method_len(reader) == 0;
}

static void next_method(struct reader *reader)
{
    const size_t len = method_len(reader);

    if (len > 0)
        reader->method += len + (reader->method[len] == ',');
}

static struct myra_http_asked asked(const struct reader *reader)
{
    struct myra_http_asked result = { 0 };

    result.method = MYRA_METHOD_GET;
    if (reader->options->methods != NULL)
        result.method = (uint8_t)myra_http_method_of(
            (const uint8_t *)reader->method, method_len(reader));
    result.is_upgrade = !reader->options->no_upgrade;
    return result;
}

/* ---- Copies ------------------------------------------------------------- */

static void keep_field(struct fields *fields, const uint8_t *base,
                       const struct myra_http_field *field)
{
    fields_add(fields, base + field->name_off, field->name_len,
               base + field->value_off, field->value_len);
}

static enum framing framing_of(uint8_t framing)
{
    switch (framing) {
    case MYRA_FRAMING_LENGTH:
        return FRAMING_LENGTH;
    case MYRA_FRAMING_CHUNKED:
        return FRAMING_CHUNKED;
    case MYRA_FRAMING_CLOSE:
        return FRAMING_CLOSE;
    case MYRA_FRAMING_TUNNEL:
        return FRAMING_TUNNEL;
    default:
        return FRAMING_NONE;
    }
}

static void keep_head(struct reader *reader)
{
    const struct myra_http_head *const head = &reader->head;
    const uint8_t *const base = reader->data + reader->pos;
    struct message *const message = &reader->message;

    message->has_head = 1;
    message->start = reader->pos + head->start_off;
    message->version_major = 1;
    message->version_minor = head->version_minor;
    message->framing = framing_of(head->framing);
    message->length = head->content_length;
    message->keep_alive = (head->flags & MYRA_HEAD_KEEP_ALIVE) != 0;
    if (is_response(reader)) {
        message->status = head->status;
        bytes_set(&message->reason, base + head->reason_off,
                  head->reason_len);
    } else {
        bytes_set(&message->method, base + head->start_off,
                  head->method_len);
        bytes_set(&message->target, base + head->target.off,
                  head->target.len);
    }
    for (uint32_t i = 0; i < head->field_count; i++)
        keep_field(&message->fields, base, &head->fields[i]);
}

static void keep_message(struct reader *reader)
{
    struct reading *const reading = reader->reading;

    reading->messages =
        memory_grow(reading->messages, (reading->message_count + 1) *
                                           sizeof *reading->messages);
    reader->message.is_complete = 1;
    reading->messages[reading->message_count++] = reader->message;
    memset(&reader->message, 0, sizeof reader->message);
}

/* ---- One step a phase ------------------------------------------------ */

/* Each returns 1 when it got on and the next phase may run, 0 when it waits
 * for bytes or is over. */

static int parse_head(struct reader *reader)
{
    const uint8_t *const base = reader->data + reader->pos;
    const size_t len = reader->len - reader->pos;
    const size_t readable = reader->readable - reader->pos;

    memset(&reader->head, 0, sizeof reader->head);
    reader->head.fields = reader->fields;
    reader->head.field_cap = MYRA_HTTP_FIELDS_DEFAULT;
    if (is_response(reader)) {
        const struct myra_http_asked what = asked(reader);

        return myra_http_response_parse(base, len, readable, &reader->limits,
                                        &what, &reader->scan, &reader->head);
    }
    return myra_http_request_parse(base, len, readable, &reader->limits,
                                   &reader->scan, &reader->head);
}

static int step_head(struct reader *reader)
{
    int used;

    if (reader->len == reader->pos)
        return 0;
    if (is_response(reader) && all_answered(reader)) {
        fail(reader, MYRA_ESTATE, reader->pos);
        reader->reading->reason =
            "bytes behind the answer to the last request";
        return 0;
    }
    used = parse_head(reader);
    if (used < 0)
        fail(reader, used, reader->pos + reader->head.error_offset);
    if (used <= 0)
        return 0;
    keep_head(reader);
    reader->body_start = reader->pos + (size_t)used;
    used = myra_http_body_init(&reader->body, &reader->head, &reader->limits);
    if (used < 0) {
        fail(reader, used, reader->pos);
        return 0;
    }
    reader->pos = reader->body_start;
    reader->phase = PHASE_BODY;
    return 1;
}

/* What follows a complete message. */
static enum phase phase_after(const struct reader *reader)
{
    const struct myra_http_head *const head = &reader->head;

    if (head->framing == MYRA_FRAMING_TUNNEL)
        return PHASE_TUNNEL;
    if (!is_response(reader) && (head->method == MYRA_METHOD_CONNECT ||
                                 (head->flags & MYRA_HEAD_WEBSOCKET) != 0))
        return PHASE_TUNNEL;
    if ((head->flags & (MYRA_HEAD_KEEP_ALIVE | MYRA_HEAD_INTERIM)) == 0)
        return PHASE_OVER;
    return PHASE_HEAD;
}

static void end_message(struct reader *reader)
{
    reader->phase = phase_after(reader);
    if (is_response(reader) && (reader->head.flags & MYRA_HEAD_INTERIM) == 0)
        next_method(reader);
    keep_message(reader);
    memset(&reader->scan, 0, sizeof reader->scan);
}

static int64_t next_part(struct reader *reader, struct myra_http_part *part)
{
    const uint8_t *const data = reader->data + reader->pos;
    const size_t len = reader->len - reader->pos;

    if (reader->options->kind == READING_CHUNKED)
        return myra_http_chunked_next(&reader->chunked, data, len, part);
    return myra_http_body_next(&reader->body, data, len, part);
}

static int step_body(struct reader *reader)
{
    const int is_alone = reader->options->kind == READING_CHUNKED;
    struct myra_http_part part = { 0 };
    const int64_t used = next_part(reader, &part);

    if (used < 0) {
        const struct myra_http_chunked *const chunked =
            is_alone ? &reader->chunked : &reader->body.chunked;

        fail(reader, (int)used,
             reader->body_start + (size_t)chunked->error_offset);
        return 0;
    }
    reader->pos += (size_t)used;
    if (part.kind == MYRA_PART_DATA)
        bytes_add(&reader->message.body, part.data, part.len);
    if (part.kind == MYRA_PART_TRAILER)
        keep_field(&reader->message.trailers, part.data, &part.trailer);
    if (part.kind != MYRA_PART_END)
        return part.kind != MYRA_PART_MORE;
    if (!is_alone) {
        end_message(reader);
    } else {
        keep_message(reader);
        reader->phase = PHASE_OVER;
    }
    return 1;
}

static int step(struct reader *reader)
{
    struct reading *const reading = reader->reading;
    const uint8_t *const rest = reader->data + reader->pos;
    const size_t rest_len = reader->len - reader->pos;

    switch (reader->phase) {
    case PHASE_HEAD:
        return step_head(reader);
    case PHASE_BODY:
        return step_body(reader);
    case PHASE_TUNNEL:
        reading->has_tunnel = 1;
        bytes_add(&reading->tunnel, rest, rest_len);
        break;
    case PHASE_OVER:
        bytes_add(&reading->leftover, rest, rest_len);
        break;
    case PHASE_FAILED:
        break;
    }
    reader->pos = reader->len;
    return 0;
}

/* ---- The end of the input ----------------------------------------------- */

static void end_of_body(struct reader *reader)
{
    int err = MYRA_ETRUNCATED;

    if (reader->options->kind != READING_CHUNKED)
        err = myra_http_body_eof(&reader->body);
    if (err < 0)
        fail(reader, err, reader->len);
    else
        end_message(reader);
}

/* 1 when a response must still come: for a request of the list, or behind an
 * interim one. */
static int is_owed(const struct reader *reader)
{
    if (!is_response(reader))
        return 0;
    if (reader->options->methods != NULL)
        return !all_answered(reader);
    return (reader->head.flags & MYRA_HEAD_INTERIM) != 0;
}

/* 1 between two messages, where a connection may end. */
static int is_between(const struct reader *reader)
{
    return reader->phase == PHASE_HEAD &&
           reader->reading->message_count > 0 && !is_owed(reader) &&
           (reader->pos == reader->len ||
            myra_http_scan_is_idle(&reader->scan));
}

static void conclude(struct reader *reader)
{
    struct reading *const reading = reader->reading;
    const int is_idle = is_between(reader);

    if (reader->options->is_eof && reader->phase == PHASE_BODY)
        end_of_body(reader);
    else if (reader->options->is_eof && reader->phase == PHASE_HEAD &&
             !is_idle)
        fail(reader, MYRA_ETRUNCATED, reader->len);
    if (reader->phase == PHASE_FAILED)
        reading->verdict = VERDICT_REJECT;
    else if (is_idle || reader->phase == PHASE_TUNNEL ||
             reader->phase == PHASE_OVER)
        reading->verdict = VERDICT_ACCEPT;
    else
        reading->verdict = VERDICT_INCOMPLETE;
    reading->partial = reader->message;
}

/* ---- Feeding ------------------------------------------------------------ */

static void take_bytes(struct reader *reader, const uint8_t *data, size_t upto,
                       size_t slack)
{
    memcpy(reader->data + reader->len, data + reader->len,
           upto - reader->len);
    reader->len = upto;
    reader->readable = upto + slack;
    while (step(reader))
        ;
}

static void feed(struct reader *reader, const struct feeding *feeding,
                 const uint8_t *data, size_t len)
{
    if (feeding->form == FEEDING_BYTES) {
        for (size_t i = 1; i <= len; i++)
            take_bytes(reader, data, i, 0);
        return;
    }
    if (feeding->form == FEEDING_CUT && feeding->cut < len)
        take_bytes(reader, data, feeding->cut, SLACK);
    take_bytes(reader, data, len, feeding->form == FEEDING_WHOLE ? 0 : SLACK);
}

static void init(struct reader *reader, const struct reading_options *options)
{
    memset(reader, 0, sizeof *reader);
    reader->options = options;
    reader->method = options->methods;
    myra_http_limits_init(&reader->limits);
    reader->limits.body_max =
        options->body_max ? options->body_max : READING_BODY_MAX;
    /* From a server these two are taken, as every proxy must (RFC 9112
     * sections 2.2 and 5.2); from a client they are smuggling. */
    if (options->kind == READING_RESPONSE)
        reader->limits.flags = MYRA_LENIENT_LF | MYRA_LENIENT_FOLD;
    if (options->kind == READING_CHUNKED) {
        myra_http_chunked_init(&reader->chunked, &reader->limits);
        reader->phase = PHASE_BODY;
    }
}

void reading_run(const struct reading_options *options,
                 const struct feeding *feeding, const void *data, size_t len,
                 struct reading *reading)
{
    const size_t slack = feeding->form == FEEDING_WHOLE ? 0 : SLACK;
    struct reader reader;

    memset(reading, 0, sizeof *reading);
    init(&reader, options);
    reader.reading = reading;
    reader.data = memory_grow(NULL, len + slack);
    memset(reader.data, '\n', len + slack);
    feed(&reader, feeding, data, len);
    conclude(&reader);
    free(reader.data);
}

void reading_fini(struct reading *reading)
{
    for (size_t i = 0; i < reading->message_count; i++)
        message_fini(&reading->messages[i]);
    free(reading->messages);
    message_fini(&reading->partial);
    bytes_fini(&reading->tunnel);
    bytes_fini(&reading->leftover);
    memset(reading, 0, sizeof *reading);
}

int reading_equal(const struct reading *a, const struct reading *b)
{
    if (a->verdict != b->verdict || a->status != b->status ||
        a->message_count != b->message_count || a->err != b->err ||
        a->error_offset != b->error_offset ||
        a->has_tunnel != b->has_tunnel ||
        !bytes_equal(&a->tunnel, &b->tunnel) ||
        !bytes_equal(&a->leftover, &b->leftover) ||
        !message_equal(&a->partial, &b->partial))
        return 0;
    for (size_t i = 0; i < a->message_count; i++) {
        if (!message_equal(&a->messages[i], &b->messages[i]))
            return 0;
    }
    return 1;
}

int reading_keeps(const struct reading *reading)
{
    return reading->message_count > 0 &&
           reading->messages[reading->message_count - 1].keep_alive;
}

const char *verdict_name(enum verdict verdict)
{
    switch (verdict) {
    case VERDICT_ACCEPT:
        return "accept";
    case VERDICT_REJECT:
        return "reject";
    case VERDICT_INCOMPLETE:
        return "incomplete";
    }
    return "unknown";
}
