/* SPDX-License-Identifier: MIT */
/*
 * The load generator before an origin of this test's own, which can answer,
 * stall, lie, hang up, or say nothing.
 */
#include "config.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tools/myra-load/gen.h"

#define CONN_MAX 64
#define MS UINT64_C(1000000)
#define STALL_MS 300

enum manner {
    ANSWER = 0,
    STALL_ONCE,  /* STALL_MS before the 200th answer */
    WRONG_BYTE,  /* in every 10th body */
    SAY_404,     /* every 10th */
    HANG_UP,     /* instead of every 10th answer */
    CLOSE_AFTER, /* "Connection: close" on every answer */
    SILENT
};

static struct origin {
    enum manner manner;
    int listener;
    uint16_t port;
    int wake[2];
    pthread_t thread;
    struct pollfd polls[CONN_MAX + 2];
    nfds_t count;
    uint64_t requests;
} origin;

static const char good_answer[] =
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
static const char wrong_answer[] =
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhellO";
static const char missing_answer[] =
    "HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nhello";
static const char last_answer[] =
    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello";

/* The answer to this request; NULL: hang up; "": none. */
static const char *choose_answer(void)
{
    const struct timespec stall = { .tv_nsec = STALL_MS * 1000000L };
    const int is_tenth = ++origin.requests % 10 == 0;

    switch (origin.manner) {
    case STALL_ONCE:
        if (origin.requests == 200)
            nanosleep(&stall, NULL);
        return good_answer;
    case WRONG_BYTE:
        return is_tenth ? wrong_answer : good_answer;
    case SAY_404:
        return is_tenth ? missing_answer : good_answer;
    case HANG_UP:
        return is_tenth ? NULL : good_answer;
    case CLOSE_AFTER:
        return last_answer;
    case SILENT:
        return "";
    default:
        return good_answer;
    }
}

/* One request a read: the generator waits for the answer. 0: close it. */
static int serve(int fd)
{
    char request[2048];
    const ssize_t n = recv(fd, request, sizeof(request), 0);

    if (n <= 0)
        return 0;
    const char *const answer = choose_answer();

    if (!answer)
        return 0;
    send(fd, answer, strlen(answer), MSG_NOSIGNAL);
    return answer != last_answer;
}

static void *origin_main(void *unused)
{
    struct pollfd *const polls = origin.polls;

    (void)unused;
    polls[0] = (struct pollfd){ .fd = origin.wake[0], .events = POLLIN };
    polls[1] = (struct pollfd){ .fd = origin.listener, .events = POLLIN };
    origin.count = 2;
    while (poll(polls, origin.count, -1) >= 0 && !polls[0].revents) {
        for (nfds_t i = origin.count - 1; i >= 2; i--) {
            if (!polls[i].revents || serve(polls[i].fd))
                continue;
            close(polls[i].fd);
            polls[i] = polls[--origin.count];
        }
        if (polls[1].revents && origin.count < CONN_MAX + 2)
            polls[origin.count++] = (struct pollfd){
                .fd = accept(origin.listener, NULL, NULL), .events = POLLIN
            };
    }
    return NULL;
}

