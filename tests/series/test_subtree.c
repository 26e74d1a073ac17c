// SPDX-License-Identifier: Apache-2.0
/* The averaged model inside a checkpoint. The pickles are as trainers write them, in any order, and
 * damaged. */
#include "sets.h"

#include "../formats/build.h"
#include "phema/series.h"

#define TEXT(size, text) "X" size "\0\0\0" text
#define INT(n)           "K" n
#define FLOATS           /* two */                                                                 \
    "ctorch._utils\n_rebuild_tensor_v2\n((" TEXT("\7", "storage") "ctorch\nFloatStorage\n" TEXT(   \
        "\1", "0") TEXT("\3", "cpu") INT("\2") "tQK\0K\2\x85K\1\x85\x89NtR"
#define W             TEXT("\1", "w") FLOATS
#define HALF          "G\x3F\xE0\0\0\0\0\0\0" /* 0.5, big-endian */
#define QUARTER       "G\x3F\xD0\0\0\0\0\0\0"
#define STDS(numbers) TEXT("\4", "stds") "](" numbers "e"
#define EMAS(states)  TEXT("\4", "emas") "](" states "e"
#define STATE         "}(" W "u"

/* A dict of these items; the paths of previous calls remain valid. */
static char *make(const char *name, const char *items, size_t size)
{
    struct phema_strbuf pickle = {0};
    put(&pickle, "\x80\x02}(", 4);
    put(&pickle, items, size);
    put(&pickle, "u.", 2);
    struct phema_strbuf file = {0};
    put_torch(&file, pickle.data, pickle.size, 8);
    char *path = support_tmp_path(name);
    support_write(path, file.data, file.size);
    phema_strbuf_clear(&pickle);
    phema_strbuf_clear(&file);
    return path;
}
#define MAKE(name, items) make(name, items, sizeof(items) - 1)

/* The guessed or requested key, and the notes. */
static void check(const char *items, size_t size, const char *asked, const char *key,
                  const char *note)
{
    char *path = make("file", items, size);
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    assert_ok(phema_checkpoint_open(&checkpoint, path, NULL, &err), &err);
    struct phema_arena arena = {0};
    struct candidate_list scan = {
        .arena = &arena, .specs = {.arena = &arena}, .layout = &layout_lightning};
    struct subtree subtree;
    assert_ok(subtree_choose(&subtree, &scan, asked, checkpoint, &err), &err);
    assert_string_equal(subtree.key, key);
    if (note)
        assert_true(scan.notes.data && strstr(scan.notes.data, note));
    else
        assert_int_equal(scan.notes.size, 0);
    phema_strbuf_clear(&scan.notes);
    phema_strbuf_clear(&scan.warnings);
    phema_arena_clear(&arena);
    phema_checkpoint_close(checkpoint);
    free(path);
}
#define CHECK(items, asked, key, note) check(items, sizeof(items) - 1, asked, key, note)

#define NESTED(size, name) TEXT(size, name) STATE
#define OPTIMIZER_VALUES   TEXT("\5", "optim") "}" TEXT("\2", "lr") HALF "s"
#define OPTIMIZER_TENSORS  NESTED("\x10", "optimizer_states")

static void averages_are_preferred(void **state)
{
    (void)state;
    CHECK(NESTED("\x0A", "state_dict") NESTED("\x0E", "ema_state_dict")
              TEXT("\1", "e") "}(" STDS(HALF) EMAS(STATE) "u",
          NULL, "e", "those in 'e.emas' are averaged, of the widths in 'e.stds'");
    CHECK(NESTED("\x0A", "state_dict") NESTED("\x0E", "ema_state_dict"), NULL, "ema_state_dict",
          "averaging the subtree 'ema_state_dict'");
    CHECK(NESTED("\5", "model") OPTIMIZER_TENSORS NESTED("\x0A", "state_dict"), NULL, "state_dict",
          "'state_dict'");
    CHECK(STDS(HALF) EMAS(STATE), NULL, "",
          "those in 'emas' are averaged, of the widths in 'stds'");
    /* averages without widths are ignored */
    CHECK(EMAS(STATE) NESTED("\x0A", "state_dict"), NULL, "state_dict", "'state_dict'");
}

