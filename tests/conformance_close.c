/* SPDX-License-Identifier: MIT */
/*
 * Conformance of backends, part 2: how connections begin and end.
 */
#include "config.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/net/net_priv.h"
#include "tests/net_rig.h"

TestSuite(close, .timeout = 60);

static void reset(int fd)
{
    const struct linger linger = { 1, 0 };

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
    close(fd);
}

Test(close, half_close_leaves_our_direction_open)
{
    struct rig_peer peer = { .send_len = 1000, .shut_after = 1,
                             .recv_len = 100001 };
    static uint8_t bytes[100000];
    struct rig rig;

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = rig_byte(i);
    rig_init(&rig, 0, 0, NULL, NULL);
    peer.fd = rig_dial(&rig);
    rig_peer_start(&peer);
    rig_until(&rig, &rig.eofs, 1);
    cr_assert_eq(rig.got, 1000);
    cr_assert_eq(myra_conn_send(rig.conn, bytes, sizeof(bytes)), 0);
    rig_spin(&rig, 5);
    cr_assert_eq(rig.closed, 0);
    myra_conn_shutdown(rig.conn);
    cr_assert_eq(myra_conn_send(rig.conn, bytes, 1), MYRA_ECLOSED);
    rig_peer_join(&rig, &peer);
    cr_assert_eq(peer.received, sizeof(bytes));
    close(peer.fd);
    rig_until(&rig, &rig.closed, 1);
    cr_assert_eq(rig.reason, MYRA_CLOSE_EOF);
    cr_assert_eq(rig.eofs, 1);
    rig_fini(&rig);
}

Test(close, our_half_close_leaves_theirs_open)
{
    struct rig rig;
    char byte;
    int fd;

    rig_init(&rig, 0, 0, NULL, NULL);
    fd = rig_dial(&rig);
    rig_until(&rig, &rig.opened, 1);
    myra_conn_shutdown(rig.conn);
    myra_conn_shutdown(rig.conn);
    rig_spin(&rig, 3);
    cr_assert_eq(recv(fd, &byte, 1, 0), 0);
    cr_assert_eq(send(fd, "hello", 5, 0), 5);
    rig_until_size(&rig, &rig.got, 5);
    close(fd);
    rig_until(&rig, &rig.closed, 1);
    cr_assert_eq(rig.reason, MYRA_CLOSE_EOF);
    rig_fini(&rig);
}

Test(close, close_sends_the_whole_queue_first)
{
    struct rig_peer peer = { .recv_len = 2000001, .recv_step = 5000 };
    static uint8_t bytes[2000000];
    struct rig rig;

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = rig_byte(i);
    rig_init(&rig, 0, 0, NULL, NULL);
    peer.fd = rig_dial(&rig);
    rig_until(&rig, &rig.opened, 1);
    cr_assert_eq(myra_conn_send(rig.conn, bytes, sizeof(bytes)), 0);
    myra_conn_close(rig.conn);
    myra_conn_close(rig.conn);
    rig_peer_start(&peer);
    rig_peer_join(&rig, &peer);
    cr_assert_eq(peer.received, sizeof(bytes));
    close(peer.fd);
    rig_until(&rig, &rig.closed, 1);
    cr_assert_eq(rig.reason, MYRA_CLOSE_LOCAL);
    cr_assert_eq(rig.err, 0);
    rig_fini(&rig);
}

/* A close(2) with unread input would reset and cut the answer's tail. */
Test(close, unread_input_does_not_cut_the_answer)
{
    struct rig_peer peer = { .send_len = 500000, .recv_len = 300001 };
    static uint8_t bytes[300000];
    struct rig rig;

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = rig_byte(i);
    rig_init(&rig, 0, 0, NULL, NULL);
    peer.fd = rig_dial(&rig);
    rig_peer_start(&peer);
    rig_until(&rig, &rig.opened, 1);
    myra_conn_pause(rig.conn);
    cr_assert_eq(myra_conn_send(rig.conn, bytes, sizeof(bytes)), 0);
    myra_conn_close(rig.conn);
    rig_peer_join(&rig, &peer);
    cr_assert_eq(peer.received, sizeof(bytes));
    close(peer.fd);
    rig_until(&rig, &rig.closed, 1);
    rig_fini(&rig);
}

