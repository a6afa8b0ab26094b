/* SPDX-License-Identifier: MIT */
/*
 * The structs of lib/net and the calls between its files.
 *
 * A connection's life: CONNECTING -> OPEN -> CLOSING (queue, FIN, linger) ->
 * DYING (the backend ends its operations) -> given back. Nothing of a
 * connection is freed before the end of the turn in which on_closed ran.
 */
#ifndef MYI_NET_PRIV_H
#define MYI_NET_PRIV_H

#include <pthread.h>
#include <stdint.h>

#include <myra/loop.h>
#include <myra/pool.h>
#include <myra/tcp.h>

#include "backends/backend.h"
#include "lib/net/block.h"
#include "lib/net/slab.h"
#include "lib/net/slots.h"
#include "lib/net/wheel.h"

#define MYI_MS_NS UINT64_C(1000000)

/* A run of bytes in a queue: part of a receive buffer (a lease) or of an
 * overflow block (a reference). */
struct myi_piece {
    struct myi_piece *next;
    uint8_t *data;
    uint32_t len;
    uint32_t is_block;
    union {
        struct myra_buf *buf;
        struct myi_block *block;
    } home;
};

struct myi_queue {
    struct myi_piece *head;
    struct myi_piece *tail;
};

/* Options that connections share: interned, never freed before the loop. */
struct myi_conf {
    struct myi_conf *next;
    struct myra_conn_options options;
};

enum myi_conn_state {
    MYI_CONNECTING = 0,
    MYI_OPEN,
    MYI_CLOSING,
    MYI_DYING
};

enum {
    MYI_F_PAUSED = 1 << 0,     /* the user wants no data */
    MYI_F_RECV_ON = 1 << 1,    /* the backend is receiving */
    MYI_F_RECV_ENDED = 1 << 2, /* FIN or error came: rx_err */
    MYI_F_EOF_TOLD = 1 << 3,
    MYI_F_NEED_MORE = 1 << 4,  /* the rx head was offered, and left */
    MYI_F_SENDING = 1 << 5,    /* a send is in flight */
    MYI_F_SHUT_WANTED = 1 << 6,
    MYI_F_SHUT_DONE = 1 << 7,
    MYI_F_SEND_BROKEN = 1 << 8,
    MYI_F_HIGH = 1 << 9,       /* on_pressure(1) was told */
    MYI_F_DIRTY = 1 << 10,     /* on loop->dirty */
    MYI_F_READY = 1 << 11,     /* on loop->ready */
    MYI_F_STALLED = 1 << 12,   /* no block for its bytes: not receiving */
    MYI_F_DRAIN_DUE = 1 << 13  /* on_drained is owed */
};

struct myra_conn {
    struct myi_io io;
    struct myra_loop *loop;
    const struct myra_conn_events *events;
    void *user;
    const struct myi_conf *conf;
    struct myra_listener *listener;
    struct myi_queue tx;
    struct myi_queue rx;
    uint32_t tx_bytes;
    uint32_t rx_bytes;
    uint16_t flags;
    uint16_t leases; /* receive buffers in tx and rx */
    uint8_t state;   /* enum myi_conn_state */
    uint8_t reason;  /* enum myra_close_reason */
    int32_t err;
    int32_t rx_err; /* why receiving ended; 0: FIN */
    struct myra_conn *dirty_next;
    struct myra_conn *ready_next;
    uint64_t deadline_ms; /* 0: none */
    struct myra_timer timer;
    uint64_t recv_bytes;
    uint64_t sent_bytes;
};

struct myra_listener {
    struct myi_io io;
    struct myra_loop *loop;
    const struct myra_conn_events *events;
    void *user;
    const struct myi_conf *conf;
    struct myra_timer retry; /* after EMFILE and its like */
    uint64_t warn_ms; /* no line about a pause before */
    uint32_t backoff_ms;
    uint8_t is_paused;
    uint8_t is_closing;
    uint8_t is_accepting;
    uint8_t is_unix;
    uint8_t is_ended; /* ops->close was called */
    uint8_t unlink_path; /* the file in the address is ours */
    struct myra_listener *next; /* of the loop's listeners */
    uint32_t conn_count;
};

struct myra_watch {
    struct myi_io io;
    struct myra_loop *loop;
    myra_watch_fn fn;
    void *user;
};

