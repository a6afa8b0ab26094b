/* SPDX-License-Identifier: MIT */
/*
 * `myra demo`: two origins, myra-proxy before them and load through it, all
 * on the loopback address and over in seconds. One origin is killed on the
 * way and comes back; no request may fail. The proxy is the real program; the
 * generator is that of myra-load.
 */
#include "config.h"

#include "tools/myra/beside.h"
#include "tools/myra/demo.h"
#include "tools/myra/demo_run.h"
#include "tools/myra/myra.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <myra/myra.h>

volatile sig_atomic_t demo_is_stopped;

static void on_signal(int number)
{
    (void)number;
    demo_is_stopped = 1;
}

static void catch_signals(void)
{
    struct sigaction action = { .sa_handler = on_signal };

    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, NULL);
}

static void print_help(void)
{
    puts("usage: myra demo [--seconds N] [--rate N]\n"
         "\n"
         "Starts two HTTP origins, myra-proxy before them and a load\n"
         "generator, all on 127.0.0.1; kills one origin on the way; shows\n"
         "that no request failed, and what a request cost. Needs no root.\n"
         "\n"
         "  --seconds N   length, 6 .. 60 (12)\n"
         "  --rate N      requests a second, 100 .. 50000 (5000)\n"
         "  --help        this text\n"
         "\n"
         "MYRA_BACKEND, MYRA_WAIT and MYRA_SIMD choose as everywhere.\n"
         "Exit status: 0 every request was answered, 1 not, 2 usage.");
}

static int read_number(const char *text, unsigned min, unsigned max,
                       unsigned *out)
{
    char *end;
    unsigned long value;

    if (text == NULL || text[0] < '0' || text[0] > '9')
        return -1;
    errno = 0;
    value = strtoul(text, &end, 10);
    if (*end != '\0' || errno != 0 || value < min || value > max)
        return -1;
    *out = (unsigned)value;
    return 0;
}

static int refuse(const char *option, const char *why)
{
    fprintf(stderr, "myra demo: %s %s, see myra demo --help\n", option, why);
    return STATUS_USAGE;
}

/* 0, or an exit status plus 1 when the demo ends here. */
static int read_options(int argc, char **argv, struct demo *demo)
{
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i];
        unsigned *value;
        unsigned min, max;

        if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
            print_help();
            return STATUS_OK + 1;
        }
        if (strcmp(name, "--seconds") == 0) {
            value = &demo->seconds;
            min = 6;
            max = 60;
        } else if (strcmp(name, "--rate") == 0) {
            value = &demo->rate;
            min = 100;
            max = 50000;
        } else {
            return refuse(name, "is unknown") + 1;
        }
        if (read_number(argv[++i], min, max, value) < 0)
            return refuse(name, "needs a number within its range") + 1;
        if (i >= argc)
            break;
    }
    return 0;
}

static int fail(const char *what, int err)
{
    fprintf(stderr, "myra demo: %s: %s\n", what, myra_strerror(err));
    return -1;
}

/* Memory that the origins, which are programs of their own, share. */
static int make_counters(struct demo *demo)
{
    demo->counter_fd = memfd_create("myra-demo", MFD_CLOEXEC);
    if (demo->counter_fd < 0 ||
        ftruncate(demo->counter_fd, sizeof *demo->counters) < 0)
        return fail("shared memory", -errno);
    demo->counters = mmap(NULL, sizeof *demo->counters, PROT_READ, MAP_SHARED,
                          demo->counter_fd, 0);
    if (demo->counters == MAP_FAILED) {
        demo->counters = NULL;
        return fail("shared memory", -errno);
    }
    return 0;
}

int demo_start_origin(struct demo *demo, unsigned index)
{
    char listen_text[16], counter_text[16], index_text[16];
    char *argv[] = { demo->self_path, (char[]){ "demo" }, (char[]){ "--serve" },
                     listen_text, counter_text, index_text, NULL };
    int keep_fds[] = { -1, demo->counter_fd, -1 };
    const int fd =
        demo_listen(demo->origin_ports[index], &demo->origin_ports[index]);

    if (fd < 0)
        return fail("cannot listen on 127.0.0.1", fd);
    snprintf(listen_text, sizeof listen_text, "%d", fd);
    snprintf(counter_text, sizeof counter_text, "%d", demo->counter_fd);
    snprintf(index_text, sizeof index_text, "%u", index);
    keep_fds[0] = fd;
    demo->origins[index] = demo_spawn(demo->self_path, argv, keep_fds);
    close(fd);
    if (demo->origins[index] < 0)
        return fail("cannot start an origin", demo->origins[index]);
    return 0;
}

static int make_report_file(struct demo *demo)
{
    const char *folder = getenv("TMPDIR");
    int fd;

    if (folder == NULL || folder[0] == '\0')
        folder = "/tmp";
    snprintf(demo->report_path, sizeof demo->report_path,
             "%s/myra-demo-XXXXXX", folder);
    fd = mkstemp(demo->report_path);
    if (fd < 0) {
        demo->report_path[0] = '\0';
        return fail(folder, -errno);
    }
    close(fd);
    return 0;
}

