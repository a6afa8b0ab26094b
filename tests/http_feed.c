/* SPDX-License-Identifier: MIT */
/* Feeds bytes to the HTTP parsers in pieces and writes down the outcome. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/http_feed.h"

/* ---- Guard pages -------------------------------------------------------- */

static size_t guard_span(size_t len, size_t slack)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);

    return (len + slack + page - 1) / page * page + page;
}

uint8_t *guard_copy(const uint8_t *bytes, size_t len, size_t slack)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t span = guard_span(len, slack);
    uint8_t *map = mmap(NULL, span, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint8_t *copy;

    if (map == MAP_FAILED)
        return NULL;
    if (mprotect(map + span - page, page, PROT_NONE) != 0)
        abort();
    copy = map + span - page - slack - len;
    if (len > 0)
        memcpy(copy, bytes, len);
    /* What lies behind must not matter; an end of line would be noticed. */
    memset(copy + len, '\n', slack);
    return copy;
}

void guard_free(uint8_t *copy, size_t len, size_t slack)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t span = guard_span(len, slack);

    munmap(copy + len + slack + page - span, span);
}

/* One mapping for all pieces of a run. */
struct window {
    uint8_t *map;
    size_t size; /* of the readable part */
};

static void window_open(struct window *window)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);

    window->size = 3 * (size_t)FEED_GUARDED_MAX;
    window->map = mmap(NULL, window->size + page, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (window->map == MAP_FAILED)
        abort();
    if (mprotect(window->map + window->size, page, PROT_NONE) != 0)
        abort();
}

static void window_close(struct window *window)
{
    munmap(window->map, window->size + (size_t)sysconf(_SC_PAGESIZE));
}

/* ---- The record --------------------------------------------------------- */

static void add_bytes(struct feed_result *result, const void *data,
                      size_t len)
{
    if (result->len + len + 1 > result->cap) {
        result->cap = (result->len + len + 1) * 2;
        result->text = realloc(result->text, result->cap);
        if (!result->text)
            abort();
    }
    if (len > 0)
        memcpy(result->text + result->len, data, len);
    result->len += len;
    result->text[result->len] = '\0';
}

static void add_text(struct feed_result *result, const char *text)
{
    add_bytes(result, text, strlen(text));
}

static void add_number(struct feed_result *result, const char *name,
                       uint64_t n)
{
    char text[64];

    snprintf(text, sizeof(text), " %s=%llu", name, (unsigned long long)n);
    add_text(result, text);
}

static void add_field(struct feed_result *result, const uint8_t *data,
                      const struct myra_http_field *field)
{
    add_bytes(result, myra_http_field_name(data, field), field->name_len);
    add_text(result, "=");
    add_bytes(result, myra_http_field_value(data, field), field->value_len);
    add_number(result, "id", field->id);
    add_number(result, "flags", field->flags);
    add_text(result, "\n");
}

static void add_head(struct feed_result *result, const uint8_t *data,
                     const struct myra_http_head *head)
{
    const struct myra_http_authority *authority = &head->target.authority;

    add_text(result, head->is_response ? "response" : "request");
    add_number(result, "status", head->status);
    add_number(result, "method", head->method);
    add_number(result, "minor", head->version_minor);
    add_number(result, "framing", head->framing);
    add_number(result, "length", head->content_length);
    add_number(result, "flags", head->flags);
    add_number(result, "start", head->start_off);
    add_number(result, "bytes", head->head_len);
    add_number(result, "form", head->target.form);
    add_number(result, "port", authority->port);
    add_text(result, " [");
    add_bytes(result, data + head->start_off, head->method_len);
    add_text(result, "] [");
    add_bytes(result, data + head->target.off, head->target.len);
    add_text(result, "] [");
    add_bytes(result, data + head->reason_off, head->reason_len);
    add_text(result, "] [");
    add_bytes(result, data + authority->off, authority->len);
    add_text(result, "]\n");
    for (uint32_t i = 0; i < head->field_count; i++)
        add_field(result, data, &head->fields[i]);
}

/* ---- The connection ----------------------------------------------------- */

enum place { IN_HEAD, IN_BODY, IN_TUNNEL, ENDED };

struct feeder {
    const struct feed_plan *plan;
    struct feed_result *result;
    enum place place;
    size_t start;      /* first byte not used yet */
    size_t body_start; /* where the body began */
    size_t asked_at;
    int is_in_data; /* the record stands inside a body's bytes */
    struct myra_http_scan scan;
    struct myra_http_head head;
    struct myra_http_field fields[FEED_FIELDS];
    struct myra_http_body body;
};

static void fail(struct feeder *feeder, int err, uint64_t at)
{
    if (feeder->is_in_data)
        add_text(feeder->result, "\n");
    add_text(feeder->result, "error ");
    add_text(feeder->result, myra_err_name(err));
    add_number(feeder->result, "at", at);
    add_text(feeder->result, "\n");
    feeder->result->err = err;
    feeder->result->is_kept = 0;
    feeder->place = ENDED;
}

