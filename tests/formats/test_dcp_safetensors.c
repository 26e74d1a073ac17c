// SPDX-License-Identifier: Apache-2.0
/* Shards of a distributed checkpoint in safetensors: fixtures of torch, tensors cut in every way,
 * and shards that lie about names, offsets and shapes. */
#include "phema/formats.h"

#include <errno.h>
#include <sys/stat.h>

#include "build.h"

static const char *path_of(const char *directory, const char *name)
{
    static char path[2][2048];
    static unsigned next;
    next = !next;
    (void)snprintf(path[next], sizeof(path[next]), "%s/%s/%s", support_tmp(), directory, name);
    return path[next];
}

/* An empty directory. */
static void begin_directory(const char *name)
{
    char *path = support_tmp_path(name);
    assert_true(mkdir(path, 0777) == 0 || errno == EEXIST);
    free(path);
}

static void write_file(const char *directory, const char *name, const char *json, size_t n_data)
{
    struct phema_strbuf file = {0};
    put_safetensors(&file, json, n_data);
    support_write(path_of(directory, name), file.data, file.size);
    phema_strbuf_clear(&file);
}

/* A file whose info is JSON with the quotes of a JSON string. */
static void write_shard(const char *directory, const char *name, const char *info,
                        const char *tensors, size_t n_data)
{
    char json[2048];
    (void)snprintf(json, sizeof(json),
                   "{\"__metadata__\":{\"DCP_SHARDING_INFO\":\"%s\",\"DCP_VERSION\":\"1.0\"},%s}",
                   info, tensors);
    write_file(directory, name, json, n_data);
}

#define OFFSETS(name, list) "\\\"" name "\\\": {\\\"saved_offsets\\\": " list "}"
#define U8(name, shape, offsets)                                                                   \
    "\"" name "\":{\"dtype\":\"U8\",\"shape\":" shape ",\"data_offsets\":" offsets "}"
#define ONE "shard-00001-model-00001-of-00001.safetensors"
#define TWO "shard-00002-model-00001-of-00001.safetensors"
#define TOP U8("w", "[2,3]", "[0,6]")

static void refuse(const char *directory, const char *part)
{
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    const char *path = path_of(directory, "");
    assert_fails(phema_checkpoint_open(&checkpoint, path, NULL, &err), PHEMA_ERR_FILE, &err, part);
    assert_null(checkpoint);
    assert_ptr_equal(strstr(err.message, path), err.message);
    assert_null(strchr(err.message, '\n'));
}

static const uint8_t *read_all(const struct phema_checkpoint *checkpoint,
                               const struct phema_tensor *tensor, uint8_t *scratch)
{
    struct phema_error err = {0};
    struct phema_reader *reader = NULL;
    const uint8_t *data = NULL;
    assert_ok(phema_reader_open(&reader, checkpoint, &err), &err);
    assert_ok(phema_reader_read(&data, reader, tensor, 0, tensor->n_elems, scratch, &err), &err);
    phema_reader_close(reader);
    return data;
}

/* newest.safetensors has whole tensors of the same state, written by safetensors itself. */
static void assert_equal_to_whole(const char *directory, const char *whole_path)
{
    struct phema_error err = {0};
    struct phema_checkpoint *parts = NULL, *whole = NULL;
    char *paths[] = {support_fixture(directory), support_fixture(whole_path)};
    assert_ok(phema_checkpoint_open(&parts, paths[0], NULL, &err), &err);
    assert_ok(phema_checkpoint_open(&whole, paths[1], NULL, &err), &err);
    assert_string_equal(phema_checkpoint_format(parts), "dcp-safetensors");
    assert_null(phema_checkpoint_metadatum(parts, "DCP_SHARDING_INFO"));
    assert_int_equal(phema_checkpoint_n_tensors(parts), 5);
    assert_int_equal(phema_checkpoint_n_tensors(whole), 5);
    for (size_t i = 0; i < 5; i++) {
        const struct phema_tensor *wanted = &phema_checkpoint_tensors(whole)[i];
        const struct phema_tensor *found =
            phema_checkpoint_find(parts, wanted->name, wanted->name_size);
        assert_non_null(found);
        assert_int_equal(found->dtype, wanted->dtype);
        assert_int_equal(found->rank, wanted->rank);
        assert_int_equal(found->size_bytes, wanted->size_bytes);
        if (wanted->rank)
            assert_memory_equal(found->shape, wanted->shape, wanted->rank * sizeof(uint64_t));
        uint8_t left[1024], right[1024];
        assert_true(wanted->size_bytes <= sizeof(left));
        assert_memory_equal(read_all(parts, found, left), read_all(whole, wanted, right),
                            wanted->size_bytes);
    }
    phema_checkpoint_close(parts);
    phema_checkpoint_close(whole);
    free(paths[0]);
    free(paths[1]);
}

