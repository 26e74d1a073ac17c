// SPDX-License-Identifier: Apache-2.0
/* test_tensors.c - tensors in memory have the bytes that a run writes, and the search finds the
 * width that a score prefers. */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <posthoc-ema.h>

#include "phema/formats.h"
#include "support.h"

#define assert_fine(status, error)                                                                 \
    do {                                                                                           \
        if (status)                                                                                \
            fail_msg("status %d: %s", (int)(status), (error).message);                             \
    } while (0)

/* Plans of two targets: of EDM2's files, of files without their settings, of raw parameters in
 * fp8. */
enum kind { LABELLED, UNLABELLED, RAW };

static struct posthoc_ema_plan *plan_of(const char *fixture, enum kind kind, const char *rule)
{
    static const double sigma_rels[] = {0.12, 0.2}, input_sigmas[] = {0.05, 0.28};
    static const char *const raw[] = {"raw"}, *const profiles[] = {"sma:2", "newest"};
    struct posthoc_ema_series *series = NULL;
    struct posthoc_ema_plan *plan = NULL;
    struct posthoc_ema_error error = {""};
    char *path = support_fixture(fixture);
    struct posthoc_ema_series_options inputs = {.size = sizeof(inputs)};
    struct posthoc_ema_plan_options options = {
        .size = sizeof(options), .sigma_rels = sigma_rels, .n_sigma_rels = 2};
    if (kind == UNLABELLED) {
        inputs.input_sigmas = input_sigmas;
        inputs.n_input_sigmas = 2;
        inputs.update_every = 10;
    }
    if (kind == RAW) {
        inputs.input_profiles = raw;
        inputs.n_input_profiles = 1;
        options.n_sigma_rels = 0;
        options.profiles = profiles;
        options.n_profiles = 2;
    }
    options.rules = &rule;
    options.n_rules = rule ? 1 : 0;
    assert_fine(posthoc_ema_series_open(&series, path, &inputs, &error), error);
    assert_fine(posthoc_ema_plan_make(&plan, series, &options, &error), error);
    posthoc_ema_series_close(series);
    free(path);
    return plan;
}

/* Every tensor of an output equals the one that is made in memory. Returns their number. */
static size_t compare_with_output(const struct posthoc_ema_plan *plan, size_t j, const char *dtype,
                                  unsigned threads)
{
    struct phema_error err = {0};
    struct posthoc_ema_error error = {""};
    struct phema_checkpoint *checkpoint = NULL;
    struct posthoc_ema_plan_info info = {.size = sizeof(info)};
    struct posthoc_ema_read_options options = {
        .size = sizeof(options), .dtype = dtype, .threads = threads};
    assert_ok(phema_checkpoint_open(&checkpoint, posthoc_ema_output(plan, j), NULL, &err), &err);
    assert_fine(posthoc_ema_plan_info(plan, &info, &error), error);
    assert_int_equal(info.n_tensors, phema_checkpoint_n_tensors(checkpoint));
    for (size_t i = 0; i < info.n_tensors; i++) {
        struct posthoc_ema_tensor tensor = {.size = sizeof(tensor)};
        assert_fine(posthoc_ema_plan_tensor(plan, i, dtype, &tensor, &error), error);
        const struct phema_tensor *written =
            phema_checkpoint_find(checkpoint, tensor.name, tensor.name_size);
        assert_non_null(written);
        assert_string_equal(tensor.dtype, phema_dtype_name(written->dtype));
        assert_int_equal(tensor.bytes, written->size_bytes);
        assert_int_equal(tensor.rank, written->rank);
        for (size_t d = 0; d < tensor.rank; d++)
            assert_int_equal(tensor.shape[d], written->shape[d]);
        uint8_t *data = malloc((size_t)tensor.bytes + 1);
        assert_non_null(data);
        data[tensor.bytes] = 0xa5;
        assert_fine(posthoc_ema_read(plan, j, i, &options, data, (size_t)tensor.bytes, &error),
                    error);
        if (tensor.bytes)
            assert_memory_equal(data, phema_tensor_start(checkpoint, written), tensor.bytes);
        assert_int_equal(data[tensor.bytes], 0xa5);
        free(data);
    }
    phema_checkpoint_close(checkpoint);
    return info.n_tensors;
}

