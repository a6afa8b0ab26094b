/* SPDX-License-Identifier: MIT */
/* Bodies of every framing, read in one way. */
#include "config.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tests/http_expect.h"

static const uint8_t *bytes(const char *text)
{
    return (const uint8_t *)text;
}

static struct myra_http_body start(enum myra_http_framing framing,
                                   uint64_t length)
{
    struct myra_http_head made = { .framing = (uint8_t)framing,
                                   .content_length = length };
    struct myra_http_body body;

    cr_assert(myra_http_body_init(&body, &made, NULL) == 0);
    return body;
}

Test(http_body, without_a_body_the_end_comes_at_once)
{
    static const int framings[] = { MYRA_FRAMING_NONE, MYRA_FRAMING_TUNNEL };
    struct myra_http_part part;

    for (int i = 0; i < 2; i++) {
        struct myra_http_body body =
            start((enum myra_http_framing)framings[i], 0);

        cr_expect(myra_http_body_is_complete(&body));
        cr_expect(myra_http_body_next(&body, bytes("GET"), 3, &part) == 0);
        cr_expect(part.kind == MYRA_PART_END);
        cr_expect(myra_http_body_eof(&body) == 0);
        cr_expect(myra_http_body_left(&body) == 0);
    }
}

Test(http_body, length_gives_just_so_many_bytes)
{
    struct myra_http_body body = start(MYRA_FRAMING_LENGTH, 5);
    struct myra_http_part part;

    cr_expect(myra_http_body_next(&body, NULL, 0, &part) == 0);
    cr_expect(part.kind == MYRA_PART_MORE);
    cr_expect(myra_http_body_next(&body, bytes("abc"), 3, &part) == 3);
    cr_expect(part.kind == MYRA_PART_DATA && part.len == 3);
    cr_expect(myra_http_body_left(&body) == 2);
    cr_expect(myra_http_body_eof(&body) == MYRA_ETRUNCATED);
    cr_expect(!myra_http_body_is_complete(&body));
    cr_expect(myra_http_body_next(&body, bytes("deGET"), 5, &part) == 2);
    cr_expect(part.kind == MYRA_PART_DATA && part.len == 2);
    cr_expect(myra_http_body_is_complete(&body));
    cr_expect(myra_http_body_eof(&body) == 0);
    cr_expect(myra_http_body_next(&body, bytes("GET"), 3, &part) == 0);
    cr_expect(part.kind == MYRA_PART_END);
    cr_expect(body.body_len == 5);
}

Test(http_body, length_zero_is_complete)
{
    struct myra_http_body body = start(MYRA_FRAMING_LENGTH, 0);
    struct myra_http_part part;

    cr_expect(myra_http_body_is_complete(&body));
    cr_expect(myra_http_body_next(&body, NULL, 0, &part) == 0);
    cr_expect(part.kind == MYRA_PART_END);
}

Test(http_body, close_ends_with_the_connection)
{
    struct myra_http_body body = start(MYRA_FRAMING_CLOSE, 0);
    struct myra_http_part part;

    cr_expect(myra_http_body_next(&body, bytes("abc"), 3, &part) == 3);
    cr_expect(part.kind == MYRA_PART_DATA && part.len == 3);
    cr_expect(myra_http_body_next(&body, NULL, 0, &part) == 0);
    cr_expect(part.kind == MYRA_PART_MORE);
    cr_expect(!myra_http_body_is_complete(&body));
    cr_expect(myra_http_body_left(&body) == UINT64_MAX);
    cr_expect(myra_http_body_eof(&body) == 0);
}

Test(http_body, chunked_counts_and_completes)
{
    struct myra_http_body body = start(MYRA_FRAMING_CHUNKED, 0);
    struct myra_http_part part;
    const char *text = "2\r\nab\r\n0\r\n\r\nGET";
    const uint8_t *p = bytes(text);

    cr_expect(myra_http_body_next(&body, p, strlen(text), &part) == 5);
    cr_expect(part.kind == MYRA_PART_DATA && body.body_len == 2);
    cr_expect(myra_http_body_eof(&body) == MYRA_ETRUNCATED);
    cr_expect(myra_http_body_next(&body, p + 5, strlen(text) - 5, &part) ==
              7);
    cr_expect(part.kind == MYRA_PART_END);
    cr_expect(myra_http_body_is_complete(&body));
    cr_expect(myra_http_body_eof(&body) == 0);
    cr_expect(myra_http_body_next(&body, p, 3, &part) == 0);
    cr_expect(part.kind == MYRA_PART_END);
}

Test(http_body, limit_holds_for_every_framing)
{
    struct myra_http_limits limits;
    struct feed_plan plan = { .kind = FEED_RESPONSE, .limits = &limits };
    const char *text = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";

    myra_http_limits_init(&limits);
    limits.body_max = 3;
    expect(&plan, text, strlen(text), 0);
    text = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n";
    expect(&plan, text, strlen(text), MYRA_HTTP_BODY_TOO_LARGE);
    text = "HTTP/1.1 200 OK\r\n\r\nabc";
    expect(&plan, text, strlen(text), 0);
    text = "HTTP/1.1 200 OK\r\n\r\nabcd";
    expect(&plan, text, strlen(text), MYRA_HTTP_BODY_TOO_LARGE);
    text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n";
    expect(&plan, text, strlen(text), MYRA_HTTP_BODY_TOO_LARGE);
    cr_expect(myra_http_status_of(MYRA_HTTP_BODY_TOO_LARGE, 0) == 413);
}

Test(http_body, length_of_a_head_or_304_answer_is_not_waited_for)
{
    const struct myra_http_asked asked[] = { { MYRA_METHOD_HEAD, 0, 0 },
                                             { MYRA_METHOD_GET, 0, 0 } };
    const struct feed_plan plan = { .kind = FEED_RESPONSE,
                                    .asked = asked,
                                    .asked_count = 2 };
    const char *text = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"
                       "HTTP/1.1 304 NM\r\nContent-Length: 9\r\n\r\n";
    struct feed_result result = run_all(&plan, text, strlen(text));

    cr_expect(!result.err && result.message_count == 2);
    feed_free(&result);
}
