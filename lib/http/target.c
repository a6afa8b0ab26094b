/* SPDX-License-Identifier: MIT */
/*
 * Request targets and authorities (RFC 9112 3.2, RFC 3986 3.2; rules 3, 31
 * and 32). Which form a target may have depends on the method alone.
 */
#include "config.h"

#include <arpa/inet.h>
#include <string.h>

#include "lib/base/checked.h"
#include "lib/http/http_priv.h"

/* ---- Authorities -------------------------------------------------------- */

/* 1 .. 65535, leading zeros taken. -1: no port. */
static int read_port(const uint8_t *text, size_t len)
{
    int port = 0;

    if (len == 0)
        return -1;
    for (size_t i = 0; i < len; i++) {
        if (!myi_is_digit(text[i]))
            return -1;
        port = port * 10 + (text[i] - '0');
        if (port > 65535)
            return -1;
    }
    return port > 0 ? port : -1;
}

static int is_ipv6(const uint8_t *text, size_t len)
{
    char address[INET6_ADDRSTRLEN];
    struct in6_addr parsed;

    if (len >= sizeof(address) || memchr(text, '\0', len))
        return 0;
    memcpy(address, text, len);
    address[len] = '\0';
    return inet_pton(AF_INET6, address, &parsed) == 1;
}

/* A percent sign begins two hex digits, as in every part of a URI. */
static int is_reg_name(const uint8_t *text, size_t len)
{
    if (len == 0)
        return 0;
    for (size_t i = 0; i < len; i++) {
        if (!myi_is_class(text[i], MYI_CLASS_NAME))
            return 0;
        if (text[i] == '%' &&
            (len - i < 3 || !myi_is_class(text[i + 1], MYI_CLASS_HEX) ||
             !myi_is_class(text[i + 2], MYI_CLASS_HEX)))
            return 0;
    }
    return 1;
}

/* The part in front of the port. */
static size_t host_part_len(const uint8_t *text, size_t len)
{
    const uint8_t *end = NULL;

    if (len > 0 && text[0] == '[') {
        end = memchr(text, ']', len);
        return end ? (size_t)(end - text) + 1 : len;
    }
    if (len > 0)
        end = memchr(text, ':', len);
    return end ? (size_t)(end - text) : len;
}

int myra_http_authority_parse(const uint8_t *text, size_t len,
                              struct myra_http_authority *authority)
{
    const size_t part_len = host_part_len(text, len);
    const int is_bracketed = part_len > 0 && text[0] == '[';
    int port = 0;

    if (len > UINT32_MAX)
        return MYRA_HTTP_HOST;
    if (is_bracketed) {
        if (part_len < 4 || text[part_len - 1] != ']' ||
            !is_ipv6(text + 1, part_len - 2))
            return MYRA_HTTP_HOST;
    } else if (!is_reg_name(text, part_len)) {
        return MYRA_HTTP_HOST;
    }
    if (part_len < len) {
        if (text[part_len] != ':')
            return MYRA_HTTP_HOST;
        port = read_port(text + part_len + 1, len - part_len - 1);
        if (port < 0)
            return MYRA_HTTP_HOST;
    }
    authority->off = 0;
    authority->len = (uint32_t)len;
    authority->host_off = is_bracketed ? 1 : 0;
    authority->host_len = (uint32_t)(is_bracketed ? part_len - 2 : part_len);
    authority->port = (uint16_t)port;
    authority->is_ipv6 = (uint8_t)is_bracketed;
    return 0;
}

/* ---- Targets ------------------------------------------------------------ */

struct scheme {
    char text[6];
    uint8_t len;
    uint8_t id;
};

static const struct scheme schemes[] = {
    { "http", 4, MYRA_SCHEME_HTTP },
    { "https", 5, MYRA_SCHEME_HTTPS },
    { "ws", 2, MYRA_SCHEME_WS },
    { "wss", 3, MYRA_SCHEME_WSS },
};

uint16_t myra_http_scheme_port(enum myra_http_scheme scheme)
{
    return scheme == MYRA_SCHEME_HTTPS || scheme == MYRA_SCHEME_WSS ? 443
                                                                    : 80;
}

/* Bytes of "scheme://" at the start of the text, or 0. */
static size_t read_scheme(const uint8_t *text, size_t len, uint8_t *id)
{
    for (size_t i = 0; i < MYI_ARRAY_LEN(schemes); i++) {
        const size_t n = schemes[i].len;

        if (len > n + 3 && memcmp(text + n, "://", 3) == 0 &&
            myi_http_is_same(text, schemes[i].text, n)) {
            *id = schemes[i].id;
            return n + 3;
        }
    }
    return 0;
}

static int read_absolute(const uint8_t *text, size_t len,
                         struct myra_http_target *target)
{
    const size_t start = read_scheme(text, len, &target->scheme);
    size_t end = start;
    size_t host = start;

    if (start == 0)
        return MYRA_HTTP_TARGET;
    while (end < len && text[end] != '/' && text[end] != '?')
        end++;
    /* User information ends at the last '@' (there may be but one). */
    for (size_t i = start; i < end; i++) {
        if (text[i] == '@')
            host = i + 1;
    }
    if (myra_http_authority_parse(text + host, end - host,
                                  &target->authority) < 0)
        return MYRA_HTTP_TARGET;
    target->form = MYRA_TARGET_ABSOLUTE;
    target->authority.off += (uint32_t)host;
    target->authority.host_off += (uint32_t)host;
    target->path_off = (uint32_t)end;
    target->path_len = (uint32_t)(len - end);
    return 0;
}

static int read_authority(const uint8_t *text, size_t len,
                          struct myra_http_target *target)
{
    if (myra_http_authority_parse(text, len, &target->authority) < 0 ||
        target->authority.port == 0)
        return MYRA_HTTP_TARGET;
    target->form = MYRA_TARGET_AUTHORITY;
    return 0;
}

static int read_form(const uint8_t *text, size_t len,
                     enum myra_http_method method,
                     struct myra_http_target *target)
{
    if (method == MYRA_METHOD_CONNECT)
        return read_authority(text, len, target);
    if (text[0] == '/') {
        target->form = MYRA_TARGET_ORIGIN;
        target->path_len = (uint32_t)len;
        return 0;
    }
    if (len == 1 && text[0] == '*' && method == MYRA_METHOD_OPTIONS) {
        target->form = MYRA_TARGET_ASTERISK;
        return 0;
    }
    return read_absolute(text, len, target);
}

int myra_http_target_parse(const uint8_t *text, size_t len,
                           enum myra_http_method method,
                           struct myra_http_target *target)
{
    struct myra_http_target parsed;

    if (len == 0 || len > UINT32_MAX)
        return MYRA_HTTP_TARGET;
    for (size_t i = 0; i < len; i++) {
        if (!myi_is_class(text[i], MYI_CLASS_TARGET))
            return MYRA_HTTP_TARGET;
    }
    memset(&parsed, 0, sizeof(parsed));
    parsed.len = (uint32_t)len;
    MYRA_TRY(read_form(text, len, method, &parsed));
    *target = parsed;
    return 0;
}
