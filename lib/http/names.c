/* SPDX-License-Identifier: MIT */
/* Methods, field names and reason phrases: text to id and back. */
#include "config.h"

#include <string.h>

#include "lib/base/checked.h"
#include "lib/http/http_priv.h"

/* ---- Methods ------------------------------------------------------------ */

static const char method_names[][8] = {
    [MYRA_METHOD_OTHER] = "",        [MYRA_METHOD_GET] = "GET",
    [MYRA_METHOD_HEAD] = "HEAD",     [MYRA_METHOD_POST] = "POST",
    [MYRA_METHOD_PUT] = "PUT",       [MYRA_METHOD_DELETE] = "DELETE",
    [MYRA_METHOD_CONNECT] = "CONNECT", [MYRA_METHOD_OPTIONS] = "OPTIONS",
    [MYRA_METHOD_TRACE] = "TRACE",   [MYRA_METHOD_PATCH] = "PATCH",
};

enum myra_http_method myra_http_method_of(const uint8_t *text, size_t len)
{
    if (len < 3 || len > 7)
        return MYRA_METHOD_OTHER;
    for (size_t i = 1; i < MYI_ARRAY_LEN(method_names); i++) {
        if (text[0] == (uint8_t)method_names[i][0] &&
            memcmp(text, method_names[i], len) == 0 &&
            method_names[i][len] == '\0')
            return (enum myra_http_method)i;
    }
    return MYRA_METHOD_OTHER;
}

const char *myra_http_method_name(enum myra_http_method method)
{
    if ((size_t)method >= MYI_ARRAY_LEN(method_names))
        return "";
    return method_names[method];
}

int myra_http_method_is_idempotent(enum myra_http_method method)
{
    switch (method) {
    case MYRA_METHOD_GET:
    case MYRA_METHOD_HEAD:
    case MYRA_METHOD_PUT:
    case MYRA_METHOD_DELETE:
    case MYRA_METHOD_OPTIONS:
    case MYRA_METHOD_TRACE:
        return 1;
    default:
        return 0;
    }
}

/* ---- Fields ------------------------------------------------------------- */

/* XX(id, name), ordered by the length of the name. */
#define FIELD_NAMES(XX) \
    XX(TE, "te") \
    XX(AGE, "age") \
    XX(VIA, "via") \
    XX(DATE, "date") \
    XX(HOST, "host") \
    XX(VARY, "vary") \
    XX(RANGE, "range") \
    XX(COOKIE, "cookie") \
    XX(EXPECT, "expect") \
    XX(PRAGMA, "pragma") \
    XX(SERVER, "server") \
    XX(EXPIRES, "expires") \
    XX(REFERER, "referer") \
    XX(TRAILER, "trailer") \
    XX(UPGRADE, "upgrade") \
    XX(WARNING, "warning") \
    XX(IF_MATCH, "if-match") \
    XX(IF_RANGE, "if-range") \
    XX(LOCATION, "location") \
    XX(FORWARDED, "forwarded") \
    XX(CONNECTION, "connection") \
    XX(KEEP_ALIVE, "keep-alive") \
    XX(SET_COOKIE, "set-cookie") \
    XX(USER_AGENT, "user-agent") \
    XX(RETRY_AFTER, "retry-after") \
    XX(CONTENT_TYPE, "content-type") \
    XX(MAX_FORWARDS, "max-forwards") \
    XX(AUTHORIZATION, "authorization") \
    XX(CACHE_CONTROL, "cache-control") \
    XX(CONTENT_RANGE, "content-range") \
    XX(IF_NONE_MATCH, "if-none-match") \
    XX(CONTENT_LENGTH, "content-length") \
    XX(ACCEPT_ENCODING, "accept-encoding") \
    XX(X_FORWARDED_FOR, "x-forwarded-for") \
    XX(CONTENT_ENCODING, "content-encoding") \
    XX(PROXY_CONNECTION, "proxy-connection") \
    XX(WWW_AUTHENTICATE, "www-authenticate") \
    XX(X_FORWARDED_HOST, "x-forwarded-host") \
    XX(IF_MODIFIED_SINCE, "if-modified-since") \
    XX(SEC_WEBSOCKET_KEY, "sec-websocket-key") \
    XX(TRANSFER_ENCODING, "transfer-encoding") \
    XX(X_FORWARDED_PROTO, "x-forwarded-proto") \
    XX(PROXY_AUTHENTICATE, "proxy-authenticate") \
    XX(IF_UNMODIFIED_SINCE, "if-unmodified-since") \
    XX(PROXY_AUTHORIZATION, "proxy-authorization") \
    XX(SEC_WEBSOCKET_ACCEPT, "sec-websocket-accept") \
    XX(SEC_WEBSOCKET_VERSION, "sec-websocket-version") \
    XX(SEC_WEBSOCKET_PROTOCOL, "sec-websocket-protocol") \
    XX(SEC_WEBSOCKET_EXTENSIONS, "sec-websocket-extensions")

#define NAME_LEN_MAX 24

struct field_name {
    char text[NAME_LEN_MAX];
    uint8_t id;
};

static const struct field_name field_names[] = {
#define FIELD_ROW(id, name) { name, MYRA_FIELD_##id },
    FIELD_NAMES(FIELD_ROW)
#undef FIELD_ROW
};

/* first_of_len[n] .. first_of_len[n + 1] are the names of n bytes. */
static const uint8_t first_of_len[NAME_LEN_MAX + 2] = {
    0,  0,  0,  1,  3,  6,  7,  11, 16, 19, 20, 24, 25,
    27, 31, 32, 34, 38, 42, 43, 45, 46, 47, 48, 48, 49,
};

