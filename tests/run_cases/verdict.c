/* SPDX-License-Identifier: MIT */
/*
 * The library's part of a case: every feeding gives the same reading, and
 * that reading is what the row says, key by key.
 */
#include "config.h"

#include "tests/run_cases/verdict.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int scene_fail(struct scene *scene, const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (scene->why.len > 0)
        bytes_add_text(&scene->why, "; ");
    bytes_add_text(&scene->why, text);
    return -1;
}

/* ---- What the row asks for ---------------------------------------------- */

/* The clause as 0 or 1; fallback where there is none; -1 for another value. */
static int clause_flag(struct scene *scene, const char *key, int fallback)
{
    const struct clause *const clause = detail_find(scene->detail, key);
    unsigned long value = 0;

    if (clause == NULL)
        return fallback;
    if (clause_number(clause, &value) == 0 && value <= 1)
        return (int)value;
    return scene_fail(scene, "%s is neither 0 nor 1", key);
}

int scene_read_options(struct scene *scene)
{
    struct reading_options *const options = &scene->options;
    const struct clause *const limit = detail_find(scene->detail, "limit");
    const char *const kind = scene->row->kind;
    const char *const role = detail_text(scene->detail, "role", "");
    unsigned long limit_value = 0;
    int asked;

    memset(options, 0, sizeof *options);
    options->kind = strcmp(kind, "request") == 0    ? READING_REQUEST
                    : strcmp(kind, "response") == 0 ? READING_RESPONSE
                                                    : READING_CHUNKED;
    options->methods = detail_text(scene->detail, "for", NULL);
    options->is_eof = clause_flag(scene, "eof", 0);
    asked = clause_flag(scene, "upgrade_asked", 1);
    options->no_upgrade = asked == 0;
    if (limit != NULL &&
        (clause_number(limit, &limit_value) < 0 || limit_value == 0))
        return scene_fail(scene, "limit is no number");
    options->body_max = limit_value;
    if (role[0] != '\0' && !list_has("proxy,server,client", role))
        return scene_fail(scene, "unknown role");
    return options->is_eof < 0 || asked < 0 ? -1 : 0;
}

int status_is_right(const struct scene *scene, int status)
{
    char text[16];

    if (scene->row->status[0] == '\0')
        return 1;
    snprintf(text, sizeof text, "%d", status);
    return strcmp(scene->row->status, text) == 0 ||
           list_has(detail_text(scene->detail, "status_also", ""), text);
}

size_t wanted_messages(const struct scene *scene)
{
    const struct clause *const msgs = detail_find(scene->detail, "msgs");
    unsigned long count = 0;

    if (msgs != NULL && clause_number(msgs, &count) == 0)
        return count;
    /* README: with reject, msgs counts those before the failure; a row that
     * has none there means the first message fails. */
    return scene->row->expect == EXPECT_ACCEPT
               ? scene->reading.message_count
               : 0;
}

/* ---- Key by key --------------------------------------------------------- */

static int differs(struct scene *scene, const struct clause *clause,
                   const struct bytes *seen)
{
    if (bytes_equal(&clause->value, seen))
        return 0;
    return scene_fail(scene, "library: %s is '%.80s' (%zu bytes), not '%.80s'",
                      clause->key, bytes_text(seen), seen->len,
                      bytes_text(&clause->value));
}

/* The trailer section as lines. */
static void join_fields(const struct fields *fields, struct bytes *out)
{
    for (size_t i = 0; i < fields->count; i++) {
        const struct field *const field = &fields->items[i];

        bytes_add_text(out, i ? "\r\n" : "");
        bytes_add(out, bytes_text(&field->name), field->name.len);
        bytes_add_text(out, ": ");
        bytes_add(out, bytes_text(&field->value), field->value.len);
    }
}

static int check_trailers(struct scene *scene, const struct clause *clause,
                          const struct message *message)
{
    struct bytes seen = { 0 };
    int result;

    join_fields(&message->trailers, &seen);
    result = differs(scene, clause, &seen);
    bytes_fini(&seen);
    return result;
}

static int check_field(struct scene *scene, const struct clause *clause)
{
    const struct fields *const fields = &scene->reading.messages[0].fields;
    struct bytes name = { 0 };
    struct bytes seen = { 0 };
    const struct field *field;
    int result;

    bytes_add_text(&name, clause->key + strlen("field_"));
    for (size_t i = 0; i < name.len; i++) {
        if (name.data[i] == '_')
            name.data[i] = '-';
    }
    field = fields_find(fields, bytes_text(&name), 0);
    if (field == NULL)
        result = scene_fail(scene, "library: there is no field %s",
                            bytes_text(&name));
    else
        result = differs(scene, clause, &field->value);
    if (fields_count(fields, bytes_text(&name)) > 1)
        result = scene_fail(scene, "library: the field %s appears twice",
                            bytes_text(&name));
    bytes_fini(&name);
    bytes_fini(&seen);
    return result;
}

