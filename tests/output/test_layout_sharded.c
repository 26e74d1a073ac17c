// SPDX-License-Identifier: Apache-2.0
/* Assignment of tensors to shards, contents of the index, and files that are copied from the newest
 * snapshot. */
#include "drafts.h"
#include "phema/json.h"

/* Tensors of 40, 80, 400 and 4 bytes. */
static const char four[] = "{\"a\":{\"dtype\":\"F32\",\"shape\":[10],\"data_offsets\":[0,40]},"
                           "\"b\":{\"dtype\":\"F32\",\"shape\":[20],\"data_offsets\":[40,120]},"
                           "\"c\":{\"dtype\":\"F32\",\"shape\":[100],\"data_offsets\":[120,520]},"
                           "\"d\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[520,524]}}";

static const struct phema_side_file *find_side_file(const struct phema_outputs *outputs,
                                                    const char *name)
{
    for (size_t f = 0; f < outputs->n_side_files; f++)
        if (strcmp(outputs->side_files[f].name, name) == 0)
            return &outputs->side_files[f];
    return NULL;
}

static struct phema_json *parse_index(const struct phema_outputs *outputs, const char *name)
{
    const struct phema_side_file *file = find_side_file(outputs, name);
    assert_non_null(file);
    assert_null(file->source);
    struct phema_error err = {0};
    struct phema_json *index = NULL;
    struct phema_span text = {(const uint8_t *)file->text, strlen(file->text)};
    assert_ok(phema_json_parse(&index, text, &err), &err);
    return index;
}

/* The number in the name of the tensor's shard in the index: model-0000N-of-.... */
static char shard_digit(const struct phema_json *index, const char *tensor)
{
    const struct phema_json *map = phema_json_get(index, "weight_map");
    size_t size = 0;
    const char *shard = phema_json_string(phema_json_get(map, tensor), &size);
    assert_non_null(shard);
    return shard[strlen("model-0000")];
}

static void tensors_fill_shards_in_order(void **state)
{
    (void)state;
    write_plain("four", four, 524);
    static const struct {
        uint64_t shard_bytes;
        const char *shards; /* of a, b, c, d */
        size_t n;
    } cases[] = {{1, "1234", 4},   /* each is larger than a shard */
                 {100, "1234", 4}, /* a and b are 120; d does not fit after c, which is larger */
                 {119, "1234", 4}, {120, "1123", 3}, /* a and b fit to the byte */
                 {403, "1123", 3},                   /* c and d are 404 */
                 {404, "1122", 2}, {519, "1122", 2}, /* a, b and c are 520 */
                 {520, "1112", 2}, {524, "1111", 1}, {1u << 30, "1111", 1}};
    for (size_t c = 0; c < ARRAY_LEN(cases); c++) {
        struct wanted wanted = {
            .snapshots = "four", .out = "shards/", .shard_bytes = cases[c].shard_bytes};
        struct made made;
        accept(&made, &wanted);
        const struct phema_output *output = &made.outputs.items[0];
        assert_int_equal(made.outputs.form, PHEMA_FORM_SHARDED);
        assert_int_equal(output->n_files, cases[c].n);
        struct phema_json *index = parse_index(&made.outputs, "model.safetensors.index.json");
        for (size_t i = 0; i < 4; i++) {
            static const char *const names[] = {"a", "b", "c", "d"};
            assert_int_equal(shard_digit(index, names[i]), cases[c].shards[i]);
            assert_int_equal(output->locations[i].file, cases[c].shards[i] - '1');
        }
        uint64_t total = 0, sizes = 0;
        const struct phema_json *metadata = phema_json_get(index, "metadata");
        assert_true(phema_json_u64(&total, phema_json_get(metadata, "total_size")));
        assert_int_equal(total, 524);
        for (size_t f = 0; f < output->n_files; f++) {
            char name[64];
            (void)snprintf(name, sizeof(name), "model-%05zu-of-%05zu.safetensors", f + 1,
                           cases[c].n);
            assert_string_equal(output->files[f].name, name);
            sizes += output->files[f].size_bytes - output->files[f].header_size;
        }
        assert_int_equal(sizes, 524);
        phema_json_free(index);
        clear_made(&made);
    }
}

