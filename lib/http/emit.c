/* SPDX-License-Identifier: MIT */
/*
 * Writing heads and chunks into the caller's memory.
 *
 * Every value is looked at before it is written, on every path: what may not
 * stand in a message that we accept may not stand in one that we send.
 */
#include "config.h"

#include <string.h>

#include "lib/http/emit_priv.h"

uint8_t *myi_http_out_room(struct myra_http_out *out, size_t len)
{
    if (out->err)
        return NULL;
    if (len > out->cap - out->len) {
        out->err = MYRA_EOVERFLOW;
        return NULL;
    }
    return out->p + out->len;
}

int myi_http_out_check(struct myra_http_out *out, int is_legal)
{
    if (!out->err && !is_legal)
        out->err = MYRA_HTTP_EMIT;
    return out->err == 0;
}

static int is_value(const uint8_t *value, size_t len)
{
    return myi_find_ctl(value, len, len) == len;
}

static int is_target(const uint8_t *target, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (!myi_is_class(target[i], MYI_CLASS_TARGET))
            return 0;
    }
    return len > 0;
}

/* ---- Start lines -------------------------------------------------------- */

void myra_http_emit_request_line(struct myra_http_out *out,
                                 const uint8_t *method, size_t method_len,
                                 const uint8_t *target, size_t target_len,
                                 int version_minor)
{
    uint8_t *p;

    if (!myi_http_out_check(out, myi_http_is_token(method, method_len) &&
                                     is_target(target, target_len) &&
                                     (version_minor & ~1) == 0))
        return;
    p = myi_http_out_room(out, method_len + target_len + 12);
    if (!p)
        return;
    p = myi_http_put(p, method, method_len);
    *p++ = ' ';
    p = myi_http_put(p, target, target_len);
    p = myi_http_put(p, version_minor ? " HTTP/1.1\r\n" : " HTTP/1.0\r\n", 11);
    out->len = (size_t)(p - out->p);
}

void myra_http_emit_status_line(struct myra_http_out *out, int version_minor,
                                int status, const uint8_t *reason,
                                size_t reason_len)
{
    uint8_t *p;

    if (!reason) {
        reason = (const uint8_t *)myra_http_reason(status);
        reason_len = strlen((const char *)reason);
    }
    if (!myi_http_out_check(out, status >= 100 && status <= 999 &&
                                     is_value(reason, reason_len) &&
                                     (version_minor & ~1) == 0))
        return;
    p = myi_http_out_room(out, reason_len + 15);
    if (!p)
        return;
    p = myi_http_put(p, version_minor ? "HTTP/1.1 " : "HTTP/1.0 ", 9);
    *p++ = (uint8_t)('0' + status / 100);
    *p++ = (uint8_t)('0' + status / 10 % 10);
    *p++ = (uint8_t)('0' + status % 10);
    *p++ = ' ';
    p = myi_http_put(p, reason, reason_len);
    p = myi_http_put(p, "\r\n", 2);
    out->len = (size_t)(p - out->p);
}

/* ---- Fields ------------------------------------------------------------- */

void myra_http_emit_field(struct myra_http_out *out, const uint8_t *name,
                          size_t name_len, const uint8_t *value,
                          size_t value_len)
{
    uint8_t *p;

    if (!myi_http_out_check(out, myi_http_is_token(name, name_len) &&
                                     is_value(value, value_len)))
        return;
    /* The sum cannot wrap: both are lengths of objects in memory. */
    p = myi_http_out_room(out, name_len + value_len + 4);
    if (!p)
        return;
    p = myi_http_put(p, name, name_len);
    p = myi_http_put(p, ": ", 2);
    p = myi_http_put(p, value, value_len);
    p = myi_http_put(p, "\r\n", 2);
    out->len = (size_t)(p - out->p);
}

void myra_http_emit_text(struct myra_http_out *out, const char *name,
                         const char *value)
{
    myra_http_emit_field(out, (const uint8_t *)name, strlen(name),
                         (const uint8_t *)value, strlen(value));
}

/* Decimal digits of n at the end of the 20 bytes at text; returns where they
 * begin. */
