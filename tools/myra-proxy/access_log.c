/* SPDX-License-Identifier: MIT */
/* The access log's blocks and its writer thread. What a line looks like is in
 * log_line.c. */
#include "config.h"

#include "access_log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log_line.h"

/* A line is at most a sixth of a block: see log_line.c. */
#define BLOCK_CAP (64 * 1024)
#define QUEUE_BLOCKS 16

struct block {
    struct block *next;
    struct access_log_queue *owner;
    size_t len;
    char text[BLOCK_CAP];
};

struct access_log_queue {
    struct access_log *log;
    struct access_log_queue *next;
    struct block *current; /* the worker's alone */
    struct block *free;    /* under the log's lock */
    uint32_t made_count;
    struct log_clock clock;
};

struct access_log {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_t thread;
    struct block *first, **last; /* full ones */
    struct access_log_queue *queues;
    const char *path;
    enum log_format format;
    int fd;
    int is_reopening;
    int is_stopping;
};

static int open_file(const char *path)
{
    if (strcmp(path, "-") == 0)
        return dup(STDOUT_FILENO);
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
}

static void write_all(int fd, const char *text, size_t len)
{
    while (len) {
        const ssize_t n = write(fd, text, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return; /* a full disk loses lines, never requests */
        text += n;
        len -= (size_t)n;
    }
}

static void reopen_file(struct access_log *log)
{
    const int fd = open_file(log->path);

    if (fd < 0) {
        fprintf(stderr, "myra-proxy: --access-log %s: %s; the old file "
                        "stays open\n",
                log->path, strerror(errno));
        return;
    }
    close(log->fd);
    log->fd = fd;
}

static void *run(void *arg)
{
    struct access_log *log = arg;

    pthread_mutex_lock(&log->lock);
    for (;;) {
        struct block *block;

        while (!log->first && !log->is_stopping && !log->is_reopening)
            pthread_cond_wait(&log->wake, &log->lock);
        if (log->is_reopening) {
            log->is_reopening = 0;
            reopen_file(log);
        }
        block = log->first;
        if (!block && log->is_stopping)
            break;
        if (!block)
            continue;
        log->first = block->next;
        if (!log->first)
            log->last = &log->first;
        pthread_mutex_unlock(&log->lock);
        write_all(log->fd, block->text, block->len);
        block->len = 0;
        pthread_mutex_lock(&log->lock);
        block->next = block->owner->free;
        block->owner->free = block;
    }
    pthread_mutex_unlock(&log->lock);
    return NULL;
}

int access_log_open(const struct proxy_options *options,
                    struct access_log **log_out)
{
    struct access_log *log;
    const int fd = open_file(options->access_log);

    if (fd < 0) {
        fprintf(stderr, "myra-proxy: --access-log %s: %s\n",
                options->access_log, strerror(errno));
        return -EXIT_CONFIG;
    }
    log = calloc(1, sizeof(*log));
    if (log) {
        log->fd = fd;
        log->path = options->access_log;
        log->format = options->log_format;
        log->last = &log->first;
        pthread_mutex_init(&log->lock, NULL);
        pthread_cond_init(&log->wake, NULL);
    }
    if (!log || pthread_create(&log->thread, NULL, run, log) != 0) {
        fprintf(stderr, "myra-proxy: --access-log: no thread or memory\n");
        free(log);
        close(fd);
        return -EXIT_FAILED;
    }
    *log_out = log;
    return 0;
}

static void free_queue(struct access_log_queue *queue)
{
    struct block *block = queue->free, *next;

    for (; block; block = next) {
        next = block->next;
        free(block);
    }
    free(queue->current);
    free(queue);
}

void access_log_close(struct access_log *log)
{
    struct access_log_queue *queue, *next;

    if (!log)
        return;
    for (queue = log->queues; queue; queue = queue->next)
        access_log_flush(queue);
    pthread_mutex_lock(&log->lock);
    log->is_stopping = 1;
    pthread_cond_signal(&log->wake);
    pthread_mutex_unlock(&log->lock);
    pthread_join(log->thread, NULL);
    for (queue = log->queues; queue; queue = next) {
        next = queue->next;
        /* What the ring of blocks had no place for. */
        if (queue->current)
            write_all(log->fd, queue->current->text, queue->current->len);
        free_queue(queue);
    }
    close(log->fd);
    pthread_cond_destroy(&log->wake);
    pthread_mutex_destroy(&log->lock);
    free(log);
}

void access_log_reopen(struct access_log *log)
{
    pthread_mutex_lock(&log->lock);
    log->is_reopening = 1;
    pthread_cond_signal(&log->wake);
    pthread_mutex_unlock(&log->lock);
}

/* A block to fill: a new one while there may be more, else one that the
 * writer gave back; NULL: none. */
static struct block *take_block(struct access_log_queue *queue)
{
    struct block *block;

    pthread_mutex_lock(&queue->log->lock);
    block = queue->free;
    if (block)
        queue->free = block->next;
    pthread_mutex_unlock(&queue->log->lock);
    if (block || queue->made_count == QUEUE_BLOCKS)
        return block;
    block = malloc(sizeof(*block));
    if (!block)
        return NULL;
    queue->made_count++;
    block->owner = queue;
    block->len = 0;
    return block;
}

struct access_log_queue *access_log_join(struct access_log *log)
{
    struct access_log_queue *queue = calloc(1, sizeof(*queue));

    if (!queue)
        return NULL;
    queue->log = log;
    queue->next = log->queues;
    log->queues = queue;
    queue->current = take_block(queue);
    return queue;
}

int access_log_flush(struct access_log_queue *queue)
{
    struct block *block = queue->current, *fresh;
    struct access_log *log = queue->log;

    if (!block || !block->len)
        return 0;
    /* A disk that does not keep up: the worker goes on with what it has. */
    fresh = take_block(queue);
    if (!fresh)
        return 1;
    queue->current = fresh;
    block->next = NULL;
    pthread_mutex_lock(&log->lock);
    *log->last = block;
    log->last = &block->next;
    pthread_cond_signal(&log->wake);
    pthread_mutex_unlock(&log->lock);
    return 0;
}

int access_log_write(struct access_log_queue *queue, uint64_t now_ns,
                     const struct access_log_entry *entry)
{
    struct block *block = queue->current;

    if (block && BLOCK_CAP - block->len < LOG_LINE_MAX) {
        access_log_flush(queue);
        block = queue->current;
    }
    if (!block || BLOCK_CAP - block->len < LOG_LINE_MAX)
        return -1;
    block->len += log_line_print(block->text + block->len, &queue->clock,
                                 queue->log->format, now_ns, entry);
    return 0;
}
