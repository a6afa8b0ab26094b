/* SPDX-License-Identifier: MIT */
/*
 * One turn of the loop, and how other threads end its wait.
 *
 * A wake costs a system call only while the loop is blocked. Loop: is_parked
 * = 1, then look at signals. Other: set the signal, then look at is_parked.
 * All four are sequentially consistent, so one of the two sees the other
 * (Dekker). The descriptor's count is only a doorbell; a ring too late is an
 * empty turn.
 */
#include "config.h"

#include "backends/uring/uring_priv.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

/* The kernel had no memory for a request and nothing is there to reap. */
#define STALL_PAUSE_NS 200000L

/* Rounds of a spin between two looks at the clock (31 ns a look). */
#define SPIN_ROUNDS 16

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

int myi_uring_signal(struct myi_uring *u, uint32_t bit)
{
    const uint32_t before =
        __atomic_fetch_or(&u->signals, bit, __ATOMIC_SEQ_CST);
    const uint64_t one = 1;
    int saved_errno;
    int err = 0;

    if ((before & bit) || !__atomic_load_n(&u->is_parked, __ATOMIC_SEQ_CST))
        return 0;
    saved_errno = errno;
    /* EAGAIN: the count is full, so the doorbell rings already. */
    if (write(u->wake_fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
        err = -errno;
    errno = saved_errno;
    return err;
}

/* Submits and reaps without blocking; no system call when there is nothing
 * to do in the kernel. */
static int enter_briefly(struct myi_uring *u)
{
    if (myi_ring_queued(&u->ring) == 0 && u->ring.is_enabled &&
        myi_ring_has_flag(&u->ring) && !myi_ring_wants_enter(&u->ring))
        return 0;
    return myi_ring_enter(&u->ring, 0, 0);
}

static int park(struct myi_uring *u, int64_t timeout_ns)
{
    int err;

    __atomic_store_n(&u->is_parked, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&u->signals, __ATOMIC_SEQ_CST))
        err = enter_briefly(u);
    else
        err = myi_ring_enter(&u->ring, 1, timeout_ns);
    __atomic_store_n(&u->is_parked, 0, __ATOMIC_RELEASE);
    return err;
}

/* Looks at memory until there is work, never sleeping. */
static int spin(struct myi_uring *u, int64_t timeout_ns)
{
    const uint64_t start_ns = timeout_ns > 0 ? myra_clock_ns() : 0;
    unsigned round = 0;
    int err;

    for (;;) {
        err = enter_briefly(u);
        if (err || myi_ring_ready(&u->ring) > 0 ||
            __atomic_load_n(&u->signals, __ATOMIC_RELAXED))
            return err;
        if (timeout_ns > 0 && ++round % SPIN_ROUNDS == 0 &&
            myra_clock_ns() - start_ns >= (uint64_t)timeout_ns)
            return 0;
        relax();
    }
}

static void submit_and_wait(struct myi_uring *u, int may_block,
                            int64_t timeout_ns)
{
    const struct timespec pause = { 0, STALL_PAUSE_NS };
    int err;

    if (!may_block || timeout_ns == 0)
        err = enter_briefly(u);
    else if (u->is_spin)
        err = spin(u, timeout_ns);
    else
        err = park(u, timeout_ns);
    if (err == -EAGAIN && timeout_ns != 0 && myi_ring_ready(&u->ring) == 0)
        nanosleep(&pause, NULL);
}

int myi_uring_turn(struct myi_uring *u, int64_t timeout_ns)
{
    const uint64_t start_ns = timeout_ns > 0 ? myra_clock_ns() : 0;
    int64_t left_ns = timeout_ns;
    int may_block;

    u->reports = 0;
    u->is_awake = 0;
    for (;;) {
        may_block = myi_uring_prepare(u);
        submit_and_wait(u, may_block, left_ns);
        if (u->ring.err)
            return u->ring.err;
        myi_uring_dispatch(u);
        if (u->reports > 0 || timeout_ns == 0)
            break;
        if (timeout_ns > 0) {
            left_ns = timeout_ns - (int64_t)(myra_clock_ns() - start_ns);
            if (left_ns <= 0)
                break;
        }
    }
    if (!u->is_awake)
        u->be.sink->on_awake(&u->be);
    if (u->reports > 0)
        u->be.sink->flush(&u->be);
    return u->ring.err ? u->ring.err : u->reports;
}
