/* SPDX-License-Identifier: MIT */
/*
 * Table proxy: what one proxied request costs, and how many one core can do.
 * The proxy has cpu 0 for itself; generator and origin are one thread on cpu
 * 1, lighter than any proxy. Blocks of a fifth of a second go round over all
 * proxies, and only ratios within a round are judged: the machine's speed
 * changes from second to second, and a round sees one speed.
 *
 * CPU is the process's clock (all threads, all children), or the core's
 * non-idle time where that is larger: work that the kernel does for a proxy
 * elsewhere than in its threads counts too.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <myra/alloc.h>

#include "bench/bench.h"
#include "bench/origin.h"
#include "bench/peers.h"
#include "bench/proc.h"
#include "tools/myra-load/gen.h"

#define PROXY_CPU 0
#define LOAD_CPU 1
#define CONN_COUNT 128
#define BLOCK_NS UINT64_C(200000000)
#define WARMUP_NS UINT64_C(100000000)
#define ROUNDS_MIN 5
#define QUIET_LIMIT_NS UINT64_C(5000000000)
#define FOREIGN_MAX 0.05
#define FIXED_RATE 9537.0

struct row_spec {
    const char *name;
    const char *key;    /* in the targets' names; NULL: not judged */
    int is_large;       /* body of 16 KiB instead of 128 B */
    int is_browser;     /* nine fields instead of three */
    double rate_per_s;  /* 0: saturated */
    int round_count;
    /* bounds: epoll, uring-token */
    double cpu_vs_nginx[2];
    double rate_vs_nginx;
    double cpu_vs_relay;
};

static const char small_fields[] = "User-Agent: myra-bench\r\n"
                                   "Accept: */*\r\n";

static const char browser_fields[] =
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 "
    "Firefox/128.0\r\n"
    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,"
    "image/avif,image/webp,*/*;q=0.8\r\n"
    "Accept-Language: en-GB,en;q=0.7,de;q=0.3\r\n"
    "Accept-Encoding: gzip, deflate, br\r\n"
    "Referer: http://127.0.0.1/catalogue/index.html?page=12&sort=price\r\n"
    "Cookie: session=5f0c1a2b3d4e5f60718293a4b5c6d7e8; theme=dark\r\n"
    "Cache-Control: max-age=0\r\n"
    "Upgrade-Insecure-Requests: 1\r\n";

/* What the rounds of a row found about one subject. */
struct found {
    struct samples cpu_us;
    struct samples rate;
    struct samples p50_us;
    struct samples p99_us;
    struct samples busy; /* per cent of the time that the process ran */
    uint64_t clock_ns;   /* the process's clock */
    uint64_t core_ns;    /* and the core's non-idle time */
};

struct subject {
    struct peer peer;
    struct gen *gen;
    struct found found;     /* in quiet rounds */
    struct found disturbed; /* in the others: printed, never judged */
    /* of the round that runs */
    double round_cpu_us;
    double round_rate;
    double round_p50_us;
    double round_p99_us;
    double round_busy;
    uint64_t round_clock_ns;
    uint64_t round_core_ns;
};

struct proxy_table {
    struct bench *bench;
    struct evq evq;
    struct origin *origin;
    char dir[64];
    struct subject subjects[PEER_COUNT];
    char void_why[160]; /* an error or a wrong byte: the row is void */
    double foreign;     /* of the row's last round, part of the machine */
    double foreign_sum; /* of the rounds that are shown */
    double steal;
    double steal_sum;
    int quiet_count;
    int disturbed_count;
    int is_disturbed; /* too few quiet rounds: the others are shown */
};

/* ---- One block ----------------------------------------------------------- */

