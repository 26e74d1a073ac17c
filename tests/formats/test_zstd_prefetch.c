// SPDX-License-Identifier: Apache-2.0
/* The requests of pages that the walk over the frames of a compressed file will look at: those of
 * headers, few others, and nothing worse than that whatever the file holds. */
#include <fcntl.h>
#include <unistd.h>

#include "build.h"
#include "phema/file_reader.h"
#include "zstd/frame_header.h"
#include "zstd/frame_index.h"

/* Blocks lie five pages apart. */
enum { N_FRAMES = 3, N_BLOCKS = 30, BLOCK_BYTES = 20000, MOST_HEADERS = N_FRAMES * (N_BLOCKS + 2) };

/* Where headers begin. */
struct headers {
    size_t at[MOST_HEADERS];
    size_t n;
};

static void put_header(struct headers *headers, struct phema_strbuf *out, uint64_t value,
                       unsigned width)
{
    headers->at[headers->n++] = out->size;
    put_int(out, value, width);
}

/* Raw blocks in a window of 1 MiB, and the place of a checksum. Headers of blocks count where the
 * frame does not state the size of its content. */
static void put_frame(struct headers *headers, struct phema_strbuf *out, bool says_size)
{
    static const char zeros[BLOCK_BYTES];
    struct headers unread = {.n = 0};
    put_header(headers, out, 0xFD2FB528u, 4);
    put_int(out, says_size ? 0x5084 : 0x5004, 2);
    put_int(out, (uint64_t)N_BLOCKS * BLOCK_BYTES, says_size ? 4 : 0);
    for (unsigned b = 0; b < N_BLOCKS; b++) {
        put_header(says_size ? &unread : headers, out, BLOCK_BYTES << 3 | (b + 1 == N_BLOCKS), 3);
        put(out, zeros, sizeof(zeros));
    }
    put_int(out, 0, 4);
}

/* Frames with skippable frames between them, or with a seek table instead; there they may state
 * their sizes. */
enum { GAPS, TABLE, TABLE_AND_SIZES, N_KINDS };

static void put_frames(struct headers *headers, struct phema_strbuf *out, int kind)
{
    static const char zeros[BLOCK_BYTES];
    size_t sizes[N_FRAMES];
    for (unsigned i = 0; i < N_FRAMES; i++) {
        size_t start = out->size;
        put_frame(headers, out, kind == TABLE_AND_SIZES);
        sizes[i] = out->size - start;
        if (kind != GAPS)
            continue;
        put_header(headers, out, 0x184D2A50, 4);
        put_int(out, BLOCK_BYTES, 4);
        put(out, zeros, BLOCK_BYTES);
    }
    if (kind == GAPS)
        return;
    put_int(out, 0x184D2A5E, 4);
    put_int(out, N_FRAMES * 8 + 9, 4);
    for (unsigned i = 0; i < N_FRAMES; i++) {
        put_int(out, sizes[i], 4);
        put_int(out, (uint64_t)N_BLOCKS * BLOCK_BYTES, 4);
    }
    put_int(out, N_FRAMES, 4);
    put_int(out, 0, 1);
    put_int(out, 0x8F92EAB1, 4);
}

/* Takes the file out of the page cache. false: it stays there, as on tmpfs. */
static bool cool(const char *path)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(descriptor >= 0);
    assert_int_equal(fsync(descriptor), 0);
    assert_int_equal(posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED), 0);
    (void)close(descriptor);
    struct phema_error err = {0};
    struct phema_file *file = NULL;
    assert_ok(phema_file_open(&file, path, &err), &err);
    bool is_cold = !phema_file_is_cached(file, 64);
    phema_file_close(file);
    return is_cold;
}

/* The requests are served in their own time. */
static bool arrives(const struct phema_file *file, size_t at)
{
    enum { MOST_TRIES = 5000 };
    for (unsigned i = 0; i < MOST_TRIES && !phema_file_is_cached_at(file, at); i++)
        (void)usleep(1000);
    return phema_file_is_cached_at(file, at);
}

/* Of a file that was cold, all headers come into the page cache, and less than a quarter of the
 * pages so many bytes behind them. */
