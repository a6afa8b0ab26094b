/* SPDX-License-Identifier: MIT */
/*
 * Runs `myra inspect` as a user would: what it prints and how it ends must
 * be what the same bytes gave in this process.
 */
#include "config.h"

#include "tests/run_cases/inspect.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/run_cases/socket.h"
#include "tools/myra/myra.h"

#define INSPECT_MS 10000
#define ARGS_MAX 16

struct command {
    char *argv[ARGS_MAX];
    int argc;
    char limit[32];
    struct bytes path;
};

static void add_arg(struct command *command, const char *arg)
{
    command->argv[command->argc++] = (char *)arg;
    command->argv[command->argc] = NULL;
}

static void build_command(struct command *command, const struct scene *scene,
                          const char *program, const char *dir)
{
    const struct reading_options *const options = &scene->options;

    memset(command, 0, sizeof *command);
    add_arg(command, program);
    add_arg(command, "inspect");
    if (options->methods != NULL) {
        add_arg(command, "--for");
        add_arg(command, options->methods);
    }
    if (options->is_eof)
        add_arg(command, "--eof");
    if (options->no_upgrade)
        add_arg(command, "--no-upgrade");
    if (options->body_max != 0) {
        snprintf(command->limit, sizeof command->limit, "%llu",
                 (unsigned long long)options->body_max);
        add_arg(command, "--limit");
        add_arg(command, command->limit);
    }
    add_arg(command, "--feed");
    add_arg(command, "bytes");
    add_arg(command, scene->row->kind);
    bytes_add_text(&command->path, dir);
    bytes_add_text(&command->path, "/");
    bytes_add_text(&command->path, scene->row->file);
    add_arg(command, "--");
    add_arg(command, bytes_text(&command->path));
}

/* Reads fd to its end. 0, or -1 at the deadline. */
static int read_all(int fd, struct bytes *out)
{
    const int64_t until = clock_ms() + INSPECT_MS;

    for (;;) {
        struct pollfd pfd = { .fd = fd, .events = POLLIN };
        const int64_t left = until - clock_ms();
        char block[16384];
        ssize_t got;

        if (left <= 0)
            return -1;
        if (poll(&pfd, 1, (int)left) <= 0)
            continue;
        got = read(fd, block, sizeof block);
        if (got == 0)
            return 0;
        if (got > 0)
            bytes_add(out, block, (size_t)got);
        else if (errno != EINTR)
            return -1;
    }
}

/* The exit status; -1 when the command could not run, hung or crashed. */
static int run_command(const struct command *command, struct bytes *out)
{
    int ends[2];
    int status = 0;
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    pid = fork();
    if (pid == 0) {
        dup2(ends[1], 1);
        execvp(command->argv[0], command->argv);
        _exit(127);
    }
    close(ends[1]);
    if (pid > 0 && read_all(ends[0], out) < 0)
        kill(pid, SIGKILL);
    close(ends[0]);
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void print_expected(const struct scene *scene, struct bytes *out)
{
    char *text = NULL;
    size_t len = 0;
    FILE *const file = open_memstream(&text, &len);

    if (file == NULL)
        return;
    inspect_print(file, scene->options.kind, &scene->reading);
    if (fclose(file) == 0)
        bytes_set(out, text, len);
    free(text);
}

int inspect_check(struct scene *scene, const char *program, const char *dir)
{
    const int wanted = scene->reading.verdict == VERDICT_ACCEPT ? 0 : 1;
    struct bytes expected = { 0 };
    struct bytes seen = { 0 };
    struct command command;
    int result = 0;
    int status;

    build_command(&command, scene, program, dir);
    status = run_command(&command, &seen);
    print_expected(scene, &expected);
    if (status == 127 && seen.len == 0)
        result = scene_fail(scene, "inspect: %s cannot be run", program);
    else if (status != wanted)
        result = scene_fail(scene, "inspect: exit status %d, not %d", status,
                            wanted);
    else if (!bytes_equal(&seen, &expected))
        result = scene_fail(scene, "inspect: the program prints something "
                                   "else than was read here");
    bytes_fini(&command.path);
    bytes_fini(&expected);
    bytes_fini(&seen);
    return result;
}
