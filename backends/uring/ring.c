/* SPDX-License-Identifier: MIT */
/*
 * Set-up and the two directions of one ring.
 *
 * The queue's indices are kept here rather than by liburing, whose submit
 * calls hide how many SQEs were taken and how often the kernel was entered.
 * liburing makes and ends the ring and wraps the system calls.
 */
#include "config.h"

#include "backends/uring/ring.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/alloc.h"

/* The registration of a ring's own descriptor: one update of one entry. */
#define RING_FD_REGISTER 20
#define RING_FD_UNREGISTER 21

/* Linux counts signals from 1 to 64; the kernel wants the set's size. */
#define KERNEL_SIGSET_LEN 8

static int kernel_init(void *ctx, unsigned entries, struct io_uring *ring,
                       struct io_uring_params *params)
{
    (void)ctx;
    return io_uring_queue_init_params(entries, ring, params);
}

static void kernel_exit(void *ctx, struct io_uring *ring)
{
    (void)ctx;
    io_uring_queue_exit(ring);
}

static int kernel_enter(void *ctx, struct io_uring *ring, int fd,
                        unsigned to_submit, unsigned min_complete,
                        unsigned flags, void *arg, size_t arg_len)
{
    (void)ctx;
    (void)ring;
    return io_uring_enter2((unsigned)fd, to_submit, min_complete, flags,
                           (sigset_t *)arg, arg_len);
}

static int kernel_reg(void *ctx, struct io_uring *ring, unsigned opcode,
                      void *arg, unsigned count)
{
    (void)ctx;
    return io_uring_register((unsigned)ring->ring_fd, opcode, arg, count);
}

const struct myi_ring_sys myi_ring_kernel = {
    .init = kernel_init,
    .exit = kernel_exit,
    .enter = kernel_enter,
    .reg = kernel_reg,
};

static const struct myi_ring_sys *current_sys = &myi_ring_kernel;

void myi_ring_use_sys(const struct myi_ring_sys *sys)
{
    current_sys = sys ? sys : &myi_ring_kernel;
}

/* ---- Set-up ------------------------------------------------------------- */

#define BASE_FLAGS \
    (IORING_SETUP_R_DISABLED | IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP)

/* Best first. A kernel that does not know a flag answers EINVAL. */
static const struct setup_level {
    unsigned flags;
    const char *text;
} setup_levels[] = {
    { IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
          IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SUBMIT_ALL,
      "single issuer, deferred task work" },
    { IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_COOP_TASKRUN |
          IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SUBMIT_ALL,
      "single issuer, cooperative task work" },
    { IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG |
          IORING_SETUP_SUBMIT_ALL,
      "cooperative task work" },
    { IORING_SETUP_SUBMIT_ALL, "plain task work" },
    { 0, "plain task work, no SUBMIT_ALL" },
};

/* Ring memory counts against RLIMIT_MEMLOCK: 256 + 4096 entries take about
 * 100 KiB, the smallest pair a page or two. */
static const struct setup_size {
    unsigned sq_entries;
    unsigned cq_entries;
} setup_sizes[MYI_RING_SIZES] = { { 256, 4096 }, { 64, 512 }, { 16, 64 } };

/* The kernel gives memory of a closed ring back late, so a set-up right
 * behind a close can fail for no lasting reason. */
#define ENOMEM_TRIES 3
#define ENOMEM_PAUSE_NS 10000000L

const char *myi_ring_level(const struct myi_ring *ring)
{
    const unsigned flags = ring->setup_flags & ~(unsigned)BASE_FLAGS;
    size_t i;

    for (i = 0; i < MYI_ARRAY_LEN(setup_levels); i++)
        if (setup_levels[i].flags == flags)
            return setup_levels[i].text;
    return "unknown";
}

static int init_sized(struct myi_ring *ring, unsigned sq_entries,
                      unsigned cq_entries)
{
    struct io_uring_params params;
    int err = -EINVAL;
    size_t i;

    for (i = 0; i < MYI_ARRAY_LEN(setup_levels) && err == -EINVAL; i++) {
        memset(&params, 0, sizeof(params));
        params.flags = BASE_FLAGS | setup_levels[i].flags;
        params.cq_entries = cq_entries;
        err =
            ring->sys->init(ring->sys->ctx, sq_entries, &ring->uring, &params);
        ring->setup_flags = params.flags;
    }
    return err;
}

static int init_any_size(struct myi_ring *ring, unsigned size)
{
    const struct myi_ring_sys *sys = ring->sys;
    unsigned i;
    int err = -ENOMEM;

    for (i = size; i < MYI_RING_SIZES && err == -ENOMEM; i++)
        err = init_sized(
            ring,
            sys->sq_entries ? sys->sq_entries : setup_sizes[i].sq_entries,
            sys->cq_entries ? sys->cq_entries : setup_sizes[i].cq_entries);
    return err;
}

