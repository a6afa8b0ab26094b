/* SPDX-License-Identifier: MIT */
/* myra-proxy, from outside: large bodies, peers that do not read, the end of
 * the program, its log and its options. */
#include "config.h"

#include "tests/proxy_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <criterion/criterion.h>

#define MIB ((size_t)1 << 20)

static char text[RIG_TEXT];
static uint8_t block[256 * 1024];

static const char get[] = "GET /x HTTP/1.1\r\nHost: a.test\r\n\r\n";

/* Byte number at of every large body here. */
static uint8_t byte_at(size_t at)
{
    return (uint8_t)(at * 31 + (at >> 11));
}

static void fill(size_t at, size_t len)
{
    size_t i;

    for (i = 0; i < len; i++)
        block[i] = byte_at(at + i);
}

/* Sends from one end and takes at the other until total bytes came. */
static void pump(int from, int to, size_t total)
{
    size_t sent = 0, got = 0, in_block = 0, off = 0;
    uint8_t data[65536];

    while (got < total) {
        struct pollfd fds[2] = { { to, POLLIN, 0 },
                                 { from, sent < total ? POLLOUT : 0, 0 } };
        ssize_t n;

        cr_assert_gt(poll(fds, 2, RIG_MS), 0, "stuck at %zu of %zu", got,
                     total);
        if (fds[1].revents & POLLOUT) {
            if (off == in_block) {
                in_block = total - sent < sizeof(block) ? total - sent
                                                        : sizeof(block);
                fill(sent, in_block);
                off = 0;
            }
            n = send(from, block + off, in_block - off,
                     MSG_DONTWAIT | MSG_NOSIGNAL);
            if (n > 0) {
                sent += (size_t)n;
                off += (size_t)n;
            }
        }
        if (fds[0].revents) {
            ssize_t i;

            n = recv(to, data, sizeof(data), 0);
            cr_assert_gt(n, 0, "ended at %zu of %zu", got, total);
            for (i = 0; i < n; i++)
                cr_assert(data[i] == byte_at(got + (size_t)i),
                          "wrong byte at %zu", got + (size_t)i);
            got += (size_t)n;
        }
    }
}

Test(proxy_flow, large_bodies_arrive_whole, .timeout = 60)
{
    const size_t total = 48 * MIB;
    struct origin origin;
    struct rig rig;
    char head[128];
    int client, up;
    long before;

    origin_open(&origin);
    rig_start(&rig, "--to", origin.addr, NULL);
    client = rig_dial(&rig);
    snprintf(head, sizeof(head),
             "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n",
             total);
    say(client, head);
    up = origin_accept(&origin);
    hear_head(up, text);
    before = rig_rss_kib(&rig);
    pump(client, up, total);
    snprintf(head, sizeof(head),
             "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", total);
    say(up, head);
    hear_head(client, text);
    pump(up, client, total);
    cr_assert_lt(rig_rss_kib(&rig) - before, 12 * 1024);
    exchange_ok(client, up, "next");
    rig_stop(&rig);
}

/* Writes until nothing more is taken for a while; how much went. */
static size_t stuff(int fd)
{
    size_t sent = 0;

    for (;;) {
        struct pollfd pfd = { fd, POLLOUT, 0 };
        ssize_t n;

        if (poll(&pfd, 1, 200) != 1)
            return sent;
        fill(sent, sizeof(block));
        n = send(fd, block, sizeof(block), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN)
            return sent;
        if (n > 0)
            sent += (size_t)n;
    }
}

static void take_stuffed(int fd, size_t total)
{
    size_t got = 0, i;

    while (got < total) {
        const size_t len =
            total - got < sizeof(block) ? total - got : sizeof(block);

        hear_bytes(fd, block, len);
        for (i = 0; i < len; i++)
            cr_assert(block[i] == byte_at(got + i), "wrong byte at %zu",
                      got + i);
        got += len;
    }
}

