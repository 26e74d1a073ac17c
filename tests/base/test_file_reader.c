// SPDX-License-Identifier: Apache-2.0
/* Reads of a mapped file: any range, through the page cache and past it. A truncated or replaced
 * file is detected. */
#include "phema/file_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "forbid_call.h"
#include "support.h"

#define SIZE 70001

struct opened {
    char *path;
    uint8_t *data;
    struct phema_file *file;
};

static struct opened open_file(const char *name)
{
    struct phema_error err = {0};
    struct opened opened = {.path = support_tmp_path(name), .data = malloc(SIZE)};
    assert_non_null(opened.data);
    for (size_t i = 0; i < SIZE; i++)
        opened.data[i] = (uint8_t)(i * 7 + i / 251);
    support_write(opened.path, opened.data, SIZE);
    assert_ok(phema_file_open(&opened.file, opened.path, &err), &err);
    return opened;
}

static void close_file(struct opened *opened)
{
    phema_file_close(opened->file);
    free(opened->path);
    free(opened->data);
}

/* Ranges around the edges of blocks, of pages and of the file. */
static void check_ranges(struct phema_file_reader *input, const uint8_t *data)
{
    static const size_t edges[] = {0,    1,    511,  512,   4095,  4096,
                                   4097, 8192, 9999, 65536, 69999, SIZE};
    struct phema_error err = {0};
    size_t extra = PHEMA_INPUT_ROOM;
    struct phema_read_queue *queue = NULL;
    struct phema_read read;
    assert_ok(phema_read_queue_open(&queue, 4, PHEMA_READ_BY_ANY, &err), &err);
    for (size_t a = 0; a < ARRAY_LEN(edges); a++) {
        for (size_t b = a + 1; b < ARRAY_LEN(edges); b++) {
            size_t size = edges[b] - edges[a];
            size_t whole = (size + extra + PHEMA_INPUT_ALIGNMENT) / PHEMA_INPUT_ALIGNMENT *
                           PHEMA_INPUT_ALIGNMENT;
            uint8_t *buffer = aligned_alloc(PHEMA_INPUT_ALIGNMENT, whole);
            const uint8_t *found = NULL;
            assert_non_null(buffer);
            assert_ok(phema_file_reader_read(&found, input, edges[a], size, buffer, &err), &err);
            assert_true(found >= buffer && found + size <= buffer + size + extra);
            assert_memory_equal(found, data + edges[a], size);

            memset(buffer, 0xee, whole);
            phema_file_reader_prepare(&read, input, edges[a], size, buffer);
            assert_true(read.size <= size + extra);
            phema_read_queue_submit(queue, &read);
            assert_ptr_equal(phema_read_queue_wait(queue), &read);
            assert_ok(phema_file_reader_complete(&found, &read, &err), &err);
            assert_memory_equal(found, data + edges[a], size);
            free(buffer);
        }
    }
    phema_read_queue_close(queue);
}

/* 4 MiB of which only a small part in the middle is stored, read in pieces of 64 KiB. The rest is
 * zeros, which do not enter the page cache. */
