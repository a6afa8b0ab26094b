/* SPDX-License-Identifier: MIT */
/*
 * Turns of client, origin and proxy. There is no thread and no sleep: one
 * poll waits for all descriptors.
 */
#include "config.h"

#include "tests/run_cases/exchange.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int exchange_open(struct exchange *exchange, const char *program,
                  struct bytes *why)
{
    memset(exchange, 0, sizeof *exchange);
    exchange->client.channel.fd = -1;
    exchange->proxy.said_fd = -1;
    snprintf(exchange->proxy.program, sizeof exchange->proxy.program, "%s",
             program);
    if (origin_open(&exchange->origin) < 0) {
        bytes_add_text(why, "no port for the recording origin");
        return -1;
    }
    exchange->is_open = 1;
    return proxy_start(&exchange->proxy, exchange->origin.port, why);
}

/* ---- Turns -------------------------------------------------------------- */

static size_t add_poll(struct pollfd *fds, size_t count, int fd, short events)
{
    if (fd < 0 || events == 0)
        return count;
    fds[count].fd = fd;
    fds[count].events = events;
    fds[count].revents = 0;
    return count + 1;
}

/* Waits for any descriptor. Returns the number of ready ones, or 0. */
static int wait_any(const struct exchange *exchange, int timeout_ms)
{
    const struct origin *const origin = &exchange->origin;
    const struct channel *const client = &exchange->client.channel;
    struct pollfd *const fds =
        memory_grow(NULL, (origin->conn_count + 3) * sizeof *fds);
    size_t count = 0;
    int ready;

    count = add_poll(fds, count, origin->listen_fd, POLLIN);
    count = add_poll(fds, count, exchange->proxy.said_fd, POLLIN);
    count = add_poll(fds, count, client->fd, channel_events(client));
    for (size_t i = 0; i < origin->conn_count; i++) {
        const struct channel *const channel = &origin->conns[i]->channel;

        count = add_poll(fds, count, channel->fd, channel_events(channel));
    }
    ready = poll(fds, count, timeout_ms);
    free(fds);
    return ready > 0 ? ready : 0;
}

/* A number that changes with every byte, connection and message. */
static uint64_t progress(const struct exchange *exchange)
{
    const struct origin *const origin = &exchange->origin;
    const struct channel *const client = &exchange->client.channel;
    uint64_t sum = origin->conn_count * 1000003 + client->raw.len +
                   client->out_pos + (uint64_t)client->is_eof;

    for (size_t i = 0; i < origin->conn_count; i++) {
        const struct channel *const channel = &origin->conns[i]->channel;

        sum += channel->raw.len + channel->out_pos +
               (channel->fd < 0 ? 7919 : 0);
    }
    return sum;
}

int exchange_run(struct exchange *exchange,
                 int (*done)(const struct exchange *exchange, size_t arg),
                 size_t arg)
{
    int64_t until = clock_ms() + STALL_MS;
    uint64_t last = progress(exchange);

    for (;;) {
        const int result = done(exchange, arg);
        const int64_t left = until - clock_ms();

        if (result != 0)
            return result;
        if (left <= 0)
            return 0;
        if (!proxy_is_alive(&exchange->proxy) && wait_any(exchange, 0) == 0)
            return 0;
        wait_any(exchange, (int)left);
        origin_turn(&exchange->origin);
        client_turn(&exchange->client);
        if (progress(exchange) != last) {
            last = progress(exchange);
            until = clock_ms() + STALL_MS;
        }
    }
}

int exchange_is_ended(const struct exchange *exchange, size_t arg)
{
    (void)arg;
    return exchange->client.channel.is_eof;
}

int exchange_has_final(const struct exchange *exchange, size_t count)
{
    const struct client *const client = &exchange->client;

    return client->channel.is_eof || client->has_tunnel ||
           client->fault != NULL || client->final_count >= count;
}

/* ---- The parts of an exchange ------------------------------------------- */

int exchange_begin(struct exchange *exchange, struct origin_script *script,
                   struct bytes *why)
{
    int err;

