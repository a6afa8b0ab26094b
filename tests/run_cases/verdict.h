/* SPDX-License-Identifier: MIT */
/*
 * Judges what the library saw in a case's bytes.
 */
#ifndef RUN_CASES_VERDICT_H
#define RUN_CASES_VERDICT_H

#include "tests/run_cases/detail.h"
#include "tests/run_cases/table.h"
#include "tools/myra/reading.h"

/* A case while it is judged. */
struct scene {
    const struct case_row *row;
    const struct detail *detail;
    const char *data; /* the file */
    size_t len;
    struct reading_options options;
    struct reading reading; /* of the whole file at once */
    struct bytes why;       /* what was wrong; empty while all is right */
};

/* Adds a formatted reason to scene->why and returns -1. */
int scene_fail(struct scene *scene, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Fills scene->options from the row. 0, or -1 for a value of no use. */
int scene_read_options(struct scene *scene);

/* Feeds the file in every way and checks each result: the same for all, and
 * as the row says. 0 or -1. */
int verdict_check(struct scene *scene);

/* 1 if the row takes this status for a refusal. */
int status_is_right(const struct scene *scene, int status);

/* Complete messages that the row wants. */
size_t wanted_messages(const struct scene *scene);

#endif
