/* SPDX-License-Identifier: MIT */
/*
 * The loop: one turn runs due timers, starts queued sends, waits in the
 * backend, which reports through the sink, and gives back what has ended.
 */
#include "config.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/checked.h"
#include "lib/net/net_priv.h"

static __thread char last_error[512];
static uint32_t fork_generation;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void on_fork_child(void)
{
    fork_generation++;
}

static void watch_forks(void)
{
    (void)pthread_atfork(NULL, NULL, on_fork_child);
}

void myra_loop_options_init(struct myra_loop_options *options)
{
    memset(options, 0, sizeof(*options));
    options->struct_size = sizeof(*options);
    options->recv_buf_count = 256;
    options->recv_buf_cap = 4032;
    options->block_limit = 64u * 1024 * 1024;
    options->conns_max = 1000000;
}

const char *myra_loop_new_error(void)
{
    return last_error;
}

int myi_loop_check(const struct myra_loop *loop)
{
    if (loop->fork_generation != fork_generation)
        return MYRA_EFORK;
    if (loop->is_owned && !pthread_equal(loop->owner, pthread_self()))
        return MYRA_ETHREAD;
    return 0;
}

static int check_options(const struct myra_loop_options *o)
{
    if (o->struct_size != sizeof(*o) || o->recv_buf_count < 2 ||
        o->recv_buf_count > 32768 || o->recv_buf_cap < 64 ||
        o->recv_buf_cap > 1024 * 1024 || o->conns_max < 1 ||
        o->conns_max > (1u << 24))
        return MYRA_EINVAL;
    return 0;
}

static uint32_t round_pow2(uint32_t n)
{
    uint32_t p = 1;

    while (p < n)
        p *= 2;
    return p;
}

static int make_pool(struct myra_loop *loop,
                     const struct myra_loop_options *options)
{
    struct myra_pool_options pool;

    myra_pool_options_init(&pool);
    pool.buf_cap = options->recv_buf_cap;
    pool.count = round_pow2(options->recv_buf_count);
    pool.alloc = loop->alloc;
    MYRA_TRY(myra_pool_new(&pool, &loop->pool));
    loop->pool_count = pool.count;
    loop->lease_budget = pool.count / 16 > 2 ? pool.count / 16 : 2;
    return 0;
}

/* ---- Memory after a burst ----------------------------------------------- */

#define TRIM_NS (UINT64_C(300) * MYI_MS_NS)
#define PIECE_CHUNK_BYTES (256u * 1024)

static void on_trim(struct myra_loop *loop, struct myra_timer *timer)
{
    int has_more = myi_slab_trim(&loop->pieces);

    has_more |= myi_blocks_trim(&loop->blocks);
    if (has_more)
        myra_timer_start(loop, timer, TRIM_NS);
}

/* Sets the trimming off when there is something to give back. */
static void watch_memory(struct myra_loop *loop)
{
    uint32_t empty = loop->pieces.empty_count;

    for (int i = 0; i < MYI_BLOCK_CLASSES && empty <= 1; i++)
        empty = loop->blocks.slab[i].empty_count;
    if (empty > 1 && !myi_timer_is_running(&loop->trim))
        myra_timer_start(loop, &loop->trim, TRIM_NS);
}

/* ---- Making ------------------------------------------------------------- */

static void free_loop_memory(struct myra_loop *loop)
{
    myi_slab_fini(&loop->pieces);
    myi_blocks_fini(&loop->blocks);
    myi_confs_fini(loop);
    (void)myra_pool_free(loop->pool);
    myi_free(loop->alloc, loop, sizeof(*loop));
}

static int refuse(int err, const char *text)
{
    strncpy(last_error, text, sizeof(last_error) - 1);
    return err;
}

int myra_loop_new(const struct myra_loop_options *options,
                  struct myra_loop **loop_out)
{
    struct myra_loop_options defaults;
    struct myra_loop *loop;
    int err;

