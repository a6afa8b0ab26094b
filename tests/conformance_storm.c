/* SPDX-License-Identifier: MIT */
/*
 * Conformance of backends, part 4: everything at once. Random operations in
 * every state with a printed seed, and a full house that must stay fair.
 */
#include "config.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "lib/net/net_priv.h"
#include "tests/net_rig.h"

/* The long check runs some thousand schedules in one test. */
TestSuite(storm, .timeout = 1800);

static uint64_t next_random(uint64_t *state)
{
    /* xorshift64* (Vigna 2016) */
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(2685821657736338717);
}

/* ---- Random operations -------------------------------------------------- */

enum { STORM_CONNS = 24, STORM_STEPS = 600 };

struct storm {
    uint64_t random;
    struct myra_conn *conns[STORM_CONNS * 4];
    int conn_count, opened, closed;
};

static void storm_forget(struct storm *storm, struct myra_conn *conn)
{
    int found = 0;

    for (int i = 0; i < storm->conn_count; i++) {
        if (storm->conns[i] == conn) {
            storm->conns[i] = storm->conns[--storm->conn_count];
            found++;
            i--;
        }
    }
    cr_assert_leq(found, 1);
}

static void storm_act(struct storm *storm, struct myra_conn *conn)
{
    static uint8_t bytes[40000];
    const uint64_t random = next_random(&storm->random);

    switch (random % 16) {
    case 0:
        myra_conn_close(conn);
        break;
    case 1:
        if (random >> 32 & 1)
            myra_conn_abort(conn);
        break;
    case 2:
        myra_conn_shutdown(conn);
        break;
    case 3:
    case 4:
        myra_conn_pause(conn);
        break;
    case 5:
    case 6:
    case 7:
        myra_conn_resume(conn);
        break;
    case 8:
        myra_conn_set_deadline(conn, (random >> 40) % 3 * MYI_MS_NS);
        break;
    default:
        (void)myra_conn_send(conn, bytes, (random >> 20) % sizeof(bytes));
        break;
    }
}

static void storm_open(struct myra_conn *conn, void *user)
{
    struct storm *storm = user;

    cr_assert_lt(storm->conn_count, STORM_CONNS * 4);
    storm->conns[storm->conn_count++] = conn;
    storm->opened++;
    if (next_random(&storm->random) % 8 == 0)
        storm_act(storm, conn);
}

static int64_t storm_data(struct myra_conn *conn,
                          const struct myra_slice *data, void *user)
{
    struct storm *storm = user;
    const uint64_t random = next_random(&storm->random);

    if (random % 4 == 0 && storm->conn_count > 0) {
        struct myra_conn *other =
            storm->conns[(random >> 8) % (unsigned)storm->conn_count];

        (void)myra_conn_send_slice(other, data, 0, data->len);
    }
    if (random % 8 == 1)
        storm_act(storm, conn);
    if (random % 64 == 2)
        return MYRA_EINVAL;
    if (random % 8 == 3)
        return (int64_t)(data->len / 2);
    return (int64_t)data->len;
}

static void storm_eof(struct myra_conn *conn, size_t kept, void *user)
{
    struct storm *storm = user;

    (void)kept;
    if (next_random(&storm->random) % 2 == 0)
        myra_conn_close(conn);
    else
        storm_act(storm, conn);
}

static void storm_pressure(struct myra_conn *conn, int is_high, void *user)
{
    (void)is_high;
    storm_act(user, conn);
}

static void storm_plain(struct myra_conn *conn, void *user)
{
    struct storm *storm = user;

    if (next_random(&storm->random) % 8 == 0)
        storm_act(storm, conn);
}

static void storm_closed(struct myra_conn *conn,
                         enum myra_close_reason reason, int err, void *user)
{
    struct storm *storm = user;

    (void)err;
    if (reason != MYRA_CLOSE_CONNECT)
        storm_forget(storm, conn);
    storm->closed++;
}

static const struct myra_conn_events storm_events = {
    .on_open = storm_open,
    .on_data = storm_data,
    .on_eof = storm_eof,
    .on_pressure = storm_pressure,
    .on_drained = storm_plain,
    .on_deadline = storm_plain,
    .on_closed = storm_closed,
};

