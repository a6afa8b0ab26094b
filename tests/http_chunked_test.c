/* SPDX-License-Identifier: MIT */
/*
 * The chunked coding, read (rules 19 to 21): every input whole, byte by byte
 * and cut at every place.
 */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/http_expect.h"

static void chunked_as(const struct myra_http_limits *limits,
                       const char *text, int err)
{
    const struct feed_plan plan = { .kind = FEED_CHUNKED, .limits = limits };

    expect(&plan, text, strlen(text), err);
}

static void chunked(const char *text, int err)
{
    chunked_as(NULL, text, err);
}

/* What was read, as the feeder writes it down. */
static void gives(const char *text, const char *wanted)
{
    const struct feed_plan plan = { .kind = FEED_CHUNKED };
    struct feed_result result = run_all(&plan, text, strlen(text));

    cr_expect(strcmp(result.text, wanted) == 0, "%s gives\n%s", text,
              result.text);
    feed_free(&result);
}

Test(http_chunked, gives_data_and_the_end)
{
    gives("3\r\nabc\r\n0\r\n\r\n", "data abc\nend\n");
    gives("1\r\na\r\n1\r\nb\r\n0\r\n\r\n", "data ab\nend\n");
    gives("0\r\n\r\n", "end\n");
    gives("1a\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\n\r\n",
          "data abcdefghijklmnopqrstuvwxyz\nend\n");
    gives("00A\r\n0123456789\r\n000\r\n\r\n", "data 0123456789\nend\n");
}

Test(http_chunked, leaves_what_comes_behind)
{
    const struct feed_plan plan = { .kind = FEED_CHUNKED };
    const char *text = "1\r\na\r\n0\r\n\r\nGET /";
    struct feed_result result = run_all(&plan, text, strlen(text));

    cr_expect(result.used == strlen(text) - 5);
    feed_free(&result);
}

Test(http_chunked, rule_19_sizes)
{
    chunked("g\r\n", MYRA_HTTP_CHUNK_SIZE);
    chunked("\r\n", MYRA_HTTP_CHUNK_SIZE);
    chunked("\n", MYRA_HTTP_CHUNK_SIZE);
    chunked(" 1\r\n", MYRA_HTTP_CHUNK_SIZE);
    chunked("+1\r\n", MYRA_HTTP_CHUNK_SIZE);
    chunked("-1\r\n", MYRA_HTTP_CHUNK_SIZE);
    chunked("0x1\r\n", MYRA_HTTP_CHUNK_SIZE);
    chunked("1_0\r\n", MYRA_HTTP_CHUNK_SIZE);
    chunked("1 \r\n", MYRA_HTTP_CHUNK_SIZE);
    chunked("1 2\r\n", MYRA_HTTP_CHUNK_SIZE);
    chunked("1\t ;a\r\nx\r\n", 0);
    chunked("fffffffffffffff\r\n", 0);
    chunked("000000000000001\r\nx\r\n", 0);
    chunked("0000000000000001\r\nx\r\n", MYRA_HTTP_CHUNK_OVERFLOW);
    chunked("ffffffffffffffff\r\n", MYRA_HTTP_CHUNK_OVERFLOW);
    chunked("10000000000000005\r\n", MYRA_HTTP_CHUNK_OVERFLOW);
    chunked("1\n", MYRA_HTTP_LINE_END);
    chunked("1\rx", MYRA_HTTP_LINE_END);
    chunked("1\r\r\n", MYRA_HTTP_LINE_END);
}

Test(http_chunked, rule_19_extensions_are_read_and_dropped)
{
    gives("3;a;b=c;d=\"e;\\\"f\\\\\" ; g = h\r\nfoo\r\n0;z=1\r\n\r\n",
          "data foo\nend\n");
    gives("1; a\r\nx\r\n0\r\n\r\n", "data x\nend\n");
    gives("1;a=\"\xff\t \"\r\nx\r\n0\r\n\r\n", "data x\nend\n");
    chunked("1;\r\n", MYRA_HTTP_CHUNK_EXT);
    chunked("1;;a\r\n", MYRA_HTTP_CHUNK_EXT);
    chunked("1;a=\r\n", MYRA_HTTP_CHUNK_EXT);
    chunked("1;=b\r\n", MYRA_HTTP_CHUNK_EXT);
    chunked("1;a b\r\n", MYRA_HTTP_CHUNK_EXT);
    chunked("1;a \r\n", MYRA_HTTP_CHUNK_EXT);
    chunked("1;a=b \r\n", 0);
    chunked("1;a=b c\r\n", MYRA_HTTP_CHUNK_EXT);
    chunked("1;a=b=c\r\n", MYRA_HTTP_CHUNK_EXT);
    chunked("1;a=\"b\r\n", MYRA_HTTP_CHUNK_EXT);
    chunked("1;a=\"b\\\r\n", MYRA_HTTP_CHUNK_EXT);
    chunked("1;a=\"b\"c\r\n", MYRA_HTTP_CHUNK_EXT);
    chunked("1;a=\"b\x01\"\r\n", MYRA_HTTP_CHUNK_EXT);
    chunked("1;a=\"b\\\x7f\"\r\n", MYRA_HTTP_CHUNK_EXT);
    chunked("1;a\x80\r\n", MYRA_HTTP_CHUNK_EXT);
    chunked("1;a\n", MYRA_HTTP_LINE_END);
    chunked("1;a=\"\n", MYRA_HTTP_LINE_END);
    chunked("1;a\rb\r\n", MYRA_HTTP_LINE_END);
}

