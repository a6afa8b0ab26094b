/* SPDX-License-Identifier: MIT */
/*
 * Conformance of backends, part 1: bytes. Sizes, tiny pools and tiny socket
 * buffers, order, joining of what is left, pausing, water marks, fairness.
 */
#include "config.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/net/net_priv.h"
#include "tests/net_rig.h"

TestSuite(flow, .timeout = 60);

static void echo(struct rig *rig, size_t len)
{
    struct rig_peer peer = { .fd = rig_dial(rig),
                             .send_len = len,
                             .recv_len = len + 1,
                             .shut_after = 1 };
    const int closed = rig->closed;

    rig->is_echo = 1;
    rig_peer_start(&peer);
    rig_peer_join(rig, &peer);
    cr_assert_eq(peer.received, len, "%zu of %zu", peer.received, len);
    close(peer.fd);
    rig_until(rig, &rig->closed, closed + 1);
    cr_assert_eq(rig->reason, MYRA_CLOSE_LOCAL);
}

static const size_t sizes[] = { 0,    1,    2,     63,    64,     65,
                                127,  4031, 4032,  4033,  8064,   8065,
                                65535, 65536, 65537, 262144, 1048576 };

Test(flow, echoes_every_size)
{
    struct rig rig;

    rig_init(&rig, 0, 0, NULL, NULL);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        echo(&rig, sizes[i]);
    rig_fini(&rig);
}

Test(flow, echoes_with_two_buffers_of_64_bytes)
{
    struct rig rig;

    rig_init(&rig, 2, 64, NULL, NULL);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]) - 2; i++)
        echo(&rig, sizes[i]);
    rig_fini(&rig);
}

Test(flow, echoes_through_tiny_socket_buffers)
{
    struct myra_listen_options options;
    struct rig rig;

    myra_listen_options_init(&options);
    options.conn.send_buf = 4096;
    options.conn.recv_buf = 4096;
    rig_init(&rig, 8, 512, NULL, &options);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]) - 1; i++)
        echo(&rig, sizes[i]);
    rig_fini(&rig);
}

Test(flow, echoes_on_ipv6_and_unix_sockets)
{
    static const char *const addrs[] = { "[::1]:0", "unix:@myra-flow-test",
                                         "unix:./myra-flow-test.sock" };
    struct rig rig;

    for (size_t i = 0; i < sizeof(addrs) / sizeof(addrs[0]); i++) {
        rig_init(&rig, 0, 0, addrs[i], NULL);
        echo(&rig, 1);
        echo(&rig, 300000);
        rig_fini(&rig);
    }
    cr_assert_neq(access("myra-flow-test.sock", F_OK), 0);
}

Test(flow, sixty_four_connections_share_four_buffers)
{
    enum { COUNT = 64 };
    struct rig_peer peers[COUNT];
    struct rig rig;

    rig_init(&rig, 4, 1024, NULL, NULL);
    rig.is_echo = 1;
    memset(peers, 0, sizeof(peers));
    for (int i = 0; i < COUNT; i++) {
        peers[i].fd = rig_dial(&rig);
        peers[i].send_len = 20000;
        peers[i].recv_len = 20001;
        peers[i].shut_after = 1;
        rig_peer_start(&peers[i]);
    }
    for (int i = 0; i < COUNT; i++) {
        rig_peer_join(&rig, &peers[i]);
        cr_assert_eq(peers[i].received, 20000);
        close(peers[i].fd);
    }
    rig_until(&rig, &rig.closed, COUNT);
    rig_fini(&rig);
}