static void storm_peer(int *fds, int count, uint64_t *random, uint8_t *bytes,
                       size_t cap)
{
    const uint64_t r = next_random(random);
    int *fd = &fds[(r >> 8) % (unsigned)count];

    if (*fd < 0)
        return;
    switch (r % 12) {
    case 0:
        close(*fd);
        *fd = -1;
        break;
    case 1: {
        const struct linger linger = { 1, 0 };

        setsockopt(*fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
        close(*fd);
        *fd = -1;
        break;
    }
    case 2:
        shutdown(*fd, SHUT_WR);
        break;
    case 3:
    case 4:
    case 5:
    case 6:
        (void)!recv(*fd, bytes, (r >> 20) % cap, MSG_DONTWAIT);
        break;
    default:
        (void)!send(*fd, bytes, (r >> 20) % cap,
                    MSG_DONTWAIT | MSG_NOSIGNAL);
        break;
    }
}

static void run_storm(uint64_t seed)
{
    static uint8_t bytes[30000];
    const int fds_before = rig_fd_count();
    struct myra_listen_options options;
    struct myra_loop_options loop_options;
    struct myra_loop_stats stats;
    struct storm storm = { .random = seed };
    struct sockaddr_storage addr;
    struct myra_listener *listener;
    struct myra_loop *loop;
    uint64_t random = seed * 7 + 1;
    int fds[STORM_CONNS], dialled = 0;
    char text[64];
    socklen_t len;

    myra_loop_options_init(&loop_options);
    loop_options.recv_buf_count = 2u << seed % 6;
    loop_options.recv_buf_cap = seed % 3 == 0 ? 200 : 4032;
    cr_assert_eq(myra_loop_new(&loop_options, &loop), 0);
    myra_listen_options_init(&options);
    options.conn.linger_ns = 20 * MYI_MS_NS;
    options.conn.send_buf = seed % 2 == 0 ? 4096 : 0;
    options.conn.high_mark = 50000;
    options.conn.low_mark = 10000;
    cr_assert_eq(myra_listen(loop, "127.0.0.1:0", &options, &storm_events,
                             &storm, &listener),
                 0);
    myra_listener_addr(listener, text, sizeof(text));
    cr_assert_eq(myra_addr_parse(text, &addr, &len), 0);
    for (int i = 0; i < STORM_CONNS; i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        cr_assert_eq(connect(fds[i], (struct sockaddr *)&addr, len), 0);
    }
    for (int step = 0; step < STORM_STEPS; step++) {
        struct myra_conn *conn;

        storm_peer(fds, STORM_CONNS, &random, bytes, sizeof(bytes));
        if (step % 30 == 0 && dialled < STORM_CONNS &&
            myra_connect(loop, (struct sockaddr *)&addr, len, &options.conn,
                         &storm_events, &storm, &conn) == 0)
            dialled++;
        if (storm.conn_count > 0 && next_random(&random) % 4 == 0)
            storm_act(&storm,
                      storm.conns[next_random(&random) %
                                  (unsigned)storm.conn_count]);
        cr_assert_geq(myra_loop_step(loop, 0), 0, "seed %zu",
                      (size_t)seed);
    }
    for (int i = 0; i < STORM_CONNS; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
    }
    myra_listener_close(listener);
    for (int i = 0; i < storm.conn_count; i++)
        myra_conn_resume(storm.conns[i]);
    for (int step = 0; step < 50; step++)
        myra_loop_step(loop, 0);
    myra_loop_read_stats(loop, &stats);
    cr_assert_eq(stats.stale, 0, "seed %zu", (size_t)seed);
    myra_loop_free(loop);
    cr_assert_eq(storm.conn_count, 0, "seed %zu", (size_t)seed);
    cr_assert_eq(rig_fd_count(), fds_before, "seed %zu", (size_t)seed);
}

/* MYRA_SCHEDULES: how many; the long check sets it. */
Test(storm, random_operations_in_every_state)
{
    const char *count = getenv("MYRA_SCHEDULES");
    const uint64_t total = count != NULL ? strtoull(count, NULL, 10) : 60;

    for (uint64_t seed = 1; seed <= total; seed++)
        run_storm(seed);
}

/* ---- A full house ------------------------------------------------------- */

enum { CROWD = 300, ASKS = 100, ANSWER = 300000 };

/* A request is "q\n"; "Q\n" asks for a large answer. */
static int64_t house_data(struct myra_conn *conn,
                          const struct myra_slice *data, void *user)
{
    static uint8_t large[ANSWER];
    const uint8_t *end = memchr(data->data, '\n', data->len);

    (void)user;
    if (end == NULL)
        return 0;
    if (data->data[0] == 'Q')
        (void)myra_conn_send(conn, large, sizeof(large));
    else
        (void)myra_conn_send(conn, "a\n", 2);
    return end - data->data + 1;
}

static const struct myra_conn_events house_events = { .on_data = house_data };

static void house_turns(struct myra_loop *loop, int count)
{
    for (int i = 0; i < count; i++)
        cr_assert_geq(myra_loop_step(loop, 0), 0);
}

/* 300 that send a byte at a time and 300 that never read, over 256 buffers:
 * one more that asks 100 times gets every answer. */
Test(storm, a_full_house_is_served)
{
    struct rlimit limit;
    struct myra_loop *loop;
    struct myra_listener *listener;
    struct sockaddr_storage addr;
    int slow[CROWD], deaf[CROWD], fd;
    char text[64];
    socklen_t len;

    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    cr_assert_eq(myra_loop_new(NULL, &loop), 0);
    cr_assert_eq(myra_listen(loop, "127.0.0.1:0", NULL, &house_events, NULL,
                             &listener),
                 0);
    myra_listener_addr(listener, text, sizeof(text));
    cr_assert_eq(myra_addr_parse(text, &addr, &len), 0);
    for (int i = 0; i < CROWD; i++) {
        slow[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        deaf[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        cr_assert_eq(connect(slow[i], (struct sockaddr *)&addr, len), 0);
        cr_assert_eq(connect(deaf[i], (struct sockaddr *)&addr, len), 0);
        cr_assert_eq(send(deaf[i], "Q\n", 2, MSG_NOSIGNAL), 2);
        house_turns(loop, 2);
    }
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    (void)!connect(fd, (struct sockaddr *)&addr, len);
    house_turns(loop, 10);
    for (int ask = 0; ask < ASKS; ask++) {
        const uint64_t end = myra_clock_ns() + UINT64_C(5000000000);
        char answer[2];

        for (int i = 0; i < CROWD; i++)
            cr_assert_eq(send(slow[i], "x", 1, MSG_NOSIGNAL), 1);
        cr_assert_eq(send(fd, "q\n", 2, MSG_NOSIGNAL), 2);
        while (recv(fd, answer, 2, 0) != 2) {
            cr_assert_geq(myra_loop_step(loop, MYI_MS_NS), 0);
            cr_assert_lt(myra_clock_ns(), end, "ask %d", ask);
        }
    }
    for (int i = 0; i < CROWD; i++) {
        close(slow[i]);
        close(deaf[i]);
    }
    close(fd);
    myra_loop_free(loop);
}
