// SPDX-License-Identifier: Apache-2.0
/* The zstd program and the reader restore the content for any number of threads. Frames and table
 * are as documented. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "phema/formats.h"
#include "phema/strbuf.h"
#include "phema/writer.h"
#include "support.h"

#define MIB ((size_t)1 << 20)

static const struct phema_writer_options quick = {.replaces = true, .syncs = false};

/* Compressible, and different everywhere. */
static uint8_t *make_content(size_t size)
{
    uint8_t *content = malloc(size + 1);
    assert_non_null(content);
    uint32_t random = 7;
    for (size_t i = 0; i < size; i++) {
        random = random * 1664525u + 1013904223u;
        content[i] = (uint8_t)(random >> 29); /* 3 bits of 8 */
    }
    return content;
}

/* A file that is not published. */
static struct phema_writer *put_plain(const uint8_t *content, size_t size)
{
    char *path = support_tmp_path("plain");
    struct phema_error err = {0};
    struct phema_writer *plain = NULL;
    assert_ok(phema_writer_open(&plain, path, size, &quick, &err), &err);
    assert_ok(phema_writer_write(plain, 0, content, size, &err), &err);
    free(path);
    return plain;
}

/* Writes the content to TMP/name; the caller frees the path. */
static char *compress(const char *name, const uint8_t *content, size_t size, const uint64_t *ends,
                      size_t n_ends, int level, unsigned n_threads)
{
    char *path = support_tmp_path(name);
    struct phema_error err = {0};
    struct phema_writer *writer = NULL;
    assert_ok(phema_writer_open(&writer, path, 0, &quick, &err), &err);
    uint64_t written = 0;
    struct phema_writer *plain = put_plain(content, size);
    _Atomic uint64_t n_done = 5;
    struct phema_writer_frames frames;
    assert_ok(phema_writer_cut_frames(&frames, size, ends, n_ends, level, &err), &err);
    assert_ok(phema_writer_write_zstd(&written, writer, plain, &frames, n_threads, &n_done, &err),
              &err);
    free(frames.ends);
    assert_int_equal(n_done, 5 + size);
    phema_writer_abandon(plain);
    assert_ok(phema_writer_commit(writer, &err), &err);
    size_t file_size = 0;
    free(support_read(path, &file_size));
    assert_int_equal(written, file_size);
    return path;
}

static void assert_decodes(const char *path, const uint8_t *content, size_t size)
{
    char *decoded_path = support_tmp_path("decoded");
    char *command = NULL;
    assert_true(asprintf(&command, "zstd -q -d -f -o '%s' '%s'", decoded_path, path) > 0);
    assert_int_equal(system(command), 0);
    size_t decoded_size = 0;
    uint8_t *decoded = support_read(decoded_path, &decoded_size);
    assert_int_equal(decoded_size, size);
    assert_memory_equal(decoded, content, size);
    free(decoded);
    free(command);
    free(decoded_path);
}

/* The sizes of content in the seek table, after a comparison with the structure of the file. Frames
 * of csize bytes each begin with the magic number, and the table follows the last one. */
static size_t read_table(uint32_t *sizes, size_t capacity, const char *path)
{
    size_t size = 0;
    uint8_t *file = support_read(path, &size);
    assert_true(size > 17);
    assert_int_equal(phema_load_u32(file + size - 4), 0x8F92EAB1);
    assert_int_equal(file[size - 5], 0);
    size_t n = phema_load_u32(file + size - 9);
    assert_true(n <= capacity);
    const uint8_t *table = file + size - 9 - 8 * n - 8;
    assert_int_equal(phema_load_u32(table), 0x184D2A5E);
    assert_int_equal(phema_load_u32(table + 4), 8 * n + 9);
    const uint8_t *frame = file;
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(phema_load_u32(frame), 0xFD2FB528);
        assert_true(frame[4] & 0x04);                        /* checksum */
        assert_true((frame[4] & 0xC0) || (frame[4] & 0x20)); /* size of the content */
        frame += phema_load_u32(table + 8 + 8 * i);
        sizes[i] = phema_load_u32(table + 8 + 8 * i + 4);
    }
    assert_ptr_equal(frame, table);
    free(file);
    return n;
}