    last_error[0] = '\0';
    pthread_once(&fork_once, watch_forks);
    if (options == NULL) {
        myra_loop_options_init(&defaults);
        options = &defaults;
    }
    if (check_options(options) < 0)
        return refuse(MYRA_EINVAL, "a loop option is out of its range");
    loop = myi_alloc(options->alloc, sizeof(*loop));
    if (loop == NULL)
        return refuse(MYRA_ENOMEM, myra_strerror(MYRA_ENOMEM));
    loop->alloc = options->alloc != NULL ? options->alloc
                                         : myra_default_allocator();
    loop->dirty_end = &loop->dirty;
    loop->ready_end = &loop->ready;
    loop->fork_generation = fork_generation;
    loop->owner = pthread_self();
    loop->now_ns = myra_clock_ns();
    myi_wheel_init(&loop->wheel, myi_loop_now_ms(loop));
    myi_blocks_init(&loop->blocks, loop->alloc, options->block_limit);
    myi_slab_init(&loop->pieces, loop->alloc, sizeof(struct myi_piece),
                  PIECE_CHUNK_BYTES);
    myra_timer_init(&loop->trim, on_trim, NULL);
    err = make_pool(loop, options);
    if (err == 0)
        err = myi_backend_open(options, loop, last_error,
                               sizeof(last_error));
    if (err < 0) {
        if (last_error[0] == '\0')
            refuse(err, myra_strerror(err));
        free_loop_memory(loop);
        return err;
    }
    *loop_out = loop;
    return 0;
}

/* ---- Flushing ----------------------------------------------------------- */

static struct myra_conn *take_dirty(struct myra_loop *loop)
{
    struct myra_conn *conn = loop->dirty;

    loop->dirty = conn->dirty_next;
    if (loop->dirty == NULL)
        loop->dirty_end = &loop->dirty;
    conn->flags &= (uint16_t)~MYI_F_DIRTY;
    return conn;
}

static struct myra_conn *take_ready(struct myra_loop *loop)
{
    struct myra_conn *conn = loop->ready;

    loop->ready = conn->ready_next;
    if (loop->ready == NULL)
        loop->ready_end = &loop->ready;
    conn->flags &= (uint16_t)~MYI_F_READY;
    return conn;
}

static void flush_dirty(struct myra_loop *loop)
{
    while (loop->dirty != NULL) {
        struct myra_conn *conn = take_dirty(loop);

        myi_send_flush(conn);
        myi_send_report(conn);
    }
}

/* Rounds of work that makes work; what is left waits for the next turn, so
 * that two connections cannot keep the others out. */
#define FLUSH_ROUNDS 8

void myi_loop_flush(struct myra_loop *loop)
{
    loop->be->is_tight = loop->blocks.used > loop->blocks.limit / 2;
    for (int round = 0; round < FLUSH_ROUNDS; round++) {
        struct myra_conn *last = NULL;

        flush_dirty(loop);
        if (loop->ready == NULL)
            return;
        /* Only those that are ready now. */
        for (last = loop->ready; last->ready_next != NULL;)
            last = last->ready_next;
        for (;;) {
            struct myra_conn *conn = take_ready(loop);

            myi_recv_deliver(conn);
            if (conn == last)
                break;
        }
    }
    flush_dirty(loop);
}

/* ---- The sink ----------------------------------------------------------- */

static void on_awake(struct myi_be *be)
{
    myi_loop_of(be)->now_ns = myra_clock_ns();
}

static void on_starved(struct myi_be *be, struct myi_io *io)
{
    (void)io;
    myi_loop_of(be)->stats.starved++;
}

static void on_poll(struct myi_be *be, struct myi_io *io, int revents)
{
    struct myra_watch *watch = (struct myra_watch *)io;

    if (watch->fn != NULL)
        watch->fn(myi_loop_of(be), io->fd, revents, watch->user);
}

/* Tasks were pushed newest first; they run oldest first. */
static void run_posted(struct myra_loop *loop)
{
    struct myra_task *list, *first = NULL;

    /* Before the list is taken: a task posted after that wakes again. */
    __atomic_store_n(&loop->wake_pending, 0, __ATOMIC_SEQ_CST);
    list = __atomic_exchange_n(&loop->posted, NULL, __ATOMIC_ACQ_REL);
    while (list != NULL) {
        struct myra_task *task = list;

        list = task->next;
        task->next = first;
        first = task;
    }
    while (first != NULL) {
        struct myra_task *task = first;

        first = task->next;
        task->fn(loop, task);
    }
}

static void on_wake(struct myi_be *be)
{
    run_posted(myi_loop_of(be));
}

