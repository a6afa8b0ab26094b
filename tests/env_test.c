/* SPDX-License-Identifier: MIT */
/* The environment: which values are taken, and what the refusals say. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "lib/base/env.h"

#include <myra/alloc.h>
#include <myra/err.h>

static void clear(void)
{
    unsetenv("MYRA_BACKEND");
    unsetenv("MYRA_WAIT");
    unsetenv("MYRA_POLLER");
    unsetenv("MYRA_SIMD");
}

static int is_taken(const char *name, const char *value)
{
    char text[256];
    int err;

    setenv(name, value, 1);
    err = myra_env_check(text, sizeof(text));
    unsetenv(name);
    cr_assert(err == 0 || err == MYRA_EENV);
    cr_assert_eq(err == 0, text[0] == '\0');
    return err == 0;
}

Test(env, nothing_set_is_fine, .init = clear)
{
    char text[8] = "old";

    cr_assert_eq(myra_env_check(text, sizeof(text)), 0);
    cr_assert_str_empty(text);
    cr_assert_null(myi_env("MYRA_BACKEND"));
}

Test(env, an_empty_value_is_no_value, .init = clear)
{
    cr_assert(is_taken("MYRA_BACKEND", ""));
    cr_assert(is_taken("MYRA_SIMD", ""));
}

Test(env, backends_are_names_or_lists_of_them, .init = clear)
{
    cr_assert(is_taken("MYRA_BACKEND", "auto"));
    cr_assert(is_taken("MYRA_BACKEND", "epoll"));
    cr_assert(is_taken("MYRA_BACKEND", "epoll,auto"));
    cr_assert_not(is_taken("MYRA_BACKEND", "select"));
    cr_assert_not(is_taken("MYRA_BACKEND", "epoll,select"));
    cr_assert_not(is_taken("MYRA_BACKEND", "epoll,"));
    cr_assert_not(is_taken("MYRA_BACKEND", ",epoll"));
    cr_assert_not(is_taken("MYRA_BACKEND", "epol"));
    cr_assert_not(is_taken("MYRA_BACKEND", "epolls"));
    cr_assert_not(is_taken("MYRA_BACKEND", "EPOLL"));
#if MYRA_HAVE_URING
    cr_assert(is_taken("MYRA_BACKEND", "uring-token,epoll"));
#else
    cr_assert_not(is_taken("MYRA_BACKEND", "uring-token"));
#endif
}

Test(env, the_other_axes_take_what_exists, .init = clear)
{
    cr_assert(is_taken("MYRA_WAIT", "park"));
    cr_assert(is_taken("MYRA_WAIT", "spin"));
    cr_assert_not(is_taken("MYRA_WAIT", "park,spin"));
    cr_assert_not(is_taken("MYRA_WAIT", "doze"));
    cr_assert(is_taken("MYRA_POLLER", "loop"));
    cr_assert_not(is_taken("MYRA_POLLER", "pool"));
}

Test(env, simd_levels_depend_on_the_machine, .init = clear)
{
    cr_assert(is_taken("MYRA_SIMD", "auto"));
    cr_assert_not(is_taken("MYRA_SIMD", "mmx"));
    cr_assert_not(is_taken("MYRA_SIMD", "scalar"));
#ifndef MYRA_ENABLE_IFUNC
    cr_assert(is_taken("MYRA_SIMD", "0"));
#endif
}

Test(env, a_refusal_names_variable_value_and_choices, .init = clear)
{
    char text[256];

    setenv("MYRA_WAIT", "doze", 1);
    cr_assert_eq(myra_env_check(text, sizeof(text)), MYRA_EENV);
    cr_assert_not_null(strstr(text, "MYRA_WAIT"));
    cr_assert_not_null(strstr(text, "\"doze\""));
    cr_assert_not_null(strstr(text, "park, spin"));
    cr_assert_null(strchr(text, '\n'));
}

Test(env, a_refusal_shows_one_element_of_a_list, .init = clear)
{
    char text[256];

    setenv("MYRA_BACKEND", "epoll,select", 1);
    cr_assert_eq(myra_env_check(text, sizeof(text)), MYRA_EENV);
    cr_assert_not_null(strstr(text, "\"select\""));
}

Test(env, a_hostile_value_is_cut_and_cleaned, .init = clear)
{
    char value[5000];
    char text[256];

    memset(value, '\x1b', sizeof(value) - 1);
    value[sizeof(value) - 1] = '\0';
    setenv("MYRA_POLLER", value, 1);
    cr_assert_eq(myra_env_check(text, sizeof(text)), MYRA_EENV);
    cr_assert_null(strchr(text, '\x1b'));
    cr_assert_not_null(strstr(text, "?..."));
    cr_assert_not_null(strstr(text, "loop"));
}

Test(env, a_short_buffer_is_terminated, .init = clear)
{
    char text[4] = "xyz";

    setenv("MYRA_POLLER", "none", 1);
    cr_assert_eq(myra_env_check(text, 1), MYRA_EENV);
    cr_assert_eq(text[0], '\0');
    cr_assert_eq(text[1], 'y');
    cr_assert_eq(myra_env_check(text, 3), MYRA_EENV);
    cr_assert_eq(text[2], '\0');
}
