// SPDX-License-Identifier: Apache-2.0
/* Mapped files: refusals, change detection, and truncation of a mapped file. Cases that end the
 * process run in a child. */
#include "phema/mapped_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "phema/cleanup.h"
#include "support.h"

static void assert_refused(const char *path, const char *part)
{
    struct phema_file *file = NULL;
    struct phema_error err = {0};
    assert_fails(phema_file_open(&file, path, &err), PHEMA_ERR_FILE, &err, part);
    assert_null(file);
}

static struct phema_file *open_ok(const char *path)
{
    struct phema_file *file = NULL;
    struct phema_error err = {0};
    assert_ok(phema_file_open(&file, path, &err), &err);
    return file;
}

static void a_file_is_mapped_whole(void **state)
{
    (void)state;
    char *path = support_tmp_path("whole.bin");
    for (size_t size = 1; size < 20000; size += 4095) {
        uint8_t *data = malloc(size);
        assert_non_null(data);
        for (size_t i = 0; i < size; i++)
            data[i] = (uint8_t)(i * 7 + size);
        support_write(path, data, size);
        struct phema_file *file = open_ok(path);
        struct phema_span span = phema_file_span(file);
        assert_int_equal(span.size, size);
        assert_memory_equal(span.data, data, size);
        assert_string_equal(phema_file_path(file), path);
        phema_file_close(file);
        free(data);
    }
    phema_file_close(NULL);
    free(path);
}

static void links_are_followed(void **state)
{
    (void)state;
    char *path = support_tmp_path("target.bin"), *link = support_tmp_path("link.bin");
    char *dangling = support_tmp_path("dangling.bin");
    support_write(path, "bytes", 5);
    assert_int_equal(symlink("target.bin", link), 0);
    assert_int_equal(symlink("nowhere.bin", dangling), 0);
    struct phema_file *file = open_ok(link);
    assert_memory_equal(phema_file_span(file).data, "bytes", 5);
    phema_file_close(file);
    assert_refused(dangling, "cannot be opened: No such file");
    free(path);
    free(link);
    free(dangling);
}

static void anything_but_a_regular_file_is_refused(void **state)
{
    (void)state;
    char *fifo = support_tmp_path("fifo"), *empty = support_tmp_path("empty.bin");
    char *missing = support_tmp_path("missing.bin");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    support_write(empty, "", 0);
    (void)alarm(20); /* opening a FIFO could hang the test */
    assert_refused(fifo, "not a regular file");
    (void)alarm(0);
    assert_refused(empty, "is empty");
    assert_refused(missing, "No such file");
    assert_refused(support_tmp(), "is a directory");
    assert_refused("/dev/null", "not a regular file");
    assert_refused("", "cannot be opened");
    free(fifo);
    free(empty);
    free(missing);
}

static void an_unreadable_file_is_refused(void **state)
{
    (void)state;
    if (geteuid() == 0)
        skip(); /* root can read everything */
    char *path = support_tmp_path("secret.bin");
    support_write(path, "x", 1);
    assert_int_equal(chmod(path, 0), 0);
    assert_refused(path, "Permission denied");
    free(path);
}

/* A series maps 1000 snapshots at once, so mappings must not keep descriptors. */
static void mappings_hold_no_descriptors(void **state)
{
    (void)state;
    char *path = support_tmp_path("many.bin");
    support_write(path, "x", 1);
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    small = before;
    small.rlim_cur = 32;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &small), 0);
    struct phema_file *files[200];
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        files[i] = open_ok(path);
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        phema_file_close(files[i]);
    /* a lack of descriptors is a lack of resources, not an error of the file */
    int held[32];
    size_t n_held = 0;
    while (n_held < ARRAY_LEN(held) && (held[n_held] = open("/dev/null", O_RDONLY)) >= 0)
        n_held++;
    struct phema_file *file = NULL;
    struct phema_error err = {0};
    enum phema_status status = phema_file_open(&file, path, &err);
    while (n_held > 0)
        (void)close(held[--n_held]);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_fails(status, PHEMA_ERR_RESOURCE, &err, "Too many open files");
    free(path);
}

/* ---- Changes ---- */

