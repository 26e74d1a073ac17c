// SPDX-License-Identifier: Apache-2.0
/* Limits of control groups, from trees in the kernel's format. The tightest level counts. */
#include "cgroup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "support.h"

static uint64_t parse(const char *text)
{
    return strtoull(text, NULL, 10);
}

static char *write_file(const char *directory, const char *name, const char *text)
{
    char *path = NULL;
    assert_true(asprintf(&path, "%s/%s", directory, name) > 0);
    support_write(path, text, strlen(text));
    return path;
}

static void the_tightest_level_counts(void **state)
{
    (void)state;
    char *mount = support_tmp_path("mount");
    char *a = NULL, *b = NULL;
    assert_true(asprintf(&a, "%s/a", mount) > 0);
    assert_true(asprintf(&b, "%s/a/b", mount) > 0);
    assert_int_equal(mkdir(mount, 0777), 0);
    assert_int_equal(mkdir(a, 0777), 0);
    assert_int_equal(mkdir(b, 0777), 0);
    char *groups = support_tmp_path("groups");
    const char *text = "12:cpu,cpuacct:/elsewhere\n4:memory:/a\n0::/a/b\n";
    support_write(groups, text, strlen(text));

    /* no file, then "max", then limits at three levels */
    assert_int_equal(cgroup_limit(groups, mount, "", "memory.max", parse), 0);
    free(write_file(b, "memory.max", "max\n"));
    assert_int_equal(cgroup_limit(groups, mount, "", "memory.max", parse), 0);
    free(write_file(a, "memory.max", "5000\n"));
    assert_int_equal(cgroup_limit(groups, mount, "", "memory.max", parse), 5000);
    free(write_file(mount, "memory.max", "9000\n"));
    assert_int_equal(cgroup_limit(groups, mount, "", "memory.max", parse), 5000);
    free(write_file(b, "memory.max", "700\n"));
    assert_int_equal(cgroup_limit(groups, mount, "", "memory.max", parse), 700);
    /* a controller of version 1 has its own group, shares a line, or has no group */
    assert_int_equal(cgroup_limit(groups, mount, "memory", "memory.max", parse), 5000);
    assert_int_equal(cgroup_limit(groups, mount, "cpuacct", "memory.max", parse), 9000);
    assert_int_equal(cgroup_limit(groups, mount, "mem", "memory.max", parse), 0);
    assert_int_equal(cgroup_limit("/no/such/file", mount, "", "memory.max", parse), 0);

    free(groups);
    free(b);
    free(a);
    free(mount);
}

static void the_root_group_is_a_level(void **state)
{
    (void)state;
    char *mount = support_tmp_path("root");
    assert_int_equal(mkdir(mount, 0777), 0);
    char *groups = support_tmp_path("root-groups");
    support_write(groups, "0::/\n", 5);
    free(write_file(mount, "memory.max", "123\n"));
    assert_int_equal(cgroup_limit(groups, mount, "", "memory.max", parse), 123);
    free(groups);
    free(mount);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_tightest_level_counts),
    cmocka_unit_test(the_root_group_is_a_level),
};
TEST_GROUP(tests)
