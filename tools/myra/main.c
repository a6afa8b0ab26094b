/* SPDX-License-Identifier: MIT */
/*
 * myra: the front door. A verb is either a function of this program or the
 * name of a program beside it.
 */
#include "config.h"

#include "tools/myra/beside.h"
#include "tools/myra/myra.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include <myra/myra.h>

struct verb {
    const char *name;
    int (*run)(int argc, char **argv); /* or NULL: a program of its own */
    const char *program;
    const char *help;
};

static const struct verb verbs[] = {
    { "demo", myra_demo_main, NULL,
      "the proxy under load on this machine, in 12 seconds" },
    { "inspect", myra_inspect_main, NULL,
      "what the library sees in raw bytes, as JSON" },
    { "proxy", NULL, "myra-proxy", "the HTTP proxy" },
    { "load", NULL, "myra-load", "HTTP load at a fixed rate" },
    { "bench", NULL, "myra-bench", "the performance tables" },
};

#define VERB_COUNT (sizeof verbs / sizeof *verbs)

static void print_help(FILE *out)
{
    fputs("usage: myra VERB [ARGUMENT]...\n\n", out);
    for (size_t i = 0; i < VERB_COUNT; i++)
        fprintf(out, "  %-10s%s\n", verbs[i].name, verbs[i].help);
    fputs("\n  --help    this text; myra VERB --help tells about a verb\n"
          "  --version the version, and what this build holds\n",
          out);
}

static size_t smallest(size_t a, size_t b, size_t c)
{
    const size_t ab = a < b ? a : b;

    return ab < c ? ab : c;
}

/* How many letters must be put in, taken out or changed to make one word of
 * the other; words longer than 15 letters count as far away. */
static size_t word_distance(const char *a, const char *b)
{
    const size_t a_len = strlen(a);
    const size_t b_len = strlen(b);
    size_t row[16];

    if (a_len > 15 || b_len > 15)
        return 16;
    for (size_t j = 0; j <= b_len; j++)
        row[j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        size_t diagonal = row[0];

        row[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            const size_t above = row[j];

            row[j] = smallest(above + 1, row[j - 1] + 1,
                              diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[b_len];
}

static int refuse_verb(const char *name)
{
    const struct verb *nearest = NULL;
    size_t least = 3; /* farther words are no slip of the finger */

    for (size_t i = 0; i < VERB_COUNT; i++) {
        const size_t distance = word_distance(name, verbs[i].name);

        if (distance < least) {
            least = distance;
            nearest = &verbs[i];
        }
    }
    fprintf(stderr, "myra: unknown verb '%s'", name);
    if (nearest != NULL)
        fprintf(stderr, ", did you mean '%s'?\n", nearest->name);
    else
        fputs(", see 'myra --help'\n", stderr);
    return STATUS_USAGE;
}

static int run_program(const struct verb *verb, char **argv)
{
    char path[PATH_MAX];

    beside_find(verb->program, path, sizeof path);
    argv[0] = path;
    execvp(path, argv);
    if (errno == ENOENT)
        fprintf(stderr,
                "myra: %s is neither beside this program nor in PATH\n",
                verb->program);
    else
        fprintf(stderr, "myra: %s: %s\n", path, strerror(errno));
    return STATUS_FAILED;
}

static int run_verb(const char *name, int argc, char **argv)
{
    for (size_t i = 0; i < VERB_COUNT; i++) {
        if (strcmp(name, verbs[i].name) != 0)
            continue;
        if (verbs[i].run != NULL)
            return verbs[i].run(argc, argv);
        return run_program(&verbs[i], argv);
    }
    return refuse_verb(name);
}

int main(int argc, char **argv)
{
    char text[256];

    if (myra_env_check(text, sizeof text) < 0) {
        fprintf(stderr, "myra: %s\n", text);
        return STATUS_USAGE;
    }
    if (argc < 2) {
        print_help(stderr);
        return STATUS_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        print_help(stdout);
        return STATUS_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("myra %s (%s)\n", myra_version(), myra_features());
        return STATUS_OK;
    }
    if (argv[1][0] == '-') {
        fprintf(stderr, "myra: unknown option '%s', see 'myra --help'\n",
                argv[1]);
        return STATUS_USAGE;
    }
    return run_verb(argv[1], argc - 1, argv + 1);
}