/* Made in one pass, every tensor of both targets is the same. Every second tensor that shares its
 * data with another one has no place of its own. */
static void compare_with_all(const struct posthoc_ema_plan *plan, const char *dtype)
{
    struct posthoc_ema_error error = {""};
    struct posthoc_ema_plan_info info = {.size = sizeof(info)};
    struct posthoc_ema_read_options options = {.size = sizeof(options), .dtype = dtype};
    assert_fine(posthoc_ema_plan_info(plan, &info, &error), error);
    size_t n = info.n_tensors;
    size_t *sizes = calloc(n, sizeof(*sizes));
    void **data = calloc(2 * n, sizeof(*data));
    assert_true(sizes && data);
    for (size_t i = 0; i < n; i++) {
        struct posthoc_ema_tensor tensor = {.size = sizeof(tensor)};
        assert_fine(posthoc_ema_plan_tensor(plan, i, dtype, &tensor, &error), error);
        sizes[i] = (size_t)tensor.bytes;
        for (size_t j = 0; j < 2; j++)
            data[j * n + i] = tensor.same_as == i || j ? malloc(sizes[i] + 1) : NULL;
    }
    assert_fine(posthoc_ema_read_all(plan, 0, 2, &options, data, sizes, &error), error);
    for (size_t i = 0; i < 2 * n; i++) {
        uint8_t *one = malloc(sizes[i % n] + 1);
        assert_non_null(one);
        assert_fine(posthoc_ema_read(plan, i / n, i % n, &options, one, sizes[i % n], &error),
                    error);
        if (data[i])
            assert_memory_equal(data[i], one, sizes[i % n]);
        free(one);
    }
    /* the second target alone */
    for (size_t i = 0; i < n; i++)
        if (data[i])
            memset(data[i], 0x5a, sizes[i]);
    assert_fine(posthoc_ema_read_all(plan, 1, 1, &options, data, sizes, &error), error);
    for (size_t i = 0; i < n; i++)
        if (data[i])
            assert_memory_equal(data[i], data[n + i], sizes[i]);
    for (size_t i = 0; i < 2 * n; i++)
        free(data[i]);
    free(data);
    free(sizes);
}

static void check_series(const char *fixture, enum kind kind, const char *rule, const char *dtype)
{
    struct posthoc_ema_plan *plan = plan_of(fixture, kind, rule);
    struct posthoc_ema_error error = {""};
    char *out = support_tmp_path("{profile}.safetensors");
    struct posthoc_ema_run_options options = {.size = sizeof(options), .dtype = dtype};
    assert_fine(posthoc_ema_run(plan, out, &options, NULL, &error), error);
    for (size_t j = 0; j < 2; j++)
        assert_true(compare_with_output(plan, j, dtype, 1 + (unsigned)j) > 2);
    compare_with_all(plan, dtype);
    for (size_t j = 0; j < 2; j++)
        assert_int_equal(unlink(posthoc_ema_output(plan, j)), 0);
    free(out);
    posthoc_ema_plan_free(plan);
}

static void tensors_equal_those_of_a_run(void **state)
{
    (void)state;
    check_series("edm2/snapshots", LABELLED, NULL, NULL);
    check_series("edm2/snapshots", LABELLED, "gain=0.07", "f32");
    check_series("edm2/snapshots", LABELLED, NULL, "bf16");
    check_series("posthoc_ema/snapshots", UNLABELLED, NULL, NULL);
    check_series("trainers/fp8_block", RAW, NULL, NULL); /* codes with scales become bf16 */
}

