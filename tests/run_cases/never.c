/* SPDX-License-Identifier: MIT */
/*
 * What must not happen. Each text of the tables is a row here with the checks
 * that look for it; some forms of text name their own words ("dispatch /a or
 * /b"). A text without a row fails its case: nobody would look.
 */
#include "config.h"

#include "tests/run_cases/never.h"

#include "tests/run_cases/never_checks.h"

#include <string.h>

/* ---- The texts ---------------------------------------------------------- */

#define CHECKS_MAX 3

struct known_text {
    const char *text;
    struct {
        never_fn happens;
        const char *arg;
    } checks[CHECKS_MAX];
};

static const struct known_text known_texts[] = {
    { "be treated or forwarded as GET", { { has_method, "GET" } } },
    { "keep the connection without saying Connection: keep-alive",
      { { keeps_silently, NULL } } },
    { "be forwarded with version 1.2", { { forwards_text, "HTTP/1.2" } } },
    { "forward the extra spaces", { { forwards_extra_spaces, NULL } } },
    { "be forwarded with the raw LF", { { forwards_lone_lf, NULL } } },
    { "truncate at the NUL or forward it",
      { { cuts_at_nul, NULL }, { forwards_nul, NULL } } },
    { "see a field X-B or forward the CR",
      { { sees_field, "X-B" }, { forwards_lone_cr, NULL } } },
    { "forward the lone LF or ignore Content-Length and forward it",
      { { forwards_lone_lf, NULL }, { body_is_not, "hello" } } },
    { "forward x and Transfer-Encoding as one value",
      { { joins_fields, NULL } } },
    { "forward lone LFs", { { forwards_lone_lf, NULL } } },
    { "forward the fold", { { forwards_fold, NULL } } },
    { "frame by Content-Length while forwarding Transfer-Encoding",
      { { frames_by_length, NULL } } },
    { "use Content-Length 1", { { uses_length_one, NULL } } },
    { "take more than linear time or memory", { { is_not_linear, NULL } } },
    { "forward two Content-Length lines", { { has_two_lengths, NULL } } },
    { "forward the list", { { has_length_list, NULL } } },
    { "forward both fields, or frame by Content-Length, or keep the "
      "connection open after it",
      { { forwards_both_fields, NULL },
        { has_any_body, NULL },
        { keeps_open, NULL } } },
    { "forward both fields or wait for 50 bytes",
      { { forwards_both_fields, NULL }, { waits, NULL } } },
    { "decode as chunked", { { body_is, "a" } } },
    { "deliver the gzip bytes as the plain body", { { strips_gzip, "a" } } },
    { "wrap, end the body or allocate the announced size",
      { { ends_body, NULL }, { grows, NULL } } },
    { "allocate the announced size", { { grows, NULL } } },
    { "take ;ABCD as the chunk data or forward the CR",
      { { body_holds, ";ABCD" }, { forwards_lone_cr, NULL } } },
    { "forward the bare semicolon", { { forwards_text, ";\r\n" } } },
    { "merge it into the fields or forward it", { { merges_trailer, NULL } } },
    { "read part of the next line as the reason", { { reason_spills, NULL } } },
    { "forward both fields or reuse the connection",
      { { forwards_both_fields, NULL }, { reuses, NULL } } },
    { "reuse the connection", { { reuses, NULL } } },
    { "end the client's message as if complete",
      { { ends_as_complete, NULL } } },
    { "send a last chunk to the client", { { ends_as_complete, NULL } } },
    { "use the second response or pool the connection",
      { { uses_second, NULL }, { reuses, NULL } } },
    { "forward the space", { { forwards_space, NULL } } },
    { "keep the connection open or dispatch /smuggled",
      { { keeps_open, NULL }, { dispatches, "/smuggled" } } },
};

/* Texts that name targets or a host: the words follow behind the start,
 * joined by " or ". */
struct known_form {
    const char *start;
    char first; /* of each word; 0: any */
    never_fn happens;
};

static const struct known_form known_forms[] = {
    { "dispatch ", '/', dispatches },
    { "answer or forward ", '/', answers_or_forwards },
    { "drop the answer to ", '/', drops_first_answer },
    { "route by or forward Host: ", 0, has_host },
};

static const struct known_text *find_text(const char *text)
{
    for (size_t i = 0; i < sizeof known_texts / sizeof *known_texts; i++) {
        if (strcmp(known_texts[i].text, text) == 0)
            return &known_texts[i];
    }
    return NULL;
}

/* The next word of a form, into word; its end in the text, or NULL where the
 * text is not of the form. */
static const char *next_word(const struct known_form *form, const char *text,
                             char *word, size_t cap)
{
    const char *const joint = strstr(text, " or ");
    const size_t len = joint ? (size_t)(joint - text) : strlen(text);

    if (len == 0 || len >= cap || memchr(text, ' ', len) != NULL ||
        (form->first != 0 && text[0] != form->first))
        return NULL;
    memcpy(word, text, len);
    word[len] = '\0';
    return joint ? joint + strlen(" or ") : text + len;
}

static const struct known_form *find_form(const char *text)
{
    for (size_t i = 0; i < sizeof known_forms / sizeof *known_forms; i++) {
        const struct known_form *const form = &known_forms[i];
        const size_t len = strlen(form->start);
        const char *rest = text + len;
        char word[128];

        if (strncmp(text, form->start, len) != 0)
            continue;
        do
            rest = next_word(form, rest, word, sizeof word);
        while (rest != NULL && *rest != '\0');
        if (rest != NULL)
            return form;
    }
    return NULL;
}

int never_is_known(const struct scene *scene)
{
    const char *const text = detail_text(scene->detail, "never", NULL);

    return text == NULL || find_text(text) != NULL || find_form(text) != NULL;
}

static int run_form(struct look *look, const struct known_form *form,
                    const char *text)
{
    const char *rest = text + strlen(form->start);
    char word[128];
    int happened = 0;

    while (!happened && rest != NULL && *rest != '\0') {
        rest = next_word(form, rest, word, sizeof word);
        look->arg = word;
        happened = rest != NULL && form->happens(look);
    }
    look->arg = NULL;
    return happened;
}

static int run_text(struct look *look, const struct known_text *known)
{
    for (size_t i = 0; i < CHECKS_MAX; i++) {
        if (known->checks[i].happens == NULL)
            break;
        look->arg = known->checks[i].arg;
        if (known->checks[i].happens(look))
            return 1;
    }
    return 0;
}

int never_check(struct scene *scene, const struct forward *forward)
{
    const char *const text = detail_text(scene->detail, "never", NULL);
    struct look look = { scene, &scene->reading, forward, NULL, NULL, NULL };
    const struct known_text *const known = text ? find_text(text) : NULL;
    const struct known_form *const form = text ? find_form(text) : NULL;
    int happened = 0;

    if (forward != NULL) {
        look.origin = &forward->exchange->origin;
        look.client = &forward->exchange->client;
    }
    if (known != NULL)
        happened = run_text(&look, known);
    else if (form != NULL)
        happened = run_form(&look, form, text);
    if (!happened)
        return 0;
    return scene_fail(scene, "%s%s: it did %s",
                      forward ? "proxy, " : "library",
                      forward ? forward->pace : "", text);
}
