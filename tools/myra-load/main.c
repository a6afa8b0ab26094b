/* SPDX-License-Identifier: MIT */
/*
 * myra-load: HTTP load at a constant rate. Options, one run, a report.
 */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <myra/alloc.h>
#include <myra/err.h>

#include "tools/myra-load/gen.h"
#include "tools/myra-load/report.h"
#include "tools/myra-load/target.h"
#include "tools/myra-load/threshold.h"
#include "tools/myra-load/units.h"

#define EXIT_USAGE 2
#define EXIT_THRESHOLD 4
#define THRESHOLD_MAX_COUNT 16
#define FIELDS_CAP 16384

struct settings {
    struct gen_options gen;
    struct target target;
    const char *url;
    const char *method; /* NULL: GET, or POST with a body */
    char *body;
    size_t body_len;
    char fields[FIELDS_CAP];
    size_t fields_len;
    int has_user_agent;
    uint64_t duration_ns;
    const char *json_path;
    const char *hgrm_path;
    struct threshold thresholds[THRESHOLD_MAX_COUNT];
    int threshold_count;
    int is_quiet;
};

enum long_only {
    OPT_TIMEOUT = 256,
    OPT_WARMUP,
    OPT_SPIN,
    OPT_EXPECT_STATUS,
    OPT_EXPECT_LENGTH,
    OPT_JSON,
    OPT_HGRM,
    OPT_FAIL_IF,
    OPT_HELP,
    OPT_VERSION
};

static const struct option long_options[] = {
    { "rate", required_argument, NULL, 'r' },
    { "connections", required_argument, NULL, 'c' },
    { "duration", required_argument, NULL, 't' },
    { "requests", required_argument, NULL, 'n' },
    { "method", required_argument, NULL, 'X' },
    { "data", required_argument, NULL, 'd' },
    { "header", required_argument, NULL, 'H' },
    { "quiet", no_argument, NULL, 'q' },
    { "timeout", required_argument, NULL, OPT_TIMEOUT },
    { "spin", required_argument, NULL, OPT_SPIN },
    { "warmup", required_argument, NULL, OPT_WARMUP },
    { "expect-status", required_argument, NULL, OPT_EXPECT_STATUS },
    { "expect-length", required_argument, NULL, OPT_EXPECT_LENGTH },
    { "json", required_argument, NULL, OPT_JSON },
    { "hgrm", required_argument, NULL, OPT_HGRM },
    { "fail-if", required_argument, NULL, OPT_FAIL_IF },
    { "help", no_argument, NULL, OPT_HELP },
    { "version", no_argument, NULL, OPT_VERSION },
    { NULL, 0, NULL, 0 },
};

static const char help_text[] =
    "usage: myra-load [options] URL\n"
    "\n"
    "Sends HTTP/1.1 requests at a constant rate, open loop, and reports\n"
    "latency from the time each request was meant to leave.\n"
    "\n"
    "  -r, --rate N           requests a second (default 1000); max: every\n"
    "                         connection sends when it was answered\n"
    "  -c, --connections N    keep-alive connections (default 16)\n"
    "  -t, --duration TIME    length of the run (default 10s)\n"
    "  -n, --requests N       end after N requests\n"
    "  -X, --method METHOD    GET, or POST where there is a body\n"
    "  -d, --data BODY        request body; @FILE reads it from a file\n"
    "  -H, --header 'A: B'    one more field\n"
    "      --timeout TIME     of one request (default 10s)\n"
    "      --warmup TIME      sent first, not counted (default 0)\n"
    "      --spin TIME        poll so long before a request is due, for\n"
    "                         exact send times (default 0)\n"
    "      --expect-status N  any other status is an error\n"
    "      --expect-length N  any other body length is an error\n"
    "      --json FILE        results as JSON; - for standard output\n"
    "      --hgrm FILE        percentiles as HdrHistogram text, in us\n"
    "      --fail-if COND     exit with 4 when it holds: p99>500us, max>1s,\n"
    "                         mean>200us, errors>0, error-rate>0.1%,\n"
    "                         rate<900, actual.p99>1ms; may be repeated\n"
    "  -q, --quiet            no live line, no text report\n"
    "      --help, --version\n"
    "\n"
    "TIME is 10s, 1.5ms, 200us, 2m. Exit status: 0 done, 1 the run failed\n"
    "or no answer was right, 2 usage, 4 a --fail-if condition held.\n";