static void holes_are_zeros(void **state)
{
    (void)state;
    enum { PIECE = 1 << 16, STRIDE = 8 << 20, N_PIECES = 64, STORED = 33 };
    struct phema_error err = {0};
    struct phema_file *file = NULL;
    struct phema_file_reader *input = NULL;
    char *path = support_tmp_path("holes");
    int descriptor = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(descriptor >= 0);
    assert_int_equal(ftruncate(descriptor, (off_t)N_PIECES * STRIDE), 0);
    assert_int_equal(pwrite(descriptor, "stored", 6, (off_t)STORED * STRIDE + 5000), 6);
    assert_ok(phema_file_open(&file, path, &err), &err);
    assert_ok(phema_file_reader_open(&input, file, false, &err), &err);
    uint8_t *buffer = malloc(PIECE + PHEMA_INPUT_ROOM), *wanted = calloc(PIECE, 1);
    assert_non_null(buffer);
    assert_non_null(wanted);
    for (size_t i = 0; i < N_PIECES; i++) {
        const uint8_t *found = NULL;
        memset(buffer, 0xee, PIECE);
        phema_file_reader_prefetch(input, i * STRIDE, PIECE);
        assert_ok(phema_file_reader_read(&found, input, i * STRIDE, PIECE, buffer, &err), &err);
        struct phema_read read; /* nothing is to be read of a hole */
        phema_file_reader_prepare(&read, input, i * STRIDE, PIECE, buffer);
        assert_true((read.size == 0) == (i != STORED));
        if (i != STORED)
            assert_ok(phema_file_reader_complete(&found, &read, &err), &err);
        memcpy(wanted + 5000, i == STORED ? "stored" : "\0\0\0\0\0", 6);
        assert_memory_equal(found, wanted, PIECE);
        assert_true(phema_file_reader_is_cached(input, i * STRIDE + 5000));
    }
    /* unwritten pages in the page cache were read */
    void *mapped = mmap(NULL, (size_t)N_PIECES * STRIDE, PROT_READ, MAP_SHARED, descriptor, 0);
    assert_ptr_not_equal(mapped, MAP_FAILED);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t in_memory = 0;
    size_t n_read = 0;
    for (size_t i = 0; i < N_PIECES; i++) {
        assert_int_equal(mincore((uint8_t *)mapped + i * STRIDE, page, &in_memory), 0);
        n_read += in_memory & 1;
    }
    assert_in_range(n_read, 0, 4); /* the kernel reads ahead into a hole */
    (void)munmap(mapped, (size_t)N_PIECES * STRIDE);

    /* a truncated file has no holes after its end */
    const uint8_t *found = NULL;
    assert_int_equal(ftruncate(descriptor, (off_t)40 * STRIDE), 0);
    assert_ok(phema_file_reader_read(&found, input, 39 * STRIDE, PIECE, buffer, &err), &err);
    assert_int_equal(phema_file_reader_read(&found, input, 40 * STRIDE, PIECE, buffer, &err),
                     PHEMA_ERR_FILE);
    assert_non_null(strstr(err.message, "cut short"));
    (void)close(descriptor);
    phema_file_reader_close(input);
    phema_file_close(file);
    free(buffer);
    free(wanted);
    free(path);
}

static void any_range_is_read(void **state)
{
    (void)state;
    struct phema_error err = {0};
    struct opened opened = open_file("ranges");
    struct phema_file_reader *input = NULL;
    assert_ok(phema_file_reader_open(&input, opened.file, false, &err), &err);
    check_ranges(input, opened.data);
    phema_file_reader_prefetch(input, 0, SIZE);
    phema_file_reader_evict(input, 0, 0);
    (void)phema_file_reader_is_cached(input, 1);
    check_ranges(input, opened.data);
    phema_file_reader_close(input);
    phema_file_reader_close(NULL);
    close_file(&opened);
}

static void any_range_is_read_past_the_page_cache(void **state)
{
    (void)state;
    struct phema_error err = {0};
    struct opened opened = open_file("direct");
    struct phema_file_reader *input = NULL;
    enum phema_status status = phema_file_reader_open(&input, opened.file, true, &err);
    if (status) { /* some filesystems cannot do this; the message says so */
        assert_fails(status, PHEMA_ERR_FILE, &err, "use --io read");
        close_file(&opened);
        skip();
    }
    check_ranges(input, opened.data);
    phema_file_reader_close(input);
    close_file(&opened);
}

static void a_file_that_was_cut_is_noticed(void **state)
{
    (void)state;
    struct phema_error err = {0};
    struct opened opened = open_file("cut");
    struct phema_file_reader *input = NULL;
    uint8_t buffer[10];
    const uint8_t *found = NULL;
    assert_ok(phema_file_reader_open(&input, opened.file, false, &err), &err);
    assert_int_equal(truncate(opened.path, 1005), 0);
    assert_ok(phema_file_reader_read(&found, input, 995, 10, buffer, &err), &err);
    assert_fails(phema_file_reader_read(&found, input, 1000, 10, buffer, &err), PHEMA_ERR_FILE,
                 &err, "expected 10 bytes at offset 1000, found 5; the file was cut short");
    assert_fails(phema_file_reader_read(&found, input, 5000, 10, buffer, &err), PHEMA_ERR_FILE,
                 &err, "found 0");
    phema_file_reader_close(input);
    close_file(&opened);
}

