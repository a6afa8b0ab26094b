/* SPDX-License-Identifier: MIT */
/*
 * The kernels as GNU ifuncs (--enable-ifunc): the dynamic linker binds each
 * call once, by the processor alone.
 *
 * A resolver runs while the library is being relocated. It may call nothing
 * outside of it and cannot read the environment, so that MYRA_SIMD has no say
 * in such a build.
 */
#include "config.h"

#include "simd/cpu.h"
#include "simd/kernels.h"

#ifdef MYRA_ENABLE_IFUNC

typedef size_t find_fn(const uint8_t *p, size_t len, size_t readable);
typedef size_t find_byte_fn(const uint8_t *p, size_t len, size_t readable,
                            uint8_t byte);

/* Sanitizers are not ready yet when a resolver runs. */
#define RESOLVER \
    __attribute__((used, no_sanitize_address, no_sanitize_thread, \
                   no_sanitize_undefined)) static

/* The functions themselves, as the tables' pointers are not relocated yet. */
#if MYRA_HAVE_AVX2
#define BEST(name) \
    ((myi_cpu_features() & MYI_CPU_AVX2) ? myi_avx2_##name : myi_scalar_##name)
#else
#define BEST(name) myi_scalar_##name
#endif

RESOLVER find_fn *resolve_find_eol(void)
{
    return BEST(find_eol);
}

RESOLVER find_byte_fn *resolve_find_byte(void)
{
    return BEST(find_byte);
}

RESOLVER find_fn *resolve_find_ctl(void)
{
    return BEST(find_ctl);
}

size_t myi_find_eol(const uint8_t *p, size_t len, size_t readable)
    __attribute__((ifunc("resolve_find_eol")));
size_t myi_find_byte(const uint8_t *p, size_t len, size_t readable,
                     uint8_t byte)
    __attribute__((ifunc("resolve_find_byte")));
size_t myi_find_ctl(const uint8_t *p, size_t len, size_t readable)
    __attribute__((ifunc("resolve_find_ctl")));

#else

/* ISO C wants a declaration in every file. */
typedef int myi_without_ifunc;

#endif
