/* SPDX-License-Identifier: MIT */
/*
 * The backends of this build, in the order of preference, and the choice
 * among them. This file alone names them.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/checked.h"
#include "lib/base/env.h"
#include "lib/base/log.h"
#include "lib/net/net_priv.h"

extern const struct myi_sink myi_net_sink;

static const struct myi_backend_ops *const built_in[] = {
#if MYRA_HAVE_URING
    &myi_backend_uring_token,
#endif
    &myi_backend_epoll,
};

#if MYRA_HAVE_URING
#define AUTO_LIST "uring-token,epoll"
#define EXIST_LIST "auto, uring-token, epoll"
#else
#define AUTO_LIST "epoll"
#define EXIST_LIST "auto, epoll"
#endif

static const struct myi_backend_ops *find(const char *name, size_t len)
{
    for (size_t i = 0; i < MYI_ARRAY_LEN(built_in); i++) {
        if (strlen(built_in[i]->name) == len &&
            memcmp(built_in[i]->name, name, len) == 0)
            return built_in[i];
    }
    return NULL;
}

/* Appends to the reason line; a line that does not fit is cut. */
static void say(char *line, size_t cap, const char *name, const char *text)
{
    const size_t len = strlen(line);

    if (len < cap)
        snprintf(line + len, cap - len, "%s%s: %s", len > 0 ? "; " : "",
                 name, text);
}

static size_t object_size(void)
{
    size_t size = sizeof(struct myra_conn);

    if (sizeof(struct myra_listener) > size)
        size = sizeof(struct myra_listener);
    if (sizeof(struct myra_watch) > size)
        size = sizeof(struct myra_watch);
    return myi_align_up(size, 8);
}

static int open_one(const struct myi_backend_ops *ops,
                    const struct myra_loop_options *options,
                    struct myra_loop *loop, struct myi_probe *why)
{
    const struct myi_backend_config config = {
        .recv_buf_count = loop->pool_count,
        .is_spin = loop->is_spin,
    };
    struct myi_be *be;
    int err = ops->probe(why);

    if (err < 0)
        return err;
    be = myi_alloc(loop->alloc, ops->loop_size);
    if (be == NULL)
        return MYRA_ENOMEM;
    be->ops = ops;
    be->sink = &myi_net_sink;
    be->alloc = loop->alloc;
    be->owner = loop;
    be->pool = loop->pool;
    be->io_priv_offset = (uint32_t)object_size();
    myi_slots_init(&loop->slots, be,
                   (uint32_t)(object_size() + myi_align_up(ops->io_size, 8)),
                   options->conns_max);
    err = ops->open(be, &config, why);
    if (err < 0) {
        myi_free(loop->alloc, be, ops->loop_size);
        return err;
    }
    loop->be = be;
    loop->ops = ops;
    return 0;
}

/* Tries the backends of a comma list in turn. */
static int open_list(const char *list, const struct myra_loop_options *options,
                     struct myra_loop *loop, char *error, size_t error_cap)
{
    int last = MYRA_EBACKEND;

    while (*list != '\0') {
        const size_t len = strcspn(list, ",");
        const struct myi_backend_ops *ops = find(list, len);
        struct myi_probe why = { 0, "" };

        if (ops == NULL) {
            snprintf(error, error_cap,
                     "backend \"%.*s\" is not in this build; there are: %s",
                     (int)(len < 64 ? len : 64), list, EXIST_LIST);
            return MYRA_EINVAL;
        }
        last = open_one(ops, options, loop, &why);
        if (last == 0) {
            say(loop->reason, sizeof(loop->reason), ops->name, "in use");
            return 0;
        }
        say(loop->reason, sizeof(loop->reason), ops->name,
            why.text[0] != '\0' ? why.text : myra_strerror(last));
        list += len;
        list += *list == ',';
    }
    snprintf(error, error_cap, "%s", loop->reason);
    return last == -EMFILE ? last : MYRA_EBACKEND;
}

static int choose_wait(const char *wait, struct myra_loop *loop, char *error,
                       size_t error_cap)
{
    if (wait == NULL)
        wait = myi_env("MYRA_WAIT");
    if (wait == NULL || strcmp(wait, "park") == 0)
        return 0;
    if (strcmp(wait, "spin") != 0) {
        snprintf(error, error_cap,
                 "wait strategy \"%.64s\" does not exist; there are: park, "
                 "spin",
                 wait);
        return MYRA_EINVAL;
    }
    loop->is_spin = 1;
    return 0;
}

int myi_backend_open(const struct myra_loop_options *options,
                     struct myra_loop *loop, char *error, size_t error_cap)
{
    static const char *const names[] = { "MYRA_BACKEND", "MYRA_WAIT",
                                         "MYRA_POLLER" };
    const char *list = options->backend;
    int is_auto;

    for (size_t i = 0; i < MYI_ARRAY_LEN(names); i++) {
        const char *value = myi_env(names[i]);

        if (value != NULL &&
            myi_env_check_value(names[i], value, error, error_cap) < 0)
            return MYRA_EENV;
    }
    MYRA_TRY(choose_wait(options->wait, loop, error, error_cap));
    if (list == NULL)
        list = myi_env("MYRA_BACKEND");
    is_auto = list == NULL || strcmp(list, "auto") == 0;
    MYRA_TRY(open_list(is_auto ? AUTO_LIST : list, options, loop, error,
                       error_cap));
    if (strchr(loop->reason, ';') != NULL)
        myi_log(MYRA_LOG_WARN, "backend %s", loop->reason);
    return 0;
}
