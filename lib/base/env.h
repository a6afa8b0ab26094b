/* SPDX-License-Identifier: MIT */
/* The environment. env.c is the only caller of getenv in the library. */
#ifndef MYI_ENV_H
#define MYI_ENV_H

#include <stddef.h>

/* The value of a variable; NULL when it is not set, is empty, or when the
 * program runs with more rights than its user. */
const char *myi_env(const char *name);

/*
 * Checks value as that of one of the four variables that myra_env_check
 * knows. 0, or MYRA_EENV after writing one line into text (cap >= 1). What
 * follows the name of a variable without a check is accepted.
 */
int myi_env_check_value(const char *name, const char *value, char *text,
                        size_t cap);

/*
 * Provided by simd/kernels.c, which alone knows the processor: *values_out is
 * the list of values of MYRA_SIMD that work here ("auto, 0, avx2"). Returns 1
 * when value is on it.
 */
int myi_env_simd_exists(const char *value, const char **values_out);

#endif
