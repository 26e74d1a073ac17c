// SPDX-License-Identifier: Apache-2.0
/* Copies in which tensors are replaced. A copy that would change other tensors is refused, and the
 * model is found below any usual key. */
#include "drafts.h"

/* A view of a storage. Storages are named by one letter; each has one type and size. */
struct view {
    const char *name;
    char storage;
    const char *type; /* "Float", "Half", "Long" */
    uint32_t n_stored, first;
    uint32_t shape[2], stride[2]; /* of two dimensions, or all 0 for a scalar */
};

#define VECTOR(name, storage, n_stored, first, n)                                                  \
    {                                                                                              \
        name, storage, "Float", n_stored, first, {1, n},                                           \
        {                                                                                          \
            n, 1                                                                                   \
        }                                                                                          \
    }
#define SCALAR(name, storage, type)                                                                \
    {                                                                                              \
        name, storage, type, 1, 0, {0, 0},                                                         \
        {                                                                                          \
            0, 0                                                                                   \
        }                                                                                          \
    }
#define OF_TYPE(name, storage, type, n)                                                            \
    {                                                                                              \
        name, storage, type, n, 0, {1, n},                                                         \
        {                                                                                          \
            n, 1                                                                                   \
        }                                                                                          \
    }

static void put_string(struct phema_strbuf *out, const char *text)
{
    put(out, "X", 1);
    put_int(out, strlen(text), 4);
    put_text(out, text);
}

static void put_pair(struct phema_strbuf *out, uint32_t a, uint32_t b)
{
    put(out, "J", 1);
    put_int(out, a, 4);
    put(out, "J", 1);
    put_int(out, b, 4);
    put(out, "\x86", 1);
}

static void put_view(struct phema_strbuf *out, const struct view *view)
{
    put_string(out, view->name);
    put_text(out, "ctorch._utils\n_rebuild_tensor_v2\n((");
    put_string(out, "storage");
    put_text(out, "ctorch\n");
    put_text(out, view->type);
    put_text(out, "Storage\n");
    const char key[] = {view->storage, '\0'};
    put_string(out, key);
    put_string(out, "cpu");
    put(out, "J", 1);
    put_int(out, view->n_stored, 4);
    put(out, "tQJ", 3);
    put_int(out, view->first, 4);
    if (view->shape[0] == 0) {
        put_text(out, "))"); /* empty tuples */
    } else {
        put_pair(out, view->shape[0], view->shape[1]);
        put_pair(out, view->stride[0], view->stride[1]);
    }
    put(out, "\x89NtR", 4);
}

static size_t bytes_of(const struct view *view)
{
    size_t size = strcmp(view->type, "Half") == 0 ? 2 : strcmp(view->type, "Long") == 0 ? 8 : 4;
    return view->n_stored * size;
}

/* A torch file of these views, in nested dicts: "state_dict.model", or "" for none. */
static void write_torch(const char *name, const char *key, const struct view *views, size_t n)
{
    struct phema_strbuf pickle = {0}, file = {0};
    put(&pickle, "\x80\x02}(", 4);
    size_t depth = 0;
    for (const char *at = key; *at; depth++) {
        char part[32];
        size_t size = strcspn(at, ".");
        (void)snprintf(part, sizeof(part), "%.*s", (int)size, at);
        put_string(&pickle, part);
        put(&pickle, "}(", 2);
        at += size + (at[size] == '.');
    }
    for (size_t i = 0; i < n; i++)
        put_view(&pickle, &views[i]);
    for (; depth > 0; depth--)
        put(&pickle, "u", 1);
    put(&pickle, "u.", 2);

    static const uint8_t zeros[4096];
    struct zip_record records[16] = {{"a/data.pkl", pickle.data, pickle.size},
                                     {"a/version", "3\n", 2}};
    static char names[16][16];
    size_t n_records = 2, headers[16];
    for (size_t i = 0; i < n; i++) {
        bool is_known = false;
        for (size_t j = 0; j < i; j++)
            is_known = is_known || views[j].storage == views[i].storage;
        if (is_known)
            continue;
        (void)snprintf(names[n_records], sizeof(names[0]), "a/data/%c", views[i].storage);
        assert_true(bytes_of(&views[i]) <= sizeof(zeros));
        records[n_records] = (struct zip_record){names[n_records], zeros, bytes_of(&views[i])};
        n_records++;
    }
    put_zip(&file, records, n_records, headers);
    char *path = support_tmp_path(name);
    support_write(path, file.data, file.size);
    free(path);
    phema_strbuf_clear(&pickle);
    phema_strbuf_clear(&file);
}
#define WRITE(name, views) write_torch(name, "", views, ARRAY_LEN(views))

