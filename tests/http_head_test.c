/* SPDX-License-Identifier: MIT */
/*
 * Heads: start lines, field lines, names, Host, and heads in pieces.
 *
 * The numbers are those of the HTTP rules of the project; a test that a rule
 * stands behind names it. Each input is fed whole, byte by byte and cut at
 * every place, before an unreadable page.
 */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "lib/http/chars.h"
#include "tests/http_expect.h"

/* ---- Classes ------------------------------------------------------------ */

static int is_in(int byte, const char *set)
{
    return byte != 0 && strchr(set, byte) != NULL;
}

static int is_alnum(int byte)
{
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
           (byte >= 'A' && byte <= 'Z');
}

Test(http_chars, classes_are_those_of_the_grammar)
{
    for (int b = 0; b < 256; b++) {
        const uint8_t byte = (uint8_t)b;
        const int is_hex = (b >= '0' && b <= '9') || (b >= 'a' && b <= 'f') ||
                           (b >= 'A' && b <= 'F');

        cr_expect(!!myi_is_class(byte, MYI_CLASS_TOKEN) ==
                      (is_alnum(b) || is_in(b, "!#$%&'*+-.^_`|~")),
                  "token 0x%02x", b);
        cr_expect(!!myi_is_class(byte, MYI_CLASS_TARGET) ==
                      (b > 0x20 && b != 0x7f && b != '#'),
                  "target 0x%02x", b);
        cr_expect(!!myi_is_class(byte, MYI_CLASS_NAME) ==
                      (is_alnum(b) || is_in(b, "-._~%!$&'()*+,;=")),
                  "name 0x%02x", b);
        cr_expect(!!myi_is_class(byte, MYI_CLASS_QUOTED) ==
                      (b == '\t' || (b >= 0x20 && b != '"' && b != '\\' &&
                                     b != 0x7f)),
                  "quoted 0x%02x", b);
        cr_expect(!!myi_is_class(byte, MYI_CLASS_HEX) == is_hex, "hex 0x%02x",
                  b);
    }
}

/* ---- Names -------------------------------------------------------------- */

Test(http_names, every_field_id_has_one_name)
{
    static const char *const names[] = {
        "Host", "Content-Length", "Transfer-Encoding", "Connection",
        "Proxy-Connection", "Keep-Alive", "TE", "Trailer", "Upgrade",
        "Proxy-Authenticate", "Proxy-Authorization", "Expect",
        "Authorization", "Cookie", "Set-Cookie", "Date", "Via", "Server",
        "User-Agent", "Referer", "Forwarded", "X-Forwarded-For",
        "X-Forwarded-Host", "X-Forwarded-Proto", "Max-Forwards",
        "Accept-Encoding", "Content-Encoding", "Content-Type",
        "Content-Range", "Cache-Control", "Pragma", "Range", "Age",
        "Expires", "Location", "Retry-After", "Vary", "Warning",
        "WWW-Authenticate", "If-Match", "If-None-Match",
        "If-Modified-Since", "If-Unmodified-Since", "If-Range",
        "Sec-WebSocket-Key", "Sec-WebSocket-Accept",
        "Sec-WebSocket-Extensions", "Sec-WebSocket-Protocol",
        "Sec-WebSocket-Version",
    };
    const int count = (int)(sizeof(names) / sizeof(names[0]));

    cr_assert(count == MYRA_FIELD_ID_COUNT - 1);
    for (int i = 0; i < count; i++) {
        char text[64];
        const size_t len = strlen(names[i]);

        snprintf(text, sizeof(text), "%s", names[i]);
        for (int round = 0; round < 3; round++) {
            cr_expect((int)myra_http_field_id_of((uint8_t *)text, len) ==
                          i + 1,
                      "%s", text);
            for (size_t k = 0; k < len; k++) {
                if (text[k] >= 'a' && text[k] <= 'z' && round == 0)
                    text[k] -= 32;
                else if (text[k] >= 'A' && text[k] <= 'Z' && round == 1)
                    text[k] += 32;
            }
        }
        text[0] = '_';
        cr_expect(myra_http_field_id_of((uint8_t *)text, len) ==
                  MYRA_FIELD_OTHER);
    }
    cr_expect(!myra_http_field_id_of((const uint8_t *)"Keep\rAlive", 10));
    cr_expect(!myra_http_field_id_of((const uint8_t *)"Transfer_Encoding",
                                     17));
    cr_expect(!myra_http_field_id_of((const uint8_t *)"", 0));
}

