/* SPDX-License-Identifier: MIT */
/*
 * Field lines: one line taken apart, lists, the Connection lists and the
 * flags that fields give a head, and looking fields up.
 */
#include "config.h"

#include <string.h>

#include "lib/http/http_priv.h"

/* Names in the Connection lists beyond close, keep-alive, upgrade and the
 * known hop-by-hop ones. Each costs a walk over the fields, so a head full of
 * them must not be worth sending. */
#define LISTED_NAMES_MAX 64

static int refuse_line(const uint8_t *data, size_t at, size_t end,
                       size_t *error_offset)
{
    const size_t colon = at + myi_find_byte(data + at, end - at, end - at,
                                            ':');

    *error_offset = colon == end ? end : at;
    return colon == end ? MYRA_HTTP_FIELD_COLON : MYRA_HTTP_FIELD_NAME;
}

int myi_http_field_parse(const uint8_t *data, size_t start, size_t end,
                         struct myra_http_field *field, size_t *error_offset)
{
    size_t i = start;

    /* CR and LF are no token bytes, so the line's end stops this. */
    while (myi_is_class(data[i], MYI_CLASS_TOKEN))
        i++;
    if (MYRA_UNLIKELY(data[i] != ':' || i == start || i - start > UINT16_MAX))
        return refuse_line(data, i, end, error_offset);
    field->name_off = (uint32_t)start;
    field->name_len = (uint16_t)(i - start);
    for (i++; i < end && myi_is_blank(data[i]);)
        i++;
    while (end > i && myi_is_blank(data[end - 1]))
        end--;
    field->value_off = (uint32_t)i;
    field->value_len = (uint32_t)(end - i);
    field->id = (uint8_t)myi_http_token_id(data + start, field->name_len);
    field->flags = 0;
    return 0;
}

/* ---- Lists -------------------------------------------------------------- */

/* Line ends stand in a value only where it is folded; they are blanks. */
static inline int is_space(uint8_t byte)
{
    return myi_is_blank(byte) || byte == '\r' || byte == '\n';
}

/* The element that runs from *pos to end, blanks cut off. */
static void cut_element(const uint8_t *value, size_t value_len, size_t end,
                        size_t *pos, size_t *off, size_t *len)
{
    size_t from = *pos;
    size_t to = end;

    while (from < to && is_space(value[from]))
        from++;
    while (to > from && is_space(value[to - 1]))
        to--;
    *off = from;
    *len = to - from;
    /* A comma at the very end leaves one empty element behind it, so the end
     * of the walk is one past the value. */
    *pos = end < value_len ? end + 1 : value_len + 1;
}

int myi_http_element_next(const uint8_t *value, size_t value_len, size_t *pos,
                          size_t *off, size_t *len)
{
    size_t end = *pos;

    if (*pos > value_len)
        return 0;
    while (end < value_len && value[end] != ',')
        end++;
    cut_element(value, value_len, end, pos, off, len);
    return 1;
}

/* The end of the element at pos: a comma outside quotes, or the end. */
static size_t element_end(const uint8_t *value, size_t value_len, size_t pos)
{
    int is_quoted = 0;

    for (; pos < value_len; pos++) {
        if (value[pos] == '"')
            is_quoted = !is_quoted;
        else if (is_quoted && value[pos] == '\\' && pos + 1 < value_len)
            pos++;
        else if (!is_quoted && value[pos] == ',')
            break;
    }
    return pos;
}

int myra_http_list_next(const uint8_t *value, size_t value_len, size_t *pos,
                        size_t *off, size_t *len)
{
    while (*pos <= value_len) {
        const size_t end = element_end(value, value_len, *pos);

        cut_element(value, value_len, end, pos, off, len);
        if (*len > 0)
            return 1;
    }
    return 0;
}

/* 1 when an element of the field's list is lower (case ignored). */
static int list_has(const uint8_t *data, const struct myra_http_field *field,
                    const char *lower, size_t lower_len)
{
    const uint8_t *value = data + field->value_off;
    size_t pos = 0;
    size_t off;
    size_t len;

    while (myi_http_element_next(value, field->value_len, &pos, &off, &len)) {
        if (len == lower_len && myi_http_is_same(value + off, lower, len))
            return 1;
    }
    return 0;
}

/* ---- Connection --------------------------------------------------------- */

/* What a Connection list may never take out of a message: its framing, where
 * it goes, and who sends it (rule 17). */
static const uint64_t kept_ids = MYRA_FIELD_BIT(MYRA_FIELD_CONTENT_LENGTH) |
                                 MYRA_FIELD_BIT(MYRA_FIELD_TRANSFER_ENCODING) |
                                 MYRA_FIELD_BIT(MYRA_FIELD_HOST) |
                                 MYRA_FIELD_BIT(MYRA_FIELD_AUTHORIZATION) |
                                 MYRA_FIELD_BIT(MYRA_FIELD_COOKIE);

struct connection_scan {
    const uint8_t *data;
    struct myra_http_head *head;
    uint64_t seen;
    int listed_count;
    int is_upgrade;
};

static int is_same_name(const uint8_t *a, const uint8_t *b, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (myi_http_lower(a[i]) != myi_http_lower(b[i]))
            return 0;
    }
    return 1;
}

