/* SPDX-License-Identifier: MIT */
/*
 * Set-up of the ring, what it falls back to, what the probe says when it
 * cannot be made, and the errors of enter that end a loop or do not.
 */
#include "config.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "tests/uring_rig.h"

static struct rig rig;

static void setup(void)
{
    rig_init(&rig);
    myi_uring_probe_reset();
}

TestSuite(uring_ring, .init = setup, .timeout = 60);

static int count_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int count = 0;

    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

static void probe_refused(int err, const char *word)
{
    const int fds = count_fds();
    struct myi_probe why;

    rig.faults.init_err = err;
    myi_ring_use_sys(&rig.faults.sys);
    myi_uring_probe_reset();
    cr_assert_eq(myi_backend_uring_token.probe(&why), err);
    cr_assert_eq(why.err, err);
    cr_assert(strstr(why.text, word), "\"%s\" without \"%s\"", why.text, word);
    cr_assert(!strchr(why.text, '\n'));
    myi_ring_use_sys(NULL);
    myi_uring_probe_reset();
    cr_assert_eq(count_fds(), fds, "a descriptor was lost");
}

Test(uring_ring, probe_tells_each_refusal_apart)
{
    probe_refused(-ENOSYS, "ENOSYS");
    probe_refused(-EPERM, "EPERM");
    probe_refused(-ENOMEM, "RLIMIT_MEMLOCK");
    probe_refused(-EMFILE, "EMFILE");
}

Test(uring_ring, probe_keeps_a_lasting_answer_and_asks_again_after_others)
{
    struct myi_probe why;
    unsigned inits;

    myi_ring_use_sys(&rig.faults.sys);
    rig.faults.init_err = -EMFILE;
    cr_assert_lt(myi_backend_uring_token.probe(&why), 0);
    rig.faults.init_err = 0;
    cr_assert_eq(myi_backend_uring_token.probe(&why), 0, "%s", why.text);
    inits = rig.faults.inits;
    cr_assert_eq(myi_backend_uring_token.probe(&why), 0);
    cr_assert_eq(rig.faults.inits, inits);
    myi_ring_use_sys(NULL);
}

Test(uring_ring, probe_and_open_leave_nothing_behind_on_failure)
{
    const int fds = count_fds();
    struct myi_probe why;

    rig.faults.reg_err = -EINVAL;
    rig.faults.reg_err_opcode = IORING_REGISTER_PBUF_RING;
    myi_ring_use_sys(&rig.faults.sys);
    cr_assert_eq(myi_backend_uring_token.probe(&why), -EINVAL);
    cr_assert(strstr(why.text, "buffer ring"), "%s", why.text);
    rig.faults.reg_err_opcode = IORING_REGISTER_PROBE;
    myi_uring_probe_reset();
    cr_assert_eq(myi_backend_uring_token.probe(&why), -EINVAL);
    myi_ring_use_sys(NULL);
    myi_uring_probe_reset();
    cr_assert_eq(count_fds(), fds);
}

static void echo_on(unsigned bad_flags, const char *level)
{
    struct rig_seat *seat;
    char byte = 0;
    int fd;

    memset(&rig, 0, sizeof(rig));
    uring_faults_init(&rig.faults, 1);
    rig.faults.bad_flags = bad_flags;
    rig_open(&rig, 4, 64, 0, 0);
    cr_assert_str_eq(myi_ring_level(&((struct myi_uring *)rig.be)->ring),
                     level);
    rig_listen(&rig);
    fd = rig_pair(&rig, &seat);
    cr_assert_eq(send(fd, "x", 1, 0), 1);
    rig_until(&rig, &seat->sends, 1);
    cr_assert_eq(recv(fd, &byte, 1, 0), 1);
    close(fd);
    rig_close(&rig);
}

