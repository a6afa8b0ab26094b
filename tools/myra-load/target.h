/* SPDX-License-Identifier: MIT */
/*
 * Where the load goes: an http URL taken apart, and its address.
 */
#ifndef MYRA_LOAD_TARGET_H
#define MYRA_LOAD_TARGET_H

#include <stdint.h>
#include <sys/socket.h>

struct target {
    char host[256];      /* as in the URL, without brackets */
    char authority[272]; /* the Host field: host, and port where not 80 */
    char port[6];
    char path[4096];     /* path and query; "/" where the URL has none */
};

/* "http://host[:port][/path][?query]"; the scheme may be left out. 0, or
 * -EINVAL with the reason in *why_out. */
int target_parse(const char *url, struct target *target,
                 const char **why_out);

/* The first address of the host. 0, or -EINVAL with the reason. */
int target_resolve(const struct target *target, struct sockaddr_storage *addr,
                   socklen_t *addr_len, const char **why_out);

#endif
