/* SPDX-License-Identifier: MIT */
/*
 * Response cases through the proxy: the origin answers with the row's bytes,
 * and what the client gets is judged. A request behind them shows whether
 * the upstream connection was used again.
 */
#include "config.h"

#include "tests/run_cases/forward.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tests/run_cases/strict.h"

#define REQUESTS_MAX 16

/* The requests that the row's bytes answer. */
struct requests {
    char text[256]; /* the list, cut at its commas */
    const char *methods[REQUESTS_MAX];
    size_t count;
};

static void split_methods(const struct scene *scene, struct requests *requests)
{
    char *rest = requests->text;
    char *method;

    memset(requests, 0, sizeof *requests);
    snprintf(requests->text, sizeof requests->text, "%s",
             detail_text(scene->detail, "for", "GET"));
    while (requests->count < REQUESTS_MAX &&
           (method = strsep(&rest, ",")) != NULL)
        requests->methods[requests->count++] = method;
}

/* ---- The script --------------------------------------------------------- */

/* The length of the answer at the start of data, interim ones in front of it
 * included; len where its end cannot be told. */
static size_t answer_len(const char *data, size_t len, const char *method)
{
    size_t used = 0;
    int status = 0;

    while (used < len && status < 200) {
        struct strict_reading reading;

        if (strict_read(data + used, len - used, method, 0, &reading) !=
            STRICT_DONE) {
            message_fini(&reading.message);
            return len;
        }
        used += reading.used;
        status = reading.message.status;
        message_fini(&reading.message);
    }
    return used;
}

/* One blob for each request; the last one has all that is left. */
static void write_script(const struct scene *scene,
                         const struct requests *requests,
                         struct origin_script *script, enum pace pace)
{
    const char *data = scene->data;
    size_t len = scene->len;

    memset(script, 0, sizeof *script);
    script->pace = pace;
    script->closes = scene->options.is_eof;
    script->blob_count = requests->count;
    script->blobs =
        memory_grow(NULL, requests->count * sizeof *script->blobs);
    memset(script->blobs, 0, requests->count * sizeof *script->blobs);
    for (size_t i = 0; i < requests->count; i++) {
        const size_t part = i + 1 < requests->count
                                ? answer_len(data, len, requests->methods[i])
                                : len;

        bytes_set(&script->blobs[i], data, part);
        data += part;
        len -= part;
    }
}

static void free_script(struct origin_script *script)
{
    for (size_t i = 0; i < script->blob_count; i++)
        bytes_fini(&script->blobs[i]);
    free(script->blobs);
}

/* ---- The exchange ------------------------------------------------------- */

static int wants_upgrade(const struct scene *scene)
{
    const struct reading *const reading = &scene->reading;

    return !scene->options.no_upgrade && reading->message_count > 0 &&
           reading->messages[reading->message_count - 1].status == 101;
}

static void send_request(const struct scene *scene, struct client *client,
                         const char *method, size_t number)
{
    const int has_body = list_has("POST,PUT,PATCH", method);
    char text[512];
    const int len = snprintf(
        text, sizeof text, "%.32s /r%zu HTTP/1.1\r\nHost: origin.test\r\n%s%s",
        method, number,
        wants_upgrade(scene)
            ? "Connection: Upgrade\r\nUpgrade: websocket\r\n"
              "Sec-WebSocket-Version: 13\r\n"
              "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            : "",
        has_body ? "Content-Length: 4\r\n\r\ndata" : "\r\n");

    client_send(client, text, (size_t)len);
}

/* For exchange_run: so many bytes behind a switch have come, or the end. */
static int has_tunnelled(const struct exchange *exchange, size_t len)
{
    const struct channel *const channel = &exchange->client.channel;

    return channel->is_eof || channel->in.len >= len;
}