static void torchs_shards_equal_the_whole_tensors(void **state)
{
    (void)state;
    assert_equal_to_whole("dcp_safetensors/step-90", "dcp_safetensors/newest.safetensors");
    assert_equal_to_whole("dcp_safetensors_two_files/step-40",
                          "dcp_safetensors_two_files/newest.safetensors");
}

/* A tensor of 4 x 6 bytes in boxes of every height and width, one file each; element i is byte
 * (its index in its box) of the file, as put_safetensors numbers them. */
static void tensors_are_whole_however_they_are_cut(void **state)
{
    (void)state;
    for (unsigned height = 1; height <= 4; height++)
        for (unsigned width = 1; width <= 6; width++) {
            char directory[32];
            uint8_t wanted[24], scratch[24];
            (void)snprintf(directory, sizeof(directory), "cut%u%u", height, width);
            begin_directory(directory);
            unsigned rank = 0;
            for (unsigned y = 0; y < 4; y += height)
                for (unsigned x = 0; x < 6; x += width) {
                    unsigned h = 4 - y < height ? 4 - y : height;
                    unsigned w = 6 - x < width ? 6 - x : width;
                    char name[64], info[128], tensor[128];
                    (void)snprintf(name, sizeof(name),
                                   "shard-%05u-model-00001-of-00001.safetensors", ++rank);
                    (void)snprintf(info, sizeof(info), "{" OFFSETS("w", "[%u, %u]") "}", y, x);
                    (void)snprintf(tensor, sizeof(tensor), U8("w", "[%u,%u]", "[0,%u]"), h, w,
                                   h * w);
                    write_shard(directory, name, info, tensor, (size_t)h * w);
                    for (unsigned i = 0; i < h * w; i++)
                        wanted[(y + i / w) * 6 + x + i % w] = (uint8_t)i;
                }
            struct phema_error err = {0};
            struct phema_checkpoint *checkpoint = NULL;
            assert_ok(phema_checkpoint_open(&checkpoint, path_of(directory, ""), NULL, &err), &err);
            const struct phema_tensor *tensor = phema_checkpoint_find(checkpoint, "w", 1);
            assert_non_null(tensor);
            assert_int_equal(tensor->n_chunks, rank > 1 ? rank : 0);
            assert_memory_equal(read_all(checkpoint, tensor, scratch), wanted, 24);
            phema_checkpoint_close(checkpoint);
        }
}