Test(close, linger_ends_a_close_that_the_peer_ignores)
{
    struct myra_listen_options options;
    struct rig rig;
    int fd;

    myra_listen_options_init(&options);
    options.conn.linger_ns = 50 * MYI_MS_NS;
    rig_init(&rig, 0, 0, NULL, &options);
    fd = rig_dial(&rig);
    rig_until(&rig, &rig.opened, 1);
    myra_conn_close(rig.conn);
    rig_until(&rig, &rig.closed, 1);
    cr_assert_eq(rig.reason, MYRA_CLOSE_TIMEOUT);
    close(fd);
    rig_fini(&rig);
}

Test(close, abort_resets_the_peer)
{
    struct rig rig;
    char byte;
    int fd;

    rig_init(&rig, 0, 0, NULL, NULL);
    fd = rig_dial(&rig);
    rig_until(&rig, &rig.opened, 1);
    myra_conn_abort(rig.conn);
    myra_conn_abort(rig.conn);
    cr_assert_eq(rig.closed, 0, "on_closed inside of abort");
    rig_until(&rig, &rig.closed, 1);
    cr_assert_eq(rig.reason, MYRA_CLOSE_ABORT);
    cr_assert_eq(recv(fd, &byte, 1, 0), -1);
    cr_assert_eq(errno, ECONNRESET);
    close(fd);
    rig_fini(&rig);
}

Test(close, a_reset_is_told_with_its_reason)
{
    struct rig rig;
    int fd;

    rig_init(&rig, 0, 0, NULL, NULL);
    fd = rig_dial(&rig);
    rig_until(&rig, &rig.opened, 1);
    reset(fd);
    rig_until(&rig, &rig.closed, 1);
    cr_assert_eq(rig.reason, MYRA_CLOSE_RESET);
    cr_assert_eq(rig.err, -ECONNRESET);
    rig_fini(&rig);
}

Test(close, a_peer_that_dies_under_a_full_queue_frees_all)
{
    static uint8_t bytes[3000000];
    struct rig rig;
    int fd;

    rig_init(&rig, 0, 0, NULL, NULL);
    for (int i = 0; i < 10; i++) {
        fd = rig_dial(&rig);
        rig_until(&rig, &rig.opened, i + 1);
        cr_assert_eq(myra_conn_send(rig.conn, bytes, sizeof(bytes)), 0);
        rig_spin(&rig, 5);
        if (i % 2 == 0)
            close(fd);
        else
            reset(fd);
        rig_until(&rig, &rig.closed, i + 1);
        cr_assert_eq(rig.reason, MYRA_CLOSE_RESET);
    }
    rig_fini(&rig);
}

Test(close, what_came_before_a_fin_is_read_before_it_is_told)
{
    struct rig rig;
    int fd;

    rig_init(&rig, 4, 64, NULL, NULL);
    for (int i = 0; i < 20; i++) {
        uint8_t bytes[1000] = { 0 };
        const size_t got = rig.got;

        fd = rig_dial(&rig);
        cr_assert_eq(send(fd, bytes, sizeof(bytes), 0), 1000);
        close(fd);
        rig_until(&rig, &rig.eofs, i + 1);
        cr_assert_eq(rig.got, got + 1000);
        myra_conn_close(rig.conn);
        rig_until(&rig, &rig.closed, i + 1);
    }
    rig_fini(&rig);
}

Test(close, an_error_of_on_data_ends_the_connection)
{
    struct rig rig;
    int fd;

    rig_init(&rig, 0, 0, NULL, NULL);
    rig.answer = MYRA_HTTP_START;
    fd = rig_dial(&rig);
    cr_assert_eq(send(fd, "x", 1, 0), 1);
    rig_until(&rig, &rig.closed, 1);
    cr_assert_eq(rig.reason, MYRA_CLOSE_ERROR);
    cr_assert_eq(rig.err, MYRA_HTTP_START);
    close(fd);
    rig_fini(&rig);
}

/* ---- Dialling ----------------------------------------------------------- */

static int dial_addr(struct rig *rig, const char *text,
                     const struct myra_conn_options *options)
{
    struct sockaddr_storage addr;
    struct myra_conn *conn;
    socklen_t len;

    cr_assert_eq(myra_addr_parse(text, &addr, &len), 0);
    return myra_connect(rig->loop, (struct sockaddr *)&addr, len, options,
                        &rig_events, rig, &conn);
}

