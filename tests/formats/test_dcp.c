// SPDX-License-Identifier: Apache-2.0
/* Distributed checkpoints with false places, chunks, types and paths, or cut short. */
#include "phema/formats.h"

#include <sys/stat.h>

#include "build_dcp.h"

/* A valid checkpoint to damage: columns of a tensor of 4 x 6 floats in two files. */
struct columns {
    struct dcp_tensor tensor;
    struct dcp_box boxes[2];
    struct dcp_piece pieces[2];
    float data[2][12];
};

static void make_columns(struct columns *columns)
{
    *columns = (struct columns){
        .tensor = {"model.w", "float32", 2, {4, 6}, columns->boxes, 2},
        .boxes = {{{0, 0}, {4, 3}, "__0_0.distcp", 0, 0, false, false, NULL},
                  {{0, 3}, {4, 3}, "__1_0.distcp", 0, 0, false, false, NULL}},
    };
    for (size_t i = 0; i < 2; i++) {
        columns->pieces[i] =
            (struct dcp_piece){"Float", 0, 2, {4, 3}, {3, 1}, columns->data[i], 12, 48};
        for (size_t j = 0; j < 12; j++)
            columns->data[i][j] = (float)(j / 3 * 6 + j % 3 + 3 * i);
    }
}

/* Lengths of 0 become those of the archives. */
static void write_columns(struct columns *columns)
{
    static const char *const names[] = {"__0_0.distcp", "__1_0.distcp"};
    for (size_t i = 0; i < 2; i++) {
        struct phema_strbuf file = {0};
        put_dcp_piece(&file, &columns->pieces[i]);
        dcp_write("columns", names[i], file.data, file.size);
        if (!columns->boxes[i].length)
            columns->boxes[i].length = (int64_t)file.size;
        phema_strbuf_clear(&file);
    }
    dcp_write_metadata("columns", &columns->tensor, 1);
}

static enum phema_status open_directory(struct phema_checkpoint **out, const char *name,
                                        struct phema_error *err)
{
    *out = NULL;
    return phema_checkpoint_open(out, dcp_directory(name), NULL, err);
}

static void assert_directory_refused(const char *name, const char *part)
{
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    assert_fails(open_directory(&checkpoint, name, &err), PHEMA_ERR_FILE, &err, part);
    assert_null(checkpoint);
    assert_ptr_equal(strstr(err.message, dcp_directory(name)), err.message);
    assert_null(strchr(err.message, '\n'));
}

static void refuse(struct columns *columns, const char *part)
{
    write_columns(columns);
    assert_directory_refused("columns", "tensor 'model.w': ");
    assert_directory_refused("columns", part);
}

static void read_all(const struct phema_checkpoint *checkpoint)
{
    struct phema_error err = {0};
    struct phema_reader *reader = NULL;
    assert_ok(phema_reader_open(&reader, checkpoint, &err), &err);
    for (size_t i = 0; i < phema_checkpoint_n_tensors(checkpoint); i++) {
        const struct phema_tensor *tensor = &phema_checkpoint_tensors(checkpoint)[i];
        assert_true(tensor->size_bytes < (uint64_t)1 << 20);
        uint8_t *scratch = malloc(tensor->size_bytes + 1);
        assert_non_null(scratch);
        const uint8_t *data = NULL;
        if (tensor->n_elems)
            assert_ok(phema_reader_read(&data, reader, tensor, 0, tensor->n_elems, scratch, &err),
                      &err);
        for (uint64_t at = 0; at < tensor->size_bytes; at++)
            touch(data + at);
        free(scratch);
    }
    phema_reader_close(reader);
}

