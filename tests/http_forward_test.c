/* SPDX-License-Identifier: MIT */
/*
 * Forwarding a parsed head: what goes out, that it fits the bound, and that
 * whoever parses it sees the framing that was decided.
 */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/http_expect.h"

static char sent[16384];

/* The head as it goes to the next hop: to an origin, or to a client. */
static void forward(const char *text, enum myra_http_framing as,
                    uint64_t drop_ids, struct myra_http_out *out)
{
    const uint8_t *data = (const uint8_t *)text;
    const size_t bound = myra_http_forward_bound(&head);

    cr_assert(bound < sizeof(sent));
    memset(sent, 0, sizeof(sent));
    myra_http_out_init(out, sent, bound);
    if (head.is_response) {
        myra_http_emit_forward_status(out, data, &head);
    } else {
        myra_http_emit_origin_line(out, data, &head);
        myra_http_emit_host(out, data, &head);
    }
    myra_http_emit_forward(out, data, &head, drop_ids);
    myra_http_emit_framing(out, data, &head, as);
    myra_http_emit_end(out);
}

static void goes_out(const char *text, const char *wanted)
{
    struct myra_http_out out;

    parse(text);
    forward(text, (enum myra_http_framing)head.framing, 0, &out);
    cr_expect(out.err == 0 && strcmp(sent, wanted) == 0, "%s\nnot\n%s", sent,
              wanted);
}

static void comes_back(const char *text, int method,
                       enum myra_http_framing as, const char *wanted)
{
    struct myra_http_out out;

    parse_response(text, method);
    forward(text, as, 0, &out);
    cr_expect(out.err == 0 && strcmp(sent, wanted) == 0, "%s\nnot\n%s", sent,
              wanted);
}

Test(http_forward, kept_fields_go_out_as_they_came)
{
    goes_out("GET /a?b HTTP/1.1\r\nAccept:  */* \r\nHost: a\r\nX-A:b\r\n\r\n",
             "GET /a?b HTTP/1.1\r\nHost: a\r\nAccept:  */* \r\nX-A:b\r\n"
             "\r\n");
}

Test(http_forward, rule_11_names_keep_case_and_order)
{
    goes_out("GET / HTTP/1.1\r\nhOST: a\r\nx-B: 1\r\nX-a: 2\r\nx-b: 3\r\n"
             "\r\n",
             "GET / HTTP/1.1\r\nHost: a\r\nx-B: 1\r\nX-a: 2\r\nx-b: 3\r\n"
             "\r\n");
}

Test(http_forward, rule_33_hop_by_hop_fields_stay_behind)
{
    goes_out("GET / HTTP/1.1\r\nConnection: x-a, Content-Length\r\n"
             "Host: a\r\nX-A: 1\r\nX-B: 2\r\nKeep-Alive: 5\r\nTE: trailers\r\n"
             "X-C: 3\r\nProxy-Connection: x-c\r\nContent-Length: 4\r\n"
             "Upgrade: h2c\r\n\r\n",
             "GET / HTTP/1.1\r\nHost: a\r\nX-B: 2\r\nContent-Length: 4\r\n"
             "\r\n");
}

Test(http_forward, rule_31_absolute_form_becomes_origin_form)
{
    goes_out("GET http://u:p@b.test:81/x?y HTTP/1.1\r\nHost: a\r\n\r\n",
             "GET /x?y HTTP/1.1\r\nHost: b.test:81\r\n\r\n");
    goes_out("GET http://h?q HTTP/1.1\r\nHost: a\r\n\r\n",
             "GET /?q HTTP/1.1\r\nHost: h\r\n\r\n");
    goes_out("GET http://h HTTP/1.0\r\n\r\n",
             "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    goes_out("OPTIONS http://h HTTP/1.1\r\nHost: a\r\n\r\n",
             "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n");
    goes_out("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
             "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n");
    goes_out("CONNECT [::1]:443 HTTP/1.1\r\nHost: a\r\n\r\n",
             "CONNECT [::1]:443 HTTP/1.1\r\nHost: [::1]:443\r\n\r\n");
}

Test(http_forward, rule_31_towards_a_proxy_it_stays_absolute)
{
    const char *text = "GET HTTP://u:p@b.test:81?y HTTP/1.1\r\nHost: a\r\n"
                       "\r\n";
    struct myra_http_out out;

    parse(text);
    memset(sent, 0, sizeof(sent));
    myra_http_out_init(&out, sent, sizeof(sent));
    myra_http_emit_proxy_line(&out, (const uint8_t *)text, &head);
    cr_expect(strcmp(sent, "GET http://b.test:81?y HTTP/1.1\r\n") == 0, "%s",
              sent);
    text = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    parse(text);
    myra_http_out_init(&out, sent, sizeof(sent));
    myra_http_emit_proxy_line(&out, (const uint8_t *)text, &head);
    cr_expect(out.err == MYRA_EINVAL && out.len == 0);
}

