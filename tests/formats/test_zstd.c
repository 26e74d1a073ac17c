// SPDX-License-Identifier: Apache-2.0
/* Compressed safetensors. The files of several writers are read in any order and in bounded memory.
 * Damaged or hostile frames, made by hand, are refused with a sentence. */
#define ZSTD_STATIC_LINKING_ONLY /* ZSTD_estimateDStreamSize */
#include <zstd.h>

#include "build.h"
#include "phema/memory.h"

#define JSON_8 "{\"x\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]}}"

#define FIXTURE_BYTES 29312u /* size of the content in all of them */

enum { RAW, RLE, COMPRESSED, RESERVED };

static void put_frame_start(struct phema_strbuf *out, uint8_t descriptor, uint8_t window)
{
    put_int(out, 0xFD2FB528u, 4);
    put_int(out, descriptor, 1);
    put_int(out, window, 1);
}

static void put_block(struct phema_strbuf *out, unsigned type, uint64_t size, bool is_last)
{
    put_int(out, size << 3 | type << 1 | is_last, 3);
}

/* A window of 1 MiB, no content size, no checksum; one raw block. */
static void put_raw_frame(struct phema_strbuf *out, const void *data, size_t size)
{
    put_frame_start(out, 0, 0x50);
    put_block(out, RAW, size, true);
    put(out, data, size);
}

/* A frame of libzstd, with a checksum. */
static void put_frame(struct phema_strbuf *out, const void *data, size_t size, bool says_size)
{
    ZSTD_CCtx *context = ZSTD_createCCtx();
    size_t capacity = ZSTD_compressBound(size);
    void *frame = malloc(capacity);
    assert_non_null(context);
    assert_non_null(frame);
    assert_false(ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1)));
    assert_false(ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, says_size)));
    size_t frame_size = ZSTD_compress2(context, frame, capacity, data, size);
    assert_false(ZSTD_isError(frame_size));
    put(out, frame, frame_size);
    free(frame);
    (void)ZSTD_freeCCtx(context);
}

/* JSON_8 and its data 0 to 7. */
static struct phema_strbuf small_content(void)
{
    struct phema_strbuf content = {0};
    put_safetensors(&content, JSON_8, 8);
    return content;
}

static struct phema_reader *open_reader(const struct phema_checkpoint *checkpoint)
{
    struct phema_error err = {0};
    struct phema_reader *reader = NULL;
    assert_ok(phema_reader_open(&reader, checkpoint, &err), &err);
    return reader;
}

/* Opens the file, reads every tensor and finishes. */
static enum phema_status read_all(const char *path, struct phema_error *err)
{
    struct phema_checkpoint *checkpoint = NULL;
    enum phema_status status = phema_checkpoint_open(&checkpoint, path, NULL, err);
    if (status)
        return status;
    struct phema_reader *reader = open_reader(checkpoint);
    for (size_t i = 0; !status && i < phema_checkpoint_n_tensors(checkpoint); i++) {
        const struct phema_tensor *tensor = &phema_checkpoint_tensors(checkpoint)[i];
        uint8_t *scratch = malloc(tensor->size_bytes + 1);
        assert_non_null(scratch);
        const uint8_t *data = NULL;
        if (tensor->n_elems)
            status = phema_reader_read(&data, reader, tensor, 0, tensor->n_elems, scratch, err);
        free(scratch);
    }
    if (!status)
        status = phema_reader_finish(reader, err);
    phema_reader_close(reader);
    phema_checkpoint_close(checkpoint);
    return status;
}

static void assert_reads(const struct phema_strbuf *file)
{
    struct phema_error err = {0};
    assert_ok(read_all(as_file(file->data, file->size), &err), &err);
}

/* The file opens, but reading it fails with this text. */
static void assert_fails_later(const struct phema_strbuf *file, const char *part)
{
    const char *path = as_file(file->data, file->size);
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    assert_ok(phema_checkpoint_open(&checkpoint, path, NULL, &err), &err);
    phema_checkpoint_close(checkpoint);
    assert_fails(read_all(path, &err), PHEMA_ERR_FILE, &err, part);
    assert_ptr_equal(strstr(err.message, path), err.message);
    assert_null(strchr(err.message, '\n'));
}

/* ---- Fixtures ---- */

static const struct {
    const char *name;
    bool has_index; /* every frame states its size, or a table does */
    unsigned n_frames;
} fixtures[] = {
    {"zst/single.safetensors.zst", true, 1},
    {"zst/unknown_size.safetensors.zst", false, 1},
    {"zst/no_checksum.safetensors.zst", true, 1},
    {"zst/long_window.safetensors.zst", false, 1},
    {"zst/multi.safetensors.zst", true, 4},
    {"zst/pzstd.safetensors.zst", false, 1},
    {"zst/seekable.safetensors.zst", true, 4},
    {"zst/gaps.safetensors.zst", true, 3},
    {"zst/gaps_unknown_size.safetensors.zst", false, 1},
};

static struct phema_checkpoint *open_fixture(const char *name)
{
    char *path = support_fixture(name);
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    assert_ok(phema_checkpoint_open(&checkpoint, path, NULL, &err), &err);
    free(path);
    return checkpoint;
}

/* Reading can begin at the frame of each byte. */
static void assert_entries(const struct phema_checkpoint *checkpoint, unsigned n_frames)
{
    unsigned n = 1;
    uint64_t last = phema_checkpoint_entry(checkpoint, 0);
    assert_int_equal(last, 0);
    for (uint64_t offset = 1; offset < FIXTURE_BYTES; offset++) {
        uint64_t entry = phema_checkpoint_entry(checkpoint, offset);
        assert_true(entry == last || entry == offset);
        n += entry != last;
        last = entry;
    }
    assert_int_equal(n, n_frames);
}