/* Messages of 100 bytes out of any segmentation. */
Test(flow, joins_what_was_left_with_what_comes)
{
    static const size_t steps[] = { 1, 3, 99, 100, 101, 250, 5000 };
    uint8_t bytes[5000];
    struct rig rig;

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = rig_byte(i);
    for (size_t s = 0; s < sizeof(steps) / sizeof(steps[0]); s++) {
        uint64_t sum = 0;
        int fd;

        rig_init(&rig, 0, 0, NULL, NULL);
        rig.use = 100;
        fd = rig_dial(&rig);
        for (size_t at = 0; at < 5000; at += steps[s]) {
            const size_t len =
                5000 - at < steps[s] ? 5000 - at : steps[s];

            cr_assert_eq(send(fd, bytes + at, len, 0), (ssize_t)len);
            rig_until_size(&rig, &rig.got, (at + len) / 100 * 100);
        }
        for (size_t i = 0; i < 5000; i++)
            sum += bytes[i] * (uint64_t)(i + 1);
        cr_assert_eq(rig.sum, sum);
        cr_assert_eq(send(fd, bytes, 42, 0), 42);
        shutdown(fd, SHUT_WR);
        rig_until(&rig, &rig.eofs, 1);
        cr_assert_eq(rig.kept, 42);
        myra_conn_close(rig.conn);
        close(fd);
        rig_until(&rig, &rig.closed, 1);
        rig_fini(&rig);
    }
}

Test(flow, holds_a_message_up_to_the_limit_and_not_beyond)
{
    struct myra_listen_options options;
    struct rig_peer peer = { .send_len = 200000 };
    struct rig rig;

    myra_listen_options_init(&options);
    options.conn.hold_max = 50000;
    rig_init(&rig, 0, 0, NULL, &options);
    rig.use = 50000;
    peer.fd = rig_dial(&rig);
    rig_peer_start(&peer);
    rig_until_size(&rig, &rig.got, 200000);
    rig_peer_join(&rig, &peer);
    cr_assert_eq(rig.closed, 0);
    rig.use = 50001;
    peer.send_len = 50001;
    peer.done = 0;
    rig_peer_start(&peer);
    rig_until(&rig, &rig.closed, 1);
    cr_assert_eq(rig.reason, MYRA_CLOSE_LIMIT);
    rig_peer_join(&rig, &peer);
    close(peer.fd);
    rig_fini(&rig);
}

Test(flow, pausing_stops_data_and_resuming_loses_none)
{
    struct rig_peer peer = { .send_len = 3000000 };
    struct rig rig;
    size_t at;

    rig_init(&rig, 0, 0, NULL, NULL);
    peer.fd = rig_dial(&rig);
    rig_until(&rig, &rig.opened, 1);
    rig_peer_start(&peer);
    for (int i = 0; i < 20; i++) {
        rig_until_size(&rig, &rig.got, (size_t)i * 100000 + 1);
        myra_conn_pause(rig.conn);
        cr_assert(myra_conn_is_paused(rig.conn));
        at = rig.got;
        for (int turn = 0; turn < 20; turn++)
            cr_assert_geq(myra_loop_step(rig.loop, 100000), 0);
        cr_assert_eq(rig.got, at);
        myra_conn_resume(rig.conn);
        cr_assert_eq(rig.got, at, "on_data inside of resume");
    }
    rig_until_size(&rig, &rig.got, 3000000);
    rig_peer_join(&rig, &peer);
    close(peer.fd);
    rig_until(&rig, &rig.eofs, 1);
    myra_conn_close(rig.conn);
    rig_until(&rig, &rig.closed, 1);
    rig_fini(&rig);
}

Test(flow, a_pause_with_little_data_costs_no_call)
{
    struct myra_loop_stats before, after;
    struct rig rig;
    int fd;

    rig_init(&rig, 0, 0, NULL, NULL);
    fd = rig_dial(&rig);
    rig_until(&rig, &rig.opened, 1);
    myra_loop_read_stats(rig.loop, &before);
    for (int i = 0; i < 100; i++) {
        myra_conn_pause(rig.conn);
        myra_conn_resume(rig.conn);
    }
    myra_loop_read_stats(rig.loop, &after);
    cr_assert_eq(before.syscalls, after.syscalls);
    close(fd);
    rig_until(&rig, &rig.eofs, 1);
    myra_conn_close(rig.conn);
    rig_until(&rig, &rig.closed, 1);
    rig_fini(&rig);
}

