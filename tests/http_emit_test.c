/* SPDX-License-Identifier: MIT */
/* Writing heads and chunks: every call, every refusal, every lack of room. */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/http_feed.h"

static char text[1024];
static struct myra_http_out out;

static void reset(void)
{
    memset(text, 0, sizeof(text));
    myra_http_out_init(&out, text, sizeof(text) - 1);
}

static const uint8_t *bytes(const char *s)
{
    return (const uint8_t *)s;
}

static void wrote(const char *wanted)
{
    cr_expect(out.err == 0, "%s", myra_err_name(out.err));
    cr_expect(out.len == strlen(wanted) && strcmp(text, wanted) == 0,
              "wrote %s, not %s", text, wanted);
    reset();
}

static void refused(int err)
{
    cr_expect(out.err == err, "%s", myra_err_name(out.err));
    cr_expect(out.len == 0, "wrote %s", text);
    reset();
}

Test(http_emit, start_lines)
{
    reset();
    myra_http_emit_request_line(&out, bytes("GET"), 3, bytes("/a"), 2, 1);
    wrote("GET /a HTTP/1.1\r\n");
    myra_http_emit_request_line(&out, bytes("X"), 1, bytes("*"), 1, 0);
    wrote("X * HTTP/1.0\r\n");
    myra_http_emit_status_line(&out, 1, 200, NULL, 0);
    wrote("HTTP/1.1 200 OK\r\n");
    myra_http_emit_status_line(&out, 0, 299, NULL, 0);
    wrote("HTTP/1.0 299 \r\n");
    myra_http_emit_status_line(&out, 1, 404, bytes("No\xe9"), 3);
    wrote("HTTP/1.1 404 No\xe9\r\n");
}

Test(http_emit, start_lines_refuse_what_would_split_them)
{
    reset();
    myra_http_emit_request_line(&out, bytes("G T"), 3, bytes("/"), 1, 1);
    refused(MYRA_HTTP_EMIT);
    myra_http_emit_request_line(&out, bytes(""), 0, bytes("/"), 1, 1);
    refused(MYRA_HTTP_EMIT);
    myra_http_emit_request_line(&out, bytes("GET"), 3, bytes("/ x"), 3, 1);
    refused(MYRA_HTTP_EMIT);
    myra_http_emit_request_line(&out, bytes("GET"), 3, bytes("/\r\n"), 3, 1);
    refused(MYRA_HTTP_EMIT);
    myra_http_emit_request_line(&out, bytes("GET"), 3, bytes(""), 0, 1);
    refused(MYRA_HTTP_EMIT);
    myra_http_emit_request_line(&out, bytes("GET"), 3, bytes("/"), 1, 2);
    refused(MYRA_HTTP_EMIT);
    myra_http_emit_status_line(&out, 1, 200, bytes("O\r\nK"), 4);
    refused(MYRA_HTTP_EMIT);
    myra_http_emit_status_line(&out, 1, 99, NULL, 0);
    refused(MYRA_HTTP_EMIT);
    myra_http_emit_status_line(&out, 1, 1000, NULL, 0);
    refused(MYRA_HTTP_EMIT);
    myra_http_emit_status_line(&out, -1, 200, NULL, 0);
    refused(MYRA_HTTP_EMIT);
}

Test(http_emit, fields_refuse_every_control_byte)
{
    reset();
    myra_http_emit_field(&out, bytes("X-A"), 3, bytes("b\tc\x80"), 4);
    wrote("X-A: b\tc\x80\r\n");
    myra_http_emit_text(&out, "X-A", "");
    wrote("X-A: \r\n");
    for (int b = 0; b < 256; b++) {
        const uint8_t value[3] = { 'a', (uint8_t)b, 'c' };
        const int is_bad = (b < 0x20 && b != '\t') || b == 0x7f;

        myra_http_emit_field(&out, bytes("X"), 1, value, 3);
        cr_expect(out.err == (is_bad ? MYRA_HTTP_EMIT : 0), "0x%02x", b);
        cr_expect(out.len == (is_bad ? 0 : 8));
        reset();
    }
    myra_http_emit_text(&out, "X\r\nY", "z");
    refused(MYRA_HTTP_EMIT);
    myra_http_emit_text(&out, "X ", "z");
    refused(MYRA_HTTP_EMIT);
    myra_http_emit_text(&out, "", "z");
    refused(MYRA_HTTP_EMIT);
    myra_http_emit_text(&out, "X:", "z");
    refused(MYRA_HTTP_EMIT);
}