static struct gen *running; /* for the signal handler */

static void on_signal(int number)
{
    (void)number;
    if (running)
        gen_stop(running);
}

static int usage_error(const char *what, const char *value)
{
    fprintf(stderr, "myra-load: %s: '%s' (see myra-load --help)\n", what,
            value);
    return -EINVAL;
}

/* ---- Options ------------------------------------------------------------ */

static int read_count(const char *text, uint64_t min, uint64_t max,
                      uint64_t *out)
{
    char *end;

    if (text[0] < '0' || text[0] > '9')
        return -EINVAL;
    errno = 0;
    const unsigned long long number = strtoull(text, &end, 10);

    if (errno || *end || number < min || number > max)
        return -EINVAL;
    *out = number;
    return 0;
}

static int read_body_file(struct settings *settings, const char *path)
{
    FILE *const file = fopen(path, "rb");
    size_t cap = 0;

    if (!file)
        return usage_error(strerror(errno), path);
    for (;;) {
        if (settings->body_len == cap) {
            cap = cap ? cap * 2 : 65536;
            char *const bigger = realloc(settings->body, cap);

            if (!bigger)
                break;
            settings->body = bigger;
        }
        const size_t n = fread(settings->body + settings->body_len, 1,
                               cap - settings->body_len, file);

        if (n == 0)
            break;
        settings->body_len += n;
    }
    const int is_failed = ferror(file) || settings->body_len == cap;

    fclose(file);
    return is_failed ? usage_error("cannot read the body", path) : 0;
}

static int set_body(struct settings *settings, const char *text)
{
    free(settings->body);
    settings->body = NULL;
    settings->body_len = 0;
    if (text[0] == '@')
        return read_body_file(settings, text + 1);
    settings->body = strdup(text);
    settings->body_len = strlen(text);
    return settings->body ? 0 : -ENOMEM;
}

static int add_field(struct settings *settings, const char *text)
{
    const size_t len = strlen(text);
    const char *const colon = strchr(text, ':');

    if (!colon || colon == text || strpbrk(text, "\r\n"))
        return usage_error("a header must be 'Name: value'", text);
    if (len + 3 > sizeof(settings->fields) - settings->fields_len)
        return usage_error("too many headers", text);
    settings->has_user_agent |= strncasecmp(text, "user-agent:", 11) == 0;
    settings->fields_len += (size_t)snprintf(
        settings->fields + settings->fields_len, len + 3, "%s\r\n", text);
    return 0;
}

static int set_rate(struct settings *settings, const char *text)
{
    double rate = 0;

    if (strcmp(text, "max") != 0 &&
        (units_parse_number(text, &rate) < 0 || rate <= 0 || rate > 1e9))
        return usage_error("not a rate above 0, or max", text);
    settings->gen.rate_per_s = rate;
    return 0;
}

static int set_time(uint64_t *out, const char *text)
{
    if (units_parse_time(text, out) < 0)
        return usage_error("not a time such as 10s or 500ms", text);
    return 0;
}

static int set_count(uint64_t min, uint64_t max, uint64_t *out,
                     const char *text)
{
    if (read_count(text, min, max, out) < 0)
        return usage_error("not a number in range", text);
    return 0;
}

static int add_threshold(struct settings *settings, const char *text)
{
    if (settings->threshold_count == THRESHOLD_MAX_COUNT)
        return usage_error("too many conditions", text);
    if (threshold_parse(text,
                        &settings->thresholds[settings->threshold_count]) < 0)
        return usage_error("not a condition such as p99>500us", text);
    settings->threshold_count++;
    return 0;
}

