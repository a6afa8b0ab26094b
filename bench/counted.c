/* SPDX-License-Identifier: MIT */
/*
 * Mapping the counters' file, and finding the module beside the program (in
 * the build tree it is in .libs) or where it was installed.
 */
#include "config.h"

#include "bench/counted.h"
#include "bench/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef BENCH_PKGLIBDIR
#define BENCH_PKGLIBDIR "."
#endif

static struct malloc_counts *map_file(const char *path, int flags)
{
    const int fd = open(path, O_RDWR | O_CLOEXEC | flags, 0666);

    if (fd < 0)
        return NULL;
    if (ftruncate(fd, MALLOC_COUNT_LEN) < 0) {
        close(fd);
        return NULL;
    }
    void *const page = mmap(NULL, MALLOC_COUNT_LEN, PROT_READ | PROT_WRITE,
                            MAP_SHARED, fd, 0);

    close(fd);
    return page == MAP_FAILED ? NULL : page;
}

static int find_module(char *text, size_t cap)
{
    const char *const own = proc_own_dir();
    const char *const folders[][2] = {
        { own, "/.libs" },
        { own, "" },
        { own, "/../lib/" PACKAGE },
        { BENCH_PKGLIBDIR, "" },
    };

    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        const int len =
            snprintf(text, cap, "LD_PRELOAD=%s%s/malloc_count.so",
                     folders[i][0], folders[i][1]);

        if (len > 0 && (size_t)len < cap &&
            access(strchr(text, '=') + 1, R_OK) == 0)
            return 0;
    }
    return -ENOENT;
}

int counted_open(struct counted *counted, const char *dir)
{
    memset(counted, 0, sizeof(*counted));
    if (find_module(counted->preload_text, sizeof(counted->preload_text)) < 0)
        return -ENOENT;
    snprintf(counted->file, sizeof(counted->file), "%.400s/malloc_count",
             dir);
    snprintf(counted->file_text, sizeof(counted->file_text), "%s=%.480s",
             MALLOC_COUNT_ENV, counted->file);
    counted->counts = map_file(counted->file, O_CREAT | O_TRUNC);
    if (!counted->counts)
        return -errno;
    counted->env[0] = counted->preload_text;
    counted->env[1] = counted->file_text;
    return 0;
}

void counted_close(struct counted *counted)
{
    if (!counted->counts)
        return;
    munmap(counted->counts, MALLOC_COUNT_LEN);
    counted->counts = NULL;
    unlink(counted->file);
}

struct malloc_counts *counted_own(void)
{
    const char *const path = getenv(MALLOC_COUNT_ENV);

    return path ? map_file(path, 0) : NULL;
}