Test(http_forward, rule_15_lengths_go_out_once)
{
    goes_out("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 007, 7\r\n"
             "X: y\r\nContent-Length: 7\r\n\r\n",
             "POST / HTTP/1.1\r\nHost: a\r\nX: y\r\nContent-Length: 7\r\n"
             "\r\n");
    goes_out("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
             "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    goes_out("POST / HTTP/1.1\r\nHost: a\r\n\r\n",
             "POST / HTTP/1.1\r\nHost: a\r\n\r\n");
}

Test(http_forward, rule_13_chunked_goes_out_as_chunked)
{
    goes_out("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\tCHUNKED\r\n"
             "\r\n",
             "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
             "\r\n");
}

Test(http_forward, rule_13_other_codings_are_forwarded)
{
    const char *text = "POST / HTTP/1.1\r\nHost: a\r\n"
                       "Transfer-Encoding: gzip\r\nX: y\r\n"
                       "Transfer-Encoding:deflate,chunked\r\n\r\n";
    struct myra_http_out out;

    cr_assert(parse_as(text, MYRA_ACCEPT_CODINGS, NULL, 0) > 0);
    forward(text, MYRA_FRAMING_CHUNKED, 0, &out);
    cr_expect(strcmp(sent,
                     "POST / HTTP/1.1\r\nHost: a\r\nX: y\r\n"
                     "Transfer-Encoding: gzip, deflate, chunked\r\n\r\n") ==
                  0,
              "%s", sent);
}

Test(http_forward, rule_24_until_close_keeps_its_codings)
{
    const char *text = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n"
                       "Transfer-Encoding: chunked, gzip\r\n\r\n";
    struct myra_http_out out;

    cr_assert(parse_as(text, MYRA_ACCEPT_CODINGS, NULL, 1) > 0);
    forward(text, MYRA_FRAMING_CLOSE, 0, &out);
    cr_expect(strcmp(sent, "HTTP/1.1 200 OK\r\n"
                           "Transfer-Encoding: chunked, gzip\r\n\r\n") == 0,
              "%s", sent);
    /* chunked twice is not to be sent. */
    forward(text, MYRA_FRAMING_CHUNKED, 0, &out);
    cr_expect(out.err == MYRA_EINVAL);
    text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n";
    cr_assert(parse_as(text, MYRA_ACCEPT_CODINGS, NULL, 1) > 0);
    forward(text, MYRA_FRAMING_CHUNKED, 0, &out);
    cr_expect(strcmp(sent, "HTTP/1.1 200 OK\r\n"
                           "Transfer-Encoding: gzip, chunked\r\n\r\n") == 0);
}

Test(http_forward, rule_25_responses_are_framed_anew)
{
    comes_back("HTTP/1.0 200 OK\r\nServer: s\r\n\r\n", MYRA_METHOD_GET,
               MYRA_FRAMING_CHUNKED,
               "HTTP/1.1 200 OK\r\nServer: s\r\n"
               "Transfer-Encoding: chunked\r\n\r\n");
    comes_back("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
               MYRA_METHOD_GET, MYRA_FRAMING_CLOSE,
               "HTTP/1.1 200 OK\r\n\r\n");
    comes_back("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
               "Content-Length: 9\r\n\r\n",
               MYRA_METHOD_GET, MYRA_FRAMING_CHUNKED,
               "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    comes_back("HTTP/1.1 200 Fine\r\nTransfer-Encoding: identity\r\n\r\n",
               MYRA_METHOD_GET, MYRA_FRAMING_CHUNKED,
               "HTTP/1.1 200 Fine\r\nTransfer-Encoding: chunked\r\n\r\n");
}

Test(http_forward, rule_26_length_without_a_body)
{
    comes_back("HTTP/1.1 200 OK\r\nContent-Length: 1488324\r\n\r\n",
               MYRA_METHOD_HEAD, MYRA_FRAMING_NONE,
               "HTTP/1.1 200 OK\r\nContent-Length: 1488324\r\n\r\n");
    comes_back("HTTP/1.1 200 OK\r\n\r\n", MYRA_METHOD_HEAD,
               MYRA_FRAMING_NONE, "HTTP/1.1 200 OK\r\n\r\n");
    comes_back("HTTP/1.1 304 NM\r\nContent-Length: 05\r\nETag: x\r\n\r\n",
               MYRA_METHOD_GET, MYRA_FRAMING_NONE,
               "HTTP/1.1 304 NM\r\nETag: x\r\nContent-Length: 5\r\n\r\n");
    comes_back("HTTP/1.1 204 NC\r\nContent-Length: 5\r\n\r\n",
               MYRA_METHOD_GET, MYRA_FRAMING_NONE,
               "HTTP/1.1 204 NC\r\n\r\n");
}

