/* SPDX-License-Identifier: MIT */
/* The generator's response reader: whole, byte by byte, and at every cut. */
#include "config.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tools/myra-load/resp.h"

struct row {
    const char *text;
    const char *body; /* expected */
    int status;       /* 0: malformed */
    int keeps_alive;
    int is_head;
    int needs_end; /* complete only when the peer closes */
};

static const struct row rows[] = {
    { "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello", 200, 1, 0,
      0 },
    { "HTTP/1.1 200\r\ncontent-length:0\r\n\r\n", "", 200, 1, 0, 0 },
    { "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", "ok", 200, 0, 0, 0 },
    { "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n"
      "Content-Length: 2\r\n\r\nok",
      "ok", 200, 1, 0, 0 },
    { "HTTP/1.1 200 OK\r\nConnection: foo , Close\r\n"
      "Content-Length: 2\r\n\r\nok",
      "ok", 200, 0, 0, 0 },
    { "HTTP/1.1 204 No Content\r\n\r\n", "", 204, 1, 0, 0 },
    { "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", "", 304, 1, 0,
      0 },
    { "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", "", 200, 1, 1, 0 },
    { "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\n"
      "HTTP/1.1 201 Made\r\nContent-Length: 1\r\n\r\nx",
      "x", 201, 1, 0, 0 },
    { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
      "5\r\nhello\r\n06;a=b\r\n world\r\n0\r\n\r\n",
      "hello world", 200, 1, 0, 0 },
    { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
      "B\r\nhello world\r\n0\r\nX-Sum: 1\r\nY: 2\r\n\r\n",
      "hello world", 200, 1, 0, 0 },
    { "HTTP/1.1 200 OK\r\n\r\nuntil the end", "until the end", 200, 0, 0, 1 },
    { "HTTP/2 200 OK\r\n\r\n", NULL, 0, 0, 0, 0 },
    { "HTTP/1.1 2x0 OK\r\n\r\n", NULL, 0, 0, 0, 0 },
    { "HTTP/1.1 200 OK\nContent-Length: 0\r\n\r\n", NULL, 0, 0, 0, 0 },
    { "HTTP/1.1 200 OK\r\nNo colon\r\n\r\n", NULL, 0, 0, 0, 0 },
    { "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", NULL, 0, 0, 0, 0 },
    { "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
      NULL, 0, 0, 0, 0 },
    { "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", NULL, 0, 0, 0, 0 },
    { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", NULL, 0,
      0, 0, 0 },
    { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
      "1\r\nab\r\n0\r\n\r\n",
      NULL, 0, 0, 0, 0 },
    { "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", NULL, 0, 0, 0,
      0 },
};

#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))

/* Feeds text in pieces that end at first and then every step bytes. */
static enum resp_verdict feed(struct resp *resp, const char *text, size_t first,
                              size_t step, size_t *used_out)
{
    const size_t len = strlen(text);
    size_t at = 0;
    size_t end = first;

    while (at < len) {
        if (end > len)
            end = len;
        size_t used = 0;
        const enum resp_verdict verdict = resp_feed(
            resp, (const uint8_t *)text + at, end - at, &used);

        at += used;
        *used_out = at;
        if (verdict != RESP_MORE)
            return verdict;
        cr_assert_eq(at, end, "bytes were left without a verdict");
        end += step;
    }
    return RESP_MORE;
}

static void check(const struct row *row, size_t first, size_t step)
{
    struct resp resp;
    size_t used = 0;

    resp_init(&resp);
    resp_start(&resp, row->is_head, (const uint8_t *)row->body,
               row->body ? (int64_t)strlen(row->body) : -1);
    enum resp_verdict verdict =
        feed(&resp, row->text, first, step, &used);

    if (row->needs_end) {
        cr_assert_eq(verdict, RESP_MORE, "%s", row->text);
        verdict = resp_end(&resp);
    }
    if (row->status == 0) {
        cr_assert_eq(verdict, RESP_BAD, "%s", row->text);
    } else {
        cr_assert_eq(verdict, RESP_DONE, "cut %zu: %s", first, row->text);
        cr_assert_eq(used, strlen(row->text));
        cr_assert_eq(resp.status, row->status);
        cr_assert_eq(resp.keeps_alive, row->keeps_alive, "%s", row->text);
        cr_assert_eq(resp.body_len, strlen(row->body));
        cr_assert_eq(resp.has_wrong_byte, 0, "%s", row->text);
    }
    resp_fini(&resp);
}

Test(resp, every_row_whole_byte_by_byte_and_cut_anywhere)
{
    for (size_t i = 0; i < ROW_COUNT; i++) {
        const size_t len = strlen(rows[i].text);

        check(&rows[i], len, len);
        check(&rows[i], 1, 1);
        for (size_t cut = 1; cut < len; cut++)
            check(&rows[i], cut, len);
    }
}

Test(resp, a_wrong_byte_and_a_longer_body_are_seen)
{
    static const char text[] =
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhellO";
    struct resp resp;
    size_t used;

    resp_init(&resp);
    resp_start(&resp, 0, (const uint8_t *)"hello", 5);
    cr_assert_eq(feed(&resp, text, 1, 1, &used), RESP_DONE);
    cr_assert_eq(resp.has_wrong_byte, 1);
    resp_start(&resp, 0, (const uint8_t *)"hell", 4);
    cr_assert_eq(feed(&resp, text, 99, 99, &used), RESP_DONE);
    cr_assert_eq(resp.has_wrong_byte, 1);
    resp_fini(&resp);
}

Test(resp, bytes_behind_a_response_are_left)
{
    static const char text[] =
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP";
    struct resp resp;
    size_t used;

    resp_init(&resp);
    resp_start(&resp, 0, NULL, -1);
    cr_assert_eq(feed(&resp, text, 99, 99, &used), RESP_DONE);
    cr_assert_eq(used, strlen(text) - 4);
    resp_fini(&resp);
}

Test(resp, an_end_in_the_middle_is_no_answer)
{
    struct resp resp;
    size_t used;

    resp_init(&resp);
    resp_start(&resp, 0, NULL, -1);
    cr_assert_eq(resp_end(&resp), RESP_BAD);
    feed(&resp, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", 99, 99,
         &used);
    cr_assert_eq(resp_end(&resp), RESP_BAD);
    resp_fini(&resp);
}

Test(resp, a_head_without_an_end_is_refused)
{
    static char text[RESP_HEAD_MAX + 100];
    struct resp resp;
    size_t used;

    memset(text, 'a', sizeof(text) - 1);
    memcpy(text, "HTTP/1.1 200 OK\r\nX: ", 20);
    resp_init(&resp);
    resp_start(&resp, 0, NULL, -1);
    cr_assert_eq(feed(&resp, text, 1000, 1000, &used), RESP_BAD);
    resp_fini(&resp);
}
