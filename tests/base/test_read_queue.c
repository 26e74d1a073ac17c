// SPDX-License-Identifier: Apache-2.0
/* Many reads in flight: right bytes in any order, by io_uring and by threads, also where neither is
 * allowed. Short and interrupted reads are continued. Failures name the file and the offset. */
#include "phema/read_queue.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "forbid_call.h"
#include "forbid_threads.h"
#include "support.h"

#define SIZE       ((size_t)1 << 20)
#define SMALL_SIZE ((size_t)10000)
#define N_READS    600

/* ---- Faults of pread, which is the one of this program ---- */

static _Atomic int fault;   /* an errno, or -1: half of the bytes are read; of every second call */
static _Atomic bool always; /* of all calls */
static _Atomic unsigned n_calls; /* of pread */

ssize_t pread(int descriptor, void *buffer, size_t size, off_t offset)
{
    bool strikes = atomic_fetch_add(&n_calls, 1) % 2 == 0 || atomic_load(&always);
    if (strikes && atomic_load(&fault) > 0) {
        errno = atomic_load(&fault);
        return -1;
    }
    if (strikes && atomic_load(&fault) < 0 && size > 1)
        size /= 2;
    return syscall(SYS_pread64, descriptor, buffer, size, offset);
}

/* ---- One file, many reads ---- */

struct file {
    char *path;
    uint8_t *data;
    int descriptor;
};

static struct file make_file(size_t size)
{
    struct file file = {support_tmp_path("data"), malloc(size), -1};
    assert_non_null(file.data);
    for (size_t i = 0; i < size; i++)
        file.data[i] = (uint8_t)(i * 7 + i / 251);
    support_write(file.path, file.data, size);
    file.descriptor = open(file.path, O_RDONLY | O_CLOEXEC);
    assert_true(file.descriptor >= 0);
    return file;
}

static void remove_file(struct file *file)
{
    (void)close(file->descriptor);
    free(file->path);
    free(file->data);
}

static struct phema_read_queue *open_queue(unsigned depth, enum phema_read_engine engine)
{
    struct phema_error err = {0};
    struct phema_read_queue *queue = NULL;
    assert_ok(phema_read_queue_open(&queue, depth, engine, &err), &err);
    return queue;
}

static void set_read(struct phema_read *read, const struct file *file, uint64_t offset, size_t size,
                     uint8_t *buffer)
{
    *read = (struct phema_read){.descriptor = file->descriptor,
                                .path = file->path,
                                .offset = offset,
                                .buffer = buffer,
                                .size = size,
                                .needed = size,
                                .block = 1,
                                .allows_uring = true,
                                .user = buffer};
}

/* Ranges all over the file, submitted at once. */
static void check_many(unsigned depth, enum phema_read_engine engine)
{
    struct phema_error err = {0};
    struct file file = make_file(SIZE);
    struct phema_read *reads = calloc(N_READS, sizeof(*reads));
    uint8_t *buffers = calloc(N_READS, 5000);
    assert_non_null(reads);
    assert_non_null(buffers);
    struct phema_read_queue *queue = open_queue(depth, engine);
    assert_null(phema_read_queue_poll(queue));
    assert_null(phema_read_queue_wait(queue));
    for (size_t i = 0; i < N_READS; i++) {
        uint64_t offset = i * 7919 % (SIZE - 5000);
        set_read(&reads[i], &file, offset, 1 + i * 31 % 5000, buffers + i * 5000);
        phema_read_queue_submit(queue, &reads[i]);
    }
    phema_read_queue_limit(queue, depth / 2);
    for (size_t i = 0; i < N_READS; i++) {
        struct phema_read *read = i % 3 ? NULL : phema_read_queue_poll(queue);
        read = read ? read : phema_read_queue_wait(queue);
        assert_non_null(read);
        assert_ok(phema_read_check(read, &err), &err);
        assert_ptr_equal(read->user, read->buffer);
        assert_memory_equal(read->buffer, file.data + read->offset, read->size);
        read->user = NULL; /* a read that is returned twice is noticed */
    }
    assert_null(phema_read_queue_wait(queue));
    phema_read_queue_close(queue);
    free(reads);
    free(buffers);
    remove_file(&file);
}

static void check_depths(void)
{
    static const unsigned depths[] = {0, 1, 8, 100, PHEMA_READ_QUEUE_MAX_DEPTH + 1};
    for (size_t i = 0; i < ARRAY_LEN(depths); i++) {
        check_many(depths[i], PHEMA_READ_BY_ANY);
        check_many(depths[i], PHEMA_READ_BY_THREADS);
    }
}