/* Options that set a number of the generator. */
static int apply_gen_option(struct settings *settings, int option,
                            const char *value)
{
    struct gen_options *const gen = &settings->gen;
    uint64_t number = 0;
    int err;

    switch (option) {
    case 'r':
        return set_rate(settings, value);
    case 'c':
        err = set_count(1, 1000000, &number, value);
        gen->conn_count = (uint32_t)number;
        return err;
    case 'n':
        return set_count(1, UINT64_MAX - 1, &gen->request_max, value);
    case OPT_TIMEOUT:
        return set_time(&gen->timeout_ns, value);
    case OPT_SPIN:
        err = set_time(&gen->spin_ns, value);
        return !err && gen->spin_ns > UINT64_C(1000000000)
            ? usage_error("at most 1s", value)
            : err;
    case OPT_WARMUP:
        return set_time(&gen->warmup_ns, value);
    case OPT_EXPECT_STATUS:
        err = set_count(200, 599, &number, value);
        gen->expect_status = (int)number;
        return err;
    default:
        err = set_count(0, INT64_MAX, &number, value);
        gen->expect_body_len = (int64_t)number;
        return err;
    }
}

static int apply_option(struct settings *settings, int option,
                        const char *value)
{
    switch (option) {
    case 't':
        return set_time(&settings->duration_ns, value);
    case 'X':
        settings->method = value;
        return value[0] && !strpbrk(value, " \t\r\n")
            ? 0
            : usage_error("not a method", value);
    case 'd':
        return set_body(settings, value);
    case 'H':
        return add_field(settings, value);
    case 'q':
        settings->is_quiet = 1;
        return 0;
    case OPT_JSON:
        settings->json_path = value;
        return 0;
    case OPT_HGRM:
        settings->hgrm_path = value;
        return 0;
    case OPT_FAIL_IF:
        return add_threshold(settings, value);
    default:
        return apply_gen_option(settings, option, value);
    }
}

static int set_request(struct settings *settings)
{
    if (!settings->method)
        settings->method = settings->body ? "POST" : "GET";
    if (!settings->has_user_agent &&
        add_field(settings, "User-Agent: myra-load/" VERSION) < 0)
        return -EINVAL;
    return gen_options_set_request(
        &settings->gen, settings->method, settings->target.path,
        settings->target.authority, settings->fields, settings->body,
        settings->body_len);
}

/* 0, 1 for help and version (done), or negative. */
static int read_options(struct settings *settings, int argc, char **argv)
{
    const char *why;
    int option;

    while ((option = getopt_long(argc, argv, "r:c:t:n:X:d:H:q", long_options,
                                 NULL)) != -1) {
        if (option == OPT_HELP) {
            fputs(help_text, stdout);
            return 1;
        }
        if (option == OPT_VERSION) {
            puts("myra-load " VERSION);
            return 1;
        }
        if (option == '?' || apply_option(settings, option, optarg) < 0)
            return -EINVAL;
    }
    if (optind != argc - 1)
        return usage_error("one URL is needed", argc > optind
                                                    ? argv[optind + 1]
                                                    : "none given");
    settings->url = argv[optind];
    if (settings->duration_ns == 0 && settings->gen.request_max == 0)
        return usage_error("not a time above 0", "--duration");
    if (target_parse(settings->url, &settings->target, &why) < 0)
        return usage_error(why, settings->url);
    return set_request(settings) < 0 ? -EINVAL : 0;
}

/* ---- The run ------------------------------------------------------------ */

static void show_live(void *user, const struct gen_snapshot *shot)
{
    (void)user;
    fputs("\r\033[K", stderr);
    if (!shot->is_last)
        report_print_live(shot, stderr);
    fflush(stderr);
}

