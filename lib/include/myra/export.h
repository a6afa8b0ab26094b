/* SPDX-License-Identifier: MIT */
/*
 * Attributes of the public interface.
 *
 * MYRA_API marks every exported function: the library is built with hidden
 * visibility, and lib/libmyra.map names the same set once more.
 */
#ifndef MYRA_EXPORT_H
#define MYRA_EXPORT_H

#if defined(__GNUC__) || defined(__clang__)
#define MYRA_API __attribute__((visibility("default")))
#define MYRA_MUST_CHECK __attribute__((warn_unused_result))
#define MYRA_PRINTF(fmt_index, first_index) \
    __attribute__((format(printf, fmt_index, first_index)))
#define MYRA_ALIGNED(n) __attribute__((aligned(n)))
#define MYRA_LIKELY(x) __builtin_expect(!!(x), 1)
#define MYRA_UNLIKELY(x) __builtin_expect(!!(x), 0)
#else
#define MYRA_API
#define MYRA_MUST_CHECK
#define MYRA_PRINTF(fmt_index, first_index)
#define MYRA_ALIGNED(n)
#define MYRA_LIKELY(x) (x)
#define MYRA_UNLIKELY(x) (x)
#endif

#ifdef __cplusplus
#define MYRA_BEGIN_DECLS extern "C" {
#define MYRA_END_DECLS }
#else
#define MYRA_BEGIN_DECLS
#define MYRA_END_DECLS
#endif

#endif
