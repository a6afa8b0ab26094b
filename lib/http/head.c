/* SPDX-License-Identifier: MIT */
/*
 * Request and response heads: the walk over the lines, and the start line.
 *
 * A head that comes whole is walked once. One that comes in pieces is walked
 * line by line as it comes, which tells every error of a line as early as it
 * can be known; when its last line is there, it is walked a second time to
 * fill the fields, because the caller's array need not live between calls.
 *
 * Each check depends only on bytes up to where it stands, never on how many
 * more have come, so any cut of the input gives the same outcome.
 */
#include "config.h"

#include <limits.h>
#include <string.h>

#include "lib/http/http_priv.h"

/* Empty lines allowed before a request line (rule 2). */
#define BLANK_LINES_MAX 7

/* "HTTP/1.1" */
#define VERSION_LEN 8

enum phase {
    PHASE_BLANK = 0, /* before the start line */
    PHASE_START = 1,
    PHASE_FIELDS = 2,
};

const struct myra_http_limits myi_http_limits_default = {
    .line_max = 16 << 10,
    .fields_max = 64 << 10,
    .field_count_max = MYRA_HTTP_FIELDS_DEFAULT,
    .chunk_line_max = 4 << 10,
    .chunk_ext_max = 16 << 10,
    .trailer_max = 64 << 10,
    .flags = 0,
    .body_max = UINT64_MAX,
};

void myra_http_limits_init(struct myra_http_limits *limits)
{
    *limits = myi_http_limits_default;
}

struct walk {
    const uint8_t *data;
    size_t len;
    size_t readable;
    const struct myra_http_limits *limits;
    struct myra_http_scan *scan;
    struct myra_http_head *head;
    uint32_t field_cap;
    uint32_t is_lenient_lf;
    uint64_t seen; /* ids of the fields */
};

static int fail(struct walk *walk, int err, size_t at)
{
    walk->head->error_offset = (uint32_t)at;
    return err;
}

/* ---- Start lines -------------------------------------------------------- */

/* "HTTP/1.x" in 8 bytes; x above 1 is read as 1, the highest we speak. */
static int parse_version(struct walk *walk, size_t at, size_t len)
{
    const uint8_t *text = walk->data + at;

    if (len != VERSION_LEN || memcmp(text, "HTTP/", 5) != 0 ||
        !myi_is_digit(text[5]) || text[6] != '.' || !myi_is_digit(text[7]))
        return fail(walk, MYRA_HTTP_VERSION, at);
    if (text[5] != '1')
        return fail(walk, MYRA_HTTP_VERSION_UNSUPPORTED, at);
    walk->head->version_minor = text[7] != '0';
    return 0;
}

static int parse_target(struct walk *walk, size_t at, size_t len)
{
    struct myra_http_target *target = &walk->head->target;

    if (myra_http_target_parse(walk->data + at, len,
                               (enum myra_http_method)walk->head->method,
                               target) < 0)
        return fail(walk, MYRA_HTTP_TARGET, at);
    target->off += (uint32_t)at;
    target->path_off += (uint32_t)at;
    target->authority.off += (uint32_t)at;
    target->authority.host_off += (uint32_t)at;
    return 0;
}

/* The last SP of the line, or start - 1 where there is none. */
static size_t last_space(const uint8_t *data, size_t start, size_t end)
{
    while (end > start && data[end - 1] != ' ')
        end--;
    return end - 1;
}

/* method SP target SP version, split at the first and the last SP, so that
 * any other blank is part of the target, which may hold none (rule 3). */
static int parse_request_line(struct walk *walk, size_t start, size_t end)
{
    const uint8_t *data = walk->data;
    struct myra_http_head *head = walk->head;
    size_t first = start;
    size_t last;

    while (myi_is_class(data[first], MYI_CLASS_TOKEN))
        first++;
    if (first == start || data[first] != ' ' || first - start > UINT16_MAX)
        return fail(walk, MYRA_HTTP_METHOD, first);
    last = last_space(data, start, end);
    if (last == first)
        return fail(walk, MYRA_HTTP_VERSION, end);
    head->method_len = (uint16_t)(first - start);
    head->method = (uint8_t)myra_http_method_of(data + start,
                                                head->method_len);
    MYRA_TRY(parse_version(walk, last + 1, end - last - 1));
    return parse_target(walk, first + 1, last - first - 1);
}

