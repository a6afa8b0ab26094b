/* SPDX-License-Identifier: MIT */
/*
 * The send side of a connection: a queue of pieces, of which one gather send
 * at a time is in flight. Sends are started at the loop's flush points, so
 * that what one callback queues (a head, then a body) goes out together.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "lib/net/net_priv.h"

#define GATHER_MAX 64
#define GATHER_BYTES_MAX (1u << 20)

/* Small enough for most heads, so that a block is not held for one line. */
#define TAIL_MIN 900
#define COPY_CAP 3900

/* Queued bytes from which on a producer is told to stop. The fuller the
 * loop's overflow blocks, the lower: so the largest holders stop first. */
static uint32_t high_mark(const struct myra_conn *conn)
{
    const struct myi_blocks *blocks = &conn->loop->blocks;
    const uint32_t mark = conn->conf->options.high_mark;
    uint32_t share;

    if (blocks->used <= blocks->limit / 2)
        return mark;
    if (blocks->used <= blocks->limit / 4 * 3)
        share = 64 * 1024;
    else if (blocks->used <= blocks->limit / 16 * 15)
        share = 8 * 1024;
    else
        share = 1;
    return mark < share ? mark : share;
}

/* Queued bytes below which it may go on. */
static uint32_t low_mark(const struct myra_conn *conn)
{
    const uint32_t high = high_mark(conn);
    const uint32_t mark = conn->conf->options.low_mark;

    return mark < high ? mark : high / 2;
}

static int send_check(const struct myra_conn *conn, size_t len)
{
    if (conn->state >= MYI_CLOSING ||
        (conn->flags & (MYI_F_SHUT_WANTED | MYI_F_SEND_BROKEN)) != 0)
        return MYRA_ECLOSED;
    if (len > conn->conf->options.hard_mark ||
        conn->tx_bytes > conn->conf->options.hard_mark - len)
        return MYRA_ELIMIT;
    return 0;
}

void myi_send_mark(struct myra_conn *conn)
{
    struct myra_loop *loop = conn->loop;

    if ((conn->flags & MYI_F_DIRTY) != 0)
        return;
    conn->flags |= MYI_F_DIRTY;
    conn->dirty_next = NULL;
    *loop->dirty_end = conn;
    loop->dirty_end = &conn->dirty_next;
}

static size_t tail_room(const struct myra_conn *conn)
{
    const struct myi_piece *tail = conn->tx.tail;
    const struct myi_block *block;

    if (tail == NULL || !tail->is_block)
        return 0;
    block = tail->home.block;
    /* A block that someone else reads too may not grow under him. */
    if (block->refs > 1)
        return 0;
    return (size_t)(block->data + block->cap - (tail->data + tail->len));
}

/* A new tail block with room for len bytes, empty. */
static struct myi_piece *tail_new(struct myra_conn *conn, size_t len,
                                  int is_over)
{
    struct myra_loop *loop = conn->loop;
    struct myi_piece *piece = myi_piece_new(loop);

    if (piece == NULL)
        return NULL;
    piece->home.block = myi_block_new(&loop->blocks, len, is_over);
    if (piece->home.block == NULL) {
        myi_piece_free(loop, piece);
        return NULL;
    }
    piece->is_block = 1;
    piece->data = piece->home.block->data;
    piece->len = 0;
    myi_queue_push(&conn->tx, piece);
    return piece;
}

static void tail_append(struct myra_conn *conn, const uint8_t *data,
                        size_t len)
{
    struct myi_piece *tail = conn->tx.tail;

    memcpy(tail->data + tail->len, data, len);
    tail->len += (uint32_t)len;
    conn->tx_bytes += (uint32_t)len;
}

/* All or nothing: blocks are made first, and only then filled. */
static int queue_copy(struct myra_conn *conn, const uint8_t *data, size_t len)
{
    const size_t room = tail_room(conn);
    struct myi_queue saved = conn->tx;
    size_t head = len < room ? len : room;
    size_t left = len - head;

    while (left > 0) {
        const size_t want = left < COPY_CAP ? left : COPY_CAP;

        if (tail_new(conn, want < TAIL_MIN ? TAIL_MIN : want, 1) == NULL) {
            struct myi_queue made = { NULL, NULL };

            made.head = saved.tail != NULL ? saved.tail->next : conn->tx.head;
            conn->tx = saved;
            if (saved.tail != NULL)
                saved.tail->next = NULL;
            myi_queue_clear(conn, &made);
            return MYRA_ENOMEM;
        }
        left -= want;
    }
    if (head > 0) {
        struct myi_piece *tail = saved.tail;

        memcpy(tail->data + tail->len, data, head);
        tail->len += (uint32_t)head;
        conn->tx_bytes += (uint32_t)head;
    }
    for (struct myi_piece *piece =
             saved.tail != NULL ? saved.tail->next : conn->tx.head;
         piece != NULL; piece = piece->next) {
        const size_t rest = len - head;
        const size_t take = rest < COPY_CAP ? rest : COPY_CAP;

        memcpy(piece->data, data + head, take);
        piece->len = (uint32_t)take;
        conn->tx_bytes += (uint32_t)take;
        head += take;
    }
    return 0;
}

