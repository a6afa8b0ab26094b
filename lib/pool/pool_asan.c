/* SPDX-License-Identifier: MIT */
/*
 * The pool's twin under AddressSanitizer: the data of a free buffer is marked
 * as not to be touched, so that a use after the release is reported at the
 * very access. The slack behind a buffer stays readable, because kernels read
 * it on behalf of the buffer before it.
 */
#include "config.h"

#include "lib/pool/pool_priv.h"

#ifdef MYI_POOL_ASAN

#include <sanitizer/asan_interface.h>

void myi_pool_asan_open(const void *data, size_t len)
{
    ASAN_UNPOISON_MEMORY_REGION(data, len);
}

void myi_pool_asan_shut(const void *data, size_t len)
{
    ASAN_POISON_MEMORY_REGION(data, len);
}

#else

/* ISO C wants a declaration in every file. */
typedef int myi_pool_without_asan;

#endif