/* version SP 3DIGIT [SP reason]; a line that ends behind the status is taken
 * too, as many servers send it (rule 27). */
static int parse_status_line(struct walk *walk, size_t start, size_t end)
{
    const uint8_t *data = walk->data;
    struct myra_http_head *head = walk->head;
    const uint8_t *space = memchr(data + start, ' ', end - start);
    const size_t at = start + VERSION_LEN + 1;

    MYRA_TRY(parse_version(walk, start,
                           space ? (size_t)(space - data) - start
                                 : end - start));
    if (end < at + 3 || !myi_is_digit(data[at]) ||
        !myi_is_digit(data[at + 1]) || !myi_is_digit(data[at + 2]) ||
        data[at] == '0' || (end > at + 3 && data[at + 3] != ' '))
        return fail(walk, MYRA_HTTP_STATUS, at < end ? at : end);
    head->status = (uint16_t)((data[at] - '0') * 100 +
                              (data[at + 1] - '0') * 10 +
                              (data[at + 2] - '0'));
    head->reason_off = (uint32_t)(end > at + 3 ? at + 4 : end);
    head->reason_len = (uint32_t)(end - head->reason_off);
    return 0;
}

/* ---- Lines -------------------------------------------------------------- */

/* Finds the end of the line at line_off; as myi_http_line_end, but offsets
 * count from the data. */
static int find_line(struct walk *walk, size_t max, size_t *end)
{
    struct myra_http_scan *scan = walk->scan;
    const size_t start = scan->line_off;
    const size_t from = scan->seen_off > start ? scan->seen_off - start : 0;
    const int eol_len =
        myi_http_line_end(walk->data + start, from, walk->len - start,
                          walk->readable - start, max,
                          (int)walk->is_lenient_lf, end);

    *end += start;
    if (eol_len == 0)
        scan->seen_off = (uint32_t)*end;
    return eol_len;
}

/* Empty lines before a request; a response has none. 1: the start line
 * begins. */
static int walk_blank(struct walk *walk)
{
    struct myra_http_scan *scan = walk->scan;
    const size_t at = scan->line_off;
    const uint8_t byte = walk->data[at];

    if (walk->head->is_response) {
        if (byte != 'H')
            return fail(walk, MYRA_HTTP_START, at);
    } else if (byte == '\n') {
        return fail(walk, MYRA_HTTP_LINE_END, at);
    } else if (byte == '\r' && scan->blank_count < BLANK_LINES_MAX) {
        if (at + 1 == walk->len)
            return 0;
        if (walk->data[at + 1] != '\n')
            return fail(walk, MYRA_HTTP_LINE_END, at);
        scan->blank_count++;
        scan->line_off += 2;
        return 1;
    } else if (!myi_is_class(byte, MYI_CLASS_TOKEN)) {
        return fail(walk, MYRA_HTTP_START, at);
    }
    scan->start_off = scan->line_off;
    scan->phase = PHASE_START;
    return 1;
}

/* A control byte in a start line: in which part of it? */
static int refuse_start_byte(struct walk *walk, size_t at)
{
    const size_t start = walk->scan->line_off;
    const uint8_t *line = walk->data + start;
    const uint8_t *space = memchr(line, ' ', at - start);

    if (walk->head->is_response)
        return fail(walk, space ? MYRA_HTTP_STATUS : MYRA_HTTP_VERSION, at);
    if (!space)
        return fail(walk, MYRA_HTTP_METHOD, at);
    if (!memchr(space + 1, ' ', (size_t)(walk->data + at - space - 1)))
        return fail(walk, MYRA_HTTP_TARGET, at);
    return fail(walk, MYRA_HTTP_VERSION, at);
}

