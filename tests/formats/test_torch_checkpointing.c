// SPDX-License-Identifier: Apache-2.0
/* Directories of torch_checkpointing: fixtures of the library, tensors cut by meshes of one and two
 * dimensions, and files that lie about meshes, placements, processes and shapes. */
#include "phema/formats.h"

#include <errno.h>
#include <sys/stat.h>

#include "build.h"

static const char *path_of(const char *directory, const char *name)
{
    static char path[2][2048];
    static unsigned next;
    next = !next;
    (void)snprintf(path[next], sizeof(path[next]), "%s/%s%s%s", support_tmp(), directory,
                   *name ? "/" : "", name);
    return path[next];
}

static void begin_directory(const char *name)
{
    assert_true(mkdir(path_of(name, ""), 0777) == 0 || errno == EEXIST);
}

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

/* ---- Fixtures ---- */

/* newest.safetensors has the whole tensors that the library's own reader gave. */
static void assert_equal_to_whole(const char *path, const char *whole_path, size_t n)
{
    struct phema_error err = {0};
    struct phema_checkpoint *parts = NULL, *whole = NULL;
    char *wanted_path = support_fixture(whole_path);
    assert_ok(phema_checkpoint_open(&parts, path, NULL, &err), &err);
    assert_ok(phema_checkpoint_open(&whole, wanted_path, NULL, &err), &err);
    assert_string_equal(phema_checkpoint_format(parts), "torch-checkpointing");
    assert_int_equal(phema_checkpoint_n_tensors(parts), n + 1); /* and rng */
    assert_int_equal(phema_checkpoint_n_tensors(whole), n);
    for (size_t i = 0; i < n; i++) {
        const struct phema_tensor *wanted = &phema_checkpoint_tensors(whole)[i];
        char name[64];
        int size = snprintf(name, sizeof(name), "model.%s", wanted->name);
        const struct phema_tensor *found = phema_checkpoint_find(parts, name, (size_t)size);
        assert_non_null(found);
        assert_int_equal(found->dtype, wanted->dtype);
        assert_int_equal(found->rank, wanted->rank);
        assert_int_equal(found->size_bytes, wanted->size_bytes);
        if (wanted->rank)
            assert_memory_equal(found->shape, wanted->shape, wanted->rank * sizeof(uint64_t));
        uint8_t left[256], right[256];
        assert_true(wanted->size_bytes <= sizeof(left));
        assert_memory_equal(read_all(parts, found, left), read_all(whole, wanted, right),
                            wanted->size_bytes);
    }
    phema_checkpoint_close(parts);
    phema_checkpoint_close(whole);
    free(wanted_path);
}

static void the_librarys_files_equal_the_whole_tensors(void **state)
{
    (void)state;
    static const struct {
        const char *directory, *whole;
        size_t n;
    } cases[] = {
        {"torch_checkpointing/step_60", "torch_checkpointing/newest.safetensors", 5},
        {"torch_checkpointing_first_only/step_40",
         "torch_checkpointing_first_only/newest.safetensors", 3},
        {"torch_checkpointing_safetensors/step_60",
         "torch_checkpointing_safetensors/newest.safetensors", 5},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *path = support_fixture(cases[i].directory);
        assert_equal_to_whole(path, cases[i].whole, cases[i].n);
        free(path);
    }
}

static void the_item_step_is_a_value(void **state)
{
    (void)state;
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    char *path = support_fixture("torch_checkpointing/step_40");
    assert_ok(phema_checkpoint_open(&checkpoint, path, NULL, &err), &err);
    assert_int_equal(phema_checkpoint_n_values(checkpoint), 1);
    assert_string_equal(phema_checkpoint_values(checkpoint)[0].name, "step");
    assert_true(phema_checkpoint_values(checkpoint)[0].number == 40);
    phema_checkpoint_close(checkpoint);
    free(path);
}

static void copy(const char *fixture, const char *directory, const char *name)
{
    char from[256];
    (void)snprintf(from, sizeof(from), "torch_checkpointing_safetensors/step_60/%s", fixture);
    char *path = support_fixture(from);
    size_t size = 0;
    uint8_t *data = support_read(path, &size);
    support_write(path_of(directory, name), data, size);
    free(data);
    free(path);
}

/* A directory like the fixture's, whose safetensors only metadata.pkl explains. */
static void copy_safetensors(const char *directory, bool has_metadata)
{
    char weights[64];
    (void)snprintf(weights, sizeof(weights), "%s/weights", directory);
    begin_directory(directory);
    begin_directory(weights);
    static const char *const files[] = {"rng_0.pt",
                                        "rng_1.pt",
                                        "step_0.pt",
                                        "step_1.pt",
                                        "weights/model_0.safetensors",
                                        "weights/model_1.safetensors"};
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        copy(files[i], directory, files[i]);
    if (has_metadata)
        copy("metadata.pkl", directory, "metadata.pkl");
}

