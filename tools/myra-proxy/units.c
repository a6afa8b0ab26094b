/* SPDX-License-Identifier: MIT */
/* Numbers with a unit, as the command line writes them. */
#include "config.h"

#include "options.h"

#include <string.h>

struct unit {
    const char *name;
    uint64_t factor;
};

static const struct unit time_units[] = {
    {"", 1000000000},  {"ms", 1000000},      {"s", 1000000000},
    {"m", 60000000000}, {"h", 3600000000000},
};

static const struct unit size_units[] = {
    {"", 1},           {"k", 1024},          {"K", 1024},
    {"m", 1048576},    {"M", 1048576},       {"g", 1073741824},
    {"G", 1073741824},
};

static int parse(const char *text, const struct unit *units, size_t count,
                 uint64_t *out)
{
    const char *p = text;
    uint64_t value = 0;
    size_t i;

    while (*p >= '0' && *p <= '9') {
        if (value > (UINT64_MAX - 9) / 10)
            return -1;
        value = value * 10 + (uint64_t)(*p++ - '0');
    }
    if (p == text)
        return -1;
    for (i = 0; i < count; i++) {
        if (strcmp(p, units[i].name) != 0)
            continue;
        if (value > UINT64_MAX / 2 / units[i].factor)
            return -1;
        *out = value * units[i].factor;
        return 0;
    }
    return -1;
}

int units_parse_time(const char *text, uint64_t *ns_out)
{
    return parse(text, time_units,
                 sizeof(time_units) / sizeof(time_units[0]), ns_out);
}

int units_parse_size(const char *text, uint64_t *size_out)
{
    return parse(text, size_units,
                 sizeof(size_units) / sizeof(size_units[0]), size_out);
}

int units_parse_count(const char *text, uint64_t *count_out)
{
    return parse(text, size_units, 1, count_out);
}