Test(http_chunked, extensions_are_bounded_by_line_and_by_body)
{
    struct myra_http_limits limits;

    myra_http_limits_init(&limits);
    limits.chunk_line_max = 8;
    limits.chunk_ext_max = 1000;
    chunked_as(&limits, "1;aaaaaa\r\nx\r\n", 0);
    chunked_as(&limits, "1;aaaaaaa\r\nx\r\n", MYRA_HTTP_CHUNK_EXT_TOO_LONG);
    limits.chunk_line_max = 4096;
    limits.chunk_ext_max = 5;
    chunked_as(&limits, "1;ab\r\nx\r\n1\r\ny\r\n", 0);
    chunked_as(&limits, "1;ab\r\nx\r\n1;cd\r\n",
               MYRA_HTTP_CHUNK_EXT_TOO_LONG);
}

Test(http_chunked, rule_20_data_ends_in_cr_lf)
{
    chunked("1\r\nab\r\n", MYRA_HTTP_CHUNK_END);
    chunked("1\r\na\n", MYRA_HTTP_CHUNK_END);
    chunked("1\r\na\rb", MYRA_HTTP_CHUNK_END);
    chunked("1\r\na\r\n\r\n", MYRA_HTTP_CHUNK_SIZE);
}

Test(http_chunked, rule_20_the_end_of_the_connection_is_noticed)
{
    const struct feed_plan plan = { .kind = FEED_CHUNKED, .is_eof = 1 };
    const char *text = "2\r\nab\r\n0\r\nX: y\r\n\r\n";

    for (size_t len = 0; len < strlen(text); len++)
        expect(&plan, text, len, MYRA_ETRUNCATED);
    expect(&plan, text, strlen(text), 0);
}

Test(http_chunked, rule_21_trailers_follow_the_rules_of_fields)
{
    gives("0\r\nX-Sum: 12\r\nX-B:\t\r\n\r\n",
          "trailer X-Sum=12 id=0 flags=0\ntrailer X-B= id=0 flags=0\nend\n");
    chunked("0\r\nX : y\r\n", MYRA_HTTP_FIELD_NAME);
    chunked("0\r\n: y\r\n", MYRA_HTTP_FIELD_NAME);
    chunked("0\r\nXY\r\n", MYRA_HTTP_FIELD_COLON);
    chunked("0\r\nX: \x01\r\n", MYRA_HTTP_FIELD_VALUE);
    chunked("0\r\nX: a\n", MYRA_HTTP_LINE_END);
    chunked("0\r\nX: a\rb\r\n", MYRA_HTTP_LINE_END);
    chunked("0\r\n\n", MYRA_HTTP_LINE_END);
    chunked("0\r\n\rx", MYRA_HTTP_LINE_END);
    chunked("0\r\nX: a\r\n b\r\n", MYRA_HTTP_FOLD);
    chunked("0\r\n X: a\r\n", MYRA_HTTP_FOLD);
}

Test(http_chunked, rule_21_unsafe_trailers_are_marked)
{
    static const char *const names[] = {
        "Content-Length", "Transfer-Encoding", "Host", "Trailer",
        "Authorization", "Cookie", "Set-Cookie", "Content-Encoding",
        "Content-Type", "Connection", "TE", "Upgrade", "Cache-Control",
    };
    char text[64];
    const struct feed_plan plan = { .kind = FEED_CHUNKED };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct myra_http_chunked state;
        struct myra_http_part part;
        int64_t used;

        snprintf(text, sizeof(text), "0\r\n%s: 1\r\n\r\n", names[i]);
        expect(&plan, text, strlen(text), 0);
        myra_http_chunked_init(&state, NULL);
        used = myra_http_chunked_next(&state, (const uint8_t *)text,
                                      strlen(text), &part);
        cr_assert(used == (int64_t)strlen(text) - 2);
        cr_expect(part.kind == MYRA_PART_TRAILER);
        cr_expect(part.trailer.flags & MYRA_FIELD_IS_UNSAFE, "%s", names[i]);
    }
}

