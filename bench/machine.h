/* SPDX-License-Identifier: MIT */
/*
 * The machine under the numbers: what it is, and who else uses it.
 */
#ifndef MYRA_BENCH_MACHINE_H
#define MYRA_BENCH_MACHINE_H

#include <stdint.h>

/* The processors' time so far, nanoseconds (from ticks of 10 ms). */
struct machine_time {
    uint64_t busy_ns;  /* all processors, without steal */
    uint64_t steal_ns;
    uint64_t wall_ns;
    uint64_t own_ns;   /* this process, all threads */
};

struct machine_card {
    char commit[64];
    char cpu[128];
    char kernel[128];
    int cpu_count;
    char simd[16];
};

void machine_read_card(struct machine_card *card);

void machine_read_time(struct machine_time *time);

/* Non-idle time of one processor, without steal. */
uint64_t machine_cpu_busy_ns(int cpu);

/* Waits until a quarter second passes with at most one tick of work, up to
 * limit_ns. 1 when it came to that. */
int machine_wait_quiet(uint64_t limit_ns);

/* Processors online. */
int machine_cpu_count(void);

#endif
