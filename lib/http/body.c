/* SPDX-License-Identifier: MIT */
/* A body of any framing, read in one way. */
#include "config.h"

#include <string.h>

#include "lib/http/http_priv.h"

int myra_http_body_init(struct myra_http_body *body,
                        const struct myra_http_head *head,
                        const struct myra_http_limits *limits)
{
    limits = myi_http_limits(limits);
    if (head->framing == MYRA_FRAMING_LENGTH &&
        head->content_length > limits->body_max)
        return MYRA_HTTP_BODY_TOO_LARGE;
    body->framing = head->framing;
    body->is_done = head->framing == MYRA_FRAMING_NONE ||
                    head->framing == MYRA_FRAMING_TUNNEL;
    body->body_len = 0;
    body->left = head->framing == MYRA_FRAMING_LENGTH ? head->content_length
                                                      : limits->body_max;
    if (head->framing == MYRA_FRAMING_CHUNKED)
        myra_http_chunked_init(&body->chunked, limits);
    return 0;
}

/* LENGTH and CLOSE: up to left bytes as they are. */
static size_t give_plain(struct myra_http_body *body, const uint8_t *data,
                         size_t len, struct myra_http_part *part)
{
    const size_t n = len < body->left ? len : (size_t)body->left;

    if (n == 0)
        return 0;
    part->kind = MYRA_PART_DATA;
    part->data = data;
    part->len = n;
    body->left -= n;
    body->body_len += n;
    return n;
}

static int64_t next_chunked(struct myra_http_body *body, const uint8_t *data,
                            size_t len, struct myra_http_part *part)
{
    const int64_t used = myra_http_chunked_next(&body->chunked, data, len,
                                                part);

    body->body_len = body->chunked.body_len;
    if (used >= 0 && part->kind == MYRA_PART_END)
        body->is_done = 1;
    return used;
}

int64_t myra_http_body_next(struct myra_http_body *body, const uint8_t *data,
                            size_t len, struct myra_http_part *part)
{
    part->kind = MYRA_PART_MORE;
    if (myra_http_body_is_complete(body)) {
        body->is_done = 1;
        part->kind = MYRA_PART_END;
        return 0;
    }
    if (body->framing == MYRA_FRAMING_CHUNKED)
        return next_chunked(body, data, len, part);
    if (body->framing == MYRA_FRAMING_CLOSE && body->left == 0 && len > 0)
        return MYRA_HTTP_BODY_TOO_LARGE;
    return (int64_t)give_plain(body, data, len, part);
}

int myra_http_body_eof(const struct myra_http_body *body)
{
    return myra_http_body_is_complete(body) ||
                   body->framing == MYRA_FRAMING_CLOSE
               ? 0
               : MYRA_ETRUNCATED;
}
