/* SPDX-License-Identifier: MIT */
/* Calls of the allocator hook, with its defaults filled in. */
#ifndef MYI_ALLOC_H
#define MYI_ALLOC_H

#include <stddef.h>

#include <myra/alloc.h>

/* size bytes of zeros, or NULL. Aligned to 64 bytes when size >= 64, else to
 * 16. alloc = NULL is the default allocator. */
void *myi_alloc(const struct myra_allocator *alloc, size_t size);

/* The same with a given alignment: a power of two, 16 at least. */
void *myi_alloc_aligned(const struct myra_allocator *alloc, size_t size,
                        size_t align);

/* Gives back what one of the two returned for this alloc and size. */
void myi_free(const struct myra_allocator *alloc, void *ptr, size_t size);

#endif
