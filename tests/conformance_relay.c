/* SPDX-License-Identifier: MIT */
/*
 * Conformance of backends, part 5: relaying to those who do not read. What is
 * kept for them may not take the buffers that all others receive with.
 */
#include "config.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/net/net_priv.h"
#include "tests/net_rig.h"

TestSuite(relay, .timeout = 60);

enum { PAIRS = 100, ASKS = 50, BLOCK_LIMIT = 2 * 1024 * 1024 };

/* Connections come in pairs: what the first sends goes to the second. */
static struct myra_conn *first_of_pair;
static struct myra_conn *sinks[1024]; /* by the source's slot */
static struct myra_conn *sources[1024];
static int opened, is_paired;

static void on_open(struct myra_conn *conn, void *user)
{
    (void)user;
    cr_assert_lt(conn->io.slot, 1024);
    opened++;
    if (!is_paired)
        return;
    if (opened % 2 == 1) {
        first_of_pair = conn;
        return;
    }
    sinks[first_of_pair->io.slot] = conn;
    sources[conn->io.slot] = first_of_pair;
}

static int64_t on_data(struct myra_conn *conn, const struct myra_slice *data,
                       void *user)
{
    struct myra_conn *sink = sinks[conn->io.slot];

    (void)user;
    cr_assert_eq(myra_conn_send_slice(sink != NULL ? sink : conn, data, 0,
                                      data->len),
                 0);
    return (int64_t)data->len;
}

static void on_pressure(struct myra_conn *conn, int is_high, void *user)
{
    struct myra_conn *source = sources[conn->io.slot];

    (void)user;
    if (source == NULL)
        return;
    if (is_high)
        myra_conn_pause(source);
    else
        myra_conn_resume(source);
}

static const struct myra_conn_events events = {
    .on_open = on_open,
    .on_data = on_data,
    .on_pressure = on_pressure,
};

static int dial(struct myra_loop *loop, const struct sockaddr_storage *addr,
                socklen_t len)
{
    const int fd = socket(addr->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int before = opened;
    const uint64_t end = myra_clock_ns() + 5000 * MYI_MS_NS;

    cr_assert_eq(connect(fd, (const struct sockaddr *)addr, len), 0);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    while (opened == before) {
        cr_assert_geq(myra_loop_step(loop, MYI_MS_NS), 0);
        cr_assert_lt(myra_clock_ns(), end);
    }
    return fd;
}

/* Sends on every source until nothing more is taken for a while. */
static void flood(struct myra_loop *loop, const int *fds)
{
    static char bytes[65536];
    int quiet = 0;

    while (quiet < 20) {
        int sent = 0;

        for (int i = 0; i < PAIRS; i++)
            sent += send(fds[2 * i], bytes, sizeof(bytes), MSG_NOSIGNAL) > 0;
        quiet = sent > 0 ? 0 : quiet + 1;
        cr_assert_geq(myra_loop_step(loop, MYI_MS_NS), 0);
    }
}

static void ask(struct myra_loop *loop, int fd, int times)
{
    for (int i = 0; i < times; i++) {
        const uint64_t end = myra_clock_ns() + 5000 * MYI_MS_NS;
        char answer[5];

        cr_assert_eq(send(fd, "hello", 5, MSG_NOSIGNAL), 5);
        while (recv(fd, answer, 5, 0) != 5) {
            cr_assert_geq(myra_loop_step(loop, MYI_MS_NS), 0);
            cr_assert_lt(myra_clock_ns(), end, "ask %d", i);
        }
    }
}

Test(relay, those_who_never_read_stop_nobody_else)
{
    struct myra_loop_options options;
    struct myra_loop_stats stats;
    struct myra_listener *listener;
    struct sockaddr_storage addr;
    struct myra_loop *loop;
    int fds[2 * PAIRS], good;
    char text[64];
    socklen_t len;

    opened = 0;
    myra_loop_options_init(&options);
    options.recv_buf_count = 64;
    options.block_limit = BLOCK_LIMIT;
    cr_assert_eq(myra_loop_new(&options, &loop), 0);
    cr_assert_eq(myra_listen(loop, "127.0.0.1:0", NULL, &events, NULL,
                             &listener),
                 0);
    myra_listener_addr(listener, text, sizeof(text));
    cr_assert_eq(myra_addr_parse(text, &addr, &len), 0);
    is_paired = 1;
    for (int i = 0; i < 2 * PAIRS; i++)
        fds[i] = dial(loop, &addr, len);
    is_paired = 0;
    good = dial(loop, &addr, len);
    ask(loop, good, 1);
    flood(loop, fds);
    ask(loop, good, ASKS);
    myra_loop_read_stats(loop, &stats);
    cr_assert_lt(stats.block_bytes, 8 * BLOCK_LIMIT, "%zu bytes kept",
                 (size_t)stats.block_bytes);
    for (int i = 0; i < 2 * PAIRS; i++)
        close(fds[i]);
    close(good);
    myra_loop_free(loop);
}
