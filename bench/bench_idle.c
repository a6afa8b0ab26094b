/* SPDX-License-Identifier: MIT */
/*
 * Table idle: what a client connection and its upstream connection cost in
 * memory while nothing happens on them. 5,000 clients send one request each;
 * the origin answers none before all have come, so 5,000 upstream connections
 * exist at once; then everything rests. The growth over a freshly started
 * proxy, by 5,000, is a pair's memory: tables, parked buffers and all. Apart
 * from it stand the loop's own receive buffers, which do not grow with the
 * connections: the anonymous mappings of at most 4 MiB that were there, not
 * yet touched, before the first client came.
 *
 * myra-proxy's baseline is one that was started for 64 connections, so that a
 * table made for many at the start counts as well. Kernel memory is the same
 * for all and not in it.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "bench/bench.h"
#include "bench/origin.h"
#include "bench/peers.h"
#include "bench/proc.h"
#include "bench/smaps.h"
#include "tools/myra-load/gen.h"

#define PAIR_COUNT 5000
#define BASE_CONNS_MAX 64
#define REST_STEPS 20 /* of 0.1 s without a change */
#define RUN_LIMIT_NS UINT64_C(30000000000)
#define PAIR_LIMIT_BYTES 1024
#define LOOP_LIMIT_BYTES (UINT64_C(4) << 20)

struct idle_table {
    struct bench *bench;
    char dir[64];
    struct evq evq;
    struct origin *origin;
};

static const struct {
    enum peer_kind kind;
    const char *target; /* NULL: not judged */
} subjects[] = {
    { PEER_MYRA_EPOLL, "idle.epoll_pair_bytes" },
    { PEER_MYRA_TOKEN, "idle.token_pair_bytes" },
    { PEER_NGINX, NULL },
    { PEER_HAPROXY, NULL },
};

/* What one proxy was found to use, in bytes. */
struct footprint {
    uint64_t base;    /* freshly started */
    uint64_t warm;    /* after many requests over few connections */
    uint64_t resting; /* with all pairs idle */
    uint64_t loop;    /* of that, in the loop's buffers since the start */
    uint32_t pairs;   /* upstream connections at that time */
};

static int start(struct idle_table *table, struct peer *peer,
                 enum peer_kind kind, uint32_t conns_max)
{
    const struct peer_options options = {
        .dir = table->dir,
        .origin_port = origin_port(table->origin),
        .cpu = -1,
        .conns_max = conns_max,
    };

    return peer_start(peer, kind, &options);
}

/* Lets events of closed connections pass, and the proxy (0: none) come to
 * rest: memory is given back with a delay. At most 8 s. */
static void settle(struct idle_table *table, pid_t pid)
{
    const struct timespec step = { .tv_nsec = 100000000 };
    uint64_t last = 0;
    int same = 0;

    for (int i = 0; i < 80 && same < REST_STEPS; i++) {
        while (evq_wait(&table->evq, 1000000) > 0)
            ;
        if (pid == 0)
            return;
        nanosleep(&step, NULL);
        const uint64_t rss = proc_rss_bytes(pid);

        same = rss == last ? same + 1 : 0;
        last = rss;
    }
}

static int new_gen(struct idle_table *table, const struct peer *peer,
                   uint32_t conn_count, uint64_t requests,
                   struct gen **gen_out)
{
    struct gen_options options;
    char addr[32];

    gen_options_init(&options);
    snprintf(addr, sizeof(addr), "127.0.0.1:%u", peer->port);
    int err = gen_options_set_target(&options, addr, ORIGIN_SMALL_PATH);

    options.conn_count = conn_count;
    options.rate_per_s = 0;
    options.request_max = requests;
    options.timeout_ns = RUN_LIMIT_NS;
    options.expect_status = 200;
    options.expect_body = origin_body(table->origin, 0);
    options.expect_body_len = ORIGIN_SMALL_LEN;
    if (!err)
        err = gen_new(&options, &table->evq, gen_out);
    gen_options_fini(&options);
    return err;
}

/* 0 when every request was answered right. */
static int run_requests(struct gen *gen, uint64_t requests)
{
    struct gen_stats stats;
    const int err = gen_run(gen, RUN_LIMIT_NS);

    gen_read_stats(gen, &stats);
    if (err < 0)
        return err;
    return stats.errors == 0 && stats.completed == requests ? 0 : -EPROTO;
}

/* The proxy that holds all pairs. */
static int rest_pairs(struct idle_table *table, struct peer *peer,
                      struct footprint *found)
{
    static struct smaps before;
    struct gen *gen = NULL;
    int err = new_gen(table, peer, PAIR_COUNT, PAIR_COUNT, &gen);