Test(http_forward, rule_35_websocket_upgrade_goes_through)
{
    goes_out("GET /c HTTP/1.1\r\nHost: a\r\nUpgrade: h2c, websocket\r\n"
             "Connection: keep-alive, Upgrade\r\n"
             "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
             "GET /c HTTP/1.1\r\nHost: a\r\n"
             "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
             "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    goes_out("GET /c HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\n"
             "Connection: Upgrade\r\n\r\n",
             "GET /c HTTP/1.1\r\nHost: a\r\n\r\n");
}

Test(http_forward, chosen_fields_are_left_out)
{
    const char *text = "GET / HTTP/1.1\r\nHost: a\r\nX-A: 1\r\nVia: 1.1 b\r\n"
                       "Expect: 100-continue\r\nX-B: 2\r\n\r\n";
    struct myra_http_out out;

    parse(text);
    head.fields[1].flags |= MYRA_FIELD_IS_DROPPED;
    forward(text, MYRA_FRAMING_NONE,
            MYRA_FIELD_BIT(MYRA_FIELD_VIA) | MYRA_FIELD_BIT(MYRA_FIELD_EXPECT),
            &out);
    cr_expect(strcmp(sent, "GET / HTTP/1.1\r\nHost: a\r\nX-B: 2\r\n\r\n") ==
              0, "%s", sent);
}

Test(http_forward, irregular_lines_are_written_anew)
{
    const char *text = "HTTP/1.1 200 OK\nA: 1\nB:2 \n  3\t\n C\nD:\n \n4: 5\n"
                       "Content-Length: 0\n\n";
    struct myra_http_out out;

    cr_assert(parse_as(text, MYRA_LENIENT_LF | MYRA_LENIENT_FOLD, NULL, 1) >
              0);
    forward(text, MYRA_FRAMING_LENGTH, 0, &out);
    cr_expect(strcmp(sent, "HTTP/1.1 200 OK\r\nA: 1\r\nB: 2 3 C\r\nD: \r\n"
                           "4: 5\r\nContent-Length: 0\r\n\r\n") == 0,
              "%s", sent);
}

Test(http_forward, a_length_that_was_not_parsed_is_not_sent)
{
    const char *text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
                       "\r\n";
    struct myra_http_out out;

    parse_response(text, MYRA_METHOD_GET);
    forward(text, MYRA_FRAMING_LENGTH, 0, &out);
    cr_expect(out.err == MYRA_EINVAL);
}

/* The bound must hold for the worst: many commas, many bare LFs. */
Test(http_forward, bound_is_enough_for_the_worst)
{
    static char text[8192];
    size_t len = 0;
    struct myra_http_out out;

    len += (size_t)sprintf(text, "HTTP/1.1 200\nTransfer-Encoding:gzip");
    for (int i = 0; i < 600; i++)
        len += (size_t)sprintf(text + len, ",gzip");
    len += (size_t)sprintf(text + len, ",chunked\n");
    for (int i = 0; i < 60; i++)
        len += (size_t)sprintf(text + len, "A:b\n");
    sprintf(text + len, "\n");
    cr_assert(parse_as(text, MYRA_LENIENT_LF | MYRA_ACCEPT_CODINGS, NULL, 1) >
              0);
    forward(text, MYRA_FRAMING_CHUNKED, 0, &out);
    cr_expect(out.err == 0, "%s", myra_err_name(out.err));
}

Test(http_forward, short_room_never_holds_half_a_line)
{
    const char *text = "GET http://b.test?q HTTP/1.1\r\nHost: a\r\nX: 1\r\n"
                       "TE: x\r\nY: 2\r\nTransfer-Encoding: chunked\r\n\r\n";
    const uint8_t *data = (const uint8_t *)text;
    struct myra_http_out out;
    size_t full;

    parse(text);
    forward(text, MYRA_FRAMING_CHUNKED, 0, &out);
    full = out.len;
    for (size_t cap = 0; cap <= full; cap++) {
        uint8_t *room = guard_copy(data, 0, cap);

        cr_assert(room);
        myra_http_out_init(&out, room, cap);
        myra_http_emit_origin_line(&out, data, &head);
        myra_http_emit_host(&out, data, &head);
        myra_http_emit_forward(&out, data, &head, 0);
        myra_http_emit_framing(&out, data, &head, MYRA_FRAMING_CHUNKED);
        myra_http_emit_end(&out);
        cr_expect(out.err == (cap < full ? MYRA_EOVERFLOW : 0));
        cr_expect(out.len <= cap && memcmp(room, sent, out.len) == 0);
        cr_expect(out.len == 0 || room[out.len - 1] == '\n');
        guard_free(room, 0, cap);
    }
}