struct myra_loop {
    struct myi_be *be;
    const struct myi_backend_ops *ops;
    const struct myra_allocator *alloc;
    struct myra_pool *pool;
    struct myi_slots slots;
    struct myi_blocks blocks;
    struct myi_wheel wheel;
    uint64_t now_ns;
    uint32_t pool_count;
    uint32_t held_bufs;    /* pieces that hold a lease */
    uint32_t lease_budget; /* of one connection */
    struct myi_slab pieces;
    struct myra_timer trim; /* runs while a slab holds too much */
    struct myi_conf *confs;
    struct myra_listener *listeners;
    struct myra_conn *dirty;
    struct myra_conn **dirty_end;
    struct myra_conn *ready;
    struct myra_conn **ready_end;
    struct myi_io *dead; /* slots to give back, linked by slot + 1 in fd */
    uint32_t stalled_count;
    struct myra_task *posted; /* newest first; _Atomic by builtins */
    uint32_t wake_pending;
    uint32_t stop;
    uint32_t fork_generation;
    pthread_t owner;
    uint8_t is_owned; /* owner is the thread that runs it */
    uint8_t is_spin;
    uint8_t in_turn;
    struct myra_loop_stats stats;
    char reason[512];
};

static inline uint64_t myi_loop_now_ms(const struct myra_loop *loop)
{
    return loop->now_ns / MYI_MS_NS;
}

static inline struct myra_conn *myi_conn_of(struct myi_io *io)
{
    return (struct myra_conn *)io;
}

/* loop.c: 0, MYRA_ETHREAD or MYRA_EFORK. */
int myi_loop_check(const struct myra_loop *loop);

/* Between turns the loop's time stands still; whatever counts from it calls
 * this first. */
static inline void myi_loop_touch(struct myra_loop *loop)
{
    if (!loop->in_turn)
        loop->now_ns = myra_clock_ns();
}

/* Starts queued sends and delivers what became deliverable. */
void myi_loop_flush(struct myra_loop *loop);

/* A slot whose on_closed has run: given back at the end of the turn. */
void myi_loop_bury(struct myra_loop *loop, struct myi_io *io);

/* piece.c */
struct myi_piece *myi_piece_new(struct myra_loop *loop);
void myi_piece_free(struct myra_loop *loop, struct myi_piece *piece);
void myi_queue_push(struct myi_queue *queue, struct myi_piece *piece);

/* Drops the head, with its lease or reference. */
void myi_queue_pop(struct myra_conn *conn, struct myi_queue *queue);
void myi_queue_clear(struct myra_conn *conn, struct myi_queue *queue);

/* May conn hold one more receive buffer? */
int myi_lease_allowed(const struct myra_conn *conn);

/* conf.c: the shared copy of options (NULL: the defaults). MYRA_EINVAL. */
int myi_conf_intern(struct myra_loop *loop,
                    const struct myra_conn_options *options,
                    const struct myi_conf **conf_out);
void myi_confs_fini(struct myra_loop *loop);

/* sockopt.c: descriptors are non-blocking and CLOEXEC. */
int myi_socket_stream(int family);
int myi_socket_tune(int fd, int family,
                    const struct myra_conn_options *options);

/* conn.c */
int myi_conn_new(struct myra_loop *loop, const struct myi_conf *conf,
                 const struct myra_conn_events *events, void *user,
                 struct myra_conn **conn_out);

/* Ends conn in the backend; reason and err are kept if it has none yet. */
void myi_conn_end(struct myra_conn *conn, enum myra_close_reason reason,
                  int err);
void myi_conn_opened(struct myra_conn *conn);
void myi_conn_make_ready(struct myra_conn *conn);
void myi_conn_timer(struct myra_loop *loop, struct myra_timer *timer);
void myi_conn_arm(struct myra_conn *conn, uint64_t at_ms);
enum myra_close_reason myi_reason_of(int err);

/* Ends a CLOSING connection when nothing is left to do. */
void myi_conn_try_finish(struct myra_conn *conn);

/* recv.c */
void myi_recv_update(struct myra_conn *conn);
void myi_recv_deliver(struct myra_conn *conn);
void myi_recv_drop(struct myra_conn *conn);
void myi_recv_unstall(struct myra_loop *loop);

/* send.c */
void myi_send_mark(struct myra_conn *conn);
void myi_send_flush(struct myra_conn *conn);
void myi_send_report(struct myra_conn *conn);

/* What the backend reports to, one function a file of the kind. */
void myi_on_accept(struct myi_be *be, struct myi_io *io, int fd);
void myi_on_connect(struct myi_be *be, struct myi_io *io, int err);
void myi_on_recv(struct myi_be *be, struct myi_io *io, struct myra_buf *buf,
                 int res);
void myi_on_send(struct myi_be *be, struct myi_io *io, int res);
void myi_on_closed(struct myi_be *be, struct myi_io *io);

/* listen.c */
void myi_listener_after_turn(struct myra_listener *listener);
void myi_listener_fd_freed(struct myra_loop *loop);
void myi_listener_ended(struct myra_listener *listener);
void myi_listener_end_now(struct myra_listener *listener);

static inline struct myra_loop *myi_loop_of(const struct myi_be *be)
{
    return be->owner;
}

/* backend_list.c: opens the first backend of list that can serve; writes the
 * reason line. */
int myi_backend_open(const struct myra_loop_options *options,
                     struct myra_loop *loop, char *error, size_t error_cap);

#endif