/* ---- Shared storage ---- */

static const struct view overlapping[] = {VECTOR("a", '0', 8, 0, 6), VECTOR("b", '0', 8, 4, 4)};
static const struct view apart[] = {VECTOR("a", '0', 6, 0, 6), VECTOR("b", '1', 4, 0, 4)};
static const struct view adjacent[] = {VECTOR("a", '0', 10, 0, 6), VECTOR("b", '0', 10, 6, 4)};

static void replacing_a_tensor_that_shares_bytes_with_a_kept_one_is_refused(void **state)
{
    (void)state;
    WRITE("over", overlapping);
    struct wanted wanted = {.snapshots = "over", .out = "o.pt", .include = "^a$"};
    refuse(&wanted, PHEMA_ERR_INPUTS,
           "over: tensor 'a': shares storage with 'b', which is not replaced");
    wanted.include = "^b$";
    refuse(&wanted, PHEMA_ERR_INPUTS,
           "over: tensor 'b': shares storage with 'a', which is not replaced");
    wanted.into = "over"; /* the same with --into */
    refuse(&wanted, PHEMA_ERR_INPUTS, "which is not replaced");
    WRITE("adjacent", adjacent);
    wanted = (struct wanted){.snapshots = "adjacent", .out = "o.pt", .include = "^a$"};
    struct made made;
    accept(&made, &wanted);
    assert_ptr_equal(made.outputs.items[0].template, made.outputs.templates[0]);
    assert_false(made.outputs.is_in_order);
    clear_made(&made);
}

/* Each view begins at the start of the replaced tensor, with fewer elements or in another order. */
static void another_view_at_the_same_offset_counts_as_kept(void **state)
{
    (void)state;
    static const struct view others[] = {{"b", '0', "Float", 6, 0, {1, 4}, {4, 1}},  /* shorter */
                                         {"b", '0', "Float", 6, 0, {3, 2}, {2, 1}},  /* reshaped */
                                         {"b", '0', "Float", 6, 0, {2, 3}, {1, 2}},  /* strides */
                                         {"b", '0', "Float", 6, 0, {0, 0}, {0, 0}}}; /* rank */
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        const struct view views[] = {{"a", '0', "Float", 6, 0, {2, 3}, {3, 1}}, others[i]};
        WRITE("views", views);
        refuse(&(struct wanted){.snapshots = "views", .out = "o.pt", .include = "^a$"},
               PHEMA_ERR_INPUTS,
               "views: tensor 'a': shares storage with 'b', which is not replaced");
    }
    const struct view strided[] = {{"a", '0', "Float", 6, 0, {2, 2}, {1, 3}},
                                   {"b", '0', "Float", 6, 0, {2, 2}, {1, 2}}};
    WRITE("views", strided);
    refuse(&(struct wanted){.snapshots = "views", .out = "o.pt", .include = "^a$"},
           PHEMA_ERR_INPUTS, "shares storage with 'b', which is not replaced");
    const struct view same[] = {{"a", '0', "Float", 6, 0, {2, 3}, {3, 1}},
                                {"b", '0', "Float", 6, 0, {2, 3}, {3, 1}}};
    WRITE("views", same);
    struct made made;
    accept(&made, &(struct wanted){.snapshots = "views", .out = "o.pt", .include = "^a$"});
    clear_made(&made);
}

static void overlapping_tensors_are_replaced_if_all_snapshots_overlap_alike(void **state)
{
    (void)state;
    WRITE("over", overlapping);
    WRITE("over2", overlapping);
    WRITE("apart", apart);
    struct made made;
    accept(&made, &(struct wanted){.snapshots = "over\nover2", .out = "o.pt"});
    assert_true(made.outputs.is_in_order);
    clear_made(&made);
    refuse(&(struct wanted){.snapshots = "apart\nover", .out = "o.pt"}, PHEMA_ERR_INPUTS,
           ", and the snapshots do not all share it alike; write .safetensors instead");
    accept(&made, &(struct wanted){.snapshots = "over\napart", .out = "o.pt"}); /* the newest */
    clear_made(&made);
    refuse(&(struct wanted){.snapshots = "apart", .into = "over", .out = "o.pt"}, PHEMA_ERR_INPUTS,
           "do not all share it alike");
}

