/* SPDX-License-Identifier: MIT */
/*
 * What the counting malloc tells: one page of a file that the counted program
 * and the bench both map. MYRA_MALLOC_COUNT names the file.
 */
#ifndef MYRA_BENCH_MALLOC_COUNT_H
#define MYRA_BENCH_MALLOC_COUNT_H

#include <stdatomic.h>
#include <stdint.h>

#define MALLOC_COUNT_ENV "MYRA_MALLOC_COUNT"
#define MALLOC_COUNT_LEN 4096

struct malloc_counts {
    _Atomic uint64_t attached; /* processes that count into the file */
    _Atomic uint64_t allocs;   /* malloc, calloc, realloc and the aligned */
    _Atomic uint64_t frees;
    _Atomic uint64_t maps;     /* mmap, called by name */
};

#endif
