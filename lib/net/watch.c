/* SPDX-License-Identifier: MIT */
/* Descriptors that are not the loop's own. */
#include "config.h"

#include <poll.h>

#include "lib/net/net_priv.h"

int myra_watch_open(struct myra_loop *loop, int fd, int events,
                    myra_watch_fn fn, void *user,
                    struct myra_watch **watch_out)
{
    struct myra_watch *watch;
    struct myi_io *io;
    int err;

    MYRA_TRY(myi_loop_check(loop));
    if (fd < 0 || fn == NULL || events == 0 ||
        (events & ~(POLLIN | POLLOUT)) != 0)
        return MYRA_EINVAL;
    MYRA_TRY(myi_slot_take(&loop->slots, MYI_IO_WATCH, &io));
    watch = (struct myra_watch *)io;
    io->fd = fd;
    watch->loop = loop;
    watch->fn = fn;
    watch->user = user;
    err = loop->ops->poll(loop->be, io, events);
    if (err < 0) {
        io->fd = -1;
        myi_loop_bury(loop, io);
        return err;
    }
    *watch_out = watch;
    return 0;
}

void myra_watch_close(struct myra_watch *watch)
{
    if (watch == NULL || watch->fn == NULL)
        return;
    watch->fn = NULL;
    watch->loop->ops->close(watch->loop->be, &watch->io);
}
