/* SPDX-License-Identifier: MIT */
/*
 * The allocator hook and the log hook.
 *
 * The library allocates at set-up and on growth only, and always through a
 * struct myra_allocator. Where an options struct takes a pointer to one, NULL
 * means the process's default (malloc unless myra_set_default_allocator was
 * called). The struct must outlive every object made with it.
 */
#ifndef MYRA_ALLOC_H
#define MYRA_ALLOC_H

#include <stddef.h>
#include <stdint.h>

#include <myra/export.h>

MYRA_BEGIN_DECLS

/*
 * alloc returns size bytes aligned to align (a power of two, 16 at least) or
 * NULL. free gets what alloc returned together with the same size; it is
 * never called with NULL. Both may be called from any thread that uses an
 * object made with the allocator.
 */
struct myra_allocator {
    void *(*alloc)(void *ctx, size_t size, size_t align);
    void (*free)(void *ctx, void *ptr, size_t size);
    void *ctx;
};

/* The allocator that NULL stands for. Never NULL. */
MYRA_API const struct myra_allocator *myra_default_allocator(void);

/* Changes what NULL stands for from now on; NULL sets malloc again. Not
 * thread-safe: call it before the first other call into the library. */
MYRA_API void myra_set_default_allocator(const struct myra_allocator *alloc);

/*
 * An allocator that counts and passes on to another. Set up with
 * myra_counting_init; then give &counting->base to the library and read the
 * counters with myra_counting_read from any thread.
 */
struct myra_counting_allocator {
    struct myra_allocator base;
    const struct myra_allocator *next;
    uint64_t allocs; /* calls of alloc that succeeded */
    uint64_t frees;
    uint64_t bytes; /* in use now */
};

MYRA_API void myra_counting_init(struct myra_counting_allocator *counting,
                                 const struct myra_allocator *next);
MYRA_API void
myra_counting_read(const struct myra_counting_allocator *counting,
                   uint64_t *allocs, uint64_t *frees, uint64_t *bytes);

enum myra_log_level {
    MYRA_LOG_ERROR = 0,
    MYRA_LOG_WARN = 1,
    MYRA_LOG_INFO = 2,
    MYRA_LOG_DEBUG = 3
};

/* text is one line without its newline, valid during the call. */
typedef void (*myra_log_fn)(void *ctx, enum myra_log_level level,
                            const char *text);

/* The library itself never prints. NULL (the default) drops every line. Not
 * thread-safe; fn may be called from any thread afterwards. */
MYRA_API void myra_set_log(myra_log_fn fn, void *ctx,
                           enum myra_log_level max_level);

/* Monotonic time in nanoseconds (CLOCK_MONOTONIC). */
MYRA_API uint64_t myra_clock_ns(void);

/*
 * Checks the values of MYRA_BACKEND, MYRA_WAIT, MYRA_POLLER and MYRA_SIMD.
 * 0, or MYRA_EENV after writing one line that names the variable, its value
 * and the values that exist into text (always terminated; text_cap >= 1).
 * Programs call it first and exit with status 2.
 */
MYRA_API int myra_env_check(char *text, size_t text_cap);

/* The SIMD level in use: "scalar", "sse42", "avx2", "avx512" or "neon". */
MYRA_API const char *myra_simd_level_name(void);

MYRA_END_DECLS

#endif
