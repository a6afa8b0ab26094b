/* SPDX-License-Identifier: MIT */
/*
 * Reading HTTP/1.x responses: where one ends, its status, whether its body
 * is the expected one. On purpose not the library's parser: a generator that
 * tests a proxy should not share its mistakes.
 */
#ifndef MYRA_LOAD_RESP_H
#define MYRA_LOAD_RESP_H

#include <stddef.h>
#include <stdint.h>

#define RESP_HEAD_MAX 16384

enum resp_verdict {
    RESP_MORE = 0, /* all was used, more must come */
    RESP_DONE,     /* the response is complete */
    RESP_BAD,      /* no HTTP/1.x response */
    RESP_NOMEM     /* no room to keep a part of a head */
};

/* How the body's end is told. */
enum resp_framing {
    RESP_NO_BODY = 0,
    RESP_LENGTH,
    RESP_CHUNKED,
    RESP_UNTIL_CLOSE
};

enum resp_phase {
    RESP_HEAD = 0,
    RESP_BODY,
    RESP_CHUNK_SIZE,
    RESP_CHUNK_EXT,
    RESP_CHUNK_DATA,
    RESP_CHUNK_CR,
    RESP_CHUNK_LF,
    RESP_TRAILER
};

struct resp {
    /* set by resp_start */
    const uint8_t *expect; /* NULL: bytes are not compared */
    int64_t expect_len;    /* -1: any */
    int is_head;
    /* the answer, valid from RESP_DONE on */
    int status;
    int keeps_alive;
    int has_wrong_byte;
    uint64_t body_len;
    /* state */
    enum resp_framing framing;
    enum resp_phase phase;
    uint64_t left;        /* of the body, or of a chunk */
    uint32_t line_len;    /* of a chunk size, extension or trailer line */
    int has_last_chunk;
    uint32_t kept_len;
    char *kept;           /* a partial head; RESP_HEAD_MAX bytes or NULL */
};

void resp_init(struct resp *resp);
void resp_fini(struct resp *resp);

/* Before each response. */
void resp_start(struct resp *resp, int is_head, const uint8_t *expect,
                int64_t expect_len);

/* Takes data; *used_out is how much of it belongs to this response. */
enum resp_verdict resp_feed(struct resp *resp, const uint8_t *data, size_t len,
                            size_t *used_out);

/* The peer closed: RESP_DONE when that was the body's end. */
enum resp_verdict resp_end(struct resp *resp);

#endif