static void flush(struct myi_be *be)
{
    myi_loop_flush(myi_loop_of(be));
}

const struct myi_sink myi_net_sink = {
    .on_awake = on_awake,
    .on_accept = myi_on_accept,
    .on_connect = myi_on_connect,
    .on_recv = myi_on_recv,
    .on_starved = on_starved,
    .on_send = myi_on_send,
    .on_poll = on_poll,
    .on_closed = myi_on_closed,
    .on_wake = on_wake,
    .flush = flush,
};

/* ---- Turns -------------------------------------------------------------- */

void myi_loop_bury(struct myra_loop *loop, struct myi_io *io)
{
    /* On the dirty or ready list still: the slot waits for their end. */
    io->is_closing = 1;
    io->kind = MYI_IO_FREE;
    io->fd = loop->dead != NULL ? (int)loop->dead->slot + 1 : 0;
    loop->dead = io;
}

static void give_back(struct myra_loop *loop)
{
    while (loop->dead != NULL) {
        struct myi_io *io = loop->dead;

        loop->dead = io->fd > 0
                         ? myi_slot_at(&loop->slots, (uint32_t)io->fd - 1)
                         : NULL;
        myi_slot_give(&loop->slots, io);
    }
}

static void after_turn(struct myra_loop *loop)
{
    struct myra_listener *listener = loop->listeners;

    while (listener != NULL) {
        struct myra_listener *next = listener->next;

        myi_listener_after_turn(listener);
        listener = next;
    }
    myi_recv_unstall(loop);
    myi_loop_flush(loop);
    watch_memory(loop);
    if (loop->dirty == NULL && loop->ready == NULL)
        give_back(loop);
}

static int64_t wait_limit(const struct myra_loop *loop, int64_t timeout_ns)
{
    const uint64_t next_ms = myi_wheel_next_ms(&loop->wheel);
    int64_t until;

    if (loop->dirty != NULL || loop->ready != NULL || loop->dead != NULL ||
        __atomic_load_n(&loop->posted, __ATOMIC_RELAXED) != NULL ||
        __atomic_load_n(&loop->stop, __ATOMIC_RELAXED))
        return 0;
    if (next_ms == UINT64_MAX || next_ms > INT64_MAX / MYI_MS_NS / 2)
        return timeout_ns;
    until = (int64_t)((loop->wheel.now_ms + next_ms) * MYI_MS_NS) -
            (int64_t)loop->now_ns;
    if (until < 0)
        until = 0;
    return timeout_ns < 0 || until < timeout_ns ? until : timeout_ns;
}

static int wait_spinning(struct myra_loop *loop, int64_t limit_ns)
{
    const uint64_t start_ns = loop->now_ns;
    int handled;

    do {
        handled = loop->ops->wait(loop->be, 0);
        if (limit_ns == 0)
            break;
        if (limit_ns > 0 && loop->now_ns - start_ns >= (uint64_t)limit_ns)
            break;
    } while (handled == 0 && loop->dirty == NULL && loop->ready == NULL &&
             !__atomic_load_n(&loop->stop, __ATOMIC_RELAXED));
    return handled;
}

static int turn(struct myra_loop *loop, int64_t timeout_ns)
{
    uint32_t handled;
    int64_t limit_ns;
    int res;

    loop->now_ns = myra_clock_ns();
    handled = myi_wheel_advance(&loop->wheel, myi_loop_now_ms(loop), loop);
    after_turn(loop);
    limit_ns = wait_limit(loop, handled > 0 ? 0 : timeout_ns);
    res = loop->is_spin ? wait_spinning(loop, limit_ns)
                        : loop->ops->wait(loop->be, limit_ns);
    if (res < 0)
        return res;
    loop->stats.turns++;
    if (__atomic_load_n(&loop->posted, __ATOMIC_RELAXED) != NULL)
        run_posted(loop);
    handled += (uint32_t)res;
    handled += myi_wheel_advance(&loop->wheel, myi_loop_now_ms(loop), loop);
    after_turn(loop);
    return (int)handled;
}

