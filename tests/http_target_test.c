/* SPDX-License-Identifier: MIT */
/* Request targets and authorities (rules 3, 31, 32). */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/http_feed.h"

/* Parses text from memory that ends at an unreadable page. */
static int parse_target(const char *text, enum myra_http_method method,
                        struct myra_http_target *target)
{
    const size_t len = strlen(text);
    uint8_t *copy = guard_copy((const uint8_t *)text, len, 0);
    int err;

    cr_assert(copy);
    memset(target, 0xee, sizeof(*target));
    err = myra_http_target_parse(copy, len, method, target);
    guard_free(copy, len, 0);
    return err;
}

static int parse_authority(const char *text, struct myra_http_authority *out)
{
    const size_t len = strlen(text);
    uint8_t *copy = guard_copy((const uint8_t *)text, len, 0);
    int err;

    cr_assert(copy);
    memset(out, 0xee, sizeof(*out));
    err = myra_http_authority_parse(copy, len, out);
    guard_free(copy, len, 0);
    return err;
}

struct target_row {
    const char *text;
    enum myra_http_method method;
    int form; /* -1: refused */
    const char *host;
    int port;
    const char *path;
    int scheme;
};

static const struct target_row target_rows[] = {
    { "/", MYRA_METHOD_GET, MYRA_TARGET_ORIGIN, "", 0, "/", 0 },
    { "//a", MYRA_METHOD_GET, MYRA_TARGET_ORIGIN, "", 0, "//a", 0 },
    { "/a?b#", MYRA_METHOD_GET, -1, "", 0, "", 0 },
    { "/%zz\x80", MYRA_METHOD_GET, MYRA_TARGET_ORIGIN, "", 0, "/%zz\x80", 0 },
    { "/a b", MYRA_METHOD_GET, -1, "", 0, "", 0 },
    { "", MYRA_METHOD_GET, -1, "", 0, "", 0 },
    { "a/b", MYRA_METHOD_GET, -1, "", 0, "", 0 },
    { "?q", MYRA_METHOD_GET, -1, "", 0, "", 0 },
    { "*", MYRA_METHOD_OPTIONS, MYRA_TARGET_ASTERISK, "", 0, "", 0 },
    { "*", MYRA_METHOD_GET, -1, "", 0, "", 0 },
    { "**", MYRA_METHOD_OPTIONS, -1, "", 0, "", 0 },
    { "http://h", MYRA_METHOD_GET, MYRA_TARGET_ABSOLUTE, "h", 0, "",
      MYRA_SCHEME_HTTP },
    { "http://h?q", MYRA_METHOD_GET, MYRA_TARGET_ABSOLUTE, "h", 0, "?q",
      MYRA_SCHEME_HTTP },
    { "HTTPS://h:8443/p", MYRA_METHOD_GET, MYRA_TARGET_ABSOLUTE, "h", 8443,
      "/p", MYRA_SCHEME_HTTPS },
    { "ws://h/", MYRA_METHOD_GET, MYRA_TARGET_ABSOLUTE, "h", 0, "/",
      MYRA_SCHEME_WS },
    { "wss://[::1]:9/", MYRA_METHOD_GET, MYRA_TARGET_ABSOLUTE, "::1", 9, "/",
      MYRA_SCHEME_WSS },
    { "http://u:p@h:1/@", MYRA_METHOD_GET, MYRA_TARGET_ABSOLUTE, "h", 1, "/@",
      MYRA_SCHEME_HTTP },
    { "http://a@b@c/", MYRA_METHOD_GET, MYRA_TARGET_ABSOLUTE, "c", 0, "/",
      MYRA_SCHEME_HTTP },
    { "http://", MYRA_METHOD_GET, -1, "", 0, "", 0 },
    { "http:///p", MYRA_METHOD_GET, -1, "", 0, "", 0 },
    { "http://?q", MYRA_METHOD_GET, -1, "", 0, "", 0 },
    { "http://u@/p", MYRA_METHOD_GET, -1, "", 0, "", 0 },
    { "http://h:0/", MYRA_METHOD_GET, -1, "", 0, "", 0 },
    { "http://h:/", MYRA_METHOD_GET, -1, "", 0, "", 0 },
    { "http:/h/", MYRA_METHOD_GET, -1, "", 0, "", 0 },
    { "ftp://h/", MYRA_METHOD_GET, -1, "", 0, "", 0 },
    { "httpx://h/", MYRA_METHOD_GET, -1, "", 0, "", 0 },
    { "h:443", MYRA_METHOD_GET, -1, "", 0, "", 0 },
    { "h:443", MYRA_METHOD_CONNECT, MYRA_TARGET_AUTHORITY, "h", 443, "", 0 },
    { "[2001:db8::1]:8443", MYRA_METHOD_CONNECT, MYRA_TARGET_AUTHORITY,
      "2001:db8::1", 8443, "", 0 },
    { "h", MYRA_METHOD_CONNECT, -1, "", 0, "", 0 },
    { "h:", MYRA_METHOD_CONNECT, -1, "", 0, "", 0 },
    { "h:65536", MYRA_METHOD_CONNECT, -1, "", 0, "", 0 },
    { "h:65535", MYRA_METHOD_CONNECT, MYRA_TARGET_AUTHORITY, "h", 65535, "",
      0 },
    { "h:4294967376", MYRA_METHOD_CONNECT, -1, "", 0, "", 0 },
    { "u@h:443", MYRA_METHOD_CONNECT, -1, "", 0, "", 0 },
    { "/x", MYRA_METHOD_CONNECT, -1, "", 0, "", 0 },
    { "http://h:80/", MYRA_METHOD_CONNECT, -1, "", 0, "", 0 },
    { "::1:443", MYRA_METHOD_CONNECT, -1, "", 0, "", 0 },
};

