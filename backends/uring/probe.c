/* SPDX-License-Identifier: MIT */
/*
 * Can this machine serve uring-token, and if not, why?
 *
 * Flags and opcodes that a kernel knows say little about how they behave, so
 * the last step is to use them: accept, receive and cancel on a small ring.
 */
#include "config.h"

#include "backends/uring/uring_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "lib/base/alloc.h"

#define TEST_BUFS 4
#define TEST_BUF_CAP 64
#define TEST_WAIT_NS 1000000000

enum {
    UD_ACCEPT = 1,
    UD_RECV,
    UD_CANCEL
};

static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;
static struct myi_probe cache;
static int cache_is_valid;

static int say(struct myi_probe *out, int err, const char *text)
{
    out->err = err;
    snprintf(out->text, sizeof(out->text), "%s", text);
    return err;
}

/* ---- Why a ring cannot be made ------------------------------------------ */

/* The value of /proc/sys/kernel/io_uring_disabled, 0 when there is none. */
static int read_sysctl(void)
{
    const int fd =
        open("/proc/sys/kernel/io_uring_disabled", O_RDONLY | O_CLOEXEC);
    char digit = '0';

    if (fd < 0)
        return 0;
    if (read(fd, &digit, 1) != 1)
        digit = '0';
    close(fd);
    return digit - '0';
}

static int kernel_version(void)
{
    struct utsname names;
    int major = 0;
    int minor = 0;

    if (uname(&names) < 0 ||
        sscanf(names.release, "%d.%d", &major, &minor) != 2)
        return 0;
    return major * 1000 + minor;
}

int myi_uring_bad_multi_accept(void)
{
    const int version = kernel_version();

    return version >= 6006 && version <= 6008;
}

static int explain_eperm(struct myi_probe *out, int sysctl)
{
    switch (sysctl) {
    case 2:
        return say(out, -EPERM,
                   "io_uring_setup: EPERM, switched off by "
                   "sysctl kernel.io_uring_disabled = 2");
    case 1:
        return say(out, -EPERM,
                   "io_uring_setup: EPERM, sysctl "
                   "kernel.io_uring_disabled = 1 leaves it to "
                   "the group in kernel.io_uring_group");
    default:
        return say(out, -EPERM,
                   "io_uring_setup: EPERM, refused by a seccomp "
                   "filter or security module (a container?)");
    }
}

static int explain(struct myi_probe *out, int err)
{
    switch (err) {
    case -ENOSYS:
        if (kernel_version() >= 5001)
            return say(out, err,
                       "io_uring_setup: ENOSYS, refused by a "
                       "seccomp filter or not built into the "
                       "kernel");
        return say(out, err,
                   "io_uring_setup: ENOSYS, this kernel is older "
                   "than 5.1");
    case -EPERM:
    case -EACCES:
        return explain_eperm(out, read_sysctl());
    case -ENOMEM:
        return say(out, err,
                   "io_uring_setup: ENOMEM, RLIMIT_MEMLOCK "
                   "(ulimit -l) is too low or used up");
    case -EMFILE:
        return say(out, err,
                   "io_uring_setup: EMFILE, too many open "
                   "descriptors in this process (ulimit -n)");
    case -ENFILE:
        return say(out, err,
                   "io_uring_setup: ENFILE, too many open "
                   "descriptors in the system");
    default:
        return err; /* the text of the failing step stays */
    }
}

/* May the same question have another answer later? */
static int is_passing(int err)
{
    return err == -ENOMEM || err == -EMFILE || err == -ENFILE ||
           err == MYRA_ENOMEM || err == -EAGAIN || err == -EINTR;
}

/* ---- What the kernel knows ---------------------------------------------- */

static int check_opcodes(struct myi_ring *ring, struct myi_probe *out)
{
    static const uint8_t needed[] = {
        IORING_OP_ACCEPT,  IORING_OP_RECV,         IORING_OP_SEND,
        IORING_OP_SENDMSG, IORING_OP_CONNECT,      IORING_OP_POLL_ADD,
        IORING_OP_NOP,     IORING_OP_ASYNC_CANCEL,
    };
    union {
        struct io_uring_probe head;
        uint8_t room[sizeof(struct io_uring_probe) +
                     256 * sizeof(struct io_uring_probe_op)];
    } answer;
    size_t i;
    int err;

    memset(&answer, 0, sizeof(answer));
    err = myi_ring_register(ring, IORING_REGISTER_PROBE, &answer, 256);
    if (err == -EINVAL)
        return say(out, err,
                   "io_uring: the kernel is too old to tell its "
                   "operations (needs 6.0)");
    if (err < 0) {
        out->err = err;
        snprintf(out->text, sizeof(out->text),
                 "io_uring_register: the kernel does not tell its "
                 "operations: %s",
                 myra_strerror(err));
        return err;
    }
    for (i = 0; i < MYI_ARRAY_LEN(needed); i++)
        if (!io_uring_opcode_supported(&answer.head, needed[i])) {
            out->err = -EOPNOTSUPP;
            snprintf(out->text, sizeof(out->text),
                     "io_uring: operation %d is missing or restricted",
                     needed[i]);
            return out->err;
        }
    if (!(ring->uring.features & IORING_FEAT_EXT_ARG))
        return say(out, -EOPNOTSUPP,
                   "io_uring: no timeout argument to enter "
                   "(needs 5.11)");
    return 0;
}

