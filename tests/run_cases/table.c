/* SPDX-License-Identifier: MIT */
/*
 * Reads cases.tsv. A line that is no row is kept with its fault, so that it
 * is counted as a failure and never skipped in silence.
 */
#include "config.h"

#include "tests/run_cases/table.h"

#include "tools/myra/message.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS 7

static const char *const column_names[COLUMNS] = {
    "file", "kind", "expect", "status", "reason", "source", "detail",
};

int file_read(const char *dir, const char *name, char **data_out,
              size_t *len_out)
{
    struct bytes path = { 0 };
    struct bytes data = { 0 };
    char block[16384];
    size_t got;
    FILE *file;
    int err = 0;

    bytes_add_text(&path, dir);
    bytes_add_text(&path, "/");
    bytes_add_text(&path, name);
    file = fopen(bytes_text(&path), "rb");
    if (file == NULL)
        err = -errno;
    bytes_fini(&path);
    if (err < 0)
        return err;
    bytes_add(&data, "", 0);
    while ((got = fread(block, 1, sizeof block, file)) > 0)
        bytes_add(&data, block, got);
    if (ferror(file))
        err = errno ? -errno : -EIO;
    fclose(file);
    if (err < 0) {
        bytes_fini(&data);
        return err;
    }
    *data_out = data.data;
    *len_out = data.len;
    return 0;
}

/* Cuts line at its tabs, in place. Returns the number of columns, which may
 * be more than COLUMNS; the first COLUMNS of them are in columns. */
static int split_line(char *line, char *columns[COLUMNS])
{
    int count = 0;

    for (;;) {
        char *tab = strchr(line, '\t');

        if (count < COLUMNS)
            columns[count] = line;
        count++;
        if (tab == NULL)
            return count;
        *tab = '\0';
        line = tab + 1;
    }
}

static enum expect expect_of(const char *text)
{
    if (strcmp(text, "accept") == 0)
        return EXPECT_ACCEPT;
    if (strcmp(text, "reject") == 0)
        return EXPECT_REJECT;
    if (strcmp(text, "either") == 0)
        return EXPECT_EITHER;
    return EXPECT_UNKNOWN;
}

static const char *name_fault(const char *name)
{
    if (name[0] == '\0')
        return "no file name";
    if (strchr(name, '/') != NULL || strcmp(name, "..") == 0)
        return "the file name leads out of the folder";
    return NULL;
}

static void add_row(struct case_table *table, char *line, int number)
{
    char *columns[COLUMNS] = { 0 };
    struct case_row *row;
    const int count = split_line(line, columns);

    table->rows = memory_grow(table->rows,
                              (table->row_count + 1) * sizeof *table->rows);
    row = &table->rows[table->row_count++];
    memset(row, 0, sizeof *row);
    row->line = number;
    row->file = columns[0];
    row->kind = row->status = row->detail = row->expect_text = "";
    row->expect = EXPECT_UNKNOWN;
    if (count != COLUMNS) {
        row->fault = "the line does not have seven columns";
        return;
    }
    row->kind = columns[1];
    row->expect_text = columns[2];
    row->expect = expect_of(columns[2]);
    row->status = columns[3];
    row->detail = columns[6];
    row->fault = name_fault(row->file);
}

static int header_is_right(char *line)
{
    char *columns[COLUMNS] = { 0 };

    if (split_line(line, columns) != COLUMNS)
        return 0;
    for (int i = 0; i < COLUMNS; i++) {
        if (strcmp(columns[i], column_names[i]) != 0)
            return 0;
    }
    return 1;
}

int case_table_load(const char *dir, struct case_table *table)
{
    size_t len = 0;
    int number = 0;
    char *line;
    const int err = file_read(dir, "cases.tsv", &table->text, &len);

    table->rows = NULL;
    table->row_count = 0;
    if (err < 0)
        return err;
    for (line = table->text; line != NULL && *line != '\0';) {
        char *end = strchr(line, '\n');
        char *const next = end ? end + 1 : NULL;

        if (end != NULL) {
            if (end > line && end[-1] == '\r')
                end--;
            *end = '\0';
        }
        number++;
        if (number == 1 && !header_is_right(line)) {
            case_table_free(table);
            return -EBADMSG;
        }
        if (number > 1 && *line != '\0')
            add_row(table, line, number);
        line = next;
    }
    return 0;
}

void case_table_free(struct case_table *table)
{
    free(table->text);
    free(table->rows);
    memset(table, 0, sizeof *table);
}
