/* SPDX-License-Identifier: MIT */
/*
 * The origin server of the proxy tables: as little as can answer, so that
 * the proxy before it is what is measured. It shares the generator's event
 * queue and thread.
 */
#ifndef MYRA_BENCH_ORIGIN_H
#define MYRA_BENCH_ORIGIN_H

#include <stddef.h>
#include <stdint.h>

#include "tools/myra-load/evq.h"

#define ORIGIN_SMALL_LEN 128
#define ORIGIN_LARGE_LEN 16384
#define ORIGIN_SMALL_PATH "/s"
#define ORIGIN_LARGE_PATH "/l"

struct origin;

/* Listens on a free port of 127.0.0.1. 0 or -errno. */
int origin_new(struct evq *evq, struct origin **origin_out);
void origin_free(struct origin *origin);

uint16_t origin_port(const struct origin *origin);

/* The body of a path; every byte tells its place. */
const uint8_t *origin_body(const struct origin *origin, int is_large);

/* Requests so far that were not as expected. */
uint64_t origin_bad_requests(const struct origin *origin);

/* Connections open now. */
uint32_t origin_conns(const struct origin *origin);

/* Answers nothing until so many requests are waiting, then all of them;
 * 0: answers at once again. */
void origin_hold(struct origin *origin, uint32_t request_count);

#endif