static void places_are_known_where_sizes_are(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(fixtures); i++) {
        struct phema_checkpoint *checkpoint = open_fixture(fixtures[i].name);
        assert_true(phema_checkpoint_is_compressed(checkpoint));
        assert_int_equal(phema_checkpoint_can_seek(checkpoint), fixtures[i].has_index);
        assert_string_equal(phema_checkpoint_metadatum(checkpoint, "step"), "700");
        assert_entries(checkpoint, fixtures[i].n_frames);
        phema_checkpoint_close(checkpoint);
    }
    struct phema_checkpoint *plain = open_fixture("zst/content.safetensors");
    assert_false(phema_checkpoint_is_compressed(plain));
    assert_true(phema_checkpoint_can_seek(plain));
    assert_int_equal(phema_checkpoint_decoder_bytes(plain), 0);
    assert_int_equal(phema_checkpoint_entry(plain, 1234), 1234);
    phema_checkpoint_close(plain);
}

/* The windows listed in fixtures/README.md. */
static void memory_equals_the_estimate_of_libzstd(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t window;
    } windows[] = {{"zst/unknown_size.safetensors.zst", (size_t)2 << 20},
                   {"zst/pzstd.safetensors.zst", (size_t)2 << 20},
                   {"zst/long_window.safetensors.zst", (size_t)128 << 20}};
    for (size_t i = 0; i < ARRAY_LEN(windows); i++) {
        struct phema_checkpoint *checkpoint = open_fixture(windows[i].name);
        uint64_t told = phema_checkpoint_decoder_bytes(checkpoint);
        assert_true(told >= ZSTD_estimateDStreamSize(windows[i].window));
        assert_true(told <= windows[i].window + ((size_t)1 << 20));
        phema_checkpoint_close(checkpoint);
    }
    /* known sizes limit the retained content, here to 29312 bytes */
    struct phema_checkpoint *single = open_fixture("zst/single.safetensors.zst");
    assert_true(phema_checkpoint_decoder_bytes(single) < (size_t)1 << 20);
    phema_checkpoint_close(single);
}

/* Pieces in an order that jumps back and forth, compared with the uncompressed content. */
static void order_does_not_matter(void **state)
{
    (void)state;
    char *path = support_fixture("zst/content.safetensors");
    size_t size = 0;
    uint8_t *content = support_read(path, &size);
    free(path);
    for (size_t i = 0; i < ARRAY_LEN(fixtures); i++) {
        struct phema_checkpoint *checkpoint = open_fixture(fixtures[i].name);
        struct phema_reader *reader = open_reader(checkpoint);
        uint32_t random = 1;
        for (int round = 0; round < 300; round++) {
            random = random * 1664525u + 1013904223u;
            const struct phema_tensor *tensor = &phema_checkpoint_tensors(
                checkpoint)[(random >> 24) % phema_checkpoint_n_tensors(checkpoint)];
            uint64_t first = (random >> 8) % tensor->n_elems;
            uint64_t n = 1 + (random >> 4) % (tensor->n_elems - first);
            uint8_t scratch[16384];
            const uint8_t *data = NULL;
            struct phema_error err = {0};
            assert_ok(phema_reader_read(&data, reader, tensor, first, n, scratch, &err), &err);
            size_t bytes = tensor->size_bytes / tensor->n_elems;
            assert_memory_equal(data, content + tensor->offset + first * bytes, n * bytes);
            if (round % 50 == 49)
                assert_ok(phema_reader_finish(reader, &err), &err);
        }
        phema_reader_close(reader);
        phema_checkpoint_close(checkpoint);
    }
    free(content);
}

/* True for the ends of frames without content, from the end of the last frame with content on.
 * libzstd computes the lengths of frames. */
static bool is_whole(const uint8_t *data, size_t size, size_t length)
{
    size_t end = 0, wanted = 0;
    for (size_t at = 0; at < size; at = end) {
        end = at + ZSTD_findFrameCompressedSize(data + at, size - at);
        wanted = ZSTD_getFrameContentSize(data + at, size - at) ? end : wanted;
    }
    for (end = wanted; end < length;)
        end += ZSTD_findFrameCompressedSize(data + end, size - end);
    return end == length;
}

/* A plain decoder ignores the seek table and other frames without content, so the file is whole
 * without them. A file that lacks anything else is short. */
static void cut_at_every_length_is_noticed(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(fixtures); i++) {
        if (strstr(fixtures[i].name, "long_window"))
            continue; /* like unknown_size except for the window, and slow under a sanitizer */
        char *fixture = support_fixture(fixtures[i].name);
        size_t size = 0;
        uint8_t *data = support_read(fixture, &size);
        free(fixture);
        const char *path = as_file(data, size);
        for (size_t length = size; length-- > 0;) {
            assert_int_equal(truncate(path, (off_t)length), 0);
            struct phema_error err = {0};
            enum phema_status status = read_all(path, &err);
            assert_int_equal(status, is_whole(data, size, length) ? PHEMA_OK : PHEMA_ERR_FILE);
            if (status)
                assert_ptr_equal(strstr(err.message, path), err.message);
        }
        free(data);
    }
}

