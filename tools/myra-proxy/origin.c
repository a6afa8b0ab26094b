/* SPDX-License-Identifier: MIT */
/*
 * Places that requests go to: the targets of the command line, and in forward
 * mode whatever clients name.
 *
 * A target that fails is left out for a while that doubles with each failure
 * (full jitter), then gets one request to prove itself. When all are out, the
 * one whose time ends first is tried: an error is only told when nothing is
 * left to try.
 */
#include "config.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "proxy.h"

#define BACKOFF_FIRST_NS UINT64_C(250000000)
#define BACKOFF_MAX_NS UINT64_C(15000000000)
#define NAME_GOOD_NS UINT64_C(30000000000)
#define NAME_BAD_NS UINT64_C(1000000000)
#define FORWARD_MAX 4096
#define HASH_SIZE (sizeof(((struct worker *)0)->forward) / sizeof(void *))

static void *take_memory(struct worker *worker, size_t size)
{
    const struct myra_allocator *alloc = &worker->counting.base;
    void *memory = alloc->alloc(alloc->ctx, size, 16);

    if (memory)
        memset(memory, 0, size);
    return memory;
}

static void give_memory(struct worker *worker, void *memory, size_t size)
{
    const struct myra_allocator *alloc = &worker->counting.base;

    if (memory)
        alloc->free(alloc->ctx, memory, size);
}

/* ---- Targets ------------------------------------------------------------ */

static uint32_t count_targets(const struct proxy_options *options)
{
    uint32_t i, count = 0;

    for (i = 0; i < options->site_count; i++)
        count += options->sites[i].target_count;
    return count;
}

static struct origin *open_target(struct worker *worker,
                                  const struct target *target)
{
    struct origin *origin = take_memory(worker, sizeof(*origin));

    if (!origin)
        return NULL;
    origin->worker = worker;
    origin->authority = target->authority;
    origin->addr_count = target->addr_count;
    memcpy(origin->addrs, target->addrs, sizeof(origin->addrs));
    memcpy(origin->addr_lens, target->addr_lens, sizeof(origin->addr_lens));
    return origin;
}

int origin_open_targets(struct worker *worker)
{
    const struct proxy_options *options = worker->options;
    const uint32_t count = count_targets(options);
    const size_t site_size = options->site_count * sizeof(uint32_t);
    uint32_t i, j, next = 0;

    worker->targets =
        take_memory(worker, (count + 1) * sizeof(*worker->targets));
    worker->target_next = take_memory(worker, site_size);
    worker->target_first = take_memory(worker, site_size);
    if (!worker->targets || !worker->target_next || !worker->target_first)
        return -1;
    for (i = 0; i < options->site_count; i++) {
        worker->target_first[i] = next;
        for (j = 0; j < options->sites[i].target_count; j++) {
            worker->targets[next] =
                open_target(worker, &options->sites[i].targets[j]);
            if (!worker->targets[next++])
                return -1;
        }
    }
    return 0;
}

static uint64_t random_below(struct worker *worker, uint64_t limit)
{
    /* xorshift64*: spreads retries, needs no more. */
    worker->random ^= worker->random >> 12;
    worker->random ^= worker->random << 25;
    worker->random ^= worker->random >> 27;
    return limit ? (worker->random * UINT64_C(2685821657736338717) >> 16) %
                       limit
                 : 0;
}

static uint64_t backoff_ns(const struct origin *origin)
{
    const uint32_t shift = origin->fail_count > 8 ? 8 : origin->fail_count;
    const uint64_t limit = BACKOFF_FIRST_NS << shift;
    const uint64_t capped = limit > BACKOFF_MAX_NS ? BACKOFF_MAX_NS : limit;

    return capped / 4 + random_below(origin->worker, capped);
}

void origin_succeeded(struct origin *origin)
{
    if (origin->fail_count) {
        origin->fail_count = 0;
        origin->down_until_ns = 0;
    }
}

void origin_failed(struct origin *origin)
{
    const uint64_t now = myra_loop_now_ns(origin->worker->loop);

    /* Connects that were under way together fail together: one outage. */
    if (origin->fail_count && origin->down_until_ns > now)
        return;
    origin->down_until_ns = now + backoff_ns(origin);
    origin->fail_count++;
}