Test(close, dials_itself_and_sends_before_the_connection_is_open)
{
    struct sockaddr_storage addr;
    struct myra_conn *conn;
    struct rig rig, server;
    socklen_t len;

    rig_init(&server, 0, 0, NULL, NULL);
    rig = server;
    memset(&rig.conn, 0, sizeof(rig.conn));
    cr_assert_eq(myra_addr_parse(server.addr, &addr, &len), 0);
    cr_assert_eq(myra_connect(server.loop, (struct sockaddr *)&addr, len,
                              NULL, &rig_events, &rig, &conn),
                 0);
    cr_assert_eq(rig.opened, 0, "on_open inside of connect");
    cr_assert_eq(myra_conn_send(conn, "early", 5), 0);
    /* The listener's events still go to the struct it was made with. */
    rig_until_size(&server, &server.got, 5);
    cr_assert_eq(rig.opened, 1);
    myra_conn_close(conn);
    rig_until(&server, &server.eofs, 1);
    myra_conn_close(server.conn);
    rig_until(&server, &server.closed, 1);
    rig_until(&server, &rig.closed, 1);
    rig_fini(&server);
}

Test(close, a_refused_connect_is_told_by_callback)
{
    char addr[160];
    struct rig rig, other;

    rig_init(&other, 0, 0, NULL, NULL);
    memcpy(addr, other.addr, sizeof(addr));
    rig_fini(&other);
    rig_init(&rig, 0, 0, NULL, NULL);
    for (int i = 0; i < 5; i++) {
        cr_assert_eq(dial_addr(&rig, addr, NULL), 0);
        cr_assert_eq(rig.closed, i);
        rig_until(&rig, &rig.closed, i + 1);
        cr_assert_eq(rig.reason, MYRA_CLOSE_CONNECT);
        cr_assert_eq(rig.err, -ECONNREFUSED);
    }
    cr_assert_eq(dial_addr(&rig, "unix:/nonexistent/myra.sock", NULL), 0);
    rig_until(&rig, &rig.closed, 6);
    cr_assert_eq(rig.reason, MYRA_CLOSE_CONNECT);
    cr_assert_eq(rig.err, -ENOENT);
    cr_assert_eq(rig.opened, 0);
    rig_fini(&rig);
}

Test(close, connecting_has_a_deadline)
{
    struct myra_conn_options options;
    struct sockaddr_in in = { .sin_family = AF_INET };
    socklen_t len = sizeof(in);
    int fds[8], listener;
    struct rig rig;

    /* A listener that nobody accepts from, with its queue full. */
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    cr_assert_eq(bind(listener, (struct sockaddr *)&in, len), 0);
    cr_assert_eq(listen(listener, 0), 0);
    cr_assert_eq(getsockname(listener, (struct sockaddr *)&in, &len), 0);
    for (int i = 0; i < 8; i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        connect(fds[i], (struct sockaddr *)&in, len);
    }
    rig_init(&rig, 0, 0, NULL, NULL);
    myra_conn_options_init(&options);
    options.connect_timeout_ns = 60 * MYI_MS_NS;
    {
        struct myra_conn *conn;
        const uint64_t start = myra_clock_ns();

        cr_assert_eq(myra_connect(rig.loop, (struct sockaddr *)&in, len,
                                  &options, &rig_events, &rig, &conn),
                     0);
        rig_until(&rig, &rig.closed, 1);
        cr_assert_geq(myra_clock_ns() - start, 60 * MYI_MS_NS);
    }
    cr_assert_eq(rig.reason, MYRA_CLOSE_CONNECT);
    cr_assert_eq(rig.err, -ETIMEDOUT);
    for (int i = 0; i < 8; i++)
        close(fds[i]);
    close(listener);
    rig_fini(&rig);
}

Test(close, a_connecting_one_can_be_closed_and_aborted)
{
    struct rig rig;

    rig_init(&rig, 0, 0, NULL, NULL);
    for (int i = 0; i < 20; i++) {
        struct sockaddr_storage addr;
        struct myra_conn *conn;
        struct rig dialled = { 0 };
        socklen_t len;

        cr_assert_eq(myra_addr_parse(rig.addr, &addr, &len), 0);
        cr_assert_eq(myra_connect(rig.loop, (struct sockaddr *)&addr, len,
                                  NULL, &rig_events, &dialled, &conn),
                     0);
        if (i % 2 == 0)
            myra_conn_close(conn);
        else
            myra_conn_abort(conn);
        rig_until(&rig, &dialled.closed, 1);
        cr_assert_eq(dialled.opened, 0);
    }
    myra_loop_free(rig.loop);
}