static void metadata_come_from_the_nearest_sibling(void **state)
{
    (void)state;
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    copy_safetensors("run_100", false);
    refuse("run_100", "holds 4 checkpoint files and no index, metadata.pkl or DTensor");
    begin_directory("run_300");
    support_write(path_of("run_300", "metadata.pkl"), "no pickle", 9);
    refuse("run_100", "file '../run_300/metadata.pkl'");
    copy_safetensors("run_90", true);
    begin_directory("other_100"); /* of another run */
    support_write(path_of("other_100", "metadata.pkl"), "no pickle", 9);
    assert_equal_to_whole(path_of("run_100", ""),
                          "torch_checkpointing_safetensors/newest.safetensors", 5);
    assert_ok(phema_checkpoint_open(&checkpoint, path_of("run_100", ""), NULL, &err), &err);
    assert_string_equal(phema_checkpoint_file_label(checkpoint, 0), "../run_90/metadata.pkl");
    phema_checkpoint_close(checkpoint);
    /* checked: the parts of two processes change places */
    copy("weights/model_1.safetensors", "run_100", "weights/model_0.safetensors");
    refuse("run_100", "file 'weights/model_0.safetensors': tensor 'emb.weight': the part of "
                      "process 0 has shape [2, 4], expected [3, 4]");
    assert_int_equal(remove(path_of("run_100", "weights/model_0.safetensors")), 0);
    refuse("run_100", "file 'weights/model_0.safetensors'");
    copy("weights/model_0.safetensors", "run_100", "weights/model_0.safetensors");
    copy("rng_1.pt", "run_100", "rng_2.pt");
    refuse("run_100", "item 'rng' has files of 3 processes, expected 2");
}

/* Same-length changes of the fixture's metadata.pkl. */
static void metadata_that_lie_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *part;
    } cases[] = {
        {"\x8c\x03"
         "2.0",
         "\x8c\x03"
         "1.0",
         "file 'metadata.pkl': is of version '1.0', expected 2.0"},
        {"world_size", "world_sizf", "expected a world_size"},
        {"[\"emb\",\"weight\"]", "[\"emb\",\"weighs\"]",
         "tensor 'emb.weight': is not in metadata.pkl"},
        {"[\"emb\",\"weight\"]", "[\"emb\",\"weight\"}", "file 'metadata.pkl': item 'model'"},
        {"[\"emb\",\"weight\"]", "[\"blk\",\"0\",\"n\"] ", "two tensors are named 'blk.0.n'"},
        {"Replicate", "Partial__", "the placement 'Partial__' is not read"},
        {"torch.bfloat16", "torch.float16\0", "tensor 'blk.0.w'"},
        {"weights/model_0", "../ghts/model_0", "leads out of the checkpoint's directory"},
        {"weights/model_0", "/eights/model_0", "is absolute"},
        {"DTensorShardingMetadata", "DTensorShardingMetadatb", "of type DTensorShardingMetadata"},
        {"mesh_shape", "mesh_shapf", "expected a mesh_spec"},
        {"SafetensorsSerialization", "SafetensorsSerializatiox", "metadata.pkl"},
    };
    copy_safetensors("lie", true);
    char *path = support_fixture("torch_checkpointing_safetensors/step_60/metadata.pkl");
    size_t size = 0;
    uint8_t *good = support_read(path, &size);
    free(path);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint8_t *bad = malloc(size);
        assert_non_null(bad);
        memcpy(bad, good, size);
        size_t n = strlen(cases[i].from);
        uint8_t *place = memmem(bad, size, cases[i].from, n);
        assert_non_null(place);
        memcpy(place, cases[i].to, n);
        support_write(path_of("lie", "metadata.pkl"), bad, size);
        free(bad);
        if (i + 1 < ARRAY_LEN(cases)) {
            refuse("lie", cases[i].part);
            continue;
        }
        /* another serialisation has no tensors */
        struct phema_error err = {0};
        struct phema_checkpoint *checkpoint = NULL;
        assert_ok(phema_checkpoint_open(&checkpoint, path_of("lie", ""), NULL, &err), &err);
        assert_int_equal(phema_checkpoint_n_tensors(checkpoint), 1);
        phema_checkpoint_close(checkpoint);
    }
    for (size_t cut = 0; cut < size; cut++) {
        support_write(path_of("lie", "metadata.pkl"), good, cut);
        refuse("lie", "file 'metadata.pkl'");
    }
    free(good);
}

