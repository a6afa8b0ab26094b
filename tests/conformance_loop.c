/* SPDX-License-Identifier: MIT */
/*
 * Conformance of backends, part 3: the loop. Deadlines, timers, posts, wakes,
 * watches, limits of the system, the choice of a backend.
 */
#include "config.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/net/net_priv.h"
#include "tests/net_rig.h"

TestSuite(loop, .timeout = 60);

Test(loop, a_deadline_fires_once_and_never_early)
{
    struct rig rig;
    uint64_t start;
    int fd;

    rig_init(&rig, 0, 0, NULL, NULL);
    fd = rig_dial(&rig);
    rig_until(&rig, &rig.opened, 1);
    start = myra_clock_ns();
    myra_conn_set_deadline(rig.conn, 30 * MYI_MS_NS);
    rig_until(&rig, &rig.deadlines, 1);
    cr_assert_geq(myra_clock_ns() - start, 30 * MYI_MS_NS);
    /* Moved on, then taken back. */
    myra_conn_set_deadline(rig.conn, 20 * MYI_MS_NS);
    rig_spin(&rig, 1);
    start = myra_clock_ns();
    myra_conn_set_deadline(rig.conn, 60 * MYI_MS_NS);
    rig_until(&rig, &rig.deadlines, 2);
    cr_assert_geq(myra_clock_ns() - start, 60 * MYI_MS_NS);
    /* Moved nearer. */
    myra_conn_set_deadline(rig.conn, 10000 * MYI_MS_NS);
    myra_conn_set_deadline(rig.conn, 10 * MYI_MS_NS);
    rig_until(&rig, &rig.deadlines, 3);
    myra_conn_set_deadline(rig.conn, 5 * MYI_MS_NS);
    myra_conn_set_deadline(rig.conn, 0);
    cr_assert_geq(myra_loop_step(rig.loop, 20 * (int64_t)MYI_MS_NS), 0);
    cr_assert_geq(myra_loop_step(rig.loop, 20 * (int64_t)MYI_MS_NS), 0);
    cr_assert_eq(rig.deadlines, 3);
    close(fd);
    rig_until(&rig, &rig.eofs, 1);
    myra_conn_close(rig.conn);
    rig_until(&rig, &rig.closed, 1);
    rig_fini(&rig);
}

static int fired;
static struct myra_timer second;

static void on_first(struct myra_loop *loop, struct myra_timer *timer)
{
    fired++;
    if (fired == 1)
        myra_timer_start(loop, timer, MYI_MS_NS);
    else
        myra_timer_stop(loop, &second);
}

static void on_second(struct myra_loop *loop, struct myra_timer *timer)
{
    (void)loop;
    (void)timer;
    cr_assert_fail("a stopped timer ran");
}

Test(loop, timers_start_and_stop_each_other)
{
    struct myra_timer first;
    struct myra_loop *loop;

    fired = 0;
    cr_assert_eq(myra_loop_new(NULL, &loop), 0);
    myra_timer_init(&first, on_first, NULL);
    myra_timer_init(&second, on_second, NULL);
    myra_timer_start(loop, &first, 0);
    myra_timer_start(loop, &second, 5000 * MYI_MS_NS);
    /* Runs until no timer is left. */
    cr_assert_eq(myra_loop_run(loop), 0);
    cr_assert_eq(fired, 2);
    myra_loop_free(loop);
}

/* ---- Other threads ------------------------------------------------------ */

enum { POSTERS = 8, POSTS = 2000 };

struct numbered {
    struct myra_task task;
    int poster, number;
};

static struct numbered numbered[POSTERS][POSTS];
static int next_number[POSTERS];
static int ran_total;
static struct myra_loop *post_loop;

static void on_task(struct myra_loop *loop, struct myra_task *task)
{
    const struct numbered *n = (struct numbered *)task;

    cr_assert_eq(n->number, next_number[n->poster]);
    next_number[n->poster]++;
    if (++ran_total == POSTERS * POSTS)
        myra_loop_stop(loop);
}

static void *poster(void *arg)
{
    const int id = (int)(intptr_t)arg;

    for (int i = 0; i < POSTS; i++) {
        numbered[id][i].task.fn = on_task;
        numbered[id][i].poster = id;
        numbered[id][i].number = i;
        cr_assert_eq(myra_post(post_loop, &numbered[id][i].task), 0);
    }
    return NULL;
}