static bool is_dropped_at(int descriptor, off_t offset)
{
    uint8_t byte;
    return preadv2(descriptor, &(struct iovec){&byte, 1}, 1, offset, RWF_NOWAIT) < 0;
}

#define TRIES 20 /* a look at one end may have the kernel fetch the other */

/* In the page cache or not, by cachestat and, where the kernel lacks it, by mincore. */
static void check_cached(struct opened *opened)
{
    assert_true(phema_file_is_cached(opened->file, 64));
    assert_true(phema_file_is_cached_at(opened->file, SIZE - 1));
    int descriptor = open(opened->path, O_RDONLY | O_CLOEXEC);
    assert_true(descriptor >= 0);
    assert_int_equal(fsync(descriptor), 0);
    bool is_dropped = false, is_known = false;
    for (int i = 0; i < TRIES && !is_known; i++) {
        phema_file_evict(opened->file, 0, SIZE);
        assert_int_equal(posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED), 0);
        if (!is_dropped_at(descriptor, 1) || !is_dropped_at(descriptor, SIZE - 1))
            continue; /* on tmpfs, and now and then on a busy machine */
        is_dropped = true;
        is_known = !phema_file_is_cached(opened->file, 64) &&
                   !phema_file_is_cached_at(opened->file, SIZE - 1);
    }
    assert_true(is_known || !is_dropped);
    assert_int_equal(pread(descriptor, opened->data, SIZE, 0), SIZE);
    (void)close(descriptor);
    assert_true(phema_file_is_cached(opened->file, 64));
}

static void files_in_the_page_cache_are_known(void **state)
{
    (void)state;
    struct opened opened = open_file("cached");
    check_cached(&opened);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        enum { CACHESTAT = 451 };
        if (!forbid_call(CACHESTAT, ENOSYS))
            _exit(77);
        check_cached(&opened);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    close_file(&opened);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip();
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void another_file_of_the_name_is_refused(void **state)
{
    (void)state;
    struct phema_error err = {0};
    struct opened opened = open_file("replaced");
    char *other = support_tmp_path("other");
    support_write(other, opened.data, SIZE);
    assert_int_equal(rename(other, opened.path), 0);
    struct phema_file_reader *input = NULL;
    assert_fails(phema_file_reader_open(&input, opened.file, false, &err), PHEMA_ERR_FILE, &err,
                 "changed while it was being read");
    assert_int_equal(unlink(opened.path), 0);
    assert_fails(phema_file_reader_open(&input, opened.file, false, &err), PHEMA_ERR_FILE, &err,
                 "cannot be opened again: No such file");
    assert_null(input);
    free(other);
    close_file(&opened);
}

static void descriptors_are_allowed_up_to_the_hard_limit(void **state)
{
    (void)state;
    struct rlimit before, low;
    uint64_t limit = 0;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    low = (struct rlimit){64, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    assert_true(phema_raise_fd_limit(64, &limit));
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &low), 0);
    assert_int_equal(low.rlim_cur, 64);
    assert_true(phema_raise_fd_limit(65, &limit));
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &low), 0);
    assert_true(low.rlim_cur >= 65);
    if (before.rlim_max != RLIM_INFINITY) {
        assert_false(phema_raise_fd_limit(before.rlim_max + 1, &limit));
        assert_int_equal(limit, before.rlim_max);
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(holes_are_zeros),
    cmocka_unit_test(any_range_is_read),
    cmocka_unit_test(any_range_is_read_past_the_page_cache),
    cmocka_unit_test(a_file_that_was_cut_is_noticed),
    cmocka_unit_test(files_in_the_page_cache_are_known),
    cmocka_unit_test(another_file_of_the_name_is_refused),
    cmocka_unit_test(descriptors_are_allowed_up_to_the_hard_limit),
};
TEST_GROUP(tests)
