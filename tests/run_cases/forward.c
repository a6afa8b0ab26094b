/* SPDX-License-Identifier: MIT */
/*
 * What request and response cases through the proxy share: the frame of an
 * exchange, and the comparison of fields.
 */
#include "config.h"

#include "tests/run_cases/forward.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* For one hop only, or written by the proxy itself from what it decided. */
static const char *const hop_names[] = {
    "Connection",       "Keep-Alive",        "Proxy-Authenticate",
    "Proxy-Connection", "Proxy-Authorization", "TE",
    "Trailer",          "Upgrade",           "Transfer-Encoding",
    "Content-Length",   "Host",              "Expect",
    "Via",
};

/* What a proxy may add. */
static const char *const added_names[] = {
    "Via",           "Date",
    "Forwarded",     "X-Forwarded-For",
    "X-Request-Id",  "X-Forwarded-Proto",
    "Server",        "X-Forwarded-Host",
};

/* What a trailer may not be (RFC 9110 section 6.5.1). */
static const char *const no_trailers[] = {
    "Content-Length",   "Transfer-Encoding", "Host",
    "Trailer",          "Authorization",     "Connection",
    "Content-Encoding", "Content-Type",      "Content-Range",
    "Cache-Control",    "TE",                "Set-Cookie",
    "Cookie",           "Upgrade",           "Expect",
};

int forward_fail(struct scene *scene, const struct forward *forward,
                 const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return scene_fail(scene, "proxy, %s: %s", forward->pace, text);
}

int forward_applies(const struct scene *scene)
{
    const struct reading *const reading = &scene->reading;
    const char *const methods = detail_text(scene->detail, "for", "");

    if (scene->options.kind == READING_CHUNKED)
        return 0;
    /* The limit of a row is not the proxy's. */
    if (scene->options.body_max != 0)
        return 0;
    /* A reverse proxy sends no CONNECT to its origin. */
    if (list_has(methods, "CONNECT"))
        return 0;
    /* What stands behind an upgrade needs an origin that switches. */
    return scene->options.kind == READING_RESPONSE || !reading->has_tunnel ||
           bytes_equal_text(&reading->messages[reading->message_count - 1]
                                 .method,
                            "CONNECT");
}

int is_origins(const struct message *response)
{
    return fields_count(&response->fields, "X-Origin") > 0;
}

static int is_one_of(const struct bytes *name, const char *const *names,
                     size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (name->len == strlen(names[i]) &&
            strcasecmp(bytes_text(name), names[i]) == 0)
            return 1;
    }
    return 0;
}

#define IS_ONE_OF(name, names) \
    is_one_of(name, names, sizeof(names) / sizeof *(names))

int field_is_of_hop(const struct fields *fields, const struct bytes *name)
{
    return IS_ONE_OF(name, hop_names) ||
           fields_list_token(fields, "Connection", bytes_text(name)) ||
           fields_list_token(fields, "Proxy-Connection", bytes_text(name));
}

/* 1 if b is a with each run of line ends and blanks around them made one SP:
 * a folded field on one line. */
static int is_same_value(const struct bytes *a, const struct bytes *b)
{
    size_t at = 0;

    for (size_t i = 0; i < a->len; i++) {
        char c = a->data[i];

        if (c == '\r' || c == '\n') {
            while (i + 1 < a->len && strchr("\r\n \t", a->data[i + 1]))
                i++;
            while (at > 0 && (b->data[at - 1] == ' '))
                at--;
            c = ' ';
        }
        if (at >= b->len || b->data[at] != c)
            return 0;
        at++;
    }
    return at == b->len;
}

static int compare_kept(struct scene *scene, const struct forward *forward,
                        const struct fields *sent, const struct fields *got)
{
    size_t at = 0;

    for (size_t i = 0; i < sent->count; i++) {
        const struct field *const field = &sent->items[i];
        const struct field *found;

        if (field_is_of_hop(sent, &field->name))
            continue;
        found = fields_find(got, bytes_text(&field->name), at);
        if (found == NULL)
            return forward_fail(scene, forward,
                                "the field %s is lost, or out of order",
                                bytes_text(&field->name));
        if (!is_same_value(&field->value, &found->value))
            return forward_fail(scene, forward, "the field %s is changed",
                                bytes_text(&field->name));
        at = (size_t)(found - got->items) + 1;
    }
    return 0;
}

static int compare_added(struct scene *scene, const struct forward *forward,
                         const struct fields *sent, const struct fields *got)
{
    for (size_t i = 0; i < got->count; i++) {
        const struct bytes *const name = &got->items[i].name;
        const char *const text = bytes_text(name);

        if (IS_ONE_OF(name, hop_names) || IS_ONE_OF(name, added_names))
            continue;
        if (field_is_of_hop(sent, name) || fields_count(sent, text) == 0)
            return forward_fail(scene, forward, "the field %s is new", text);
        if (fields_count(sent, text) != fields_count(got, text))
            return forward_fail(scene, forward, "the field %s came %zu times",
                                text, fields_count(got, text));
    }
    return 0;
}

int compare_fields(struct scene *scene, const struct forward *forward,
                   const struct fields *sent, const struct fields *got)
{
    if (compare_kept(scene, forward, sent, got) < 0)
        return -1;
    return compare_added(scene, forward, sent, got);
}

int compare_trailers(struct scene *scene, const struct forward *forward,
                     const struct fields *sent, const struct fields *got)
{
    size_t at = 0;

    for (size_t i = 0; i < sent->count; i++) {
        const struct field *const field = &sent->items[i];

        if (IS_ONE_OF(&field->name, no_trailers))
            continue;
        if (at >= got->count ||
            !bytes_equal(&field->name, &got->items[at].name) ||
            !bytes_equal(&field->value, &got->items[at].value))
            return forward_fail(scene, forward, "the trailer %s is lost",
                                bytes_text(&field->name));
        at++;
    }
    if (at != got->count)
        return forward_fail(scene, forward, "a trailer too many");
    return 0;
}

static const char *pace_name(enum pace pace)
{
    switch (pace) {
    case PACE_WHOLE:
        return "whole";
    case PACE_BYTES:
        return "byte by byte";
    case PACE_CUT:
        return "in two pieces";
    }
    return "";
}

int forward_start(struct scene *scene, struct forward *forward, enum pace pace,
                  struct exchange *exchange, struct origin_script *script)
{
    struct bytes why = { 0 };
    int result = 0;

    memset(forward, 0, sizeof *forward);
    forward->pace = pace_name(pace);
    forward->exchange = exchange;
    if (exchange_begin(exchange, script, &why) < 0)
        result = forward_fail(scene, forward, "%s", bytes_text(&why));
    bytes_fini(&why);
    return result;
}

int forward_end(struct scene *scene, struct forward *forward)
{
    struct exchange *const exchange = forward->exchange;
    struct bytes why = { 0 };
    unsigned conn_id = 0;
    int result = 0;

    forward->is_open_after = !exchange->client.channel.is_eof;
    if (exchange_finish(exchange, &why) < 0 ||
        exchange_fence(exchange, &conn_id, &why) < 0)
        result = forward_fail(scene, forward, "%s", bytes_text(&why));
    if (forward->later_conn_id == 0)
        forward->later_conn_id = conn_id;
    origin_raw(&exchange->origin, &forward->raw);
    proxy_read_usage(&exchange->proxy, &forward->after);
    bytes_fini(&why);
    return result;
}

void forward_fini(struct forward *forward)
{
    bytes_fini(&forward->raw);
}
