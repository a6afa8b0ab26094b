/* SPDX-License-Identifier: MIT */
/*
 * myra-bench: measured tables, with the peers in the same run.
 */
#include "config.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <myra/alloc.h>
#include <myra/err.h>

#include "bench/bench.h"
#include "bench/worker.h"

#define EXIT_USAGE 2

static const struct {
    const char *name;
    void (*run)(struct bench *bench);
    const char *what;
} tables[] = {
    { "pool", bench_pool, "acquire + release of a 4 KiB buffer" },
    { "alloc", bench_alloc, "allocations per operation after warm-up" },
    { "idle", bench_idle, "memory of an idle client + upstream pair" },
    { "proxy", bench_proxy, "CPU and rate of a proxied request" },
};

#define TABLE_COUNT (sizeof(tables) / sizeof(tables[0]))

static void print_help(FILE *out)
{
    fputs("usage: myra-bench TABLE [--json FILE] [--html FILE] [--check] "
          "[--quick]\n\n",
          out);
    for (size_t i = 0; i < TABLE_COUNT; i++)
        fprintf(out, "  %-8s %s\n", tables[i].name, tables[i].what);
    fputs("  all      every table\n"
          "\n"
          "  --json FILE  rows and targets as JSON; - for standard output\n"
          "  --html FILE  the same as one page\n"
          "  --check      exit with 0 only when every target was met, 4 when\n"
          "               one was missed, 5 when one was skipped or void or\n"
          "               none was judged\n"
          "  --quick      fewer samples; judges nothing\n"
          "  --help, --version\n"
          "\n"
          "Peers (nginx, haproxy, allocators) are found on PATH or as\n"
          "installed libraries and left out by name when absent.\n",
          out);
}

/* 0: go on, 1: done, negative: usage. */
static int read_options(struct bench *bench, int argc, char **argv)
{
    static const struct option options[] = {
        { "json", required_argument, NULL, 'j' },
        { "html", required_argument, NULL, 'w' },
        { "check", no_argument, NULL, 'c' },
        { "quick", no_argument, NULL, 'q' },
        { "help", no_argument, NULL, 'h' },
        { "version", no_argument, NULL, 'v' },
        { NULL, 0, NULL, 0 },
    };
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 'j':
            bench->json_path = optarg;
            break;
        case 'w':
            bench->html_path = optarg;
            break;
        case 'c':
            bench->is_check = 1;
            break;
        case 'q':
            bench->is_quick = 1;
            break;
        case 'h':
            print_help(stdout);
            return 1;
        case 'v':
            puts("myra-bench " VERSION);
            return 1;
        default:
            return -1;
        }
    }
    return argc == optind + 1 ? 0 : -1;
}

/* Runs the named table, or all. 0 when there was one of that name. */
static int run_tables(struct bench *bench, const char *name)
{
    int found = 0;

    for (size_t i = 0; i < TABLE_COUNT; i++) {
        if (strcmp(name, "all") != 0 && strcmp(name, tables[i].name) != 0)
            continue;
        found = 1;
        bench->table = tables[i].name;
        tables[i].run(bench);
    }
    return found ? 0 : -1;
}

static int is_table(const char *name)
{
    for (size_t i = 0; i < TABLE_COUNT; i++)
        if (strcmp(name, tables[i].name) == 0)
            return 1;
    return strcmp(name, "all") == 0;
}

static int write_file(const struct bench *bench, const char *path,
                      int (*write)(const struct bench *, const char *))
{
    const int err = path ? write(bench, path) : 0;

    if (err < 0)
        fprintf(stderr, "myra-bench: %s: %s\n", path, myra_strerror(err));
    return err;
}

/* Two descriptors a pair and a side: more than the usual soft limit. */
static void raise_fd_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static void print_card(const struct bench *bench)
{
    const struct machine_card *const card = &bench->card;

    printf("commit %s, %s, %d cpus, %s, simd %s\n", card->commit, card->cpu,
           card->cpu_count, card->kernel, card->simd);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static struct bench bench;
    char text[256];

    if (argc > 1 && strcmp(argv[1], "--worker") == 0)
        return worker_main(argc - 2, argv + 2);
    if (myra_env_check(text, sizeof(text)) < 0) {
        fprintf(stderr, "myra-bench: %s\n", text);
        return EXIT_USAGE;
    }
    bench.argv = argv;
    const int err = read_options(&bench, argc, argv);

    if (err > 0)
        return EXIT_SUCCESS;
    if (err < 0 || !is_table(argv[optind])) {
        print_help(stderr);
        return EXIT_USAGE;
    }
    signal(SIGPIPE, SIG_IGN);
    raise_fd_limit();
    machine_read_card(&bench.card);
    print_card(&bench);
    run_tables(&bench, argv[optind]);
    if (write_file(&bench, bench.json_path, bench_write_json) < 0 ||
        write_file(&bench, bench.html_path, bench_write_html) < 0)
        return EXIT_FAILURE;
    return bench_exit_status(&bench);
}
