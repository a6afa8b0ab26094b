/* SPDX-License-Identifier: MIT */
/*
 * Request and response heads. Properties: no cut changes the outcome; a head
 * that is accepted and forwarded is accepted by the next hop in strict mode,
 * which sees the same framing and no field meant for this hop only.
 */
#include "config.h"

#include "tests/fuzz/fuzz_feed.h"

static struct myra_http_field first_fields[FEED_FIELDS];
static struct myra_http_field second_fields[FEED_FIELDS];

static void use_limits(struct myra_http_limits *limits, uint64_t hash)
{
    myra_http_limits_init(limits);
    limits->flags = hash & 7;
    if (hash & 8)
        limits->line_max = 64;
    if (hash & 16)
        limits->fields_max = 128;
}

/* What may be sent is at most a little longer than what came. */
static void double_limits(struct myra_http_limits *limits)
{
    myra_http_limits_init(limits);
    limits->line_max *= 2;
    limits->fields_max *= 2;
    limits->flags = MYRA_ACCEPT_CODINGS;
}

static size_t forward(const uint8_t *data, const struct myra_http_head *head,
                      uint8_t *sent, size_t cap)
{
    struct myra_http_out out;

    myra_http_out_init(&out, sent, cap);
    if (head->is_response) {
        myra_http_emit_forward_status(&out, data, head);
    } else {
        myra_http_emit_origin_line(&out, data, head);
        myra_http_emit_host(&out, data, head);
    }
    myra_http_emit_forward(&out, data, head, 0);
    myra_http_emit_framing(&out, data, head,
                           (enum myra_http_framing)head->framing);
    myra_http_emit_end(&out);
    MUST(out.err == 0);
    return out.len;
}

static void compare_heads(const struct myra_http_head *a,
                          const struct myra_http_head *b)
{
    MUST(a->framing == b->framing);
    MUST(a->content_length == b->content_length);
    MUST((a->flags & MYRA_HEAD_HAS_LENGTH) ==
             (b->flags & MYRA_HEAD_HAS_LENGTH) ||
         a->framing == MYRA_FRAMING_NONE);
    MUST(a->status == b->status);
    MUST(a->method_len == b->method_len && a->method == b->method);
    MUST(b->version_minor == 1);
    for (uint32_t i = 0; i < b->field_count; i++) {
        const int is_hop = b->fields[i].flags & MYRA_FIELD_IS_HOP;

        MUST(!(b->fields[i].flags & MYRA_FIELD_IS_IRREGULAR));
        MUST(!is_hop || (b->flags & MYRA_HEAD_WEBSOCKET));
    }
}

static void check_forward(const uint8_t *data,
                          const struct myra_http_head *head,
                          const struct myra_http_asked *asked)
{
    const size_t cap = myra_http_forward_bound(head);
    struct myra_http_head next = { .fields = second_fields,
                                   .field_cap = FEED_FIELDS };
    struct myra_http_scan scan = { 0 };
    struct myra_http_limits limits;
    uint8_t *sent = malloc(cap);
    size_t len;
    int n;

    MUST(sent);
    len = forward(data, head, sent, cap);
    double_limits(&limits);
    limits.field_count_max = FEED_FIELDS;
    if (head->is_response)
        n = myra_http_response_parse(sent, len, len, &limits, asked, &scan,
                                     &next);
    else
        n = myra_http_request_parse(sent, len, len, &limits, &scan, &next);
    /* A full array may lack the one place that Host or framing needs. */
    if (n == MYRA_HTTP_FIELDS_TOO_MANY && head->field_count > FEED_FIELDS - 4)
        n = 0;
    else
        MUST(n == (int)len);
    if (n > 0)
        compare_heads(head, &next);
    free(sent);
}

static void parse_and_forward(const uint8_t *data, size_t size,
                              const struct feed_plan *plan)
{
    struct myra_http_head head = { .fields = first_fields,
                                   .field_cap = FEED_FIELDS };
    struct myra_http_scan scan = { 0 };
    const struct myra_http_asked *asked = plan->asked;
    int n;

    if (plan->kind == FEED_RESPONSE)
        n = myra_http_response_parse(data, size, size, plan->limits, asked,
                                     &scan, &head);
    else
        n = myra_http_request_parse(data, size, size, plan->limits, &scan,
                                    &head);
    MUST(n <= (int)size);
    if (n < 0)
        MUST(head.error_offset <= size && myra_http_status_of(n, 0) >= 400);
    /* Another protocol than websocket is not passed on by this writer. */
    if (n > 0 && !(head.status == 101 && !(head.flags & MYRA_HEAD_WEBSOCKET)))
        check_forward(data, &head, asked);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t methods[] = { MYRA_METHOD_GET, MYRA_METHOD_HEAD,
                                       MYRA_METHOD_CONNECT, MYRA_METHOD_POST };
    const uint64_t hash = hash_of(data, size);
    struct myra_http_limits limits;
    struct myra_http_asked asked[2] = {
        { methods[hash >> 8 & 3], hash >> 10 & 1, hash >> 11 & 1 },
        { MYRA_METHOD_GET, 0, 0 },
    };
    struct feed_plan plan = { .limits = &limits,
                              .asked = asked,
                              .asked_count = 2,
                              .is_eof = hash >> 12 & 1,
                              .slack = hash >> 13 & 64 };
    uint8_t *copy = malloc(size ? size : 1);

    MUST(copy);
    if (size > 0)
        memcpy(copy, data, size);
    use_limits(&limits, hash >> 32);
    for (int kind = FEED_REQUEST; kind <= FEED_RESPONSE; kind++) {
        plan.kind = (enum feed_kind)kind;
        check_cuts(&plan, copy, size, hash);
        parse_and_forward(copy, size, &plan);
    }
    free(copy);
    return 0;
}
