/* SPDX-License-Identifier: MIT */
/*
 * The checks behind the key `never`.
 */
#include "config.h"

#include "tests/run_cases/never_checks.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

/* Above what a session and its buffers take; far below what an announced
 * 2^63 or one copy for each of a flood of fields would. */
#define MEMORY_SLACK_KIB (32 * 1024)
#define CPU_SLACK_MS 500

/* ---- Looking at messages ------------------------------------------------ */

/* Calls is_so for every complete message of the row that the library or the
 * origin has; 1 when it is so for any. */
static int any_message(const struct look *look,
                       int (*is_so)(const struct look *look,
                                    const struct message *message))
{
    for (size_t i = 0; i < look->reading->message_count; i++) {
        if (is_so(look, &look->reading->messages[i]))
            return 1;
    }
    for (size_t i = 0; look->origin && i < look->origin->message_count; i++) {
        const struct message *const got = &look->origin->messages[i].message;

        if (!bytes_equal_text(&got->target, "/after") && is_so(look, got))
            return 1;
    }
    return 0;
}

static int raw_has(const struct look *look, const char *text, size_t len)
{
    const struct bytes *const up = look->forward ? &look->forward->raw : NULL;

    return up != NULL && up->len >= len &&
           memmem(bytes_text(up), up->len, text, len) != NULL;
}

/* The bytes that the other side of the proxy got. */
static const struct bytes *far_side(const struct look *look)
{
    if (look->forward == NULL)
        return NULL;
    return look->scene->options.kind == READING_RESPONSE
               ? &look->client->channel.raw
               : &look->forward->raw;
}

static int far_has(const struct look *look, const char *text, size_t len)
{
    const struct bytes *const far = far_side(look);

    return far != NULL && far->len >= len &&
           memmem(bytes_text(far), far->len, text, len) != NULL;
}

/* ---- The checks --------------------------------------------------------- */

static int has_target(const struct look *look, const struct message *message)
{
    return bytes_equal_text(&message->target, look->arg);
}

int dispatches(const struct look *look)
{
    char answer[160];

    if (any_message(look, has_target))
        return 1;
    snprintf(answer, sizeof answer, " %s HTTP/", look->arg);
    return raw_has(look, answer, strlen(answer));
}

static int is_answered(const struct look *look)
{
    char body[160];

    for (size_t i = 0; look->client && i < look->client->response_count;
         i++) {
        snprintf(body, sizeof body, "answer to GET %s", look->arg);
        if (bytes_equal_text(&look->client->responses[i].body, body))
            return 1;
    }
    return 0;
}

int answers_or_forwards(const struct look *look)
{
    return dispatches(look) || is_answered(look);
}

int drops_first_answer(const struct look *look)
{
    return look->client != NULL && !is_answered(look);
}

static int is_method(const struct look *look, const struct message *message)
{
    return bytes_equal_text(&message->method, look->arg);
}

int has_method(const struct look *look)
{
    return any_message(look, is_method);
}

int has_host(const struct look *look)
{
    char field[160];

    snprintf(field, sizeof field, "Host: %s\r\n", look->arg);
    return raw_has(look, field, strlen(field));
}

int forwards_text(const struct look *look)
{
    return far_has(look, look->arg, strlen(look->arg));
}

/* A blank twice, in a request line. */
int forwards_extra_spaces(const struct look *look)
{
    return far_has(look, "GET  ", 5) || far_has(look, "  HTTP/1.", 9);
}

int forwards_lone_lf(const struct look *look)
{
    const struct bytes *const far = far_side(look);

    for (size_t i = 0; far != NULL && i < far->len; i++) {
        if (far->data[i] == '\n' && (i == 0 || far->data[i - 1] != '\r'))
            return 1;
    }
    return 0;
}

int forwards_lone_cr(const struct look *look)
{
    const struct bytes *const far = far_side(look);

    for (size_t i = 0; far != NULL && i < far->len; i++) {
        if (far->data[i] == '\r' &&
            (i + 1 == far->len || far->data[i + 1] != '\n'))
            return 1;
    }
    return 0;
}

int forwards_nul(const struct look *look)
{
    return far_has(look, "\0", 1);
}

static int is_cut_at_nul(const struct look *look,
                         const struct message *message)
{
    const struct field *const field = fields_find(&message->fields, "X-A", 0);

    (void)look;
    return field != NULL && bytes_equal_text(&field->value, "test");
}

int cuts_at_nul(const struct look *look)
{
    return any_message(look, is_cut_at_nul);
}

