/* SPDX-License-Identifier: MIT */
/*
 * Random schedules of faults at the ring's seam: many echoing connections,
 * whose bytes all come back in order, whatever is cut, delayed, refused, or
 * closed in between; no lease, no descriptor and no report is lost.
 *
 * MYRA_SCHEDULES sets their number, MYRA_SCHEDULE_SEED the first seed.
 */
#include "config.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/uring_rig.h"

#define CLIENTS 12
#define SCHEDULES_DEFAULT 200

static struct rig rig;

struct client {
    int fd;
    uint32_t salt;
    uint32_t sent;
    uint32_t got;
    uint32_t total;
    uint32_t quits_at; /* bytes of the echo after which it goes away */
};

static uint8_t byte_at(const struct client *client, uint32_t at)
{
    return (uint8_t)((at + client->salt) * 2654435761u >> 11);
}

static void client_open(struct client *client)
{
    client->fd = rig_dial(&rig);
    client->salt = uring_faults_draw(&rig.faults, 1 << 20);
    client->sent = 0;
    client->got = 0;
    client->total = 1 + uring_faults_draw(&rig.faults, 6000);
    client->quits_at = client->total;
    if (uring_faults_draw(&rig.faults, 4) == 0)
        client->quits_at = uring_faults_draw(&rig.faults, client->total);
}

static void client_send(struct client *client)
{
    uint8_t bytes[2048];
    uint32_t len = 1 + uring_faults_draw(&rig.faults, sizeof(bytes));
    uint32_t i;
    ssize_t res;

    if (len > client->total - client->sent)
        len = client->total - client->sent;
    for (i = 0; i < len; i++)
        bytes[i] = byte_at(client, client->sent + i);
    res = send(client->fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (res > 0)
        client->sent += (uint32_t)res;
}

static void client_recv(struct client *client, uint64_t seed)
{
    uint8_t bytes[2048];
    ssize_t res =
        recv(client->fd, bytes,
             1 + uring_faults_draw(&rig.faults, sizeof(bytes)), MSG_DONTWAIT);
    ssize_t i;

    cr_assert(res > 0 || (res < 0 && errno == EAGAIN),
              "seed %llu: the echo ended at %u of %u",
              (unsigned long long)seed, client->got, client->total);
    for (i = 0; i < res; i++, client->got++)
        cr_assert_eq(bytes[i], byte_at(client, client->got),
                     "seed %llu: wrong byte at %u", (unsigned long long)seed,
                     client->got);
}

/* A receive is stopped and started somewhere, which must cost nothing. */
static void disturb(void)
{
    struct rig_seat *seat;

    seat = &rig.seats[uring_faults_draw(&rig.faults, rig.used)];
    if (seat->io.is_closing)
        return;
    if (seat->io.kind == MYI_IO_LISTENER) {
        rig.ops->accept_stop(rig.be, &seat->io);
        seat->is_stopped = 1;
    } else if (seat->io.kind == MYI_IO_CONN) {
        rig.ops->recv_stop(rig.be, &seat->io);
        seat->is_stopped = 1;
    }
}

static void undisturb(void)
{
    uint32_t i;

    for (i = 0; i < rig.used; i++) {
        struct rig_seat *seat = &rig.seats[i];

        if (!seat->is_stopped || seat->io.is_closing ||
            seat->io.kind == MYI_IO_FREE)
            continue;
        seat->is_stopped = 0;
        if (seat->io.kind == MYI_IO_LISTENER)
            rig.ops->accept_start(rig.be, &seat->io);
        else if (!seat->has_fin)
            rig.ops->recv_start(rig.be, &seat->io);
    }
}

/* Clients come and go until each of the budget has had its echo, or has gone
 * away in the middle. */
static void play(struct client *clients, int budget, uint64_t seed)
{
    const double end = rig_seconds() + 10;
    int open_count = 0;
    int i;

    while (budget > 0 || open_count > 0) {
        struct client *client =
            &clients[uring_faults_draw(&rig.faults, CLIENTS)];

        cr_assert(rig_seconds() < end, "seed %llu: no end",
                  (unsigned long long)seed);
        if (client->fd < 0 && budget > 0) {
            client_open(client);
            budget--;
        }
        if (client->fd >= 0) {
            if (client->sent < client->total)
                client_send(client);
            client_recv(client, seed);
            if (client->got >= client->quits_at) {
                close(client->fd);
                client->fd = -1;
            }
        }
        if (uring_faults_draw(&rig.faults, 8) == 0)
            disturb();
        else
            undisturb();
        cr_assert_geq(rig_turn(&rig, 0), 0, "seed %llu",
                      (unsigned long long)seed);
        open_count = 0;
        for (i = 0; i < CLIENTS; i++)
            open_count += clients[i].fd >= 0;
    }
}

static void run_schedule(uint64_t seed)
{
    static const uint32_t counts[] = { 1, 2, 8, 64 };
    struct client clients[CLIENTS];
    uint32_t off = 0;
    int i;

    rig_init(&rig);
    uring_faults_init(&rig.faults, seed);
    uring_faults_randomize(&rig.faults);
    rig.closes_at_fin = 1;
    if (uring_faults_draw(&rig.faults, 4) == 0)
        off = MYI_FEAT_MULTISHOT;
    if (uring_faults_draw(&rig.faults, 4) == 0)
        off |= MYI_FEAT_BATCH;
    rig_open(&rig, counts[uring_faults_draw(&rig.faults, 4)],
             16 + uring_faults_draw(&rig.faults, 1024), off,
             uring_faults_draw(&rig.faults, 4) == 0);
    rig_listen(&rig);
    for (i = 0; i < CLIENTS; i++)
        clients[i].fd = -1;
    play(clients, 24, seed);
    rig_close(&rig);
}

static uint64_t number_of(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text ? strtoull(text, NULL, 0) : otherwise;
}

Test(uring_schedule, nothing_is_lost_under_any_schedule, .timeout = 3600)
{
    const uint64_t first = number_of("MYRA_SCHEDULE_SEED", 1);
    const uint64_t count = number_of("MYRA_SCHEDULES", SCHEDULES_DEFAULT);
    uint64_t seed;

    for (seed = first; seed < first + count; seed++)
        run_schedule(seed);
}
