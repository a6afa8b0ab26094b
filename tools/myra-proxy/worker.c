/* SPDX-License-Identifier: MIT */
/*
 * One thread with its loop. A drain closes the listeners (which still accept
 * what the system has queued), lets requests finish, and ends when the loop
 * has nothing left to wait for.
 */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "proxy.h"

#define TICK_NS UINT64_C(200000000)

/* How long a drain waits for requests that may be on their way: on a
 * connection that served before, and on one that has not yet. */
#define GRACE_IDLE_NS UINT64_C(200000000)
#define GRACE_NEW_NS UINT64_C(1000000000)

/* Peers that do not end their side are waited for so long after a close. */
#define LINGER_NS UINT64_C(2000000000)

#define SLAB_CHUNK 16320

/* 2 MiB of receive buffers: one receive takes a head with a 16 KiB body, for
 * small messages only their first page is ever touched. */
#define RECV_BUF_COUNT 128
#define RECV_BUF_CAP 16320

/* ---- Time --------------------------------------------------------------- */

const char *worker_date(struct worker *worker)
{
    const uint64_t now = myra_loop_now_ns(worker->loop);
    struct timespec real;

    if (now < worker->date_until_ns)
        return worker->date;
    clock_gettime(CLOCK_REALTIME, &real);
    myra_http_date_print((int64_t)real.tv_sec, worker->date);
    worker->date_until_ns = now + 1000000000u - (uint64_t)real.tv_nsec;
    return worker->date;
}

static void on_tick(struct myra_loop *loop, struct myra_timer *timer)
{
    struct worker *worker = timer->user;
    int is_needed = 0;

    (void)loop;
    worker->is_ticking = 0;
    is_needed |= slab_trim(&worker->exchange_slab);
    is_needed |= slab_trim(&worker->session_slab);
    is_needed |= slab_trim(&worker->upstream_slab);
    if (worker->log)
        is_needed |= access_log_flush(worker->log);
    if (worker->forward_count && !worker->is_draining) {
        origin_sweep(worker);
        is_needed |= worker->forward_count > 0;
    }
    if (is_needed && !worker->is_draining)
        worker_tick(worker);
}

void worker_tick(struct worker *worker)
{
    if (worker->is_ticking)
        return;
    worker->is_ticking = 1;
    myra_timer_start(worker->loop, &worker->tick, TICK_NS);
}

/* ---- Sessions ----------------------------------------------------------- */

static void pause_listeners(struct worker *worker)
{
    uint32_t i;

    if (worker->is_paused)
        return;
    worker->is_paused = 1;
    worker->stats.accept_waits++;
    for (i = 0; i < worker->listener_count; i++)
        myra_listener_pause(worker->listeners[i]);
}

static void resume_listeners(struct worker *worker)
{
    uint32_t i;

    if (!worker->is_paused)
        return;
    worker->is_paused = 0;
    for (i = 0; i < worker->listener_count; i++)
        myra_listener_resume(worker->listeners[i]);
}

static void start_drain_timer(struct worker *worker)
{
    const uint64_t now = myra_loop_now_ns(worker->loop);

    myra_timer_start(worker->loop, &worker->drain_timer,
                     worker->drain_until_ns > now
                         ? worker->drain_until_ns - now
                         : 0);
}

/* Some backends have accepted more when a listener pauses. Those connections
 * wait, unread; they are the newest, the oldest of them goes first. */
static void let_one_in(struct worker *worker)
{
    struct session *session = worker->sessions, *oldest = NULL;

    for (; session && session->pauses & PAUSE_LIMIT; session = session->next)
        oldest = session;
    if (!oldest)
        return;
    session_resume(oldest, PAUSE_LIMIT);
    myra_conn_set_deadline(oldest->conn, worker->options->header_timeout_ns);
}