static void make_void(struct proxy_table *table, const struct subject *subject,
                      const struct gen_stats *stats, int err)
{
    int kind = 0;

    if (table->void_why[0])
        return;
    while (kind + 1 < GEN_ERR_COUNT && !stats->errors_by_kind[kind])
        kind++;
    snprintf(table->void_why, sizeof(table->void_why),
             "%s: %llu of %llu requests failed (%s%s)",
             peer_names[subject->peer.kind],
             (unsigned long long)stats->errors,
             (unsigned long long)stats->sent, gen_err_text[kind],
             err ? ", the run was refused" : "");
}

static void run_block(struct proxy_table *table, struct subject *subject,
                      uint64_t duration_ns)
{
    const uint64_t clock_ns = proc_cpu_ns(subject->peer.pid);
    const uint64_t core_ns = machine_cpu_busy_ns(PROXY_CPU);
    const uint64_t bad = origin_bad_requests(table->origin);
    struct gen_stats stats;
    const int err = gen_run(subject->gen, duration_ns);

    subject->round_clock_ns = proc_cpu_ns(subject->peer.pid) - clock_ns;
    subject->round_core_ns = machine_cpu_busy_ns(PROXY_CPU) - core_ns;
    gen_read_stats(subject->gen, &stats);
    if (err || stats.errors > 0 || stats.completed == 0 ||
        stats.errors_by_kind[GEN_ERR_CONNECT] > 0 ||
        origin_bad_requests(table->origin) != bad) {
        make_void(table, subject, &stats, err);
        return;
    }
    const struct hist *const latency = gen_latency(subject->gen);

    subject->round_cpu_us = (double)subject->round_clock_ns / 1e3 /
                            (double)stats.completed;
    subject->round_rate =
        (double)stats.completed * 1e9 / (double)stats.elapsed_ns;
    subject->round_busy = (double)subject->round_clock_ns * 100 /
                          (double)stats.elapsed_ns;
    subject->round_p50_us = (double)hist_percentile(latency, 50) / 1e3;
    subject->round_p99_us = (double)hist_percentile(latency, 99) / 1e3;
}

/* ---- Rounds -------------------------------------------------------------- */

static void keep_round(struct proxy_table *table, int is_quiet)
{
    for (int i = 0; i < PEER_COUNT; i++) {
        struct subject *const subject = &table->subjects[i];
        struct found *const found =
            is_quiet ? &subject->found : &subject->disturbed;

        if (!subject->gen)
            continue;
        samples_add(&found->cpu_us, subject->round_cpu_us);
        samples_add(&found->rate, subject->round_rate);
        samples_add(&found->p50_us, subject->round_p50_us);
        samples_add(&found->p99_us, subject->round_p99_us);
        samples_add(&found->busy, subject->round_busy);
        found->clock_ns += subject->round_clock_ns;
        found->core_ns += subject->round_core_ns;
    }
}

/* Every subject once, from another one first each time. Returns 1 when it
 * was quiet: nobody else used more than a twentieth of the machine. */
static int run_round(struct proxy_table *table, int number)
{
    struct machine_time before;
    struct machine_time after;
    uint64_t ours_ns = 0;

    machine_read_time(&before);
    for (int i = 0; i < PEER_COUNT && !table->void_why[0]; i++) {
        struct subject *const subject =
            &table->subjects[(i + number) % PEER_COUNT];

        if (!subject->gen)
            continue;
        run_block(table, subject, BLOCK_NS);
        ours_ns += subject->round_clock_ns;
    }
    machine_read_time(&after);
    ours_ns += after.own_ns - before.own_ns;
    const uint64_t busy_ns = after.busy_ns - before.busy_ns;
    const double all_ns = (double)(after.wall_ns - before.wall_ns) *
                          machine_cpu_count();

    table->foreign =
        busy_ns > ours_ns ? (double)(busy_ns - ours_ns) / all_ns : 0;
    table->steal = (double)(after.steal_ns - before.steal_ns) / all_ns;
    return table->foreign <= FOREIGN_MAX;
}