static const struct myra_http_asked *asked_now(const struct feeder *feeder)
{
    return feeder->asked_at < feeder->plan->asked_count
               ? &feeder->plan->asked[feeder->asked_at]
               : NULL;
}

static int is_asked_out(const struct feeder *feeder)
{
    const size_t count = feeder->plan->asked ? feeder->plan->asked_count : 1;

    return feeder->plan->kind == FEED_RESPONSE && feeder->asked_at >= count;
}

static void end_message(struct feeder *feeder)
{
    const struct myra_http_head *head = &feeder->head;

    add_text(feeder->result, "end\n");
    feeder->result->message_count++;
    feeder->result->is_kept = (head->flags & MYRA_HEAD_KEEP_ALIVE) != 0;
    memset(&feeder->scan, 0, sizeof(feeder->scan));
    feeder->place = IN_HEAD;
    if (head->framing == MYRA_FRAMING_TUNNEL ||
        (!head->is_response && head->method == MYRA_METHOD_CONNECT)) {
        add_text(feeder->result, "tunnel ");
        feeder->place = IN_TUNNEL;
        return;
    }
    if (head->is_response && !(head->flags & MYRA_HEAD_INTERIM))
        feeder->asked_at++;
    if (feeder->plan->kind == FEED_CHUNKED || is_asked_out(feeder) ||
        !feeder->result->is_kept)
        feeder->place = ENDED;
}

static void take_part(struct feeder *feeder,
                      const struct myra_http_part *part)
{
    struct feed_result *result = feeder->result;

    if (part->kind == MYRA_PART_DATA) {
        if (!feeder->is_in_data)
            add_text(result, "data ");
        feeder->is_in_data = 1;
        add_bytes(result, part->data, part->len);
        return;
    }
    if (feeder->is_in_data && part->kind != MYRA_PART_MORE) {
        add_text(result, "\n");
        feeder->is_in_data = 0;
    }
    if (part->kind == MYRA_PART_TRAILER) {
        add_text(result, "trailer ");
        add_field(result, part->data, &part->trailer);
    } else if (part->kind == MYRA_PART_END) {
        end_message(feeder);
    }
}

/* 1: something happened, go on; 0: more bytes are needed. */
static int step_body(struct feeder *feeder, const uint8_t *data, size_t len)
{
    struct myra_http_part part;
    const int64_t used = myra_http_body_next(&feeder->body, data, len, &part);

    if (used < 0) {
        const uint64_t at = feeder->body.framing == MYRA_FRAMING_CHUNKED
                                ? feeder->body.chunked.error_offset
                                : feeder->body.body_len;

        fail(feeder, (int)used, feeder->body_start + at);
        return 0;
    }
    if ((size_t)used > len)
        abort();
    feeder->start += (size_t)used;
    take_part(feeder, &part);
    return part.kind != MYRA_PART_MORE;
}

static int step_head(struct feeder *feeder, const uint8_t *data, size_t len)
{
    const struct feed_plan *plan = feeder->plan;
    const size_t readable = len + plan->slack;
    struct myra_http_head *head = &feeder->head;
    int n;

    head->fields = feeder->fields;
    head->field_cap = plan->field_cap ? plan->field_cap : FEED_FIELDS;
    if (plan->kind == FEED_RESPONSE)
        n = myra_http_response_parse(data, len, readable, plan->limits,
                                     asked_now(feeder), &feeder->scan, head);
    else
        n = myra_http_request_parse(data, len, readable, plan->limits,
                                    &feeder->scan, head);
    if (n < 0)
        fail(feeder, n, feeder->start + head->error_offset);
    if (n <= 0)
        return 0;
    if ((size_t)n > len)
        abort();
    add_head(feeder->result, data, head);
    feeder->start += (size_t)n;
    feeder->body_start = feeder->start;
    feeder->place = IN_BODY;
    n = myra_http_body_init(&feeder->body, head, plan->limits);
    if (n < 0)
        fail(feeder, n, feeder->start);
    return n == 0;
}

/* Runs with the bytes that are there until nothing more comes of them. */
static void run_piece(struct feeder *feeder, const uint8_t *data, size_t len)
{
    const size_t first = feeder->start;
    int goes_on = 1;

    while (goes_on) {
        const uint8_t *p = data + (feeder->start - first);
        const size_t left = len - (feeder->start - first);

        if (feeder->place == IN_HEAD && left > 0) {
            goes_on = step_head(feeder, p, left);
        } else if (feeder->place == IN_BODY) {
            goes_on = step_body(feeder, p, left);
        } else {
            if (feeder->place == IN_TUNNEL) {
                add_bytes(feeder->result, p, left);
                feeder->start += left;
            }
            goes_on = 0;
        }
    }
}

static void run_eof(struct feeder *feeder, size_t len)
{
    if (feeder->place == IN_BODY) {
        if (myra_http_body_eof(&feeder->body) < 0) {
            fail(feeder, MYRA_ETRUNCATED, len);
            return;
        }
        if (feeder->is_in_data)
            add_text(feeder->result, "\n");
        feeder->is_in_data = 0;
        end_message(feeder);
    } else if (feeder->place == IN_HEAD &&
               !myra_http_scan_is_idle(&feeder->scan)) {
        fail(feeder, MYRA_ETRUNCATED, len);
    }
}

