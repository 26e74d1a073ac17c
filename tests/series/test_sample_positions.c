// SPDX-License-Identifier: Apache-2.0
/* The elements of a sample: as many as requested, some of every tensor, independent of the order of
 * the tensors. */
#include "sparse_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

#define MAX_TENSORS   1024
#define MAX_SNAPSHOTS 10000

/* A series that has only names and sizes. */
struct model {
    struct phema_series series;
    struct phema_series_tensor tensors[MAX_TENSORS];
    struct phema_snapshot snapshots[MAX_SNAPSHOTS];
    char names[MAX_TENSORS][16];
};

static struct model *make_model(size_t n_snapshots)
{
    struct model *model = calloc(1, sizeof(*model));
    assert_non_null(model);
    model->series = (struct phema_series){
        .tensors = model->tensors, .snapshots = model->snapshots, .n = n_snapshots};
    return model;
}

static struct phema_series_tensor *add(struct model *model, unsigned name, enum phema_dtype dtype,
                                       uint64_t n_elems)
{
    size_t i = model->series.n_tensors++;
    assert_true(i < MAX_TENSORS);
    struct phema_series_tensor *entry = &model->tensors[i];
    (void)snprintf(model->names[i], sizeof(model->names[i]), "t%05u", name);
    entry->tensor.name = model->names[i];
    entry->tensor.name_size = strlen(model->names[i]);
    entry->tensor.dtype = dtype;
    entry->tensor.n_elems = n_elems;
    entry->rule = PHEMA_RULE_AVERAGE;
    entry->same_as = i;
    return entry;
}

static struct sample_positions choose(const struct model *model)
{
    struct phema_error err = {0};
    struct sample_positions choice;
    assert_ok(sample_positions_make(&choice, &model->series, NULL, &err), &err);
    return choice;
}

/* Runs lie inside their tensors and ascend; their columns are contiguous. */
static void assert_sound(const struct model *model, const struct sample_positions *choice)
{
    size_t column = 0;
    for (size_t i = 0; i < choice->n; i++) {
        const struct tensor_run *run = &choice->runs[i];
        const struct phema_tensor *tensor = &model->tensors[run->tensor].tensor;
        assert_true(run->n > 0 && run->n <= tensor->n_elems);
        assert_true(run->first <= tensor->n_elems - run->n);
        if (i > 0) {
            const struct tensor_run *before = run - 1;
            int order = strcmp(model->names[before->tensor], model->names[run->tensor]);
            assert_true(order < 0 || (order == 0 && before->first + before->n < run->first));
        }
        assert_int_equal(run->column, column);
        column += (size_t)(run->n * phema_dtype_n_parts(tensor->dtype));
    }
    assert_int_equal(choice->n_numbers, column);
}

static uint64_t chosen_of(const struct sample_positions *choice, size_t tensor)
{
    uint64_t n = 0;
    for (size_t i = 0; i < choice->n; i++)
        if (choice->runs[i].tensor == tensor)
            n += choice->runs[i].n;
    return n;
}

static void a_small_model_is_read_whole(void **state)
{
    (void)state;
    struct model *model = make_model(4);
    add(model, 3, PHEMA_F32, 1000);
    add(model, 1, PHEMA_F16, 17);
    add(model, 2, PHEMA_C64, 500);
    add(model, 4, PHEMA_F32, 0);
    add(model, 5, PHEMA_F4, 30);
    struct sample_positions choice = choose(model);
    assert_sound(model, &choice);
    assert_int_equal(choice.n_numbers, 1000 + 17 + 2 * 500 + 30);
    assert_int_equal(choice.n, 4); /* a whole tensor each */
    sample_positions_clear(&choice);
    free(model);
}

/* Half of the numbers, at least 4 each, are shared out equally, the rest by size. The weights of a
 * tensor add up to its numbers. */
