/* SPDX-License-Identifier: MIT */
/*
 * What the fields of a head say about its body and its connection.
 *
 * The numbers are those of the HTTP rules of the project; a test that a rule
 * stands behind names it. Each input is fed whole, byte by byte and cut at
 * every place, before an unreadable page.
 */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/http_expect.h"

/* ---- Request framing ---------------------------------------------------- */

#define POST "POST / HTTP/1.1\r\n" HOST

Test(http_framing, rule_12_both_lengths_are_refused)
{
    request(POST "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
            MYRA_HTTP_TE_WITH_LENGTH);
    request(POST "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            MYRA_HTTP_TE_WITH_LENGTH);
    request(POST "Content-Length: 10\r\nTransfer-Encoding:\r\n\r\n",
            MYRA_HTTP_TE_WITH_LENGTH);
}

Test(http_framing, rule_13_chunked_is_last_and_once)
{
    static const char *const bad[] = { "identity", "gzip", "chunked;x",
                                       "xchunked", "chunked, gzip",
                                       "chunked, chunked", "", ",chunked",
                                       "chunked,", "gzip,,chunked",
                                       "identity, chunked", "\"chunked\"",
                                       "chunked chunked" };
    char text[256];

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        snprintf(text, sizeof(text), POST "Transfer-Encoding: %s\r\n\r\n",
                 bad[i]);
        request(text, MYRA_HTTP_TRANSFER_ENCODING);
    }
    request(POST "Transfer-Encoding: chunked\r\n"
                 "Transfer-Encoding: chunked\r\n\r\n",
            MYRA_HTTP_TRANSFER_ENCODING);
    request("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
            MYRA_HTTP_TE_VERSION);
    parse(POST "Transfer-Encoding: \t chunKED \r\n\r\n");
    cr_expect(head.framing == MYRA_FRAMING_CHUNKED);
    cr_expect(!(head.flags & MYRA_HEAD_HAS_LENGTH));
}

Test(http_framing, rule_13_other_codings_need_to_be_asked_for)
{
    const char *text = POST "Transfer-Encoding: gzip, chunked\r\n\r\n";

    request(text, MYRA_HTTP_CODING_UNKNOWN);
    cr_assert(parse_as(text, MYRA_ACCEPT_CODINGS, NULL, 0) > 0);
    cr_expect(head.framing == MYRA_FRAMING_CHUNKED);
    cr_expect(head.flags & MYRA_HEAD_HAS_CODING);
    cr_expect(parse_as(POST "Transfer-Encoding: br, chunked\r\n\r\n",
                       MYRA_ACCEPT_CODINGS, NULL,
                       0) == MYRA_HTTP_CODING_UNKNOWN);
    cr_expect(myra_http_status_of(MYRA_HTTP_CODING_UNKNOWN, 0) == 501);
}

Test(http_framing, rule_14_content_length_is_decimal_digits)
{
    static const char *const bad[] = { "+5", "-1", "0x5", "5 5", "5_0", "5.0",
                                       "5;", "\"5\"", "18446744073709551621",
                                       "1000000000000000000" };
    char text[256];

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        snprintf(text, sizeof(text), POST "Content-Length: %s\r\n\r\n",
                 bad[i]);
        request(text, MYRA_HTTP_CONTENT_LENGTH);
    }
    parse(POST "Content-Length: 007\r\n\r\n");
    cr_expect(head.content_length == 7);
    parse(POST "Content-Length: 010\r\n\r\n");
    cr_expect(head.content_length == 10);
    parse(POST "Content-Length: 999999999999999999\r\n\r\n");
    cr_expect(head.content_length == 999999999999999999u);
}