Test(http_names, methods_are_case_sensitive)
{
    for (int i = 1; i <= MYRA_METHOD_PATCH; i++) {
        const char *name = myra_http_method_name((enum myra_http_method)i);
        const uint8_t *text = (const uint8_t *)name;

        cr_expect((int)myra_http_method_of(text, strlen(name)) == i);
        cr_expect(myra_http_method_of(text, strlen(name) - 1) ==
                  MYRA_METHOD_OTHER);
    }
    cr_expect(!myra_http_method_of((const uint8_t *)"get", 3));
    cr_expect(!myra_http_method_of((const uint8_t *)"GETS", 4));
    cr_expect(strcmp(myra_http_method_name(MYRA_METHOD_OTHER), "") == 0);
    cr_expect(myra_http_method_is_idempotent(MYRA_METHOD_PUT));
    cr_expect(!myra_http_method_is_idempotent(MYRA_METHOD_POST));
    cr_expect(!myra_http_method_is_idempotent(MYRA_METHOD_PATCH));
    cr_expect(!myra_http_method_is_idempotent(MYRA_METHOD_OTHER));
    cr_expect(!myra_http_method_is_idempotent(MYRA_METHOD_CONNECT));
    cr_expect(strcmp(myra_http_reason(431),
                     "Request Header Fields Too Large") == 0);
    cr_expect(strcmp(myra_http_reason(299), "") == 0);
}

/* ---- Start lines -------------------------------------------------------- */

Test(http_head, rule_1_first_byte_is_refused_at_once)
{
    static const char hello[] = "\x16\x03\x01";

    for (int b = 1; b < 256; b++) {
        const char text[2] = { (char)b, '\0' };
        const int is_fine = myi_is_class((uint8_t)b, MYI_CLASS_TOKEN) ||
                            b == '\r';

        request(text, is_fine      ? 0
                      : b == '\n' ? MYRA_HTTP_LINE_END
                                  : MYRA_HTTP_START);
        response(text, b == 'H' ? 0 : MYRA_HTTP_START);
    }
    request(hello, MYRA_HTTP_START);
}

Test(http_head, rule_2_seven_empty_lines_are_skipped)
{
    request("\r\n\r\n\r\n\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\n" HOST "\r\n", 0);
    request("\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\n",
            MYRA_HTTP_START);
    request("\r\n\n", MYRA_HTTP_LINE_END);
    request("\rG", MYRA_HTTP_LINE_END);
    parse("\r\n\r\nGET /x HTTP/1.1\r\n" HOST "\r\n");
    cr_expect(head.start_off == 4 && head.target.off == 8);
    response("\r\nHTTP/1.1 200 OK\r\n\r\n", MYRA_HTTP_START);
}

Test(http_head, scan_is_idle_until_a_line_begins)
{
    struct myra_http_field fields[1];
    struct myra_http_scan scan = { 0 };

    head.fields = fields;
    head.field_cap = 1;
    cr_expect(myra_http_scan_is_idle(&scan));
    cr_assert(myra_http_request_parse((const uint8_t *)"\r\n\r", 3, 3, NULL,
                                      &scan, &head) == 0);
    cr_expect(myra_http_scan_is_idle(&scan));
    cr_assert(myra_http_request_parse((const uint8_t *)"\r\n\r\nG", 5, 5,
                                      NULL, &scan, &head) == 0);
    cr_expect(!myra_http_scan_is_idle(&scan));
}

Test(http_head, rule_3_request_line_is_split_at_first_and_last_space)
{
    request("GET /a b HTTP/1.1\r\n", MYRA_HTTP_TARGET);
    request("GET  / HTTP/1.1\r\n", MYRA_HTTP_TARGET);
    request("GET /  HTTP/1.1\r\n", MYRA_HTTP_TARGET);
    request("GET  HTTP/1.1\r\n", MYRA_HTTP_TARGET);
    request("GET /\r\n", MYRA_HTTP_VERSION);
    request("GET\r\n", MYRA_HTTP_METHOD);
    request("GET / \r\n", MYRA_HTTP_VERSION);
    request("G\x7fT / HTTP/1.1\r\n", MYRA_HTTP_METHOD);
    request("G:T / HTTP/1.1\r\n", MYRA_HTTP_METHOD);
    request("GET\t/ HTTP/1.1\r\n", MYRA_HTTP_METHOD);
    request("GET /\x7f HTTP/1.1\r\n", MYRA_HTTP_TARGET);
    request("GET /\t HTTP/1.1\r\n", MYRA_HTTP_TARGET);
    request("GET / HTTP/1.1\x01\r\n", MYRA_HTTP_VERSION);
    request("GET / HTTP/1.1 \r\n", MYRA_HTTP_VERSION);
    request("GET /\x80\xff HTTP/1.1\r\n" HOST "\r\n", 0);
    parse("BREW-v1.2~x /pot HTTP/1.1\r\n" HOST "\r\n");
    cr_expect(head.method == MYRA_METHOD_OTHER && head.method_len == 11);
}