/* The port is free now; the proxy takes it a moment later. */
static int start_proxy(struct demo *demo)
{
    const int no_fds[] = { -1 };
    char address[DEMO_ORIGIN_COUNT + 1][32];
    char *argv[] = { demo->proxy_path, (char[]){ "--quiet" },
                     (char[]){ "--listen" }, address[0],
                     (char[]){ "--to" }, address[1],
                     (char[]){ "--to" }, address[2],
                     (char[]){ "--report" }, demo->report_path, NULL };
    const int fd = demo_listen(0, &demo->proxy_port);

    if (fd < 0)
        return fail("cannot listen on 127.0.0.1", fd);
    close(fd);
    snprintf(address[0], sizeof address[0], "127.0.0.1:%u", demo->proxy_port);
    for (int i = 0; i < DEMO_ORIGIN_COUNT; i++)
        snprintf(address[i + 1], sizeof address[i + 1], "127.0.0.1:%u",
                 demo->origin_ports[i]);
    demo->proxy = demo_spawn(demo->proxy_path, argv, no_fds);
    if (demo->proxy < 0)
        return fail(demo->proxy_path, demo->proxy);
    return 0;
}

/* Waits, with a deadline, until the proxy accepts connections. */
static int wait_for_proxy(struct demo *demo)
{
    const struct timespec pause = { .tv_nsec = 5000000 };
    const uint64_t until_ns = myra_clock_ns() + DEMO_START_NS;

    while (!demo_is_listening(demo->proxy_port)) {
        if (demo_has_ended(&demo->proxy)) {
            fputs("myra demo: myra-proxy ended at its start\n", stderr);
            return -1;
        }
        if (demo_is_stopped || myra_clock_ns() > until_ns) {
            fputs("myra demo: myra-proxy does not answer\n", stderr);
            return -1;
        }
        nanosleep(&pause, NULL);
    }
    return 0;
}

static int start_all(struct demo *demo)
{
    if (make_counters(demo) < 0 || make_report_file(demo) < 0)
        return -1;
    for (unsigned i = 0; i < DEMO_ORIGIN_COUNT; i++)
        if (demo_start_origin(demo, i) < 0)
            return -1;
    if (start_proxy(demo) < 0)
        return -1;
    return wait_for_proxy(demo);
}

/* The proxy writes its report when it is told to end. */
static void end_all(struct demo *demo)
{
    if (demo->proxy > 0 &&
        demo_end_process(&demo->proxy, SIGTERM, DEMO_DRAIN_NS) != 0)
        fputs("myra demo: myra-proxy did not end well\n", stderr);
    for (int i = 0; i < DEMO_ORIGIN_COUNT; i++)
        demo_end_process(&demo->origins[i], SIGKILL, 0);
}

static void clean_up(struct demo *demo)
{
    end_all(demo);
    if (demo->report_path[0] != '\0')
        unlink(demo->report_path);
    if (demo->counters != NULL)
        munmap(demo->counters, sizeof *demo->counters);
    if (demo->counter_fd >= 0)
        close(demo->counter_fd);
}

static int find_programs(struct demo *demo)
{
    const ssize_t len = readlink("/proc/self/exe", demo->self_path,
                                 sizeof demo->self_path - 1);

    if (len <= 0)
        return fail("/proc/self/exe", -errno);
    demo->self_path[len] = '\0';
    if (beside_find("myra-proxy", demo->proxy_path,
                    sizeof demo->proxy_path) < 0) {
        fputs("myra demo: myra-proxy was not found beside this program\n",
              stderr);
        return -1;
    }
    return 0;
}

/* "demo --serve LISTEN-FD COUNTER-FD INDEX": what an origin is started as. */
static int serve(char **argv)
{
    unsigned listen_fd, counter_fd, index;

    if (read_number(argv[2], 3, INT_MAX, &listen_fd) < 0 ||
        read_number(argv[3], 3, INT_MAX, &counter_fd) < 0 ||
        read_number(argv[4], 0, DEMO_ORIGIN_COUNT - 1, &index) < 0)
        return STATUS_USAGE;
    return demo_origin_run((int)listen_fd, (int)counter_fd, index);
}

int myra_demo_main(int argc, char **argv)
{
    static struct demo demo = { .seconds = 12, .rate = 5000,
                                .counter_fd = -1 };
    int status;

    if (argc == 5 && strcmp(argv[1], "--serve") == 0)
        return serve(argv);
    status = read_options(argc, argv, &demo);
    if (status != 0)
        return status - 1;
    catch_signals();
    demo_view_init(&demo.view);
    if (find_programs(&demo) < 0)
        return STATUS_FAILED;
    status = STATUS_FAILED;
    if (start_all(&demo) == 0 && demo_run(&demo) == 0) {
        end_all(&demo);
        status = demo_conclude(&demo) == 0 ? STATUS_OK : STATUS_FAILED;
    }
    demo_view_clear(&demo.view);
    clean_up(&demo);
    if (demo_is_stopped) {
        fputs("myra demo: stopped\n", stderr);
        return 128 + SIGINT;
    }
    return status;
}
