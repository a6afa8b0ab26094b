/* SPDX-License-Identifier: MIT */
/*
 * A request is a head up to its empty line; the path's second byte picks one
 * of two ready answers.
 */
#include "config.h"

#include "bench/origin.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SCRATCH_CAP 65536
#define HEAD_MAX 8192
#define BACKLOG 16384

struct answer {
    char *bytes;
    size_t len;
    size_t head_len;
};

struct origin_conn {
    struct evq_item item; /* first */
    struct origin *origin;
    struct origin_conn *next; /* on the list of all */
    int fd;
    int is_held;  /* its request waits */
    int is_due;   /* on the list of answers to send */
    struct origin_conn *next_due;
    int is_large;
    size_t out_at; /* of the answer under way */
    size_t head_len; /* of a partial request */
    char *head;
};

struct origin {
    struct evq_item item; /* first: the listener's */
    struct evq *evq;
    int fd;
    uint16_t port;
    struct answer answers[2]; /* small, large */
    struct origin_conn *all;
    struct origin_conn *due; /* to be answered at the end of the batch */
    uint32_t conn_count;
    uint32_t hold_count;
    uint32_t held;
    uint64_t bad_requests;
    char scratch[SCRATCH_CAP];
};

/* ---- Answers ------------------------------------------------------------- */

static int make_answer(struct answer *answer, size_t body_len)
{
    char head[160];
    const int head_len = snprintf(head, sizeof(head),
                                  "HTTP/1.1 200 OK\r\n"
                                  "Server: origin\r\n"
                                  "Content-Type: text/plain\r\n"
                                  "Content-Length: %zu\r\n\r\n",
                                  body_len);

    answer->head_len = (size_t)head_len;
    answer->len = answer->head_len + body_len;
    answer->bytes = malloc(answer->len);
    if (!answer->bytes)
        return -ENOMEM;
    memcpy(answer->bytes, head, answer->head_len);
    /* Two periods without a common factor: no shift leaves it as it is. */
    for (size_t i = 0; i < body_len; i++)
        answer->bytes[answer->head_len + i] =
            (char)('0' + (i % 61 + i / 61 % 7) % 67);
    return 0;
}

static void close_conn(struct origin_conn *conn)
{
    struct origin *const origin = conn->origin;

    evq_remove(origin->evq, conn->fd);
    close(conn->fd);
    conn->fd = -1;
    origin->held -= (uint32_t)conn->is_held;
    conn->is_held = 0;
    origin->conn_count--;
}

static void watch(struct origin_conn *conn, uint32_t events)
{
    evq_change(conn->origin->evq, conn->fd, events, &conn->item);
}

static void send_answer(struct origin_conn *conn)
{
    const struct answer *const answer =
        &conn->origin->answers[conn->is_large];

    while (conn->out_at < answer->len) {
        const ssize_t n = send(conn->fd, answer->bytes + conn->out_at,
                               answer->len - conn->out_at, MSG_NOSIGNAL);

        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            watch(conn, EPOLLOUT);
            return;
        }
        if (n < 0) {
            close_conn(conn);
            return;
        }
        conn->out_at += (size_t)n;
    }
}

static void release_held(struct origin *origin)
{
    for (struct origin_conn *conn = origin->all; conn; conn = conn->next) {
        if (conn->fd < 0 || !conn->is_held)
            continue;
        conn->is_held = 0;
        conn->out_at = 0;
        send_answer(conn);
    }
    origin->held = 0;
}

static void answer_request(struct origin_conn *conn, const char *head,
                           size_t len)
{
    struct origin *const origin = conn->origin;

    if (len < 16 || memcmp(head, "GET /", 5) != 0 ||
        (head[5] != 's' && head[5] != 'l'))
        origin->bad_requests++;
    conn->is_large = len > 5 && head[5] == 'l';
    if (origin->hold_count > 0) {
        conn->is_held = 1;
        if (++origin->held >= origin->hold_count)
            release_held(origin);
        return;
    }
    if (conn->is_due) {
        /* A second request before the first was answered. */
        origin->bad_requests++;
        return;
    }
    conn->is_due = 1;
    conn->next_due = origin->due;
    origin->due = conn;
}

static void send_due(void *ctx)
{
    struct origin *const origin = ctx;

    while (origin->due) {
        struct origin_conn *const conn = origin->due;

        origin->due = conn->next_due;
        conn->is_due = 0;
        conn->out_at = 0;
        if (conn->fd >= 0)
            send_answer(conn);
    }
}

/* ---- Requests ------------------------------------------------------------ */

/* Behind the empty line of a head, or NULL. */
static const char *find_head_end(const char *text, size_t len)
{
    const char *const end = text + len;
    const char *line = text;

    while ((line = memchr(line, '\n', (size_t)(end - line)))) {
        line++;
        if (end - line >= 2 && line[0] == '\r' && line[1] == '\n')
            return line + 2;
    }
    return NULL;
}

static void keep_part(struct origin_conn *conn, const char *data, size_t len)
{
    if (!conn->head)
        conn->head = malloc(HEAD_MAX);
    if (!conn->head || conn->head_len + len > HEAD_MAX) {
        conn->origin->bad_requests++;
        close_conn(conn);
        return;
    }
    memcpy(conn->head + conn->head_len, data, len);
    conn->head_len += len;
}

