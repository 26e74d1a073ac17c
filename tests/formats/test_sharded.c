// SPDX-License-Identifier: Apache-2.0
/* Indices that refer to other files or contradict their shards. Directories that contain one
 * checkpoint, none, or several. */
#include "phema/formats.h"

#include <errno.h>
#include <sys/stat.h>

#include "build.h"

#define U8(name, offsets)                                                                          \
    "\"" name "\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":" offsets "}"

static const char *in_directory(const char *directory, const char *name)
{
    static char path[2048];
    (void)snprintf(path, sizeof(path), "%s/%s/%s", support_tmp(), directory, name);
    return path;
}

static void make_directory(const char *name)
{
    char *path = support_tmp_path(name);
    assert_true(mkdir(path, 0777) == 0 || errno == EEXIST);
    free(path);
}

static void write_shard(const char *directory, const char *name, const char *json, size_t n_data)
{
    struct phema_strbuf file = {0};
    put_safetensors(&file, json, n_data);
    support_write(in_directory(directory, name), file.data, file.size);
    phema_strbuf_clear(&file);
}

/* One directory with the shards that all indices here use. */
static void make_shards(const char *directory)
{
    make_directory(directory);
    write_shard(directory, "one.safetensors",
                "{\"__metadata__\":{\"k\":\"first\"}," U8("a", "[0,1]") "," U8("b", "[1,2]") "}",
                2);
    write_shard(directory, "two.safetensors",
                "{\"__metadata__\":{\"k\":\"second\"}," U8("c", "[0,1]") "}", 1);
}

static enum phema_status open_index(struct phema_checkpoint **out, const char *json,
                                    struct phema_error *err)
{
    make_shards("shards");
    const char *path = in_directory("shards", "m.index.json");
    support_write(path, json, strlen(json));
    *out = NULL;
    return phema_checkpoint_open(out, path, NULL, err);
}

static void refuse_index(const char *json, const char *part)
{
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    assert_fails(open_index(&checkpoint, json, &err), PHEMA_ERR_FILE, &err, part);
    assert_null(checkpoint);
    assert_ptr_equal(strstr(err.message, in_directory("shards", "m.index.json")), err.message);
}

#define MAP(rows) "{\"weight_map\":{" rows "}}"
#define GOOD      "\"a\":\"one.safetensors\",\"b\":\"one.safetensors\",\"c\":\"two.safetensors\""

static void shards_are_read_in_the_order_of_the_index(void **state)
{
    (void)state;
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    assert_ok(open_index(&checkpoint,
                         MAP("\"c\":\"two.safetensors\",\"b\":\"./one.safetensors\",\"a\":\"./"
                             "one.safetensors\""),
                         &err),
              &err);
    assert_string_equal(phema_checkpoint_format(checkpoint), "sharded");
    assert_int_equal(phema_checkpoint_n_tensors(checkpoint), 3);
    assert_string_equal(phema_checkpoint_tensors(checkpoint)[0].name, "c");
    assert_string_equal(phema_checkpoint_tensors(checkpoint)[1].name, "a");
    assert_string_equal(phema_checkpoint_metadatum(checkpoint, "k"), "second");
    size_t file = phema_checkpoint_tensors(checkpoint)[0].file;
    assert_string_equal(phema_checkpoint_file_label(checkpoint, file), "two.safetensors");
    assert_int_equal(phema_checkpoint_n_warnings(checkpoint), 0);
    assert_places_inside(checkpoint);
    phema_checkpoint_close(checkpoint);
}