/* Opens path, "-" for standard output; calls print and closes. */
static int write_json(const struct report *report, const char *path)
{
    FILE *const out = strcmp(path, "-") == 0 ? stdout : fopen(path, "w");

    if (!out)
        return -errno;
    int err = report_print_json(report, out);

    if ((out == stdout ? fflush(out) : fclose(out)) != 0 && !err)
        err = -errno;
    return err;
}

static int write_hgrm(const struct report *report, const char *path)
{
    FILE *const out = fopen(path, "w");

    if (!out)
        return -errno;
    int err = hist_print_hgrm(gen_latency(report->gen), out, 1000);

    if (fclose(out) != 0 && !err)
        err = -errno;
    return err;
}

static int write_files(const struct settings *settings,
                       const struct report *report)
{
    int err = 0;

    if (settings->json_path) {
        err = write_json(report, settings->json_path);
        if (err)
            fprintf(stderr, "myra-load: %s: %s\n", settings->json_path,
                    myra_strerror(err));
    }
    if (!err && settings->hgrm_path) {
        err = write_hgrm(report, settings->hgrm_path);
        if (err)
            fprintf(stderr, "myra-load: %s: %s\n", settings->hgrm_path,
                    myra_strerror(err));
    }
    return err;
}

/* The exit status of a run that has been made. */
static int conclude(const struct settings *settings, const struct gen *gen)
{
    const struct report report = {
        .url = settings->url,
        .method = settings->method,
        .options = &settings->gen,
        .gen = gen,
        .duration_ns = settings->duration_ns,
        .thresholds = settings->thresholds,
        .threshold_count = settings->threshold_count,
    };
    struct gen_stats stats;

    if (!settings->is_quiet)
        report_print_text(&report, settings->json_path &&
                                           strcmp(settings->json_path, "-") ==
                                               0
                                       ? stderr
                                       : stdout);
    if (write_files(settings, &report) < 0)
        return EXIT_FAILURE;
    gen_read_stats(gen, &stats);
    if (stats.completed == 0)
        return EXIT_FAILURE;
    for (int i = 0; i < settings->threshold_count; i++)
        if (threshold_is_crossed(&settings->thresholds[i], gen))
            return EXIT_THRESHOLD;
    return EXIT_SUCCESS;
}

static int run(struct settings *settings)
{
    struct gen *gen = NULL;
    const char *why;

    if (target_resolve(&settings->target, &settings->gen.addr,
                       &settings->gen.addr_len, &why) < 0) {
        fprintf(stderr, "myra-load: %s: %s\n", settings->target.host, why);
        return EXIT_FAILURE;
    }
    if (!settings->is_quiet && isatty(STDERR_FILENO))
        settings->gen.on_snapshot = show_live;
    int err = gen_new(&settings->gen, NULL, &gen);

    if (!err) {
        running = gen;
        err = gen_run(gen, settings->duration_ns);
        running = NULL;
    }
    if (err)
        fprintf(stderr, "myra-load: %s: %s\n", settings->url,
                myra_strerror(err));
    const int status = err ? EXIT_FAILURE : conclude(settings, gen);

    gen_free(gen);
    return status;
}

static int check_environment(void)
{
    char text[256];

    if (myra_env_check(text, sizeof(text)) == 0)
        return 0;
    fprintf(stderr, "myra-load: %s\n", text);
    return -EINVAL;
}

int main(int argc, char **argv)
{
    static struct settings settings;
    const struct sigaction stop = { .sa_handler = on_signal,
                                    .sa_flags = (int)SA_RESETHAND };

    gen_options_init(&settings.gen);
    settings.duration_ns = UINT64_C(10000000000);
    if (check_environment() < 0)
        return EXIT_USAGE;
    const int err = read_options(&settings, argc, argv);
    int status = err < 0 ? EXIT_USAGE : EXIT_SUCCESS;

    if (err == 0) {
        sigaction(SIGINT, &stop, NULL);
        sigaction(SIGTERM, &stop, NULL);
        status = run(&settings);
    }
    gen_options_fini(&settings.gen);
    free(settings.body);
    return status;
}
