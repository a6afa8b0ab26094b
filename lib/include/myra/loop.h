/* SPDX-License-Identifier: MIT */
/*
 * The event loop: one per thread, nothing shared.
 *
 *     struct myra_loop *loop;
 *     MYRA_TRY(myra_loop_new(NULL, &loop));
 *     ... myra_listen, myra_connect, myra_timer_start ...
 *     int err = myra_loop_run(loop);
 *     myra_loop_free(loop);
 *
 * Threads: a loop and all that was made on it belong to the thread that first
 * runs it (until then, to the one that made it). myra_post, myra_wake and
 * myra_loop_stop may be called from any thread; nothing else may. A call from
 * a wrong thread is refused with MYRA_ETHREAD where it can be told, and a
 * call in the child of a fork with MYRA_EFORK.
 */
#ifndef MYRA_LOOP_H
#define MYRA_LOOP_H

#include <stddef.h>
#include <stdint.h>

#include <myra/alloc.h>
#include <myra/err.h>
#include <myra/export.h>

MYRA_BEGIN_DECLS

struct myra_loop;
struct myra_pool;

struct myra_loop_options {
    size_t struct_size; /* set by init */
    /* "auto", a name, or a comma list tried in order. NULL: MYRA_BACKEND, or
     * auto where that is not set. Names: uring-token, epoll. */
    const char *backend;
    /* "park" or "spin"; NULL: MYRA_WAIT, or park. */
    const char *wait;
    uint32_t recv_buf_count; /* receive buffers; default 256, 2 .. 32768,
                                rounded up to a power of two */
    uint32_t recv_buf_cap;   /* bytes of one; default 4032, 64 .. 1 MiB */
    uint32_t block_limit;    /* overflow blocks, bytes; default 64 MiB */
    uint32_t conns_max;      /* connections + listeners + watches; default
                                1,000,000; memory grows with use only */
    const struct myra_allocator *alloc;
};

struct myra_loop_stats {
    uint64_t turns;       /* waits that returned */
    uint64_t accepts;     /* connections accepted */
    uint64_t connects;    /* connections opened by us */
    uint64_t closes;      /* connections ended */
    uint64_t recv_bytes;
    uint64_t sent_bytes;
    uint64_t recv_events; /* completions of a receive */
    uint64_t send_calls;  /* gather sends handed to the backend */
    uint64_t lease_copies; /* slices copied because leases were short */
    uint64_t starved;     /* receives that found no buffer */
    uint64_t syscalls;    /* system calls of the loop's turns */
    uint64_t stale;       /* completions of an earlier owner, dropped */
    uint64_t accept_pauses; /* accepting paused for want of descriptors */
    uint32_t conns;       /* open now */
    uint32_t bufs_leased; /* receive buffers out now */
    uint64_t block_bytes; /* overflow blocks in use now */
};

MYRA_API void myra_loop_options_init(struct myra_loop_options *options);

/*
 * NULL options are the defaults. The environment wins over a default, never
 * over an explicit choice. Errors: MYRA_EENV (unknown value in the
 * environment), MYRA_EINVAL (unknown value in the options), MYRA_EBACKEND
 * (no backend of the list can serve), MYRA_ENOMEM, -EMFILE. The reason is in
 * myra_loop_new_error() afterwards.
 */
MYRA_API MYRA_MUST_CHECK int
myra_loop_new(const struct myra_loop_options *options,
              struct myra_loop **loop_out);

/* One line saying why the calling thread's last myra_loop_new failed; "" when
 * it did not. */
MYRA_API const char *myra_loop_new_error(void);

/* Ends all that is left on the loop (on_closed is called for each connection)
 * and frees it. NULL is allowed. Not from inside a callback. */
MYRA_API void myra_loop_free(struct myra_loop *loop);

/* Turns until myra_loop_stop, or until nothing is left that could cause an
 * event. 0, or the error that ended the loop. */