static void set_mtime(const char *path, time_t seconds, long nanoseconds)
{
    struct timespec times[2] = {{seconds, nanoseconds}, {seconds, nanoseconds}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void a_changed_file_is_noticed(void **state)
{
    (void)state;
    char *path = support_tmp_path("changing.bin");
    struct phema_error err = {0};
    support_write(path, "0123456789", 10);
    set_mtime(path, 1000000000, 5);
    struct phema_file *file = open_ok(path);
    assert_ok(phema_file_check_unchanged(file, &err), &err);

    support_write(path, "0123456789a", 11); /* longer, then restored */
    set_mtime(path, 1000000000, 5);
    assert_fails(phema_file_check_unchanged(file, &err), PHEMA_ERR_FILE, &err, path);
    assert_non_null(strstr(err.message, "changed while it was being read"));
    support_write(path, "9876543210", 10); /* the old size with another time */
    set_mtime(path, 1000000001, 5);
    assert_fails(phema_file_check_unchanged(file, &err), PHEMA_ERR_FILE, &err, "changed");
    set_mtime(path, 1000000000, 6); /* a nanosecond is enough */
    assert_fails(phema_file_check_unchanged(file, &err), PHEMA_ERR_FILE, &err, "changed");
    set_mtime(path, 1000000000, 5);
    assert_ok(phema_file_check_unchanged(file, &err), &err);
    assert_int_equal(unlink(path), 0);
    assert_fails(phema_file_check_unchanged(file, &err), PHEMA_ERR_FILE, &err, path);
    assert_non_null(strstr(err.message, "No such file"));
    phema_file_close(file);
    free(path);
}

/* A reader of a mapped file must open the same file, not one with equal size and date. */
static void another_file_of_the_same_size_and_date_is_noticed(void **state)
{
    (void)state;
    char *path = support_tmp_path("mapped.bin"), *other = support_tmp_path("other.bin");
    struct phema_error err = {0};
    support_write(path, "0123456789", 10);
    support_write(other, "9876543210", 10);
    set_mtime(path, 1000000000, 5);
    set_mtime(other, 1000000000, 5);
    struct phema_file *file = open_ok(path);
    int same = open(path, O_RDONLY | O_CLOEXEC), unlike = open(other, O_RDONLY | O_CLOEXEC);
    assert_true(same >= 0 && unlike >= 0);
    assert_ok(phema_file_check_same(file, same, &err), &err);
    assert_fails(phema_file_check_same(file, unlike, &err), PHEMA_ERR_FILE, &err, "changed");
    (void)close(same);
    (void)close(unlike);
    phema_file_close(file);
    free(path);
    free(other);
}

static void evicted_pages_are_read_again(void **state)
{
    (void)state;
    char *path = support_tmp_path("released.bin");
    size_t size = (size_t)1 << 20;
    uint8_t *data = malloc(size);
    assert_non_null(data);
    for (size_t i = 0; i < size; i++)
        data[i] = (uint8_t)(i ^ i >> 8);
    support_write(path, data, size);
    struct phema_file *file = open_ok(path);
    struct phema_span span = phema_file_span(file);
    assert_memory_equal(span.data, data, size);
    phema_file_evict(file, 0, size);
    assert_memory_equal(span.data, data, size);
    phema_file_evict(file, 4097, 100000);
    phema_file_evict(file, 1, 1);        /* less than a page */
    phema_file_evict(file, size, 0);     /* nothing */
    phema_file_evict(file, size - 1, 2); /* beyond the file: nothing is evicted */
    phema_file_evict(file, 4096, UINT64_MAX);
    phema_file_evict(file, UINT64_MAX - 4095, 8192);
    assert_memory_equal(span.data, data, size);
    phema_file_close(file);
    free(data);
    free(path);
}

/* Finds a file of one page whose next page belongs to another mapping, *other. The kernel stacks
 * mappings, but fills gaps first. */
static size_t find_neighbour(struct phema_file *const *files, size_t n_files, size_t *other)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < n_files; i++)
        for (*other = 0; *other < n_files; ++*other)
            if (phema_file_span(files[i]).data + page == phema_file_span(files[*other]).data)
                return i;
    return n_files;
}

/* Eviction beyond the file would empty the memory after it. This would be our own memory if it
 * replaced another file's mapping. */