static int run_client(struct scene *scene, struct forward *forward,
                      const struct requests *requests)
{
    struct exchange *const exchange = forward->exchange;
    struct client *const client = &exchange->client;

    for (size_t i = 0; i < requests->count; i++) {
        send_request(scene, client, requests->methods[i], i + 1);
        if (!exchange_run(exchange, exchange_has_final, i + 1))
            return forward_fail(scene, forward, "answer %zu does not come",
                                i + 1);
        if (client->channel.is_eof || client->has_tunnel || client->fault)
            break;
    }
    if (exchange->origin.message_count > 0)
        forward->row_conn_id =
            exchange->origin.messages[exchange->origin.message_count - 1]
                .conn_id;
    if (client->has_tunnel &&
        !exchange_run(exchange, has_tunnelled, scene->reading.tunnel.len))
        return forward_fail(scene, forward,
                            "the bytes behind the switch do not come");
    return 0;
}

/* The request behind the row's: it must get its own answer, over a new
 * upstream connection where the old one may not be used again. */
static int try_after(struct scene *scene, struct forward *forward)
{
    static const char request[] =
        "GET /after HTTP/1.1\r\nHost: origin.test\r\n\r\n";
    struct exchange *const exchange = forward->exchange;
    struct client *const client = &exchange->client;
    const struct origin *const origin = &exchange->origin;
    const size_t count = client->final_count;
    const struct message *last = count ? client_final(client, count - 1)
                                       : NULL;
    const struct message *answer;

    if (client->channel.is_eof || client->has_tunnel || client->fault)
        return 0;
    if (last != NULL && !last->keep_alive) {
        if (exchange_run(exchange, exchange_is_ended, 0))
            return 0;
        return forward_fail(scene, forward,
                            "said to close, the connection stays open");
    }
    client_send(client, request, sizeof request - 1);
    exchange_run(exchange, exchange_has_final, count + 1);
    answer = client_final(client, count);
    if (answer == NULL || answer->status != 200 ||
        !bytes_equal_text(&answer->body, "answer to GET /after"))
        return forward_fail(scene, forward, "the next request on the kept "
                            "connection does not get its own answer");
    forward->later_conn_id =
        origin->messages[origin->message_count - 1].conn_id;
    return 0;
}

/* ---- Judgement ---------------------------------------------------------- */

static int compare_response(struct scene *scene, const struct forward *forward,
                            const struct message *sent,
                            const struct message *got, int is_bodyless)
{
    const struct field *const length =
        fields_find(&sent->fields, "Content-Length", 0);
    const struct field *const got_length =
        fields_find(&got->fields, "Content-Length", 0);

    if (sent->status != got->status)
        return forward_fail(scene, forward, "status %d, not %d", got->status,
                            sent->status);
    if (!bytes_equal(&sent->reason, &got->reason))
        return forward_fail(scene, forward, "the reason is '%s', not '%s'",
                            bytes_text(&got->reason),
                            bytes_text(&sent->reason));
    if (!bytes_equal(&sent->body, &got->body))
        return forward_fail(scene, forward, "the body is '%.80s'",
                            bytes_text(&got->body));
    if (is_bodyless && length != NULL &&
        (got_length == NULL ||
         !bytes_equal(&length->value, &got_length->value)))
        return forward_fail(scene, forward, "Content-Length is lost");
    if (compare_fields(scene, forward, &sent->fields, &got->fields) < 0)
        return -1;
    return compare_trailers(scene, forward, &sent->trailers, &got->trailers);
}

static int check_accepted(struct scene *scene, struct forward *forward,
                          const struct requests *requests)
{
    const struct client *const client = &forward->exchange->client;
    const struct reading *const reading = &scene->reading;
    size_t finals = 0;

    for (size_t i = 0; i < reading->message_count; i++) {
        const struct message *const sent = &reading->messages[i];
        const char *const method =
            finals < requests->count ? requests->methods[finals] : "GET";

        if (i >= client->response_count)
            return forward_fail(scene, forward, "answer %zu is missing",
                                i + 1);
        if (compare_response(scene, forward, sent, &client->responses[i],
                             sent->status == 304 ||
                                 strcmp(method, "HEAD") == 0) < 0)
            return -1;
        finals += sent->status >= 200;
    }
    if (reading->has_tunnel &&
        !bytes_equal(&reading->tunnel, &client->channel.in))
        return forward_fail(scene, forward, "other bytes behind the switch");
    return 0;
}

