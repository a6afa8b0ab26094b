/* SPDX-License-Identifier: MIT */
/* What the writers share. */
#ifndef MYI_HTTP_EMIT_PRIV_H
#define MYI_HTTP_EMIT_PRIV_H

#include <string.h>

#include "lib/http/http_priv.h"

/* Where the next len bytes go, or NULL after an error or when they do not
 * fit, which is one. */
uint8_t *myi_http_out_room(struct myra_http_out *out, size_t len);

/* Notes MYRA_HTTP_EMIT if not legal; 1 when there is no error so far. */
int myi_http_out_check(struct myra_http_out *out, int is_legal);

/* Copies and returns the place behind. */
static inline uint8_t *myi_http_put(uint8_t *p, const void *data, size_t len)
{
    memcpy(p, data, len);
    return p + len;
}

static inline void myi_http_out_add(struct myra_http_out *out,
                                    const void *data, size_t len)
{
    uint8_t *p = myi_http_out_room(out, len);

    if (!p || len == 0)
        return;
    memcpy(p, data, len);
    out->len += len;
}

#endif
