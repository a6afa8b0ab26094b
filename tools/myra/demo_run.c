/* SPDX-License-Identifier: MIT */
/*
 * The course of `myra demo`: load at a fixed rate, during which one
 * origin is killed and comes back; then two seconds at full speed. The
 * generator runs in its own thread, and this one only looks at it.
 */
#include "config.h"

#include "tools/myra/demo_run.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include <myra/myra.h>

#define TICK_NS 100000000
#define WARM_UP_NS UINT64_C(300000000)
#define VICTIM 0
#define KILL_AT 0.30 /* of the fixed-rate part */
#define BACK_AT 0.50

/* In the generator's thread, every 200 ms. The proxy's clock is read here,
 * so that its time and the number of answers belong together. */
static void on_snapshot(void *user, const struct gen_snapshot *shot)
{
    struct demo_watch *watch = user;
    const uint64_t cpu_ns = demo_cpu_ns(watch->proxy);

    pthread_mutex_lock(&watch->lock);
    watch->shot = *shot;
    if (watch->first_cpu_ns == 0) {
        watch->first_cpu_ns = cpu_ns;
        watch->first_completed = shot->total.completed;
    }
    if (!shot->is_last) {
        watch->last_cpu_ns = cpu_ns;
        watch->last_completed = shot->total.completed;
    }
    pthread_mutex_unlock(&watch->lock);
}

static void reset_watch(struct demo *demo)
{
    struct demo_watch *watch = &demo->watch;

    pthread_mutex_lock(&watch->lock);
    memset(&watch->shot, 0, sizeof watch->shot);
    watch->first_cpu_ns = watch->last_cpu_ns = 0;
    watch->first_completed = watch->last_completed = 0;
    watch->proxy = demo->proxy;
    pthread_mutex_unlock(&watch->lock);
}

/* rate 0: as fast as the answers come. */
static int make_gen(struct demo *demo, double rate, struct gen **gen_out)
{
    struct gen_options options;
    char target[32];
    int err;

    gen_options_init(&options);
    snprintf(target, sizeof target, "127.0.0.1:%u", demo->proxy_port);
    err = gen_options_set_target(&options, target, "/");
    options.conn_count = DEMO_CONN_COUNT;
    options.rate_per_s = rate;
    options.expect_status = 200;
    options.expect_body_len = DEMO_BODY_LEN;
    options.on_snapshot = on_snapshot;
    options.snapshot_user = &demo->watch;
    if (err >= 0)
        err = gen_new(&options, NULL, gen_out);
    gen_options_fini(&options);
    /* The connections, here and behind the proxy, are opened untimed. */
    if (err >= 0)
        err = gen_run(*gen_out, WARM_UP_NS);
    if (err < 0)
        fprintf(stderr, "myra demo: load: %s\n", myra_strerror(err));
    return err < 0 ? -1 : 0;
}

static void read_origin_rates(struct demo *demo, uint64_t now_ns)
{
    const double span_s = (double)(now_ns - demo->rates_at_ns) / 1e9;

    if (span_s < 0.4)
        return;
    for (int i = 0; i < DEMO_ORIGIN_COUNT; i++) {
        const uint64_t served = atomic_load_explicit(
            &demo->counters->served[i], memory_order_relaxed);

        demo->frame.origin_rates[i] =
            (double)(served - demo->served_before[i]) / span_s;
        demo->served_before[i] = served;
    }
    demo->rates_at_ns = now_ns;
}

static void draw(struct demo *demo, uint64_t start_ns, double done_s)
{
    struct demo_frame *frame = &demo->frame;
    const uint64_t now_ns = myra_clock_ns();
    struct gen_snapshot shot;

    pthread_mutex_lock(&demo->watch.lock);
    shot = demo->watch.shot;
    pthread_mutex_unlock(&demo->watch.lock);
    read_origin_rates(demo, now_ns);
    if (shot.interval_ns == 0)
        return; /* nothing was told yet */
    frame->total_s = demo->seconds;
    frame->elapsed_s = done_s + (double)(now_ns - start_ns) / 1e9;
    frame->rate_per_s = shot.interval_rate_per_s;
    frame->p50_ns = shot.interval_p50_ns;
    frame->p99_ns = shot.interval_p99_ns;
    frame->answered = demo->fixed.answered + shot.total.completed;
    frame->errors = demo->fixed.errors + shot.total.errors;
    for (int i = 0; i < DEMO_ORIGIN_COUNT; i++)
        frame->is_origin_up[i] = demo->origins[i] > 0;
    demo_view_draw(&demo->view, frame);
}