static void the_good_one_is_read(void **state)
{
    (void)state;
    struct columns columns;
    make_columns(&columns);
    write_columns(&columns);
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    struct phema_reader *reader = NULL;
    assert_ok(open_directory(&checkpoint, "columns", &err), &err);
    assert_string_equal(phema_checkpoint_format(checkpoint), "dcp");
    assert_int_equal(phema_checkpoint_n_files(checkpoint), 3);
    assert_ok(phema_reader_open(&reader, checkpoint, &err), &err);
    const uint8_t *data = NULL;
    float scratch[24];
    assert_ok(phema_reader_read(&data, reader, phema_checkpoint_tensors(checkpoint), 0, 24, scratch,
                                &err),
              &err);
    for (int i = 0; i < 24; i++) {
        float value = 0;
        memcpy(&value, data + i * 4, sizeof(value));
        assert_true(value == (float)i);
    }
    phema_reader_close(reader);
    phema_checkpoint_close(checkpoint);

    /* opened by the file, whose directory is the base of all paths */
    char path[4096];
    (void)snprintf(path, sizeof(path), "%s/.metadata", dcp_directory("columns"));
    assert_ok(phema_checkpoint_open(&checkpoint, path, NULL, &err), &err);
    assert_int_equal(phema_checkpoint_n_tensors(checkpoint), 1);
    phema_checkpoint_close(checkpoint);
}

/* Saved as {"model": ...}, and beside a counter and a list. */
static void one_dict_that_was_saved_has_a_key(void **state)
{
    (void)state;
    static const struct {
        const char *path, *key;
    } cases[] = {{"trainers/flux_action/step-100/model", "model"},
                 {"trainers/flux_action/step-100/ema_0p05", "tensors"},
                 {"trainers/cosmos_dcp/checkpoints/iter_000000120/model", ""},
                 {"trainers/megatron/iter_0000030", ""},
                 {"dcp/one_rank", ""}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct phema_error err = {0};
        struct phema_checkpoint *checkpoint = NULL;
        char *path = support_fixture(cases[i].path);
        assert_ok(
            phema_checkpoint_open(&checkpoint, path, &(struct phema_checkpoint_options){0}, &err),
            &err);
        const char *key = phema_checkpoint_root_key(checkpoint);
        assert_string_equal(key ? key : "", cases[i].key);
        phema_checkpoint_close(checkpoint);
        free(path);
    }
}

static void paths_stay_in_the_directory(void **state)
{
    (void)state;
    static const char *const paths[][2] = {
        {"../columns/__1_0.distcp", "'../columns/__1_0.distcp': its name leads out of"},
        {"x/../../columns/__1_0.distcp", "leads out of"},
        {"..", "leads out of"},
        {"/etc/passwd", "is absolute"},
        {"s3://bucket/__1_0.distcp", "is a URL"},
        {"", "is empty"},
        {"gone.distcp", "file 'gone.distcp': cannot be opened: No such file"},
        {".", "is a directory"},
        {"pipe", "is not a regular file"},
        {"__0_0.distcp/x", "cannot be opened"},
    };
    char path[4096];
    (void)snprintf(path, sizeof(path), "%s/pipe", dcp_directory("columns"));
    assert_true(mkfifo(path, 0600) == 0 || errno == EEXIST);
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        struct columns columns;
        make_columns(&columns);
        write_columns(&columns); /* determines the lengths */
        columns.boxes[1].path = paths[i][0];
        refuse(&columns, paths[i][1]);
    }
}

static void links_to_files_are_followed(void **state)
{
    (void)state;
    struct columns columns;
    make_columns(&columns);
    write_columns(&columns);
    char path[4096];
    (void)snprintf(path, sizeof(path), "%s/link", dcp_directory("columns"));
    assert_true(symlink("__1_0.distcp", path) == 0 || errno == EEXIST);
    columns.boxes[1].path = "link";
    write_columns(&columns);
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    assert_ok(open_directory(&checkpoint, "columns", &err), &err);
    read_all(checkpoint);
    phema_checkpoint_close(checkpoint);
}

