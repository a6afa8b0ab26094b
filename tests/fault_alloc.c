/* SPDX-License-Identifier: MIT */
/* An allocator that fails on demand. */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fault_alloc.h"

#define MAGIC 0x6d797261u

/* In front of each allocation, in the space that its alignment leaves. */
struct header {
    size_t size;
    size_t align;
    uint32_t magic;
};

static size_t space_before(size_t align)
{
    return align > sizeof(struct header) ? align : 32;
}

static void *fault_alloc_call(void *ctx, size_t size, size_t align)
{
    struct fault_alloc *fault = ctx;
    const size_t before = space_before(align);
    struct header header = { size, align, MAGIC };
    void *whole;

    if (++fault->seen == fault->fail_at) {
        fault->has_failed = 1;
        return NULL;
    }
    if (posix_memalign(&whole, align < 32 ? 32 : align, before + size))
        return NULL;
    /* Not zeros: the library must not rely on them. */
    memset((char *)whole + before, 0xa5, size);
    memcpy((char *)whole + before - sizeof(header), &header, sizeof(header));
    fault->live++;
    return (char *)whole + before;
}

static void fault_free_call(void *ctx, void *ptr, size_t size)
{
    struct fault_alloc *fault = ctx;
    struct header header;

    memcpy(&header, (char *)ptr - sizeof(header), sizeof(header));
    if (header.magic != MAGIC || header.size != size) {
        fault->mistakes++;
        return;
    }
    header.magic = 0;
    memcpy((char *)ptr - sizeof(header), &header, sizeof(header));
    fault->live--;
    free((char *)ptr - space_before(header.align));
}

void fault_alloc_init(struct fault_alloc *fault, int fail_at)
{
    memset(fault, 0, sizeof(*fault));
    fault->base.alloc = fault_alloc_call;
    fault->base.free = fault_free_call;
    fault->base.ctx = fault;
    fault->fail_at = fail_at;
}

int fault_alloc_is_clean(const struct fault_alloc *fault)
{
    return fault->live == 0 && fault->mistakes == 0;
}
