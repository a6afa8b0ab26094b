/* SPDX-License-Identifier: MIT */
/*
 * A queue of readiness events: epoll, and a function for each descriptor.
 * The generator and a bench's origin share one, and so one thread.
 */
#ifndef MYRA_LOAD_EVQ_H
#define MYRA_LOAD_EVQ_H

#include <stdint.h>
#include <sys/epoll.h>

#define EVQ_BATCH 256

/* Part of whatever owns a descriptor. It must outlive the evq_wait call in
 * which it was removed: an event of the same batch may still name it. */
struct evq_item {
    void (*on_events)(struct evq_item *item, uint32_t events);
};

struct evq {
    int fd;
    int has_fine_wait; /* epoll_pwait2 works */
    uint64_t waits;    /* calls of evq_wait */
    /* Called after the events of each wait, where not NULL: what is sent
     * then reaches a busy peer in one go, instead of waking it each time. */
    void (*on_batch_end)(void *ctx);
    void *batch_ctx;
    struct epoll_event events[EVQ_BATCH];
};

/* 0 or -errno. */
int evq_init(struct evq *evq);
void evq_fini(struct evq *evq);

/*
 * events: EPOLLIN, EPOLLOUT; edge-triggered, and EPOLLRDHUP comes unasked.
 * So on_events reads until less came than it had room for, and further until
 * the end when EPOLLRDHUP, EPOLLHUP or EPOLLERR is told. 0 or -errno.
 */
int evq_add(struct evq *evq, int fd, uint32_t events, struct evq_item *item);
int evq_change(struct evq *evq, int fd, uint32_t events,
               struct evq_item *item);

/* Before the descriptor is closed. */
void evq_remove(struct evq *evq, int fd);

/* Waits at most timeout_ns (0: not at all) and calls what is ready. Returns
 * the number of events or -errno; a signal is 0 events. */
int evq_wait(struct evq *evq, uint64_t timeout_ns);

#endif
