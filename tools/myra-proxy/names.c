/* SPDX-License-Identifier: MIT */
/*
 * Name look-ups by threads of their own: getaddrinfo waits seconds for a lost
 * packet, so there are a few of them, and one slow name does not hold up the
 * others.
 */
#include "config.h"

#include "names.h"

#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RESOLVERS 4

struct resolver {
    struct names *names;
    pthread_t thread;
    struct name_query *current; /* inside getaddrinfo; NULL: forgotten */
    int is_busy;
};

struct names {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct name_query *first, **last;
    struct resolver resolvers[RESOLVERS];
    int resolver_count;
    int is_stopping;
};

static void set_port(struct sockaddr_storage *addr, uint16_t port)
{
    if (addr->ss_family == AF_INET)
        ((struct sockaddr_in *)(void *)addr)->sin_port = htons(port);
    else
        ((struct sockaddr_in6 *)(void *)addr)->sin6_port = htons(port);
}

void names_look_up(const char *host, uint16_t port,
                   struct name_result *result)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC,
                                   .ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_ADDRCONFIG};
    struct addrinfo *list = NULL, *info;
    int err = getaddrinfo(host, NULL, &hints, &list);

    result->addr_count = 0;
    result->error_text = err ? gai_strerror(err) : "no address";
    for (info = err ? NULL : list; info; info = info->ai_next) {
        struct sockaddr_storage *addr = &result->addrs[result->addr_count];

        if (info->ai_family != AF_INET && info->ai_family != AF_INET6)
            continue;
        memset(addr, 0, sizeof(*addr));
        memcpy(addr, info->ai_addr, info->ai_addrlen);
        set_port(addr, port);
        result->addr_lens[result->addr_count] = info->ai_addrlen;
        if (++result->addr_count == TARGET_ADDRS_MAX)
            break;
    }
    if (!err)
        freeaddrinfo(list);
}

static struct name_query *take(struct names *names)
{
    struct name_query *query;

    while (!names->first && !names->is_stopping)
        pthread_cond_wait(&names->wake, &names->lock);
    if (names->is_stopping)
        return NULL;
    query = names->first;
    names->first = query->next;
    if (!names->first)
        names->last = &names->first;
    return query;
}

static void *run(void *arg)
{
    struct resolver *resolver = arg;
    struct names *names = resolver->names;
    struct name_query *query;

    pthread_mutex_lock(&names->lock);
    while ((query = take(names))) {
        struct name_result result;
        char host[sizeof(query->host)];
        const uint16_t port = query->port;

        /* The query's memory may go with its loop while this waits. */
        memcpy(host, query->host, sizeof(host));
        resolver->current = query;
        resolver->is_busy = 1;
        pthread_mutex_unlock(&names->lock);
        names_look_up(host, port, &result);
        pthread_mutex_lock(&names->lock);
        resolver->is_busy = 0;
        if (names->is_stopping)
            break;
        if (resolver->current != query)
            continue;
        resolver->current = NULL;
        query->result = result;
        myra_post(query->loop, &query->task);
    }
    pthread_mutex_unlock(&names->lock);
    return NULL;
}

struct names *names_new(void)
{
    struct names *names = calloc(1, sizeof(*names));

    if (!names)
        return NULL;
    pthread_mutex_init(&names->lock, NULL);
    pthread_cond_init(&names->wake, NULL);
    names->last = &names->first;
    while (names->resolver_count < RESOLVERS) {
        struct resolver *resolver =
            &names->resolvers[names->resolver_count];

        resolver->names = names;
        if (pthread_create(&resolver->thread, NULL, run, resolver) != 0)
            break;
        names->resolver_count++;
    }
    if (names->resolver_count > 0)
        return names;
    free(names);
    return NULL;
}

void names_free(struct names *names)
{
    int is_busy[RESOLVERS];
    int i, busy_count = 0;

    if (!names)
        return;
    pthread_mutex_lock(&names->lock);
    names->is_stopping = 1;
    for (i = 0; i < names->resolver_count; i++) {
        is_busy[i] = names->resolvers[i].is_busy;
        busy_count += is_busy[i];
    }
    pthread_cond_broadcast(&names->wake);
    pthread_mutex_unlock(&names->lock);
    for (i = 0; i < names->resolver_count; i++) {
        if (is_busy[i])
            pthread_detach(names->resolvers[i].thread);
        else
            pthread_join(names->resolvers[i].thread, NULL);
    }
    /* The memory is left to threads that still look something up. */
    if (busy_count)
        return;
    pthread_cond_destroy(&names->wake);
    pthread_mutex_destroy(&names->lock);
    free(names);
}

void names_forget(struct names *names, struct myra_loop *loop)
{
    struct name_query **link = &names->first;
    int i;

    pthread_mutex_lock(&names->lock);
    for (i = 0; i < names->resolver_count; i++) {
        struct resolver *resolver = &names->resolvers[i];

        if (resolver->current && resolver->current->loop == loop)
            resolver->current = NULL;
    }
    while (*link) {
        if ((*link)->loop == loop)
            *link = (*link)->next;
        else
            link = &(*link)->next;
    }
    names->last = link;
    pthread_mutex_unlock(&names->lock);
}

void names_ask(struct names *names, struct name_query *query)
{
    query->next = NULL;
    pthread_mutex_lock(&names->lock);
    *names->last = query;
    names->last = &query->next;
    pthread_cond_signal(&names->wake);
    pthread_mutex_unlock(&names->lock);
}