static void any_number_of_reads_in_any_depth(void **state)
{
    (void)state;
    check_depths();
}

/* Faults do not reach io_uring, whose reads end alike (is_ended). */
static void short_and_interrupted_reads_go_on(void **state)
{
    (void)state;
    static const int faults[] = {-1, EINTR};
    for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
        atomic_store(&fault, faults[i]);
        unsigned before = atomic_load(&n_calls);
        check_many(8, PHEMA_READ_BY_THREADS);
        atomic_store(&fault, 0);
        assert_true(atomic_load(&n_calls) - before > N_READS * 3 / 2);
    }
}

/* Each call reads half: inside of blocks as well, of which none is ever read whole. */
static void reads_of_blocks_go_on_inside_of_them(void **state)
{
    (void)state;
    struct phema_error err = {0};
    struct file file = make_file(SIZE);
    struct phema_read read;
    uint8_t *buffer = aligned_alloc(4096, 12288);
    assert_non_null(buffer);
    atomic_store(&fault, -1);
    atomic_store(&always, true);
    set_read(&read, &file, 8192, 12288, buffer);
    read.block = 4096;
    phema_read_now(&read);
    atomic_store(&always, false);
    atomic_store(&fault, 0);
    assert_ok(phema_read_check(&read, &err), &err);
    assert_memory_equal(buffer, file.data + 8192, 12288);
    free(buffer);
    remove_file(&file);
}

/* Reads in flight end, and those of other filesystems are never given to io_uring. */
static void a_filesystem_that_is_not_known_is_read_by_threads(void **state)
{
    (void)state;
    struct phema_error err = {0};
    struct file file = make_file(SIZE);
    struct phema_read reads[20];
    uint8_t *buffers = calloc(20, 5000);
    assert_non_null(buffers);
    struct phema_read_queue *queue = open_queue(4, PHEMA_READ_BY_ANY);
    unsigned before = atomic_load(&n_calls);
    for (size_t i = 0; i < 20; i++) {
        set_read(&reads[i], &file, i * 7919, 5000, buffers + i * 5000);
        reads[i].allows_uring = i < 10;
        phema_read_queue_submit(queue, &reads[i]);
    }
    for (struct phema_read *read; (read = phema_read_queue_wait(queue));) {
        assert_ok(phema_read_check(read, &err), &err);
        assert_memory_equal(read->buffer, file.data + read->offset, read->size);
    }
    assert_string_equal(phema_read_queue_engine(queue), "threads");
    assert_true(atomic_load(&n_calls) - before >= 10);
    phema_read_queue_close(queue);
    free(buffers);
    remove_file(&file);
}

static void the_device_fails(void **state)
{
    (void)state;
    struct phema_error err = {0};
    struct file file = make_file(SIZE);
    struct phema_read reads[8];
    uint8_t buffers[8][100];
    struct phema_read_queue *queue = open_queue(4, PHEMA_READ_BY_THREADS);
    atomic_store(&fault, EIO);
    for (size_t i = 0; i < 8; i++) {
        set_read(&reads[i], &file, 1000 + i, 100, buffers[i]);
        phema_read_queue_submit(queue, &reads[i]);
    }
    unsigned n_failed = 0;
    for (size_t i = 0; i < 8; i++) {
        const struct phema_read *read = phema_read_queue_wait(queue);
        enum phema_status status = phema_read_check(read, &err);
        if (!status)
            continue;
        char wanted[64];
        (void)snprintf(wanted, sizeof(wanted), "data: cannot be read at offset %llu: Input/output",
                       (unsigned long long)read->offset);
        assert_fails(status, PHEMA_ERR_FILE, &err, wanted);
        n_failed++;
    }
    atomic_store(&fault, 0);
    assert_int_equal(n_failed, 4);
    phema_read_queue_close(queue);
    remove_file(&file);
}

/* By both engines. */
static void check_small_file(void (*check)(struct phema_read_queue *queue, const struct file *file))
{
    static const enum phema_read_engine engines[] = {PHEMA_READ_BY_ANY, PHEMA_READ_BY_THREADS};
    for (size_t e = 0; e < ARRAY_LEN(engines); e++) {
        struct file file = make_file(SMALL_SIZE);
        struct phema_read_queue *queue = open_queue(2, engines[e]);
        check(queue, &file);
        phema_read_queue_close(queue);
        remove_file(&file);
    }
}

