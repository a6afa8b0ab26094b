/* SPDX-License-Identifier: MIT */
/*
 * The verbs of `myra` that are part of the program. Each takes the arguments
 * from its own name on and returns the exit status.
 */
#ifndef MYRA_TOOL_H
#define MYRA_TOOL_H

#include <stdio.h>

#include "tools/myra/reading.h"

/* Exit statuses. */
#define STATUS_OK 0
#define STATUS_FAILED 1
#define STATUS_USAGE 2

int myra_inspect_main(int argc, char **argv);
int myra_demo_main(int argc, char **argv);

/* Prints a reading as one JSON object and a newline. Every character of a
 * string that was made from bytes is one byte, U+0000 to U+00FF. */
void inspect_print(FILE *out, enum reading_kind kind,
                   const struct reading *reading);

#endif