static void every_tensor_has_a_share_and_large_ones_more(void **state)
{
    (void)state;
    struct model *model = make_model(32);
    uint64_t total = 0;
    for (unsigned i = 0; i < 200; i++) {
        uint64_t n = 3 + 16 * ((uint64_t)i * i * i % 40000);
        total += n;
        add(model, i, PHEMA_BF16, n);
    }
    struct sample_positions choice = choose(model);
    assert_sound(model, &choice);
    assert_in_range(choice.n_numbers, 2048 - 64, 2048 + 64);
    assert_in_range(choice.n, 200, 256);
    double weights[200] = {0};
    for (size_t r = 0; r < choice.n; r++)
        weights[choice.runs[r].tensor] += (double)choice.runs[r].n * choice.runs[r].weight;
    for (size_t i = 0; i < model->series.n_tensors; i++) {
        double n = (double)model->tensors[i].tensor.n_elems;
        assert_near((double)chosen_of(&choice, i), 4 + (2048.0 - 800) * n / (double)total, 8);
        assert_true(chosen_of(&choice, i) >= 3); /* the end of a tensor may be drawn */
        assert_near(weights[i], n, 1e-9 * n);
    }
    sample_positions_clear(&choice);
    free(model);
}

static void the_order_of_the_table_does_not_matter(void **state)
{
    (void)state;
    struct model *ascending = make_model(8), *mixed = make_model(8);
    for (unsigned i = 0; i < 500; i++) {
        unsigned j = i * 33 % 500;
        add(ascending, i, i % 3 ? PHEMA_F32 : PHEMA_C64, 100 + i);
        add(mixed, j, j % 3 ? PHEMA_F32 : PHEMA_C64, 100 + j);
    }
    struct sample_positions a = choose(ascending), b = choose(mixed);
    assert_sound(ascending, &a);
    assert_sound(mixed, &b);
    assert_int_equal(a.n, b.n);
    for (size_t i = 0; i < a.n; i++) {
        assert_string_equal(ascending->names[a.runs[i].tensor], mixed->names[b.runs[i].tensor]);
        assert_int_equal(a.runs[i].first, b.runs[i].first);
        assert_int_equal(a.runs[i].n, b.runs[i].n);
        assert_int_equal(a.runs[i].column, b.runs[i].column);
    }
    sample_positions_clear(&a);
    sample_positions_clear(&b);
    free(ascending);
    free(mixed);
}

static void only_averaged_tensors_and_each_storage_once(void **state)
{
    (void)state;
    struct model *model = make_model(2);
    add(model, 1, PHEMA_I64, 50)->rule = PHEMA_RULE_COPY;
    add(model, 9, PHEMA_F32, 60); /* shares the storage of number 4 */
    add(model, 4, PHEMA_F32, 60)->same_as = 1;
    add(model, 5, PHEMA_F32, 70)->rule = PHEMA_RULE_COPY;
    add(model, 6, PHEMA_F32, 80);
    struct sample_positions choice = choose(model);
    assert_sound(model, &choice);
    assert_int_equal(choice.n, 2);
    assert_string_equal(model->names[choice.runs[0].tensor], "t00004");
    assert_string_equal(model->names[choice.runs[1].tensor], "t00006");
    sample_positions_clear(&choice);
    free(model);
}

/* This holds also for tensors that begin inside a block of the row: F4 has two elements in a
 * byte. */
static void runs_begin_and_end_on_bytes(void **state)
{
    (void)state;
    struct model *model = make_model(2);
    for (unsigned i = 0; i < 300; i++)
        add(model, i, i % 2 ? PHEMA_F4 : PHEMA_C64, 2 + 2 * (uint64_t)i);
    struct sample_positions choice = choose(model);
    assert_sound(model, &choice);
    assert_in_range(choice.n_numbers, 1900, 2200);
    for (size_t i = 0; i < choice.n; i++) {
        assert_int_equal(choice.runs[i].first % 2, 0);
        assert_int_equal(choice.runs[i].n % 2, 0);
    }
    sample_positions_clear(&choice);
    free(model);
}

