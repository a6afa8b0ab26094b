/* SPDX-License-Identifier: MIT */
/*
 * The receive side of a connection. A buffer is offered to the user where it
 * lies; what he leaves becomes the head of a queue and is offered again,
 * joined in an overflow block with what came behind it. So one message is
 * copied once at most, and a message that came whole not at all.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "lib/net/net_priv.h"

/* A rest below this is copied rather than left to hold a whole buffer. */
#define KEEP_MIN 1024

static void piece_drop(struct myra_conn *conn, uint32_t len)
{
    struct myi_piece *piece = conn->rx.head;

    conn->rx_bytes -= len;
    piece->data += len;
    piece->len -= len;
    if (piece->len == 0)
        myi_queue_pop(conn, &conn->rx);
}

void myi_recv_drop(struct myra_conn *conn)
{
    myi_queue_clear(conn, &conn->rx);
    conn->rx_bytes = 0;
}

/* Not receiving until a block comes home: the bytes that cannot be kept
 * elsewhere sit in receive buffers. */
static void stall(struct myra_conn *conn)
{
    if ((conn->flags & MYI_F_STALLED) != 0)
        return;
    conn->flags |= MYI_F_STALLED;
    conn->loop->stalled_count++;
    myi_recv_update(conn);
}

void myi_recv_unstall(struct myra_loop *loop)
{
    if (loop->stalled_count == 0 ||
        loop->blocks.used > loop->blocks.limit / 16 * 15)
        return;
    for (uint32_t slot = 0; slot < loop->slots.fresh; slot++) {
        struct myi_io *io = myi_slot_at(&loop->slots, slot);
        struct myra_conn *conn = myi_conn_of(io);

        if (io->kind != MYI_IO_CONN || (conn->flags & MYI_F_STALLED) == 0)
            continue;
        conn->flags &= (uint16_t)~MYI_F_STALLED;
        if (conn->state == MYI_OPEN)
            myi_recv_update(conn);
    }
    loop->stalled_count = 0;
}

/* Moves a piece's bytes from its receive buffer to a block, if the budget or
 * their small number asks for it. */
static void settle(struct myra_conn *conn, struct myi_piece *piece)
{
    struct myra_loop *loop = conn->loop;
    struct myi_block *block;

    if (piece->is_block)
        return;
    /* Its own lease is counted already. */
    conn->leases--;
    loop->held_bufs--;
    if (piece->len >= KEEP_MIN && myi_lease_allowed(conn)) {
        conn->leases++;
        loop->held_bufs++;
        return;
    }
    /* Over the limit too: one that does not read must not keep the buffers
     * that all others receive with. It gets no more until there is room. */
    block = myi_block_new(&loop->blocks, piece->len, 1);
    if (block == NULL || loop->blocks.used > loop->blocks.limit)
        stall(conn);
    if (block == NULL) {
        conn->leases++;
        loop->held_bufs++;
        return;
    }
    if (piece->len >= KEEP_MIN)
        loop->stats.lease_copies++;
    memcpy(block->data, piece->data, piece->len);
    myra_buf_release(piece->home.buf);
    piece->is_block = 1;
    piece->home.block = block;
    piece->data = block->data;
}

/* Joins the head with bytes of the piece behind it. 1: it has grown; 0: there
 * is nothing to add, or the hold limit is reached; or an error. */
static int join(struct myra_conn *conn)
{
    struct myi_piece *head = conn->rx.head;
    struct myi_piece *next = head->next;
    const uint32_t hold_max = conn->conf->options.hold_max;
    struct myi_block *block;
    uint32_t take;

    if (next == NULL || head->len >= hold_max)
        return 0;
    take = next->len;
    if (take > hold_max - head->len)
        take = hold_max - head->len;
    block = head->is_block ? head->home.block : NULL;
    if (block == NULL || block->refs > 1 ||
        (size_t)(block->data + block->cap - head->data) < head->len + take) {
        struct myi_block *larger =
            myi_block_new(&conn->loop->blocks, head->len + take, 1);

        if (larger == NULL)
            return MYRA_ENOMEM;
        memcpy(larger->data, head->data, head->len);
        if (head->is_block) {
            myi_block_release(&conn->loop->blocks, block);
        } else {
            conn->leases--;
            conn->loop->held_bufs--;
            myra_buf_release(head->home.buf);
        }
        head->is_block = 1;
        head->home.block = larger;
        head->data = larger->data;
    }
    memcpy(head->data + head->len, next->data, take);
    head->len += take;
    next->data += take;
    next->len -= take;
    if (next->len == 0) {
        struct myi_queue rest = { next, next };

        head->next = next->next;
        if (conn->rx.tail == next)
            conn->rx.tail = head;
        next->next = NULL;
        myi_queue_pop(conn, &rest);
    }
    return 1;
}

