/* SPDX-License-Identifier: MIT */
/*
 * Starts and ends the proxy. It dies with us (PR_SET_PDEATHSIG), so that no
 * process is left behind however this one ends.
 */
#include "config.h"

#include "tests/run_cases/proxy.h"

#include "tests/run_cases/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define START_MS 5000
#define STOP_MS 5000

static void run_child(const struct proxy *proxy, int origin_port, int fd,
                      pid_t parent)
{
    char to[32];
    char *const argv[] = { (char *)proxy->program, "--listen",
                           "127.0.0.1:0",          "--to",
                           to,                     NULL };

    snprintf(to, sizeof to, "127.0.0.1:%d", origin_port);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127);
    if (dup2(fd, 1) < 0 || dup2(fd, 2) < 0)
        _exit(127);
    execvp(proxy->program, argv);
    fprintf(stderr, "%s: %s\n", proxy->program, strerror(errno));
    _exit(127);
}

/* Takes what the proxy has said. 0 when its pipe has ended. */
static int take_words(struct proxy *proxy)
{
    char block[4096];
    ssize_t got;

    if (proxy->said_fd < 0)
        return 0;
    while ((got = read(proxy->said_fd, block, sizeof block)) > 0)
        bytes_add(&proxy->said, block, (size_t)got);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 1;
    close(proxy->said_fd);
    proxy->said_fd = -1;
    return 0;
}

/* The port in the first whole line that tells one other than the origin's;
 * 0: none yet. */
static int told_port(const struct bytes *said, int origin_port)
{
    static const char host[] = "127.0.0.1:";
    const char *p = bytes_text(said);

    while ((p = strstr(p, host)) != NULL) {
        char *end;
        const long port = strtol(p + sizeof host - 1, &end, 10);

        if (*end == '\0')
            return 0;
        if (port > 0 && port != origin_port && port < 65536)
            return (int)port;
        p = end;
    }
    return 0;
}

static int wait_for_port(struct proxy *proxy, int origin_port)
{
    const int64_t until = clock_ms() + START_MS;

    while (proxy->port == 0) {
        const int64_t left = until - clock_ms();
        struct pollfd pfd = { .fd = proxy->said_fd, .events = POLLIN };

        if (left <= 0 || poll(&pfd, 1, (int)left) < 0)
            return -1;
        if (!take_words(proxy))
            return -1;
        proxy->port = told_port(&proxy->said, origin_port);
    }
    return 0;
}

static int refuse(struct proxy *proxy, const char *text, struct bytes *why)
{
    bytes_add_text(why, text);
    if (proxy->said.len > 0) {
        bytes_add_text(why, "; it said: ");
        bytes_add(why, proxy->said.data, strcspn(proxy->said.data, "\n"));
    }
    return -1;
}

int proxy_start(struct proxy *proxy, int origin_port, struct bytes *why)
{
    const pid_t parent = getpid();
    struct bytes ignored = { 0 };
    int ends[2];

    proxy->port = 0;
    proxy->said_fd = -1;
    bytes_set(&proxy->said, "", 0);
    if (pipe2(ends, O_CLOEXEC) < 0)
        return refuse(proxy, "no pipe for the proxy", why);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    proxy->pid = fork();
    if (proxy->pid == 0)
        run_child(proxy, origin_port, ends[1], parent);
    close(ends[1]);
    proxy->said_fd = ends[0];
    if (proxy->pid < 0) {
        proxy->pid = 0;
        take_words(proxy);
        return refuse(proxy, "cannot fork", why);
    }
    if (wait_for_port(proxy, origin_port) == 0)
        return 0;
    refuse(proxy, "the proxy did not tell where it listens", why);
    proxy_stop(proxy, &ignored);
    bytes_fini(&ignored);
    return -1;
}

/* Waits until the child is gone; its status, or -1 at the deadline. */
static int wait_gone(struct proxy *proxy, int64_t limit_ms)
{
    const int64_t until = clock_ms() + limit_ms;
    int status = 0;

    for (;;) {
        /* The pipe's end is the sign that the process has ended. */
        struct pollfd pfd = { .fd = proxy->said_fd, .events = POLLIN };
        const int64_t left = until - clock_ms();

        if (waitpid(proxy->pid, &status, WNOHANG) == proxy->pid)
            return status;
        if (left <= 0)
            return -1;
        poll(&pfd, 1, proxy->said_fd < 0 || left > 20 ? 20 : (int)left);
        take_words(proxy);
    }
}

int proxy_stop(struct proxy *proxy, struct bytes *why)
{
    int status;
    int result = 0;

    if (proxy->pid > 0) {
        kill(proxy->pid, SIGTERM);
        status = wait_gone(proxy, STOP_MS);
        if (status < 0) {
            kill(proxy->pid, SIGKILL);
            waitpid(proxy->pid, &status, 0);
            bytes_add_text(why, "the proxy did not end on SIGTERM");
            result = -1;
        } else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            result = refuse(proxy, "the proxy ended with an error", why);
        }
        proxy->pid = 0;
    }
    if (proxy->said_fd >= 0)
        close(proxy->said_fd);
    proxy->said_fd = -1;
    bytes_fini(&proxy->said);
    return result;
}

int proxy_is_alive(struct proxy *proxy)
{
    int status;

    if (proxy->pid <= 0)
        return 0;
    take_words(proxy);
    if (waitpid(proxy->pid, &status, WNOHANG) != proxy->pid)
        return 1;
    proxy->pid = 0;
    return 0;
}

static long status_value(const char *text, const char *name)
{
    const char *const at = strstr(text, name);

    return at ? strtol(at + strlen(name), NULL, 10) : 0;
}

static size_t read_proc(pid_t pid, const char *name, char *text, size_t cap)
{
    char path[64];
    size_t len = 0;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    file = fopen(path, "r");
    if (file != NULL) {
        len = fread(text, 1, cap - 1, file);
        fclose(file);
    }
    text[len] = '\0';
    return len;
}

void proxy_read_usage(const struct proxy *proxy, struct proxy_usage *usage)
{
    char text[4096];
    unsigned long user = 0;
    unsigned long system = 0;
    const char *after;

    memset(usage, 0, sizeof *usage);
    if (proxy->pid <= 0)
        return;
    read_proc(proxy->pid, "status", text, sizeof text);
    usage->peak_kib = status_value(text, "VmPeak:");
    usage->resident_kib = status_value(text, "VmHWM:");
    read_proc(proxy->pid, "stat", text, sizeof text);
    /* The name may hold blanks; the fields are counted behind its ')'. */
    after = strrchr(text, ')');
    if (after != NULL &&
        sscanf(after + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u "
                          "%lu %lu", &user, &system) == 2)
        usage->cpu_ms = (long)((user + system) * 1000 /
                               (unsigned long)sysconf(_SC_CLK_TCK));
}