static void zstd_decodes_any_size(void **state)
{
    (void)state;
    static const size_t sizes[] = {0,           1,       2,           1000,        128 * 1024,
                                   4 * MIB - 1, 4 * MIB, 4 * MIB + 1, 9 * MIB + 7, 12 * MIB};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        uint8_t *content = make_content(sizes[i]);
        char *path = compress("sizes.zst", content, sizes[i], NULL, 0, 3, 2);
        assert_decodes(path, content, sizes[i]);
        uint32_t found[8];
        size_t n = read_table(found, ARRAY_LEN(found), path);
        size_t wanted = (sizes[i] + 4 * MIB - 1) / (4 * MIB); /* empty content has one frame too */
        assert_int_equal(n, wanted ? wanted : 1);
        free(path);
        free(content);
    }
}

static void frames_end_where_tensors_do(void **state)
{
    (void)state;
    /* Header, small tensors, one that ends a frame to the byte. Then a large one whose tail shares
     * a frame with the small ones after it, and empty ones. */
    static const uint64_t ends[] = {100,      100,           2 * MIB,
                                    4 * MIB,  4 * MIB + 1,   5 * MIB,
                                    14 * MIB, 14 * MIB + 10, 14 * MIB + MIB / 2};
    static const uint64_t wanted[] = {4 * MIB, 5 * MIB, 9 * MIB, 13 * MIB, 14 * MIB + MIB / 2};
    size_t size = 14 * MIB + MIB / 2;
    uint8_t *content = make_content(size);
    char *path = compress("ends.zst", content, size, ends, ARRAY_LEN(ends), 1, 2);
    assert_decodes(path, content, size);
    uint32_t found[16];
    assert_int_equal(read_table(found, ARRAY_LEN(found), path), ARRAY_LEN(wanted));
    uint64_t end = 0;
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        end += found[i];
        assert_int_equal(end, wanted[i]);
    }
    free(path);
    free(content);
}

static void bytes_do_not_depend_on_threads(void **state)
{
    (void)state;
    size_t size = 30 * MIB + 5;
    uint64_t ends[60];
    for (size_t i = 0; i < ARRAY_LEN(ends); i++)
        ends[i] = (i + 1) * MIB / 2;
    uint8_t *content = make_content(size);
    size_t first_size = 0;
    char *path = compress("threads.zst", content, size, ends, ARRAY_LEN(ends), 1, 1);
    uint8_t *first = support_read(path, &first_size);
    free(path);
    static const unsigned counts[] = {0, 2, 4, 4, 100};
    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        path = compress("threads.zst", content, size, ends, ARRAY_LEN(ends), 1, counts[i]);
        size_t again_size = 0;
        uint8_t *again = support_read(path, &again_size);
        assert_int_equal(again_size, first_size);
        assert_memory_equal(again, first, first_size);
        free(again);
        free(path);
    }
    free(first);
    free(content);
}

static void levels_trade_size(void **state)
{
    (void)state;
    size_t size = MIB;
    uint8_t *content = make_content(size);
    static const int levels[] = {-1000000, -5, 1, 19, 1000};
    size_t sizes[ARRAY_LEN(levels)];
    for (size_t i = 0; i < ARRAY_LEN(levels); i++) {
        char *path = compress("level.zst", content, size, NULL, 0, levels[i], 1);
        assert_decodes(path, content, size);
        free(support_read(path, &sizes[i]));
        free(path);
    }
    assert_true(sizes[0] > sizes[2]);
    assert_true(sizes[2] < size / 2);
    assert_true(sizes[3] <= sizes[2]);
    free(content);
}

