/* SPDX-License-Identifier: MIT */
/*
 * Gates: "p99>500us" fails a run whose 99th percentile is above 500 us.
 */
#ifndef MYRA_LOAD_THRESHOLD_H
#define MYRA_LOAD_THRESHOLD_H

#include "tools/myra-load/gen.h"

enum threshold_metric {
    THRESHOLD_PERCENTILE = 0, /* p50, p99.9 ... */
    THRESHOLD_MEAN,
    THRESHOLD_MAX,
    THRESHOLD_ERRORS,     /* failed requests */
    THRESHOLD_ERROR_RATE, /* of the planned ones, in per cent */
    THRESHOLD_RATE        /* right answers a second */
};

enum threshold_op {
    THRESHOLD_ABOVE = 0,   /* > */
    THRESHOLD_AT_LEAST,    /* >= */
    THRESHOLD_BELOW,       /* < */
    THRESHOLD_AT_MOST      /* <= */
};

struct threshold {
    const char *text; /* as given */
    enum threshold_metric metric;
    double percent;   /* of a percentile */
    int is_actual;    /* "actual.p99": from the actual send time */
    enum threshold_op op;
    double bound;     /* ns, a count, per cent, or a rate */
};

/* 0, or -EINVAL. text must outlive the threshold. */
int threshold_parse(const char *text, struct threshold *threshold);

/* The value it looks at. */
double threshold_value(const struct threshold *threshold,
                       const struct gen *gen);

/* 1 when the condition holds, that is, when the run fails. */
int threshold_is_crossed(const struct threshold *threshold,
                         const struct gen *gen);

#endif