Test(http_emit, numbers)
{
    reset();
    myra_http_emit_length(&out, 0);
    wrote("Content-Length: 0\r\n");
    myra_http_emit_length(&out, UINT64_MAX);
    wrote("Content-Length: 18446744073709551615\r\n");
    myra_http_emit_chunk_start(&out, 1);
    wrote("1\r\n");
    myra_http_emit_chunk_start(&out, 0xabcdef0);
    wrote("abcdef0\r\n");
    myra_http_emit_chunk_start(&out, UINT64_MAX);
    cr_expect(out.len == MYRA_HTTP_CHUNK_START_MAX);
    wrote("ffffffffffffffff\r\n");
    myra_http_emit_chunk_start(&out, 0);
    refused(MYRA_HTTP_EMIT);
    myra_http_emit_chunk_end(&out);
    wrote("\r\n");
    myra_http_emit_last_chunk(&out);
    myra_http_emit_text(&out, "X-Sum", "1");
    myra_http_emit_end(&out);
    wrote("0\r\nX-Sum: 1\r\n\r\n");
}

Test(http_emit, dates_agree_with_the_system)
{
    static const int64_t times[] = { 0, 951782400, 951868800, 1704067199,
                                     4102444800, 784111777, 253402300799 };
    char printed[30];
    char wanted[40];

    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        const time_t t = (time_t)times[i];
        struct tm tm;

        if (t != times[i])
            continue;
        gmtime_r(&t, &tm);
        strftime(wanted, sizeof(wanted), "%a, %d %b %Y %H:%M:%S GMT", &tm);
        myra_http_date_print(times[i], printed);
        cr_expect(strcmp(printed, wanted) == 0, "%s, not %s", printed,
                  wanted);
    }
    for (int64_t t = 0; t < INT64_C(4102444800); t += 86400 * 11 + 4567) {
        const time_t system_time = (time_t)t;
        struct tm tm;

        gmtime_r(&system_time, &tm);
        strftime(wanted, sizeof(wanted), "%a, %d %b %Y %H:%M:%S GMT", &tm);
        myra_http_date_print(t, printed);
        cr_assert(strcmp(printed, wanted) == 0, "%s, not %s", printed,
                  wanted);
    }
    myra_http_date_print(-1, printed);
    cr_expect(strcmp(printed, "Thu, 01 Jan 1970 00:00:00 GMT") == 0);
    myra_http_date_print(INT64_MAX, printed);
    cr_expect(strcmp(printed, "Fri, 31 Dec 9999 23:59:59 GMT") == 0);
    reset();
    myra_http_emit_date(&out, 784111777);
    wrote("Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
}

static void write_all(struct myra_http_out *to)
{
    myra_http_emit_status_line(to, 1, 200, NULL, 0);
    myra_http_emit_text(to, "X-A", "b");
    myra_http_emit_length(to, 12);
    myra_http_emit_date(to, 0);
    myra_http_emit_end(to);
    myra_http_emit_chunk_start(to, 300);
    myra_http_emit_chunk_end(to);
    myra_http_emit_last_chunk(to);
}

Test(http_emit, short_room_is_an_error_and_never_half_a_line)
{
    static const uint8_t nothing[1];
    size_t full;

    reset();
    write_all(&out);
    cr_assert(out.err == 0);
    full = out.len;
    for (size_t cap = 0; cap <= full; cap++) {
        struct myra_http_out small;
        uint8_t *room = guard_copy(nothing, 0, cap);

        cr_assert(room);
        myra_http_out_init(&small, room, cap);
        write_all(&small);
        cr_expect(small.err == (cap < full ? MYRA_EOVERFLOW : 0));
        cr_expect(small.len <= cap);
        cr_expect(memcmp(room, text, small.len) == 0);
        cr_expect(small.len == 0 || room[small.len - 1] == '\n');
        guard_free(room, 0, cap);
    }
}

Test(http_emit, the_first_error_stays)
{
    reset();
    myra_http_emit_text(&out, "A", "1");
    myra_http_emit_text(&out, "B", "\n");
    myra_http_emit_text(&out, "C", "3");
    cr_expect(out.err == MYRA_HTTP_EMIT);
    cr_expect(strcmp(text, "A: 1\r\n") == 0);
}
