/* SPDX-License-Identifier: MIT */
/*
 * Memory between two pages that may not be touched, for tests that must see
 * every access outside of a buffer.
 */
#ifndef TESTS_GUARD_H
#define TESTS_GUARD_H

#include <stddef.h>
#include <stdint.h>

struct guard {
    uint8_t *start; /* first byte that may be touched */
    uint8_t *end;   /* first byte behind them that may not */
    void *map;
    size_t map_len;
};

/* At least len bytes, rounded up to whole pages. Aborts when there is no
 * memory: no test can go on then. */
void guard_open(struct guard *guard, size_t len);
void guard_close(struct guard *guard);

/* len bytes that end where the upper guard page begins; a copy of src. */
uint8_t *guard_at_end(const struct guard *guard, const void *src, size_t len);

/* len bytes that begin where the lower guard page ends; a copy of src. */
uint8_t *guard_at_start(const struct guard *guard, const void *src,
                        size_t len);

#endif
