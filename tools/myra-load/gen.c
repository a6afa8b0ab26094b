/* SPDX-License-Identifier: MIT */
/*
 * The generator's clock and run. Requests have numbers, and a number is a
 * time: start + number / rate. The next number to send is all the state that
 * the backlog needs, however long it is.
 */
#include "config.h"

#include "tools/myra-load/gen_priv.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S UINT64_C(1000000000)
#define HOUSEKEEPING_NS UINT64_C(50000000)
#define OPEN_LIMIT_NS (10 * NS_PER_S)
/* Connects under way at once: below any listener's backlog, since a SYN that
 * is dropped comes again a second later only. */
#define OPENING_MAX 64u

const char *const gen_err_text[GEN_ERR_COUNT] = {
    [GEN_ERR_CONNECT] = "connect",     [GEN_ERR_RESET] = "reset",
    [GEN_ERR_CLOSED] = "closed",       [GEN_ERR_TIMEOUT] = "timeout",
    [GEN_ERR_MALFORMED] = "malformed", [GEN_ERR_STATUS] = "status",
    [GEN_ERR_LENGTH] = "length",       [GEN_ERR_BODY] = "body",
    [GEN_ERR_UNSENT] = "unsent",
};

uint64_t gen_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* ---- Life --------------------------------------------------------------- */

static struct hist *new_hist(void)
{
    struct hist *const hist = malloc(sizeof(*hist));

    if (hist)
        hist_init(hist);
    return hist;
}

static int alloc_parts(struct gen *gen, const struct gen_options *options)
{
    gen->options.request = malloc(options->request_len);
    gen->conns = calloc(options->conn_count, sizeof(*gen->conns));
    gen->scratch = malloc(GEN_SCRATCH_CAP);
    gen->interval = new_hist();
    gen->latency = new_hist();
    gen->latency_actual = new_hist();
    gen->lateness = new_hist();
    if (!gen->options.request || !gen->conns || !gen->scratch ||
        !gen->interval || !gen->latency || !gen->latency_actual ||
        !gen->lateness)
        return -ENOMEM;
    memcpy(gen->options.request, options->request, options->request_len);
    return 0;
}

static void init_conns(struct gen *gen)
{
    gen->idle.prev = gen->idle.next = &gen->idle;
    for (uint32_t i = 0; i < gen->options.conn_count; i++) {
        struct gen_conn *const conn = &gen->conns[i];

        conn->item.on_events = gen_conn_on_events;
        conn->gen = gen;
        conn->fd = -1;
        resp_init(&conn->resp);
    }
}

int gen_new(const struct gen_options *options, struct evq *evq,
            struct gen **gen_out)
{
    if (!options->request || options->request_len == 0 ||
        options->conn_count == 0 || options->addr_len == 0 ||
        !(options->rate_per_s >= 0) || options->rate_per_s > 1e9 ||
        options->spin_ns > NS_PER_S)
        return -EINVAL;
    struct gen *const gen = calloc(1, sizeof(*gen));

    if (!gen)
        return -ENOMEM;
    gen->options = *options;
    gen->own_evq.fd = -1;
    int err = alloc_parts(gen, options);

    if (!err && !evq)
        err = evq_init(&gen->own_evq);
    if (err) {
        gen->options.conn_count = 0;
        gen_free(gen);
        return err;
    }
    gen->evq = evq ? evq : &gen->own_evq;
    init_conns(gen);
    *gen_out = gen;
    return 0;
}

void gen_free(struct gen *gen)
{
    if (!gen)
        return;
    for (uint32_t i = 0; i < gen->options.conn_count; i++) {
        gen_conn_close(&gen->conns[i], 0);
        resp_fini(&gen->conns[i].resp);
    }
    evq_fini(&gen->own_evq);
    free(gen->options.request);
    free(gen->conns);
    free(gen->scratch);
    free(gen->interval);
    free(gen->latency);
    free(gen->latency_actual);
    free(gen->lateness);
    free(gen);
}

/* ---- Pacing ------------------------------------------------------------- */

static uint64_t intended_ns(const struct gen *gen, uint64_t index)
{
    return gen->start_ns + (uint64_t)((double)index * gen->period_ns);
}

/* The time the next request is meant to leave; UINT64_MAX: there is none. */
static uint64_t next_due_ns(const struct gen *gen, uint64_t now_ns)
{
    if (!gen->is_sending || gen->next_index >= gen->planned)
        return UINT64_MAX;
    if (gen->period_ns > 0)
        return intended_ns(gen, gen->next_index);
    return now_ns < gen->end_ns ? now_ns : UINT64_MAX;
}

