/* SPDX-License-Identifier: MIT */
/*
 * What the files of `myra demo` share: the processes it starts, and what it
 * draws.
 */
#ifndef MYRA_DEMO_H
#define MYRA_DEMO_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define DEMO_ORIGIN_COUNT 2
#define DEMO_BODY_LEN 128

/* In memory that the demo and its origins share: answers so far. */
struct demo_counters {
    _Atomic uint64_t served[DEMO_ORIGIN_COUNT];
};

/* ---- demo_origin.c ------------------------------------------------------ */

/* The origin's whole program: answers every request on the listening
 * descriptor with DEMO_BODY_LEN bytes, until it is killed. Counts in
 * counters->served[index]. Returns an exit status. */
int demo_origin_run(int listen_fd, int counter_fd, unsigned index);

/* ---- demo_process.c ----------------------------------------------------- */

/* Starts a program with the descriptors in keep_fds (-1 ends the list) open.
 * It is killed by the system when this process ends, and gets no signal from
 * the terminal. The pid, or a negative errno. */
pid_t demo_spawn(const char *path, char *const *argv, const int *keep_fds);

/* Sends the signal, waits up to timeout_ns, then kills. *pid becomes 0. The
 * status as waitpid tells it; -1 when there was no such process. */
int demo_end_process(pid_t *pid, int signal_number, uint64_t timeout_ns);

/* 1 when the process has ended; it is waited for and *pid becomes 0. */
int demo_has_ended(pid_t *pid);

/* CPU time used by a living process so far, all threads; 0 when unknown. */
uint64_t demo_cpu_ns(pid_t pid);

/* Listens on a port of 127.0.0.1 (0: any); *port_out is the one. A
 * descriptor or a negative errno. */
int demo_listen(uint16_t port, uint16_t *port_out);

/* 1 when something accepts connections on the port of 127.0.0.1. */
int demo_is_listening(uint16_t port);

/* ---- demo_view.c -------------------------------------------------------- */

/* One look at the running demo. */
struct demo_frame {
    double elapsed_s, total_s;
    double rate_per_s;
    uint64_t p50_ns, p99_ns; /* of the last interval */
    uint64_t answered, errors;
    double origin_rates[DEMO_ORIGIN_COUNT];
    int is_origin_up[DEMO_ORIGIN_COUNT];
    const char *note; /* what is going on, one line */
};

struct demo_view {
    int is_live; /* drawn in place, on a terminal */
    int has_color;
    int drawn_lines;
    double plain_at_s; /* when the next plain line is due */
};

void demo_view_init(struct demo_view *view);

/* Draws in place, or prints a line once a second. */
void demo_view_draw(struct demo_view *view, const struct demo_frame *frame);

/* A line that stays. */
void demo_view_say(struct demo_view *view, const char *text);

/* Takes the live lines off the screen. */
void demo_view_clear(struct demo_view *view);

/* One column of the table at the end. */
struct demo_result {
    const char *title;
    uint64_t answered, errors;
    double rate_per_s;
    uint64_t p50_ns, p99_ns, p999_ns;
    double cpu_ns; /* of the proxy, a request */
};

/* "61.2 us", "1.20 ms". */
void demo_print_time(char *text, size_t text_cap, double ns);

void demo_view_table(const struct demo_result *fixed,
                     const struct demo_result *full);

#endif
