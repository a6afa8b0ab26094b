/* SPDX-License-Identifier: MIT */
/*
 * The checks behind the key `never`. Each returns 1 when the forbidden thing
 * did happen: in the library's reading, which is always there, or in what
 * the proxy did, where the case went through it.
 */
#ifndef RUN_CASES_NEVER_CHECKS_H
#define RUN_CASES_NEVER_CHECKS_H

#include "tests/run_cases/forward.h"

/* What a check looks at: complete messages of the library and of the origin,
 * and the raw bytes on both sides of the proxy (empty without one). */
struct look {
    const struct scene *scene;
    const struct reading *reading;
    const struct forward *forward; /* or NULL */
    const struct origin *origin;   /* or NULL */
    const struct client *client;   /* or NULL */
    const char *arg;               /* of the check */
};

typedef int (*never_fn)(const struct look *look);

int answers_or_forwards(const struct look *look);
int body_holds(const struct look *look);
int body_is(const struct look *look);
int body_is_not(const struct look *look);
int cuts_at_nul(const struct look *look);
int dispatches(const struct look *look);
int drops_first_answer(const struct look *look);
int ends_as_complete(const struct look *look);
int ends_body(const struct look *look);
int forwards_both_fields(const struct look *look);
int forwards_extra_spaces(const struct look *look);
int forwards_fold(const struct look *look);
int forwards_lone_cr(const struct look *look);
int forwards_lone_lf(const struct look *look);
int forwards_nul(const struct look *look);
int forwards_space(const struct look *look);
int forwards_text(const struct look *look);
int frames_by_length(const struct look *look);
int grows(const struct look *look);
int has_any_body(const struct look *look);
int has_host(const struct look *look);
int has_length_list(const struct look *look);
int has_method(const struct look *look);
int has_two_lengths(const struct look *look);
int is_not_linear(const struct look *look);
int joins_fields(const struct look *look);
int keeps_open(const struct look *look);
int keeps_silently(const struct look *look);
int merges_trailer(const struct look *look);
int reason_spills(const struct look *look);
int reuses(const struct look *look);
int sees_field(const struct look *look);
int strips_gzip(const struct look *look);
int uses_length_one(const struct look *look);
int uses_second(const struct look *look);
int waits(const struct look *look);

#endif
