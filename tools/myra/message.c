/* SPDX-License-Identifier: MIT */
/*
 * Copies of HTTP messages: growing bytes, fields, and their comparison.
 */
#include "config.h"

#include "tools/myra/message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void *memory_grow(void *ptr, size_t size)
{
    void *grown = realloc(ptr, size ? size : 1);

    if (grown == NULL) {
        fputs("out of memory\n", stderr);
        exit(2);
    }
    return grown;
}

void bytes_add(struct bytes *bytes, const void *data, size_t len)
{
    if (len >= SIZE_MAX / 4 - bytes->len) {
        fputs("out of memory\n", stderr);
        exit(2);
    }
    if (bytes->len + len + 1 > bytes->cap) {
        bytes->cap = (bytes->len + len + 1) * 2;
        bytes->data = memory_grow(bytes->data, bytes->cap);
    }
    if (len > 0)
        memcpy(bytes->data + bytes->len, data, len);
    bytes->len += len;
    bytes->data[bytes->len] = '\0';
}

void bytes_add_text(struct bytes *bytes, const char *text)
{
    bytes_add(bytes, text, strlen(text));
}

void bytes_set(struct bytes *bytes, const void *data, size_t len)
{
    bytes->len = 0;
    bytes_add(bytes, data, len);
}

void bytes_fini(struct bytes *bytes)
{
    free(bytes->data);
    memset(bytes, 0, sizeof *bytes);
}

void bytes_drop(struct bytes *bytes, size_t len)
{
    if (len == 0)
        return;
    bytes->len -= len;
    memmove(bytes->data, bytes->data + len, bytes->len + 1);
}

int bytes_equal(const struct bytes *a, const struct bytes *b)
{
    return a->len == b->len &&
           (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

int bytes_equal_text(const struct bytes *bytes, const char *text)
{
    const size_t len = strlen(text);

    return bytes->len == len &&
           (len == 0 || memcmp(bytes->data, text, len) == 0);
}

const char *bytes_text(const struct bytes *bytes)
{
    return bytes->data ? bytes->data : "";
}

void fields_add(struct fields *fields, const void *name, size_t name_len,
                const void *value, size_t value_len)
{
    struct field *field;

    if (fields->count == fields->cap) {
        fields->cap = fields->cap ? fields->cap * 2 : 16;
        fields->items =
            memory_grow(fields->items, fields->cap * sizeof *fields->items);
    }
    field = &fields->items[fields->count++];
    memset(field, 0, sizeof *field);
    bytes_set(&field->name, name, name_len);
    bytes_set(&field->value, value, value_len);
}

void fields_fini(struct fields *fields)
{
    for (size_t i = 0; i < fields->count; i++) {
        bytes_fini(&fields->items[i].name);
        bytes_fini(&fields->items[i].value);
    }
    free(fields->items);
    memset(fields, 0, sizeof *fields);
}

const struct field *fields_find(const struct fields *fields, const char *name,
                                size_t from)
{
    const size_t len = strlen(name);

    for (size_t i = from; i < fields->count; i++) {
        const struct bytes *have = &fields->items[i].name;

        if (have->len == len && strncasecmp(have->data, name, len) == 0)
            return &fields->items[i];
    }
    return NULL;
}

size_t fields_count(const struct fields *fields, const char *name)
{
    const struct field *field = fields_find(fields, name, 0);
    size_t count = 0;

    while (field != NULL) {
        count++;
        field = fields_find(fields, name,
                            (size_t)(field - fields->items) + 1);
    }
    return count;
}

static int value_lists(const struct bytes *value, const char *token)
{
    const size_t token_len = strlen(token);
    const char *p = bytes_text(value);
    const char *const end = p + value->len;

    while (p < end) {
        const size_t skip = strspn(p, ", \t");
        size_t len;

        p += skip;
        len = strcspn(p, ", \t");
        if (len == token_len && strncasecmp(p, token, len) == 0)
            return 1;
        if (skip + len == 0)
            return 0; /* a NUL inside the value */
        p += len;
    }
    return 0;
}

int fields_list_token(const struct fields *fields, const char *name,
                      const char *token)
{
    const struct field *field = fields_find(fields, name, 0);

    while (field != NULL) {
        if (value_lists(&field->value, token))
            return 1;
        field = fields_find(fields, name,
                            (size_t)(field - fields->items) + 1);
    }
    return 0;
}

void message_fini(struct message *message)
{
    bytes_fini(&message->method);
    bytes_fini(&message->target);
    bytes_fini(&message->reason);
    fields_fini(&message->fields);
    bytes_fini(&message->body);
    fields_fini(&message->trailers);
    memset(message, 0, sizeof *message);
}

int fields_equal(const struct fields *a, const struct fields *b)
{
    if (a->count != b->count)
        return 0;
    for (size_t i = 0; i < a->count; i++) {
        if (!bytes_equal(&a->items[i].name, &b->items[i].name) ||
            !bytes_equal(&a->items[i].value, &b->items[i].value))
            return 0;
    }
    return 1;
}

int message_equal(const struct message *a, const struct message *b)
{
    return bytes_equal(&a->method, &b->method) &&
           bytes_equal(&a->target, &b->target) && a->status == b->status &&
           bytes_equal(&a->reason, &b->reason) &&
           a->version_minor == b->version_minor &&
           fields_equal(&a->fields, &b->fields) &&
           a->framing == b->framing && a->length == b->length &&
           bytes_equal(&a->body, &b->body) &&
           fields_equal(&a->trailers, &b->trailers) &&
           a->keep_alive == b->keep_alive && a->has_head == b->has_head &&
           a->is_complete == b->is_complete && a->start == b->start;
}

const char *framing_name(enum framing framing)
{
    switch (framing) {
    case FRAMING_NONE:
        return "none";
    case FRAMING_LENGTH:
        return "length";
    case FRAMING_CHUNKED:
        return "chunked";
    case FRAMING_CLOSE:
        return "close";
    case FRAMING_TUNNEL:
        return "tunnel";
    }
    return "unknown";
}