void worker_add_session(struct worker *worker, struct session *session)
{
    session->prev = NULL;
    session->next = worker->sessions;
    if (session->next)
        session->next->prev = session;
    worker->sessions = session;
    worker->stats.connections++;
    worker->session_count++;
    if (!worker->is_draining) {
        if (worker->session_count >= worker->session_max)
            pause_listeners(worker);
        if (worker->session_count > worker->session_max) {
            session_pause(session, PAUSE_LIMIT);
            myra_conn_set_deadline(session->conn, 0);
        }
    } else {
        myra_conn_set_deadline(session->conn, GRACE_NEW_NS);
        start_drain_timer(worker);
    }
}

void worker_remove_session(struct worker *worker, struct session *session)
{
    if (session->prev)
        session->prev->next = session->next;
    else
        worker->sessions = session->next;
    if (session->next)
        session->next->prev = session->prev;
    if (--worker->session_count < worker->session_max &&
        !worker->is_draining)
        resume_listeners(worker);
    else if (!(session->pauses & PAUSE_LIMIT))
        let_one_in(worker);
    if (!worker->session_count && worker->is_draining)
        myra_timer_stop(worker->loop, &worker->drain_timer);
    if (worker->session_slab.empty_count > 1)
        worker_tick(worker);
}

/* ---- Ending ------------------------------------------------------------- */

static void on_drain_timer(struct myra_loop *loop, struct myra_timer *timer)
{
    struct worker *worker = timer->user;

    if (worker->session_count)
        fprintf(stderr, "myra-proxy: drain: %u connections were cut\n",
                (unsigned)worker->session_count);
    worker->is_stopping = 1;
    myra_loop_stop(loop);
}

static void on_drain(struct myra_loop *loop, struct myra_task *task)
{
    struct worker *worker =
        (struct worker *)(void *)((char *)task -
                                  offsetof(struct worker, drain_task));
    struct session *session;
    uint32_t i;

    if (worker->is_draining)
        return;
    worker->is_draining = 1;
    worker->drain_until_ns =
        myra_loop_now_ns(loop) + worker->options->drain_timeout_ns;
    /* A paused listener would not take what the system has queued. */
    resume_listeners(worker);
    for (i = 0; i < worker->listener_count; i++)
        myra_listener_close(worker->listeners[i]);
    worker->listener_count = 0;
    for (session = worker->sessions; session; session = session->next) {
        session_resume(session, PAUSE_LIMIT);
        if (session->state == SESSION_IDLE)
            myra_conn_set_deadline(session->conn, session->is_used
                                                      ? GRACE_IDLE_NS
                                                      : GRACE_NEW_NS);
    }
    upstream_drop_idle(worker);
    if (worker->session_count)
        start_drain_timer(worker);
}

static void on_stop(struct myra_loop *loop, struct myra_task *task)
{
    struct worker *worker =
        (struct worker *)(void *)((char *)task -
                                  offsetof(struct worker, stop_task));

    worker->is_stopping = 1;
    myra_loop_stop(loop);
}

static void post(struct worker *worker, struct myra_task *task)
{
    pthread_mutex_lock(&worker->lock);
    if (!worker->has_ended && worker->loop)
        myra_post(worker->loop, task);
    pthread_mutex_unlock(&worker->lock);
}

void worker_post_drain(struct worker *worker)
{
    post(worker, &worker->drain_task);
}

void worker_post_stop(struct worker *worker)
{
    post(worker, &worker->stop_task);
}

/* ---- The thread --------------------------------------------------------- */

static void snapshot(struct worker *worker)
{
    const struct myra_loop *loop = worker->loop;

    myra_loop_read_stats(loop, &worker->loop_stats);
    snprintf(worker->backend, sizeof(worker->backend), "%s",
             myra_loop_backend_name(loop));
    snprintf(worker->backend_reason, sizeof(worker->backend_reason), "%s",
             myra_loop_backend_reason(loop));
    snprintf(worker->wait, sizeof(worker->wait), "%s",
             myra_loop_wait_name(loop));
}

static void free_loop(struct worker *worker)
{
    if (!worker->loop)
        return;
    worker->is_stopping = 1;
    worker->is_draining = 1;
    snapshot(worker);
    if (worker->names)
        names_forget(worker->names, worker->loop);
    myra_loop_free(worker->loop);
    worker->loop = NULL;
}