static void places_that_are_none(void **state)
{
    (void)state;
    static const struct {
        int64_t offset, length_more;
        const char *part;
    } places[] = {
        {0, 1, "file '__1_0.distcp': expected "}, /* beyond the end */
        {1, 0, "at byte 1, the file has "},
        {INT64_MAX, 0, "at byte 9223372036854775807"},
        {0, INT64_MAX - 4096, "bytes at byte 0, the file has"},
        {-1, 0, "offset and length of 0 or more"},
        {0, -1, "file '__1_0.distcp': byte 0: damaged zip file"},
        {0, -4096, "offset and length of 0 or more"},
        {1, -1, "file '__1_0.distcp': byte 1: damaged zip file"},
    };
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        struct columns columns;
        make_columns(&columns);
        write_columns(&columns);
        columns.boxes[1].offset = places[i].offset;
        columns.boxes[1].length += places[i].length_more;
        refuse(&columns, places[i].part);
    }
}

static void boxes_that_do_not_make_up_the_tensor(void **state)
{
    (void)state;
    static const struct {
        int64_t start[2], size[2]; /* of the second box */
        const char *part;
    } boxes[] = {
        {{0, 2}, {4, 3}, "the pieces at [0, 0] and [0, 2] overlap"},
        {{3, 2}, {1, 1}, "overlap"},
        {{0, 0}, {4, 3}, "two pieces begin at [0, 0]: they overlap"},
        {{0, 3}, {4, 2}, "hold 20 of its 24 elements"},
        {{0, 4}, {4, 2}, "hold 20 of its 24 elements"},
        {{0, 3}, {4, 0}, "hold 12 of its 24 elements"},
        {{0, 3}, {4, 4}, "the piece at [0, 3] of shape [4, 4] runs over the end"},
        {{1, 3}, {4, 3}, "runs over the end"},
        {{0, 7}, {4, 0}, "runs over the end"}, /* though it is empty */
        {{0, INT64_MAX}, {4, 3}, "runs over the end"},
        {{0, 3}, {INT64_MAX, 3}, "runs over the end"},
        {{0, -3}, {4, 3}, "torch.Size"},
        {{0, 3}, {4, -3}, "torch.Size"},
    };
    for (size_t i = 0; i < ARRAY_LEN(boxes); i++) {
        struct columns columns;
        make_columns(&columns);
        memcpy(columns.boxes[1].start, boxes[i].start, sizeof(boxes[i].start));
        memcpy(columns.boxes[1].size, boxes[i].size, sizeof(boxes[i].size));
        columns.boxes[1].is_unsaid = !boxes[i].start[0] && !boxes[i].start[1];
        if (columns.boxes[1].size[0] <= 4 && columns.boxes[1].size[1] <= 3) /* has data */
            memcpy(columns.pieces[1].size, boxes[i].size, sizeof(boxes[i].size));
        refuse(&columns, boxes[i].part);
    }

    struct columns columns;
    make_columns(&columns);
    columns.tensor.n_boxes = 1;
    refuse(&columns, "hold 12 of its 24 elements");
    columns.tensor.n_boxes = 0;
    refuse(&columns, "hold 0 of its 24 elements");
}

