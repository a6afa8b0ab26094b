/* SPDX-License-Identifier: MIT */
/* Short ways to say what a head must come to. */
#ifndef HTTP_EXPECT_H
#define HTTP_EXPECT_H

#include "tests/http_feed.h"

#define HOST "Host: a.test\r\n"

/* What came of the bytes; fails the test unless all feedings agree. The
 * result is to be freed. */
struct feed_result run_all(const struct feed_plan *plan, const char *text,
                           size_t len);

/* All feedings end with this code, or 0: no error so far. The message need
 * not be complete. */
void expect(const struct feed_plan *plan, const char *text, size_t len,
            int err);
void request(const char *text, int err);
void response(const char *text, int err);

/* One head parsed whole; its fields stay until the next. */
extern struct myra_http_head head;

/* flags are those of the limits. */
int parse_as(const char *text, uint32_t flags,
             const struct myra_http_asked *asked, int is_response);

/* Fail the test unless the text is one good head; the response answers a
 * request of the method. */
void parse(const char *text);
void parse_response(const char *text, int method);

/* Whether the field of that name has the MYRA_FIELD_IS_ flag. */
int is_flagged(const char *text, const char *name, int flag);

#endif
