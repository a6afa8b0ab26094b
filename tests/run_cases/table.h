/* SPDX-License-Identifier: MIT */
/*
 * cases.tsv: one row a case, seven columns, one header line, no quoting.
 */
#ifndef RUN_CASES_TABLE_H
#define RUN_CASES_TABLE_H

#include <stddef.h>

enum expect { EXPECT_ACCEPT, EXPECT_REJECT, EXPECT_EITHER, EXPECT_UNKNOWN };

struct case_row {
    const char *file;
    const char *kind;
    enum expect expect;
    const char *expect_text;
    const char *status; /* "" where none is given */
    const char *detail;
    const char *fault; /* why the line is not a row, or NULL */
    int line;
};

struct case_table {
    char *text; /* the rows point into it */
    struct case_row *rows;
    size_t row_count;
};

/* Reads DIR/cases.tsv. 0, or a negative errno; -EBADMSG where the header
 * line is not that of such a table. */
int case_table_load(const char *dir, struct case_table *table);
void case_table_free(struct case_table *table);

/* Reads a whole file into memory the caller frees. 0 or a negative errno. */
int file_read(const char *dir, const char *name, char **data_out,
              size_t *len_out);

#endif
