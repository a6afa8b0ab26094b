/* SPDX-License-Identifier: MIT */
/* Reading the command line. One table says what there is; the help text is
 * made from it. */
#include "config.h"

#include "options.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <myra/myra.h>

enum kind {
    KIND_TIME,
    KIND_SIZE,
    KIND_COUNT,
    KIND_TEXT,
    KIND_FLAG,
    KIND_LISTEN,
    KIND_TO,
    KIND_FORWARD,
    KIND_FORMAT,
    KIND_HELP,
    KIND_VERSION
};

struct row {
    const char *name;
    char letter;
    enum kind kind;
    size_t offset;
    uint64_t min, max;
    const char *arg;
    const char *help;
};

#define AT(field) offsetof(struct proxy_options, field)
#define TIME_MAX_NS UINT64_C(86400000000000)
#define MS UINT64_C(1000000)

static const struct row rows[] = {
    {"listen", 'l', KIND_LISTEN, 0, 0, 0, "ADDR",
     "8080 (loopback), *:8080, [::1]:8080, unix:/path"},
    {"to", 0, KIND_TO, 0, 0, 0, "ADDR",
     "send requests of the listeners before it to ADDR; again for more"},
    {"forward", 'f', KIND_FORWARD, 0, 0, 0, NULL,
     "serve absolute-form targets to anywhere on the listeners before it"},
    {"threads", 0, KIND_COUNT, AT(threads), 1, 256, "N", "event loops (1)"},
    {"max-connections", 0, KIND_COUNT, AT(max_connections), 1, 1000000, "N",
     "clients at a time; more wait in the system's queue"},
    {"upstream-idle", 0, KIND_COUNT, AT(upstream_idle_max), 0, 1000000, "N",
     "idle connections kept per upstream and thread (16384)"},
    {"max-line", 0, KIND_SIZE, AT(max_line), 64, 65536, "BYTES",
     "longest request line (16k); longer ones get 414"},
    {"max-head", 0, KIND_SIZE, AT(max_head), 256, 1048576, "BYTES",
     "largest header or trailer section (64k); larger ones get 431"},
    {"max-fields", 0, KIND_COUNT, AT(max_fields), 8, 1024, "N",
     "most fields of a head (256); more get 431"},
    {"max-body", 0, KIND_SIZE, AT(max_body), 0, UINT64_C(1) << 60, "BYTES",
     "largest request body (0: no limit); larger ones get 413"},
    {"header-timeout", 0, KIND_TIME, AT(header_timeout_ns), MS, TIME_MAX_NS,
     "TIME", "for a whole request head (15s); then 408"},
    {"idle-timeout", 0, KIND_TIME, AT(idle_timeout_ns), MS, TIME_MAX_NS,
     "TIME", "for a client between requests (75s)"},
    {"body-timeout", 0, KIND_TIME, AT(body_timeout_ns), MS, TIME_MAX_NS,
     "TIME", "between two pieces of a request body (60s); then 408"},
    {"send-timeout", 0, KIND_TIME, AT(send_timeout_ns), MS, TIME_MAX_NS,
     "TIME", "for a peer that takes no bytes (60s)"},
    {"connect-timeout", 0, KIND_TIME, AT(connect_timeout_ns), MS, TIME_MAX_NS,
     "TIME", "to reach an upstream (5s); then the next, or 504"},
    {"response-timeout", 0, KIND_TIME, AT(response_timeout_ns), MS,
     TIME_MAX_NS, "TIME",
     "for a response head, and between pieces of its body (60s); then 504"},
    {"upstream-idle-timeout", 0, KIND_TIME, AT(upstream_idle_timeout_ns), MS,
     TIME_MAX_NS, "TIME", "an idle upstream connection is kept (30s)"},
    {"tunnel-timeout", 0, KIND_TIME, AT(tunnel_timeout_ns), MS, TIME_MAX_NS,
     "TIME", "for an upgraded connection that is silent (10m)"},
    {"drain-timeout", 0, KIND_TIME, AT(drain_timeout_ns), 0, TIME_MAX_NS,
     "TIME", "to finish after SIGTERM (30s)"},
    {"access-log", 0, KIND_TEXT, AT(access_log), 0, 0, "FILE",
     "a file, - for standard output, or off (off)"},
    {"log-format", 0, KIND_FORMAT, AT(log_format), 0, 0, "FORMAT",
     "common or json (common)"},
    {"via", 0, KIND_TEXT, AT(via), 0, 0, "NAME",
     "name in the Via fields (myra-proxy)"},
    {"report", 0, KIND_TEXT, AT(report), 0, 0, "FILE",
     "write counters as JSON when the program ends"},
    {"backend", 0, KIND_TEXT, AT(backend), 0, 0, "NAME",
     "auto, uring-token, epoll, or a list (auto)"},
    {"wait", 0, KIND_TEXT, AT(wait), 0, 0, "NAME", "park or spin (park)"},
    {"quiet", 'q', KIND_FLAG, AT(is_quiet), 0, 0, NULL,
     "say nothing at the start"},
    {"check", 't', KIND_FLAG, AT(is_check), 0, 0, NULL,
     "check the options and the addresses, then end"},
    {"help", 'h', KIND_HELP, 0, 0, 0, NULL, "this text"},
    {"version", 'V', KIND_VERSION, 0, 0, 0, NULL, "version and features"},
};

