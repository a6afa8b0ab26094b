/* SPDX-License-Identifier: MIT */
/* The timers of a loop: a hierarchical wheel with 1 ms ticks. */
#ifndef MYI_NET_WHEEL_H
#define MYI_NET_WHEEL_H

#include <stdint.h>

#include <myra/loop.h>

/* Five levels of 64 slots: 2^30 ms, twelve days; later expiries wait in the
 * last slot and are put back. */
#define MYI_WHEEL_LEVELS 5
#define MYI_WHEEL_BITS 6
#define MYI_WHEEL_SLOTS (1u << MYI_WHEEL_BITS)

struct myi_wheel {
    uint64_t now_ms; /* every timer up to here has run */
    uint64_t used[MYI_WHEEL_LEVELS]; /* a bit for each slot in use */
    struct myra_timer *slot[MYI_WHEEL_LEVELS][MYI_WHEEL_SLOTS];
    uint32_t count;
};

void myi_wheel_init(struct myi_wheel *wheel, uint64_t now_ms);

/* Adds a timer that is not running. An expiry in the past is due at the next
 * tick. */
void myi_wheel_add(struct myi_wheel *wheel, struct myra_timer *timer,
                   uint64_t expiry_ms);

void myi_wheel_remove(struct myi_wheel *wheel, struct myra_timer *timer);

static inline int myi_timer_is_running(const struct myra_timer *timer)
{
    return timer->link != NULL;
}

/* Milliseconds until something may be due: exact or early, never late;
 * UINT64_MAX when no timer runs. */
uint64_t myi_wheel_next_ms(const struct myi_wheel *wheel);

/* Moves to now_ms and runs what is due, in order of ticks; returns how many
 * ran. A timer may start and stop any timer from inside its fn. */
uint32_t myi_wheel_advance(struct myi_wheel *wheel, uint64_t now_ms,
                           struct myra_loop *loop);

#endif
