// SPDX-License-Identifier: Apache-2.0
/* Files of the real libraries list exactly the tensors that those libraries load from them. The
 * tests compare names, dtypes, shapes, places, strides, and the SHA-256 of every tensor's bytes in
 * C order. */
#include "phema/formats.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "phema/json.h"
#include "sha256.h"
#include "support.h"

static struct phema_json *parse(const char *path)
{
    size_t size = 0;
    uint8_t *text = support_read(path, &size);
    struct phema_json *document = NULL;
    struct phema_error err = {0};
    assert_ok(phema_json_parse(&document, (struct phema_span){text, size}, &err), &err);
    free(text);
    return document;
}

static uint64_t integer(const struct phema_json *object, const char *key)
{
    uint64_t value = UINT64_MAX;
    assert_true(phema_json_u64(&value, phema_json_get(object, key)));
    return value;
}

static void check_integers(const struct phema_json *list, const uint64_t *values, unsigned n)
{
    assert_int_equal(phema_json_length(list), n);
    assert_true(values || n == 0);
    for (unsigned i = 0; values && i < n; i++) {
        uint64_t wanted = 0;
        assert_true(phema_json_u64(&wanted, phema_json_at(list, i)));
        assert_int_equal(values[i], wanted);
    }
}

/* Reads in pieces of an odd number of elements, so that pieces begin and end inside rows. */
static void check_hash(const struct phema_checkpoint *checkpoint, const struct phema_tensor *tensor,
                       const char *wanted)
{
    struct phema_error err = {0};
    struct phema_reader *reader = NULL;
    assert_ok(phema_reader_open(&reader, checkpoint, &err), &err);
    uint8_t *bytes = malloc(tensor->size_bytes + 1);
    assert_non_null(bytes);
    uint64_t piece = tensor->dtype == PHEMA_F4 ? 2 : 7;
    unsigned bits = phema_dtype_bits(tensor->dtype);
    for (uint64_t at = 0; at < tensor->n_elems; at += piece) {
        uint64_t n = tensor->n_elems - at < piece ? tensor->n_elems - at : piece;
        uint8_t scratch[7 * 16];
        const uint8_t *read = NULL;
        assert_ok(phema_reader_read(&read, reader, tensor, at, n, scratch, &err), &err);
        memcpy(bytes + at * bits / 8, read, n * bits / 8);
    }
    assert_ok(phema_reader_finish(reader, &err), &err);
    phema_reader_close(reader);
    char hex[65];
    sha256_hex(hex, bytes, tensor->size_bytes);
    assert_string_equal(hex, wanted);
    free(bytes);
}

/* A tensor in one piece has the place of that piece and no list of parts. */
static void check_pieces(const struct phema_checkpoint *checkpoint,
                         const struct phema_tensor *tensor, const struct phema_json *pieces)
{
    static const uint64_t zeros[PHEMA_MAX_RANK] = {0};
    const struct phema_chunk whole = {zeros, tensor->shape, tensor->stride, tensor->file,
                                      tensor->offset};
    const struct phema_chunk *parts = tensor->chunks ? tensor->chunks : &whole;
    size_t n = tensor->chunks ? tensor->n_chunks : 1;
    assert_int_equal(phema_json_length(pieces), n);
    assert_int_equal(tensor->chunks != NULL, n > 1);
    for (size_t i = 0; i < n; i++) {
        const struct phema_json *piece = phema_json_at(pieces, i);
        assert_string_equal(phema_checkpoint_file_label(checkpoint, parts[i].file),
                            phema_json_string(phema_json_get(piece, "file"), NULL));
        assert_int_equal(parts[i].offset, integer(piece, "offset"));
        check_integers(phema_json_get(piece, "start"), parts[i].start, tensor->rank);
        check_integers(phema_json_get(piece, "shape"), parts[i].size, tensor->rank);
    }
}

