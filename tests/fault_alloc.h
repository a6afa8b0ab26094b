/* SPDX-License-Identifier: MIT */
/*
 * An allocator that fails on its n-th allocation, and that knows when
 * something was not given back or was given back with a wrong size.
 *
 *     for (int n = 1; ; n++) {
 *         struct fault_alloc fault;
 *
 *         fault_alloc_init(&fault, n);
 *         ... the scenario, with &fault.base; expect MYRA_ENOMEM while
 *             fault.has_failed, success otherwise ...
 *         cr_assert(fault_alloc_is_clean(&fault));
 *         if (!fault.has_failed)
 *             break;
 *     }
 */
#ifndef TESTS_FAULT_ALLOC_H
#define TESTS_FAULT_ALLOC_H

#include <myra/alloc.h>

struct fault_alloc {
    struct myra_allocator base;
    int fail_at;    /* 1: the first; 0: never */
    int seen;       /* allocations asked for */
    int has_failed; /* the one to fail was asked for */
    int live;       /* allocations not given back */
    int mistakes;   /* frees with a wrong size, or of what is not ours */
};

void fault_alloc_init(struct fault_alloc *fault, int fail_at);

/* 1 when all is given back and no mistake was seen. */
int fault_alloc_is_clean(const struct fault_alloc *fault);

#endif
