/* SPDX-License-Identifier: MIT */
/*
 * /proc/stat and /proc/cpuinfo.
 */
#include "config.h"

#include "bench/machine.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <myra/alloc.h>

#ifndef BENCH_COMMIT
#define BENCH_COMMIT "unknown"
#endif

#define QUIET_WINDOW_NS 250000000L

int machine_cpu_count(void)
{
    return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

static uint64_t tick_ns(void)
{
    return UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK);
}

/* Reads the line of one processor, or of all (name "cpu"). */
static void read_stat(const char *name, uint64_t *busy_ns, uint64_t *steal_ns)
{
    unsigned long long user, nice, system, idle, wait, irq, soft, steal;
    const size_t name_len = strlen(name);
    char line[512];

    *busy_ns = 0;
    *steal_ns = 0;
    FILE *const file = fopen("/proc/stat", "r");

    if (!file)
        return;
    while (fgets(line, sizeof(line), file)) {
        if (strncmp(line, name, name_len) != 0 || line[name_len] != ' ')
            continue;
        if (sscanf(line + name_len, "%llu %llu %llu %llu %llu %llu %llu %llu",
                   &user, &nice, &system, &idle, &wait, &irq, &soft,
                   &steal) != 8)
            break;
        *busy_ns = (user + nice + system + irq + soft) * tick_ns();
        *steal_ns = steal * tick_ns();
        break;
    }
    fclose(file);
}

uint64_t machine_cpu_busy_ns(int cpu)
{
    uint64_t busy_ns;
    uint64_t steal_ns;
    char name[16];

    snprintf(name, sizeof(name), "cpu%d", cpu);
    read_stat(name, &busy_ns, &steal_ns);
    return busy_ns;
}

static uint64_t own_cpu_ns(void)
{
    struct timespec used;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

void machine_read_time(struct machine_time *time)
{
    read_stat("cpu", &time->busy_ns, &time->steal_ns);
    time->wall_ns = myra_clock_ns();
    time->own_ns = own_cpu_ns();
}

int machine_wait_quiet(uint64_t limit_ns)
{
    const struct timespec window = { .tv_nsec = QUIET_WINDOW_NS };
    const uint64_t start_ns = myra_clock_ns();

    do {
        struct machine_time before;
        struct machine_time after;

        machine_read_time(&before);
        nanosleep(&window, NULL);
        machine_read_time(&after);
        if (after.busy_ns - before.busy_ns <= tick_ns())
            return 1;
    } while (myra_clock_ns() - start_ns < limit_ns);
    return 0;
}

static void read_cpu_name(char *name, size_t cap)
{
    char line[256];

    snprintf(name, cap, "unknown");
    FILE *const file = fopen("/proc/cpuinfo", "r");

    if (!file)
        return;
    while (fgets(line, sizeof(line), file)) {
        char *const colon = strchr(line, ':');

        if (strncmp(line, "model name", 10) != 0 || !colon)
            continue;
        colon[1 + strcspn(colon + 1, "\n")] = '\0';
        snprintf(name, cap, "%s", colon[1] == ' ' ? colon + 2 : colon + 1);
        break;
    }
    fclose(file);
}

void machine_read_card(struct machine_card *card)
{
    struct utsname system;

    memset(card, 0, sizeof(*card));
    snprintf(card->commit, sizeof(card->commit), "%s", BENCH_COMMIT);
    read_cpu_name(card->cpu, sizeof(card->cpu));
    if (uname(&system) == 0)
        snprintf(card->kernel, sizeof(card->kernel), "%.20s %.100s",
                 system.sysname, system.release);
    card->cpu_count = machine_cpu_count();
    snprintf(card->simd, sizeof(card->simd), "%s", myra_simd_level_name());
}