static void archives_that_hold_something_else(void **state)
{
    (void)state;
    struct columns columns;
    make_columns(&columns);
    columns.pieces[1].size[0] = 3;
    refuse(&columns, "file '__1_0.distcp': byte 0: the tensor in the archive has shape [3, 3], "
                     "expected [4, 3]");
    make_columns(&columns);
    columns.pieces[0].rank = 1;
    columns.pieces[0].size[0] = 12;
    columns.pieces[0].stride[0] = 1;
    refuse(&columns, "file '__0_0.distcp': byte 0: the tensor in the archive has shape [12]");
    make_columns(&columns);
    columns.pieces[1].storage = "Int";
    refuse(&columns, "the tensor in the archive is I32, expected F32");
    make_columns(&columns);
    columns.pieces[1].first = 1;
    refuse(&columns, "reaches element 12 of a storage of 12 elements");
    make_columns(&columns);
    columns.pieces[1].n_elems = 11;
    refuse(&columns, "storage '0'");

    /* no tensor, more than one for a chunk, too many records */
    make_columns(&columns);
    write_columns(&columns);
    struct phema_strbuf file = {0};
    put_torch(&file, "\x80\x02}.", 4, 48);
    dcp_write("columns", "__1_0.distcp", file.data, file.size);
    columns.boxes[1].length = (int64_t)file.size;
    dcp_write_metadata("columns", &columns.tensor, 1);
    assert_directory_refused("columns", "data.pkl: expected a tensor as its object");
    static uint8_t large[(64 << 10) + 1];
    file.size = 0;
    put_torch(&file, large, sizeof(large), 48);
    dcp_write("columns", "__1_0.distcp", file.data, file.size);
    columns.boxes[1].length = (int64_t)file.size;
    dcp_write_metadata("columns", &columns.tensor, 1);
    assert_directory_refused("columns", "data.pkl: has 65537 bytes, expected 65536 at most");
    struct zip_record records[65];
    char names[65][16];
    size_t headers[65];
    for (size_t i = 0; i < ARRAY_LEN(records); i++) {
        (void)snprintf(names[i], sizeof(names[i]), "a/%zu", i);
        records[i] = (struct zip_record){names[i], "", 0};
    }
    file.size = 0;
    put_zip(&file, records, ARRAY_LEN(records), headers);
    dcp_write("columns", "__1_0.distcp", file.data, file.size);
    columns.boxes[1].length = (int64_t)file.size;
    dcp_write_metadata("columns", &columns.tensor, 1);
    assert_directory_refused("columns", "is a zip file of 65 records, expected 64 at most");
    phema_strbuf_clear(&file);
}

static void entries_that_are_missing_or_doubled(void **state)
{
    (void)state;
    struct columns columns;
    make_columns(&columns);
    columns.boxes[1].is_unsaid = true;
    refuse(&columns, "storage_data does not say where the piece at [0, 3] is");
    make_columns(&columns);
    columns.boxes[1].is_said_twice = true;
    refuse(&columns, "found one twice");
    make_columns(&columns);
    columns.boxes[1].encoding = "zstd";
    refuse(&columns, "compressed");

    const struct dcp_tensor twice[] = {columns.tensor, columns.tensor};
    dcp_write_metadata("columns", twice, 2);
    /* Python keeps one key, but its pieces are listed twice */
    assert_directory_refused("columns", "tensor 'model.w': expected each piece once");
}

static void types_and_sizes_that_are_none(void **state)
{
    (void)state;
    struct columns columns;
    static const char *const dtypes[][2] = {
        {"float4_e2m1fn_x2", "tensor 'model.w': is of packed float4"},
        {"FloatStorage", "tensor 'model.w': expected a dtype of torch, found 'torch.FloatStorage'"},
        {"qint8", "tensor 'model.w': expected a dtype of torch, found 'torch.qint8'"},
        {"float31", "tensor 'model.w': expected a dtype of torch, found 'torch.float31'"},
    };
    for (size_t i = 0; i < ARRAY_LEN(dtypes); i++) {
        make_columns(&columns);
        columns.tensor.dtype = dtypes[i][0];
        write_columns(&columns);
        assert_directory_refused("columns", dtypes[i][1]);
    }
    make_columns(&columns);
    columns.tensor.shape[0] = columns.tensor.shape[1] = (int64_t)1 << 40;
    refuse(&columns, "the size of the tensor overflows");
    columns.tensor.shape[0] = -1;
    refuse(&columns, "torch.Size of at most 64 dimensions");
}

/* Each rank without a share of a small tensor saves an empty piece. An empty piece may lack a
 * name. */