/* Two names of one tensor: replacing one replaces both. */
static void all_names_of_a_tensor_are_replaced_together(void **state)
{
    (void)state;
    static const struct view tied[] = {VECTOR("a", '0', 6, 0, 6), VECTOR("b", '0', 6, 0, 6)};
    WRITE("tied", tied);
    struct made made;
    struct phema_error err = {0};
    accept(&made, &(struct wanted){.snapshots = "tied", .out = "o.pt", .include = "^a$"});
    assert_int_equal(made.plan->series->n_tensors, 1);
    assert_false(made.outputs.is_in_order); /* written once */
    clear_made(&made);
    accept(&made, &(struct wanted){.snapshots = "tied", .out = "o.pt"});
    assert_int_equal(made.plan->series->n_tensors, 2);
    assert_false(made.outputs.is_in_order);
    assert_true(made.outputs.is_replaced[0]);
    assert_false(made.outputs.is_replaced[1]);
    assert_ok(phema_outputs_check_parts(made.plan, &made.outputs, &err), &err);
    clear_made(&made);

    /* tied in the file alone: the last average of both stays, as one process writes them */
    static const struct view untied[] = {VECTOR("a", '0', 6, 0, 6), VECTOR("b", '1', 6, 0, 6)};
    WRITE("untied", untied);
    accept(&made, &(struct wanted){.snapshots = "untied", .into = "tied", .out = "o.pt"});
    assert_true(made.outputs.is_in_order);
    assert_int_equal(phema_outputs_check_parts(made.plan, &made.outputs, &err), PHEMA_ERR_USAGE);
    clear_made(&made);
    /* apart in the file alone: both are written */
    accept(&made, &(struct wanted){.snapshots = "tied", .into = "untied", .out = "o.pt"});
    assert_false(made.outputs.is_in_order);
    assert_true(made.outputs.is_replaced[0]);
    assert_true(made.outputs.is_replaced[1]);
    clear_made(&made);

    /* tied in the snapshots, two dtypes in the file */
    static const struct view two[] = {OF_TYPE("a", '0', "Float", 6), OF_TYPE("b", '1', "Half", 6)};
    WRITE("two", two);
    refuse(
        &(struct wanted){.snapshots = "tied", .into = "two", .out = "o.pt"}, PHEMA_ERR_INPUTS,
        "two: tensor 'b': is tied to another one in the snapshots, which has another dtype here");
}

static void an_expanded_tensor_must_be_expanded_in_every_snapshot(void **state)
{
    (void)state;
    static const struct view expanded[] = {{"w", '0', "Float", 3, 0, {2, 3}, {0, 1}}};
    static const struct view full[] = {{"w", '0', "Float", 6, 0, {2, 3}, {3, 1}}};
    static const struct view one_row[] = {{"w", '0', "Float", 3, 0, {1, 3}, {0, 1}}};
    static const struct view plain_row[] = {{"w", '0', "Float", 3, 0, {1, 3}, {3, 1}}};
    WRITE("expanded", expanded);
    WRITE("expanded2", expanded);
    WRITE("full", full);
    struct made made;
    accept(&made, &(struct wanted){.snapshots = "expanded\nexpanded2", .out = "o.pt"});
    assert_true(made.outputs.is_in_order);
    clear_made(&made);
    refuse(&(struct wanted){.snapshots = "full\nexpanded", .out = "o.pt"}, PHEMA_ERR_INPUTS,
           "expanded: tensor 'w': is expanded (its rows are one row in the file), but not in full");
    refuse(&(struct wanted){.snapshots = "full", .into = "expanded", .out = "o.pt"},
           PHEMA_ERR_INPUTS, "is expanded");
    accept(&made, &(struct wanted){.snapshots = "expanded\nfull", .out = "o.pt"});
    clear_made(&made);
    /* a single row is never expanded, whatever its stride */
    WRITE("one_row", one_row);
    WRITE("plain_row", plain_row);
    accept(&made, &(struct wanted){.snapshots = "plain_row\none_row", .out = "o.pt"});
    assert_false(made.outputs.is_in_order);
    clear_made(&made);
}