/* body2, target1 ...: 1 if the key is of that kind and was checked. */
static int check_numbered(struct scene *scene, const struct clause *clause)
{
    static const char *const stems[] = { "body", "target", "method",
                                         "status", "trailer" };
    const struct reading *const reading = &scene->reading;

    for (size_t i = 0; i < sizeof stems / sizeof *stems; i++) {
        const size_t number = key_number(clause->key, stems[i]);
        const struct message *message;
        unsigned long status = 0;

        if (number == 0)
            continue;
        if (number > reading->message_count) {
            scene_fail(scene, "library: there is no message %zu", number);
            return 1;
        }
        message = &reading->messages[number - 1];
        if (i == 0)
            differs(scene, clause, &message->body);
        else if (i == 1)
            differs(scene, clause, &message->target);
        else if (i == 2)
            differs(scene, clause, &message->method);
        else if (i == 4)
            check_trailers(scene, clause, message);
        else if (clause_number(clause, &status) < 0 ||
                 message->status != (int)status)
            scene_fail(scene, "library: %s is %d, not %s", clause->key,
                       message->status, bytes_text(&clause->value));
        return 1;
    }
    return 0;
}

static void check_clause(struct scene *scene, const struct clause *clause)
{
    const struct reading *const reading = &scene->reading;
    unsigned long number = 0;

    if (check_numbered(scene, clause))
        return;
    if (strncmp(clause->key, "field_", 6) == 0) {
        if (reading->message_count == 0)
            scene_fail(scene, "library: no message for %s", clause->key);
        else
            check_field(scene, clause);
    } else if (strcmp(clause->key, "msgs") == 0) {
        if (clause_number(clause, &number) < 0 ||
            number != reading->message_count)
            scene_fail(scene, "library: %zu complete messages, not %s",
                       reading->message_count, bytes_text(&clause->value));
    } else if (strcmp(clause->key, "keep") == 0) {
        if (clause_number(clause, &number) < 0 ||
            number != (unsigned long)reading_keeps(reading))
            scene_fail(scene, "library: keep is %d, not %s",
                       reading_keeps(reading), bytes_text(&clause->value));
    } else if (strcmp(clause->key, "tunnel") == 0) {
        if (!reading->has_tunnel)
            scene_fail(scene, "library: no tunnel");
        else
            differs(scene, clause, &reading->tunnel);
    } else if (strcmp(clause->key, "leftover") == 0) {
        differs(scene, clause, &reading->leftover);
    }
}

/* ---- The reading as a whole --------------------------------------------- */

static const char *offset_text(const struct reading *reading, char *text,
                               size_t cap)
{
    if (reading->err < 0)
        snprintf(text, cap, " (%s at %zu)", reading->reason,
                 reading->error_offset);
    else
        text[0] = '\0';
    return text;
}

static void check_refusal(struct scene *scene)
{
    const struct reading *const reading = &scene->reading;
    const size_t wanted = wanted_messages(scene);

    if (reading->message_count != wanted)
        scene_fail(scene, "library: %zu messages before the refusal, not %zu",
                   reading->message_count, wanted);
    if (!status_is_right(scene, reading->status))
        scene_fail(scene, "library: refused with status %d (%s), not %s",
                   reading->status, reading->reason, scene->row->status);
}

static void check_reading(struct scene *scene)
{
    const struct reading *const reading = &scene->reading;
    const int is_refused = reading->verdict == VERDICT_REJECT;
    char text[160];

    if (scene->row->expect == EXPECT_ACCEPT &&
        reading->verdict != VERDICT_ACCEPT)
        scene_fail(scene, "library: %s, not accept%s",
                   verdict_name(reading->verdict),
                   offset_text(reading, text, sizeof text));
    if (scene->row->expect == EXPECT_REJECT && !is_refused)
        scene_fail(scene, "library: %s, not reject",
                   verdict_name(reading->verdict));
    if (scene->row->expect != EXPECT_ACCEPT && is_refused)
        check_refusal(scene);
    /* What an `either` row tells of the messages holds where it is taken. */
    if (scene->row->expect == EXPECT_EITHER && is_refused)
        return;
    for (size_t i = 0; i < scene->detail->clause_count; i++)
        check_clause(scene, &scene->detail->clauses[i]);
}

static int check_same(struct scene *scene, enum feeding_form form, size_t cut,
                      const char *name)
{
    const struct feeding feeding = { form, cut };
    struct reading other;
    int result = 0;
    char text[160];

    reading_run(&scene->options, &feeding, scene->data, scene->len, &other);
    if (!reading_equal(&scene->reading, &other))
        result = scene_fail(
            scene, "library: fed %s %zu it sees something else: %s%s, %zu "
                   "messages", name, cut, verdict_name(other.verdict),
            offset_text(&other, text, sizeof text), other.message_count);
    reading_fini(&other);
    return result;
}

int verdict_check(struct scene *scene)
{
    const struct feeding whole = { FEEDING_WHOLE, 0 };

    reading_run(&scene->options, &whole, scene->data, scene->len,
                &scene->reading);
    check_reading(scene);
    if (check_same(scene, FEEDING_SLACK, 0, "with room behind it,") < 0 ||
        check_same(scene, FEEDING_BYTES, 1, "byte by byte,") < 0)
        return -1;
    for (size_t cut = 1; cut < scene->len; cut++) {
        if (check_same(scene, FEEDING_CUT, cut, "cut at") < 0)
            return -1;
    }
    return scene->why.len > 0 ? -1 : 0;
}