/* Slow: every byte of a file; with a checksum, a change is detected, or changes no tensor. */
static void slow_damage_is_noticed(void **state)
{
    (void)state;
    char *fixture = support_fixture("zst/single.safetensors.zst");
    size_t size = 0;
    uint8_t *data = support_read(fixture, &size);
    free(fixture);
    fixture = support_fixture("zst/content.safetensors");
    struct phema_error err = {0};
    struct phema_checkpoint *plain = NULL;
    assert_ok(phema_checkpoint_open(&plain, fixture, NULL, &err), &err);
    free(fixture);
    size_t n_noticed = 0;
    for (size_t at = 0; at < size; at++) {
        data[at] ^= (uint8_t)(1u << at % 8);
        const char *path = as_file(data, size);
        data[at] ^= (uint8_t)(1u << at % 8);
        enum phema_status status = read_all(path, &err);
        n_noticed += status != PHEMA_OK;
        if (status) {
            assert_int_equal(status, PHEMA_ERR_FILE);
            continue;
        }
        struct phema_checkpoint *read = NULL;
        assert_ok(phema_checkpoint_open(&read, path, NULL, &err), &err);
        struct phema_reader *reader = open_reader(read);
        assert_int_equal(phema_checkpoint_n_tensors(read), phema_checkpoint_n_tensors(plain));
        for (size_t i = 0; i < phema_checkpoint_n_tensors(read); i++) {
            const struct phema_tensor *tensor = &phema_checkpoint_tensors(read)[i];
            const struct phema_tensor *wanted = &phema_checkpoint_tensors(plain)[i];
            uint8_t scratch[16384];
            const uint8_t *bytes = NULL;
            assert_ok(phema_reader_read(&bytes, reader, tensor, 0, tensor->n_elems, scratch, &err),
                      &err);
            assert_int_equal(tensor->size_bytes, wanted->size_bytes);
            assert_memory_equal(bytes, phema_tensor_start(plain, wanted), wanted->size_bytes);
        }
        phema_reader_close(reader);
        phema_checkpoint_close(read);
    }
    assert_true(n_noticed > size - 64); /* all but a few unused bits of frame headers */
    phema_checkpoint_close(plain);
    free(data);
}

/* ---- Frames by hand ---- */

static void frames_may_be_empty_skippable_and_of_any_kind(void **state)
{
    (void)state;
    struct phema_strbuf content = small_content();
    struct phema_strbuf file = {0};
    put_int(&file, 0x184D2A5F, 4); /* skippable */
    put_int(&file, 3, 4);
    put_text(&file, "abc");
    put_frame(&file, "", 0, true);
    put_raw_frame(&file, content.data, 5);
    put_raw_frame(&file, "", 0);
    put_int(&file, 0x184D2A50, 4);
    put_int(&file, 0, 4);
    put_frame(&file, content.data + 5, content.size - 7, true);
    put_frame_start(&file, 0x20, 2); /* single segment of 2 bytes; 6 and 7 differ, so not RLE */
    put_block(&file, RAW, 1, false);
    put(&file, content.data + content.size - 2, 1);
    put_block(&file, RLE, 1, true);
    put(&file, content.data + content.size - 1, 1);
    put_frame(&file, "", 0, false);
    assert_reads(&file);
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    assert_ok(open_bytes(&checkpoint, file.data, file.size, &err), &err);
    assert_true(phema_checkpoint_can_seek(checkpoint)); /* raw and RLE blocks state their sizes */
    struct phema_reader *reader = open_reader(checkpoint);
    for (uint64_t i = 8; i-- > 0;) {
        uint8_t scratch = 0;
        const uint8_t *data = NULL;
        assert_ok(phema_reader_read(&data, reader, phema_checkpoint_tensors(checkpoint), i, 1,
                                    &scratch, &err),
                  &err);
        assert_int_equal(*data, i);
    }
    phema_reader_close(reader);
    phema_checkpoint_close(checkpoint);
    phema_strbuf_clear(&file);
    phema_strbuf_clear(&content);
}

static void data_other_than_frames_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *after; /* a valid frame */
        size_t size;
        const char *part;
    } rows[] = {
        {"x", 1, "cut short"},
        {"abcdefgh", 8, "expected a zstd frame at offset"},
        {"\x50\x2A\x4D\x18\1\0\0\0", 8, "cut short"},
        {"\x28\xB5\x2F\xFD\0\x50", 6, "cut short"},
        {"\x28\xB5\x2F\xFD\x08\x50\1\0\0", 9, "reserved bit"},
        {"\x28\xB5\x2F\xFD\x01\x50\7\1\0\0", 10, "dictionary"},
        {"\x28\xB5\x2F\xFD\0\x50\7\0\0", 9, "block of the reserved type"},
        /* Blocks of 128 KiB and one byte: raw, and RLE, which needs only one byte of the file */
        {"\x28\xB5\x2F\xFD\0\x50\x09\0\x10", 9, "above the largest size"},
        {"\x28\xB5\x2F\xFD\0\x50\x0B\0\x10x", 10, "above the largest size"},
        {"\x28\xB5\x2F\xFD\0\0\x09\x20\0", 9, "above the largest size"}, /* the window is 1 KiB */
        {"\x28\xB5\x2F\xFD\4\x50\1\0\0abc", 12, "cut short"},            /* in the checksum */
        {"\x28\xB5\x2F\xFD\0\x89\1\0\0", 9, "window of 144 MiB"},
        {"\x28\xB5\x2F\xFD\xE0\1\0\0\x08\0\0\0\0\1\0\0", 16, "window of 129 MiB"},
        {"\x28\xB5\x2F\xFD\xE0\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\1\0\0", 16,
         "window of 17592186044416 MiB"},
        {"\x28\xB5\x2F\xFD\x20\5\x19\0\0abc", 12, "says it holds 5 bytes, but its blocks hold 3"},
        {"\x28\xB5\x2F\xFD\x20\2\x19\0\0abc", 12, "above the largest size"},
    };
    struct phema_strbuf content = small_content();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct phema_strbuf file = {0};
        put_raw_frame(&file, content.data, content.size);
        put(&file, rows[i].after, rows[i].size);
        assert_refused(file.data, file.size, rows[i].part);
        phema_strbuf_clear(&file);
    }
    phema_strbuf_clear(&content);
}

