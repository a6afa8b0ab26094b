/* SPDX-License-Identifier: MIT */
/*
 * Stream connections: listeners, accepted and dialled connections, over IPv4,
 * IPv6 and UNIX sockets.
 *
 *     static int64_t on_data(struct myra_conn *conn,
 *                            const struct myra_slice *data, void *user)
 *     {
 *         myra_conn_send_slice(conn, data, 0, data->len);
 *         return (int64_t)data->len;
 *     }
 *
 *     static const struct myra_conn_events events = { .on_data = on_data };
 *
 *     MYRA_TRY(myra_listen(loop, "127.0.0.1:7000", NULL, &events, NULL,
 *                          &listener));
 *
 * The order of callbacks on one connection is on_open, on_data any number of
 * times, on_eof at most once, on_closed exactly once; none comes after
 * on_closed and none interrupts another. A connection's pointer is valid
 * until on_closed returns. Every call below may be made from inside any
 * callback of the same loop.
 *
 * What on_data leaves unconsumed is kept by the connection and comes again,
 * joined with what arrives behind it, as one contiguous view. So a message
 * that is not complete yet costs one copy, and a complete one none.
 *
 * Threads: all calls on the loop's thread.
 */
#ifndef MYRA_TCP_H
#define MYRA_TCP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <myra/err.h>
#include <myra/export.h>
#include <myra/loop.h>

MYRA_BEGIN_DECLS

struct myra_conn;
struct myra_listener;

/*
 * A view of received bytes, valid during the callback. readable >= len bytes
 * may be read from data (the rest is not defined; it lets vector code load
 * whole registers).
 */
struct myra_slice {
    const uint8_t *data;
    size_t len;
    size_t readable;
    void *lease; /* the library's own */
};

/* Why a connection ended. */
enum myra_close_reason {
    MYRA_CLOSE_LOCAL = 0,   /* myra_conn_close, after the queue was sent */
    MYRA_CLOSE_EOF = 1,     /* both directions ended in order */
    MYRA_CLOSE_RESET = 2,   /* the peer reset, or is gone */
    MYRA_CLOSE_TIMEOUT = 3, /* the linger or connect deadline passed */
    MYRA_CLOSE_ABORT = 4,   /* myra_conn_abort */
    MYRA_CLOSE_CONNECT = 5, /* could not be opened: err says why */
    MYRA_CLOSE_ERROR = 6,   /* any other error of the system: err */
    MYRA_CLOSE_LOOP = 7,    /* the loop was freed */
    MYRA_CLOSE_LIMIT = 8    /* hold_max was exceeded */
};

/* Each may be NULL except on_data. user is what the connection was made
 * with, or the last myra_conn_set_user. */
struct myra_conn_events {
    /* The connection is open: accepted, or connected. */
    void (*on_open)(struct myra_conn *conn, void *user);

    /*
     * Bytes came. Returns how many were used (0 .. data->len). A rest is
     * offered again at once; after a 0, when more bytes have come behind it;
     * if reading was paused meanwhile, after myra_conn_resume. A negative
     * return closes the connection at once with MYRA_CLOSE_ERROR and that
     * code.
     */
    int64_t (*on_data)(struct myra_conn *conn, const struct myra_slice *data,
                       void *user);

    /* The peer sends no more (FIN). kept_len bytes are still unconsumed and
     * will not come again (0 when all was used). Sending still works. Without
     * this callback the connection is closed in order. */
    void (*on_eof)(struct myra_conn *conn, size_t kept_len, void *user);

    /* is_high = 1: the send queue rose above the high mark, stop producing;
     * 0: it fell below the low mark. */
    void (*on_pressure)(struct myra_conn *conn, int is_high, void *user);

    /* The send queue has become empty: everything went to the system. */
    void (*on_drained)(struct myra_conn *conn, void *user);

    /* The deadline of myra_conn_set_deadline passed. The connection stays
     * open; without this callback it is aborted with MYRA_CLOSE_TIMEOUT. */
    void (*on_deadline)(struct myra_conn *conn, void *user);