static int usage_error(const char *format, ...) MYRA_PRINTF(1, 2);

static int usage_error(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fprintf(stderr, "myra-proxy: ");
    vfprintf(stderr, format, args);
    fprintf(stderr, "\nTry 'myra-proxy --help'.\n");
    va_end(args);
    return -EXIT_USAGE;
}

static void print_help(void)
{
    size_t i;

    printf("Usage: myra-proxy --listen ADDR --to ADDR [--to ADDR ...] "
           "[OPTION ...]\n"
           "       myra-proxy --listen ADDR --forward [OPTION ...]\n\n");
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char left[64];

        snprintf(left, sizeof(left), "--%s%s%s", rows[i].name,
                 rows[i].arg ? " " : "", rows[i].arg ? rows[i].arg : "");
        if (rows[i].letter)
            printf("  -%c, %-28s %s\n", rows[i].letter, left, rows[i].help);
        else
            printf("      %-28s %s\n", left, rows[i].help);
    }
    printf("\nTIME is 250ms, 5s, 2m, 1h or seconds; BYTES is a number, 16k, "
           "1m or 2g.\n"
           "SIGTERM finishes what is under way and ends, a second one ends "
           "at once;\nSIGHUP or SIGUSR1 opens the access log again.\n"
           "Exit status: 0 well, 1 failure, 2 usage, 3 configuration.\n");
}

static void print_version(void)
{
    printf("myra-proxy %s\nfeatures: %s\nSIMD: %s\n", myra_version(),
           myra_features(), myra_simd_level_name());
}

static void *grow(void *array, uint32_t count, size_t size)
{
    void *grown = realloc(array, ((size_t)count + 1) * size);

    if (!grown) {
        fprintf(stderr, "myra-proxy: out of memory\n");
        exit(EXIT_FAILED);
    }
    memset((char *)grown + (size_t)count * size, 0, size);
    return grown;
}

static char *copy(const char *text)
{
    char *text_copy = strdup(text);

    if (!text_copy) {
        fprintf(stderr, "myra-proxy: out of memory\n");
        exit(EXIT_FAILED);
    }
    return text_copy;
}

/* The site that a --to or --forward belongs to (is_listen = 0), or the one
 * that a --listen opens or joins: a listener behind destinations opens the
 * next site, unless those came before any listener. */
static struct site *site_for(struct proxy_options *options, int is_listen)
{
    struct site *last = options->site_count
                            ? &options->sites[options->site_count - 1]
                            : NULL;
    const int is_done =
        last && last->listen_count && (last->target_count || last->is_forward);

    if (last && !(is_listen && is_done))
        return last;
    options->sites =
        grow(options->sites, options->site_count, sizeof(struct site));
    return &options->sites[options->site_count++];
}

static void add_listen(struct proxy_options *options, const char *text)
{
    struct site *site = site_for(options, 1);

    site->listens = grow(site->listens, site->listen_count, sizeof(char *));
    site->listens[site->listen_count++] = copy(text);
}

static void add_target(struct proxy_options *options, const char *text)
{
    struct site *site = site_for(options, 0);

    site->targets =
        grow(site->targets, site->target_count, sizeof(struct target));
    site->targets[site->target_count++].text = copy(text);
}

static int set_number(struct proxy_options *options, const struct row *row,
                      const char *text)
{
    uint64_t *field = (uint64_t *)(void *)((char *)options + row->offset);
    uint64_t value;
    int err;

    if (row->kind == KIND_TIME)
        err = units_parse_time(text, &value);
    else if (row->kind == KIND_SIZE)
        err = units_parse_size(text, &value);
    else
        err = units_parse_count(text, &value);
    if (err)
        return usage_error("--%s: '%s' cannot be read", row->name, text);
    if (value < row->min || value > row->max)
        return usage_error("--%s: '%s' is out of range", row->name, text);
    *field = value;
    return 0;
}

static int set_text(struct proxy_options *options, const struct row *row,
                    const char *text)
{
    char **field = (char **)(void *)((char *)options + row->offset);

    if (!*text)
        return usage_error("--%s needs a value", row->name);
    free(*field);
    *field = copy(text);
    return 0;
}

static int set_format(struct proxy_options *options, const char *text)
{
    if (strcmp(text, "common") == 0)
        options->log_format = LOG_COMMON;
    else if (strcmp(text, "json") == 0)
        options->log_format = LOG_JSON;
    else
        return usage_error("--log-format: '%s' is not common or json",
                           text);
    return 0;
}

