// SPDX-License-Identifier: Apache-2.0
/* Whole runs over small generated snapshots: every dtype, copied tensors, zero weights, overflow.
 * Plain loops in this file compute the expected values. */
#include "phema/synth.h"

#include <fcntl.h>
#include <unistd.h>

#include "runs.h"

static void floats_are_averaged_and_the_rest_comes_from_the_newest(void **state)
{
    (void)state;
    struct phema_error err = {0};
    char *directory = make_directory("kinds");
    static const float w_old[3] = {1, 2, -8}, w_new[3] = {3, 2, 8};
    static const int64_t count_old = 7, count_new = 9;
    static const float step_old = 100, step_new = (float)INFINITY, scalar_old = 4, scalar_new = 8;
    static const float constant[2] = {0.1f, -0.0f};
    const struct entry old[] = {
        {"w", PHEMA_F32, 3, false, w_old},           {"count", PHEMA_I64, 1, true, &count_old},
        {"step", PHEMA_F32, 1, true, &step_old},     {"scalar", PHEMA_F32, 1, true, &scalar_old},
        {"constant", PHEMA_F32, 2, false, constant}, {"empty", PHEMA_F32, 0, false, NULL}};
    const struct entry new[] = {
        {"w", PHEMA_F32, 3, false, w_new},           {"count", PHEMA_I64, 1, true, &count_new},
        {"step", PHEMA_F32, 1, true, &step_new},     {"scalar", PHEMA_F32, 1, true, &scalar_new},
        {"constant", PHEMA_F32, 2, false, constant}, {"empty", PHEMA_F32, 0, false, NULL}};
    write_snapshot(directory, "snapshot-0000100-0.050.safetensors", old, ARRAY_LEN(old));
    write_snapshot(directory, "snapshot-0000200-0.050.safetensors", new, ARRAY_LEN(new));
    char *out = support_tmp_path("kinds.safetensors");
    struct request request = {.weights = two_files};
    struct phema_synth_result result;
    assert_ok(synthesise(directory, out, &request, &result, &err), &err);
    assert_int_equal(result.n_nan + result.n_inf, 0); /* the infinite step was not averaged */
    assert_int_equal(result.n_constant, 1);

    struct phema_checkpoint *made = NULL;
    assert_ok(phema_checkpoint_open(&made, out, NULL, &err), &err);
    static const float wanted[3] = {2.5f, 2, 4}; /* 1/4 old + 3/4 new */
    assert_memory_equal(find(made, "w"), wanted, sizeof(wanted));
    assert_memory_equal(find(made, "count"), &count_new, sizeof(count_new));
    assert_memory_equal(find(made, "step"), &step_new, sizeof(step_new));
    static const float wanted_scalar = 7;
    assert_memory_equal(find(made, "scalar"), &wanted_scalar, sizeof(wanted_scalar));
    assert_memory_equal(find(made, "constant"), constant,
                        sizeof(constant)); /* with the sign of -0 */
    assert_non_null(phema_checkpoint_find(made, "empty", 5));
    phema_checkpoint_close(made);
    free(out);
    free(directory);
}

static void given_weights_are_used_as_they_are_whatever_their_sum(void **state)
{
    (void)state;
    struct phema_error err = {0};
    char *directory = make_directory("sum");
    static const double w[2] = {1, 2};
    const struct entry entries[] = {{"w", PHEMA_F64, 2, false, w}};
    write_snapshot(directory, "snapshot-0000100-0.050.safetensors", entries, 1);
    write_snapshot(directory, "snapshot-0000200-0.050.safetensors", entries, 1);
    char *out = support_tmp_path("sum.safetensors");
    struct request request = {.weights = "snapshot-0000100-0.050.safetensors 0.5\n"
                                         "snapshot-0000200-0.050.safetensors 1\n"};
    struct phema_synth_result result;
    assert_ok(synthesise(directory, out, &request, &result, &err), &err);
    struct phema_checkpoint *made = NULL;
    assert_ok(phema_checkpoint_open(&made, out, NULL, &err), &err);
    static const double wanted[2] = {1.5, 3}; /* equal tensors, but the weights add up to 1.5 */
    assert_memory_equal(find(made, "w"), wanted, sizeof(wanted));
    phema_checkpoint_close(made);
    free(out);
    free(directory);
}