static int init_patiently(struct myi_ring *ring, unsigned size)
{
    const struct timespec pause = { 0, ENOMEM_PAUSE_NS };
    int err = init_any_size(ring, size);
    int tries;

    for (tries = 1; tries < ENOMEM_TRIES && err == -ENOMEM; tries++) {
        nanosleep(&pause, NULL);
        err = init_any_size(ring, size);
    }
    return err;
}

/* The array between SQ index and SQE stays the identity for good, so that a
 * submission is one store to the tail. */
static void fill_sq_array(struct io_uring_sq *sq)
{
    unsigned i;

    for (i = 0; i < sq->ring_entries; i++)
        sq->array[i] = i;
}

int myi_ring_open(struct myi_ring *ring, const struct myra_allocator *alloc,
                  unsigned size, uint64_t *syscalls, struct myi_probe *why)
{
    int err;

    memset(ring, 0, sizeof(*ring));
    ring->sys = current_sys;
    ring->alloc = alloc;
    ring->syscalls = syscalls;
    ring->registered_fd = -1;
    ring->opener_pid = getpid();
    err = init_patiently(ring, size);
    if (err) {
        why->err = err;
        snprintf(why->text, sizeof(why->text), "io_uring_setup: %s",
                 strerror(-err));
        return err;
    }
    fill_sq_array(&ring->uring.sq);
    ring->aux =
        myi_alloc(alloc, sizeof(*ring->aux) * ring->uring.sq.ring_entries);
    if (!ring->aux) {
        ring->sys->exit(ring->sys->ctx, &ring->uring);
        why->err = MYRA_ENOMEM;
        snprintf(why->text, sizeof(why->text), "no memory for the ring");
        return MYRA_ENOMEM;
    }
    /* A child that fills an SQE would make the parent submit it. A kernel
     * that cannot keep the areas out of a child is no reason to fail. */
    (void)io_uring_ring_dontfork(&ring->uring);
    return 0;
}

static int thread_id(void)
{
    return (int)syscall(SYS_gettid);
}

static int update_ring_fd(struct myi_ring *ring, unsigned opcode,
                          unsigned offset, int fd, int *offset_out)
{
    struct io_uring_rsrc_update update;
    int err;

    memset(&update, 0, sizeof(update));
    update.offset = offset;
    update.data = (uint64_t)(unsigned)fd;
    err = myi_ring_register(ring, opcode, &update, 1);
    if (err == 1 && offset_out)
        *offset_out = (int)update.offset;
    return err;
}

int myi_ring_enable(struct myi_ring *ring)
{
    const int err =
        myi_ring_register(ring, IORING_REGISTER_ENABLE_RINGS, NULL, 0);

    if (err < 0) {
        ring->err = err;
        return err;
    }
    ring->is_enabled = 1;
    ring->registered_tid = thread_id();
    /* Saves the look-up of the descriptor in each enter. A table that is full
     * or unknown costs only that. */
    update_ring_fd(ring, RING_FD_REGISTER, UINT32_MAX, ring->uring.ring_fd,
                   &ring->registered_fd);
    return 0;
}

void myi_ring_close(struct myi_ring *ring)
{
    size_t aux_len;

    if (!ring->sys)
        return;
    aux_len = sizeof(*ring->aux) * ring->uring.sq.ring_entries;
    if (getpid() != ring->opener_pid) {
        close(ring->uring.ring_fd);
    } else {
        /* The entry is another thread's own: it goes with that thread. */
        if (ring->registered_fd >= 0 && ring->registered_tid == thread_id())
            update_ring_fd(ring, RING_FD_UNREGISTER,
                           (unsigned)ring->registered_fd, 0, NULL);
        ring->sys->exit(ring->sys->ctx, &ring->uring);
    }
    myi_free(ring->alloc, ring->aux, aux_len);
    memset(ring, 0, sizeof(*ring));
}

int myi_ring_register(struct myi_ring *ring, unsigned opcode, void *arg,
                      unsigned count)
{
    const struct timespec pause = { 0, ENOMEM_PAUSE_NS };
    int tries, err = -ENOMEM;

    for (tries = 0; tries < ENOMEM_TRIES && err == -ENOMEM; tries++) {
        if (tries > 0)
            nanosleep(&pause, NULL);
        ++*ring->syscalls;
        err = ring->sys->reg(ring->sys->ctx, &ring->uring, opcode, arg,
                             count);
    }
    return err;
}

/* ---- Submission and waiting --------------------------------------------- */

