/* SPDX-License-Identifier: MIT */
/*
 * One io_uring: set-up, submission, completion, nothing about sockets.
 *
 * The kernel is reached only through struct myi_ring_sys, so that a test can
 * refuse a set-up, fail the k-th call, change what is submitted, and change,
 * delay or reorder what completes.
 *
 * Threads: open and close as the caller likes (a ring is made disabled); all
 * else on the thread that called myi_ring_enable.
 */
#ifndef MYI_RING_H
#define MYI_RING_H

#include <liburing.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "backends/backend.h"
#include "lib/base/checked.h"

#define MYI_RING_GATHER 16

/* Sizes that a ring can have; see ring.c. */
#define MYI_RING_SIZES 3

/* A completion, as the kernel or a test made it. */
struct myi_cqe {
    uint64_t user_data;
    int32_t res;
    uint32_t flags;
};

/* Every call of the ring layer into the kernel. All return 0 or a count, or
 * a negative errno. */
struct myi_ring_sys {
    void *ctx;
    unsigned sq_entries; /* 0: the caller's choice */
    unsigned cq_entries;

    int (*init)(void *ctx, unsigned entries, struct io_uring *ring,
                struct io_uring_params *params);
    void (*exit)(void *ctx, struct io_uring *ring);
    int (*enter)(void *ctx, struct io_uring *ring, int fd, unsigned to_submit,
                 unsigned min_complete, unsigned flags, void *arg,
                 size_t arg_len);
    int (*reg)(void *ctx, struct io_uring *ring, unsigned opcode, void *arg,
               unsigned count);

    /* NULL, or sees each completion before its dispatch: with is_new = 1 the
     * next one of the ring (returns 1 to pass it on, perhaps changed, 0 to
     * keep it back), then with is_new = 0 until it returns 0, to hand out
     * what it had kept back. */
    int (*filter)(void *ctx, struct myi_cqe *cqe, int is_new);
};

/* The kernel itself. */
extern const struct myi_ring_sys myi_ring_kernel;

/* Sets what later opens and probes use; NULL: the kernel. For tests, while no
 * other thread opens a ring. */
void myi_ring_use_sys(const struct myi_ring_sys *sys);

/* What must lie still from the making of an SQE until its submission; one
 * beside each SQE. */
union myi_ring_aux {
    struct {
        struct msghdr msg;
        struct iovec iov[MYI_RING_GATHER];
    } send;
    struct sockaddr_storage addr;
};

struct myi_ring {
    struct io_uring uring;
    const struct myi_ring_sys *sys;
    const struct myra_allocator *alloc;
    union myi_ring_aux *aux; /* sq.ring_entries of them */
    uint64_t *syscalls;
    unsigned setup_flags; /* IORING_SETUP_ as taken */
    int registered_fd;    /* index, or -1 */
    int registered_tid;   /* whose table holds it */
    int opener_pid;
    int err; /* what ended the ring, or 0 */
    uint8_t is_enabled;
    uint8_t is_unbatched; /* submits each SQE before the next is made */
};

/*
 * Makes a disabled ring with the best set of flags that this kernel takes, of
 * size number size (0 is the largest) or smaller where locked memory is
 * short. syscalls is where calls are counted; it must outlive the ring. 0, or
 * a negative errno with the reason in why; nothing is left behind then.
 */
int myi_ring_open(struct myi_ring *ring, const struct myra_allocator *alloc,
                  unsigned size, uint64_t *syscalls, struct myi_probe *why);

/* Releases everything. In a forked child only descriptors are closed: the
 * mappings are not there. */
void myi_ring_close(struct myi_ring *ring);

/* Binds the ring to the calling thread. 0 or a negative errno. */
int myi_ring_enable(struct myi_ring *ring);

/* One register call on the ring. */
int myi_ring_register(struct myi_ring *ring, unsigned opcode, void *arg,
                      unsigned count);

/*
 * The next free SQE, not cleared (the prep functions set every field), and
 * its aux. On a full queue what is queued is submitted first, in order. NULL
 * when the kernel takes nothing now, or the ring has failed.
 */
struct io_uring_sqe *myi_ring_sqe(struct myi_ring *ring,
                                  union myi_ring_aux **aux_out);

/* Submits what is queued, without waiting. 0, -EAGAIN, or ring->err. */
int myi_ring_flush(struct myi_ring *ring);

/*
 * Submits what is queued, waits for min_complete completions at most
 * timeout_ns (-1: no limit), and lets the kernel post what is due. 0: all was
 * submitted and the wait ended (perhaps without a completion); -EAGAIN: the
 * kernel takes no submission now; -EINTR, -ETIME; ring->err: the end.
 */
int myi_ring_enter(struct myi_ring *ring, unsigned min_complete,
                   int64_t timeout_ns);

/* Takes one completion. left starts as myi_ring_ready(); 0: no more. */
int myi_ring_take(struct myi_ring *ring, unsigned *left, struct myi_cqe *cqe);

/* A line for people: which set-up level was taken. */
const char *myi_ring_level(const struct myi_ring *ring);

/* SQEs not yet submitted. */
static inline unsigned myi_ring_queued(const struct myi_ring *ring)
{
    return ring->uring.sq.sqe_tail -
           __atomic_load_n(ring->uring.sq.khead, __ATOMIC_ACQUIRE);
}

/* Completions posted. */
static inline unsigned myi_ring_ready(const struct myi_ring *ring)
{
    return __atomic_load_n(ring->uring.cq.ktail, __ATOMIC_ACQUIRE) -
           *ring->uring.cq.khead;
}

/* 1 when the kernel has completions that only an enter can post. */
static inline int myi_ring_wants_enter(const struct myi_ring *ring)
{
    const unsigned flags =
        __atomic_load_n(ring->uring.sq.kflags, __ATOMIC_RELAXED);

    return (flags & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)) != 0;
}

/* 1 when myi_ring_wants_enter tells the whole truth. */
static inline int myi_ring_has_flag(const struct myi_ring *ring)
{
    return (ring->setup_flags & IORING_SETUP_TASKRUN_FLAG) != 0;
}

#endif