static size_t readable_of(const struct myi_piece *piece)
{
    const uint8_t *end;

    if (piece->is_block)
        end = piece->home.block->data + piece->home.block->cap;
    else
        end = piece->home.buf->data + piece->home.buf->cap;
    return (size_t)(end - piece->data) + MYRA_BUF_SLACK;
}

/* Offers the head piece. 1: go on with what is queued; 0: stop. */
static int offer(struct myra_conn *conn)
{
    struct myi_piece *piece = conn->rx.head;
    const struct myra_slice slice = { .data = piece->data,
                                      .len = piece->len,
                                      .readable = readable_of(piece),
                                      .lease = piece };
    const int64_t used = conn->events->on_data(conn, &slice, conn->user);

    if (conn->state != MYI_OPEN)
        return 0;
    if (used < 0) {
        myi_conn_end(conn, MYRA_CLOSE_ERROR, (int)used);
        return 0;
    }
    if ((size_t)used >= slice.len) {
        piece_drop(conn, (uint32_t)slice.len);
        return 1;
    }
    if (used > 0)
        piece_drop(conn, (uint32_t)used);
    else if ((conn->flags & MYI_F_PAUSED) == 0)
        conn->flags |= MYI_F_NEED_MORE;
    return 1;
}

static void tell_end(struct myra_conn *conn)
{
    const size_t kept = conn->rx_bytes;

    if ((conn->flags & (MYI_F_RECV_ENDED | MYI_F_EOF_TOLD)) !=
        MYI_F_RECV_ENDED)
        return;
    if (conn->rx_err != 0) {
        myi_conn_end(conn, myi_reason_of(conn->rx_err), conn->rx_err);
        return;
    }
    conn->flags |= MYI_F_EOF_TOLD;
    myi_recv_drop(conn);
    if (conn->events->on_eof != NULL)
        conn->events->on_eof(conn, kept, conn->user);
    else
        myra_conn_close(conn);
    /* Our side broke before: nothing more can happen here. */
    if (conn->state == MYI_OPEN && (conn->flags & MYI_F_SEND_BROKEN) != 0)
        myi_conn_end(conn, myi_reason_of(conn->err), conn->err);
    else if (conn->state == MYI_OPEN)
        myi_send_mark(conn);
}

void myi_recv_deliver(struct myra_conn *conn)
{
    while (conn->state == MYI_OPEN && (conn->flags & MYI_F_PAUSED) == 0) {
        if (conn->rx.head == NULL) {
            conn->flags &= (uint16_t)~MYI_F_NEED_MORE;
            tell_end(conn);
            if (conn->state == MYI_OPEN)
                myi_recv_update(conn);
            return;
        }
        if ((conn->flags & MYI_F_NEED_MORE) != 0) {
            const int grown = join(conn);

            if (grown < 0) {
                myi_conn_end(conn, MYRA_CLOSE_ERROR, grown);
                return;
            }
            if (grown == 0) {
                if (conn->rx.head->len >= conn->conf->options.hold_max)
                    myi_conn_end(conn, MYRA_CLOSE_LIMIT, MYRA_ELIMIT);
                else if ((conn->flags & MYI_F_RECV_ENDED) != 0)
                    tell_end(conn);
                else
                    settle(conn, conn->rx.head);
                if (conn->state == MYI_OPEN)
                    myi_recv_update(conn);
                return;
            }
            conn->flags &= (uint16_t)~MYI_F_NEED_MORE;
        }
        if (!offer(conn))
            break;
    }
    if (conn->state == MYI_OPEN && conn->rx.tail != NULL)
        settle(conn, conn->rx.tail);
}