static void empty_pieces_are_pieces(void **state)
{
    (void)state;
    struct columns columns;
    make_columns(&columns);
    write_columns(&columns);
    int64_t length = columns.boxes[0].length;
    struct phema_strbuf file = {0};
    const struct dcp_piece empty = {"Float", 0, 2, {0, 6}, {6, 1}, "", 0, 0};
    const struct dcp_piece scalar = {"Float", 3, 0, {0}, {0}, columns.data[0], 12, 48};
    put_dcp_piece(&file, &empty);
    int64_t empty_length = (int64_t)file.size;
    put_dcp_piece(&file, &scalar);
    dcp_write("columns", "more", file.data, file.size);

    const struct dcp_box boxes[] = {
        columns.boxes[0],
        columns.boxes[1],
        {{4, 0}, {0, 6}, "more", 0, empty_length, false, false, NULL},
        {{4, 0}, {0, 6}, "more", 0, empty_length, true, false, NULL},
    };
    const struct dcp_box scalar_box = {
        {0}, {0}, "more", empty_length, (int64_t)file.size - empty_length, false, false, NULL};
    const struct dcp_tensor tensors[] = {
        {"w", "float32", 2, {4, 6}, boxes, 4},
        {"none", "float32", 2, {0, 6}, NULL, 0},
        {"nothing", "float32", 2, {4, 0}, NULL, 0},
        {"scalar", "float32", 0, {0}, &scalar_box, 1},
    };
    phema_strbuf_clear(&file);
    assert_true(length > 0);
    dcp_write_metadata("columns", tensors, ARRAY_LEN(tensors));
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    assert_ok(open_directory(&checkpoint, "columns", &err), &err);
    const struct phema_tensor *read = phema_checkpoint_tensors(checkpoint);
    assert_int_equal(phema_checkpoint_n_tensors(checkpoint), 4);
    assert_int_equal(read[0].n_chunks, 3);
    assert_int_equal(read[1].n_elems, 0);
    assert_int_equal(read[2].n_elems, 0);
    assert_null(read[3].chunks);
    assert_int_equal(read[3].n_elems, 1);
    assert_memory_equal(phema_tensor_start(checkpoint, &read[3]), &columns.data[0][3], 4);
    read_all(checkpoint);
    phema_checkpoint_close(checkpoint);
}

/* 65537 boxes of two bytes each */
static void more_boxes_than_processes_exist(void **state)
{
    (void)state;
    struct phema_strbuf metadata = {0};
    const int64_t zero = 0;
    put(&metadata, "\x80\x02", 2);
    begin_record(&metadata, "metadata", "Metadata");
    put_string(&metadata, "state_dict_metadata");
    put_text(&metadata, "}");
    put_string(&metadata, "w");
    begin_record(&metadata, "metadata", "TensorStorageMetadata");
    put_string(&metadata, "properties");
    put_global(&metadata, "torch.distributed.checkpoint.metadata", "TensorProperties");
    put(&metadata, ")\x81(", 3);
    put_global(&metadata, "torch", "float32");
    put_text(&metadata, "tb");
    put_string(&metadata, "size");
    put_torch_size(&metadata, &zero, 1);
    put_string(&metadata, "chunks");
    put_text(&metadata, "](N");
    put(&metadata, "q\0", 2);
    for (int i = 0; i < 65536; i++)
        put(&metadata, "h\0", 2);
    put_text(&metadata, "e");
    end_record(&metadata);
    put_text(&metadata, "s");
    put_string(&metadata, "storage_data");
    put_text(&metadata, "}");
    end_record(&metadata);
    put_text(&metadata, ".");
    dcp_write("many", ".metadata", metadata.data, metadata.size);
    assert_directory_refused("many", "tensor 'w': has 65537 pieces, expected 65536 at most");
    put_text(&metadata, "x");
    dcp_write("many", ".metadata", metadata.data, metadata.size);
    assert_directory_refused("many", "has 1 bytes behind its end");
    phema_strbuf_clear(&metadata);
}

