/* SPDX-License-Identifier: MIT */
/*
 * The recording origin. Its own answer names the request that it is for, so
 * that an answer given to the wrong request shows.
 */
#include "config.h"

#include "tests/run_cases/origin.h"

#include "tests/run_cases/strict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int origin_open(struct origin *origin)
{
    memset(origin, 0, sizeof *origin);
    origin->listen_fd = socket_listen(&origin->port);
    return origin->listen_fd < 0 ? origin->listen_fd : 0;
}

static void forget_messages(struct origin *origin)
{
    for (size_t i = 0; i < origin->message_count; i++)
        message_fini(&origin->messages[i].message);
    free(origin->messages);
    origin->messages = NULL;
    origin->message_count = 0;
}

static void free_conn(struct origin_conn *conn)
{
    channel_fini(&conn->channel);
    free(conn);
}

void origin_close(struct origin *origin)
{
    for (size_t i = 0; i < origin->conn_count; i++)
        free_conn(origin->conns[i]);
    free(origin->conns);
    forget_messages(origin);
    if (origin->listen_fd >= 0)
        close(origin->listen_fd);
    memset(origin, 0, sizeof *origin);
    origin->listen_fd = -1;
}

void origin_begin(struct origin *origin, struct origin_script *script)
{
    size_t kept = 0;

    forget_messages(origin);
    origin->script = script;
    origin->fault = NULL;
    for (size_t i = 0; i < origin->conn_count; i++) {
        struct origin_conn *const conn = origin->conns[i];

        if (conn->channel.fd < 0) {
            free_conn(conn);
            continue;
        }
        bytes_set(&conn->channel.raw, "", 0);
        conn->is_scripted = 0;
        origin->conns[kept++] = conn;
    }
    origin->conn_count = kept;
}

static void accept_all(struct origin *origin)
{
    int fd;

    while ((fd = socket_accept(origin->listen_fd)) >= 0) {
        struct origin_conn *const conn = memory_grow(NULL, sizeof *conn);

        memset(conn, 0, sizeof *conn);
        channel_init(&conn->channel, fd);
        conn->id = ++origin->last_id;
        origin->conns =
            memory_grow(origin->conns,
                        (origin->conn_count + 1) * sizeof(*origin->conns));
        origin->conns[origin->conn_count++] = conn;
    }
}

void origin_answer_body(const struct message *request, struct bytes *out)
{
    bytes_set(out, "answer to ", 10);
    bytes_add(out, bytes_text(&request->method), request->method.len);
    bytes_add_text(out, " ");
    bytes_add(out, bytes_text(&request->target), request->target.len);
}

static void answer_plainly(struct origin_conn *conn,
                           const struct message *request)
{
    struct bytes *const out = &conn->channel.out;
    struct bytes body = { 0 };
    char head[128];

    origin_answer_body(request, &body);
    snprintf(head, sizeof head,
             "HTTP/1.1 200 OK\r\nX-Origin: 1\r\nContent-Length: %zu\r\n\r\n",
             body.len);
    bytes_add_text(out, head);
    if (!bytes_equal_text(&request->method, "HEAD"))
        bytes_add(out, bytes_text(&body), body.len);
    bytes_fini(&body);
}

static void answer(struct origin *origin, struct origin_conn *conn,
                   const struct message *request)
{
    struct origin_script *const script = origin->script;

    if (script == NULL || script->next >= script->blob_count) {
        conn->channel.pace = PACE_WHOLE;
        answer_plainly(conn, request);
        return;
    }
    conn->is_scripted = 1;
    conn->channel.pace = script->pace;
    conn->channel.cut =
        conn->channel.out.len + script->blobs[script->next].len / 2;
    bytes_add(&conn->channel.out, bytes_text(&script->blobs[script->next]),
              script->blobs[script->next].len);
    script->next++;
    if (script->next == script->blob_count && script->closes)
        conn->channel.wants_shutdown = 1;
}

static void keep_message(struct origin *origin, struct origin_conn *conn,
                         const struct message *message)
{
    origin->messages =
        memory_grow(origin->messages,
                    (origin->message_count + 1) * sizeof *origin->messages);
    origin->messages[origin->message_count].message = *message;
    origin->messages[origin->message_count].conn_id = conn->id;
    origin->message_count++;
    conn->has_continued = 0;
}

/* A client that waits for a 100 gets it. */
static void answer_expectation(struct origin_conn *conn,
                               const struct message *message)
{
    if (!message->has_head || conn->has_continued ||
        !fields_list_token(&message->fields, "Expect", "100-continue"))
        return;
    conn->has_continued = 1;
    bytes_add_text(&conn->channel.out, "HTTP/1.1 100 Continue\r\n\r\n");
}

static void read_messages(struct origin *origin, struct origin_conn *conn)
{
    struct channel *const channel = &conn->channel;

    while (!conn->is_bad && channel->in.len > 0) {
        struct strict_reading reading;
        const enum strict_result result =
            strict_read(bytes_text(&channel->in), channel->in.len, NULL,
                        channel->is_eof, &reading);

        if (result == STRICT_DONE) {
            bytes_drop(&channel->in, reading.used);
            keep_message(origin, conn, &reading.message);
            answer(origin, conn, &reading.message);
            continue;
        }
        if (result == STRICT_BAD) {
            conn->is_bad = 1;
            origin->fault = reading.why;
        } else {
            answer_expectation(conn, &reading.message);
        }
        message_fini(&reading.message);
        return;
    }
}

static void conn_turn(struct origin *origin, struct origin_conn *conn)
{
    struct channel *const channel = &conn->channel;
    const size_t had = channel->in.len;

    channel_turn(channel);
    if (channel->in.len != had)
        read_messages(origin, conn);
    if (conn->is_bad || channel->is_reset ||
        (channel->is_eof && !channel_has_output(channel))) {
        close(channel->fd);
        channel->fd = -1;
    }
}

void origin_turn(struct origin *origin)
{
    accept_all(origin);
    for (size_t i = 0; i < origin->conn_count; i++) {
        if (origin->conns[i]->channel.fd >= 0)
            conn_turn(origin, origin->conns[i]);
    }
}

const struct origin_conn *origin_conn(const struct origin *origin, unsigned id)
{
    for (size_t i = 0; i < origin->conn_count; i++) {
        if (origin->conns[i]->id == id && origin->conns[i]->channel.fd >= 0)
            return origin->conns[i];
    }
    return NULL;
}

void origin_raw(const struct origin *origin, struct bytes *out)
{
    bytes_set(out, "", 0);
    for (size_t i = 0; i < origin->conn_count; i++) {
        const struct bytes *const raw = &origin->conns[i]->channel.raw;

        bytes_add(out, bytes_text(raw), raw->len);
    }
}

int origin_has_partial(const struct origin *origin)
{
    for (size_t i = 0; i < origin->conn_count; i++) {
        const struct channel *const channel = &origin->conns[i]->channel;

        if (channel->fd >= 0 && channel->in.len > 0)
            return 1;
    }
    return 0;
}