/* ---- Another file ---- */

static const struct view model[] = {OF_TYPE("w", '0', "Float", 6), OF_TYPE("v", '1', "Float", 4)};

static void a_file_of_another_model_is_refused(void **state)
{
    (void)state;
    WRITE("model", model);
    static const struct view other_shape[] = {OF_TYPE("w", '0', "Float", 6),
                                              OF_TYPE("v", '1', "Float", 5)};
    static const struct view other_rank[] = {OF_TYPE("w", '0', "Float", 6),
                                             {"v", '1', "Float", 4, 0, {4, 1}, {1, 1}}};
    static const struct view integers[] = {OF_TYPE("w", '0', "Float", 6),
                                           OF_TYPE("v", '1', "Long", 4)};
    static const struct view fewer[] = {OF_TYPE("w", '0', "Float", 6)};
    static const struct view alien[] = {OF_TYPE("x", '0', "Float", 6)};
    struct wanted wanted = {.snapshots = "model", .into = "other", .out = "o.pt"};
    WRITE("other", other_shape);
    refuse(&wanted, PHEMA_ERR_INPUTS, "other: tensor 'v': has another shape, or a dtype that");
    WRITE("other", other_rank);
    refuse(&wanted, PHEMA_ERR_INPUTS, "other: tensor 'v': has another shape, or a dtype that");
    WRITE("other", integers);
    refuse(&wanted, PHEMA_ERR_INPUTS, "a dtype that cannot hold the average");
    WRITE("other", fewer);
    refuse(&wanted, PHEMA_ERR_INPUTS, "other: has no tensor 'v'");
    WRITE("other", alien);
    refuse(&wanted, PHEMA_ERR_INPUTS, "other: has no tensor 'w'");
    wanted.include = "^w$"; /* every replaced tensor must exist */
    WRITE("other", fewer);
    struct made made;
    accept(&made, &wanted);
    clear_made(&made);
}

static void a_copy_keeps_the_dtypes_of_the_file(void **state)
{
    (void)state;
    WRITE("model", model);
    static const struct view mixed[] = {OF_TYPE("v", '0', "Half", 4),
                                        OF_TYPE("more", '1', "Long", 3),
                                        OF_TYPE("w", '2', "Float", 6)};
    WRITE("mixed", mixed);
    struct made made;
    accept(&made, &(struct wanted){.snapshots = "model", .into = "mixed", .out = "o.pt"});
    const struct phema_outputs *outputs = &made.outputs;
    assert_int_equal(outputs->form, PHEMA_FORM_TEMPLATE);
    assert_int_equal(outputs->dtypes[0], PHEMA_F32); /* w */
    assert_int_equal(outputs->dtypes[1], PHEMA_F16);
    const struct phema_tensor *v = phema_checkpoint_find(outputs->templates[0], "v", 1);
    assert_int_equal(outputs->items[0].locations[1].offset, v->offset);
    assert_int_equal(outputs->items[0].size_bytes,
                     phema_file_span(phema_checkpoint_file(outputs->templates[0], 0)).size);
    /* counters may differ from those of the newest snapshot */
    assert_true(outputs->is_replaced[0] && outputs->is_replaced[1]);
    clear_made(&made);
}

/* ema-pytorch casts counters to half precision: the file keeps its own. */
static void missing_or_converted_counters_are_not_replaced(void **state)
{
    (void)state;
    static const struct view counted[] = {
        OF_TYPE("w", '0', "Float", 6), OF_TYPE("v", '1', "Float", 4), SCALAR("step", '2', "Long"),
        SCALAR("n.num_batches_tracked", '3', "Half")};
    static const struct view file[] = {OF_TYPE("w", '0', "Float", 6), OF_TYPE("v", '1', "Float", 4),
                                       SCALAR("n.num_batches_tracked", '2', "Long")};
    WRITE("counted", counted);
    WRITE("file", file);
    struct made made;
    accept(&made, &(struct wanted){.snapshots = "counted", .into = "file", .out = "o.pt"});
    assert_string_equal(made.plan->series->tensors[2].tensor.name, "step");
    assert_false(made.outputs.is_replaced[2]);
    assert_false(made.outputs.is_replaced[3]);
    assert_true(made.outputs.is_replaced[0]);
    clear_made(&made);
    /* one that fits comes from the newest snapshot */
    WRITE("counted2", counted);
    accept(&made, &(struct wanted){.snapshots = "counted", .into = "counted2", .out = "o.pt"});
    assert_true(made.outputs.is_replaced[2]);
    clear_made(&made);
}