/* Classes of .metadata are opaque in any other pickle. */
static void classes_are_known_here_alone(void **state)
{
    (void)state;
    struct phema_strbuf pickle = {0};
    struct phema_strbuf file = {0};
    put(&pickle, "\x80\x02}", 3);
    put_string(&pickle, "a");
    begin_record(&pickle, "metadata", "Metadata");
    end_record(&pickle);
    put_text(&pickle, "s.");
    put_torch(&file, pickle.data, pickle.size, 4);
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    assert_ok(open_bytes(&checkpoint, file.data, file.size, &err), &err);
    assert_int_equal(phema_checkpoint_n_tensors(checkpoint), 0);
    phema_checkpoint_close(checkpoint);

    /* pickles that begin like the metadata but contain something else */
    file.size = 0;
    put(&file, "\x80\x02", 2);
    begin_record(&file, "metadata", "StorageMeta");
    end_record(&file);
    put_text(&file, ".");
    assert_refused(file.data, file.size, "expected the Metadata of torch.distributed.checkpoint");
    file.size = 0;
    put(&file, "\x80\x02", 2);
    begin_record(&file, "metadata", "Metadata");
    end_record(&file);
    put_text(&file, ".");
    assert_refused(file.data, file.size, "state_dict_metadata and storage_data");
    file.size -= 1;
    put_text(&file, "}b.");
    assert_refused(file.data, file.size,
                   "builds a 'torch.distributed.checkpoint.metadata.Metadata'"
                   " twice");
    phema_strbuf_clear(&pickle);
    phema_strbuf_clear(&file);
}

/* ---- The files of the library, cut and changed ---- */

static const char *const names[] = {".metadata", "__0_0.distcp", "__1_0.distcp"};

/* Opens TMP/library and reads all of it if it opens. */
static bool opens(void)
{
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    enum phema_status status = open_directory(&checkpoint, "library", &err);
    if (status == PHEMA_OK) {
        read_all(checkpoint);
        phema_checkpoint_close(checkpoint);
        return true;
    }
    assert_int_equal(status, PHEMA_ERR_FILE);
    assert_ptr_equal(strstr(err.message, dcp_directory("library")), err.message);
    assert_null(strchr(err.message, '\n'));
    return false;
}

static void spoil(const char *name, unsigned value_step, size_t byte_step)
{
    char path[4096];
    (void)snprintf(path, sizeof(path), "%s/%s", dcp_directory("library"), name);
    size_t size = 0;
    uint8_t *data = support_read(path, &size);
    int descriptor = open(path, O_RDWR | O_CLOEXEC);
    assert_true(descriptor >= 0);
    for (size_t i = 0; i < size; i += byte_step) {
        for (unsigned value = 1; value < 256; value += value_step) {
            uint8_t changed = (uint8_t)(data[i] ^ value);
            assert_int_equal(pwrite(descriptor, &changed, 1, (off_t)i), 1);
            (void)opens();
        }
        assert_int_equal(pwrite(descriptor, &data[i], 1, (off_t)i), 1);
    }
    assert_true(opens());
    for (size_t length = size; length-- > 0;) {
        assert_int_equal(ftruncate(descriptor, (off_t)length), 0);
        assert_false(opens());
    }
    assert_int_equal(pwrite(descriptor, data, size, 0), (ssize_t)size);
    assert_int_equal(close(descriptor), 0);
    free(data);
}

/* Slow: thousands of files; the seeds of the fuzzer reach the same readers. */
static void slow_spoilt_files_of_the_library(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char path[4096];
        (void)snprintf(path, sizeof(path), "%s/dcp/two_ranks/%s", PHEMA_FIXTURES, names[i]);
        size_t size = 0;
        uint8_t *data = support_read(path, &size);
        dcp_write("library", names[i], data, size);
        free(data);
    }
    assert_true(opens());
    spoil(names[0], 51, 1);
    spoil(names[1], 101, 3);
    spoil(names[2], 101, 7);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_good_one_is_read),
    cmocka_unit_test(one_dict_that_was_saved_has_a_key),
    cmocka_unit_test(paths_stay_in_the_directory),
    cmocka_unit_test(links_to_files_are_followed),
    cmocka_unit_test(places_that_are_none),
    cmocka_unit_test(boxes_that_do_not_make_up_the_tensor),
    cmocka_unit_test(archives_that_hold_something_else),
    cmocka_unit_test(entries_that_are_missing_or_doubled),
    cmocka_unit_test(types_and_sizes_that_are_none),
    cmocka_unit_test(empty_pieces_are_pieces),
    cmocka_unit_test(more_boxes_than_processes_exist),
    cmocka_unit_test(classes_are_known_here_alone),
    cmocka_unit_test(slow_spoilt_files_of_the_library),
};
TEST_GROUP(tests)
