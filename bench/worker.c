/* SPDX-License-Identifier: MIT */
/*
 * Starting workers and talking with them over two pipes.
 */
#include "config.h"

#include "bench/worker.h"
#include "bench/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ARGS_MAX 8
#define ANSWER_LIMIT_MS 20000
#define LINE_CAP 128

static void close_pair(const int *pair)
{
    close(pair[0]);
    close(pair[1]);
}

int worker_start(struct worker *worker, const char *kind,
                 const char *const *args, const char *const *env, int cpu)
{
    static char self[] = "/proc/self/exe";
    static char flag[] = "--worker";
    char words[ARGS_MAX][64];
    char *argv[ARGS_MAX + 3] = { self, flag, words[0] };
    struct proc_options options;
    int down[2];
    int up[2];

    snprintf(words[0], sizeof(words[0]), "%s", kind);
    for (int i = 0; args && args[i] && i + 1 < ARGS_MAX; i++) {
        snprintf(words[i + 1], sizeof(words[0]), "%s", args[i]);
        argv[i + 3] = words[i + 1];
    }
    if (pipe2(down, O_CLOEXEC) < 0)
        return -errno;
    if (pipe2(up, O_CLOEXEC) < 0) {
        close_pair(down);
        return -EMFILE;
    }
    proc_options_init(&options);
    options.argv = argv;
    options.env = env;
    options.cpu = cpu;
    options.in_fd = down[0];
    options.out_fd = up[1];
    worker->pid = proc_start(&options);
    worker->to_fd = down[1];
    worker->from_fd = up[0];
    close(down[0]);
    close(up[1]);
    if (worker->pid > 0)
        return 0;
    close(worker->to_fd);
    close(worker->from_fd);
    return (int)worker->pid;
}

void worker_stop(struct worker *worker)
{
    if (worker->pid <= 0)
        return;
    close(worker->to_fd);
    close(worker->from_fd);
    proc_stop(worker->pid);
    worker->pid = 0;
}

static int read_line(int fd, char *line, size_t cap)
{
    size_t len = 0;

    while (len + 1 < cap) {
        struct pollfd wait = { .fd = fd, .events = POLLIN };

        if (poll(&wait, 1, ANSWER_LIMIT_MS) <= 0)
            return -ETIMEDOUT;
        const ssize_t n = read(fd, line + len, 1);

        if (n <= 0)
            return -EPIPE;
        if (line[len] == '\n')
            break;
        len++;
    }
    line[len] = '\0';
    return 0;
}

int worker_ask(struct worker *worker, double *first, double *second)
{
    char line[LINE_CAP];

    if (write(worker->to_fd, "?", 1) != 1)
        return -EPIPE;
    const int err = read_line(worker->from_fd, line, sizeof(line));

    if (err < 0)
        return err;
    return sscanf(line, "%lf %lf", first, second);
}

int worker_wait(void)
{
    char byte;

    return read(STDIN_FILENO, &byte, 1) == 1;
}

void worker_answer(double first, double second)
{
    printf("%.17g %.17g\n", first, second);
    fflush(stdout);
}

int worker_main(int argc, char **argv)
{
    static const struct {
        const char *kind;
        int (*main)(int argc, char **argv);
    } kinds[] = {
        { "pool", worker_pool },
        { "relay", worker_relay },
        { "alloc", worker_alloc },
    };

    for (size_t i = 0; argc > 0 && i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strcmp(argv[0], kinds[i].kind) == 0)
            return kinds[i].main(argc - 1, argv + 1);
    return 2;
}
