/* SPDX-License-Identifier: MIT */
/*
 * Request targets and authorities. Properties: all offsets lie inside; what
 * is accepted and written for an origin or a proxy is accepted again, with
 * the same path and authority.
 */
#include "config.h"

#include "tests/fuzz/fuzz_feed.h"

static void check_authority(const struct myra_http_authority *authority,
                            size_t size)
{
    MUST((uint64_t)authority->off + authority->len <= size);
    MUST((uint64_t)authority->host_off + authority->host_len <= size);
    MUST(authority->host_off >= authority->off);
    MUST(authority->host_len > 0 || authority->len == 0);
}

/* The text of a target as a whole request, which must be taken. */
static void as_request(const uint8_t *text, size_t len, const char *method,
                       struct myra_http_head *head, uint8_t *to, size_t cap)
{
    struct myra_http_scan scan = { 0 };
    struct myra_http_limits limits;
    struct myra_http_out out;

    myra_http_out_init(&out, to, cap);
    myra_http_emit_request_line(&out, (const uint8_t *)method, strlen(method),
                                text, len, 1);
    myra_http_emit_text(&out, "Host", "h.test");
    myra_http_emit_end(&out);
    MUST(out.err == 0);
    myra_http_limits_init(&limits);
    limits.line_max = 1 << 24;
    MUST(myra_http_request_parse(to, out.len, out.len, &limits, &scan,
                                 head) == (int)out.len);
}

/* Reads a start line's target back. */
static void read_back(const struct myra_http_out *out, const char *method,
                      struct myra_http_target *target, const uint8_t **text)
{
    const size_t skip = strlen(method) + 1;
    const size_t tail = strlen(" HTTP/1.1\r\n");

    MUST(out->err == 0 && out->len > skip + tail);
    *text = out->p + skip;
    MUST(myra_http_target_parse(*text, out->len - skip - tail,
                                myra_http_method_of((const uint8_t *)method,
                                                    strlen(method)),
                                target) == 0);
}

static void check_lines(const uint8_t *data, const struct myra_http_head *head,
                        const char *method, uint8_t *to, size_t cap)
{
    const struct myra_http_target *parsed = &head->target;
    struct myra_http_target target;
    struct myra_http_out out;
    const uint8_t *text;

    myra_http_out_init(&out, to, cap);
    myra_http_emit_origin_line(&out, data, head);
    read_back(&out, method, &target, &text);
    if (parsed->form == MYRA_TARGET_ABSOLUTE && parsed->path_len > 0) {
        MUST(target.form == MYRA_TARGET_ORIGIN);
        MUST(memcmp(text + target.path_off +
                        (target.path_len - parsed->path_len),
                    data + parsed->path_off, parsed->path_len) == 0);
    }
    if (parsed->form != MYRA_TARGET_ABSOLUTE)
        return;
    myra_http_out_init(&out, to, cap);
    myra_http_emit_proxy_line(&out, data, head);
    read_back(&out, method, &target, &text);
    MUST(target.authority.len == parsed->authority.len);
    MUST(target.authority.port == parsed->authority.port);
    MUST(target.path_len == parsed->path_len);
    MUST(target.scheme == parsed->scheme);
}

static void check_target(const uint8_t *data, size_t size, const char *method)
{
    const enum myra_http_method id =
        myra_http_method_of((const uint8_t *)method, strlen(method));
    const size_t cap = size + 64;
    struct myra_http_field fields[4];
    struct myra_http_head head = { .fields = fields, .field_cap = 4 };
    struct myra_http_target target;
    uint8_t *wire;
    uint8_t *again;

    if (myra_http_target_parse(data, size, id, &target) < 0)
        return;
    MUST(target.len == size);
    MUST((uint64_t)target.path_off + target.path_len <= size);
    check_authority(&target.authority, size);
    wire = malloc(cap);
    again = malloc(cap);
    MUST(wire && again);
    as_request(data, size, method, &head, wire, cap);
    MUST(head.target.form == target.form);
    MUST(head.target.path_len == target.path_len);
    check_lines(wire, &head, method, again, cap);
    free(again);
    free(wire);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const methods[] = { "GET", "CONNECT", "OPTIONS" };
    struct myra_http_authority authority;
    uint8_t *copy = malloc(size ? size : 1);

    MUST(copy);
    if (size > 0)
        memcpy(copy, data, size);
    for (int i = 0; i < 3; i++)
        check_target(copy, size, methods[i]);
    if (myra_http_authority_parse(copy, size, &authority) == 0) {
        check_authority(&authority, size);
        MUST(authority.len == size);
    }
    free(copy);
    return 0;
}