/* Until enough quiet rounds were seen, or twice as many in all. */
static void run_rounds(struct proxy_table *table, int round_count)
{
    double foreign[2] = { 0 };
    double steal[2] = { 0 };

    table->quiet_count = 0;
    table->disturbed_count = 0;
    for (int i = 0; table->quiet_count < round_count && i < round_count * 2;
         i++) {
        const int is_quiet = run_round(table, i);

        if (table->void_why[0])
            return;
        keep_round(table, is_quiet);
        table->quiet_count += is_quiet;
        table->disturbed_count += !is_quiet;
        foreign[is_quiet] += table->foreign;
        steal[is_quiet] += table->steal;
    }
    table->is_disturbed = table->quiet_count < ROUNDS_MIN;
    table->foreign_sum = foreign[!table->is_disturbed];
    table->steal_sum = steal[!table->is_disturbed];
    if (!table->is_disturbed)
        return;
    for (int i = 0; i < PEER_COUNT; i++)
        table->subjects[i].found = table->subjects[i].disturbed;
}

/* ---- Rows ---------------------------------------------------------------- */

static int make_gen(struct proxy_table *table, struct subject *subject,
                    const struct row_spec *spec)
{
    struct gen_options options;
    char addr[32];

    gen_options_init(&options);
    snprintf(addr, sizeof(addr), "127.0.0.1:%u", subject->peer.port);
    int err = gen_options_set_target(&options, addr, "/");

    if (!err)
        err = gen_options_set_request(
            &options, "GET",
            spec->is_large ? ORIGIN_LARGE_PATH : ORIGIN_SMALL_PATH, addr,
            spec->is_browser ? browser_fields : small_fields, NULL, 0);
    options.conn_count = CONN_COUNT;
    options.rate_per_s = spec->rate_per_s;
    options.spin_ns = BLOCK_NS;
    options.congestion = "reno";
    options.expect_status = 200;
    options.expect_body = origin_body(table->origin, spec->is_large);
    options.expect_body_len =
        spec->is_large ? ORIGIN_LARGE_LEN : ORIGIN_SMALL_LEN;
    if (!err)
        err = gen_new(&options, &table->evq, &subject->gen);
    gen_options_fini(&options);
    return err;
}

/* Generators for all that run, and one block each that is not counted. */
static int begin_row(struct proxy_table *table, const struct row_spec *spec)
{
    table->void_why[0] = '\0';
    for (int i = 0; i < PEER_COUNT; i++) {
        struct subject *const subject = &table->subjects[i];

        if (subject->peer.pid <= 0)
            continue;
        const int err = make_gen(table, subject, spec);

        if (err < 0)
            return err;
        memset(&subject->found, 0, sizeof(subject->found));
        memset(&subject->disturbed, 0, sizeof(subject->disturbed));
        run_block(table, subject, WARMUP_NS);
    }
    return 0;
}

static void end_row(struct proxy_table *table)
{
    for (int i = 0; i < PEER_COUNT; i++) {
        gen_free(table->subjects[i].gen);
        table->subjects[i].gen = NULL;
    }
}

/* The larger of the two ways to count: where the core was busy for longer
 * than the process ran, all of the row's blocks are scaled up by that. */
static void apply_core_time(struct proxy_table *table)
{
    for (int i = 0; i < PEER_COUNT; i++) {
        struct found *const found = &table->subjects[i].found;

        if (found->clock_ns == 0 || found->core_ns <= found->clock_ns)
            continue;
        const double factor =
            (double)found->core_ns / (double)found->clock_ns;

        for (size_t k = 0; k < found->cpu_us.count; k++)
            found->cpu_us.values[k] *= factor;
    }
}

