/* SPDX-License-Identifier: MIT */
/* The rig of the proxy's tests. */
#include "config.h"

#include "tests/proxy_rig.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <criterion/criterion.h>

#define ARGS_MAX 40

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int wait_for(int fd, short events, int64_t until)
{
    struct pollfd pfd = { .fd = fd, .events = events };
    const int64_t left = until - now_ms();

    return left > 0 && poll(&pfd, 1, (int)left) == 1;
}

/* ---- Sockets ------------------------------------------------------------ */

static struct sockaddr_in loopback(int port)
{
    struct sockaddr_in addr = { .sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port) };

    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return addr;
}

void origin_open(struct origin *origin)
{
    struct sockaddr_in addr = loopback(0);
    socklen_t len = sizeof(addr);

    origin->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert_geq(origin->fd, 0);
    cr_assert_eq(bind(origin->fd, (struct sockaddr *)&addr, len), 0);
    cr_assert_eq(listen(origin->fd, 256), 0);
    cr_assert_eq(getsockname(origin->fd, (struct sockaddr *)&addr, &len), 0);
    origin->port = ntohs(addr.sin_port);
    snprintf(origin->addr, sizeof(origin->addr), "127.0.0.1:%d",
             origin->port);
}

void origin_close(struct origin *origin)
{
    close(origin->fd);
    origin->fd = -1;
}

int origin_accept(struct origin *origin)
{
    int fd;

    cr_assert(wait_for(origin->fd, POLLIN, now_ms() + RIG_MS),
              "nobody came to the origin");
    fd = accept4(origin->fd, NULL, NULL, SOCK_CLOEXEC);
    cr_assert_geq(fd, 0);
    return fd;
}

int dial_port(int port)
{
    const struct sockaddr_in addr = loopback(port);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    cr_assert_geq(fd, 0);
    cr_assert_eq(connect(fd, (const struct sockaddr *)&addr, sizeof(addr)),
                 0, "port %d: %s", port, strerror(errno));
    return fd;
}

int rig_dial(const struct rig *rig)
{
    return dial_port(rig->port);
}

