/* SPDX-License-Identifier: MIT */
/* The timer wheel against a plain list. */
#include "config.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>

#include "lib/net/wheel.h"

enum { COUNT = 2000 };

static struct myra_timer timers[COUNT];
static uint64_t due[COUNT]; /* 0: not running */
static uint64_t now_ms;
static int runs;

static void on_timer(struct myra_loop *loop, struct myra_timer *timer)
{
    const size_t i = (size_t)(timer - timers);

    (void)loop;
    cr_assert_neq(due[i], 0, "timer %zu ran twice or after its stop", i);
    cr_assert_leq(due[i], now_ms, "timer %zu ran early", i);
    due[i] = 0;
    runs++;
}

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return *state >> 20;
}

Test(wheel, runs_every_timer_once_and_in_time)
{
    static const uint64_t spans[] = { 1, 63, 64, 65, 4095, 4096, 300000,
                                      17000000, UINT64_C(3000000000) };
    struct myi_wheel wheel;
    uint64_t random = 42;

    for (size_t s = 0; s < sizeof(spans) / sizeof(spans[0]); s++) {
        now_ms = 1000000007 + s * 12345;
        myi_wheel_init(&wheel, now_ms);
        for (int i = 0; i < COUNT; i++) {
            timers[i] = (struct myra_timer){ .fn = on_timer };
            due[i] = now_ms + 1 + next_random(&random) % spans[s];
            myi_wheel_add(&wheel, &timers[i], due[i]);
        }
        for (int i = 0; i < COUNT; i += 7) {
            myi_wheel_remove(&wheel, &timers[i]);
            due[i] = 0;
        }
        while (wheel.count > 0) {
            const uint64_t ahead = myi_wheel_next_ms(&wheel);
            uint64_t nearest = UINT64_MAX;

            for (int i = 0; i < COUNT; i++) {
                if (due[i] != 0 && due[i] < nearest)
                    nearest = due[i];
            }
            cr_assert_leq(now_ms + ahead, nearest, "told too late");
            cr_assert_gt(ahead, 0);
            now_ms += next_random(&random) % 3 == 0
                          ? ahead + next_random(&random) % (spans[s] + 1)
                          : ahead;
            myi_wheel_advance(&wheel, now_ms, NULL);
            for (int i = 0; i < COUNT; i++)
                cr_assert(due[i] == 0 || due[i] > now_ms,
                          "timer %d is late", i);
        }
    }
}

Test(wheel, an_expiry_in_the_past_is_due_at_the_next_tick)
{
    struct myi_wheel wheel;

    now_ms = 500;
    runs = 0;
    myi_wheel_init(&wheel, now_ms);
    timers[0] = (struct myra_timer){ .fn = on_timer };
    due[0] = 1;
    myi_wheel_add(&wheel, &timers[0], 1);
    cr_assert_eq(myi_wheel_next_ms(&wheel), 1);
    cr_assert_eq(myi_wheel_advance(&wheel, ++now_ms, NULL), 1);
    cr_assert_eq(runs, 1);
    cr_assert_eq(myi_wheel_next_ms(&wheel), UINT64_MAX);
}
