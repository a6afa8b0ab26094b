/* SPDX-License-Identifier: MIT */
/*
 * The places are looked at in this order, so that a program of the build
 * tree never runs an installed one of another version.
 */
#include "config.h"

#include "tools/myra/beside.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct place {
    const char *way; /* from the folder of the running program */
    int has_folder;  /* the program stands in a folder of its own name */
};

static const struct place places[] = {
    { "", 0 },             /* installed together; the build tree */
    { "../", 0 },          /* the build tree, for tests/A */
    { "../", 1 },          /* tools/A/A looks for tools/B/B */
    { "../tools/", 1 },    /* tests/A looks for tools/B/B */
    { "../../bench/", 0 }, /* tools/A/A looks for bench/B */
};

static int is_program(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && S_ISREG(info.st_mode) &&
           access(path, X_OK) == 0;
}

/* The folder of the running program, or -1. */
static int own_folder(char *path, size_t cap)
{
    const ssize_t len = readlink("/proc/self/exe", path, cap - 1);
    char *slash;

    if (len <= 0)
        return -1;
    path[len] = '\0';
    slash = strrchr(path, '/');
    if (slash == NULL)
        return -1;
    *slash = '\0';
    return 0;
}

int beside_find(const char *program, char *path, size_t path_cap)
{
    char folder[PATH_MAX];

    snprintf(path, path_cap, "%s", program);
    if (own_folder(folder, sizeof folder) < 0)
        return 0;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char found[PATH_MAX * 2];
        const int whole =
            snprintf(found, sizeof found, "%s/%s%s%s%s", folder,
                     places[i].way, places[i].has_folder ? program : "",
                     places[i].has_folder ? "/" : "", program);

        if (whole > 0 && (size_t)whole < path_cap && is_program(found)) {
            memcpy(path, found, (size_t)whole + 1);
            return 1;
        }
    }
    return 0;
}