/* Marks every field of this name. */
static int mark_listed(struct connection_scan *scan, const uint8_t *name,
                       size_t len)
{
    const struct myra_http_head *head = scan->head;
    const enum myra_http_field_id id = myra_http_field_id_of(name, len);
    const uint64_t bit = MYRA_FIELD_BIT(id);

    if (id != MYRA_FIELD_OTHER &&
        (!(scan->seen & bit) || ((kept_ids | myi_http_hop_ids) & bit)))
        return 0;
    if (++scan->listed_count > LISTED_NAMES_MAX)
        return MYRA_HTTP_FIELDS_TOO_MANY;
    for (uint32_t i = 0; i < head->field_count; i++) {
        struct myra_http_field *field = &head->fields[i];

        if (field->id == id && field->name_len == len &&
            is_same_name(scan->data + field->name_off, name, len))
            field->flags |= MYRA_FIELD_IS_HOP;
    }
    return 0;
}

/* One name of a list. Only Connection may ask to keep the connection: a
 * proxy that does not know Proxy-Connection would pass it on. */
static int read_listed(struct connection_scan *scan, enum myra_http_field_id in,
                       const uint8_t *name, size_t len)
{
    const int is_own = in == MYRA_FIELD_CONNECTION;

    if (len == 5 && myi_http_is_same(name, "close", 5)) {
        scan->head->flags |= MYRA_HEAD_ASKED_CLOSE;
        return 0;
    }
    if (len == 10 && myi_http_is_same(name, "keep-alive", 10)) {
        if (is_own)
            scan->head->flags |= MYRA_HEAD_ASKED_KEEP;
        return 0;
    }
    if (len == 7 && myi_http_is_same(name, "upgrade", 7)) {
        if (is_own)
            scan->is_upgrade = 1;
        return 0;
    }
    return mark_listed(scan, name, len);
}

static int read_connection(struct connection_scan *scan,
                           const struct myra_http_field *field)
{
    const uint8_t *value = scan->data + field->value_off;
    size_t pos = 0;
    size_t off;
    size_t len;

    while (myi_http_element_next(value, field->value_len, &pos, &off, &len)) {
        const int err = len == 0 ? 0
                                 : read_listed(scan, field->id, value + off,
                                               len);

        if (err < 0) {
            scan->head->error_offset = field->value_off + (uint32_t)off;
            return err;
        }
    }
    return 0;
}

/* ---- Flags of the head -------------------------------------------------- */

static void flag_upgrade(const uint8_t *data, struct myra_http_head *head,
                         const struct myra_http_field *field)
{
    head->flags |= MYRA_HEAD_UPGRADE;
    if (list_has(data, field, "websocket", 9))
        head->flags |= MYRA_HEAD_WEBSOCKET;
}

/* What a field other than the Connection lists tells about the head. */
static void flag_field(const struct connection_scan *scan,
                       const struct myra_http_field *field)
{
    const uint8_t *data = scan->data;
    struct myra_http_head *head = scan->head;

    switch (field->id) {
    case MYRA_FIELD_UPGRADE:
        if (scan->is_upgrade)
            flag_upgrade(data, head, field);
        break;
    case MYRA_FIELD_EXPECT:
        if (!head->is_response && head->version_minor >= 1 &&
            list_has(data, field, "100-continue", 12))
            head->flags |= MYRA_HEAD_EXPECT_100;
        break;
    case MYRA_FIELD_TE:
        if (!head->is_response && list_has(data, field, "trailers", 8))
            head->flags |= MYRA_HEAD_TE_TRAILERS;
        break;
    case MYRA_FIELD_DATE:
        head->flags |= MYRA_HEAD_HAS_DATE;
        break;
    default:
        break;
    }
}

int myi_http_fields_finish(const uint8_t *data, struct myra_http_head *head,
                           uint64_t seen)
{
    static const uint64_t lists =
        MYRA_FIELD_BIT(MYRA_FIELD_CONNECTION) |
        MYRA_FIELD_BIT(MYRA_FIELD_PROXY_CONNECTION);
    static const uint64_t told = MYRA_FIELD_BIT(MYRA_FIELD_UPGRADE) |
                                 MYRA_FIELD_BIT(MYRA_FIELD_EXPECT) |
                                 MYRA_FIELD_BIT(MYRA_FIELD_TE) |
                                 MYRA_FIELD_BIT(MYRA_FIELD_DATE);
    struct connection_scan scan = { data, head, seen, 0, 0 };

    /* The lists first: whether Upgrade counts depends on them. */
    for (uint32_t i = 0; (seen & lists) && i < head->field_count; i++) {
        if (MYRA_FIELD_BIT(head->fields[i].id) & lists)
            MYRA_TRY(read_connection(&scan, &head->fields[i]));
    }
    for (uint32_t i = 0; (seen & told) && i < head->field_count; i++)
        flag_field(&scan, &head->fields[i]);
    return 0;
}

/* ---- Looking up --------------------------------------------------------- */

int myra_http_field_is_named(const uint8_t *data,
                             const struct myra_http_field *field,
                             const char *name, size_t name_len)
{
    return field->name_len == name_len &&
           is_same_name(data + field->name_off, (const uint8_t *)name,
                        name_len);
}

const struct myra_http_field *
myra_http_head_field(const struct myra_http_head *head,
                     enum myra_http_field_id id)
{
    for (uint32_t i = 0; i < head->field_count; i++) {
        if (head->fields[i].id == id)
            return &head->fields[i];
    }
    return NULL;
}

const struct myra_http_field *
myra_http_head_find(const uint8_t *data, const struct myra_http_head *head,
                    const char *name, size_t name_len)
{
    for (uint32_t i = 0; i < head->field_count; i++) {
        if (myra_http_field_is_named(data, &head->fields[i], name, name_len))
            return &head->fields[i];
    }
    return NULL;
}
