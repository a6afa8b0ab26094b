/* SPDX-License-Identifier: MIT */
/*
 * The one mapping that holds the data of all buffers of a pool.
 *
 * A buffer's stride is its capacity and the readable slack behind it, rounded
 * up to the alignment: the default 4032 + 64 is a page to the byte. All pages
 * are touched here, since a fault in the middle of traffic costs more than
 * everything else that happens to a buffer.
 */
#include "config.h"

#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/checked.h"
#include "lib/pool/pool_priv.h"

#define HUGE_PAGE ((size_t)2 << 20)

static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* len and align are multiples of the page size; NULL when there is no room. */
static uint8_t *map_aligned(size_t len, size_t align)
{
    size_t map_len;
    size_t head_len;
    uint8_t *map;

    if (myi_add_size(len, align - page_size(), &map_len))
        return NULL;
    map = mmap(NULL, map_len, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return NULL;
    head_len = (size_t)(-(uintptr_t)map & (align - 1));
    if (head_len > 0)
        munmap(map, head_len);
    if (map_len - head_len > len)
        munmap(map + head_len + len, map_len - head_len - len);
    return map + head_len;
}

static void touch(uint8_t *base, size_t len)
{
    const size_t step = page_size();

    for (size_t at = 0; at < len; at += step)
        *(volatile uint8_t *)(base + at) = 0;
}

int myi_slab_map(const struct myra_pool_options *options,
                 struct myi_slab *slab_out)
{
    const size_t page = options->huge ? HUGE_PAGE : page_size();
    const size_t align =
        options->data_align > page ? options->data_align : page;
    struct myi_slab slab;

    slab.stride = myi_align_up((size_t)options->buf_cap + MYRA_BUF_SLACK,
                               options->data_align);
    if (myi_mul_size(slab.stride, options->count, &slab.len) ||
        myi_add_size(slab.len, page, &slab.len))
        return MYRA_EOVERFLOW;
    slab.len = myi_align_up(slab.len - page, page);
    slab.base = map_aligned(slab.len, align);
    if (!slab.base)
        return MYRA_ENOMEM;
#ifdef MADV_HUGEPAGE
    /* A wish: without it the pool works with small pages. */
    if (options->huge)
        (void)madvise(slab.base, slab.len, MADV_HUGEPAGE);
#endif
    touch(slab.base, slab.len);
    *slab_out = slab;
    return 0;
}

void myi_slab_unmap(struct myi_slab *slab)
{
    if (!slab->base)
        return;
    /* The next mapping at this address must not inherit the marks. */
    myi_pool_asan_open(slab->base, slab->len);
    munmap(slab->base, slab->len);
    slab->base = NULL;
}
