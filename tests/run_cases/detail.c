/* SPDX-License-Identifier: MIT */
/*
 * Reads `detail`. Which keys a kind may have is a table here: a key outside
 * it fails its row, because nobody would check it.
 */
#include "config.h"

#include "tests/run_cases/detail.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBERED 1 /* the key is a stem with a number behind it */
#define PREFIX 2   /* the key is a stem with a name behind it */

struct known_key {
    const char *kinds; /* comma list */
    const char *key;
    int form;
};

static const struct known_key known_keys[] = {
    { "request,response", "msgs", 0 },
    { "request,response,chunked", "body", NUMBERED },
    { "request", "target", NUMBERED },
    { "request", "method", NUMBERED },
    { "response", "status", NUMBERED },
    { "request,response,chunked", "trailer", NUMBERED },
    { "request,response", "field_", PREFIX },
    { "request,response", "keep", 0 },
    { "request,response,chunked", "eof", 0 },
    { "response", "for", 0 },
    { "request,response", "tunnel", 0 },
    { "request,response,chunked", "leftover", 0 },
    { "request", "role", 0 },
    { "request", "forward_target", 0 },
    { "request", "forward_host", 0 },
    { "response", "upgrade_asked", 0 },
    { "request,response,chunked", "limit", 0 },
    { "request,response,chunked", "never", 0 },
    { "request,response", "status_also", 0 },
};

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

static int percent_decode(const char *text, size_t len, struct bytes *out)
{
    bytes_set(out, "", 0);
    for (size_t i = 0; i < len; i++) {
        char byte = text[i];

        if (byte == '%') {
            const int high = i + 2 < len ? hex_value(text[i + 1]) : -1;
            const int low = high >= 0 ? hex_value(text[i + 2]) : -1;

            if (low < 0)
                return -1;
            byte = (char)(high * 16 + low);
            i += 2;
        }
        bytes_add(out, &byte, 1);
    }
    return 0;
}

static int add_clause(struct detail *detail, const char *text, size_t len,
                      struct bytes *why)
{
    const char *const equals = memchr(text, '=', len);
    struct clause *clause;

    if (equals == NULL || equals == text) {
        bytes_add_text(why, "detail has a clause without a key and a '=': ");
        bytes_add(why, text, len);
        return -1;
    }
    detail->clauses = memory_grow(
        detail->clauses, (detail->clause_count + 1) * sizeof *clause);
    clause = &detail->clauses[detail->clause_count];
    memset(clause, 0, sizeof *clause);
    clause->key = memory_grow(NULL, (size_t)(equals - text) + 1);
    memcpy(clause->key, text, (size_t)(equals - text));
    clause->key[equals - text] = '\0';
    detail->clause_count++;
    if (percent_decode(equals + 1, len - (size_t)(equals - text) - 1,
                       &clause->value) < 0) {
        bytes_add_text(why, "bad percent escape in the value of ");
        bytes_add_text(why, clause->key);
        return -1;
    }
    if (detail_find(detail, clause->key) != clause) {
        bytes_add_text(why, "the key appears twice: ");
        bytes_add_text(why, clause->key);
        return -1;
    }
    return 0;
}

int detail_parse(const char *text, struct detail *detail, struct bytes *why)
{
    memset(detail, 0, sizeof *detail);
    while (*text != '\0') {
        const size_t len = strcspn(text, ";");

        if (len > 0 && add_clause(detail, text, len, why) < 0)
            return -1;
        text += len + (text[len] == ';');
    }
    return 0;
}

void detail_fini(struct detail *detail)
{
    for (size_t i = 0; i < detail->clause_count; i++) {
        free(detail->clauses[i].key);
        bytes_fini(&detail->clauses[i].value);
    }
    free(detail->clauses);
    memset(detail, 0, sizeof *detail);
}

const struct clause *detail_find(const struct detail *detail, const char *key)
{
    for (size_t i = 0; i < detail->clause_count; i++) {
        if (strcmp(detail->clauses[i].key, key) == 0)
            return &detail->clauses[i];
    }
    return NULL;
}

const struct clause *detail_find_numbered(const struct detail *detail,
                                          const char *key, size_t number)
{
    char name[48];

    snprintf(name, sizeof name, "%s%zu", key, number);
    return detail_find(detail, name);
}

const char *detail_text(const struct detail *detail, const char *key,
                        const char *fallback)
{
    const struct clause *const clause = detail_find(detail, key);

    return clause ? bytes_text(&clause->value) : fallback;
}

int clause_number(const struct clause *clause, unsigned long *out)
{
    const char *const text = bytes_text(&clause->value);
    char *end;

    if (text[0] < '0' || text[0] > '9' || clause->value.len > 18)
        return -1;
    *out = strtoul(text, &end, 10);
    return *end == '\0' && (size_t)(end - text) == clause->value.len ? 0 : -1;
}

size_t key_number(const char *key, const char *stem)
{
    const size_t stem_len = strlen(stem);
    size_t number = 0;

    if (strncmp(key, stem, stem_len) != 0 || key[stem_len] < '1' ||
        key[stem_len] > '9')
        return 0;
    for (const char *p = key + stem_len; *p != '\0'; p++) {
        if (*p < '0' || *p > '9' || number > 1000000)
            return 0;
        number = number * 10 + (size_t)(*p - '0');
    }
    return number;
}

int list_has(const char *list, const char *word)
{
    const size_t word_len = strlen(word);

    while (*list != '\0') {
        const size_t len = strcspn(list, ",");

        if (len == word_len && memcmp(list, word, len) == 0)
            return 1;
        list += len + (list[len] == ',');
    }
    return 0;
}

static int is_known(const char *key, const char *kind)
{
    for (size_t i = 0; i < sizeof known_keys / sizeof *known_keys; i++) {
        const struct known_key *const known = &known_keys[i];

        if (!list_has(known->kinds, kind))
            continue;
        if (known->form == 0 && strcmp(key, known->key) == 0)
            return 1;
        if (known->form == NUMBERED && key_number(key, known->key) > 0)
            return 1;
        if (known->form == PREFIX &&
            strncmp(key, known->key, strlen(known->key)) == 0 &&
            key[strlen(known->key)] != '\0')
            return 1;
    }
    return 0;
}

const char *detail_unknown_key(const struct detail *detail, const char *kind)
{
    for (size_t i = 0; i < detail->clause_count; i++) {
        if (!is_known(detail->clauses[i].key, kind))
            return detail->clauses[i].key;
    }
    return NULL;
}