int myra_conn_send(struct myra_conn *conn, const void *data, size_t len)
{
    MYRA_TRY(send_check(conn, len));
    if (len == 0)
        return 0;
    MYRA_TRY(queue_copy(conn, data, len));
    myi_send_mark(conn);
    return 0;
}

/* By reference: one more lease or one more reference on a block. */
static int queue_ref(struct myra_conn *conn, const struct myi_piece *source,
                     const uint8_t *data, size_t len)
{
    struct myi_piece *piece = myi_piece_new(conn->loop);

    if (piece == NULL)
        return MYRA_ENOMEM;
    piece->is_block = source->is_block;
    piece->home = source->home;
    piece->data = (uint8_t *)(uintptr_t)data;
    piece->len = (uint32_t)len;
    if (piece->is_block) {
        piece->home.block->refs++;
    } else {
        myra_buf_retain(piece->home.buf);
        conn->leases++;
        conn->loop->held_bufs++;
    }
    myi_queue_push(&conn->tx, piece);
    conn->tx_bytes += (uint32_t)len;
    return 0;
}

/* A copy costs less than a piece and an iovec below this. */
#define COPY_BELOW 256

int myra_conn_send_slice(struct myra_conn *conn,
                         const struct myra_slice *slice, size_t offset,
                         size_t len)
{
    const struct myi_piece *source = slice->lease;
    const uint8_t *data = slice->data + offset;
    struct myra_loop *loop = conn->loop;
    int err;

    MYRA_TRY(send_check(conn, len));
    if (len == 0)
        return 0;
    if (len <= COPY_BELOW && tail_room(conn) >= len) {
        tail_append(conn, data, len);
        myi_send_mark(conn);
        return 0;
    }
    if (source->is_block || myi_lease_allowed(conn)) {
        err = queue_ref(conn, source, data, len);
    } else {
        loop->stats.lease_copies++;
        err = queue_copy(conn, data, len);
    }
    if (err < 0)
        return err;
    myi_send_mark(conn);
    return 0;
}

uint8_t *myra_conn_reserve(struct myra_conn *conn, size_t len)
{
    if (send_check(conn, len) < 0)
        return NULL;
    if (tail_room(conn) < len &&
        tail_new(conn, len < TAIL_MIN ? TAIL_MIN : len, 1) == NULL)
        return NULL;
    return conn->tx.tail->data + conn->tx.tail->len;
}

void myra_conn_commit(struct myra_conn *conn, size_t used_len)
{
    if (conn->tx.tail == NULL)
        return;
    if (used_len == 0) {
        /* An idle connection holds no block. */
        if (conn->tx.head == conn->tx.tail && conn->tx.tail->len == 0)
            myi_queue_pop(conn, &conn->tx);
        return;
    }
    conn->tx.tail->len += (uint32_t)used_len;
    conn->tx_bytes += (uint32_t)used_len;
    myi_send_mark(conn);
}

size_t myra_conn_queued(const struct myra_conn *conn)
{
    return conn->tx_bytes;
}

/* Takes len sent bytes off the queue. An empty block at the tail stays: it is
 * the room of a reserve. */
static void consume(struct myra_conn *conn, size_t len)
{
    conn->tx_bytes -= (uint32_t)len;
    conn->sent_bytes += len;
    conn->loop->stats.sent_bytes += len;
    while (conn->tx.head != NULL) {
        struct myi_piece *piece = conn->tx.head;

        if (piece->len > len) {
            piece->data += len;
            piece->len -= (uint32_t)len;
            return;
        }
        len -= piece->len;
        myi_queue_pop(conn, &conn->tx);
    }
}