Test(http_framing, rule_15_equal_lengths_collapse_others_fail)
{
    parse(POST "Content-Length: 5, 5\r\nContent-Length: 05\r\n\r\n");
    cr_expect(head.framing == MYRA_FRAMING_LENGTH);
    cr_expect(head.content_length == 5);
    request(POST "Content-Length: 5, 6\r\n\r\n", MYRA_HTTP_LENGTH_CONFLICT);
    request(POST "Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
            MYRA_HTTP_LENGTH_CONFLICT);
    request(POST "Content-Length: \r\n\r\n", MYRA_HTTP_CONTENT_LENGTH);
    request(POST "Content-Length:\r\nContent-Length: 5\r\n\r\n",
            MYRA_HTTP_CONTENT_LENGTH);
    request(POST "Content-Length: 5,\r\n\r\n", MYRA_HTTP_CONTENT_LENGTH);
    request(POST "Content-Length: ,5\r\n\r\n", MYRA_HTTP_CONTENT_LENGTH);
    request(POST "Content-Length: 5,,5\r\n\r\n", MYRA_HTTP_CONTENT_LENGTH);
}

Test(http_framing, rule_16_no_length_is_no_body)
{
    parse(POST "\r\n");
    cr_expect(head.framing == MYRA_FRAMING_NONE);
    parse(POST "Content-Length: 0\r\n\r\n");
    cr_expect(head.framing == MYRA_FRAMING_LENGTH);
    cr_expect(head.content_length == 0);
    cr_expect(head.flags & MYRA_HEAD_HAS_LENGTH);
}

Test(http_framing, connect_has_no_body)
{
#define CONNECT "CONNECT h:443 HTTP/1.1\r\n" HOST
    request(CONNECT "Content-Length: 1\r\n\r\n", MYRA_HTTP_CONTENT_LENGTH);
    request(CONNECT "Transfer-Encoding: chunked\r\n\r\n",
            MYRA_HTTP_TRANSFER_ENCODING);
    parse(CONNECT "Content-Length: 0\r\n\r\n");
    cr_expect(head.framing == MYRA_FRAMING_NONE);
    cr_expect(!(head.flags & MYRA_HEAD_HAS_LENGTH));
#undef CONNECT
}

Test(http_framing, rule_17_connection_never_removes_what_frames_or_routes)
{
    static const char *const lists[] = { "Connection", "Proxy-Connection" };
    char text[512];

    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof(text),
                 "POST / HTTP/1.1\r\n%s: Content-Length, Host, authorization,"
                 " COOKIE, X-Mine\r\nHost: a\r\nContent-Length: 2\r\n"
                 "Authorization: b\r\nCookie: c\r\nX-Mine: d\r\nX-Own: e\r\n"
                 "\r\n",
                 lists[i]);
        parse(text);
        cr_expect(head.framing == MYRA_FRAMING_LENGTH);
        cr_expect(!is_flagged(text, "Content-Length", MYRA_FIELD_IS_HOP));
        cr_expect(!is_flagged(text, "Host", MYRA_FIELD_IS_HOP));
        cr_expect(!is_flagged(text, "Authorization", MYRA_FIELD_IS_HOP));
        cr_expect(!is_flagged(text, "Cookie", MYRA_FIELD_IS_HOP));
        cr_expect(is_flagged(text, "X-Mine", MYRA_FIELD_IS_HOP));
        cr_expect(!is_flagged(text, "X-Own", MYRA_FIELD_IS_HOP));
        cr_expect(is_flagged(text, lists[i], MYRA_FIELD_IS_HOP));
    }
    snprintf(text, sizeof(text),
             "HTTP/1.1 200 OK\r\nConnection: Transfer-Encoding\r\n"
             "Transfer-Encoding: chunked\r\n\r\n");
    parse_response(text, MYRA_METHOD_GET);
    cr_expect(head.framing == MYRA_FRAMING_CHUNKED);
    cr_expect(!is_flagged(text, "Transfer-Encoding", MYRA_FIELD_IS_HOP));
}

/* ---- Response framing --------------------------------------------------- */