static int is_text(const char *text, uint32_t off, uint32_t len,
                   const char *wanted)
{
    return len == strlen(wanted) && memcmp(text + off, wanted, len) == 0;
}

static void check_target(const struct target_row *row)
{
    struct myra_http_target target;
    struct myra_http_target untouched;
    const int err = parse_target(row->text, row->method, &target);

    if (row->form < 0) {
        memset(&untouched, 0xee, sizeof(untouched));
        cr_expect(err == MYRA_HTTP_TARGET, "%s is taken", row->text);
        cr_expect(memcmp(&target, &untouched, sizeof(target)) == 0);
        return;
    }
    cr_assert(err == 0, "%s is refused", row->text);
    cr_expect(target.form == row->form && target.scheme == row->scheme);
    cr_expect(is_text(row->text, target.off, target.len, row->text));
    cr_expect(is_text(row->text, target.path_off, target.path_len, row->path),
              "%s: path", row->text);
    cr_expect(is_text(row->text, target.authority.host_off,
                      target.authority.host_len, row->host),
              "%s: host", row->text);
    cr_expect(target.authority.port == row->port, "%s: port", row->text);
}

Test(http_target, rule_31_each_form_has_its_method)
{
    for (size_t i = 0; i < sizeof(target_rows) / sizeof(target_rows[0]); i++)
        check_target(&target_rows[i]);
}

Test(http_target, rule_3_no_control_blank_or_fragment)
{
    for (int b = 1; b < 256; b++) {
        const char text[] = { '/', (char)b, 'x', '\0' };
        struct myra_http_target target;
        const int err = parse_target(text, MYRA_METHOD_GET, &target);

        cr_expect((err == 0) == (b > 0x20 && b != 0x7f && b != '#'),
                  "0x%02x", b);
    }
}

Test(http_target, rule_32_authorities)
{
    static const char *const bad[] = { "", ":", ":80", "a b", "a/", "a?",
                                       "a#", "a@b", "[", "[]", "[:]", "[::1",
                                       "[::1]x", "[::1]:", "[1.2.3.4]",
                                       "[::1%25eth0]", "[v1.a]", "::1", "a:b",
                                       "a:-1", "a: 1", "a:1 ", "a:00000",
                                       "%", "%4", "%4g", "\x80", "a\\b" };
    static const char *const good[] = { "a", "A.test", "a:080", "a:00001",
                                        "1.2.3.4:5", "[::]", "[::1]:65535",
                                        "[1:2:3:4:5:6:7:8]",
                                        "[::ffff:1.2.3.4]:1", "a~b!$&'()*+,;="
                                        };
    struct myra_http_authority authority;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        cr_expect(parse_authority(bad[i], &authority) == MYRA_HTTP_HOST,
                  "%s is taken", bad[i]);
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        cr_expect(parse_authority(good[i], &authority) == 0, "%s is refused",
                  good[i]);
        cr_expect(authority.off == 0 && authority.len == strlen(good[i]));
    }
    cr_assert(parse_authority("[::1]:8080", &authority) == 0);
    cr_expect(authority.host_off == 1 && authority.host_len == 3);
    cr_expect(authority.port == 8080 && authority.is_ipv6);
    cr_assert(parse_authority("a.test", &authority) == 0);
    cr_expect(authority.port == 0 && !authority.is_ipv6);
}

Test(http_target, schemes_have_ports)
{
    cr_expect(myra_http_scheme_port(MYRA_SCHEME_HTTP) == 80);
    cr_expect(myra_http_scheme_port(MYRA_SCHEME_WS) == 80);
    cr_expect(myra_http_scheme_port(MYRA_SCHEME_HTTPS) == 443);
    cr_expect(myra_http_scheme_port(MYRA_SCHEME_WSS) == 443);
}