Test(loop, posts_of_eight_threads_run_in_order)
{
    pthread_t threads[POSTERS];
    struct rig rig;

    ran_total = 0;
    rig_init(&rig, 0, 0, NULL, NULL);
    post_loop = rig.loop;
    for (int i = 0; i < POSTERS; i++)
        pthread_create(&threads[i], NULL, poster, (void *)(intptr_t)i);
    cr_assert_eq(myra_loop_run(rig.loop), 0);
    for (int i = 0; i < POSTERS; i++)
        pthread_join(threads[i], NULL);
    cr_assert_eq(ran_total, POSTERS * POSTS);
    rig_fini(&rig);
}

static void *waker(void *arg)
{
    cr_assert_eq(myra_wake(arg), 0);
    return NULL;
}

Test(loop, a_wake_is_never_lost)
{
    struct rig rig;

    rig_init(&rig, 0, 0, NULL, NULL);
    rig_spin(&rig, 2);
    for (int i = 0; i < 200; i++) {
        const uint64_t start = myra_clock_ns();
        pthread_t thread;

        pthread_create(&thread, NULL, waker, rig.loop);
        cr_assert_geq(myra_loop_step(rig.loop, 5000 * (int64_t)MYI_MS_NS),
                      0);
        cr_assert_lt(myra_clock_ns() - start, 4000 * MYI_MS_NS);
        pthread_join(thread, NULL);
        rig_spin(&rig, 1);
    }
    rig_fini(&rig);
}

static void *intruder(void *arg)
{
    return (void *)(intptr_t)myra_loop_step(arg, 0);
}

Test(loop, other_threads_and_children_are_refused)
{
    struct rig rig;
    pthread_t thread;
    void *result;
    pid_t child;
    int status;

    rig_init(&rig, 0, 0, NULL, NULL);
    rig_spin(&rig, 1);
    pthread_create(&thread, NULL, intruder, rig.loop);
    pthread_join(thread, &result);
    cr_assert_eq((int)(intptr_t)result, MYRA_ETHREAD);
    child = fork();
    if (child == 0)
        _exit(myra_loop_step(rig.loop, 0) == MYRA_EFORK &&
                      myra_wake(rig.loop) == MYRA_EFORK
                  ? 0
                  : 1);
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    rig_spin(&rig, 1);
    rig_fini(&rig);
}

/* ---- Watches ------------------------------------------------------------ */

static int watched;

static void on_watch(struct myra_loop *loop, int fd, int revents, void *user)
{
    (void)loop;
    (void)user;
    cr_assert((revents & (POLLIN | POLLHUP)) != 0);
    watched++;
    if (watched % 3 == 0) {
        char byte;

        cr_assert_eq(read(fd, &byte, 1), 1);
    }
}

Test(loop, a_watch_is_level_triggered)
{
    struct myra_watch *watch;
    struct rig rig;
    int fds[2];

    watched = 0;
    rig_init(&rig, 0, 0, NULL, NULL);
    cr_assert_eq(pipe(fds), 0);
    cr_assert_eq(myra_watch_open(rig.loop, fds[0], POLLIN, on_watch, NULL,
                                 &watch),
                 0);
    rig_spin(&rig, 3);
    cr_assert_eq(watched, 0);
    cr_assert_eq(write(fds[1], "ab", 2), 2);
    /* Told until the bytes are read: three times each. */
    rig_until(&rig, &watched, 6);
    rig_spin(&rig, 3);
    cr_assert_eq(watched, 6);
    myra_watch_close(watch);
    cr_assert_eq(write(fds[1], "c", 1), 1);
    rig_spin(&rig, 3);
    cr_assert_eq(watched, 6);
    close(fds[0]);
    close(fds[1]);
    rig_fini(&rig);
}

/* ---- Limits ------------------------------------------------------------- */

