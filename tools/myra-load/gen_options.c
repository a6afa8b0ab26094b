/* SPDX-License-Identifier: MIT */
/*
 * What the generator is told: defaults, and the request as bytes. It is built
 * once, so that sending is one call with one buffer.
 */
#include "config.h"

#include "tools/myra-load/gen.h"

#include <errno.h>
#include <myra/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void gen_options_init(struct gen_options *options)
{
    memset(options, 0, sizeof(*options));
    options->conn_count = 16;
    options->rate_per_s = 1000;
    options->timeout_ns = UINT64_C(10000000000);
    options->drain_ns = UINT64_C(2000000000);
    options->expect_body_len = -1;
    options->snapshot_ns = UINT64_C(200000000);
}

void gen_options_fini(struct gen_options *options)
{
    free(options->request);
    options->request = NULL;
    options->request_len = 0;
}

/* Writes the head into text and returns its length, as snprintf does. */
static int print_head(char *text, size_t cap, const char *method,
                      const char *target, const char *host,
                      const char *fields, int has_body, size_t body_len)
{
    char length[48] = "";

    if (has_body)
        snprintf(length, sizeof(length), "Content-Length: %zu\r\n", body_len);
    return snprintf(text, cap,
                    "%s %s HTTP/1.1\r\n"
                    "Host: %s\r\n"
                    "%s%s\r\n",
                    method, target, host, fields, length);
}

int gen_options_set_request(struct gen_options *options, const char *method,
                            const char *target, const char *host,
                            const char *fields, const void *body,
                            size_t body_len)
{
    const int has_body = body != NULL;
    const int head_len = print_head(NULL, 0, method, target, host, fields,
                                    has_body, body_len);

    if (head_len < 0)
        return -ENOMEM;
    char *const request = malloc((size_t)head_len + body_len + 1);

    if (!request)
        return -ENOMEM;
    print_head(request, (size_t)head_len + 1, method, target, host, fields,
               has_body, body_len);
    if (has_body && body_len > 0)
        memcpy(request + head_len, body, body_len);
    gen_options_fini(options);
    options->request = request;
    options->request_len = (size_t)head_len + (has_body ? body_len : 0);
    options->is_head = strcmp(method, "HEAD") == 0;
    return 0;
}

int gen_options_set_target(struct gen_options *options, const char *addr_text,
                           const char *path)
{
    const int err =
        myra_addr_parse(addr_text, &options->addr, &options->addr_len);

    if (err < 0)
        return err;
    return gen_options_set_request(options, "GET", path, addr_text,
                                   "User-Agent: myra-load\r\n"
                                   "Accept: */*\r\n",
                                   NULL, 0);
}
