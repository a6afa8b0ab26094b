/* SPDX-License-Identifier: MIT */
/*
 * uring-token against the contract of backends/backend.h, without lib/net:
 * connect, watches, close in every state, waiting and waking.
 */
#include "config.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/uring_rig.h"

#define MS 1000000LL

static struct rig rig;

static void setup(void)
{
    rig_init(&rig);
}

TestSuite(uring_backend, .init = setup, .timeout = 60);

Test(uring_backend, echoes)
{
    struct rig_seat *seat;
    int fd;

    rig_open(&rig, 8, 256, 0, 0);
    rig_listen(&rig);
    fd = rig_pair(&rig, &seat);
    rig_echo_once(&rig, fd, "hello");
    rig_echo_once(&rig, fd, "again");
    close(fd);
    rig_until(&rig, &seat->has_fin, 1);
    rig_close(&rig);
}

Test(uring_backend, echoes_with_features_off)
{
    static const uint32_t off[] = { MYI_FEAT_MULTISHOT, MYI_FEAT_BATCH,
                                    MYI_FEAT_MULTISHOT | MYI_FEAT_BATCH };
    struct rig_seat *seat;
    size_t i;
    int fd;

    for (i = 0; i < 3; i++) {
        setup();
        rig_open(&rig, 8, 256, off[i], 0);
        cr_assert_eq(rig.be->features & off[i], 0);
        rig_listen(&rig);
        fd = rig_pair(&rig, &seat);
        rig_echo_once(&rig, fd, "hello");
        rig_echo_once(&rig, fd, "again");
        close(fd);
        rig_close(&rig);
    }
}

Test(uring_backend, echoes_while_spinning)
{
    struct rig_seat *seat;
    int fd;

    rig_open(&rig, 8, 256, 0, 1);
    rig_listen(&rig);
    fd = rig_pair(&rig, &seat);
    rig_echo_once(&rig, fd, "hello");
    close(fd);
    rig_close(&rig);
}

/* ---- Connect and poll --------------------------------------------------- */

static struct rig_seat *start_connect(uint16_t port)
{
    struct sockaddr_in addr;
    struct rig_seat *seat;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    cr_assert_geq(fd, 0);
    memset(&addr, 0, sizeof(addr));
    addr.sin_family = AF_INET;
    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    addr.sin_port = htons(port);
    seat = rig_take(&rig, MYI_IO_CONN, fd);
    cr_assert_eq(rig.ops->connect(rig.be, &seat->io, (struct sockaddr *)&addr,
                                  sizeof(addr)),
                 0);
    /* The address may go at once. */
    memset(&addr, 0, sizeof(addr));
    return seat;
}

Test(uring_backend, connects)
{
    struct rig_seat *seat;

    rig_open(&rig, 8, 64, 0, 0);
    rig_listen(&rig);
    seat = start_connect(rig.port);
    rig_until(&rig, &seat->connects, 1);
    cr_assert_eq(seat->connect_res, 0);
    rig_until(&rig, &rig.accepted, 1);
    rig_close(&rig);
}

Test(uring_backend, a_refused_connect_is_reported)
{
    struct rig_seat *seat;
    uint16_t port;

    rig_open(&rig, 8, 64, 0, 0);
    rig_listen(&rig);
    port = rig.port;
    rig_close_seat(&rig, rig.listener);
    rig_until(&rig, &rig.closed, 1);
    seat = start_connect(port);
    rig_until(&rig, &seat->connects, 1);
    cr_assert_eq(seat->connect_res, -ECONNREFUSED);
    rig_close(&rig);
}

Test(uring_backend, a_watch_is_level_triggered_and_can_change)
{
    struct rig_seat *seat;
    char byte;
    int pair[2];
    int before;

    rig_open(&rig, 8, 64, 0, 0);
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    seat = rig_take(&rig, MYI_IO_WATCH, pair[0]);
    cr_assert_eq(rig.ops->poll(rig.be, &seat->io, POLLIN), 0);
    rig_turns(&rig, 3);
    cr_assert_eq(seat->polls, 0);
    cr_assert_eq(send(pair[1], "x", 1, 0), 1);
    rig_until(&rig, &seat->polls, 3); /* nobody reads: again and again */
    cr_assert_eq(seat->revents, POLLIN);

    cr_assert_eq(recv(pair[0], &byte, 1, 0), 1);
    rig_turns(&rig, 3);
    cr_assert_eq(rig.ops->poll(rig.be, &seat->io, POLLOUT), 0);
    before = seat->polls;
    rig_until(&rig, &seat->polls, before + 3);
    cr_assert_eq(seat->revents, POLLOUT);

    cr_assert_eq(rig.ops->poll(rig.be, &seat->io, 0), 0);
    rig_turns(&rig, 4);
    before = seat->polls;
    rig_turns(&rig, 4);
    cr_assert_eq(seat->polls, before);

    rig_close_seat(&rig, seat);
    rig_until(&rig, &rig.closed, 1);
    cr_assert_eq(send(pair[1], "x", 1, 0), 1, "the watched was closed");
    close(pair[0]);
    close(pair[1]);
    rig_close(&rig);
}