    /* The end. err is 0 or the negative code behind reason. */
    void (*on_closed)(struct myra_conn *conn, enum myra_close_reason reason,
                      int err, void *user);
};

/* Options of a connection; a listener's are those of what it accepts. */
struct myra_conn_options {
    size_t struct_size;    /* set by init */
    uint32_t high_mark;    /* bytes queued; default 256 KiB */
    uint32_t low_mark;     /* default 64 KiB, <= high_mark */
    uint32_t hard_mark;    /* send refuses above it; default 8 MiB */
    uint32_t hold_max;     /* unconsumed bytes kept; default 96 KiB */
    uint64_t linger_ns;    /* close waits so long for the queue and the
                              peer's FIN; default 5 s */
    uint64_t connect_timeout_ns; /* dialled only; default 10 s, 0: none */
    int no_delay;          /* TCP_NODELAY; default 1 */
    int keep_alive;        /* SO_KEEPALIVE; default 0 */
    int send_buf;          /* SO_SNDBUF bytes; 0: the system's */
    int recv_buf;          /* SO_RCVBUF bytes; 0: the system's */
};

struct myra_listen_options {
    size_t struct_size; /* set by init */
    int backlog;        /* default 4096 (the system may lower it) */
    int reuse_port;     /* SO_REUSEPORT; default 0 */
    int v6_only;        /* default 0 */
    int unix_mode;      /* mode of a UNIX socket's file; default 0600 */
    struct myra_conn_options conn;
};

MYRA_API void myra_conn_options_init(struct myra_conn_options *options);
MYRA_API void myra_listen_options_init(struct myra_listen_options *options);

/* ---- Addresses ---------------------------------------------------------- */

/*
 * Reads "127.0.0.1:80", "[::1]:80", "unix:/path", "unix:@name" (abstract), or
 * a port alone ("8080": the loopback address; "*:8080": every address, IPv6
 * where there is one). No name look-up. MYRA_EADDRESS, with *addr untouched.
 */
MYRA_API MYRA_MUST_CHECK int myra_addr_parse(const char *text,
                                             struct sockaddr_storage *addr,
                                             socklen_t *addr_len);

/* The same form back; always terminated. Returns the length that the whole
 * text has. */
MYRA_API int myra_addr_print(const struct sockaddr *addr, socklen_t addr_len,
                             char *text, size_t text_cap);

/* ---- Listening ---------------------------------------------------------- */

/* Listens on addr_text (see myra_addr_parse; port 0: the system's choice,
 * told by myra_listener_addr). The events struct must outlive the listener
 * and its connections. on_data is required. */
MYRA_API MYRA_MUST_CHECK int
myra_listen(struct myra_loop *loop, const char *addr_text,
            const struct myra_listen_options *options,
            const struct myra_conn_events *events, void *user,
            struct myra_listener **listener_out);

/* Listens on a descriptor that is bound and listening already; the listener
 * owns it after success. */
MYRA_API MYRA_MUST_CHECK int
myra_listen_fd(struct myra_loop *loop, int fd,
               const struct myra_listen_options *options,
               const struct myra_conn_events *events, void *user,
               struct myra_listener **listener_out);

MYRA_API int myra_listener_addr(const struct myra_listener *listener,
                                char *text, size_t text_cap);

/* The descriptor, which stays the listener's. */
MYRA_API int myra_listener_fd(const struct myra_listener *listener);

/* Stops accepting; the queue of the system fills. */
MYRA_API void myra_listener_pause(struct myra_listener *listener);
MYRA_API void myra_listener_resume(struct myra_listener *listener);

/* Accepts what the system has queued already, then closes the listener;
 * connections stay. NULL is allowed. */
MYRA_API void myra_listener_close(struct myra_listener *listener);

/* ---- Connections -------------------------------------------------------- */

