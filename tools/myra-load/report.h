/* SPDX-License-Identifier: MIT */
/*
 * What a run is told as: text for people, JSON for programs.
 */
#ifndef MYRA_LOAD_REPORT_H
#define MYRA_LOAD_REPORT_H

#include <stdio.h>

#include "tools/myra-load/gen.h"
#include "tools/myra-load/threshold.h"

struct report {
    const char *url;
    const char *method;
    const struct gen_options *options;
    const struct gen *gen;
    uint64_t duration_ns;
    const struct threshold *thresholds;
    int threshold_count;
};

void report_print_text(const struct report *report, FILE *out);

/* One object. 0, or -EIO. */
int report_print_json(const struct report *report, FILE *out);

/* One line about a run that goes on, without a line end. */
void report_print_live(const struct gen_snapshot *shot, FILE *out);

#endif
