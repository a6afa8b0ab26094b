/* SPDX-License-Identifier: MIT */
/* What myra-load reads from its command line: times, targets, conditions. */
#include "config.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tools/myra-load/target.h"
#include "tools/myra-load/threshold.h"
#include "tools/myra-load/units.h"

Test(units, times_with_every_unit)
{
    static const struct {
        const char *text;
        uint64_t ns;
    } rows[] = {
        { "10", UINT64_C(10000000000) }, { "10s", UINT64_C(10000000000) },
        { "1.5ms", 1500000 },            { "200us", 200000 },
        { "50ns", 50 },                  { "2m", UINT64_C(120000000000) },
        { "0", 0 },                      { ".5s", 500000000 },
    };
    static const char *const bad[] = { "", "x", "-1s", "1x", "s", "1 s",
                                       "nan", "inf", "1e30h" };
    uint64_t ns;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        cr_assert_eq(units_parse_time(rows[i].text, &ns), 0, "%s",
                     rows[i].text);
        cr_assert_eq(ns, rows[i].ns, "%s", rows[i].text);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        cr_assert_lt(units_parse_time(bad[i], &ns), 0, "%s", bad[i]);
}

Test(units, times_are_printed_with_three_digits)
{
    char text[32];

    cr_assert_str_eq(units_print_time(950, text, sizeof(text)), "950 ns");
    cr_assert_str_eq(units_print_time(1234, text, sizeof(text)), "1.23 us");
    cr_assert_str_eq(units_print_time(56789, text, sizeof(text)), "56.8 us");
    cr_assert_str_eq(units_print_time(999600, text, sizeof(text)), "1.00 ms");
    cr_assert_str_eq(units_print_time(UINT64_C(90000000000), text,
                                      sizeof(text)),
                     "90.0 s");
}

Test(target, urls_are_taken_apart)
{
    static const struct {
        const char *url, *host, *port, *authority, *path;
    } rows[] = {
        { "http://127.0.0.1:8080/a?b=c", "127.0.0.1", "8080",
          "127.0.0.1:8080", "/a?b=c" },
        { "localhost", "localhost", "80", "localhost", "/" },
        { "HTTP://h?x", "h", "80", "h", "/?x" },
        { "http://[::1]:81/#part", "::1", "81", "[::1]:81", "/" },
    };
    static const char *const bad[] = {
        "https://h/", "ftp://h/",       "http://",        "http://h:0/",
        "http://h:/", "http://h:99999", "http://[::1",    "http://u@h/",
        "http://h/a b", "http://h:8x/", "http://[::1]x/", "http:///p",
    };
    struct target target;
    const char *why = NULL;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        cr_assert_eq(target_parse(rows[i].url, &target, &why), 0, "%s",
                     rows[i].url);
        cr_assert_str_eq(target.host, rows[i].host);
        cr_assert_str_eq(target.port, rows[i].port);
        cr_assert_str_eq(target.authority, rows[i].authority);
        cr_assert_str_eq(target.path, rows[i].path);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        why = NULL;
        cr_assert_lt(target_parse(bad[i], &target, &why), 0, "%s", bad[i]);
        cr_assert_not_null(why);
    }
}

Test(threshold, conditions_are_read)
{
    struct threshold threshold;

    cr_assert_eq(threshold_parse("p99.9>=1.5ms", &threshold), 0);
    cr_assert_eq(threshold.metric, THRESHOLD_PERCENTILE);
    cr_assert_float_eq(threshold.percent, 99.9, 1e-9);
    cr_assert_eq(threshold.op, THRESHOLD_AT_LEAST);
    cr_assert_float_eq(threshold.bound, 1.5e6, 1e-6);
    cr_assert_eq(threshold.is_actual, 0);
    cr_assert_eq(threshold_parse("actual.max<1s", &threshold), 0);
    cr_assert_eq(threshold.metric, THRESHOLD_MAX);
    cr_assert_eq(threshold.op, THRESHOLD_BELOW);
    cr_assert_eq(threshold.is_actual, 1);
    cr_assert_eq(threshold_parse("error-rate>0.1%", &threshold), 0);
    cr_assert_eq(threshold_parse("errors>0", &threshold), 0);
    cr_assert_eq(threshold_parse("rate<=2k", &threshold), 0);
    cr_assert_float_eq(threshold.bound, 2000, 1e-9);
}

Test(threshold, what_is_no_condition_is_refused)
{
    static const char *const bad[] = {
        "",        "p99",       "p99>",      "p99>500",  "p>1ms",
        "p101>1s", "p99=1ms",   "x>1ms",     "errors>x", "error-rate>1",
        ">1ms",    "p99x>1ms",  "p99>>1ms",  "actual.>1s",
    };
    struct threshold threshold;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        cr_assert_lt(threshold_parse(bad[i], &threshold), 0, "%s", bad[i]);
}
