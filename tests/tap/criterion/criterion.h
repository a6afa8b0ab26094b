/* SPDX-License-Identifier: MIT */
/*
 * A small runner with the face of Criterion, for builds in which Criterion
 * does not run: under ThreadSanitizer, which does not survive its arena of
 * shared memory, and where it is not packaged. Put this folder's parent in
 * front of the include path and link without -lcriterion:
 *
 *     -Itests/tap
 *
 * Tests register themselves, run one after the other, each in a process of
 * its own, and are reported as TAP. Holds what the tests here use. The name
 * of one test as argument runs that test only, in this process.
 */
#ifndef TESTS_TAP_CRITERION_H
#define TESTS_TAP_CRITERION_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TAP_SKIPPED 77

struct tap_test {
    const char *suite;
    const char *name;
    void (*run)(void); /* NULL: what holds for the whole suite */
    void (*init)(void);
    void (*fini)(void);
    double timeout;
    int disabled;
    struct tap_test *next;
};

/* One list, and one main, for a program of several files. */
__attribute__((weak)) struct tap_test *tap_first;

static inline void tap_add(struct tap_test *test)
{
    struct tap_test **end = &tap_first;

    while (*end)
        end = &(*end)->next;
    *end = test;
}

#define TestSuite(title, ...) \
    static struct tap_test title##_suite = { .suite = #title, \
                                             .name = #title, \
                                             __VA_ARGS__ }; \
    __attribute__((constructor)) static void title##_suite_add(void) \
    { \
        tap_add(&title##_suite); \
    } \
    extern int tap_unused

#define Test(group, title, ...) \
    static void group##_##title##_body(void); \
    static struct tap_test group##_##title##_test = { \
        .suite = #group, .name = #group "/" #title, \
        .run = group##_##title##_body, __VA_ARGS__ \
    }; \
    __attribute__((constructor)) static void group##_##title##_add(void) \
    { \
        tap_add(&group##_##title##_test); \
    } \
    static void group##_##title##_body(void)

/* The first of more is a format; the text in front lets it be left out. */
#define TAP_CHECK(holds, text, ...) \
    do { \
        if (!(holds)) { \
            printf("# %s:%d: %s\n", __FILE__, __LINE__, text); \
            printf("# " __VA_ARGS__); \
            printf("\n"); \
            fflush(stdout); \
            _exit(1); \
        } \
    } while (0)

#define cr_assert(x, ...) TAP_CHECK(x, #x, __VA_ARGS__)
#define cr_assert_not(x, ...) TAP_CHECK(!(x), "not " #x, __VA_ARGS__)
#define cr_assert_eq(a, b, ...) \
    TAP_CHECK((a) == (b), #a " == " #b, __VA_ARGS__)
#define cr_assert_neq(a, b, ...) \
    TAP_CHECK((a) != (b), #a " != " #b, __VA_ARGS__)
#define cr_assert_lt(a, b, ...) TAP_CHECK((a) < (b), #a " < " #b, __VA_ARGS__)
#define cr_assert_gt(a, b, ...) TAP_CHECK((a) > (b), #a " > " #b, __VA_ARGS__)
#define cr_assert_leq(a, b, ...) \
    TAP_CHECK((a) <= (b), #a " <= " #b, __VA_ARGS__)
#define cr_assert_geq(a, b, ...) \
    TAP_CHECK((a) >= (b), #a " >= " #b, __VA_ARGS__)
#define cr_assert_null(a, ...) \
    TAP_CHECK((a) == NULL, #a " is NULL", __VA_ARGS__)
#define cr_assert_not_null(a, ...) \
    TAP_CHECK((a) != NULL, #a " is not NULL", __VA_ARGS__)
#define cr_assert_str_eq(a, b, ...) \
    TAP_CHECK(strcmp(a, b) == 0, #a " is " #b, __VA_ARGS__)
#define cr_assert_str_empty(a, ...) \
    TAP_CHECK((a)[0] == '\0', #a " is empty", __VA_ARGS__)
#define cr_assert_arr_eq(a, b, len, ...) \
    TAP_CHECK(memcmp(a, b, len) == 0, #a " holds " #b, __VA_ARGS__)
#define cr_assert_fail(...) TAP_CHECK(0, "fail", __VA_ARGS__)
#define cr_assert_float_eq(a, b, epsilon, ...) \
    TAP_CHECK((a) - (b) <= (epsilon) && (b) - (a) <= (epsilon), \
              #a " is about " #b, __VA_ARGS__)
#define cr_expect cr_assert
#define cr_expect_eq cr_assert_eq
#define cr_skip(...) \
    do { \
        printf("# " __VA_ARGS__); \
        printf("\n"); \
        fflush(stdout); \
        _exit(TAP_SKIPPED); \
    } while (0)
#define cr_skip_test cr_skip

static inline void tap_run(const struct tap_test *test)
{
    const struct tap_test *suite = tap_first;

    while (suite && (suite->run || strcmp(suite->suite, test->suite) != 0))
        suite = suite->next;
    if (test->timeout > 0)
        alarm((unsigned)test->timeout + 1);
    else if (suite && suite->timeout > 0)
        alarm((unsigned)suite->timeout + 1);
    if (test->init)
        test->init();
    else if (suite && suite->init)
        suite->init();
    test->run();
    if (test->fini)
        test->fini();
    else if (suite && suite->fini)
        suite->fini();
}

/* 0, TAP_SKIPPED, or something else for a failure. */
static inline int tap_run_apart(const struct tap_test *test)
{
    int status = 1;
    pid_t pid;

    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        tap_run(test);
        fflush(stdout);
        /* exit and not _exit: a sanitizer may still have something to say,
         * and says it with the status. */
        exit(0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return 1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

__attribute__((weak)) int main(int argc, char **argv)
{
    int number = 0;
    int failed = 0;

    for (const struct tap_test *test = tap_first; test; test = test->next) {
        int status;

        if (!test->run || (argc > 1 && strcmp(test->name, argv[1]) != 0))
            continue;
        number++;
        if (argc > 1) {
            tap_run(test);
            continue;
        }
        status = test->disabled ? TAP_SKIPPED : tap_run_apart(test);
        printf("%sok %d - %s%s\n",
               status == 0 || status == TAP_SKIPPED ? "" : "not ", number,
               test->name, status == TAP_SKIPPED ? " # SKIP" : "");
        failed += status != 0 && status != TAP_SKIPPED;
    }
    printf("1..%d\n", number);
    return failed > 0 || number == 0;
}

#endif
