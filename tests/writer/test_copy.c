// SPDX-License-Identifier: Apache-2.0
/* Files that begin as a copy equal the source except for changed bytes, for every way of copying.
 * Failures leave no file. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "paths.h"
#include "phema/cleanup.h"
#include "support.h"
#include "writer_internal.h"

#define SOURCE_BYTES (3 * 1024 * 1024 + 17)

static const struct phema_writer_options quick = {0};
static const struct phema_writer_options apart = {.owns_blocks = true, .syncs = true};

/* A file of bytes without a simple pattern. The caller frees the path. */
static char *make_source(uint8_t **content)
{
    uint8_t *bytes = malloc(SOURCE_BYTES);
    assert_non_null(bytes);
    uint64_t state = 1;
    for (size_t i = 0; i < SOURCE_BYTES; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        bytes[i] = (uint8_t)(state >> 56);
    }
    char *path = support_tmp_path("source");
    support_write(path, bytes, SOURCE_BYTES);
    *content = bytes;
    return path;
}

static void check_content(const char *path, const uint8_t *content)
{
    size_t size = 0;
    uint8_t *data = support_read(path, &size);
    assert_int_equal(size, SOURCE_BYTES);
    assert_memory_equal(data, content, SOURCE_BYTES);
    free(data);
}

static void a_copy_equals_its_source_except_for_written_bytes(void **state)
{
    (void)state;
    struct phema_error err = {0};
    uint8_t *content = NULL;
    char *source = make_source(&content);
    char *path = support_tmp_path("copy");
    const struct phema_writer_options *const options[] = {&quick, &apart};
    for (size_t i = 0; i < ARRAY_LEN(options); i++) {
        struct phema_writer *writer = NULL;
        assert_ok(phema_writer_open_copy(&writer, path, source, SOURCE_BYTES, options[i], &err),
                  &err);
        uint8_t read[9] = {0};
        assert_ok(phema_writer_read(writer, SOURCE_BYTES - 9, read, 9, &err), &err);
        assert_memory_equal(read, content + SOURCE_BYTES - 9, 9);
        assert_ok(phema_writer_write(writer, 1000000, "changed", 7, &err), &err);
        assert_ok(phema_writer_read(writer, 1000000, read, 9, &err), &err);
        assert_memory_equal(read, "changed", 7);
        assert_int_equal(read[7], content[1000007]);
        assert_fails(phema_writer_read(writer, SOURCE_BYTES - 3, read, 9, &err), PHEMA_ERR_OUTPUT,
                     &err, "cut short");
        assert_ok(phema_writer_commit(writer, &err), &err);

        check_content(source, content); /* unchanged by writes */
        uint8_t original[7];
        memcpy(original, content + 1000000, 7);
        memcpy(content + 1000000, "changed", 7);
        check_content(path, content);
        memcpy(content + 1000000, original, 7);
        assert_int_equal(unlink(path), 0);
    }
    free(content);
    free(source);
    free(path);
}

/* The mode is that of a new file, not the source's. */
static void the_mode_follows_the_umask(void **state)
{
    (void)state;
    struct phema_error err = {0};
    uint8_t *content = NULL;
    char *source = make_source(&content);
    char *path = support_tmp_path("mode");
    assert_int_equal(chmod(source, 0400), 0);
    mode_t old = umask(0027);
    struct phema_writer *writer = NULL;
    assert_ok(phema_writer_open_copy(&writer, path, source, SOURCE_BYTES, &quick, &err), &err);
    assert_ok(phema_writer_commit(writer, &err), &err);
    (void)umask(old);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0640);
    assert_int_equal(chmod(source, 0600), 0);
    free(content);
    free(source);
    free(path);
}

