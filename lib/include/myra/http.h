/* SPDX-License-Identifier: MIT */
/*
 * HTTP/1: parse heads and bodies, write heads and chunks.
 *
 * Everything here works on memory alone: bytes in, offsets and views out. No
 * call allocates, waits or keeps a pointer after it returned.
 *
 *     struct myra_http_field fields[MYRA_HTTP_FIELDS_DEFAULT];
 *     struct myra_http_head head = { .fields = fields, .field_cap = 256 };
 *     struct myra_http_scan scan = { 0 };          one for each message
 *
 *     int n = myra_http_request_parse(data, len, readable, NULL, &scan,
 *                                     &head);
 *     if (n < 0)
 *         refuse with myra_http_status_of(n, 0), then close
 *     if (n == 0)
 *         call again with the same bytes and more behind them
 *
 *     MYRA_TRY(myra_http_body_init(&body, &head, NULL));
 *     loop:
 *         int64_t used = myra_http_body_next(&body, data + n, len - n, &part);
 *         part.kind tells: DATA (part.data, part.len), TRAILER, END, MORE
 *
 * How a message is framed is decided once, by the parser (head.framing,
 * head.content_length); the writer sends that decision and never the fields
 * it was made from, so what was read and what goes out cannot differ.
 *
 * The parser is strict: CR LF ends every line, no folding, no blank before a
 * colon, one way to read a length. Each leniency is one MYRA_LENIENT_ bit of
 * the limits and off unless asked for.
 *
 * Threads: all functions are pure; an object belongs to one thread at a time.
 */
#ifndef MYRA_HTTP_H
#define MYRA_HTTP_H

#include <stddef.h>
#include <stdint.h>

#include <myra/err.h>
#include <myra/export.h>

MYRA_BEGIN_DECLS

/* ---- Names -------------------------------------------------------------- */

/* Method ids. Methods are case-sensitive: "get" is MYRA_METHOD_OTHER. */
enum myra_http_method {
    MYRA_METHOD_OTHER = 0,
    MYRA_METHOD_GET = 1,
    MYRA_METHOD_HEAD = 2,
    MYRA_METHOD_POST = 3,
    MYRA_METHOD_PUT = 4,
    MYRA_METHOD_DELETE = 5,
    MYRA_METHOD_CONNECT = 6,
    MYRA_METHOD_OPTIONS = 7,
    MYRA_METHOD_TRACE = 8,
    MYRA_METHOD_PATCH = 9
};

/* The id of a method's text. */
MYRA_API enum myra_http_method myra_http_method_of(const uint8_t *text,
                                                   size_t len);

/* The text of an id; "" for MYRA_METHOD_OTHER. */
MYRA_API const char *myra_http_method_name(enum myra_http_method method);

/* 1 for the methods that RFC 9110 9.2.2 calls idempotent. */
MYRA_API int myra_http_method_is_idempotent(enum myra_http_method method);

/* The reason phrase of a status (100 .. 599); "" for one without. */
MYRA_API const char *myra_http_reason(int status);

