// SPDX-License-Identifier: Apache-2.0
/* Targets that share a weight matrix or a row of sums. The precision of sums, as weights, dtypes
 * and the user determine it, and in the written numbers. */
#include "target_groups.h"

#include <stdlib.h>
#include <string.h>

#include "run.h"
#include "runs.h"

/* ---- Groups ---- */

enum { N = 3, M = 4, N_RULES = 2 };

/* Two widths at each of two times. At the later time, the first rule uses only the last snapshot.
 * The second rule uses the snapshots of the targets. */
struct draft {
    struct phema_plan plan;
    struct phema_series series;
    struct phema_target targets[M];
    struct phema_solution ruled[2][N_RULES];
    double weights[M][N], ruled_weights[2][N_RULES][N];
};

static void set(struct phema_solution *solution, double *into, double a, double b, double c)
{
    into[0] = a;
    into[1] = b;
    into[2] = c;
    *solution = (struct phema_solution){.weights = into, .sum = a + b + c};
}

static void draft_init(struct draft *draft)
{
    *draft = (struct draft){.series = {.n = N}};
    draft->plan = (struct phema_plan){
        .series = &draft->series, .targets = draft->targets, .m = M, .n_rules = N_RULES};
    set(&draft->targets[0].solution, draft->weights[0], 0.25, 0.75, 0);
    set(&draft->targets[1].solution, draft->weights[1], 0.5, 0.5, 0);
    set(&draft->targets[2].solution, draft->weights[2], 0.25, 0.25, 0.5);
    set(&draft->targets[3].solution, draft->weights[3], 0.5, 0.25, 0.25);
    set(&draft->ruled[0][0], draft->ruled_weights[0][0], 0.125, 0.875, 0);
    set(&draft->ruled[1][0], draft->ruled_weights[1][0], 0, 0, 1);
    set(&draft->ruled[0][1], draft->ruled_weights[0][1], 0.375, 0.625, 0);
    set(&draft->ruled[1][1], draft->ruled_weights[1][1], 0.5, 0.5, 0);
    for (size_t j = 0; j < M; j++) {
        draft->targets[j].newest = j < 2 ? 1 : 2;
        draft->targets[j].ruled = draft->ruled[j / 2];
    }
}

static void make(struct group **groups, size_t *n, const struct draft *draft, size_t rule,
                 size_t first, size_t n_targets)
{
    struct phema_error err = {0};
    assert_ok(
        target_groups_make(groups, n, &draft->plan, PHEMA_SUMS_F64, rule, first, n_targets, &err),
        &err);
}

static void assert_weights(const struct group *group, const double *weights, size_t n)
{
    assert_int_equal(group->n_inputs * group->n_rows, n);
    assert_memory_equal(group->weights, weights, n * sizeof(*weights));
}

static void targets_of_one_time_have_rows_of_their_own(void **state)
{
    (void)state;
    struct draft draft;
    struct group *groups = NULL;
    size_t n = 0;
    draft_init(&draft);
    make(&groups, &n, &draft, 0, 0, M);
    assert_int_equal(n, 2);
    for (size_t g = 0; g < n; g++) {
        assert_int_equal(groups[g].n_targets, 2);
        assert_int_equal(groups[g].n_rows, 2);
        for (size_t x = 0; x < 2; x++) {
            assert_int_equal(groups[g].targets[x], 2 * g + x);
            assert_int_equal(groups[g].rows[x], x);
        }
    }
    assert_weights(&groups[0], (const double[]){0.25, 0.5, 0.75, 0.5}, 4);
    assert_weights(&groups[1], (const double[]){0.25, 0.5, 0.25, 0.25, 0.5, 0.25}, 6);
    target_groups_free(groups, n);
}

