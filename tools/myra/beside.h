/* SPDX-License-Identifier: MIT */
/*
 * Finds the programs of this project from one of them: installed next to
 * each other, in the build tree, or in PATH.
 */
#ifndef MYRA_BESIDE_H
#define MYRA_BESIDE_H

#include <stddef.h>

/* Writes the path of the program into path and returns 1; or, where it does
 * not stand beside this one, its bare name (for execvp to find in PATH) and
 * returns 0. */
int beside_find(const char *program, char *path, size_t path_cap);

#endif
