/* SPDX-License-Identifier: MIT */
/*
 * Writing a parsed head for the next hop. What was parsed needs no second
 * look, so runs of fields that are kept go out in one copy each; whatever
 * routes or frames the message is written anew from the decision.
 */
#include "config.h"

#include <string.h>

#include "lib/base/checked.h"
#include "lib/http/emit_priv.h"

/* The longest of what is written besides bytes of the head itself:
 * Connection and Upgrade of a websocket (43), Content-Length with 18 digits
 * (36) or Transfer-Encoding with its name and chunked (31), "Host: " and line
 * ends, "/" or "*", a scheme, the version. */
#define FORWARD_EXTRA 192

size_t myra_http_forward_bound(const struct myra_http_head *head)
{
    /* Start line and fields once; Host again, and Transfer-Encoding again
     * with a blank for each comma (less than twice its length); for each
     * field written anew at most ": " and CR. */
    return (size_t)head->head_len + head->target.authority.len +
           (head->flags & MYRA_HEAD_HAS_CODING
                ? 2 * (size_t)(head->fields_end - head->fields_off)
                : 0) +
           2 * (size_t)head->field_count + FORWARD_EXTRA;
}

/* ---- Start lines -------------------------------------------------------- */

static const char version_end[] = " HTTP/1.1\r\n";

static void put_method(struct myra_http_out *out, const uint8_t *data,
                       const struct myra_http_head *head)
{
    myi_http_out_add(out, data + head->start_off, head->method_len);
    myi_http_out_add(out, " ", 1);
}

/* Undoes a line that did not fit whole. */
static void settle(struct myra_http_out *out, size_t start)
{
    if (out->err)
        out->len = start;
}

static void put_origin_target(struct myra_http_out *out, const uint8_t *data,
                              const struct myra_http_head *head)
{
    const struct myra_http_target *target = &head->target;

    if (target->form != MYRA_TARGET_ABSOLUTE) {
        myi_http_out_add(out, data + target->off, target->len);
        return;
    }
    if (target->path_len == 0 && head->method == MYRA_METHOD_OPTIONS)
        myi_http_out_add(out, "*", 1);
    else if (target->path_len == 0 || data[target->path_off] != '/')
        myi_http_out_add(out, "/", 1);
    myi_http_out_add(out, data + target->path_off, target->path_len);
}

void myra_http_emit_origin_line(struct myra_http_out *out,
                                const uint8_t *data,
                                const struct myra_http_head *head)
{
    const size_t start = out->len;

    put_method(out, data, head);
    put_origin_target(out, data, head);
    myi_http_out_add(out, version_end, sizeof(version_end) - 1);
    settle(out, start);
}

void myra_http_emit_proxy_line(struct myra_http_out *out, const uint8_t *data,
                               const struct myra_http_head *head)
{
    static const char schemes[][9] = { "", "http://", "https://", "ws://",
                                       "wss://" };
    const struct myra_http_target *target = &head->target;
    const size_t start = out->len;

    if (target->form != MYRA_TARGET_ABSOLUTE &&
        target->form != MYRA_TARGET_AUTHORITY) {
        if (!out->err)
            out->err = MYRA_EINVAL;
        return;
    }
    put_method(out, data, head);
    if (target->form == MYRA_TARGET_ABSOLUTE)
        myi_http_out_add(out, schemes[target->scheme],
                         strlen(schemes[target->scheme]));
    myi_http_out_add(out, data + target->authority.off,
                     target->authority.len);
    if (target->form == MYRA_TARGET_ABSOLUTE)
        myi_http_out_add(out, data + target->path_off, target->path_len);
    myi_http_out_add(out, version_end, sizeof(version_end) - 1);
    settle(out, start);
}

void myra_http_emit_forward_status(struct myra_http_out *out,
                                   const uint8_t *data,
                                   const struct myra_http_head *head)
{
    myra_http_emit_status_line(out, 1, head->status, data + head->reason_off,
                               head->reason_len);
}

/* ---- Fields ------------------------------------------------------------- */

void myra_http_emit_host(struct myra_http_out *out, const uint8_t *data,
                         const struct myra_http_head *head)
{
    myra_http_emit_field(out, (const uint8_t *)"Host", 4,
                         data + head->target.authority.off,
                         head->target.authority.len);
}

/* The value with each fold (blanks, line end, blanks) made one SP. */
static uint8_t *put_unfolded(uint8_t *p, const uint8_t *value, size_t len)
{
    const uint8_t *first = p;

    for (size_t i = 0; i < len; i++) {
        if (value[i] != '\r' && value[i] != '\n') {
            *p++ = value[i];
            continue;
        }
        while (p > first && myi_is_blank(p[-1]))
            p--;
        while (i + 1 < len && (myi_is_blank(value[i + 1]) ||
                               value[i + 1] == '\r' || value[i + 1] == '\n'))
            i++;
        if (p > first)
            *p++ = ' ';
    }
    return p;
}

void myra_http_emit_field_of(struct myra_http_out *out, const uint8_t *data,
                             const struct myra_http_field *field)
{
    const uint8_t *name = data + field->name_off;
    const uint8_t *value = data + field->value_off;
    uint8_t *p;

    if (!memchr(value, '\n', field->value_len)) {
        myra_http_emit_field(out, name, field->name_len, value,
                             field->value_len);
        return;
    }
    p = myi_http_out_room(out, (size_t)field->name_len + field->value_len +
                                   4);
    if (!p)
        return;
    p = myi_http_put(p, name, field->name_len);
    p = myi_http_put(p, ": ", 2);
    p = put_unfolded(p, value, field->value_len);
    p = myi_http_put(p, "\r\n", 2);
    out->len = (size_t)(p - out->p);
}

