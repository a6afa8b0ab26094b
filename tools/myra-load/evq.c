/* SPDX-License-Identifier: MIT */
/*
 * Event queue over epoll. Waits are given in nanoseconds, because a request
 * that leaves a millisecond late is a wrong measurement. Edge-triggered: the
 * kernel looks at a ready descriptor once, not twice.
 */
#include "config.h"

#include "tools/myra-load/evq.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)

int evq_init(struct evq *evq)
{
    evq->fd = epoll_create1(EPOLL_CLOEXEC);
    evq->has_fine_wait = 1;
    evq->waits = 0;
    evq->on_batch_end = NULL;
    return evq->fd < 0 ? -errno : 0;
}

void evq_fini(struct evq *evq)
{
    if (evq->fd >= 0)
        close(evq->fd);
    evq->fd = -1;
}

static int control(struct evq *evq, int op, int fd, uint32_t events,
                   struct evq_item *item)
{
    struct epoll_event event = { .events = events | EPOLLET | EPOLLRDHUP,
                                 .data = { .ptr = item } };

    return epoll_ctl(evq->fd, op, fd, &event) < 0 ? -errno : 0;
}

int evq_add(struct evq *evq, int fd, uint32_t events, struct evq_item *item)
{
    return control(evq, EPOLL_CTL_ADD, fd, events, item);
}

int evq_change(struct evq *evq, int fd, uint32_t events,
               struct evq_item *item)
{
    return control(evq, EPOLL_CTL_MOD, fd, events, item);
}

void evq_remove(struct evq *evq, int fd)
{
    control(evq, EPOLL_CTL_DEL, fd, 0, NULL);
}

/* epoll_wait's milliseconds, rounded down: the last part is spun away. */
static int wait_coarse(struct evq *evq, uint64_t timeout_ns)
{
    const uint64_t ms = timeout_ns / NS_PER_MS;

    return epoll_wait(evq->fd, evq->events, EVQ_BATCH,
                      ms > 1000 ? 1000 : (int)ms);
}

static int wait_fine(struct evq *evq, uint64_t timeout_ns)
{
    const struct timespec timeout = {
        .tv_sec = (time_t)(timeout_ns / NS_PER_S),
        .tv_nsec = (long)(timeout_ns % NS_PER_S),
    };
    const int count =
        epoll_pwait2(evq->fd, evq->events, EVQ_BATCH, &timeout, NULL);

    if (count < 0 && (errno == ENOSYS || errno == EPERM)) {
        evq->has_fine_wait = 0;
        return wait_coarse(evq, timeout_ns);
    }
    return count;
}

int evq_wait(struct evq *evq, uint64_t timeout_ns)
{
    const int count = evq->has_fine_wait && timeout_ns > 0
        ? wait_fine(evq, timeout_ns)
        : wait_coarse(evq, timeout_ns);

    evq->waits++;
    if (count < 0)
        return errno == EINTR ? 0 : -errno;
    for (int i = 0; i < count; i++) {
        struct evq_item *const item = evq->events[i].data.ptr;

        item->on_events(item, evq->events[i].events);
    }
    if (evq->on_batch_end)
        evq->on_batch_end(evq->batch_ctx);
    return count;
}
