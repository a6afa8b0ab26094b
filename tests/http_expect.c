/* SPDX-License-Identifier: MIT */
/* Short ways to say what a head must come to. */
#include "config.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tests/http_expect.h"

struct feed_result run_all(const struct feed_plan *plan, const char *text,
                           size_t len)
{
    struct feed_result result;
    const char *where = feed_all(plan, (const uint8_t *)text, len, &result);

    cr_assert(!where, "%s: %s gives\n%s", text, where, result.text);
    return result;
}

void expect(const struct feed_plan *plan, const char *text, size_t len,
            int err)
{
    struct feed_result result = run_all(plan, text, len);

    cr_expect(result.err == err, "%s\nwants %s, not:\n%s", text,
              err ? myra_err_name(err) : "no error", result.text);
    feed_free(&result);
}

void request(const char *text, int err)
{
    const struct feed_plan plan = { .kind = FEED_REQUEST };

    expect(&plan, text, strlen(text), err);
}

void response(const char *text, int err)
{
    const struct feed_plan plan = { .kind = FEED_RESPONSE };

    expect(&plan, text, strlen(text), err);
}

static struct myra_http_field fields[FEED_FIELDS];
struct myra_http_head head;

int parse_as(const char *text, uint32_t flags,
             const struct myra_http_asked *asked, int is_response)
{
    struct myra_http_limits limits;
    struct myra_http_scan scan = { 0 };
    const uint8_t *data = (const uint8_t *)text;
    const size_t len = strlen(text);

    myra_http_limits_init(&limits);
    limits.flags = flags;
    head.fields = fields;
    head.field_cap = FEED_FIELDS;
    if (is_response)
        return myra_http_response_parse(data, len, len, &limits, asked, &scan,
                                        &head);
    return myra_http_request_parse(data, len, len, &limits, &scan, &head);
}

void parse(const char *text)
{
    cr_assert(parse_as(text, 0, NULL, 0) == (int)strlen(text), "%s: %s", text,
              myra_err_name(parse_as(text, 0, NULL, 0)));
}

void parse_response(const char *text, int method)
{
    const struct myra_http_asked asked = { .method = (uint8_t)method };

    cr_assert(parse_as(text, 0, &asked, 1) == (int)strlen(text), "%s: %s",
              text, myra_err_name(parse_as(text, 0, &asked, 1)));
}

int is_flagged(const char *text, const char *name, int flag)
{
    const struct myra_http_field *field =
        myra_http_head_find((const uint8_t *)text, &head, name, strlen(name));

    cr_assert(field, "no field %s", name);
    return (field->flags & flag) != 0;
}