static void a_wrong_total_is_a_warning(void **state)
{
    (void)state;
    static const struct {
        const char *metadata;
        size_t n_warnings;
    } cases[] = {{"{\"total_size\":3}", 0},         {"{\"total_size\":3.0}", 0},
                 {"{\"total_size\":4}", 1},         {"{\"total_size\":\"x\"}", 0},
                 {"{\"other\":{\"deep\":[1]}}", 0}, {"null", 0}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char json[512];
        (void)snprintf(json, sizeof(json), "{\"metadata\":%s,\"weight_map\":{" GOOD "}}",
                       cases[i].metadata);
        struct phema_error err = {0};
        struct phema_checkpoint *checkpoint = NULL;
        assert_ok(open_index(&checkpoint, json, &err), &err);
        assert_int_equal(phema_checkpoint_n_warnings(checkpoint), cases[i].n_warnings);
        if (cases[i].n_warnings)
            assert_non_null(strstr(phema_checkpoint_warning(checkpoint, 0), "total_size 4"));
        phema_checkpoint_close(checkpoint);
    }
}

static void names_of_shards_stay_below_the_index(void **state)
{
    (void)state;
    make_directory("outside");
    write_shard("outside", "one.safetensors", "{" U8("a", "[0,1]") "}", 1);
    char absolute[4096];
    (void)snprintf(absolute, sizeof(absolute), MAP("\"a\":\"%s\""),
                   in_directory("outside", "one.safetensors"));
    refuse_index(absolute, "is absolute");
    refuse_index(MAP("\"a\":\"../outside/one.safetensors\""), "leads out of");
    refuse_index(MAP("\"a\":\"x/../../outside/one.safetensors\""), "leads out of");
    refuse_index(MAP("\"a\":\"..\""), "leads out of");
    refuse_index(MAP("\"a\":\"\\u002e\\u002e/outside/one.safetensors\""), "leads out of");
    refuse_index(MAP("\"a\":\"\""), "is empty");
    refuse_index(MAP("\"a\":\"one.safetensors\\u0000.txt\""), "NUL");
    refuse_index(MAP("\"a\":\"file://one.safetensors\""), "URL");
    refuse_index(MAP("\"a\":\"https://x/one.safetensors\""), "URL");
}

static void indices_and_shards_must_agree(void **state)
{
    (void)state;
    refuse_index(MAP(GOOD ",\"d\":\"two.safetensors\""), "lists it in 'two.safetensors'");
    refuse_index(MAP("\"a\":\"one.safetensors\",\"c\":\"two.safetensors\""), "does not list");
    refuse_index(
        MAP("\"a\":\"one.safetensors\",\"b\":\"two.safetensors\",\"c\":\"two.safetensors\""),
        "another one");
    refuse_index(MAP("\"a\":\"one.safetensors\",\"a\":\"two.safetensors\""), "duplicate");
    refuse_index(MAP(GOOD ",\"d\":\"missing.safetensors\""), "shard 'missing.safetensors'");
    refuse_index(MAP("\"a\":5"), "no string");
    refuse_index(MAP(""), "is empty");
    refuse_index("{}", "weight_map");
    refuse_index("{\"weight_map\":[]}", "weight_map");
    refuse_index("{\"weight_map\":{}", "JSON");
    refuse_index("{\"weight_map\":{}}x", "JSON");
    refuse_index("{\"\\u07\n00\x1b[31m\":1}", "\\n"); /* escape sequences do not reach a terminal */
    refuse_index("{\"weight_map\":{\"a\\u0000\":\"one.safetensors\"}}", "NUL");
}

/* The limit is 64 MiB (docs/limits.md). After its beginning the file is a hole, which is not
 * JSON. */
static void an_index_has_64_mib_at_most(void **state)
{
    (void)state;
    make_shards("shards");
    const char *path = in_directory("shards", "long.index.json");
    for (int beyond = 0; beyond < 2; beyond++) {
        support_write(path, "{", 1);
        assert_int_equal(truncate(path, (64 << 20) + beyond), 0);
        struct phema_error err = {0};
        struct phema_checkpoint *checkpoint = NULL;
        assert_fails(phema_checkpoint_open(&checkpoint, path, NULL, &err), PHEMA_ERR_FILE, &err,
                     beyond ? "long.index.json: expected an index of shards of at most 67108864 "
                              "bytes, found JSON of 67108865"
                            : "JSON is not valid at byte 2");
    }
    (void)unlink(path);
}

