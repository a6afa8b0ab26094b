/* SPDX-License-Identifier: MIT */
/*
 * What the files of the proxy share.
 *
 * A worker is one thread with one loop; it owns its listeners, sessions,
 * upstream connections and origins, and shares none of them. A session is one
 * client connection, an upstream one connection to an origin. An exchange
 * pairs the two from a request's head to its response's end, and exists only
 * that long: an idle connection holds no memory but its own few words.
 */
#ifndef PROXY_H
#define PROXY_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include <myra/myra.h>

#include "access_log.h"
#include "names.h"
#include "options.h"
#include "slab.h"
#include "stats.h"

/* Why reading from a connection is paused: it goes on when no bit is left. */
enum {
    PAUSE_PRESSURE = 1, /* the other side's queue is high */
    PAUSE_NEXT = 2,     /* a pipelined request waits for its turn */
    PAUSE_CONNECT = 4,  /* the upstream is not there yet */
    PAUSE_BACKLOG = 8,  /* this client's own queue is high */
    PAUSE_LIMIT = 16    /* too many connections: its turn comes later */
};

enum session_state {
    SESSION_IDLE,  /* waits for the first byte of a request */
    SESSION_HEAD,  /* has part of a head */
    SESSION_BUSY,  /* has an exchange */
    SESSION_CLOSING
};

struct session {
    struct myra_conn *conn;
    struct worker *worker;
    const struct site *site;
    struct exchange *exchange;
    struct session *next, *prev; /* of the worker */
    struct myra_http_scan scan;
    uint32_t sent_mark; /* bytes sent, at the last idle deadline */
    uint8_t state;      /* enum session_state */
    uint8_t pauses;
    uint8_t is_high;  /* the send queue is above its high mark */
    uint8_t is_used;  /* a request came */
    uint8_t has_ended; /* the client sends no more */
    char peer[];      /* PEER_CAP bytes, with an access log only */
};

#define PEER_CAP 64

enum upstream_state {
    UPSTREAM_CONNECTING,
    UPSTREAM_BUSY,
    UPSTREAM_IDLE,
    UPSTREAM_CLOSING
};

struct upstream {
    struct myra_conn *conn;
    struct origin *origin;
    struct exchange *exchange;
    struct upstream *next, *prev; /* among the idle ones of the origin */
    uint8_t state;                /* enum upstream_state */
    uint8_t pauses;
    uint8_t is_high;
    uint8_t is_reused;
    uint8_t has_ended; /* tunnel: this direction is over */
};

/* One place that requests go to. */
struct origin {
    struct worker *worker;
    struct upstream *idle; /* the one used last first */
    struct upstream *idle_last;
    const char *authority;
    uint32_t idle_count;
    uint32_t conn_count; /* all of its connections */
    uint32_t fail_count; /* in a row */
    uint32_t addr_count;
    uint32_t addr_next; /* the one that worked last */
    uint64_t down_until_ns;
    struct sockaddr_storage addrs[TARGET_ADDRS_MAX];
    socklen_t addr_lens[TARGET_ADDRS_MAX];

    /* Forward mode alone. */
    struct origin *hash_next;
    struct exchange *waiting; /* for the name, in order */
    struct name_query *query; /* under way */
    uint64_t name_until_ns;   /* the answer is good so long */
    uint64_t used_ns;
    uint16_t port;
    char *name; /* the host; NULL for a target of the command line */
};

/* Queued bytes from which on the sender is paused. on_pressure tells it too,
 * but only when a whole batch of receives has been handed out. */
#define QUEUE_HIGH (256 * 1024)

/* One direction of an exchange's body. */
struct relay {
    struct myra_http_body body;
    uint8_t as;      /* enum myra_http_framing towards the receiver */
    uint8_t is_done; /* all of it was read and queued */
    uint8_t has_last; /* the last chunk's line was sent */
    uint8_t has_data; /* a chunk came before: its end is still to be sent */
    uint64_t sent_bytes;
};