    if (err < 0)
        return err;
    smaps_read(peer->pid, &before);
    origin_hold(table->origin, PAIR_COUNT);
    err = run_requests(gen, PAIR_COUNT);
    origin_hold(table->origin, 0);
    settle(table, peer->pid);
    found->resting = proc_rss_bytes(peer->pid);
    found->loop = smaps_growth(peer->pid, &before, LOOP_LIMIT_BYTES);
    found->pairs = origin_conns(table->origin);
    gen_free(gen);
    return err;
}

/* A proxy after many requests over few connections: what its loop's buffers
 * take once they have all been touched. */
static int warm_up(struct idle_table *table, struct peer *peer,
                   struct footprint *found)
{
    struct gen *gen = NULL;
    int err = new_gen(table, peer, BASE_CONNS_MAX / 2, 20000, &gen);

    if (err < 0)
        return err;
    err = run_requests(gen, 20000);
    settle(table, peer->pid);
    found->warm = proc_rss_bytes(peer->pid);
    gen_free(gen);
    return err;
}

static int measure(struct idle_table *table, enum peer_kind kind,
                   struct peer *peer, struct footprint *found)
{
    const int is_ours = kind == PEER_MYRA_EPOLL || kind == PEER_MYRA_TOKEN;
    int err = start(table, peer, kind, is_ours ? BASE_CONNS_MAX : 0);

    if (err < 0)
        return err;
    settle(table, peer->pid);
    found->base = proc_rss_bytes(peer->pid);
    err = warm_up(table, peer, found);
    peer_stop(peer);
    settle(table, 0);
    if (err < 0)
        return err;
    err = start(table, peer, kind, 0);
    if (err < 0)
        return err;
    err = rest_pairs(table, peer, found);
    peer_stop(peer);
    settle(table, 0);
    return err;
}

static double per_pair(uint64_t more, uint64_t less)
{
    return more > less ? (double)(more - less) / PAIR_COUNT : 0;
}

static void report(struct idle_table *table, int index,
                   const struct footprint *found)
{
    const double bytes =
        per_pair(found->resting, found->base + found->loop);
    const struct spread spread = { .median = bytes, .q1 = bytes,
                                   .q3 = bytes, .count = 1 };
    const char *const name = peer_names[subjects[index].kind];

    bench_row(table->bench, "5,000 idle pairs", name, "B/pair", &spread);
    bench_note(table->bench,
               "%s: %.2f MiB fresh, %.2f MiB after 20,000 requests over %d "
               "connections, %.2f MiB with %u pairs idle, of that %.2f MiB "
               "more in the loop's buffers; %.0f B a pair with those",
               name, (double)found->base / 1048576,
               (double)found->warm / 1048576, BASE_CONNS_MAX / 2,
               (double)found->resting / 1048576, found->pairs,
               (double)found->loop / 1048576,
               per_pair(found->resting, found->base));
    if (!subjects[index].target)
        return;
    if (found->pairs < PAIR_COUNT)
        bench_skip(table->bench, subjects[index].target,
                   "the proxy did not keep all upstream connections");
    else if (found->loop > LOOP_LIMIT_BYTES)
        bench_skip(table->bench, subjects[index].target,
                   "the loop's buffers take more than 4 MiB");
    else
        bench_target(table->bench, subjects[index].target, &spread,
                     BENCH_AT_MOST, PAIR_LIMIT_BYTES);
}

static void run_subject(struct idle_table *table, int index)
{
    struct footprint found = { 0 };
    struct peer peer;
    const int err = measure(table, subjects[index].kind, &peer, &found);
    char why[200];

    if (!err) {
        report(table, index, &found);
        return;
    }
    snprintf(why, sizeof(why), "%s",
             found.base ? strerror(-err) : peer.why);
    if (subjects[index].target)
        bench_skip(table->bench, subjects[index].target, why);
    else
        bench_note(table->bench, "%s: left out: %s",
                   peer_names[subjects[index].kind], why);
}

/* Both sides of 5,000 pairs, here and in the proxy. */
static int has_descriptors(struct bench *bench)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 ||
        limit.rlim_cur >= 2 * PAIR_COUNT + 200)
        return 1;
    bench_fail(bench, "needs %d descriptors, the limit is %llu",
               2 * PAIR_COUNT + 200, (unsigned long long)limit.rlim_cur);
    return 0;
}

void bench_idle(struct bench *bench)
{
    static struct idle_table table;

    memset(&table, 0, sizeof(table));
    table.bench = bench;
    table.evq.fd = -1;
    if (!has_descriptors(bench))
        return;
    int err = peer_dir_open(table.dir, sizeof(table.dir));

    if (!err)
        err = evq_init(&table.evq);
    if (!err)
        err = origin_new(&table.evq, &table.origin);
    if (err < 0)
        bench_fail(bench, "set-up: %s", strerror(-err));
    for (size_t i = 0;
         !err && i < sizeof(subjects) / sizeof(subjects[0]); i++)
        run_subject(&table, (int)i);
    origin_free(table.origin);
    evq_fini(&table.evq);
    if (table.dir[0])
        peer_dir_close(table.dir);
}
