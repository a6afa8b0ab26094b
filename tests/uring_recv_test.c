/* SPDX-License-Identifier: MIT */
/*
 * uring-token's receiving and accepting: bulk, want of buffers, stop and
 * start, the end of a stream, the limit of descriptors.
 */
#include "config.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/uring_rig.h"

#define MS 1000000LL

static struct rig rig;

static void setup(void)
{
    rig_init(&rig);
}

TestSuite(uring_recv, .init = setup, .timeout = 60);

/* More bytes than all buffers and both socket buffers hold, with a reader
 * that starts late. */
static void echo_bulk(size_t total)
{
    struct rig_seat *seat;
    const double end = rig_seconds() + 30;
    size_t sent = 0;
    size_t got = 0;
    size_t i;
    uint8_t *bytes = malloc(total);
    uint8_t *back = malloc(total);
    int fd;

    for (i = 0; i < total; i++)
        bytes[i] = (uint8_t)(i * 2654435761u >> 13);
    rig_listen(&rig);
    fd = rig_pair(&rig, &seat);
    while (got < total) {
        ssize_t res;

        cr_assert_lt(rig_seconds(), end);
        if (sent < total) {
            res = send(fd, bytes + sent, total - sent, MSG_DONTWAIT);
            if (res > 0) {
                sent += (size_t)res;
                rig_turns(&rig, 1);
                continue;
            }
        }
        res = recv(fd, back + got, total - got, MSG_DONTWAIT);
        if (res > 0)
            got += (size_t)res;
        cr_assert_geq(rig_turn(&rig, res > 0 ? 0 : 1 * MS), 0);
    }
    cr_assert_arr_eq(bytes, back, total);
    close(fd);
    free(bytes);
    free(back);
}

Test(uring_recv, bulk_goes_through_two_buffers)
{
    rig_open(&rig, 2, 1024, 0, 0);
    echo_bulk(1 << 20);
    rig_close(&rig);
}

Test(uring_recv, bulk_goes_through_a_tiny_ring)
{
    rig.faults.sys.sq_entries = 2;
    rig.faults.sys.cq_entries = 4;
    rig_open(&rig, 64, 512, 0, 0);
    echo_bulk(4 << 20);
    rig_close(&rig);
}

#define MANY 64

static void dial_many(int *fds, struct rig_seat **seats)
{
    int i;

    for (i = 0; i < MANY; i++)
        fds[i] = rig_pair(&rig, &seats[i]);
}

static void *release_thread(void *ctx)
{
    rig_release_held(ctx);
    return NULL;
}

static void release_some(int release_elsewhere)
{
    pthread_t thread;

    if (!release_elsewhere) {
        rig_release_held(&rig);
        return;
    }
    cr_assert_eq(pthread_create(&thread, NULL, release_thread, &rig), 0);
    pthread_join(thread, NULL);
}

static int total_received(struct rig_seat **seats)
{
    uint64_t total = 0;
    int i;

    for (i = 0; i < MANY; i++)
        total += seats[i]->received;
    return (int)total;
}

/* 64 connections with a message each, few buffers, all leases kept: who finds
 * none waits without work, and is served, oldest first, when they come home. */
static void starve_many(uint32_t buf_count, int release_elsewhere)
{
    const double end = rig_seconds() + 20;
    struct rig_seat *seats[MANY];
    unsigned quiet_enters;
    unsigned submitted;
    int fds[MANY];
    int i;

    rig.mode = RIG_HOLD;
    rig_open(&rig, buf_count, 64, 0, 0);
    rig_listen(&rig);
    dial_many(fds, seats);
    for (i = 0; i < MANY; i++)
        cr_assert_eq(send(fds[i], "x", 1, 0), 1);
    while (rig.held_count < buf_count)
        cr_assert_geq(rig_turn(&rig, 10 * MS), 0);
    rig_turns(&rig, 2 * MANY);
    cr_assert_gt(rig.starved, 0);
    cr_assert_eq(rig.held_count, buf_count);

    /* Nobody tries again while there is nothing to be had. */
    submitted = rig.faults.submitted;
    quiet_enters = rig.faults.enters;
    rig_turn(&rig, 20 * MS);
    cr_assert_eq(rig.faults.submitted, submitted);
    cr_assert_leq(rig.faults.enters, quiet_enters + 2);

    while (total_received(seats) < MANY) {
        cr_assert_lt(rig_seconds(), end);
        release_some(release_elsewhere);
        cr_assert_geq(rig_turn(&rig, 1000 * MS), 0);
    }
    /* Some SQEs for each connection and each lease, not for each wait. */
    cr_assert_leq(rig.faults.submitted, submitted + 4 * MANY);
    for (i = 0; i < MANY; i++) {
        cr_assert_eq(seats[i]->received, 1);
        close(fds[i]);
    }
    rig_close(&rig);
}

