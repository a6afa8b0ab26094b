/* SPDX-License-Identifier: MIT */
/*
 * Says whether the backend named by MYRA_BACKEND can serve on this machine:
 * makes a loop, prints its name and reason, and exits 0; or prints why there
 * is none and exits 1. The test scripts ask it before they skip a backend.
 */
#include "config.h"

#include <stdio.h>

#include <myra/loop.h>

int main(void)
{
    struct myra_loop *loop;
    const int err = myra_loop_new(NULL, &loop);

    if (err < 0) {
        printf("%s (%s)\n", myra_loop_new_error(), myra_strerror(err));
        return 1;
    }
    printf("%s: %s\n", myra_loop_backend_name(loop),
           myra_loop_backend_reason(loop));
    myra_loop_free(loop);
    return 0;
}
