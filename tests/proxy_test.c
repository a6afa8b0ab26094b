/* SPDX-License-Identifier: MIT */
/* myra-proxy, from outside: requests and responses as they should be. */
#include "config.h"

#include "tests/proxy_rig.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <criterion/criterion.h>

static char text[RIG_TEXT];

static const char get[] = "GET /x HTTP/1.1\r\nHost: a.test\r\n\r\n";

/* One proxy, one origin, one client connection, and the origin's end of the
 * first upstream connection once a request was sent. */
struct scene {
    struct rig rig;
    struct origin origin;
    int client;
};

static void open_scene(struct scene *scene)
{
    origin_open(&scene->origin);
    rig_start(&scene->rig, "--to", scene->origin.addr, NULL);
    scene->client = rig_dial(&scene->rig);
}

/* Sends a request and takes its head at the origin. */
static int ask(struct scene *scene, const char *request)
{
    int up;

    say(scene->client, request);
    up = origin_accept(&scene->origin);
    hear_head(up, text);
    return up;
}

Test(proxy, keeps_both_connections)
{
    struct scene s;
    int up, i;

    open_scene(&s);
    up = ask(&s, get);
    say(up, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
    hear(s.client, text, "hi");
    for (i = 0; i < 20; i++)
        exchange_ok(s.client, up, "again");
    cr_assert(is_quiet(s.origin.fd, 20), "a second upstream connection");
    rig_stop(&s.rig);
}

Test(proxy, head_is_rewritten)
{
    struct scene s;
    int up;

    open_scene(&s);
    up = ask(&s, "GET /p?q HTTP/1.1\r\nhost: a.test\r\nX-A: 1\r\n"
                 "Connection: keep-alive, X-Drop\r\nX-Drop: 1\r\n"
                 "Keep-Alive: timeout=5\r\nTE: trailers\r\nUpgrade: h2c\r\n"
                 "Proxy-Authorization: Basic eA==\r\nVia: 1.0 first\r\n"
                 "X-a: 2\r\n\r\n");
    cr_assert(strncmp(text, "GET /p?q HTTP/1.1\r\n", 19) == 0);
    expect_in(text, "\r\nHost: a.test\r\n");
    expect_in(text, "\r\nX-A: 1\r\n");
    expect_in(text, "\r\nX-a: 2\r\n");
    expect_in(text, "\r\nVia: 1.0 first\r\n");
    expect_in(text, "\r\nVia: 1.1 myra-proxy\r\n");
    expect_not_in(text, "X-Drop");
    expect_not_in(text, "Keep-Alive");
    expect_not_in(text, "TE:");
    expect_not_in(text, "Upgrade");
    expect_not_in(text, "Proxy-");
    say(up, "HTTP/1.1 200 OK\r\nConnection: X-Secret\r\nX-Secret: 1\r\n"
            "Keep-Alive: timeout=5\r\nContent-Length: 0\r\nVia: 1.1 o\r\n"
            "\r\n");
    hear_head(s.client, text);
    expect_in(text, "\r\nContent-Length: 0\r\n");
    expect_in(text, "\r\nVia: 1.1 o\r\n");
    expect_in(text, "\r\nVia: 1.1 myra-proxy\r\n");
    expect_in(text, "\r\nDate: ");
    expect_not_in(text, "X-Secret");
    expect_not_in(text, "Keep-Alive");
    rig_stop(&s.rig);
}

Test(proxy, pipelined_requests_are_answered_in_order)
{
    struct scene s;
    int up;

    open_scene(&s);
    say(s.client, "GET /1 HTTP/1.1\r\nHost: a\r\n\r\n"
                  "GET /2 HTTP/1.1\r\nHost: a\r\n\r\n"
                  "GET /3 HTTP/1.1\r\nHost: a\r\n\r\n");
    up = origin_accept(&s.origin);
    hear_head(up, text);
    expect_in(text, "GET /1 ");
    cr_assert(is_quiet(up, 30) && is_quiet(s.origin.fd, 1),
              "the second one did not wait");
    say(up, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1");
    hear_head(up, text);
    expect_in(text, "GET /2 ");
    say(up, "HTTP/1.1 204 No Content\r\n\r\n");
    hear_head(up, text);
    expect_in(text, "GET /3 ");
    say(up, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n3");
    hear_head(s.client, text);
    hear_bytes(s.client, text, 1);
    cr_assert_eq(text[0], '1');
    hear_head(s.client, text);
    expect_in(text, "HTTP/1.1 204 ");
    hear(s.client, text, "\r\n\r\n3");
    rig_stop(&s.rig);
}

Test(proxy, head_and_bodiless_statuses_wait_for_no_body)
{
    struct scene s;
    int up;

    open_scene(&s);
    up = ask(&s, "HEAD /x HTTP/1.1\r\nHost: a\r\n\r\n");
    say(up, "HTTP/1.1 200 OK\r\nContent-Length: 1488324\r\n\r\n");
    hear_head(s.client, text);
    expect_in(text, "\r\nContent-Length: 1488324\r\n");
    say(s.client, get);
    hear_head(up, text);
    say(up, "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n");
    hear_head(s.client, text);
    expect_in(text, "HTTP/1.1 304 ");
    say(s.client, get);
    hear_head(up, text);
    say(up, "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n");
    hear_head(s.client, text);
    expect_not_in(text, "Transfer-Encoding");
    exchange_ok(s.client, up, "next");
    rig_stop(&s.rig);
}

Test(proxy, bodies_with_a_length_pass_untouched)
{
    struct scene s;
    int up;

    open_scene(&s);
    up = ask(&s, "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n"
                 "hello ");
    expect_in(text, "\r\nContent-Length: 11\r\n");
    hear_bytes(up, text, 6);
    say(s.client, "world");
    hear_bytes(up, text, 5);
    cr_assert_eq(memcmp(text, "world", 5), 0);
    say(up, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc");
    hear(s.client, text, "\r\n\r\nabc");
    say(up, "def");
    hear(s.client, text, "def");
    exchange_ok(s.client, up, "next");
    rig_stop(&s.rig);
}

Test(proxy, chunks_and_trailers_pass_both_ways)
{
    struct scene s;
    int up;

    open_scene(&s);
    up = ask(&s, "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked"
                 "\r\n\r\n5;ext=1\r\nhello\r\n006\r\n world\r\n0\r\n"
                 "X-T: 1\r\nContent-Length: 3\r\n\r\n");
    expect_in(text, "\r\nTransfer-Encoding: chunked\r\n");
    hear(up, text, "\r\n\r\n");
    cr_assert_str_eq(text,
                     "5\r\nhello\r\n6\r\n world\r\n0\r\nX-T: 1\r\n\r\n");
    say(up, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            "3;a=b\r\nabc\r\n");
    hear(s.client, text, "3\r\nabc\r\n");
    expect_in(text, "\r\nTransfer-Encoding: chunked\r\n");
    say(up, "2\r\nde\r\n0\r\nX-R: 2\r\n\r\n");
    hear(s.client, text, "2\r\nde\r\n0\r\nX-R: 2\r\n\r\n");
    exchange_ok(s.client, up, "next");
    rig_stop(&s.rig);
}

Test(proxy, old_clients_get_plain_bodies)
{
    struct scene s;
    int up;

    open_scene(&s);
    up = ask(&s, "GET /x HTTP/1.0\r\n\r\n");
    expect_in(text, "GET /x HTTP/1.1\r\n");
    expect_in(text, "\r\nHost: 127.0.0.1:");
    expect_in(text, "\r\nVia: 1.0 myra-proxy\r\n");
    say(up, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
    cr_assert_eq(hear_end(s.client, text), 0);
    expect_in(text, "\r\n\r\nabcde");
    expect_in(text, "\r\nConnection: close\r\n");
    expect_not_in(text, "Transfer-Encoding");
    close(s.client);
    s.client = rig_dial(&s.rig);
    say(s.client, "GET /x HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    hear_head(up, text);
    say(up, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1");
    hear(s.client, text, "\r\n\r\n1");
    expect_in(text, "\r\nConnection: keep-alive\r\n");
    exchange_ok(s.client, up, "next");
    rig_stop(&s.rig);
}

Test(proxy, bodies_until_close_become_chunks)
{
    struct scene s;
    int up;

    open_scene(&s);
    up = ask(&s, get);
    say(up, "HTTP/1.0 200 OK\r\n\r\nuntil ");
    hear(s.client, text, "6\r\nuntil \r\n");
    say(up, "close");
    close(up);
    hear(s.client, text, "5\r\nclose\r\n0\r\n\r\n");
    /* The client's connection goes on. */
    up = ask(&s, get);
    say(up, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n2");
    hear(s.client, text, "\r\n\r\n2");
    rig_stop(&s.rig);
}

Test(proxy, interim_responses_pass_and_are_counted)
{
    struct scene s;
    int up, i;

    open_scene(&s);
    up = ask(&s, get);
    say(up, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
    hear(s.client, text, "Link: </a>\r\n");
    expect_in(text, "HTTP/1.1 103 Early Hints\r\n");
    say(up, "HTTP/1.1 102 Processing\r\n\r\n"
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    hear(s.client, text, "\r\n\r\nok");
    expect_in(text, "HTTP/1.1 102 ");
    close(s.client);
    s.client = rig_dial(&s.rig);
    say(s.client, "GET /x HTTP/1.0\r\n\r\n");
    hear_head(up, text);
    say(up, "HTTP/1.1 103 Early Hints\r\n\r\n"
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    hear_end(s.client, text);
    expect_not_in(text, "103");
    close(s.client);
    s.client = rig_dial(&s.rig);
    say(s.client, get);
    hear_head(up, text);
    for (i = 0; i < 17; i++)
        say(up, "HTTP/1.1 103 Early Hints\r\n\r\n");
    hear(s.client, text, "HTTP/1.1 502 ");
    hear_end(up, text);
    rig_stop(&s.rig);
}

Test(proxy, expect_waits_for_the_origin)
{
    static const char head[] =
        "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n"
        "Expect: 100-continue\r\n\r\n";
    struct scene s;
    int up;

    open_scene(&s);
    up = ask(&s, head);
    expect_in(text, "\r\nExpect: 100-continue\r\n");
    cr_assert(is_quiet(s.client, 30));
    say(up, "HTTP/1.1 100 Continue\r\n\r\n");
    hear_head(s.client, text);
    expect_in(text, "HTTP/1.1 100 ");
    say(s.client, "body");
    hear(up, text, "body");
    say(up, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    hear(s.client, text, "\r\n\r\nok");
    /* An origin that says nothing: after a second the proxy does, once. */
    say(s.client, head);
    hear_head(up, text);
    hear_head(s.client, text);
    expect_in(text, "HTTP/1.1 100 ");
    say(s.client, "body");
    hear(up, text, "body");
    say(up, "HTTP/1.1 100 Continue\r\n\r\n"
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    hear(s.client, text, "\r\n\r\nok");
    expect_not_in(text, "HTTP/1.1 100");
    /* A final answer instead. */
    say(s.client, head);
    hear_head(up, text);
    say(up, "HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n");
    cr_assert_eq(hear_end(s.client, text), 0);
    expect_in(text, "HTTP/1.1 417 ");
    expect_in(text, "\r\nConnection: close\r\n");
    rig_stop(&s.rig);
}

Test(proxy, early_answer_ends_an_upload)
{
    static char block[65536];
    struct scene s;
    int up;

    open_scene(&s);
    up = ask(&s, "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 10000000"
                 "\r\n\r\n");
    say_bytes(s.client, block, sizeof(block));
    say(up, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig");
    cr_assert_eq(hear_end(s.client, text), 0);
    expect_in(text, "HTTP/1.1 413 ");
    expect_in(text, "\r\n\r\nbig");
    expect_in(text, "\r\nConnection: close\r\n");
    rig_stop(&s.rig);
}

Test(proxy, client_may_end_its_side)
{
    struct scene s;
    int up;

    open_scene(&s);
    say(s.client, get);
    shutdown(s.client, SHUT_WR);
    up = origin_accept(&s.origin);
    hear_head(up, text);
    say(up, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    cr_assert_eq(hear_end(s.client, text), 0);
    expect_in(text, "\r\n\r\nok");
    rig_stop(&s.rig);
}

Test(proxy, websocket_passes_as_a_tunnel)
{
    struct scene s;
    int up;

    open_scene(&s);
    up = ask(&s, "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\n"
                 "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                 "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\nearly");
    expect_in(text, "\r\nUpgrade: websocket\r\n");
    expect_in(text, "\r\nConnection: Upgrade\r\n");
    say(up, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
            "Connection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\nfirst");
    hear(s.client, text, "\r\n\r\nfirst");
    expect_in(text, "HTTP/1.1 101 ");
    expect_in(text, "\r\nUpgrade: websocket\r\n");
    hear(up, text, "early");
    say(s.client, "ping");
    hear(up, text, "ping");
    say(up, "pong");
    hear(s.client, text, "pong");
    /* One direction ends; the other goes on. */
    shutdown(s.client, SHUT_WR);
    cr_assert_eq(hear_end(up, text), 0);
    say(up, "last words");
    hear(s.client, text, "last words");
    close(up);
    cr_assert_eq(hear_end(s.client, text), 0);
    rig_stop(&s.rig);
}

Test(proxy, upgrade_nobody_asked_for_is_refused)
{
    struct scene s;
    int up;

    open_scene(&s);
    up = ask(&s, get);
    say(up, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
            "Connection: Upgrade\r\n\r\n");
    hear(s.client, text, "HTTP/1.1 502 ");
    hear_end(up, text);
    rig_stop(&s.rig);
}

Test(proxy, forward_mode_goes_where_the_target_says)
{
    struct origin origin;
    struct rig rig;
    int client, up;

    origin_open(&origin);
    rig_start(&rig, "--forward", NULL);
    client = rig_dial(&rig);
    snprintf(text, sizeof(text),
             "GET http://user@%s/p?q HTTP/1.1\r\nHost: other.test\r\n\r\n",
             origin.addr);
    say(client, text);
    up = origin_accept(&origin);
    hear_head(up, text);
    cr_assert(strncmp(text, "GET /p?q HTTP/1.1\r\n", 19) == 0, "%s", text);
    expect_in(text, "\r\nHost: 127.0.0.1:");
    expect_not_in(text, "other.test");
    expect_not_in(text, "user");
    say(up, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    hear(client, text, "\r\n\r\nok");
    /* By name, with the kept connection of another origin name. */
    snprintf(text, sizeof(text),
             "GET http://localhost:%d HTTP/1.1\r\nHost: x\r\n\r\n",
             origin.port);
    say(client, text);
    up = origin_accept(&origin);
    hear_head(up, text);
    cr_assert(strncmp(text, "GET / HTTP/1.1\r\n", 16) == 0, "%s", text);
    say(up, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    hear(client, text, "\r\n\r\nok");
    say(client, "GET http://no-such-name.invalid/ HTTP/1.1\r\nHost: x\r\n"
                "\r\n");
    hear(client, text, "answer.\n");
    expect_in(text, "HTTP/1.1 502 ");
    /* No route without a host; no tunnels yet. */
    say(client, "GET /x HTTP/1.1\r\nHost: x\r\n\r\n");
    hear(client, text, "understood.\n");
    expect_in(text, "HTTP/1.1 400 ");
    say(client, "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n");
    cr_assert_eq(hear_end(client, text), 0);
    expect_in(text, "HTTP/1.1 501 ");
    rig_stop(&rig);
}