int myra_loop_step(struct myra_loop *loop, int64_t timeout_ns)
{
    int res;

    MYRA_TRY(myi_loop_check(loop));
    if (loop->in_turn)
        return MYRA_ESTATE;
    if (!loop->is_owned) {
        loop->owner = pthread_self();
        loop->is_owned = 1;
    }
    loop->in_turn = 1;
    res = turn(loop, timeout_ns);
    loop->in_turn = 0;
    return res;
}

static int is_idle(const struct myra_loop *loop)
{
    const uint32_t own = myi_timer_is_running(&loop->trim);

    return loop->slots.used == 0 && loop->wheel.count == own &&
           __atomic_load_n(&loop->posted, __ATOMIC_RELAXED) == NULL;
}

int myra_loop_run(struct myra_loop *loop)
{
    while (!__atomic_load_n(&loop->stop, __ATOMIC_ACQUIRE) &&
           !is_idle(loop))
        MYRA_TRY(myra_loop_step(loop, -1));
    __atomic_store_n(&loop->stop, 0, __ATOMIC_RELEASE);
    return 0;
}

void myra_loop_stop(struct myra_loop *loop)
{
    __atomic_store_n(&loop->stop, 1, __ATOMIC_RELEASE);
    (void)myra_wake(loop);
}

int myra_wake(struct myra_loop *loop)
{
    if (loop->fork_generation != fork_generation)
        return MYRA_EFORK;
    if (__atomic_exchange_n(&loop->wake_pending, 1, __ATOMIC_SEQ_CST) != 0)
        return 0;
    return loop->ops->wake(loop->be);
}

int myra_post(struct myra_loop *loop, struct myra_task *task)
{
    struct myra_task *head = __atomic_load_n(&loop->posted, __ATOMIC_RELAXED);

    if (loop->fork_generation != fork_generation)
        return MYRA_EFORK;
    do {
        task->next = head;
    } while (!__atomic_compare_exchange_n(&loop->posted, &head, task, 1,
                                          __ATOMIC_RELEASE,
                                          __ATOMIC_RELAXED));
    return myra_wake(loop);
}

/* ---- Freeing ------------------------------------------------------------ */

static void end_all(struct myra_loop *loop)
{
    for (uint32_t slot = 0; slot < loop->slots.fresh; slot++) {
        struct myi_io *io = myi_slot_at(&loop->slots, slot);

        if (io->kind == MYI_IO_CONN)
            myi_conn_end(myi_conn_of(io), MYRA_CLOSE_LOOP, 0);
        else if (io->kind == MYI_IO_LISTENER)
            myi_listener_end_now((struct myra_listener *)io);
        else if (io->kind == MYI_IO_WATCH)
            myra_watch_close((struct myra_watch *)io);
    }
}

void myra_loop_free(struct myra_loop *loop)
{
    if (loop == NULL || loop->in_turn)
        return;
    /* In the child of a fork the kernel's objects are the parent's. */
    if (loop->fork_generation != fork_generation)
        return;
    end_all(loop);
    while (loop->slots.used > 0) {
        if (myra_loop_step(loop, (int64_t)(100 * MYI_MS_NS)) < 0)
            break;
        end_all(loop);
    }
    loop->ops->close_loop(loop->be);
    myi_slots_fini(&loop->slots);
    myi_free(loop->alloc, loop->be, loop->ops->loop_size);
    free_loop_memory(loop);
}

/* ---- What it is --------------------------------------------------------- */

uint64_t myra_loop_now_ns(const struct myra_loop *loop)
{
    return loop->now_ns;
}

const char *myra_loop_backend_name(const struct myra_loop *loop)
{
    return loop->ops->name;
}

const char *myra_loop_backend_reason(const struct myra_loop *loop)
{
    return loop->reason;
}

const char *myra_loop_wait_name(const struct myra_loop *loop)
{
    return loop->is_spin ? "spin" : "park";
}

struct myra_pool *myra_loop_pool(struct myra_loop *loop)
{
    return loop->pool;
}

const struct myra_allocator *
myra_loop_allocator(const struct myra_loop *loop)
{
    return loop->alloc;
}

void myra_loop_read_stats(const struct myra_loop *loop,
                          struct myra_loop_stats *stats)
{
    *stats = loop->stats;
    stats->syscalls = loop->be->syscalls;
    stats->stale = loop->be->stale;
    stats->bufs_leased = loop->held_bufs;
    stats->block_bytes = loop->blocks.used;
}