/* A conversion has no provenance. */
static void only_the_first_shard_has_provenance(void **state)
{
    (void)state;
    write_plain("four", four, 524);
    struct wanted wanted = {.snapshots = "four", .out = "provenance/", .shard_bytes = 120};
    struct made made;
    accept(&made, &wanted);
    for (size_t f = 0; f < 3; f++) {
        const struct phema_output_file *file = &made.outputs.items[0].files[f];
        assert_int_equal(
            memmem(file->header, file->header_size, "posthoc_ema.", strlen("posthoc_ema.")) != NULL,
            f == 0);
    }
    clear_made(&made);
    wanted = (struct wanted){
        .snapshots = "four", .out = "provenance/", .shard_bytes = 120, .is_conversion = true};
    accept(&made, &wanted);
    const struct phema_output_file *file = &made.outputs.items[0].files[0];
    assert_null(memmem(file->header, file->header_size, "posthoc_ema.", strlen("posthoc_ema.")));
    clear_made(&made);
}

static void excluded_tensors_are_in_no_shard(void **state)
{
    (void)state;
    write_plain("four", four, 524);
    struct wanted wanted = {
        .snapshots = "four", .out = "fewer/", .shard_bytes = 120, .exclude = "^[ac]$"};
    struct made made;
    accept(&made, &wanted);
    assert_int_equal(made.outputs.items[0].n_files, 1); /* 84 bytes */
    struct phema_json *index = parse_index(&made.outputs, "model.safetensors.index.json");
    assert_int_equal(phema_json_length(phema_json_get(index, "weight_map")), 2);
    assert_int_equal(shard_digit(index, "b"), '1');
    assert_int_equal(shard_digit(index, "d"), '1');
    phema_json_free(index);
    clear_made(&made);
}

/* ---- Sharded snapshots ---- */

static void write_text(const char *name, const char *text)
{
    char *path = support_tmp_path(name);
    support_write(path, text, strlen(text));
    free(path);
}

static void make_folder(const char *name)
{
    char *path = support_tmp_path(name);
    assert_int_equal(mkdir(path, 0777), 0);
    free(path);
}

#define ONE_F32(name) "{\"" name "\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}"

/* Shards x and y of a and b, an index of this name, in a folder. */
static void write_sharded(const char *folder, const char *index)
{
    char name[64];
    make_folder(folder);
    (void)snprintf(name, sizeof(name), "%s/x.safetensors", folder);
    write_plain(name, ONE_F32("a"), 4);
    (void)snprintf(name, sizeof(name), "%s/y.safetensors", folder);
    write_plain(name, ONE_F32("b"), 4);
    (void)snprintf(name, sizeof(name), "%s/%s", folder, index);
    write_text(name, "{\"metadata\":{\"total_size\":8},"
                     "\"weight_map\":{\"a\":\"x.safetensors\",\"b\":\"y.safetensors\"}}");
}

static void shards_are_those_of_the_newest_snapshot(void **state)
{
    (void)state;
    write_sharded("old", "first.safetensors.index.json");
    write_sharded("new", "second.safetensors.index.json");
    struct wanted wanted = {.snapshots = "old\nnew", .out = "alike"};
    struct made made;
    accept(&made, &wanted);
    assert_int_equal(made.outputs.form, PHEMA_FORM_SHARDED);
    assert_int_equal(made.outputs.items[0].n_files, 2);
    assert_string_equal(made.outputs.items[0].files[0].name, "x.safetensors");
    assert_string_equal(made.outputs.items[0].files[1].name, "y.safetensors");
    struct phema_json *index = parse_index(&made.outputs, "second.safetensors.index.json");
    assert_int_equal(phema_json_length(phema_json_get(index, "weight_map")), 2);
    phema_json_free(index);
    clear_made(&made);

    wanted.exclude = "^a$"; /* the only tensor of the first shard */
    accept(&made, &wanted);
    assert_int_equal(made.outputs.items[0].n_files, 1);
    assert_string_equal(made.outputs.items[0].files[0].name, "y.safetensors");
    assert_int_equal(made.outputs.items[0].locations[0].file, 0);
    clear_made(&made);
}

static void equal_shard_names_in_two_folders_are_refused(void **state)
{
    (void)state;
    make_folder("two");
    make_folder("two/p");
    make_folder("two/q");
    write_plain("two/p/x.safetensors", ONE_F32("a"), 4);
    write_plain("two/q/x.safetensors", ONE_F32("b"), 4);
    write_text("two/model.safetensors.index.json",
               "{\"metadata\":{\"total_size\":8},"
               "\"weight_map\":{\"a\":\"p/x.safetensors\",\"b\":\"q/x.safetensors\"}}");
    struct wanted wanted = {.snapshots = "two", .out = "folders"};
    refuse(&wanted, PHEMA_ERR_USAGE, "are called 'x.safetensors'; give --shard-size");
    wanted.shard_bytes = 4;
    struct made made;
    accept(&made, &wanted);
    assert_int_equal(made.outputs.items[0].n_files, 2);
    clear_made(&made);
}