Test(proxy_flow, stalled_peers_pause_the_other_side, .timeout = 60)
{
    struct origin origin;
    struct rig rig;
    size_t sent;
    int client, up, i;
    long before;

    origin_open(&origin);
    rig_start(&rig, "--to", origin.addr, NULL);
    client = rig_dial(&rig);
    say(client, get);
    up = origin_accept(&origin);
    hear_head(up, text);
    before = rig_rss_kib(&rig);
    say(up, "HTTP/1.1 200 OK\r\nContent-Length: 1099511627776\r\n\r\n");
    hear_head(client, text);
    /* What the sockets themselves hold is the kernel's. */
    sent = stuff(up);
    cr_assert_lt(sent, 64 * MIB, "nothing was paused");
    cr_assert_lt(rig_rss_kib(&rig) - before, 8 * 1024);
    take_stuffed(client, sent);
    say(up, "more");
    hear(client, text, "more");
    /* A client that has ended may still read: it is the next bytes that show
     * that it is gone. */
    close(client);
    for (i = 0; i < 100 && is_quiet(up, 20); i++)
        say(up, "more");
    hear_end(up, text);
    /* The other way. */
    client = rig_dial(&rig);
    say(client, "POST / HTTP/1.1\r\nHost: a\r\n"
                "Content-Length: 1099511627776\r\n\r\n");
    up = origin_accept(&origin);
    hear_head(up, text);
    sent = stuff(client);
    cr_assert_lt(sent, 64 * MIB, "nothing was paused");
    cr_assert_lt(rig_rss_kib(&rig) - before, 8 * 1024);
    take_stuffed(up, sent);
    say(client, "more");
    hear(up, text, "more");
    close(client);
    rig_stop(&rig);
}

Test(proxy_flow, client_that_never_reads_is_cut, .timeout = 60)
{
    struct origin origin;
    struct rig rig;
    int client, up;

    origin_open(&origin);
    rig_start(&rig, "--to", origin.addr, "--send-timeout", "300ms", NULL);
    client = rig_dial(&rig);
    say(client, get);
    up = origin_accept(&origin);
    hear_head(up, text);
    say(up, "HTTP/1.1 200 OK\r\nContent-Length: 1099511627776\r\n\r\n");
    stuff(up);
    hear_end(up, text);
    rig_stop(&rig);
    close(client);
}