static void targets_of_one_time_share_the_row_of_a_rule(void **state)
{
    (void)state;
    struct draft draft;
    struct group *groups = NULL;
    size_t n = 0, n_used = 0, n_newest = 0;
    draft_init(&draft);
    make(&groups, &n, &draft, 1, 0, M);
    assert_int_equal(n, 2);
    for (size_t g = 0; g < n; g++) {
        assert_int_equal(groups[g].n_targets, 2);
        assert_int_equal(groups[g].n_rows, 1);
        assert_int_equal(groups[g].rows[0], 0);
        assert_int_equal(groups[g].rows[1], 0);
    }
    assert_weights(&groups[0], (const double[]){0.125, 0.875}, 2);
    assert_weights(&groups[1], (const double[]){1}, 1); /* an input of weight 0 is left out */
    assert_int_equal(groups[1].inputs[0], 2);
    struct target_groups_needs needs = target_groups_count(groups, n, true, false);
    assert_int_equal(needs.n_rows, 2);
    assert_int_equal(needs.n_references, 2);
    assert_int_equal(needs.sum_bytes, 2 * sizeof(double));
    target_groups_count_inputs(&n_used, &n_newest, groups, n, N);
    assert_int_equal(n_used, 3);
    assert_int_equal(n_newest, 2);
    target_groups_free(groups, n);
}

/* The same snapshots, but the copied tensors come from another one. */
static void a_pass_has_only_its_own_targets(void **state)
{
    (void)state;
    struct draft draft;
    struct group *groups = NULL;
    size_t n = 0;
    draft_init(&draft);
    make(&groups, &n, &draft, 2, 0, M);
    assert_int_equal(n, 2);
    target_groups_free(groups, n);

    draft.targets[2].newest = draft.targets[3].newest = 1;
    make(&groups, &n, &draft, 2, 0, M);
    assert_int_equal(n, 1);
    assert_int_equal(groups[0].n_rows, 2); /* one row per time */
    static const size_t rows[] = {0, 0, 1, 1};
    assert_memory_equal(groups[0].rows, rows, sizeof(rows));
    assert_weights(&groups[0], (const double[]){0.375, 0.5, 0.625, 0.5}, 4);
    target_groups_free(groups, n);

    make(&groups, &n, &draft, 2, 1, 2);
    assert_int_equal(n, 1);
    assert_int_equal(groups[0].targets[0], 1);
    assert_int_equal(groups[0].targets[1], 2);
    assert_int_equal(groups[0].n_rows, 2);
    target_groups_free(groups, n);
}

/* ---- Precision of sums ---- */