/* Field names with an id, all below 64 so that a set of them is one word. */
enum myra_http_field_id {
    MYRA_FIELD_OTHER = 0,
    MYRA_FIELD_HOST,
    MYRA_FIELD_CONTENT_LENGTH,
    MYRA_FIELD_TRANSFER_ENCODING,
    MYRA_FIELD_CONNECTION,
    MYRA_FIELD_PROXY_CONNECTION,
    MYRA_FIELD_KEEP_ALIVE,
    MYRA_FIELD_TE,
    MYRA_FIELD_TRAILER,
    MYRA_FIELD_UPGRADE,
    MYRA_FIELD_PROXY_AUTHENTICATE,
    MYRA_FIELD_PROXY_AUTHORIZATION,
    MYRA_FIELD_EXPECT,
    MYRA_FIELD_AUTHORIZATION,
    MYRA_FIELD_COOKIE,
    MYRA_FIELD_SET_COOKIE,
    MYRA_FIELD_DATE,
    MYRA_FIELD_VIA,
    MYRA_FIELD_SERVER,
    MYRA_FIELD_USER_AGENT,
    MYRA_FIELD_REFERER,
    MYRA_FIELD_FORWARDED,
    MYRA_FIELD_X_FORWARDED_FOR,
    MYRA_FIELD_X_FORWARDED_HOST,
    MYRA_FIELD_X_FORWARDED_PROTO,
    MYRA_FIELD_MAX_FORWARDS,
    MYRA_FIELD_ACCEPT_ENCODING,
    MYRA_FIELD_CONTENT_ENCODING,
    MYRA_FIELD_CONTENT_TYPE,
    MYRA_FIELD_CONTENT_RANGE,
    MYRA_FIELD_CACHE_CONTROL,
    MYRA_FIELD_PRAGMA,
    MYRA_FIELD_RANGE,
    MYRA_FIELD_AGE,
    MYRA_FIELD_EXPIRES,
    MYRA_FIELD_LOCATION,
    MYRA_FIELD_RETRY_AFTER,
    MYRA_FIELD_VARY,
    MYRA_FIELD_WARNING,
    MYRA_FIELD_WWW_AUTHENTICATE,
    MYRA_FIELD_IF_MATCH,
    MYRA_FIELD_IF_NONE_MATCH,
    MYRA_FIELD_IF_MODIFIED_SINCE,
    MYRA_FIELD_IF_UNMODIFIED_SINCE,
    MYRA_FIELD_IF_RANGE,
    MYRA_FIELD_SEC_WEBSOCKET_KEY,
    MYRA_FIELD_SEC_WEBSOCKET_ACCEPT,
    MYRA_FIELD_SEC_WEBSOCKET_EXTENSIONS,
    MYRA_FIELD_SEC_WEBSOCKET_PROTOCOL,
    MYRA_FIELD_SEC_WEBSOCKET_VERSION,
    MYRA_FIELD_ID_COUNT
};

/* The set that holds one id, for drop_ids below. */
#define MYRA_FIELD_BIT(id) ((uint64_t)1 << (id))

/* The id of a name; upper and lower case are the same. */
MYRA_API enum myra_http_field_id myra_http_field_id_of(const uint8_t *name,
                                                       size_t len);

/* ---- Limits ------------------------------------------------------------- */

#define MYRA_HTTP_FIELDS_DEFAULT 256

/* Leniencies, for responses only where said so. */
#define MYRA_LENIENT_LF 0x1u /* responses: LF alone ends a line (heads, chunk
                                lines, trailers) */
#define MYRA_LENIENT_FOLD 0x2u /* responses: a folded field is accepted; it
                                  is written as one line */
#define MYRA_ACCEPT_CODINGS 0x4u /* transfer codings besides chunked (gzip,
                                    deflate, compress and their x- forms) are
                                    accepted; the body comes still encoded and
                                    MYRA_HEAD_HAS_CODING is set. Without it
                                    they fail with MYRA_HTTP_CODING_UNKNOWN */

/* Passing NULL for the limits of any function means the defaults. */
struct myra_http_limits {
    uint32_t line_max;    /* start line without its end; default 16 KiB */
    uint32_t fields_max;  /* field section, every line with its end and the
                             empty line too; default 64 KiB */
    uint32_t field_count_max; /* default 256; a smaller head.field_cap wins */
    uint32_t chunk_line_max;  /* a chunk-size line; default 4 KiB */
    uint32_t chunk_ext_max;   /* all extensions of a body; default 16 KiB */
    uint32_t trailer_max;     /* as fields_max; default 64 KiB */
    uint32_t flags;           /* MYRA_LENIENT_, MYRA_ACCEPT_; default 0 */
    uint64_t body_max;        /* default UINT64_MAX: none */
};

MYRA_API void myra_http_limits_init(struct myra_http_limits *limits);

/* ---- Heads -------------------------------------------------------------- */

#define MYRA_FIELD_IS_HOP 0x1u /* for this connection only: not forwarded */
#define MYRA_FIELD_IS_IRREGULAR 0x2u /* folded, or ended by LF alone: must be
                                        written anew, never copied */
#define MYRA_FIELD_IS_UNSAFE 0x4u /* in a trailer: may not be forwarded or
                                     merged (RFC 9110 6.5.1) */
#define MYRA_FIELD_IS_DROPPED 0x8u /* the caller's: set it on a field and
                                      myra_http_emit_forward leaves it out */

