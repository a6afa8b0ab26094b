/* SPDX-License-Identifier: MIT */
/* Monotonic time. */
#include "config.h"

#include <time.h>

#include <myra/alloc.h>

uint64_t myra_clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
