/* SPDX-License-Identifier: MIT */
/*
 * Error codes.
 *
 * Every call that can fail returns an int: 0 or a count on success, a
 * negative code on failure. -1 to -4095 is the system's own errno, negated
 * and as given; codes at and below -5000 are the library's, in bands by
 * module: -50xx use, -52xx HTTP, -59xx fatal. (-51xx codec and -53xx
 * WebSocket are kept for those modules.) A code is never renumbered.
 *
 * Threads: everything here may be called from any thread.
 */
#ifndef MYRA_ERR_H
#define MYRA_ERR_H

#include <myra/export.h>

MYRA_BEGIN_DECLS

/* XX(name, code, text) */
#define MYRA_ERR_MAP(XX) \
    XX(EINVAL, -5001, "an argument is out of its range") \
    XX(ENOMEM, -5002, "the allocator returned no memory") \
    XX(ESTATE, -5003, "the object is not in a state that allows this call") \
    XX(ETHREAD, -5004, "called from a thread that does not own the object") \
    XX(ENOTSUP, -5005, "not supported by this build or this backend") \
    XX(ELIMIT, -5006, "a configured limit was reached") \
    XX(EEXHAUSTED, -5007, "the buffer pool is empty") \
    XX(EOVERFLOW, -5008, "a size or count does not fit its type") \
    XX(EENV, -5009, "an environment variable holds an unknown value") \
    XX(EADDRESS, -5010, "the address cannot be read") \
    XX(EBACKEND, -5011, "no backend can serve here") \
    XX(ETIMEOUT, -5012, "a deadline passed") \
    XX(ECLOSED, -5013, "the connection is closed or closing") \
    XX(EFORK, -5014, "the loop belongs to the parent process") \
    XX(ETRUNCATED, -5015, "the input ends inside a message") \
    XX(HTTP_START, -5201, "the first byte cannot begin an HTTP message") \
    XX(HTTP_METHOD, -5202, "the method is not a token") \
    XX(HTTP_TARGET, -5203, "the request target is malformed") \
    XX(HTTP_VERSION, -5204, "the HTTP version is malformed") \
    XX(HTTP_VERSION_UNSUPPORTED, -5205, "the HTTP version is not 1.x") \
    XX(HTTP_LINE_END, -5206, "a line does not end in CR LF") \
    XX(HTTP_FIELD_NAME, -5207, "a field name is not a token") \
    XX(HTTP_FIELD_VALUE, -5208, "a field value holds a control byte") \
    XX(HTTP_FIELD_COLON, -5209, "a field line has no colon") \
    XX(HTTP_FOLD, -5210, "a field line is folded") \
    XX(HTTP_LINE_TOO_LONG, -5211, "the start line exceeds its limit") \
    XX(HTTP_HEAD_TOO_LONG, -5212, "the header section exceeds its limit") \
    XX(HTTP_FIELDS_TOO_MANY, -5213, "there are too many fields") \
    XX(HTTP_HOST, -5214, "Host is missing, repeated or malformed") \
    XX(HTTP_CONTENT_LENGTH, -5215, "Content-Length is malformed") \
    XX(HTTP_LENGTH_CONFLICT, -5216, "Content-Length values differ") \
    XX(HTTP_TE_WITH_LENGTH, -5217, \
       "Transfer-Encoding and Content-Length are both present") \
    XX(HTTP_TRANSFER_ENCODING, -5218, "Transfer-Encoding is malformed") \
    XX(HTTP_CODING_UNKNOWN, -5219, "the transfer coding is not implemented") \
    XX(HTTP_TE_VERSION, -5220, "Transfer-Encoding in an HTTP/1.0 message") \
    XX(HTTP_CHUNK_SIZE, -5221, "a chunk size is malformed") \
    XX(HTTP_CHUNK_OVERFLOW, -5222, "a chunk size exceeds its range") \
    XX(HTTP_CHUNK_EXT, -5223, "a chunk extension is malformed") \
    XX(HTTP_CHUNK_EXT_TOO_LONG, -5224, "the chunk extensions exceed a limit") \
    XX(HTTP_CHUNK_END, -5225, "chunk data is not followed by CR LF") \
    XX(HTTP_TRAILER_TOO_LONG, -5226, "the trailer section exceeds its limit") \
    XX(HTTP_STATUS, -5227, "the status line is malformed") \
    XX(HTTP_BODY_TOO_LARGE, -5228, "the body exceeds its limit") \
    XX(HTTP_EMIT, -5229, "a value to be sent holds CR, LF or NUL") \
    XX(HTTP_UPGRADE, -5230, "an upgrade that was not asked for") \
    XX(HTTP_INTERIM_TOO_MANY, -5231, "too many interim responses") \
    XX(FATAL_RING, -5901, "the ring lost completions") \
    XX(FATAL_CORRUPT, -5902, "memory of the library was overwritten")

enum myra_err {
    MYRA_OK = 0,
#define MYRA_ERR_ENUM(name, code, text) MYRA_##name = code,
    MYRA_ERR_MAP(MYRA_ERR_ENUM)
#undef MYRA_ERR_ENUM
};

/* The text of a code: the library's own, or strerror's for an errno; never
 * NULL. The pointer is valid for the life of the program. */
MYRA_API const char *myra_strerror(int err);

/* The name of a code: "MYRA_HTTP_HOST", "ECONNRESET"; "unknown" for none. */
MYRA_API const char *myra_err_name(int err);

/* 1 when the object that returned the code can only be freed. */
MYRA_API int myra_err_is_fatal(int err);

/* The status to answer a request with that failed with this code (RFC 9110
 * section 15): 400, 413, 414, 431, 501, 505, or 502 for a failed upstream
 * response (from_response = 1). */
MYRA_API int myra_http_status_of(int err, int from_response);

/* Returns the code of a failed call from the calling function. */
#define MYRA_TRY(call) \
    do { \
        const int myra_try_err = (call); \
        if (myra_try_err < 0) \
            return myra_try_err; \
    } while (0)

MYRA_END_DECLS

#endif
