/* SPDX-License-Identifier: MIT */
/*
 * Mistakes of a pool's user: in debug builds the program ends with a line
 * that names the buffer, under AddressSanitizer at the access itself.
 */
#include "config.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include <myra/alloc.h>
#include <myra/pool.h>

static void print_line(void *ctx, enum myra_log_level level,
                       const char *text)
{
    (void)level;
    dprintf(*(int *)ctx, "%s\n", text);
}

static struct myra_buf *acquire_third(void)
{
    struct myra_pool *pool;
    struct myra_buf *buf = NULL;

    if (myra_pool_new(NULL, &pool))
        return NULL;
    for (int i = 0; i < 3; i++)
        if (myra_pool_acquire(pool, &buf))
            return NULL;
    return buf;
}

/* Runs mistake in a child; what it says goes to text. Returns its status. */
static int run_child(void (*mistake)(struct myra_buf *buf), char *text,
                     size_t cap)
{
    int out[2];
    int status;
    size_t len = 0;
    ssize_t got;
    pid_t pid;

    cr_assert_eq(pipe(out), 0);
    pid = fork();
    cr_assert_geq(pid, 0);
    if (pid == 0) {
        signal(SIGABRT, SIG_DFL);
        dup2(out[1], STDERR_FILENO);
        myra_set_log(print_line, &out[1], MYRA_LOG_ERROR);
        mistake(acquire_third());
        _exit(0);
    }
    close(out[1]);
    while ((got = read(out[0], text + len, cap - 1 - len)) > 0)
        len += (size_t)got;
    text[len] = '\0';
    close(out[0]);
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    return status;
}

static void no_mistake(struct myra_buf *buf)
{
    memset(buf->data, 1, buf->cap);
    myra_buf_retain(buf);
    myra_buf_release(buf);
    myra_buf_release(buf);
}

Test(pool_misuse, correct_use_ends_well)
{
    char text[65536];

    cr_assert_eq(run_child(no_mistake, text, sizeof(text)), 0);
    cr_assert_str_empty(text);
}

#if defined(MYRA_DEBUG) || defined(__SANITIZE_ADDRESS__)

static void write_released(struct myra_buf *buf)
{
    struct myra_pool *pool = buf->pool;

    myra_buf_release(buf);
    buf->data[buf->cap - 1] = 1;
    (void)!myra_pool_acquire(pool, &buf);
}

#endif

/* In other builds these calls are not noticed: acquire and release are inline
 * there, and short. */
#ifdef MYRA_DEBUG

static void release_twice(struct myra_buf *buf)
{
    myra_buf_release(buf);
    myra_buf_release(buf);
}

static void retain_released(struct myra_buf *buf)
{
    myra_buf_release(buf);
    myra_buf_retain(buf);
}

static void expect_abort(void (*mistake)(struct myra_buf *buf),
                         const char *words)
{
    char text[65536];
    const int status = run_child(mistake, text, sizeof(text));

    cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "%d: %s",
              status, text);
    cr_assert_not_null(strstr(text, "buffer 2"), "%s", text);
    cr_assert_not_null(strstr(text, words), "%s", text);
}

Test(pool_misuse, a_double_release_is_caught)
{
    expect_abort(release_twice, "released without a lease");
}

Test(pool_misuse, a_retain_without_a_lease_is_caught)
{
    expect_abort(retain_released, "retained without a lease");
}

#ifndef __SANITIZE_ADDRESS__
Test(pool_misuse, a_write_after_the_release_is_caught)
{
    expect_abort(write_released, "written to after its release");
}
#endif

Test(pool_misuse, released_memory_is_poisoned)
{
    struct myra_buf *buf = acquire_third();
    struct myra_pool *pool = buf->pool;

    memset(buf->data, 1, buf->cap);
    myra_buf_release(buf);
    cr_assert_eq(myra_pool_acquire(pool, &buf), 0);
    for (uint32_t i = 0; i < buf->cap; i++)
        cr_assert_eq(buf->data[i], 0xdb);
}

#endif

#ifdef __SANITIZE_ADDRESS__

static volatile uint8_t sink;

static void read_released(struct myra_buf *buf)
{
    myra_buf_release(buf);
    sink = buf->data[0];
}

static void expect_report(void (*mistake)(struct myra_buf *buf))
{
    char text[65536];
    const int status = run_child(mistake, text, sizeof(text));

    cr_assert_neq(status, 0);
    cr_assert_not_null(strstr(text, "use-after-poison"), "%s", text);
}

Test(pool_misuse, the_sanitizer_reports_an_access_after_the_release)
{
    expect_report(read_released);
    expect_report(write_released);
}

/* A kernel may read behind a lent buffer whatever its neighbour is doing. */
static void read_slack(struct myra_buf *buf)
{
    struct myra_buf *neighbour = myra_pool_at(buf->pool, buf->index - 1);

    myra_buf_release(neighbour);
    for (uint32_t i = 0; i < MYRA_BUF_SLACK; i++)
        sink = buf->data[buf->cap + i];
    for (uint32_t i = 0; i < MYRA_BUF_SLACK; i++)
        sink = neighbour->data[neighbour->cap + i];
}

Test(pool_misuse, the_slack_stays_readable)
{
    char text[65536];

    cr_assert_eq(run_child(read_slack, text, sizeof(text)), 0, "%s", text);
}

#endif