/*
 * One field line. Offsets count from the first byte of the data that was
 * parsed. The value has no blanks around it; that of a folded field still
 * holds its line ends (myra_http_emit_field_of writes it as one line).
 */
struct myra_http_field {
    uint32_t name_off; /* also where the line starts */
    uint32_t value_off;
    uint32_t value_len;
    uint16_t name_len;
    uint8_t id;    /* enum myra_http_field_id */
    uint8_t flags; /* MYRA_FIELD_IS_ */
};

/* How the end of a message is found. */
enum myra_http_framing {
    MYRA_FRAMING_NONE = 0,    /* no body */
    MYRA_FRAMING_LENGTH = 1,  /* content_length bytes (0 too) */
    MYRA_FRAMING_CHUNKED = 2, /* until the last chunk and its trailers */
    MYRA_FRAMING_CLOSE = 3,   /* responses: until the connection ends */
    MYRA_FRAMING_TUNNEL = 4   /* what follows is no HTTP: a 2xx to CONNECT,
                                 or 101. A CONNECT *request* is NONE; one
                                 with a body is refused */
};

/* Flags of a head. */
#define MYRA_HEAD_KEEP_ALIVE 0x1u /* the sender lets the connection go on
                                     after this message, and the framing
                                     allows it. 0: never use it again */
#define MYRA_HEAD_EXPECT_100 0x2u /* "Expect: 100-continue" in 1.1 */
#define MYRA_HEAD_UPGRADE 0x4u    /* an Upgrade that Connection names */
#define MYRA_HEAD_WEBSOCKET 0x8u  /* ... to websocket: in a request GET and
                                     1.1, in a response 101 */
#define MYRA_HEAD_HAS_CODING 0x10u /* MYRA_ACCEPT_CODINGS: more codings than
                                      chunked */
#define MYRA_HEAD_HAS_LENGTH 0x20u /* content_length is what the field said,
                                      also without a body (HEAD, 304) */
#define MYRA_HEAD_INTERIM 0x40u  /* a 1xx other than 101: another head
                                    follows */
#define MYRA_HEAD_HAS_DATE 0x80u
#define MYRA_HEAD_TE_TRAILERS 0x100u /* request: the client wants trailers */
#define MYRA_HEAD_ASKED_CLOSE 0x200u /* "close" stood in a Connection list */
#define MYRA_HEAD_ASKED_KEEP 0x400u  /* "keep-alive" stood in Connection (a
                                        1.0 client must be told so back) */

/* A host and a port, as offsets. host_len 0: there is none. */
struct myra_http_authority {
    uint32_t off; /* host[:port], without user information */
    uint32_t len;
    uint32_t host_off; /* the host alone; an IPv6 address without brackets */
    uint32_t host_len;
    uint16_t port;   /* 0: none given */
    uint8_t is_ipv6; /* the host stood in brackets */
};

enum myra_http_target_form {
    MYRA_TARGET_ORIGIN = 0,    /* /path?query */
    MYRA_TARGET_ABSOLUTE = 1,  /* http://host/path */
    MYRA_TARGET_AUTHORITY = 2, /* host:port, CONNECT only */
    MYRA_TARGET_ASTERISK = 3   /* *, OPTIONS only */
};

enum myra_http_scheme {
    MYRA_SCHEME_NONE = 0,
    MYRA_SCHEME_HTTP = 1,
    MYRA_SCHEME_HTTPS = 2,
    MYRA_SCHEME_WS = 3,
    MYRA_SCHEME_WSS = 4
};

/* A request target, taken apart. Offsets count from the parsed text (in a
 * head: from the head's data). */
struct myra_http_target {
    uint32_t off; /* the whole target */
    uint32_t len;
    uint32_t path_off; /* path and query, byte for byte */
    uint32_t path_len; /* 0 for "http://h", "*" and CONNECT; starts with
                          '?' for "http://h?q": the '/' is to be put before */
    struct myra_http_authority authority; /* absolute and authority form */
    uint8_t form;   /* enum myra_http_target_form */
    uint8_t scheme; /* enum myra_http_scheme */
};

/*
 * A request or response head. The caller sets fields and field_cap; all else
 * is written by the parser and defined when it has returned > 0 (after an
 * error: error_offset alone). All offsets count from the data's first byte,
 * so they stay right when the bytes move.
 */