void worker_loop(struct worker *worker)
{
    worker->err = myra_loop_run(worker->loop);
}

void worker_end(struct worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    worker->has_ended = 1;
    pthread_mutex_unlock(&worker->lock);
    free_loop(worker);
}

void *worker_run(void *user)
{
    struct worker *worker = user;

    worker_loop(worker);
    worker_end(worker);
    kill(getpid(), SIGUSR2);
    return NULL;
}

/* ---- Set-up ------------------------------------------------------------- */

static int refuse(const char *what, const char *value, const char *why)
{
    fprintf(stderr, "myra-proxy: %s%s%s: %s\n", what, *value ? " " : "",
            value, why);
    return -EXIT_FAILED;
}

static void listen_options(const struct worker *worker,
                           struct myra_listen_options *listen)
{
    const struct proxy_options *options = worker->options;

    myra_listen_options_init(listen);
    listen->reuse_port = options->threads > 1;
    listen->conn.linger_ns = LINGER_NS;
    /* One byte more than the largest head, so that it is the parser that
     * refuses it, with its reason. */
    listen->conn.hold_max =
        (uint32_t)(options->max_line + options->max_head + 4096);
}

static int open_listener(struct worker *worker, const struct site *site,
                         const char *text, const struct worker *first)
{
    const uint32_t at = worker->listener_count;
    struct front *front = &worker->fronts[at];
    struct myra_listen_options options;
    char bound[128];
    int err, fd = -1;

    front->worker = worker;
    front->site = site;
    listen_options(worker, &options);
    if (first && strncmp(text, "unix:", 5) == 0) {
        /* No SO_REUSEPORT for these: all workers accept from one queue. */
        options.reuse_port = 0;
        fd = dup(myra_listener_fd(first->listeners[at]));
    } else if (first &&
               myra_listener_addr(first->listeners[at], bound,
                                  sizeof(bound)) > 0) {
        text = bound; /* port 0: the port that the first one got */
    }
    if (fd >= 0)
        err = myra_listen_fd(worker->loop, fd, &options, &session_events,
                             front, &worker->listeners[at]);
    else
        err = myra_listen(worker->loop, text, &options, &session_events,
                          front, &worker->listeners[at]);
    if (err < 0)
        return refuse("--listen", text, myra_strerror(err));
    worker->listener_count++;
    return 0;
}

static int open_listeners(struct worker *worker, const struct worker *first)
{
    const struct proxy_options *options = worker->options;
    uint32_t i, j, count = 0;
    int err;

    for (i = 0; i < options->site_count; i++)
        count += options->sites[i].listen_count;
    worker->listeners = calloc(count, sizeof(struct myra_listener *));
    worker->fronts = calloc(count, sizeof(struct front));
    if (!worker->listeners || !worker->fronts)
        return refuse("start", "", "out of memory");
    for (i = 0; i < options->site_count; i++) {
        const struct site *site = &options->sites[i];

        for (j = 0; j < site->listen_count; j++) {
            err = open_listener(worker, site, site->listens[j], first);
            if (err)
                return err;
        }
    }
    return 0;
}

static int open_loop(struct worker *worker)
{
    struct myra_loop_options options;
    int err;

    myra_loop_options_init(&options);
    options.backend = worker->options->backend;
    options.wait = worker->options->wait;
    options.alloc = &worker->counting.base;
    options.recv_buf_count = RECV_BUF_COUNT;
    options.recv_buf_cap = RECV_BUF_CAP;
    err = myra_loop_new(&options, &worker->loop);
    if (err < 0) {
        const char *why = myra_loop_new_error();

        return refuse("event loop", "", *why ? why : myra_strerror(err)) +
               (err == MYRA_EINVAL ? EXIT_FAILED - EXIT_USAGE : 0);
    }
    return 0;
}