Test(proxy_flow, drain_finishes_what_is_under_way)
{
    struct origin origin;
    struct rig rig;
    int client, idle, up;

    origin_open(&origin);
    rig_start(&rig, "--to", origin.addr, NULL);
    idle = rig_dial(&rig);
    say(idle, get);
    up = origin_accept(&origin);
    hear_head(up, text);
    say(up, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    hear_head(idle, text);
    client = rig_dial(&rig);
    say(client, get);
    hear_head(up, text);
    rig_signal(&rig, SIGTERM);
    cr_assert_eq(hear_end(idle, text), 0);
    cr_assert_str_eq(text, "");
    say(up, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone");
    cr_assert_eq(hear_end(client, text), 0);
    expect_in(text, "\r\nConnection: close\r\n");
    expect_in(text, "\r\n\r\ndone");
    close(client);
    close(idle);
    cr_assert_eq(rig_wait(&rig), 0);
}

Test(proxy_flow, drain_has_a_deadline_and_a_second_signal)
{
    struct origin origin;
    struct rig rig;
    int client;

    origin_open(&origin);
    rig_start(&rig, "--to", origin.addr, "--drain-timeout", "100ms", NULL);
    client = rig_dial(&rig);
    say(client, get);
    hear_head(origin_accept(&origin), text);
    rig_signal(&rig, SIGTERM);
    hear_end(client, text);
    cr_assert_eq(rig_wait(&rig), 0);
    expect_in(rig.said, "1 connections were cut");
    rig_start(&rig, "--to", origin.addr, NULL);
    client = rig_dial(&rig);
    say(client, get);
    hear_head(origin_accept(&origin), text);
    rig_signal(&rig, SIGTERM);
    /* It no longer accepts: the first signal was taken. */
    rig_expect_said(&rig, "draining");
    rig_signal(&rig, SIGTERM);
    hear_end(client, text);
    cr_assert_eq(rig_wait(&rig), 0);
}

static void read_file(const char *path)
{
    const int fd = open(path, O_RDONLY);
    ssize_t n;

    cr_assert_geq(fd, 0);
    n = read(fd, text, sizeof(text) - 1);
    cr_assert_geq(n, 0);
    text[n] = 0;
    close(fd);
}

static void log_some(const char *format, const char *path)
{
    struct origin origin;
    struct rig rig;
    int client, up;

    origin_open(&origin);
    rig_start(&rig, "--to", origin.addr, "--access-log", path,
              "--log-format", format, NULL);
    client = rig_dial(&rig);
    say(client, "GET /a?\"q\" HTTP/1.1\r\nHost: a.test\r\n\r\n");
    up = origin_accept(&origin);
    hear_head(up, text);
    say(up, "HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nnope\n");
    hear(client, text, "nope\n");
    say(client, "bad\r\n\r\n");
    hear_end(client, text);
    rig_stop(&rig);
}

Test(proxy_flow, access_log_has_a_line_a_request)
{
    char path[] = "/tmp/proxy-log-XXXXXX";
    const int fd = mkstemp(path);

    cr_assert_geq(fd, 0);
    close(fd);
    log_some("common", path);
    read_file(path);
    cr_assert_eq(strncmp(text, "127.0.0.1:", 10), 0);
    expect_in(text, "] \"GET /a?\\x22q\\x22 HTTP/1.1\" 404 5\n");
    expect_in(text, "] \"-\" 400 37\n");
    cr_assert_eq(truncate(path, 0), 0);
    log_some("json", path);
    read_file(path);
    expect_in(text, "\"method\":\"GET\",\"target\":\"/a?\\u0022q\\u0022\","
                    "\"version\":\"1.1\",\"status\":404,");
    expect_in(text, "\"response_bytes\":5,");
    expect_in(text, "\"upstream\":\"127.0.0.1:");
    unlink(path);
}

Test(proxy_flow, access_log_is_opened_again)
{
    char path[] = "/tmp/proxy-log-XXXXXX", moved[64];
    struct origin origin;
    struct rig rig;
    int client, up;

    close(mkstemp(path));
    snprintf(moved, sizeof(moved), "%s.1", path);
    origin_open(&origin);
    rig_start(&rig, "--to", origin.addr, "--access-log", path, NULL);
    cr_assert_eq(rename(path, moved), 0);
    rig_signal(&rig, SIGHUP);
    client = rig_dial(&rig);
    say(client, get);
    up = origin_accept(&origin);
    hear_head(up, text);
    say(up, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    hear(client, text, "\r\n\r\nok");
    close(client);
    rig_stop(&rig);
    read_file(path);
    expect_in(text, "\"GET /x HTTP/1.1\" 200 2\n");
    read_file(moved);
    cr_assert_str_eq(text, "");
    unlink(path);
    unlink(moved);
}

Test(proxy_flow, several_listeners_and_threads)
{
    struct sockaddr_un un = { .sun_family = AF_UNIX };
    struct origin a, b;
    struct rig rig;
    char listen[128], path[] = "/tmp/proxy-unix-XXXXXX";
    const char *second;
    int client, up, i;

    cr_assert_not_null(mkdtemp(path));
    snprintf(un.sun_path, sizeof(un.sun_path), "%s/s", path);
    snprintf(listen, sizeof(listen), "unix:%s", un.sun_path);
    origin_open(&a);
    origin_open(&b);
    rig_start(&rig, "--listen", listen, "--to", a.addr, "--listen",
              "127.0.0.1:0", "--to", b.addr, "--threads", "2", NULL);
    for (i = 0; i < 8; i++) {
        client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        cr_assert_eq(
            connect(client, (struct sockaddr *)&un, sizeof(un)), 0);
        say(client, "GET /u HTTP/1.1\r\nHost: a.test\r\nConnection: close"
                    "\r\n\r\n");
        up = origin_accept(&a);
        hear_head(up, text);
        say(up, "HTTP/1.1 200 OK\r\nConnection: close\r\n"
                "Content-Length: 2\r\n\r\nok");
        close(up);
        hear_end(client, text);
        expect_in(text, "\r\n\r\nok");
        close(client);
    }
    second = strstr(strstr(rig.said, "listening on unix:"),
                    "listening on 127.0.0.1:");
    cr_assert_not_null(second);
    client = dial_port(atoi(second + strlen("listening on 127.0.0.1:")));
    say(client, get);
    up = origin_accept(&b);
    hear_head(up, text);
    say(up, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    hear(client, text, "\r\n\r\nok");
    close(client);
    rig_stop(&rig);
    cr_assert_neq(access(un.sun_path, F_OK), 0, "the socket's file is left");
    rmdir(path);
}

static void expect_status(struct rig *rig, int got, int wanted,
                          const char *said)
{
    cr_assert_eq(got, wanted, "%d: <<%s>>", got, rig->said);
    expect_in(rig->said, said);
}

Test(proxy_flow, options_that_cannot_be_used)
{
    static struct rig rig;
    struct origin origin;
    char addr[40];

    expect_status(&rig, rig_run(&rig, NULL), 2, "--listen");
    expect_status(&rig, rig_run(&rig, "--nonsense", NULL), 2,
                  "unknown option '--nonsense'");
    expect_status(&rig, rig_run(&rig, "--listen", NULL), 2,
                  "--listen needs a value");
    expect_status(&rig, rig_run(&rig, "--listen", "8080", NULL), 2,
                  "--listen 8080 has neither --to nor --forward");
    expect_status(
        &rig, rig_run(&rig, "--listen", "0", "-f", "--idle-timeout", "5y",
                      NULL),
        2, "--idle-timeout: '5y' cannot be read");
    expect_status(
        &rig, rig_run(&rig, "--listen", "0", "-f", "--threads", "0", NULL),
        2, "--threads: '0' is out of range");
    expect_status(&rig, rig_run(&rig, "--listen", "nonsense", "-f", NULL), 3,
                  "--listen nonsense");
    expect_status(
        &rig, rig_run(&rig, "--listen", "0", "--to", "127.0.0.1:70000",
                      NULL),
        3, "--to 127.0.0.1:70000");
    expect_status(
        &rig, rig_run(&rig, "--listen", "0", "-f", "--access-log",
                      "/nowhere/log", NULL),
        3, "--access-log /nowhere/log");
    expect_status(&rig,
                  rig_run(&rig, "--listen", "0", "-f", "--backend", "kqueue",
                          NULL),
                  2, "kqueue");
    expect_status(&rig, rig_run(&rig, "--listen", "0", "-f", "-t", NULL), 0,
                  "good");
    expect_status(&rig, rig_run(&rig, "--help", NULL), 0, "--listen ADDR");
    expect_status(&rig, rig_run(&rig, "--version", NULL), 0, "myra-proxy ");
    origin_open(&origin);
    snprintf(addr, sizeof(addr), "127.0.0.1:%d", origin.port);
    expect_status(&rig, rig_run(&rig, "--listen", addr, "-f", NULL), 1,
                  addr);
}

Test(proxy_flow, report_counts)
{
    char path[] = "/tmp/proxy-report-XXXXXX";
    struct origin origin;
    struct rig rig;
    int client, up, i;

    close(mkstemp(path));
    origin_open(&origin);
    rig_start(&rig, "--to", origin.addr, "--report", path, NULL);
    client = rig_dial(&rig);
    say(client, get);
    up = origin_accept(&origin);
    hear_head(up, text);
    say(up, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    hear_head(client, text);
    for (i = 0; i < 1500; i++)
        exchange_ok(client, up, "abc");
    close(client);
    rig_stop(&rig);
    read_file(path);
    expect_in(text, "\"requests\": 1501,");
    expect_in(text, "\"2xx\": 1501,");
    expect_in(text, "\"upstream_connects\": 1,");
    expect_in(text, "\"response_body_bytes\": 4500,");
    expect_in(text, "\"allocations_after_1000_requests\": 0,");
    unlink(path);
}
