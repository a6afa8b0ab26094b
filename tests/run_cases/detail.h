/* SPDX-License-Identifier: MIT */
/*
 * The column `detail` of a case: key=value joined by ';', the values
 * percent-encoded.
 */
#ifndef RUN_CASES_DETAIL_H
#define RUN_CASES_DETAIL_H

#include "tools/myra/message.h"

struct clause {
    char *key;
    struct bytes value; /* decoded */
};

struct detail {
    struct clause *clauses;
    size_t clause_count;
};

/* 0, or -1 with the reason in why: a clause without '=', a bad percent
 * escape, a key that appears twice. */
int detail_parse(const char *text, struct detail *detail, struct bytes *why);
void detail_fini(struct detail *detail);

/* The clause of that key, or NULL. */
const struct clause *detail_find(const struct detail *detail,
                                 const char *key);
/* The clause of key and number: ("body", 1) is body1. */
const struct clause *detail_find_numbered(const struct detail *detail,
                                          const char *key, size_t number);
/* The decoded text of a clause, or fallback where there is none. */
const char *detail_text(const struct detail *detail, const char *key,
                        const char *fallback);

/* A clause's decimal number: 0, or -1 where it is none. */
int clause_number(const struct clause *clause, unsigned long *out);

/* The N of keys such as body1 for the given stem ("body"); 0 where the key
 * is not of that form. */
size_t key_number(const char *key, const char *stem);

/* The first key that a row of this kind may not have, or NULL. */
const char *detail_unknown_key(const struct detail *detail, const char *kind);

/* 1 if the comma list holds the word. */
int list_has(const char *list, const char *word);

#endif
