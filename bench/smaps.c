/* SPDX-License-Identifier: MIT */
/*
 * /proc/PID/smaps: a line with the addresses, then lines of facts. Later
 * mappings may grow together with earlier ones into one line, so what is
 * resident afterwards is counted page by page, from /proc/PID/pagemap.
 */
#include "config.h"

#include "bench/smaps.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* 1 when line starts a mapping; *is_ours_out tells whether it counts. */
static int read_start(const char *line, struct smaps_entry *entry,
                      int *is_ours_out)
{
    uint64_t inode = 0;
    int path_at = 0;

    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*4s %*x %*x:%*x %" SCNu64 "%n",
               &entry->start, &entry->end, &inode, &path_at) != 3)
        return 0;
    line += path_at;
    line += strspn(line, " \t\n");
    *is_ours_out = inode == 0 && *line == '\0';
    entry->rss_bytes = 0;
    return 1;
}

void smaps_read(pid_t pid, struct smaps *smaps)
{
    char path[64];
    char line[512];
    struct smaps_entry entry = { 0 };
    struct smaps_entry *last = NULL;
    unsigned long long kib;
    int is_ours = 0;

    smaps->count = 0;
    snprintf(path, sizeof(path), "/proc/%ld/smaps", (long)pid);
    FILE *const file = fopen(path, "r");

    if (!file)
        return;
    while (fgets(line, sizeof(line), file)) {
        if (read_start(line, &entry, &is_ours)) {
            last = NULL;
            if (is_ours && smaps->count < SMAPS_MAX) {
                last = &smaps->entries[smaps->count++];
                *last = entry;
            }
        } else if (last && sscanf(line, "Rss: %llu kB", &kib) == 1) {
            last->rss_bytes = kib * 1024;
        }
    }
    fclose(file);
}

/* The bytes of [start, end) that are in memory. */
static uint64_t count_resident(FILE *pagemap, uint64_t start, uint64_t end)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t resident = 0;
    uint64_t word;

    if (fseeko(pagemap, (off_t)(start / page * sizeof(word)), SEEK_SET) < 0)
        return 0;
    for (; start < end && fread(&word, sizeof(word), 1, pagemap) == 1;
         start += page)
        resident += word >> 63 ? page : 0;
    return resident;
}

uint64_t smaps_growth(pid_t pid, const struct smaps *before, uint64_t len_max)
{
    char path[64];
    uint64_t growth = 0;

    snprintf(path, sizeof(path), "/proc/%ld/pagemap", (long)pid);
    FILE *const pagemap = fopen(path, "r");

    if (!pagemap)
        return 0;
    for (size_t i = 0; i < before->count; i++) {
        const struct smaps_entry *const old = &before->entries[i];

        if (old->end - old->start > len_max)
            continue;
        const uint64_t now = count_resident(pagemap, old->start, old->end);

        growth += now > old->rss_bytes ? now - old->rss_bytes : 0;
    }
    fclose(pagemap);
    return growth;
}
