/* SPDX-License-Identifier: MIT */
/*
 * The chunked coding, read (RFC 9112 7.1; rules 19 to 21).
 *
 * A size line is read a byte at a time by a state machine, so nothing of it
 * has to be kept; data is given out as views; a trailer line has to lie there
 * whole, since its name and value are given out as views as well.
 */
#include "config.h"

#include <string.h>

#include "lib/http/http_priv.h"

/* 15 hex digits stay far below 64 bits, so that nothing added to a size can
 * wrap. */
#define SIZE_DIGITS_MAX 15

enum state {
    STATE_SIZE = 0,     /* hex digits */
    STATE_SIZE_BLANK,   /* blanks behind them: a ';' must come */
    STATE_NAME_BEFORE,  /* behind ';' */
    STATE_NAME,         /* an extension's name */
    STATE_NAME_BLANK,   /* blanks behind it: '=' or ';' must come */
    STATE_VALUE_BEFORE, /* behind '=' */
    STATE_VALUE,        /* a token */
    STATE_QUOTED,       /* inside a quoted string */
    STATE_ESCAPED,      /* behind its backslash */
    STATE_VALUE_AFTER,  /* behind its end */
    STATE_SIZE_LF,      /* the LF of the size line */
    STATE_DATA,
    STATE_DATA_CR, /* the CR LF behind the data */
    STATE_DATA_LF,
    STATE_TRAILER,
    STATE_END,
    STATE_ERROR,
};

void myra_http_chunked_init(struct myra_http_chunked *chunked,
                            const struct myra_http_limits *limits)
{
    limits = myi_http_limits(limits);
    memset(chunked, 0, sizeof(*chunked));
    chunked->body_max = limits->body_max;
    chunked->line_max = limits->chunk_line_max;
    chunked->ext_max = limits->chunk_ext_max;
    chunked->trailer_max = limits->trailer_max;
    chunked->trailer_count_max = limits->field_count_max;
    chunked->flags = (uint8_t)limits->flags;
}

static int is_lenient(const struct myra_http_chunked *chunked)
{
    return chunked->flags & MYRA_LENIENT_LF;
}

/* ---- Size lines --------------------------------------------------------- */

static int hex_value(uint8_t byte)
{
    if (myi_is_digit(byte))
        return byte - '0';
    return (byte | 0x20) - 'a' + 10;
}

static int add_digit(struct myra_http_chunked *chunked, uint8_t byte)
{
    if (chunked->digits == SIZE_DIGITS_MAX)
        return MYRA_HTTP_CHUNK_OVERFLOW;
    chunked->digits++;
    chunked->left = chunked->left << 4 | (uint64_t)hex_value(byte);
    return 0;
}

/* The size line is over: data comes, or the trailer section. */
static int start_chunk(struct myra_http_chunked *chunked)
{
    if (chunked->left > chunked->body_max - chunked->body_len)
        return MYRA_HTTP_BODY_TOO_LARGE;
    chunked->state = chunked->left ? STATE_DATA : STATE_TRAILER;
    chunked->line_len = 0;
    chunked->digits = 0;
    return 0;
}

/* A line may end here. */
static int end_line(struct myra_http_chunked *chunked, uint8_t byte)
{
    if (byte == '\r') {
        chunked->state = STATE_SIZE_LF;
        return 0;
    }
    return is_lenient(chunked) ? start_chunk(chunked) : MYRA_HTTP_LINE_END;
}

static int is_eol(uint8_t byte)
{
    return byte == '\r' || byte == '\n';
}

static int step_size(struct myra_http_chunked *chunked, uint8_t byte)
{
    if (MYRA_LIKELY(myi_is_class(byte, MYI_CLASS_HEX)))
        return add_digit(chunked, byte);
    if (chunked->digits == 0)
        return MYRA_HTTP_CHUNK_SIZE;
    if (is_eol(byte))
        return end_line(chunked, byte);
    if (byte == ';')
        chunked->state = STATE_NAME_BEFORE;
    else if (myi_is_blank(byte))
        chunked->state = STATE_SIZE_BLANK;
    else
        return MYRA_HTTP_CHUNK_SIZE;
    return 0;
}

/* Behind blanks only the byte they were for may come. */
static int step_blank(struct myra_http_chunked *chunked, uint8_t byte)
{
    if (myi_is_blank(byte))
        return 0;
    if (byte == ';')
        chunked->state = STATE_NAME_BEFORE;
    else if (byte == '=' && chunked->state == STATE_NAME_BLANK)
        chunked->state = STATE_VALUE_BEFORE;
    else
        return chunked->state == STATE_SIZE_BLANK ? MYRA_HTTP_CHUNK_SIZE
                                                  : MYRA_HTTP_CHUNK_EXT;
    return 0;
}