static int count_and_stop(void *context, const struct posthoc_ema_progress *progress)
{
    size_t *n_left = context;
    assert_true(progress->size >= sizeof(*progress));
    assert_true(progress->done_bytes <= progress->total_bytes && progress->total_bytes > 0);
    assert_true(progress->tensor_size > 0);
    return --*n_left == 0;
}

static void a_tensor_is_reported_and_can_be_stopped(void **state)
{
    (void)state;
    struct posthoc_ema_plan *plan = plan_of("edm2/snapshots", LABELLED, NULL);
    struct posthoc_ema_error error = {""};
    struct posthoc_ema_tensor tensor = {.size = sizeof(tensor)};
    size_t n_left = SIZE_MAX;
    struct posthoc_ema_read_options options = {
        .size = sizeof(options), .progress = count_and_stop, .context = &n_left};
    assert_fine(posthoc_ema_plan_tensor(plan, 0, NULL, &tensor, &error), error);
    size_t size = (size_t)tensor.bytes;
    uint8_t *quiet = malloc(size), *data = malloc(size);
    assert_non_null(quiet);
    assert_non_null(data);
    assert_fine(posthoc_ema_read(plan, 0, 0, NULL, quiet, size, &error), error);
    assert_fine(posthoc_ema_read(plan, 0, 0, &options, data, size, &error), error);
    assert_memory_equal(data, quiet, size);
    assert_true(n_left < SIZE_MAX);
    n_left = 1;
    assert_int_equal(posthoc_ema_read(plan, 0, 0, &options, data, size, &error),
                     POSTHOC_EMA_CANCELLED);
    assert_int_equal(n_left, 0);
    /* a caller that knows of no progress */
    options.size = offsetof(struct posthoc_ema_read_options, progress);
    assert_fine(posthoc_ema_read(plan, 0, 0, &options, data, size, &error), error);
    assert_int_equal(n_left, 0);
    free(data);
    free(quiet);
    posthoc_ema_plan_free(plan);
}

static void wrong_tensors_and_sizes_are_refused(void **state)
{
    (void)state;
    struct posthoc_ema_plan *plan = plan_of("edm2/snapshots", LABELLED, NULL);
    struct posthoc_ema_error error = {""};
    struct posthoc_ema_tensor tensor = {.size = sizeof(tensor)};
    struct posthoc_ema_read_options options = {.size = sizeof(options)};
    uint8_t data[1] = {0x5a};
    assert_int_equal(posthoc_ema_plan_tensor(plan, 8, NULL, &tensor, &error),
                     POSTHOC_EMA_ERR_USAGE);
    assert_string_equal(error.message, "tensor 8: there are 8, from 0");
    assert_int_equal(posthoc_ema_plan_tensor(plan, 0, "f8", &tensor, &error),
                     POSTHOC_EMA_ERR_USAGE);
    assert_int_equal(posthoc_ema_read(plan, 2, 0, &options, data, 0, &error),
                     POSTHOC_EMA_ERR_USAGE);
    assert_string_equal(error.message, "target 2: there are 2, from 0");
    assert_int_equal(posthoc_ema_read(plan, 0, 0, &options, data, sizeof(data), &error),
                     POSTHOC_EMA_ERR_USAGE);
    assert_non_null(strstr(error.message, "size: expected "));
    void *const nowhere[16] = {data};
    const size_t sizes[8] = {sizeof(data)};
    assert_int_equal(posthoc_ema_read_all(plan, 0, 2, &options, nowhere, sizes, &error),
                     POSTHOC_EMA_ERR_USAGE);
    assert_non_null(strstr(error.message, "size: expected "));
    assert_int_equal(posthoc_ema_read_all(plan, 1, 2, &options, nowhere, sizes, &error),
                     POSTHOC_EMA_ERR_USAGE);
    assert_string_equal(error.message, "targets: there are 2, found 2 from 1");
    assert_int_equal(posthoc_ema_read_all(plan, 0, 2, &options, NULL, sizes, &error),
                     POSTHOC_EMA_ERR_USAGE);
    assert_string_equal(error.message, "data: expected an array, found NULL");
    options.io = "tape";
    assert_int_equal(posthoc_ema_read(plan, 0, 0, &options, data, 0, &error),
                     POSTHOC_EMA_ERR_USAGE);
    assert_int_equal(data[0], 0x5a);
    posthoc_ema_plan_free(plan);
}