/* 0 times infinity must not reach the sums. */
static void a_snapshot_without_weight_is_not_used(void **state)
{
    (void)state;
    struct phema_error err = {0};
    char *directory = make_directory("zero");
    static const float bad[2] = {(float)NAN, (float)INFINITY}, good[2] = {1, 2};
    const struct entry first[] = {{"w", PHEMA_F32, 2, false, bad}};
    const struct entry second[] = {{"w", PHEMA_F32, 2, false, good}};
    write_snapshot(directory, "snapshot-0000100-0.050.safetensors", first, 1);
    write_snapshot(directory, "snapshot-0000200-0.050.safetensors", second, 1);
    char *out = support_tmp_path("zero.safetensors");
    struct request request = {.weights = "snapshot-0000200-0.050.safetensors 0.5\n"};
    struct phema_synth_result result;
    assert_ok(synthesise(directory, out, &request, &result, &err), &err);
    struct phema_checkpoint *made = NULL;
    assert_ok(phema_checkpoint_open(&made, out, NULL, &err), &err);
    static const float wanted[2] = {0.5f, 1};
    assert_memory_equal(find(made, "w"), wanted, sizeof(wanted));
    phema_checkpoint_close(made);

    request.weights = two_files; /* now both are used and counted */
    assert_ok(synthesise(directory, out, &request, &result, &err), &err);
    assert_int_equal(result.n_nan, 1);
    assert_int_equal(result.n_inf, 1);
    assert_int_equal(result.nan_tensor, 0);
    free(out);
    free(directory);
}

static void overflow_is_an_error_that_leaves_no_output(void **state)
{
    (void)state;
    struct phema_error err = {0};
    char *directory = make_directory("overflow");
    static const float old[2] = {1, 70000}, new[2] = {2, 80000};
    const struct entry first[] = {{"net.w", PHEMA_F32, 2, false, old}};
    const struct entry second[] = {{"net.w", PHEMA_F32, 2, false, new}};
    write_snapshot(directory, "snapshot-0000100-0.050.safetensors", first, 1);
    write_snapshot(directory, "snapshot-0000200-0.050.safetensors", second, 1);
    char *out = support_tmp_path("overflow.safetensors");
    char *partial = support_tmp_path("overflow.safetensors.partial");
    struct request request = {.weights = two_files, .has_dtype = true, .dtype = PHEMA_F16};
    struct phema_synth_result result;
    assert_fails(synthesise(directory, out, &request, &result, &err), PHEMA_ERR_OUTPUT, &err,
                 "tensor 'net.w'");
    assert_int_not_equal(access(out, F_OK), 0);
    assert_int_not_equal(access(partial, F_OK), 0);

    request.overflow = PHEMA_OVERFLOW_SATURATES;
    assert_ok(synthesise(directory, out, &request, &result, &err), &err);
    assert_int_equal(result.n_overflow, 1);
    struct phema_checkpoint *made = NULL;
    assert_ok(phema_checkpoint_open(&made, out, NULL, &err), &err);
    static const uint16_t wanted[2] = {0x3F00, 0x7BFF}; /* 1.75, 65504 */
    assert_memory_equal(find(made, "net.w"), wanted, sizeof(wanted));
    phema_checkpoint_close(made);
    free(partial);
    free(out);
    free(directory);
}

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* A big tensor between small ones at odd addresses: tiles, tails, several threads. */
static void big_tensors_are_right_element_by_element(void **state)
{
    (void)state;
    enum { N = 300007, K = 11 };
    struct phema_error err = {0};
    char *directory = make_directory("big");
    float *data = malloc(sizeof(float) * N);
    double *wanted = calloc(N, sizeof(double));
    assert_non_null(data);
    assert_non_null(wanted);
    struct phema_strbuf list = {0};
    uint32_t seed = 1;
    static const uint8_t flag = 1;
    for (int k = 0; k < K; k++) {
        double weight = (k % 2 ? -0.5 : 0.75) / (1 + k);
        for (int i = 0; i < N; i++) {
            data[i] = (float)next_random(&seed) / 16777216.0f - 0.5f;
            wanted[i] = fma(weight, (double)data[i], wanted[i]);
        }
        char name[64];
        (void)snprintf(name, sizeof(name), "snapshot-%07d-0.050.safetensors", 100 * (k + 1));
        const struct entry entries[] = {{"a.flag", PHEMA_BOOL, 1, true, &flag},
                                        {"b.w", PHEMA_F32, N, false, data}};
        write_snapshot(directory, name, entries, ARRAY_LEN(entries));
        phema_strbuf_printf(&list, "%s %.17g\n", name, weight);
    }
    char *out = support_tmp_path("big.safetensors");
    static const unsigned threads[] = {1, 2, 5};
    for (size_t t = 0; t < ARRAY_LEN(threads); t++) {
        struct request request = {.weights = list.data, .n_threads = threads[t]};
        struct phema_synth_result result;
        assert_ok(synthesise(directory, out, &request, &result, &err), &err);
        struct phema_checkpoint *made = NULL;
        assert_ok(phema_checkpoint_open(&made, out, NULL, &err), &err);
        const uint8_t *bytes = find(made, "b.w");
        for (int i = 0; i < N; i++) {
            float got;
            memcpy(&got, bytes + sizeof(float) * (size_t)i, sizeof(got));
            assert_true(got == (float)wanted[i]);
        }
        phema_checkpoint_close(made);
    }
    phema_strbuf_clear(&list);
    free(out);
    free(data);
    free(wanted);
    free(directory);
}