static int has_named_field(const struct look *look,
                           const struct message *message)
{
    return fields_count(&message->fields, look->arg) > 0;
}

int sees_field(const struct look *look)
{
    return any_message(look, has_named_field);
}

static int has_other_body(const struct look *look,
                          const struct message *message)
{
    return !bytes_equal_text(&message->body, look->arg);
}

int body_is_not(const struct look *look)
{
    return any_message(look, has_other_body);
}

static int has_body(const struct look *look, const struct message *message)
{
    return bytes_equal_text(&message->body, look->arg);
}

int body_is(const struct look *look)
{
    return any_message(look, has_body);
}

static int body_holds_text(const struct look *look,
                           const struct message *message)
{
    const struct bytes *const body = &message->body;
    const size_t len = strlen(look->arg);

    return body->len >= len &&
           memmem(bytes_text(body), body->len, look->arg, len) != NULL;
}

int body_holds(const struct look *look)
{
    return any_message(look, body_holds_text) ||
           body_holds_text(look, &look->reading->partial) ||
           far_has(look, look->arg, strlen(look->arg));
}

static int holds_coding(const struct look *look,
                        const struct message *message)
{
    (void)look;
    for (size_t i = 0; i < message->fields.count; i++) {
        const struct bytes *const value = &message->fields.items[i].value;

        if (strcasestr(bytes_text(value), "Transfer-Encoding") != NULL)
            return 1;
    }
    return 0;
}

int joins_fields(const struct look *look)
{
    return any_message(look, holds_coding);
}

int forwards_fold(const struct look *look)
{
    return far_has(look, "\r\n ", 3) || far_has(look, "\r\n\t", 3);
}

static int far_has_field(const struct look *look, const char *name)
{
    const struct bytes *const far = far_side(look);

    return far != NULL && strcasestr(bytes_text(far), name) != NULL;
}

/* The response that the client got, or the first request of the origin. */
static const struct message *far_first(const struct look *look)
{
    if (look->forward == NULL)
        return NULL;
    if (look->scene->options.kind == READING_RESPONSE)
        return client_final(look->client, 0);
    return look->origin->message_count ? &look->origin->messages[0].message
                                       : NULL;
}

int forwards_both_fields(const struct look *look)
{
    const struct message *const first = far_first(look);

    /* The strict reader refuses such a message: then the raw bytes tell. */
    if (first == NULL)
        return look->scene->options.kind == READING_REQUEST &&
               far_has_field(look, "\nTransfer-Encoding:") &&
               far_has_field(look, "\nContent-Length:");
    return fields_count(&first->fields, "Transfer-Encoding") > 0 &&
           fields_count(&first->fields, "Content-Length") > 0;
}

/* Transfer-Encoding went on, but the body was counted by Content-Length:
 * chunk lines inside the body. */
static int is_framed_by_length(const struct look *look,
                               const struct message *message)
{
    (void)look;
    return message->framing == FRAMING_LENGTH &&
           fields_count(&message->fields, "Transfer-Encoding") > 0;
}

int frames_by_length(const struct look *look)
{
    return any_message(look, is_framed_by_length) ||
           forwards_both_fields(look);
}

static int has_chunk_bytes(const struct look *look,
                           const struct message *message)
{
    (void)look;
    return message->body.len > 0;
}

int has_any_body(const struct look *look)
{
    return any_message(look, has_chunk_bytes);
}

static int is_length_one(const struct look *look,
                         const struct message *message)
{
    (void)look;
    return message->framing == FRAMING_LENGTH && message->length == 1;
}

int uses_length_one(const struct look *look)
{
    return any_message(look, is_length_one) ||
           is_length_one(look, &look->reading->partial);
}

int has_two_lengths(const struct look *look)
{
    const struct message *const first = far_first(look);

    return first != NULL && fields_count(&first->fields, "Content-Length") > 1;
}

int has_length_list(const struct look *look)
{
    const struct message *const first = far_first(look);
    const struct field *const field =
        first ? fields_find(&first->fields, "Content-Length", 0) : NULL;

    return field != NULL && strchr(bytes_text(&field->value), ',') != NULL;
}

/* The client's connection was left open behind the message. */
int keeps_open(const struct look *look)
{
    return (look->forward != NULL && look->forward->is_open_after) ||
           (look->reading->verdict == VERDICT_ACCEPT &&
            reading_keeps(look->reading));
}

int keeps_silently(const struct look *look)
{
    const struct message *const first =
        look->client ? client_final(look->client, 0) : NULL;

    if (first == NULL || fields_list_token(&first->fields, "Connection",
                                           "keep-alive"))
        return 0;
    return look->forward->is_open_after || look->client->final_count > 1;
}