Test(http_head, rule_4_version_and_line_limit)
{
    char line[20000];

    request("GET / HTTP/2.0\r\n", MYRA_HTTP_VERSION_UNSUPPORTED);
    request("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            MYRA_HTTP_VERSION_UNSUPPORTED);
    request("GET / HTTP/0.9\r\n", MYRA_HTTP_VERSION_UNSUPPORTED);
    request("GET / HTTP/1.10\r\n", MYRA_HTTP_VERSION);
    request("GET / http/1.1\r\n", MYRA_HTTP_VERSION);
    request("GET / HTTP/1,1\r\n", MYRA_HTTP_VERSION);
    request("GET / HTTP/1\r\n", MYRA_HTTP_VERSION);
    parse("GET / HTTP/1.7\r\n" HOST "\r\n");
    cr_expect(head.version_minor == 1);
    memset(line, 'a', sizeof(line));
    memcpy(line, "GET /", 5);
    memcpy(line + (16 << 10) - 9, " HTTP/1.1\r\n" HOST "\r\n", 28);
    line[(16 << 10) + 18] = '\0';
    request(line, 0);
    memcpy(line + (16 << 10) - 8, " HTTP/1.1\r\n" HOST "\r\n", 28);
    line[(16 << 10) + 19] = '\0';
    request(line, MYRA_HTTP_LINE_TOO_LONG);
}

Test(http_head, line_limit_is_told_before_the_line_ends)
{
    const struct myra_http_limits small = { .line_max = 20,
                                            .fields_max = 30,
                                            .field_count_max = 3 };
    const struct feed_plan plan = { .kind = FEED_REQUEST, .limits = &small };
    const char *exact = "GET /0123456 HTTP/1.1\r\n";

    expect(&plan, "GET /012345 HTTP/1.1\r\n", 22, 0);
    expect(&plan, exact, 21, MYRA_HTTP_LINE_TOO_LONG);
    /* A control byte behind the limit is not looked at. */
    expect(&plan, "GET /0123456789012345\x01", 22, MYRA_HTTP_LINE_TOO_LONG);
    expect(&plan, "GET / HTTP/1.1\r\nHost: a\r\n0123456789: 0123456789ab\r\n",
           51, MYRA_HTTP_HEAD_TOO_LONG);
}

/* ---- Lines -------------------------------------------------------------- */

Test(http_head, rule_5_request_lines_end_in_cr_lf)
{
    request("GET / HTTP/1.1\n", MYRA_HTTP_LINE_END);
    request("GET / HTTP/1.1\r\nHost: a\n", MYRA_HTTP_LINE_END);
    request("GET / HTTP/1.1\r\n" HOST "\n", MYRA_HTTP_LINE_END);
    request("GET / HTTP/1.1\r\n" HOST "X-A: b\rX-B: c\r\n",
            MYRA_HTTP_LINE_END);
    request("GET / HTTP/1.1\r\n" HOST "X-A: b\r\r\n", MYRA_HTTP_LINE_END);
    request("GET / HTTP/1.1\r\r\n", MYRA_HTTP_LINE_END);
    request("GET / HTTP/1.1\r\n" HOST "\rZ", MYRA_HTTP_LINE_END);
    response("HTTP/1.1 200 OK\n", MYRA_HTTP_LINE_END);
}

Test(http_head, rule_5_responses_may_end_lines_in_lf_when_asked)
{
    struct myra_http_limits limits;
    struct feed_plan plan = { .kind = FEED_RESPONSE, .limits = &limits };
    struct feed_plan strict = { .kind = FEED_REQUEST, .limits = &limits };
    const char *text = "HTTP/1.1 200 OK\nX-A: b\nContent-Length: 2\n\nok";
    struct feed_result result;

    myra_http_limits_init(&limits);
    limits.flags = MYRA_LENIENT_LF | MYRA_LENIENT_FOLD;
    result = run_all(&plan, text, strlen(text));
    cr_expect(!result.err && result.message_count == 1);
    cr_expect(strstr(result.text, "X-A=b id=0 flags=2\n"));
    feed_free(&result);
    text = "HTTP/1.1 200 OK\nX-A: b\rX: c\n\n";
    expect(&plan, text, strlen(text), MYRA_HTTP_LINE_END);
    text = "GET / HTTP/1.1\nHost: a\n\n";
    expect(&strict, text, strlen(text), MYRA_HTTP_LINE_END);
    text = "GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n";
    expect(&strict, text, strlen(text), MYRA_HTTP_FOLD);
}

Test(http_head, rule_6_field_section_limit_counts_line_ends)
{
    struct myra_http_limits limits;
    struct feed_plan plan = { .kind = FEED_REQUEST, .limits = &limits };
    const char *text = "GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\n\r\n";

    myra_http_limits_init(&limits);
    limits.fields_max = 9 + 6 + 2;
    expect(&plan, text, strlen(text), 0);
    limits.fields_max--;
    expect(&plan, text, strlen(text), MYRA_HTTP_HEAD_TOO_LONG);
    limits.fields_max = 9 + 5;
    expect(&plan, text, strlen(text), MYRA_HTTP_HEAD_TOO_LONG);
    /* ... as soon as the line's own bytes leave no room for its end. */
    expect(&plan, text, 16 + 9 + 3, 0);
    expect(&plan, text, 16 + 9 + 4, MYRA_HTTP_HEAD_TOO_LONG);
    limits.fields_max = 1;
    expect(&plan, text, strlen(text), MYRA_HTTP_HEAD_TOO_LONG);
    cr_expect(myra_http_status_of(MYRA_HTTP_HEAD_TOO_LONG, 0) == 431);
    cr_expect(myra_http_status_of(MYRA_HTTP_HEAD_TOO_LONG, 1) == 502);
}

Test(http_head, too_many_fields_are_refused_in_linear_time)
{
    struct feed_plan plan = { .kind = FEED_REQUEST, .field_cap = 2 };
    const char *text = "GET / HTTP/1.1\r\nHost: a\r\nA: 1\r\nB: 2\r\n\r\n";

    expect(&plan, text, strlen(text), MYRA_HTTP_FIELDS_TOO_MANY);
    plan.field_cap = 3;
    expect(&plan, text, strlen(text), 0);
}

Test(http_head, rule_7_folds_are_refused_or_unfolded_when_asked)
{
    const char *text = "HTTP/1.1 200 OK\r\nX-A: one \r\n \t two\r\n"
                       "X-B:\r\n three\r\nContent-Length: 0\r\n\r\n";
    struct myra_http_out out;
    char buf[256];

    request("GET / HTTP/1.1\r\nHost: a\r\n b\r\n", MYRA_HTTP_FOLD);
    request("GET / HTTP/1.1\r\n\tX: y\r\n", MYRA_HTTP_FOLD);
    response("HTTP/1.1 200 OK\r\nX: y\r\n z\r\n", MYRA_HTTP_FOLD);
    cr_assert(parse_as(text, MYRA_LENIENT_FOLD, NULL, 1) > 0);
    myra_http_out_init(&out, buf, sizeof(buf) - 1);
    myra_http_emit_forward(&out, (const uint8_t *)text, &head, 0);
    cr_assert(out.err == 0);
    buf[out.len] = '\0';
    cr_expect(strcmp(buf, "X-A: one two\r\nX-B: three\r\n") == 0, "%s", buf);
    /* Before any field there is nothing to go on with. */
    cr_expect(parse_as("HTTP/1.1 200 OK\r\n x\r\n\r\n", MYRA_LENIENT_FOLD,
                       NULL, 1) == MYRA_HTTP_FOLD);
    /* What frames a message may not be read in two ways. */
    cr_expect(parse_as("HTTP/1.1 200 OK\r\nContent-Length:\r\n 5\r\n\r\n",
                       MYRA_LENIENT_FOLD, NULL, 1) == MYRA_HTTP_FOLD ||
              parse_as("HTTP/1.1 200 OK\r\nContent-Length:\r\n 5\r\n\r\n",
                       MYRA_LENIENT_FOLD, NULL, 1) ==
                  MYRA_HTTP_CONTENT_LENGTH);
    cr_expect(parse_as("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip,\r\n"
                       " chunked\r\n\r\n",
                       MYRA_LENIENT_FOLD, NULL, 1) == MYRA_HTTP_FOLD);
}

Test(http_head, rule_8_field_names_are_tokens)
{
    request("GET / HTTP/1.1\r\nName : v\r\n", MYRA_HTTP_FIELD_NAME);
    request("GET / HTTP/1.1\r\nName\t: v\r\n", MYRA_HTTP_FIELD_NAME);
    request("GET / HTTP/1.1\r\n: v\r\n", MYRA_HTTP_FIELD_NAME);
    request("GET / HTTP/1.1\r\nBad Header: x\r\n", MYRA_HTTP_FIELD_NAME);
    request("GET / HTTP/1.1\r\nNoColon\r\n", MYRA_HTTP_FIELD_COLON);
    response("HTTP/1.1 200 OK\r\nName : v\r\n", MYRA_HTTP_FIELD_NAME);
    for (int b = 1; b < 256; b++) {
        char text[] = "GET / HTTP/1.1\r\nHost: a\r\nX?Y: v\r\n";

        if (b == ':' || myi_is_class((uint8_t)b, MYI_CLASS_TOKEN))
            continue;
        text[26] = (char)b;
        request(text, b == '\r' || b == '\n' ? MYRA_HTTP_LINE_END
                      : (b < 0x20 && b != '\t') || b == 0x7f
                          ? MYRA_HTTP_FIELD_VALUE
                          : MYRA_HTTP_FIELD_NAME);
    }
}

Test(http_head, rule_9_tab_is_the_only_control_in_a_value)
{
    const struct feed_plan plan = { .kind = FEED_REQUEST };

    for (int b = 0; b < 256; b++) {
        char text[] = "GET / HTTP/1.1\r\nHost: a\r\nX: a?b\r\n\r\n";

        text[29] = (char)b;
        expect(&plan, text, sizeof(text) - 1,
               b == '\r' || b == '\n'               ? MYRA_HTTP_LINE_END
               : (b < 0x20 && b != '\t') || b == 0x7f ? MYRA_HTTP_FIELD_VALUE
                                                      : 0);
    }
}

Test(http_head, rule_10_only_space_and_tab_are_trimmed)
{
    static const char other[] = { 0x0b, 0x0c, 0x1c, 0x1d, 0x1e, 0x1f };

    for (size_t i = 0; i < sizeof(other); i++) {
        char text[] = "POST / HTTP/1.1\r\nHost: a\r\n"
                      "Transfer-Encoding: ?chunked\r\n\r\n";

        *strchr(text, '?') = other[i];
        request(text, MYRA_HTTP_FIELD_VALUE);
    }
    parse("GET / HTTP/1.1\r\nHost: \t a.test\t \r\n\r\n");
    cr_expect(head.fields[0].value_len == 6);
    /* Bytes from 0x80 on are no blanks either. */
    request("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \xa0"
            "chunked\r\n\r\n", MYRA_HTTP_TRANSFER_ENCODING);
}

Test(http_head, rule_11_names_keep_case_and_are_compared_without)
{
    const char *text = "GET / HTTP/1.1\r\nhOsT: a.test\r\nX-cAsE: 1\r\n\r\n";
    const uint8_t *data = (const uint8_t *)text;

    parse(text);
    cr_expect(head.host_index == 0);
    cr_expect(myra_http_head_field(&head, MYRA_FIELD_HOST) == &head.fields[0]);
    cr_expect(!myra_http_head_field(&head, MYRA_FIELD_DATE));
    cr_expect(myra_http_head_find(data, &head, "x-Case", 6) == &head.fields[1]);
    cr_expect(!myra_http_head_find(data, &head, "x-Cas", 5));
    cr_expect(memcmp(text + head.fields[1].name_off, "X-cAsE", 6) == 0);
}

/* ---- Host --------------------------------------------------------------- */

Test(http_head, rule_32_host_comes_once_and_is_an_authority)
{
    static const char *const bad[] = { "a b", "a/b", "u@a", "a?b", "a#b",
                                       "a:80x", "a:0", "a:65536", "a:", ":80",
                                       "[::1", "[::g]", "[]", "a%zz", "a\"b",
                                       "[::1]80", "::1", "a,b:x" };
    static const char *const good[] = { "a", "a.test", "a:1", "a:65535",
                                        "127.0.0.1:80", "[::1]", "[::1]:8080",
                                        "a_b-c.test", "%41.test", "" };
    char text[128];

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: %s\r\n\r\n",
                 bad[i]);
        request(text, MYRA_HTTP_HOST);
    }
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: %s\r\n\r\n",
                 good[i]);
        request(text, 0);
    }
    request("GET / HTTP/1.1\r\n\r\n", MYRA_HTTP_HOST);
    request("GET / HTTP/1.0\r\n\r\n", 0);
    request("GET / HTTP/1.1\r\n" HOST HOST "\r\n", MYRA_HTTP_HOST);
    request("GET / HTTP/1.0\r\n" HOST HOST "\r\n", MYRA_HTTP_HOST);
    request("GET http://a/ HTTP/1.1\r\n\r\n", MYRA_HTTP_HOST);
}