/* The failing response gives 502, or breaks off if its head was good. */
static int check_refused(struct scene *scene, struct forward *forward)
{
    const struct client *const client = &forward->exchange->client;
    const size_t before = wanted_messages(scene);
    const struct message *const answer = client_final(client, before);
    const int had_head = scene->reading.partial.has_head;

    if (scene->row->status[0] == '\0') {
        /* Bytes behind a good answer: that one is passed on. */
        return client->response_count >= before
                   ? 0
                   : forward_fail(scene, forward, "the answer is lost");
    }
    if (answer == NULL && had_head)
        return 0; /* aborted: the client can tell */
    if (answer == NULL)
        return forward_fail(scene, forward, "the client gets no answer");
    if (!status_is_right(scene, answer->status))
        return forward_fail(scene, forward, "the client gets %d, not %s",
                            answer->status, scene->row->status);
    if (is_origins(answer))
        return forward_fail(scene, forward, "an answer of the origin");
    return 0;
}

static int check_reuse(struct scene *scene, struct forward *forward)
{
    const struct reading *const reading = &scene->reading;
    const int may_reuse =
        reading->verdict == VERDICT_ACCEPT && reading_keeps(reading);

    if (!may_reuse && forward->row_conn_id != 0 &&
        forward->later_conn_id == forward->row_conn_id)
        return forward_fail(scene, forward, "the upstream connection is used "
                            "again");
    return 0;
}

static int judge(struct scene *scene, struct forward *forward,
                 const struct requests *requests)
{
    const struct client *const client = &forward->exchange->client;
    const struct message *const last =
        client_final(client, requests->count - 1);

    forward->was_refused =
        last == NULL ? !client->has_tunnel : last->status == 502;
    if (forward->exchange->origin.fault != NULL)
        return forward_fail(scene, forward, "the request was no strict HTTP: "
                            "%s", forward->exchange->origin.fault);
    if (client->fault != NULL)
        return forward_fail(scene, forward, "what came back is no strict "
                            "HTTP: %s", client->fault);
    if (check_reuse(scene, forward) < 0)
        return -1;
    if (scene->row->expect == EXPECT_REJECT)
        return check_refused(scene, forward);
    if (scene->row->expect == EXPECT_EITHER && forward->was_refused)
        return check_refused(scene, forward);
    if (scene->reading.verdict == VERDICT_REJECT)
        return 0; /* taken by the proxy alone: `never` has the word */
    return check_accepted(scene, forward, requests);
}

/* No idle connection may be left on which half an answer lies. */
static int drop_upstreams(struct scene *scene, struct forward *forward)
{
    struct bytes why = { 0 };
    int result = 0;

    if (exchange_drop_upstreams(forward->exchange, &why) < 0)
        result = forward_fail(scene, forward, "%s", bytes_text(&why));
    bytes_fini(&why);
    return result;
}

int forward_response(struct scene *scene, struct exchange *exchange,
                     enum pace pace, struct forward *forward)
{
    struct client *const client = &exchange->client;
    struct origin_script script;
    struct requests requests;
    int result;

    split_methods(scene, &requests);
    write_script(scene, &requests, &script, pace);
    if (forward_start(scene, forward, pace, exchange, &script) < 0) {
        free_script(&script);
        return -1;
    }
    client->methods = requests.methods;
    client->method_count = requests.count;
    result = run_client(scene, forward, &requests);
    exchange->origin.script = NULL;
    free_script(&script);
    if (result == 0)
        result = try_after(scene, forward);
    if (forward_end(scene, forward) < 0)
        result = -1;
    if (result == 0)
        result = judge(scene, forward, &requests);
    if (drop_upstreams(scene, forward) < 0)
        result = -1;
    client->methods = NULL;
    client->method_count = 0;
    return result;
}