int waits(const struct look *look)
{
    return look->reading->verdict == VERDICT_INCOMPLETE;
}

static int is_complete(const struct look *look, const struct message *message)
{
    (void)look;
    (void)message;
    return 1;
}

int ends_body(const struct look *look)
{
    return any_message(look, is_complete);
}

/* gzip bytes as a body that is not said to be gzip any more. */
static int is_stripped_gzip(const struct look *look,
                            const struct message *message)
{
    return bytes_equal_text(&message->body, look->arg) &&
           !fields_list_token(&message->fields, "Transfer-Encoding", "gzip");
}

int strips_gzip(const struct look *look)
{
    /* In the library the codings are part of the message: its field stays.
     * So the row is only broken where nothing names the coding. */
    return any_message(look, is_stripped_gzip);
}

int grows(const struct look *look)
{
    const struct proxy_usage *before;
    const struct proxy_usage *after;

    if (look->forward == NULL)
        return 0;
    before = &look->forward->exchange->before;
    after = &look->forward->after;
    return after->peak_kib - before->peak_kib > MEMORY_SLACK_KIB ||
           after->resident_kib - before->resident_kib > MEMORY_SLACK_KIB;
}

/* Processor time of reading the first len bytes once, in nanoseconds; the
 * least of five. */
static int64_t reading_time_ns(const struct look *look, size_t len)
{
    const struct feeding bytes = { FEEDING_BYTES, 0 };
    int64_t least = INT64_MAX;

    for (int i = 0; i < 5; i++) {
        struct timespec start;
        struct timespec end;
        struct reading reading;
        int64_t took;

        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
        reading_run(&look->scene->options, &bytes, look->scene->data, len,
                    &reading);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
        reading_fini(&reading);
        took = (int64_t)(end.tv_sec - start.tv_sec) * 1000000000 +
               end.tv_nsec - start.tv_nsec;
        least = took < least ? took : least;
    }
    return least;
}

/* Four times the bytes may take four times the time; eight times is no noise
 * any more, unless it is all over in a millisecond. */
int is_not_linear(const struct look *look)
{
    const size_t len = look->scene->len;
    int64_t all;

    if (look->forward != NULL)
        return grows(look) || look->forward->after.cpu_ms -
                                      look->forward->exchange->before.cpu_ms >
                                  CPU_SLACK_MS;
    all = reading_time_ns(look, len);
    return all > 1000000 && all > 8 * reading_time_ns(look, len / 4);
}

static int forwards_space_before_lf(const struct look *look)
{
    return far_has(look, "5 \r\n", 4);
}

static int forwards_space_before_colon(const struct look *look)
{
    return far_has_field(look, "Content-Length :");
}

int forwards_space(const struct look *look)
{
    return forwards_space_before_lf(look) || forwards_space_before_colon(look);
}

static int has_length_trailer(const struct look *look,
                              const struct message *message)
{
    (void)look;
    return message->framing == FRAMING_CHUNKED &&
           fields_count(&message->fields, "Content-Length") > 0;
}

int merges_trailer(const struct look *look)
{
    const struct message *const first = far_first(look);

    return any_message(look, has_length_trailer) ||
           (first != NULL &&
            fields_count(&first->trailers, "Content-Length") > 0);
}

int reason_spills(const struct look *look)
{
    const struct reading *const reading = look->reading;
    const struct message *const got = far_first(look);

    if (reading->message_count > 0 &&
        strstr(bytes_text(&reading->messages[0].reason), "Content") != NULL)
        return 1;
    return got != NULL &&
           strstr(bytes_text(&got->reason), "Content") != NULL;
}

int reuses(const struct look *look)
{
    return look->forward != NULL && look->forward->row_conn_id != 0 &&
           look->forward->row_conn_id == look->forward->later_conn_id;
}

/* A whole response with the origin's status reached the client. */
int ends_as_complete(const struct look *look)
{
    const struct message *const got =
        look->client ? client_final(look->client, 0) : NULL;

    return look->reading->message_count > 0 ||
           (got != NULL && got->status < 300);
}

int uses_second(const struct look *look)
{
    for (size_t i = 0; i < look->reading->message_count; i++) {
        if (bytes_equal_text(&look->reading->messages[i].body, "evil"))
            return 1;
    }
    for (size_t i = 0; look->client && i < look->client->response_count;
         i++) {
        if (bytes_equal_text(&look->client->responses[i].body, "evil"))
            return 1;
    }
    return 0;
}