static void an_optimizer_marks_a_training_state(void **state)
{
    (void)state;
    CHECK(NESTED("\5", "model") NESTED("\3", "net"), NULL, "", NULL);
    CHECK(NESTED("\3", "net") NESTED("\5", "model") OPTIMIZER_VALUES, NULL, "model", "'model'");
    CHECK(NESTED("\3", "net") NESTED("\6", "module") OPTIMIZER_TENSORS, NULL, "module", "'module'");
    CHECK(NESTED("\3", "net") OPTIMIZER_TENSORS, NULL, "net", "'net'");
    CHECK(NESTED("\7", "network") OPTIMIZER_TENSORS, NULL, "",
          "left out: the state of an optimizer");
    CHECK(NESTED("\7", "network") OPTIMIZER_TENSORS, ".", "", NULL);
    CHECK(NESTED("\7", "network") OPTIMIZER_VALUES, NULL, "", NULL);
    /* Composer: {"state": {"model", "optimizers": {"AdamW": {"state"}}}} */
    CHECK(TEXT("\5", "state") "}(" NESTED("\5", "model")
              TEXT("\x0A", "optimizers") "}(" TEXT("\5", "AdamW") "}(" TEXT("\5", "state") STATE
          "uuu",
          NULL, "state.model", "'state.model'");
}

/* Else the averages would be taken for raw parameters. */
static void without_memory_no_list_of_averages_is_overlooked(void **state)
{
    (void)state;
    char *path = MAKE("file", NESTED("\5", "model")
                                  TEXT("\3", "ema") "}(" TEXT("\6", "shadow") "](" FLOATS "eu");
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    assert_ok(phema_checkpoint_open(&checkpoint, path, NULL, &err), &err);
    struct phema_arena arena = {.is_failed = true};
    struct candidate_list scan = {
        .arena = &arena, .layout = &layout_lightning, .asks_for_raw = true};
    struct subtree subtree;
    assert_fails(subtree_choose(&subtree, &scan, NULL, checkpoint, &err), PHEMA_ERR_RESOURCE, &err,
                 "out of memory");
    phema_arena_clear(&arena);
    phema_checkpoint_close(checkpoint);
    free(path);
}

static void a_requested_key_is_used(void **state)
{
    (void)state;
    CHECK(NESTED("\5", "model") OPTIMIZER_TENSORS, "optimizer_states", "optimizer_states", NULL);
    CHECK(TEXT("\1", "e") "}(" STDS(HALF) EMAS(STATE) "u", "e.emas", "e.emas", NULL);
}

static void optimizers_are_known_by_their_names(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool is;
    } cases[] = {{"optimizer.state.0.exp_avg", true},
                 {"optimizer_states.0.x", true},
                 {"optimizer_state_dict", true},
                 {"optim.x", true},
                 {"opt_state.x", true},
                 {"optimum.x", false},
                 {"optic.x", false},
                 {"model.optimizer.x", false},
                 {"model.optimizer.weight.exp_avg", true},
                 {"state.optimizers.AdamW.state.w.exp_avg", true},
                 {"app.optim.param_groups.0.lr", true},
                 {"model.optim.0.1.2.state", false},
                 {"", false}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_int_equal(is_optimizer_state(cases[i].name, strlen(cases[i].name)), cases[i].is);
}

/* ---- Series of such files ---- */

static enum phema_status open_series(struct phema_series **out, const char *manifest,
                                     const char *key, struct phema_error *err)
{
    char *path = support_tmp_path("series.json");
    support_write(path, manifest, strlen(manifest));
    struct phema_series_options options = {
        .snapshots = path, .key = key, .from = PHEMA_UNKNOWN, .to = PHEMA_UNKNOWN};
    *out = NULL;
    enum phema_status status = phema_series_open(out, &options, err);
    free(path);
    return status;
}

static void refuse_series(const char *manifest, const char *part)
{
    struct phema_error err = {0};
    struct phema_series *series = NULL;
    assert_fails(open_series(&series, manifest, NULL, &err), PHEMA_ERR_INPUTS, &err, part);
    assert_null(series);
}

#define ENTRY(file, more) "{\"snapshots\": [{\"file\": \"" file "\", \"time\": 1" more "}]}"

static void widths_and_averages_match_in_number(void **state)
{
    (void)state;
    free(MAKE("one", TEXT("\1", "e") "}(" STDS(HALF) EMAS(STATE STATE) "u"));
    refuse_series(ENTRY("one", ""), "one: holds average 1 of 'e', but 1 width in 'stds' there");
    free(MAKE("two", TEXT("\1", "e") "}(" STDS(HALF QUARTER) EMAS(STATE) "u"));
    refuse_series(ENTRY("two", ""), "two: has 2 widths in 'stds' of 'e', but no average 1");
    free(MAKE("gap", TEXT("\1", "e") "}(" STDS(QUARTER "N" QUARTER) EMAS(STATE STATE) "u"));
    refuse_series(ENTRY("gap", ""), "gap: holds average 1 of 'e', but 1 width in 'stds' there");
    /* an impossible width */
    free(MAKE("wide", TEXT("\1", "e") "}(" STDS(HALF) EMAS(STATE) "u"));
    refuse_series(ENTRY("wide", ""), "wide:e.emas.0: ");
}

