// SPDX-License-Identifier: Apache-2.0
/* A published file is on disk: every file is synced before its rename, and its directory after the
 * rename. This file defines the relevant calls before those of libc. It records each of them and
 * makes some fail. */
#include "phema/writer.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "part.h"
#include "paths.h"
#include "support.h"

static const struct phema_writer_options durable = {.syncs = true};
static const struct phema_writer_options hasty = {.syncs = false};
static const struct phema_writer_options forced = {.syncs = true, .replaces = true};

/* ---- Recorded calls ---- */

static char calls[4096]; /* a verb and a file name per call */

static struct failures {
    const char *synced, *closed; /* calls for the file with this end of its path fail */
    size_t longest_write;        /* longer writes are cut, and every second one is interrupted */
    size_t longest_copy;         /* copy_file_range copies this much, then nothing */
    size_t end_of_source;        /* pread finds no byte from here on */
} failures;

static void *next(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

/* The last part of the path, which is enough to tell the names in a test apart. */
static void note(const char *word, const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t used = strlen(calls);
    (void)snprintf(calls + used, sizeof(calls) - used, "%s%s %.100s", used ? ", " : "", word,
                   slash ? slash + 1 : path);
}

static void path_of(char *path, size_t size, int descriptor)
{
    char link[64];
    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", descriptor);
    ssize_t n = readlink(link, path, size - 1);
    path[n > 0 ? n : 0] = '\0';
}

static bool ends_with(const char *path, const char *end)
{
    size_t size = strlen(path);
    return end && size >= strlen(end) && strcmp(path + size - strlen(end), end) == 0;
}

int fsync(int descriptor)
{
    int (*real)(int) = NULL;
    *(void **)&real = next("fsync");
    char path[4096];
    path_of(path, sizeof(path), descriptor);
    note("sync", path);
    if (!ends_with(path, failures.synced))
        return real(descriptor);
    errno = EIO;
    return -1;
}

int close(int descriptor)
{
    int (*real)(int) = NULL;
    *(void **)&real = next("close");
    char path[4096];
    path_of(path, sizeof(path), descriptor);
    bool fails = ends_with(path, failures.closed);
    int result = real(descriptor);
    if (!fails)
        return result;
    errno = EDQUOT;
    return -1;
}

int rename(const char *from, const char *to)
{
    int (*real)(const char *, const char *) = NULL;
    *(void **)&real = next("rename");
    note("rename", to);
    return real(from, to);
}

int renameat2(int from_directory, const char *from, int to_directory, const char *to,
              unsigned flags)
{
    int (*real)(int, const char *, int, const char *, unsigned) = NULL;
    *(void **)&real = next("renameat2");
    note("rename", to);
    return real(from_directory, from, to_directory, to, flags);
}

int unlink(const char *path)
{
    int (*real)(const char *) = NULL;
    *(void **)&real = next("unlink");
    note("remove", path);
    return real(path);
}

int unlinkat(int directory, const char *path, int flags)
{
    int (*real)(int, const char *, int) = NULL;
    *(void **)&real = next("unlinkat");
    note("remove", path);
    return real(directory, path, flags);
}

ssize_t pwrite(int descriptor, const void *data, size_t size, off_t offset)
{
    static unsigned n_calls;
    ssize_t (*real)(int, const void *, size_t, off_t) = NULL;
    *(void **)&real = next("pwrite64");
    if (failures.longest_write && n_calls++ % 2 == 0) {
        errno = EINTR;
        return -1;
    }
    if (failures.longest_write && size > failures.longest_write)
        size = failures.longest_write;
    return real(descriptor, data, size, offset);
}

ssize_t copy_file_range(int from, off_t *from_offset, int to, off_t *to_offset, size_t size,
                        unsigned flags)
{
    ssize_t (*real)(int, off_t *, int, off_t *, size_t, unsigned) = NULL;
    *(void **)&real = next("copy_file_range");
    if (!failures.longest_copy)
        return real(from, from_offset, to, to_offset, size, flags);
    if (*from_offset > 0) {
        errno = EXDEV;
        return -1;
    }
    return real(from, from_offset, to, to_offset, failures.longest_copy, flags);
}

ssize_t pread(int descriptor, void *data, size_t size, off_t offset)
{
    ssize_t (*real)(int, void *, size_t, off_t) = NULL;
    *(void **)&real = next("pread64");
    if (failures.end_of_source && (size_t)offset >= failures.end_of_source)
        return 0;
    return real(descriptor, data, size, offset);
}

static void begin(void)
{
    calls[0] = '\0';
    failures = (struct failures){0};
}

/* ---- Files ---- */

static const char *tmp_name(void)
{
    return strrchr(support_tmp(), '/') + 1;
}

static void assert_calls(const char *wanted)
{
    assert_string_equal(calls, wanted);
}

/* The name of the directory differs between runs. */
static void assert_calls_then_directory(const char *before, const char *after)
{
    char wanted[1024];
    (void)snprintf(wanted, sizeof(wanted), "%s, sync %s%s", before, tmp_name(), after);
    assert_calls(wanted);
}

static void assert_content(const char *path, const void *content, size_t wanted)
{
    size_t size = 0;
    uint8_t *data = support_read(path, &size);
    assert_int_equal(size, wanted);
    assert_memory_equal(data, content, size);
    free(data);
}

static struct phema_writer *
open_written(const char *path, const struct phema_writer_options *options, struct phema_error *err)
{
    struct phema_writer *writer = NULL;
    assert_ok(phema_writer_open(&writer, path, 8, options, err), err);
    assert_ok(phema_writer_write(writer, 0, "12345678", 8, err), err);
    return writer;
}

static enum phema_status write_file(const char *path, const struct phema_writer_options *options,
                                    struct phema_error *err)
{
    return phema_writer_commit(open_written(path, options, err), err);
}

static void a_file_is_synced_then_named_then_its_directory_is_synced(void **state)
{
    (void)state;
    struct phema_error err = {0};
    char *path = support_tmp_path("file");
    begin();
    assert_ok(write_file(path, &durable, &err), &err);
    assert_calls_then_directory("sync file.partial, rename file", "");
    begin();
    assert_ok(write_file(path, &forced, &err), &err);
    assert_calls_then_directory("sync file.partial, rename file", "");
    free(path);
}

static void files_are_synced_early_and_their_directory_once(void **state)
{
    (void)state;
    struct phema_error err = {0};
    char *paths[2] = {support_tmp_path("one"), support_tmp_path("two")};
    struct phema_writer *writers[2];
    begin();
    for (size_t i = 0; i < 2; i++)
        writers[i] = open_written(paths[i], &durable, &err);
    for (size_t i = 0; i < 2; i++)
        phema_writer_sync(writers[i]);
    phema_writer_leave_entry(writers[0]);
    for (size_t i = 0; i < 2; i++)
        assert_ok(phema_writer_commit(writers[i], &err), &err);
    assert_calls_then_directory("sync one.partial, sync two.partial, rename one, rename two", "");
    free(paths[0]);
    free(paths[1]);
}

/* The kernel tells of a failed write once: a second sync would succeed. */
static void a_failed_early_sync_fails_the_commit(void **state)
{
    (void)state;
    struct phema_error err = {0};
    char *path = support_tmp_path("early"), *partial = with_end(path, ".partial");
    begin();
    struct phema_writer *writer = open_written(path, &durable, &err);
    failures.synced = "early.partial";
    phema_writer_sync(writer);
    failures.synced = NULL;
    assert_fails(phema_writer_commit(writer, &err), PHEMA_ERR_OUTPUT, &err,
                 "early: cannot be synced: Input/output error");
    assert_false(exists(path) || exists(partial));
    free(partial);
    free(path);
}

static void without_syncs_nothing_is_synced(void **state)
{
    (void)state;
    struct phema_error err = {0};
    char *path = support_tmp_path("hasty");
    begin();
    assert_ok(write_file(path, &hasty, &err), &err);
    assert_calls("rename hasty");
    free(path);
}

/* A file that may not be on disk never gets its final name, and the partial file is removed. */
static void failures_of_sync_or_close_are_reported(void **state)
{
    (void)state;
    struct phema_error err = {0};
    char *path = support_tmp_path("unsafe"), *partial = with_end(path, ".partial");
    begin();
    failures.synced = "unsafe.partial";
    assert_fails(write_file(path, &durable, &err), PHEMA_ERR_OUTPUT, &err,
                 "unsafe: cannot be synced: Input/output error");
    assert_false(exists(path) || exists(partial));
    begin();
    failures.closed = "unsafe.partial";
    assert_fails(write_file(path, &hasty, &err), PHEMA_ERR_OUTPUT, &err,
                 "unsafe: cannot be written: Disk quota exceeded");
    assert_false(exists(path) || exists(partial));
    begin();
    failures.synced = tmp_name();
    assert_fails(write_file(path, &durable, &err), PHEMA_ERR_OUTPUT, &err,
                 "unsafe: its directory cannot be synced: Input/output error");
    assert_false(exists(partial));
    begin();
    free(path);
    free(partial);
}

static void short_or_interrupted_writes_continue(void **state)
{
    (void)state;
    struct phema_error err = {0};
    char *path = support_tmp_path("short");
    begin();
    failures.longest_write = 3;
    assert_ok(write_file(path, &hasty, &err), &err);
    begin();
    assert_content(path, "12345678", 8);
    free(path);
}

/* ---- Copies ---- */

enum { SOURCE_BYTES = 3 << 20 };

static uint8_t *write_source(const char *path)
{
    uint8_t *content = malloc(SOURCE_BYTES);
    assert_non_null(content);
    uint64_t random = 1;
    for (size_t i = 0; i < SOURCE_BYTES; i++)
        content[i] = (uint8_t)support_random(&random);
    support_write(path, content, SOURCE_BYTES);
    return content;
}

static void a_copy_continues_where_the_kernel_stopped(void **state)
{
    (void)state;
    struct phema_error err = {0};
    char *source = support_tmp_path("source"), *path = support_tmp_path("copied");
    uint8_t *content = write_source(source);
    struct phema_writer *writer = NULL;
    begin();
    failures.longest_copy = 100003;
    assert_ok(phema_writer_open_copy(&writer, path, source, SOURCE_BYTES, &durable, &err), &err);
    assert_ok(phema_writer_commit(writer, &err), &err);
    assert_calls_then_directory("sync copied.partial, rename copied", "");
    begin();
    assert_content(path, content, SOURCE_BYTES);
    free(content);
    free(source);
    free(path);
}

static void a_source_that_ends_early_is_refused(void **state)
{
    (void)state;
    struct phema_error err = {0};
    char *source = support_tmp_path("cut"), *path = support_tmp_path("cut_copy");
    uint8_t *content = write_source(source);
    struct phema_writer *writer = NULL;
    struct phema_writer_options through_memory = {.owns_blocks = true};
    begin();
    failures.end_of_source = 1 << 20;
    assert_fails(phema_writer_open_copy(&writer, path, source, SOURCE_BYTES, &through_memory, &err),
                 PHEMA_ERR_FILE, &err, "cut: the file was cut short while it was copied");
    begin();
    assert_false(exists(path));
    free(content);
    free(source);
    free(path);
}

/* ---- Directories ---- */

static enum phema_status write_directory(const char *path,
                                         const struct phema_writer_options *options,
                                         struct phema_error *err)
{
    struct phema_writer_directory *directory = NULL;
    struct phema_writer *writer = NULL;
    assert_ok(phema_writer_directory_open(&directory, path, options, err), err);
    for (const char *name = "ab"; *name; name++) {
        const char file[] = {*name, '\0'};
        assert_ok(phema_writer_directory_add(&writer, directory, file, NULL, 1, err), err);
        assert_ok(phema_writer_write(writer, 0, name, 1, err), err);
        assert_ok(phema_writer_commit(writer, err), err);
    }
    return phema_writer_directory_commit(directory, err);
}

/* The old output is removed once the new one is durable. */
static void all_of_a_directory_is_synced_before_it_is_named(void **state)
{
    (void)state;
    struct phema_error err = {0};
    char *path = support_tmp_path("shards");
    begin();
    assert_ok(write_directory(path, &durable, &err), &err);
    assert_calls_then_directory("sync a, sync b, sync shards.partial, rename shards", "");
    begin();
    assert_ok(write_directory(path, &forced, &err), &err);
    char *first = strstr(calls, "rename"), *synced = strstr(calls, tmp_name());
    assert_memory_equal(calls, "sync a, sync b, sync shards.partial, ", 37);
    assert_non_null(first);
    assert_non_null(synced);
    const char *removed = strstr(calls, "remove");
    assert_non_null(removed);
    assert_true(first < synced && synced < removed);
    free(path);
}

static void a_directory_that_cannot_be_synced_is_not_named(void **state)
{
    (void)state;
    struct phema_error err = {0};
    char *path = support_tmp_path("unsynced"), *partial = with_end(path, ".partial");
    begin();
    failures.synced = "unsynced.partial";
    assert_fails(write_directory(path, &durable, &err), PHEMA_ERR_OUTPUT, &err,
                 "unsynced: cannot be synced: Input/output error");
    assert_false(exists(path) || exists(partial));
    begin();
    free(path);
    free(partial);
}

/* ---- Parts ---- */

static const struct phema_writer_part_file one_file = {NULL, 8};

static enum phema_status write_part(const char *path, uint64_t part, struct phema_error *err)
{
    struct phema_writer_part_options options = {.part = part,
                                                .n_parts = 2,
                                                .digest = "0123456789abcdef",
                                                .files = &one_file,
                                                .n_files = 1,
                                                .syncs = true};
    struct phema_writer_part *opened = NULL;
    struct phema_writer *writer = NULL;
    assert_ok(phema_writer_part_open(&opened, path, &options, err), err);
    assert_ok(phema_writer_part_file(&writer, opened, 0, err), err);
    begin(); /* earlier calls concern other data */
    assert_ok(phema_writer_write(writer, 4 * (part - 1), "1234", 4, err), err);
    assert_ok(phema_writer_commit(writer, err), err);
    return phema_writer_part_finish(opened, err);
}

/* A part syncs its data before its marker reports it as done. join syncs data from other machines
 * again, and removes markers only when the output is durable. */
static void a_part_is_durable_before_its_marker_is_done(void **state)
{
    (void)state;
    struct phema_error err = {0};
    char *path = support_tmp_path("parts");
    assert_ok(write_part(path, 1, &err), &err);
    assert_calls_then_directory("sync parts.partial", ", sync parts.part-1-of-2");
    assert_ok(write_part(path, 2, &err), &err);
    begin();
    struct phema_writer_join *join = NULL;
    assert_ok(phema_writer_join_open(&join, path, &durable, &err), &err);
    assert_ok(phema_writer_join_commit(join, &err), &err);
    char after[256];
    (void)snprintf(after, sizeof(after),
                   ", remove parts.part-1-of-2, remove parts.part-2-of-2, sync %s", tmp_name());
    assert_calls_then_directory("sync parts.partial, rename parts", after);
    begin();
    assert_content(path, "12341234", 8);
    free(path);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_file_is_synced_then_named_then_its_directory_is_synced),
    cmocka_unit_test(files_are_synced_early_and_their_directory_once),
    cmocka_unit_test(a_failed_early_sync_fails_the_commit),
    cmocka_unit_test(without_syncs_nothing_is_synced),
    cmocka_unit_test(failures_of_sync_or_close_are_reported),
    cmocka_unit_test(short_or_interrupted_writes_continue),
    cmocka_unit_test(a_copy_continues_where_the_kernel_stopped),
    cmocka_unit_test(a_source_that_ends_early_is_refused),
    cmocka_unit_test(all_of_a_directory_is_synced_before_it_is_named),
    cmocka_unit_test(a_directory_that_cannot_be_synced_is_not_named),
    cmocka_unit_test(a_part_is_durable_before_its_marker_is_done),
};
TEST_GROUP(tests)