Test(uring_recv, starved_receives_go_on_with_two_buffers)
{
    starve_many(2, 0);
}

Test(uring_recv, starved_receives_go_on_with_eight_buffers)
{
    starve_many(8, 0);
}

Test(uring_recv, starved_receives_learn_of_releases_elsewhere)
{
    starve_many(4, 1);
}

static void *late_release(void *ctx)
{
    struct rig *r = ctx;

    /* Once the loop is in the kernel. */
    while (!__atomic_load_n(&((struct myi_uring *)r->be)->is_parked,
                            __ATOMIC_SEQ_CST))
        sched_yield();
    myra_buf_release(r->held[0]);
    return NULL;
}

Test(uring_recv, a_release_elsewhere_ends_the_wait_of_the_starved)
{
    struct rig_seat *seats[3];
    pthread_t thread;
    int fds[3];
    int i;

    rig.mode = RIG_HOLD;
    rig_open(&rig, 2, 64, 0, 0);
    rig_listen(&rig);
    for (i = 0; i < 3; i++) {
        fds[i] = rig_pair(&rig, &seats[i]);
        cr_assert_eq(send(fds[i], "x", 1, 0), 1);
    }
    while (rig.held_count < 2)
        cr_assert_geq(rig_turn(&rig, 10 * MS), 0);
    rig_turns(&rig, 4);
    cr_assert_eq(pthread_create(&thread, NULL, late_release, &rig), 0);
    cr_assert_gt(rig_turn(&rig, 4000 * MS), 0);
    pthread_join(thread, NULL);
    rig.held[0] = rig.held[--rig.held_count];
    for (i = 0; i < 3; i++) {
        cr_assert_eq(seats[i]->received, 1);
        close(fds[i]);
    }
    rig_close(&rig);
}

/* Receives that never had data starve too, where they start without a
 * buffer; one buffer that comes home is enough for all of them to go on. */
Test(uring_recv, one_buffer_arms_all_that_were_starved)
{
    struct rig_seat *seats[MANY];
    double start;
    int fds[MANY];
    int i;

    rig.mode = RIG_HOLD;
    rig_open(&rig, 1, 64, 0, 0);
    rig_listen(&rig);
    fds[0] = rig_pair(&rig, &seats[0]);
    cr_assert_eq(send(fds[0], "x", 1, 0), 1);
    while (rig.held_count < 1)
        cr_assert_geq(rig_turn(&rig, 10 * MS), 0);
    for (i = 1; i < MANY; i++)
        fds[i] = rig_pair(&rig, &seats[i]);
    rig_turns(&rig, 3);
    cr_assert_geq(rig.starved, MANY - 1);
    rig_release_held(&rig);
    cr_assert_eq(send(fds[MANY - 1], "x", 1, 0), 1);
    start = rig_seconds();
    while (seats[MANY - 1]->received == 0) {
        cr_assert_geq(rig_turn(&rig, 4000 * MS), 0);
        cr_assert_lt(rig_seconds(), start + 2, "the loop slept");
    }
    for (i = 0; i < MANY; i++)
        close(fds[i]);
    rig_close(&rig);
}

Test(uring_recv, a_starved_receive_can_be_stopped_and_closed)
{
    struct rig_seat *seats[4];
    int fds[4];
    int i;

    rig.mode = RIG_HOLD;
    rig_open(&rig, 1, 64, 0, 0);
    rig_listen(&rig);
    for (i = 0; i < 4; i++) {
        fds[i] = rig_pair(&rig, &seats[i]);
        cr_assert_eq(send(fds[i], "x", 1, 0), 1);
        rig_until(&rig, &rig.accepted, i + 1);
    }
    rig_turns(&rig, 8);
    cr_assert_eq(rig.held_count, 1);
    rig.ops->recv_stop(rig.be, &seats[1]->io);
    rig_close_seat(&rig, seats[2]);
    rig_until(&rig, &seats[2]->closed, 1);
    rig_release_held(&rig);
    rig_turns(&rig, 8);
    cr_assert_eq(seats[1]->received, 0);
    cr_assert_eq(seats[3]->received, 1);
    rig_release_held(&rig);
    cr_assert_eq(rig.ops->recv_start(rig.be, &seats[1]->io), 0);
    rig_turns(&rig, 8);
    cr_assert_eq(seats[1]->received, 1);
    for (i = 0; i < 4; i++)
        close(fds[i]);
    rig_close(&rig);
}

/* ---- Stop and start ----------------------------------------------------- */

/* Whatever the order of stop, start and data, every byte comes once, in
 * order, and none after the stop has settled. */