static void a_mapping_writes_the_file(void **state)
{
    (void)state;
    struct phema_error err = {0};
    uint8_t *content = NULL;
    char *source = make_source(&content);
    char *path = support_tmp_path("mapped");
    struct phema_writer *writer = NULL;
    assert_ok(phema_writer_open_copy(&writer, path, source, SOURCE_BYTES, &apart, &err), &err);
    struct stat st;
    char *partial = support_tmp_path("mapped.partial");
    assert_int_equal(stat(partial, &st), 0);
    assert_true((uint64_t)st.st_blocks * 512 >= SOURCE_BYTES); /* no shared blocks */
    uint8_t *map = NULL;
    uint8_t *again = NULL;
    assert_ok(phema_writer_map(&map, writer, &err), &err);
    assert_ok(phema_writer_map(&again, writer, &err), &err);
    assert_ptr_equal(map, again);
    assert_memory_equal(map, content, SOURCE_BYTES);
    for (size_t i = 5; i < SOURCE_BYTES; i += 4099)
        content[i] = map[i] = (uint8_t)i;
    uint8_t byte = 0;
    assert_ok(phema_writer_read(writer, 5, &byte, 1, &err), &err);
    assert_int_equal(byte, 5);
    assert_ok(phema_writer_commit(writer, &err), &err);
    check_content(path, content);

    assert_ok(phema_writer_open(&writer, partial, 10, &quick, &err), &err);
    assert_ok(phema_writer_map(&map, writer, &err), &err);
    phema_writer_abandon(writer);
    assert_false(exists(partial));
    free(partial);
    free(content);
    free(source);
    free(path);
}

/* Each way of copying alone. Filesystems offer different ways, but the bytes must be the same. */
static void every_way_gives_the_same_bytes(void **state)
{
    (void)state;
    struct phema_error err = {0};
    /* from another filesystem, where the kernel may refuse (/proc reports false sizes) */
    int descriptor = open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (descriptor < 0)
        skip();
    uint8_t *content = NULL;
    char *source = make_source(&content);
    char *path = support_tmp_path("way");
    assert_int_equal(write(descriptor, content, SOURCE_BYTES), SOURCE_BYTES);
    struct phema_writer *writer = NULL;
    assert_ok(phema_writer_open(&writer, path, 0, &quick, &err), &err);
    assert_ok(writer_copy(writer, descriptor, "shm", SOURCE_BYTES, &err), &err);
    assert_ok(phema_writer_commit(writer, &err), &err);
    check_content(path, content);
    assert_int_equal(close(descriptor), 0);
    free(content);
    free(source);
    free(path);
}

static void faults_of_a_source_are_reported(void **state)
{
    (void)state;
    struct phema_error err = {0};
    uint8_t *content = NULL;
    char *source = make_source(&content);
    char *path = support_tmp_path("refused");
    char *partial = support_tmp_path("refused.partial");
    char *fifo = support_tmp_path("fifo");
    char *missing = support_tmp_path("missing");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    struct phema_writer *writer = NULL;
    assert_fails(phema_writer_open_copy(&writer, path, missing, 1, &quick, &err), PHEMA_ERR_FILE,
                 &err, "missing: cannot be opened");
    assert_fails(phema_writer_open_copy(&writer, path, fifo, 1, &quick, &err), PHEMA_ERR_FILE, &err,
                 "fifo: is not a regular file");
    assert_fails(phema_writer_open_copy(&writer, path, support_tmp(), 1, &quick, &err),
                 PHEMA_ERR_FILE, &err, "is not a regular file");
    assert_fails(phema_writer_open_copy(&writer, path, source, SOURCE_BYTES + 1, &quick, &err),
                 PHEMA_ERR_FILE, &err, "source: the file was cut short");
    assert_fails(phema_writer_open_copy(&writer, source, source, SOURCE_BYTES, &quick, &err),
                 PHEMA_ERR_OUTPUT, &err, "source: exists");
    assert_null(writer);
    assert_false(exists(partial));

    /* shorter than a moment ago, which the copy detects */
    for (int i = 0; i < 2; i++) {
        int descriptor = open(source, O_RDONLY | O_CLOEXEC);
        assert_ok(phema_writer_open(&writer, path, 0, i ? &apart : &quick, &err), &err);
        assert_fails(writer_copy(writer, descriptor, "it", SOURCE_BYTES + 1, &err), PHEMA_ERR_FILE,
                     &err, "it: the file was cut short");
        phema_writer_abandon(writer);
        assert_int_equal(close(descriptor), 0);
        assert_false(exists(partial));
    }
    char *strings[] = {source, path, partial, fifo, missing};
    for (size_t i = 0; i < ARRAY_LEN(strings); i++)
        free(strings[i]);
    free(content);
}

