/* SPDX-License-Identifier: MIT */
/*
 * run-cases DIR: runs every row of DIR/cases.tsv, first against the library
 * in this process, then with `myra inspect`, then through myra-proxy between
 * a client and a recording origin. A row counts once, all feedings together.
 */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <myra/myra.h>

#include "tests/run_cases/inspect.h"
#include "tests/run_cases/never.h"
#include "tools/myra/beside.h"

struct run {
    const char *dir;
    char **only; /* names of the files to run, or all */
    int only_count;
    char inspect_program[PATH_MAX];
    char proxy_program[PATH_MAX];
    struct exchange exchange;
    int has_proxy; /* exchange_open was called */
    struct bytes proxy_fault; /* why there is none */
    unsigned long passed;
    unsigned long failed;
};

/* ---- Through the proxy -------------------------------------------------- */

/* 0 when the proxy runs. It is started when the first row needs it. */
static int need_proxy(struct run *run, struct scene *scene)
{
    if (!run->has_proxy) {
        run->has_proxy = 1;
        exchange_open(&run->exchange, run->proxy_program, &run->proxy_fault);
    }
    if (run->proxy_fault.len == 0)
        return 0;
    return scene_fail(scene, "proxy: %s", bytes_text(&run->proxy_fault));
}

static int forward_once(struct run *run, struct scene *scene, enum pace pace)
{
    struct forward forward;
    int result;

    if (scene->options.kind == READING_REQUEST)
        result = forward_request(scene, &run->exchange, pace, &forward);
    else
        result = forward_response(scene, &run->exchange, pace, &forward);
    if (never_check(scene, &forward) < 0)
        result = -1;
    forward_fini(&forward);
    return result;
}

static int forward_all(struct run *run, struct scene *scene)
{
    static const enum pace paces[] = { PACE_WHOLE, PACE_BYTES, PACE_CUT };

    if (!forward_applies(scene))
        return 0;
    if (need_proxy(run, scene) < 0)
        return -1;
    for (size_t i = 0; i < sizeof paces / sizeof *paces; i++) {
        if (forward_once(run, scene, paces[i]) < 0)
            return -1;
    }
    return 0;
}

/* ---- One row ------------------------------------------------------------ */

static int kind_is_known(const char *kind)
{
    return list_has("request,response,chunked", kind);
}

/* What can be told without the file. 0 or -1. */
static int check_row(struct scene *scene)
{
    const struct case_row *const row = scene->row;
    const char *key;

    if (row->fault != NULL)
        return scene_fail(scene, "line %d: %s", row->line, row->fault);
    if (!kind_is_known(row->kind))
        return scene_fail(scene, "unknown kind '%s'", row->kind);
    if (row->expect == EXPECT_UNKNOWN)
        return scene_fail(scene, "unknown expectation '%s'",
                          row->expect_text);
    if (row->status[0] != '\0' &&
        (strlen(row->status) != 3 || strspn(row->status, "0123456789") != 3))
        return scene_fail(scene, "'%s' is no status", row->status);
    key = detail_unknown_key(scene->detail, row->kind);
    if (key != NULL)
        return scene_fail(scene, "unknown key '%s' for the kind %s", key,
                          row->kind);
    if (!never_is_known(scene))
        return scene_fail(scene, "no check for never=%s",
                          detail_text(scene->detail, "never", ""));
    return scene_read_options(scene);
}

static void judge(struct run *run, struct scene *scene)
{
    char *data = NULL;
    const int err =
        file_read(run->dir, scene->row->file, &data, &scene->len);

    if (err < 0) {
        scene_fail(scene, "%s: %s", scene->row->file, strerror(-err));
        return;
    }
    scene->data = data;
    verdict_check(scene);
    never_check(scene, NULL);
    inspect_check(scene, run->inspect_program, run->dir);
    forward_all(run, scene);
    free(data);
}

/* The reason as one line of plain characters. */
static void print_failure(const struct scene *scene)
{
    printf("FAIL %s: ", scene->row->file);
    for (size_t i = 0; i < scene->why.len; i++) {
        const unsigned char c = (unsigned char)scene->why.data[i];

        if (c < 0x20 || c > 0x7e)
            printf("\\x%02x", c);
        else
            putchar(c);
    }
    putchar('\n');
    fflush(stdout);
}

static void run_row(struct run *run, const struct case_row *row)
{
    struct detail detail;
    struct scene scene;

    memset(&scene, 0, sizeof scene);
    scene.row = row;
    scene.detail = &detail;
    if (detail_parse(row->detail, &detail, &scene.why) == 0 &&
        check_row(&scene) == 0)
        judge(run, &scene);
    if (scene.why.len > 0) {
        run->failed++;
        print_failure(&scene);
    } else {
        run->passed++;
    }
    reading_fini(&scene.reading);
    bytes_fini(&scene.why);
    detail_fini(&detail);
}

static int is_asked_for(const struct run *run, const struct case_row *row)
{
    for (int i = 0; i < run->only_count; i++) {
        if (strcmp(run->only[i], row->file) == 0)
            return 1;
    }
    return run->only_count == 0;
}

/* ---- The run ------------------------------------------------------------ */

static void end_proxy(struct run *run)
{
    struct bytes why = { 0 };

    if (run->has_proxy && exchange_close(&run->exchange, &why) < 0) {
        run->failed++;
        printf("FAIL (end of the run): %s\n", bytes_text(&why));
    }
    bytes_fini(&why);
    bytes_fini(&run->proxy_fault);
}

static int run_table(struct run *run)
{
    struct case_table table;
    const int err = case_table_load(run->dir, &table);

    if (err < 0) {
        fprintf(stderr, "run-cases: %s/cases.tsv: %s\n", run->dir,
                err == -EBADMSG ? "not a table of cases" : strerror(-err));
        return 2;
    }
    for (size_t i = 0; i < table.row_count; i++) {
        if (is_asked_for(run, &table.rows[i]))
            run_row(run, &table.rows[i]);
    }
    end_proxy(run);
    case_table_free(&table);
    printf("%lu passed, %lu failed\n", run->passed, run->failed);
    return run->failed == 0 && run->passed > 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    static struct run run;
    char text[256];

    if (myra_env_check(text, sizeof text) < 0) {
        fprintf(stderr, "run-cases: %s\n", text);
        return 2;
    }
    if (argc < 2 || argv[1][0] == '-') {
        fputs("usage: run-cases DIR [FILE]...\n", stderr);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    run.dir = argv[1];
    run.only = argv + 2;
    run.only_count = argc - 2;
    beside_find("myra", run.inspect_program, sizeof run.inspect_program);
    beside_find("myra-proxy", run.proxy_program, sizeof run.proxy_program);
    return run_table(&run);
}
