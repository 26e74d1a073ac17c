// SPDX-License-Identifier: Apache-2.0
/* Kinds of filesystems: local ones are no network filesystems, and io_uring reads only those that
 * are known. FUSE is in the case slow_short_answers_of_a_filesystem. */
#include "phema/filesystem.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support.h"

static void local_filesystems_are_not_network_filesystems(void **state)
{
    (void)state;
    assert_null(phema_network_filesystem("/proc/self/maps"));
    assert_null(phema_network_filesystem("/nowhere/at/all"));
}

static void io_uring_reads_known_filesystems_alone(void **state)
{
    (void)state;
    int of_proc = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    int in_memory = memfd_create("a file of tmpfs", MFD_CLOEXEC);
    assert_true(of_proc >= 0 && in_memory >= 0);
    assert_false(phema_filesystem_is_local(of_proc));
    assert_false(phema_filesystem_is_local(-1));
    assert_true(phema_filesystem_is_local(in_memory));
    (void)close(of_proc);
    (void)close(in_memory);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(local_filesystems_are_not_network_filesystems),
    cmocka_unit_test(io_uring_reads_known_filesystems_alone),
};
TEST_GROUP(tests)
