/* SPDX-License-Identifier: MIT */
/* The report at the end: counters of all workers, and each one's own. */
#include "config.h"

#include "proxy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static void add(struct stats *sum, const struct stats *part)
{
    uint64_t *to = (uint64_t *)(void *)sum;
    const uint64_t *from = (const uint64_t *)(const void *)part;
    size_t i;

    /* Nothing but uint64_t is in there. */
    for (i = 0; i < sizeof(*sum) / sizeof(*to); i++)
        to[i] += from[i];
}

static void print(FILE *file, const char *name, uint64_t value)
{
    fprintf(file, "  \"%s\": %" PRIu64 ",\n", name, value);
}

static void print_text(FILE *file, const char *name, const char *text)
{
    const char *p;

    fprintf(file, "  \"%s\": \"", name);
    for (p = text; *p; p++)
        if (*p == '"' || *p == '\\' || (unsigned char)*p < 0x20)
            fprintf(file, "\\u%04x", (unsigned)(unsigned char)*p);
        else
            fputc(*p, file);
    fprintf(file, "\",\n");
}

static void print_sums(FILE *file, const struct stats *sum)
{
    static const char *const names[] = {
#define STATS_ERROR_NAME(name, text) text,
        STATS_ERROR_MAP(STATS_ERROR_NAME)
#undef STATS_ERROR_NAME
    };
    int i;

    print(file, "connections", sum->connections);
    print(file, "requests", sum->requests);
    print(file, "completed", sum->completed);
    fprintf(file, "  \"responses\": {");
    for (i = 1; i < 6; i++)
        fprintf(file, "%s\"%dxx\": %" PRIu64, i > 1 ? ", " : "", i,
                sum->responses[i]);
    fprintf(file, ", \"none\": %" PRIu64 "},\n  \"errors\": {",
            sum->responses[0]);
    for (i = 0; i < STATS_ERROR_COUNT; i++)
        fprintf(file, "%s\"%s\": %" PRIu64, i ? ", " : "", names[i],
                sum->errors[i]);
    fprintf(file, "},\n");
    print(file, "retries", sum->retries);
    print(file, "failovers", sum->failovers);
    print(file, "upstream_connects", sum->connects);
    print(file, "upstream_reuses", sum->reuses);
    print(file, "tunnels", sum->tunnels);
    print(file, "request_body_bytes", sum->request_body_bytes);
    print(file, "response_body_bytes", sum->response_body_bytes);
    print(file, "log_lines", sum->log_lines);
    print(file, "log_dropped", sum->log_dropped);
    print(file, "accept_waits", sum->accept_waits);
}

static void print_allocs(FILE *file, const struct worker *workers,
                         uint32_t count)
{
    uint64_t total = 0, after_warm = 0, bytes_total = 0;
    uint32_t i;

    for (i = 0; i < count; i++) {
        uint64_t allocs, frees, bytes;

        myra_counting_read(&workers[i].counting, &allocs, &frees, &bytes);
        total += allocs;
        bytes_total += bytes;
        if (workers[i].stats.requests >= 1000)
            after_warm += allocs - workers[i].stats.warm_allocs;
    }
    print(file, "allocations", total);
    print(file, "allocations_after_1000_requests", after_warm);
    print(file, "allocated_bytes", bytes_total);
}

static void print_loop(FILE *file, const struct worker *worker, int is_last)
{
    const struct myra_loop_stats s = worker->loop_stats;

    fprintf(file,
            "    {\"requests\": %" PRIu64 ", \"turns\": %" PRIu64
            ", \"syscalls\": %" PRIu64 ", \"accepts\": %" PRIu64
            ", \"connects\": %" PRIu64 ", \"closes\": %" PRIu64
            ", \"recv_events\": %" PRIu64 ", \"send_calls\": %" PRIu64
            ", \"recv_bytes\": %" PRIu64 ", \"sent_bytes\": %" PRIu64
            ", \"lease_copies\": %" PRIu64 ", \"starved\": %" PRIu64
            ", \"stale\": %" PRIu64 ", \"accept_pauses\": %" PRIu64
            ", \"conns\": %" PRIu32 ", \"bufs_leased\": %" PRIu32
            ", \"block_bytes\": %" PRIu64 "}%s\n",
            worker->stats.requests, s.turns, s.syscalls, s.accepts,
            s.connects, s.closes, s.recv_events, s.send_calls, s.recv_bytes,
            s.sent_bytes, s.lease_copies, s.starved, s.stale,
            s.accept_pauses, s.conns, s.bufs_leased, s.block_bytes,
            is_last ? "" : ",");
}

int stats_report(const char *path, const struct worker *workers,
                 uint32_t count, uint64_t start_ns)
{
    FILE *file = strcmp(path, "-") == 0 ? stdout : fopen(path, "w");
    struct stats sum;
    struct timespec cpu;
    uint32_t i;

    if (!file)
        return -errno;
    memset(&sum, 0, sizeof(sum));
    for (i = 0; i < count; i++)
        add(&sum, &workers[i].stats);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    fprintf(file, "{\n");
    print_text(file, "version", myra_version());
    print_text(file, "backend", workers[0].backend);
    print_text(file, "backend_reason", workers[0].backend_reason);
    print_text(file, "wait", workers[0].wait);
    print_text(file, "simd", myra_simd_level_name());
    print(file, "threads", count);
    print(file, "uptime_ns", myra_clock_ns() - start_ns);
    print(file, "cpu_ns",
          (uint64_t)cpu.tv_sec * 1000000000u + (uint64_t)cpu.tv_nsec);
    print_sums(file, &sum);
    print_allocs(file, workers, count);
    fprintf(file, "  \"loops\": [\n");
    for (i = 0; i < count; i++)
        print_loop(file, &workers[i], i + 1 == count);
    fprintf(file, "  ]\n}\n");
    if (file == stdout)
        return fflush(file) ? -errno : 0;
    return fclose(file) ? -errno : 0;
}
