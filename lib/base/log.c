/* SPDX-License-Identifier: MIT */
/* The log hook. The library itself never prints. */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>

#include "lib/base/log.h"

#define LINE_CAP 512

static myra_log_fn log_fn;
static void *log_ctx;
static enum myra_log_level log_max_level;

void myra_set_log(myra_log_fn fn, void *ctx, enum myra_log_level max_level)
{
    log_fn = fn;
    log_ctx = ctx;
    log_max_level = max_level;
}

void myi_log(enum myra_log_level level, const char *format, ...)
{
    char line[LINE_CAP];
    va_list args;

    if (!log_fn || level > log_max_level)
        return;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    log_fn(log_ctx, level, line);
}