void gen_pump(struct gen *gen, uint64_t now_ns)
{
    while (gen->idle.next != &gen->idle) {
        const uint64_t due_ns = next_due_ns(gen, now_ns);

        if (due_ns > now_ns)
            return;
        gen->next_index++;
        gen_conn_send(gen->idle.next, due_ns, now_ns);
        now_ns = gen_now_ns();
    }
}

void gen_count_answer(struct gen *gen, const struct gen_conn *conn,
                      uint64_t now_ns)
{
    gen->stats.completed++;
    hist_record(gen->latency, now_ns - conn->intended_ns);
    if (gen->period_ns > 0)
        hist_record(gen->latency_actual, now_ns - conn->actual_ns);
    if (gen->options.on_snapshot)
        hist_record(gen->interval, now_ns - conn->intended_ns);
}

/* ---- Upkeep ------------------------------------------------------------- */

static uint32_t closed_count(const struct gen *gen)
{
    return gen->options.conn_count - gen->opening - gen->stats.conns_open;
}

/* Opens what may be opened now. 0, or the error of a socket call. */
static int open_closed(struct gen *gen, uint64_t now_ns)
{
    if (closed_count(gen) == 0)
        return 0;
    for (uint32_t i = 0; i < gen->options.conn_count; i++) {
        struct gen_conn *const conn = &gen->conns[i];

        if (gen->opening >= OPENING_MAX)
            break;
        if (conn->state != GEN_CONN_CLOSED || conn->retry_at_ns > now_ns)
            continue;
        const int err = gen_conn_open(conn, now_ns);

        if (err < 0)
            return err;
    }
    return 0;
}

/* Ends what is beyond its deadline; at UINT64_MAX all that is under way. */
static void expire(struct gen *gen, uint64_t now_ns)
{
    for (uint32_t i = 0; i < gen->options.conn_count; i++) {
        struct gen_conn *const conn = &gen->conns[i];

        if (conn->deadline_ns > now_ns)
            continue;
        if (conn->state == GEN_CONN_BUSY)
            gen_conn_fail(conn, GEN_ERR_TIMEOUT);
        else if (conn->state == GEN_CONN_OPENING)
            gen_conn_fail_open(conn, -ETIMEDOUT, now_ns);
    }
}

static void reset_counts(struct gen *gen)
{
    const struct gen_stats old = gen->stats;

    memset(&gen->stats, 0, sizeof(gen->stats));
    gen->stats.connects = old.connects;
    gen->stats.reconnects = old.reconnects;
    gen->stats.conns_open = old.conns_open;
    gen->stats.in_flight = old.in_flight;
    hist_init(gen->latency);
    hist_init(gen->latency_actual);
    hist_init(gen->lateness);
    hist_init(gen->interval);
}

/* ---- Snapshots ---------------------------------------------------------- */

static uint64_t planned_by(const struct gen *gen, uint64_t now_ns)
{
    if (gen->period_ns <= 0)
        return gen->stats.sent;
    if (now_ns < gen->start_ns)
        return 0;
    const double due = (double)(now_ns - gen->start_ns) / gen->period_ns + 1;

    return due < (double)gen->planned ? (uint64_t)due : gen->planned;
}

static void take_snapshot(struct gen *gen, uint64_t now_ns, int is_last)
{
    struct gen_snapshot shot = { .is_last = is_last };

    gen->stats.elapsed_ns = now_ns - gen->start_ns;
    gen->stats.planned = planned_by(gen, now_ns);
    shot.total = gen->stats;
    shot.interval_ns = now_ns - gen->shot_last_ns;
    shot.interval_completed = gen->stats.completed - gen->shot_completed;
    shot.interval_errors = gen->stats.errors - gen->shot_errors;
    if (shot.interval_ns > 0)
        shot.interval_rate_per_s = (double)shot.interval_completed * 1e9 /
                                   (double)shot.interval_ns;
    shot.interval_p50_ns = hist_percentile(gen->interval, 50);
    shot.interval_p99_ns = hist_percentile(gen->interval, 99);
    hist_init(gen->interval);
    gen->shot_completed = gen->stats.completed;
    gen->shot_errors = gen->stats.errors;
    gen->shot_last_ns = now_ns;
    gen->shot_at_ns += gen->options.snapshot_ns;
    if (gen->shot_at_ns < now_ns)
        gen->shot_at_ns = now_ns + gen->options.snapshot_ns;
    gen->options.on_snapshot(gen->options.snapshot_user, &shot);
}

