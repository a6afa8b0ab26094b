/* SPDX-License-Identifier: MIT */
/* Classes of bytes: one table of bits, shared by every parser here. */
#ifndef MYI_HTTP_CHARS_H
#define MYI_HTTP_CHARS_H

#include <stddef.h>
#include <stdint.h>

#define MYI_CLASS_TOKEN 0x01  /* RFC 9110 5.6.2 tchar */
#define MYI_CLASS_TARGET 0x02 /* may stand in a request target: no control,
                                 no blank, no '#'; 0x80 and up may */
#define MYI_CLASS_NAME 0x04   /* RFC 3986 reg-name */
#define MYI_CLASS_QUOTED 0x08 /* RFC 9110 5.6.4 qdtext */
#define MYI_CLASS_HEX 0x10

extern const uint8_t myi_http_class[256];

static inline int myi_is_class(uint8_t byte, int class_bit)
{
    return myi_http_class[byte] & class_bit;
}

static inline int myi_is_blank(uint8_t byte)
{
    return byte == ' ' || byte == '\t';
}

static inline int myi_is_digit(uint8_t byte)
{
    return byte >= '0' && byte <= '9';
}

/* ASCII only, whatever the locale. */
static inline uint8_t myi_http_lower(uint8_t byte)
{
    return byte >= 'A' && byte <= 'Z' ? byte | 0x20 : byte;
}

/* 1 when text is a token; an empty one is not. */
int myi_http_is_token(const uint8_t *text, size_t len);

/* 1 when text is lower (given in lower case), case ignored. */
int myi_http_is_same(const uint8_t *text, const char *lower, size_t len);

#endif
