/* SPDX-License-Identifier: MIT */
/* CPUID, and XCR0 for the part of it that the system decides. */
#include "config.h"

#include "simd/cpu.h"

#if defined(__x86_64__) || defined(__i386__)

#include <cpuid.h>

/* Bits of XCR0: the system saves SSE and AVX state. */
#define XCR0_SSE_AVX 0x6u

#define NO_SANITIZE \
    __attribute__((no_sanitize_address, no_sanitize_thread, \
                   no_sanitize_undefined))

/* xgetbv as bytes: the mnemonic would need -mxsave. */
NO_SANITIZE static unsigned read_xcr0(void)
{
    unsigned low;
    unsigned high;

    __asm__ volatile(".byte 0x0f, 0x01, 0xd0"
                     : "=a"(low), "=d"(high)
                     : "c"(0));
    return low;
}

NO_SANITIZE unsigned myi_cpu_features(void)
{
    unsigned eax;
    unsigned ebx;
    unsigned ecx;
    unsigned edx;
    unsigned features = 0;
    int has_ymm;

    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx))
        return 0;
    if (ecx & bit_SSE4_2)
        features |= MYI_CPU_SSE42;
    has_ymm = (ecx & bit_OSXSAVE) && (ecx & bit_AVX) &&
              (read_xcr0() & XCR0_SSE_AVX) == XCR0_SSE_AVX;
    if (!has_ymm || !__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx))
        return features;
    if ((ebx & bit_AVX2) && (ebx & bit_BMI))
        features |= MYI_CPU_AVX2;
    return features;
}

#else

unsigned myi_cpu_features(void)
{
    return 0;
}

#endif
