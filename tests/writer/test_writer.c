// SPDX-License-Identifier: Apache-2.0
/* A file appears whole under its name or not at all. */
#include "phema/writer.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "paths.h"
#include "phema/cleanup.h"
#include "support.h"

static const struct phema_writer_options quick = {.replaces = false, .syncs = false};

static void commit_publishes_bytes_written_in_any_order(void **state)
{
    (void)state;
    struct phema_error err = {0};
    char *path = support_tmp_path("order");
    char *partial = support_tmp_path("order.partial");
    static const struct phema_writer_options durable = {.replaces = false, .syncs = true};
    struct phema_writer *writer = NULL;
    assert_ok(phema_writer_open(&writer, path, 8, &durable, &err), &err);
    assert_ok(phema_writer_write(writer, 4, "5678", 4, &err), &err);
    assert_false(exists(path));
    assert_true(exists(partial));
    assert_ok(phema_writer_write(writer, 0, "1234", 4, &err), &err);
    assert_ok(phema_writer_commit(writer, &err), &err);
    assert_false(exists(partial));
    size_t size = 0;
    uint8_t *data = support_read(path, &size);
    assert_int_equal(size, 8);
    assert_memory_equal(data, "12345678", 8);
    free(data);
    free(path);
    free(partial);
}

/* Runs of zeros with every alignment to the blocks of the file. The bytes are those written, and
 * long runs of zeros occupy no blocks. */
static void zeros_become_holes(void **state)
{
    (void)state;
    struct phema_error err = {0};
    enum { SIZE = 3 << 20, PIECE = 131072 + 8 };
    uint8_t *data = calloc(1, SIZE);
    assert_non_null(data);
    for (size_t i = 0; i < SIZE; i += 65536 + 4096 - i % 7) /* zeros of many lengths */
        memset(data + i, 1 + (int)(i % 255), i % 40001 + 1 < SIZE - i ? i % 40001 + 1 : SIZE - i);
    memset(data + (1 << 20), 0, 1 << 20);
    char *path = support_tmp_path("zeros");
    struct phema_writer *writer = NULL;
    assert_ok(phema_writer_open(&writer, path, SIZE, &quick, &err), &err);
    for (size_t at = 0; at < SIZE; at += PIECE)
        assert_ok(
            phema_writer_write(writer, at, data + at, at + PIECE < SIZE ? PIECE : SIZE - at, &err),
            &err);
    assert_ok(phema_writer_commit(writer, &err), &err);
    size_t size = 0;
    uint8_t *found = support_read(path, &size);
    assert_int_equal(size, SIZE);
    assert_memory_equal(found, data, SIZE);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    if (st.st_blocks * 512 > (2 << 20) + (256 << 10))
        print_message("this filesystem has no holes\n");
    free(found);
    free(data);
    free(path);
}

/* Without reservation, blocks whose zeros come from several writes do not occupy space either. */
static void zeros_that_share_blocks_are_not_written(void **state)
{
    (void)state;
    enum { SIZE = 4 << 20, PIECE = 131072 };
    struct phema_error err = {0};
    struct statfs filesystem;
    if (statfs("/dev/shm", &filesystem) || filesystem.f_type != TMPFS_MAGIC)
        skip();
    char path[64];
    (void)snprintf(path, sizeof(path), "/dev/shm/phema-test-writer-%d", (int)getpid());
    uint8_t *data = calloc(1, SIZE);
    assert_non_null(data);
    data[999] = data[SIZE - 1] = 1;
    struct phema_writer *writer = NULL;
    assert_ok(phema_writer_open(&writer, path, SIZE, &quick, &err), &err);
    assert_ok(phema_writer_write(writer, 0, data, 1000, &err), &err);
    for (size_t at = 1000; at < SIZE; at += PIECE)
        assert_ok(
            phema_writer_write(writer, at, data + at, at + PIECE < SIZE ? PIECE : SIZE - at, &err),
            &err);
    assert_ok(phema_writer_commit(writer, &err), &err);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    size_t size = 0;
    uint8_t *found = support_read(path, &size);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(size, SIZE);
    assert_memory_equal(found, data, SIZE);
    assert_in_range(st.st_blocks * 512, 1, 64 << 10);
    free(found);
    free(data);
}

/* A single byte among zeros is kept, wherever in its block it is. */
static void a_byte_among_zeros_is_kept(void **state)
{
    (void)state;
    enum { BLOCK = 4096, SIZE = 64 * BLOCK };
    static const size_t places[] = {0, 1, BLOCK / 2, BLOCK - 2, BLOCK - 1};
    struct phema_error err = {0};
    char *path = support_tmp_path("lone");
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        uint8_t *data = calloc(1, SIZE);
        assert_non_null(data);
        data[(size_t)20 * BLOCK + places[i]] = 1;
        struct phema_writer *writer = NULL;
        assert_ok(phema_writer_open(&writer, path, SIZE, &quick, &err), &err);
        assert_ok(phema_writer_write(writer, 0, data, SIZE, &err), &err);
        assert_ok(phema_writer_commit(writer, &err), &err);
        size_t size = 0;
        uint8_t *read = support_read(path, &size);
        assert_int_equal(size, SIZE);
        assert_memory_equal(read, data, SIZE);
        assert_int_equal(unlink(path), 0);
        free(read);
        free(data);
    }
    free(path);
}

