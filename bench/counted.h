/* SPDX-License-Identifier: MIT */
/*
 * The bench's side of the counting malloc: where its module is, and the file
 * that it counts into.
 */
#ifndef MYRA_BENCH_COUNTED_H
#define MYRA_BENCH_COUNTED_H

#include <stddef.h>
#include <stdint.h>

#include "bench/preload/malloc_count.h"

#define COUNTED_PATH_CAP 512

struct counted {
    struct malloc_counts *counts;
    char file[COUNTED_PATH_CAP];
    char preload_text[COUNTED_PATH_CAP]; /* "LD_PRELOAD=..." */
    char file_text[COUNTED_PATH_CAP];    /* "MYRA_MALLOC_COUNT=..." */
    const char *env[3]; /* both, for a child's environment */
};

/* The file is made in dir. 0, -ENOENT without the module, or -errno. */
int counted_open(struct counted *counted, const char *dir);
void counted_close(struct counted *counted);

/* In a counted program: the file that it counts into, or NULL. */
struct malloc_counts *counted_own(void);

#endif