void say_bytes(int fd, const void *data, size_t len)
{
    const int64_t until = now_ms() + RIG_MS;
    const char *p = data;

    while (len) {
        ssize_t n;

        cr_assert(wait_for(fd, POLLOUT, until), "the peer does not read");
        n = send(fd, p, len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        cr_assert_gt(n, 0, "send: %s", strerror(errno));
        p += n;
        len -= (size_t)n;
    }
}

void say(int fd, const char *text)
{
    say_bytes(fd, text, strlen(text));
}

/* One read; 0 at the end, -1 for a reset. */
static ssize_t take(int fd, void *data, size_t cap, int64_t until,
                    const char *so_far)
{
    ssize_t n;

    cr_assert(wait_for(fd, POLLIN, until), "nothing came; so far: <<%s>>",
              so_far);
    do {
        n = recv(fd, data, cap, 0);
    } while (n < 0 && errno == EINTR);
    cr_assert(n >= 0 || errno == ECONNRESET || errno == EPIPE, "recv: %s",
              strerror(errno));
    return n;
}

void hear(int fd, char *text, const char *wanted)
{
    const int64_t until = now_ms() + RIG_MS;
    size_t len = 0;

    text[0] = 0;
    while (!strstr(text, wanted)) {
        const ssize_t n =
            take(fd, text + len, RIG_TEXT - 1 - len, until, text);

        cr_assert_gt(n, 0, "ended before <<%s>>; so far: <<%s>>", wanted,
                     text);
        len += (size_t)n;
        text[len] = 0;
    }
}

void hear_head(int fd, char *text)
{
    const int64_t until = now_ms() + RIG_MS;
    size_t len = 0;

    text[0] = 0;
    while (len < 4 || strcmp(text + len - 4, "\r\n\r\n") != 0) {
        const ssize_t n = take(fd, text + len, 1, until, text);

        cr_assert_eq(n, 1, "ended inside a head: <<%s>>", text);
        cr_assert_lt(++len, (size_t)RIG_TEXT - 1);
        text[len] = 0;
    }
}

void hear_bytes(int fd, void *data, size_t len)
{
    const int64_t until = now_ms() + RIG_MS;
    char *p = data;

    while (len) {
        const ssize_t n = take(fd, p, len, until, "");

        cr_assert_gt(n, 0, "ended %zu bytes early", len);
        p += n;
        len -= (size_t)n;
    }
}

int hear_end(int fd, char *text)
{
    const int64_t until = now_ms() + RIG_MS;
    size_t len = 0;

    for (;;) {
        ssize_t n;

        text[len] = 0;
        cr_assert_lt(len, (size_t)RIG_TEXT - 1);
        n = take(fd, text + len, RIG_TEXT - 1 - len, until, text);
        if (n <= 0)
            return n < 0;
        len += (size_t)n;
    }
}

int is_quiet(int fd, int wait_ms)
{
    return !wait_for(fd, POLLIN, now_ms() + wait_ms);
}

void expect_in(const char *text, const char *wanted)
{
    cr_assert(strstr(text, wanted) != NULL, "no <<%s>> in <<%s>>", wanted,
              text);
}

void expect_not_in(const char *text, const char *unwanted)
{
    cr_assert(strstr(text, unwanted) == NULL, "<<%s>> in <<%s>>", unwanted,
              text);
}

void exchange_ok(int client, int origin, const char *body)
{
    char text[RIG_TEXT];
    char answer[512];

    say(client, "GET /ok HTTP/1.1\r\nHost: a.test\r\n\r\n");
    hear_head(origin, text);
    expect_in(text, "GET /ok HTTP/1.1\r\n");
    snprintf(answer, sizeof(answer),
             "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s",
             strlen(body), body);
    say(origin, answer);
    hear_head(client, text);
    expect_in(text, "HTTP/1.1 200 OK\r\n");
    hear_bytes(client, text, strlen(body));
    cr_assert_eq(memcmp(text, body, strlen(body)), 0);
}

/* ---- The program -------------------------------------------------------- */

static void spawn(struct rig *rig, char *const argv[])
{
    const pid_t parent = getpid();
    int ends[2];

    memset(rig, 0, sizeof(*rig));
    cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
    rig->pid = fork();
    cr_assert_geq(rig->pid, 0);
    if (rig->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        /* Freed memory that a sanitizer keeps is not the program's. */
        setenv("ASAN_OPTIONS", "quarantine_size_mb=1", 0);
        if (getppid() != parent || dup2(ends[1], 1) < 0 ||
            dup2(ends[1], 2) < 0)
            _exit(127);
        execv("./myra-proxy", argv);
        _exit(127);
    }
    close(ends[1]);
    rig->said_fd = ends[0];
}

/* Reads what it says; 0 at its end. */
static int take_words(struct rig *rig, int64_t until)
{
    ssize_t n;

    cr_assert(wait_for(rig->said_fd, POLLIN, until),
              "the proxy says no more than <<%s>>", rig->said);
    n = read(rig->said_fd, rig->said + rig->said_len,
             sizeof(rig->said) - 1 - rig->said_len);
    if (n <= 0)
        return 0;
    rig->said_len += (size_t)n;
    rig->said[rig->said_len] = 0;
    return 1;
}

void rig_expect_said(struct rig *rig, const char *text)
{
    const int64_t until = now_ms() + RIG_MS;

    while (!strstr(rig->said, text))
        cr_assert(take_words(rig, until),
                  "the proxy ended without <<%s>>: <<%s>>", text, rig->said);
}

static void collect(char **argv, size_t count, va_list args)
{
    do {
        argv[count] = va_arg(args, char *);
        cr_assert_lt(count, (size_t)ARGS_MAX);
    } while (argv[count++]);
}

void rig_start(struct rig *rig, ...)
{
    static char name[] = "myra-proxy", listen[] = "--listen",
                addr[] = "127.0.0.1:0";
    char *argv[ARGS_MAX + 1] = { name, listen, addr };
    const char *port;
    va_list args;

    va_start(args, rig);
    collect(argv, 3, args);
    va_end(args);
    spawn(rig, argv);
    rig_expect_said(rig, "ready");
    port = strstr(rig->said, "listening on 127.0.0.1:");
    cr_assert_not_null(port);
    rig->port = atoi(port + strlen("listening on 127.0.0.1:"));
    cr_assert_gt(rig->port, 0);
}

int rig_run(struct rig *rig, ...)
{
    static char name[] = "myra-proxy";
    char *argv[ARGS_MAX + 1] = { name };
    va_list args;

    va_start(args, rig);
    collect(argv, 1, args);
    va_end(args);
    spawn(rig, argv);
    return rig_wait(rig);
}

void rig_signal(struct rig *rig, int number)
{
    cr_assert_eq(kill(rig->pid, number), 0);
}

int rig_wait(struct rig *rig)
{
    const int64_t until = now_ms() + RIG_MS;
    int status;

    while (take_words(rig, until))
        ;
    cr_assert_eq(waitpid(rig->pid, &status, 0), rig->pid);
    close(rig->said_fd);
    rig->pid = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void rig_stop(struct rig *rig)
{
    rig_signal(rig, SIGTERM);
    cr_assert_eq(rig_wait(rig), 0, "it said <<%s>>", rig->said);
}

long rig_rss_kib(const struct rig *rig)
{
    char path[64], line[256];
    long kib = -1;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)rig->pid);
    file = fopen(path, "r");
    cr_assert_not_null(file);
    while (fgets(line, sizeof(line), file))
        if (sscanf(line, "VmRSS: %ld", &kib) == 1)
            break;
    fclose(file);
    cr_assert_gt(kib, 0);
    return kib;
}
