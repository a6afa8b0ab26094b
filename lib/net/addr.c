/* SPDX-License-Identifier: MIT */
/*
 * Addresses as text. Only literals: looking names up can block, so it is the
 * caller's business.
 */
#include "config.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/net/net_priv.h"

/* Digits only, 0 .. 65535, nothing behind them. */
static int parse_port(const char *text, uint16_t *port_out)
{
    unsigned port = 0;

    if (*text == '\0')
        return MYRA_EADDRESS;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9')
            return MYRA_EADDRESS;
        port = port * 10 + (unsigned)(*text - '0');
        if (port > 65535)
            return MYRA_EADDRESS;
    }
    *port_out = (uint16_t)port;
    return 0;
}

/* "path", or "@name" for an abstract one. */
static int parse_unix(const char *path, struct sockaddr_storage *addr,
                      socklen_t *addr_len)
{
    struct sockaddr_un un = { .sun_family = AF_UNIX };
    const size_t len = strlen(path);

    if (len == 0 || len >= sizeof(un.sun_path))
        return MYRA_EADDRESS;
    memcpy(un.sun_path, path, len);
    memset(addr, 0, sizeof(*addr));
    if (path[0] == '@') {
        un.sun_path[0] = '\0';
        *addr_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    } else {
        *addr_len = sizeof(un);
    }
    memcpy(addr, &un, sizeof(un));
    return 0;
}

static int parse_v4(const char *host, uint16_t port,
                    struct sockaddr_storage *addr, socklen_t *addr_len)
{
    struct sockaddr_in in = { .sin_family = AF_INET };

    if (inet_pton(AF_INET, host, &in.sin_addr) != 1)
        return MYRA_EADDRESS;
    in.sin_port = htons(port);
    memset(addr, 0, sizeof(*addr));
    memcpy(addr, &in, sizeof(in));
    *addr_len = sizeof(in);
    return 0;
}

static int parse_v6(const char *host, uint16_t port,
                    struct sockaddr_storage *addr, socklen_t *addr_len)
{
    struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };

    if (inet_pton(AF_INET6, host, &in6.sin6_addr) != 1)
        return MYRA_EADDRESS;
    in6.sin6_port = htons(port);
    memset(addr, 0, sizeof(*addr));
    memcpy(addr, &in6, sizeof(in6));
    *addr_len = sizeof(in6);
    return 0;
}

/* Every address: of both families where the system has IPv6. */
static int parse_any(uint16_t port, struct sockaddr_storage *addr,
                     socklen_t *addr_len)
{
    const int fd = myi_socket_stream(AF_INET6);

    if (fd < 0)
        return parse_v4("0.0.0.0", port, addr, addr_len);
    close(fd);
    return parse_v6("::", port, addr, addr_len);
}

int myra_addr_parse(const char *text, struct sockaddr_storage *addr,
                    socklen_t *addr_len)
{
    char host[64];
    const char *colon;
    uint16_t port;
    size_t host_len;

    if (strncmp(text, "unix:", 5) == 0)
        return parse_unix(text + 5, addr, addr_len);
    colon = strrchr(text, ':');
    if (colon == NULL) {
        MYRA_TRY(parse_port(text, &port));
        return parse_v4("127.0.0.1", port, addr, addr_len);
    }
    MYRA_TRY(parse_port(colon + 1, &port));
    host_len = (size_t)(colon - text);
    if (host_len == 1 && text[0] == '*')
        return parse_any(port, addr, addr_len);
    if (host_len >= sizeof(host))
        return MYRA_EADDRESS;
    if (host_len >= 2 && text[0] == '[' && text[host_len - 1] == ']') {
        memcpy(host, text + 1, host_len - 2);
        host[host_len - 2] = '\0';
        return parse_v6(host, port, addr, addr_len);
    }
    memcpy(host, text, host_len);
    host[host_len] = '\0';
    return parse_v4(host, port, addr, addr_len);
}

static int print_unix(const struct sockaddr_un *un, socklen_t addr_len,
                      char *text, size_t text_cap)
{
    const size_t base = offsetof(struct sockaddr_un, sun_path);
    const size_t len = addr_len > base ? addr_len - base : 0;

    if (len == 0)
        return snprintf(text, text_cap, "unix:");
    if (un->sun_path[0] == '\0')
        return snprintf(text, text_cap, "unix:@%.*s", (int)(len - 1),
                        un->sun_path + 1);
    return snprintf(text, text_cap, "unix:%.*s",
                    (int)strnlen(un->sun_path, len), un->sun_path);
}

int myra_addr_print(const struct sockaddr *addr, socklen_t addr_len,
                    char *text, size_t text_cap)
{
    char host[INET6_ADDRSTRLEN];

    if (addr->sa_family == AF_INET) {
        struct sockaddr_in in;

        memcpy(&in, addr, sizeof(in));
        inet_ntop(AF_INET, &in.sin_addr, host, sizeof(host));
        return snprintf(text, text_cap, "%s:%u", host, ntohs(in.sin_port));
    }
    if (addr->sa_family == AF_INET6) {
        struct sockaddr_in6 in6;

        memcpy(&in6, addr, sizeof(in6));
        inet_ntop(AF_INET6, &in6.sin6_addr, host, sizeof(host));
        return snprintf(text, text_cap, "[%s]:%u", host,
                        ntohs(in6.sin6_port));
    }
    if (addr->sa_family == AF_UNIX)
        return print_unix((const struct sockaddr_un *)(const void *)addr,
                          addr_len, text, text_cap);
    return snprintf(text, text_cap, "?");
}
