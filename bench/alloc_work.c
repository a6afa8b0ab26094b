/* SPDX-License-Identifier: MIT */
/*
 * The measured side of table alloc: "alloc CASE [BACKEND]" under the counting
 * malloc. Runs the case once to warm up, once counted, and answers with the
 * number of operations and of allocations.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <myra/http.h>
#include <myra/loop.h>
#include <myra/pool.h>
#include <myra/tcp.h>

#include "bench/counted.h"
#include "bench/worker.h"

#define OPS 20000
#define HELD 64
#define MESSAGE_LEN 256

/* A case runs ops operations: 0, or negative when something went wrong. */
struct alloc_case {
    const char *name;
    int (*set_up)(const char *backend);
    int (*run)(uint64_t ops);
};

/* ---- The control: one allocation an operation ---------------------------- */

static int set_up_nothing(const char *backend)
{
    (void)backend;
    return 0;
}

static int run_control(uint64_t ops)
{
    for (uint64_t i = 0; i < ops; i++) {
        void *const p = malloc(64);

        if (!p)
            return -1;
        __asm__ volatile("" : : "r"(p) : "memory");
        free(p);
    }
    return 0;
}

/* ---- The pool ------------------------------------------------------------ */

static struct myra_pool *pool;

static int set_up_pool(const char *backend)
{
    (void)backend;
    return myra_pool_new(NULL, &pool);
}

static int run_pool(uint64_t ops)
{
    struct myra_buf *held[HELD];

    for (uint64_t i = 0; i < ops; i += HELD) {
        for (int k = 0; k < HELD; k++)
            if (myra_pool_acquire(pool, &held[k]) < 0)
                return -1;
        for (int k = 0; k < HELD; k++)
            myra_buf_release(held[k]);
    }
    return 0;
}

/* ---- Heads --------------------------------------------------------------- */

static const char request_text[] =
    "GET /catalogue/index.html?page=12 HTTP/1.1\r\n"
    "Host: www.example.com\r\n"
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64)\r\n"
    "Accept: text/html,application/xhtml+xml;q=0.9,*/*;q=0.8\r\n"
    "Accept-Encoding: gzip, deflate, br\r\n"
    "Cookie: session=5f0c1a2b3d4e5f60718293a4b5c6d7e8\r\n"
    "Connection: keep-alive\r\n"
    "\r\n";

static int run_parse(uint64_t ops)
{
    struct myra_http_field fields[MYRA_HTTP_FIELDS_DEFAULT];
    const size_t len = sizeof(request_text) - 1;

    for (uint64_t i = 0; i < ops; i++) {
        struct myra_http_head head = {
            .fields = fields, .field_cap = MYRA_HTTP_FIELDS_DEFAULT
        };
        struct myra_http_scan scan = { 0 };
        const int used =
            myra_http_request_parse((const uint8_t *)request_text, len, len,
                                    NULL, &scan, &head);

        if (used != (int)len || head.field_count != 6)
            return -1;
    }
    return 0;
}

/* ---- A loop that echoes -------------------------------------------------- */

struct echo {
    struct myra_loop *loop;
    struct myra_listener *listener;
    struct myra_conn *client;
    uint64_t left;
    size_t got_len; /* of the message that comes back */
    int err;
    int is_open;
    uint8_t message[MESSAGE_LEN];
};

static struct echo echo;

static int64_t on_server_data(struct myra_conn *conn,
                              const struct myra_slice *data, void *user)
{
    (void)user;
    if (myra_conn_send_slice(conn, data, 0, data->len) < 0)
        echo.err = -1;
    return (int64_t)data->len;
}

static void on_client_open(struct myra_conn *conn, void *user)
{
    (void)conn;
    (void)user;
    echo.is_open = 1;
}

static int64_t on_client_data(struct myra_conn *conn,
                              const struct myra_slice *data, void *user)
{
    (void)user;
    if (data->len > MESSAGE_LEN - echo.got_len ||
        memcmp(data->data, echo.message + echo.got_len, data->len) != 0) {
        echo.err = -1;
        return (int64_t)data->len;
    }
    echo.got_len += data->len;
    if (echo.got_len == MESSAGE_LEN) {
        echo.got_len = 0;
        if (--echo.left > 0 &&
            myra_conn_send(conn, echo.message, MESSAGE_LEN) < 0)
            echo.err = -1;
    }
    return (int64_t)data->len;
}

static void on_closed(struct myra_conn *conn, enum myra_close_reason reason,
                      int err, void *user)
{
    (void)conn;
    (void)reason;
    (void)err;
    (void)user;
    echo.err = -1;
}

static const struct myra_conn_events server_events = {
    .on_data = on_server_data,
    .on_closed = on_closed,
};

static const struct myra_conn_events client_events = {
    .on_open = on_client_open,
    .on_data = on_client_data,
    .on_closed = on_closed,
};

static int connect_echo(void)
{
    struct sockaddr_storage addr;
    socklen_t addr_len;
    char text[64];

    MYRA_TRY(myra_listen(echo.loop, "127.0.0.1:0", NULL, &server_events,
                         NULL, &echo.listener));
    MYRA_TRY(myra_listener_addr(echo.listener, text, sizeof(text)));
    MYRA_TRY(myra_addr_parse(text, &addr, &addr_len));
    MYRA_TRY(myra_connect(echo.loop, (struct sockaddr *)&addr, addr_len, NULL,
                          &client_events, NULL, &echo.client));
    while (!echo.is_open && !echo.err)
        MYRA_TRY(myra_loop_step(echo.loop, 1000000000));
    return echo.err;
}

static int set_up_echo(const char *backend)
{
    struct myra_loop_options options;

    for (size_t i = 0; i < MESSAGE_LEN; i++)
        echo.message[i] = (uint8_t)(i * 7);
    myra_loop_options_init(&options);
    options.backend = backend;
    MYRA_TRY(myra_loop_new(&options, &echo.loop));
    return connect_echo();
}

static int run_echo(uint64_t ops)
{
    echo.left = ops;
    MYRA_TRY(myra_conn_send(echo.client, echo.message, MESSAGE_LEN));
    while (echo.left > 0 && !echo.err)
        MYRA_TRY(myra_loop_step(echo.loop, 1000000000));
    return echo.err;
}

/* ---- Answering ----------------------------------------------------------- */

static const struct alloc_case cases[] = {
    { "control", set_up_nothing, run_control },
    { "pool", set_up_pool, run_pool },
    { "parse", set_up_nothing, run_parse },
    { "echo", set_up_echo, run_echo },
};

static const struct alloc_case *find_case(const char *name)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (strcmp(cases[i].name, name) == 0)
            return &cases[i];
    return NULL;
}

int worker_alloc(int argc, char **argv)
{
    const struct alloc_case *const one =
        argc > 0 ? find_case(argv[0]) : NULL;
    struct malloc_counts *const counts = counted_own();

    if (!one || !worker_wait())
        return 2;
    if (!counts || one->set_up(argc > 1 ? argv[1] : NULL) < 0 ||
        one->run(OPS) < 0) {
        worker_answer(-1, 0);
        return 1;
    }
    const uint64_t before = atomic_load(&counts->allocs);
    const int err = one->run(OPS);

    worker_answer(err < 0 ? -1 : OPS,
                  (double)(atomic_load(&counts->allocs) - before));
    return 0;
}
