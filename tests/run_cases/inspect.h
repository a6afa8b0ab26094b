/* SPDX-License-Identifier: MIT */
/*
 * The program `myra inspect` over a case.
 */
#ifndef RUN_CASES_INSPECT_H
#define RUN_CASES_INSPECT_H

#include "tests/run_cases/verdict.h"

/* Runs program on the file and compares its exit status and output with
 * scene->reading. 0 or -1. */
int inspect_check(struct scene *scene, const char *program, const char *dir);

#endif
