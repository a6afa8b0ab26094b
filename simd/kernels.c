/* SPDX-License-Identifier: MIT */
/*
 * The choice of a level: once, when the library is loaded, or at first use
 * where that comes earlier (another library's constructor). Choosing twice at
 * the same time is harmless, both find the same.
 */
#include "config.h"

#include <string.h>

#include "lib/base/checked.h"
#include "lib/base/env.h"
#include "simd/cpu.h"
#include "simd/kernels.h"

#include <myra/alloc.h>

struct level {
    const struct myi_kernels *kernels;
    unsigned features; /* that the processor must have */
};

/* From the slowest to the fastest. */
static const struct level levels[] = {
    { &myi_kernels_scalar, 0 },
#if MYRA_HAVE_AVX2
    { &myi_kernels_avx2, MYI_CPU_AVX2 },
#endif
};

const struct myi_kernels *myi_kernels_chosen;

/* The values of MYRA_SIMD without and with AVX2, and the level of a value
 * that is not among them. Kernels bound by ifunc cannot be changed. */
#ifdef MYRA_ENABLE_IFUNC
static const char *const value_lists[] = { "auto", "auto" };
#define FALLBACK best_kernels()
#else
static const char *const value_lists[] = { "auto, 0", "auto, 0, avx2" };
#define FALLBACK (&myi_kernels_scalar)
#endif

static int is_usable(const struct level *level)
{
    return (level->features & ~myi_cpu_features()) == 0;
}

const struct myi_kernels *myi_kernels_for(const char *name)
{
    for (size_t i = 0; i < MYI_ARRAY_LEN(levels); i++)
        if (strcmp(levels[i].kernels->name, name) == 0)
            return is_usable(&levels[i]) ? levels[i].kernels : NULL;
    return NULL;
}

static const struct myi_kernels *best_kernels(void)
{
    size_t i = MYI_ARRAY_LEN(levels) - 1;

    while (!is_usable(&levels[i]))
        i--;
    return levels[i].kernels;
}

/* What a value of MYRA_SIMD means here, or NULL. */
static const struct myi_kernels *kernels_of_value(const char *value)
{
    if (strcmp(value, "auto") == 0)
        return best_kernels();
#ifndef MYRA_ENABLE_IFUNC
    if (strcmp(value, "0") == 0)
        return &myi_kernels_scalar;
    if (strcmp(value, myi_kernels_scalar.name) != 0)
        return myi_kernels_for(value);
#endif
    return NULL;
}

int myi_env_simd_exists(const char *value, const char **values_out)
{
    *values_out = value_lists[best_kernels() != &myi_kernels_scalar];
    return kernels_of_value(value) != NULL;
}

const struct myi_kernels *myi_kernels_choose(void)
{
    const char *value = myi_env("MYRA_SIMD");
    const struct myi_kernels *kernels =
        kernels_of_value(value ? value : "auto");

    /* There is no call here that could fail; myra_env_check tells. */
    if (!kernels)
        kernels = FALLBACK;
    __atomic_store_n(&myi_kernels_chosen, kernels, __ATOMIC_RELAXED);
    return kernels;
}

__attribute__((constructor)) static void choose_at_load(void)
{
    (void)myi_kernels_choose();
}

const char *myra_simd_level_name(void)
{
    return myi_kernels()->name;
}
