/* SPDX-License-Identifier: MIT */
/*
 * What the library sees in raw bytes: feeds them to its HTTP parser, in one
 * piece or in many, and keeps everything that comes out.
 */
#ifndef MYRA_READING_H
#define MYRA_READING_H

#include "tools/myra/message.h"

enum reading_kind {
    READING_REQUEST,
    READING_RESPONSE,
    READING_CHUNKED /* a chunked body alone */
};

enum verdict {
    VERDICT_ACCEPT,    /* read to the end */
    VERDICT_REJECT,    /* an error; what stands before it was delivered */
    VERDICT_INCOMPLETE /* right so far, more bytes must follow */
};

/* Without a limit of its own a body may have so many bytes. */
#define READING_BODY_MAX (UINT64_C(64) << 20)

struct reading_options {
    enum reading_kind kind;
    const char *methods; /* responses: the methods that are answered, in
                            order, as a comma list; NULL: any number of GET */
    int is_eof;          /* the peer closes behind the last byte */
    int no_upgrade;      /* responses: no upgrade was asked for */
    uint64_t body_max;   /* 0: READING_BODY_MAX */
};

enum feeding_form {
    FEEDING_WHOLE, /* all bytes at once, and not one byte readable behind */
    FEEDING_SLACK, /* all at once, with 64 bytes readable behind them */
    FEEDING_BYTES, /* one byte at a time */
    FEEDING_CUT    /* two pieces, cut before byte number `cut` */
};

struct feeding {
    enum feeding_form form;
    size_t cut;
};

struct reading {
    enum verdict verdict;
    int status; /* to answer with, or a proxy's own 502; 0: none */
    struct message *messages;
    size_t message_count; /* complete ones */
    struct message partial; /* has_head: a message that did not end */
    int has_tunnel;
    struct bytes tunnel;   /* behind a CONNECT or an upgrade */
    struct bytes leftover; /* behind a body alone, or behind the last message
                              of a connection: not looked at */
    int err;             /* negative, of the library; 0 */
    size_t error_offset; /* from the first byte of the input */
    const char *reason;  /* of the error */
};

/* Fills *reading, which the caller ends with reading_fini. */
void reading_run(const struct reading_options *options,
                 const struct feeding *feeding, const void *data, size_t len,
                 struct reading *reading);
void reading_fini(struct reading *reading);

/* 1 if both saw the same, to the offset of the error. */
int reading_equal(const struct reading *a, const struct reading *b);

/* 1 if the connection may be used again after the last complete message. */
int reading_keeps(const struct reading *reading);

const char *verdict_name(enum verdict verdict);

#endif
