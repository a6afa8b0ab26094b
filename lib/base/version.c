/* SPDX-License-Identifier: MIT */
/* The version of the library and what was built into it. */
#include "config.h"

#include <myra/version.h>

const char *myra_version(void)
{
    return MYRA_VERSION;
}

const char *myra_features(void)
{
    return "epoll"
#if MYRA_HAVE_URING
           " uring-token"
#endif
#if MYRA_HAVE_AVX2
           " avx2"
#endif
#ifdef MYRA_ENABLE_IFUNC
           " ifunc"
#endif
#ifdef MYRA_DEBUG
           " debug"
#endif
        ;
}