struct myra_http_head {
    struct myra_http_field *fields; /* in: room for field_cap fields */
    uint32_t field_cap;             /* in */
    uint32_t field_count;

    uint32_t head_len;     /* bytes of the head, empty lines before it and
                              the one behind it included */
    uint32_t start_off;    /* the start line (after empty lines) */
    uint32_t fields_off;   /* the first field line */
    uint32_t fields_end;   /* the empty line at the end */
    uint32_t error_offset; /* where it went wrong, after an error */
    uint32_t flags;        /* MYRA_HEAD_ */

    uint64_t content_length; /* with HAS_LENGTH, else 0 */
    uint8_t framing;         /* enum myra_http_framing */
    uint8_t version_minor;   /* 0 or 1; a higher one is read as 1 */

    uint8_t method; /* request: enum myra_http_method */
    uint8_t is_response;
    uint16_t status;     /* response: 100 .. 999 */
    uint16_t method_len; /* request; the text is at start_off */
    uint32_t reason_off; /* response; may be empty */
    uint32_t reason_len;

    /* Request. target.authority is the effective one: that of an absolute
     * or authority form, else what Host says (host_len 0: neither). */
    struct myra_http_target target;
    int32_t host_index; /* Host among the fields, or -1 */
};

/* Where the parser stands in a head that is not whole yet. All zero at the
 * start of every message. The members are the library's. */
struct myra_http_scan {
    uint32_t line_off;
    uint32_t seen_off;
    uint32_t fields_off;
    uint32_t start_off;
    uint32_t field_count;
    uint8_t phase;
    uint8_t blank_count;
    uint8_t is_resumed;
    uint8_t flags;
};

/* 1 when nothing but empty lines came so far: an idle connection may close
 * here and nothing was lost. */
static inline int myra_http_scan_is_idle(const struct myra_http_scan *scan)
{
    return scan->phase == 0;
}

/* What a response answers. Zero: any method but HEAD and CONNECT, no upgrade
 * asked for. */
struct myra_http_asked {
    uint8_t method;       /* enum myra_http_method */
    uint8_t is_upgrade;   /* any upgrade was asked for */
    uint8_t is_websocket; /* the one asked for was websocket: a 101 to
                             another protocol is refused */
};

/*
 * Parses the request head at data. len bytes are there; readable >= len may
 * be read (64 more are the best; fewer are right too). limits NULL: defaults.
 *
 * > 0: the bytes of the whole head, and *head is filled.
 * 0: not whole yet; call again with data holding the same bytes and more.
 *    Every line is checked when it is complete and no byte is looked at
 *    twice until the head is whole.
 * < 0: MYRA_HTTP_START, _METHOD, _TARGET, _VERSION, _VERSION_UNSUPPORTED,
 *    _LINE_END, _FIELD_NAME, _FIELD_VALUE, _FIELD_COLON, _FOLD,
 *    _LINE_TOO_LONG, _HEAD_TOO_LONG, _FIELDS_TOO_MANY, _HOST,
 *    _CONTENT_LENGTH, _LENGTH_CONFLICT, _TE_WITH_LENGTH,
 *    _TRANSFER_ENCODING, _CODING_UNKNOWN, _TE_VERSION; head->error_offset
 *    tells where. Nothing behind may be used: answer and close.
 *
 * The result and the error do not depend on how the bytes were cut.
 */
MYRA_API MYRA_MUST_CHECK int
myra_http_request_parse(const uint8_t *data, size_t len, size_t readable,
                        const struct myra_http_limits *limits,
                        struct myra_http_scan *scan,
                        struct myra_http_head *head);

/* The same for a response to what asked tells (NULL: all zero). Also returns
 * MYRA_HTTP_STATUS, and MYRA_HTTP_UPGRADE for a 101 nobody asked for. */
MYRA_API MYRA_MUST_CHECK int
myra_http_response_parse(const uint8_t *data, size_t len, size_t readable,
                         const struct myra_http_limits *limits,
                         const struct myra_http_asked *asked,
                         struct myra_http_scan *scan,
                         struct myra_http_head *head);

/* What the answer to this request answers. Upgrades other than to websocket
 * count as not asked for: they are not forwarded. */