MYRA_API int myra_loop_run(struct myra_loop *loop);

/* One turn: waits at most timeout_ns (0: does not block; -1: no limit) and
 * runs what is ready. Returns the number of events handled, or an error. */
MYRA_API int myra_loop_step(struct myra_loop *loop, int64_t timeout_ns);

/* Makes run return after the current turn. Any thread. */
MYRA_API void myra_loop_stop(struct myra_loop *loop);

/* Monotonic time as read at the start of this turn, nanoseconds. */
MYRA_API uint64_t myra_loop_now_ns(const struct myra_loop *loop);

/* "epoll", "uring-token". */
MYRA_API const char *myra_loop_backend_name(const struct myra_loop *loop);

/* Why this backend: one line that names each backend tried before it and the
 * reason that it was passed over. Never NULL. */
MYRA_API const char *myra_loop_backend_reason(const struct myra_loop *loop);

/* "park", "spin". */
MYRA_API const char *myra_loop_wait_name(const struct myra_loop *loop);

MYRA_API void myra_loop_read_stats(const struct myra_loop *loop,
                                   struct myra_loop_stats *stats);

/* The pool the loop receives into. */
MYRA_API struct myra_pool *myra_loop_pool(struct myra_loop *loop);

MYRA_API const struct myra_allocator *
myra_loop_allocator(const struct myra_loop *loop);

/*
 * A task for another thread's loop. The caller owns the memory, which must
 * stay until fn was called; it may be posted again from inside fn. Tasks of
 * one thread run in the order they were posted.
 */
struct myra_task {
    void (*fn)(struct myra_loop *loop, struct myra_task *task);
    struct myra_task *next; /* the loop's own */
};

/* Runs task->fn on the loop's thread soon. Any thread, and signal handlers.
 * 0; MYRA_EFORK in the child of a fork, with nothing queued; or an error of
 * the wake (the task is queued then). Posting a task that is queued already
 * is a mistake of the caller. */
MYRA_API int myra_post(struct myra_loop *loop, struct myra_task *task);

/* Ends the loop's current or next wait. Any thread; wakes are coalesced. */
MYRA_API int myra_wake(struct myra_loop *loop);

/*
 * A timer in the caller's memory; 1 ms resolution, never early. init once,
 * then start and stop as often as wanted. It must be stopped before its
 * memory goes.
 */
struct myra_timer {
    struct myra_timer *next; /* the loop's own, all but fn and user */
    struct myra_timer **link;
    uint64_t expiry_ms;
    void (*fn)(struct myra_loop *loop, struct myra_timer *timer);
    void *user;
};

MYRA_API void myra_timer_init(struct myra_timer *timer,
                              void (*fn)(struct myra_loop *loop,
                                         struct myra_timer *timer),
                              void *user);

/* Calls fn once, after_ns from now; a running timer is set anew. O(1). */
MYRA_API void myra_timer_start(struct myra_loop *loop,
                               struct myra_timer *timer, uint64_t after_ns);

/* No effect on a timer that is not running. O(1). */
MYRA_API void myra_timer_stop(struct myra_loop *loop,
                              struct myra_timer *timer);

/*
 * A descriptor that is not the loop's (a signalfd, a library's socket).
 * events and revents are POLLIN | POLLOUT of <poll.h>; level-triggered.
 */
struct myra_watch;

typedef void (*myra_watch_fn)(struct myra_loop *loop, int fd, int revents,
                              void *user);

MYRA_API MYRA_MUST_CHECK int myra_watch_open(struct myra_loop *loop, int fd,
                                             int events, myra_watch_fn fn,
                                             void *user,
                                             struct myra_watch **watch_out);

/* fn is not called afterwards; the descriptor stays the caller's, and may be
 * closed from the next turn on. */
MYRA_API void myra_watch_close(struct myra_watch *watch);

MYRA_END_DECLS

#endif