struct origin *origin_choose(struct worker *worker, const struct site *site,
                             uint64_t *tried)
{
    const uint32_t index = (uint32_t)(site - worker->options->sites);
    struct origin **targets = worker->targets + worker->target_first[index];
    const uint64_t now = myra_loop_now_ns(worker->loop);
    uint32_t i, best = UINT32_MAX;

    for (i = 0; i < site->target_count; i++) {
        const uint32_t at =
            (worker->target_next[index] + i) % site->target_count;

        if (*tried >> (at & 63) & 1)
            continue;
        if (best == UINT32_MAX ||
            targets[at]->down_until_ns < targets[best]->down_until_ns)
            best = at;
        if (targets[at]->down_until_ns <= now) {
            best = at;
            break;
        }
    }
    if (best == UINT32_MAX)
        return NULL;
    worker->target_next[index] = (best + 1) % site->target_count;
    *tried |= UINT64_C(1) << (best & 63);
    /* Until it has proved itself, the others wait for this request. */
    if (targets[best]->fail_count && targets[best]->down_until_ns <= now)
        origin_failed(targets[best]);
    return targets[best];
}

/* ---- Forward mode ------------------------------------------------------- */

static uint32_t hash_of(const uint8_t *host, size_t host_len, uint16_t port)
{
    uint32_t hash = 2166136261u ^ port;
    size_t i;

    for (i = 0; i < host_len; i++)
        hash = (hash ^ (host[i] | 0x20)) * 16777619u;
    return (hash ^ hash >> 15) % HASH_SIZE;
}

static int is_same(const struct origin *origin, const uint8_t *host,
                   size_t host_len, uint16_t port)
{
    size_t i;

    if (origin->port != port || strlen(origin->name) != host_len)
        return 0;
    for (i = 0; i < host_len; i++) {
        const uint8_t c = host[i] >= 'A' && host[i] <= 'Z'
                              ? (uint8_t)(host[i] | 0x20)
                              : host[i];

        if ((uint8_t)origin->name[i] != c)
            return 0;
    }
    return 1;
}

/* An address literal needs no look-up. */
static void try_literal(struct origin *origin, int is_ipv6)
{
    char text[300];

    snprintf(text, sizeof(text), is_ipv6 ? "[%s]:%u" : "%s:%u",
             origin->name, (unsigned)origin->port);
    if (strncmp(text, "unix:", 5) == 0 ||
        myra_addr_parse(text, &origin->addrs[0], &origin->addr_lens[0]) < 0)
        return;
    origin->addr_count = 1;
    origin->name_until_ns = UINT64_MAX;
}

static size_t forward_size(size_t host_len)
{
    return sizeof(struct origin) + 2 * (host_len + 16);
}

static struct origin *add_forward(struct worker *worker, const uint8_t *host,
                                  size_t host_len, uint16_t port,
                                  int is_ipv6)
{
    const uint32_t slot = hash_of(host, host_len, port);
    struct origin *origin = take_memory(worker, forward_size(host_len));
    char *authority;
    size_t i;

    if (!origin)
        return NULL;
    origin->worker = worker;
    origin->port = port;
    origin->name = (char *)(origin + 1);
    for (i = 0; i < host_len; i++)
        origin->name[i] = host[i] >= 'A' && host[i] <= 'Z'
                              ? (char)(host[i] | 0x20)
                              : (char)host[i];
    authority = origin->name + host_len + 1;
    snprintf(authority, host_len + 16, is_ipv6 ? "[%s]:%u" : "%s:%u",
             origin->name, (unsigned)port);
    origin->authority = authority;
    try_literal(origin, is_ipv6);
    origin->hash_next = worker->forward[slot];
    worker->forward[slot] = origin;
    worker->forward_count++;
    return origin;
}

