/* SPDX-License-Identifier: MIT */
/*
 * Response reader. A head that arrives whole is read where it lies; a partial
 * one is kept in the reader's own buffer until its empty line has come.
 */
#include "config.h"

#include "tools/myra-load/resp.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LINE_MAX_LEN 8192u

void resp_init(struct resp *resp)
{
    memset(resp, 0, sizeof(*resp));
    resp->expect_len = -1;
}

void resp_fini(struct resp *resp)
{
    free(resp->kept);
    resp->kept = NULL;
}

void resp_start(struct resp *resp, int is_head, const uint8_t *expect,
                int64_t expect_len)
{
    char *const kept = resp->kept;

    memset(resp, 0, sizeof(*resp));
    resp->kept = kept;
    resp->is_head = is_head;
    resp->expect = expect;
    resp->expect_len = expect_len;
}

/* ---- Heads -------------------------------------------------------------- */

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* "HTTP/1.1 200 ..."; returns 0 when it is no status line. */
static int read_status_line(struct resp *resp, const char *line, size_t len)
{
    if (len < 12 || memcmp(line, "HTTP/1.", 7) != 0 || !is_digit(line[7]) ||
        line[8] != ' ')
        return 0;
    if (!is_digit(line[9]) || !is_digit(line[10]) || !is_digit(line[11]) ||
        (len > 12 && line[12] != ' '))
        return 0;
    resp->status =
        (line[9] - '0') * 100 + (line[10] - '0') * 10 + (line[11] - '0');
    resp->keeps_alive = line[7] != '0';
    return resp->status >= 100;
}

static int is_name(const char *text, size_t len, const char *name)
{
    return len == strlen(name) && strncasecmp(text, name, len) == 0;
}

/* Whether the comma list value holds token. */
static int has_token(const char *value, size_t len, const char *token)
{
    const char *const end = value + len;

    while (value < end) {
        const char *comma = memchr(value, ',', (size_t)(end - value));
        const char *last = comma ? comma : end;
        const char *const next = comma ? comma + 1 : end;

        while (value < last && (*value == ' ' || *value == '\t'))
            value++;
        while (last > value && (last[-1] == ' ' || last[-1] == '\t'))
            last--;
        if (is_name(value, (size_t)(last - value), token))
            return 1;
        value = next;
    }
    return 0;
}

static int read_length(struct resp *resp, const char *value, size_t len)
{
    uint64_t number = 0;

    if (len == 0 || len > 18)
        return 0;
    for (size_t i = 0; i < len; i++) {
        if (!is_digit(value[i]))
            return 0;
        number = number * 10 + (uint64_t)(value[i] - '0');
    }
    if (resp->framing == RESP_LENGTH && resp->left != number)
        return 0;
    if (resp->framing != RESP_CHUNKED) {
        resp->framing = RESP_LENGTH;
        resp->left = number;
    }
    return 1;
}

static int read_field(struct resp *resp, const char *line, size_t len)
{
    const char *const colon = memchr(line, ':', len);

    if (!colon || colon == line || line[0] == ' ' || line[0] == '\t')
        return 0;
    const size_t name_len = (size_t)(colon - line);
    /* The three names that matter, told apart by their lengths first. */
    if (name_len != 10 && name_len != 14 && name_len != 17)
        return 1;
    const char *value = colon + 1;
    const char *end = line + len;

    while (value < end && (*value == ' ' || *value == '\t'))
        value++;
    while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    const size_t value_len = (size_t)(end - value);

    if (is_name(line, name_len, "content-length"))
        return read_length(resp, value, value_len);
    if (is_name(line, name_len, "transfer-encoding")) {
        if (!is_name(value, value_len, "chunked"))
            return 0;
        resp->framing = RESP_CHUNKED;
    }
    if (is_name(line, name_len, "connection")) {
        if (has_token(value, value_len, "close"))
            resp->keeps_alive = 0;
        else if (has_token(value, value_len, "keep-alive"))
            resp->keeps_alive = 1;
    }
    return 1;
}

