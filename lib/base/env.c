/* SPDX-License-Identifier: MIT */
/* The only caller of getenv, and the checks of the MYRA_ variables. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/checked.h"
#include "lib/base/env.h"

#include <myra/alloc.h>
#include <myra/err.h>

/* Bytes of a wrong value that an error line repeats. */
#define SHOWN_CAP 64

#if MYRA_HAVE_URING
#define BACKEND_VALUES "auto, uring-token, epoll"
#else
#define BACKEND_VALUES "auto, epoll"
#endif

struct variable {
    const char *name;
    const char *values; /* separated by ", "; NULL: simd/ knows */
    int takes_list;     /* 1: a comma list of values */
};

static const struct variable variables[] = {
    { "MYRA_BACKEND", BACKEND_VALUES, 1 },
    { "MYRA_WAIT", "park, spin", 0 },
    { "MYRA_POLLER", "loop", 0 },
    { "MYRA_SIMD", NULL, 0 },
};

const char *myi_env(const char *name)
{
#ifdef __GLIBC__
    const char *value = secure_getenv(name);
#else
    const char *value = getenv(name);
#endif

    return value && value[0] ? value : NULL;
}

/* 1 when the len bytes at word are one element of values. */
static int is_listed(const char *values, const char *word, size_t len)
{
    for (;;) {
        const size_t value_len = strcspn(values, ",");

        if (value_len == len && memcmp(values, word, len) == 0)
            return 1;
        values += value_len;
        if (!*values)
            return 0;
        values += strspn(values, ", ");
    }
}

/* Writes the line that names what is wrong. The value comes from outside:
 * it is cut, and what cannot be printed becomes '?'. */
static int refuse(char *text, size_t cap, const char *name, const char *word,
                  size_t len, const char *values)
{
    char shown[SHOWN_CAP + 4];
    size_t shown_len = len < SHOWN_CAP ? len : SHOWN_CAP;

    for (size_t i = 0; i < shown_len; i++)
        shown[i] = word[i] >= ' ' && word[i] <= '~' ? word[i] : '?';
    if (len > SHOWN_CAP) {
        memcpy(shown + shown_len, "...", 3);
        shown_len += 3;
    }
    shown[shown_len] = '\0';
    snprintf(text, cap, "%s: \"%s\" is not available; values here: %s", name,
             shown, values);
    return MYRA_EENV;
}

static int check_list(const struct variable *variable, const char *value,
                      char *text, size_t cap)
{
    for (;;) {
        const size_t len = variable->takes_list ? strcspn(value, ",")
                                                : strlen(value);

        if (!is_listed(variable->values, value, len))
            return refuse(text, cap, variable->name, value, len,
                          variable->values);
        value += len;
        if (!*value)
            return 0;
        value++;
    }
}

static int check_variable(const struct variable *variable, const char *value,
                          char *text, size_t cap)
{
    const char *values;

    if (variable->values)
        return check_list(variable, value, text, cap);
    if (myi_env_simd_exists(value, &values))
        return 0;
    return refuse(text, cap, variable->name, value, strlen(value), values);
}

int myi_env_check_value(const char *name, const char *value, char *text,
                        size_t cap)
{
    text[0] = '\0';
    for (size_t i = 0; i < MYI_ARRAY_LEN(variables); i++)
        if (strcmp(variables[i].name, name) == 0)
            return check_variable(&variables[i], value, text, cap);
    return 0;
}

int myra_env_check(char *text, size_t text_cap)
{
    text[0] = '\0';
    for (size_t i = 0; i < MYI_ARRAY_LEN(variables); i++) {
        const char *value = myi_env(variables[i].name);

        if (value)
            MYRA_TRY(check_variable(&variables[i], value, text, text_cap));
    }
    return 0;
}
