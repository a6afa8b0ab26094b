/* SPDX-License-Identifier: MIT */
/*
 * The key `never`: what must not happen, whatever else the row allows.
 */
#ifndef RUN_CASES_NEVER_H
#define RUN_CASES_NEVER_H

#include "tests/run_cases/forward.h"

/* 1 if there is a check for this row's text, or it has none. */
int never_is_known(const struct scene *scene);

/* Checks what the library saw, and what the proxy did unless forward is
 * NULL. 0, or -1 with the reason in scene->why. */
int never_check(struct scene *scene, const struct forward *forward);

#endif