static inline struct myra_http_asked
myra_http_asked_of(const struct myra_http_head *head)
{
    const uint8_t is_websocket = (head->flags & MYRA_HEAD_WEBSOCKET) != 0;
    const struct myra_http_asked asked = { head->method, is_websocket,
                                           is_websocket };
    return asked;
}

static inline const uint8_t *
myra_http_field_name(const uint8_t *data, const struct myra_http_field *field)
{
    return data + field->name_off;
}

static inline const uint8_t *
myra_http_field_value(const uint8_t *data, const struct myra_http_field *field)
{
    return data + field->value_off;
}

/* 1 when the field has this name (case ignored). */
MYRA_API int myra_http_field_is_named(const uint8_t *data,
                                      const struct myra_http_field *field,
                                      const char *name, size_t name_len);

/* The first field with the id, or with the name; NULL: none. */
MYRA_API const struct myra_http_field *
myra_http_head_field(const struct myra_http_head *head,
                     enum myra_http_field_id id);
MYRA_API const struct myra_http_field *
myra_http_head_find(const uint8_t *data, const struct myra_http_head *head,
                    const char *name, size_t name_len);

/*
 * Takes apart a list value ("a, b;q=1, c"; quoted strings are kept whole).
 * Start with *pos = 0. 1: *off and *len tell the next element, blanks cut
 * off, empty ones left out; 0: no more.
 */
MYRA_API int myra_http_list_next(const uint8_t *value, size_t value_len,
                                 size_t *pos, size_t *off, size_t *len);

/* ---- Targets ------------------------------------------------------------ */

/* Takes apart a request target as the method has it (CONNECT: authority form
 * with a port, OPTIONS: also "*"). 0, or MYRA_HTTP_TARGET with *target
 * untouched. */
MYRA_API MYRA_MUST_CHECK int
myra_http_target_parse(const uint8_t *text, size_t len,
                       enum myra_http_method method,
                       struct myra_http_target *target);

/* Takes apart "host", "host:port", "[v6]" or "[v6]:port", as in Host: the
 * port is 1 .. 65535, the host a name or an address. 0, or MYRA_HTTP_HOST
 * with *authority untouched (also for an empty text). */
MYRA_API MYRA_MUST_CHECK int
myra_http_authority_parse(const uint8_t *text, size_t len,
                          struct myra_http_authority *authority);

/* The port that a scheme has when none is given: 80 or 443. */
MYRA_API uint16_t myra_http_scheme_port(enum myra_http_scheme scheme);

/* ---- Bodies ------------------------------------------------------------- */

enum myra_http_part_kind {
    MYRA_PART_MORE = 0,    /* nothing yet: give more bytes */
    MYRA_PART_DATA = 1,    /* body bytes: data, len (never 0) */
    MYRA_PART_TRAILER = 2, /* one trailer field */
    MYRA_PART_END = 3      /* the message is complete */
};

/* One step of a body. The views are into the bytes that were given. */
struct myra_http_part {
    enum myra_http_part_kind kind;
    const uint8_t *data; /* DATA: the bytes; TRAILER: what the field's
                            offsets count from */
    size_t len;
    struct myra_http_field trailer; /* TRAILER. Forward or merge it only
                                       without MYRA_FIELD_IS_UNSAFE */
};

/* The state of a chunked body. The members are the library's but for
 * error_offset and body_len. */
struct myra_http_chunked {
    uint64_t error_offset; /* after an error: from the body's first byte */
    uint64_t body_len;     /* body bytes given out so far */
    uint64_t left;
    uint64_t used;
    uint64_t body_max;
    uint32_t line_len;
    uint32_t ext_len;
    uint32_t trailer_len;
    uint32_t seen_len;
    uint32_t line_max;
    uint32_t ext_max;
    uint32_t trailer_max;
    uint32_t trailer_count;
    uint32_t trailer_count_max;
    int err;
    uint8_t state;
    uint8_t digits;
    uint8_t flags;
};

MYRA_API void myra_http_chunked_init(struct myra_http_chunked *chunked,
                                     const struct myra_http_limits *limits);

