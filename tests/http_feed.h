/* SPDX-License-Identifier: MIT */
/*
 * Feeds bytes to the HTTP parsers the way a connection does, in pieces of any
 * size, and writes down what they said. What is written does not depend on
 * the cuts unless a parser does, so two runs are compared as text.
 *
 * Every piece up to FEED_GUARDED_MAX bytes lies directly before a page that
 * cannot be read.
 */
#ifndef HTTP_FEED_H
#define HTTP_FEED_H

#include <stddef.h>
#include <stdint.h>

#include <myra/http.h>

#define FEED_GUARDED_MAX 8192
#define FEED_FIELDS 256

enum feed_kind {
    FEED_REQUEST = 0,
    FEED_RESPONSE = 1,
    FEED_CHUNKED = 2 /* a chunked body alone */
};

struct feed_plan {
    enum feed_kind kind;
    const struct myra_http_limits *limits; /* NULL: the defaults */
    const struct myra_http_asked *asked;   /* responses: one each; NULL: one
                                              answer to a GET */
    size_t asked_count;
    int is_eof;   /* the peer closes behind the last byte */
    size_t slack; /* readable bytes behind each piece */
    uint32_t field_cap; /* 0: FEED_FIELDS */
};

/* What came of it. */
struct feed_result {
    char *text; /* NUL-terminated, though bodies may hold NULs */
    size_t len;
    size_t cap;
    int err; /* 0, or the code that ended it (MYRA_ETRUNCATED too) */
    unsigned message_count; /* complete ones, interim responses too */
    int is_kept;            /* the connection may go on */
    size_t used;            /* bytes taken */
};

/* Feeds bytes[0 .. len) cut at the given ascending offsets. The result is to
 * be freed. */
void feed_run(const struct feed_plan *plan, const uint8_t *bytes, size_t len,
              const size_t *cuts, size_t cut_count,
              struct feed_result *result);

/* The same, cut behind every step bytes. */
void feed_steps(const struct feed_plan *plan, const uint8_t *bytes,
                size_t len, size_t step, struct feed_result *result);

void feed_free(struct feed_result *result);

/*
 * Feeds it whole, byte by byte and, up to FEED_GUARDED_MAX bytes, cut once at
 * every offset, with slack 0 and 64, and compares. Returns NULL and the
 * result of the whole feeding, or a text that says which cut differed (static;
 * *result holds what that cut gave).
 */
const char *feed_all(const struct feed_plan *plan, const uint8_t *bytes,
                     size_t len, struct feed_result *result);

/* A copy of len bytes before an unreadable page with slack bytes between;
 * NULL where the system has no memory. */
uint8_t *guard_copy(const uint8_t *bytes, size_t len, size_t slack);
void guard_free(uint8_t *copy, size_t len, size_t slack);

#endif