enum {
    EXCHANGE_HELD = 1,         /* all that was sent upstream is held */
    EXCHANGE_IDEMPOTENT = 2,
    EXCHANGE_KEEP = 4,         /* the client's connection may go on */
    EXCHANGE_HEAD_SENT = 8,    /* the final response's head was queued */
    EXCHANGE_EXPECT = 16,      /* the client waits for a 100 */
    EXCHANGE_CONTINUED = 32,   /* a 100 went to the client */
    EXCHANGE_WEBSOCKET = 64,   /* the request asks for it */
    EXCHANGE_TUNNEL = 128,     /* after a 101 */
    EXCHANGE_RETRIED = 256,    /* the one retry is used up */
    EXCHANGE_KEEP_ASKED = 512, /* a 1.0 client said keep-alive */
    EXCHANGE_FORWARD = 1024,   /* to the authority of its target */
    EXCHANGE_WAITING = 2048,   /* for a name */
    EXCHANGE_REUSED = 4096,    /* on a connection that served before */
    EXCHANGE_UPSTREAM_KEEP = 8192 /* the upstream connection may go on */
};

struct exchange {
    struct session *session;
    struct upstream *upstream; /* NULL: none yet */
    struct origin *origin;
    struct exchange *next; /* among those that wait for a name */
    uint64_t tried;        /* targets of the site, a bit each */
    uint64_t start_ns;
    uint64_t sent_before; /* the upstream's counters at the start */
    uint64_t recv_before;
    struct relay request;
    struct relay response;
    struct myra_http_scan scan; /* of the response's head */
    uint8_t *hold;              /* rewritten head, and body behind it */
    uint32_t hold_len;
    uint32_t hold_cap;
    uint32_t line_len; /* of the request line in hold, without its end */
    uint32_t flags;
    uint16_t status; /* 0: no final response yet */
    uint16_t last_status; /* of the last target that was tried */
    uint8_t method;
    uint8_t version_minor; /* of the client */
    uint8_t interim_count;
    uint8_t addr_tries;
    uint8_t retry_count;
    uint8_t line[]; /* the rest of the block: where hold begins */
};

/* A block of the exchange slab: heads below 1.5 KiB need no other memory. */
#define EXCHANGE_BLOCK 2032
#define EXCHANGE_CHUNK (256 * 1024)

/* "1.1 " and the name of --via. */
#define VIA_CAP 80

struct worker {
    struct myra_loop *loop;
    const struct proxy_options *options;
    struct access_log_queue *log;
    struct names *names;
    struct session *sessions;
    struct slab session_slab;
    struct slab upstream_slab;
    struct slab exchange_slab;
    struct origin **targets; /* of each site, one array behind another */
    uint32_t *target_next;   /* round robin, a site each */
    uint32_t *target_first;  /* index of a site's first target */
    struct origin *forward[256]; /* a hash table */
    uint32_t forward_count;
    uint64_t random;

    struct myra_listener **listeners;
    struct front *fronts; /* what each listener was made with */
    uint32_t listener_count;
    uint32_t session_count;
    uint32_t session_max;
    uint32_t upstream_count; /* all connections to origins */
    uint8_t is_paused; /* the listeners are */
    uint8_t is_draining;
    uint8_t is_stopping;
    uint8_t is_ticking;

    struct myra_timer tick;
    struct myra_timer drain_timer;
    uint64_t drain_until_ns;
    struct myra_task drain_task;
    struct myra_task stop_task;

    struct myra_http_limits request_limits;
    struct myra_http_limits response_limits;
    struct myra_http_field *fields;
    struct myra_conn_options conn_options; /* of upstream connections */
    char via[2][VIA_CAP]; /* Via of a 1.0 and of a 1.1 message */
    size_t via_len;
    char date[30];
    uint64_t date_until_ns;
    struct myra_counting_allocator counting;
    struct stats stats;