Test(http_framing, rule_23_some_responses_have_no_body)
{
    const char *text = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
    const char *coded = "HTTP/1.1 204 No\r\nTransfer-Encoding: chunked\r\n"
                        "Content-Length: x\r\n\r\n";

    parse_response(text, MYRA_METHOD_HEAD);
    cr_expect(head.framing == MYRA_FRAMING_NONE);
    parse_response(text, MYRA_METHOD_CONNECT);
    cr_expect(head.framing == MYRA_FRAMING_TUNNEL);
    parse_response(coded, MYRA_METHOD_GET);
    cr_expect(head.framing == MYRA_FRAMING_NONE);
    cr_expect(!(head.flags & MYRA_HEAD_HAS_LENGTH));
    parse_response("HTTP/1.1 304 NM\r\nContent-Length: 5\r\n\r\n",
                   MYRA_METHOD_GET);
    cr_expect(head.framing == MYRA_FRAMING_NONE);
    parse_response("HTTP/1.1 103 EH\r\nContent-Length: 5\r\n\r\n",
                   MYRA_METHOD_GET);
    cr_expect(head.framing == MYRA_FRAMING_NONE);
    cr_expect(head.flags & MYRA_HEAD_INTERIM);
    parse_response("HTTP/1.1 407 No\r\nContent-Length: 5\r\n\r\n",
                   MYRA_METHOD_CONNECT);
    cr_expect(head.framing == MYRA_FRAMING_LENGTH);
}

Test(http_framing, rule_24_chunked_wins_and_the_connection_ends)
{
    parse_response("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n"
                   "Transfer-Encoding: chunked\r\n\r\n", MYRA_METHOD_GET);
    cr_expect(head.framing == MYRA_FRAMING_CHUNKED);
    cr_expect(!(head.flags &
                (MYRA_HEAD_KEEP_ALIVE | MYRA_HEAD_HAS_LENGTH)));
    parse_response("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n"
                   "Transfer-Encoding: identity\r\n\r\n", MYRA_METHOD_GET);
    cr_expect(head.framing == MYRA_FRAMING_CLOSE);
    cr_expect(!(head.flags & MYRA_HEAD_HAS_LENGTH));
    cr_assert(parse_as("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip"
                       "\r\n\r\n", MYRA_ACCEPT_CODINGS, NULL, 1) > 0);
    cr_expect(head.framing == MYRA_FRAMING_CLOSE);
    cr_expect(head.flags & MYRA_HEAD_HAS_CODING);
    response("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
             MYRA_HTTP_CODING_UNKNOWN);
    response("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n"
             "Content-Length: 6\r\n\r\n", MYRA_HTTP_LENGTH_CONFLICT);
    response("HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\n",
             MYRA_HTTP_CONTENT_LENGTH);
    parse_response("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n"
                   "Transfer-Encoding: chunked\r\n\r\n", MYRA_METHOD_GET);
    cr_expect(head.framing == MYRA_FRAMING_CHUNKED);
    cr_expect(!(head.flags & MYRA_HEAD_KEEP_ALIVE));
}

Test(http_framing, rule_25_no_length_is_until_close)
{
    parse_response("HTTP/1.1 200 OK\r\n\r\n", MYRA_METHOD_GET);
    cr_expect(head.framing == MYRA_FRAMING_CLOSE);
    cr_expect(!(head.flags & MYRA_HEAD_KEEP_ALIVE));
}

Test(http_framing, rule_26_head_keeps_the_length)
{
    parse_response("HTTP/1.1 200 OK\r\nContent-Length: 1488324\r\n\r\n",
                   MYRA_METHOD_HEAD);
    cr_expect(head.flags & MYRA_HEAD_HAS_LENGTH);
    cr_expect(head.content_length == 1488324);
    parse_response("HTTP/1.1 200 OK\r\n\r\n", MYRA_METHOD_HEAD);
    cr_expect(!(head.flags & MYRA_HEAD_HAS_LENGTH));
    cr_expect(head.flags & MYRA_HEAD_KEEP_ALIVE);
}