static void memory_and_reads_are_bounded(void **state)
{
    (void)state;
    static const struct {
        size_t n_snapshots, least;
    } cases[] = {{1, 1984}, {256, 1984}, {257, 1984}, {1000, 1984}, {4096, 1984}, {10000, 750}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct model *model = make_model(cases[i].n_snapshots);
        for (unsigned t = 0; t < 1000; t++)
            add(model, t, PHEMA_F16, 64 * (uint64_t)(1 + t % 7));
        struct sample_positions choice = choose(model);
        assert_sound(model, &choice);
        assert_in_range(choice.n_numbers, cases[i].least, 2048 + 64);
        assert_true(cases[i].n_snapshots * choice.n_numbers * sizeof(double) <= (65 << 20));
        size_t longest = cases[i].n_snapshots <= 256 ? 16 : cases[i].n_snapshots <= 512 ? 32 : 64;
        size_t shares = cases[i].n_snapshots == 1 ? 384 : 0; /* reads of one are few */
        assert_true(choice.n * longest <= 2048 + 64 + shares * longest);
        sample_positions_clear(&choice);
        free(model);
    }
}

/* The range from the first to the last element of all runs, where gaps count up to a limit. */
static size_t count_neighbourhoods(const struct sample_positions *choice, uint64_t limit)
{
    size_t n = 1;
    for (size_t i = 1; i < choice->n; i++)
        n += choice->runs[i].first - choice->runs[i - 1].first > limit;
    return n;
}

static void compressed_snapshots_are_opened_in_few_places(void **state)
{
    (void)state;
    struct model *model = make_model(3);
    add(model, 1, PHEMA_F16, 100 << 20);
    struct sample_positions spread = choose(model);
    model->snapshots[1].is_compressed = true;
    struct sample_positions together = choose(model);
    assert_sound(model, &together);
    assert_int_equal(spread.n_numbers, together.n_numbers);
    assert_true(count_neighbourhoods(&spread, 1 << 18) > 64);
    assert_int_equal(count_neighbourhoods(&together, 1 << 18), 8);
    sample_positions_clear(&spread);
    sample_positions_clear(&together);

    model->tensors[0].tensor.n_elems = 2 << 20; /* eight windows cover the model */
    together = choose(model);
    model->snapshots[1].is_compressed = false;
    spread = choose(model);
    assert_int_equal(spread.n, together.n);
    for (size_t i = 0; i < spread.n; i++)
        assert_int_equal(spread.runs[i].first, together.runs[i].first);
    sample_positions_clear(&spread);
    sample_positions_clear(&together);
    free(model);
}

static void series_without_elements_are_refused(void **state)
{
    (void)state;
    struct phema_error err = {0};
    struct sample_positions choice;
    struct model *model = make_model(2);
    add(model, 1, PHEMA_I64, 50)->rule = PHEMA_RULE_COPY;
    add(model, 2, PHEMA_F32, 0);
    assert_fails(sample_positions_make(&choice, &model->series, NULL, &err), PHEMA_NO, &err,
                 "no tensor is averaged");
    /* a view of one element that claims more elements than any memory holds */
    add(model, 3, PHEMA_F32, UINT64_MAX / 4);
    assert_fails(sample_positions_make(&choice, &model->series, NULL, &err), PHEMA_NO, &err,
                 "more elements than");
    for (unsigned i = 4; i < 10; i++)
        add(model, i, PHEMA_F32, UINT64_MAX / 4);
    assert_fails(sample_positions_make(&choice, &model->series, NULL, &err), PHEMA_NO, &err,
                 "more elements than");
    free(model);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_small_model_is_read_whole),
    cmocka_unit_test(every_tensor_has_a_share_and_large_ones_more),
    cmocka_unit_test(the_order_of_the_table_does_not_matter),
    cmocka_unit_test(only_averaged_tensors_and_each_storage_once),
    cmocka_unit_test(runs_begin_and_end_on_bytes),
    cmocka_unit_test(memory_and_reads_are_bounded),
    cmocka_unit_test(compressed_snapshots_are_opened_in_few_places),
    cmocka_unit_test(series_without_elements_are_refused),
};
TEST_GROUP(tests)