/*
 * One step: how many of the len bytes were used (>= 0), and *part. Call again
 * with the rest until MORE or END. Nothing is held back but an incomplete
 * trailer line: it stays unused (at most trailer_max bytes) and must be given
 * again, with more behind it. After END: 0 and END.
 *
 * < 0: MYRA_HTTP_CHUNK_SIZE, _CHUNK_OVERFLOW, _CHUNK_EXT,
 * _CHUNK_EXT_TOO_LONG, _CHUNK_END, _LINE_END, _TRAILER_TOO_LONG,
 * _FIELDS_TOO_MANY, _BODY_TOO_LARGE, or what a field line can do wrong. The
 * data given out before stays valid. The same error again if called again.
 */
MYRA_API MYRA_MUST_CHECK int64_t
myra_http_chunked_next(struct myra_http_chunked *chunked, const uint8_t *data,
                       size_t len, struct myra_http_part *part);

/* A body of any framing. */
struct myra_http_body {
    uint8_t framing;
    uint8_t is_done;
    uint64_t body_len; /* body bytes given out so far */
    uint64_t left;
    uint64_t body_max;
    struct myra_http_chunked chunked;
};

/* Starts the body behind a head. 0, or MYRA_HTTP_BODY_TOO_LARGE when the
 * length is over body_max. */
MYRA_API MYRA_MUST_CHECK int
myra_http_body_init(struct myra_http_body *body,
                    const struct myra_http_head *head,
                    const struct myra_http_limits *limits);

/* As myra_http_chunked_next. Without a body (NONE, TUNNEL, length 0) the
 * first call gives END and uses nothing; with a length, END comes with the
 * call after the last DATA. len may be 0. */
MYRA_API MYRA_MUST_CHECK int64_t
myra_http_body_next(struct myra_http_body *body, const uint8_t *data,
                    size_t len, struct myra_http_part *part);

/* The connection ended here. 0: the body is complete (also when only its end
 * was left to be told); MYRA_ETRUNCATED: it is not. */
MYRA_API MYRA_MUST_CHECK int
myra_http_body_eof(const struct myra_http_body *body);

/* 1 when the body is complete and no byte more belongs to it: true also
 * before END was asked for, where the framing shows it. */
static inline int
myra_http_body_is_complete(const struct myra_http_body *body)
{
    return body->is_done ||
           (body->framing == MYRA_FRAMING_LENGTH && body->left == 0);
}

/* The body bytes that a length still announces; UINT64_MAX where unknown. */
static inline uint64_t
myra_http_body_left(const struct myra_http_body *body)
{
    if (body->is_done)
        return 0;
    return body->framing == MYRA_FRAMING_LENGTH ? body->left : UINT64_MAX;
}

/* ---- Writing ------------------------------------------------------------ */

/*
 * Bytes to be sent, in the caller's memory. The first failure stays in err
 * and makes all later calls do nothing, so one check at the end is enough:
 * MYRA_EOVERFLOW (cap is too small) or MYRA_HTTP_EMIT (a value holds CR, LF,
 * NUL or another control byte, or a name is no token). len never counts half
 * of a line.
 */
struct myra_http_out {
    uint8_t *p;
    size_t len;
    size_t cap;
    int err;
};

static inline void myra_http_out_init(struct myra_http_out *out, void *p,
                                      size_t cap)
{
    out->p = (uint8_t *)p;
    out->len = 0;
    out->cap = cap;
    out->err = 0;
}

/* "METHOD target HTTP/1.minor". The method must be a token, the target free
 * of blanks and controls. */
MYRA_API void myra_http_emit_request_line(struct myra_http_out *out,
                                          const uint8_t *method,
                                          size_t method_len,
                                          const uint8_t *target,
                                          size_t target_len,
                                          int version_minor);

/* "HTTP/1.minor status reason"; reason NULL: the standard one. */
MYRA_API void myra_http_emit_status_line(struct myra_http_out *out,
                                         int version_minor, int status,
                                         const uint8_t *reason,
                                         size_t reason_len);

/* "name: value". Also for trailers. */
MYRA_API void myra_http_emit_field(struct myra_http_out *out,
                                   const uint8_t *name, size_t name_len,
                                   const uint8_t *value, size_t value_len);

/* The same for text known at compile time or NUL-terminated. */
MYRA_API void myra_http_emit_text(struct myra_http_out *out, const char *name,
                                  const char *value);

