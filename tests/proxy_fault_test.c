/* SPDX-License-Identifier: MIT */
/* myra-proxy, from outside: peers that fail, stall, lie or are not there. */
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
static const char post[] =
    "POST /x HTTP/1.1\r\nHost: a.test\r\nContent-Length: 2\r\n\r\nhi";
static const char ok[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/* The connection is gone without a FIN. */
static void reset(int fd)
{
    const struct linger linger = { 1, 0 };

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
    close(fd);
}

/* One exchange, so that the proxy keeps an idle connection: its end. */
static int warm(int client, struct origin *origin)
{
    int up;

    say(client, get);
    up = origin_accept(origin);
    hear_head(up, text);
    say(up, ok);
    hear(client, text, "\r\n\r\nok");
    return up;
}

Test(proxy_fault, stale_connection_is_retried_once)
{
    struct origin origin;
    struct rig rig;
    int client, up;

    origin_open(&origin);
    rig_start(&rig, "--to", origin.addr, NULL);
    client = rig_dial(&rig);
    up = warm(client, &origin);
    /* The request is on its way when the connection ends. */
    say(client, get);
    hear_head(up, text);
    reset(up);
    up = origin_accept(&origin);
    hear_head(up, text);
    expect_in(text, "GET /x HTTP/1.1\r\n");
    /* The second failure is told. */
    reset(up);
    hear(client, text, "answer.\n");
    expect_in(text, "HTTP/1.1 502 ");
    /* And the client's connection goes on. */
    warm(client, &origin);
    rig_stop(&rig);
}

Test(proxy_fault, idle_connection_that_ended_is_not_used)
{
    struct origin origin;
    struct rig rig;
    int client, up, i;

    origin_open(&origin);
    rig_start(&rig, "--to", origin.addr, NULL);
    client = rig_dial(&rig);
    for (i = 0; i < 10; i++) {
        up = warm(client, &origin);
        shutdown(up, SHUT_WR);
        cr_assert_eq(hear_end(up, text), 0);
        close(up);
    }
    rig_stop(&rig);
}

Test(proxy_fault, post_that_was_written_is_not_retried)
{
    struct origin origin;
    struct rig rig;
    int client, up;

    origin_open(&origin);
    rig_start(&rig, "--to", origin.addr, NULL);
    client = rig_dial(&rig);
    up = warm(client, &origin);
    say(client, post);
    hear(up, text, "\r\n\r\nhi");
    reset(up);
    hear(client, text, "answer.\n");
    expect_in(text, "HTTP/1.1 502 ");
    cr_assert(is_quiet(origin.fd, 30), "it was sent twice");
    rig_stop(&rig);
}

Test(proxy_fault, part_of_an_answer_is_not_retried)
{
    struct origin origin;
    struct rig rig;
    int client, up;

    origin_open(&origin);
    rig_start(&rig, "--to", origin.addr, NULL);
    client = rig_dial(&rig);
    up = warm(client, &origin);
    say(client, get);
    hear_head(up, text);
    say(up, "HTTP/1.1 20");
    close(up);
    hear(client, text, "answer.\n");
    expect_in(text, "HTTP/1.1 502 ");
    cr_assert(is_quiet(origin.fd, 30), "it was sent twice");
    rig_stop(&rig);
}

/* A request to whichever target is left: post has a body, of which nothing
 * was written to the one that is gone. */
static void expect_served_by(const struct rig *rig, int up)
{
    const int client = rig_dial(rig);

    say(client, post);
    hear(up, text, "\r\n\r\nhi");
    say(up, ok);
    hear(client, text, "\r\n\r\nok");
    close(client);
}

Test(proxy_fault, other_target_takes_over)
{
    struct origin a, b;
    struct rig rig;
    int client, up_a, up_b, i;

    origin_open(&a);
    origin_open(&b);
    rig_start(&rig, "--to", a.addr, "--to", b.addr, NULL);
    client = rig_dial(&rig);
    up_a = warm(client, &a);
    up_b = warm(client, &b);
    origin_close(&a);
    /* In flight on the one that dies: sent again, to the other. */
    say(client, get);
    hear_head(up_a, text);
    reset(up_a);
    up_a = up_b;
    up_b = origin_accept(&b);
    hear_head(up_b, text);
    say(up_b, ok);
    hear(client, text, "\r\n\r\nok");
    for (i = 0; i < 8; i++)
        expect_served_by(&rig, up_b);
    cr_assert(is_quiet(up_a, 1));
    rig_stop(&rig);
}

Test(proxy_fault, nothing_listens)
{
    struct origin origin;
    struct rig rig;
    int client;

    origin_open(&origin);
    origin_close(&origin);
    rig_start(&rig, "--to", origin.addr, NULL);
    client = rig_dial(&rig);
    say(client, "GET /<script> HTTP/1.1\r\nHost: a\r\n\r\n");
    hear(client, text, "answer.\n");
    expect_in(text, "HTTP/1.1 502 ");
    expect_not_in(text, "script");
    say(client, "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
    hear_head(client, text);
    expect_in(text, "HTTP/1.1 502 ");
    say(client, post);
    hear(client, text, "answer.\n");
    expect_in(text, "HTTP/1.1 502 ");
    rig_stop(&rig);
}

Test(proxy_fault, bad_answers_are_502_and_the_client_stays)
{
    static const char *const answers[] = {
        "this is not HTTP\r\n\r\n",
        "HTTP/1.1 2x0 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "HTTP/2.0 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX Y: 1\r\n\r\n",
    };
    struct origin origin;
    struct rig rig;
    size_t i;
    int client;

    origin_open(&origin);
    rig_start(&rig, "--to", origin.addr, NULL);
    client = rig_dial(&rig);
    for (i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        int up;

        say(client, get);
        up = origin_accept(&origin);
        hear_head(up, text);
        say(up, answers[i]);
        hear(client, text, "answer.\n");
        expect_in(text, "HTTP/1.1 502 ");
        expect_not_in(text, "Connection: close");
        hear_end(up, text);
        close(up);
    }
    warm(client, &origin);
    rig_stop(&rig);
}

Test(proxy_fault, cut_answers_do_not_look_complete)
{
    static const char *const answers[] = {
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhalf",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalfX",
    };
    struct origin origin;
    struct rig rig;
    size_t i;

    origin_open(&origin);
    rig_start(&rig, "--to", origin.addr, NULL);
    for (i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        const int client = rig_dial(&rig);
        int up;

        say(client, get);
        up = origin_accept(&origin);
        hear_head(up, text);
        say(up, answers[i]);
        close(up);
        hear_end(client, text);
        expect_not_in(text, "\r\n0\r\n");
        close(client);
    }
    rig_stop(&rig);
}

Test(proxy_fault, bytes_behind_an_answer_end_the_connection)
{
    struct origin origin;
    struct rig rig;
    int client, up;

    origin_open(&origin);
    rig_start(&rig, "--to", origin.addr, NULL);
    client = rig_dial(&rig);
    say(client, get);
    up = origin_accept(&origin);
    hear_head(up, text);
    say(up, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
            "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil");
    hear(client, text, "\r\n\r\nok");
    hear_end(up, text);
    warm(client, &origin);
    rig_stop(&rig);
}

Test(proxy_fault, slow_heads_get_408)
{
    struct origin origin;
    struct rig rig;
    int client;

    origin_open(&origin);
    rig_start(&rig, "--to", origin.addr, "--header-timeout", "150ms",
              "--body-timeout", "150ms", "--idle-timeout", "150ms", NULL);
    client = rig_dial(&rig);
    say(client, "GET / HTTP/1.1\r\nHo");
    cr_assert_eq(hear_end(client, text), 0);
    expect_in(text, "HTTP/1.1 408 ");
    expect_in(text, "\r\nConnection: close\r\n");
    /* A body that stops. */
    client = rig_dial(&rig);
    say(client, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhe");
    cr_assert_eq(hear_end(client, text), 0);
    expect_in(text, "HTTP/1.1 408 ");
    /* Nothing at all: no answer. */
    client = rig_dial(&rig);
    cr_assert_eq(hear_end(client, text), 0);
    cr_assert_str_eq(text, "");
    /* Between requests: none either. */
    client = rig_dial(&rig);
    close(origin_accept(&origin)); /* of the body that stopped */
    warm(client, &origin);
    cr_assert_eq(hear_end(client, text), 0);
    cr_assert_str_eq(text, "");
    rig_stop(&rig);
}

Test(proxy_fault, silent_origin_gets_504)
{
    struct origin origin;
    struct rig rig;
    int client, up;

    origin_open(&origin);
    rig_start(&rig, "--to", origin.addr, "--response-timeout", "150ms",
              NULL);
    client = rig_dial(&rig);
    say(client, get);
    up = origin_accept(&origin);
    hear(client, text, "in time.\n");
    expect_in(text, "HTTP/1.1 504 ");
    expect_not_in(text, "Connection: close");
    hear_end(up, text);
    /* In the middle of a body there is nothing left to say. */
    say(client, get);
    up = origin_accept(&origin);
    hear_head(up, text);
    say(up, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe");
    hear_end(client, text);
    rig_stop(&rig);
}

static void expect_refused(const struct rig *rig, const char *request,
                           const char *status)
{
    const int client = rig_dial(rig);

    say(client, request);
    hear_end(client, text);
    cr_assert(strncmp(text, "HTTP/1.1 ", 9) == 0 &&
                  strncmp(text + 9, status, 3) == 0,
              "wanted %s: <<%s>>", status, text);
    expect_in(text, "\r\nConnection: close\r\n");
    close(client);
}

Test(proxy_fault, limits_have_their_status)
{
    static char request[40000];
    struct origin origin;
    struct rig rig;

    origin_open(&origin);
    rig_start(&rig, "--to", origin.addr, "--max-line", "1k", "--max-head",
              "4k", "--max-fields", "8", "--max-body", "10", NULL);
    expect_refused(&rig, "GET / HTTP/1.1\r\nHost : a\r\n\r\n", "400");
    expect_refused(&rig, "GET / HTTP/2.0\r\nHost: a\r\n\r\n", "505");
    expect_refused(&rig, "GET / HTTP/1.1\r\n\r\n", "400");
    expect_refused(&rig,
                   "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n"
                   "\r\n01234567890",
                   "413");
    expect_refused(&rig,
                   "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n"
                   "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                   "400");
    snprintf(request, sizeof(request), "GET /%01500d HTTP/1.1\r\n\r\n", 0);
    expect_refused(&rig, request, "414");
    snprintf(request, sizeof(request),
             "GET / HTTP/1.1\r\nHost: a\r\nX: %05000d\r\n\r\n", 0);
    expect_refused(&rig, request, "431");
    expect_refused(&rig,
                   "GET / HTTP/1.1\r\nHost: a\r\na:1\r\na:1\r\na:1\r\na:1\r\n"
                   "a:1\r\na:1\r\na:1\r\na:1\r\n\r\n",
                   "431");
    expect_refused(&rig,
                   "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n"
                   "Content-Length: 5 5\r\n\r\n",
                   "400");
    cr_assert(is_quiet(origin.fd, 10), "something was forwarded");
    rig_stop(&rig);
}

Test(proxy_fault, body_that_breaks_is_not_completed)
{
    struct origin origin;
    struct rig rig;
    int client, up;

    origin_open(&origin);
    rig_start(&rig, "--to", origin.addr, NULL);
    client = rig_dial(&rig);
    say(client, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked"
                "\r\n\r\n3\r\nabc\r\n");
    up = origin_accept(&origin);
    hear(up, text, "3\r\nabc\r\n");
    say(client, "zz\r\n");
    cr_assert_eq(hear_end(client, text), 0);
    expect_in(text, "HTTP/1.1 400 ");
    hear_end(up, text);
    expect_not_in(text, "0\r\n\r\n");
    /* A client that goes in the middle takes the upstream with it. */
    client = rig_dial(&rig);
    say(client, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nab");
    up = origin_accept(&origin);
    hear(up, text, "\r\n\r\nab");
    close(client);
    hear_end(up, text);
    cr_assert_str_eq(text, "");
    rig_stop(&rig);
}

Test(proxy_fault, connections_beyond_the_limit_wait)
{
    struct origin origin;
    struct rig rig;
    int clients[4], up, i;

    origin_open(&origin);
    rig_start(&rig, "--to", origin.addr, "--max-connections", "2", NULL);
    clients[0] = rig_dial(&rig);
    up = warm(clients[0], &origin);
    for (i = 1; i < 4; i++) {
        clients[i] = rig_dial(&rig);
        say(clients[i], get);
    }
    /* The second one is served; the third when one has gone. */
    hear_head(up, text);
    say(up, ok);
    hear(clients[1], text, "\r\n\r\nok");
    cr_assert(is_quiet(up, 30) && is_quiet(origin.fd, 1));
    close(clients[0]);
    hear_head(up, text);
    say(up, ok);
    hear(clients[2], text, "\r\n\r\nok");
    close(clients[1]);
    hear_head(up, text);
    say(up, ok);
    hear(clients[3], text, "\r\n\r\nok");
    rig_stop(&rig);
}