static int walk_start(struct walk *walk)
{
    struct myra_http_scan *scan = walk->scan;
    size_t end;
    const int eol_len = find_line(walk, walk->limits->line_max, &end);

    if (eol_len == 0)
        return 0;
    if (eol_len == MYRA_HTTP_FIELD_VALUE)
        return refuse_start_byte(walk, end);
    if (eol_len < 0)
        return fail(walk, eol_len, end);
    MYRA_TRY(walk->head->is_response
                 ? parse_status_line(walk, scan->line_off, end)
                 : parse_request_line(walk, scan->line_off, end));
    scan->line_off = (uint32_t)end + (uint32_t)eol_len;
    scan->fields_off = scan->line_off;
    scan->phase = PHASE_FIELDS;
    return 1;
}

/* A line that begins with a blank goes on with the field before it. */
static int extend_field(struct walk *walk, size_t end)
{
    struct myra_http_scan *scan = walk->scan;
    struct myra_http_field *field;
    size_t start = scan->line_off;

    if (scan->field_count > walk->field_cap)
        return fail(walk, MYRA_HTTP_FIELDS_TOO_MANY, start);
    field = &walk->head->fields[scan->field_count - 1];
    while (start < end && myi_is_blank(walk->data[start]))
        start++;
    while (end > start && myi_is_blank(walk->data[end - 1]))
        end--;
    field->flags |= MYRA_FIELD_IS_IRREGULAR;
    if (end > start)
        field->value_len = (uint32_t)(end - field->value_off);
    return 0;
}

static int add_field(struct walk *walk, size_t end, int eol_len)
{
    struct myra_http_scan *scan = walk->scan;
    struct myra_http_field *field;
    size_t error_offset = 0;
    int err;

    if (scan->field_count >= walk->field_cap)
        return fail(walk, MYRA_HTTP_FIELDS_TOO_MANY, scan->line_off);
    field = &walk->head->fields[scan->field_count];
    err = myi_http_field_parse(walk->data, scan->line_off, end, field,
                               &error_offset);
    if (MYRA_UNLIKELY(err < 0))
        return fail(walk, err, error_offset);
    walk->seen |= MYRA_FIELD_BIT(field->id);
    if (MYRA_FIELD_BIT(field->id) & myi_http_hop_ids)
        field->flags |= MYRA_FIELD_IS_HOP;
    if (eol_len == 1)
        field->flags |= MYRA_FIELD_IS_IRREGULAR;
    scan->field_count++;
    return 0;
}

/* The empty line: the bytes of the whole head, or 0 while its LF is due. */
static int walk_end(struct walk *walk)
{
    const size_t at = walk->scan->line_off;
    size_t head_len = at + 2;

    if (walk->data[at] == '\n') {
        if (!walk->is_lenient_lf)
            return fail(walk, MYRA_HTTP_LINE_END, at);
        head_len = at + 1;
    } else if (at + 1 == walk->len) {
        return 0;
    } else if (walk->data[at + 1] != '\n') {
        return fail(walk, MYRA_HTTP_LINE_END, at);
    }
    walk->head->head_len = (uint32_t)head_len;
    return (int)head_len;
}

/* Lines of the field section until the empty one (> 0: the head's length),
 * or the end of the input (0). */
static int walk_fields(struct walk *walk)
{
    struct myra_http_scan *scan = walk->scan;
    const uint32_t fold_flag =
        walk->head->is_response ? walk->limits->flags & MYRA_LENIENT_FOLD : 0;

    while (scan->line_off < walk->len) {
        const size_t used = scan->line_off - scan->fields_off;
        const uint8_t byte = walk->data[scan->line_off];
        const int is_fold = myi_is_blank(byte);
        size_t end;
        int eol_len;

        if (used + 2 > walk->limits->fields_max)
            return fail(walk, MYRA_HTTP_HEAD_TOO_LONG, scan->line_off);
        if (byte == '\r' || byte == '\n')
            return walk_end(walk);
        if (is_fold && (!fold_flag || scan->field_count == 0))
            return fail(walk, MYRA_HTTP_FOLD, scan->line_off);
        eol_len = find_line(walk, walk->limits->fields_max - 2 - used, &end);
        if (eol_len <= 0) {
            if (eol_len == MYRA_HTTP_LINE_TOO_LONG)
                return fail(walk, MYRA_HTTP_HEAD_TOO_LONG, end);
            return eol_len ? fail(walk, eol_len, end) : 0;
        }
        MYRA_TRY(is_fold ? extend_field(walk, end)
                         : add_field(walk, end, eol_len));
        scan->line_off = (uint32_t)end + (uint32_t)eol_len;
    }
    return 0;
}

