/* SPDX-License-Identifier: MIT */
/*
 * What the command line asks for. Filled once, read by every thread, never
 * changed afterwards.
 */
#ifndef PROXY_OPTIONS_H
#define PROXY_OPTIONS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* Exit statuses. */
enum {
    EXIT_FAILED = 1, /* could not start, or ended by an error */
    EXIT_USAGE = 2,  /* the command line cannot be read */
    EXIT_CONFIG = 3  /* it can be read and cannot be used */
};

#define TARGET_ADDRS_MAX 4

/* One place to send requests to. */
struct target {
    char *text;      /* as given */
    char *authority; /* for Host: where a client sent none */
    struct sockaddr_storage addrs[TARGET_ADDRS_MAX];
    socklen_t addr_lens[TARGET_ADDRS_MAX];
    uint32_t addr_count;
};

/* An exchange keeps a bit for each target that it has tried. */
#define TARGETS_MAX 64

/* Listeners that share their destinations: `--listen` options that follow
 * each other, and the `--to` and `--forward` behind them. */
struct site {
    char **listens;
    uint32_t listen_count;
    struct target *targets;
    uint32_t target_count;
    int is_forward;
};

enum log_format {
    LOG_COMMON,
    LOG_JSON
};

struct proxy_options {
    struct site *sites;
    uint32_t site_count;

    uint64_t threads;
    uint64_t max_connections; /* of clients, in all; 0: by descriptors */
    uint64_t upstream_idle_max;
    uint64_t max_line;
    uint64_t max_head;
    uint64_t max_fields;
    uint64_t max_body; /* 0: no limit */

    uint64_t header_timeout_ns;
    uint64_t idle_timeout_ns;
    uint64_t body_timeout_ns;
    uint64_t send_timeout_ns;
    uint64_t connect_timeout_ns;
    uint64_t response_timeout_ns;
    uint64_t upstream_idle_timeout_ns;
    uint64_t tunnel_timeout_ns;
    uint64_t drain_timeout_ns;

    char *access_log; /* a path, "-", or NULL for none */
    enum log_format log_format;
    char *via;
    char *report;
    char *backend;
    char *wait;
    int is_check; /* -t */
    int is_quiet;
};

/* Reads the command line. 0; or a positive value: the program has said what
 * was asked (--help, --version) and ends well; or the negative of an exit
 * status, after one line to standard error that names the option. */
int options_parse(struct proxy_options *options, int argc, char **argv);
void options_fini(struct proxy_options *options);

/* The same checks without the command line: looks names up, compares limits.
 * 0 or the negative of an exit status, after one line to standard error. */
int options_resolve(struct proxy_options *options);

/* "250ms", "5s", "2m", "1h"; a number alone is seconds. "16k", "1m", "2g"
 * bytes. 0, or -1 for text of another form or one that does not fit. */
int units_parse_time(const char *text, uint64_t *ns_out);
int units_parse_size(const char *text, uint64_t *size_out);
int units_parse_count(const char *text, uint64_t *count_out);

#endif
