/* SPDX-License-Identifier: MIT */
/*
 * A reading as JSON. Bytes become strings one to one: character U+00XX is
 * byte 0xXX (ISO 8859-1). Nothing is lost, plain ASCII stays as it is, and
 * the JSON is valid whatever the bytes were.
 */
#include "config.h"

#include "tools/myra/myra.h"

#include <inttypes.h>
#include <string.h>

#include <myra/myra.h>

static const char *const kind_names[] = {
    [READING_REQUEST] = "request",
    [READING_RESPONSE] = "response",
    [READING_CHUNKED] = "chunked",
};

static void print_string(FILE *out, const char *data, size_t len)
{
    putc('"', out);
    for (size_t i = 0; i < len; i++) {
        const unsigned char c = (unsigned char)data[i];

        if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (c == '\n')
            fputs("\\n", out);
        else if (c == '\r')
            fputs("\\r", out);
        else if (c == '\t')
            fputs("\\t", out);
        else if (c < 0x20 || c > 0x7e)
            fprintf(out, "\\u%04x", c);
        else
            putc(c, out);
    }
    putc('"', out);
}

static void print_bytes(FILE *out, const char *indent, const char *name,
                        const struct bytes *bytes)
{
    fprintf(out, "%s\"%s\": ", indent, name);
    print_string(out, bytes_text(bytes), bytes->len);
}

static void print_fields(FILE *out, const char *indent, const char *name,
                         const struct fields *fields)
{
    fprintf(out, "%s\"%s\": [", indent, name);
    for (size_t i = 0; i < fields->count; i++) {
        const struct field *const field = &fields->items[i];

        fprintf(out, "%s\n%s    {\"name\": ", i ? "," : "", indent);
        print_string(out, bytes_text(&field->name), field->name.len);
        fputs(", \"value\": ", out);
        print_string(out, bytes_text(&field->value), field->value.len);
        putc('}', out);
    }
    if (fields->count > 0)
        fprintf(out, "\n%s", indent);
    putc(']', out);
}

static void print_head(FILE *out, const char *indent, enum reading_kind kind,
                       const struct message *message)
{
    fprintf(out, "%s\"offset\": %zu,\n", indent, message->start);
    if (kind == READING_REQUEST) {
        print_bytes(out, indent, "method", &message->method);
        fputs(",\n", out);
        print_bytes(out, indent, "target", &message->target);
        fputs(",\n", out);
    } else {
        fprintf(out, "%s\"status\": %d,\n", indent, message->status);
        print_bytes(out, indent, "reason", &message->reason);
        fputs(",\n", out);
    }
    fprintf(out, "%s\"version\": \"%d.%d\",\n", indent,
            message->version_major, message->version_minor);
    print_fields(out, indent, "fields", &message->fields);
    fprintf(out, ",\n%s\"framing\": \"%s\",\n", indent,
            framing_name(message->framing));
    if (message->framing == FRAMING_LENGTH)
        fprintf(out, "%s\"content_length\": %" PRIu64 ",\n", indent,
                message->length);
}

static void print_message(FILE *out, const char *indent,
                          enum reading_kind kind,
                          const struct message *message)
{
    fputs("{\n", out);
    if (message->has_head)
        print_head(out, indent, kind, message);
    print_bytes(out, indent, "body", &message->body);
    fprintf(out, ",\n%s\"body_len\": %zu,\n", indent, message->body.len);
    print_fields(out, indent, "trailers", &message->trailers);
    if (message->has_head)
        fprintf(out, ",\n%s\"keep_alive\": %s", indent,
                message->keep_alive ? "true" : "false");
    fprintf(out, "\n%.2s}", indent);
}

static void print_messages(FILE *out, enum reading_kind kind,
                           const struct reading *reading)
{
    fputs("  \"messages\": [", out);
    for (size_t i = 0; i < reading->message_count; i++) {
        fputs(i ? ", " : "", out);
        print_message(out, "    ", kind, &reading->messages[i]);
    }
    fputs("]", out);
    if (reading->partial.has_head || reading->partial.body.len > 0) {
        fputs(",\n  \"partial\": ", out);
        print_message(out, "    ", kind, &reading->partial);
    }
}

static void print_error(FILE *out, const struct reading *reading)
{
    fprintf(out,
            ",\n  \"error\": {\n    \"offset\": %zu,\n    \"code\": %d,\n"
            "    \"name\": \"%s\",\n    \"reason\": ",
            reading->error_offset, reading->err,
            myra_err_name(reading->err));
    print_string(out, reading->reason, strlen(reading->reason));
    fputs("\n  }", out);
}

void inspect_print(FILE *out, enum reading_kind kind,
                   const struct reading *reading)
{
    fprintf(out, "{\n  \"kind\": \"%s\",\n  \"verdict\": \"%s\",\n",
            kind_names[kind], verdict_name(reading->verdict));
    if (reading->status != 0)
        fprintf(out, "  \"status\": %d,\n", reading->status);
    else
        fputs("  \"status\": null,\n", out);
    print_messages(out, kind, reading);
    if (reading->has_tunnel) {
        fputs(",\n", out);
        print_bytes(out, "  ", "tunnel", &reading->tunnel);
    }
    if (reading->leftover.len > 0) {
        fputs(",\n", out);
        print_bytes(out, "  ", "leftover", &reading->leftover);
    }
    if (reading->err < 0)
        print_error(out, reading);
    fputs("\n}\n", out);
}