/* EDM2's fixture: made by a simulated training, so that labels are true. */
static void a_plan_tells_whether_labels_fit(void **state)
{
    (void)state;
    struct posthoc_ema_plan *plan = plan_of("edm2/snapshots", LABELLED, NULL);
    struct posthoc_ema_error error = {""};
    struct posthoc_ema_plan_info info = {.size = sizeof(info)};
    assert_fine(posthoc_ema_plan_info(plan, &info, &error), error);
    assert_true(!strcmp(info.verdict, "fits") || !strcmp(info.verdict, "unknown"));
    assert_null(info.reason);
    assert_int_equal(info.suspect, info.n_snapshots);
    posthoc_ema_plan_free(plan);
}

/* ---- Search ---- */

static void the_search_ends_near_the_best_width(void **state)
{
    (void)state;
    const double best = 0.137;
    struct posthoc_ema_search_options options = {.size = sizeof(options), .from = 0.03, .to = 0.25};
    struct posthoc_ema_error error = {""};
    double widths[64], scores[64], found = 0;
    size_t n = 0, n_next = 1, least = 0;
    while (n_next) {
        assert_true(n < 60);
        assert_fine(
            posthoc_ema_search_next(widths + n, &n_next, 4, &options, widths, scores, n, &error),
            error);
        for (; n_next && n < 60; n_next--, n++)
            scores[n] = pow(log(widths[n] / best), 2);
        assert_fine(
            posthoc_ema_search_next(&found, &n_next, 1, &options, widths, scores, n, &error),
            error);
    }
    for (size_t i = 0; i < n; i++)
        least = scores[i] < scores[least] ? i : least;
    assert_near(widths[0], 0.03, 1e-4);
    assert_near(widths[least], best, 0.005); /* the tolerance that is not given */
}

static void ranges_and_tolerances_are_checked(void **state)
{
    (void)state;
    struct posthoc_ema_error error = {""};
    double next = 0;
    size_t n_next = 0;
    static const struct posthoc_ema_search_options wrong[] = {
        {.from = 0.2, .to = 0.1},
        {.from = 0.1, .to = 0.2, .tolerance = 1e-5},
        {.from = 0.1, .to = 0.2, .noise = -1},
        {.from = 0.1, .to = 0.2, .n_coarse = 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct posthoc_ema_search_options options = wrong[i];
        options.size = sizeof(options);
        assert_int_equal(
            posthoc_ema_search_next(&next, &n_next, 1, &options, NULL, NULL, 0, &error),
            POSTHOC_EMA_ERR_USAGE);
    }
    struct posthoc_ema_search_options wide = {.size = sizeof(wide), .from = 0.1, .to = 0.4};
    assert_int_equal(posthoc_ema_search_next(&next, &n_next, 1, &wide, NULL, NULL, 0, &error),
                     POSTHOC_EMA_ERR_TARGET);
    assert_non_null(strstr(error.message, "to: "));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(tensors_equal_those_of_a_run),
    cmocka_unit_test(a_tensor_is_reported_and_can_be_stopped),
    cmocka_unit_test(wrong_tensors_and_sizes_are_refused),
    cmocka_unit_test(a_plan_tells_whether_labels_fit),
    cmocka_unit_test(the_search_ends_near_the_best_width),
    cmocka_unit_test(ranges_and_tolerances_are_checked),
};
TEST_GROUP(tests)
