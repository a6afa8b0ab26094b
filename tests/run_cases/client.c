/* SPDX-License-Identifier: MIT */
/*
 * The client before the proxy.
 */
#include "config.h"

#include "tests/run_cases/client.h"

#include "tests/run_cases/strict.h"

#include <stdlib.h>
#include <string.h>

int client_open(struct client *client, int port)
{
    const int fd = socket_connect(port);

    memset(client, 0, sizeof *client);
    channel_init(&client->channel, fd < 0 ? -1 : fd);
    return fd < 0 ? fd : 0;
}

void client_close(struct client *client)
{
    for (size_t i = 0; i < client->response_count; i++)
        message_fini(&client->responses[i]);
    free(client->responses);
    message_fini(&client->partial);
    channel_fini(&client->channel);
    memset(client, 0, sizeof *client);
    client->channel.fd = -1;
}

void client_send(struct client *client, const void *data, size_t len)
{
    bytes_add(&client->channel.out, data, len);
}

static const char *answered_method(const struct client *client)
{
    if (client->final_count < client->method_count)
        return client->methods[client->final_count];
    return "GET";
}

static void keep_response(struct client *client,
                          const struct message *message)
{
    client->responses =
        memory_grow(client->responses, (client->response_count + 1) *
                                           sizeof *client->responses);
    client->responses[client->response_count++] = *message;
    if (message->status >= 200)
        client->final_count++;
    if (message->framing == FRAMING_TUNNEL)
        client->has_tunnel = 1;
}

static void read_responses(struct client *client)
{
    struct channel *const channel = &client->channel;

    while (!client->has_tunnel && !client->fault && channel->in.len > 0) {
        struct strict_reading reading;
        const int is_eof = channel->is_eof && !channel->is_reset;
        const enum strict_result result =
            strict_read(bytes_text(&channel->in), channel->in.len,
                        answered_method(client), is_eof, &reading);

        if (result == STRICT_DONE) {
            bytes_drop(&channel->in, reading.used);
            keep_response(client, &reading.message);
            continue;
        }
        if (result == STRICT_BAD)
            client->fault = reading.why;
        message_fini(&client->partial);
        client->partial = reading.message;
        return;
    }
    if (channel->in.len == 0)
        message_fini(&client->partial);
}

void client_turn(struct client *client)
{
    struct channel *const channel = &client->channel;
    const size_t had = channel->in.len;
    const int had_eof = channel->is_eof;

    channel_turn(channel);
    if (channel->in.len != had || channel->is_eof != had_eof)
        read_responses(client);
}

const struct message *client_final(const struct client *client, size_t index)
{
    for (size_t i = 0; i < client->response_count; i++) {
        if (client->responses[i].status < 200)
            continue;
        if (index-- == 0)
            return &client->responses[i];
    }
    return NULL;
}

int client_was_closed(const struct client *client)
{
    return client->channel.is_eof && !client->channel.wants_shutdown;
}
