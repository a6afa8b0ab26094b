/* SPDX-License-Identifier: MIT */
/*
 * Parsing and printing of times and counts.
 */
#include "config.h"

#include "tools/myra-load/units.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct unit {
    const char *name;
    double factor;
};

static const struct unit time_units[] = {
    { "", 1e9 },   { "s", 1e9 },   { "ms", 1e6 },   { "us", 1e3 },
    { "ns", 1e0 }, { "m", 60e9 }, { "h", 3600e9 }, { NULL, 0 },
};

static const struct unit number_units[] = {
    { "", 1 }, { "k", 1e3 }, { "K", 1e3 }, { "M", 1e6 }, { NULL, 0 },
};

/* A number, not negative and finite, then one of the units. */
static int parse(const char *text, const struct unit *unit, double *out)
{
    char *end;

    if (!((text[0] >= '0' && text[0] <= '9') || text[0] == '.'))
        return -EINVAL;
    const double number = strtod(text, &end);

    if (end == text || !isfinite(number))
        return -EINVAL;
    for (; unit->name; unit++) {
        if (strcmp(end, unit->name) == 0) {
            *out = number * unit->factor;
            return 0;
        }
    }
    return -EINVAL;
}

int units_parse_time(const char *text, uint64_t *ns_out)
{
    double ns;

    if (parse(text, time_units, &ns) < 0 || ns > 3.6e16)
        return -EINVAL;
    *ns_out = (uint64_t)(ns + 0.5);
    return 0;
}

int units_parse_number(const char *text, double *number_out)
{
    return parse(text, number_units, number_out);
}

const char *units_print_time(uint64_t ns, char *text, size_t cap)
{
    static const struct unit steps[] = {
        { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 },
    };
    const struct unit *step = steps;

    if (ns < 1000) {
        snprintf(text, cap, "%u ns", (unsigned)ns);
        return text;
    }
    while (step < steps + 2 && (double)ns >= step->factor * 999.5)
        step++;
    const double value = (double)ns / step->factor;

    snprintf(text, cap, "%.*f %s",
             value < 9.995 ? 2 : (value < 99.95 ? 1 : 0), value, step->name);
    return text;
}