/* In a name, or in a value that is a token. */
static int step_token(struct myra_http_chunked *chunked, uint8_t byte)
{
    const int is_name = chunked->state == STATE_NAME;

    if (MYRA_LIKELY(myi_is_class(byte, MYI_CLASS_TOKEN)))
        return 0;
    if (is_eol(byte))
        return end_line(chunked, byte);
    if (byte == ';')
        chunked->state = STATE_NAME_BEFORE;
    else if (byte == '=' && is_name)
        chunked->state = STATE_VALUE_BEFORE;
    else if (myi_is_blank(byte))
        chunked->state = is_name ? STATE_NAME_BLANK : STATE_VALUE_AFTER;
    else
        return MYRA_HTTP_CHUNK_EXT;
    return 0;
}

/* Before a name or a value: blanks, then its first byte. */
static int step_before(struct myra_http_chunked *chunked, uint8_t byte)
{
    const int is_name = chunked->state == STATE_NAME_BEFORE;

    if (myi_is_blank(byte))
        return 0;
    if (byte == '"' && !is_name)
        chunked->state = STATE_QUOTED;
    else if (myi_is_class(byte, MYI_CLASS_TOKEN))
        chunked->state = is_name ? STATE_NAME : STATE_VALUE;
    else
        return byte == '\n' ? MYRA_HTTP_LINE_END : MYRA_HTTP_CHUNK_EXT;
    return 0;
}

static int step_quoted(struct myra_http_chunked *chunked, uint8_t byte)
{
    if (byte == '"')
        chunked->state = STATE_VALUE_AFTER;
    else if (byte == '\\')
        chunked->state = STATE_ESCAPED;
    else if (!myi_is_class(byte, MYI_CLASS_QUOTED))
        return byte == '\n' ? MYRA_HTTP_LINE_END : MYRA_HTTP_CHUNK_EXT;
    return 0;
}

static int step_escaped(struct myra_http_chunked *chunked, uint8_t byte)
{
    if ((byte < 0x20 && byte != '\t') || byte == 0x7f)
        return byte == '\n' ? MYRA_HTTP_LINE_END : MYRA_HTTP_CHUNK_EXT;
    chunked->state = STATE_QUOTED;
    return 0;
}

static int step_after(struct myra_http_chunked *chunked, uint8_t byte)
{
    if (is_eol(byte))
        return end_line(chunked, byte);
    return step_blank(chunked, byte);
}

static int step_line(struct myra_http_chunked *chunked, uint8_t byte)
{
    switch (chunked->state) {
    case STATE_SIZE:
        return step_size(chunked, byte);
    case STATE_SIZE_BLANK:
    case STATE_NAME_BLANK:
        return step_blank(chunked, byte);
    case STATE_NAME:
    case STATE_VALUE:
        return step_token(chunked, byte);
    case STATE_NAME_BEFORE:
    case STATE_VALUE_BEFORE:
        return step_before(chunked, byte);
    case STATE_QUOTED:
        return step_quoted(chunked, byte);
    case STATE_ESCAPED:
        return step_escaped(chunked, byte);
    case STATE_VALUE_AFTER:
        return step_after(chunked, byte);
    default:
        return byte == '\n' ? start_chunk(chunked) : MYRA_HTTP_LINE_END;
    }
}

/* Counts a byte behind the digits: all of that is extension, ';' too. */
static int count_byte(struct myra_http_chunked *chunked, uint8_t byte)
{
    if (is_eol(byte) || (chunked->state == STATE_SIZE &&
                         myi_is_class(byte, MYI_CLASS_HEX)))
        return 0;
    if (chunked->digits + chunked->line_len >= chunked->line_max ||
        chunked->ext_len >= chunked->ext_max)
        return MYRA_HTTP_CHUNK_EXT_TOO_LONG;
    chunked->line_len++;
    chunked->ext_len++;
    return 0;
}

/* ---- Data and trailers -------------------------------------------------- */

/* The CR LF behind a chunk's data (rule 20). */
static int step_data_end(struct myra_http_chunked *chunked, uint8_t byte)
{
    if (chunked->state == STATE_DATA_CR && byte == '\r') {
        chunked->state = STATE_DATA_LF;
        return 0;
    }
    if (byte != '\n' ||
        (chunked->state == STATE_DATA_CR && !is_lenient(chunked)))
        return MYRA_HTTP_CHUNK_END;
    chunked->state = STATE_SIZE;
    return 0;
}

static size_t give_data(struct myra_http_chunked *chunked,
                        const uint8_t *data, size_t len,
                        struct myra_http_part *part)
{
    const size_t n = len < chunked->left ? len : (size_t)chunked->left;

    part->kind = MYRA_PART_DATA;
    part->data = data;
    part->len = n;
    chunked->left -= n;
    chunked->body_len += n;
    if (chunked->left == 0)
        chunked->state = STATE_DATA_CR;
    return n;
}

