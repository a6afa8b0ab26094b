/* SPDX-License-Identifier: MIT */
/* Arithmetic on sizes that tells when it overflows, and small macros. */
#ifndef MYI_CHECKED_H
#define MYI_CHECKED_H

#include <stddef.h>

#define MYI_ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))

/* The struct of the given type that holds member at ptr. */
#define MYI_CONTAINER(ptr, type, member) \
    ((type *)(void *)((char *)(ptr) - offsetof(type, member)))

/* *out = a + b, and 0; or nonzero when the sum does not fit, *out being of no
 * use then. */
static inline int myi_add_size(size_t a, size_t b, size_t *out)
{
    return __builtin_add_overflow(a, b, out);
}

/* *out = a * b, and 0; or nonzero when the product does not fit. */
static inline int myi_mul_size(size_t a, size_t b, size_t *out)
{
    return __builtin_mul_overflow(a, b, out);
}

static inline int myi_is_pow2(size_t n)
{
    return n != 0 && (n & (n - 1)) == 0;
}

/* n rounded up to a multiple of align, a power of two. The caller knows that
 * the result fits. */
static inline size_t myi_align_up(size_t n, size_t align)
{
    return (n + align - 1) & ~(align - 1);
}

#endif
