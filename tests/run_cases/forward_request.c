/* SPDX-License-Identifier: MIT */
/*
 * Request cases through the proxy: what reaches the origin must be what the
 * library read, strictly written; what is refused reaches it not at all.
 */
#include "config.h"

#include "tests/run_cases/forward.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char after_request[] =
    "GET /after HTTP/1.1\r\nHost: origin.test\r\n\r\n";

/* ---- The exchange ------------------------------------------------------- */

/* The methods of the row's requests, so that an answer to HEAD is read
 * right. */
static void set_methods(const struct scene *scene, struct client *client,
                        const char ***methods)
{
    const size_t count = scene->reading.message_count;

    *methods = memory_grow(NULL, (count + 1) * sizeof **methods);
    for (size_t i = 0; i < count; i++)
        (*methods)[i] = bytes_text(&scene->reading.messages[i].method);
    client->methods = *methods;
    client->method_count = count;
}

static int is_sent(const struct exchange *exchange, size_t unused)
{
    (void)unused;
    return !channel_has_output(&exchange->client.channel);
}

/* Final responses to wait for: one for each message, and one for the refusal
 * behind them. */
static size_t expected_answers(const struct scene *scene)
{
    const struct reading *const reading = &scene->reading;

    return reading->message_count +
           (reading->verdict == VERDICT_REJECT && reading->status != 0);
}

/* The last answer says that the connection goes on. */
static int is_kept(const struct client *client)
{
    const struct message *const last =
        client->final_count ? client_final(client, client->final_count - 1)
                            : NULL;

    return last != NULL && last->keep_alive;
}

/* A connection that is said to go on must serve one more request. */
static int try_after(struct scene *scene, struct forward *forward)
{
    struct client *const client = &forward->exchange->client;
    const size_t count = client->final_count;
    const struct message *answer;

    client->channel.pace = PACE_WHOLE;
    client_send(client, after_request, sizeof after_request - 1);
    exchange_run(forward->exchange, exchange_has_final, count + 1);
    answer = client_final(client, count);
    if (answer == NULL || answer->status != 200 ||
        !bytes_equal_text(&answer->body, "answer to GET /after"))
        return forward_fail(scene, forward,
                            "the next request on the kept connection is not "
                            "answered");
    return 0;
}

/* 1 if the proxy, which has no limit on bodies, must wait for more. */
static int is_waiting(const struct scene *scene)
{
    const struct feeding whole = { FEEDING_WHOLE, 0 };
    struct reading_options options = scene->options;
    struct reading reading;
    int result;

    options.body_max = UINT64_MAX;
    reading_run(&options, &whole, scene->data, scene->len, &reading);
    result = reading.verdict == VERDICT_INCOMPLETE;
    reading_fini(&reading);
    return result;
}

static int run_client(struct scene *scene, struct forward *forward)
{
    struct exchange *const exchange = forward->exchange;
    struct client *const client = &exchange->client;
    const int is_incomplete = forward->is_incomplete || scene->options.is_eof;

    client_send(client, scene->data, scene->len);
    if (!exchange_run(exchange, is_sent, 0))
        return forward_fail(scene, forward, "the proxy takes no more bytes");
    if (is_incomplete)
        client->channel.wants_shutdown = 1;
    if (!exchange_run(exchange, exchange_has_final,
                      is_incomplete ? SIZE_MAX : expected_answers(scene)))
        return forward_fail(scene, forward, "no answer");
    if (client->channel.is_eof || is_incomplete)
        return 0;
    if (is_kept(client) && scene->reading.verdict == VERDICT_ACCEPT)
        return try_after(scene, forward);
    if (!is_kept(client) && client->fault == NULL &&
        !exchange_run(exchange, exchange_is_ended, 0))
        return forward_fail(scene, forward,
                            "said to close, the connection stays open");
    return 0;
}

/* ---- What reached the origin -------------------------------------------- */

/* Takes an absolute-form target apart; authority points behind "://". */
static void split_absolute(const struct message *sent, const char *authority,
                           struct bytes *target, struct bytes *host)
{
    const size_t len = strcspn(authority, "/?");
    const char *const path = authority + len;
    const char *const user = memchr(authority, '@', len);
    const char *const name = user ? user + 1 : authority;

    bytes_set(host, name, (size_t)(path - name));
    bytes_set(target, "", 0);
    if (*path == '\0' && bytes_equal_text(&sent->method, "OPTIONS"))
        bytes_add_text(target, "*");
    else if (*path != '/')
        bytes_add_text(target, "/");
    bytes_add_text(target, path);
}

