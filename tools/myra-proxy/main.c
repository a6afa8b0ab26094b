/* SPDX-License-Identifier: MIT */
/*
 * myra-proxy: reads the options, starts the workers, and handles signals.
 *
 * The first worker runs in the main thread, so that a proxy of one worker is
 * a process of one thread: the kernel then shares no descriptor table and the
 * C library no lock, which is worth some percent of a request. Signals are
 * blocked in all other threads; in this one the handler only posts a task to
 * its loop.
 */
#include "config.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "proxy.h"

struct process {
    struct proxy_options options;
    struct worker *workers;
    uint32_t started_count;
    struct access_log *log;
    struct names *names;
    uint64_t start_ns;
    int is_draining;
};

static void print_log(void *ctx, enum myra_log_level level, const char *text)
{
    (void)ctx;
    (void)level;
    fprintf(stderr, "myra-proxy: %s\n", text);
}

/* The hard limit costs nothing until it is used. */
static void raise_descriptors(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 ||
        limit.rlim_cur == limit.rlim_max)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static void block_signals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGHUP);
    sigaddset(set, SIGUSR1);
    sigaddset(set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, set, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static int start_workers(struct process *process)
{
    const uint32_t count = (uint32_t)process->options.threads;
    uint32_t i;

    process->workers = calloc(count, sizeof(struct worker));
    if (!process->workers) {
        fprintf(stderr, "myra-proxy: out of memory\n");
        return -EXIT_FAILED;
    }
    for (i = 0; i < count; i++) {
        struct worker *worker = &process->workers[i];
        int err;

        worker->names = process->names;
        if (process->log) {
            worker->log = access_log_join(process->log);
            if (!worker->log)
                return -EXIT_FAILED;
        }
        err = worker_init(worker, &process->options, i,
                          i ? process->workers : NULL);
        if (err)
            return err;
    }
    process->started_count = 1;
    for (i = 1; i < count; i++) {
        struct worker *worker = &process->workers[i];

        if (pthread_create(&worker->thread, NULL, worker_run, worker) != 0) {
            fprintf(stderr, "myra-proxy: cannot start a thread\n");
            return -EXIT_FAILED;
        }
        process->started_count++;
    }
    return 0;
}

/* One line a listener, with the port that the system chose. */
static void say_ready(struct process *process)
{
    const struct worker *worker = &process->workers[0];
    uint32_t i;

    if (process->options.is_quiet)
        return;
    for (i = 0; i < worker->listener_count; i++) {
        const struct site *site = worker->fronts[i].site;
        char text[128];
        uint32_t j;

        myra_listener_addr(worker->listeners[i], text, sizeof(text));
        fprintf(stderr, "myra-proxy: listening on %s", text);
        for (j = 0; j < site->target_count; j++)
            fprintf(stderr, "%s %s", j ? "," : " for",
                    site->targets[j].text);
        fprintf(stderr, "%s\n", site->is_forward ? " (forward)" : "");
    }
    fprintf(stderr,
            "myra-proxy: ready: %u thread%s, backend %s (%s), SIMD %s\n",
            (unsigned)process->options.threads,
            process->options.threads > 1 ? "s" : "",
            myra_loop_backend_name(worker->loop),
            myra_loop_backend_reason(worker->loop), myra_simd_level_name());
}

static int all_ended(struct process *process)
{
    uint32_t i;

    for (i = 0; i < process->started_count; i++) {
        struct worker *worker = &process->workers[i];
        int has_ended;

        pthread_mutex_lock(&worker->lock);
        has_ended = worker->has_ended;
        pthread_mutex_unlock(&worker->lock);
        if (!has_ended)
            return 0;
    }
    return 1;
}

static void for_all(struct process *process, void (*fn)(struct worker *))
{
    uint32_t i;

    for (i = 0; i < process->started_count; i++)
        fn(&process->workers[i]);
}

static void take_signal(struct process *process, int number)
{
    if (number == SIGTERM || number == SIGINT) {
        if (!process->is_draining && !process->options.is_quiet)
            fprintf(stderr, "myra-proxy: draining\n");
        for_all(process,
                process->is_draining ? worker_post_stop : worker_post_drain);
        process->is_draining = 1;
    } else if (number != SIGUSR2 && process->log) {
        access_log_reopen(process->log);
    }
}

/* ---- Signals while the first worker runs -------------------------------- */

static struct {
    struct process *process;
    struct myra_task task;
    uint32_t taken; /* a bit a signal; atomic */
    uint32_t terms; /* SIGTERM and SIGINT, counted: the second means more */
    int is_posted;
} pending;

/* In the first worker's loop. */
static void on_signals(struct myra_loop *loop, struct myra_task *task)
{
    uint32_t taken, terms;

    (void)loop;
    (void)task;
    __atomic_store_n(&pending.is_posted, 0, __ATOMIC_SEQ_CST);
    taken = __atomic_exchange_n(&pending.taken, 0, __ATOMIC_SEQ_CST);
    terms = __atomic_exchange_n(&pending.terms, 0, __ATOMIC_SEQ_CST);
    if (taken & (1u << SIGHUP | 1u << SIGUSR1))
        take_signal(pending.process, SIGHUP);
    for (; terms > 0; terms--)
        take_signal(pending.process, SIGTERM);
}

/* myra_post is a compare-and-swap and a write: safe in a handler. */
static void on_signal(int number)
{
    if (number == SIGTERM || number == SIGINT)
        __atomic_fetch_add(&pending.terms, 1, __ATOMIC_SEQ_CST);
    else
        __atomic_fetch_or(&pending.taken, 1u << number, __ATOMIC_SEQ_CST);
    if (!__atomic_exchange_n(&pending.is_posted, 1, __ATOMIC_SEQ_CST))
        myra_post(pending.process->workers[0].loop, &pending.task);
}

/* Runs the first worker in this thread, with its signals. */
static void run_first(struct process *process, const sigset_t *set)
{
    static const int numbers[] = { SIGTERM, SIGINT, SIGHUP, SIGUSR1,
                                   SIGUSR2 };
    struct sigaction action;
    size_t i;

    pending.process = process;
    pending.task.fn = on_signals;
    memset(&action, 0, sizeof(action));
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        sigaction(numbers[i], &action, NULL);
    pthread_sigmask(SIG_UNBLOCK, set, NULL);
    worker_loop(&process->workers[0]);
    pthread_sigmask(SIG_BLOCK, set, NULL);
    worker_end(&process->workers[0]);
}

/* Until every other worker has ended too. */
static void serve_rest(struct process *process, const sigset_t *set)
{
    while (!all_ended(process)) {
        int number;

        if (sigwait(set, &number) == 0)
            take_signal(process, number);
    }
}

static int end_workers(struct process *process)
{
    uint32_t i;
    int status = 0;

    for (i = 0; i < process->started_count; i++) {
        const struct worker *worker = &process->workers[i];

        if (i > 0)
            pthread_join(worker->thread, NULL);
        if (worker->err < 0) {
            fprintf(stderr, "myra-proxy: event loop: %s\n",
                    myra_strerror(worker->err));
            status = EXIT_FAILED;
        }
    }
    return status;
}

static int write_report(struct process *process)
{
    const struct proxy_options *options = &process->options;
    int err;

    if (!options->report)
        return 0;
    err = stats_report(options->report, process->workers,
                       process->started_count, process->start_ns);
    if (!err)
        return 0;
    fprintf(stderr, "myra-proxy: --report %s: %s\n", options->report,
            myra_strerror(err));
    return EXIT_FAILED;
}

static int run(struct process *process, const sigset_t *set)
{
    int status = start_workers(process);

    if (status == 0) {
        say_ready(process);
        run_first(process, set);
        serve_rest(process, set);
    } else {
        for_all(process, worker_post_stop);
    }
    status = status ? -status : 0;
    if (end_workers(process))
        status = EXIT_FAILED;
    if (status == 0)
        status = write_report(process);
    return status;
}

static int open_helpers(struct process *process)
{
    int is_forward = 0;
    uint32_t i;

    if (process->options.access_log) {
        const int err = access_log_open(&process->options, &process->log);

        if (err)
            return -err;
    }
    /* Only a forward proxy looks names up while it serves. */
    for (i = 0; i < process->options.site_count; i++)
        is_forward |= process->options.sites[i].is_forward;
    if (!is_forward)
        return 0;
    process->names = names_new();
    if (process->names)
        return 0;
    fprintf(stderr, "myra-proxy: cannot start a thread\n");
    return EXIT_FAILED;
}

static void fini(struct process *process)
{
    uint32_t i;

    for (i = 0; process->workers && i < process->options.threads; i++)
        worker_fini(&process->workers[i]);
    names_free(process->names);
    access_log_close(process->log);
    free(process->workers);
    options_fini(&process->options);
}

static int configure(struct process *process, int argc, char **argv,
                     int *is_over)
{
    int err;

    *is_over = 1;
    err = options_parse(&process->options, argc, argv);
    if (err > 0)
        return 0;
    if (err == 0)
        err = options_resolve(&process->options);
    if (err)
        return -err;
    if (process->options.is_check) {
        printf("myra-proxy: the options are good\n");
        return 0;
    }
    *is_over = 0;
    return 0;
}

int main(int argc, char **argv)
{
    struct process process;
    char text[256];
    sigset_t set;
    int status, is_over;

    memset(&process, 0, sizeof(process));
    process.start_ns = myra_clock_ns();
    if (myra_env_check(text, sizeof(text)) < 0) {
        fprintf(stderr, "myra-proxy: %s\n", text);
        return EXIT_USAGE;
    }
    /* Large blocks always go back to the system when they are freed. */
    mallopt(M_MMAP_THRESHOLD, 128 * 1024);
    myra_set_log(print_log, NULL, MYRA_LOG_WARN);
    status = configure(&process, argc, argv, &is_over);
    if (!is_over) {
        raise_descriptors();
        block_signals(&set);
        status = open_helpers(&process);
        if (status == 0)
            status = run(&process, &set);
    }
    fini(&process);
    return status;
}