/* The size of a frame is a claim that libzstd compares with the real size. */
static void a_lying_frame_size_is_noticed(void **state)
{
    (void)state;
    struct phema_strbuf content = small_content();
    struct phema_strbuf file = {0};
    put_frame(&file, content.data, content.size, true);
    assert_int_equal((uint8_t)file.data[4], 0x24); /* single segment, size of 1 byte, checksum */
    file.data[5]++;
    assert_refused(file.data, file.size, ""); /* one byte more than the header inside describes */
    phema_strbuf_clear(&file);

    /* two false frame sizes with the right sum */
    char halves[2][64];
    memset(halves, 0, sizeof(halves));
    struct phema_strbuf json = {0};
    put_text(&json, "{\"x\":{\"dtype\":\"U8\",\"shape\":[128],\"data_offsets\":[0,128]}}");
    struct phema_strbuf head = {0};
    put_int(&head, json.size, 8);
    put(&head, json.data, json.size);
    put_frame(&file, head.data, head.size, true);
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < 64; k++) /* compressible, but not as RLE */
            halves[i][k] = (char)(k % 8);
        size_t start = file.size;
        put_frame(&file, halves[i], 64, true);
        assert_int_equal((uint8_t)file.data[start + 4], 0x24);
        file.data[start + 5] = (char)(i ? 65 : 63);
    }
    assert_fails_later(&file, "tensor 'x': the zstd data are damaged");
    phema_strbuf_clear(&file);
    phema_strbuf_clear(&head);
    phema_strbuf_clear(&json);
    phema_strbuf_clear(&content);
}

/* ---- Frames without content ---- */

/* Reads tensor x in pieces of this size: forward, or from the last piece to the first. */
static void assert_pieces(const struct phema_checkpoint *checkpoint, size_t piece, bool is_backward)
{
    const struct phema_tensor *tensor = phema_checkpoint_tensors(checkpoint);
    struct phema_reader *reader = open_reader(checkpoint);
    uint64_t n_pieces = (tensor->n_elems + piece - 1) / piece;
    for (uint64_t k = 0; k < n_pieces; k++) {
        uint64_t first = (is_backward ? n_pieces - 1 - k : k) * piece;
        uint64_t n = tensor->n_elems - first < piece ? tensor->n_elems - first : piece;
        static uint8_t scratch[1 << 16];
        const uint8_t *data = NULL;
        struct phema_error err = {0};
        assert_ok(phema_reader_read(&data, reader, tensor, first, n, scratch, &err), &err);
        for (uint64_t i = 0; i < n; i++)
            assert_int_equal(data[i], (first + i) & 0xFF);
        if (is_backward)
            assert_ok(phema_reader_finish(reader, &err), &err);
    }
    struct phema_error err = {0};
    assert_ok(phema_reader_finish(reader, &err), &err);
    phema_reader_close(reader);
}

enum { SKIPPABLE, SKIPPABLE_EMPTY, SKIPPABLE_LONG, OF_SIZE_0, OF_NO_SIZE, N_WITHOUT_CONTENT };

/* A frame without content (RFC 8878, 3.1.1 and 3.1.2); longer ones are decoded in several steps. */
static void put_without_content(struct phema_strbuf *out, unsigned kind)
{
    static const size_t sizes[] = {5, 0, (size_t)150 << 10};
    if (kind >= OF_SIZE_0) {
        put_frame(out, "", 0, kind == OF_SIZE_0);
        return;
    }
    put_int(out, 0x184D2A50 + kind, 4);
    put_int(out, sizes[kind], 4);
    for (size_t i = 0; i < sizes[kind]; i++)
        put_int(out, 0x28, 1);
}

struct entry {
    uint64_t frame, content;
};

static void put_table(struct phema_strbuf *out, const struct entry *entries, size_t n,
                      uint8_t descriptor);

/* Three frames of about 5000 bytes. Two frames of one kind precede, separate and follow them. */
static void put_with_gaps(struct phema_strbuf *out, unsigned kind, bool says_size, bool has_table)
{
    struct phema_strbuf content = {0};
    put_safetensors(
        &content, "{\"x\":{\"dtype\":\"U8\",\"shape\":[15000],\"data_offsets\":[0,15000]}}", 15000);
    struct entry entries[11] = {{0, 0}};
    for (size_t i = 0, first = 0; i < ARRAY_LEN(entries); i++) {
        size_t start = out->size;
        if (i % 3 == 2) {
            size_t n = i == 8 ? content.size - first : 5000;
            put_frame(out, content.data + first, n, says_size);
            entries[i].content = n;
            first += n;
        } else {
            put_without_content(out, kind);
        }
        entries[i].frame = out->size - start;
    }
    if (has_table)
        put_table(out, entries, ARRAY_LEN(entries), 0);
    phema_strbuf_clear(&content);
}

static void frames_without_content_may_stand_anywhere(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < N_WITHOUT_CONTENT; kind++)
        for (unsigned way = 0; way < 4; way++) {
            struct phema_strbuf file = {0};
            put_with_gaps(&file, kind, way & 1, way & 2);
            struct phema_error err = {0};
            struct phema_checkpoint *checkpoint = NULL;
            assert_ok(open_bytes(&checkpoint, file.data, file.size, &err), &err);
            assert_int_equal(phema_checkpoint_can_seek(checkpoint), way != 0);
            assert_pieces(checkpoint, 15000, false);
            assert_pieces(checkpoint, 777, false);
            assert_pieces(checkpoint, 2500, true);
            phema_checkpoint_close(checkpoint);
            phema_strbuf_clear(&file);
        }
}

/* ---- Seek tables ---- */

static void put_table(struct phema_strbuf *out, const struct entry *entries, size_t n,
                      uint8_t descriptor)
{
    size_t entry_size = descriptor & 0x80 ? 12 : 8;
    put_int(out, 0x184D2A5E, 4);
    put_int(out, n * entry_size + 9, 4);
    for (size_t i = 0; i < n; i++) {
        put_int(out, entries[i].frame, 4);
        put_int(out, entries[i].content, 4);
        put_int(out, 0, (unsigned)entry_size - 8);
    }
    put_int(out, n, 4);
    put_int(out, descriptor, 1);
    put_int(out, 0x8F92EAB1, 4);
}

