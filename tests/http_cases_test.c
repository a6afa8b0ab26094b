/* SPDX-License-Identifier: MIT */
/*
 * The rows of tests/cases/http1 against the parsers alone: verdict, status
 * and number of messages, however the bytes are cut. (tests/run-cases goes
 * further: contents, and what the proxy makes of them.)
 */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/http_feed.h"

/* Where the sources are when the environment does not say (make does). */
#ifndef MYRA_TEST_SRCDIR
#define MYRA_TEST_SRCDIR "."
#endif

struct row {
    char *file;
    char *kind;
    char *expect;
    char *status;
    char *detail;
};

/* The folder of the cases: beside the sources, wherever the build is. */
static const char *cases_dir(void)
{
    static char dir[1024];
    const char *srcdir = getenv("srcdir");

    snprintf(dir, sizeof(dir), "%s/tests/cases/http1",
             srcdir ? srcdir : MYRA_TEST_SRCDIR);
    return dir;
}

static uint8_t *read_file(const char *name, size_t *len_out)
{
    char path[1200];
    FILE *file;
    uint8_t *bytes = malloc(1 << 20);

    snprintf(path, sizeof(path), "%s/%s", cases_dir(), name);
    file = fopen(path, "rb");
    cr_assert(file, "%s cannot be opened", path);
    *len_out = fread(bytes, 1, 1 << 20, file);
    cr_assert(*len_out < 1 << 20, "%s is too long for this test", name);
    fclose(file);
    bytes[*len_out] = '\0';
    return bytes;
}

/* Cuts the line at its tabs; 0 for a line of another shape. */
static int split_row(char *line, struct row *row)
{
    char *column[7];
    int n = 0;

    line[strcspn(line, "\n")] = '\0';
    for (char *p = line; p && n < 7; n++) {
        column[n] = p;
        p = strchr(p, '\t');
        if (p)
            *p++ = '\0';
    }
    if (n != 7)
        return 0;
    row->file = column[0];
    row->kind = column[1];
    row->expect = column[2];
    row->status = column[3];
    row->detail = column[6];
    return 1;
}

/* The value of a key in "a=b;c=d", or NULL; good until the next call. */
static const char *detail_of(const struct row *row, const char *key)
{
    static char value[4096];
    const size_t key_len = strlen(key);
    const char *p = row->detail;

    while (p && *p) {
        const char *end = strchr(p, ';');
        const size_t len = end ? (size_t)(end - p) : strlen(p);

        if (len > key_len && strncmp(p, key, key_len) == 0 &&
            p[key_len] == '=') {
            snprintf(value, sizeof(value), "%.*s", (int)(len - key_len - 1),
                     p + key_len + 1);
            return value;
        }
        p = end ? end + 1 : NULL;
    }
    return NULL;
}

/* "for=GET,HEAD" as what the responses answer; an upgrade counts as asked for
 * unless the row says otherwise. */
static size_t asked_of(const struct row *row, struct myra_http_asked *asked,
                       size_t cap)
{
    const char *off = detail_of(row, "upgrade_asked");
    const uint8_t is_upgrade = !(off && strcmp(off, "0") == 0);
    const char *names = detail_of(row, "for");
    char copy[256];
    size_t count = 0;

    snprintf(copy, sizeof(copy), "%s", names ? names : "GET");
    for (char *name = strtok(copy, ","); name && count < cap;
         name = strtok(NULL, ",")) {
        memset(&asked[count], 0, sizeof(asked[count]));
        asked[count].method = (uint8_t)myra_http_method_of(
            (const uint8_t *)name, strlen(name));
        asked[count].is_upgrade = is_upgrade;
        count++;
    }
    return count;
}

static int is_status_listed(const struct row *row, int status)
{
    const char *also = detail_of(row, "status_also");
    char text[16];

    if (row->status[0] == '\0')
        return 1;
    snprintf(text, sizeof(text), "%d", status);
    return strcmp(row->status, text) == 0 || (also && strstr(also, text));
}

static void check_refusal(const struct row *row,
                          const struct feed_result *result, int is_response)
{
    const char *messages = detail_of(row, "msgs");

    cr_expect(strcmp(row->expect, "accept") != 0, "%s is refused: %s",
              row->file, result->text);
    if (result->err != MYRA_ETRUNCATED)
        cr_expect(is_status_listed(
                      row, myra_http_status_of(result->err, is_response)),
                  "%s: status %d", row->file,
                  myra_http_status_of(result->err, is_response));
    if (messages)
        cr_expect(result->message_count == (unsigned)atoi(messages),
                  "%s: %u messages", row->file, result->message_count);
}

static void check_acceptance(const struct row *row,
                             const struct feed_result *result, size_t len)
{
    const char *messages = detail_of(row, "msgs");
    /* Refused for what comes behind a good message: told by unused bytes. */
    const int has_rest = result->used < len;
    const char *keep;

    cr_expect(strcmp(row->expect, "reject") != 0 || has_rest,
              "%s is accepted:\n%s", row->file, result->text);
    messages = detail_of(row, "msgs");
    if (messages && !strstr(result->text, "waiting"))
        cr_expect(result->message_count >= (unsigned)atoi(messages),
                  "%s: %u messages", row->file, result->message_count);
    keep = detail_of(row, "keep");
    if (keep)
        cr_expect(result->is_kept == atoi(keep), "%s: keep %d", row->file,
                  result->is_kept);
}

static void run_row(const struct row *row)
{
    struct myra_http_asked asked[8];
    struct feed_plan plan = { 0 };
    struct feed_result result;
    const char *eof = detail_of(row, "eof");
    const char *where;
    size_t len;
    uint8_t *bytes = read_file(row->file, &len);

    plan.is_eof = eof && strcmp(eof, "1") == 0;
    plan.kind = strcmp(row->kind, "request") == 0    ? FEED_REQUEST
                : strcmp(row->kind, "response") == 0 ? FEED_RESPONSE
                                                     : FEED_CHUNKED;
    if (plan.kind == FEED_RESPONSE) {
        plan.asked_count = asked_of(row, asked, 8);
        plan.asked = asked;
    }
    where = feed_all(&plan, bytes, len, &result);
    cr_expect(!where, "%s: %s gives\n%s", row->file, where, result.text);
    if (result.err)
        check_refusal(row, &result, plan.kind == FEED_RESPONSE);
    else
        check_acceptance(row, &result, len);
    feed_free(&result);
    free(bytes);
}

Test(http_cases, every_row_comes_out_right_however_it_is_cut)
{
    size_t len;
    char *table = (char *)read_file("cases.tsv", &len);
    int count = 0;

    for (char *line = table; line && *line;) {
        char *next = strchr(line, '\n');
        struct row row;

        if (next)
            *next++ = '\0';
        cr_assert(split_row(line, &row), "a line of another shape: %s", line);
        if (strcmp(row.file, "file") != 0) {
            run_row(&row);
            count++;
        }
        line = next;
    }
    cr_assert(count > 100, "only %d rows", count);
    free(table);
}
