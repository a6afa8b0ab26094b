/* SPDX-License-Identifier: MIT */
/* Names and texts of the error codes, all from MYRA_ERR_MAP. */
#include "config.h"

#include <errno.h>
#include <string.h>

#include <myra/err.h>

#define ERRNO_MAX 4095

/* glibc 2.32 has both as constant strings; strerror may write into a buffer
 * that the next call overwrites. */
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 32) && defined(_GNU_SOURCE)

static const char *errno_name(int number)
{
    return strerrorname_np(number);
}

static const char *errno_text(int number)
{
    return strerrordesc_np(number);
}

#else

#define NAMED_ERRNOS(XX) \
    XX(E2BIG) XX(EACCES) XX(EADDRINUSE) XX(EADDRNOTAVAIL) \
    XX(EAFNOSUPPORT) XX(EAGAIN) XX(EALREADY) XX(EBADF) XX(EBADMSG) \
    XX(EBUSY) XX(ECANCELED) XX(ECHILD) XX(ECONNABORTED) XX(ECONNREFUSED) \
    XX(ECONNRESET) XX(EDEADLK) XX(EDESTADDRREQ) XX(EDOM) XX(EEXIST) \
    XX(EFAULT) XX(EFBIG) XX(EHOSTUNREACH) XX(EIDRM) XX(EILSEQ) \
    XX(EINPROGRESS) XX(EINTR) XX(EINVAL) XX(EIO) XX(EISCONN) XX(EISDIR) \
    XX(ELOOP) XX(EMFILE) XX(EMLINK) XX(EMSGSIZE) XX(ENAMETOOLONG) \
    XX(ENETDOWN) XX(ENETRESET) XX(ENETUNREACH) XX(ENFILE) XX(ENOBUFS) \
    XX(ENODEV) XX(ENOENT) XX(ENOEXEC) XX(ENOLCK) XX(ENOMEM) XX(ENOMSG) \
    XX(ENOPROTOOPT) XX(ENOSPC) XX(ENOSYS) XX(ENOTCONN) XX(ENOTDIR) \
    XX(ENOTEMPTY) XX(ENOTSOCK) XX(ENOTTY) XX(ENXIO) XX(EOPNOTSUPP) \
    XX(EOVERFLOW) XX(EPERM) XX(EPIPE) XX(EPROTO) XX(EPROTONOSUPPORT) \
    XX(EPROTOTYPE) XX(ERANGE) XX(EROFS) XX(ESPIPE) XX(ESRCH) \
    XX(ETIMEDOUT) XX(EXDEV)

static const char *errno_name(int number)
{
    switch (number) {
#define CASE_ERRNO(name) \
    case name: \
        return #name;
        NAMED_ERRNOS(CASE_ERRNO)
#undef CASE_ERRNO
    default:
        return NULL;
    }
}

static const char *errno_text(int number)
{
    return errno_name(number) ? strerror(number) : NULL;
}

#endif

static int is_errno(int err)
{
    return err < 0 && err >= -ERRNO_MAX;
}

const char *myra_strerror(int err)
{
    const char *text = NULL;

    switch (err) {
    case MYRA_OK:
        return "success";
#define CASE_TEXT(name, code, string) \
    case code: \
        return string;
        MYRA_ERR_MAP(CASE_TEXT)
#undef CASE_TEXT
    default:
        if (is_errno(err))
            text = errno_text(-err);
        return text ? text : "unknown error";
    }
}

const char *myra_err_name(int err)
{
    const char *name = NULL;

    switch (err) {
    case MYRA_OK:
        return "MYRA_OK";
#define CASE_NAME(id, code, string) \
    case code: \
        return "MYRA_" #id;
        MYRA_ERR_MAP(CASE_NAME)
#undef CASE_NAME
    default:
        if (is_errno(err))
            name = errno_name(-err);
        return name ? name : "unknown";
    }
}

int myra_err_is_fatal(int err)
{
    return err <= -5900 && err >= -5999;
}

int myra_http_status_of(int err, int from_response)
{
    if (from_response)
        return 502;
    switch (err) {
    case MYRA_HTTP_LINE_TOO_LONG:
        return 414;
    case MYRA_HTTP_HEAD_TOO_LONG:
    case MYRA_HTTP_FIELDS_TOO_MANY:
    case MYRA_HTTP_TRAILER_TOO_LONG:
        return 431;
    case MYRA_HTTP_BODY_TOO_LARGE:
    case MYRA_HTTP_CHUNK_OVERFLOW:
        return 413;
    case MYRA_HTTP_VERSION_UNSUPPORTED:
        return 505;
    case MYRA_HTTP_CODING_UNKNOWN:
        return 501;
    default:
        return 400;
    }
}