/* ---- Files next to the newest snapshot ---- */

static void configurations_are_copied_and_models_are_not(void **state)
{
    (void)state;
    write_sharded("beside", "model.safetensors.index.json");
    static const char *const copied[] = {"README.md",      "config.json", "generation_config.json",
                                         "tokenizer.json", "vocab.txt",   "tokenizer.model"};
    static const char *const skipped[] = {
        ".gitattributes", ".hidden",     "optimizer.pt",      "scheduler.pth", "pytorch_model.bin",
        "model.ckpt",     "network.pkl", "x.safetensors.zst", "a.partial",     "tf_model.h5",
        "flax.msgpack",   "model.onnx",  "model.gguf",        "__0_0.distcp",  "old.index.json"};
    char name[64];
    for (size_t i = 0; i < ARRAY_LEN(copied); i++) {
        (void)snprintf(name, sizeof(name), "beside/%s", copied[i]);
        write_text(name, "text");
    }
    for (size_t i = 0; i < ARRAY_LEN(skipped); i++) {
        (void)snprintf(name, sizeof(name), "beside/%s", skipped[i]);
        write_text(name, "{}");
    }
    make_folder("beside/runs");
    write_text("beside/large.json", "");
    write_text("beside/largest.json", "");
    char *large = support_tmp_path("beside/large.json");
    char *largest = support_tmp_path("beside/largest.json");
    assert_int_equal(truncate(large, 64 << 20), 0); /* to the limit, and one byte beyond */
    assert_int_equal(truncate(largest, (64 << 20) + 1), 0);
    free(large);
    free(largest);

    /* named by its index: the directory holds more than one checkpoint */
    struct wanted wanted = {.snapshots = "beside/model.safetensors.index.json",
                            .out = "with_config"};
    struct made made;
    accept(&made, &wanted);
    for (size_t i = 0; i < ARRAY_LEN(copied); i++) {
        const struct phema_side_file *file = find_side_file(&made.outputs, copied[i]);
        assert_non_null(file);
        assert_non_null(file->source);
        assert_null(file->text);
    }
    assert_non_null(find_side_file(&made.outputs, "large.json"));
    assert_null(find_side_file(&made.outputs, "largest.json"));
    for (size_t i = 0; i < ARRAY_LEN(skipped); i++)
        assert_null(find_side_file(&made.outputs, skipped[i]));
    assert_int_equal(made.outputs.n_side_files, ARRAY_LEN(copied) + 2); /* large, the index */
    for (size_t f = 1; f < made.outputs.n_side_files; f++)
        assert_true(strcmp(made.outputs.side_files[f - 1].name, made.outputs.side_files[f].name) <
                    0);
    clear_made(&made);
}

/* Such files do not belong to one of many snapshots. */
static void files_next_to_one_snapshot_file_are_not_copied(void **state)
{
    (void)state;
    make_folder("flat");
    write_plain("flat/one", four, 524);
    write_text("flat/config.json", "{}");
    struct wanted wanted = {.snapshots = "flat/one", .out = "flat_out", .shard_bytes = 99};
    struct made made;
    accept(&made, &wanted);
    assert_int_equal(made.outputs.n_side_files, 1);
    clear_made(&made);
}

/* A larger index could not be read again. One name of 64 MiB makes one. */
static void an_index_has_64_mib_at_most(void **state)
{
    (void)state;
    struct phema_strbuf json = {0};
    size_t size = (size_t)64 << 20;
    char *name = malloc(size);
    assert_non_null(name);
    memset(name, 'w', size);
    put_text(&json, "{\"");
    put(&json, name, size);
    put_text(&json, "\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}");
    free(name);
    write_plain("long_name", json.data, 4);
    phema_strbuf_clear(&json);
    refuse(&(struct wanted){.snapshots = "long_name", .out = "o", .shard_bytes = 4096},
           PHEMA_ERR_OUTPUT, "the index of the shards has 671");
    char *path = in_tmp("long_name");
    assert_int_equal(unlink(path), 0);
    free(path);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(tensors_fill_shards_in_order),
    cmocka_unit_test(only_the_first_shard_has_provenance),
    cmocka_unit_test(excluded_tensors_are_in_no_shard),
    cmocka_unit_test(shards_are_those_of_the_newest_snapshot),
    cmocka_unit_test(equal_shard_names_in_two_folders_are_refused),
    cmocka_unit_test(configurations_are_copied_and_models_are_not),
    cmocka_unit_test(files_next_to_one_snapshot_file_are_not_copied),
    cmocka_unit_test(an_index_has_64_mib_at_most),
};
TEST_GROUP(tests)
