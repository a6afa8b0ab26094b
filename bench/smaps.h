/* SPDX-License-Identifier: MIT */
/*
 * Which mappings a process's memory lies in.
 */
#ifndef MYRA_BENCH_SMAPS_H
#define MYRA_BENCH_SMAPS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SMAPS_MAX 256

struct smaps_entry {
    uint64_t start;
    uint64_t end;
    uint64_t rss_bytes;
};

/* The anonymous mappings of one process that are neither heap nor stack. */
struct smaps {
    size_t count;
    struct smaps_entry entries[SMAPS_MAX];
};

/* Empty when it cannot be read. */
void smaps_read(pid_t pid, struct smaps *smaps);

/* How many bytes more are resident now where those mappings of at most
 * len_max bytes lay before. */
uint64_t smaps_growth(pid_t pid, const struct smaps *before,
                      uint64_t len_max);

#endif
