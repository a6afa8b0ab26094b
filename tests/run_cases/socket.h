/* SPDX-License-Identifier: MIT */
/*
 * Non-blocking loopback sockets with their bytes in and out.
 */
#ifndef RUN_CASES_SOCKET_H
#define RUN_CASES_SOCKET_H

#include <stdint.h>

#include "tools/myra/message.h"

/* How bytes are handed to the system. */
enum pace {
    PACE_WHOLE,
    PACE_BYTES, /* one byte a turn */
    PACE_CUT    /* two pieces: the second goes when the peer's kernel has
                   the first */
};

struct channel {
    int fd; /* -1: closed */
    struct bytes in;  /* received, not consumed */
    struct bytes raw; /* all that was received since it was last cleared */
    struct bytes out;
    size_t out_pos;
    enum pace pace;
    size_t cut; /* PACE_CUT: where the second piece starts */
    int is_eof;   /* the peer sends no more */
    int is_reset; /* ... because the connection broke */
    int wants_shutdown; /* behind the last byte of out */
    int is_shutdown;
};

/* Milliseconds of the monotonic clock. */
int64_t clock_ms(void);

/* Listens on 127.0.0.1 and a port of the system's choice. The descriptor, or
 * a negative errno. */
int socket_listen(int *port_out);
/* Connects to 127.0.0.1:port; done when it returns. The descriptor, or a
 * negative errno. */
int socket_connect(int port);
int socket_accept(int listen_fd);

void channel_init(struct channel *channel, int fd);
/* Closes with a reset: nothing may linger in the system. */
void channel_fini(struct channel *channel);

/* The poll events that the channel waits for; 0: none. */
short channel_events(const struct channel *channel);
/* Receives and sends what can be. */
void channel_turn(struct channel *channel);
int channel_has_output(const struct channel *channel);

#endif