Test(loop, accepting_survives_the_descriptor_limit)
{
    struct myra_loop_stats stats;
    struct rlimit limit, low;
    struct rig rig;
    int fds[6], spare;

    /* The limit counts from when accepting is armed: so it comes first. */
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    low = limit;
    low.rlim_cur = 64;
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &low), 0);
    rig_init(&rig, 0, 0, NULL, NULL);
    for (int i = 0; i < 6; i++)
        fds[i] = rig_dial(&rig);
    /* Fill up all numbers but two. */
    do {
        spare = dup(0);
    } while (spare >= 0 && spare < 61);
    rig_until(&rig, &rig.opened, 2);
    for (int i = 0; i < 10; i++)
        cr_assert_geq(myra_loop_step(rig.loop, MYI_MS_NS), 0);
    cr_assert_lt(rig.opened, 6);
    myra_loop_read_stats(rig.loop, &stats);
    cr_assert_geq(stats.accept_pauses, 1);
    cr_assert_leq(stats.accept_pauses, 20, "a busy loop");
    /* Numbers come free: the waiting ones are served. */
    for (int fd = 50; fd <= 61; fd++)
        close(fd);
    rig_until(&rig, &rig.opened, 6);
    rig.is_echo = 1;
    for (int i = 0; i < 6; i++) {
        char byte;

        if (fds[i] >= 50)
            continue;
        cr_assert_eq(send(fds[i], "y", 1, 0), 1);
        rig_until_size(&rig, &rig.got, (size_t)i + 1);
        rig_spin(&rig, 2);
        cr_assert_eq(recv(fds[i], &byte, 1, 0), 1);
    }
    myra_loop_free(rig.loop);
    setrlimit(RLIMIT_NOFILE, &limit);
}

Test(loop, the_connection_limit_refuses_and_counts_right)
{
    struct myra_loop_options options;
    struct rig rig = { 0 };
    struct myra_conn *conn;
    struct sockaddr_storage addr;
    socklen_t len;

    myra_loop_options_init(&options);
    options.conns_max = 3;
    cr_assert_eq(myra_loop_new(&options, &rig.loop), 0);
    cr_assert_eq(myra_listen(rig.loop, "127.0.0.1:0", NULL, &rig_events,
                             &rig, &rig.listener),
                 0);
    myra_listener_addr(rig.listener, rig.addr, sizeof(rig.addr));
    cr_assert_eq(myra_addr_parse(rig.addr, &addr, &len), 0);
    for (int i = 0; i < 2; i++)
        cr_assert_eq(myra_connect(rig.loop, (struct sockaddr *)&addr, len,
                                  NULL, &rig_events, &rig, &conn),
                     0);
    cr_assert_eq(myra_connect(rig.loop, (struct sockaddr *)&addr, len, NULL,
                              &rig_events, &rig, &conn),
                 MYRA_ELIMIT);
    myra_loop_free(rig.loop);
}

/* ---- Choice ------------------------------------------------------------- */

Test(loop, a_backend_that_does_not_exist_is_a_clear_error)
{
    struct myra_loop_options options;
    struct myra_loop *loop = NULL;

    myra_loop_options_init(&options);
    options.backend = "kqueue";
    cr_assert_eq(myra_loop_new(&options, &loop), MYRA_EINVAL);
    cr_assert_not_null(strstr(myra_loop_new_error(), "kqueue"));
    cr_assert_not_null(strstr(myra_loop_new_error(), "epoll"));
    options.backend = "epoll";
    options.wait = "doze";
    cr_assert_eq(myra_loop_new(&options, &loop), MYRA_EINVAL);
    cr_assert_not_null(strstr(myra_loop_new_error(), "spin"));
    options.wait = NULL;
    options.recv_buf_count = 1;
    cr_assert_eq(myra_loop_new(&options, &loop), MYRA_EINVAL);
    cr_assert_null(loop);
    cr_assert_gt(strlen(myra_loop_new_error()), 0);
}

Test(loop, the_environment_is_checked_when_a_loop_is_made)
{
    static const char *const names[] = { "MYRA_BACKEND", "MYRA_WAIT",
                                         "MYRA_POLLER" };
    struct myra_loop *loop = NULL;

    for (int i = 0; i < 3; i++) {
        setenv(names[i], "nonsense", 1);
        cr_assert_eq(myra_loop_new(NULL, &loop), MYRA_EENV);
        cr_assert_not_null(strstr(myra_loop_new_error(), names[i]));
        unsetenv(names[i]);
    }
    cr_assert_null(loop);
}

Test(loop, spinning_serves_the_same)
{
    struct rig_peer peer = { .send_len = 300000, .recv_len = 300000 };
    struct rig rig;

    setenv("MYRA_WAIT", "spin", 1);
    rig_init(&rig, 0, 0, NULL, NULL);
    cr_assert_str_eq(myra_loop_wait_name(rig.loop), "spin");
    rig.is_echo = 1;
    peer.fd = rig_dial(&rig);
    rig_peer_start(&peer);
    rig_peer_join(&rig, &peer);
    cr_assert_eq(peer.received, 300000);
    close(peer.fd);
    rig_until(&rig, &rig.closed, 1);
    rig_fini(&rig);
    unsetenv("MYRA_WAIT");
}