static void check_tensor(const struct phema_checkpoint *checkpoint,
                         const struct phema_tensor *tensor, const struct phema_json *row)
{
    assert_string_equal(phema_dtype_name(tensor->dtype),
                        phema_json_string(phema_json_get(row, "dtype"), NULL));
    check_integers(phema_json_get(row, "shape"), tensor->shape, tensor->rank);
    const struct phema_json *stride = phema_json_get(row, "stride");
    assert_int_equal(stride != NULL, tensor->stride != NULL);
    if (stride)
        check_integers(stride, tensor->stride, tensor->rank);
    const struct phema_json *pieces = phema_json_get(row, "pieces");
    if (pieces) {
        check_pieces(checkpoint, tensor, pieces);
    } else {
        assert_string_equal(phema_checkpoint_file_label(checkpoint, tensor->file),
                            phema_json_string(phema_json_get(row, "file"), NULL));
        assert_int_equal(tensor->offset, integer(row, "offset"));
    }
    assert_int_equal(tensor->size_bytes, integer(row, "nbytes"));
    const char *kind = phema_json_string(phema_json_get(row, "kind"), NULL);
    static const char *const kinds[] = {"", "param", "buffer", "attribute"};
    assert_string_equal(kinds[tensor->kind], kind ? kind : "");
    check_hash(checkpoint, tensor, phema_json_string(phema_json_get(row, "sha256"), NULL));
}

static void check_listing(const char *path, const struct phema_json *listing)
{
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    assert_ok(phema_checkpoint_open(&checkpoint, path, NULL, &err), &err);
    assert_string_equal(phema_checkpoint_path(checkpoint), path);
    assert_string_equal(phema_checkpoint_format(checkpoint),
                        phema_json_string(phema_json_get(listing, "format"), NULL));
    assert_int_equal(phema_checkpoint_n_warnings(checkpoint), 0);
    const struct phema_json *rows = phema_json_get(listing, "tensors");
    assert_int_equal(phema_checkpoint_n_tensors(checkpoint), phema_json_length(rows));
    bool is_sharded = strcmp(phema_checkpoint_format(checkpoint), "sharded") == 0;
    for (size_t i = 0; i < phema_json_length(rows); i++) {
        const struct phema_json *row = phema_json_at(rows, i);
        size_t size = 0;
        const char *name = phema_json_string(phema_json_get(row, "name"), &size);
        const struct phema_tensor *tensor = phema_checkpoint_find(checkpoint, name, size);
        assert_non_null(tensor);
        if (!is_sharded) /* the rows have the index's order, our list that of the shards' headers */
            assert_int_equal(tensor - phema_checkpoint_tensors(checkpoint), i);
        check_tensor(checkpoint, tensor, row);
    }
    phema_checkpoint_close(checkpoint);
}

static bool ends_with(const char *name, const char *end)
{
    size_t size = strlen(name);
    size_t end_size = strlen(end);
    return size > end_size && strcmp(name + size - end_size, end) == 0;
}

/* Checks all FILE.expected.json of a directory; returns their number. */
static size_t check_directory(const char *directory)
{
    char *path = support_fixture(directory);
    DIR *stream = opendir(path);
    assert_non_null(stream);
    size_t n = 0;
    for (const struct dirent *entry; (entry = readdir(stream));) {
        static const char suffix[] = ".expected.json";
        if (!ends_with(entry->d_name, suffix))
            continue;
        char expected[4096];
        char file[4096];
        (void)snprintf(expected, sizeof(expected), "%s/%s", path, entry->d_name);
        (void)snprintf(file, sizeof(file), "%.*s", (int)(strlen(expected) - strlen(suffix)),
                       expected);
        struct phema_json *listing = parse(expected);
        check_listing(file, listing);
        phema_json_free(listing);
        n++;
    }
    (void)closedir(stream);
    free(path);
    return n;
}

static void safetensors_list_as_expected(void **state)
{
    (void)state;
    assert_int_equal(check_directory("safetensors"), 9);
}

static void compressed_files_list_as_expected(void **state)
{
    (void)state;
    assert_int_equal(check_directory("zst"), 10);
}

static void shards_list_as_expected(void **state)
{
    (void)state;
    assert_int_equal(check_directory("sharded"), 1);
}

static void torch_files_list_as_expected(void **state)
{
    (void)state;
    assert_int_equal(check_directory("torch"), 24);
    assert_int_equal(check_directory("old"), 3);
    assert_int_equal(check_directory("legacy"), 6);
}

static void distributed_checkpoints_list_as_expected(void **state)
{
    (void)state;
    assert_int_equal(check_directory("dcp"), 2);
}

