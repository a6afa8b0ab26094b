/* SPDX-License-Identifier: MIT */
/*
 * Table alloc: allocations per operation once everything is warm, counted by
 * a malloc that stands before the C library's. The control row allocates once
 * an operation on purpose and must read 1.00, or the counting does not work.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/counted.h"
#include "bench/origin.h"
#include "bench/peers.h"
#include "tools/myra-load/gen.h"

#define COUNTED_REQUESTS 20000
#define RUN_LIMIT_NS UINT64_C(20000000000)
#define CONN_COUNT 64

static const struct {
    const char *row;
    const char *target;
    const char *args[3];
} work_rows[] = {
    { "pool acquire + release", "alloc.pool", { "pool", NULL } },
    { "request head", "alloc.parse", { "parse", NULL } },
    { "echo 256 B, epoll", "alloc.echo_epoll", { "echo", "epoll", NULL } },
    { "echo 256 B, uring-token",
      "alloc.echo_token",
      { "echo", "uring-token", NULL } },
};

static const struct {
    enum peer_kind kind;
    int is_large;
    const char *row;
    const char *target;
} proxy_rows[] = {
    { PEER_MYRA_EPOLL, 0, "proxied 128 B, epoll", "alloc.proxy_epoll_128" },
    { PEER_MYRA_EPOLL, 1, "proxied 16 KiB, epoll", "alloc.proxy_epoll_16k" },
    { PEER_MYRA_TOKEN, 0, "proxied 128 B, token", "alloc.proxy_token_128" },
    { PEER_MYRA_TOKEN, 1, "proxied 16 KiB, token", "alloc.proxy_token_16k" },
};

struct alloc_table {
    struct bench *bench;
    char dir[64];
    struct counted counted;
    struct evq evq;
    struct origin *origin;
};

static struct spread one_value(double value)
{
    const struct spread spread = { .median = value, .q1 = value,
                                   .q3 = value, .count = 1 };

    return spread;
}

/* A worker's allocations an operation; negative: it could not do it. */
static double ask_worker(struct alloc_table *table, const char *const *args)
{
    struct worker worker;
    double ops = -1;
    double allocs = 0;

    if (worker_start(&worker, "alloc", args, table->counted.env, -1) < 0)
        return -1;
    const int count = worker_ask(&worker, &ops, &allocs);

    worker_stop(&worker);
    return count == 2 && ops > 0 ? allocs / ops : -1;
}

/* 1: counting works. */
static int run_control(struct alloc_table *table)
{
    static const char *const args[] = { "control", NULL };
    const double value = ask_worker(table, args);
    const struct spread spread = one_value(value);

    if (value < 0) {
        bench_fail(table->bench, "the counting malloc does not work here");
        return 0;
    }
    bench_row(table->bench, "control: must be 1", "malloc + free",
              "allocs/op", &spread);
    if (value != 1) {
        bench_fail(table->bench, "the control row reads %.4f, not 1", value);
        return 0;
    }
    return 1;
}

static void run_work_rows(struct alloc_table *table)
{
    for (size_t i = 0; i < sizeof(work_rows) / sizeof(work_rows[0]); i++) {
        const double value = ask_worker(table, work_rows[i].args);
        const struct spread spread = one_value(value);

        if (value < 0) {
            bench_skip(table->bench, work_rows[i].target,
                       "the case does not run here");
            continue;
        }
        bench_row(table->bench, work_rows[i].row, "myra", "allocs/op",
                  &spread);
        bench_target(table->bench, work_rows[i].target, &spread,
                     BENCH_AT_MOST, 0);
    }
}

/* ---- The proxy ----------------------------------------------------------- */

static int new_gen(struct alloc_table *table, uint16_t port, int is_large,
                   uint32_t conn_count, struct gen **gen_out)
{
    struct gen_options options;
    char addr[32];

    gen_options_init(&options);
    snprintf(addr, sizeof(addr), "127.0.0.1:%u", port);
    int err = gen_options_set_target(&options, addr,
                                     is_large ? ORIGIN_LARGE_PATH
                                              : ORIGIN_SMALL_PATH);

    options.conn_count = conn_count;
    options.rate_per_s = 0;
    options.request_max = COUNTED_REQUESTS;
    options.expect_status = 200;
    options.expect_body = origin_body(table->origin, is_large);
    options.expect_body_len = is_large ? ORIGIN_LARGE_LEN : ORIGIN_SMALL_LEN;
    if (!err)
        err = gen_new(&options, &table->evq, gen_out);
    gen_options_fini(&options);
    return err;
}

