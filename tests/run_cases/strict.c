/* SPDX-License-Identifier: MIT */
/*
 * The strict reader: line by line over the whole message each time, in plain
 * C without tables. Slow and easy to follow, which is what a judge should be.
 */
#include "config.h"

#include "tests/run_cases/strict.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct cursor {
    const char *p;
    const char *end;
    const char *why;
};

static int is_token_byte(unsigned char c)
{
    if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
        (c >= 'A' && c <= 'Z'))
        return 1;
    return c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL;
}

static int is_token(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (!is_token_byte((unsigned char)text[i]))
            return 0;
    }
    return len > 0;
}

/* Visible characters, obs-text and inner blanks: a field value. */
static int is_value(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        const unsigned char c = (unsigned char)text[i];

        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return 0;
    }
    return 1;
}

static enum strict_result bad(struct cursor *cursor, const char *why)
{
    cursor->why = why;
    return STRICT_BAD;
}

/* The next line without its CR LF. */
static enum strict_result next_line(struct cursor *cursor, const char **line,
                                    size_t *len)
{
    const size_t left = (size_t)(cursor->end - cursor->p);
    const char *const lf = left ? memchr(cursor->p, '\n', left) : NULL;

    if (lf == NULL)
        return STRICT_MORE;
    if (lf == cursor->p || lf[-1] != '\r')
        return bad(cursor, "a line ends in a lone LF");
    *line = cursor->p;
    *len = (size_t)(lf - cursor->p) - 1;
    cursor->p = lf + 1;
    if (memchr(*line, '\r', *len) != NULL)
        return bad(cursor, "a CR inside a line");
    return STRICT_DONE;
}

static int read_version(const char *text, struct message *message)
{
    if (memcmp(text, "HTTP/1.", 7) != 0 || (text[7] != '0' && text[7] != '1'))
        return -1;
    message->version_major = 1;
    message->version_minor = text[7] - '0';
    return 0;
}

static enum strict_result request_line(struct cursor *cursor,
                                       const char *line, size_t len,
                                       struct message *message)
{
    const char *const space = memchr(line, ' ', len);
    const char *target;
    size_t target_len;

    if (space == NULL || len < (size_t)(space - line) + 11)
        return bad(cursor, "the request line is not of three parts");
    if (!is_token(line, (size_t)(space - line)))
        return bad(cursor, "the method is not a token");
    target = space + 1;
    target_len = len - (size_t)(target - line) - 9;
    if (target[target_len] != ' ' ||
        read_version(target + target_len + 1, message) < 0)
        return bad(cursor, "the request line does not end in a version 1.x");
    for (size_t i = 0; i < target_len; i++) {
        const unsigned char c = (unsigned char)target[i];

        if (c <= 0x20 || c == 0x7f || c == '#')
            return bad(cursor, "a byte that no target may hold");
    }
    bytes_set(&message->method, line, (size_t)(space - line));
    bytes_set(&message->target, target, target_len);
    return STRICT_DONE;
}

static enum strict_result status_line(struct cursor *cursor, const char *line,
                                      size_t len, struct message *message)
{
    int status = 0;

    if (len < 13 || read_version(line, message) < 0 || line[8] != ' ' ||
        line[12] != ' ')
        return bad(cursor, "the status line is malformed");
    for (size_t i = 9; i < 12; i++) {
        if (line[i] < '0' || line[i] > '9')
            return bad(cursor, "the status is not three digits");
        status = status * 10 + (line[i] - '0');
    }
    if (status < 100 || status > 599)
        return bad(cursor, "the status is outside 100 to 599");
    if (!is_value(line + 13, len - 13))
        return bad(cursor, "a control byte in the reason");
    message->status = status;
    bytes_set(&message->reason, line + 13, len - 13);
    return STRICT_DONE;
}

