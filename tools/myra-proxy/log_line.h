/* SPDX-License-Identifier: MIT */
/* One line of the access log as text. */
#ifndef PROXY_LOG_LINE_H
#define PROXY_LOG_LINE_H

#include "access_log.h"

/* The time as text, made once a second. */
struct log_clock {
    uint64_t until_ns;
    char common[32]; /* 30/Nov/2026:21:00:00 +0000 */
    char json[32];   /* 2026-11-30T21:00:00Z */
};

/* No line is longer. */
#define LOG_LINE_MAX 10240

/* Writes a line with its newline; text has room for LOG_LINE_MAX. Returns its
 * length. */
size_t log_line_print(char *text, struct log_clock *clock,
                      enum log_format format, uint64_t now_ns,
                      const struct access_log_entry *entry);

#endif
