/* SPDX-License-Identifier: MIT */
/*
 * The ring's seam, filled with faults.
 *
 * A fault is made where the kernel sees it: a receive becomes one-shot, a
 * send shorter, an operation a NOP with a result of our choice, before it is
 * submitted. So what completes is always what the kernel believes, and only
 * the order and the time of completions are ours to change afterwards.
 *
 * One seed is one schedule, as far as the kernel's own timing allows.
 */
#ifndef URING_FAULTS_H
#define URING_FAULTS_H

#include <stdint.h>

#include "backends/uring/ring.h"

#define FAULTS_HELD 1024

struct uring_faults {
    struct myi_ring_sys sys; /* give to myi_ring_use_sys */
    uint64_t rng;

    /* Set-up. */
    int init_err;         /* always returned, when not 0 */
    unsigned bad_flags;   /* EINVAL when any is asked for */
    unsigned max_entries; /* ENOMEM above (0: none) */
    int reg_err;          /* of the register call below */
    int reg_err_opcode;

    /* Enter. */
    unsigned fail_enter_at;  /* the k-th call (from 1) ... */
    int fail_enter_err;      /* ... returns this */
    unsigned transient_rate; /* of 1000 calls: EINTR, EAGAIN or EBUSY */
    unsigned cut_rate;       /* of 1000: fewer are submitted */

    /* Of 1000 SQEs of the kind. */
    unsigned one_shot_rate;    /* multishot accept, receive: once only */
    unsigned short_rate;       /* sends: fewer bytes */
    unsigned nop_rate;         /* passing errors instead of the operation */
    unsigned cancel_miss_rate; /* cancels that find nothing */

    /* Of 1000 CQEs. */
    unsigned hold_rate; /* kept for later, and handed out shuffled */

    /* What happened. */
    unsigned inits;
    unsigned enters;
    unsigned submitted;
    unsigned injected;
    unsigned last_init_flags;

    struct myi_cqe held[FAULTS_HELD];
    unsigned held_count;
    unsigned release_count; /* of the held, due in this batch */
};

/* No fault at all, until rates are set. */
void uring_faults_init(struct uring_faults *faults, uint64_t seed);

/* Rates for a random schedule, drawn from the seed. */
void uring_faults_randomize(struct uring_faults *faults);

/* 0 .. limit - 1. */
unsigned uring_faults_draw(struct uring_faults *faults, unsigned limit);

#endif