static void abandon_leaves_nothing(void **state)
{
    (void)state;
    struct phema_error err = {0};
    char *path = support_tmp_path("abandoned");
    char *partial = support_tmp_path("abandoned.partial");
    struct phema_writer *writer = NULL;
    assert_ok(phema_writer_open(&writer, path, 100, &quick, &err), &err);
    phema_writer_abandon(writer);
    phema_writer_abandon(NULL);
    assert_false(exists(path));
    assert_false(exists(partial));
    free(path);
    free(partial);
}

static void an_existing_file_is_refused_and_kept_unless_replacing(void **state)
{
    (void)state;
    struct phema_error err = {0};
    char *path = support_tmp_path("existing");
    support_write(path, "old", 3);
    struct phema_writer *writer = NULL;
    assert_fails(phema_writer_open(&writer, path, 3, &quick, &err), PHEMA_ERR_OUTPUT, &err,
                 "exists");
    static const struct phema_writer_options forced = {.replaces = true, .syncs = false};
    assert_ok(phema_writer_open(&writer, path, 3, &forced, &err), &err);
    assert_ok(phema_writer_write(writer, 0, "new", 3, &err), &err);
    assert_ok(phema_writer_commit(writer, &err), &err);
    size_t size = 0;
    uint8_t *data = support_read(path, &size);
    assert_memory_equal(data, "new", 3);
    free(data);
    free(path);
}

/* abandon removes a published file and restores the replaced one. After commit, the new file
 * remains. */
static void a_published_file_can_be_abandoned(void **state)
{
    (void)state;
    struct phema_error err = {0};
    static const struct phema_writer_options forced = {.replaces = true, .syncs = true};
    char *path = support_tmp_path("for_now");
    char *partial = support_tmp_path("for_now.partial");
    static const char *const before[] = {NULL, "old"};
    for (size_t i = 0; i < 2; i++)
        for (int commits = 0; commits < 2; commits++) {
            (void)unlink(path);
            if (before[i])
                support_write(path, before[i], 3);
            struct phema_writer *writer = NULL;
            assert_ok(phema_writer_open(&writer, path, 3, &forced, &err), &err);
            assert_ok(phema_writer_write(writer, 0, "new", 3, &err), &err);
            assert_ok(phema_writer_finish(writer, &err), &err);
            assert_true(exists(partial));
            assert_ok(phema_writer_publish(writer, &err), &err);
            size_t size = 0;
            uint8_t *data = support_read(path, &size);
            assert_memory_equal(data, "new", 3);
            free(data);
            if (commits)
                assert_ok(phema_writer_commit(writer, &err), &err);
            else
                phema_writer_abandon(writer);
            assert_false(exists(partial));
            assert_int_equal(exists(path), commits || before[i]);
            if (!exists(path))
                continue;
            data = support_read(path, &size);
            assert_memory_equal(data, commits ? "new" : "old", 3);
            free(data);
        }
    free(path);
    free(partial);
}

/* Only a leftover is replaced. */
static void a_leftover_is_reported(void **state)
{
    (void)state;
    struct phema_error err = {0};
    char *path = support_tmp_path("left");
    char *partial = support_tmp_path("left.partial");
    for (int is_left = 0; is_left < 2; is_left++) {
        if (is_left)
            support_write(partial, "left", 4);
        struct phema_writer *writer = NULL;
        assert_ok(phema_writer_open(&writer, path, 3, &quick, &err), &err);
        assert_int_equal(phema_writer_took_over(writer), is_left);
        phema_writer_abandon(writer);
        assert_false(exists(partial));
    }
    free(path);
    free(partial);
}

static void a_file_that_appears_meanwhile_is_not_replaced(void **state)
{
    (void)state;
    struct phema_error err = {0};
    char *path = support_tmp_path("race");
    char *partial = support_tmp_path("race.partial");
    struct phema_writer *writer = NULL;
    assert_ok(phema_writer_open(&writer, path, 1, &quick, &err), &err);
    support_write(path, "theirs", 6);
    assert_fails(phema_writer_commit(writer, &err), PHEMA_ERR_OUTPUT, &err, "appeared");
    size_t size = 0;
    uint8_t *data = support_read(path, &size);
    assert_int_equal(size, 6);
    assert_false(exists(partial));
    free(data);
    free(path);
    free(partial);
}