struct origin *origin_find(struct worker *worker, const uint8_t *host,
                           size_t host_len, uint16_t port, int is_ipv6)
{
    struct origin *origin =
        worker->forward[hash_of(host, host_len, port)];

    while (origin && !is_same(origin, host, host_len, port))
        origin = origin->hash_next;
    if (!origin && host_len < 256) {
        if (worker->forward_count >= FORWARD_MAX)
            origin_sweep(worker);
        if (worker->forward_count < FORWARD_MAX)
            origin = add_forward(worker, host, host_len, port, is_ipv6);
        worker_tick(worker);
    }
    if (origin)
        origin->used_ns = myra_loop_now_ns(worker->loop);
    return origin;
}

static void name_done(struct myra_loop *loop, struct myra_task *task)
{
    struct name_query *query = (struct name_query *)(void *)task;
    struct origin *origin = query->origin;
    struct exchange *exchange = origin->waiting, *next;

    origin->query = NULL;
    origin->waiting = NULL;
    origin->addr_count = query->result.addr_count;
    origin->addr_next = 0;
    memcpy(origin->addrs, query->result.addrs, sizeof(origin->addrs));
    memcpy(origin->addr_lens, query->result.addr_lens,
           sizeof(origin->addr_lens));
    origin->name_until_ns = myra_loop_now_ns(loop) +
                            (origin->addr_count ? NAME_GOOD_NS : NAME_BAD_NS);
    give_memory(origin->worker, query, sizeof(*query));
    for (; exchange; exchange = next) {
        next = exchange->next;
        exchange_name_done(exchange);
    }
}

int origin_want_name(struct origin *origin, struct exchange *exchange)
{
    struct worker *worker = origin->worker;
    struct name_query *query = origin->query;
    struct exchange **last = &origin->waiting;

    if (!origin->name ||
        origin->name_until_ns > myra_loop_now_ns(worker->loop))
        return 1;
    if (!query) {
        query = take_memory(worker, sizeof(*query));
        if (!query)
            return -1;
        query->task.fn = name_done;
        query->loop = worker->loop;
        query->origin = origin;
        query->port = origin->port;
        snprintf(query->host, sizeof(query->host), "%s", origin->name);
        origin->query = query;
        names_ask(worker->names, query);
    }
    while (*last)
        last = &(*last)->next;
    *last = exchange;
    exchange->next = NULL;
    return 0;
}

void origin_stop_waiting(struct origin *origin, struct exchange *exchange)
{
    struct exchange **link = &origin->waiting;

    while (*link && *link != exchange)
        link = &(*link)->next;
    if (*link)
        *link = exchange->next;
}

static int is_forgotten(const struct origin *origin, uint64_t now_ns)
{
    return !origin->conn_count && !origin->query && !origin->waiting &&
           now_ns - origin->used_ns > NAME_GOOD_NS;
}

void origin_sweep(struct worker *worker)
{
    const uint64_t now = myra_loop_now_ns(worker->loop);
    size_t i;

    for (i = 0; i < HASH_SIZE; i++) {
        struct origin **link = &worker->forward[i];

        while (*link) {
            struct origin *origin = *link;

            if (!is_forgotten(origin, now)) {
                link = &origin->hash_next;
                continue;
            }
            *link = origin->hash_next;
            worker->forward_count--;
            give_memory(worker, origin, forward_size(strlen(origin->name)));
        }
    }
}

void origin_close_all(struct worker *worker)
{
    const uint32_t count = count_targets(worker->options);
    const size_t site_size = worker->options->site_count * sizeof(uint32_t);
    uint32_t i;

    for (i = 0; i < HASH_SIZE; i++) {
        while (worker->forward[i]) {
            struct origin *origin = worker->forward[i];

            worker->forward[i] = origin->hash_next;
            if (origin->query)
                give_memory(worker, origin->query, sizeof(*origin->query));
            give_memory(worker, origin, forward_size(strlen(origin->name)));
        }
    }
    for (i = 0; worker->targets && i < count; i++)
        give_memory(worker, worker->targets[i], sizeof(struct origin));
    give_memory(worker, worker->targets,
                (count + 1) * sizeof(*worker->targets));
    give_memory(worker, worker->target_next, site_size);
    give_memory(worker, worker->target_first, site_size);
    worker->targets = NULL;
}
