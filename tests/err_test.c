/* SPDX-License-Identifier: MIT */
/* Error codes: names, texts, the fatal band and HTTP statuses. */
#include "config.h"

#include <errno.h>
#include <string.h>

#include <criterion/criterion.h>

#include <myra/err.h>
#include <myra/version.h>

struct row {
    const char *name;
    int code;
    const char *text;
};

static const struct row rows[] = {
#define ROW(name, code, text) { "MYRA_" #name, code, text },
    MYRA_ERR_MAP(ROW)
#undef ROW
};

#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))

Test(err, every_code_has_its_name_and_text)
{
    for (size_t i = 0; i < ROW_COUNT; i++) {
        cr_assert_str_eq(myra_err_name(rows[i].code), rows[i].name);
        cr_assert_str_eq(myra_strerror(rows[i].code), rows[i].text);
    }
}

Test(err, codes_are_unique_and_in_a_band_of_their_own)
{
    for (size_t i = 0; i < ROW_COUNT; i++) {
        cr_assert_leq(rows[i].code, -5000);
        cr_assert_geq(rows[i].code, -5999);
        for (size_t j = 0; j < i; j++)
            cr_assert_neq(rows[i].code, rows[j].code, "%s and %s",
                          rows[i].name, rows[j].name);
    }
}

Test(err, an_errno_keeps_its_name_and_text)
{
    cr_assert_str_eq(myra_err_name(-ECONNRESET), "ECONNRESET");
    cr_assert_str_eq(myra_err_name(-EMFILE), "EMFILE");
    cr_assert_str_eq(myra_err_name(-ENOENT), "ENOENT");
    cr_assert_str_eq(myra_strerror(-ENOENT), "No such file or directory");
    cr_assert_str_eq(myra_strerror(-ECONNREFUSED), "Connection refused");
}

Test(err, success_and_nonsense_have_texts_too)
{
    static const int nonsense[] = { 1, 77, -4095, -4500, -5000, -5999,
                                    -6000 };

    cr_assert_str_eq(myra_err_name(0), "MYRA_OK");
    cr_assert_str_eq(myra_strerror(0), "success");
    for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++) {
        cr_assert_str_eq(myra_err_name(nonsense[i]), "unknown");
        cr_assert_str_eq(myra_strerror(nonsense[i]), "unknown error");
    }
}

Test(err, only_the_last_band_is_fatal)
{
    cr_assert(myra_err_is_fatal(MYRA_FATAL_RING));
    cr_assert(myra_err_is_fatal(MYRA_FATAL_CORRUPT));
    for (size_t i = 0; i < ROW_COUNT; i++)
        cr_assert_eq(myra_err_is_fatal(rows[i].code),
                     strncmp(rows[i].name, "MYRA_FATAL", 10) == 0);
    cr_assert_not(myra_err_is_fatal(0));
    cr_assert_not(myra_err_is_fatal(-EPIPE));
    cr_assert_not(myra_err_is_fatal(-6000));
}

Test(err, a_refused_request_gets_its_status)
{
    cr_assert_eq(myra_http_status_of(MYRA_HTTP_LINE_TOO_LONG, 0), 414);
    cr_assert_eq(myra_http_status_of(MYRA_HTTP_HEAD_TOO_LONG, 0), 431);
    cr_assert_eq(myra_http_status_of(MYRA_HTTP_FIELDS_TOO_MANY, 0), 431);
    cr_assert_eq(myra_http_status_of(MYRA_HTTP_TRAILER_TOO_LONG, 0), 431);
    cr_assert_eq(myra_http_status_of(MYRA_HTTP_BODY_TOO_LARGE, 0), 413);
    cr_assert_eq(myra_http_status_of(MYRA_HTTP_CHUNK_OVERFLOW, 0), 413);
    cr_assert_eq(myra_http_status_of(MYRA_HTTP_VERSION_UNSUPPORTED, 0), 505);
    cr_assert_eq(myra_http_status_of(MYRA_HTTP_CODING_UNKNOWN, 0), 501);
    cr_assert_eq(myra_http_status_of(MYRA_HTTP_HOST, 0), 400);
    cr_assert_eq(myra_http_status_of(MYRA_HTTP_TRANSFER_ENCODING, 0), 400);
}

Test(err, a_bad_answer_is_a_bad_gateway)
{
    for (size_t i = 0; i < ROW_COUNT; i++)
        cr_assert_eq(myra_http_status_of(rows[i].code, 1), 502);
}

static int try_once(int result)
{
    MYRA_TRY(result);
    return 77;
}

Test(err, try_hands_on_what_is_negative_only)
{
    cr_assert_eq(try_once(MYRA_EINVAL), MYRA_EINVAL);
    cr_assert_eq(try_once(-EPIPE), -EPIPE);
    cr_assert_eq(try_once(0), 77);
    cr_assert_eq(try_once(5), 77);
}

Test(version, header_and_library_agree)
{
    cr_assert_str_eq(myra_version(), MYRA_VERSION);
    cr_assert_not_null(strstr(myra_features(), "epoll"));
}