    /* What the report tells of the loop, which is gone then. */
    struct myra_loop_stats loop_stats;
    char backend[32];
    char backend_reason[256];
    char wait[32];

    pthread_t thread;
    pthread_mutex_t lock; /* of has_ended: posts stop before the loop goes */
    int has_ended;
    int err; /* what the loop ended with */
};

/* A listener's user pointer. */
struct front {
    struct worker *worker;
    const struct site *site;
};

/* ---- worker.c ----------------------------------------------------------- */

/* Makes the loop and listens; worker_index > 0 joins the listeners of the
 * first worker. 0, or the negative of an exit status after a line. What was
 * made is undone by worker_fini in any case. */
int worker_init(struct worker *worker, const struct proxy_options *options,
                uint32_t worker_index, const struct worker *first);

/* Runs the loop until it ends; then frees it. The first worker has the main
 * thread, the others run both in a thread of their own and signal the process
 * (SIGUSR2) that they have ended. */
void worker_loop(struct worker *worker);
void worker_end(struct worker *worker);
void *worker_run(void *worker);

/* Frees the loop, if it is still there, and all else. */
void worker_fini(struct worker *worker);

/* Any thread: finish and end; end at once. */
void worker_post_drain(struct worker *worker);
void worker_post_stop(struct worker *worker);

/* The list of sessions, their limit, and the end of a drain. */
void worker_add_session(struct worker *worker, struct session *session);
void worker_remove_session(struct worker *worker, struct session *session);

/* The Date text of now, made once a second. */
const char *worker_date(struct worker *worker);

/* Starts the tick that flushes the log, trims slabs and forgets origins. */
void worker_tick(struct worker *worker);

/* ---- session.c ---------------------------------------------------------- */

extern const struct myra_conn_events session_events;

void session_pause(struct session *session, unsigned why);
void session_resume(struct session *session, unsigned why);

/* Its send queue has become too long, or short again: the upstream waits. */
void session_set_high(struct session *session, int is_high);

/* The exchange is over. is_kept: waits for the next request; else closes when
 * all was sent. */
void session_end_exchange(struct session *session, int is_kept);

/* Resets the connection: the client must see that its message is cut. */
void session_cut(struct session *session);
void session_close(struct session *session);

/* ---- exchange.c --------------------------------------------------------- */

/* A request head was read, at data. Starts its exchange, or answers. */
void exchange_start(struct session *session, const uint8_t *data,
                    const struct myra_http_head *head);

/* More of the request: slice[offset ..). Returns how much was used. */
size_t exchange_request_data(struct exchange *exchange,
                             const struct myra_slice *slice, size_t offset);

/* Writes a line to the access log, which is there. */
void exchange_log(struct worker *worker,
                  const struct access_log_entry *entry);

/* Finds an upstream and sends what is held. */
void exchange_send(struct exchange *exchange);

/* The origin's name has its answer. */
void exchange_name_done(struct exchange *exchange);

/* Answers (status) where no response began, else cuts the client off; the
 * upstream connection is given up. The exchange is gone afterwards. */
void exchange_fail(struct exchange *exchange, int status,
                   enum stats_error why);

/* The response is complete. is_reusable: the upstream connection stands
 * behind its last byte. The exchange is gone afterwards. */
void exchange_finish(struct exchange *exchange, int is_reusable);

/* The client is gone. The exchange too, afterwards. */
void exchange_abandon(struct exchange *exchange);

/* The upstream connection is open; can be used no more. */
void exchange_upstream_open(struct exchange *exchange);
void exchange_upstream_gone(struct exchange *exchange,
                            enum myra_close_reason reason, int err);

/* The client's deadline: the wait for a 100 is over, or the body stopped. */
void exchange_client_deadline(struct exchange *exchange);

/* Tells the client to send its body. */
void exchange_continue(struct exchange *exchange);

/* ---- response.c --------------------------------------------------------- */

/* Bytes of the upstream. Returns how many were used. The exchange may be gone
 * afterwards. */
