/* SPDX-License-Identifier: MIT */
/*
 * An intrusive doubly linked list. The head is a struct myi_list of its own;
 * a member embeds one and gets back to itself with MYI_CONTAINER. A member
 * that is initialised or removed points at itself and may be removed again.
 */
#ifndef MYI_LIST_H
#define MYI_LIST_H

#include <stddef.h>

#include "lib/base/checked.h"

struct myi_list {
    struct myi_list *next;
    struct myi_list *prev;
};

static inline void myi_list_init(struct myi_list *list)
{
    list->next = list;
    list->prev = list;
}

static inline int myi_list_is_empty(const struct myi_list *head)
{
    return head->next == head;
}

/* Puts node, which is on no list, behind the last member. */
static inline void myi_list_append(struct myi_list *head,
                                   struct myi_list *node)
{
    node->next = head;
    node->prev = head->prev;
    head->prev->next = node;
    head->prev = node;
}

/* Puts node, which is on no list, before the first member. */
static inline void myi_list_prepend(struct myi_list *head,
                                    struct myi_list *node)
{
    myi_list_append(head->next, node);
}

static inline void myi_list_remove(struct myi_list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    myi_list_init(node);
}

/* The first member, or NULL. */
static inline struct myi_list *myi_list_first(const struct myi_list *head)
{
    return myi_list_is_empty(head) ? NULL : head->next;
}

#endif