static void take_data(struct origin_conn *conn, const char *data, size_t len)
{
    if (conn->head_len > 0) {
        keep_part(conn, data, len);
        if (conn->fd < 0)
            return;
        data = conn->head;
        len = conn->head_len;
    }
    while (conn->fd >= 0 && len > 0) {
        const char *const end = find_head_end(data, len);

        if (!end) {
            if (data != conn->head) {
                conn->head_len = 0;
                keep_part(conn, data, len);
            }
            return;
        }
        const size_t head_len = (size_t)(end - data);

        answer_request(conn, data, head_len);
        data += head_len;
        len -= head_len;
    }
    conn->head_len = 0;
}

/* Returns 1 when there may be more. */
static int read_once(struct origin_conn *conn)
{
    struct origin *const origin = conn->origin;
    const ssize_t n = recv(conn->fd, origin->scratch, SCRATCH_CAP, 0);

    if (n > 0) {
        take_data(conn, origin->scratch, (size_t)n);
        return n == SCRATCH_CAP;
    }
    if (n < 0 && errno == EINTR)
        return 1;
    if (n == 0 || errno != EAGAIN)
        close_conn(conn);
    return 0;
}

static void on_conn(struct evq_item *item, uint32_t events)
{
    struct origin_conn *const conn = (struct origin_conn *)(void *)item;
    const int has_end = (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;

    if (conn->fd < 0)
        return;
    if (events & EPOLLOUT) {
        watch(conn, EPOLLIN);
        send_answer(conn);
    }
    if (!(events & ~(uint32_t)EPOLLOUT))
        return;
    while (conn->fd >= 0 && (read_once(conn) || (has_end && conn->fd >= 0)))
        ;
}

/* Each accept makes a new one, and a closed one stays on the list until the
 * end: an event of the same batch may still name it. */
static struct origin_conn *new_conn(struct origin *origin)
{
    struct origin_conn *const conn = calloc(1, sizeof(*conn));

    if (!conn)
        return NULL;
    conn->item.on_events = on_conn;
    conn->origin = origin;
    conn->next = origin->all;
    origin->all = conn;
    return conn;
}

static void on_listener(struct evq_item *item, uint32_t events)
{
    struct origin *const origin = (struct origin *)(void *)item;
    const int one = 1;

    (void)events;
    for (;;) {
        const int fd =
            accept4(origin->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd < 0)
            return;
        struct origin_conn *const conn = new_conn(origin);

        if (!conn) {
            close(fd);
            continue;
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        conn->fd = fd;
        if (evq_add(origin->evq, fd, EPOLLIN, &conn->item) < 0) {
            close(fd);
            conn->fd = -1;
            continue;
        }
        origin->conn_count++;
    }
}

/* ---- Life ---------------------------------------------------------------- */

static int open_listener(struct origin *origin)
{
    struct sockaddr_in addr = { .sin_family = AF_INET,
                                .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t len = sizeof(addr);

    origin->fd =
        socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (origin->fd < 0)
        return -errno;
    /* The cheapest on loopback; what it accepts inherits it. */
    setsockopt(origin->fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
    if (bind(origin->fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 ||
        listen(origin->fd, BACKLOG) < 0 ||
        getsockname(origin->fd, (struct sockaddr *)&addr, &len) < 0)
        return -errno;
    origin->port = ntohs(addr.sin_port);
    origin->item.on_events = on_listener;
    return evq_add(origin->evq, origin->fd, EPOLLIN, &origin->item);
}

int origin_new(struct evq *evq, struct origin **origin_out)
{
    struct origin *const origin = calloc(1, sizeof(*origin));

    if (!origin)
        return -ENOMEM;
    origin->evq = evq;
    origin->fd = -1;
    evq->on_batch_end = send_due;
    evq->batch_ctx = origin;
    int err = make_answer(&origin->answers[0], ORIGIN_SMALL_LEN);

    if (!err)
        err = make_answer(&origin->answers[1], ORIGIN_LARGE_LEN);
    if (!err)
        err = open_listener(origin);
    if (err) {
        origin_free(origin);
        return err;
    }
    *origin_out = origin;
    return 0;
}

void origin_free(struct origin *origin)
{
    if (!origin)
        return;
    origin->evq->on_batch_end = NULL;
    while (origin->all) {
        struct origin_conn *const conn = origin->all;

        origin->all = conn->next;
        if (conn->fd >= 0)
            close_conn(conn);
        free(conn->head);
        free(conn);
    }
    if (origin->fd >= 0) {
        evq_remove(origin->evq, origin->fd);
        close(origin->fd);
    }
    free(origin->answers[0].bytes);
    free(origin->answers[1].bytes);
    free(origin);
}

uint16_t origin_port(const struct origin *origin)
{
    return origin->port;
}

const uint8_t *origin_body(const struct origin *origin, int is_large)
{
    const struct answer *const answer = &origin->answers[is_large != 0];

    return (const uint8_t *)answer->bytes + answer->head_len;
}

uint64_t origin_bad_requests(const struct origin *origin)
{
    return origin->bad_requests;
}

uint32_t origin_conns(const struct origin *origin)
{
    return origin->conn_count;
}

void origin_hold(struct origin *origin, uint32_t request_count)
{
    origin->hold_count = request_count;
    if (request_count == 0)
        release_held(origin);
}
