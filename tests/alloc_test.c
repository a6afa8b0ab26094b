/* SPDX-License-Identifier: MIT */
/* The allocator hook, the counting allocator, the log hook and the clock. */
#include "config.h"

#include <string.h>

#include <criterion/criterion.h>

#include "lib/base/alloc.h"
#include "lib/base/checked.h"
#include "lib/base/list.h"
#include "lib/base/log.h"
#include "tests/fault_alloc.h"

static int is_zero(const unsigned char *p, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (p[i] != 0)
            return 0;
    return 1;
}

Test(alloc, memory_is_zeroed_and_aligned)
{
    static const size_t sizes[] = { 1, 15, 16, 63, 64, 65, 4096, 100000 };

    for (size_t i = 0; i < MYI_ARRAY_LEN(sizes); i++) {
        struct fault_alloc fault;
        unsigned char *p;

        fault_alloc_init(&fault, 0);
        p = myi_alloc(&fault.base, sizes[i]);
        cr_assert_not_null(p);
        cr_assert_eq((uintptr_t)p % (sizes[i] >= 64 ? 64 : 16), 0);
        cr_assert(is_zero(p, sizes[i]));
        myi_free(&fault.base, p, sizes[i]);
        cr_assert(fault_alloc_is_clean(&fault));
    }
}

Test(alloc, a_given_alignment_is_kept)
{
    for (size_t align = 16; align <= 4096; align *= 2) {
        unsigned char *p = myi_alloc_aligned(NULL, 100, align);

        cr_assert_not_null(p);
        cr_assert_eq((uintptr_t)p % align, 0);
        cr_assert(is_zero(p, 100));
        myi_free(NULL, p, 100);
    }
}

Test(alloc, failure_is_null_and_null_may_be_freed)
{
    struct fault_alloc fault;

    fault_alloc_init(&fault, 1);
    cr_assert_null(myi_alloc(&fault.base, 10));
    cr_assert(fault.has_failed);
    myi_free(&fault.base, NULL, 10);
    cr_assert(fault_alloc_is_clean(&fault));
}

Test(alloc, null_stands_for_the_default)
{
    const struct myra_allocator *system = myra_default_allocator();
    struct fault_alloc fault;
    void *p;

    fault_alloc_init(&fault, 0);
    myra_set_default_allocator(&fault.base);
    cr_assert_eq(myra_default_allocator(), &fault.base);
    p = myi_alloc(NULL, 10);
    cr_assert_eq(fault.live, 1);
    myi_free(NULL, p, 10);
    cr_assert_eq(fault.live, 0);
    myra_set_default_allocator(NULL);
    cr_assert_eq(myra_default_allocator(), system);
}

Test(alloc, the_counting_allocator_counts)
{
    struct myra_counting_allocator counting;
    uint64_t allocs;
    uint64_t frees;
    uint64_t bytes;
    void *a;
    void *b;

    myra_counting_init(&counting, NULL);
    a = myi_alloc(&counting.base, 100);
    b = myi_alloc(&counting.base, 28);
    myra_counting_read(&counting, &allocs, &frees, &bytes);
    cr_assert_eq(allocs, 2);
    cr_assert_eq(frees, 0);
    cr_assert_eq(bytes, 128);
    myi_free(&counting.base, a, 100);
    myra_counting_read(&counting, &allocs, &frees, &bytes);
    cr_assert_eq(frees, 1);
    cr_assert_eq(bytes, 28);
    myi_free(&counting.base, b, 28);
    myra_counting_read(&counting, NULL, NULL, &bytes);
    cr_assert_eq(bytes, 0);
}

Test(alloc, a_refused_allocation_is_not_counted)
{
    struct myra_counting_allocator counting;
    struct fault_alloc fault;
    uint64_t allocs;
    uint64_t bytes;

    fault_alloc_init(&fault, 1);
    myra_counting_init(&counting, &fault.base);
    cr_assert_null(myi_alloc(&counting.base, 100));
    myra_counting_read(&counting, &allocs, NULL, &bytes);
    cr_assert_eq(allocs, 0);
    cr_assert_eq(bytes, 0);
}

Test(checked, overflow_is_told)
{
    size_t out;

    cr_assert_not(myi_add_size(SIZE_MAX - 1, 1, &out));
    cr_assert_eq(out, SIZE_MAX);
    cr_assert(myi_add_size(SIZE_MAX, 1, &out));
    cr_assert_not(myi_mul_size(SIZE_MAX / 2, 2, &out));
    cr_assert_eq(out, SIZE_MAX - 1);
    cr_assert(myi_mul_size(SIZE_MAX / 2 + 1, 2, &out));
    cr_assert_eq(myi_align_up(0, 64), 0);
    cr_assert_eq(myi_align_up(1, 64), 64);
    cr_assert_eq(myi_align_up(64, 64), 64);
    cr_assert_not(myi_is_pow2(0));
    cr_assert(myi_is_pow2(1));
    cr_assert_not(myi_is_pow2(96));
}

struct member {
    int number;
    struct myi_list link;
};

Test(list, members_stay_in_order)
{
    struct member members[3] = { { 0, { 0, 0 } }, { 1, { 0, 0 } },
                                 { 2, { 0, 0 } } };
    struct myi_list head;
    int expected = 0;

    myi_list_init(&head);
    cr_assert(myi_list_is_empty(&head));
    cr_assert_null(myi_list_first(&head));
    myi_list_append(&head, &members[1].link);
    myi_list_append(&head, &members[2].link);
    myi_list_prepend(&head, &members[0].link);
    while (!myi_list_is_empty(&head)) {
        struct myi_list *first = myi_list_first(&head);

        cr_assert_eq(MYI_CONTAINER(first, struct member, link)->number,
                     expected++);
        myi_list_remove(first);
        myi_list_remove(first);
    }
    cr_assert_eq(expected, 3);
}

struct seen {
    int lines;
    enum myra_log_level level;
    char text[600];
};

static void take_line(void *ctx, enum myra_log_level level, const char *text)
{
    struct seen *seen = ctx;

    seen->lines++;
    seen->level = level;
    strncpy(seen->text, text, sizeof(seen->text) - 1);
}

Test(log, lines_reach_the_hook_up_to_its_level)
{
    struct seen seen;
    char big[2000];

    memset(&seen, 0, sizeof(seen));
    myi_log(MYRA_LOG_ERROR, "nobody listens");
    myra_set_log(take_line, &seen, MYRA_LOG_WARN);
    myi_log(MYRA_LOG_INFO, "too much");
    cr_assert_eq(seen.lines, 0);
    myi_log(MYRA_LOG_WARN, "buffer %d of %s", 7, "pool");
    cr_assert_eq(seen.lines, 1);
    cr_assert_eq(seen.level, MYRA_LOG_WARN);
    cr_assert_str_eq(seen.text, "buffer 7 of pool");
    memset(big, 'x', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    myi_log(MYRA_LOG_ERROR, "%s", big);
    cr_assert_eq(strlen(seen.text), 511);
    myra_set_log(NULL, NULL, MYRA_LOG_DEBUG);
    myi_log(MYRA_LOG_ERROR, "nobody listens again");
    cr_assert_eq(seen.lines, 2);
}

Test(clock, does_not_go_back)
{
    uint64_t last = myra_clock_ns();

    cr_assert_gt(last, 0);
    for (int i = 0; i < 10000; i++) {
        const uint64_t now = myra_clock_ns();

        cr_assert_geq(now, last);
        last = now;
    }
}
