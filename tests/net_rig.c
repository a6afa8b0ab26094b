/* SPDX-License-Identifier: MIT */
/* Loop, listener and raw peers for the tests of lib/net. */
#include "config.h"

#include "tests/net_rig.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define DEADLINE_NS (UINT64_C(10) * 1000 * 1000 * 1000)
#define STEP_NS (INT64_C(20) * 1000 * 1000)

static void on_open(struct myra_conn *conn, void *user)
{
    struct rig *rig = user;

    rig->conn = conn;
    rig->opened++;
}

static int64_t on_data(struct myra_conn *conn, const struct myra_slice *data,
                       void *user)
{
    struct rig *rig = user;
    size_t len = data->len;

    cr_assert_geq(data->readable, data->len);
    if (rig->answer < 0)
        return rig->answer;
    if (rig->use > 0) {
        if (len < rig->use)
            return 0;
        len = rig->use;
    }
    for (size_t i = 0; i < len; i++)
        rig->sum += data->data[i] * (uint64_t)(rig->got + i + 1);
    rig->got += len;
    if (rig->is_echo)
        cr_assert_eq(myra_conn_send_slice(conn, data, 0, len), 0);
    return (int64_t)len;
}

static void on_eof(struct myra_conn *conn, size_t kept, void *user)
{
    struct rig *rig = user;

    rig->eofs++;
    rig->kept = kept;
    if (rig->is_echo)
        myra_conn_close(conn);
}

static void on_pressure(struct myra_conn *conn, int is_high, void *user)
{
    struct rig *rig = user;

    (void)conn;
    if (is_high)
        rig->highs++;
    else
        rig->lows++;
}

static void on_drained(struct myra_conn *conn, void *user)
{
    struct rig *rig = user;

    (void)conn;
    rig->drained++;
}

static void on_deadline(struct myra_conn *conn, void *user)
{
    struct rig *rig = user;

    (void)conn;
    rig->deadlines++;
}

static void on_closed(struct myra_conn *conn, enum myra_close_reason reason,
                      int err, void *user)
{
    struct rig *rig = user;

    if (rig->conn == conn)
        rig->conn = NULL;
    rig->closed++;
    rig->reason = reason;
    rig->err = err;
}

const struct myra_conn_events rig_events = {
    .on_open = on_open,
    .on_data = on_data,
    .on_eof = on_eof,
    .on_pressure = on_pressure,
    .on_drained = on_drained,
    .on_deadline = on_deadline,
    .on_closed = on_closed,
};

void rig_init(struct rig *rig, uint32_t buf_count, uint32_t buf_cap,
              const char *addr_text,
              const struct myra_listen_options *options)
{
    struct myra_loop_options loop_options;
    int err;

    memset(rig, 0, sizeof(*rig));
    myra_loop_options_init(&loop_options);
    if (buf_count > 0)
        loop_options.recv_buf_count = buf_count;
    if (buf_cap > 0)
        loop_options.recv_buf_cap = buf_cap;
    err = myra_loop_new(&loop_options, &rig->loop);
    cr_assert_eq(err, 0, "%s", myra_loop_new_error());
    err = myra_listen(rig->loop,
                      addr_text != NULL ? addr_text : "127.0.0.1:0", options,
                      &rig_events, rig, &rig->listener);
    cr_assert_eq(err, 0, "%s", myra_strerror(err));
    cr_assert_gt(myra_listener_addr(rig->listener, rig->addr,
                                    sizeof(rig->addr)),
                 0);
}

void rig_fini(struct rig *rig)
{
    struct myra_loop_stats stats;

    /* End all connections first, to see that every lease comes home. */
    myra_listener_close(rig->listener);
    myra_loop_read_stats(rig->loop, &stats);
    if (stats.conns == 0) {
        rig_spin(rig, 3);
        myra_loop_read_stats(rig->loop, &stats);
        cr_assert_eq(stats.bufs_leased, 0, "%u leases", stats.bufs_leased);
        cr_assert_eq(stats.block_bytes, 0, "%zu block bytes",
                     (size_t)stats.block_bytes);
        cr_assert_eq(stats.stale, 0);
    }
    myra_loop_free(rig->loop);
    rig->loop = NULL;
}

