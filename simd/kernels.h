/* SPDX-License-Identifier: MIT */
/*
 * The table of vector kernels.
 *
 * One const table a level (scalar, avx2, ...), complete in each; one of them
 * is chosen when the library is loaded, from the processor and MYRA_SIMD. All
 * levels return the same for the same input.
 *
 * Contract of every kernel: p points at len bytes of input, and the bytes up
 * to p + readable (readable >= len) may be loaded as well, though what they
 * hold never changes the result. Nothing outside p .. p + readable is
 * touched. There is no minimum length and no alignment rule; len = 0 is fine.
 * The more that is readable behind the end the better (64 bytes make short
 * inputs fast); a pool buffer has MYRA_BUF_SLACK of them. The result is an
 * index below len, or len when no such byte is there.
 *
 * Call kernels once a line or more, not once a byte.
 */
#ifndef MYI_KERNELS_H
#define MYI_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include <myra/export.h>

struct myi_kernels {
    const char *name; /* "scalar", "avx2" */

    /* The first CR or LF. */
    size_t (*find_eol)(const uint8_t *p, size_t len, size_t readable);

    /* The first byte equal to byte. */
    size_t (*find_byte)(const uint8_t *p, size_t len, size_t readable,
                        uint8_t byte);

    /* The first control byte other than HTAB: 0x00-0x08, 0x0a-0x1f, 0x7f.
     * One pass thus ends a field value and refuses what may not be in it. */
    size_t (*find_ctl)(const uint8_t *p, size_t len, size_t readable);
};

extern const struct myi_kernels myi_kernels_scalar;
extern const struct myi_kernels myi_kernels_avx2; /* MYRA_HAVE_AVX2 only */

/* The slots of the two by name, for a level that falls back and for ifunc. */
size_t myi_scalar_find_eol(const uint8_t *p, size_t len, size_t readable);
size_t myi_scalar_find_byte(const uint8_t *p, size_t len, size_t readable,
                            uint8_t byte);
size_t myi_scalar_find_ctl(const uint8_t *p, size_t len, size_t readable);
size_t myi_avx2_find_eol(const uint8_t *p, size_t len, size_t readable);
size_t myi_avx2_find_byte(const uint8_t *p, size_t len, size_t readable,
                          uint8_t byte);
size_t myi_avx2_find_ctl(const uint8_t *p, size_t len, size_t readable);

/* The table of a level; NULL when this build or this processor does not have
 * it. For tests and benches, which compare levels. */
const struct myi_kernels *myi_kernels_for(const char *name);

/* Chooses and publishes; called through myi_kernels. */
const struct myi_kernels *myi_kernels_choose(void);

extern const struct myi_kernels *myi_kernels_chosen;

/* The table in use. Any thread. */
static inline const struct myi_kernels *myi_kernels(void)
{
    /* Relaxed is enough: the tables are constants of the library's image. */
    const struct myi_kernels *kernels =
        __atomic_load_n(&myi_kernels_chosen, __ATOMIC_RELAXED);

    return MYRA_LIKELY(kernels) ? kernels : myi_kernels_choose();
}

#ifdef MYRA_ENABLE_IFUNC

/* Bound by the dynamic linker from the processor alone (simd/ifunc.c). */
size_t myi_find_eol(const uint8_t *p, size_t len, size_t readable);
size_t myi_find_byte(const uint8_t *p, size_t len, size_t readable,
                     uint8_t byte);
size_t myi_find_ctl(const uint8_t *p, size_t len, size_t readable);

#else

static inline size_t myi_find_eol(const uint8_t *p, size_t len,
                                  size_t readable)
{
    return myi_kernels()->find_eol(p, len, readable);
}

static inline size_t myi_find_byte(const uint8_t *p, size_t len,
                                   size_t readable, uint8_t byte)
{
    return myi_kernels()->find_byte(p, len, readable, byte);
}

static inline size_t myi_find_ctl(const uint8_t *p, size_t len,
                                  size_t readable)
{
    return myi_kernels()->find_ctl(p, len, readable);
}

#endif

#endif