/* The target and Host that an origin gets (RFC 9112 section 3.2.2). */
static void origin_form(const struct message *sent, struct bytes *target,
                        struct bytes *host)
{
    const char *const text = bytes_text(&sent->target);
    const char *const scheme_end = strstr(text, "://");
    const struct field *const field = fields_find(&sent->fields, "Host", 0);

    if (field != NULL)
        bytes_set(host, bytes_text(&field->value), field->value.len);
    if (text[0] == '/' || scheme_end == NULL)
        bytes_set(target, text, sent->target.len);
    else
        split_absolute(sent, scheme_end + 3, target, host);
}

static int compare_place(struct scene *scene, const struct forward *forward,
                         const struct message *sent,
                         const struct message *got, int is_first)
{
    const char *const target_key =
        is_first ? detail_text(scene->detail, "forward_target", NULL) : NULL;
    const char *const host_key =
        is_first ? detail_text(scene->detail, "forward_host", NULL) : NULL;
    const struct field *const field = fields_find(&got->fields, "Host", 0);
    struct bytes target = { 0 };
    struct bytes host = { 0 };
    int result = 0;

    origin_form(sent, &target, &host);
    if (target_key != NULL)
        bytes_set(&target, target_key, strlen(target_key));
    if (host_key != NULL)
        bytes_set(&host, host_key, strlen(host_key));
    if (!bytes_equal(&target, &got->target))
        result = forward_fail(scene, forward, "the target is '%.80s', not "
                              "'%.80s'", bytes_text(&got->target),
                              bytes_text(&target));
    /* A 1.0 request may have none: the proxy must send one of its own. */
    if (field == NULL || (host.len > 0 && !bytes_equal(&host, &field->value)))
        result = forward_fail(scene, forward, "Host is '%s', not '%s'",
                              field ? bytes_text(&field->value) : "missing",
                              bytes_text(&host));
    bytes_fini(&target);
    bytes_fini(&host);
    return result;
}

static int compare_request(struct scene *scene, const struct forward *forward,
                           const struct message *sent,
                           const struct message *got, int is_first)
{
    if (!bytes_equal(&sent->method, &got->method))
        return forward_fail(scene, forward, "the method is '%s'",
                            bytes_text(&got->method));
    if (got->version_minor != 1)
        return forward_fail(scene, forward, "forwarded as HTTP/1.0");
    if (compare_place(scene, forward, sent, got, is_first) < 0)
        return -1;
    if (!bytes_equal(&sent->body, &got->body))
        return forward_fail(scene, forward,
                            "the body has %zu bytes and is not that of %zu",
                            got->body.len, sent->body.len);
    if (compare_fields(scene, forward, &sent->fields, &got->fields) < 0)
        return -1;
    return compare_trailers(scene, forward, &sent->trailers, &got->trailers);
}

static int compare_answer(struct scene *scene, const struct forward *forward,
                          const struct message *got, size_t index)
{
    const struct message *const response =
        client_final(&forward->exchange->client, index);
    struct bytes body = { 0 };
    int result = 0;

    if (response == NULL)
        return forward_fail(scene, forward, "request %zu got no answer",
                            index + 1);
    origin_answer_body(got, &body);
    if (response->status != 200 || !is_origins(response))
        result = forward_fail(scene, forward,
                              "request %zu was answered with %d", index + 1,
                              response->status);
    else if (!bytes_equal_text(&got->method, "HEAD") &&
             !bytes_equal(&body, &response->body))
        result = forward_fail(scene, forward, "request %zu got the answer of "
                              "another one: '%.80s'", index + 1,
                              bytes_text(&response->body));
    bytes_fini(&body);
    return result;
}

/* The requests of the row in the record; /after, if sent, is the last. */
static size_t recorded(const struct origin *origin)
{
    const size_t count = origin->message_count;

    if (count > 0 && bytes_equal_text(
                         &origin->messages[count - 1].message.target,
                         "/after"))
        return count - 1;
    return count;
}

/* The first count messages went through, each with its own answer. */
static int check_delivered(struct scene *scene, struct forward *forward,
                           size_t count)
{
    const struct origin *const origin = &forward->exchange->origin;

    if (recorded(origin) != count)
        return forward_fail(scene, forward,
                            "%zu requests reached the origin, not %zu",
                            recorded(origin), count);
    for (size_t i = 0; i < count; i++) {
        const struct message *const got = &origin->messages[i].message;

        if (i < scene->reading.message_count &&
            compare_request(scene, forward, &scene->reading.messages[i], got,
                            i == 0) < 0)
            return -1;
        if (compare_answer(scene, forward, got, i) < 0)
            return -1;
    }
    return 0;
}