/* Three compressed frames of about 5000 bytes without a stated size, the first with the header.
 * Their window is 8 KiB, which limits the content of a frame. */
static void put_unknown_frames(struct phema_strbuf *out, struct entry *entries)
{
    struct phema_strbuf content = {0};
    put_safetensors(
        &content, "{\"x\":{\"dtype\":\"U8\",\"shape\":[15000],\"data_offsets\":[0,15000]}}", 15000);
    for (size_t i = 0; i < 3; i++) {
        size_t first = i * 5000;
        entries[i].content = i < 2 ? 5000 : content.size - first;
        size_t start = out->size;
        put_frame(out, content.data + first, entries[i].content, false);
        entries[i].frame = out->size - start;
    }
    phema_strbuf_clear(&content);
}

static bool has_index(const struct phema_strbuf *file)
{
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    assert_ok(open_bytes(&checkpoint, file->data, file->size, &err), &err);
    bool can_seek = phema_checkpoint_can_seek(checkpoint);
    phema_checkpoint_close(checkpoint);
    return can_seek;
}

static void a_table_that_does_not_agree_is_ignored(void **state)
{
    (void)state;
    struct entry good[3];
    struct phema_strbuf frames = {0};
    put_unknown_frames(&frames, good);
    enum { ENTRIES, COUNT, DESCRIPTOR, FOOTER, FRAME_SIZE, CONTENT, IMPOSSIBLE, LENGTH, N_CASES };
    for (int which = -2; which < N_CASES; which++) {
        struct phema_strbuf file = {0};
        put(&file, frames.data, frames.size);
        struct entry entries[3];
        memcpy(entries, good, sizeof(entries));
        if (which == FRAME_SIZE) { /* the sum remains */
            entries[0].frame++;
            entries[1].frame--;
        }
        if (which == CONTENT)
            entries[2].content++;
        if (which == IMPOSSIBLE) { /* no block holds more than the window */
            entries[0].content += 4000;
            entries[1].content -= 4000;
        }
        size_t table = file.size;
        put_table(&file, entries, which == ENTRIES ? 2 : 3, which == -1 ? 0x80 : 0);
        if (which == COUNT)
            file.data[file.size - 9] = 2;
        if (which == DESCRIPTOR)
            file.data[file.size - 5] = 4;
        if (which == FOOTER)
            file.data[file.size - 1] ^= 1;
        if (which == LENGTH) {
            file.data[table + 4]++;
            put_int(&file, 0, 1);
        }
        assert_int_equal(has_index(&file), which < 0);
        assert_reads(&file);
        put_int(&file, 0x184D2A50, 4); /* the table is then no longer the last frame */
        put_int(&file, 0, 4);
        assert_false(has_index(&file));
        phema_strbuf_clear(&file);
    }
    phema_strbuf_clear(&frames);
}

/* Only full decompression of a frame reveals this. Then it is an error, whether the size is too
 * large or too small. */
static void a_table_whose_lies_add_up_is_noticed(void **state)
{
    (void)state;
    for (int lie = -1; lie <= 1; lie += 2) {
        struct entry entries[3];
        struct phema_strbuf file = {0};
        put_unknown_frames(&file, entries);
        entries[1].content += (uint64_t)(100 * (int64_t)lie);
        entries[2].content -= (uint64_t)(100 * (int64_t)lie);
        put_table(&file, entries, 3, 0);
        assert_true(has_index(&file));
        assert_fails_later(&file, "another size than the seek table says");
        phema_strbuf_clear(&file);
    }
}

/* A frame with a single compressed block without content: no literals, no sequences (RFC 8878,
 * 3.1.1.3). Its header does not state the size, and the table may give a wrong one. */
static void a_table_that_gives_an_empty_frame_content_is_noticed(void **state)
{
    (void)state;
    for (int is_lie = 0; is_lie < 2; is_lie++) {
        struct entry good[3];
        struct phema_strbuf frames = {0}, file = {0};
        put_unknown_frames(&frames, good);
        put(&file, frames.data, good[0].frame);
        size_t start = file.size;
        put_frame_start(&file, 0, 0x50);
        put_block(&file, COMPRESSED, 2, true);
        put_int(&file, 0, 2);
        struct entry entries[] = {good[0], {file.size - start, is_lie ? 100 : 0}, good[1], good[2]};
        entries[2].content -= is_lie ? 100 : 0;
        put(&file, frames.data + good[0].frame, frames.size - good[0].frame);
        put_table(&file, entries, 4, 0);
        assert_true(has_index(&file));
        if (is_lie)
            assert_fails_later(&file, "another size than the seek table says");
        else
            assert_reads(&file);
        phema_strbuf_clear(&file);
        phema_strbuf_clear(&frames);
    }
}

/* Three frames of about 5000 bytes that state their sizes, and a table that agrees: blocks are not
 * looked at before they are decompressed.
 *   table  out: where it begins */
static void put_known_frames(struct phema_strbuf *out, struct entry *entries, size_t *table)
{
    struct phema_strbuf content = {0};
    put_safetensors(
        &content, "{\"x\":{\"dtype\":\"U8\",\"shape\":[15000],\"data_offsets\":[0,15000]}}", 15000);
    for (size_t i = 0; i < 3; i++) {
        size_t start = out->size;
        entries[i].content = i < 2 ? 5000 : content.size - 10000;
        put_frame(out, content.data + i * 5000, entries[i].content, true);
        entries[i].frame = out->size - start;
    }
    *table = out->size;
    put_table(out, entries, 3, 0);
    phema_strbuf_clear(&content);
}

