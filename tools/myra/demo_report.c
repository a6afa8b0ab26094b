/* SPDX-License-Identifier: MIT */
/*
 * The end of `myra demo`: its own figures, and those that the proxy wrote
 * into its report when it ended.
 */
#include "config.h"

#include "tools/myra/demo_run.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <myra/myra.h>

#define REPORT_MAX 65536
#define WARM_REQUESTS 1000 /* before the report begins to count */

/* The proxy's report as text; NULL when there is none. The caller frees. */
static char *read_report(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = malloc(REPORT_MAX);
    size_t len = 0;

    if (file != NULL && text != NULL)
        len = fread(text, 1, REPORT_MAX - 1, file);
    if (file != NULL)
        fclose(file);
    if (len == 0) {
        free(text);
        return NULL;
    }
    text[len] = '\0';
    return text;
}

/* What stands behind "name": in the report; NULL when it is not there. */
static const char *find_value(const char *report, const char *name)
{
    char key[64];
    const char *found;

    snprintf(key, sizeof key, "\"%s\": ", name);
    found = strstr(report, key);
    return found != NULL ? found + strlen(key) : NULL;
}

static int read_count(const char *report, const char *name, uint64_t *out)
{
    const char *value = find_value(report, name);

    return value != NULL && sscanf(value, "%" SCNu64, out) == 1 ? 0 : -1;
}

static void print_text(const char *report, const char *name,
                       const char *title)
{
    const char *value = find_value(report, name);

    if (value != NULL && *value == '"')
        printf("  %-26s %.*s\n", title, (int)strcspn(value + 1, "\""),
               value + 1);
}

static void print_report(const char *report)
{
    uint64_t allocs, requests, retries, failovers;

    if (read_count(report, "allocations_after_1000_requests", &allocs) == 0 &&
        read_count(report, "requests", &requests) == 0 &&
        requests > WARM_REQUESTS)
        printf("  %-26s %.4f   (%" PRIu64 " in %" PRIu64
               ", after the first %d)\n",
               "allocations per request",
               (double)allocs / (double)(requests - WARM_REQUESTS), allocs,
               requests - WARM_REQUESTS, WARM_REQUESTS);
    if (read_count(report, "retries", &retries) == 0 &&
        read_count(report, "failovers", &failovers) == 0)
        printf("  %-26s %" PRIu64 " sent again, %" PRIu64
               " to the other origin at once\n",
               "when origin a died", retries, failovers);
    print_text(report, "backend", "backend");
    print_text(report, "backend_reason", "  chosen because");
    print_text(report, "wait", "wait strategy");
    print_text(report, "simd", "SIMD level");
}

static void print_errors(const struct demo *demo)
{
    for (int i = 0; i < GEN_ERR_COUNT; i++)
        if (demo->errors_by_kind[i] > 0)
            printf("  failed: %" PRIu64 " %s\n", demo->errors_by_kind[i],
                   gen_err_text[i]);
}

static void print_next(const struct demo *demo)
{
    const char *slash = strrchr(demo->self_path, '/');
    const int len = (int)(slash - demo->self_path);
    const char *folder = demo->self_path;

    printf("\nNext, in %.*s:\n"
           "  MYRA_BACKEND=epoll ./myra demo     the same without io_uring\n"
           "  MYRA_SIMD=0 ./myra demo            and without vector kernels\n"
           "  ./myra-proxy --listen 8080 --to 127.0.0.1:9000\n"
           "                                     before a server of yours\n"
           "  ./myra-load --help                 load at a rate of yours\n"
           "  ./myra-bench proxy                 beside nginx and haproxy\n",
           len, folder);
}

int demo_conclude(const struct demo *demo)
{
    const uint64_t errors = demo->fixed.errors + demo->full.errors;
    const uint64_t answered = demo->fixed.answered + demo->full.answered;
    char *report = read_report(demo->report_path);

    demo_view_table(&demo->fixed, &demo->full);
    if (report != NULL)
        print_report(report);
    else
        printf("  (myra-proxy left no report)\n");
    free(report);
    print_errors(demo);
    printf("\n%" PRIu64 " requests, %" PRIu64 " errors, one origin killed on "
           "the way\n",
           answered, errors);
    print_next(demo);
    return errors == 0 && answered > 0 ? 0 : -1;
}