#define BIT(id) MYRA_FIELD_BIT(MYRA_FIELD_##id)

#define HOP_IDS \
    (BIT(CONNECTION) | BIT(PROXY_CONNECTION) | BIT(KEEP_ALIVE) | BIT(TE) | \
     BIT(TRAILER) | BIT(UPGRADE) | BIT(PROXY_AUTHENTICATE) | \
     BIT(PROXY_AUTHORIZATION))

const uint64_t myi_http_hop_ids = HOP_IDS;

const uint64_t myi_http_unsafe_ids =
    HOP_IDS | BIT(HOST) | BIT(CONTENT_LENGTH) | BIT(TRANSFER_ENCODING) |
    BIT(EXPECT) | BIT(AUTHORIZATION) | BIT(COOKIE) | BIT(SET_COOKIE) |
    BIT(DATE) | BIT(VIA) | BIT(FORWARDED) | BIT(X_FORWARDED_FOR) |
    BIT(X_FORWARDED_HOST) | BIT(X_FORWARDED_PROTO) | BIT(MAX_FORWARDS) |
    BIT(ACCEPT_ENCODING) | BIT(CONTENT_ENCODING) | BIT(CONTENT_TYPE) |
    BIT(CONTENT_RANGE) | BIT(CACHE_CONTROL) | BIT(PRAGMA) | BIT(RANGE) |
    BIT(AGE) | BIT(EXPIRES) | BIT(LOCATION) | BIT(RETRY_AFTER) | BIT(VARY) |
    BIT(WARNING) | BIT(WWW_AUTHENTICATE) | BIT(IF_MATCH) |
    BIT(IF_NONE_MATCH) | BIT(IF_MODIFIED_SINCE) | BIT(IF_UNMODIFIED_SINCE) |
    BIT(IF_RANGE) | BIT(SEC_WEBSOCKET_KEY) | BIT(SEC_WEBSOCKET_ACCEPT) |
    BIT(SEC_WEBSOCKET_EXTENSIONS) | BIT(SEC_WEBSOCKET_PROTOCOL) |
    BIT(SEC_WEBSOCKET_VERSION);

/*
 * Setting bit 5 lowers a letter and leaves '-' and digits; of the token
 * bytes no other becomes one of those, so the comparison is exact.
 */
static inline int is_name(const uint8_t *name, const char *lower, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if ((name[i] | 0x20) != (uint8_t)lower[i])
            return 0;
    }
    return 1;
}

enum myra_http_field_id myi_http_token_id(const uint8_t *name, size_t len)
{
    if (len < 2 || len > NAME_LEN_MAX)
        return MYRA_FIELD_OTHER;
    for (size_t i = first_of_len[len]; i < first_of_len[len + 1]; i++) {
        if (is_name(name, field_names[i].text, len))
            return (enum myra_http_field_id)field_names[i].id;
    }
    return MYRA_FIELD_OTHER;
}

enum myra_http_field_id myra_http_field_id_of(const uint8_t *name, size_t len)
{
    return myi_http_is_token(name, len) ? myi_http_token_id(name, len)
                                        : MYRA_FIELD_OTHER;
}

/* ---- Reasons ------------------------------------------------------------ */

struct reason {
    uint16_t status;
    char text[32];
};

static const struct reason reasons[] = {
    { 100, "Continue" },
    { 101, "Switching Protocols" },
    { 102, "Processing" },
    { 103, "Early Hints" },
    { 200, "OK" },
    { 201, "Created" },
    { 202, "Accepted" },
    { 203, "Non-Authoritative Information" },
    { 204, "No Content" },
    { 205, "Reset Content" },
    { 206, "Partial Content" },
    { 300, "Multiple Choices" },
    { 301, "Moved Permanently" },
    { 302, "Found" },
    { 303, "See Other" },
    { 304, "Not Modified" },
    { 307, "Temporary Redirect" },
    { 308, "Permanent Redirect" },
    { 400, "Bad Request" },
    { 401, "Unauthorized" },
    { 403, "Forbidden" },
    { 404, "Not Found" },
    { 405, "Method Not Allowed" },
    { 406, "Not Acceptable" },
    { 407, "Proxy Authentication Required" },
    { 408, "Request Timeout" },
    { 409, "Conflict" },
    { 410, "Gone" },
    { 411, "Length Required" },
    { 412, "Precondition Failed" },
    { 413, "Content Too Large" },
    { 414, "URI Too Long" },
    { 415, "Unsupported Media Type" },
    { 416, "Range Not Satisfiable" },
    { 417, "Expectation Failed" },
    { 421, "Misdirected Request" },
    { 422, "Unprocessable Content" },
    { 425, "Too Early" },
    { 426, "Upgrade Required" },
    { 428, "Precondition Required" },
    { 429, "Too Many Requests" },
    { 431, "Request Header Fields Too Large" },
    { 500, "Internal Server Error" },
    { 501, "Not Implemented" },
    { 502, "Bad Gateway" },
    { 503, "Service Unavailable" },
    { 504, "Gateway Timeout" },
    { 505, "HTTP Version Not Supported" },
    { 508, "Loop Detected" },
    { 511, "Network Authentication Required" },
};

const char *myra_http_reason(int status)
{
    for (size_t i = 0; i < MYI_ARRAY_LEN(reasons); i++) {
        if (reasons[i].status == status)
            return reasons[i].text;
    }
    return "";
}