size_t response_data(struct exchange *exchange,
                     const struct myra_slice *slice);

/* The upstream ended in order. */
void response_eof(struct exchange *exchange, size_t kept_len);

/* ---- rewrite.c ---------------------------------------------------------- */

/* Writes the head that goes upstream to exchange->hold. 0, or an error. */
int rewrite_request(struct exchange *exchange, const uint8_t *data,
                    const struct myra_http_head *head);

/* Queues the head that goes to the client. 0, or an error. */
int rewrite_response(struct exchange *exchange, const uint8_t *data,
                     const struct myra_http_head *head, int is_kept);

/* Adds bytes that were sent to the held copy, or gives it up. */
void hold_append(struct exchange *exchange, const void *data, size_t len);
void hold_release(struct exchange *exchange);

/* ---- relay.c ------------------------------------------------------------ */

/* Relays body bytes slice[offset .. offset + len) to conn. hold: the exchange
 * whose held copy grows by what was sent, or NULL. Returns the bytes used, or
 * an error of the parser or of the queue. */
int64_t relay_data(struct relay *relay, struct myra_conn *conn,
                   const struct myra_slice *slice, size_t offset, size_t len,
                   struct exchange *hold);

/* The sender ended a body that its end delimits: sends what ends it towards
 * the receiver. */
int relay_end(struct relay *relay, struct myra_conn *conn);

/* ---- tunnel.c ----------------------------------------------------------- */

void tunnel_start(struct exchange *exchange);
void tunnel_end(struct exchange *exchange);
size_t tunnel_client_data(struct exchange *exchange,
                          const struct myra_slice *slice, size_t offset);
size_t tunnel_upstream_data(struct exchange *exchange,
                            const struct myra_slice *slice, size_t offset);
void tunnel_client_eof(struct exchange *exchange);
void tunnel_upstream_eof(struct exchange *exchange);

/* ---- answer.c ----------------------------------------------------------- */

/* Queues a whole answer of the proxy's own: a fixed text. Returns the bytes
 * of its body, or an error. */
int answer_send(struct session *session, int status, int is_kept,
                int is_head, int version_minor);

/* ---- upstream.c --------------------------------------------------------- */

/* An idle connection of the origin, or a new one (always, with is_fresh). 0 or
 * an error. */
int upstream_take(struct origin *origin, int is_fresh,
                  struct upstream **upstream_out);

/* Puts it among the idle ones; closes it in order; ends it at once. */
void upstream_keep(struct upstream *upstream);
void upstream_close(struct upstream *upstream);
void upstream_drop(struct upstream *upstream);
void upstream_pause(struct upstream *upstream, unsigned why);
void upstream_resume(struct upstream *upstream, unsigned why);

/* As session_set_high, with the client waiting. */
void upstream_set_high(struct upstream *upstream, int is_high);

/* Closes the idle connection used longest ago. 1 when there was one. */
int upstream_drop_oldest(struct worker *worker);
void upstream_drop_idle(struct worker *worker);

/* ---- origin.c ----------------------------------------------------------- */

int origin_open_targets(struct worker *worker);
void origin_close_all(struct worker *worker);

/* The next target of the site that is not in *tried; NULL: all were. */
struct origin *origin_choose(struct worker *worker, const struct site *site,
                             uint64_t *tried);

/* The origin of a host and port, made where there was none. NULL: no room. */
struct origin *origin_find(struct worker *worker, const uint8_t *host,
                           size_t host_len, uint16_t port, int is_ipv6);

/* 1: has addresses. 0: was asked, and the exchange waits. -1: cannot. */
int origin_want_name(struct origin *origin, struct exchange *exchange);
void origin_stop_waiting(struct origin *origin, struct exchange *exchange);

void origin_succeeded(struct origin *origin);
void origin_failed(struct origin *origin);

/* Forgets forward origins that nobody uses. */
void origin_sweep(struct worker *worker);

#endif