/* Field lines up to and with the empty line. */
static enum strict_result field_lines(struct cursor *cursor,
                                      struct fields *fields)
{
    for (;;) {
        const char *line = NULL;
        size_t len = 0;
        const enum strict_result result = next_line(cursor, &line, &len);
        const char *colon;
        const char *value;

        if (result != STRICT_DONE || len == 0)
            return result;
        colon = memchr(line, ':', len);
        if (colon == NULL)
            return bad(cursor, "a field line without a colon");
        if (!is_token(line, (size_t)(colon - line)))
            return bad(cursor, "a field name that is not a token");
        value = colon + 1;
        len -= (size_t)(value - line);
        while (len > 0 && (*value == ' ' || *value == '\t')) {
            value++;
            len--;
        }
        while (len > 0 && (value[len - 1] == ' ' || value[len - 1] == '\t'))
            len--;
        if (!is_value(value, len))
            return bad(cursor, "a control byte in a field value");
        fields_add(fields, line, (size_t)(colon - line), value, len);
    }
}

static int response_has_body(const struct message *message,
                             const char *request_method)
{
    if (strcmp(request_method, "HEAD") == 0)
        return 0;
    return message->status >= 200 && message->status != 204 &&
           message->status != 304;
}

static enum strict_result read_length(struct cursor *cursor,
                                      const struct field *field,
                                      struct message *message)
{
    const struct bytes *const value = &field->value;

    if (value->len == 0 || value->len > 18)
        return bad(cursor, "Content-Length is empty or too long");
    message->length = 0;
    for (size_t i = 0; i < value->len; i++) {
        const char digit = value->data[i];

        if (digit < '0' || digit > '9')
            return bad(cursor, "Content-Length is not a number");
        message->length = message->length * 10 + (uint64_t)(digit - '0');
    }
    message->framing = FRAMING_LENGTH;
    return STRICT_DONE;
}

/* "chunked", perhaps behind codings that a proxy may pass on unread. */
static int is_chunked_last(const struct bytes *value)
{
    const char *text = bytes_text(value);

    for (;;) {
        const size_t len = strcspn(text, ",");

        if (text[len] == '\0')
            return len == 7 && strncasecmp(text, "chunked", 7) == 0;
        if (!is_token(text, len) || strncasecmp(text, "chunked", 7) == 0)
            return 0;
        text += len + 1;
        text += *text == ' ';
    }
}

static enum strict_result decide_framing(struct cursor *cursor,
                                         const char *request_method,
                                         struct message *message)
{
    const struct fields *const fields = &message->fields;
    const struct field *const coding =
        fields_find(fields, "Transfer-Encoding", 0);
    const struct field *const length =
        fields_find(fields, "Content-Length", 0);

    message->framing = FRAMING_NONE;
    if (fields_count(fields, "Transfer-Encoding") > 1 ||
        fields_count(fields, "Content-Length") > 1)
        return bad(cursor, "a framing field appears twice");
    if (coding != NULL && length != NULL)
        return bad(cursor, "both Transfer-Encoding and Content-Length");
    if (coding != NULL &&
        (message->version_minor == 0 || !is_chunked_last(&coding->value)))
        return bad(cursor, "Transfer-Encoding does not end in chunked");
    if (length != NULL &&
        read_length(cursor, length, message) != STRICT_DONE)
        return STRICT_BAD;
    if (coding != NULL)
        message->framing = FRAMING_CHUNKED;
    if (request_method == NULL)
        return STRICT_DONE;
    if (!response_has_body(message, request_method))
        message->framing = FRAMING_NONE;
    else if (strcmp(request_method, "CONNECT") == 0 && message->status < 300)
        message->framing = FRAMING_TUNNEL;
    else if (coding == NULL && length == NULL)
        message->framing = FRAMING_CLOSE;
    if (message->status == 101)
        message->framing = FRAMING_TUNNEL;
    return STRICT_DONE;
}

static void decide_keep(struct message *message)
{
    const struct fields *const fields = &message->fields;

    if (fields_list_token(fields, "Connection", "close") ||
        message->framing == FRAMING_CLOSE ||
        message->framing == FRAMING_TUNNEL)
        message->keep_alive = 0;
    else
        message->keep_alive =
            message->version_minor == 1 ||
            fields_list_token(fields, "Connection", "keep-alive");
}