/* ---- DTensors ---- */

/* The part of one process of a tensor of bytes; its bytes count from 0, as put_torch has them. */
struct part {
    unsigned mesh[2], place[2], n_mesh;
    unsigned process, map_size; /* the map counts from 0 */
    const char
        *placements; /* "0", "1": Shard of that dimension; 'R', 'S': Replicate, _StridedShard */
    unsigned whole[2], local[2];
    const char *dtype;
};

static void put_string(struct phema_strbuf *out, const char *text)
{
    put_text(out, "X");
    put_int(out, strlen(text), 4);
    put_text(out, text);
}

static void put_numbers(struct phema_strbuf *out, const unsigned *numbers, unsigned n)
{
    put_text(out, "(");
    for (unsigned i = 0; i < n; i++) {
        put_text(out, "J");
        put_int(out, numbers ? numbers[i] : i, 4);
    }
    put_text(out, "t");
}

static void begin_record(struct phema_strbuf *out, const char *module, const char *class)
{
    put_text(out, "ctorch.distributed.");
    put_text(out, module);
    put_text(out, "\n");
    put_text(out, class);
    put_text(out, "\n)\x81}(");
}

static void put_mesh(struct phema_strbuf *out, const struct part *part)
{
    begin_record(out, "device_mesh", "DeviceMesh");
    put_string(out, "_layout");
    begin_record(out, "_mesh_layout", "_MeshLayout");
    put_string(out, "axes");
    put_text(out, "(");
    for (unsigned i = 0; i < part->n_mesh; i++) {
        begin_record(out, "_mesh_layout", "_FlatLayout");
        put_string(out, "shape");
        put_numbers(out, &part->mesh[i], 1);
        put_text(out, "ub");
    }
    put_text(out, "tub");
    put_string(out, "_rank");
    put_text(out, "J");
    put_int(out, part->process, 4);
    put_string(out, "_coordinate_on_dim");
    put_numbers(out, part->place, part->n_mesh);
    put_string(out, "_flatten_rank_map");
    put_numbers(out, NULL, part->map_size);
    put_text(out, "ub");
}

static void put_placements(struct phema_strbuf *out, const char *placements)
{
    put_text(out, "(");
    for (; *placements; placements++) {
        begin_record(out, "tensor.placement_types",
                     *placements == 'R'   ? "Replicate"
                     : *placements == 'S' ? "_StridedShard"
                                          : "Shard");
        if (*placements != 'R') {
            put_string(out, "dim");
            put_text(out, "J");
            put_int(out, *placements == 'S' ? 0 : (uint64_t)(*placements - '0'), 4);
        }
        put_text(out, "ub");
    }
    put_text(out, "t");
}

static void put_dtensor(struct phema_strbuf *out, const struct part *part)
{
    unsigned n = part->local[0] * part->local[1];
    put_text(out, "ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._utils\n"
                  "_rebuild_wrapper_subclass\nctorch.distributed.tensor\nDTensor\n(Nctorch\n");
    put_text(out, part->dtype ? part->dtype : "uint8");
    put_text(out, "\n");
    put_numbers(out, part->whole, 2);
    put_text(out, "NNt(N}(");
    put_string(out, "_local_tensor");
    put_text(out, "ctorch._utils\n_rebuild_tensor_v2\n((");
    put_string(out, "storage");
    put_text(out, "ctorch\nByteStorage\n");
    put_string(out, "0");
    put_string(out, "cpu");
    put_text(out, "J");
    put_int(out, n, 4);
    put_text(out, "tQJ");
    put_int(out, 0, 4);
    put_numbers(out, part->local, 2);
    put_numbers(out, (unsigned[]){part->local[1], 1}, 2);
    put_text(out, "\x89}tR");
    put_string(out, "_spec");
    begin_record(out, "tensor._dtensor_spec", "DTensorSpec");
    put_string(out, "mesh");
    put_mesh(out, part);
    put_string(out, "placements");
    put_placements(out, part->placements);
    put_text(out, "ubuttR");
}

/* A file with one tensor, w. */
static void write_part(const char *directory, const char *name, const struct part *part)
{
    struct phema_strbuf pickle = {0}, file = {0};
    put(&pickle, "\x80\x02}", 3);
    put_string(&pickle, "w");
    put_dtensor(&pickle, part);
    put_text(&pickle, "s.");
    put_torch(&file, pickle.data, pickle.size, (size_t)part->local[0] * part->local[1]);
    support_write(path_of(directory, name), file.data, file.size);
    phema_strbuf_clear(&pickle);
    phema_strbuf_clear(&file);
}