static void nothing_after_a_file_is_evicted(void **state)
{
    (void)state;
    char *path = support_tmp_path("small.bin");
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *data = calloc(1, page);
    assert_non_null(data);
    support_write(path, data, page);
    struct phema_file *files[64];
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        files[i] = open_ok(path);
    size_t other = 0;
    size_t found = find_neighbour(files, ARRAY_LEN(files), &other);
    assert_true(found < ARRAY_LEN(files));
    const uint8_t *behind = phema_file_span(files[other]).data;
    void *wanted = NULL;
    memcpy(&wanted, &behind, sizeof(wanted));
    phema_file_close(files[other]);
    files[other] = NULL;
    uint8_t *mine = mmap(wanted, page, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    assert_true(mine != MAP_FAILED);
    mine[0] = 77;
    phema_file_evict(files[found], 0, 2 * page);
    phema_file_evict(files[found], page, page);
    assert_int_equal(mine[0], 77);
    assert_int_equal(munmap(mine, page), 0);
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        phema_file_close(files[i]);
    free(data);
    free(path);
}

/* ---- Truncation while mapped ---- */

/* In the child: maps the file, truncates it, and touches the missing page. Exits with 99 if it
 * survives. */
static void touch_what_was_cut(const char *path, const char *partial, bool is_all, int messages)
{
    struct phema_error err = {0};
    struct phema_file *file = NULL;
    struct phema_cleanup_entry *entry = NULL;
    if (dup2(messages, STDERR_FILENO) < 0)
        _exit(98);
    phema_cleanup_install_handlers();
    if (phema_cleanup_add_partial(&entry, partial, false, &err) ||
        phema_file_open(&file, path, &err) || truncate(path, is_all ? 0 : 1))
        _exit(98);
    volatile const uint8_t *bytes = phema_file_span(file).data;
    (void)bytes[is_all ? 0 : phema_file_span(file).size - 1];
    _exit(99);
}

static void check_cut_while_mapped(bool is_all)
{
    char *path = support_tmp_path("cut.bin"), *partial = support_tmp_path("out.partial");
    uint8_t *data = calloc(8, 65536);
    assert_non_null(data);
    support_write(path, data, (size_t)8 * 65536);
    support_write(partial, "half", 4);
    free(data);
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        touch_what_was_cut(path, partial, is_all, ends[1]);
    (void)close(ends[1]);
    char message[4096];
    size_t size = 0;
    ssize_t got = 0;
    while (size < sizeof(message) - 1 &&
           (got = read(ends[0], message + size, sizeof(message) - 1 - size)) > 0)
        size += (size_t)got;
    message[size] = '\0';
    (void)close(ends[0]);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), PHEMA_ERR_FILE);
    assert_non_null(strstr(message, path));
    assert_memory_equal(message, "posthoc-ema: ", 13);
    assert_int_equal(message[size - 1], '\n');
    assert_ptr_equal(strchr(message, '\n'), message + size - 1); /* one line */
    assert_int_not_equal(access(partial, F_OK), 0);
    assert_int_equal(access(path, F_OK), 0); /* an input must not be removed */
    free(path);
    free(partial);
}

/* ---- Files that another process has found ---- */

static struct phema_file *expect_ok(const char *path, const struct phema_file_identity *identity)
{
    struct phema_file *file = NULL;
    struct phema_error err = {0};
    assert_ok(phema_file_expect(&file, path, identity, &err), &err);
    return file;
}

static void an_expected_file_is_opened_on_demand(void **state)
{
    (void)state;
    char *path = support_tmp_path("expected.bin");
    struct phema_file_identity identity;
    struct phema_error err = {0};
    support_write(path, "abcdef", 6);
    struct phema_file *file = open_ok(path);
    phema_file_identify(&identity, file);
    phema_file_close(file);

    file = expect_ok(path, &identity);
    assert_false(phema_file_is_open(file));
    assert_int_equal(phema_file_span(file).size, 6);
    assert_null(phema_file_span(file).data);
    phema_file_prefetch(file, 0, 6);
    phema_file_evict(file, 0, 6);
    phema_file_expect_sparse(file, true);
    assert_true(phema_file_is_cached(file, 64));
    assert_ok(phema_file_check_unchanged(file, &err), &err);
    assert_ok(phema_file_demand(file, &err), &err);
    assert_memory_equal(phema_file_span(file).data, "abcdef", 6);
    assert_ok(phema_file_demand(file, &err), &err); /* is open already */
    phema_file_close(file);
    free(path);
}

