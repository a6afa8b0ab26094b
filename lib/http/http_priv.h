/* SPDX-License-Identifier: MIT */
/* What the files of this folder share. */
#ifndef MYI_HTTP_PRIV_H
#define MYI_HTTP_PRIV_H

#include <myra/http.h>

#include "lib/http/chars.h"
#include "simd/kernels.h"

extern const struct myra_http_limits myi_http_limits_default;

static inline const struct myra_http_limits *
myi_http_limits(const struct myra_http_limits *limits)
{
    return limits ? limits : &myi_http_limits_default;
}

/* Sets of field ids. HOP is the fixed list of rule 33; UNSAFE may not come as
 * a trailer (RFC 9110 6.5.1). */
extern const uint64_t myi_http_hop_ids;
extern const uint64_t myi_http_unsafe_ids;

/* The id of a name that is known to be a token. */
enum myra_http_field_id myi_http_token_id(const uint8_t *name, size_t len);

/*
 * Finds the end of the line at text: a CR LF, or an LF alone if is_lenient.
 * text[0 .. from) was searched by an earlier call. The line may be max bytes
 * long without its end.
 *
 * Returns the length of the line's end (1 or 2), *at being its offset; 0 when
 * the end is not there yet, *at being where to search on; or an error at *at:
 * MYRA_HTTP_LINE_TOO_LONG, MYRA_HTTP_LINE_END (a CR or LF that ends nothing),
 * MYRA_HTTP_FIELD_VALUE (another control byte; HTAB is none).
 *
 * The limit is looked at first and bytes behind it never are, so the outcome
 * is the same for any cut of the input.
 */
static inline int myi_http_line_end(const uint8_t *text, size_t from,
                                    size_t len, size_t readable, size_t max,
                                    int is_lenient, size_t *at)
{
    const size_t to = max < len ? max + 1 : len;
    const size_t i =
        from + myi_find_ctl(text + from, to - from, readable - from);

    *at = i;
    if (i == to)
        return to > max ? MYRA_HTTP_LINE_TOO_LONG : 0;
    if (MYRA_LIKELY(text[i] == '\r')) {
        if (i + 1 == len)
            return 0;
        return MYRA_LIKELY(text[i + 1] == '\n') ? 2 : MYRA_HTTP_LINE_END;
    }
    if (text[i] == '\n')
        return is_lenient ? 1 : MYRA_HTTP_LINE_END;
    return MYRA_HTTP_FIELD_VALUE;
}

/*
 * Parses the field line data[start .. end), which holds no control byte but
 * HTAB and is followed by CR or LF. 0, or an error at *error_offset.
 */
int myi_http_field_parse(const uint8_t *data, size_t start, size_t end,
                         struct myra_http_field *field, size_t *error_offset);

/* Marks hop-by-hop fields, reads the Connection lists, sets the flags of the
 * head that come from fields. seen is the set of ids. */
int myi_http_fields_finish(const uint8_t *data, struct myra_http_head *head,
                           uint64_t seen);

/* Decide how a message ends (rules 12 to 17 and 23 to 29). */
int myi_http_frame_request(const uint8_t *data, struct myra_http_head *head,
                           uint64_t seen,
                           const struct myra_http_limits *limits);
int myi_http_frame_response(const uint8_t *data, struct myra_http_head *head,
                            uint64_t seen,
                            const struct myra_http_limits *limits,
                            const struct myra_http_asked *asked);

/* The next element of a comma-separated list, blanks and folds cut off;
 * empty elements come too. 1, or 0 at the end. Quoted strings are not looked
 * at. *pos starts at 0. */
int myi_http_element_next(const uint8_t *value, size_t value_len, size_t *pos,
                          size_t *off, size_t *len);

#endif