/* The reader finds an index and reads each tensor alone, backward. */
static void the_reader_seeks(void **state)
{
    (void)state;
    enum { N = 5 };
    static const size_t elems[N] = {3 * MIB, 10, 9 * MIB, 0, 1 * MIB};
    struct phema_strbuf file = {0};
    uint64_t ends[N + 1], at = 0;
    phema_strbuf_puts(&file, "{");
    for (size_t i = 0; i < N; i++) {
        phema_strbuf_printf(
            &file, "%s\"t%zu\":{\"dtype\":\"U8\",\"shape\":[%zu],\"data_offsets\":[%llu,%llu]}",
            i ? "," : "", i, elems[i], (unsigned long long)at, (unsigned long long)(at + elems[i]));
        at += elems[i];
        ends[i + 1] = at;
    }
    phema_strbuf_puts(&file, "}");
    ends[0] = 8 + file.size;
    for (size_t i = 1; i <= N; i++)
        ends[i] += ends[0];
    size_t size = (size_t)ends[N];
    uint8_t *content = make_content(size);
    phema_store_u64(content, file.size);
    memcpy(content + 8, file.data, file.size);
    phema_strbuf_clear(&file);
    char *path = compress("read.safetensors.zst", content, size, ends, N + 1, 3, 4);
    assert_decodes(path, content, size);

    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    assert_ok(phema_checkpoint_open(&checkpoint, path, NULL, &err), &err);
    assert_string_equal(phema_checkpoint_format(checkpoint), "safetensors.zst");
    assert_true(phema_checkpoint_can_seek(checkpoint));
    assert_true(phema_checkpoint_decoder_bytes(checkpoint) < 6 * MIB);
    struct phema_reader *reader = NULL;
    assert_ok(phema_reader_open(&reader, checkpoint, &err), &err);
    uint8_t *scratch = malloc(9 * MIB);
    assert_non_null(scratch);
    for (size_t i = N; i-- > 0;) {
        const struct phema_tensor *tensor = &phema_checkpoint_tensors(checkpoint)[i];
        assert_int_equal(tensor->n_elems, elems[i]);
        const uint8_t *data = NULL;
        if (!elems[i])
            continue;
        assert_ok(phema_reader_read(&data, reader, tensor, 0, elems[i], scratch, &err), &err);
        assert_memory_equal(data, content + ends[i], elems[i]);
    }
    assert_ok(phema_reader_finish(reader, &err), &err);
    free(scratch);
    phema_reader_close(reader);
    phema_checkpoint_close(checkpoint);
    free(path);
    free(content);
}

/* A limit on the size of files makes the write fail: /dev/full is not a regular file. */
static void a_failed_write_is_an_error_and_leaves_nothing(void **state)
{
    (void)state;
    size_t size = 30 * MIB;
    uint8_t *content = make_content(size);
    for (unsigned n_threads = 1; n_threads <= 4; n_threads += 3) {
        char *path = support_tmp_path("limited.zst");
        struct phema_error err = {0};
        struct phema_writer *writer = NULL;
        assert_ok(phema_writer_open(&writer, path, 0, &quick, &err), &err);
        struct phema_writer *plain = put_plain(content, size);
        (void)signal(SIGXFSZ, SIG_IGN);
        struct rlimit old, limit;
        assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
        limit = old;
        limit.rlim_cur = 6 * MIB;
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
        uint64_t written = 12345;
        struct phema_writer_frames frames;
        assert_ok(phema_writer_cut_frames(&frames, size, NULL, 0, 1, &err), &err);
        enum phema_status status =
            phema_writer_write_zstd(&written, writer, plain, &frames, n_threads, NULL, &err);
        free(frames.ends);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
        assert_fails(status, PHEMA_ERR_OUTPUT, &err, "limited.zst: cannot be written");
        assert_int_equal(written, 12345);
        phema_writer_abandon(writer);
        phema_writer_abandon(plain);
        assert_int_not_equal(access(path, F_OK), 0);
        free(path);
    }
    free(content);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(zstd_decodes_any_size),
    cmocka_unit_test(frames_end_where_tensors_do),
    cmocka_unit_test(bytes_do_not_depend_on_threads),
    cmocka_unit_test(levels_trade_size),
    cmocka_unit_test(the_reader_seeks),
    cmocka_unit_test(a_failed_write_is_an_error_and_leaves_nothing),
};
TEST_GROUP(tests)