/* Some trainers store widths in a tensor: here the two floats that put_torch writes, 3.82e-37 and
 * 1.01e-34. */
static void widths_may_be_in_a_tensor(void **state)
{
    (void)state;
    CHECK(TEXT("\1", "e") "}(" TEXT("\4", "stds") FLOATS EMAS(STATE) "u", NULL, "e",
          "of the widths in 'e.stds'");
    free(MAKE("tensor", TEXT("\1", "e") "}(" TEXT("\4", "stds") FLOATS EMAS(STATE STATE) "u"));
    refuse_series(
        ENTRY("tensor", ""),
        "tensor:e.emas.0: expected a sigma_rel above 2.3e-16 and below 0.289, found 3.8204");
    free(MAKE("long", TEXT("\1", "e") "}(" TEXT("\4", "stds") FLOATS EMAS(STATE) "u"));
    refuse_series(ENTRY("long", ""), "long: has 2 widths in 'stds' of 'e', but no average 1");
}

/* A manifest may choose among the averages of a file by their widths. */
static void a_manifest_chooses_by_width(void **state)
{
    (void)state;
    free(MAKE("both",
              TEXT("\1", "e") "}(" STDS(QUARTER "G\x3F\xC0\0\0\0\0\0\0") EMAS(STATE STATE) "u"));
    struct phema_error err = {0};
    struct phema_series *series = NULL;
    assert_ok(open_series(&series, ENTRY("both", ""), NULL, &err), &err);
    assert_int_equal(series->n, 2);
    assert_string_equal(series->snapshots[0].label, "both:e.emas.1"); /* 0.125 before 0.25 */
    assert_string_equal(series->snapshots[0].key, "e.emas.1");
    assert_string_equal(series->snapshots[1].label, "both:e.emas.0");
    assert_ptr_equal(series->snapshots[0].checkpoint, series->snapshots[1].checkpoint);
    assert_int_equal(series->n_tensors, 1);
    assert_string_equal(series->tensors[0].tensor.name, "w");
    phema_series_close(series);

    assert_ok(open_series(&series, ENTRY("both", ", \"sigma_rel\": 0.25"), NULL, &err), &err);
    assert_int_equal(series->n, 1);
    assert_string_equal(series->snapshots[0].label, "both:e.emas.0");
    phema_series_close(series);
    refuse_series(
        ENTRY("both", ", \"sigma_rel\": 0.2"),
        "both: its name or manifest says sigma_rel 0.2, which is not in the 'stds' of 'e'");

    /* or a key names one average, whose width follows */
    assert_ok(open_series(&series, ENTRY("both", ""), "e.emas.0", &err), &err);
    assert_int_equal(series->n, 1);
    assert_string_equal(series->snapshots[0].label, "both");
    assert_near(series->snapshots[0].sigma_rel, 0.25, 0);
    phema_series_close(series);
}

static void files_of_a_series_have_one_structure(void **state)
{
    (void)state;
    free(MAKE("first", TEXT("\1", "e") "}(" STDS(QUARTER) EMAS(STATE) "u"));
    free(MAKE("bare", TEXT("\1", "e") "}(" EMAS(STATE) "u"));
    refuse_series("{\"snapshots\": [{\"file\": \"first\", \"time\": 1},"
                  "{\"file\": \"bare\", \"time\": 2}]}",
                  "bare: has no widths in 'stds' of 'e', which other files");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(averages_are_preferred),
    cmocka_unit_test(an_optimizer_marks_a_training_state),
    cmocka_unit_test(without_memory_no_list_of_averages_is_overlooked),
    cmocka_unit_test(a_requested_key_is_used),
    cmocka_unit_test(optimizers_are_known_by_their_names),
    cmocka_unit_test(widths_and_averages_match_in_number),
    cmocka_unit_test(widths_may_be_in_a_tensor),
    cmocka_unit_test(a_manifest_chooses_by_width),
    cmocka_unit_test(files_of_a_series_have_one_structure),
};
TEST_GROUP(tests)
