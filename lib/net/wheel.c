/* SPDX-License-Identifier: MIT */
/*
 * A hashed hierarchical timing wheel (Varghese and Lauck, SOSP 1987): start,
 * stop and expiry are O(1). A timer sits on the level of the highest tick
 * digit in which its expiry differs from now, and moves down a level whenever
 * the wheel enters its slot. A bit map for each level makes the way to the
 * next used slot one instruction.
 */
#include "config.h"

#include "lib/net/wheel.h"

#include <string.h>

#define SLOT_MASK (MYI_WHEEL_SLOTS - 1)
#define SPAN_MS ((uint64_t)1 << (MYI_WHEEL_LEVELS * MYI_WHEEL_BITS))

void myi_wheel_init(struct myi_wheel *wheel, uint64_t now_ms)
{
    memset(wheel, 0, sizeof(*wheel));
    wheel->now_ms = now_ms;
}

/* The level whose digit is the highest that differs. */
static unsigned level_of(uint64_t now_ms, uint64_t expiry_ms)
{
    const uint64_t diff = now_ms ^ expiry_ms;

    if (diff == 0)
        return 0;
    return (63 - (unsigned)__builtin_clzll(diff)) / MYI_WHEEL_BITS;
}

static void link_in(struct myi_wheel *wheel, unsigned level, uint64_t at,
                    struct myra_timer *timer)
{
    const unsigned index = (at >> (level * MYI_WHEEL_BITS)) & SLOT_MASK;
    struct myra_timer **head = &wheel->slot[level][index];

    timer->next = *head;
    timer->link = head;
    if (timer->next != NULL)
        timer->next->link = &timer->next;
    *head = timer;
    wheel->used[level] |= (uint64_t)1 << index;
}

static void insert(struct myi_wheel *wheel, struct myra_timer *timer)
{
    uint64_t at = timer->expiry_ms;
    unsigned level;

    if (at <= wheel->now_ms)
        at = wheel->now_ms + 1;
    if (at - wheel->now_ms >= SPAN_MS / 2)
        at = wheel->now_ms + SPAN_MS / 2 - 1;
    level = level_of(wheel->now_ms, at);
    if (level >= MYI_WHEEL_LEVELS)
        level = MYI_WHEEL_LEVELS - 1;
    link_in(wheel, level, at, timer);
}

void myi_wheel_add(struct myi_wheel *wheel, struct myra_timer *timer,
                   uint64_t expiry_ms)
{
    timer->expiry_ms = expiry_ms;
    insert(wheel, timer);
    wheel->count++;
}

void myi_wheel_remove(struct myi_wheel *wheel, struct myra_timer *timer)
{
    *timer->link = timer->next;
    if (timer->next != NULL)
        timer->next->link = timer->link;
    timer->link = NULL;
    timer->next = NULL;
    wheel->count--;
}

uint64_t myi_wheel_next_ms(const struct myi_wheel *wheel)
{
    uint64_t best = UINT64_MAX;

    if (wheel->count == 0)
        return best;
    for (unsigned level = 0; level < MYI_WHEEL_LEVELS; level++) {
        const unsigned shift = level * MYI_WHEEL_BITS;
        const unsigned index = (wheel->now_ms >> shift) & SLOT_MASK;
        const uint64_t used = wheel->used[level];
        uint64_t turned, start;
        unsigned ahead;

        if (used == 0)
            continue;
        turned = used >> index | (index > 0 ? used << (64 - index) : 0);
        /* The current slot of a level has been emptied on entry, so a bit
         * there is a full turn away. */
        turned &= ~(uint64_t)1;
        ahead = turned != 0 ? (unsigned)__builtin_ctzll(turned)
                            : MYI_WHEEL_SLOTS;
        start = ((wheel->now_ms >> shift) + ahead) << shift;
        if (start - wheel->now_ms < best)
            best = start - wheel->now_ms;
    }
    return best;
}

/* Takes a whole slot off as a list that is linked to *list. */
static void detach(struct myi_wheel *wheel, unsigned level, unsigned index,
                   struct myra_timer **list)
{
    *list = wheel->slot[level][index];
    if (*list != NULL)
        (*list)->link = list;
    wheel->slot[level][index] = NULL;
    wheel->used[level] &= ~((uint64_t)1 << index);
}

/* Puts the timers of the slots that were just entered on lower levels. */
static void cascade(struct myi_wheel *wheel)
{
    for (unsigned level = MYI_WHEEL_LEVELS - 1; level > 0; level--) {
        const unsigned shift = level * MYI_WHEEL_BITS;
        struct myra_timer *list;

        if ((wheel->now_ms & (((uint64_t)1 << shift) - 1)) != 0)
            continue;
        detach(wheel, level, (wheel->now_ms >> shift) & SLOT_MASK, &list);
        while (list != NULL) {
            struct myra_timer *timer = list;

            list = timer->next;
            /* Due in this very tick: the level-0 slot is run next. */
            if (timer->expiry_ms <= wheel->now_ms)
                link_in(wheel, 0, wheel->now_ms, timer);
            else
                insert(wheel, timer);
        }
    }
}

static uint32_t run_tick(struct myi_wheel *wheel, struct myra_loop *loop)
{
    struct myra_timer *list;
    uint32_t ran = 0;

    detach(wheel, 0, wheel->now_ms & SLOT_MASK, &list);
    while (list != NULL) {
        struct myra_timer *timer = list;

        myi_wheel_remove(wheel, timer);
        if (timer->expiry_ms > wheel->now_ms) {
            /* Beyond the wheel's span when it was added. */
            myi_wheel_add(wheel, timer, timer->expiry_ms);
            continue;
        }
        ran++;
        timer->fn(loop, timer);
    }
    return ran;
}

uint32_t myi_wheel_advance(struct myi_wheel *wheel, uint64_t now_ms,
                           struct myra_loop *loop)
{
    uint32_t ran = 0;

    while (wheel->now_ms < now_ms) {
        const uint64_t ahead = myi_wheel_next_ms(wheel);

        if (ahead > now_ms - wheel->now_ms) {
            wheel->now_ms = now_ms;
            break;
        }
        wheel->now_ms += ahead;
        cascade(wheel);
        ran += run_tick(wheel, loop);
    }
    return ran;
}