/* Where the field's line ends: fields follow each other without gaps. */
static uint32_t line_end(const struct myra_http_head *head, uint32_t index)
{
    return index + 1 < head->field_count ? head->fields[index + 1].name_off
                                         : head->fields_end;
}

static void emit_upgrade(struct myra_http_out *out)
{
    static const char text[] = "Connection: Upgrade\r\nUpgrade: websocket\r\n";

    myi_http_out_add(out, text, sizeof(text) - 1);
}

void myra_http_emit_forward(struct myra_http_out *out, const uint8_t *data,
                            const struct myra_http_head *head,
                            uint64_t drop_ids)
{
    static const uint64_t rewritten =
        MYRA_FIELD_BIT(MYRA_FIELD_CONTENT_LENGTH) |
        MYRA_FIELD_BIT(MYRA_FIELD_TRANSFER_ENCODING);
    const uint64_t dropped =
        drop_ids | rewritten |
        (head->is_response ? 0 : MYRA_FIELD_BIT(MYRA_FIELD_HOST));
    uint32_t run = head->fields_off;

    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct myra_http_field *field = &head->fields[i];
        const int is_kept =
            !(field->flags & (MYRA_FIELD_IS_HOP | MYRA_FIELD_IS_DROPPED)) &&
            !(dropped & MYRA_FIELD_BIT(field->id));

        if (is_kept && !(field->flags & MYRA_FIELD_IS_IRREGULAR))
            continue;
        myi_http_out_add(out, data + run, field->name_off - run);
        run = line_end(head, i);
        if (is_kept)
            myra_http_emit_field_of(out, data, field);
    }
    myi_http_out_add(out, data + run, head->fields_end - run);
    if ((head->flags & MYRA_HEAD_WEBSOCKET) &&
        !(drop_ids & MYRA_FIELD_BIT(MYRA_FIELD_UPGRADE)))
        emit_upgrade(out);
}

/* ---- Framing ------------------------------------------------------------ */

static void refuse(struct myra_http_out *out)
{
    if (!out->err)
        out->err = MYRA_EINVAL;
}

struct coding_list {
    const uint8_t *data;
    const struct myra_http_head *head;
    int is_chunked; /* how the list is to end */
    int count;
};

/* The parsed chunked is left out where it was the last: the list ends as is
 * wanted now. One that stood below another coding (then the body came until
 * the close) stays, and no second one may be put on top. */
static void add_coding(struct myra_http_out *out, struct coding_list *list,
                       const uint8_t *name, size_t len)
{
    if (len == 8 && myi_http_is_same(name, "identity", 8))
        return;
    if (len == 7 && myi_http_is_same(name, "chunked", 7)) {
        if (list->head->framing == MYRA_FRAMING_CHUNKED)
            return;
        if (list->is_chunked)
            refuse(out);
    }
    myi_http_out_add(out, ", ", list->count++ ? 2 : 0);
    myi_http_out_add(out, name, len);
}

static void add_codings_of(struct myra_http_out *out,
                           struct coding_list *list,
                           const struct myra_http_field *field)
{
    const uint8_t *value = list->data + field->value_off;
    size_t pos = 0;
    size_t off;
    size_t len;

    while (myra_http_list_next(value, field->value_len, &pos, &off, &len))
        add_coding(out, list, value + off, len);
}

/* All codings as one list, and nothing when there is none. */
static void emit_codings(struct myra_http_out *out, const uint8_t *data,
                         const struct myra_http_head *head, int is_chunked)
{
    const int has_coding = (head->flags & MYRA_HEAD_HAS_CODING) != 0;
    const size_t start = out->len;
    struct coding_list list = { data, head, is_chunked, 0 };

    if (!has_coding && !is_chunked)
        return;
    myi_http_out_add(out, "Transfer-Encoding: ", 19);
    for (uint32_t i = 0; has_coding && i < head->field_count; i++) {
        if (head->fields[i].id == MYRA_FIELD_TRANSFER_ENCODING)
            add_codings_of(out, &list, &head->fields[i]);
    }
    if (is_chunked && list.count > 0)
        myi_http_out_add(out, ", ", 2);
    if (is_chunked)
        myi_http_out_add(out, "chunked", 7);
    myi_http_out_add(out, "\r\n", 2);
    settle(out, start);
}

void myra_http_emit_framing(struct myra_http_out *out, const uint8_t *data,
                            const struct myra_http_head *head,
                            enum myra_http_framing as)
{
    switch (as) {
    case MYRA_FRAMING_NONE:
        if (head->framing == MYRA_FRAMING_NONE &&
            (head->flags & MYRA_HEAD_HAS_LENGTH))
            myra_http_emit_length(out, head->content_length);
        break;
    case MYRA_FRAMING_LENGTH:
        if (head->framing != MYRA_FRAMING_LENGTH)
            refuse(out);
        myra_http_emit_length(out, head->content_length);
        break;
    case MYRA_FRAMING_CHUNKED:
    case MYRA_FRAMING_CLOSE:
        emit_codings(out, data, head, as == MYRA_FRAMING_CHUNKED);
        break;
    default:
        break;
    }
}