/* Kills the one origin when its time has come, and starts it again. */
static int follow_plan(struct demo *demo, double part, int *step)
{
    char text[96];

    if (*step == 0 && part >= KILL_AT) {
        snprintf(text, sizeof text, "%4.1f s  origin a killed (SIGKILL)",
                 demo->frame.elapsed_s);
        demo_end_process(&demo->origins[VICTIM], SIGKILL, 0);
        demo->frame.note = "origin a is dead, b answers all";
        demo_view_say(&demo->view, text);
        *step = 1;
    } else if (*step == 1 && part >= BACK_AT) {
        if (demo_start_origin(demo, VICTIM) < 0)
            return -1;
        snprintf(text, sizeof text, "%4.1f s  origin a started again",
                 demo->frame.elapsed_s);
        demo->frame.note = "both origins answer";
        demo_view_say(&demo->view, text);
        *step = 2;
    }
    return 0;
}

static void keep_result(struct demo *demo, struct gen *gen,
                        struct demo_result *result)
{
    const struct demo_watch *watch = &demo->watch;
    struct gen_stats stats;

    gen_read_stats(gen, &stats);
    result->answered = stats.completed;
    result->errors = stats.errors;
    for (int i = 0; i < GEN_ERR_COUNT; i++)
        demo->errors_by_kind[i] += stats.errors_by_kind[i];
    result->rate_per_s =
        (double)stats.completed * 1e9 / ((double)stats.elapsed_ns + 1);
    result->p50_ns = hist_percentile(gen_latency(gen), 50);
    result->p99_ns = hist_percentile(gen_latency(gen), 99);
    result->p999_ns = hist_percentile(gen_latency(gen), 99.9);
    if (watch->last_completed > watch->first_completed)
        result->cpu_ns =
            (double)(watch->last_cpu_ns - watch->first_cpu_ns) /
            (double)(watch->last_completed - watch->first_completed);
}

/* One run of the generator, watched from here. has_plan: with the kill. */
static int run_load(struct demo *demo, struct gen *gen, double seconds,
                    double done_s, int has_plan)
{
    const struct timespec tick = { .tv_nsec = TICK_NS };
    const uint64_t start_ns = myra_clock_ns();
    int step = 0;
    int is_lost = 0;
    int err;

    reset_watch(demo);
    err = gen_start(gen, (uint64_t)(seconds * 1e9));
    if (err < 0) {
        fprintf(stderr, "myra demo: load: %s\n", myra_strerror(err));
        return -1;
    }
    while (gen_is_running(gen)) {
        const double now_s = (double)(myra_clock_ns() - start_ns) / 1e9;

        if (demo_is_stopped || demo_has_ended(&demo->proxy))
            is_lost = 1;
        if (!is_lost && has_plan)
            is_lost = follow_plan(demo, now_s / seconds, &step) < 0;
        if (is_lost)
            gen_stop(gen);
        else
            draw(demo, start_ns, done_s);
        nanosleep(&tick, NULL);
    }
    err = gen_join(gen);
    if (err < 0)
        fprintf(stderr, "myra demo: load: %s\n", myra_strerror(err));
    return err < 0 || is_lost ? -1 : 0;
}

static int run_part(struct demo *demo, double rate, double seconds,
                    double done_s, struct demo_result *result)
{
    struct gen *gen = NULL;
    int err = make_gen(demo, rate, &gen);

    if (err == 0)
        err = run_load(demo, gen, seconds, done_s, rate > 0);
    if (err == 0)
        keep_result(demo, gen, result);
    gen_free(gen);
    return err;
}

int demo_run(struct demo *demo)
{
    const double fixed_s = (double)demo->seconds - DEMO_FULL_SPEED_S;
    static char title[24];
    int err;

    pthread_mutex_init(&demo->watch.lock, NULL);
    snprintf(title, sizeof title, "at %u/s", demo->rate);
    demo->fixed.title = title;
    demo->full.title = "at full speed";
    demo->frame.note = "both origins answer";
    demo->rates_at_ns = myra_clock_ns();
    printf("myra demo: %u connections -> myra-proxy (127.0.0.1:%u) -> origin "
           "a, origin b\n\n",
           DEMO_CONN_COUNT, demo->proxy_port);
    err = run_part(demo, demo->rate, fixed_s, 0, &demo->fixed);
    if (err == 0) {
        demo->frame.note = "full speed: the next request follows the answer";
        err = run_part(demo, 0, DEMO_FULL_SPEED_S, fixed_s, &demo->full);
    }
    demo_view_clear(&demo->view);
    pthread_mutex_destroy(&demo->watch.lock);
    return err;
}