static void start_origin(enum manner manner)
{
    struct sockaddr_in addr = { .sin_family = AF_INET,
                                .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t len = sizeof(addr);

    origin.manner = manner;
    origin.listener = socket(AF_INET, SOCK_STREAM, 0);
    cr_assert_eq(bind(origin.listener, (struct sockaddr *)&addr, len), 0);
    cr_assert_eq(listen(origin.listener, 128), 0);
    getsockname(origin.listener, (struct sockaddr *)&addr, &len);
    origin.port = ntohs(addr.sin_port);
    cr_assert_eq(pipe(origin.wake), 0);
    cr_assert_eq(pthread_create(&origin.thread, NULL, origin_main, NULL), 0);
}

static void stop_origin(void)
{
    cr_assert_eq(write(origin.wake[1], "x", 1), 1);
    pthread_join(origin.thread, NULL);
}

static struct gen_options base_options(void)
{
    struct gen_options options;
    char text[32];

    gen_options_init(&options);
    snprintf(text, sizeof(text), "127.0.0.1:%u", origin.port);
    cr_assert_eq(gen_options_set_target(&options, text, "/x"), 0);
    options.conn_count = 4;
    options.expect_status = 200;
    options.expect_body = (const uint8_t *)"hello";
    options.expect_body_len = 5;
    return options;
}

/* Runs and checks that every request came to exactly one end. */
static struct gen *run(struct gen_options *options, uint64_t duration_ns,
                       struct gen_stats *stats)
{
    struct gen *gen = NULL;

    cr_assert_eq(gen_new(options, NULL, &gen), 0);
    gen_options_fini(options);
    cr_assert_eq(gen_run(gen, duration_ns), 0);
    gen_read_stats(gen, stats);
    cr_assert_eq(stats->planned, stats->completed + stats->errors);
    cr_assert_eq(stats->in_flight, 0);
    cr_assert_eq(gen_latency(gen)->count, stats->completed);
    return gen;
}

Test(gen, open_loop_sends_what_was_planned, .timeout = 20)
{
    start_origin(ANSWER);
    struct gen_options options = base_options();
    struct gen_stats stats;

    options.rate_per_s = 2000;
    struct gen *const gen = run(&options, 500 * MS, &stats);

    cr_assert_eq(stats.planned, 1000);
    cr_assert_eq(stats.completed, 1000);
    cr_assert_eq(stats.connects, 4);
    cr_assert_geq(stats.elapsed_ns, 499 * MS);
    /* The connections serve the next run too. */
    cr_assert_eq(gen_run(gen, 50 * MS), 0);
    gen_read_stats(gen, &stats);
    cr_assert_eq(stats.completed, 100);
    cr_assert_eq(stats.connects, 4);
    gen_free(gen);
    stop_origin();
}

Test(gen, a_stall_is_seen_by_every_request_of_its_time, .timeout = 20)
{
    start_origin(STALL_ONCE);
    struct gen_options options = base_options();
    struct gen_stats stats;

    options.rate_per_s = 1000;
    options.conn_count = 1;
    struct gen *const gen = run(&options, 1000 * MS, &stats);
    const struct hist *const intended = gen_latency(gen);
    const struct hist *const actual = gen_latency_actual(gen);

    cr_assert_eq(stats.completed, 1000);
    cr_assert_geq(actual->max, STALL_MS * MS);
    /* 300 requests were due in the stall; those of its first two thirds
     * waited 100 ms or more, though one alone was out. */
    const uint64_t slow =
        intended->count - hist_count_upto(intended, 100 * MS);

    cr_assert_geq(slow, 190, "only %d slow", (int)slow);
    cr_assert_leq(actual->count - hist_count_upto(actual, 100 * MS), slow / 4);
    gen_free(gen);
    stop_origin();
}

Test(gen, closed_loop_ends_after_the_number_asked_for, .timeout = 20)
{
    start_origin(ANSWER);
    struct gen_options options = base_options();
    struct gen_stats stats;

    options.rate_per_s = 0;
    options.request_max = 777;
    struct gen *const gen = run(&options, 10000 * MS, &stats);

    cr_assert_eq(stats.completed, 777);
    cr_assert_lt(stats.elapsed_ns, 9000 * MS);
    gen_free(gen);
    stop_origin();
}

static void check_errors(enum manner manner, enum gen_err kind)
{
    start_origin(manner);
    struct gen_options options = base_options();
    struct gen_stats stats;

    options.rate_per_s = 1000;
    struct gen *const gen = run(&options, 200 * MS, &stats);

    cr_assert_eq(stats.planned, 200);
    cr_assert_eq(stats.errors, 20, "%d errors", (int)stats.errors);
    cr_assert_eq(stats.errors_by_kind[kind], 20);
    gen_free(gen);
    stop_origin();
}

Test(gen, wrong_bytes_are_errors, .timeout = 20)
{
    check_errors(WRONG_BYTE, GEN_ERR_BODY);
}

Test(gen, wrong_statuses_are_errors, .timeout = 20)
{
    check_errors(SAY_404, GEN_ERR_STATUS);
}

Test(gen, a_hang_up_is_an_error_and_a_new_connection, .timeout = 20)
{
    start_origin(HANG_UP);
    struct gen_options options = base_options();
    struct gen_stats stats;

    options.rate_per_s = 1000;
    struct gen *const gen = run(&options, 200 * MS, &stats);

    cr_assert_eq(stats.errors, 20);
    cr_assert_eq(stats.errors_by_kind[GEN_ERR_CLOSED] +
                     stats.errors_by_kind[GEN_ERR_RESET],
                 20);
    cr_assert_geq(stats.reconnects, 16);
    gen_free(gen);
    stop_origin();
}

Test(gen, a_close_that_was_announced_is_no_error, .timeout = 20)
{
    start_origin(CLOSE_AFTER);
    struct gen_options options = base_options();
    struct gen_stats stats;

    options.rate_per_s = 500;
    struct gen *const gen = run(&options, 200 * MS, &stats);

    cr_assert_eq(stats.completed, 100);
    cr_assert_geq(stats.reconnects, 90);
    gen_free(gen);
    stop_origin();
}

Test(gen, silence_ends_in_timeouts_and_the_run_ends, .timeout = 20)
{
    start_origin(SILENT);
    struct gen_options options = base_options();
    struct gen_stats stats;

    options.rate_per_s = 100;
    options.timeout_ns = 100 * MS;
    options.drain_ns = 300 * MS;
    struct gen *const gen = run(&options, 300 * MS, &stats);

    cr_assert_eq(stats.planned, 30);
    cr_assert_eq(stats.completed, 0);
    cr_assert_geq(stats.errors_by_kind[GEN_ERR_TIMEOUT], 4);
    gen_free(gen);
    stop_origin();
}

Test(gen, nobody_there_is_refused, .timeout = 20)
{
    start_origin(ANSWER);
    stop_origin();
    close(origin.listener);
    struct gen_options options = base_options();
    struct gen *gen = NULL;

    cr_assert_eq(gen_new(&options, NULL, &gen), 0);
    gen_options_fini(&options);
    cr_assert_eq(gen_run(gen, 100 * MS), -ECONNREFUSED);
    gen_free(gen);
}

static atomic_int shots;
static atomic_int has_last;

static void on_shot(void *user, const struct gen_snapshot *shot)
{
    struct gen *const *const gen = user;

    atomic_fetch_add(&shots, 1);
    if (shot->is_last)
        atomic_store(&has_last, 1);
    else if (shot->total.completed > 100)
        gen_stop(*gen);
}

Test(gen, stop_ends_a_run_in_another_thread_early, .timeout = 20)
{
    start_origin(ANSWER);
    struct gen_options options = base_options();
    struct gen *gen = NULL;
    struct gen_stats stats;

    options.rate_per_s = 1000;
    options.on_snapshot = on_shot;
    options.snapshot_user = &gen;
    options.snapshot_ns = 20 * MS;
    cr_assert_eq(gen_new(&options, NULL, &gen), 0);
    gen_options_fini(&options);
    cr_assert_eq(gen_start(gen, 60000 * MS), 0);
    cr_assert_eq(gen_start(gen, 60000 * MS), -EBUSY);
    cr_assert_eq(gen_join(gen), 0);
    cr_assert_eq(gen_is_running(gen), 0);
    gen_read_stats(gen, &stats);
    cr_assert_gt(stats.completed, 100);
    cr_assert_eq(stats.errors, 0);
    cr_assert_eq(stats.planned, stats.completed);
    cr_assert_eq(atomic_load(&has_last), 1);
    cr_assert_geq(atomic_load(&shots), 2);
    gen_free(gen);
    stop_origin();
}

Test(gen, options_that_make_no_sense_are_refused)
{
    struct gen_options options;
    struct gen *gen = NULL;

    gen_options_init(&options);
    cr_assert_eq(gen_new(&options, NULL, &gen), -EINVAL);
    cr_assert_eq(gen_options_set_target(&options, "127.0.0.1:1", "/"), 0);
    options.conn_count = 0;
    cr_assert_eq(gen_new(&options, NULL, &gen), -EINVAL);
    options.conn_count = 1;
    options.rate_per_s = -1;
    cr_assert_eq(gen_new(&options, NULL, &gen), -EINVAL);
    cr_assert_lt(gen_options_set_target(&options, "no address", "/"), 0);
    gen_options_fini(&options);
}
