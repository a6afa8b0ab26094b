/* SPDX-License-Identifier: MIT */
/* A small owner for a backend's loop: see uring_rig.h. */
#include "config.h"

#include "tests/uring_rig.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEADLINE_S 5.0

static struct rig *rig_of(struct myi_be *be)
{
    return be->owner;
}

static struct rig_seat *seat_of(struct myi_io *io)
{
    return (struct rig_seat *)(void *)io;
}

double rig_seconds(void)
{
    return (double)myra_clock_ns() / 1e9;
}

/* ---- The sink ----------------------------------------------------------- */

static void check_report(struct myi_be *be, struct myi_io *io)
{
    cr_assert_eq(rig_of(be)->awakes, 1, "a report before on_awake");
    if (io)
        cr_assert(!io->is_closing, "a report of a closing descriptor");
}

static void on_awake(struct myi_be *be)
{
    cr_assert_eq(++rig_of(be)->awakes, 1, "on_awake twice in one wait");
}

static void on_accept(struct myi_be *be, struct myi_io *io, int fd)
{
    struct rig *rig = rig_of(be);

    check_report(be, io);
    if (fd < 0) {
        seat_of(io)->accept_err = fd;
        return;
    }
    rig->accepted++;
    rig->last_accepted = rig_take(rig, MYI_IO_CONN, fd);
    if (rig->accept_starts_recv)
        cr_assert_eq(rig->ops->recv_start(be, &rig->last_accepted->io), 0);
}

static void on_connect(struct myi_be *be, struct myi_io *io, int err)
{
    check_report(be, io);
    seat_of(io)->connects++;
    seat_of(io)->connect_res = err;
}

static void queue_buf(struct rig_seat *seat, struct myra_buf *buf, int len)
{
    struct rig_piece *piece =
        &seat->queue[(seat->head + seat->count++) % RIG_QUEUE];

    cr_assert_leq(seat->count, RIG_QUEUE);
    piece->buf = buf;
    piece->len = (uint32_t)len;
    piece->done = 0;
}

static void on_recv(struct myi_be *be, struct myi_io *io, struct myra_buf *buf,
                    int res)
{
    struct rig *rig = rig_of(be);
    struct rig_seat *seat = seat_of(io);

    check_report(be, io);
    cr_assert(!seat->has_fin && seat->recv_err == 0,
              "a report behind the end of the stream");
    if (res <= 0) {
        cr_assert_null(buf);
        seat->has_fin = res == 0;
        seat->recv_err = res;
        if (rig->closes_at_fin && (res < 0 || seat->count == 0))
            rig_close_seat(rig, seat);
        return;
    }
    cr_assert_not_null(buf);
    cr_assert_leq((uint32_t)res, buf->cap);
    seat->received += (uint64_t)res;
    if (rig->mode == RIG_ECHO)
        queue_buf(seat, buf, res);
    else if (rig->mode == RIG_HOLD)
        rig->held[rig->held_count++] = buf;
    else
        myra_buf_release(buf);
}

static void on_starved(struct myi_be *be, struct myi_io *io)
{
    check_report(be, io);
    rig_of(be)->starved++;
}

static void consume(struct rig_seat *seat, uint32_t len)
{
    while (len > 0) {
        struct rig_piece *piece = &seat->queue[seat->head];
        const uint32_t rest = piece->len - piece->done;
        const uint32_t part = len < rest ? len : rest;

        cr_assert_gt(seat->count, 0);
        piece->done += part;
        len -= part;
        if (piece->done < piece->len)
            continue;
        myra_buf_release(piece->buf);
        seat->head = (seat->head + 1) % RIG_QUEUE;
        seat->count--;
    }
}

static void on_send(struct myi_be *be, struct myi_io *io, int res)
{
    struct rig *rig = rig_of(be);
    struct rig_seat *seat = seat_of(io);

    check_report(be, io);
    cr_assert(seat->is_sending, "on_send without a send");
    seat->is_sending = 0;
    seat->send_res = res;
    seat->sends++;
    if (rig->mode != RIG_ECHO)
        return;
    if (res >= 0)
        consume(seat, (uint32_t)res);
    if (rig->closes_at_fin && (res < 0 || (seat->has_fin && seat->count == 0)))
        rig_close_seat(rig, seat);
}

static void on_poll(struct myi_be *be, struct myi_io *io, int revents)
{
    check_report(be, io);
    seat_of(io)->polls++;
    seat_of(io)->revents = revents;
}