static void check_series(const char *directory, const char *snapshots, size_t n_files)
{
    char path[4096];
    (void)snprintf(path, sizeof(path), "%s/%s/listings.json", PHEMA_FIXTURES, directory);
    struct phema_json *listings = parse(path);
    assert_int_equal(phema_json_length(listings), n_files);
    for (struct phema_json_field *field = phema_json_first(listings); field;
         field = phema_json_next(listings, field)) {
        size_t size = 0;
        (void)snprintf(path, sizeof(path), "%s/%s/%s", PHEMA_FIXTURES, snapshots,
                       phema_json_key(field, &size));
        check_listing(path, phema_json_value(field));
    }
    phema_json_free(listings);
}

static void snapshots_of_ema_libraries_list_as_expected(void **state)
{
    (void)state;
    check_series("ema_pytorch", "ema_pytorch/snapshots", 12);
    check_series("posthoc_ema", "posthoc_ema/snapshots", 10);
}

static void snapshots_of_edm2_list_as_expected(void **state)
{
    (void)state;
    check_series("edm2", "edm2/snapshots", 8);
    check_series("edm2_attributes", "edm2_attributes", 2);
}

/* Fails also where a tensor of the file is not read. */
static enum phema_status open_whole(struct phema_checkpoint **out, const char *path,
                                    struct phema_error *err)
{
    enum phema_status status = phema_checkpoint_open(out, path, NULL, err);
    if (status) {
        assert_ptr_equal(strstr(err->message, path), err->message);
        return status;
    }
    size_t n = 0;
    const struct phema_unread *unread = phema_checkpoint_unread(*out, &n);
    for (size_t i = 0; i < n && !status; i++)
        status = phema_fail(err, PHEMA_ERR_FILE, "%s: %s", unread[i].class_name,
                            unread[i].why ? unread[i].why : "");
    phema_checkpoint_close(*out);
    *out = NULL;
    return status;
}

static void refused_files_are_refused_with_their_word(void **state)
{
    (void)state;
    char *path = support_fixture("refuse/expected.json");
    struct phema_json *words = parse(path);
    free(path);
    size_t n = 0;
    for (struct phema_json_field *field = phema_json_first(words); field;
         field = phema_json_next(words, field)) {
        size_t size = 0;
        const char *name = phema_json_key(field, &size);
        const char *word = phema_json_string(phema_json_value(field), NULL);
        char file[4096];
        (void)snprintf(file, sizeof(file), "%s/refuse/%s", PHEMA_FIXTURES, name);
        struct phema_error err = {0};
        struct phema_checkpoint *checkpoint = NULL;
        assert_fails(open_whole(&checkpoint, file, &err), PHEMA_ERR_FILE, &err, word);
        assert_null(checkpoint);
        assert_null(strchr(err.message, '\n'));
        n++;
    }
    assert_int_equal(n, 16);
    phema_json_free(words);
}

static void metadata_is_kept(void **state)
{
    (void)state;
    char *path = support_fixture("safetensors/metadata.safetensors");
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    assert_ok(phema_checkpoint_open(&checkpoint, path, NULL, &err), &err);
    assert_int_equal(phema_checkpoint_n_metadata(checkpoint), 4);
    assert_string_equal(phema_checkpoint_metadatum(checkpoint, "note"),
                        "quote \" backslash \\ newline \n unicode \xCF\x83");
    assert_string_equal(phema_checkpoint_metadatum(checkpoint, "step"), "1000");
    assert_null(phema_checkpoint_metadatum(checkpoint, "ste"));
    phema_checkpoint_close(checkpoint);
    free(path);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(safetensors_list_as_expected),
    cmocka_unit_test(compressed_files_list_as_expected),
    cmocka_unit_test(shards_list_as_expected),
    cmocka_unit_test(torch_files_list_as_expected),
    cmocka_unit_test(distributed_checkpoints_list_as_expected),
    cmocka_unit_test(snapshots_of_ema_libraries_list_as_expected),
    cmocka_unit_test(snapshots_of_edm2_list_as_expected),
    cmocka_unit_test(refused_files_are_refused_with_their_word),
    cmocka_unit_test(metadata_is_kept),
};
TEST_GROUP(tests)