/* Sizes of the parts of n among 2 or 3, by hand: as torch.chunk cuts them. */
struct cut {
    unsigned first, size;
};

static void check_whole(const char *directory, const uint8_t *wanted, size_t n)
{
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    uint8_t scratch[64];
    assert_true(n <= sizeof(scratch));
    assert_ok(phema_checkpoint_open(&checkpoint, path_of(directory, ""), NULL, &err), &err);
    const struct phema_tensor *tensor = phema_checkpoint_find(checkpoint, "model.w", 7);
    assert_non_null(tensor);
    assert_int_equal(tensor->n_elems, n);
    assert_memory_equal(read_all(checkpoint, tensor, scratch), wanted, n);
    phema_checkpoint_close(checkpoint);
}

/* 5 rows on 2 x 2 processes: 3 and 2 rows, then 2 and 1, 1 and 1. */
static void dimensions_are_cut_from_left_to_right(void **state)
{
    (void)state;
    static const struct cut rows[] = {{0, 2}, {2, 1}, {3, 1}, {4, 1}};
    uint8_t wanted[10];
    begin_directory("nested");
    for (unsigned p = 0; p < 4; p++) {
        const struct part part = {.mesh = {2, 2},
                                  .place = {p / 2, p % 2},
                                  .n_mesh = 2,
                                  .process = p,
                                  .map_size = 4,
                                  .placements = "00",
                                  .whole = {5, 2},
                                  .local = {rows[p].size, 2}};
        char name[32];
        (void)snprintf(name, sizeof(name), "model_%u.pt", p);
        write_part("nested", name, &part);
        for (unsigned i = 0; i < rows[p].size * 2; i++)
            wanted[rows[p].first * 2 + i] = (uint8_t)i;
    }
    check_whole("nested", wanted, 10);
}

/* 4 rows on 3 processes: 2, 2 and none. */
static void a_part_may_be_empty(void **state)
{
    (void)state;
    static const struct cut rows[] = {{0, 2}, {2, 2}, {4, 0}};
    static const uint8_t wanted[] = {0, 1, 2, 3, 0, 1, 2, 3};
    begin_directory("empty");
    for (unsigned p = 0; p < 3; p++) {
        const struct part part = {.mesh = {3},
                                  .place = {p},
                                  .n_mesh = 1,
                                  .process = p,
                                  .map_size = 3,
                                  .placements = "0",
                                  .whole = {4, 2},
                                  .local = {rows[p].size, 2}};
        char name[32];
        (void)snprintf(name, sizeof(name), "model_%u.pt", p);
        write_part("empty", name, &part);
    }
    check_whole("empty", wanted, sizeof(wanted));
}

/* Columns on 2 processes, replicated on 2. */
static void replicas_are_read_once(void **state)
{
    (void)state;
    static const uint8_t wanted[] = {0, 1, 0, 2, 3, 1};
    begin_directory("replicas");
    for (unsigned p = 0; p < 4; p++) {
        const struct part part = {.mesh = {2, 2},
                                  .place = {p / 2, p % 2},
                                  .n_mesh = 2,
                                  .process = p,
                                  .map_size = 4,
                                  .placements = "R1",
                                  .whole = {2, 3},
                                  .local = {2, p % 2 ? 1 : 2}};
        char name[32];
        (void)snprintf(name, sizeof(name), "model_%u.pt", p);
        write_part("replicas", name, &part);
    }
    check_whole("replicas", wanted, sizeof(wanted));
}