/* ---- What it does ------------------------------------------------------- */

struct self_test {
    struct myi_ring ring;
    struct io_uring_buf_ring *bufs;
    uint8_t *data;
    int listener;
    int client;
    int server;
};

/* The next completion of the given operation. Others are an error. */
static int next_cqe(struct self_test *test, uint64_t user_data,
                    struct myi_cqe *cqe)
{
    unsigned left = myi_ring_ready(&test->ring);
    int tries;
    int err;

    for (tries = 0; tries < 3; tries++) {
        if (myi_ring_take(&test->ring, &left, cqe))
            return cqe->user_data == user_data ? 0 : -EPROTO;
        err = myi_ring_enter(&test->ring, 1, TEST_WAIT_NS);
        if (err < 0 && err != -EINTR)
            return err;
        left = myi_ring_ready(&test->ring);
    }
    return -ETIME;
}

static int is_mshot(const struct myi_cqe *cqe)
{
    return (cqe->flags & IORING_CQE_F_MORE) != 0;
}

static int make_listener(struct self_test *test, struct sockaddr_in *addr)
{
    socklen_t addr_len = sizeof(*addr);

    memset(addr, 0, sizeof(*addr));
    addr->sin_family = AF_INET;
    addr->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    test->listener =
        socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (test->listener < 0)
        return -errno;
    if (bind(test->listener, (struct sockaddr *)addr, addr_len) < 0 ||
        listen(test->listener, 1) < 0 ||
        getsockname(test->listener, (struct sockaddr *)addr, &addr_len) < 0)
        return -errno;
    return 0;
}

static int test_accept(struct self_test *test)
{
    struct io_uring_sqe *sqe = myi_ring_sqe(&test->ring, NULL);
    struct sockaddr_in addr;
    struct myi_cqe cqe = { 0, 0, 0 };
    int err = make_listener(test, &addr);

    if (err)
        return err;
    if (!sqe)
        return -EAGAIN;
    io_uring_prep_multishot_accept(sqe, test->listener, NULL, NULL,
                                   SOCK_NONBLOCK | SOCK_CLOEXEC);
    sqe->user_data = UD_ACCEPT;
    test->client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (test->client < 0 ||
        connect(test->client, (struct sockaddr *)&addr, sizeof(addr)) < 0)
        return -errno;
    err = next_cqe(test, UD_ACCEPT, &cqe);
    if (err)
        return err;
    if (cqe.res < 0)
        return cqe.res;
    test->server = cqe.res;
    return is_mshot(&cqe) ? 0 : -EPROTO;
}

static int arm_recv(struct self_test *test)
{
    struct io_uring_sqe *sqe = myi_ring_sqe(&test->ring, NULL);

    if (!sqe)
        return -EAGAIN;
    io_uring_prep_recv(sqe, test->server, NULL, 0, 0);
    sqe->ioprio |= IORING_RECV_MULTISHOT;
    sqe->flags |= IOSQE_BUFFER_SELECT;
    sqe->buf_group = MYI_BUFS_GROUP;
    sqe->user_data = UD_RECV;
    return 0;
}

/* One byte through a buffer of the ring, and the receive stays armed. */
static int test_recv(struct self_test *test)
{
    struct myi_cqe cqe = { 0, 0, 0 };
    int err = arm_recv(test);
    unsigned id;

    if (err)
        return err;
    if (send(test->client, "m", 1, MSG_NOSIGNAL) != 1)
        return -errno;
    err = next_cqe(test, UD_RECV, &cqe);
    if (err)
        return err;
    id = cqe.flags >> IORING_CQE_BUFFER_SHIFT;
    if (cqe.res != 1)
        return cqe.res < 0 ? cqe.res : -EPROTO;
    if (!is_mshot(&cqe) || !(cqe.flags & IORING_CQE_F_BUFFER) ||
        id >= TEST_BUFS || test->data[id * TEST_BUF_CAP] != 'm')
        return -EPROTO;
    return 0;
}

