/* SPDX-License-Identifier: MIT */
/*
 * Numbers with units, as people write and read them.
 */
#ifndef MYRA_LOAD_UNITS_H
#define MYRA_LOAD_UNITS_H

#include <stddef.h>
#include <stdint.h>

/* "10s", "1.5ms", "200us", "50ns", "2m", "1h"; without a unit: seconds.
 * 0, or -EINVAL with *ns_out untouched. At most 10,000 hours. */
int units_parse_time(const char *text, uint64_t *ns_out);

/* "5000", "10k", "1.5M". 0, or -EINVAL. */
int units_parse_number(const char *text, double *number_out);

/* "950 ns", "12.3 us", "1.25 ms", "3.40 s". Returns text. */
const char *units_print_time(uint64_t ns, char *text, size_t cap);

#endif
