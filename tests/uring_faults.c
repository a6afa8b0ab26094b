/* SPDX-License-Identifier: MIT */
/* Faults at the ring's seam: see uring_faults.h. */
#include "config.h"

#include "tests/uring_faults.h"

#include <errno.h>
#include <string.h>

#include "backends/uring/uring_priv.h"

/* Since Linux 6.10: a NOP whose result stands in its len. */
#define NOP_INJECT_RESULT 1u

static uint64_t next_random(struct uring_faults *faults)
{
    uint64_t z = faults->rng += UINT64_C(0x9e3779b97f4a7c15);

    /* splitmix64 (Steele, Lea, Flood, OOPSLA 2014) */
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

unsigned uring_faults_draw(struct uring_faults *faults, unsigned limit)
{
    return (unsigned)(next_random(faults) % limit);
}

static int hits(struct uring_faults *faults, unsigned rate)
{
    if (rate == 0 || uring_faults_draw(faults, 1000) >= rate)
        return 0;
    faults->injected++;
    return 1;
}

/* ---- Set-up ------------------------------------------------------------- */

static int faulty_init(void *ctx, unsigned entries, struct io_uring *ring,
                       struct io_uring_params *params)
{
    struct uring_faults *faults = ctx;

    faults->inits++;
    faults->last_init_flags = params->flags;
    if (faults->init_err)
        return faults->init_err;
    if (params->flags & faults->bad_flags)
        return -EINVAL;
    if (faults->max_entries && entries > faults->max_entries)
        return -ENOMEM;
    return myi_ring_kernel.init(NULL, entries, ring, params);
}

static void faulty_exit(void *ctx, struct io_uring *ring)
{
    (void)ctx;
    myi_ring_kernel.exit(NULL, ring);
}

static int faulty_reg(void *ctx, struct io_uring *ring, unsigned opcode,
                      void *arg, unsigned count)
{
    struct uring_faults *faults = ctx;

    if (faults->reg_err && (int)opcode == faults->reg_err_opcode)
        return faults->reg_err;
    return myi_ring_kernel.reg(NULL, ring, opcode, arg, count);
}

/* ---- Submission --------------------------------------------------------- */

static void become_nop(struct io_uring_sqe *sqe, int res)
{
    const uint64_t user_data = sqe->user_data;

    memset(sqe, 0, sizeof(*sqe));
    sqe->opcode = IORING_OP_NOP;
    sqe->rw_flags = NOP_INJECT_RESULT;
    sqe->len = (uint32_t)res;
    sqe->user_data = user_data;
}

static void spoil_recv(struct uring_faults *faults, struct io_uring_sqe *sqe)
{
    static const int errs[] = { -ENOBUFS, -EINTR, -EAGAIN };

    if (hits(faults, faults->nop_rate))
        become_nop(sqe, errs[uring_faults_draw(faults, 3)]);
    else if (hits(faults, faults->one_shot_rate))
        sqe->ioprio &= (uint16_t)~IORING_RECV_MULTISHOT;
}

static void spoil_accept(struct uring_faults *faults, struct io_uring_sqe *sqe)
{
    static const int errs[] = { -ECONNABORTED, -EINTR, -EAGAIN };

    if (hits(faults, faults->nop_rate))
        become_nop(sqe, errs[uring_faults_draw(faults, 3)]);
    else if (hits(faults, faults->one_shot_rate))
        sqe->ioprio &= (uint16_t)~IORING_ACCEPT_MULTISHOT;
}

static void spoil_send(struct uring_faults *faults, struct io_uring_sqe *sqe)
{
    struct msghdr *msg;

    if (hits(faults, faults->nop_rate)) {
        become_nop(sqe, uring_faults_draw(faults, 2) ? -EAGAIN : -EINTR);
        return;
    }
    if (!hits(faults, faults->short_rate))
        return;
    if (sqe->opcode == IORING_OP_SEND) {
        sqe->len = 1 + uring_faults_draw(faults, sqe->len);
        return;
    }
    msg = (struct msghdr *)(uintptr_t)sqe->addr;
    msg->msg_iovlen = 1 + uring_faults_draw(faults, (unsigned)msg->msg_iovlen);
    msg->msg_iov[msg->msg_iovlen - 1].iov_len =
        1 + uring_faults_draw(
                faults, (unsigned)msg->msg_iov[msg->msg_iovlen - 1].iov_len);
}

static void spoil(struct uring_faults *faults, struct io_uring_sqe *sqe)
{
    switch (sqe->opcode) {
    case IORING_OP_RECV:
        spoil_recv(faults, sqe);
        break;
    case IORING_OP_ACCEPT:
        spoil_accept(faults, sqe);
        break;
    case IORING_OP_SEND:
    case IORING_OP_SENDMSG:
        spoil_send(faults, sqe);
        break;
    case IORING_OP_ASYNC_CANCEL:
        if (hits(faults, faults->cancel_miss_rate))
            become_nop(sqe,
                       uring_faults_draw(faults, 2) ? -ENOENT : -EALREADY);
        break;
    default:
        break;
    }
}

static int transient_error(struct uring_faults *faults)
{
    static const int errs[] = { -EINTR, -EAGAIN, -EBUSY };

    return errs[uring_faults_draw(faults, 3)];
}

static int faulty_enter(void *ctx, struct io_uring *ring, int fd,
                        unsigned to_submit, unsigned min_complete,
                        unsigned flags, void *arg, size_t arg_len)
{
    struct uring_faults *faults = ctx;
    const unsigned head = *ring->sq.khead;
    unsigned i;
    int res;

    faults->enters++;
    if (faults->enters == faults->fail_enter_at)
        return faults->fail_enter_err;
    if (hits(faults, faults->transient_rate))
        return transient_error(faults);
    if (to_submit > 1 && hits(faults, faults->cut_rate)) {
        to_submit = uring_faults_draw(faults, to_submit);
        min_complete = 0;
    }
    for (i = 0; i < to_submit; i++)
        spoil(faults, &ring->sq.sqes[(head + i) & ring->sq.ring_mask]);
    /* What is held back must not be waited for. */
    if (faults->held_count > 0)
        min_complete = 0;
    res = myi_ring_kernel.enter(NULL, ring, fd, to_submit, min_complete, flags,
                                arg, arg_len);
    if (res > 0)
        faults->submitted += (unsigned)res;
    return res;
}

/* ---- Completion --------------------------------------------------------- */

static int is_held(const struct uring_faults *faults, uint64_t user_data)
{
    unsigned i;

    for (i = 0; i < faults->held_count; i++)
        if (faults->held[i].user_data == user_data)
            return 1;
    return 0;
}

/* One of the held, but never a later one of the same operation before an
 * earlier one. */
static int take_held(struct uring_faults *faults, struct myi_cqe *cqe)
{
    unsigned at = uring_faults_draw(faults, faults->held_count);
    unsigned i;

    for (i = 0; i < at; i++)
        if (faults->held[i].user_data == faults->held[at].user_data)
            at = i;
    *cqe = faults->held[at];
    faults->held_count--;
    memmove(&faults->held[at], &faults->held[at + 1],
            (faults->held_count - at) * sizeof(faults->held[0]));
    return 1;
}

static int faulty_filter(void *ctx, struct myi_cqe *cqe, int is_new)
{
    struct uring_faults *faults = ctx;

    if (!is_new) {
        if (faults->release_count == 0 || faults->held_count == 0) {
            faults->release_count =
                faults->held_count
                    ? uring_faults_draw(faults, faults->held_count) + 1
                    : 0;
            return 0;
        }
        faults->release_count--;
        return take_held(faults, cqe);
    }
    if (faults->held_count == FAULTS_HELD ||
        (!is_held(faults, cqe->user_data) && !hits(faults, faults->hold_rate)))
        return 1;
    faults->held[faults->held_count++] = *cqe;
    return 0;
}

/* ---- Schedules ---------------------------------------------------------- */

void uring_faults_init(struct uring_faults *faults, uint64_t seed)
{
    memset(faults, 0, sizeof(*faults));
    faults->rng = seed;
    faults->sys.ctx = faults;
    faults->sys.init = faulty_init;
    faults->sys.exit = faulty_exit;
    faults->sys.enter = faulty_enter;
    faults->sys.reg = faulty_reg;
    faults->sys.filter = faulty_filter;
}

static unsigned draw_rate(struct uring_faults *faults, unsigned most)
{
    /* Half of the schedules are without the fault. */
    return uring_faults_draw(faults, 2) ? uring_faults_draw(faults, most) : 0;
}

void uring_faults_randomize(struct uring_faults *faults)
{
    static const unsigned sq[] = { 2, 4, 16, 64 };
    static const unsigned cq[] = { 4, 8, 32, 256 };

    faults->sys.sq_entries = sq[uring_faults_draw(faults, 4)];
    faults->sys.cq_entries = cq[uring_faults_draw(faults, 4)];
    if (faults->sys.cq_entries < faults->sys.sq_entries)
        faults->sys.cq_entries = faults->sys.sq_entries;
    faults->transient_rate = draw_rate(faults, 200);
    faults->cut_rate = draw_rate(faults, 300);
    faults->one_shot_rate = draw_rate(faults, 500);
    faults->short_rate = draw_rate(faults, 500);
    faults->nop_rate = draw_rate(faults, 300);
    faults->cancel_miss_rate = draw_rate(faults, 500);
    faults->hold_rate = draw_rate(faults, 500);
    if (uring_faults_draw(faults, 4) == 0)
        faults->bad_flags = IORING_SETUP_DEFER_TASKRUN;
}
