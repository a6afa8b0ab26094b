/* SPDX-License-Identifier: MIT */
/* A loop with a listener and raw peers, for the tests of lib/net. */
#ifndef NET_RIG_H
#define NET_RIG_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include <myra/loop.h>
#include <myra/pool.h>
#include <myra/tcp.h>

/* What the connections of a rig do and have seen. */
struct rig {
    struct myra_loop *loop;
    struct myra_listener *listener;
    char addr[160];
    struct myra_conn *conn; /* the last one opened */
    int is_echo;            /* send back what comes */
    size_t use;             /* bytes of one message; 0: all that comes */
    size_t got;             /* bytes taken */
    uint64_t sum;           /* of (byte * place) */
    int opened, eofs, closed, drained, deadlines;
    int highs, lows;
    size_t kept; /* on_eof's */
    enum myra_close_reason reason;
    int err;
    int64_t answer; /* on_data returns it when negative */
};

extern const struct myra_conn_events rig_events;

/* Options that differ from the defaults: buffers and their size (0: the
 * default). The listener is at addr_text ("127.0.0.1:0" when NULL). */
void rig_init(struct rig *rig, uint32_t buf_count, uint32_t buf_cap,
              const char *addr_text,
              const struct myra_listen_options *options);

/* Frees the loop; fails the test if a lease or a block is still out. */
void rig_fini(struct rig *rig);

/* Turns the loop until *counter >= target; fails the test after 10 s. */
void rig_until(struct rig *rig, const int *counter, int target);
void rig_until_size(struct rig *rig, const size_t *counter, size_t target);

/* A blocking socket connected to the rig's listener. */
int rig_dial(const struct rig *rig);

/* Turns the loop a few times without waiting. */
void rig_spin(struct rig *rig, int turns);

/* A peer in a thread of its own: writes send_len bytes of the pattern, and
 * reads until it has recv_len bytes or the end. */
struct rig_peer {
    int fd;
    size_t send_len, recv_len;
    int shut_after; /* shutdown(SHUT_WR) when all is sent */
    uint32_t recv_step; /* bytes of one read; 0: 64 KiB */
    size_t received; /* bytes that matched the pattern */
    int mismatch;
    int done; /* set last, atomically */
    pthread_t sender, receiver;
};

void rig_peer_start(struct rig_peer *peer);
void rig_peer_join(struct rig *rig, struct rig_peer *peer);

/* Byte number place of the pattern. */
static inline uint8_t rig_byte(size_t place)
{
    return (uint8_t)(place * 131 + (place >> 8) * 7 + (place >> 16));
}

/* Descriptors open in this process. */
int rig_fd_count(void);

#endif
