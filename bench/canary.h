/* SPDX-License-Identifier: MIT */
/*
 * Is this processor ours alone right now? A loop of a few microseconds that
 * wants every execution unit answers that: it slows down by half or more
 * when a sibling thread of the core, or another guest, is busy.
 */
#ifndef MYRA_BENCH_CANARY_H
#define MYRA_BENCH_CANARY_H

/* Learns how fast the loop is at best, for the calling thread; takes some
 * milliseconds. */
void canary_learn(void);

/* 1: the loop was as fast as it can be. Takes about 5 us. */
int canary_is_quiet(void);

#endif