Test(uring_recv, stop_and_start_lose_nothing)
{
    struct rig_seat *seat;
    unsigned sent = 0;
    unsigned i;
    int fd;

    rig.mode = RIG_DROP;
    rig_open(&rig, 8, 64, 0, 0);
    rig_listen(&rig);
    fd = rig_pair(&rig, &seat);
    for (i = 0; i < 2000; i++) {
        switch (uring_faults_draw(&rig.faults, 5)) {
        case 0:
            rig.ops->recv_stop(rig.be, &seat->io);
            break;
        case 1:
            cr_assert_eq(rig.ops->recv_start(rig.be, &seat->io), 0);
            break;
        case 2:
            cr_assert_eq(send(fd, "abc", 3, 0), 3);
            sent += 3;
            break;
        default:
            rig_turns(&rig, 1);
            break;
        }
    }
    rig.ops->recv_stop(rig.be, &seat->io);
    rig_turns(&rig, 4);
    i = (unsigned)seat->received;
    cr_assert_eq(send(fd, "abc", 3, 0), 3);
    rig_turns(&rig, 4);
    cr_assert_eq(seat->received, i, "data after the stop had settled");
    cr_assert_eq(rig.ops->recv_start(rig.be, &seat->io), 0);
    rig_turns(&rig, 4);
    cr_assert_eq(seat->received, sent + 3);
    close(fd);
    rig_close(&rig);
}

Test(uring_recv, a_fin_behind_a_stop_comes_after_the_start)
{
    struct rig_seat *seat;
    int fd;

    rig_open(&rig, 8, 64, 0, 0);
    rig_listen(&rig);
    fd = rig_pair(&rig, &seat);
    rig.ops->recv_stop(rig.be, &seat->io);
    rig_turns(&rig, 3);
    close(fd);
    rig_turns(&rig, 3);
    cr_assert_eq(seat->has_fin, 0);
    cr_assert_eq(rig.ops->recv_start(rig.be, &seat->io), 0);
    rig_until(&rig, &seat->has_fin, 1);
    rig_turns(&rig, 4); /* once */
    rig_close(&rig);
}

Test(uring_recv, a_reset_is_reported)
{
    const struct linger hard = { 1, 0 };
    struct rig_seat *seat;
    int fd;

    rig_open(&rig, 8, 64, 0, 0);
    rig_listen(&rig);
    fd = rig_pair(&rig, &seat);
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
    close(fd);
    while (seat->recv_err == 0)
        cr_assert_geq(rig_turn(&rig, 100 * MS), 0);
    cr_assert_eq(seat->recv_err, -ECONNRESET);
    rig_close(&rig);
}

Test(uring_recv, accepting_stops_and_starts)
{
    int fds[3];
    int i;

    rig_open(&rig, 8, 64, 0, 0);
    rig_listen(&rig);
    fds[0] = rig_dial(&rig);
    rig_until(&rig, &rig.accepted, 1);
    rig.ops->accept_stop(rig.be, &rig.listener->io);
    rig_turns(&rig, 3);
    cr_assert_eq(rig.listener->io.inflight, 0);
    fds[1] = rig_dial(&rig);
    fds[2] = rig_dial(&rig);
    rig_turns(&rig, 3);
    cr_assert_eq(rig.accepted, 1);
    cr_assert_eq(rig.ops->accept_start(rig.be, &rig.listener->io), 0);
    cr_assert_eq(rig.ops->accept_start(rig.be, &rig.listener->io), 0);
    rig_until(&rig, &rig.accepted, 3);
    for (i = 0; i < 3; i++)
        close(fds[i]);
    rig_close(&rig);
}

/* At the limit the connection stays in the system's queue, nothing spins, and
 * the next start takes it. */
Test(uring_recv, accepting_pauses_at_the_descriptor_limit)
{
    struct rlimit old;
    struct rlimit low;
    unsigned submitted;
    int client;
    int top;

    rig_open(&rig, 8, 64, 0, 0);
    getrlimit(RLIMIT_NOFILE, &old);
    rig_listen(&rig);
    rig.ops->accept_stop(rig.be, &rig.listener->io);
    rig_turns(&rig, 3);
    client = rig_dial(&rig);
    top = dup(0);
    close(top);
    low = old;
    low.rlim_cur = (rlim_t)top;
    /* The kernel looks at the limit of the arming. */
    setrlimit(RLIMIT_NOFILE, &low);
    cr_assert_eq(rig.ops->accept_start(rig.be, &rig.listener->io), 0);
    while (rig.listener->accept_err == 0)
        cr_assert_geq(rig_turn(&rig, 100 * MS), 0);
    setrlimit(RLIMIT_NOFILE, &old);
    cr_assert_eq(rig.listener->accept_err, -EMFILE);
    submitted = rig.faults.submitted;
    rig_turns(&rig, 8);
    cr_assert_eq(rig.faults.submitted, submitted);
    cr_assert_eq(rig.accepted, 0);
    cr_assert_eq(rig.ops->accept_start(rig.be, &rig.listener->io), 0);
    rig_until(&rig, &rig.accepted, 1);
    close(client);
    rig_close(&rig);
}