/* ---- Judgement ---------------------------------------------------------- */

static int check_refused(struct scene *scene, struct forward *forward,
                         size_t before)
{
    const struct client *const client = &forward->exchange->client;
    const struct message *const answer = client_final(client, before);

    if (check_delivered(scene, forward, before) < 0)
        return -1;
    if (answer == NULL && scene->row->status[0] != '\0')
        return forward_fail(scene, forward, "refused without an answer");
    if (answer != NULL && is_origins(answer))
        return forward_fail(scene, forward, "the origin's answer came");
    if (answer != NULL && !status_is_right(scene, answer->status))
        return forward_fail(scene, forward, "refused with status %d, not %s",
                            answer->status, scene->row->status);
    if (answer != NULL && answer->keep_alive)
        return forward_fail(scene, forward, "the refusal does not say that "
                            "the connection closes");
    if (client->final_count > before + 1)
        return forward_fail(scene, forward, "answers behind the refusal");
    if (forward->is_open_after)
        return forward_fail(scene, forward,
                            "the connection stays open after the refusal");
    return 0;
}

/* A reverse proxy opens no tunnels: CONNECT is refused, and what stands
 * behind it goes nowhere. */
static int check_connect(struct scene *scene, struct forward *forward)
{
    const struct client *const client = &forward->exchange->client;
    const struct message *const answer = client_final(client, 0);

    if (answer == NULL || answer->status < 400)
        return forward_fail(scene, forward, "CONNECT to a reverse proxy is "
                            "not refused");
    return check_delivered(scene, forward, 0);
}

static int check_accepted(struct scene *scene, struct forward *forward)
{
    const struct client *const client = &forward->exchange->client;
    const struct reading *const reading = &scene->reading;
    const size_t count = reading->message_count;

    if (count > 0 &&
        bytes_equal_text(&reading->messages[0].method, "CONNECT"))
        return check_connect(scene, forward);
    if (check_delivered(scene, forward, count) < 0)
        return -1;
    if (reading_keeps(reading) != forward->is_open_after &&
        reading->messages[count - 1].version_minor == 1)
        return forward_fail(scene, forward,
                            forward->is_open_after
                                ? "the connection stays open"
                                : "the connection does not stay open");
    if (client->final_count > count + 1)
        return forward_fail(scene, forward, "an answer too many");
    return 0;
}

static int check_hygiene(struct scene *scene, struct forward *forward)
{
    const struct exchange *const exchange = forward->exchange;

    if (exchange->origin.fault != NULL)
        return forward_fail(scene, forward,
                            "what reached the origin is no strict HTTP: %s",
                            exchange->origin.fault);
    if (exchange->client.fault != NULL)
        return forward_fail(scene, forward,
                            "what came back is no strict HTTP: %s",
                            exchange->client.fault);
    if (origin_has_partial(&exchange->origin))
        return forward_fail(scene, forward, "half a request is left on an "
                            "open upstream connection");
    return 0;
}

static int judge(struct scene *scene, struct forward *forward)
{
    const struct client *const client = &forward->exchange->client;
    const size_t before = wanted_messages(scene);
    const struct message *const last =
        client->final_count > 0 ? client_final(client,
                                               client->final_count - 1)
                                : NULL;

    forward->was_refused = last == NULL || !is_origins(last);
    if (check_hygiene(scene, forward) < 0)
        return -1;
    if (scene->row->expect == EXPECT_ACCEPT)
        return check_accepted(scene, forward);
    if (scene->row->expect == EXPECT_REJECT)
        return check_refused(scene, forward, before);
    if (!forward->was_refused)
        return check_delivered(scene, forward,
                               recorded(&forward->exchange->origin));
    /* Bytes that only wait for more are neither taken nor refused. */
    if (forward->is_incomplete)
        return check_delivered(scene, forward, before);
    return check_refused(scene, forward, before);
}

int forward_request(struct scene *scene, struct exchange *exchange,
                    enum pace pace, struct forward *forward)
{
    struct client *const client = &exchange->client;
    const char **methods = NULL;
    int result;

    if (forward_start(scene, forward, pace, exchange, NULL) < 0)
        return -1;
    forward->is_incomplete = is_waiting(scene);
    client->channel.pace = pace;
    client->channel.cut = scene->len / 2;
    set_methods(scene, client, &methods);
    result = run_client(scene, forward);
    if (forward_end(scene, forward) < 0)
        result = -1;
    if (result == 0)
        result = judge(scene, forward);
    client->methods = NULL;
    client->method_count = 0;
    free(methods);
    return result;
}