static void a_table_that_agrees_spares_the_blocks(void **state)
{
    (void)state;
    struct entry entries[3];
    size_t table = 0;
    struct phema_strbuf file = {0};
    put_known_frames(&file, entries, &table);
    assert_reads(&file);
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    assert_ok(open_bytes(&checkpoint, file.data, file.size, &err), &err);
    assert_pieces(checkpoint, 2500, true);
    phema_checkpoint_close(checkpoint);
    size_t block = entries[0].frame + 7; /* behind magic number, descriptor and 2 bytes of size */
    file.data[block] |= RESERVED << 1;
    assert_fails_later(&file, "tensor 'x': the zstd data are damaged");
    assert_refused(file.data, table, "block of the reserved type");
    phema_strbuf_clear(&file);
}

/* Bytes behind a frame of the header that the table counts as its own. */
static void the_table_bounds_the_frames_of_the_header(void **state)
{
    (void)state;
    struct entry entries[2];
    struct phema_strbuf content = {0}, file = {0};
    put_safetensors(&content, "{\"x\":{\"dtype\":\"U8\",\"shape\":[64],\"data_offsets\":[0,64]}}",
                    64);
    put_frame(&file, content.data, 40, true);
    put(&file, (const uint8_t[16]){0}, 16);
    entries[0] = (struct entry){.frame = file.size, .content = 40};
    put_frame(&file, content.data + 40, content.size - 40, true);
    entries[1] =
        (struct entry){.frame = file.size - entries[0].frame, .content = content.size - 40};
    put_table(&file, entries, 2, 0);
    assert_refused(file.data, file.size, "another size than the seek table says");
    phema_strbuf_clear(&content);
    phema_strbuf_clear(&file);
}

/* Without its end there is no table. */
static void a_cut_file_with_a_table_is_short(void **state)
{
    (void)state;
    struct entry entries[3];
    size_t table = 0;
    struct phema_strbuf file = {0};
    put_known_frames(&file, entries, &table);
    for (size_t length = table + 1; length < file.size; length++)
        assert_refused(file.data, length, "cut short");
    for (size_t length = 0; length < table; length++) {
        struct phema_error err = {0};
        assert_int_equal(read_all(as_file(file.data, length), &err), PHEMA_ERR_FILE);
    }
    phema_strbuf_clear(&file);
}

/* Tables that agree with every header, with frames that begin or end elsewhere. A frame hides inside
 * a block of another one, or behind it. */
static void a_table_of_other_frames_is_noticed(void **state)
{
    (void)state;
    for (int is_hidden = 0; is_hidden < 2; is_hidden++) {
        struct phema_strbuf content = {0}, file = {0}, inner = {0};
        put_safetensors(&content,
                        "{\"x\":{\"dtype\":\"U8\",\"shape\":[216],\"data_offsets\":[0,216]}}", 0);
        struct entry entries[3] = {{0, content.size}, {0, 200}, {0, 16}};
        put_frame(&file, content.data, content.size, true);
        entries[0].frame = file.size;
        put_frame(&inner, "0123456789abcdef", 16, true);
        put_frame_start(&file, 0x20, 200); /* a single segment of 200 bytes */
        put_block(&file, RAW, 200, true);
        size_t n_before = is_hidden ? 200 - inner.size : 200;
        for (size_t i = 0; i < n_before; i++)
            put_int(&file, i, 1);
        if (!is_hidden)
            put_frame(&file, "not in the table", 16, true);
        entries[1].frame = file.size - entries[0].frame;
        put(&file, inner.data, inner.size);
        entries[2].frame = inner.size;
        put_table(&file, entries, 3, 0);
        assert_fails_later(&file, "another size than the seek table says");
        phema_strbuf_clear(&inner);
        phema_strbuf_clear(&file);
        phema_strbuf_clear(&content);
    }
}

/* Then blocks are looked at, as without a table. */
static void a_table_that_contradicts_a_header_is_ignored(void **state)
{
    (void)state;
    enum { CONTENT, FRAME, COUNT, LARGER_CONTENT, N_CASES };
    for (int which = 0; which < N_CASES; which++) {
        struct entry entries[3];
        size_t table = 0;
        struct phema_strbuf file = {0};
        put_known_frames(&file, entries, &table);
        file.size = table;
        if (which == CONTENT) { /* the sum remains */
            entries[0].content++;
            entries[1].content--;
        }
        if (which == FRAME) {
            entries[1].frame--;
            entries[2].frame++;
        }
        if (which == LARGER_CONTENT)
            entries[2].content = UINT32_MAX;
        put_table(&file, entries, which == COUNT ? 2 : 3, 0);
        assert_true(has_index(&file)); /* by the headers */
        assert_reads(&file);
        phema_strbuf_clear(&file);
    }
    /* more content than so few bytes can hold, in the table as in the header */
    struct phema_strbuf file = {0};
    put_frame_start(&file, 0xA0, 0);
    file.size--;
    put_int(&file, 0xFFFFFF, 4);
    put_block(&file, RLE, 1, true);
    put_int(&file, 0, 1);
    put_table(&file, &(struct entry){file.size, 0xFFFFFF}, 1, 0);
    assert_refused(file.data, file.size, "its blocks hold 1 to 1");
    phema_strbuf_clear(&file);
}

/* ---- Content ---- */