/* ---- Close -------------------------------------------------------------- */

Test(uring_backend, closes_in_every_state)
{
    static uint8_t big[8 << 20];
    struct iovec iov = { big, sizeof(big) };
    struct rig_seat *seats[7];
    int fds[6];
    int pair[2];
    int i;

    rig.mode = RIG_DROP;
    rig_open(&rig, 8, 64, 0, 0);
    rig_listen(&rig);
    for (i = 0; i < 5; i++)
        fds[i] = rig_pair(&rig, &seats[i]);
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    rig.ops->recv_stop(rig.be, &seats[0]->io); /* nothing in flight */
    rig_turns(&rig, 3);
    seats[2]->is_sending = 1; /* a send that blocks */
    cr_assert_eq(rig.ops->send(rig.be, &seats[2]->io, &iov, 1), 0);
    rig_turns(&rig, 2);
    rig.ops->recv_stop(rig.be, &seats[3]->io); /* a cancel not yet made */
    cr_assert_eq(send(fds[4], "x", 1, 0), 1);  /* data not yet seen */
    seats[5] = rig_take(&rig, MYI_IO_WATCH, pair[0]);
    cr_assert_eq(rig.ops->poll(rig.be, &seats[5]->io, POLLIN), 0);
    rig_turns(&rig, 1);
    seats[6] = start_connect(rig.port); /* not yet submitted */
    for (i = 0; i < 7; i++) {
        rig_close_seat(&rig, seats[i]);
        rig_close_seat(&rig, seats[i]);
        cr_assert_eq(seats[i]->closed, 0, "reported by the call itself");
    }
    rig_close_seat(&rig, rig.listener);
    rig_until(&rig, &rig.closed, 8);
    for (i = 0; i < 5; i++)
        close(fds[i]);
    close(pair[0]);
    close(pair[1]);
    rig_close(&rig);
}

/* Close sends no FIN of its own before an abort's reset: a peer must not take
 * a torn stream for a whole one. */
Test(uring_backend, an_abort_is_a_reset_and_no_fin)
{
    const struct linger hard = { 1, 0 };
    struct rig_seat *seat;
    char byte;
    int fd;

    rig_open(&rig, 8, 64, 0, 0);
    rig_listen(&rig);
    fd = rig_pair(&rig, &seat);
    setsockopt(seat->io.fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
    rig_close_seat(&rig, seat);
    rig_until(&rig, &rig.closed, 1);
    cr_assert_eq(recv(fd, &byte, 1, 0), -1);
    cr_assert_eq(errno, ECONNRESET);
    close(fd);
    rig_close(&rig);
}

Test(uring_backend, descriptors_are_reused_without_stale_reports)
{
    struct rig_seat *seat;
    int round;
    int fd;

    rig.closes_at_fin = 1;
    rig_open(&rig, 8, 64, 0, 0);
    rig_listen(&rig);
    for (round = 0; round < 500; round++) {
        fd = rig_pair(&rig, &seat);
        rig_echo_once(&rig, fd, "abcdefgh");
        if (round % 3 == 0)
            cr_assert_eq(send(fd, "late", 4, 0), 4);
        if (round % 2)
            rig_close_seat(&rig, seat);
        close(fd);
    }
    rig_until(&rig, &rig.closed, 500);
    cr_assert_lt(rig.used, 8);
    rig_close(&rig);
}

/* ---- Waiting and waking ------------------------------------------------- */

static void *wake_thread(void *ctx)
{
    struct rig *r = ctx;

    while (!__atomic_load_n(&((struct myi_uring *)r->be)->is_parked,
                            __ATOMIC_SEQ_CST))
        sched_yield();
    r->ops->wake(r->be);
    return NULL;
}

Test(uring_backend, wake_ends_the_wait_of_another_thread)
{
    pthread_t thread;
    int round;

    rig_open(&rig, 8, 64, 0, 0);
    for (round = 1; round <= 50; round++) {
        cr_assert_eq(pthread_create(&thread, NULL, wake_thread, &rig), 0);
        cr_assert_gt(rig_turn(&rig, -1), 0);
        cr_assert_eq(rig.wakes, round);
        pthread_join(thread, NULL);
    }
    rig_close(&rig);
}

Test(uring_backend, wakes_are_coalesced_and_kept_for_the_next_wait)
{
    int i;

    rig_open(&rig, 8, 64, 0, 0);
    for (i = 0; i < 10; i++)
        cr_assert_eq(rig.ops->wake(rig.be), 0);
    cr_assert_eq(rig_turn(&rig, -1), 1);
    cr_assert_eq(rig.wakes, 1);
    cr_assert_eq(rig_turn(&rig, 0), 0);
    rig_close(&rig);
}

static void on_alarm(int signo)
{
    (void)signo;
    if (rig.be)
        rig.ops->wake(rig.be);
}

Test(uring_backend, a_signal_handler_can_wake)
{
    struct sigaction action;
    struct itimerval soon = { { 0, 0 }, { 0, 20000 } };

    memset(&action, 0, sizeof(action));
    action.sa_handler = on_alarm;
    rig_open(&rig, 8, 64, 0, 0);
    rig_turn(&rig, 0);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &soon, NULL);
    cr_assert_gt(rig_turn(&rig, 5000 * MS), 0);
    cr_assert_eq(rig.wakes, 1);
    rig_close(&rig);
}