/* Cancel ends the armed receive. Kernels before 6.5 say ENOBUFS. */
static int test_cancel(struct self_test *test)
{
    struct io_uring_sqe *sqe = myi_ring_sqe(&test->ring, NULL);
    struct myi_cqe cqe = { 0, 0, 0 };
    int has_recv = 0;
    int i;
    int err;

    if (!sqe)
        return -EAGAIN;
    io_uring_prep_cancel64(sqe, UD_RECV, 0);
    sqe->user_data = UD_CANCEL;
    for (i = 0; i < 2; i++) {
        err = next_cqe(test, i == 0 ? UD_CANCEL : UD_RECV, &cqe);
        if (err == -EPROTO) /* either may come first */
            err = 0;
        if (err)
            return err;
        if (cqe.user_data != UD_RECV)
            continue;
        if ((cqe.res != -ECANCELED && cqe.res != -ENOBUFS) || is_mshot(&cqe))
            return -EPROTO;
        has_recv = 1;
    }
    return has_recv ? 0 : -EPROTO;
}

/* A FIN is a result of 0 that ends the receive. */
static int test_fin(struct self_test *test)
{
    struct myi_cqe cqe = { 0, 0, 0 };
    int err = arm_recv(test);

    if (err)
        return err;
    shutdown(test->client, SHUT_WR);
    err = next_cqe(test, UD_RECV, &cqe);
    if (err)
        return err;
    return cqe.res == 0 && !is_mshot(&cqe) ? 0 : -EPROTO;
}

static int add_bufs(struct self_test *test)
{
    struct io_uring_buf_reg reg;
    unsigned short i;

    memset(&reg, 0, sizeof(reg));
    reg.ring_addr = (uint64_t)(uintptr_t)test->bufs;
    reg.ring_entries = TEST_BUFS;
    reg.bgid = MYI_BUFS_GROUP;
    for (i = 0; i < TEST_BUFS; i++)
        io_uring_buf_ring_add(test->bufs, test->data + i * TEST_BUF_CAP,
                              TEST_BUF_CAP, i, TEST_BUFS - 1, i);
    io_uring_buf_ring_advance(test->bufs, TEST_BUFS);
    return myi_ring_register(&test->ring, IORING_REGISTER_PBUF_RING, &reg, 1);
}

static int run_steps(struct self_test *test, struct myi_probe *out)
{
    static const struct step {
        int (*run)(struct self_test *test);
        const char *name;
    } steps[] = {
        { add_bufs, "registered buffer ring" },
        { test_accept, "multishot accept" },
        { test_recv, "multishot receive" },
        { test_cancel, "cancel" },
        { test_fin, "end of stream" },
    };
    size_t i;
    int err;

    for (i = 0; i < MYI_ARRAY_LEN(steps); i++) {
        err = steps[i].run(test);
        if (err >= 0)
            continue;
        out->err = err;
        snprintf(out->text, sizeof(out->text),
                 "io_uring: self-test of %s failed: %s", steps[i].name,
                 err == -EPROTO ? "unexpected result" : myra_strerror(err));
        return err;
    }
    return 0;
}

static void close_if_open(int fd)
{
    if (fd >= 0)
        close(fd);
}

static int self_test(struct self_test *test, struct myi_probe *out)
{
    const size_t page_len = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *page = myi_alloc_aligned(NULL, page_len, page_len);
    int err;

    if (!page)
        return say(out, MYRA_ENOMEM, "no memory for the self-test");
    /* The kernel's ring of entries first, the buffers themselves behind. */
    test->bufs = (struct io_uring_buf_ring *)(void *)page;
    test->data = page + TEST_BUFS * sizeof(struct io_uring_buf);
    test->listener = -1;
    test->client = -1;
    test->server = -1;
    err = run_steps(test, out);
    close_if_open(test->listener);
    close_if_open(test->client);
    close_if_open(test->server);
    /* The ring goes first: it knows the page. */
    myi_ring_close(&test->ring);
    myi_free(NULL, page, page_len);
    return err;
}

static int probe_now(struct myi_probe *out)
{
    struct self_test test;
    uint64_t syscalls = 0;
    int err;

    memset(&test, 0, sizeof(test));
    memset(out, 0, sizeof(*out));
    err = myi_ring_open(&test.ring, NULL, MYI_RING_SIZES - 1, &syscalls, out);
    if (err)
        return explain(out, err);
    err = check_opcodes(&test.ring, out);
    if (err) {
        myi_ring_close(&test.ring);
        return err;
    }
    snprintf(out->text, sizeof(out->text), "io_uring: %s",
             myi_ring_level(&test.ring));
    return self_test(&test, out);
}

int myi_uring_probe(struct myi_probe *out)
{
    pthread_mutex_lock(&cache_lock);
    if (!cache_is_valid) {
        probe_now(&cache);
        cache_is_valid = !is_passing(cache.err);
    }
    *out = cache;
    pthread_mutex_unlock(&cache_lock);
    return out->err;
}

void myi_uring_probe_reset(void)
{
    pthread_mutex_lock(&cache_lock);
    cache_is_valid = 0;
    pthread_mutex_unlock(&cache_lock);
}