Test(http_head, rule_31_absolute_authority_wins_over_host)
{
    const char *text = "GET http://u:p@b.test:81/x HTTP/1.1\r\n" HOST "\r\n";

    parse(text);
    cr_expect(head.target.authority.len == 9);
    cr_expect(memcmp(text + head.target.authority.off, "b.test:81", 9) == 0);
    cr_expect(head.target.authority.port == 81);
    cr_expect(memcmp(text + head.target.authority.host_off, "b.test", 6) ==
              0);
    text = "GET /x HTTP/1.1\r\nHost: [::1]:82\r\n\r\n";
    parse(text);
    cr_expect(head.target.authority.port == 82);
    cr_expect(head.target.authority.is_ipv6);
    cr_expect(memcmp(text + head.target.authority.host_off, "::1", 3) == 0);
}

/* ---- Pieces ------------------------------------------------------------- */

Test(http_head, rule_38_pipelined_heads_stay_apart)
{
    const struct feed_plan plan = { .kind = FEED_REQUEST };
    const char *text = "GET /1 HTTP/1.1\r\n" HOST "\r\n\r\n"
                       "POST /2 HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\n"
                       "ok" "GET /3 HTTP/1.1\r\n" HOST "\r\n";
    struct feed_result result = run_all(&plan, text, strlen(text));

    cr_expect(!result.err && result.message_count == 3, "%s", result.text);
    feed_free(&result);
}