/* The trailer section is over, or its last CR waits for an LF. */
static int64_t end_trailers(struct myra_http_chunked *chunked,
                            const uint8_t *data, size_t len,
                            struct myra_http_part *part)
{
    if (data[0] == '\r') {
        if (len == 1)
            return 0;
        if (data[1] != '\n')
            return MYRA_HTTP_LINE_END;
    } else if (!is_lenient(chunked)) {
        return MYRA_HTTP_LINE_END;
    }
    chunked->state = STATE_END;
    part->kind = MYRA_PART_END;
    return data[0] == '\r' ? 2 : 1;
}

static int give_trailer(struct myra_http_chunked *chunked,
                        const uint8_t *data, size_t end,
                        struct myra_http_part *part, size_t *error_offset)
{
    if (chunked->trailer_count >= chunked->trailer_count_max)
        return MYRA_HTTP_FIELDS_TOO_MANY;
    MYRA_TRY(myi_http_field_parse(data, 0, end, &part->trailer,
                                  error_offset));
    if (MYRA_FIELD_BIT(part->trailer.id) & myi_http_hop_ids)
        part->trailer.flags |= MYRA_FIELD_IS_HOP;
    if (MYRA_FIELD_BIT(part->trailer.id) & myi_http_unsafe_ids)
        part->trailer.flags |= MYRA_FIELD_IS_UNSAFE;
    chunked->trailer_count++;
    part->kind = MYRA_PART_TRAILER;
    part->data = data;
    part->len = end;
    return 0;
}

/* One trailer line; folds are never taken here. Returns the bytes used. */
static int64_t step_trailer(struct myra_http_chunked *chunked,
                            const uint8_t *data, size_t len,
                            struct myra_http_part *part, size_t *error_offset)
{
    const uint32_t used = chunked->trailer_len;
    size_t end;
    int eol_len;

    if (used > chunked->trailer_max || chunked->trailer_max - used < 2)
        return MYRA_HTTP_TRAILER_TOO_LONG;
    if (is_eol(data[0]))
        return end_trailers(chunked, data, len, part);
    if (myi_is_blank(data[0]))
        return MYRA_HTTP_FOLD;
    eol_len = myi_http_line_end(data, chunked->seen_len, len, len,
                                chunked->trailer_max - used - 2,
                                is_lenient(chunked), &end);
    *error_offset = end;
    if (eol_len < 0)
        return eol_len == MYRA_HTTP_LINE_TOO_LONG ? MYRA_HTTP_TRAILER_TOO_LONG
                                                  : eol_len;
    if (eol_len == 0) {
        chunked->seen_len = (uint32_t)end;
        return 0;
    }
    *error_offset = 0;
    MYRA_TRY(give_trailer(chunked, data, end, part, error_offset));
    chunked->seen_len = 0;
    chunked->trailer_len += (uint32_t)end + (uint32_t)eol_len;
    return (int64_t)(end + (size_t)eol_len);
}

/* ---- The decoder -------------------------------------------------------- */

static int64_t fail(struct myra_http_chunked *chunked, int64_t err,
                    size_t off)
{
    chunked->state = STATE_ERROR;
    chunked->err = (int)err;
    chunked->error_offset = chunked->used + off;
    return err;
}

/* Runs through size lines and chunk ends until data or trailers can come.
 * Returns the bytes used, or an error with *error_offset. */
static int64_t skip_lines(struct myra_http_chunked *chunked,
                          const uint8_t *data, size_t len,
                          size_t *error_offset)
{
    size_t i = 0;

    for (; i < len && chunked->state != STATE_DATA &&
           chunked->state < STATE_TRAILER; i++) {
        int err;

        *error_offset = i;
        if (chunked->state >= STATE_DATA_CR) {
            err = step_data_end(chunked, data[i]);
        } else {
            err = count_byte(chunked, data[i]);
            if (err == 0)
                err = step_line(chunked, data[i]);
        }
        if (err < 0)
            return err;
    }
    return (int64_t)i;
}

int64_t myra_http_chunked_next(struct myra_http_chunked *chunked,
                               const uint8_t *data, size_t len,
                               struct myra_http_part *part)
{
    size_t error_offset = 0;
    int64_t used;
    int64_t n = 0;

    part->kind = MYRA_PART_MORE;
    if (chunked->state == STATE_ERROR)
        return chunked->err;
    used = skip_lines(chunked, data, len, &error_offset);
    if (used < 0)
        return fail(chunked, used, error_offset);
    if (chunked->state == STATE_END) {
        part->kind = MYRA_PART_END;
    } else if ((size_t)used < len) {
        data += used;
        len -= (size_t)used;
        error_offset = 0;
        n = chunked->state == STATE_DATA
                ? (int64_t)give_data(chunked, data, len, part)
                : step_trailer(chunked, data, len, part, &error_offset);
        if (n < 0)
            return fail(chunked, n, (size_t)used + error_offset);
    }
    chunked->used += (uint64_t)(used + n);
    return used + n;
}
