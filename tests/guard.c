/* SPDX-License-Identifier: MIT */
/* Memory between guard pages. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/checked.h"
#include "tests/guard.h"

void guard_open(struct guard *guard, size_t len)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t inner = myi_align_up(len ? len : 1, page);

    guard->map_len = inner + 2 * page;
    guard->map = mmap(NULL, guard->map_len, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (guard->map == MAP_FAILED)
        abort();
    guard->start = (uint8_t *)guard->map + page;
    guard->end = guard->start + inner;
    if (mprotect(guard->start, inner, PROT_READ | PROT_WRITE))
        abort();
}

void guard_close(struct guard *guard)
{
    munmap(guard->map, guard->map_len);
    guard->map = NULL;
}

static uint8_t *copy_to(const struct guard *guard, uint8_t *at,
                        const void *src, size_t len)
{
    if (len > (size_t)(guard->end - guard->start))
        abort();
    if (len > 0)
        memcpy(at, src, len);
    return at;
}

uint8_t *guard_at_end(const struct guard *guard, const void *src, size_t len)
{
    return copy_to(guard, guard->end - len, src, len);
}

uint8_t *guard_at_start(const struct guard *guard, const void *src,
                        size_t len)
{
    return copy_to(guard, guard->start, src, len);
}