Test(flow, water_marks_are_told_once_each_way)
{
    struct myra_listen_options options;
    struct rig_peer peer = { 0 };
    static uint8_t bytes[400000];
    struct rig rig;
    size_t queued;

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = rig_byte(i);
    myra_listen_options_init(&options);
    options.conn.send_buf = 8192;
    options.conn.high_mark = 100000;
    options.conn.low_mark = 50000;
    options.conn.hard_mark = 400000;
    rig_init(&rig, 0, 0, NULL, &options);
    peer.fd = rig_dial(&rig);
    rig_until(&rig, &rig.opened, 1);
    cr_assert_eq(myra_conn_send(rig.conn, bytes, 400000), 0);
    queued = myra_conn_queued(rig.conn);
    cr_assert_eq(queued, 400000);
    cr_assert_eq(myra_conn_send(rig.conn, bytes, 1), MYRA_ELIMIT);
    cr_assert_eq(myra_conn_queued(rig.conn), queued);
    rig_until(&rig, &rig.highs, 1);
    rig_spin(&rig, 20);
    cr_assert_eq(rig.highs, 1);
    cr_assert_eq(rig.lows, 0);
    peer.recv_len = 400000;
    rig_peer_start(&peer);
    rig_until(&rig, &rig.lows, 1);
    rig_until(&rig, &rig.drained, 1);
    rig_peer_join(&rig, &peer);
    cr_assert_eq(rig.lows, 1);
    cr_assert_eq(rig.drained, 1);
    close(peer.fd);
    rig_until(&rig, &rig.eofs, 1);
    myra_conn_close(rig.conn);
    rig_until(&rig, &rig.closed, 1);
    rig_fini(&rig);
}

Test(flow, reserve_and_commit_keep_the_order)
{
    struct rig_peer peer = { .recv_len = 100000 };
    struct rig rig;
    size_t at = 0;

    rig_init(&rig, 0, 0, NULL, NULL);
    peer.fd = rig_dial(&rig);
    rig_until(&rig, &rig.opened, 1);
    rig_peer_start(&peer);
    for (size_t len = 1; at < 100000; len = len * 2 % 7001 + 1) {
        const size_t part = 100000 - at < len ? 100000 - at : len;
        uint8_t *room = myra_conn_reserve(rig.conn, len);

        cr_assert_not_null(room);
        for (size_t i = 0; i < part; i++)
            room[i] = rig_byte(at + i);
        myra_conn_commit(rig.conn, part);
        at += part;
        if (len % 3 == 0)
            rig_spin(&rig, 1);
    }
    rig_peer_join(&rig, &peer);
    cr_assert_eq(peer.received, 100000);
    close(peer.fd);
    rig_until(&rig, &rig.eofs, 1);
    myra_conn_close(rig.conn);
    rig_until(&rig, &rig.closed, 1);
    rig_fini(&rig);
}

/* One that sends without end does not keep the others out. */
Test(flow, a_firehose_leaves_room_for_trickles)
{
    enum { TRICKLES = 31 };
    struct rig_peer hose = { .send_len = 200000000 };
    int fds[TRICKLES];
    struct rig rig;

    rig_init(&rig, 8, 4032, NULL, NULL);
    hose.fd = rig_dial(&rig);
    rig_peer_start(&hose);
    rig_until_size(&rig, &rig.got, 100000);
    rig.is_echo = 0;
    for (int i = 0; i < TRICKLES; i++)
        fds[i] = rig_dial(&rig);
    rig_until(&rig, &rig.opened, TRICKLES + 1);
    for (int i = 0; i < TRICKLES; i++) {
        const int eofs = rig.eofs;

        cr_assert_eq(send(fds[i], "x", 1, 0), 1);
        shutdown(fds[i], SHUT_WR);
        rig_until(&rig, &rig.eofs, eofs + 1);
        close(fds[i]);
    }
    shutdown(hose.fd, SHUT_RDWR);
    rig_peer_join(&rig, &hose);
    close(hose.fd);
    myra_loop_free(rig.loop);
}