static void a_name_in_two_shards_is_refused(void **state)
{
    (void)state;
    make_shards("shards");
    write_shard("shards", "again.safetensors", "{" U8("a", "[0,1]") "," U8("d", "[1,2]") "}", 2);
    refuse_index(MAP(GOOD ",\"d\":\"again.safetensors\""), "another one");
}

static void shards_may_be_links_and_no_pipes(void **state)
{
    (void)state;
    make_shards("shards");
    make_directory("shards/blobs");
    write_shard("shards/blobs", "0123", "{" U8("l", "[0,1]") "}", 1);
    (void)unlink(in_directory("shards", "link.safetensors"));
    assert_int_equal(symlink("blobs/0123", in_directory("shards", "link.safetensors")), 0);
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    assert_ok(open_index(&checkpoint, MAP("\"l\":\"link.safetensors\""), &err), &err);
    phema_checkpoint_close(checkpoint);
    assert_ok(open_index(&checkpoint, MAP("\"l\":\"blobs/0123\""), &err), &err);
    assert_string_equal(phema_checkpoint_file_label(checkpoint, 1), "blobs/0123");
    phema_checkpoint_close(checkpoint);

    (void)unlink(in_directory("shards", "pipe"));
    assert_int_equal(mkfifo(in_directory("shards", "pipe"), 0666), 0);
    refuse_index(MAP("\"l\":\"pipe\""), "regular file");
    refuse_index(MAP("\"l\":\"blobs\""), "is a directory");
    struct phema_checkpoint *pipe = NULL;
    assert_fails(phema_checkpoint_open(&pipe, in_directory("shards", "pipe"), NULL, &err),
                 PHEMA_ERR_FILE, &err, "regular file");
}

/* A file of torch.save of {NAME: 4 bytes}, or of {}. */
static void write_torch(const char *name, char tensor)
{
    char pickle[] = "\x80\x02}X\1\0\0\0wctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0"
                    "storagectorch\nByteStorage\nX\1\0\0\0"
                    "0X\3\0\0\0cpuK\x04tQK\0K\x04\x85K\1\x85\x89NtRs.";
    struct phema_strbuf file = {0};
    pickle[8] = tensor;
    if (tensor)
        put_torch(&file, pickle, sizeof(pickle) - 1, 4);
    else
        put_torch(&file, "\x80\x02}.", 4, 4);
    support_write(in_directory("shards", name), file.data, file.size);
    phema_strbuf_clear(&file);
}

static void shards_may_be_files_of_torch(void **state)
{
    (void)state;
    make_shards("shards");
    write_torch("x.bin", 'x');
    write_torch("y.bin", 'y');
    write_torch("none.bin", '\0');
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    /* the total of ColossalAI is in MiB: no warning */
    assert_ok(open_index(&checkpoint,
                         "{\"metadata\":{\"total_size\":1},\"weight_map\":{\"y\":\"y.bin\",\"x\":"
                         "\"x.bin\"}}",
                         &err),
              &err);
    assert_string_equal(phema_checkpoint_format(checkpoint), "torch-sharded");
    assert_int_equal(phema_checkpoint_n_tensors(checkpoint), 2);
    assert_int_equal(phema_checkpoint_n_warnings(checkpoint), 0);
    const struct phema_tensor *second = &phema_checkpoint_tensors(checkpoint)[1];
    assert_string_equal(second->name, "x");
    assert_string_equal(phema_checkpoint_file_label(checkpoint, second->file), "x.bin");
    assert_places_inside(checkpoint);
    phema_checkpoint_close(checkpoint);

#define BOTH "\"x\":\"x.bin\",\"y\":\"y.bin\""
    refuse_index(MAP(BOTH ",\"z\":\"y.bin\""),
                 "'z': the index lists it in 'y.bin', which does not");
    refuse_index(MAP("\"z\":\"x.bin\""), "does not list it");
    refuse_index(MAP("\"x\":\"y.bin\",\"y\":\"x.bin\""), "another one");
    refuse_index(MAP(BOTH ",\"z\":\"./x.bin\""), "shard './x.bin': tensor 'x': is in this shard");
    refuse_index(MAP(BOTH ",\"z\":\"none.bin\""), "shard 'none.bin': holds no tensor");
    refuse_index(MAP(BOTH ",\"z\":\"absent.bin\""), "shard 'absent.bin': cannot be opened");
    refuse_index(MAP(BOTH ",\"z\":\"../x.bin\""), "leads out of");
    refuse_index(MAP(BOTH "," GOOD),
                 "'one.safetensors': is a file of safetensors, unlike the first");
    refuse_index(MAP(GOOD "," BOTH), "'x.bin': is a file of PyTorch, unlike the first");
    support_write(in_directory("shards", "y.bin"), "PK\3\4", 4);
    refuse_index(MAP(BOTH), "shard 'y.bin': damaged zip file");
}

