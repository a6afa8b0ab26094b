/* SPDX-License-Identifier: MIT */
/*
 * One connection of the generator: open, send, read, judge the answer.
 * A connection that ends between requests is opened again without a word; one
 * that ends under a request makes that request an error. Opening happens from
 * the run's loop only, never inside an event, so that an event of a closed
 * descriptor finds a closed connection and not its successor.
 */
#include "config.h"

#include "tools/myra-load/gen_priv.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

#define RETRY_MIN_NS UINT64_C(5000000)
#define RETRY_MAX_DOUBLINGS 6u

static void push_idle(struct gen_conn *conn)
{
    struct gen_conn *const head = &conn->gen->idle;

    conn->state = GEN_CONN_IDLE;
    conn->prev = head->prev;
    conn->next = head;
    head->prev->next = conn;
    head->prev = conn;
}

static void unlink_idle(struct gen_conn *conn)
{
    conn->prev->next = conn->next;
    conn->next->prev = conn->prev;
}

static void want(struct gen_conn *conn, uint32_t events)
{
    if (conn->want_events == events)
        return;
    conn->want_events = events;
    evq_change(conn->gen->evq, conn->fd, events, &conn->item);
}

void gen_conn_close(struct gen_conn *conn, uint64_t retry_at_ns)
{
    struct gen *const gen = conn->gen;

    if (conn->state == GEN_CONN_CLOSED)
        return;
    if (conn->state == GEN_CONN_IDLE)
        unlink_idle(conn);
    if (conn->state == GEN_CONN_OPENING)
        gen->opening--;
    else
        gen->stats.conns_open--;
    if (conn->state == GEN_CONN_BUSY)
        gen->stats.in_flight--;
    evq_remove(gen->evq, conn->fd);
    close(conn->fd);
    conn->fd = -1;
    conn->state = GEN_CONN_CLOSED;
    conn->retry_at_ns = retry_at_ns;
}

void gen_conn_fail(struct gen_conn *conn, enum gen_err err)
{
    struct gen *const gen = conn->gen;

    gen->stats.errors++;
    gen->stats.errors_by_kind[err]++;
    gen->last_done_ns = gen_now_ns();
    gen_conn_close(conn, 0);
}

void gen_conn_fail_open(struct gen_conn *conn, int err, uint64_t now_ns)
{
    struct gen *const gen = conn->gen;
    const uint32_t doublings = conn->fail_count < RETRY_MAX_DOUBLINGS
        ? conn->fail_count
        : RETRY_MAX_DOUBLINGS;

    gen->open_err = err;
    gen->stats.errors_by_kind[GEN_ERR_CONNECT]++;
    conn->fail_count++;
    gen_conn_close(conn, now_ns + (RETRY_MIN_NS << doublings));
}

static void become_open(struct gen_conn *conn)
{
    struct gen *const gen = conn->gen;

    gen->opening--;
    gen->stats.conns_open++;
    gen->stats.connects++;
    gen->stats.reconnects += (uint64_t)conn->was_open;
    conn->was_open = 1;
    conn->fail_count = 0;
    push_idle(conn);
    want(conn, EPOLLIN);
}

static int start_connect(struct gen_conn *conn, int fd)
{
    const struct gen_options *const options = &conn->gen->options;
    const int one = 1;

    if (options->addr.ss_family != AF_UNIX)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    if (options->congestion)
        setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, options->congestion,
                   (socklen_t)strlen(options->congestion));
    if (connect(fd, (const struct sockaddr *)&options->addr,
                options->addr_len) < 0 &&
        errno != EINPROGRESS)
        return -errno;
    /* Also a connection that stands at once is reported writable. */
    conn->want_events = EPOLLOUT;
    return evq_add(conn->gen->evq, fd, EPOLLOUT, &conn->item);
}