static void dtensors_that_lie_are_refused(void **state)
{
    (void)state;
    static const struct part first = {.mesh = {2},
                                      .place = {0},
                                      .n_mesh = 1,
                                      .process = 0,
                                      .map_size = 2,
                                      .placements = "0",
                                      .whole = {4, 2},
                                      .local = {2, 2}};
    static const struct part good = {.mesh = {2},
                                     .place = {1},
                                     .n_mesh = 1,
                                     .process = 1,
                                     .map_size = 2,
                                     .placements = "0",
                                     .whole = {4, 2},
                                     .local = {2, 2}};
    static const struct {
        size_t offset; /* of an unsigned in struct part */
        unsigned value;
        const char *part;
    } cases[] = {
        {offsetof(struct part, mesh), 0, "coordinates of the process inside the DeviceMesh"},
        {offsetof(struct part, mesh), 3, "a _flatten_rank_map of 3 processes"},
        {offsetof(struct part, place), 2, "coordinates of the process inside the DeviceMesh"},
        {offsetof(struct part, place), 0, "another process where it says that 1 is"},
        {offsetof(struct part, process), 0, "another process where it says that 0 is"},
        {offsetof(struct part, map_size), 1, "a _flatten_rank_map of 2 processes"},
        {offsetof(struct part, n_mesh), 0, "a _flatten_rank_map of 1 processes"},
        {offsetof(struct part, whole), 6,
         "file 'model_1.pt': tensor 'model.w': the part of process 1 has shape [2, 2], expected "
         "[3, 2]"},
        {offsetof(struct part, whole) + sizeof(unsigned), 3, "expected [2, 3] by its placements"},
        {offsetof(struct part, local), 1, "has shape [1, 2], expected [2, 2]"},
        {offsetof(struct part, whole), 3, "has shape [2, 2], expected [1, 2]"},
    };
    begin_directory("part");
    write_part("part", "model_0.pt", &first);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct part bad = good;
        memcpy((char *)&bad + cases[i].offset, &cases[i].value, sizeof(unsigned));
        write_part("part", "model_1.pt", &bad);
        refuse("part", cases[i].part);
    }
    static const struct {
        const char *placements, *part;
    } placed[] = {
        {"S", "the placement _StridedShard (FSDP over tensor parallelism) is not read"},
        {"2", "is sharded along dimension 2, but has 2 dimensions"},
        {"", "expected 1 placements"},
        {"00", "expected 1 placements"},
        {"R", "has shape [2, 2], expected [4, 2]"},
        {"1", "has shape [2, 2], expected [4, 1]"},
    };
    for (size_t i = 0; i < ARRAY_LEN(placed); i++) {
        struct part bad = good;
        bad.placements = placed[i].placements;
        write_part("part", "model_1.pt", &bad);
        refuse("part", placed[i].part);
    }
    struct part other = good;
    other.dtype = "int8";
    write_part("part", "model_1.pt", &other);
    refuse("part", "a DTensor of the dtype of its _local_tensor");
    /* shapes of both processes, each right in itself */
    other = good;
    other.whole[0] = 3;
    other.local[0] = 1;
    write_part("part", "model_1.pt", &other);
    refuse("part", "tensor 'model.w': is stated to be a part of a tensor of shape [3, 2], but of "
                   "shape [4, 2] in file 'model_0.pt'");
    write_part("part", "model_1.pt", &first);
    refuse("part", "file 'model_1.pt': tensor 'model.w': is the part of process 0, expected 1");
}

static void files_and_processes_are_complete(void **state)
{
    (void)state;
    static const struct part parts[] = {{.mesh = {2},
                                         .place = {0},
                                         .n_mesh = 1,
                                         .process = 0,
                                         .map_size = 2,
                                         .placements = "0",
                                         .whole = {4, 2},
                                         .local = {2, 2}},
                                        {.mesh = {2},
                                         .place = {1},
                                         .n_mesh = 1,
                                         .process = 1,
                                         .map_size = 2,
                                         .placements = "0",
                                         .whole = {4, 2},
                                         .local = {2, 2}}};
    /* one item of the first process alone, beside another one of it */
    begin_directory("alone");
    write_part("alone", "model_0.pt", &parts[0]);
    write_part("alone", "other_0.pt", &parts[0]);
    refuse("alone", "tensor 'model.w': file 'model_0.pt': its pieces hold 4 of its 8 elements");
    write_part("alone", "other_1.pt", &parts[1]);
    refuse("alone", "item 'other' has files of 2 processes, expected 1");
    /* an unfinished one */
    begin_directory("tmp_run");
    write_part("tmp_run", "model_0.pt", &parts[0]);
    write_part("tmp_run", "model_1.pt", &parts[1]);
    refuse("tmp_run", "did not finish");
    /* a file by itself */
    refuse("tmp_run/model_1.pt",
           "is a DTensor of shape [4, 2], of which this file has the part [2, 2]");
    /* steps of a series are no processes */
    begin_directory("steps");
    write_part("steps", "model_0.pt", &parts[0]);
    write_part("steps", "model_100.pt", &parts[1]);
    refuse("steps", "holds 2 checkpoint files and no index, expected one checkpoint");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_librarys_files_equal_the_whole_tensors),
    cmocka_unit_test(the_item_step_is_a_value),
    cmocka_unit_test(metadata_come_from_the_nearest_sibling),
    cmocka_unit_test(metadata_that_lie_are_refused),
    cmocka_unit_test(dimensions_are_cut_from_left_to_right),
    cmocka_unit_test(a_part_may_be_empty),
    cmocka_unit_test(replicas_are_read_once),
    cmocka_unit_test(dtensors_that_lie_are_refused),
    cmocka_unit_test(files_and_processes_are_complete),
};
TEST_GROUP(tests)