    client_close(&exchange->client);
    if (!proxy_is_alive(&exchange->proxy) &&
        proxy_start(&exchange->proxy, exchange->origin.port, why) < 0)
        return -1;
    origin_begin(&exchange->origin, script);
    proxy_read_usage(&exchange->proxy, &exchange->before);
    err = client_open(&exchange->client, exchange->proxy.port);
    if (err == 0)
        return 0;
    bytes_add_text(why, "cannot connect to the proxy: ");
    bytes_add_text(why, strerror(-err));
    return -1;
}

int exchange_finish(struct exchange *exchange, struct bytes *why)
{
    exchange->client.channel.wants_shutdown =
        !exchange->client.channel.is_eof;
    if (exchange_run(exchange, exchange_is_ended, 0))
        return 0;
    bytes_add_text(why, proxy_is_alive(&exchange->proxy)
                            ? "the proxy keeps the connection open although "
                              "the client has ended it"
                            : "the proxy died");
    return -1;
}

/* The message that the fence has left in the record is taken out of it. */
static void forget_fence(struct origin *origin, const char *target,
                         unsigned *conn_id_out)
{
    for (size_t i = 0; i < origin->message_count; i++) {
        struct origin_message *const got = &origin->messages[i];

        if (!bytes_equal_text(&got->message.target, target))
            continue;
        *conn_id_out = got->conn_id;
        message_fini(&got->message);
        memmove(got, got + 1,
                (origin->message_count - i - 1) * sizeof *got);
        origin->message_count--;
        return;
    }
}

int exchange_fence(struct exchange *exchange, unsigned *conn_id_out,
                   struct bytes *why)
{
    struct client first = exchange->client;
    const struct message *answer;
    char target[32];
    char request[96];
    int err;

    *conn_id_out = 0;
    exchange->origin.script = NULL;
    snprintf(target, sizeof target, "/fence-%u", ++exchange->fence_count);
    snprintf(request, sizeof request,
             "GET %s HTTP/1.1\r\nHost: fence.test\r\n\r\n", target);
    err = client_open(&exchange->client, exchange->proxy.port);
    if (err == 0) {
        client_send(&exchange->client, request, strlen(request));
        exchange_run(exchange, exchange_has_final, 1);
    }
    answer = client_final(&exchange->client, 0);
    if (answer == NULL || answer->status != 200 ||
        strstr(bytes_text(&answer->body), target) == NULL) {
        bytes_add_text(why, proxy_is_alive(&exchange->proxy)
                                ? "the proxy does not serve other clients "
                                  "right afterwards"
                                : "the proxy died");
        err = -1;
    }
    client_close(&exchange->client);
    exchange->client = first;
    forget_fence(&exchange->origin, target, conn_id_out);
    return err < 0 ? -1 : 0;
}

static int all_closed(const struct exchange *exchange, size_t arg)
{
    const struct origin *const origin = &exchange->origin;

    (void)arg;
    for (size_t i = 0; i < origin->conn_count; i++) {
        if (origin->conns[i]->channel.fd >= 0)
            return 0;
    }
    return 1;
}

int exchange_drop_upstreams(struct exchange *exchange, struct bytes *why)
{
    struct origin *const origin = &exchange->origin;

    for (size_t i = 0; i < origin->conn_count; i++)
        origin->conns[i]->channel.wants_shutdown = 1;
    if (exchange_run(exchange, all_closed, 0))
        return 0;
    bytes_add_text(why, "the proxy keeps an upstream connection open that "
                        "the origin has ended");
    return -1;
}

int exchange_close(struct exchange *exchange, struct bytes *why)
{
    int result = 0;

    if (!exchange->is_open)
        return 0;
    client_close(&exchange->client);
    if (exchange->proxy.pid > 0 &&
        exchange_drop_upstreams(exchange, why) < 0)
        result = -1;
    if (exchange->proxy.pid > 0 && proxy_stop(&exchange->proxy, why) < 0)
        result = -1;
    origin_close(&exchange->origin);
    exchange->is_open = 0;
    return result;
}