/* A parsed field, written as "name: value" with its folds made one SP. */
MYRA_API void myra_http_emit_field_of(struct myra_http_out *out,
                                      const uint8_t *data,
                                      const struct myra_http_field *field);

/* "Content-Length: length", for messages of one's own. */
MYRA_API void myra_http_emit_length(struct myra_http_out *out,
                                    uint64_t length);

/* "Date: ..." of a time in seconds since 1970. */
MYRA_API void myra_http_emit_date(struct myra_http_out *out, int64_t unix_s);

/* The 29 characters of that date and a NUL; years 1970 .. 9999. */
MYRA_API void myra_http_date_print(int64_t unix_s, char text[30]);

/* The empty line that ends a head or a trailer section. */
MYRA_API void myra_http_emit_end(struct myra_http_out *out);

/* "size" CR LF before a chunk's data (size > 0), CR LF behind it, and the
 * last chunk's "0" CR LF: trailers and myra_http_emit_end follow that. */
MYRA_API void myra_http_emit_chunk_start(struct myra_http_out *out,
                                         uint64_t size);
MYRA_API void myra_http_emit_chunk_end(struct myra_http_out *out);
MYRA_API void myra_http_emit_last_chunk(struct myra_http_out *out);

/* The most that chunk_start writes, and chunk_end. */
#define MYRA_HTTP_CHUNK_START_MAX 18
#define MYRA_HTTP_CHUNK_END_LEN 2

/* ---- Forwarding a parsed head ------------------------------------------- */

/* Room that is always enough for start line, Host, emit_forward, framing and
 * end of a parsed head. Fields of one's own (Via ...) come on top. */
MYRA_API size_t myra_http_forward_bound(const struct myra_http_head *head);

/* The request line towards an origin: the method, the target in origin form
 * ("*" for OPTIONS without a path), HTTP/1.1. CONNECT keeps its target. */
MYRA_API void
myra_http_emit_origin_line(struct myra_http_out *out, const uint8_t *data,
                           const struct myra_http_head *head);

/* The same towards another HTTP proxy: the target as it came, without user
 * information. Needs absolute or authority form (else MYRA_EINVAL). */
MYRA_API void
myra_http_emit_proxy_line(struct myra_http_out *out, const uint8_t *data,
                          const struct myra_http_head *head);

/* "Host: " with the effective authority; an empty one where there is none
 * (a 1.0 request: give emit_field a Host of your own instead). */
MYRA_API void myra_http_emit_host(struct myra_http_out *out,
                                  const uint8_t *data,
                                  const struct myra_http_head *head);

/* The status line of a parsed response, as HTTP/1.1, its reason kept. */
MYRA_API void
myra_http_emit_forward_status(struct myra_http_out *out, const uint8_t *data,
                              const struct myra_http_head *head);

/*
 * The fields that are for the next hop too, in order, bytes as they came:
 * all but Content-Length, Transfer-Encoding and (requests) Host, those with
 * MYRA_FIELD_IS_HOP or _IS_DROPPED, and those whose id is in drop_ids.
 * Irregular ones are written anew. A websocket upgrade (MYRA_HEAD_WEBSOCKET)
 * keeps its Upgrade field and gets "Connection: Upgrade", unless drop_ids
 * has MYRA_FIELD_UPGRADE.
 */
MYRA_API void myra_http_emit_forward(struct myra_http_out *out,
                                     const uint8_t *data,
                                     const struct myra_http_head *head,
                                     uint64_t drop_ids);

/*
 * The framing fields, from what was decided: as is head->framing, or what a
 * body is sent as instead (CHUNKED for one that came by CLOSE or LENGTH,
 * CLOSE for one that came CHUNKED).
 *   NONE     Content-Length where HEAD or 304 had one, else nothing
 *   LENGTH   Content-Length once (MYRA_EINVAL when none was parsed)
 *   CHUNKED  Transfer-Encoding: chunked, behind any other codings
 *   CLOSE    nothing, or the other codings. The caller sends
 *            "Connection: close" and closes
 *   TUNNEL   nothing
 */
MYRA_API void myra_http_emit_framing(struct myra_http_out *out,
                                     const uint8_t *data,
                                     const struct myra_http_head *head,
                                     enum myra_http_framing as);

MYRA_END_DECLS

#endif