static enum strict_result read_head(struct cursor *cursor,
                                    const char *request_method,
                                    struct message *message)
{
    const char *line = NULL;
    size_t len = 0;
    enum strict_result result = next_line(cursor, &line, &len);

    if (result != STRICT_DONE)
        return result;
    result = request_method == NULL
                 ? request_line(cursor, line, len, message)
                 : status_line(cursor, line, len, message);
    if (result != STRICT_DONE)
        return result;
    result = field_lines(cursor, &message->fields);
    if (result != STRICT_DONE)
        return result;
    if (request_method == NULL && message->version_minor == 1 &&
        fields_count(&message->fields, "Host") != 1)
        return bad(cursor, "not exactly one Host");
    result = decide_framing(cursor, request_method, message);
    if (result == STRICT_DONE) {
        decide_keep(message);
        message->has_head = 1;
    }
    return result;
}

static enum strict_result read_chunk_size(struct cursor *cursor,
                                          size_t *size_out)
{
    const char *line = NULL;
    size_t len = 0;
    size_t size = 0;
    const enum strict_result result = next_line(cursor, &line, &len);

    if (result != STRICT_DONE)
        return result;
    if (len == 0 || len > 15)
        return bad(cursor, "a chunk size is empty or too long");
    for (size_t i = 0; i < len; i++) {
        const char *const digits = "0123456789abcdef";
        const char c = line[i] >= 'A' && line[i] <= 'F'
                           ? (char)(line[i] + 32)
                           : line[i];
        const char *const at = c ? strchr(digits, c) : NULL;

        if (at == NULL)
            return bad(cursor, "a chunk size that is not hexadecimal");
        size = size * 16 + (size_t)(at - digits);
    }
    *size_out = size;
    return STRICT_DONE;
}

static enum strict_result read_chunks(struct cursor *cursor,
                                      struct message *message)
{
    for (;;) {
        size_t size = 0;
        size_t left;
        const enum strict_result result = read_chunk_size(cursor, &size);

        if (result != STRICT_DONE)
            return result;
        if (size == 0)
            return field_lines(cursor, &message->trailers);
        left = (size_t)(cursor->end - cursor->p);
        bytes_add(&message->body, cursor->p, left < size ? left : size);
        if (left < size || left - size < 2)
            return STRICT_MORE;
        cursor->p += size;
        if (memcmp(cursor->p, "\r\n", 2) != 0)
            return bad(cursor, "chunk data is not followed by CR LF");
        cursor->p += 2;
    }
}

static enum strict_result read_body(struct cursor *cursor, int is_eof,
                                    struct message *message)
{
    const size_t left = (size_t)(cursor->end - cursor->p);
    size_t take = left;

    switch (message->framing) {
    case FRAMING_NONE:
    case FRAMING_TUNNEL:
        return STRICT_DONE;
    case FRAMING_CHUNKED:
        return read_chunks(cursor, message);
    case FRAMING_LENGTH:
        if (message->length < left)
            take = (size_t)message->length;
        bytes_add(&message->body, cursor->p, take);
        cursor->p += take;
        return take == message->length ? STRICT_DONE : STRICT_MORE;
    case FRAMING_CLOSE:
        bytes_add(&message->body, cursor->p, left);
        cursor->p = cursor->end;
        return is_eof ? STRICT_DONE : STRICT_MORE;
    }
    return STRICT_BAD;
}

enum strict_result strict_read(const char *data, size_t len,
                               const char *request_method, int is_eof,
                               struct strict_reading *reading)
{
    struct cursor cursor = { data, data + len, NULL };
    enum strict_result result;

    memset(reading, 0, sizeof *reading);
    if (len == 0)
        return STRICT_MORE;
    result = read_head(&cursor, request_method, &reading->message);
    if (result == STRICT_DONE)
        result = read_body(&cursor, is_eof, &reading->message);
    reading->message.is_complete = result == STRICT_DONE;
    reading->used = (size_t)(cursor.p - data);
    reading->why = cursor.why;
    return result;
}