static enum phema_status open_directory(struct phema_checkpoint **out, const char *name,
                                        struct phema_error *err)
{
    char *path = support_tmp_path(name);
    *out = NULL;
    enum phema_status status = phema_checkpoint_open(out, path, NULL, err);
    free(path);
    return status;
}

/* The index decides that a file is a shard; the shard's header is not checked before. */
static void headers_of_shards_end_inside_them(void **state)
{
    (void)state;
    static const char json[] = "{" U8("c", "[0,0]") "}";
    for (uint64_t beyond = 0; beyond < 3; beyond++) {
        struct phema_strbuf file = {0};
        put_int(&file, strlen(json) + beyond, 8);
        put_text(&file, json);
        make_directory("long");
        support_write(in_directory("long", "two.safetensors"), file.data, file.size);
        phema_strbuf_clear(&file);
        const char *index = in_directory("long", "m.index.json");
        support_write(index, MAP("\"c\":\"two.safetensors\""),
                      strlen(MAP("\"c\":\"two.safetensors\"")));
        struct phema_error err = {0};
        struct phema_checkpoint *checkpoint = NULL;
        assert_fails(phema_checkpoint_open(&checkpoint, index, NULL, &err), PHEMA_ERR_FILE, &err,
                     beyond ? "expected a safetensors header of at most"
                            : "expected 1 elements of 8 bits, found 0 bytes");
    }
}

static void directories_hold_exactly_one_checkpoint(void **state)
{
    (void)state;
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    make_directory("dir");
    support_write(in_directory("dir", "config.json"), "{}", 2);
    support_write(in_directory("dir", ".hidden.safetensors"), "x", 1);
    assert_fails(open_directory(&checkpoint, "dir", &err), PHEMA_ERR_FILE, &err,
                 "holds no checkpoint");

    write_shard("dir", "one.safetensors", "{" U8("a", "[0,1]") "}", 1);
    assert_ok(open_directory(&checkpoint, "dir", &err), &err);
    assert_string_equal(phema_checkpoint_format(checkpoint), "safetensors");
    assert_string_equal(phema_checkpoint_file_label(checkpoint, 0), "one.safetensors");
    phema_checkpoint_close(checkpoint);

    write_shard("dir", "zone.safetensors", "{" U8("b", "[0,1]") "}", 1);
    assert_fails(open_directory(&checkpoint, "dir", &err), PHEMA_ERR_FILE, &err,
                 "holds 2 checkpoint files");

    static const char both[] = MAP("\"a\":\"one.safetensors\",\"b\":\"zone.safetensors\"");
    support_write(in_directory("dir", "m.index.json"), both, strlen(both));
    assert_ok(open_directory(&checkpoint, "dir", &err), &err);
    assert_string_equal(phema_checkpoint_format(checkpoint), "sharded");
    assert_int_equal(phema_checkpoint_n_tensors(checkpoint), 2);
    phema_checkpoint_close(checkpoint);

    /* one.safetensors is the end of zone.safetensors, but this does not name it */
    static const char single[] = MAP("\"b\":\"zone.safetensors\"");
    support_write(in_directory("dir", "m.index.json"), single, strlen(single));
    assert_fails(open_directory(&checkpoint, "dir", &err), PHEMA_ERR_FILE, &err,
                 "'one.safetensors' besides an index");
    support_write(in_directory("dir", "n.index.json"), both, strlen(both));
    assert_fails(open_directory(&checkpoint, "dir", &err), PHEMA_ERR_FILE, &err, "2 indices");
    support_write(in_directory("dir", ".metadata"), "x", 1);
    assert_fails(open_directory(&checkpoint, "dir", &err), PHEMA_ERR_FILE, &err,
                 "dir: .metadata: ");

    make_directory("bad");
    support_write(in_directory("bad", "w.pt"), "PK\3\4", 4);
    assert_fails(open_directory(&checkpoint, "bad", &err), PHEMA_ERR_FILE, &err,
                 "bad: w.pt: damaged zip file");
}

