/* SPDX-License-Identifier: MIT */
/*
 * The contract between lib/net and a backend.
 *
 * A backend moves bytes and reports; it knows descriptors, not connections.
 * State machines, send queues, water marks, timers and error mapping stand
 * once, in lib/net. The model is completion-shaped: an operation is started,
 * and its end is reported through struct myi_sink.
 *
 * Rules for all of it:
 *   - Every op and every sink call is on the loop's thread, except wake.
 *   - No op calls the sink before it returns; only wait does.
 *   - The sink may call any op for any io from inside a report.
 *   - A report names an io by pointer, after the backend has made sure that
 *     its generation is still the one the operation was started for.
 *   - io->inflight counts operations whose last completion is outstanding; a
 *     descriptor is closed, and on_closed reported, only when it is 0.
 */
#ifndef MYI_BACKEND_H
#define MYI_BACKEND_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <myra/alloc.h>
#include <myra/err.h>
#include <myra/pool.h>

enum myi_io_kind {
    MYI_IO_FREE = 0,
    MYI_IO_LISTENER,
    MYI_IO_CONN,
    MYI_IO_WATCH
};

/* One descriptor as the backend sees it. lib/net embeds it at the start of
 * its own objects; the backend's own state (ops->io_size bytes, zeroed when
 * the slot is taken) lies be->io_priv_offset behind it. */
struct myi_io {
    int fd;
    uint32_t slot;
    uint32_t generation; /* raised when the slot is given back */
    uint8_t kind;        /* enum myi_io_kind */
    uint8_t is_closing;  /* set by ops->close */
    uint16_t inflight;
};

/* Feature bits of a backend, told by probe; each has an off switch in
 * struct myi_backend_config. */
enum {
    MYI_FEAT_KERNEL_BUFS = 1 << 0, /* the kernel picks receive buffers */
    MYI_FEAT_BATCH = 1 << 1,       /* one system call for a whole turn */
    MYI_FEAT_MULTISHOT = 1 << 2    /* accept and receive re-arm themselves */
};

struct myi_be;

/* What the backend reports, called from inside wait. */
struct myi_sink {
    /* The kernel's wait has returned: called once in every wait, before its
     * first report (the loop reads its clock there). */
    void (*on_awake)(struct myi_be *be);

    /* A new connection (fd >= 0, now the sink's; non-blocking, CLOEXEC), or
     * a negative errno. After -EMFILE, -ENFILE, -ENOBUFS, -ENOMEM the backend
     * has stopped accepting on io until the next accept_start. */
    void (*on_accept)(struct myi_be *be, struct myi_io *io, int fd);

    /* The end of connect: 0 or a negative errno. */
    void (*on_connect)(struct myi_be *be, struct myi_io *io, int err);

    /* res > 0: res bytes in buf, one lease of which is now the sink's.
     * res = 0: the peer's FIN. res < 0: an errno; in both cases buf is NULL
     * and receiving has stopped. More reports may follow a recv_stop: what
     * the kernel had received already is never dropped. */
    void (*on_recv)(struct myi_be *be, struct myi_io *io,
                    struct myra_buf *buf, int res);

    /* A receive found no buffer; io waits in the backend's list, in order,
     * and goes on when buffers come home. For statistics only. */
    void (*on_starved)(struct myi_be *be, struct myi_io *io);

    /* The end of a send that had returned 0: res >= 0 bytes were taken (0:
     * none, try again), res < 0 an errno. */
    void (*on_send)(struct myi_be *be, struct myi_io *io, int res);

    /* A watch is ready: POLLIN | POLLOUT | POLLERR | POLLHUP. */
    void (*on_poll)(struct myi_be *be, struct myi_io *io, int revents);

    /* close has ended: no operation is left, the descriptor is closed (a
     * watch's is not), and the slot may be given back. Once per close. */
    void (*on_closed)(struct myi_be *be, struct myi_io *io);

    /* Somebody called wake. Coalesced. */
    void (*on_wake)(struct myi_be *be);

    /* A natural point to start queued sends: after the reports of one
     * descriptor (readiness) or of one batch (completion). */
    void (*flush)(struct myi_be *be);
};

/* Why a backend cannot serve here. */
struct myi_probe {
    int err;        /* 0 or a negative errno or MYRA_ code */
    char text[160]; /* one line: stage and reason */
};

struct myi_backend_config {
    uint32_t recv_buf_count; /* a power of two */
    uint32_t off_features;   /* MYI_FEAT_ bits not to use */
    int is_spin;             /* wait strategy spin */
};

/* The table of slots, owned by lib/net: chunks of MYI_SLOT_CHUNK objects of
 * be->slot_stride bytes, which never move. */
