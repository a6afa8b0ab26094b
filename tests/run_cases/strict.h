/* SPDX-License-Identifier: MIT */
/*
 * A second reader of HTTP/1, which shares nothing with the library: what the
 * proxy sends is judged by it. It takes only what a careful sender writes (no
 * lone LF, no fold, no list in Content-Length, no other coding than chunked,
 * no chunk extension), so a message that needs leniency is a finding.
 */
#ifndef RUN_CASES_STRICT_H
#define RUN_CASES_STRICT_H

#include "tools/myra/message.h"

enum strict_result {
    STRICT_MORE, /* the message does not end within the bytes */
    STRICT_DONE,
    STRICT_BAD
};

struct strict_reading {
    struct message message;
    size_t used;     /* STRICT_DONE: bytes of the message */
    const char *why; /* STRICT_BAD */
};

/*
 * Reads one message from the start of data. request_method is NULL to read a
 * request, else the method that the response answers. is_eof: no byte
 * follows, which completes a body without a length. What was read so far is
 * in reading->message on every result (has_head, body); the caller ends it
 * with message_fini.
 */
enum strict_result strict_read(const char *data, size_t len,
                               const char *request_method, int is_eof,
                               struct strict_reading *reading);

#endif