void myi_recv_update(struct myra_conn *conn)
{
    struct myra_loop *loop = conn->loop;
    const int want = (conn->state == MYI_OPEN || conn->state == MYI_CLOSING) &&
                     (conn->flags & (MYI_F_RECV_ENDED | MYI_F_STALLED)) == 0;
    const int is_on = (conn->flags & MYI_F_RECV_ON) != 0;

    if (want && !is_on) {
        const int err = loop->ops->recv_start(loop->be, &conn->io);

        if (err < 0)
            myi_conn_end(conn, MYRA_CLOSE_ERROR, err);
        else
            conn->flags |= MYI_F_RECV_ON;
    } else if (!want && is_on) {
        conn->flags &= (uint16_t)~MYI_F_RECV_ON;
        if ((conn->flags & MYI_F_RECV_ENDED) == 0)
            loop->ops->recv_stop(loop->be, &conn->io);
    }
}

/* Bytes came although the user had paused: now the backend must stop too.
 * Until then a pause has cost nothing. */
static void stop_paused(struct myra_conn *conn)
{
    if ((conn->flags & MYI_F_RECV_ON) == 0)
        return;
    conn->flags &= (uint16_t)~MYI_F_RECV_ON;
    conn->loop->ops->recv_stop(conn->loop->be, &conn->io);
}

void myra_conn_pause(struct myra_conn *conn)
{
    conn->flags |= MYI_F_PAUSED;
}

void myra_conn_resume(struct myra_conn *conn)
{
    if ((conn->flags & MYI_F_PAUSED) == 0)
        return;
    conn->flags &= (uint16_t)~(MYI_F_PAUSED | MYI_F_NEED_MORE);
    if (conn->state != MYI_OPEN)
        return;
    /* What has come already goes first; receiving starts again when it has
     * all been handed out, so that pauses in between bound what is kept. */
    if (conn->rx.head != NULL || (conn->flags & MYI_F_RECV_ENDED) != 0)
        myi_conn_make_ready(conn);
    else
        myi_recv_update(conn);
}

int myra_conn_is_paused(const struct myra_conn *conn)
{
    return (conn->flags & MYI_F_PAUSED) != 0;
}

static void recv_ended(struct myra_conn *conn, int res)
{
    conn->flags |= MYI_F_RECV_ENDED;
    conn->flags &= (uint16_t)~MYI_F_RECV_ON;
    conn->rx_err = res;
    if (conn->state == MYI_CLOSING) {
        if (res < 0)
            myi_conn_end(conn, myi_reason_of(res), res);
        else
            myi_conn_try_finish(conn);
        return;
    }
    /* A reset while the user is paused with nothing queued: he need not
     * wait for a resume to learn of it. */
    if (res < 0 && conn->rx.head == NULL) {
        myi_conn_end(conn, myi_reason_of(res), res);
        return;
    }
    myi_recv_deliver(conn);
}

void myi_on_recv(struct myi_be *be, struct myi_io *io, struct myra_buf *buf,
                 int res)
{
    struct myra_conn *conn = myi_conn_of(io);
    struct myra_loop *loop = myi_loop_of(be);
    struct myi_piece *piece;

    loop->stats.recv_events++;
    if (res <= 0) {
        recv_ended(conn, res);
        return;
    }
    conn->recv_bytes += (uint32_t)res;
    loop->stats.recv_bytes += (uint32_t)res;
    if (conn->state != MYI_OPEN) {
        myra_buf_release(buf);
        return;
    }
    piece = myi_piece_new(loop);
    if (piece == NULL) {
        myra_buf_release(buf);
        myi_conn_end(conn, MYRA_CLOSE_ERROR, MYRA_ENOMEM);
        return;
    }
    piece->is_block = 0;
    piece->home.buf = buf;
    piece->data = buf->data;
    piece->len = (uint32_t)res;
    conn->leases++;
    loop->held_bufs++;
    conn->rx_bytes += (uint32_t)res;
    myi_queue_push(&conn->rx, piece);
    if ((conn->flags & MYI_F_PAUSED) != 0) {
        stop_paused(conn);
        settle(conn, piece);
        return;
    }
    myi_recv_deliver(conn);
}
