/* SPDX-License-Identifier: MIT */
/*
 * myra inspect: what the library sees in raw bytes.
 */
#include "config.h"

#include "tools/myra/myra.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define INPUT_MAX ((size_t)1 << 30)

struct inspect {
    struct reading_options options;
    struct feeding feeding;
    const char *kind; /* as given */
    const char *file;
};

static const char usage_text[] =
    "usage: myra inspect [OPTION]... KIND FILE\n"
    "\n"
    "Prints as JSON what the library sees in the raw bytes of FILE (- is the\n"
    "standard input). KIND is request, response or chunked (a chunked body\n"
    "without a head). Exit status: 0 accepted, 1 refused or incomplete, 2 the\n"
    "command line or the file cannot be used.\n"
    "\n"
    "  --for M,M     response: the methods of the requests that are answered\n"
    "  --no-upgrade  response: no request asked for an upgrade\n"
    "  --eof         the peer closes the connection behind the last byte\n"
    "  --limit N     most bytes of a (decoded) body; 64 MiB if not given\n"
    "  --feed HOW    whole, bytes (one at a time), or cut:N (two pieces)\n"
    "  --role R      client, server or proxy: accepted for every kind, makes\n"
    "                no difference to these\n"
    "  --help        this text\n";

static int complain(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

/* Says what is wrong with the command line; returns -1. */
static int complain(const char *format, ...)
{
    va_list args;

    fputs("myra inspect: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputs("\n", stderr);
    return -1;
}

static int parse_number(const char *text, uint64_t *out)
{
    char *end;

    if (text[0] < '0' || text[0] > '9')
        return -1;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return *end == '\0' && errno == 0 ? 0 : -1;
}

static int set_kind(struct inspect *inspect, const char *kind)
{
    inspect->kind = kind;
    if (strcmp(kind, "request") == 0)
        inspect->options.kind = READING_REQUEST;
    else if (strcmp(kind, "response") == 0)
        inspect->options.kind = READING_RESPONSE;
    else if (strcmp(kind, "chunked") == 0)
        inspect->options.kind = READING_CHUNKED;
    else
        return complain("unknown kind '%s' (request, response, chunked)",
                        kind);
    return 0;
}

static int set_methods(struct inspect *inspect, const char *methods)
{
    const size_t len = strlen(methods);

    if (len == 0 || methods[0] == ',' || methods[len - 1] == ',' ||
        strstr(methods, ",,") != NULL)
        return complain("--for takes methods: GET or GET,HEAD");
    inspect->options.methods = methods;
    return 0;
}

static int set_limit(struct inspect *inspect, const char *text)
{
    uint64_t limit = 0;

    if (parse_number(text, &limit) < 0 || limit == 0)
        return complain("--limit takes a number of bytes, 1 or more, not "
                        "'%s'", text);
    inspect->options.body_max = limit;
    return 0;
}

static int set_feed(struct inspect *inspect, const char *how)
{
    uint64_t cut = 0;

    if (strcmp(how, "whole") == 0) {
        inspect->feeding.form = FEEDING_WHOLE;
    } else if (strcmp(how, "bytes") == 0) {
        inspect->feeding.form = FEEDING_BYTES;
    } else if (strncmp(how, "cut:", 4) == 0 &&
               parse_number(how + 4, &cut) == 0 && cut <= INPUT_MAX) {
        inspect->feeding.form = FEEDING_CUT;
        inspect->feeding.cut = (size_t)cut;
    } else {
        return complain("--feed takes whole, bytes or cut:N, not '%s'", how);
    }
    return 0;
}

static int set_role(struct inspect *inspect, const char *role)
{
    (void)inspect;
    if (strcmp(role, "client") != 0 && strcmp(role, "server") != 0 &&
        strcmp(role, "proxy") != 0)
        return complain("--role is client, server or proxy, not '%s'", role);
    return 0;
}

static int set_ext(struct inspect *inspect, const char *ext)
{
    (void)inspect;
    return complain("--ext %s: none of request, response and chunked has "
                    "extensions", ext);
}

static int set_eof(struct inspect *inspect, const char *none)
{
    (void)none;
    inspect->options.is_eof = 1;
    return 0;
}

static int set_no_upgrade(struct inspect *inspect, const char *none)
{
    (void)none;
    inspect->options.no_upgrade = 1;
    return 0;
}

struct option {
    const char *name;
    int has_value;
    int (*set)(struct inspect *inspect, const char *value);
};

static const struct option options[] = {
    { "--for", 1, set_methods },   { "--limit", 1, set_limit },
    { "--feed", 1, set_feed },     { "--role", 1, set_role },
    { "--ext", 1, set_ext },       { "--eof", 0, set_eof },
    { "--no-upgrade", 0, set_no_upgrade },
};

/* 1 if arg is the option (perhaps with =VALUE), whose value goes to *value;
 * 0 if it is another one. */
static int matches(const struct option *option, const char *arg,
                   const char **value)
{
    const size_t len = strlen(option->name);

    if (strncmp(arg, option->name, len) != 0 ||
        (arg[len] != '\0' && arg[len] != '='))
        return 0;
    *value = arg[len] == '=' ? arg + len + 1 : NULL;
    return 1;
}

/* Takes the option at argv[at]; returns how many arguments it was, or -1. */
static int take_option(struct inspect *inspect, int argc, char **argv, int at)
{
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        const struct option *const option = &options[i];
        const char *value = NULL;
        int used = 1;

        if (!matches(option, argv[at], &value))
            continue;
        if (!option->has_value && value != NULL)
            return complain("%s takes no value", option->name);
        if (option->has_value && value == NULL) {
            if (at + 1 >= argc)
                return complain("%s needs a value", option->name);
            value = argv[at + 1];
            used = 2;
        }
        return option->set(inspect, value) < 0 ? -1 : used;
    }
    return complain("unknown option '%s'", argv[at]);
}

/* 0, 1 when --help was given, or -1. */
static int parse_args(struct inspect *inspect, int argc, char **argv)
{
    int at = 1;
    int only_names = 0;

    while (at < argc) {
        const char *const arg = argv[at];
        int used = 1;

        if (!only_names && strcmp(arg, "--help") == 0)
            return 1;
        if (!only_names && strcmp(arg, "--") == 0)
            only_names = 1;
        else if (!only_names && arg[0] == '-' && arg[1] != '\0')
            used = take_option(inspect, argc, argv, at);
        else if (inspect->kind == NULL)
            used = set_kind(inspect, arg) < 0 ? -1 : 1;
        else if (inspect->file == NULL)
            inspect->file = arg;
        else
            return complain("one file at a time: '%s' is too much", arg);
        if (used < 0)
            return -1;
        at += used;
    }
    if (inspect->kind == NULL)
        return complain("a kind is needed: request, response or chunked");
    if (inspect->file == NULL)
        return complain("a file is needed, or - for the standard input");
    if (inspect->options.kind != READING_RESPONSE &&
        (inspect->options.methods || inspect->options.no_upgrade))
        return complain("--for and --no-upgrade belong to response");
    return 0;
}

static int read_input(const char *name, struct bytes *input)
{
    const int is_stdin = strcmp(name, "-") == 0;
    FILE *const file = is_stdin ? stdin : fopen(name, "rb");
    char block[16384];
    size_t got;
    int err = 0;

    if (file == NULL)
        return complain("%s: %s", name, strerror(errno));
    while (err == 0 && (got = fread(block, 1, sizeof block, file)) > 0) {
        if (input->len > INPUT_MAX - got)
            err = complain("%s: larger than 1 GiB", name);
        else
            bytes_add(input, block, got);
    }
    if (err == 0 && ferror(file))
        err = complain("%s: %s", name, strerror(errno ? errno : EIO));
    if (!is_stdin)
        fclose(file);
    return err;
}

int myra_inspect_main(int argc, char **argv)
{
    struct inspect inspect = { .feeding = { .form = FEEDING_WHOLE } };
    struct bytes input = { 0 };
    struct reading reading;
    int status;

    switch (parse_args(&inspect, argc, argv)) {
    case 0:
        break;
    case 1:
        fputs(usage_text, stdout);
        return STATUS_OK;
    default:
        fputs("Try 'myra inspect --help'.\n", stderr);
        return STATUS_USAGE;
    }
    if (read_input(inspect.file, &input) < 0) {
        bytes_fini(&input);
        return STATUS_USAGE;
    }
    reading_run(&inspect.options, &inspect.feeding, bytes_text(&input),
                input.len, &reading);
    inspect_print(stdout, inspect.options.kind, &reading);
    status = reading.verdict == VERDICT_ACCEPT ? STATUS_OK : STATUS_FAILED;
    reading_fini(&reading);
    bytes_fini(&input);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        complain("standard output: %s", strerror(errno));
        return STATUS_USAGE;
    }
    return status;
}