/* Which errors of an enter are the moment's, which the ring's end. */
static int sort_enter_error(struct myi_ring *ring, int err)
{
    switch (err) {
    case -EINTR:
    case -ETIME:
        return err;
    case -EAGAIN: /* no memory for requests */
    case -EBUSY:  /* completions wait to be reaped first */
        return -EAGAIN;
    case -EBADR: /* the kernel has dropped completions */
        ring->err = MYRA_FATAL_RING;
        return ring->err;
    default:
        ring->err = err;
        return err;
    }
}

/* One system call. What is queued becomes visible to the kernel here. */
static int enter_once(struct myi_ring *ring, unsigned min_complete,
                      unsigned flags, void *arg, size_t arg_len)
{
    const struct myi_ring_sys *sys = ring->sys;
    int fd = ring->uring.ring_fd;
    int res;

    if (ring->err)
        return ring->err;
    if (!ring->is_enabled && myi_ring_enable(ring) < 0)
        return ring->err;
    if (ring->registered_fd >= 0) {
        fd = ring->registered_fd;
        flags |= IORING_ENTER_REGISTERED_RING;
    }
    __atomic_store_n(ring->uring.sq.ktail, ring->uring.sq.sqe_tail,
                     __ATOMIC_RELEASE);
    ++*ring->syscalls;
    res = sys->enter(sys->ctx, &ring->uring, fd, myi_ring_queued(ring),
                     min_complete, flags, arg, arg_len);
    return res < 0 ? sort_enter_error(ring, res) : res;
}

int myi_ring_flush(struct myi_ring *ring)
{
    unsigned queued = myi_ring_queued(ring);
    int res;

    while (queued > 0) {
        res = enter_once(ring, 0, 0, NULL, 0);
        if (res == -EINTR)
            continue;
        if (res < 0)
            return res;
        if (myi_ring_queued(ring) == queued)
            return -EAGAIN;
        queued = myi_ring_queued(ring);
    }
    return 0;
}

struct io_uring_sqe *myi_ring_sqe(struct myi_ring *ring,
                                  union myi_ring_aux **aux_out)
{
    struct io_uring_sq *sq = &ring->uring.sq;
    const unsigned limit = ring->is_unbatched ? 1 : sq->ring_entries;
    unsigned index;

    /* A flush that took only some has made room as well. */
    if (myi_ring_queued(ring) >= limit && myi_ring_flush(ring) < 0 &&
        myi_ring_queued(ring) == sq->ring_entries)
        return NULL;
    if (ring->err)
        return NULL;
    index = sq->sqe_tail++ & sq->ring_mask;
    if (aux_out)
        *aux_out = &ring->aux[index];
    return &sq->sqes[index];
}

int myi_ring_enter(struct myi_ring *ring, unsigned min_complete,
                   int64_t timeout_ns)
{
    struct __kernel_timespec ts = { 0, 0 };
    struct io_uring_getevents_arg arg;
    unsigned flags = IORING_ENTER_GETEVENTS;
    unsigned queued;
    int res;

    memset(&arg, 0, sizeof(arg));
    if (timeout_ns >= 0 && min_complete > 0) {
        ts.tv_sec = timeout_ns / 1000000000;
        ts.tv_nsec = timeout_ns % 1000000000;
        arg.sigmask_sz = KERNEL_SIGSET_LEN;
        arg.ts = (uint64_t)(uintptr_t)&ts;
        flags |= IORING_ENTER_EXT_ARG;
    }
    for (;;) {
        queued = myi_ring_queued(ring);
        res = enter_once(ring, min_complete, flags,
                         flags & IORING_ENTER_EXT_ARG ? &arg : NULL,
                         flags & IORING_ENTER_EXT_ARG ? sizeof(arg) : 0);
        if (res < 0)
            return res;
        /* The kernel does not wait when it took fewer than were queued. */
        if (myi_ring_queued(ring) == 0)
            return 0;
        if (myi_ring_queued(ring) == queued)
            return -EAGAIN;
    }
}

int myi_ring_take(struct myi_ring *ring, unsigned *left, struct myi_cqe *cqe)
{
    const struct myi_ring_sys *sys = ring->sys;
    struct io_uring_cq *cq = &ring->uring.cq;
    const struct io_uring_cqe *from;

    while (*left > 0) {
        --*left;
        from = &cq->cqes[*cq->khead & cq->ring_mask];
        cqe->user_data = from->user_data;
        cqe->res = from->res;
        cqe->flags = from->flags;
        __atomic_store_n(cq->khead, *cq->khead + 1, __ATOMIC_RELEASE);
        if (MYRA_LIKELY(!sys->filter) || sys->filter(sys->ctx, cqe, 1))
            return 1;
    }
    return sys->filter && sys->filter(sys->ctx, cqe, 0);
}