static void on_closed(struct myi_be *be, struct myi_io *io)
{
    struct rig *rig = rig_of(be);
    struct rig_seat *seat = seat_of(io);

    check_report(be, NULL);
    cr_assert(io->is_closing);
    cr_assert_eq(io->inflight, 0);
    cr_assert_eq(seat->closed, 0, "on_closed twice");
    seat->closed = 1;
    rig->closed++;
    while (seat->count > 0)
        consume(seat,
                seat->queue[seat->head].len - seat->queue[seat->head].done);
    io->kind = MYI_IO_FREE;
}

static void on_wake(struct myi_be *be)
{
    check_report(be, NULL);
    rig_of(be)->wakes++;
}

static void flush(struct myi_be *be)
{
    struct rig *rig = rig_of(be);
    uint32_t i;

    for (i = 0; rig->mode == RIG_ECHO && i < rig->used; i++)
        rig_send_queue(rig, &rig->seats[i]);
}

static const struct myi_sink sink = {
    .on_awake = on_awake,
    .on_accept = on_accept,
    .on_connect = on_connect,
    .on_recv = on_recv,
    .on_starved = on_starved,
    .on_send = on_send,
    .on_poll = on_poll,
    .on_closed = on_closed,
    .on_wake = on_wake,
    .flush = flush,
};

/* ---- The rig ------------------------------------------------------------ */

void rig_send_queue(struct rig *rig, struct rig_seat *seat)
{
    struct iovec iov[16];
    unsigned i;
    int res;

    if (seat->io.kind != MYI_IO_CONN || seat->io.is_closing ||
        seat->is_sending || seat->count == 0)
        return;
    for (i = 0; i < seat->count && i < rig->ops->max_gather; i++) {
        const struct rig_piece *piece =
            &seat->queue[(seat->head + i) % RIG_QUEUE];

        iov[i].iov_base = piece->buf->data + piece->done;
        iov[i].iov_len = piece->len - piece->done;
    }
    seat->is_sending = 1;
    res = rig->ops->send(rig->be, &seat->io, iov, i);
    /* The array may go at once. */
    memset(iov, 0xdb, sizeof(iov));
    if (res == 0)
        return;
    seat->is_sending = 0;
    if (res > 0)
        consume(seat, (uint32_t)res);
    else
        rig_close_seat(rig, seat);
}

struct rig_seat *rig_take(struct rig *rig, enum myi_io_kind kind, int fd)
{
    struct rig_seat *seat = NULL;
    uint32_t generation;
    uint32_t i;

    for (i = 0; i < rig->used && !seat; i++)
        if (rig->seats[i].io.kind == MYI_IO_FREE &&
            !(rig->seats[i].io.is_closing && !rig->seats[i].closed))
            seat = &rig->seats[i];
    if (!seat) {
        cr_assert_lt(rig->used, RIG_SEATS);
        seat = &rig->seats[rig->used++];
    }
    generation = seat->io.generation + 1;
    memset(seat, 0, sizeof(*seat));
    seat->io.slot = (uint32_t)(seat - rig->seats);
    seat->io.generation = generation;
    seat->io.kind = (uint8_t)kind;
    seat->io.fd = fd;
    return seat;
}

void rig_init(struct rig *rig)
{
    struct myi_probe why;

    memset(rig, 0, sizeof(*rig));
    uring_faults_init(&rig->faults, 1);
    if (myi_backend_uring_token.probe(&why) == 0)
        return;
    cr_assert_null(strstr(why.text, "self-test"), "%s", why.text);
    cr_skip_test("%s", why.text);
}

void rig_open(struct rig *rig, uint32_t buf_count, uint32_t buf_cap,
              uint32_t off_features, int is_spin)
{
    struct myi_backend_config config = { buf_count, off_features, is_spin };
    struct myra_pool_options options;
    struct myi_probe why = { 0, "" };
    int i;

    rig->ops = &myi_backend_uring_token;
    rig->accept_starts_recv = 1;
    myra_pool_options_init(&options);
    options.count = buf_count;
    options.buf_cap = buf_cap;
    cr_assert_eq(myra_pool_new(&options, &rig->pool), 0);
    rig->seats = calloc(RIG_SEATS, sizeof(*rig->seats));
    rig->be = calloc(1, rig->ops->loop_size);
    for (i = 0; i < RIG_CHUNKS; i++)
        rig->chunks[i] = (uint8_t *)&rig->seats[(unsigned)i * MYI_SLOT_CHUNK];
    cr_assert_leq(rig->ops->io_size, sizeof(rig->seats->priv));
    rig->be->ops = rig->ops;
    rig->be->sink = &sink;
    rig->be->owner = rig;
    rig->be->pool = rig->pool;
    rig->be->slot_chunks = rig->chunks;
    rig->be->slot_chunk_count = RIG_CHUNKS;
    rig->be->slot_stride = sizeof(struct rig_seat);
    rig->be->io_priv_offset = offsetof(struct rig_seat, priv);
    if (rig->faults.sys.init)
        myi_ring_use_sys(&rig->faults.sys);
    i = rig->ops->open(rig->be, &config, &why);
    myi_ring_use_sys(NULL);
    cr_assert_eq(i, 0, "%s", why.text);
}