static void ignore_signal(int signo)
{
    (void)signo;
}

Test(uring_backend, timeouts_are_kept_under_signals)
{
    struct itimerval often = { { 0, 1000 }, { 0, 1000 } };
    struct itimerval never = { { 0, 0 }, { 0, 0 } };
    struct sigaction action;
    double start;
    double took;

    memset(&action, 0, sizeof(action));
    action.sa_handler = ignore_signal;
    sigaction(SIGALRM, &action, NULL);
    rig_open(&rig, 8, 64, 0, 0);
    start = rig_seconds();
    setitimer(ITIMER_REAL, &often, NULL);
    cr_assert_eq(rig_turn(&rig, 50 * MS), 0);
    setitimer(ITIMER_REAL, &never, NULL);
    took = rig_seconds() - start;
    cr_assert_geq(took, 0.05);
    cr_assert_lt(took, 2);
    start = rig_seconds();
    cr_assert_eq(rig_turn(&rig, 0), 0);
    rig_close(&rig);
}

Test(uring_backend, an_idle_spin_makes_no_system_call)
{
    uint64_t before;
    int i;

    rig_open(&rig, 8, 64, 0, 1);
    rig_listen(&rig);
    rig_turns(&rig, 3);
    before = rig.be->syscalls;
    for (i = 0; i < 1000; i++)
        cr_assert_eq(rig_turn(&rig, 0), 0);
    cr_assert_eq(rig.be->syscalls, before);
    rig_close(&rig);
}

/* All that a turn starts and waits for is one enter: for messages that are
 * there together, one that takes them and one that sends the answers. (The
 * kernel stops at 20 of them an enter.) */
#define BATCH 16

Test(uring_backend, a_batch_is_two_enters)
{
    struct rig_seat *seat;
    uint64_t before;
    int fds[BATCH];
    int round;
    int i;

    rig_open(&rig, 128, 64, 0, 0);
    rig_listen(&rig);
    for (i = 0; i < BATCH; i++)
        fds[i] = rig_pair(&rig, &seat);
    rig_turns(&rig, 4);
    before = rig.be->syscalls;
    for (round = 0; round < 10; round++) {
        for (i = 0; i < BATCH; i++)
            cr_assert_eq(send(fds[i], "x", 1, 0), 1);
        for (i = 0; i < BATCH; i++)
            rig_expect(&rig, fds[i], "x");
    }
    cr_assert_leq(rig.be->syscalls - before, 2 * 10 + 2, "%d syscalls",
                  (int)(rig.be->syscalls - before));
    for (i = 0; i < BATCH; i++)
        close(fds[i]);
    rig_close(&rig);
}

/* ---- Fork --------------------------------------------------------------- */

/* 1 when the mapping at ptr does not go to a child ("dc" in its flags). */
static int is_kept_from_children(const void *ptr)
{
    FILE *maps = fopen("/proc/self/smaps", "r");
    unsigned long from, to;
    int is_here = 0;
    int found = 0;
    char line[512];

    cr_assert_not_null(maps);
    while (fgets(line, sizeof(line), maps)) {
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            is_here = (uintptr_t)ptr >= from && (uintptr_t)ptr < to;
        else if (is_here && !strncmp(line, "VmFlags:", 8))
            found = strstr(line, " dc") != NULL;
    }
    fclose(maps);
    return found;
}

Test(uring_backend, rings_are_not_mapped_in_children)
{
    struct myi_uring *u;

    rig_open(&rig, 8, 64, 0, 0);
    u = (struct myi_uring *)rig.be;
    cr_assert(is_kept_from_children(u->ring.uring.sq.sqes));
    cr_assert(is_kept_from_children(u->ring.uring.sq.khead));
    cr_assert(is_kept_from_children(u->ring.uring.cq.cqes));
    cr_assert(is_kept_from_children(u->bufs.shared));
    rig_close(&rig);
}

Test(uring_backend, a_child_cannot_disturb_the_loop)
{
    struct rig_seat *seat;
    int status = 0;
    pid_t child;
    int fd;

    rig_open(&rig, 8, 64, 0, 0);
    rig_listen(&rig);
    fd = rig_pair(&rig, &seat);
    rig_echo_once(&rig, fd, "hello");
    child = fork();
    if (child == 0) {
        rig.ops->close_loop(rig.be);
        _exit(0);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    rig_echo_once(&rig, fd, "again");
    rig_echo_once(&rig, fd, "and again, with refilled buffers");
    close(fd);
    rig_close(&rig);
}