/* ---- The run ------------------------------------------------------------ */

/* Opens every connection once; one that fails is left for the run. */
static int open_all(struct gen *gen)
{
    const uint64_t begin_ns = gen_now_ns();
    uint64_t now_ns = begin_ns;

    for (uint32_t i = 0; i < gen->options.conn_count; i++) {
        gen->conns[i].retry_at_ns = 0;
        gen->conns[i].fail_count = 0;
    }
    gen->is_sending = 0;
    while (now_ns - begin_ns < OPEN_LIMIT_NS &&
           !atomic_load_explicit(&gen->should_stop, memory_order_relaxed)) {
        uint32_t untried = 0;
        const int err = open_closed(gen, now_ns);

        if (err < 0)
            return err;
        for (uint32_t i = 0; i < gen->options.conn_count; i++)
            untried += gen->conns[i].state == GEN_CONN_CLOSED &&
                       gen->conns[i].fail_count == 0;
        if (untried == 0 && gen->opening == 0)
            break;
        const int waited = evq_wait(gen->evq, HOUSEKEEPING_NS);

        if (waited < 0)
            return waited;
        now_ns = gen_now_ns();
    }
    if (gen->stats.conns_open > 0)
        return 0;
    return gen->open_err ? gen->open_err : -ETIMEDOUT;
}

static void begin_phase(struct gen *gen, uint64_t duration_ns)
{
    const double rate = gen->options.rate_per_s;
    const uint64_t now_ns = gen_now_ns();

    gen->start_ns = now_ns;
    gen->end_ns = now_ns + duration_ns;
    gen->last_done_ns = now_ns;
    gen->next_index = 0;
    gen->period_ns = rate > 0 ? 1e9 / rate : 0;
    gen->planned = UINT64_MAX;
    if (rate > 0)
        gen->planned = (uint64_t)ceil((double)duration_ns / 1e9 * rate);
    if (gen->options.request_max > 0 &&
        gen->options.request_max < gen->planned)
        gen->planned = gen->options.request_max;
    gen->shot_at_ns = now_ns + gen->options.snapshot_ns;
    gen->shot_last_ns = now_ns;
    gen->shot_completed = 0;
    gen->shot_errors = 0;
    gen->is_sending = 1;
}

/* Nothing more will be sent. */
static int is_sent(const struct gen *gen, uint64_t now_ns)
{
    return next_due_ns(gen, now_ns) == UINT64_MAX;
}

static uint64_t wait_limit_ns(const struct gen *gen, uint64_t now_ns)
{
    uint64_t until_ns = now_ns + HOUSEKEEPING_NS;

    if (gen->idle.next != &gen->idle) {
        const uint64_t due_ns = next_due_ns(gen, now_ns);
        const uint64_t spin_ns = gen->options.spin_ns;

        /* now_ns >= spin_ns: a clock that has run so long. */
        if (due_ns != UINT64_MAX && due_ns - spin_ns < until_ns)
            until_ns = due_ns - spin_ns;
    }
    if (gen->period_ns <= 0 && gen->is_sending && gen->end_ns > now_ns &&
        gen->end_ns < until_ns)
        until_ns = gen->end_ns;
    if (gen->options.on_snapshot && gen->shot_at_ns < until_ns)
        until_ns = gen->shot_at_ns;
    return until_ns > now_ns ? until_ns - now_ns : 0;
}

/* What is left at the end is an error, by kind. */
static void end_phase(struct gen *gen)
{
    gen->is_sending = 0;
    if (gen->planned != UINT64_MAX && gen->period_ns > 0 &&
        gen->next_index < gen->planned) {
        const uint64_t unsent = gen->planned - gen->next_index;

        gen->stats.errors += unsent;
        gen->stats.errors_by_kind[GEN_ERR_UNSENT] += unsent;
    }
    if (gen->stats.in_flight > 0)
        expire(gen, UINT64_MAX);
    gen->stats.planned =
        gen->period_ns > 0 ? gen->planned : gen->stats.sent;
    gen->stats.elapsed_ns = gen->last_done_ns - gen->start_ns;
}