void rig_until_size(struct rig *rig, const size_t *counter, size_t target)
{
    const uint64_t end = myra_clock_ns() + DEADLINE_NS;

    while (*counter < target) {
        cr_assert_geq(myra_loop_step(rig->loop, STEP_NS), 0);
        cr_assert_lt(myra_clock_ns(), end, "%zu of %zu in time", *counter,
                     target);
    }
}

void rig_until(struct rig *rig, const int *counter, int target)
{
    const uint64_t end = myra_clock_ns() + DEADLINE_NS;

    while (*counter < target) {
        cr_assert_geq(myra_loop_step(rig->loop, STEP_NS), 0);
        cr_assert_lt(myra_clock_ns(), end, "%d of %d in time", *counter,
                     target);
    }
}

void rig_spin(struct rig *rig, int turns)
{
    for (int i = 0; i < turns; i++)
        cr_assert_geq(myra_loop_step(rig->loop, 0), 0);
}

int rig_dial(const struct rig *rig)
{
    const struct timeval limit = { .tv_sec = 10 };
    struct sockaddr_storage addr;
    socklen_t len;
    int fd;

    cr_assert_eq(myra_addr_parse(rig->addr, &addr, &len), 0, "%s",
                 rig->addr);
    fd = socket(addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert_geq(fd, 0);
    cr_assert_eq(connect(fd, (struct sockaddr *)&addr, len), 0, "%s: %s",
                 rig->addr, strerror(errno));
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    return fd;
}

static void *peer_send(void *arg)
{
    struct rig_peer *peer = arg;
    uint8_t bytes[16384];
    size_t sent = 0;

    while (sent < peer->send_len) {
        size_t len = peer->send_len - sent;
        ssize_t res;

        if (len > sizeof(bytes))
            len = sizeof(bytes);
        for (size_t i = 0; i < len; i++)
            bytes[i] = rig_byte(sent + i);
        res = send(peer->fd, bytes, len, MSG_NOSIGNAL);
        if (res <= 0)
            return NULL;
        sent += (size_t)res;
    }
    if (peer->shut_after)
        shutdown(peer->fd, SHUT_WR);
    return NULL;
}

static void *peer_recv(void *arg)
{
    struct rig_peer *peer = arg;
    uint8_t bytes[65536];
    size_t step = peer->recv_step > 0 ? peer->recv_step : sizeof(bytes);

    while (peer->received < peer->recv_len) {
        const ssize_t res = recv(peer->fd, bytes, step, 0);

        if (res <= 0)
            break;
        for (ssize_t i = 0; i < res; i++) {
            if (bytes[i] != rig_byte(peer->received + (size_t)i))
                peer->mismatch = 1;
        }
        peer->received += (size_t)res;
    }
    __atomic_store_n(&peer->done, 1, __ATOMIC_RELEASE);
    return NULL;
}

void rig_peer_start(struct rig_peer *peer)
{
    cr_assert_eq(pthread_create(&peer->sender, NULL, peer_send, peer), 0);
    cr_assert_eq(pthread_create(&peer->receiver, NULL, peer_recv, peer), 0);
}

void rig_peer_join(struct rig *rig, struct rig_peer *peer)
{
    const uint64_t end = myra_clock_ns() + DEADLINE_NS;

    while (!__atomic_load_n(&peer->done, __ATOMIC_ACQUIRE)) {
        cr_assert_geq(myra_loop_step(rig->loop, 1000 * 1000), 0);
        cr_assert_lt(myra_clock_ns(), end, "peer has %zu of %zu",
                     peer->received, peer->recv_len);
    }
    pthread_join(peer->sender, NULL);
    pthread_join(peer->receiver, NULL);
    cr_assert_eq(peer->mismatch, 0);
}

int rig_fd_count(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int count = 0;

    cr_assert_not_null(dir);
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count;
}
