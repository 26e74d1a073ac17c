// SPDX-License-Identifier: Apache-2.0
/* test_diff_tensors.c - differences computed by hand, in files written byte by byte. */
#include "phema/ops.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

/* Two checkpoints and their comparison. */
struct pair {
    struct phema_checkpoint *a, *b;
    struct phema_comparison comparison;
};

static struct phema_checkpoint *open_safetensors(const char *name, const char *header,
                                                 const void *data, size_t size)
{
    char *path = support_tmp_path(name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    uint8_t length[8];
    phema_store_u64(length, strlen(header));
    assert_int_equal(fwrite(length, 1, 8, file), 8);
    assert_true(fputs(header, file) >= 0);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    assert_ok(phema_checkpoint_open(&checkpoint, path, NULL, &err), &err);
    free(path);
    return checkpoint;
}

/* One tensor "x" of a shape and dtype. */
static struct phema_checkpoint *open_tensor(const char *name, const char *dtype, const char *shape,
                                            const void *data, size_t size)
{
    char header[256];
    (void)snprintf(header, sizeof(header),
                   "{\"x\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[0,%zu]}}", dtype, shape,
                   size);
    return open_safetensors(name, header, data, size);
}

static void compare(struct pair *pair, struct phema_checkpoint *a, struct phema_checkpoint *b)
{
    struct phema_error err = {0};
    pair->a = a;
    pair->b = b;
    assert_ok(phema_compare(&pair->comparison, a, b, &phema_nobody, &err), &err);
}

static void clear(struct pair *pair)
{
    phema_comparison_clear(&pair->comparison);
    phema_checkpoint_close(pair->a);
    phema_checkpoint_close(pair->b);
}

static void compare_floats(struct pair *pair, const float *a, const float *b)
{
    compare(pair, open_tensor("a.safetensors", "F32", "[4]", a, 16),
            open_tensor("b.safetensors", "F32", "[2,2]", b, 16));
    assert_false(pair->comparison.tensors[0].is_comparable); /* of another shape */
    assert_false(pair->comparison.is_equal);
    clear(pair);
    compare(pair, open_tensor("a.safetensors", "F32", "[4]", a, 16),
            open_tensor("b.safetensors", "F32", "[4]", b, 16));
}

static void distances_match_those_computed_by_hand(void **state)
{
    (void)state;
    static const float a[] = {1, 2, -3, 4}, b[] = {1, 2.5F, -3, 2};
    struct pair pair;
    compare_floats(&pair, a, b);
    const struct phema_difference *difference = &pair.comparison.tensors[0];
    assert_true(difference->is_comparable && !difference->is_equal);
    assert_int_equal(difference->n_unequal, 2);
    assert_true(difference->max_abs == 2);
    assert_true((double)difference->sum_diff2 == 4.25 && (double)difference->sum_b2 == 20.25);
    assert_near(difference->rel_l2, 0.45812284729085064, 1e-15); /* sqrt(4.25 / 20.25) */
    assert_true(pair.comparison.rel_l2 == difference->rel_l2);
    assert_true(pair.comparison.max_abs == 2 && !pair.comparison.is_equal);
    clear(&pair);
}

static void nan_equals_nan_and_zeros_of_either_sign_are_equal(void **state)
{
    (void)state;
    static const float a[] = {NAN, INFINITY, -0.0F, -INFINITY},
                       b[] = {-NAN, INFINITY, 0.0F, -INFINITY};
    struct pair pair;
    compare_floats(&pair, a, b);
    assert_true(pair.comparison.is_equal && pair.comparison.tensors[0].is_equal);
    assert_true(pair.comparison.rel_l2 == 0 && pair.comparison.max_abs == 0);
    clear(&pair);
}

static void nan_and_a_number_differ(void **state)
{
    (void)state;
    static const float a[] = {NAN, 2, 3, 4}, b[] = {1, 1, 3, 4};
    struct pair pair;
    compare_floats(&pair, a, b);
    const struct phema_difference *difference = &pair.comparison.tensors[0];
    assert_int_equal(difference->n_unequal, 2);
    assert_true(isnan(difference->max_abs) && isnan(difference->rel_l2));
    assert_true(isnan(pair.comparison.max_abs) && isnan(pair.comparison.rel_l2));
    clear(&pair);
}

/* An infinite norm must not make other differences vanish. */
static void a_common_infinity_does_not_hide_other_differences(void **state)
{
    (void)state;
    static const float a[] = {INFINITY, 3, 0, 4}, b[] = {INFINITY, 3, 0, 2};
    struct pair pair;
    compare_floats(&pair, a, b);
    assert_near(pair.comparison.tensors[0].rel_l2, 0.55470019622522915, 1e-15); /* 2 / sqrt(13) */
    assert_true(pair.comparison.tensors[0].max_abs == 2);
    clear(&pair);

    static const float c[] = {1, 3, 0, 2};
    compare_floats(&pair, c, b);
    assert_true(isinf(pair.comparison.tensors[0].rel_l2) && isinf(pair.comparison.max_abs));
    clear(&pair);
}

static void a_tensor_that_is_zero_only_in_b_is_infinitely_far(void **state)
{
    (void)state;
    static const float a[] = {0, 0, 0, 1}, b[] = {0, 0, 0, 0};
    struct pair pair;
    compare_floats(&pair, a, b);
    assert_true(isinf(pair.comparison.tensors[0].rel_l2));
    clear(&pair);
    compare_floats(&pair, b, a);
    assert_true(pair.comparison.tensors[0].rel_l2 == 1);
    clear(&pair);
}

/* 1e-200 squared is 0. */
static void tensors_that_differ_have_a_distance(void **state)
{
    (void)state;
    static const double a[] = {1, 1e-200}, b[] = {1, 0};
    struct pair pair;
    compare(&pair, open_tensor("a.safetensors", "F64", "[2]", a, 16),
            open_tensor("b.safetensors", "F64", "[2]", b, 16));
    assert_int_equal(pair.comparison.tensors[0].n_unequal, 1);
    assert_true(pair.comparison.tensors[0].rel_l2 > 0 && pair.comparison.rel_l2 > 0);
    assert_true(pair.comparison.max_abs == 1e-200);
    clear(&pair);
}

static void floats_of_any_width_are_numbers(void **state)
{
    (void)state;
    static const float b[] = {1, -2, 0.5F, 65504};
    static const uint16_t halves[] = {0x3c00, 0xc000, 0x3800, 0x7bff};
    static const double doubles[] = {1, -2, 0.5, 65504.5};
    static const int32_t integers[] = {1, -2, 0, 65504};
    struct pair pair;
    compare(&pair, open_tensor("a.safetensors", "F16", "[4]", halves, 8),
            open_tensor("b.safetensors", "F32", "[4]", b, 16));
    assert_true(pair.comparison.is_equal);
    clear(&pair);
    compare(&pair, open_tensor("a.safetensors", "F64", "[4]", doubles, 32),
            open_tensor("b.safetensors", "F32", "[4]", b, 16));
    assert_true(pair.comparison.max_abs == 0.5);
    clear(&pair);
    compare(&pair, open_tensor("a.safetensors", "I32", "[4]", integers, 16),
            open_tensor("b.safetensors", "F32", "[4]", b, 16));
    assert_false(pair.comparison.tensors[0].is_comparable);
    assert_false(pair.comparison.is_equal);
    clear(&pair);
}

static void integers_are_bytes_and_complex_are_pairs(void **state)
{
    (void)state;
    static const int16_t a[] = {1, 2, 256, 4}, b[] = {1, 2, 1, 5};
    struct pair pair;
    compare(&pair, open_tensor("a.safetensors", "I16", "[4]", a, 8),
            open_tensor("b.safetensors", "I16", "[4]", b, 8));
    assert_true(pair.comparison.tensors[0].is_comparable);
    assert_int_equal(pair.comparison.tensors[0].n_unequal, 2);
    assert_false(pair.comparison.is_equal);
    clear(&pair);

    static const float left[] = {1, 2, 3, 4}, right[] = {0, 0, 3, 4};
    compare(&pair, open_tensor("a.safetensors", "C64", "[2]", left, 16),
            open_tensor("b.safetensors", "C64", "[2]", right, 16));
    assert_int_equal(pair.comparison.tensors[0].n_unequal, 1);
    assert_true(pair.comparison.max_abs == 2);
    clear(&pair);
}

static void tensors_are_matched_by_name(void **state)
{
    (void)state;
    static const char a_header[] = "{\"p\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                                   "\"q\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[1,2]}}";
    static const char b_header[] =
        "{\"r\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
        "\"q\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[1,2]},"
        "\"empty\":{\"dtype\":\"F32\",\"shape\":[0,3],\"data_offsets\":[2,2]}}";
    struct pair pair;
    compare(&pair, open_safetensors("a.safetensors", a_header, "ab", 2),
            open_safetensors("b.safetensors", b_header, "ab", 2));
    assert_int_equal(pair.comparison.n, 4);
    const struct phema_difference *tensors = pair.comparison.tensors;
    assert_true(tensors[0].a && !tensors[0].b);
    assert_true(tensors[1].a && tensors[1].b && tensors[1].is_equal);
    assert_true(!tensors[2].a && !tensors[3].a);
    assert_string_equal(tensors[2].b->name, "r");
    assert_false(pair.comparison.is_equal);
    clear(&pair);
    compare(&pair, open_safetensors("a.safetensors", b_header, "ab", 2),
            open_safetensors("b.safetensors", b_header, "ab", 2));
    assert_true(pair.comparison.is_equal);
    clear(&pair);
}

/* Five million elements: many chunks, and pages that are released after reading. */
static void every_part_of_a_large_tensor_counts(void **state)
{
    (void)state;
    enum { n = 5000001 };
    uint16_t *a = calloc(n, sizeof(*a)), *b = calloc(n, sizeof(*b));
    assert_true(a && b);
    static const size_t places[] = {0, 16383, 16384, 4194303, 4194304, n - 1};
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        b[places[i]] = 0x3c00;
    struct pair pair;
    compare(&pair, open_tensor("a.safetensors", "F16", "[5000001]", a, n * sizeof(*a)),
            open_tensor("b.safetensors", "F16", "[5000001]", b, n * sizeof(*b)));
    assert_int_equal(pair.comparison.tensors[0].n_unequal, ARRAY_LEN(places));
    assert_true(pair.comparison.tensors[0].rel_l2 == 1);
    clear(&pair);
    free(a);
    free(b);
}

/* All dtypes, special numbers, views with strides: each file equals itself. */
static void every_fixture_equals_itself(void **state)
{
    (void)state;
    static const char *const names[] = {
        "safetensors/dtypes.safetensors",
        "safetensors/specials.safetensors",
        "safetensors/f4.safetensors",
        "safetensors/shapes.safetensors",
        "torch/views.pt",
        "torch/dtypes.pt",
    };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char *path = support_fixture(names[i]);
        struct phema_error err = {0};
        struct phema_checkpoint *a = NULL, *b = NULL;
        assert_ok(phema_checkpoint_open(&a, path, NULL, &err), &err);
        assert_ok(phema_checkpoint_open(&b, path, NULL, &err), &err);
        struct pair pair;
        compare(&pair, a, b);
        assert_true(pair.comparison.is_equal);
        assert_true(pair.comparison.n > 0 && pair.comparison.rel_l2 == 0);
        clear(&pair);
        free(path);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(distances_match_those_computed_by_hand),
    cmocka_unit_test(nan_equals_nan_and_zeros_of_either_sign_are_equal),
    cmocka_unit_test(nan_and_a_number_differ),
    cmocka_unit_test(a_common_infinity_does_not_hide_other_differences),
    cmocka_unit_test(a_tensor_that_is_zero_only_in_b_is_infinitely_far),
    cmocka_unit_test(tensors_that_differ_have_a_distance),
    cmocka_unit_test(floats_of_any_width_are_numbers),
    cmocka_unit_test(integers_are_bytes_and_complex_are_pairs),
    cmocka_unit_test(tensors_are_matched_by_name),
    cmocka_unit_test(every_part_of_a_large_tensor_counts),
    cmocka_unit_test(every_fixture_equals_itself),
};
TEST_GROUP(tests)
