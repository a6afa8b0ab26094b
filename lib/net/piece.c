/* SPDX-License-Identifier: MIT */
/* Queue pieces: runs of bytes, by reference. */
#include "config.h"

#include "lib/net/net_priv.h"

struct myi_piece *myi_piece_new(struct myra_loop *loop)
{
    struct myi_piece *piece = myi_slab_take(&loop->pieces);

    if (piece != NULL)
        piece->next = NULL;
    return piece;
}

void myi_piece_free(struct myra_loop *loop, struct myi_piece *piece)
{
    myi_slab_give(&loop->pieces, piece);
}

void myi_queue_push(struct myi_queue *queue, struct myi_piece *piece)
{
    piece->next = NULL;
    if (queue->tail != NULL)
        queue->tail->next = piece;
    else
        queue->head = piece;
    queue->tail = piece;
}

void myi_queue_pop(struct myra_conn *conn, struct myi_queue *queue)
{
    struct myra_loop *loop = conn->loop;
    struct myi_piece *piece = queue->head;

    queue->head = piece->next;
    if (queue->head == NULL)
        queue->tail = NULL;
    if (piece->is_block) {
        myi_block_release(&loop->blocks, piece->home.block);
    } else {
        conn->leases--;
        loop->held_bufs--;
        myra_buf_release(piece->home.buf);
    }
    myi_piece_free(loop, piece);
}

void myi_queue_clear(struct myra_conn *conn, struct myi_queue *queue)
{
    while (queue->head != NULL)
        myi_queue_pop(conn, queue);
}

int myi_lease_allowed(const struct myra_conn *conn)
{
    const struct myra_loop *loop = conn->loop;

    return conn->leases < loop->lease_budget &&
           loop->held_bufs < loop->pool_count - loop->pool_count / 4;
}
