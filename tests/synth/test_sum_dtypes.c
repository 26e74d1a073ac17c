// SPDX-License-Identifier: Apache-2.0
/* In which precision sums are: what the weights, the dtypes and the user ask for; and what it comes
 * to in the numbers written. */
#include "sum_dtypes.h"

#include "run_state.h"
#include "runs.h"
#include "target_groups.h"

static void as_many_roundings_as_hide_fit(void **state)
{
    (void)state;
    static const struct {
        double weights[4];
        bool fits;
    } cases[] = {
        {{0, 0, 0, 1}, true},
        {{0, 0, 0, 32}, true}, /* rounded itself, and added: twice */
        {{0, 0, 0, -32}, true},
        {{0, 0, 0, 32.0000001}, false},
        {{0, 0, 0, -32.0000001}, false},
        {{0, 32, 0, 0}, true}, /* what takes no part is no addition */
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

/* What is written with 16 bits, f32 and f64. */
static const enum phema_dtype written[] = {PHEMA_F16, PHEMA_BF16, PHEMA_F32, PHEMA_F64};

static void dtypes_that_show_more_need_float64(void **state)
{
    (void)state;
    static const struct {
        enum phema_dtype dtype;
        bool by_auto, by_f32; /* written with 16 bits */
    } cases[] = {
        {PHEMA_F16, false, false},         {PHEMA_F8_E4M3, false, false},
        {PHEMA_F8_E5M2, false, false},     {PHEMA_F8_E4M3FNUZ, false, false},
        {PHEMA_F8_E5M2FNUZ, false, false}, {PHEMA_F4, false, false},
        {PHEMA_F8_E8M0, true, false}, /* up to 2^127 */
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

/* ---- Numbers ---- */

enum { N = 5000, N_SNAPSHOTS = 9 };

/* One training: each snapshot is a little off the one before. */
static char *make_snapshots(const char *name, struct phema_strbuf *weights, double largest)
{
    char *directory = make_directory(name);
    static double x[N];
    static uint16_t halves[N], brains[N];
    static float singles[N];
    uint32_t seed = 77;
    for (unsigned s = 0; s < N_SNAPSHOTS; s++) {
        for (size_t i = 0; i < N; i++) {
            seed = seed * 1664525 + 1013904223;
            double step = (double)seed / 4294967296.0 - 0.5;
            x[i] = s ? x[i] * (1 + step / 8) : ldexp(step, (int)(i % 24) - 12);
            singles[i] = (float)x[i];
        }
        struct phema_narrow_counts counts = {0, 0, 0};
        const struct phema_backend *ref = phema_backend_named("ref");
        phema_narrow(ref, halves, PHEMA_F16, PHEMA_ACCUMULATE_F64, x, N, PHEMA_OVERFLOW_INF,
                     &counts);
        phema_narrow(ref, brains, PHEMA_BF16, PHEMA_ACCUMULATE_F64, x, N, PHEMA_OVERFLOW_INF,
                     &counts);
        const struct entry entries[] = {{"half", PHEMA_F16, N, false, halves},
                                        {"brain", PHEMA_BF16, N, false, brains},
                                        {"single", PHEMA_F32, N, false, singles}};
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
    struct phema_error err = {""};
    struct phema_synth_result result;
    struct request request = {
        .weights = weights, .sums = sums, .has_dtype = has_f32, .dtype = PHEMA_F32};
    assert_ok(synthesise(directory, out, &request, &result, &err), &err);
}

/* Elements of a tensor that differ between two runs. */
static size_t count_different(const char *a, const char *b, const char *tensor, size_t elem_bytes)
{
    struct phema_error err = {""};
    const struct phema_checkpoint_options options = {0};
    struct phema_checkpoint *left = NULL, *right = NULL;
    assert_ok(phema_checkpoint_open(&left, a, &options, &err), &err);
    assert_ok(phema_checkpoint_open(&right, b, &options, &err), &err);
    const uint8_t *x = find(left, tensor), *y = find(right, tensor);
    size_t n = 0;
    for (size_t i = 0; i < N; i++)
        n += memcmp(x + i * elem_bytes, y + i * elem_bytes, elem_bytes) != 0;
    phema_checkpoint_close(left);
    phema_checkpoint_close(right);
    return n;
}

static void each_tensor_is_summed_as_it_needs(void **state)
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
    /* they can be told apart at all; and what auto rounds differently is little */
    size_t n = count_different(by_auto, f64, "half", 2);
    assert_true(n > 0 && n < N / 16);
    assert_true(count_different(f32, f64, "single", 4) > N / 4);

    /* written wider, more is seen */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_many_roundings_as_hide_fit),
        cmocka_unit_test(dtypes_that_show_more_need_float64),
        cmocka_unit_test(each_tensor_is_summed_as_it_needs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
