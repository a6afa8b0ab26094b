/* SPDX-License-Identifier: MIT */
/*
 * Connection options, interned: a loop sees few distinct sets, and each
 * connection points to the one it was made with.
 */
#include "config.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "lib/net/net_priv.h"

#define KIB 1024u

void myra_conn_options_init(struct myra_conn_options *options)
{
    memset(options, 0, sizeof(*options));
    options->struct_size = sizeof(*options);
    options->high_mark = 256 * KIB;
    options->low_mark = 64 * KIB;
    options->hard_mark = 8192 * KIB;
    options->hold_max = 96 * KIB;
    options->linger_ns = 5000 * MYI_MS_NS;
    options->connect_timeout_ns = 10000 * MYI_MS_NS;
    options->no_delay = 1;
}

void myra_listen_options_init(struct myra_listen_options *options)
{
    memset(options, 0, sizeof(*options));
    options->struct_size = sizeof(*options);
    options->backlog = 4096;
    options->unix_mode = 0600;
    myra_conn_options_init(&options->conn);
}

static int is_valid(const struct myra_conn_options *o)
{
    return o->struct_size == sizeof(*o) && o->low_mark <= o->high_mark &&
           o->high_mark <= o->hard_mark && o->hard_mark <= INT32_MAX &&
           o->hold_max >= 1 &&
           o->hold_max <= MYI_BLOCK_MAX &&
           o->send_buf >= 0 && o->recv_buf >= 0;
}

/* Field by field, since padding is not comparable. */
static int is_same(const struct myra_conn_options *a,
                   const struct myra_conn_options *b)
{
    return a->high_mark == b->high_mark && a->low_mark == b->low_mark &&
           a->hard_mark == b->hard_mark && a->hold_max == b->hold_max &&
           a->linger_ns == b->linger_ns &&
           a->connect_timeout_ns == b->connect_timeout_ns &&
           a->no_delay == b->no_delay && a->keep_alive == b->keep_alive &&
           a->send_buf == b->send_buf && a->recv_buf == b->recv_buf;
}

int myi_conf_intern(struct myra_loop *loop,
                    const struct myra_conn_options *options,
                    const struct myi_conf **conf_out)
{
    struct myra_conn_options defaults;
    struct myi_conf *conf;

    if (options == NULL) {
        myra_conn_options_init(&defaults);
        options = &defaults;
    }
    if (!is_valid(options))
        return MYRA_EINVAL;
    for (conf = loop->confs; conf != NULL; conf = conf->next) {
        if (is_same(&conf->options, options)) {
            *conf_out = conf;
            return 0;
        }
    }
    conf = myi_alloc(loop->alloc, sizeof(*conf));
    if (conf == NULL)
        return MYRA_ENOMEM;
    conf->options = *options;
    conf->next = loop->confs;
    loop->confs = conf;
    *conf_out = conf;
    return 0;
}

void myi_confs_fini(struct myra_loop *loop)
{
    while (loop->confs != NULL) {
        struct myi_conf *conf = loop->confs;

        loop->confs = conf->next;
        myi_free(loop->alloc, conf, sizeof(*conf));
    }
}