/* Size, time and contents are each enough; the contents are those of the first 64 KiB. */
static void another_file_than_the_expected_one_is_refused(void **state)
{
    (void)state;
    char *path = support_tmp_path("other.bin");
    struct phema_file_identity true_one;
    support_write(path, "abcdef", 6);
    struct phema_file *file = open_ok(path);
    phema_file_identify(&true_one, file);
    phema_file_close(file);
    static const char *const parts[] = {"their sizes", "times of modification",
                                        "times of modification", "their contents"};
    for (unsigned i = 0; i < 4; i++) {
        struct phema_file_identity wrong = true_one;
        struct phema_error err = {0};
        wrong.size_bytes += i == 0;
        wrong.modified_s -= i == 1;
        wrong.modified_ns ^= i == 2;
        wrong.head ^= (uint64_t)(i == 3) << 63;
        file = expect_ok(path, &wrong);
        assert_fails(phema_file_demand(file, &err), PHEMA_ERR_FILE, &err, parts[i]);
        phema_file_close(file);
    }
    file = expect_ok("/nowhere/at/all", &true_one);
    struct phema_error err = {0};
    assert_fails(phema_file_demand(file, &err), PHEMA_ERR_FILE, &err, "No such file");
    phema_file_close(file);
    free(path);
}

static void descriptors_are_kept_on_request(void **state)
{
    (void)state;
    char *path = support_tmp_path("kept.bin");
    struct phema_error err = {0};
    support_write(path, "abcdef", 6);
    struct phema_file *file = open_ok(path);
    int descriptor = open(path, O_RDONLY);
    phema_file_give_descriptor(file, false, descriptor); /* none are kept: closed */
    assert_int_equal(fcntl(descriptor, F_GETFD), -1);
    assert_int_equal(phema_file_take_descriptor(file, false), -1);

    assert_ok(phema_file_keep_descriptors(file, &err), &err);
    descriptor = open(path, O_RDONLY);
    phema_file_give_descriptor(file, false, descriptor);
    assert_int_equal(phema_file_take_descriptor(file, true), -1);
    assert_int_equal(phema_file_take_descriptor(file, false), descriptor);
    assert_int_equal(phema_file_take_descriptor(file, false), -1);
    phema_file_give_descriptor(file, true, descriptor);
    phema_file_close(file);
    assert_int_equal(fcntl(descriptor, F_GETFD), -1);
    free(path);
}

static void check_opened_once(const char *path, bool is_kept)
{
    struct phema_file *file = NULL;
    struct phema_error err = {0};
    assert_ok(phema_file_open_once(&file, path, &err), &err);
    int descriptor = phema_file_take_descriptor(file, false);
    assert_int_equal(descriptor >= 0, is_kept);
    if (is_kept)
        assert_ok(phema_file_check_same(file, descriptor, &err), &err);
    phema_file_give_descriptor(file, false, descriptor);
    phema_file_close(file);
    if (is_kept)
        assert_int_equal(fcntl(descriptor, F_GETFD), -1);
}

/* With all numbers below PHEMA_MOST_KEPT_DESCRIPTORS in use, the descriptor is closed. */
static void few_enough_descriptors_are_kept(void **state)
{
    (void)state;
    static int held[PHEMA_MOST_KEPT_DESCRIPTORS];
    struct rlimit before, large;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    if (before.rlim_max < PHEMA_MOST_KEPT_DESCRIPTORS + 8)
        skip();
    large = before;
    large.rlim_cur = before.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &large), 0);
    char *path = support_tmp_path("once.bin");
    support_write(path, "abcdef", 6);
    check_opened_once(path, true);
    size_t n_held = 0;
    do {
        held[n_held] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        assert_true(held[n_held] >= 0);
    } while (held[n_held++] < PHEMA_MOST_KEPT_DESCRIPTORS - 1);
    check_opened_once(path, false);
    while (n_held > 0)
        (void)close(held[--n_held]);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    free(path);
}

/* Both the first and the last missing byte are detected. */
static void a_file_cut_while_mapped_ends_with_a_message(void **state)
{
    (void)state;
    check_cut_while_mapped(false);
    check_cut_while_mapped(true);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_file_is_mapped_whole),
    cmocka_unit_test(links_are_followed),
    cmocka_unit_test(anything_but_a_regular_file_is_refused),
    cmocka_unit_test(an_unreadable_file_is_refused),
    cmocka_unit_test(mappings_hold_no_descriptors),
    cmocka_unit_test(a_changed_file_is_noticed),
    cmocka_unit_test(another_file_of_the_same_size_and_date_is_noticed),
    cmocka_unit_test(evicted_pages_are_read_again),
    cmocka_unit_test(nothing_after_a_file_is_evicted),
    cmocka_unit_test(an_expected_file_is_opened_on_demand),
    cmocka_unit_test(another_file_than_the_expected_one_is_refused),
    cmocka_unit_test(descriptors_are_kept_on_request),
    cmocka_unit_test(few_enough_descriptors_are_kept),
    cmocka_unit_test(a_file_cut_while_mapped_ends_with_a_message),
};
TEST_GROUP(tests)