/* A whole head, the empty line included. */
static int read_head(struct resp *resp, const char *head, size_t len)
{
    const char *const end = head + len - 2;
    int is_first = 1;

    resp->framing = RESP_UNTIL_CLOSE;
    resp->left = 0;
    while (head < end) {
        const char *const newline = memchr(head, '\n', (size_t)(end - head));

        if (!newline || newline == head || newline[-1] != '\r')
            return 0;
        const size_t line_len = (size_t)(newline - head) - 1;
        const int is_right = is_first
            ? read_status_line(resp, head, line_len)
            : read_field(resp, head, line_len);

        if (!is_right)
            return 0;
        is_first = 0;
        head = newline + 1;
    }
    return !is_first;
}

/* What follows a head. RESP_MORE: a body, or after 1xx another head. */
static enum resp_verdict enter_body(struct resp *resp)
{
    if (resp->status == 101)
        return RESP_BAD;
    if (resp->status < 200) {
        resp->phase = RESP_HEAD;
        return RESP_MORE;
    }
    if (resp->is_head || resp->status == 204 || resp->status == 304)
        resp->framing = RESP_NO_BODY;
    if (resp->framing == RESP_UNTIL_CLOSE)
        resp->keeps_alive = 0;
    if (resp->framing == RESP_NO_BODY ||
        (resp->framing == RESP_LENGTH && resp->left == 0))
        return RESP_DONE;
    resp->phase =
        resp->framing == RESP_CHUNKED ? RESP_CHUNK_SIZE : RESP_BODY;
    resp->line_len = 0;
    return RESP_MORE;
}

/* Behind the empty line of a head, or NULL. Few long jumps are faster here
 * than a search for four bytes. */
static const char *find_head_end(const char *text, size_t len)
{
    const char *const end = text + len;
    const char *line = text;

    while ((line = memchr(line, '\n', (size_t)(end - line)))) {
        line++;
        if (end - line >= 2 && line[0] == '\r' && line[1] == '\n')
            return line + 2;
    }
    return NULL;
}

static enum resp_verdict keep_head(struct resp *resp, const uint8_t *data,
                                   size_t len)
{
    if (len > RESP_HEAD_MAX - resp->kept_len)
        return RESP_BAD;
    if (!resp->kept) {
        resp->kept = malloc(RESP_HEAD_MAX);
        if (!resp->kept)
            return RESP_NOMEM;
    }
    memcpy(resp->kept + resp->kept_len, data, len);
    resp->kept_len += (uint32_t)len;
    return RESP_MORE;
}

/* A head in pieces: takes bytes up to its empty line; at the seam the last
 * line's end is looked at again. */
static enum resp_verdict feed_kept(struct resp *resp, const uint8_t *data,
                                   size_t len, size_t *used)
{
    const uint32_t old_len = resp->kept_len;
    const size_t room = RESP_HEAD_MAX - old_len;
    const size_t take = len < room ? len : room;

    if (keep_head(resp, data, take) == RESP_NOMEM)
        return RESP_NOMEM;
    const uint32_t from = old_len > 3 ? old_len - 3 : 0;
    const char *const end =
        find_head_end(resp->kept + from, resp->kept_len - from);

    if (!end) {
        *used = take;
        return take < len ? RESP_BAD : RESP_MORE;
    }
    const size_t head_len = (size_t)(end - resp->kept);

    *used = head_len - old_len;
    resp->kept_len = 0;
    return read_head(resp, resp->kept, head_len) ? enter_body(resp)
                                                 : RESP_BAD;
}

static enum resp_verdict feed_head(struct resp *resp, const uint8_t *data,
                                   size_t len, size_t *used)
{
    if (resp->kept_len > 0)
        return feed_kept(resp, data, len, used);
    const char *const head = (const char *)data;
    const char *const end = find_head_end(head, len);

    if (!end) {
        *used = len;
        return keep_head(resp, data, len);
    }
    const size_t head_len = (size_t)(end - head);

    *used = head_len;
    if (head_len > RESP_HEAD_MAX || !read_head(resp, head, head_len))
        return RESP_BAD;
    return enter_body(resp);
}

/* ---- Bodies ------------------------------------------------------------- */

static void take_body(struct resp *resp, const uint8_t *data, size_t len)
{
    const uint64_t at = resp->body_len;

    resp->body_len += len;
    if (!resp->expect || resp->has_wrong_byte)
        return;
    if (resp->body_len > (uint64_t)resp->expect_len) {
        resp->has_wrong_byte = 1;
        return;
    }
    if (memcmp(resp->expect + at, data, len) != 0)
        resp->has_wrong_byte = 1;
}