Test(uring_ring, setup_falls_back_flag_by_flag)
{
    echo_on(0, "single issuer, deferred task work");
    echo_on(IORING_SETUP_DEFER_TASKRUN,
            "single issuer, cooperative task work");
    echo_on(IORING_SETUP_SINGLE_ISSUER, "cooperative task work");
    echo_on(IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_COOP_TASKRUN,
            "plain task work");
    echo_on(IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_COOP_TASKRUN |
                IORING_SETUP_SUBMIT_ALL,
            "plain task work, no SUBMIT_ALL");
}

Test(uring_ring, short_locked_memory_makes_a_smaller_ring)
{
    struct myi_uring *u;

    rig.faults.max_entries = 64;
    rig_open(&rig, 4, 64, 0, 0);
    u = (struct myi_uring *)rig.be;
    cr_assert_eq(u->ring.uring.sq.ring_entries, 64);
    cr_assert_eq(u->ring.uring.cq.ring_entries, 512);
    rig_close(&rig);
}

Test(uring_ring, open_refuses_what_it_cannot_be)
{
    struct myi_backend_config config = { 3, 0, 0 };
    struct myi_probe why = { 0, "" };

    rig_open(&rig, 4, 64, 0, 0);
    cr_assert_eq(rig.ops->open(rig.be, &config, &why), MYRA_EINVAL);
    config.recv_buf_count = 4;
    config.off_features = MYI_FEAT_KERNEL_BUFS;
    cr_assert_eq(rig.ops->open(rig.be, &config, &why), MYRA_ENOTSUP);
    cr_assert(why.text[0]);
    rig_close(&rig);
}

Test(uring_ring, dropped_completions_end_the_loop)
{
    rig_open(&rig, 4, 64, 0, 0);
    rig_turn(&rig, 0);
    rig.faults.fail_enter_at = rig.faults.enters + 1;
    rig.faults.fail_enter_err = -EBADR;
    cr_assert_eq(rig_turn(&rig, 1000000), MYRA_FATAL_RING);
    cr_assert_eq(rig_turn(&rig, 1000000), MYRA_FATAL_RING);
    rig.ops->close_loop(rig.be);
    cr_assert_eq(myra_pool_free(rig.pool), 0);
}

Test(uring_ring, passing_errors_of_enter_are_survived)
{
    static const int errs[] = { -EINTR, -EAGAIN, -EBUSY };
    struct rig_seat *seat;
    char byte = 0;
    unsigned i;
    unsigned k;
    int fd;

    rig_open(&rig, 4, 64, 0, 0);
    rig_listen(&rig);
    fd = rig_pair(&rig, &seat);
    for (i = 0; i < 3; i++)
        for (k = 1; k <= 4; k++) {
            const int before = seat->sends;

            rig.faults.fail_enter_at = rig.faults.enters + k;
            rig.faults.fail_enter_err = errs[i];
            cr_assert_eq(send(fd, "x", 1, 0), 1);
            rig_until(&rig, &seat->sends, before + 1);
            cr_assert_eq(recv(fd, &byte, 1, 0), 1);
        }
    close(fd);
    rig_close(&rig);
}

/* What a kernel without room for both would do: the first buffer ring of two
 * is refused, the ring behind it is smaller. */
static int refuse_once(void *ctx, struct io_uring *ring, unsigned opcode,
                       void *arg, unsigned count)
{
    if (opcode == IORING_REGISTER_PBUF_RING && ring->sq.ring_entries > 64)
        return -ENOMEM;
    (void)ctx;
    return myi_ring_kernel.reg(NULL, ring, opcode, arg, count);
}

Test(uring_ring, a_buffer_ring_that_does_not_fit_makes_a_smaller_ring)
{
    const int fds = count_fds();

    rig.faults.sys.reg = refuse_once;
    rig_open(&rig, 4, 64, 0, 0);
    cr_assert_eq(((struct myi_uring *)rig.be)->ring.uring.sq.ring_entries, 64);
    rig_close(&rig);
    cr_assert_eq(count_fds(), fds);
}