static void send_failed(struct myra_conn *conn, int err)
{
    conn->flags |= MYI_F_SEND_BROKEN;
    conn->flags &= (uint16_t)~MYI_F_DRAIN_DUE;
    myi_queue_clear(conn, &conn->tx);
    conn->tx_bytes = 0;
    /* What the peer sent before it went may still be unread; the read side
     * then ends by itself. Where nobody reads, this is the end. */
    if (conn->state == MYI_OPEN && (conn->flags & MYI_F_RECV_ON) != 0 &&
        (conn->flags & (MYI_F_PAUSED | MYI_F_RECV_ENDED)) == 0) {
        conn->err = err;
        return;
    }
    myi_conn_end(conn, myi_reason_of(err), err);
}

static unsigned gather(const struct myra_conn *conn, struct iovec *iov,
                       size_t *total_out)
{
    const unsigned max = conn->loop->ops->max_gather < GATHER_MAX
                             ? conn->loop->ops->max_gather
                             : GATHER_MAX;
    unsigned count = 0;
    size_t total = 0;

    for (struct myi_piece *piece = conn->tx.head;
         piece != NULL && count < max && total < GATHER_BYTES_MAX;
         piece = piece->next) {
        if (piece->len == 0)
            continue;
        iov[count].iov_base = piece->data;
        iov[count].iov_len = piece->len;
        total += piece->len;
        count++;
    }
    *total_out = total;
    return count;
}

static void start_sends(struct myra_conn *conn)
{
    struct myra_loop *loop = conn->loop;

    while (conn->tx_bytes > 0) {
        struct iovec iov[GATHER_MAX];
        size_t total;
        const unsigned count = gather(conn, iov, &total);
        const int res = loop->ops->send(loop->be, &conn->io, iov, count);

        loop->stats.send_calls++;
        if (res == 0) {
            conn->flags |= MYI_F_SENDING | MYI_F_DRAIN_DUE;
            return;
        }
        if (res < 0) {
            send_failed(conn, res);
            return;
        }
        conn->flags |= MYI_F_DRAIN_DUE;
        consume(conn, (size_t)res);
    }
}

void myi_send_flush(struct myra_conn *conn)
{
    /* Not earlier: a callback may still have read a slice after its close. */
    if (conn->state == MYI_CLOSING && conn->rx.head != NULL)
        myi_recv_drop(conn);
    if (conn->state == MYI_CONNECTING || conn->state == MYI_DYING ||
        (conn->flags & MYI_F_SENDING) != 0)
        return;
    start_sends(conn);
    if (conn->state == MYI_DYING || conn->tx_bytes > 0)
        return;
    if ((conn->flags & (MYI_F_SHUT_WANTED | MYI_F_SHUT_DONE)) ==
        MYI_F_SHUT_WANTED) {
        conn->flags |= MYI_F_SHUT_DONE;
        shutdown(conn->io.fd, SHUT_WR);
        conn->loop->be->syscalls++;
    }
    myi_conn_try_finish(conn);
}

/* Tells the user what has changed; only outside of his callbacks. */
void myi_send_report(struct myra_conn *conn)
{
    const struct myra_conn_events *events;

    if (conn->state != MYI_OPEN)
        return;
    events = conn->events;
    if ((conn->flags & MYI_F_HIGH) == 0 && conn->tx_bytes > 0 &&
        conn->tx_bytes >= high_mark(conn)) {
        conn->flags |= MYI_F_HIGH;
        if (events->on_pressure != NULL)
            events->on_pressure(conn, 1, conn->user);
    } else if ((conn->flags & MYI_F_HIGH) != 0 &&
               (conn->tx_bytes == 0 ||
                conn->tx_bytes < low_mark(conn))) {
        conn->flags &= (uint16_t)~MYI_F_HIGH;
        if (events->on_pressure != NULL)
            events->on_pressure(conn, 0, conn->user);
    }
    if (conn->state == MYI_OPEN && conn->tx_bytes == 0 &&
        (conn->flags & MYI_F_DRAIN_DUE) != 0) {
        conn->flags &= (uint16_t)~MYI_F_DRAIN_DUE;
        if (conn->events->on_drained != NULL)
            conn->events->on_drained(conn, conn->user);
    }
}

void myi_on_send(struct myi_be *be, struct myi_io *io, int res)
{
    struct myra_conn *conn = myi_conn_of(io);

    (void)be;
    conn->flags &= (uint16_t)~MYI_F_SENDING;
    if (conn->state == MYI_DYING)
        return;
    if (res < 0)
        send_failed(conn, res);
    else
        consume(conn, (size_t)res);
    myi_send_mark(conn);
}