static void set_limits(struct worker *worker)
{
    const struct proxy_options *options = worker->options;
    struct myra_http_limits *limits = &worker->request_limits;

    myra_http_limits_init(limits);
    limits->line_max = (uint32_t)options->max_line;
    limits->fields_max = (uint32_t)options->max_head;
    limits->trailer_max = (uint32_t)options->max_head;
    limits->field_count_max = (uint32_t)options->max_fields;
    limits->flags = MYRA_ACCEPT_CODINGS;
    worker->response_limits = *limits;
    worker->response_limits.flags |= MYRA_LENIENT_LF | MYRA_LENIENT_FOLD;
    if (options->max_body)
        limits->body_max = options->max_body;
}

/* Two descriptors a client, and some for all else: a client that was accepted
 * can be served. */
static uint32_t session_limit(const struct proxy_options *options,
                              int is_first)
{
    struct rlimit rlimit;
    uint64_t limit;

    if (getrlimit(RLIMIT_NOFILE, &rlimit) < 0)
        rlimit.rlim_cur = 1024;
    limit = rlimit.rlim_cur > 64 ? (rlimit.rlim_cur - 48) / 2 : 8;
    if (limit > 500000)
        limit = 500000;
    if (options->max_connections > limit && is_first)
        fprintf(stderr,
                "myra-proxy: --max-connections %llu: %llu descriptors are "
                "enough for %llu\n",
                (unsigned long long)options->max_connections,
                (unsigned long long)rlimit.rlim_cur,
                (unsigned long long)limit);
    if (options->max_connections && options->max_connections < limit)
        limit = options->max_connections;
    limit /= options->threads;
    return limit ? (uint32_t)limit : 1;
}

static void init_via(struct worker *worker)
{
    for (int minor = 0; minor < 2; minor++)
        snprintf(worker->via[minor], VIA_CAP, "1.%d %s", minor,
                 worker->options->via);
    worker->via_len = strlen(worker->via[0]);
}

static void init_memory(struct worker *worker)
{
    const struct proxy_options *options = worker->options;
    const struct myra_allocator *alloc = &worker->counting.base;

    slab_init(&worker->session_slab, alloc,
              sizeof(struct session) + (options->access_log ? PEER_CAP : 0),
              SLAB_CHUNK);
    slab_init(&worker->upstream_slab, alloc, sizeof(struct upstream),
              SLAB_CHUNK);
    slab_init(&worker->exchange_slab, alloc, EXCHANGE_BLOCK, EXCHANGE_CHUNK);
    worker->fields =
        calloc((size_t)options->max_fields, sizeof(struct myra_http_field));
    myra_conn_options_init(&worker->conn_options);
    worker->conn_options.connect_timeout_ns = options->connect_timeout_ns;
    worker->conn_options.linger_ns = LINGER_NS;
    worker->conn_options.hold_max =
        (uint32_t)(options->max_line + options->max_head + 4096);
}

int worker_init(struct worker *worker, const struct proxy_options *options,
                uint32_t worker_index, const struct worker *first)
{
    int err;

    worker->options = options;
    worker->random = myra_clock_ns() * 2 + 1 + worker_index;
    worker->session_max = session_limit(options, worker_index == 0);
    worker->drain_task.fn = on_drain;
    worker->stop_task.fn = on_stop;
    pthread_mutex_init(&worker->lock, NULL);
    myra_counting_init(&worker->counting, NULL);
    myra_timer_init(&worker->tick, on_tick, worker);
    myra_timer_init(&worker->drain_timer, on_drain_timer, worker);
    set_limits(worker);
    init_via(worker);
    init_memory(worker);
    if (!worker->fields || origin_open_targets(worker) < 0)
        return refuse("start", "", "out of memory");
    err = open_loop(worker);
    return err ? err : open_listeners(worker, first);
}

void worker_fini(struct worker *worker)
{
    if (!worker->options)
        return;
    free_loop(worker);
    origin_close_all(worker);
    slab_fini(&worker->session_slab);
    slab_fini(&worker->upstream_slab);
    slab_fini(&worker->exchange_slab);
    free(worker->fields);
    free(worker->listeners);
    free(worker->fronts);
    pthread_mutex_destroy(&worker->lock);
}