Test(http_head, a_slow_head_is_not_searched_again)
{
    const char *text = "GET / HTTP/1.1\r\nHost: a\r\nX: 123456789\r\n\r\n";
    const uint8_t *data = (const uint8_t *)text;
    const size_t len = strlen(text);
    struct myra_http_field fields[4];
    struct myra_http_scan scan = { 0 };

    head.fields = fields;
    head.field_cap = 4;
    for (size_t n = 1; n < len; n++) {
        cr_assert(myra_http_request_parse(data, n, n, NULL, &scan, &head) ==
                  0);
        /* Searched to the end; a CR is looked at again with its LF. */
        cr_expect(scan.seen_off >= n - 1 || scan.line_off >= n - 1, "%zu", n);
    }
    cr_expect(myra_http_request_parse(data, len, len, NULL, &scan, &head) ==
              (int)len);
    cr_expect(head.field_count == 2);
}

Test(http_head, error_offsets_point_at_the_fault)
{
    cr_assert(parse_as("GET / HTTP/1.1\r\nHost: a\r\nX: \x01\r\n\r\n", 0, NULL,
                       0) == MYRA_HTTP_FIELD_VALUE);
    cr_expect(head.error_offset == 28);
    cr_assert(parse_as("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5, x\r\n"
                       "\r\n", 0, NULL, 0) == MYRA_HTTP_CONTENT_LENGTH);
    cr_expect(head.error_offset == 44);
    cr_assert(parse_as("GET /a b HTTP/1.1\r\n", 0, NULL, 0) ==
              MYRA_HTTP_TARGET);
    cr_expect(head.error_offset == 4);
}

Test(http_head, lists_are_taken_apart)
{
    const char *text = " a, \"b, c\\\"\" ;q=1,,d ,";
    const uint8_t *value = (const uint8_t *)text;
    size_t pos = 0;
    size_t off;
    size_t len;

    cr_assert(myra_http_list_next(value, strlen(text), &pos, &off, &len));
    cr_expect(len == 1 && text[off] == 'a');
    cr_assert(myra_http_list_next(value, strlen(text), &pos, &off, &len));
    cr_expect(len == 13 && memcmp(text + off, "\"b, c\\\"\" ;q=1", 13) == 0);
    cr_assert(myra_http_list_next(value, strlen(text), &pos, &off, &len));
    cr_expect(len == 1 && text[off] == 'd');
    cr_expect(!myra_http_list_next(value, strlen(text), &pos, &off, &len));
    pos = 0;
    cr_expect(!myra_http_list_next(value, 0, &pos, &off, &len));
}
