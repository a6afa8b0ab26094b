/* SPDX-License-Identifier: MIT */
/* The state of a running demo: started by demo.c, driven by demo_run.c. */
#ifndef MYRA_DEMO_RUN_H
#define MYRA_DEMO_RUN_H

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/types.h>

#include "tools/myra-load/gen.h"
#include "tools/myra/demo.h"

#define DEMO_START_NS UINT64_C(5000000000)
#define DEMO_DRAIN_NS UINT64_C(3000000000)
#define DEMO_FULL_SPEED_S 2
#define DEMO_CONN_COUNT 64

/* What the generator's thread last told; under the lock. */
struct demo_watch {
    pthread_mutex_t lock;
    struct gen_snapshot shot;
    pid_t proxy;
    uint64_t first_cpu_ns, last_cpu_ns; /* of the proxy */
    uint64_t first_completed, last_completed;
};

struct demo {
    unsigned seconds, rate;
    struct demo_view view;
    char self_path[PATH_MAX];
    char proxy_path[PATH_MAX];
    char report_path[PATH_MAX];

    pid_t origins[DEMO_ORIGIN_COUNT]; /* 0: not running */
    uint16_t origin_ports[DEMO_ORIGIN_COUNT];
    pid_t proxy;
    uint16_t proxy_port;
    int counter_fd;
    struct demo_counters *counters; /* shared with the origins */

    struct demo_watch watch;
    struct demo_frame frame;
    uint64_t served_before[DEMO_ORIGIN_COUNT];
    uint64_t rates_at_ns;
    struct demo_result fixed, full;
    uint64_t errors_by_kind[GEN_ERR_COUNT];
};

/* Set by SIGINT, SIGTERM and SIGHUP. */
extern volatile sig_atomic_t demo_is_stopped;

/* Starts an origin, again on its port where it had one. 0, or -1 after a
 * line. */
int demo_start_origin(struct demo *demo, unsigned index);

/* Sends the load, kills an origin and starts it again, draws. 0; -1 when it
 * could not run to its end. */
int demo_run(struct demo *demo);

/* Prints the table and what to try next, after the proxy has ended. 0 when
 * every request was answered. */
int demo_conclude(const struct demo *demo);

#endif
