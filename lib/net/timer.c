/* SPDX-License-Identifier: MIT */
/* The public side of the timer wheel. */
#include "config.h"

#include <string.h>

#include "lib/net/net_priv.h"

void myra_timer_init(struct myra_timer *timer,
                     void (*fn)(struct myra_loop *loop,
                                struct myra_timer *timer),
                     void *user)
{
    memset(timer, 0, sizeof(*timer));
    timer->fn = fn;
    timer->user = user;
}

void myra_timer_start(struct myra_loop *loop, struct myra_timer *timer,
                      uint64_t after_ns)
{
    uint64_t limit;

    myi_loop_touch(loop);
    limit = UINT64_MAX - loop->now_ns - MYI_MS_NS;
    myra_timer_stop(loop, timer);
    if (after_ns > limit)
        after_ns = limit;
    myi_wheel_add(&loop->wheel, timer,
                  (loop->now_ns + after_ns + MYI_MS_NS - 1) / MYI_MS_NS);
}

void myra_timer_stop(struct myra_loop *loop, struct myra_timer *timer)
{
    if (myi_timer_is_running(timer))
        myi_wheel_remove(&loop->wheel, timer);
}
