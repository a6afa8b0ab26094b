/* SPDX-License-Identifier: MIT */
/*
 * AVX2: 32 bytes a vector, two vectors a step.
 *
 * The functions carry the target themselves, so that nothing else of the
 * library is compiled for AVX2; what they use inside is a macro or carries
 * the same target. Each kernel is a classifier (vector of bytes in, 0xff out
 * where a byte matches) put into one search loop. Where fewer than two
 * vectors can be loaded, scalar code does the whole input.
 */
#include "config.h"

#include "simd/kernels.h"

#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,bmi")))
#define AVX2_INLINE \
    __attribute__((target("avx2,bmi"), always_inline)) static inline

#define VECTOR sizeof(__m256i)

AVX2_INLINE __m256i load(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

/* What a classifier compares with; the vectors it does not use cost nothing. */
struct needle {
    __m256i first;
    __m256i second;
    __m256i third;
};

typedef __m256i (*classify_fn)(__m256i bytes, const struct needle *needle);

/* first: a table that gives back CR and LF for their own low four bits and
 * for all others a byte that cannot have them. */
AVX2_INLINE __m256i classify_eol(__m256i bytes, const struct needle *needle)
{
    return _mm256_cmpeq_epi8(_mm256_shuffle_epi8(needle->first, bytes),
                             bytes);
}

AVX2_INLINE __m256i classify_byte(__m256i bytes, const struct needle *needle)
{
    return _mm256_cmpeq_epi8(bytes, needle->first);
}

/* first: 0x1f, second: HTAB, third: DEL. */
AVX2_INLINE __m256i classify_ctl(__m256i bytes, const struct needle *needle)
{
    const __m256i below_space =
        _mm256_cmpeq_epi8(_mm256_max_epu8(bytes, needle->first),
                          needle->first);
    const __m256i is_tab = _mm256_cmpeq_epi8(bytes, needle->second);
    const __m256i is_del = _mm256_cmpeq_epi8(bytes, needle->third);

    return _mm256_or_si256(_mm256_andnot_si256(is_tab, below_space), is_del);
}

AVX2_INLINE uint32_t mask_at(const uint8_t *p, classify_fn classify,
                             const struct needle *needle)
{
    return (uint32_t)_mm256_movemask_epi8(classify(load(p), needle));
}

/* Index of the first match in the two vectors at p, or 2 * VECTOR. */
AVX2_INLINE size_t find_in_two(const uint8_t *p, classify_fn classify,
                               const struct needle *needle)
{
    const __m256i low = classify(load(p), needle);
    const __m256i high = classify(load(p + VECTOR), needle);
    const uint64_t mask =
        (uint32_t)_mm256_movemask_epi8(low) |
        (uint64_t)(uint32_t)_mm256_movemask_epi8(high) << VECTOR;

    return mask ? (size_t)__builtin_ctzll(mask) : 2 * VECTOR;
}

/* The search itself; readable >= 2 * VECTOR. */
AVX2_INLINE size_t find(const uint8_t *p, size_t len, size_t readable,
                        classify_fn classify, const struct needle *needle)
{
    size_t i = 0;

    for (; i + 2 * VECTOR <= readable && i < len; i += 2 * VECTOR) {
        const size_t at = find_in_two(p + i, classify, needle);

        if (at < 2 * VECTOR)
            return i + at < len ? i + at : len;
    }
    if (i < len) {
        /* Less than two vectors are left: the last two that can be loaded.
         * Bytes seen twice did not match the first time. */
        const size_t last = readable - 2 * VECTOR;
        const size_t at = last + find_in_two(p + last, classify, needle);

        return at < len ? at : len;
    }
    return len;
}

AVX2 size_t myi_avx2_find_eol(const uint8_t *p, size_t len, size_t readable)
{
    struct needle needle;

    if (readable < 2 * VECTOR)
        return myi_scalar_find_eol(p, len, readable);
    needle.first = _mm256_setr_epi8(
        -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, '\n', -1, -1, '\r', -1, -1,
        -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, '\n', -1, -1, '\r', -1, -1);
    return find(p, len, readable, classify_eol, &needle);
}

AVX2 size_t myi_avx2_find_byte(const uint8_t *p, size_t len, size_t readable,
                               uint8_t byte)
{
    struct needle needle;

    if (readable < 2 * VECTOR)
        return myi_scalar_find_byte(p, len, readable, byte);
    needle.first = _mm256_set1_epi8((char)byte);
    return find(p, len, readable, classify_byte, &needle);
}

AVX2 size_t myi_avx2_find_ctl(const uint8_t *p, size_t len, size_t readable)
{
    struct needle needle;

    if (readable < 2 * VECTOR)
        return myi_scalar_find_ctl(p, len, readable);
    needle.first = _mm256_set1_epi8(0x1f);
    needle.second = _mm256_set1_epi8('\t');
    needle.third = _mm256_set1_epi8(0x7f);
    return find(p, len, readable, classify_ctl, &needle);
}

const struct myi_kernels myi_kernels_avx2 = {
    .name = "avx2",
    .find_eol = myi_avx2_find_eol,
    .find_byte = myi_avx2_find_byte,
    .find_ctl = myi_avx2_find_ctl,
};