Test(http_chunked, rule_21_trailer_section_is_bounded)
{
    struct myra_http_limits limits;

    myra_http_limits_init(&limits);
    limits.trailer_max = 6 + 6 + 2;
    chunked_as(&limits, "0\r\nA: 1\r\nB: 2\r\n\r\n", 0);
    limits.trailer_max--;
    chunked_as(&limits, "0\r\nA: 1\r\nB: 2\r\n\r\n",
               MYRA_HTTP_TRAILER_TOO_LONG);
    limits.trailer_max = 6 + 5;
    chunked_as(&limits, "0\r\nA: 1\r\nB: 2", MYRA_HTTP_TRAILER_TOO_LONG);
    limits.trailer_max = 1000;
    limits.field_count_max = 1;
    chunked_as(&limits, "0\r\nA: 1\r\nB: 2\r\n\r\n",
               MYRA_HTTP_FIELDS_TOO_MANY);
}

Test(http_chunked, body_limit_is_told_at_the_size)
{
    struct myra_http_limits limits;

    myra_http_limits_init(&limits);
    limits.body_max = 3;
    chunked_as(&limits, "2\r\nab\r\n1\r\nc\r\n0\r\n\r\n", 0);
    chunked_as(&limits, "2\r\nab\r\n2\r\n", MYRA_HTTP_BODY_TOO_LARGE);
    chunked_as(&limits, "fffffffffffffff\r\n", MYRA_HTTP_BODY_TOO_LARGE);
}

Test(http_chunked, lone_lf_is_taken_only_when_asked)
{
    struct myra_http_limits limits;

    myra_http_limits_init(&limits);
    limits.flags = MYRA_LENIENT_LF;
    chunked_as(&limits, "1;a\na\n2\r\nbc\r\n0\nX: y\n\n", 0);
    chunked_as(&limits, "1;a=\"\n", MYRA_HTTP_LINE_END);
    chunked_as(&limits, "1\ra", MYRA_HTTP_LINE_END);
}

Test(http_chunked, an_error_stays)
{
    struct myra_http_chunked state;
    struct myra_http_part part;

    myra_http_chunked_init(&state, NULL);
    cr_assert(myra_http_chunked_next(&state, (const uint8_t *)"1\r\na\r\nx",
                                     4, &part) == 4);
    cr_assert(part.kind == MYRA_PART_DATA);
    cr_expect(myra_http_chunked_next(&state, (const uint8_t *)"\r\nx", 3,
                                     &part) == MYRA_HTTP_CHUNK_SIZE);
    cr_expect(state.error_offset == 6);
    cr_expect(myra_http_chunked_next(&state, (const uint8_t *)"1\r\n", 3,
                                     &part) == MYRA_HTTP_CHUNK_SIZE);
    cr_expect(state.error_offset == 6);
}

Test(http_chunked, views_point_into_the_input)
{
    const char *text = "3\r\nabc\r\n0\r\n\r\n";
    const uint8_t *data = (const uint8_t *)text;
    struct myra_http_chunked state;
    struct myra_http_part part;

    myra_http_chunked_init(&state, NULL);
    cr_assert(myra_http_chunked_next(&state, data, strlen(text), &part) == 6);
    cr_expect(part.data == data + 3 && part.len == 3);
    cr_assert(myra_http_chunked_next(&state, data + 6, 7, &part) == 7);
    cr_expect(part.kind == MYRA_PART_END);
    cr_expect(myra_http_chunked_next(&state, data, 3, &part) == 0);
    cr_expect(part.kind == MYRA_PART_END);
    cr_expect(state.body_len == 3);
}

Test(http_chunked, a_slow_trailer_is_not_searched_again)
{
    const char *text = "0\r\nX-Sum: 0123456789\r\n";
    const uint8_t *line = (const uint8_t *)text + 3;
    struct myra_http_chunked state;
    struct myra_http_part part;

    myra_http_chunked_init(&state, NULL);
    cr_assert(myra_http_chunked_next(&state, line - 3, 3, &part) == 3);
    for (size_t n = 1; n < strlen(text) - 3; n++) {
        cr_assert(myra_http_chunked_next(&state, line, n, &part) == 0);
        cr_expect(state.seen_len >= n - 1, "%zu", n);
    }
    cr_expect(myra_http_chunked_next(&state, line, strlen(text) - 3, &part) >
              0);
    cr_expect(part.kind == MYRA_PART_TRAILER);
}
