// SPDX-License-Identifier: Apache-2.0
/* The lock of a join is held by one process, is taken over from a killed one of this machine, and
 * stays where its holder may live on another machine. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "phema/cleanup.h"
#include "phema/writer.h"
#include "support.h"

static char *output, *lock_path;

static bool is_there(void)
{
    struct stat st;
    return lstat(lock_path, &st) == 0;
}

static struct phema_writer_join_lock *take(void)
{
    struct phema_error err = {0};
    struct phema_writer_join_lock *lock = NULL;
    assert_ok(phema_writer_join_lock_try(&lock, output, &err), &err);
    assert_true(is_there());
    return lock;
}

static void assert_held(const char *message)
{
    struct phema_error err = {0};
    struct phema_writer_join_lock *lock = NULL;
    assert_int_equal(phema_writer_join_lock_try(&lock, output, &err), PHEMA_NO);
    assert_non_null(strstr(err.message, message));
    assert_null(lock);
    assert_true(is_there());
}

static void write_file(const char *text)
{
    FILE *file = fopen(lock_path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(lock_path, 0644), 0);
}

static void is_gone_when_closed(void **state)
{
    (void)state;
    phema_writer_join_lock_close(take());
    assert_false(is_there());
    phema_writer_join_lock_close(NULL);
    phema_writer_join_lock_close(take());
    assert_false(is_there());
}

/* A process that holds the lock until it is killed. */
static pid_t start_holder(void)
{
    int ready[2];
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct phema_error err = {0};
        struct phema_writer_join_lock *lock = NULL;
        if (phema_writer_join_lock_try(&lock, output, &err) || write(ready[1], &byte, 1) != 1)
            _exit(1);
        for (;;)
            (void)pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    (void)close(ready[0]);
    (void)close(ready[1]);
    return child;
}

static void is_held_by_one_process(void **state)
{
    (void)state;
    char message[64];
    pid_t child = start_holder();
    (void)snprintf(message, sizeof(message), "process %d of host ", (int)child);
    assert_held(message);
    assert_held("is joining the parts, as out.join says");
    (void)kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_true(is_there());
    phema_writer_join_lock_close(take());
    assert_false(is_there());
}

/* Without flock the contents alone tell. */
static void stays_when_its_holder_may_live(void **state)
{
    (void)state;
    write_file("01234567-89ab-cdef-0123-456789abcdef 4026531836 4711 node17\n");
    assert_held("process 4711 of host node17");
    write_file(""); /* has just been made */
    assert_held("is joining the parts");
    write_file("something else\n");
    assert_held("is joining the parts");
    assert_int_equal(unlink(lock_path), 0);
}

/* Its process was killed before it wrote its name, or the disk has lost that. */
static void an_old_lock_without_a_holder_is_taken_over(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t size;
    } empty[] = {{"", 0}, {"\0\0\0\0\0\0\0\0", 8}};
    const struct timespec now[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_NOW}};
    const struct timespec old[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    for (size_t i = 0; i < ARRAY_LEN(empty); i++) {
        support_write(lock_path, empty[i].text, empty[i].size);
        assert_int_equal(chmod(lock_path, 0644), 0);
        assert_int_equal(utimensat(AT_FDCWD, lock_path, now, 0), 0);
        assert_held("another process is joining the parts, as out.join is there");
        assert_int_equal(utimensat(AT_FDCWD, lock_path, old, 0), 0);
        struct phema_writer_join_lock *lock = take();
        assert_held("of host "); /* it is written now */
        phema_writer_join_lock_close(lock);
        assert_false(is_there());
    }
    write_file("something else\n"); /* which is not ours to remove */
    assert_int_equal(utimensat(AT_FDCWD, lock_path, old, 0), 0);
    assert_held("is joining the parts");
    assert_int_equal(unlink(lock_path), 0);
}

static void another_file_is_not_removed(void **state)
{
    (void)state;
    struct phema_writer_join_lock *lock = take();
    assert_int_equal(unlink(lock_path), 0);
    write_file("of another process\n");
    phema_writer_join_lock_close(lock);
    assert_true(is_there());
    assert_int_equal(unlink(lock_path), 0);
}

static int make_paths(void **state)
{
    (void)state;
    output = support_tmp_path("out");
    lock_path = support_tmp_path("out.join");
    phema_cleanup_install_handlers();
    return 0;
}

static int free_paths(void **state)
{
    (void)state;
    free(output);
    free(lock_path);
    return 0;
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(is_gone_when_closed),
    cmocka_unit_test(is_held_by_one_process),
    cmocka_unit_test(stays_when_its_holder_may_live),
    cmocka_unit_test(an_old_lock_without_a_holder_is_taken_over),
    cmocka_unit_test(another_file_is_not_removed),
};
TEST_GROUP_WITH(tests, make_paths, free_paths)
