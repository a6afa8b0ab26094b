/* SPDX-License-Identifier: MIT */
/*
 * The conformance suite that every backend must pass: the parts are in
 * conformance_*.c, and run on the backend that MYRA_BACKEND names. This part
 * checks that it is really that one.
 */
#include "config.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include <myra/loop.h>

Test(backend, is_the_one_that_was_asked_for)
{
    const char *asked = getenv("MYRA_BACKEND");
    struct myra_loop *loop;

    cr_assert_eq(myra_loop_new(NULL, &loop), 0, "%s",
                 myra_loop_new_error());
    if (asked != NULL && strchr(asked, ',') == NULL &&
        strcmp(asked, "auto") != 0)
        cr_assert_str_eq(myra_loop_backend_name(loop), asked);
    cr_assert_not_null(strstr(myra_loop_backend_reason(loop), "in use"));
    cr_assert_not_null(strstr(myra_loop_backend_reason(loop),
                              myra_loop_backend_name(loop)));
    myra_loop_free(loop);
}