static void print_row(struct proxy_table *table, const struct row_spec *spec)
{
    struct bench *const bench = table->bench;

    for (int i = 0; i < PEER_COUNT; i++) {
        const struct found *const subject = &table->subjects[i].found;
        const char *const name = peer_names[i];
        struct spread spread = samples_spread(&subject->cpu_us);

        if (spread.count == 0)
            continue;
        bench_row(bench, spec->name, name, "us/req", &spread);
        spread = samples_spread(&subject->rate);
        bench_row(bench, spec->name, name, "req/s", &spread);
        /* Below 100: the generator was at its end before the proxy. */
        spread = samples_spread(&subject->busy);
        bench_row(bench, spec->name, name, "% busy", &spread);
        if (spec->rate_per_s <= 0)
            continue;
        spread = samples_spread(&subject->p50_us);
        bench_row(bench, spec->name, name, "us p50", &spread);
        spread = samples_spread(&subject->p99_us);
        bench_row(bench, spec->name, name, "us p99", &spread);
    }
    const int shown =
        table->is_disturbed ? table->disturbed_count : table->quiet_count;

    bench_note(bench, "%s: foreign cpu %.1f %%, steal %.1f %%; %d rounds "
                      "quiet, %d disturbed; shown: the %s ones",
               spec->name, table->foreign_sum * 100 / shown,
               table->steal_sum * 100 / shown, table->quiet_count,
               table->disturbed_count,
               table->is_disturbed ? "disturbed" : "quiet");
}

/* ---- Claims -------------------------------------------------------------- */

enum measure { CPU = 0, RATE, P50 };

static const struct samples *samples_of(const struct subject *subject,
                                        enum measure measure)
{
    if (measure == CPU)
        return &subject->found.cpu_us;
    return measure == RATE ? &subject->found.rate : &subject->found.p50_us;
}

/* One ratio: judged where the row has a key and a bound, else a note. */
static void compare(struct proxy_table *table, const struct row_spec *spec,
                    enum peer_kind kind, enum peer_kind peer,
                    enum measure measure, double bound)
{
    static const char *const measures[] = { "cpu", "rate", "p50" };
    static const char *const shorts[PEER_COUNT] = { "epoll", "token", "nginx",
                                                    "haproxy", "relay" };
    const struct subject *const ours = &table->subjects[kind];
    const struct subject *const theirs = &table->subjects[peer];
    struct spread ratio = samples_ratio(samples_of(ours, measure),
                                        samples_of(theirs, measure));
    const int is_judged = spec->key && bound > 0;
    char name[BENCH_NAME_CAP];

    if (!is_judged) {
        if (ratio.count > 0)
            bench_note(table->bench, "%s: %s %s is %.2fx %s [%.2f %.2f]",
                       spec->name, peer_names[kind], measures[measure],
                       ratio.median, peer_names[peer], ratio.q1, ratio.q3);
        return;
    }
    snprintf(name, sizeof(name), "proxy.%s_%s_%s_vs_%s", spec->key,
             shorts[kind], measures[measure], shorts[peer]);
    if (table->void_why[0])
        bench_skip(table->bench, name, table->void_why);
    else if (ours->peer.pid <= 0)
        bench_skip(table->bench, name, ours->peer.why);
    else if (theirs->peer.pid <= 0)
        bench_skip(table->bench, name, theirs->peer.why);
    else if (table->is_disturbed || ratio.count < ROUNDS_MIN)
        bench_skip(table->bench, name,
                   "void: more than 5 % of foreign CPU in most rounds");
    else
        bench_target(table->bench, name, &ratio,
                     measure == RATE ? BENCH_AT_LEAST : BENCH_AT_MOST, bound);
}

static void compare_all(struct proxy_table *table,
                        const struct row_spec *spec)
{
    for (int i = PEER_MYRA_EPOLL; i <= PEER_MYRA_TOKEN; i++) {
        compare(table, spec, i, PEER_NGINX, CPU, spec->cpu_vs_nginx[i]);
        if (spec->rate_per_s > 0)
            compare(table, spec, i, PEER_NGINX, P50, 0);
        else
            compare(table, spec, i, PEER_NGINX, RATE, spec->rate_vs_nginx);
        compare(table, spec, i, PEER_RELAY, CPU, spec->cpu_vs_relay);
    }
    compare(table, spec, PEER_HAPROXY, PEER_NGINX, CPU, 0);
    compare(table, spec, PEER_RELAY, PEER_NGINX, CPU, 0);
}