/*
 * Dials. The result comes by callback: on_open, or on_closed with
 * MYRA_CLOSE_CONNECT (never before this call has returned). Errors of this
 * call (-EMFILE, MYRA_ENOMEM, MYRA_ELIMIT, MYRA_EINVAL) make no connection.
 * Data sent before on_open is queued.
 */
MYRA_API MYRA_MUST_CHECK int
myra_connect(struct myra_loop *loop, const struct sockaddr *addr,
             socklen_t addr_len, const struct myra_conn_options *options,
             const struct myra_conn_events *events, void *user,
             struct myra_conn **conn_out);

/*
 * Queues a copy of len bytes. 0: queued. MYRA_ELIMIT: the queue would pass
 * the hard mark; MYRA_ECLOSED: closing, or half-closed by us; MYRA_ENOMEM.
 * On failure nothing was queued.
 */
MYRA_API int myra_conn_send(struct myra_conn *conn, const void *data,
                            size_t len);

/*
 * Queues slice->data[offset .. offset + len) of the slice that a callback
 * handed in, by reference where the lease budget allows it and else by copy.
 * Errors as myra_conn_send. conn may be another connection of the loop.
 */
MYRA_API int myra_conn_send_slice(struct myra_conn *conn,
                                  const struct myra_slice *slice,
                                  size_t offset, size_t len);

/*
 * Room for len bytes (1 .. 64 KiB) at the end of the send queue, to write
 * into directly; NULL where send would fail. The room is gone at the next
 * call on conn other than commit. commit queues the first used_len bytes.
 */
MYRA_API uint8_t *myra_conn_reserve(struct myra_conn *conn, size_t len);
MYRA_API void myra_conn_commit(struct myra_conn *conn, size_t used_len);

/* Bytes queued and not yet taken by the system. */
MYRA_API size_t myra_conn_queued(const struct myra_conn *conn);

/* No on_data until resume; what has come already is kept. Both idempotent.
 * resume never calls on_data before it returns. */
MYRA_API void myra_conn_pause(struct myra_conn *conn);
MYRA_API void myra_conn_resume(struct myra_conn *conn);
MYRA_API int myra_conn_is_paused(const struct myra_conn *conn);

/* Sends the queue, then a FIN; receiving goes on. Idempotent. */
MYRA_API void myra_conn_shutdown(struct myra_conn *conn);

/* Sends the queue, then a FIN, drops what the peer still sends, and closes
 * when it has ended too or the linger time is over. No on_data or on_eof
 * afterwards. Idempotent. */
MYRA_API void myra_conn_close(struct myra_conn *conn);

/* Ends at once with a reset; the queue is dropped. Idempotent. */
MYRA_API void myra_conn_abort(struct myra_conn *conn);

/* One deadline a connection: on_deadline after after_ns from the turn's
 * time, 0 takes it back. Costs a store; 1 ms resolution. */
MYRA_API void myra_conn_set_deadline(struct myra_conn *conn,
                                     uint64_t after_ns);

MYRA_API void myra_conn_set_user(struct myra_conn *conn, void *user);
MYRA_API void *myra_conn_user(const struct myra_conn *conn);

/* Changes who is told; the struct must outlive the connection. */
MYRA_API void myra_conn_set_events(struct myra_conn *conn,
                                   const struct myra_conn_events *events);

MYRA_API struct myra_loop *myra_conn_loop(const struct myra_conn *conn);

/* The addresses as text ("127.0.0.1:4711"); asks the system. Returns the
 * text's length or an error. */
MYRA_API int myra_conn_peer(const struct myra_conn *conn, char *text,
                            size_t text_cap);
MYRA_API int myra_conn_local(const struct myra_conn *conn, char *text,
                             size_t text_cap);

/* The listener that accepted it; NULL for a dialled connection, or once that
 * listener has closed. */
MYRA_API struct myra_listener *myra_conn_listener(const struct myra_conn *c);

MYRA_API uint64_t myra_conn_recv_bytes(const struct myra_conn *conn);
MYRA_API uint64_t myra_conn_sent_bytes(const struct myra_conn *conn);

MYRA_END_DECLS

#endif