static void content_decides_and_not_the_extension(void **state)
{
    (void)state;
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    make_directory("names");
    write_shard("names", "w.pt", "{" U8("a", "[0,1]") "}", 1);
    assert_ok(open_directory(&checkpoint, "names", &err), &err);
    assert_string_equal(phema_checkpoint_format(checkpoint), "safetensors");
    phema_checkpoint_close(checkpoint);

    char tar[1024] = {0};
    memcpy(tar + 257, "ustar", 6);
    assert_refused(tar, sizeof(tar), "tar archive");
    assert_refused("\x80\x04N.", 4, "plain pickle");
    assert_refused("\x28\xB5\x2F\xFD", 4, "zstd");
    assert_refused("hello, world: no checkpoint", 27, "no checkpoint");
    assert_refused("", 0, "is empty");
    assert_fails(phema_checkpoint_open(&checkpoint, "/nonexistent/x.pt", NULL, &err),
                 PHEMA_ERR_FILE, &err, "/nonexistent/x.pt: cannot be opened");
}

static void forgetting_the_listing_keeps_the_files(void **state)
{
    (void)state;
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    assert_ok(open_index(&checkpoint, MAP(GOOD), &err), &err);
    phema_checkpoint_forget_listing(checkpoint);
    assert_int_equal(phema_checkpoint_n_tensors(checkpoint), 0);
    assert_null(phema_checkpoint_find(checkpoint, "a", 1));
    assert_int_equal(phema_checkpoint_n_files(checkpoint), 3);
    assert_ok(phema_file_check_unchanged(phema_checkpoint_file(checkpoint, 2), &err), &err);
    assert_string_equal(phema_checkpoint_file_label(checkpoint, 2), "two.safetensors");
    phema_checkpoint_close(checkpoint);
    phema_checkpoint_close(NULL);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(shards_are_read_in_the_order_of_the_index),
    cmocka_unit_test(a_wrong_total_is_a_warning),
    cmocka_unit_test(names_of_shards_stay_below_the_index),
    cmocka_unit_test(indices_and_shards_must_agree),
    cmocka_unit_test(an_index_has_64_mib_at_most),
    cmocka_unit_test(a_name_in_two_shards_is_refused),
    cmocka_unit_test(shards_may_be_links_and_no_pipes),
    cmocka_unit_test(shards_may_be_files_of_torch),
    cmocka_unit_test(headers_of_shards_end_inside_them),
    cmocka_unit_test(directories_hold_exactly_one_checkpoint),
    cmocka_unit_test(content_decides_and_not_the_extension),
    cmocka_unit_test(forgetting_the_listing_keeps_the_files),
};
TEST_GROUP(tests)