/* ---- Keys ---- */

/* 'w' of the outputs replaces the tensor of this name in the file. */
static void assert_replaces(const struct wanted *wanted, const char *name)
{
    struct made made;
    accept(&made, wanted);
    const struct phema_tensor *tensor =
        phema_checkpoint_find(made.outputs.templates[0], name, strlen(name));
    assert_non_null(tensor);
    assert_int_equal(made.outputs.items[0].locations[0].offset, tensor->offset);
    clear_made(&made);
}

static void the_model_is_found_under_the_usual_keys(void **state)
{
    (void)state;
    WRITE("model", model);
    static const char *const keys[] = {
        "state_dict",       "ema",    "ema_model", "model",
        "model_state_dict", "module", "net",       "state_dict.model"};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        char name[64];
        write_torch("nested", keys[i], model, ARRAY_LEN(model));
        (void)snprintf(name, sizeof(name), "%s.w", keys[i]);
        assert_replaces(&(struct wanted){.snapshots = "model", .into = "nested", .out = "o.pt"},
                        name);
    }
    write_torch("nested", "elsewhere", model, ARRAY_LEN(model));
    refuse(&(struct wanted){.snapshots = "model", .into = "nested", .out = "o.pt"},
           PHEMA_ERR_INPUTS, "nested: has no tensor 'w', so it is no checkpoint of the same model");
}

static void the_key_of_the_snapshots_precedes_the_usual_keys(void **state)
{
    (void)state;
    /* names of nested tensors may also have dots */
    static const struct view many[] = {OF_TYPE("w", '0', "Float", 6),
                                       OF_TYPE("v", '1', "Float", 4),
                                       OF_TYPE("state_dict.w", '2', "Float", 6),
                                       OF_TYPE("state_dict.v", '3', "Float", 4),
                                       OF_TYPE("own.w", '4', "Float", 6),
                                       OF_TYPE("own.v", '5', "Float", 4)};
    WRITE("many", many);
    WRITE("model", model);
    assert_replaces(&(struct wanted){.snapshots = "model", .into = "many", .out = "o.pt"}, "w");
    write_torch("own", "own", model, ARRAY_LEN(model));
    assert_replaces(
        &(struct wanted){.snapshots = "own", .into = "many", .out = "o.pt", .key = "own"}, "own.w");
    write_torch("state", "state_dict", model, ARRAY_LEN(model));
    assert_replaces(
        &(struct wanted){.snapshots = "state", .into = "many", .out = "o.pt", .key = "state_dict"},
        "state_dict.w");
    /* "." is the root of the file, as it is of the snapshots */
    assert_replaces(
        &(struct wanted){.snapshots = "model", .into = "many", .out = "o.pt", .key = "."}, "w");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(replacing_a_tensor_that_shares_bytes_with_a_kept_one_is_refused),
    cmocka_unit_test(another_view_at_the_same_offset_counts_as_kept),
    cmocka_unit_test(overlapping_tensors_are_replaced_if_all_snapshots_overlap_alike),
    cmocka_unit_test(all_names_of_a_tensor_are_replaced_together),
    cmocka_unit_test(an_expanded_tensor_must_be_expanded_in_every_snapshot),
    cmocka_unit_test(a_file_of_another_model_is_refused),
    cmocka_unit_test(a_copy_keeps_the_dtypes_of_the_file),
    cmocka_unit_test(missing_or_converted_counters_are_not_replaced),
    cmocka_unit_test(the_model_is_found_under_the_usual_keys),
    cmocka_unit_test(the_key_of_the_snapshots_precedes_the_usual_keys),
};
TEST_GROUP(tests)
