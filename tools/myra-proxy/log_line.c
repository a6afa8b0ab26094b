/* SPDX-License-Identifier: MIT */
/* Printing a line of the access log. What a peer sent is escaped: no byte of
 * it can end a line or a string. */
#include "config.h"

#include "log_line.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* A byte becomes six at most (JSON), and the rest of a line is below 1 KiB:
 * this keeps a line within LOG_LINE_MAX. Longer targets are cut. */
#define TEXT_MAX 1500

static void update_clock(struct log_clock *clock, uint64_t now_ns)
{
    struct timespec now;
    struct tm tm;

    if (now_ns < clock->until_ns)
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    strftime(clock->common, sizeof(clock->common), "%d/%b/%Y:%H:%M:%S +0000",
             &tm);
    strftime(clock->json, sizeof(clock->json), "%Y-%m-%dT%H:%M:%SZ", &tm);
    clock->until_ns = now_ns + 1000000000u - (uint64_t)now.tv_nsec;
}

static char *add_text(char *p, const char *text)
{
    const size_t len = strlen(text);

    memcpy(p, text, len);
    return p + len;
}

static char *add_number(char *p, uint64_t value)
{
    char digits[20];
    size_t count = 0;

    do {
        digits[count++] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    while (count)
        *p++ = digits[--count];
    return p;
}

static char *add_escaped(char *p, const uint8_t *text, size_t len,
                         enum log_format format)
{
    static const char hex[] = "0123456789abcdef";
    size_t i;

    for (i = 0; i < len && i < TEXT_MAX; i++) {
        const uint8_t c = text[i];

        if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\') {
            *p++ = (char)c;
            continue;
        }
        p = add_text(p, format == LOG_JSON ? "\\u00" : "\\x");
        *p++ = hex[c >> 4];
        *p++ = hex[c & 15];
    }
    return p;
}

/* Takes "METHOD target HTTP/1.1" apart; without a line all are empty. */
static void split_line(const struct access_log_entry *entry,
                       size_t *method_len, size_t *target_off,
                       size_t *target_len)
{
    const uint8_t *blank =
        entry->line_len ? memchr(entry->line, ' ', entry->line_len) : NULL;

    *method_len = *target_off = *target_len = 0;
    if (!blank)
        return;
    *method_len = (size_t)(blank - entry->line);
    *target_off = *method_len + 1;
    if (entry->line_len > *target_off + 9)
        *target_len = entry->line_len - *target_off - 9;
}

static char *print_common(char *p, const struct log_clock *clock,
                          const struct access_log_entry *entry)
{
    size_t method_len, target_off, target_len;

    split_line(entry, &method_len, &target_off, &target_len);
    p = add_text(p, entry->peer);
    p = add_text(p, " - - [");
    p = add_text(p, clock->common);
    p = add_text(p, "] \"");
    if (method_len) {
        p = add_escaped(p, entry->line, method_len, LOG_COMMON);
        *p++ = ' ';
        if (entry->authority) {
            p = add_text(p, "http://");
            p = add_text(p, entry->authority);
        }
        p = add_escaped(p, entry->line + target_off, target_len, LOG_COMMON);
        p = add_text(p, " HTTP/1.");
        *p++ = (char)('0' + entry->version_minor);
    } else {
        *p++ = '-';
    }
    p = add_text(p, "\" ");
    p = add_number(p, (uint64_t)entry->status);
    *p++ = ' ';
    if (entry->response_bytes)
        p = add_number(p, entry->response_bytes);
    else
        *p++ = '-';
    *p++ = '\n';
    return p;
}

static char *add_member(char *p, const char *name, uint64_t value)
{
    p = add_text(p, ",\"");
    p = add_text(p, name);
    p = add_text(p, "\":");
    return add_number(p, value);
}

static char *print_json(char *p, const struct log_clock *clock,
                        const struct access_log_entry *entry)
{
    size_t method_len, target_off, target_len;

    split_line(entry, &method_len, &target_off, &target_len);
    p = add_text(p, "{\"time\":\"");
    p = add_text(p, clock->json);
    p = add_text(p, "\",\"peer\":\"");
    p = add_escaped(p, (const uint8_t *)entry->peer, strlen(entry->peer),
                    LOG_JSON);
    p = add_text(p, "\",\"method\":\"");
    p = add_escaped(p, entry->line, method_len, LOG_JSON);
    p = add_text(p, "\",\"target\":\"");
    if (entry->authority) {
        p = add_text(p, "http://");
        p = add_text(p, entry->authority);
    }
    p = add_escaped(p, entry->line + target_off, target_len, LOG_JSON);
    p = add_text(p, "\",\"version\":\"1.");
    *p++ = (char)('0' + entry->version_minor);
    *p++ = '"';
    p = add_member(p, "status", (uint64_t)entry->status);
    p = add_member(p, "request_bytes", entry->request_bytes);
    p = add_member(p, "response_bytes", entry->response_bytes);
    p = add_member(p, "us", entry->duration_ns / 1000);
    p = add_member(p, "retries", (uint64_t)entry->retry_count);
    p = add_text(p, ",\"reused\":");
    p = add_text(p, entry->is_reused ? "true" : "false");
    p = add_text(p, ",\"upstream\":");
    if (entry->upstream) {
        *p++ = '"';
        p = add_escaped(p, (const uint8_t *)entry->upstream,
                        strlen(entry->upstream), LOG_JSON);
        *p++ = '"';
    } else {
        p = add_text(p, "null");
    }
    return add_text(p, "}\n");
}

size_t log_line_print(char *text, struct log_clock *clock,
                      enum log_format format, uint64_t now_ns,
                      const struct access_log_entry *entry)
{
    update_clock(clock, now_ns);
    return (size_t)((format == LOG_JSON ? print_json(text, clock, entry)
                                        : print_common(text, clock, entry)) -
                    text);
}
