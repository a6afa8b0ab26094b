/* SPDX-License-Identifier: MIT */
/*
 * Workers: this program started once more to be one thing that is measured.
 * A worker with an allocator under LD_PRELOAD is what a real program with
 * that allocator is, and every worker's memory is laid out by itself.
 */
#ifndef MYRA_BENCH_WORKER_H
#define MYRA_BENCH_WORKER_H

#include <sys/types.h>

struct worker {
    pid_t pid;
    int to_fd;   /* its standard input */
    int from_fd; /* its standard output */
};

/*
 * Starts this program as "myra-bench --worker KIND A B C" (args may end
 * early, with NULL). env and cpu as for proc_start. 0 or -errno.
 */
int worker_start(struct worker *worker, const char *kind,
                 const char *const *args, const char *const *env, int cpu);

void worker_stop(struct worker *worker);

/* Sends one byte and reads one line of numbers. Returns how many of the two
 * were read, or -errno: -EPIPE when the worker has died, -ETIMEDOUT after
 * 20 s. */
int worker_ask(struct worker *worker, double *first, double *second);

/* In the worker: what main calls for --worker. Returns the exit status. */
int worker_main(int argc, char **argv);

/* The kinds. argv[0] is the first argument. */
int worker_pool(int argc, char **argv);
int worker_relay(int argc, char **argv);
int worker_alloc(int argc, char **argv);

/* In the worker: waits for the next byte. 0 when the parent is gone. */
int worker_wait(void);

/* In the worker: answers. */
void worker_answer(double first, double second);

#endif
