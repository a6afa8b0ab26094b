/* SPDX-License-Identifier: MIT */
/*
 * The access log. Each worker fills blocks of lines and hands full ones, and
 * at least every 200 ms what there is, to one writer thread. Nothing waits
 * for the disk: when all of a worker's blocks are full, lines are dropped and
 * counted.
 */
#ifndef PROXY_ACCESS_LOG_H
#define PROXY_ACCESS_LOG_H

#include <stddef.h>
#include <stdint.h>

#include "options.h"

struct access_log;
struct access_log_queue; /* one worker's end */

/* What a line tells. Texts are not terminated and may hold any byte. */
struct access_log_entry {
    const char *peer;
    const uint8_t *line; /* "METHOD target HTTP/1.1" */
    size_t line_len;
    const char *authority; /* put before the target; or NULL */
    const char *upstream;  /* or NULL */
    uint64_t request_bytes;
    uint64_t response_bytes;
    uint64_t duration_ns;
    int status;
    int version_minor;
    int retry_count;
    int is_reused;
};

/* Opens the file ("-": standard output) and starts the writer. 0, or the
 * negative of an exit status after one line. */
int access_log_open(const struct proxy_options *options,
                    struct access_log **log_out);

/* Writes what is left and ends. NULL is allowed. */
void access_log_close(struct access_log *log);

/* Opens the file again by its name, soon. */
void access_log_reopen(struct access_log *log);

/* NULL: no memory. Freed by access_log_close. */
struct access_log_queue *access_log_join(struct access_log *log);

/* Adds a line. 0, or -1: it was dropped. now_ns: the loop's time. */
int access_log_write(struct access_log_queue *queue, uint64_t now_ns,
                     const struct access_log_entry *entry);

/* Hands over what there is. 1 when lines are still with the worker. */
int access_log_flush(struct access_log_queue *queue);

#endif
