/* SPDX-License-Identifier: MIT */
/*
 * Runs a fuzz target over files: each whole, and each cut short at some
 * places. Linked in place of libFuzzer, so that make check replays the
 * corpus with any compiler.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/fuzz/fuzz_feed.h"

#define FILE_MAX (1 << 20)

static int replay(const char *path)
{
    uint8_t *bytes = malloc(FILE_MAX);
    FILE *file = fopen(path, "rb");
    size_t len;

    if (!file || !bytes) {
        fprintf(stderr, "%s cannot be read\n", path);
        if (file)
            fclose(file);
        free(bytes);
        return 1;
    }
    len = fread(bytes, 1, FILE_MAX, file);
    fclose(file);
    LLVMFuzzerTestOneInput(bytes, len);
    for (size_t part = 1; part < 16; part++)
        LLVMFuzzerTestOneInput(bytes, len * part / 16);
    free(bytes);
    return 0;
}

int main(int argc, char **argv)
{
    int failed = 0;

    for (int i = 1; i < argc; i++)
        failed += replay(argv[i]);
    printf("%s: %d files, %d failed\n", argv[0], argc - 1, failed);
    return failed != 0;
}