static void a_second_run_is_refused(void **state)
{
    (void)state;
    struct phema_error err = {0};
    uint8_t *content = NULL;
    char *source = make_source(&content);
    char *path = support_tmp_path("busy");
    struct phema_writer *first = NULL;
    struct phema_writer *second = NULL;
    assert_ok(phema_writer_open_copy(&first, path, source, SOURCE_BYTES, &quick, &err), &err);
    assert_fails(phema_writer_open_copy(&second, path, source, SOURCE_BYTES, &quick, &err),
                 PHEMA_ERR_OUTPUT, &err, "another run");
    assert_ok(phema_writer_commit(first, &err), &err);
    check_content(path, content);
    free(content);
    free(source);
    free(path);
}

static int wait_for(pid_t child)
{
    int status = 0;
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void a_limit_on_sizes_is_reported_with_the_needed_size(void **state)
{
    (void)state;
    uint8_t *content = NULL;
    char *source = make_source(&content);
    char *path = support_tmp_path("limited");
    char *partial = support_tmp_path("limited.partial");
    for (int i = 0; i < 2; i++) {
        pid_t child = fork();
        if (child == 0) {
            struct phema_error err = {0};
            struct phema_writer *writer = NULL;
            const struct rlimit limit = {1 << 20, 1 << 20};
            (void)signal(SIGXFSZ, SIG_IGN);
            if (setrlimit(RLIMIT_FSIZE, &limit))
                _exit(90);
            if (phema_writer_open_copy(&writer, path, source, SOURCE_BYTES, i ? &apart : &quick,
                                       &err) != PHEMA_ERR_OUTPUT)
                _exit(91);
            _exit(strstr(err.message, "limited: ") && strstr(err.message, "3.00 MiB are needed")
                      ? 42
                      : 92);
        }
        int status = wait_for(child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 42);
        assert_false(exists(partial));
        assert_false(exists(path));
    }
    free(content);
    free(source);
    free(path);
    free(partial);
}

/* The mapped output loses its pages, as on a full disk. The message names it. */
static void a_bus_error_in_an_output_names_it(void **state)
{
    (void)state;
    uint8_t *content = NULL;
    char *source = make_source(&content);
    char *path = support_tmp_path("bus");
    char *partial = support_tmp_path("bus.partial");
    char *said = support_tmp_path("said");
    pid_t child = fork();
    if (child == 0) {
        struct phema_error err = {0};
        struct phema_writer *writer = NULL;
        uint8_t *map = NULL;
        int out = open(said, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        phema_cleanup_install_handlers();
        if (out < 0 || dup2(out, STDERR_FILENO) < 0 ||
            phema_writer_open_copy(&writer, path, source, SOURCE_BYTES, &apart, &err) ||
            phema_writer_map(&map, writer, &err) || truncate(partial, 4096))
            _exit(90);
        *(volatile uint8_t *)(map + 100000) = 1;
        _exit(91);
    }
    int status = wait_for(child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), PHEMA_ERR_OUTPUT);
    assert_false(exists(partial));
    assert_false(exists(path));
    size_t size = 0;
    uint8_t *sentence = support_read(said, &size);
    assert_non_null(strstr((char *)sentence, "bus: no space is left"));
    assert_non_null(strstr((char *)sentence, "nothing was written\n"));
    free(sentence);
    char *strings[] = {source, path, partial, said};
    for (size_t i = 0; i < ARRAY_LEN(strings); i++)
        free(strings[i]);
    free(content);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_copy_equals_its_source_except_for_written_bytes),
    cmocka_unit_test(the_mode_follows_the_umask),
    cmocka_unit_test(a_mapping_writes_the_file),
    cmocka_unit_test(every_way_gives_the_same_bytes),
    cmocka_unit_test(faults_of_a_source_are_reported),
    cmocka_unit_test(a_second_run_is_refused),
    cmocka_unit_test(a_limit_on_sizes_is_reported_with_the_needed_size),
    cmocka_unit_test(a_bus_error_in_an_output_names_it),
};
TEST_GROUP(tests)
