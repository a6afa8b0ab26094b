/* SPDX-License-Identifier: MIT */
/*
 * The processes of `myra demo`. Nothing may be left behind, however the demo
 * ends: each child asks the system to be killed with its parent.
 */
#include "config.h"

#include "tools/myra/demo.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <myra/alloc.h>

#define POLL_NS 5000000

/* Only calls that are safe after a fork of a process with threads. */
static void become(const char *path, char *const *argv, const int *keep_fds,
                   pid_t parent)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    for (; *keep_fds >= 0; keep_fds++)
        fcntl(*keep_fds, F_SETFD, 0);
    execv(path, argv);
    _exit(127);
}

pid_t demo_spawn(const char *path, char *const *argv, const int *keep_fds)
{
    const pid_t parent = getpid();
    const pid_t pid = fork();

    if (pid == 0)
        become(path, argv, keep_fds, parent);
    if (pid < 0)
        return -errno;
    setpgid(pid, pid);
    return pid;
}

int demo_has_ended(pid_t *pid)
{
    if (*pid > 0 && waitpid(*pid, NULL, WNOHANG) != *pid)
        return 0;
    *pid = 0;
    return 1;
}

int demo_end_process(pid_t *pid, int signal_number, uint64_t timeout_ns)
{
    const struct timespec pause = { .tv_nsec = POLL_NS };
    const uint64_t until_ns = myra_clock_ns() + timeout_ns;
    int status = -1;

    if (*pid <= 0)
        return -1;
    kill(*pid, signal_number);
    while (waitpid(*pid, &status, WNOHANG) == 0) {
        if (myra_clock_ns() >= until_ns)
            kill(*pid, SIGKILL);
        nanosleep(&pause, NULL);
    }
    *pid = 0;
    return status;
}

uint64_t demo_cpu_ns(pid_t pid)
{
    struct timespec used;
    clockid_t clock;

    if (pid <= 0 || clock_getcpuclockid(pid, &clock) != 0 ||
        clock_gettime(clock, &used) < 0)
        return 0;
    return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

static struct sockaddr_in loopback(uint16_t port)
{
    const struct sockaddr_in addr = {
        .sin_family = AF_INET,
        .sin_port = htons(port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)
    };

    return addr;
}

int demo_listen(uint16_t port, uint16_t *port_out)
{
    struct sockaddr_in addr = loopback(port);
    socklen_t addr_len = sizeof addr;
    const int on = 1;
    const int fd =
        socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int err;

    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&addr, addr_len) == 0 &&
        listen(fd, 1024) == 0 &&
        getsockname(fd, (struct sockaddr *)&addr, &addr_len) == 0) {
        *port_out = ntohs(addr.sin_port);
        return fd;
    }
    err = -errno;
    close(fd);
    return err;
}

int demo_is_listening(uint16_t port)
{
    const struct sockaddr_in addr = loopback(port);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int is_open;

    if (fd < 0)
        return 0;
    is_open = connect(fd, (const struct sockaddr *)&addr, sizeof addr) == 0;
    close(fd);
    return is_open;
}