/* A run in which every request is answered right: 0. */
static int run_requests(struct gen *gen)
{
    struct gen_stats stats;
    const int err = gen_run(gen, RUN_LIMIT_NS);

    gen_read_stats(gen, &stats);
    if (err < 0)
        return err;
    return stats.errors == 0 && stats.completed == COUNTED_REQUESTS
        ? 0
        : -EPROTO;
}

/* More connections than are counted: memory grows to the most that was ever
 * in use at once. */
static int warm_up(struct alloc_table *table, uint16_t port, int is_large)
{
    struct gen *gen = NULL;
    int err = new_gen(table, port, is_large, CONN_COUNT * 2, &gen);

    if (!err)
        err = run_requests(gen);
    gen_free(gen);
    return err;
}

/* Allocations a request, over connections that stand; negative: it went
 * wrong. */
static double count_run(struct alloc_table *table, uint16_t port,
                        int is_large)
{
    struct malloc_counts *const counts = table->counted.counts;
    struct gen *gen = NULL;
    uint64_t before = 0;
    int err = warm_up(table, port, is_large);

    if (!err)
        err = new_gen(table, port, is_large, CONN_COUNT, &gen);
    if (!err)
        err = run_requests(gen);
    if (!err) {
        before = atomic_load(&counts->allocs);
        err = run_requests(gen);
    }
    const uint64_t allocs = atomic_load(&counts->allocs) - before;

    gen_free(gen);
    return err < 0 ? -1 : (double)allocs / COUNTED_REQUESTS;
}

static double run_proxy(struct alloc_table *table, enum peer_kind kind,
                        int is_large, struct peer *peer)
{
    const struct peer_options options = {
        .dir = table->dir,
        .origin_port = origin_port(table->origin),
        .cpu = -1,
        .env = table->counted.env,
    };
    struct malloc_counts *const counts = table->counted.counts;
    const uint64_t attached = atomic_load(&counts->attached);
    double value = -1;

    if (peer_start(peer, kind, &options) < 0)
        return -1;
    if (atomic_load(&counts->attached) == attached)
        snprintf(peer->why, sizeof(peer->why),
                 "the counting malloc did not attach");
    else if ((value = count_run(table, peer->port, is_large)) < 0)
        snprintf(peer->why, sizeof(peer->why), "requests failed");
    peer_stop(peer);
    return value;
}

static void run_proxy_rows(struct alloc_table *table)
{
    for (size_t i = 0; i < sizeof(proxy_rows) / sizeof(proxy_rows[0]); i++) {
        struct peer peer;
        const double value = run_proxy(table, proxy_rows[i].kind,
                                       proxy_rows[i].is_large, &peer);
        const struct spread spread = one_value(value);

        if (value < 0) {
            bench_skip(table->bench, proxy_rows[i].target, peer.why);
            continue;
        }
        bench_row(table->bench, proxy_rows[i].row,
                  peer_names[proxy_rows[i].kind], "allocs/req", &spread);
        bench_target(table->bench, proxy_rows[i].target, &spread,
                     BENCH_AT_MOST, 0);
    }
}

static void run_all(struct alloc_table *table)
{
    int err = counted_open(&table->counted, table->dir);

    if (err == -ENOENT) {
        bench_fail(table->bench, "malloc_count.so was not found beside "
                                 "myra-bench or installed");
        return;
    }
    if (!err)
        err = evq_init(&table->evq);
    if (!err)
        err = origin_new(&table->evq, &table->origin);
    if (err < 0) {
        bench_fail(table->bench, "set-up: %s", strerror(-err));
        return;
    }
    if (!run_control(table))
        return;
    run_work_rows(table);
    run_proxy_rows(table);
}

void bench_alloc(struct bench *bench)
{
    static struct alloc_table table;

    memset(&table, 0, sizeof(table));
    table.bench = bench;
    table.evq.fd = -1;
    const int err = peer_dir_open(table.dir, sizeof(table.dir));

    if (err < 0) {
        bench_fail(bench, "no scratch folder: %s", strerror(-err));
        return;
    }
    run_all(&table);
    origin_free(table.origin);
    evq_fini(&table.evq);
    counted_close(&table.counted);
    peer_dir_close(table.dir);
}
