/* SPDX-License-Identifier: MIT */
/*
 * URLs. What cannot stand in a request line is refused, not escaped: the user
 * should see what is sent.
 */
#include "config.h"

#include "tools/myra-load/target.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static int refuse(const char **why_out, const char *why)
{
    *why_out = why;
    return -EINVAL;
}

static int read_port(struct target *target, const char *text, size_t len,
                     const char **why_out)
{
    char *end;

    if (len == 0 || len > 5)
        return refuse(why_out, "the port is not a number from 1 to 65535");
    memcpy(target->port, text, len);
    target->port[len] = '\0';
    const long number = strtol(target->port, &end, 10);

    if (*end || target->port[0] < '0' || target->port[0] > '9' ||
        number < 1 || number > 65535)
        return refuse(why_out, "the port is not a number from 1 to 65535");
    return 0;
}

/* host, host:port, [v6], [v6]:port */
static int read_authority(struct target *target, const char *text, size_t len,
                          const char **why_out)
{
    const char *const end = text + len;
    const char *host = text;
    const char *host_end;
    const char *rest;

    if (memchr(text, '@', len))
        return refuse(why_out, "user names in URLs are not supported");
    if (len > 0 && text[0] == '[') {
        host = text + 1;
        host_end = memchr(text, ']', len);
        if (!host_end)
            return refuse(why_out, "the address lacks its ']'");
        rest = host_end + 1;
    } else {
        host_end = memchr(text, ':', len);
        if (!host_end)
            host_end = end;
        rest = host_end;
    }
    const size_t host_len = (size_t)(host_end - host);

    if (host_len == 0 || host_len >= sizeof(target->host))
        return refuse(why_out, "the host is empty or too long");
    memcpy(target->host, host, host_len);
    target->host[host_len] = '\0';
    memcpy(target->authority, text, len);
    target->authority[len] = '\0';
    memcpy(target->port, "80", 3);
    if (rest == end)
        return 0;
    if (*rest != ':')
        return refuse(why_out, "the host is malformed");
    return read_port(target, rest + 1, (size_t)(end - rest) - 1, why_out);
}

int target_parse(const char *url, struct target *target, const char **why_out)
{
    if (strncasecmp(url, "https://", 8) == 0)
        return refuse(why_out, "https is not supported");
    if (strncasecmp(url, "http://", 7) == 0)
        url += 7;
    else if (strstr(url, "://"))
        return refuse(why_out, "only http URLs are supported");
    for (const char *p = url; *p; p++)
        if ((unsigned char)*p <= ' ' || (unsigned char)*p >= 0x7f)
            return refuse(why_out, "blanks and bytes beyond ASCII must be "
                                   "written as %XX");
    const size_t len = strcspn(url, "/?#");
    const char *const path = url + len;
    const size_t path_len = strcspn(path, "#");
    const int needs_slash = *path != '/';

    if (len >= sizeof(target->authority))
        return refuse(why_out, "the host is empty or too long");
    if (path_len + 2 > sizeof(target->path))
        return refuse(why_out, "the path is too long");
    snprintf(target->path, sizeof(target->path), "%s%.*s",
             needs_slash ? "/" : "", (int)path_len, path);
    return read_authority(target, url, len, why_out);
}

int target_resolve(const struct target *target, struct sockaddr_storage *addr,
                   socklen_t *addr_len, const char **why_out)
{
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
    struct addrinfo *list = NULL;
    const int err = getaddrinfo(target->host, target->port, &hints, &list);

    if (err)
        return refuse(why_out, gai_strerror(err));
    memcpy(addr, list->ai_addr, list->ai_addrlen);
    *addr_len = list->ai_addrlen;
    freeaddrinfo(list);
    return 0;
}
