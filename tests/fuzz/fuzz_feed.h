/* SPDX-License-Identifier: MIT */
/*
 * What the fuzz targets share. Inputs are raw protocol bytes, so that every
 * test case is a seed; where a target needs choices (cuts, leniencies), it
 * takes them from a hash of the input.
 */
#ifndef FUZZ_FEED_H
#define FUZZ_FEED_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/http_feed.h"

/* The entry point of libFuzzer and of replay.c. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A property that must hold for every input. */
#define MUST(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, \
                    #condition); \
            abort(); \
        } \
    } while (0)

/* FNV-1a. */
static inline uint64_t hash_of(const uint8_t *data, size_t size)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < size; i++)
        hash = (hash ^ data[i]) * UINT64_C(0x100000001b3);
    return hash ^ hash >> 29;
}

/* Fed whole, cut at up to three places, and byte by byte where it is short,
 * the input must come to the same. */
static inline void check_cuts(const struct feed_plan *plan,
                              const uint8_t *data, size_t size, uint64_t hash)
{
    struct feed_result whole;
    struct feed_result other;
    size_t cuts[3] = { hash % (size + 1), hash / 7919 % (size + 1),
                       hash / 104729 % (size + 1) };

    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < 2 - i; k++) {
            if (cuts[k] > cuts[k + 1]) {
                const size_t swap = cuts[k];

                cuts[k] = cuts[k + 1];
                cuts[k + 1] = swap;
            }
        }
    }
    feed_run(plan, data, size, NULL, 0, &whole);
    feed_run(plan, data, size, cuts, 3, &other);
    MUST(whole.len == other.len && whole.err == other.err);
    MUST(memcmp(whole.text, other.text, whole.len) == 0);
    feed_free(&other);
    if (size <= 512) {
        feed_steps(plan, data, size, 1, &other);
        MUST(whole.len == other.len && whole.err == other.err);
        MUST(memcmp(whole.text, other.text, whole.len) == 0);
        feed_free(&other);
    }
    feed_free(&whole);
}

#endif
