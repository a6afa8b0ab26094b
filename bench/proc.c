/* SPDX-License-Identifier: MIT */
/*
 * Child processes. CPU time is read from the kernel's per-process clocks,
 * which count nanoseconds; the ticks of /proc are too coarse for a block of a
 * quarter second.
 */
#include "config.h"

#include "bench/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHILD_MAX 64
#define STOP_TRIES 100
#define STOP_STEP_NS 10000000L

void proc_options_init(struct proc_options *options)
{
    memset(options, 0, sizeof(*options));
    options->cpu = -1;
    options->in_fd = -1;
    options->out_fd = -1;
}

int proc_pin(int cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    return sched_setaffinity(0, sizeof(set), &set) < 0 ? -errno : 0;
}

void proc_unpin(void)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    for (size_t i = 0; i < CPU_SETSIZE; i++)
        CPU_SET(i, &set);
    sched_setaffinity(0, sizeof(set), &set);
}

static int open_or_null(int fd, const char *path, int flags)
{
    if (fd >= 0)
        return fd;
    const int file = path ? open(path, flags | O_CREAT | O_APPEND, 0644)
                          : open("/dev/null", flags);

    return file;
}

/* In the child: never returns. */
static void become(const struct proc_options *options)
{
    const int in = open_or_null(options->in_fd, NULL, O_RDONLY);
    const int out = open_or_null(options->out_fd, NULL, O_WRONLY);
    const int err = open_or_null(-1, options->err_path, O_WRONLY);

    dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    /* What the parent holds is not the child's to hold open. */
    close_range(3, ~0U, 0);
    for (size_t i = 0; options->env && options->env[i]; i++) {
        char *const text = strdup(options->env[i]);

        if (!text || putenv(text) != 0)
            _exit(127);
    }
    if (options->cpu >= 0 && proc_pin(options->cpu) < 0)
        _exit(126);
    execv(options->argv[0], options->argv);
    _exit(127);
}

pid_t proc_start(const struct proc_options *options)
{
    const pid_t parent = getpid();

    fflush(NULL);
    const pid_t pid = fork();

    if (pid < 0)
        return -errno;
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != parent)
            _exit(127);
        become(options);
    }
    return pid;
}

int proc_is_alive(pid_t pid)
{
    return pid > 0 && waitpid(pid, NULL, WNOHANG) == 0;
}

int proc_stop(pid_t pid)
{
    const struct timespec step = { .tv_nsec = STOP_STEP_NS };
    int status = 0;

    if (pid <= 0)
        return 0;
    kill(pid, SIGTERM);
    for (int i = 0; i < STOP_TRIES; i++) {
        if (waitpid(pid, &status, WNOHANG) != 0)
            return status;
        nanosleep(&step, NULL);
    }
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    return status;
}

/* The children's pids; returns how many. */
static size_t read_children(pid_t pid, pid_t *list, size_t cap)
{
    char path[64];
    size_t count = 0;
    long child;

    snprintf(path, sizeof(path), "/proc/%ld/task/%ld/children", (long)pid,
             (long)pid);
    FILE *const file = fopen(path, "r");

    if (!file)
        return 0;
    while (count < cap && fscanf(file, "%ld", &child) == 1)
        list[count++] = (pid_t)child;
    fclose(file);
    return count;
}

static uint64_t one_cpu_ns(pid_t pid)
{
    struct timespec used;
    clockid_t clock;

    if (clock_getcpuclockid(pid, &clock) != 0 ||
        clock_gettime(clock, &used) < 0)
        return 0;
    return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

static uint64_t one_rss_bytes(pid_t pid)
{
    unsigned long long size = 0;
    unsigned long long resident = 0;
    char path[64];

    snprintf(path, sizeof(path), "/proc/%ld/statm", (long)pid);
    FILE *const file = fopen(path, "r");

    if (!file)
        return 0;
    if (fscanf(file, "%llu %llu", &size, &resident) != 2)
        resident = 0;
    fclose(file);
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t sum_family(pid_t pid, uint64_t (*one)(pid_t pid))
{
    pid_t children[CHILD_MAX];
    const size_t count = read_children(pid, children, CHILD_MAX);
    uint64_t sum = one(pid);

    for (size_t i = 0; i < count; i++)
        sum += one(children[i]);
    return sum;
}

uint64_t proc_cpu_ns(pid_t pid)
{
    return sum_family(pid, one_cpu_ns);
}

uint64_t proc_rss_bytes(pid_t pid)
{
    return sum_family(pid, one_rss_bytes);
}

const char *proc_own_dir(void)
{
    static char dir[PATH_MAX];

    if (dir[0])
        return dir;
    const ssize_t len = readlink("/proc/self/exe", dir, sizeof(dir) - 1);

    if (len <= 0)
        return "";
    dir[len] = '\0';
    char *const slash = strrchr(dir, '/');

    if (slash)
        *slash = '\0';
    return dir;
}

static int take_if_program(const char *dir, size_t dir_len, const char *rest,
                           const char *name, char *path, size_t cap)
{
    const int len =
        snprintf(path, cap, "%.*s%s/%s", (int)dir_len, dir, rest, name);

    if (len < 0 || (size_t)len >= cap)
        return -ENOENT;
    return access(path, X_OK) == 0 ? 0 : -ENOENT;
}

int proc_find(const char *name, char *path, size_t path_cap)
{
    const char *const own = proc_own_dir();
    const size_t own_len = strlen(own);
    const char *list = getenv("PATH");

    if (own_len > 6 && strcmp(own + own_len - 6, "/.libs") == 0 &&
        take_if_program(own, own_len - 6, "", name, path, path_cap) == 0)
        return 0;
    if (own_len > 0 &&
        take_if_program(own, own_len, "", name, path, path_cap) == 0)
        return 0;
    while (list && *list) {
        const size_t len = strcspn(list, ":");

        if (len > 0 &&
            take_if_program(list, len, "", name, path, path_cap) == 0)
            return 0;
        list += len + (list[len] == ':');
    }
    /* Servers live where a user's PATH does not reach. */
    return take_if_program("/usr/sbin", 9, "", name, path, path_cap);
}