static void content_must_be_safetensors(void **state)
{
    (void)state;
    static const struct {
        const char *content;
        size_t size;
        const char *part;
    } rows[] = {
        {"", 0, "ends too early"},
        {"hello", 5, "ends too early"},
        {"hello world, this is text", 25, "is not safetensors"},
        {"\0\0\0\0\0\0\0\0{", 9, "is not safetensors"},
        {"\2\0\0\0\0\0\0\0[]", 10, "is not safetensors"},
        {"\1\xE1\xF5\5\0\0\0\0{", 9, "is not safetensors"}, /* 100 000 001 */
        {"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF{", 9, "is not safetensors"},
        {"\0\xE1\xF5\5\0\0\0\0{", 9, "safetensors header: the content ends too early"},
        {"\3\0\0\0\0\0\0\0{}\0", 11, "nothing but spaces"},
        {"\4\0\0\0\0\0\0\0{\"\xFF\"", 12, "UTF-8"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        for (int says_size = 0; says_size < 2; says_size++) {
            struct phema_strbuf file = {0};
            put_frame(&file, rows[i].content, rows[i].size, says_size);
            assert_refused(file.data, file.size, rows[i].part);
            phema_strbuf_clear(&file);
        }
    struct phema_strbuf empty = {0};
    put_frame(&empty, "\2\0\0\0\0\0\0\0{}", 10, false);
    assert_reads(&empty);
    phema_strbuf_clear(&empty);
}

static void offsets_beyond_64_bits_are_refused(void **state)
{
    (void)state;
    static const char *const headers[] = {
        "{\"x\":{\"dtype\":\"U8\",\"shape\":[18446744073709551615],"
        "\"data_offsets\":[0,18446744073709551615]}}",
        "{\"x\":{\"dtype\":\"U8\",\"shape\":[1152921504606846976],"
        "\"data_offsets\":[0,1152921504606846976]}}", /* 2^60 */
        "{\"x\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[2,4]}}",
    };
    static const char *const parts[] = {"of which", "no more than", "leave a hole"};
    for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
        struct phema_strbuf content = {0}, file = {0};
        put_safetensors(&content, headers[i], 8);
        put_frame(&file, content.data, content.size, false);
        assert_refused(file.data, file.size, parts[i]);
        phema_strbuf_clear(&file);
        phema_strbuf_clear(&content);
    }
}

/* The size of compressed blocks is unknown before they are read, if the frame does not state it.
 * Otherwise the error appears on opening. */
static void content_ends_with_the_last_tensor(void **state)
{
    (void)state;
    struct phema_strbuf content = {0};
    put_safetensors(&content, "{\"x\":{\"dtype\":\"U8\",\"shape\":[600],\"data_offsets\":[0,600]}}",
                    601);
    assert_int_equal(content.size, 8 + 57 + 601);
    struct phema_strbuf file = {0};
    put_frame(&file, content.data, 664, true);
    assert_refused(file.data, file.size, "tells of 665 bytes");
    phema_strbuf_clear(&file);
    put_frame(&file, content.data, 664, false);
    assert_fails_later(&file, "tensor 'x': the content ends too early, after 664 bytes");
    phema_strbuf_clear(&file);

    put_frame(&file, content.data, 665, false);
    assert_reads(&file);
    phema_strbuf_clear(&file);

    put_frame(&file, content.data, 666, true);
    assert_refused(file.data, file.size, "should end after 665 bytes");
    phema_strbuf_clear(&file);
    put_frame(&file, content.data, 666, false);
    assert_fails_later(&file, "continues behind the last tensor, which ends after 665 bytes");
    phema_strbuf_clear(&file);
    put_raw_frame(&file, content.data, 665);
    put_raw_frame(&file, "!", 1);
    assert_refused(file.data, file.size, "should end after 665 bytes");
    phema_strbuf_clear(&file);
    phema_strbuf_clear(&content);
}

/* RLE blocks state the size of their output in 4 bytes; compressed ones reveal it only on
 * reading. */
static void bombs_stop_at_the_last_tensor(void **state)
{
    (void)state;
    struct phema_strbuf content = small_content();
    struct phema_strbuf file = {0};
    put_frame_start(&file, 0, 0x50);
    put_block(&file, RAW, content.size, false);
    put(&file, content.data, content.size);
    for (int i = 0; i < 10000; i++) {
        put_block(&file, RLE, (size_t)128 << 10, i == 9999);
        put_int(&file, 0, 1);
    }
    assert_refused(file.data, file.size, "should end after 69 bytes");
    phema_strbuf_clear(&file);

    size_t size = (size_t)32 << 20;
    char *long_content = malloc(size);
    assert_non_null(long_content);
    for (size_t i = 0; i < size; i++)
        long_content[i] = (char)(i % 1000);
    memcpy(long_content, content.data, content.size);
    put_frame(&file, long_content, size, false);
    assert_true(file.size < size / 1000);
    file.data[file.size - 1] ^= 1; /* the checksum, in case all is decompressed */
    assert_fails_later(&file, "continues behind the last tensor");
    phema_strbuf_clear(&file);
    free(long_content);
    phema_strbuf_clear(&content);
}

static void a_wrong_checksum_is_noticed(void **state)
{
    (void)state;
    struct phema_strbuf content = small_content();
    for (int says_size = 0; says_size < 2; says_size++) {
        struct phema_strbuf file = {0};
        put_frame(&file, content.data, content.size, says_size);
        assert_reads(&file);
        file.data[file.size - 1] ^= 1;
        if (says_size)
            assert_fails_later(&file, "tensor 'x': the zstd data are damaged");
        else
            assert_fails_later(&file, "hecksum");
        phema_strbuf_clear(&file);
    }
    phema_strbuf_clear(&content);
}

/* After a failure, a reader still reads undamaged frames. */
static void other_tensors_are_read_after_a_failure(void **state)
{
    (void)state;
    struct phema_strbuf content = {0}, file = {0};
    put_safetensors(&content,
                    "{\"a\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]},"
                    "\"b\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[8,16]}}",
                    16);
    for (int says_size = 0; says_size < 2; says_size++) {
        put_frame(&file, content.data, content.size - 8, says_size);
        put_frame(&file, content.data + content.size - 8, 8, says_size);
        file.data[file.size - 1] ^= 1; /* in the checksum of b's frame */
        struct phema_error err = {0};
        struct phema_checkpoint *checkpoint = NULL;
        assert_ok(open_bytes(&checkpoint, file.data, file.size, &err), &err);
        struct phema_reader *reader = open_reader(checkpoint);
        for (int round = 0; round < 2; round++) {
            uint8_t scratch[8];
            const uint8_t *data = NULL;
            const struct phema_tensor *tensors = phema_checkpoint_tensors(checkpoint);
            enum phema_status status =
                phema_reader_read(&data, reader, &tensors[1], 0, 8, scratch, &err);
            if (!status)
                status = phema_reader_finish(reader, &err);
            assert_fails(status, PHEMA_ERR_FILE, &err, "the zstd data are damaged");
            assert_ok(phema_reader_read(&data, reader, &tensors[0], 0, 8, scratch, &err), &err);
            assert_memory_equal(data, "\0\1\2\3\4\5\6\7", 8);
        }
        phema_reader_close(reader);
        phema_checkpoint_close(checkpoint);
        phema_strbuf_clear(&file);
    }
    phema_strbuf_clear(&content);
}

/* ---- Memory ---- */

enum { PIECE = 1 << 16 };

/* One frame with a window of 1 MiB around n blocks of 128 KiB. Block k consists of the byte k, in
 * RLE or raw. */
static void put_long(struct phema_strbuf *out, size_t n, bool is_raw)
{
    static uint8_t block[128 << 10];
    char json[128];
    (void)snprintf(json, sizeof(json),
                   "{\"x\":{\"dtype\":\"U8\",\"shape\":[%zu],\"data_offsets\":[0,%zu]}}", n << 17,
                   n << 17);
    put_frame_start(out, 0, 0x50);
    put_block(out, RAW, 8 + strlen(json), false);
    put_int(out, strlen(json), 8);
    put_text(out, json);
    for (size_t k = 0; k < n; k++) {
        put_block(out, is_raw ? RAW : RLE, sizeof(block), k + 1 == n);
        memset(block, (int)(k & 0xFF), sizeof(block));
        put(out, block, is_raw ? sizeof(block) : 1);
    }
}

#ifdef __SANITIZE_ADDRESS__ /* keeps what was freed, and notes on it */
#define HEAP_BYTES ((size_t)6 << 20)
#else
#define HEAP_BYTES ((size_t)2 << 20)
#endif

static void memory_does_not_grow_with_the_content(void **state)
{
    (void)state;
    for (int is_raw = 0; is_raw < 2; is_raw++) {
        size_t n = is_raw ? 512 : 4096; /* 64 MiB, or 512 MiB from 16 KiB */
        struct phema_strbuf file = {0};
        put_long(&file, n, is_raw);
        const char *path = as_file(file.data, file.size);
        phema_strbuf_clear(&file);
        struct phema_error err = {0};
        struct phema_checkpoint *checkpoint = NULL;
        struct phema_memory before = phema_memory_now();
        assert_ok(phema_checkpoint_open(&checkpoint, path, NULL, &err), &err);
        assert_false(
            phema_checkpoint_can_seek(checkpoint)); /* a single large frame with a known size */
        struct phema_reader *reader = open_reader(checkpoint);
        const struct phema_tensor *tensor = phema_checkpoint_tensors(checkpoint);
        struct phema_memory most = before;
        static uint8_t scratch[PIECE];
        for (uint64_t at = 0; at < tensor->n_elems; at += PIECE) {
            const uint8_t *data = NULL;
            assert_ok(phema_reader_read(&data, reader, tensor, at, PIECE, scratch, &err), &err);
            assert_int_equal(data[0], (at >> 17) & 0xFF);
            assert_int_equal(data[PIECE - 1], (at >> 17) & 0xFF);
            if (at % (PIECE * 16) == 0) {
                struct phema_memory now = phema_memory_now();
                if (now.anonymous_bytes > most.anonymous_bytes)
                    most.anonymous_bytes = now.anonymous_bytes;
                if (now.file_bytes > most.file_bytes)
                    most.file_bytes = now.file_bytes;
            }
        }
        assert_ok(phema_reader_finish(reader, &err), &err);
        assert_true(most.anonymous_bytes - before.anonymous_bytes <
                    phema_checkpoint_decoder_bytes(checkpoint) + HEAP_BYTES);
        assert_true(most.file_bytes - before.file_bytes < (size_t)24 << 20);
        phema_reader_close(reader);
        phema_checkpoint_close(checkpoint);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(places_are_known_where_sizes_are),
    cmocka_unit_test(memory_equals_the_estimate_of_libzstd),
    cmocka_unit_test(order_does_not_matter),
    cmocka_unit_test(cut_at_every_length_is_noticed),
    cmocka_unit_test(slow_damage_is_noticed),
    cmocka_unit_test(frames_may_be_empty_skippable_and_of_any_kind),
    cmocka_unit_test(data_other_than_frames_are_refused),
    cmocka_unit_test(a_lying_frame_size_is_noticed),
    cmocka_unit_test(frames_without_content_may_stand_anywhere),
    cmocka_unit_test(a_table_that_does_not_agree_is_ignored),
    cmocka_unit_test(a_table_whose_lies_add_up_is_noticed),
    cmocka_unit_test(a_table_that_gives_an_empty_frame_content_is_noticed),
    cmocka_unit_test(a_table_that_agrees_spares_the_blocks),
    cmocka_unit_test(the_table_bounds_the_frames_of_the_header),
    cmocka_unit_test(a_cut_file_with_a_table_is_short),
    cmocka_unit_test(a_table_of_other_frames_is_noticed),
    cmocka_unit_test(a_table_that_contradicts_a_header_is_ignored),
    cmocka_unit_test(content_must_be_safetensors),
    cmocka_unit_test(offsets_beyond_64_bits_are_refused),
    cmocka_unit_test(content_ends_with_the_last_tensor),
    cmocka_unit_test(bombs_stop_at_the_last_tensor),
    cmocka_unit_test(a_wrong_checksum_is_noticed),
    cmocka_unit_test(other_tensors_are_read_after_a_failure),
    cmocka_unit_test(memory_does_not_grow_with_the_content),
};
TEST_GROUP(tests)
