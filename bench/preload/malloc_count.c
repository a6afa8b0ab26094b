/* SPDX-License-Identifier: MIT */
/*
 * A malloc that counts, for LD_PRELOAD: every allocation of a program that
 * was not built for it. It passes on to glibc's own functions by their
 * second names, so that no look-up can allocate.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench/preload/malloc_count.h"

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t align, size_t size);
void __libc_free(void *p);

/* Counts go here until the file is mapped, and without one. */
static struct malloc_counts own_counts;
static struct malloc_counts *counts = &own_counts;

static void *map(int fd)
{
    return (void *)syscall(SYS_mmap, NULL, MALLOC_COUNT_LEN,
                           PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

__attribute__((constructor)) static void attach(void)
{
    const char *const path = getenv(MALLOC_COUNT_ENV);
    const int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;

    if (fd < 0)
        return;
    void *const page = map(fd);

    close(fd);
    if (page == MAP_FAILED)
        return;
    counts = page;
    atomic_fetch_add_explicit(&counts->attached, 1, memory_order_relaxed);
}

static inline void count_alloc(void)
{
    atomic_fetch_add_explicit(&counts->allocs, 1, memory_order_relaxed);
}

void *malloc(size_t size)
{
    count_alloc();
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    count_alloc();
    return __libc_calloc(count, size);
}

void *realloc(void *p, size_t size)
{
    count_alloc();
    return __libc_realloc(p, size);
}

void *memalign(size_t align, size_t size);
void *memalign(size_t align, size_t size)
{
    count_alloc();
    return __libc_memalign(align, size);
}

void *aligned_alloc(size_t align, size_t size)
{
    count_alloc();
    return __libc_memalign(align, size);
}

int posix_memalign(void **out, size_t align, size_t size)
{
    if (align < sizeof(void *) || (align & (align - 1)) != 0)
        return EINVAL;
    count_alloc();
    void *const p = __libc_memalign(align, size);

    if (!p)
        return ENOMEM;
    *out = p;
    return 0;
}

void free(void *p)
{
    if (p)
        atomic_fetch_add_explicit(&counts->frees, 1, memory_order_relaxed);
    __libc_free(p);
}

void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
    atomic_fetch_add_explicit(&counts->maps, 1, memory_order_relaxed);
    return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, offset);
}
