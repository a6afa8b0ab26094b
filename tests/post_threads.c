/* SPDX-License-Identifier: MIT */
/*
 * Posts and wakes from eight threads while a connection echoes, as a plain
 * program: the thread sanitizer cannot run under Criterion's forks. Exits 0
 * when every task ran once and in its thread's order.
 */
#include "config.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <myra/loop.h>
#include <myra/tcp.h>

enum { THREADS = 8, TASKS = 3000, BYTES = 2000000 };

struct numbered {
    struct myra_task task;
    int thread, number;
};

static struct numbered tasks[THREADS][TASKS];
static int next_number[THREADS];
static int ran, disorder;
static size_t echoed;
static struct myra_loop *loop;
static char addr_text[64];

static void on_task(struct myra_loop *on, struct myra_task *task)
{
    const struct numbered *n = (const struct numbered *)task;

    (void)on;
    if (n->number != next_number[n->thread])
        disorder++;
    next_number[n->thread] = n->number + 1;
    ran++;
}

static void *post_all(void *arg)
{
    const int id = (int)(intptr_t)arg;

    for (int i = 0; i < TASKS; i++) {
        struct numbered *n = &tasks[id][i];

        n->task.fn = on_task;
        n->thread = id;
        n->number = i;
        (void)myra_post(loop, &n->task);
        if (i % 16 == 0)
            (void)myra_wake(loop);
    }
    return NULL;
}

static int64_t on_data(struct myra_conn *conn, const struct myra_slice *data,
                       void *user)
{
    (void)user;
    (void)myra_conn_send_slice(conn, data, 0, data->len);
    return (int64_t)data->len;
}

static const struct myra_conn_events events = { .on_data = on_data };

static void *talk(void *arg)
{
    static char out[8192], in[8192];
    struct sockaddr_storage addr;
    size_t sent = 0;
    socklen_t len;
    int fd;

    (void)arg;
    if (myra_addr_parse(addr_text, &addr, &len) < 0)
        return NULL;
    fd = socket(addr.ss_family, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&addr, len) < 0)
        return NULL;
    while (echoed < BYTES) {
        if (sent < BYTES && sent - echoed < sizeof(out)) {
            const ssize_t n = send(fd, out, 4096, MSG_NOSIGNAL);

            sent += n > 0 ? (size_t)n : 0;
        }
        const ssize_t n = recv(fd, in, sizeof(in), 0);

        if (n <= 0)
            break;
        echoed += (size_t)n;
    }
    close(fd);
    myra_loop_stop(loop);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS], talker;
    struct myra_listener *listener;
    uint64_t end;

    if (myra_loop_new(NULL, &loop) < 0) {
        fprintf(stderr, "%s\n", myra_loop_new_error());
        return 1;
    }
    if (myra_listen(loop, "127.0.0.1:0", NULL, &events, NULL, &listener) < 0)
        return 1;
    myra_listener_addr(listener, addr_text, sizeof(addr_text));
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, post_all, (void *)(intptr_t)i);
    pthread_create(&talker, NULL, talk, NULL);
    if (myra_loop_run(loop) < 0)
        return 1;
    pthread_join(talker, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    end = myra_clock_ns() + UINT64_C(5000000000);
    while (ran < THREADS * TASKS && myra_clock_ns() < end)
        (void)myra_loop_step(loop, 1000000);
    myra_loop_free(loop);
    printf("%s: %d tasks, %d out of order, %zu bytes echoed\n",
           ran == THREADS * TASKS && disorder == 0 && echoed >= BYTES
               ? "ok"
               : "failed",
           ran, disorder, echoed);
    return ran == THREADS * TASKS && disorder == 0 && echoed >= BYTES ? 0 : 1;
}