Test(http_framing, rule_27_status_line)
{
    response("HTTP/1.1 2x0 OK\r\n", MYRA_HTTP_STATUS);
    response("HTTP/1.1 20 OK\r\n", MYRA_HTTP_STATUS);
    response("HTTP/1.1 099 OK\r\n", MYRA_HTTP_STATUS);
    response("HTTP/1.1 2000 OK\r\n", MYRA_HTTP_STATUS);
    response("HTTP/1.1  200 OK\r\n", MYRA_HTTP_STATUS);
    response("HTTP/1.1\r\n", MYRA_HTTP_STATUS);
    response("HTTP/1.1 20", 0);
    response("HTTP/1.1 20\r\n", MYRA_HTTP_STATUS);
    response("HTTP/1.1000 200 OK\r\n", MYRA_HTTP_VERSION);
    response("HTTQ/1.1 200 OK\r\n", MYRA_HTTP_VERSION);
    response("HTTP/2.0 200 OK\r\n", MYRA_HTTP_VERSION_UNSUPPORTED);
    response("this is not HTTP\r\n", MYRA_HTTP_START);
    response("HTTP/1.1 200 O\x01K\r\n", MYRA_HTTP_STATUS);
    parse_response("HTTP/1.1 200\r\n\r\n", MYRA_METHOD_GET);
    cr_expect(head.reason_len == 0);
    parse_response("HTTP/1.1 404 \r\n\r\n", MYRA_METHOD_GET);
    cr_expect(head.reason_len == 0 && head.status == 404);
    parse_response("HTTP/1.0 999 W\xe9ird  text\r\n\r\n", MYRA_METHOD_GET);
    cr_expect(head.reason_len == 11 && head.status == 999);
    cr_expect(head.version_minor == 0);
}

Test(http_framing, rule_28_interim_responses_are_marked)
{
    const struct feed_plan plan = { .kind = FEED_RESPONSE };
    const char *text = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\n"
                       "\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    struct feed_result result = run_all(&plan, text, strlen(text));

    cr_expect(!result.err && result.message_count == 3, "%s", result.text);
    feed_free(&result);
}

Test(http_framing, rule_29_only_the_upgrade_that_was_asked_for)
{
    const char *text = "HTTP/1.1 101 Switching\r\nConnection: upgrade\r\n"
                       "Upgrade: WebSocket\r\n\r\n";
    const char *other = "HTTP/1.1 101 Switching\r\nConnection: upgrade\r\n"
                        "Upgrade: h2c\r\n\r\n";
    const char *none = "HTTP/1.1 101 Switching\r\n\r\n";
    const struct myra_http_asked any = { .is_upgrade = 1 };
    const struct myra_http_asked websocket = { MYRA_METHOD_GET, 1, 1 };

    cr_expect(parse_as(text, 0, NULL, 1) == MYRA_HTTP_UPGRADE);
    cr_expect(parse_as(text, 0, &websocket, 1) > 0);
    cr_expect(head.framing == MYRA_FRAMING_TUNNEL);
    cr_expect(head.flags & MYRA_HEAD_WEBSOCKET);
    cr_expect(!(head.flags & MYRA_HEAD_KEEP_ALIVE));
    cr_expect(parse_as(other, 0, &websocket, 1) == MYRA_HTTP_UPGRADE);
    cr_expect(parse_as(other, 0, &any, 1) > 0);
    cr_expect(parse_as(none, 0, &any, 1) == MYRA_HTTP_UPGRADE);
}

Test(http_framing, rule_30_expect_is_told_for_1_1)
{
    parse(POST "Expect: 100-Continue\r\nContent-Length: 1\r\n\r\n");
    cr_expect(head.flags & MYRA_HEAD_EXPECT_100);
    parse("POST / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n");
    cr_expect(!(head.flags & MYRA_HEAD_EXPECT_100));
}

/* ---- The connection ----------------------------------------------------- */

Test(http_head, rule_33_hop_by_hop_fields_are_marked)
{
    static const char *const names[] = {
        "Connection", "Keep-Alive", "Proxy-Authenticate",
        "Proxy-Authorization", "Proxy-Connection", "TE", "Trailer", "Upgrade",
    };
    char text[256];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(text, sizeof(text),
                 "GET / HTTP/1.1\r\n" HOST "%s: y\r\nX: y\r\n\r\n", names[i]);
        parse(text);
        cr_expect(is_flagged(text, names[i], MYRA_FIELD_IS_HOP));
        cr_expect(!is_flagged(text, "X", MYRA_FIELD_IS_HOP));
    }
    snprintf(text, sizeof(text),
             "GET / HTTP/1.1\r\n" HOST "Connection: x-a, Via\r\nX-A: 1\r\n"
             "x-A: 2\r\nX-AB: 3\r\nVia: 1.1 b\r\n\r\n");
    parse(text);
    cr_expect(head.fields[2].flags & MYRA_FIELD_IS_HOP);
    cr_expect(head.fields[3].flags & MYRA_FIELD_IS_HOP);
    cr_expect(!(head.fields[4].flags & MYRA_FIELD_IS_HOP));
    cr_expect(head.fields[5].flags & MYRA_FIELD_IS_HOP);
}