static void float32_fits_as_long_as_its_roundings_are_hidden(void **state)
{
    (void)state;
    static const struct {
        double weights[4];
        bool fits;
    } cases[] = {
        {{0, 0, 0, 1}, true},
        {{0, 0, 0, 32}, true}, /* its own rounding, and one addition */
        {{0, 0, 0, -32}, true},
        {{0, 0, 0, 32.0000001}, false},
        {{0, 0, 0, -32.0000001}, false},
        {{0, 32, 0, 0}, true}, /* a weight of 0 is not added */
        {{0, 12, 0, 14}, true},
        {{0, 12, 0, 14.1}, false},
        {{8, 4, 2, -1}, true}, /* 40 + 16 + 6 + 2 */
        {{8, 4, 2, -1.1}, false},
        {{8.1, 4, 2, -1}, false},
        {{-1, 2, 4, 8}, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(sums_fit_float32(PHEMA_SUMS_AUTO, cases[i].weights, 4), cases[i].fits);
        assert_true(sums_fit_float32(PHEMA_SUMS_F32, cases[i].weights, 4));
        assert_false(sums_fit_float32(PHEMA_SUMS_F64, cases[i].weights, 4));
    }
}

/* Output dtypes of 16 bits, f32 and f64. */
static const enum phema_dtype written[] = {PHEMA_F16, PHEMA_BF16, PHEMA_F32, PHEMA_F64};

static void dtypes_that_show_more_than_16_bits_need_float64(void **state)
{
    (void)state;
    static const struct {
        enum phema_dtype dtype;
        bool by_auto, by_f32; /* with outputs of 16 bits */
    } cases[] = {
        {PHEMA_F16, false, false},         {PHEMA_F8_E4M3, false, false},
        {PHEMA_F8_E5M2, false, false},     {PHEMA_F8_E4M3FNUZ, false, false},
        {PHEMA_F8_E5M2FNUZ, false, false}, {PHEMA_F4, false, false},
        {PHEMA_F8_E8M0, true, false}, /* values up to 2^127 */
        {PHEMA_BF16, true, false},         {PHEMA_F32, true, false},
        {PHEMA_C64, true, false},          {PHEMA_F64, true, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        for (size_t w = 0; w < ARRAY_LEN(written); w++) {
            struct phema_series_tensor tensor = {.tensor = {.dtype = cases[i].dtype}};
            struct phema_series series = {.tensors = &tensor, .n_tensors = 1};
            const struct phema_plan plan = {.series = &series};
            enum phema_dtype dtype = written[w];
            struct phema_outputs outputs = {.dtypes = &dtype};
            struct run run = {.plan = &plan, .outputs = &outputs};
            struct group fits = {.fits_float32 = true}, does_not = {.fits_float32 = false};

            run.options.sums = PHEMA_SUMS_AUTO;
            bool needs = cases[i].by_auto || w >= 2;
            assert_int_equal(sums_need_float64(&run, 0), needs);
            assert_int_equal(sum_dtype_of(&run, &fits, 0),
                             needs ? PHEMA_ACCUMULATE_F64 : PHEMA_ACCUMULATE_F32);
            assert_int_equal(sum_dtype_of(&run, &does_not, 0), PHEMA_ACCUMULATE_F64);

            run.options.sums = PHEMA_SUMS_F32;
            assert_int_equal(sums_need_float64(&run, 0), cases[i].by_f32);
            run.options.sums = PHEMA_SUMS_F64;
            assert_true(sums_need_float64(&run, 0));
        }
    }
}

/* ---- Written numbers ---- */

enum { N_ELEMS = 5000, N_SNAPSHOTS = 9 };

/* One training: each snapshot differs slightly from the one before. */
static char *make_snapshots(const char *name, struct phema_strbuf *weights, double largest)
{
    char *directory = make_directory(name);
    static double x[N_ELEMS];
    static uint16_t halves[N_ELEMS], brains[N_ELEMS];
    static float singles[N_ELEMS];
    uint32_t seed = 77;
    for (unsigned s = 0; s < N_SNAPSHOTS; s++) {
        for (size_t i = 0; i < N_ELEMS; i++) {
            seed = seed * 1664525 + 1013904223;
            double step = (double)seed / 4294967296.0 - 0.5;
            x[i] = s ? x[i] * (1 + step / 8) : ldexp(step, (int)(i % 24) - 12);
            singles[i] = (float)x[i];
        }
        struct phema_narrow_counts counts = {0, 0, 0};
        const struct phema_backend *ref = phema_backend_named("ref");
        phema_narrow(ref, halves, PHEMA_F16, PHEMA_ACCUMULATE_F64, x, N_ELEMS, PHEMA_OVERFLOW_INF,
                     &counts);
        phema_narrow(ref, brains, PHEMA_BF16, PHEMA_ACCUMULATE_F64, x, N_ELEMS, PHEMA_OVERFLOW_INF,
                     &counts);
        const struct entry entries[] = {{"half", PHEMA_F16, N_ELEMS, false, halves},
                                        {"brain", PHEMA_BF16, N_ELEMS, false, brains},
                                        {"single", PHEMA_F32, N_ELEMS, false, singles}};
        char file[48];
        (void)snprintf(file, sizeof(file), "snapshot-%07u-0.050.safetensors", s + 1);
        write_snapshot(directory, file, entries, ARRAY_LEN(entries));
        double weight = s + 1 < N_SNAPSHOTS ? largest * (s % 2 ? -1 : 1) : 1;
        phema_strbuf_printf(weights, "%s %.17g\n", file, weight);
    }
    return directory;
}

static void average(const char *directory, const char *weights, const char *out,
                    enum phema_sums sums, bool has_f32)
{
    struct phema_error err = {0};
    struct phema_synth_result result;
    struct request request = {
        .weights = weights, .sums = sums, .has_dtype = has_f32, .dtype = PHEMA_F32};
    assert_ok(synthesise(directory, out, &request, &result, &err), &err);
}

/* Number of elements of a tensor that differ between two runs. */
static size_t count_different(const char *a, const char *b, const char *tensor, size_t elem_bytes)
{
    struct phema_error err = {0};
    const struct phema_checkpoint_options options = {0};
    struct phema_checkpoint *left = NULL, *right = NULL;
    assert_ok(phema_checkpoint_open(&left, a, &options, &err), &err);
    assert_ok(phema_checkpoint_open(&right, b, &options, &err), &err);
    const uint8_t *x = find(left, tensor), *y = find(right, tensor);
    size_t n = 0;
    for (size_t i = 0; i < N_ELEMS; i++)
        n += memcmp(x + i * elem_bytes, y + i * elem_bytes, elem_bytes) != 0;
    phema_checkpoint_close(left);
    phema_checkpoint_close(right);
    return n;
}

static void each_tensor_is_summed_in_the_precision_it_needs(void **state)
{
    (void)state;
    struct phema_strbuf weights = {0}, large = {0};
    char *directory = make_snapshots("sums", &weights, 1.1);
    char *same = make_snapshots("sums_large", &large, 4.1);
    char *outs[3];
    for (int sums = 0; sums < 3; sums++) {
        assert_true(asprintf(&outs[sums], "%s-%d.safetensors", directory, sums) > 0);
        average(directory, weights.data, outs[sums], (enum phema_sums)sums, false);
    }
    const char *f64 = outs[PHEMA_SUMS_F64], *f32 = outs[PHEMA_SUMS_F32], *by_auto = outs[2];
    assert_int_equal(count_different(by_auto, f32, "half", 2), 0);
    assert_int_equal(count_different(by_auto, f64, "brain", 2), 0);
    assert_int_equal(count_different(by_auto, f64, "single", 4), 0);
    /* the precisions differ, and auto rounds few elements differently */
    size_t n = count_different(by_auto, f64, "half", 2);
    assert_true(n > 0 && n < N_ELEMS / 16);
    assert_true(count_different(f32, f64, "single", 4) > N_ELEMS / 4);

    /* wider outputs show more digits */
    average(directory, weights.data, outs[0], PHEMA_SUMS_F64, true);
    average(directory, weights.data, outs[2], PHEMA_SUMS_AUTO, true);
    assert_int_equal(count_different(outs[2], outs[0], "half", 4), 0);

    /* large weights */
    average(same, large.data, outs[0], PHEMA_SUMS_F64, false);
    average(same, large.data, outs[1], PHEMA_SUMS_F32, false);
    average(same, large.data, outs[2], PHEMA_SUMS_AUTO, false);
    assert_int_equal(count_different(outs[2], outs[0], "half", 2), 0);
    assert_true(count_different(outs[1], outs[0], "half", 2) > 0);
    for (int sums = 0; sums < 3; sums++)
        free(outs[sums]);
    phema_strbuf_clear(&weights);
    phema_strbuf_clear(&large);
    free(directory);
    free(same);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(targets_of_one_time_have_rows_of_their_own),
    cmocka_unit_test(targets_of_one_time_share_the_row_of_a_rule),
    cmocka_unit_test(a_pass_has_only_its_own_targets),
    cmocka_unit_test(float32_fits_as_long_as_its_roundings_are_hidden),
    cmocka_unit_test(dtypes_that_show_more_than_16_bits_need_float64),
    cmocka_unit_test(each_tensor_is_summed_in_the_precision_it_needs),
};
TEST_GROUP(tests)