/* A stop: the plan ends with what was due by now. */
static void cut_plan(struct gen *gen, uint64_t now_ns)
{
    const uint64_t due = planned_by(gen, now_ns);

    if (gen->period_ns > 0 && due < gen->planned)
        gen->planned = due;
    if (gen->end_ns > now_ns)
        gen->end_ns = now_ns;
}

static int run_phase(struct gen *gen, uint64_t duration_ns)
{
    uint64_t upkeep_ns = 0;
    uint64_t now_ns;
    int err = 0;

    begin_phase(gen, duration_ns);
    for (;;) {
        now_ns = gen_now_ns();
        if (atomic_load_explicit(&gen->should_stop, memory_order_relaxed))
            cut_plan(gen, now_ns);
        gen_pump(gen, now_ns);
        now_ns = gen_now_ns();
        if (is_sent(gen, now_ns) && gen->stats.in_flight == 0)
            break;
        if (now_ns >= gen->end_ns + gen->options.drain_ns)
            break;
        err = open_closed(gen, now_ns);
        if (err < 0)
            break;
        if (now_ns - upkeep_ns >= HOUSEKEEPING_NS) {
            upkeep_ns = now_ns;
            expire(gen, now_ns);
        }
        if (gen->options.on_snapshot && now_ns >= gen->shot_at_ns)
            take_snapshot(gen, now_ns, 0);
        err = evq_wait(gen->evq, wait_limit_ns(gen, now_ns));
        if (err < 0)
            break;
    }
    end_phase(gen);
    return err < 0 ? err : 0;
}

static int run_phases(struct gen *gen, uint64_t duration_ns)
{
    int err = 0;

    reset_counts(gen);
    gen->open_err = 0;
    if (closed_count(gen) > 0)
        err = open_all(gen);
    if (!err && gen->options.warmup_ns > 0) {
        err = run_phase(gen, gen->options.warmup_ns);
        reset_counts(gen);
    }
    if (!err)
        err = run_phase(gen, duration_ns);
    if (!err && gen->options.on_snapshot)
        take_snapshot(gen, gen->start_ns + gen->stats.elapsed_ns, 1);
    return err;
}

int gen_run(struct gen *gen, uint64_t duration_ns)
{
    const int old_slack = prctl(PR_GET_TIMERSLACK);

    atomic_store(&gen->is_running, 1);
    /* Timers may be 50 us late by default: half a period at 10,000/s. */
    prctl(PR_SET_TIMERSLACK, 1000UL);
    const int err = run_phases(gen, duration_ns);

    if (old_slack > 0)
        prctl(PR_SET_TIMERSLACK, (unsigned long)old_slack);
    atomic_store(&gen->should_stop, 0);
    atomic_store(&gen->is_running, 0);
    return err;
}

/* ---- Threads ------------------------------------------------------------ */

static void *thread_main(void *arg)
{
    struct gen *const gen = arg;

    gen->thread_err = gen_run(gen, gen->thread_duration_ns);
    return NULL;
}

int gen_start(struct gen *gen, uint64_t duration_ns)
{
    if (gen->has_thread)
        return -EBUSY;
    gen->thread_duration_ns = duration_ns;
    atomic_store(&gen->is_running, 1);
    const int err = pthread_create(&gen->thread, NULL, thread_main, gen);

    if (err) {
        atomic_store(&gen->is_running, 0);
        return -err;
    }
    gen->has_thread = 1;
    return 0;
}

int gen_join(struct gen *gen)
{
    if (!gen->has_thread)
        return -EINVAL;
    pthread_join(gen->thread, NULL);
    gen->has_thread = 0;
    return gen->thread_err;
}

void gen_stop(struct gen *gen)
{
    atomic_store_explicit(&gen->should_stop, 1, memory_order_relaxed);
}

int gen_is_running(const struct gen *gen)
{
    return atomic_load(&gen->is_running);
}

/* ---- Results ------------------------------------------------------------ */

void gen_read_stats(const struct gen *gen, struct gen_stats *stats)
{
    *stats = gen->stats;
}

const struct hist *gen_latency(const struct gen *gen)
{
    return gen->latency;
}

/* In a closed loop one histogram holds both. */
const struct hist *gen_latency_actual(const struct gen *gen)
{
    return gen->options.rate_per_s > 0 ? gen->latency_actual : gen->latency;
}

const struct hist *gen_lateness(const struct gen *gen)
{
    return gen->lateness;
}
