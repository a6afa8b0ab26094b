/* SPDX-License-Identifier: MIT */
/*
 * Child processes: start, pin, watch what they cost, stop. A process stands
 * for itself and its children (nginx's worker is its master's child).
 */
#ifndef MYRA_BENCH_PROC_H
#define MYRA_BENCH_PROC_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct proc_options {
    char *const *argv;  /* argv[0] is the program's path */
    const char *const *env; /* NULL-ended NAME=VALUE, added; NULL: none */
    int cpu;            /* -1: not pinned */
    int in_fd;          /* its standard input and output; -1: /dev/null */
    int out_fd;
    const char *err_path; /* where its messages go; NULL: /dev/null */
};

void proc_options_init(struct proc_options *options);

/* The child's pid, or -errno. The child dies with this process. */
pid_t proc_start(const struct proc_options *options);

/* SIGTERM, and SIGKILL when it has not ended a second later. Returns its
 * wait status. */
int proc_stop(pid_t pid);

/* 1 while it runs; an ended child is reaped. */
int proc_is_alive(pid_t pid);

/* CPU time of it and its children, all threads, nanoseconds. */
uint64_t proc_cpu_ns(pid_t pid);

/* Resident bytes of it and its children. */
uint64_t proc_rss_bytes(pid_t pid);

/* A program beside this one (build tree or installed), else on PATH. 0, or
 * -ENOENT. */
int proc_find(const char *name, char *path, size_t path_cap);

/* This program's own directory; "" when it is not known. */
const char *proc_own_dir(void);

/* Pins the calling thread. 0 or -errno. */
int proc_pin(int cpu);

/* Lets it run anywhere again. */
void proc_unpin(void);

#endif