static void complex_numbers_are_averaged_by_components(void **state)
{
    (void)state;
    struct phema_error err = {0};
    char *directory = make_directory("complex");
    static const float old[4] = {0, 4, 8, -4}, new[4] = {4, 0, 8, 4};
    const struct entry first[] = {{"z", PHEMA_C64, 2, false, old}};
    const struct entry second[] = {{"z", PHEMA_C64, 2, false, new}};
    write_snapshot(directory, "snapshot-0000100-0.050.safetensors", first, 1);
    write_snapshot(directory, "snapshot-0000200-0.050.safetensors", second, 1);
    char *out = support_tmp_path("complex.safetensors");
    struct request request = {.weights = two_files};
    struct phema_synth_result result;
    assert_ok(synthesise(directory, out, &request, &result, &err), &err);
    struct phema_checkpoint *made = NULL;
    assert_ok(phema_checkpoint_open(&made, out, NULL, &err), &err);
    static const float wanted[4] = {3, 1, 8, 2};
    assert_memory_equal(find(made, "z"), wanted, sizeof(wanted));
    phema_checkpoint_close(made);
    free(out);
    free(directory);
}

/* changed: the file to modify between planning and the run. It belongs to a snapshot, or the output
 * is a copy of it. */
static void check_changed(const char *name, const char *changed)
{
    struct phema_error err = {0};
    char *directory = make_directory(name);
    static const float w[2] = {1, 2};
    const struct entry entries[] = {{"w", PHEMA_F32, 2, false, w}};
    write_snapshot(directory, "snapshot-0000100-0.050.safetensors", entries, 1);
    write_snapshot(directory, "into.safetensors", entries, 1);
    static const double sigma_rel = 0.05;
    struct phema_plan_options options = {
        .series = {.snapshots = directory, .from = -HUGE_VAL, .to = HUGE_VAL},
        .sigma_rels = &sigma_rel,
        .n_sigma_rels = 1};
    struct phema_plan *plan = NULL;
    assert_ok(phema_plan_make(&plan, &options, &err), &err);
    char *out = support_tmp_path("changing.safetensors"), *path = NULL, *into = NULL;
    assert_true(asprintf(&path, "%s/%s", directory, changed) > 0);
    assert_true(asprintf(&into, "%s/into.safetensors", directory) > 0);
    struct phema_outputs outputs = {0};
    struct phema_outputs_options naming = {
        .out = out, .into = into, .accumulator = "f64", .command_options = ""};
    assert_ok(phema_outputs_make(&outputs, plan, &naming, &err), &err);
    static const struct timespec long_ago[2] = {{1000, 0}, {1000, 0}};
    assert_int_equal(utimensat(AT_FDCWD, path, long_ago, 0), 0);
    struct phema_synth_options how = {.n_threads = 1};
    struct phema_synth_result result;
    assert_fails(phema_synth_run(&result, plan, &outputs, &how, &err), PHEMA_ERR_FILE, &err,
                 changed);
    assert_int_not_equal(access(out, F_OK), 0);
    phema_outputs_clear(&outputs);
    phema_plan_free(plan);
    free(path);
    free(into);
    free(out);
    free(directory);
}

static void a_file_that_changes_meanwhile_is_named(void **state)
{
    (void)state;
    check_changed("changing", "snapshot-0000100-0.050.safetensors");
    check_changed("changing_into", "into.safetensors");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(floats_are_averaged_and_the_rest_comes_from_the_newest),
    cmocka_unit_test(given_weights_are_used_as_they_are_whatever_their_sum),
    cmocka_unit_test(a_snapshot_without_weight_is_not_used),
    cmocka_unit_test(overflow_is_an_error_that_leaves_no_output),
    cmocka_unit_test(big_tensors_are_right_element_by_element),
    cmocka_unit_test(complex_numbers_are_averaged_by_components),
    cmocka_unit_test(a_file_that_changes_meanwhile_is_named),
};
TEST_GROUP(tests)
