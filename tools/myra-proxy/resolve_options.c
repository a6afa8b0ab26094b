/* SPDX-License-Identifier: MIT */
/* The checks of the options that need the system: addresses and names. */
#include "config.h"

#include "options.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <myra/myra.h>

#include "names.h"

static char *join(const char *before, const char *text)
{
    const size_t cap = strlen(before) + strlen(text) + 1;
    char *out = malloc(cap);

    if (out)
        snprintf(out, cap, "%s%s", before, text);
    return out;
}

/* What to send as Host for a client that sent none. */
static char *authority_of(const struct target *target)
{
    if (target->addrs[0].ss_family == AF_UNIX)
        return join("", "localhost");
    if (strspn(target->text, "0123456789") == strlen(target->text))
        return join("127.0.0.1:", target->text);
    return join("", target->text);
}

static int refuse(const char *option, const char *value, const char *why)
{
    fprintf(stderr, "myra-proxy: %s %s: %s\n", option, value, why);
    return -EXIT_CONFIG;
}

static int port_of(const struct sockaddr_storage *addr)
{
    if (addr->ss_family == AF_INET)
        return ntohs(((const struct sockaddr_in *)(const void *)addr)
                         ->sin_port);
    if (addr->ss_family == AF_INET6)
        return ntohs(((const struct sockaddr_in6 *)(const void *)addr)
                         ->sin6_port);
    return -1;
}

/* "name:port" through the system's resolver. */
static int look_up(struct target *target)
{
    char host[256];
    const char *colon = strrchr(target->text, ':');
    const size_t host_len = colon ? (size_t)(colon - target->text) : 0;
    struct name_result result;
    uint64_t port;
    uint32_t i;

    if (!host_len || host_len >= sizeof(host) || strchr(target->text, '/') ||
        units_parse_count(colon + 1, &port) || port < 1 || port > 65535)
        return refuse("--to", target->text, "is not an address");
    memcpy(host, target->text, host_len);
    host[host_len] = 0;
    names_look_up(host, (uint16_t)port, &result);
    if (!result.addr_count)
        return refuse("--to", target->text, result.error_text);
    for (i = 0; i < result.addr_count; i++) {
        target->addrs[i] = result.addrs[i];
        target->addr_lens[i] = result.addr_lens[i];
    }
    target->addr_count = result.addr_count;
    return 0;
}

static int resolve_target(struct target *target)
{
    int err = 0;

    if (myra_addr_parse(target->text, &target->addrs[0],
                        &target->addr_lens[0]) == 0)
        target->addr_count = 1;
    else
        err = look_up(target);
    if (err)
        return err;
    if (port_of(&target->addrs[0]) == 0)
        return refuse("--to", target->text, "has port 0");
    target->authority = authority_of(target);
    return target->authority ? 0 : -EXIT_FAILED;
}

static int resolve_listen(const char *text)
{
    struct sockaddr_storage addr;
    socklen_t addr_len;

    if (myra_addr_parse(text, &addr, &addr_len) < 0)
        return refuse("--listen", text,
                      "is not an address (8080, *:8080, 127.0.0.1:8080, "
                      "[::1]:8080 or unix:/path)");
    return 0;
}

int options_resolve(struct proxy_options *options)
{
    uint32_t i, j;
    int err = 0;

    for (i = 0; i < options->site_count && !err; i++) {
        struct site *site = &options->sites[i];

        for (j = 0; j < site->listen_count && !err; j++)
            err = resolve_listen(site->listens[j]);
        for (j = 0; j < site->target_count && !err; j++)
            err = resolve_target(&site->targets[j]);
    }
    if (!err && options->max_connections &&
        options->max_connections < options->threads)
        err = refuse("--max-connections", "", "is below --threads");
    return err;
}