#define MYI_SLOT_SHIFT 6
#define MYI_SLOT_CHUNK (1u << MYI_SLOT_SHIFT)

/* A backend's loop. lib/net allocates loop_size bytes, zeroed, and fills in
 * this head before open; the backend's own struct begins with it. */
struct myi_be {
    const struct myi_backend_ops *ops;
    const struct myi_sink *sink;
    const struct myra_allocator *alloc;
    void *owner;            /* lib/net's loop */
    struct myra_pool *pool; /* receive buffers */
    uint8_t **slot_chunks;  /* slot_chunk_count of them */
    uint32_t slot_chunk_count;
    uint32_t slot_stride;
    uint32_t io_priv_offset;
    uint32_t features; /* those in use; set by open */
    /* Set by lib/net while its memory is short: what is received may have to
     * be kept, so a receive takes one buffer only. */
    uint8_t is_tight;
    uint64_t syscalls; /* counted by the backend */
    uint64_t stale;    /* reports of earlier owners, dropped */
};

/* The io in a slot, or NULL when the slot does not exist or its generation
 * is another. */
static inline struct myi_io *myi_io_at(const struct myi_be *be, uint32_t slot,
                                       uint32_t generation)
{
    struct myi_io *io;

    if (slot >> MYI_SLOT_SHIFT >= be->slot_chunk_count)
        return NULL;
    io = (struct myi_io *)(void *)(be->slot_chunks[slot >> MYI_SLOT_SHIFT] +
                                   (size_t)(slot & (MYI_SLOT_CHUNK - 1)) *
                                       be->slot_stride);
    return io->generation == generation ? io : NULL;
}

static inline void *myi_io_priv(const struct myi_be *be, struct myi_io *io)
{
    return (uint8_t *)io + be->io_priv_offset;
}

/* Complete: no op is NULL. */
struct myi_backend_ops {
    const char *name;
    size_t loop_size; /* >= sizeof(struct myi_be) */
    size_t io_size;   /* backend's state per descriptor */
    unsigned max_gather;

    /* Can this machine serve? Makes no lasting object. 0, or out->err with
     * the reason. Any thread. */
    int (*probe)(struct myi_probe *out);

    /* Sets the loop up; on failure nothing is left behind and why says the
     * reason. May be called on another thread than the rest. */
    int (*open)(struct myi_be *be, const struct myi_backend_config *config,
                struct myi_probe *why);

    /* Every io was closed before. Gives all receive buffers back. */
    void (*close_loop)(struct myi_be *be);

    /* Accepts until stopped. 0 or a negative errno. Idempotent. */
    int (*accept_start)(struct myi_be *be, struct myi_io *io);
    void (*accept_stop)(struct myi_be *be, struct myi_io *io);

    /* Starts to connect; the address may go when the call returns. Ends in
     * one on_connect, or returns a negative errno and reports nothing. */
    int (*connect)(struct myi_be *be, struct myi_io *io,
                   const struct sockaddr *addr, socklen_t addr_len);

    /* Receives until FIN, error or recv_stop. Both idempotent; start after
     * stop goes on where it was. 0 or a negative errno. */
    int (*recv_start)(struct myi_be *be, struct myi_io *io);
    void (*recv_stop)(struct myi_be *be, struct myi_io *io);

    /* Sends iov[0 .. count), count <= max_gather, total <= INT_MAX. > 0: so
     * many bytes were taken and no report follows. 0: under way, one on_send
     * follows; the bytes must stay until then, the iov array must not. < 0:
     * an errno, nothing was taken. At most one send of an io at a time. Never
     * raises SIGPIPE. */
    int (*send)(struct myi_be *be, struct myi_io *io, const struct iovec *iov,
                unsigned count);

    /* Watches io->fd for POLLIN | POLLOUT, level-triggered, until changed;
     * 0 stops. 0 or a negative errno. */
    int (*poll)(struct myi_be *be, struct myi_io *io, int events);

    /* Ends all operations of io and then its descriptor (not a watch's).
     * Ends in one on_closed, in this turn's or a later wait. No other report
     * comes for io afterwards: buffers of late receives go home. Idempotent. */
    void (*close)(struct myi_be *be, struct myi_io *io);

    /* Ends the current or next wait early. Any thread, async-signal-safe. */
    int (*wake)(struct myi_be *be);

    /* One turn: starts what was queued, waits until something completes or
     * timeout_ns is over (0: does not block, -1: no limit), reports it all.
     * The number of reports, or a negative error that ends the loop. */
    int (*wait)(struct myi_be *be, int64_t timeout_ns);
};

extern const struct myi_backend_ops myi_backend_epoll;
extern const struct myi_backend_ops myi_backend_uring_token;

#endif