Test(http_head, connection_lists_are_bounded)
{
    static char text[4096];
    size_t len = (size_t)snprintf(text, sizeof(text),
                                  "GET / HTTP/1.1\r\n" HOST "Connection: a");

    for (int i = 0; i < 64; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, ", x%d", i);
    snprintf(text + len, sizeof(text) - len, "\r\n\r\n");
    request(text, MYRA_HTTP_FIELDS_TOO_MANY);
}

Test(http_head, rule_35_websocket_needs_upgrade_in_connection)
{
#define WS "GET /chat HTTP/1.1\r\n" HOST
    parse(WS "Upgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n\r\n");
    cr_expect(head.flags & MYRA_HEAD_WEBSOCKET);
    cr_expect(myra_http_asked_of(&head).is_websocket);
    parse(WS "Upgrade: h2c, WebSocket\r\nConnection: UPGRADE\r\n\r\n");
    cr_expect(head.flags & MYRA_HEAD_WEBSOCKET);
    parse(WS "Upgrade: websocket\r\n\r\n");
    cr_expect(!(head.flags & (MYRA_HEAD_WEBSOCKET | MYRA_HEAD_UPGRADE)));
    parse(WS "Upgrade: h2c\r\nConnection: upgrade\r\n\r\n");
    cr_expect(!(head.flags & MYRA_HEAD_WEBSOCKET));
    cr_expect(head.flags & MYRA_HEAD_UPGRADE);
    cr_expect(!myra_http_asked_of(&head).is_upgrade);
    parse(WS "Upgrade: websocket\r\nProxy-Connection: upgrade\r\n\r\n");
    cr_expect(!(head.flags & MYRA_HEAD_UPGRADE));
    parse("POST / HTTP/1.1\r\n" HOST "Upgrade: websocket\r\n"
          "Connection: upgrade\r\n\r\n");
    cr_expect(!(head.flags & MYRA_HEAD_WEBSOCKET));
    parse(WS "Upgrade: websocket\r\nConnection: upgrade\r\n"
             "Content-Length: 3\r\n\r\n");
    cr_expect(!(head.flags & MYRA_HEAD_WEBSOCKET));
#undef WS
}

Test(http_head, rule_36_keep_alive)
{
    static const struct {
        const char *text;
        uint32_t flags;
    } rows[] = {
        { "GET / HTTP/1.1\r\n" HOST "\r\n", MYRA_HEAD_KEEP_ALIVE },
        { "GET / HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n", 0 },
        { "GET / HTTP/1.1\r\n" HOST "Connection: x, CLOSE\r\n\r\n", 0 },
        { "GET / HTTP/1.1\r\n" HOST "Proxy-Connection: close\r\n\r\n", 0 },
        { "GET / HTTP/1.1\r\n" HOST
          "Connection: keep-alive\r\nConnection: close\r\n\r\n", 0 },
        { "GET / HTTP/1.1\r\n" HOST "Connection: closed\r\n\r\n",
          MYRA_HEAD_KEEP_ALIVE },
        { "GET / HTTP/1.0\r\n\r\n", 0 },
        { "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n",
          MYRA_HEAD_KEEP_ALIVE },
        { "GET / HTTP/1.0\r\nProxy-Connection: keep-alive\r\n\r\n", 0 },
        { "GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n", 0 },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        parse(rows[i].text);
        cr_expect((head.flags & MYRA_HEAD_KEEP_ALIVE) == rows[i].flags, "%s",
                  rows[i].text);
    }
}

Test(http_head, other_flags_come_from_fields)
{
    parse("GET / HTTP/1.1\r\n" HOST "TE: gzip, trailers\r\n"
          "Connection: TE\r\nDate: now\r\n\r\n");
    cr_expect(head.flags & MYRA_HEAD_TE_TRAILERS);
    cr_expect(head.flags & MYRA_HEAD_HAS_DATE);
}

