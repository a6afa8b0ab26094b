/* SPDX-License-Identifier: MIT */
/*
 * The origin behind the proxy: records every byte and every message that
 * reaches it, and answers with its own words or with a script's.
 */
#ifndef RUN_CASES_ORIGIN_H
#define RUN_CASES_ORIGIN_H

#include "tests/run_cases/socket.h"

struct origin_conn {
    struct channel channel;
    unsigned id;
    int is_bad; /* what came is no strict HTTP: read no more */
    int has_continued;
    int is_scripted; /* it sent bytes of a script */
};

struct origin_message {
    struct message message;
    unsigned conn_id;
};

/* What to answer instead of the origin's own words: blob k to request k. */
struct origin_script {
    struct bytes *blobs;
    size_t blob_count;
    size_t next;
    int closes; /* behind the last blob */
    enum pace pace;
};

struct origin {
    int listen_fd;
    int port;
    struct origin_conn **conns;
    size_t conn_count;
    unsigned last_id;
    struct origin_message *messages; /* since origin_begin */
    size_t message_count;
    struct origin_script *script; /* the caller's, or NULL */
    const char *fault; /* why a message was not strict HTTP, or NULL */
};

/* 0 or a negative errno. */
int origin_open(struct origin *origin);
void origin_close(struct origin *origin);

/* Forgets the messages, closed connections and raw bytes of before. */
void origin_begin(struct origin *origin, struct origin_script *script);

/* Accepts, receives, answers. */
void origin_turn(struct origin *origin);

/* The open connection with that id, or NULL. */
const struct origin_conn *origin_conn(const struct origin *origin,
                                      unsigned id);

/* All raw bytes since origin_begin, connection by connection. */
void origin_raw(const struct origin *origin, struct bytes *out);

/* 1 if a message has begun on an open connection and did not end. */
int origin_has_partial(const struct origin *origin);

/* The body that the origin answers a request with. */
void origin_answer_body(const struct message *request, struct bytes *out);

#endif
