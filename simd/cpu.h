/* SPDX-License-Identifier: MIT */
/* What the processor and the system together allow. */
#ifndef MYI_CPU_H
#define MYI_CPU_H

/*
 * Bits of myi_cpu_features. Each is set only when the instructions exist and
 * the system saves the registers they use.
 */
enum {
    MYI_CPU_SSE42 = 1 << 0,
    MYI_CPU_AVX2 = 1 << 1 /* with BMI1, whose tzcnt the kernels use */
};

/* Asks the processor each time and touches no memory, so that an ifunc
 * resolver may call it before relocation is done. */
unsigned myi_cpu_features(void);

#endif