static void a_second_run_is_refused_and_a_leftover_taken_over(void **state)
{
    (void)state;
    struct phema_error err = {0};
    char *path = support_tmp_path("busy");
    char *partial = support_tmp_path("busy.partial");
    struct phema_writer *first = NULL, *second = NULL;
    assert_ok(phema_writer_open(&first, path, 10, &quick, &err), &err);
    assert_fails(phema_writer_open(&second, path, 10, &quick, &err), PHEMA_ERR_OUTPUT, &err,
                 "another run");
    assert_true(exists(partial)); /* that of the first writer */
    phema_writer_abandon(first);

    support_write(partial, "leftover of a killed run", 24);
    assert_ok(phema_writer_open(&second, path, 2, &quick, &err), &err);
    assert_ok(phema_writer_write(second, 0, "ok", 2, &err), &err);
    assert_ok(phema_writer_commit(second, &err), &err);
    size_t size = 0;
    uint8_t *data = support_read(path, &size);
    assert_int_equal(size, 2);
    free(data);
    free(path);
    free(partial);
}

/* A link in place of the partial file: its target is neither created nor emptied. */
static void a_link_in_the_partials_place_is_not_followed(void **state)
{
    (void)state;
    struct phema_error err = {0};
    char *path = support_tmp_path("linked");
    char *partial = support_tmp_path("linked.partial");
    char *elsewhere = support_tmp_path("elsewhere");
    struct phema_writer *writer = NULL;
    assert_int_equal(symlink(elsewhere, partial), 0);
    assert_fails(phema_writer_open(&writer, path, 10, &quick, &err), PHEMA_ERR_OUTPUT, &err,
                 "linked.partial: is not a regular file; remove it");
    assert_false(exists(elsewhere));
    support_write(elsewhere, "kept", 4);
    assert_fails(phema_writer_open(&writer, path, 10, &quick, &err), PHEMA_ERR_OUTPUT, &err,
                 "linked.partial: is not a regular file; remove it");
    size_t size = 0;
    uint8_t *data = support_read(elsewhere, &size);
    assert_int_equal(size, 4);
    assert_false(exists(path));
    free(data);
    free(path);
    free(partial);
    free(elsewhere);
}

static void a_missing_directory_is_named(void **state)
{
    (void)state;
    struct phema_error err = {0};
    struct phema_writer *writer = NULL;
    char *path = support_tmp_path("no/such/file");
    assert_fails(phema_writer_open(&writer, path, 1, &quick, &err), PHEMA_ERR_OUTPUT, &err,
                 "no/such/file");
    free(path);
}

static void a_size_beyond_the_disk_is_refused_at_once(void **state)
{
    (void)state;
    struct phema_error err = {0};
    struct phema_writer *writer = NULL;
    char *path = support_tmp_path("huge");
    char *partial = support_tmp_path("huge.partial");
    assert_fails(phema_writer_open(&writer, path, (uint64_t)1 << 62, &quick, &err),
                 PHEMA_ERR_OUTPUT, &err, "huge");
    assert_false(exists(partial));
    free(path);
    free(partial);
}

/* In a child: opens the output and dies by the signal while writing. */
static void a_signal_removes_the_partial_file(void **state)
{
    (void)state;
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
        char *path = support_tmp_path("killed");
        char *partial = support_tmp_path("killed.partial");
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            struct phema_error err = {0};
            struct phema_writer *writer = NULL;
            phema_cleanup_install_handlers();
            if (phema_writer_open(&writer, path, 1000, &quick, &err) || !exists(partial))
                _exit(99);
            (void)raise(signals[i]);
            _exit(98);
        }
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), signals[i]);
        assert_false(exists(path));
        assert_false(exists(partial));
        free(path);
        free(partial);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(commit_publishes_bytes_written_in_any_order),
    cmocka_unit_test(zeros_become_holes),
    cmocka_unit_test(zeros_that_share_blocks_are_not_written),
    cmocka_unit_test(a_byte_among_zeros_is_kept),
    cmocka_unit_test(abandon_leaves_nothing),
    cmocka_unit_test(an_existing_file_is_refused_and_kept_unless_replacing),
    cmocka_unit_test(a_published_file_can_be_abandoned),
    cmocka_unit_test(a_leftover_is_reported),
    cmocka_unit_test(a_file_that_appears_meanwhile_is_not_replaced),
    cmocka_unit_test(a_second_run_is_refused_and_a_leftover_taken_over),
    cmocka_unit_test(a_link_in_the_partials_place_is_not_followed),
    cmocka_unit_test(a_missing_directory_is_named),
    cmocka_unit_test(a_size_beyond_the_disk_is_refused_at_once),
    cmocka_unit_test(a_signal_removes_the_partial_file),
};
TEST_GROUP(tests)