static int walk_lines(struct walk *walk)
{
    struct myra_http_scan *scan = walk->scan;

    while (scan->line_off < walk->len) {
        int n;

        if (scan->phase == PHASE_FIELDS)
            return walk_fields(walk);
        n = scan->phase == PHASE_BLANK ? walk_blank(walk) : walk_start(walk);
        if (n <= 0)
            return n;
    }
    return 0;
}

/* ---- Whole heads -------------------------------------------------------- */

static void clear_head(struct myra_http_head *head, int is_response)
{
    struct myra_http_field *fields = head->fields;
    const uint32_t field_cap = head->field_cap;

    memset(head, 0, sizeof(*head));
    head->fields = fields;
    head->field_cap = field_cap;
    head->is_response = (uint8_t)is_response;
    head->host_index = -1;
}

/* Walks as far as the bytes go. > 0: whole, and the fields are filled. */
static int walk_head(struct walk *walk)
{
    struct myra_http_scan *scan = walk->scan;
    struct myra_http_head *head = walk->head;
    int n = walk_lines(walk);

    if (n > 0 && scan->is_resumed) {
        memset(scan, 0, sizeof(*scan));
        walk->seen = 0;
        n = walk_lines(walk);
    }
    if (n <= 0) {
        scan->is_resumed = 1;
        return n;
    }
    head->start_off = scan->start_off;
    head->fields_off = scan->fields_off;
    head->fields_end = scan->line_off;
    head->field_count = scan->field_count;
    return n;
}

static void walk_init(struct walk *walk, const uint8_t *data, size_t len,
                      size_t readable, const struct myra_http_limits *limits)
{
    memset(walk, 0, sizeof(*walk));
    walk->data = data;
    walk->len = len < INT_MAX ? len : INT_MAX;
    walk->readable = readable;
    walk->limits = myi_http_limits(limits);
}

static void walk_bind(struct walk *walk, struct myra_http_scan *scan,
                      struct myra_http_head *head, int is_response)
{
    const struct myra_http_limits *limits = walk->limits;

    clear_head(head, is_response);
    walk->scan = scan;
    walk->head = head;
    walk->field_cap = head->field_cap < limits->field_count_max
                          ? head->field_cap
                          : limits->field_count_max;
    walk->is_lenient_lf = is_response ? limits->flags & MYRA_LENIENT_LF : 0;
}

int myra_http_request_parse(const uint8_t *data, size_t len, size_t readable,
                            const struct myra_http_limits *limits,
                            struct myra_http_scan *scan,
                            struct myra_http_head *head)
{
    struct walk walk;
    int n;

    walk_init(&walk, data, len, readable, limits);
    walk_bind(&walk, scan, head, 0);
    n = walk_head(&walk);
    if (n <= 0)
        return n;
    MYRA_TRY(myi_http_fields_finish(data, head, walk.seen));
    MYRA_TRY(myi_http_frame_request(data, head, walk.seen, walk.limits));
    return n;
}

int myra_http_response_parse(const uint8_t *data, size_t len, size_t readable,
                             const struct myra_http_limits *limits,
                             const struct myra_http_asked *asked,
                             struct myra_http_scan *scan,
                             struct myra_http_head *head)
{
    static const struct myra_http_asked asked_nothing;
    struct walk walk;
    int n;

    walk_init(&walk, data, len, readable, limits);
    walk_bind(&walk, scan, head, 1);
    n = walk_head(&walk);
    if (n <= 0)
        return n;
    MYRA_TRY(myi_http_fields_finish(data, head, walk.seen));
    MYRA_TRY(myi_http_frame_response(data, head, walk.seen, walk.limits,
                                     asked ? asked : &asked_nothing));
    return n;
}