static void feeder_init(struct feeder *feeder, const struct feed_plan *plan,
                        struct feed_result *result)
{
    memset(feeder, 0, sizeof(*feeder));
    memset(result, 0, sizeof(*result));
    add_text(result, "");
    feeder->plan = plan;
    feeder->result = result;
    if (plan->kind == FEED_CHUNKED) {
        feeder->place = IN_BODY;
        feeder->head.framing = MYRA_FRAMING_CHUNKED;
        if (myra_http_body_init(&feeder->body, &feeder->head, plan->limits))
            abort();
    }
}

static void run_to(struct feeder *feeder, const struct window *window,
                   const uint8_t *bytes, size_t end)
{
    const size_t len = end - feeder->start;

    if (feeder->place == ENDED)
        return;
    if (len > FEED_GUARDED_MAX) {
        /* The caller's bytes end somewhere: promise no more than they have. */
        run_piece(feeder, bytes + feeder->start, len);
    } else {
        uint8_t *copy =
            window->map + window->size - feeder->plan->slack - len;

        if (len > 0)
            memcpy(copy, bytes + feeder->start, len);
        memset(copy + len, '\n', feeder->plan->slack);
        /* Other contents of the caller's array must not matter either. */
        memset(feeder->fields, 0xee, sizeof(feeder->fields));
        run_piece(feeder, copy, len);
    }
}

void feed_run(const struct feed_plan *plan, const uint8_t *bytes, size_t len,
              const size_t *cuts, size_t cut_count,
              struct feed_result *result)
{
    struct feed_plan local = *plan;
    struct window window;
    struct feeder *feeder = malloc(sizeof(*feeder));

    if (!feeder)
        abort();
    if (len > FEED_GUARDED_MAX)
        local.slack = 0;
    window_open(&window);
    feeder_init(feeder, &local, result);
    for (size_t i = 0; i < cut_count; i++)
        run_to(feeder, &window, bytes, cuts[i]);
    run_to(feeder, &window, bytes, len);
    if (local.is_eof)
        run_eof(feeder, len);
    if (feeder->place == IN_TUNNEL)
        add_text(result, "\n");
    else if (feeder->place != ENDED && !result->err)
        add_text(result, "waiting\n");
    result->used = feeder->start;
    window_close(&window);
    free(feeder);
}

void feed_steps(const struct feed_plan *plan, const uint8_t *bytes,
                size_t len, size_t step, struct feed_result *result)
{
    const size_t count = len / step;
    size_t *cuts = malloc((count + 1) * sizeof(*cuts));

    if (!cuts)
        abort();
    for (size_t i = 0; i < count; i++)
        cuts[i] = (i + 1) * step;
    feed_run(plan, bytes, len, cuts, count, result);
    free(cuts);
}

void feed_free(struct feed_result *result)
{
    free(result->text);
    memset(result, 0, sizeof(*result));
}

/* ---- All feedings ------------------------------------------------------- */

static int is_same_result(const struct feed_result *a,
                          const struct feed_result *b)
{
    return a->err == b->err && a->message_count == b->message_count &&
           a->is_kept == b->is_kept && a->len == b->len &&
           memcmp(a->text, b->text, a->len) == 0;
}

/* Compares other with the whole feeding and frees it; when they differ, it
 * becomes the result. */
static int settle(struct feed_result *whole, struct feed_result *other)
{
    if (is_same_result(whole, other)) {
        feed_free(other);
        return 1;
    }
    feed_free(whole);
    *whole = *other;
    return 0;
}

static const char *feed_slack(const struct feed_plan *plan,
                              const uint8_t *bytes, size_t len,
                              struct feed_result *result)
{
    static char where[96];
    struct feed_result other;

    feed_run(plan, bytes, len, NULL, 0, &other);
    snprintf(where, sizeof(where), "whole with slack %zu", plan->slack);
    if (!settle(result, &other))
        return where;
    feed_steps(plan, bytes, len, 1, &other);
    snprintf(where, sizeof(where), "byte by byte with slack %zu",
             plan->slack);
    if (!settle(result, &other))
        return where;
    for (size_t cut = 0; len <= FEED_GUARDED_MAX && cut <= len; cut++) {
        feed_run(plan, bytes, len, &cut, 1, &other);
        snprintf(where, sizeof(where), "cut at %zu with slack %zu", cut,
                 plan->slack);
        if (!settle(result, &other))
            return where;
    }
    return NULL;
}

const char *feed_all(const struct feed_plan *plan, const uint8_t *bytes,
                     size_t len, struct feed_result *result)
{
    static const size_t slacks[] = { 0, 1, 64 };
    struct feed_plan local = *plan;

    local.slack = 0;
    feed_run(&local, bytes, len, NULL, 0, result);
    for (size_t i = 0; i < sizeof(slacks) / sizeof(slacks[0]); i++) {
        const char *where;

        local.slack = slacks[i];
        where = feed_slack(&local, bytes, len, result);
        if (where)
            return where;
    }
    return NULL;
}
