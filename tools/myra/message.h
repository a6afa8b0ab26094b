/* SPDX-License-Identifier: MIT */
/*
 * An HTTP message with everything copied out of its bytes: what `myra
 * inspect` prints, and what tests/run-cases compares. The library itself
 * hands out views only; these programs must keep what they saw.
 *
 * Growth never fails: a program that runs out of memory says so and exits
 * with status 2.
 */
#ifndef MYRA_MESSAGE_H
#define MYRA_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

/* A growing run of bytes. A NUL is kept behind the last one (not counted),
 * so that bytes without a NUL of their own read as a string. */
struct bytes {
    char *data; /* NULL while nothing was ever added */
    size_t len;
    size_t cap;
};

struct field {
    struct bytes name;
    struct bytes value;
};

struct fields {
    struct field *items;
    size_t count;
    size_t cap;
};

/* How the end of a body is found. */
enum framing {
    FRAMING_NONE,    /* no body */
    FRAMING_LENGTH,  /* Content-Length */
    FRAMING_CHUNKED, /* Transfer-Encoding: chunked */
    FRAMING_CLOSE,   /* until the connection ends */
    FRAMING_TUNNEL   /* no HTTP any more */
};

struct message {
    struct bytes method; /* requests */
    struct bytes target;
    int status; /* responses */
    struct bytes reason;
    int version_major;
    int version_minor;
    struct fields fields;
    enum framing framing;
    uint64_t length; /* FRAMING_LENGTH */
    struct bytes body;
    struct fields trailers;
    int keep_alive;
    int has_head;
    int is_complete;
    size_t start; /* where it begins in the input */
};

void bytes_add(struct bytes *bytes, const void *data, size_t len);
void bytes_add_text(struct bytes *bytes, const char *text);
void bytes_set(struct bytes *bytes, const void *data, size_t len);
void bytes_fini(struct bytes *bytes);
/* Drops the first len bytes. */
void bytes_drop(struct bytes *bytes, size_t len);
int bytes_equal(const struct bytes *a, const struct bytes *b);
int bytes_equal_text(const struct bytes *bytes, const char *text);
/* Never NULL. */
const char *bytes_text(const struct bytes *bytes);

void fields_add(struct fields *fields, const void *name, size_t name_len,
                const void *value, size_t value_len);
void fields_fini(struct fields *fields);
/* The first field of that name (case does not matter) at or behind index
 * from, or NULL. */
const struct field *fields_find(const struct fields *fields, const char *name,
                                size_t from);
size_t fields_count(const struct fields *fields, const char *name);
/* 1 if any field of that name lists the token (RFC 9110 section 5.6.1). */
int fields_list_token(const struct fields *fields, const char *name,
                      const char *token);

void message_fini(struct message *message);
int fields_equal(const struct fields *a, const struct fields *b);
/* 1 if the two have the same parts, framing and place. */
int message_equal(const struct message *a, const struct message *b);

const char *framing_name(enum framing framing);

/* malloc's and realloc's twin that does not return without memory. */
void *memory_grow(void *ptr, size_t size);

#endif