void rig_close(struct rig *rig)
{
    const double end = rig_seconds() + DEADLINE_S;
    uint32_t open_count = 1;
    uint32_t i;

    rig_release_held(rig);
    for (i = 0; i < rig->used; i++)
        if (rig->seats[i].io.kind != MYI_IO_FREE)
            rig_close_seat(rig, &rig->seats[i]);
    while (open_count > 0) {
        cr_assert_lt(rig_seconds(), end, "a descriptor does not close");
        cr_assert_geq(rig_turn(rig, 100000000), 0);
        open_count = 0;
        for (i = 0; i < rig->used; i++)
            open_count += rig->seats[i].io.kind != MYI_IO_FREE;
    }
    cr_assert_eq(rig->be->stale, 0);
    rig->ops->close_loop(rig->be);
    cr_assert_eq(myra_pool_free(rig->pool), 0, "a buffer was lost");
    free(rig->be);
    free(rig->seats);
}

int rig_turn(struct rig *rig, int64_t timeout_ns)
{
    int res;

    rig->awakes = 0;
    res = rig->ops->wait(rig->be, timeout_ns);
    if (res >= 0)
        cr_assert_eq(rig->awakes, 1, "no on_awake");
    return res;
}

void rig_until(struct rig *rig, const int *what, int enough)
{
    const double end = rig_seconds() + DEADLINE_S;

    while (*what < enough) {
        cr_assert_lt(rig_seconds(), end, "%d of %d after %g s", *what, enough,
                     DEADLINE_S);
        cr_assert_geq(rig_turn(rig, 10000000), 0);
    }
}

void rig_listen(struct rig *rig)
{
    struct sockaddr_in addr;
    socklen_t len = sizeof(addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    memset(&addr, 0, sizeof(addr));
    addr.sin_family = AF_INET;
    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    cr_assert_geq(fd, 0);
    cr_assert_eq(bind(fd, (struct sockaddr *)&addr, len), 0);
    cr_assert_eq(listen(fd, 512), 0);
    cr_assert_eq(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
    rig->port = ntohs(addr.sin_port);
    rig->listener = rig_take(rig, MYI_IO_LISTENER, fd);
    cr_assert_eq(rig->ops->accept_start(rig->be, &rig->listener->io), 0);
}

int rig_dial(const struct rig *rig)
{
    const struct timeval limit = { (time_t)DEADLINE_S, 0 };
    struct sockaddr_in addr;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    memset(&addr, 0, sizeof(addr));
    addr.sin_family = AF_INET;
    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    addr.sin_port = htons(rig->port);
    cr_assert_geq(fd, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    cr_assert_eq(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
    return fd;
}

int rig_pair(struct rig *rig, struct rig_seat **seat_out)
{
    const int fd = rig_dial(rig);
    const int before = rig->accepted;

    rig_until(rig, &rig->accepted, before + 1);
    *seat_out = rig->last_accepted;
    return fd;
}

void rig_close_seat(struct rig *rig, struct rig_seat *seat)
{
    rig->ops->close(rig->be, &seat->io);
}

void rig_release_held(struct rig *rig)
{
    while (rig->held_count > 0)
        myra_buf_release(rig->held[--rig->held_count]);
}

void rig_turns(struct rig *rig, int count)
{
    while (count-- > 0)
        cr_assert_geq(rig_turn(rig, 0), 0);
}

void rig_expect(struct rig *rig, int fd, const char *text)
{
    const double end = rig_seconds() + DEADLINE_S;
    const size_t len = strlen(text);
    char got[256];
    size_t have = 0;

    while (have < len) {
        ssize_t res = recv(fd, got + have, len - have, MSG_DONTWAIT);

        if (res < 0 && errno == EAGAIN) {
            cr_assert_lt(rig_seconds(), end);
            cr_assert_geq(rig_turn(rig, 10000000), 0);
            continue;
        }
        cr_assert_gt(res, 0);
        have += (size_t)res;
    }
    cr_assert_arr_eq(got, text, len);
}

void rig_echo_once(struct rig *rig, int fd, const char *text)
{
    cr_assert_eq(send(fd, text, strlen(text), 0), (ssize_t)strlen(text));
    rig_expect(rig, fd, text);
}