static void run_row(struct proxy_table *table, const struct row_spec *spec)
{
    const int round_count =
        table->bench->is_quick ? ROUNDS_MIN : spec->round_count;

    if (!machine_wait_quiet(table->bench->is_quick ? 0 : QUIET_LIMIT_NS))
        bench_note(table->bench, "%s: begun on a machine that is not quiet",
                   spec->name);
    const int err = begin_row(table, spec);

    if (err < 0)
        snprintf(table->void_why, sizeof(table->void_why), "set-up: %s",
                 strerror(-err));
    if (!table->void_why[0])
        run_rounds(table, round_count);
    /* In disturbed rounds the core was busy for others too. */
    if (!table->is_disturbed)
        apply_core_time(table);
    if (table->void_why[0])
        bench_note(table->bench, "%s: void: %s", spec->name,
                   table->void_why);
    else
        print_row(table, spec);
    compare_all(table, spec);
    end_row(table);
}

/* ---- The table ----------------------------------------------------------- */

static void start_peers(struct proxy_table *table, int has_log)
{
    const struct peer_options options = {
        .dir = table->dir,
        .origin_port = origin_port(table->origin),
        .cpu = PROXY_CPU,
        .has_log = has_log,
    };

    for (int i = 0; i < PEER_COUNT; i++) {
        struct peer *const peer = &table->subjects[i].peer;

        if (peer_start(peer, i, &options) < 0 && !has_log)
            bench_note(table->bench, "%s: left out: %s", peer_names[i],
                       peer->why);
    }
}

static void stop_peers(struct proxy_table *table)
{
    for (int i = 0; i < PEER_COUNT; i++)
        peer_stop(&table->subjects[i].peer);
    /* Their connections to the origin end; take those events now. */
    while (evq_wait(&table->evq, 1000000) > 0)
        ;
}

static const struct row_spec rows[] = {
    { .name = "128 B, saturated", .key = "sat128", .round_count = 21,
      .cpu_vs_nginx = { 0.60, 0.60 }, .rate_vs_nginx = 1.7,
      .cpu_vs_relay = 1.20 },
    { .name = "128 B, browser head", .is_browser = 1, .round_count = 9 },
    { .name = "16 KiB, saturated", .is_large = 1, .round_count = 9 },
    { .name = "16 KiB, browser head", .is_large = 1, .is_browser = 1,
      .round_count = 9 },
    { .name = "128 B, 9537 req/s", .rate_per_s = FIXED_RATE,
      .round_count = 11 },
};

static const struct row_spec logged_row = {
    .name = "128 B, access log on", .round_count = 9
};

static int open_table(struct proxy_table *table)
{
    int err = peer_dir_open(table->dir, sizeof(table->dir));

    if (!err)
        err = evq_init(&table->evq);
    if (!err)
        err = origin_new(&table->evq, &table->origin);
    return err;
}

static void run_all_rows(struct proxy_table *table)
{
    start_peers(table, 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        run_row(table, &rows[i]);
    stop_peers(table);
    start_peers(table, 1);
    run_row(table, &logged_row);
    stop_peers(table);
}

void bench_proxy(struct bench *bench)
{
    static struct proxy_table table;
    int err;

    memset(&table, 0, sizeof(table));
    table.bench = bench;
    table.evq.fd = -1;
    if (machine_cpu_count() < 2) {
        bench_fail(bench, "needs two processors: one for the proxy, one for "
                          "the load");
        return;
    }
    err = proc_pin(LOAD_CPU);
    if (!err)
        err = open_table(&table);
    if (err < 0)
        bench_fail(bench, "set-up: %s", strerror(-err));
    else
        run_all_rows(&table);
    origin_free(table.origin);
    evq_fini(&table.evq);
    if (table.dir[0])
        peer_dir_close(table.dir);
    proc_unpin();
}