static bool only_headers_arrive(const char *path, const struct headers *headers, size_t behind)
{
    struct phema_error err = {0};
    struct phema_file *file = NULL;
    assert_ok(phema_file_open(&file, path, &err), &err);
    phema_file_expect_sparse(file, true);
    zstd_frames_prefetch(file);
    size_t n_between = 0;
    for (size_t i = 0; i < headers->n; i++) {
        assert_true(arrives(file, headers->at[i]));
        n_between += phema_file_is_cached_at(file, headers->at[i] + behind);
    }
    phema_file_close(file);
    return n_between < (headers->n + 3) / 4;
}

/* A busy machine may leave pages in its cache, or bring some back: once in a few tries is enough,
 * and requests for more than headers fail in all. */
static void headers_are_requested_and_little_else(void **state)
{
    enum { MOST_TRIES = 6 };
    (void)state;
    for (int kind = 0; kind < N_KINDS; kind++) {
        struct headers headers = {.n = 0};
        struct phema_strbuf content = {0};
        put_frames(&headers, &content, kind);
        const char *path = as_file(content.data, content.size);
        phema_strbuf_clear(&content);
        bool succeeds = false;
        for (unsigned i = 0; i < MOST_TRIES && !succeeds; i++) {
            if (!cool(path))
                skip();
            /* halfway to the next header, or that of the second block */
            size_t behind = kind == TABLE_AND_SIZES ? BLOCK_BYTES + 16 : BLOCK_BYTES / 2;
            succeeds = only_headers_arrive(path, &headers, behind);
        }
        assert_true(succeeds);
    }
}

/* To the end of its block at least, and to that of its frame at most. */
static void bytes_need_the_file_as_far_as_their_block(void **state)
{
    (void)state;
    struct phema_error err = {0};
    struct headers headers = {.n = 0};
    struct phema_strbuf content = {0};
    put_frames(&headers, &content, TABLE);
    struct phema_file *file = NULL;
    struct zstd_frames *frames = NULL;
    assert_ok(phema_file_open(&file, as_file(content.data, content.size), &err), &err);
    assert_ok(zstd_frames_new(&frames, file, &err), &err);
    uint64_t frame_content = (uint64_t)N_BLOCKS * BLOCK_BYTES;
    assert_ok(zstd_frames_settle(frames, N_FRAMES * frame_content, &err), &err);
    for (unsigned i = 0; i < N_FRAMES * N_BLOCKS; i++) {
        unsigned frame = i / N_BLOCKS;
        const size_t *of_frame = &headers.at[(size_t)frame * (N_BLOCKS + 1)];
        uint64_t block_end = of_frame[i % N_BLOCKS + 1] + 3 + BLOCK_BYTES;
        uint64_t frame_end = frame + 1 < N_FRAMES ? of_frame[N_BLOCKS + 1] : content.size;
        uint64_t estimate = zstd_frames_estimate(frames, (uint64_t)i * BLOCK_BYTES);
        assert_in_range(estimate, block_end, frame_end);
    }
    zstd_frames_free(frames);
    phema_file_close(file);
    phema_strbuf_clear(&content);
}

static void prefetch(const uint8_t *data, size_t size)
{
    struct phema_error err = {0};
    struct phema_file *file = NULL;
    if (size == 0)
        return;
    assert_ok(phema_file_open(&file, as_file(data, size), &err), &err);
    zstd_frames_prefetch(file);
    phema_file_close(file);
}

/* Cut in headers, or with any of their bytes changed. */
static void damaged_files_end_the_requests(void **state)
{
    (void)state;
    for (int kind = 0; kind < N_KINDS; kind++) {
        struct headers headers = {.n = 0};
        struct phema_strbuf content = {0};
        put_frames(&headers, &content, kind);
        uint8_t *data = (uint8_t *)content.data;
        headers.at[headers.n - 1] = content.size - 24; /* in the table */
        for (size_t i = 0; i < headers.n; i += i % N_BLOCKS ? 14 : 1) {
            size_t end = headers.at[i] + 24 < content.size ? headers.at[i] + 24 : content.size;
            for (size_t at = headers.at[i]; at < end; at++) {
                prefetch(data, at);
                data[at] ^= 0xFF;
                prefetch(data, content.size);
                data[at] ^= 0xFF;
            }
        }
        phema_strbuf_clear(&content);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(headers_are_requested_and_little_else),
    cmocka_unit_test(bytes_need_the_file_as_far_as_their_block),
    cmocka_unit_test(damaged_files_end_the_requests),
};
TEST_GROUP(tests)