int gen_conn_open(struct gen_conn *conn, uint64_t now_ns)
{
    struct gen *const gen = conn->gen;
    const int fd =
        socket(gen->options.addr.ss_family,
               SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -errno;
    conn->fd = fd;
    conn->state = GEN_CONN_OPENING;
    conn->deadline_ns = now_ns + gen->options.timeout_ns;
    gen->opening++;
    const int err = start_connect(conn, fd);

    if (err < 0)
        gen_conn_fail_open(conn, err, now_ns);
    return 0;
}

/* ---- Sending ------------------------------------------------------------ */

static void send_rest(struct gen_conn *conn)
{
    const struct gen_options *const options = &conn->gen->options;

    while (conn->sent_len < options->request_len) {
        const ssize_t n =
            send(conn->fd, options->request + conn->sent_len,
                 options->request_len - conn->sent_len, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            want(conn, EPOLLIN | EPOLLOUT);
            return;
        }
        if (n < 0) {
            gen_conn_fail(conn, GEN_ERR_RESET);
            return;
        }
        conn->sent_len += (size_t)n;
        conn->gen->stats.sent_bytes += (uint64_t)n;
    }
    want(conn, EPOLLIN);
}

void gen_conn_send(struct gen_conn *conn, uint64_t intended_ns,
                   uint64_t now_ns)
{
    struct gen *const gen = conn->gen;
    const struct gen_options *const options = &gen->options;

    unlink_idle(conn);
    conn->state = GEN_CONN_BUSY;
    conn->sent_len = 0;
    conn->intended_ns = intended_ns;
    conn->actual_ns = now_ns;
    conn->deadline_ns = now_ns + options->timeout_ns;
    resp_start(&conn->resp, options->is_head, options->expect_body,
               options->expect_body_len);
    gen->stats.sent++;
    gen->stats.in_flight++;
    if (gen->period_ns > 0)
        hist_record(gen->lateness, now_ns - intended_ns);
    send_rest(conn);
}

/* ---- Answers ------------------------------------------------------------ */

/* GEN_ERR_COUNT: the answer is right. */
static enum gen_err judge(const struct gen *gen, const struct resp *resp)
{
    const struct gen_options *const options = &gen->options;
    const int status = resp->status;

    if (options->expect_status ? status != options->expect_status
                               : status < 200 || status > 399)
        return GEN_ERR_STATUS;
    if (options->is_head || options->expect_body_len < 0)
        return GEN_ERR_COUNT;
    if (resp->body_len != (uint64_t)options->expect_body_len)
        return GEN_ERR_LENGTH;
    return resp->has_wrong_byte ? GEN_ERR_BODY : GEN_ERR_COUNT;
}

static void finish(struct gen_conn *conn)
{
    struct gen *const gen = conn->gen;
    const enum gen_err err = judge(gen, &conn->resp);
    const int status_class = conn->resp.status / 100;
    const uint64_t now_ns = gen_now_ns();

    gen->last_done_ns = now_ns;
    gen->stats.status_class[status_class <= 5 ? status_class : 0]++;
    if (err == GEN_ERR_COUNT) {
        gen_count_answer(gen, conn, now_ns);
    } else {
        gen->stats.errors++;
        gen->stats.errors_by_kind[err]++;
    }
    if (!conn->resp.keeps_alive ||
        conn->sent_len < gen->options.request_len) {
        gen_conn_close(conn, now_ns);
    } else {
        gen->stats.in_flight--;
        push_idle(conn);
    }
    /* A closed loop sends after all answers of the batch were read. */
    if (gen->period_ns > 0)
        gen_pump(gen, now_ns);
}

static void take_data(struct gen_conn *conn, const uint8_t *data, size_t len)
{
    size_t used = 0;

    conn->gen->stats.recv_bytes += len;
    if (conn->state != GEN_CONN_BUSY) {
        /* Bytes that nobody asked for. */
        conn->gen->stats.errors++;
        conn->gen->stats.errors_by_kind[GEN_ERR_MALFORMED]++;
        gen_conn_close(conn, 0);
        return;
    }
    const enum resp_verdict verdict =
        resp_feed(&conn->resp, data, len, &used);

    if (verdict == RESP_BAD || verdict == RESP_NOMEM || used < len)
        gen_conn_fail(conn, GEN_ERR_MALFORMED);
    else if (verdict == RESP_DONE)
        finish(conn);
}

static void take_end(struct gen_conn *conn)
{
    if (conn->state != GEN_CONN_BUSY)
        gen_conn_close(conn, 0);
    else if (resp_end(&conn->resp) == RESP_DONE)
        finish(conn);
    else
        gen_conn_fail(conn, GEN_ERR_CLOSED);
}

/* Returns 1 when there may be more. */
static int read_once(struct gen_conn *conn)
{
    uint8_t *const scratch = conn->gen->scratch;
    const ssize_t n = recv(conn->fd, scratch, GEN_SCRATCH_CAP, 0);

    if (n > 0) {
        take_data(conn, scratch, (size_t)n);
        return n == GEN_SCRATCH_CAP;
    }
    if (n == 0)
        take_end(conn);
    else if (errno == EINTR)
        return 1;
    else if (errno == EAGAIN || errno == EWOULDBLOCK)
        return 0;
    else if (conn->state == GEN_CONN_BUSY)
        gen_conn_fail(conn, GEN_ERR_RESET);
    else
        gen_conn_close(conn, 0);
    return 0;
}

/* Reads until nothing is left; where the end was told, until the end. */
static void read_all(struct gen_conn *conn, uint32_t events)
{
    const int has_end = (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;

    while (read_once(conn) ||
           (has_end && conn->state != GEN_CONN_CLOSED))
        if (conn->state == GEN_CONN_CLOSED)
            return;
}

static void end_opening(struct gen_conn *conn)
{
    int err = 0;
    socklen_t len = sizeof(err);

    if (getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0)
        err = errno;
    if (err) {
        gen_conn_fail_open(conn, -err, gen_now_ns());
        return;
    }
    become_open(conn);
    gen_pump(conn->gen, gen_now_ns());
}

void gen_conn_on_events(struct evq_item *item, uint32_t events)
{
    struct gen_conn *const conn = (struct gen_conn *)(void *)item;

    if (conn->state == GEN_CONN_CLOSED)
        return;
    if (conn->state == GEN_CONN_OPENING) {
        end_opening(conn);
        return;
    }
    if (events & ~(uint32_t)EPOLLOUT)
        read_all(conn, events);
    if ((events & EPOLLOUT) && conn->state == GEN_CONN_BUSY &&
        conn->sent_len < conn->gen->options.request_len)
        send_rest(conn);
}
