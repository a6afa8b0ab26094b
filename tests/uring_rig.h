/* SPDX-License-Identifier: MIT */
/*
 * A small owner for a backend's loop: a slot table, a sink that counts, and
 * an echo. It checks on the way what the contract promises: on_awake once and
 * first, no report of a closing descriptor, one on_closed, no operation left
 * behind it.
 */
#ifndef URING_RIG_H
#define URING_RIG_H

#include <stdint.h>
#include <sys/uio.h>

#include <myra/pool.h>

#include "backends/backend.h"
#include "backends/uring/uring_priv.h"
#include "tests/uring_faults.h"

#define RIG_CHUNKS 4
#define RIG_SEATS (RIG_CHUNKS * MYI_SLOT_CHUNK)
#define RIG_QUEUE 256

struct rig_piece {
    struct myra_buf *buf;
    uint32_t len;
    uint32_t done;
};

/* One descriptor of the rig. */
struct rig_seat {
    struct myi_io io;
    _Alignas(16) uint8_t priv[64];
    struct rig_piece queue[RIG_QUEUE]; /* to be echoed */
    unsigned head;
    unsigned count;
    int is_sending;
    int is_stopped; /* recv_stop was called: data may still come */
    int has_fin;
    int recv_err;
    int send_res; /* of the last on_send */
    int sends;    /* on_send calls */
    int connects;
    int connect_res;
    int polls;
    int revents;
    int accept_err;
    int closed;
    uint64_t received;
};

enum rig_mode {
    RIG_ECHO = 0,
    RIG_HOLD, /* keeps every lease on rig->held */
    RIG_DROP  /* gives every lease back at once */
};

struct rig {
    struct myi_be *be;
    const struct myi_backend_ops *ops;
    struct myra_pool *pool;
    struct uring_faults faults;
    uint8_t *chunks[RIG_CHUNKS];
    struct rig_seat *seats; /* RIG_SEATS, in one block */
    uint32_t used;          /* seats ever taken */
    enum rig_mode mode;
    struct myra_buf *held[RIG_QUEUE];
    unsigned held_count;
    struct rig_seat *listener;
    int closes_at_fin; /* an accepted seat is closed at its FIN */
    int accepted;
    int accept_starts_recv; /* 1 unless changed */
    int starved;
    int wakes;
    int closed;
    int awakes; /* in this wait */
    uint16_t port;
    struct rig_seat *last_accepted;
};

/* An empty rig without faults; skips the test where the system refuses rings,
 * and fails it where the backend's own self-test is what fails. */
void rig_init(struct rig *rig);

/* Opens a loop with a pool of buf_count buffers of buf_cap bytes on the seam
 * rig->faults. */
void rig_open(struct rig *rig, uint32_t buf_count, uint32_t buf_cap,
              uint32_t off_features, int is_spin);

/* Closes what is open, ends the loop, and checks that every buffer is home,
 * no report was stale, and every seat was closed once. */
void rig_close(struct rig *rig);

/* One wait; returns its result. */
int rig_turn(struct rig *rig, int64_t timeout_ns);

/* Turns that do not block. */
void rig_turns(struct rig *rig, int count);

/* Turns until text, and nothing before it, has come to the client fd. */
void rig_expect(struct rig *rig, int fd, const char *text);

/* Sends text on the client fd and expects it back. */
void rig_echo_once(struct rig *rig, int fd, const char *text);

/* Turns until *what is at least enough; fails the test after five
 * seconds. */
void rig_until(struct rig *rig, const int *what, int enough);

/* A free seat for fd. */
struct rig_seat *rig_take(struct rig *rig, enum myi_io_kind kind, int fd);

/* A TCP listener on the loopback, accepting. */
void rig_listen(struct rig *rig);

/* A plain, blocking client, connected to the listener but not accepted yet. */
int rig_dial(const struct rig *rig);

/* A client and the seat of its other end, receiving. */
int rig_pair(struct rig *rig, struct rig_seat **seat_out);

void rig_close_seat(struct rig *rig, struct rig_seat *seat);

/* Gives all held leases back. */
void rig_release_held(struct rig *rig);

/* Sends what the seat has queued, unless a send is under way. */
void rig_send_queue(struct rig *rig, struct rig_seat *seat);

/* Monotonic seconds. */
double rig_seconds(void);

#endif