static int apply(struct proxy_options *options, const struct row *row,
                 const char *arg)
{
    switch (row->kind) {
    case KIND_TIME:
    case KIND_SIZE:
    case KIND_COUNT:
        return set_number(options, row, arg);
    case KIND_TEXT:
        return set_text(options, row, arg);
    case KIND_FLAG:
        *(int *)(void *)((char *)options + row->offset) = 1;
        return 0;
    case KIND_LISTEN:
        add_listen(options, arg);
        return 0;
    case KIND_TO:
        add_target(options, arg);
        return 0;
    case KIND_FORWARD:
        site_for(options, 0)->is_forward = 1;
        return 0;
    case KIND_FORMAT:
        return set_format(options, arg);
    case KIND_HELP:
        print_help();
        return 1;
    case KIND_VERSION:
        print_version();
        return 1;
    }
    return 0;
}

/* Finds the row of "--name", "--name=value" or "-x". */
static const struct row *find_row(const char *text, const char **value_out)
{
    const char *equals = strchr(text, '=');
    const size_t len = equals ? (size_t)(equals - text) : strlen(text);
    size_t i;

    *value_out = NULL;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (text[0] == '-' && text[1] != '-' && text[1] && !text[2] &&
            rows[i].letter == text[1])
            return &rows[i];
        if (strncmp(text, "--", 2) == 0 && strlen(rows[i].name) == len - 2 &&
            strncmp(text + 2, rows[i].name, len - 2) == 0) {
            if (equals)
                *value_out = equals + 1;
            return &rows[i];
        }
    }
    return NULL;
}

static void set_defaults(struct proxy_options *options)
{
    memset(options, 0, sizeof(*options));
    options->threads = 1;
    options->upstream_idle_max = 16384;
    options->max_line = 16384;
    options->max_head = 65536;
    options->max_fields = 256;
    options->header_timeout_ns = 15000 * MS;
    options->idle_timeout_ns = 75000 * MS;
    options->body_timeout_ns = 60000 * MS;
    options->send_timeout_ns = 60000 * MS;
    options->connect_timeout_ns = 5000 * MS;
    options->response_timeout_ns = 60000 * MS;
    options->upstream_idle_timeout_ns = 30000 * MS;
    options->tunnel_timeout_ns = 600000 * MS;
    options->drain_timeout_ns = 30000 * MS;
    options->via = copy("myra-proxy");
}

static int check_sites(const struct proxy_options *options)
{
    uint32_t i;

    if (!options->site_count)
        return usage_error("nothing to do: give --listen");
    for (i = 0; i < options->site_count; i++) {
        const struct site *site = &options->sites[i];

        if (!site->listen_count)
            return usage_error("--to or --forward without --listen");
        if (!site->target_count && !site->is_forward)
            return usage_error("--listen %s has neither --to nor --forward",
                               site->listens[0]);
        if (site->target_count > TARGETS_MAX)
            return usage_error("--to: more than %d for --listen %s",
                               TARGETS_MAX, site->listens[0]);
    }
    return 0;
}

static int check_via(const char *via)
{
    const char *p;

    for (p = via; *p; p++)
        if (!((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
              (*p >= '0' && *p <= '9') || strchr("-._:", *p)))
            return usage_error("--via: '%s' is not a plain name", via);
    if (p - via > 64)
        return usage_error("--via: '%s' is longer than 64 bytes", via);
    return 0;
}

int options_parse(struct proxy_options *options, int argc, char **argv)
{
    int i, err;

    set_defaults(options);
    for (i = 1; i < argc; i++) {
        const char *value;
        const struct row *row = find_row(argv[i], &value);

        if (!row)
            return usage_error("unknown option '%s'", argv[i]);
        if (row->arg && !value && i + 1 < argc)
            value = argv[++i];
        if (row->arg && !value)
            return usage_error("--%s needs a value", row->name);
        if (!row->arg && value)
            return usage_error("--%s takes no value", row->name);
        err = apply(options, row, value);
        if (err)
            return err;
    }
    if (options->access_log && strcmp(options->access_log, "off") == 0) {
        free(options->access_log);
        options->access_log = NULL;
    }
    err = check_via(options->via);
    return err ? err : check_sites(options);
}

void options_fini(struct proxy_options *options)
{
    uint32_t i, j;

    for (i = 0; i < options->site_count; i++) {
        struct site *site = &options->sites[i];

        for (j = 0; j < site->listen_count; j++)
            free(site->listens[j]);
        for (j = 0; j < site->target_count; j++) {
            free(site->targets[j].text);
            free(site->targets[j].authority);
        }
        free(site->listens);
        free(site->targets);
    }
    free(options->sites);
    free(options->access_log);
    free(options->via);
    free(options->report);
    free(options->backend);
    free(options->wait);
    memset(options, 0, sizeof(*options));
}