static enum phema_status read_one(struct phema_read_queue *queue, struct phema_read *read,
                                  struct phema_error *err)
{
    phema_read_queue_submit(queue, read);
    assert_ptr_equal(phema_read_queue_wait(queue), read);
    return phema_read_check(read, err);
}

/* As the last block of a file past the page cache: bytes after the end are asked for, not needed.
 */
static void check_end(struct phema_read_queue *queue, const struct file *file)
{
    struct phema_error err = {0};
    struct phema_read read;
    uint8_t *buffer = aligned_alloc(4096, 12288);
    assert_non_null(buffer);
    memset(buffer, 0, 12288); /* valgrind does not see what io_uring writes */
    set_read(&read, file, 0, 12288, buffer);
    read.needed = SMALL_SIZE;
    read.block = 4096;
    assert_ok(read_one(queue, &read, &err), &err);
    assert_memory_equal(buffer, file->data, SMALL_SIZE);
    assert_int_equal(truncate(file->path, 9000), 0);
    assert_fails(read_one(queue, &read, &err), PHEMA_ERR_FILE, &err,
                 "data: expected 10000 bytes at offset 0, found 9000; the file was cut short");
    free(buffer);
}

static void files_end_and_shrink(void **state)
{
    (void)state;
    check_small_file(check_end);
}

static void check_descriptors(struct phema_read_queue *queue, const struct file *file)
{
    struct phema_error err = {0};
    struct phema_read read;
    uint8_t buffer[16];
    int directory = open(support_tmp(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int written = open(file->path, O_WRONLY | O_CLOEXEC);
    set_read(&read, file, 5, 16, buffer);
    read.descriptor = directory;
    assert_fails(read_one(queue, &read, &err), PHEMA_ERR_FILE, &err,
                 "data: cannot be read at offset 5: Is a directory");
    read.descriptor = written;
    read.path = NULL;
    assert_fails(read_one(queue, &read, &err), PHEMA_ERR_FILE, &err,
                 "cannot be read at offset 5: Bad file descriptor");
    (void)close(directory);
    (void)close(written);
}

static void descriptors_that_cannot_be_read(void **state)
{
    (void)state;
    check_small_file(check_descriptors);
}

/* Buffers may be freed after close, whatever was in flight or waiting. */
static void a_queue_closes_at_any_time(void **state)
{
    (void)state;
    static const enum phema_read_engine engines[] = {PHEMA_READ_BY_ANY, PHEMA_READ_BY_THREADS};
    struct file file = make_file(SIZE);
    size_t n_threads = support_count_threads();
    for (size_t e = 0; e < ARRAY_LEN(engines); e++) {
        struct phema_read reads[20];
        uint8_t *buffer = malloc(20 * SIZE);
        assert_non_null(buffer);
        struct phema_read_queue *queue = open_queue(6, engines[e]);
        for (size_t i = 0; i < 20; i++) {
            set_read(&reads[i], &file, 0, SIZE, buffer + i * SIZE);
            phema_read_queue_submit(queue, &reads[i]);
        }
        phema_read_queue_close(queue);
        free(buffer);
    }
    phema_read_queue_close(NULL);
    support_assert_threads_become(n_threads);
    remove_file(&file);
}

/* ---- Without io_uring, and without threads ---- */

/* In a child process, which cannot get back what it has forbidden. A failed assertion ends it with
 * another status. */
static void check_in_child(int uring_error, bool has_threads)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (!forbid_call(SYS_io_uring_setup, uring_error) || (!has_threads && !forbid_threads()))
            _exit(77);
        struct phema_read_queue *queue = open_queue(4, PHEMA_READ_BY_ANY);
        assert_string_equal(phema_read_queue_engine(queue), "threads");
        phema_read_queue_close(queue);
        check_depths();
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void works_without_io_uring_and_threads(void **state)
{
    (void)state;
    check_in_child(EPERM, true);
    check_in_child(ENOSYS, true);
    check_in_child(ENOSYS, false);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(any_number_of_reads_in_any_depth),
    cmocka_unit_test(short_and_interrupted_reads_go_on),
    cmocka_unit_test(reads_of_blocks_go_on_inside_of_them),
    cmocka_unit_test(a_filesystem_that_is_not_known_is_read_by_threads),
    cmocka_unit_test(the_device_fails),
    cmocka_unit_test(files_end_and_shrink),
    cmocka_unit_test(descriptors_that_cannot_be_read),
    cmocka_unit_test(a_queue_closes_at_any_time),
    cmocka_unit_test(works_without_io_uring_and_threads),
};
TEST_GROUP(tests)