Test(close, no_delay_is_set_on_both_kinds_of_connection)
{
    struct rig rig, dialled = { 0 };
    struct sockaddr_storage addr;
    struct myra_conn *conn;
    socklen_t len, value_len = sizeof(int);
    int value = 0;

    rig_init(&rig, 0, 0, NULL, NULL);
    cr_assert_eq(myra_addr_parse(rig.addr, &addr, &len), 0);
    cr_assert_eq(myra_connect(rig.loop, (struct sockaddr *)&addr, len, NULL,
                              &rig_events, &dialled, &conn),
                 0);
    rig_until(&rig, &rig.opened, 1);
    rig_until(&rig, &dialled.opened, 1);
    getsockopt(conn->io.fd, IPPROTO_TCP, TCP_NODELAY, &value, &value_len);
    cr_assert_neq(value, 0);
    value = 0;
    getsockopt(rig.conn->io.fd, IPPROTO_TCP, TCP_NODELAY, &value,
               &value_len);
    cr_assert_neq(value, 0);
    myra_loop_free(rig.loop);
    cr_assert_eq(dialled.reason, MYRA_CLOSE_LOOP);
}

Test(close, freeing_the_loop_ends_everything)
{
    const int fds = rig_fd_count();
    static uint8_t bytes[1000000];
    struct rig rig;
    int peers[20];

    rig_init(&rig, 0, 0, NULL, NULL);
    for (int i = 0; i < 20; i++) {
        peers[i] = rig_dial(&rig);
        rig_until(&rig, &rig.opened, i + 1);
        if (i % 3 == 0)
            cr_assert_eq(myra_conn_send(rig.conn, bytes, sizeof(bytes)), 0);
        if (i % 3 == 1)
            myra_conn_pause(rig.conn);
        if (i % 4 == 1)
            cr_assert_eq(send(peers[i], bytes, 50000, MSG_DONTWAIT) > 0, 1);
    }
    rig_spin(&rig, 3);
    myra_loop_free(rig.loop);
    cr_assert_eq(rig.closed, 20);
    for (int i = 0; i < 20; i++)
        close(peers[i]);
    cr_assert_eq(rig_fd_count(), fds);
}

/* What the system had accepted already belongs to us. */
Test(close, a_closing_listener_takes_its_queue_along)
{
    struct rig rig;
    int fds[10];

    rig_init(&rig, 0, 0, NULL, NULL);
    for (int i = 0; i < 10; i++)
        fds[i] = rig_dial(&rig);
    rig.is_echo = 1;
    myra_listener_close(rig.listener);
    myra_listener_close(rig.listener);
    rig.listener = NULL;
    rig_until(&rig, &rig.opened, 10);
    for (int i = 0; i < 10; i++) {
        char byte;

        cr_assert_eq(send(fds[i], "x", 1, 0), 1);
        rig_until_size(&rig, &rig.got, (size_t)i + 1);
        rig_spin(&rig, 2);
        cr_assert_eq(recv(fds[i], &byte, 1, 0), 1);
        close(fds[i]);
    }
    rig_until(&rig, &rig.closed, 10);
    rig_fini(&rig);
}

/* A full socket whose peer has ended its own side: the wait for room may not
 * become a busy loop. */
Test(close, a_full_socket_after_a_fin_costs_nothing)
{
    struct rig_peer peer = { .recv_len = 8000001 };
    static uint8_t bytes[8000000];
    struct myra_loop_stats before, after;
    struct rig rig;
    uint64_t end;

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = rig_byte(i);
    rig_init(&rig, 0, 0, NULL, NULL);
    peer.fd = rig_dial(&rig);
    shutdown(peer.fd, SHUT_WR);
    rig_until(&rig, &rig.eofs, 1);
    cr_assert_eq(myra_conn_send(rig.conn, bytes, sizeof(bytes)), 0);
    rig_until(&rig, &rig.highs, 1);
    rig_spin(&rig, 20);
    myra_loop_read_stats(rig.loop, &before);
    end = myra_clock_ns() + 200 * MYI_MS_NS;
    while (myra_clock_ns() < end)
        cr_assert_geq(myra_loop_step(rig.loop, 20 * (int64_t)MYI_MS_NS), 0);
    myra_loop_read_stats(rig.loop, &after);
    cr_assert_lt(after.syscalls - before.syscalls, 100);
    cr_assert_gt(myra_conn_queued(rig.conn), 0);
    rig_peer_start(&peer);
    myra_conn_close(rig.conn);
    rig_peer_join(&rig, &peer);
    cr_assert_eq(peer.received, sizeof(bytes));
    close(peer.fd);
    rig_until(&rig, &rig.closed, 1);
    rig_fini(&rig);
}
