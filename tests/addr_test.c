/* SPDX-License-Identifier: MIT */
/* Addresses as text, both ways. */
#include "config.h"

#include <criterion/criterion.h>
#include <string.h>

#include <myra/tcp.h>

static void same(const char *text, const char *printed)
{
    struct sockaddr_storage addr;
    socklen_t len;
    char back[160];

    cr_assert_eq(myra_addr_parse(text, &addr, &len), 0, "%s", text);
    cr_assert_eq(myra_addr_print((struct sockaddr *)&addr, len, back,
                                 sizeof(back)),
                 (int)strlen(printed), "%s", text);
    cr_assert_str_eq(back, printed);
}

Test(addr, reads_and_prints_each_form)
{
    same("8080", "127.0.0.1:8080");
    same("0", "127.0.0.1:0");
    same("65535", "127.0.0.1:65535");
    same("10.1.2.3:80", "10.1.2.3:80");
    same("[::1]:80", "[::1]:80");
    same("[2001:db8::7]:443", "[2001:db8::7]:443");
    same("unix:/run/a:b.sock", "unix:/run/a:b.sock");
    same("unix:@abstract", "unix:@abstract");
}

Test(addr, refuses_what_is_no_address)
{
    static const char *const bad[] = {
        "",           ":",          "65536",      "-1",      "80x",
        "0x50",       " 80",        "80 ",        "1.2.3:80", "1.2.3.4:",
        "1.2.3.4",    "::1:80",     "[::1]",      "[::1:80", "[]:80",
        "[1.2.3.4]:80", "localhost:80", "[::1]x:80", "unix:",  "*",
        "1.2.3.4:99999999999999999999",
    };
    struct sockaddr_storage addr;
    struct sockaddr_storage before;
    char longest[200];
    socklen_t len = 7;

    memset(&addr, 0x5a, sizeof(addr));
    before = addr;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        cr_assert_eq(myra_addr_parse(bad[i], &addr, &len), MYRA_EADDRESS,
                     "%s", bad[i]);
    memset(longest, 'a', sizeof(longest));
    memcpy(longest, "unix:/", 6);
    longest[199] = '\0';
    cr_assert_eq(myra_addr_parse(longest, &addr, &len), MYRA_EADDRESS);
    cr_assert_eq(len, 7);
    cr_assert_eq(memcmp(&addr, &before, sizeof(addr)), 0);
}

Test(addr, print_tells_the_whole_length)
{
    struct sockaddr_storage addr;
    socklen_t len;
    char text[5];

    cr_assert_eq(myra_addr_parse("10.1.2.3:80", &addr, &len), 0);
    cr_assert_eq(myra_addr_print((struct sockaddr *)&addr, len, text,
                                 sizeof(text)),
                 11);
    cr_assert_str_eq(text, "10.1");
}