static void the_second_shard_must_fit(void **state)
{
    (void)state;
    static const struct {
        const char *info, *tensors;
        size_t n_data;
        const char *part;
    } cases[] = {
        /* beside rows 0 and 1 of 3 columns */
        {OFFSETS("w", "[1, 0]"), U8("w", "[1,3]", "[0,3]"), 3,
         "tensor 'w': 2 files, '" ONE "' to '" TWO "': the pieces at [0, 0] and [1, 0] overlap"},
        {OFFSETS("w", "[3, 0]"), U8("w", "[1,3]", "[0,3]"), 3,
         "its pieces hold 9 of its 12 elements"},
        {OFFSETS("w", "[2, 0]"), U8("w", "[1,2]", "[0,2]"), 2,
         "its pieces hold 8 of its 9 elements"},
        {OFFSETS("w", "[0, 0]"), U8("w", "[2,4]", "[0,8]"), 8,
         "two parts begin at [0, 0], of shape [2, 3] in file '" ONE "' and of shape [2, 4]"},
        {OFFSETS("w", "[18446744073709551615, 0]"), U8("w", "[1,3]", "[0,3]"), 3,
         "too big integer"},
        {OFFSETS("w", "[9223372036854775807, 0]"), U8("w", "[1,3]", "[0,3]"), 3, "tensor 'w'"},
        {OFFSETS("w", "[2, 9223372036854775807]"), U8("w", "[1,3]", "[0,3]"), 3, "tensor 'w'"},
        {OFFSETS("w", "[2]"), U8("w", "[1,3]", "[0,3]"), 3,
         "file '" TWO "': DCP_SHARDING_INFO: tensor 'w': expected 2 offsets"},
        {OFFSETS("w", "[2]"), U8("w", "[1]", "[0,1]"), 1,
         "tensor 'w': has 1 dimensions, but 2 in file '" ONE "'"},
        {OFFSETS("w", "[2, 0]"), "\"w\":{\"dtype\":\"I8\",\"shape\":[1,3],\"data_offsets\":[0,3]}",
         3, "tensor 'w': is I8, but U8 in file '" ONE "'"},
        {OFFSETS("w", "[2, -1]"), U8("w", "[1,3]", "[0,3]"), 3, "expected integers of 0 or more"},
        {OFFSETS("w", "[2, 0.5]"), U8("w", "[1,3]", "[0,3]"), 3, "expected integers of 0 or more"},
        {OFFSETS("w", "2"), U8("w", "[1,3]", "[0,3]"), 3, "expected an object with a list"},
        {"\\\"w\\\": 1", U8("w", "[1,3]", "[0,3]"), 3, "expected an object with a list"},
        {OFFSETS("v", "[2, 0]"), U8("w", "[1,3]", "[0,3]"), 3,
         "tensor 'w': does not say where the tensor begins"},
        {OFFSETS("w", "[2, 0]") "," OFFSETS("v", "[0]"), U8("w", "[1,3]", "[0,3]"), 3,
         "describes 2 tensors, the file has 1"},
        {OFFSETS("w", "[2, 0]") "," OFFSETS("w", "[0, 0]"), U8("w", "[1,3]", "[0,3]"), 3,
         "file '" TWO "': DCP_SHARDING_INFO"},
        {"", U8("w", "[1,3]", "[0,3]"), 3, "does not say where"},
        {"]", U8("w", "[1,3]", "[0,3]"), 3, "DCP_SHARDING_INFO"},
        {OFFSETS("w", "[2, 0]"), U8("w", "[1,3]", "[0,3]") "," U8("w", "[1,3]", "[3,6]"), 6,
         "describes 1 tensors, the file has 2"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char info[512];
        begin_directory("lie");
        write_shard("lie", ONE, "{" OFFSETS("w", "[0, 0]") "}", TOP, 6);
        (void)snprintf(info, sizeof(info), "{%s}", cases[i].info);
        write_shard("lie", TWO, info, cases[i].tensors, cases[i].n_data);
        refuse("lie", cases[i].part);
    }
    write_file("lie", TWO, "{" U8("w", "[1,3]", "[0,3]") "}", 3);
    refuse("lie", "file '" TWO "': expected DCP_SHARDING_INFO");
}

/* Two names of one file at least. */
static void refuse_names(const char *directory, const char *const names[], size_t n,
                         const char *part)
{
    begin_directory(directory);
    for (size_t i = 0; i < n; i++) {
        char info[128], tensor[128];
        (void)snprintf(info, sizeof(info), "{" OFFSETS("w%zu", "[0]") "}", i);
        (void)snprintf(tensor, sizeof(tensor), U8("w%zu", "[1]", "[0,1]"), i);
        write_shard(directory, names[i], info, tensor, 1);
    }
    refuse(directory, part);
}

static void ranks_and_files_are_complete(void **state)
{
    (void)state;
    refuse_names("gap", (const char *const[]){ONE, "shard-00003-model-00001-of-00001.safetensors"},
                 2, "is of rank 3, but no shard is of rank 2");
    refuse_names("later", (const char *const[]){TWO}, 1, "is of rank 2, but no shard is of rank 1");
    refuse_names("zero", (const char *const[]){ONE, "shard-00000-model-00001-of-00001.safetensors"},
                 2, "is of rank 0");
    refuse_names("numbers",
                 (const char *const[]){ONE, "shard-00002-model-00001-of-00002.safetensors"}, 2,
                 "is of 2 files, but");
    refuse_names("files",
                 (const char *const[]){"shard-00001-model-00001-of-00003.safetensors",
                                       "shard-00001-model-00003-of-00003.safetensors"},
                 2, "is number 3, but no shard is number 2");
    refuse_names("last",
                 (const char *const[]){"shard-00001-model-00001-of-00002.safetensors",
                                       "shard-00002-model-00001-of-00002.safetensors"},
                 2, "is the last one found, but its name says that there are 2");
    refuse_names("beside", (const char *const[]){ONE, "model.safetensors"}, 2,
                 "holds 'model.safetensors' besides the shards");
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    assert_fails(phema_checkpoint_open(&checkpoint, path_of("gap", ONE), NULL, &err),
                 PHEMA_ERR_FILE, &err, "name its directory");
}

/* As rank 0 writes them without save_distributed: whole, with offsets of 0. */
static void files_of_whole_tensors_are_ordinary(void **state)
{
    (void)state;
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    begin_directory("whole");
    write_shard("whole", "model.safetensors", "{" OFFSETS("w", "[0, 0]") "}", TOP, 6);
    assert_ok(phema_checkpoint_open(&checkpoint, path_of("whole", ""), NULL, &err), &err);
    assert_string_equal(phema_checkpoint_format(checkpoint), "safetensors");
    assert_null(phema_checkpoint_metadatum(checkpoint, "DCP_SHARDING_INFO"));
    assert_string_equal(phema_checkpoint_metadatum(checkpoint, "DCP_VERSION"), "1.0");
    phema_checkpoint_close(checkpoint);
    write_shard("whole", "model.safetensors", "{" OFFSETS("w", "[0, 1]") "}", TOP, 6);
    refuse("whole", "tensor 'w': is a part of a tensor");
}

/* Equal boxes are replicas, and empty ones take no part. */
static void replicas_and_empty_boxes_are_passed_over(void **state)
{
    (void)state;
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    begin_directory("replicas");
    write_shard("replicas", ONE, "{" OFFSETS("w", "[0, 0]") "," OFFSETS("e", "[0]") "}",
                TOP "," U8("e", "[0]", "[6,6]"), 6);
    write_shard("replicas", TWO, "{" OFFSETS("w", "[0, 0]") "," OFFSETS("e", "[0]") "}",
                TOP "," U8("e", "[0]", "[6,6]"), 6);
    write_shard("replicas", "shard-00003-model-00001-of-00001.safetensors",
                "{" OFFSETS("w", "[2, 0]") "}", U8("w", "[0,3]", "[0,0]"), 0);
    assert_ok(phema_checkpoint_open(&checkpoint, path_of("replicas", ""), NULL, &err), &err);
    const struct phema_tensor *tensor = phema_checkpoint_find(checkpoint, "w", 1);
    assert_int_equal(tensor->n_elems, 6);
    assert_null(tensor->chunks);
    assert_string_equal(phema_checkpoint_file_label(checkpoint, tensor->file), ONE);
    assert_int_equal(phema_checkpoint_find(checkpoint, "e", 1)->n_elems, 0);
    assert_int_equal(phema_checkpoint_n_warnings(checkpoint), 1);
    assert_non_null(strstr(phema_checkpoint_warning(checkpoint, 0), "above 3"));
    phema_checkpoint_close(checkpoint);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(torchs_shards_equal_the_whole_tensors),
    cmocka_unit_test(tensors_are_whole_however_they_are_cut),
    cmocka_unit_test(the_second_shard_must_fit),
    cmocka_unit_test(ranks_and_files_are_complete),
    cmocka_unit_test(files_of_whole_tensors_are_ordinary),
    cmocka_unit_test(replicas_and_empty_boxes_are_passed_over),
};
TEST_GROUP(tests)
