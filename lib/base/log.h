/* SPDX-License-Identifier: MIT */
/* The only way for the library to say something. */
#ifndef MYI_LOG_H
#define MYI_LOG_H

#include <myra/alloc.h>

/* Hands one line (no newline; cut at 511 bytes) to the log hook, or drops
 * it. Any thread. */
void myi_log(enum myra_log_level level, const char *format, ...)
    MYRA_PRINTF(2, 3);

#endif