static size_t print_decimal(uint8_t text[20], uint64_t n)
{
    size_t at = 20;

    do {
        text[--at] = (uint8_t)('0' + n % 10);
        n /= 10;
    } while (n);
    return at;
}

void myra_http_emit_length(struct myra_http_out *out, uint64_t length)
{
    uint8_t digits[20];
    const size_t at = print_decimal(digits, length);
    uint8_t *p = myi_http_out_room(out, 16 + sizeof(digits) - at + 2);

    if (!p)
        return;
    p = myi_http_put(p, "Content-Length: ", 16);
    p = myi_http_put(p, digits + at, sizeof(digits) - at);
    p = myi_http_put(p, "\r\n", 2);
    out->len = (size_t)(p - out->p);
}

void myra_http_emit_end(struct myra_http_out *out)
{
    myi_http_out_add(out, "\r\n", 2);
}

/* ---- Dates -------------------------------------------------------------- */

#define DAY_S 86400

static int is_leap(int year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static void put_two(char *text, int n)
{
    text[0] = (char)('0' + n / 10);
    text[1] = (char)('0' + n % 10);
}

/* Takes the year and the month out of days since 1970; what is left is the
 * day of the month, from 0. */
static int split_days(int64_t days, int *year_out, int *month_out)
{
    static const uint8_t month_days[12] = { 31, 28, 31, 30, 31, 30,
                                            31, 31, 30, 31, 30, 31 };
    /* Whole cycles of 400 years (146097 days) first, so that the loop over
     * years stays short. */
    int year = 1970 + (int)(days / 146097) * 400;
    int left = (int)(days % 146097);
    int month = 0;

    while (left >= 365 + is_leap(year))
        left -= 365 + is_leap(year++);
    while (left >= month_days[month] + (month == 1 && is_leap(year))) {
        left -= month_days[month] + (month == 1 && is_leap(year));
        month++;
    }
    *year_out = year;
    *month_out = month;
    return left;
}

void myra_http_date_print(int64_t unix_s, char text[30])
{
    static const char days[] = "ThuFriSatSunMonTueWed";
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    const int64_t last_s = INT64_C(253402300799); /* the end of 9999 */
    int second;
    int year;
    int month;
    int day;

    if (unix_s < 0)
        unix_s = 0;
    if (unix_s > last_s)
        unix_s = last_s;
    second = (int)(unix_s % DAY_S);
    day = split_days(unix_s / DAY_S, &year, &month);
    memcpy(text, "Thu, 01 Jan 1970 00:00:00 GMT", 30);
    memcpy(text, days + unix_s / DAY_S % 7 * 3, 3);
    put_two(text + 5, day + 1);
    memcpy(text + 8, months + month * 3, 3);
    put_two(text + 12, year / 100);
    put_two(text + 14, year % 100);
    put_two(text + 17, second / 3600);
    put_two(text + 20, second / 60 % 60);
    put_two(text + 23, second % 60);
}

void myra_http_emit_date(struct myra_http_out *out, int64_t unix_s)
{
    char text[30];

    myra_http_date_print(unix_s, text);
    myra_http_emit_text(out, "Date", text);
}

/* ---- Chunks ------------------------------------------------------------- */

void myra_http_emit_chunk_start(struct myra_http_out *out, uint64_t size)
{
    static const char hex[] = "0123456789abcdef";
    uint8_t digits[16];
    size_t at = sizeof(digits);
    uint8_t *p;

    /* A chunk of size 0 would end the body. */
    if (!myi_http_out_check(out, size > 0))
        return;
    for (; size; size >>= 4)
        digits[--at] = (uint8_t)hex[size & 15];
    p = myi_http_out_room(out, sizeof(digits) - at + 2);
    if (!p)
        return;
    p = myi_http_put(p, digits + at, sizeof(digits) - at);
    p = myi_http_put(p, "\r\n", 2);
    out->len = (size_t)(p - out->p);
}

void myra_http_emit_chunk_end(struct myra_http_out *out)
{
    myi_http_out_add(out, "\r\n", MYRA_HTTP_CHUNK_END_LEN);
}

void myra_http_emit_last_chunk(struct myra_http_out *out)
{
    myi_http_out_add(out, "0\r\n", 3);
}
