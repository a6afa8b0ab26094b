/* SPDX-License-Identifier: MIT */
/*
 * The origins of `myra demo`: the smallest HTTP server that the library
 * makes. A process of its own each, so that one can be killed.
 */
#include "config.h"

#include "tools/myra/demo.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <myra/myra.h>

#define FIELDS_MAX 64

struct origin {
    _Atomic uint64_t *served;
    uint8_t answer[512];
    size_t answer_len;
    struct myra_http_field fields[FIELDS_MAX];
};

/* Answers every whole request in data; the rest comes again with more. */
static int64_t on_data(struct myra_conn *conn, const struct myra_slice *data,
                       void *user)
{
    struct origin *origin = user;
    size_t used = 0;

    while (used < data->len) {
        struct myra_http_scan scan = { 0 };
        struct myra_http_head head = { .fields = origin->fields,
                                       .field_cap = FIELDS_MAX };
        const int head_len = myra_http_request_parse(
            data->data + used, data->len - used, data->readable - used, NULL,
            &scan, &head);
        int err;

        if (head_len < 0)
            return head_len;
        if (head_len == 0)
            break;
        err = myra_conn_send(conn, origin->answer, origin->answer_len);
        if (err < 0)
            return err;
        used += (size_t)head_len;
        atomic_fetch_add_explicit(origin->served, 1, memory_order_relaxed);
    }
    return (int64_t)used;
}

/* The same bytes for every request: a head and a body of DEMO_BODY_LEN. */
static int write_answer(struct origin *origin, unsigned index)
{
    struct myra_http_out out;
    char body[DEMO_BODY_LEN];
    const int text_len =
        snprintf(body, sizeof body, "hello from origin %c\n", 'a' + index);

    memset(body + text_len, '.', sizeof body - (size_t)text_len);
    body[sizeof body - 1] = '\n';
    myra_http_out_init(&out, origin->answer, sizeof origin->answer);
    myra_http_emit_status_line(&out, 1, 200, NULL, 0);
    myra_http_emit_text(&out, "Content-Type", "text/plain");
    myra_http_emit_length(&out, sizeof body);
    myra_http_emit_end(&out);
    if (out.err < 0)
        return out.err;
    memcpy(origin->answer + out.len, body, sizeof body);
    origin->answer_len = out.len + sizeof body;
    return 0;
}

static int serve(struct origin *origin, int listen_fd)
{
    static const struct myra_conn_events events = { .on_data = on_data };
    struct myra_listener *listener;
    struct myra_loop *loop;
    int err = myra_loop_new(NULL, &loop);

    if (err < 0) {
        fprintf(stderr, "myra demo: origin: %s\n", myra_loop_new_error());
        return err;
    }
    err = myra_listen_fd(loop, listen_fd, NULL, &events, origin, &listener);
    if (err >= 0)
        err = myra_loop_run(loop);
    myra_loop_free(loop);
    return err;
}

int demo_origin_run(int listen_fd, int counter_fd, unsigned index)
{
    struct demo_counters *counters =
        mmap(NULL, sizeof *counters, PROT_READ | PROT_WRITE, MAP_SHARED,
             counter_fd, 0);
    struct origin origin;
    int err;

    if (counters == MAP_FAILED || index >= DEMO_ORIGIN_COUNT)
        return 1;
    memset(&origin, 0, sizeof origin);
    origin.served = &counters->served[index];
    err = write_answer(&origin, index);
    if (err >= 0)
        err = serve(&origin, listen_fd);
    if (err < 0)
        fprintf(stderr, "myra demo: origin: %s\n", myra_strerror(err));
    return err < 0;
}
