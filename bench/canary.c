/* SPDX-License-Identifier: MIT */
/*
 * The canary loop: eight independent chains of multiplications and xors.
 * It is bound by throughput, so a neighbour that takes issue slots shows.
 */
#include "config.h"

#include "bench/canary.h"

#include <stdint.h>

#include <myra/alloc.h>

#define CHAIN_COUNT 8
#define TURN_COUNT 1500
#define LEARN_COUNT 2000
/* Alone the loop stays within 10 %; shared it takes 1.5 times as long. */
#define QUIET_FACTOR 1.25

static __thread uint64_t best_ns = UINT64_MAX;
static __thread volatile uint64_t sink;

static uint64_t measure_ns(void)
{
    uint64_t chains[CHAIN_COUNT];
    const uint64_t start_ns = myra_clock_ns();

    for (int i = 0; i < CHAIN_COUNT; i++)
        chains[i] = start_ns + (uint64_t)i;
    for (int turn = 0; turn < TURN_COUNT; turn++)
        for (int i = 0; i < CHAIN_COUNT; i++)
            chains[i] = (chains[i] ^ (uint64_t)turn) * 0x9e3779b97f4a7c15u;
    for (int i = 1; i < CHAIN_COUNT; i++)
        chains[0] += chains[i];
    sink = chains[0];
    return myra_clock_ns() - start_ns;
}

static uint64_t measure_and_learn_ns(void)
{
    const uint64_t ns = measure_ns();

    if (ns < best_ns)
        best_ns = ns;
    return ns;
}

void canary_learn(void)
{
    for (int i = 0; i < LEARN_COUNT; i++)
        measure_and_learn_ns();
}

int canary_is_quiet(void)
{
    return (double)measure_and_learn_ns() <= (double)best_ns * QUIET_FACTOR;
}