/* Body bytes of known number. */
static size_t take_counted(struct resp *resp, const uint8_t *data, size_t len)
{
    const size_t take = len < resp->left ? len : (size_t)resp->left;

    take_body(resp, data, take);
    resp->left -= take;
    return take;
}

static int hex_value(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* The line of a chunk's size is over. */
static void enter_chunk(struct resp *resp)
{
    resp->has_last_chunk = resp->left == 0;
    resp->phase = resp->left == 0 ? RESP_TRAILER : RESP_CHUNK_DATA;
    resp->line_len = 0;
}

static int take_size_byte(struct resp *resp, uint8_t c)
{
    const int digit = hex_value(c);

    if (digit >= 0) {
        if (resp->line_len++ >= 15)
            return 0;
        resp->left = resp->left * 16 + (uint64_t)digit;
        return 1;
    }
    if (resp->line_len == 0)
        return 0;
    if (c != ';' && c != '\r' && c != ' ' && c != '\t')
        return 0;
    resp->phase = RESP_CHUNK_EXT;
    return 1;
}

/* One byte of chunked framing. 0: malformed, 1: go on, 2: the body is over. */
static int take_frame_byte(struct resp *resp, uint8_t c)
{
    switch (resp->phase) {
    case RESP_CHUNK_SIZE:
        return take_size_byte(resp, c);
    case RESP_CHUNK_EXT:
        resp->line_len++;
        if (c == '\n')
            enter_chunk(resp);
        return resp->line_len < LINE_MAX_LEN;
    case RESP_CHUNK_CR:
        resp->phase = RESP_CHUNK_LF;
        return c == '\r';
    case RESP_CHUNK_LF:
        resp->phase = RESP_CHUNK_SIZE;
        resp->line_len = 0;
        resp->left = 0;
        return c == '\n';
    case RESP_TRAILER:
        if (c == '\n') {
            const int is_empty = resp->line_len == 0;

            resp->line_len = 0;
            return is_empty ? 2 : 1;
        }
        resp->line_len += c != '\r';
        return resp->line_len < LINE_MAX_LEN;
    default:
        return 0;
    }
}

static enum resp_verdict feed_chunked(struct resp *resp, const uint8_t *data,
                                      size_t len, size_t *used)
{
    size_t at = 0;

    while (at < len) {
        if (resp->phase == RESP_CHUNK_DATA) {
            at += take_counted(resp, data + at, len - at);
            if (resp->left == 0)
                resp->phase = RESP_CHUNK_CR;
            continue;
        }
        const int verdict = take_frame_byte(resp, data[at++]);

        if (verdict == 1)
            continue;
        *used = at;
        return verdict == 2 ? RESP_DONE : RESP_BAD;
    }
    *used = at;
    return RESP_MORE;
}

static enum resp_verdict feed_body(struct resp *resp, const uint8_t *data,
                                   size_t len, size_t *used)
{
    if (resp->framing == RESP_CHUNKED)
        return feed_chunked(resp, data, len, used);
    if (resp->framing == RESP_UNTIL_CLOSE) {
        take_body(resp, data, len);
        *used = len;
        return RESP_MORE;
    }
    *used = take_counted(resp, data, len);
    return resp->left == 0 ? RESP_DONE : RESP_MORE;
}

enum resp_verdict resp_feed(struct resp *resp, const uint8_t *data, size_t len,
                            size_t *used_out)
{
    enum resp_verdict verdict = RESP_MORE;
    size_t at = 0;

    while (verdict == RESP_MORE && at < len) {
        size_t used = 0;

        verdict = resp->phase == RESP_HEAD
            ? feed_head(resp, data + at, len - at, &used)
            : feed_body(resp, data + at, len - at, &used);
        at += used;
    }
    *used_out = at;
    return verdict;
}

enum resp_verdict resp_end(struct resp *resp)
{
    if (resp->phase == RESP_BODY && resp->framing == RESP_UNTIL_CLOSE)
        return RESP_DONE;
    return RESP_BAD;
}
