// SPDX-License-Identifier: Apache-2.0
/* test_api.c - the installed interface, with EDM2's files from the fixtures as inputs. Other tests
 * check the averages themselves. This one checks that options have an effect, that failures have a
 * status and a message, and that the library does not change the process. */
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <posthoc-ema.h>

#include "support.h"

#define assert_fine(status, error)                                                                 \
    do {                                                                                           \
        if (status)                                                                                \
            fail_msg("status %d: %s", (int)(status), (error).message);                             \
    } while (0)

static struct posthoc_ema_series *open_fixture(void)
{
    struct posthoc_ema_series *series = NULL;
    struct posthoc_ema_error error = {""};
    char *path = support_fixture("edm2/snapshots");
    enum posthoc_ema_status status = posthoc_ema_series_open(&series, path, NULL, &error);
    assert_fine(status, error);
    free(path);
    return series;
}

static struct posthoc_ema_plan *plan_for(const struct posthoc_ema_series *series, double sigma_rel,
                                         const char *metric)
{
    struct posthoc_ema_plan *plan = NULL;
    struct posthoc_ema_error error = {""};
    struct posthoc_ema_plan_options options = {
        .size = sizeof(options), .sigma_rels = &sigma_rel, .n_sigma_rels = 1, .metric = metric};
    enum posthoc_ema_status status = posthoc_ema_plan_make(&plan, series, &options, &error);
    assert_fine(status, error);
    return plan;
}

static bool is_there(const char *path)
{
    struct stat unused;
    return stat(path, &unused) == 0;
}

/* ---- Numbers ---- */

/* arXiv:2312.02696, sec. 3.2: 0.05 and 0.10 are 16.97 and 6.94; eq. 127: beta = (1 - 1/t)^(g+1). */
static void gammas_and_betas_match_the_paper(void **state)
{
    (void)state;
    struct posthoc_ema_error error = {""};
    double gamma = 0;
    enum posthoc_ema_status status = posthoc_ema_gamma(&gamma, 0.05, &error);
    assert_fine(status, error);
    assert_near(gamma, 16.97, 0.005);
    assert_near(posthoc_ema_sigma_rel(gamma), 0.05, 1e-15);
    assert_near(posthoc_ema_beta(6.94, 1), 0, 0);
    assert_near(posthoc_ema_beta(1, 4), 0.5625, 1e-16);
    assert_int_equal(posthoc_ema_gamma(&gamma, 0.4, &error), POSTHOC_EMA_ERR_TARGET);
    assert_non_null(strstr(error.message, "0.4"));
    assert_near(gamma, 16.97, 0.005); /* a failure does not change it */
    assert_int_equal(posthoc_ema_gamma(&gamma, 0.4, NULL), POSTHOC_EMA_ERR_TARGET);
}

static void weights_without_files_sum_to_one(void **state)
{
    (void)state;
    struct posthoc_ema_error error = {""};
    struct posthoc_ema_profile snapshots[8], targets[2] = {{10, 400, 0}, {6.94, 400, 1}};
    for (size_t k = 0; k < 8; k++)
        snapshots[k] =
            (struct posthoc_ema_profile){k % 2 ? 6.94 : 16.97, 100 * (double)(k / 2 + 1), 0};
    double weights[8 * 2];
    enum posthoc_ema_status status =
        posthoc_ema_weights(weights, snapshots, 8, targets, 2, NULL, &error);
    assert_fine(status, error);
    double sums[2] = {0, 0};
    for (size_t i = 0; i < 16; i++)
        sums[i % 2] += weights[i];
    assert_near(sums[0], 1, 1e-12);
    assert_near(sums[1], 1, 1e-12);
    for (size_t k = 0; k < 8; k++) /* the second target is the last snapshot */
        assert_near(weights[2 * k + 1], k == 7, 1e-9);
    targets[0].t = 500;
    assert_int_equal(posthoc_ema_weights(weights, snapshots, 8, targets, 2, "profile", &error),
                     POSTHOC_EMA_ERR_TARGET);
    assert_int_equal(posthoc_ema_weights(weights, snapshots, 8, targets, 2, "motion", &error),
                     POSTHOC_EMA_ERR_USAGE);
    assert_string_equal(error.message, "metric: 'motion' is not one of walk|profile");
}

/* ---- Series and plan ---- */

static void a_design_is_that_of_the_question(void **state)
{
    (void)state;
    static const double sigma_rels[] = {0.05, 0.1, 0.2}, ats[] = {5000};
    struct posthoc_ema_design_options options = {.size = sizeof(options),
                                                 .until = 10000,
                                                 .model_elements = 1000,
                                                 .disk_bytes = 100000,
                                                 .sigma_rels = sigma_rels,
                                                 .n_sigma_rels = 3,
                                                 .ats = ats,
                                                 .n_ats = 1,
                                                 .dtype = "f32"};
    struct posthoc_ema_design *design = NULL;
    struct posthoc_ema_error error = {""};
    assert_int_equal(posthoc_ema_design_make(&design, &options, &error), POSTHOC_EMA_OK);
    struct posthoc_ema_design_info info = {.size = sizeof(info)};
    assert_int_equal(posthoc_ema_design_info(design, &info, &error), POSTHOC_EMA_OK);
    assert_true(info.n_widths >= 1 && info.n_widths <= 3);
    assert_true(info.disk_bytes == 4000 * info.n_widths * info.n_times);
    assert_true(info.disk_bytes <= 100000);
    assert_string_equal(info.dtype, "f32");
    assert_true(info.times[info.n_times - 1] == 10000);
    bool has_middle = false;
    for (size_t i = 0; i < info.n_times; i++)
        has_middle = has_middle || info.times[i] == 5000;
    assert_true(has_middle);
    double gamma = 0;
    assert_int_equal(posthoc_ema_gamma(&gamma, info.widths[0], &error), POSTHOC_EMA_OK);
    assert_near(info.gammas[0], gamma, 1e-9 * gamma);
    assert_true(info.worst_error > 0 && info.worst_error < 1e-3);
    posthoc_ema_design_free(design);
    options.until = 0.5;
    assert_int_equal(posthoc_ema_design_make(&design, &options, &error), POSTHOC_EMA_ERR_USAGE);
    assert_non_null(strstr(error.message,
                           "until: expected a training of 2 steps or more, a whole number, found"));
    options.until = 10000;
    options.motion = "sideways";
    assert_int_equal(posthoc_ema_design_make(&design, &options, &error), POSTHOC_EMA_ERR_USAGE);
    options.motion = NULL;
    options.from = 0.1;
    options.to = 0.2;
    assert_int_equal(posthoc_ema_design_make(&design, &options, &error), POSTHOC_EMA_ERR_USAGE);
    assert_string_equal(error.message, "sigma_rels: expected these or a range");
    options.from = options.to = 0;
    options.disk_bytes = 100;
    assert_int_equal(posthoc_ema_design_make(&design, &options, &error), POSTHOC_EMA_ERR_TARGET);
}

/* Numbers of: posthoc-ema design --until 10000 --model 4K --disk 100K --sigma-rel 0.05:0.2
 * --dtype f32 --json, without and with --input-sigma. */
static void a_design_for_a_range_is_that_of_the_command(void **state)
{
    (void)state;
    static const double fixed[] = {0.1, 0.05};
    struct posthoc_ema_design_options options = {.size = sizeof(options),
                                                 .until = 10000,
                                                 .model_elements = 1000,
                                                 .disk_bytes = 100000,
                                                 .from = 0.05,
                                                 .to = 0.2,
                                                 .dtype = "f32"};
    struct posthoc_ema_design *design = NULL;
    struct posthoc_ema_error error = {""};
    struct posthoc_ema_design_info info = {.size = sizeof(info)};
    assert_fine(posthoc_ema_design_make(&design, &options, &error), error);
    assert_fine(posthoc_ema_design_info(design, &info, &error), error);
    assert_int_equal(info.n_widths, 3);
    assert_near(info.widths[1], 0.124, 1e-12);
    assert_int_equal(info.n_times, 8);
    assert_near(info.times[0], 1613, 0);
    assert_near(info.worst_sigma_rel, 0.07530977765853059, 1e-12);
    assert_near(info.worst_error, 1.9518055860089627e-06, 1e-12);
    posthoc_ema_design_free(design);

    options.input_sigmas = fixed;
    options.n_input_sigmas = 2;
    assert_fine(posthoc_ema_design_make(&design, &options, &error), error);
    assert_fine(posthoc_ema_design_info(design, &info, &error), error);
    assert_int_equal(info.n_widths, 2);
    assert_near(info.widths[0], 0.05, 0);
    posthoc_ema_design_free(design);
    static const double twice[] = {0.1, 0.1}, none[] = {0.4};
    options.input_sigmas = twice;
    assert_int_equal(posthoc_ema_design_make(&design, &options, &error), POSTHOC_EMA_ERR_USAGE);
    options.input_sigmas = none;
    options.n_input_sigmas = 1;
    assert_int_equal(posthoc_ema_design_make(&design, &options, &error), POSTHOC_EMA_ERR_TARGET);
    options.n_input_sigmas = 0;
    options.from = 0.3;
    assert_int_equal(posthoc_ema_design_make(&design, &options, &error), POSTHOC_EMA_ERR_USAGE);
    options.to = 0.4;
    assert_int_equal(posthoc_ema_design_make(&design, &options, &error), POSTHOC_EMA_ERR_TARGET);
}

static void a_design_takes_the_motion_of_another_training(void **state)
{
    (void)state;
    struct posthoc_ema_design_options options = {.size = sizeof(options),
                                                 .until = 10000,
                                                 .model_elements = 1000,
                                                 .disk_bytes = 100000,
                                                 .from = 0.05,
                                                 .to = 0.2};
    char *path = support_fixture("edm2/snapshots");
    const struct posthoc_ema_series_options last = {.size = sizeof(last), .last = 1};
    struct posthoc_ema_series *series = open_fixture(), *alone = NULL;
    struct posthoc_ema_error error = {""};
    assert_fine(posthoc_ema_series_open(&alone, path, &last, &error), error);
    struct posthoc_ema_plan *plan = plan_for(series, 0.1, NULL),
                            *still = plan_for(alone, 0.1, NULL);
    struct posthoc_ema_design *design = NULL;
    struct posthoc_ema_design_info info = {.size = sizeof(info)};
    options.like = plan;
    options.motion = "walk";
    assert_int_equal(posthoc_ema_design_make(&design, &options, &error), POSTHOC_EMA_ERR_USAGE);
    options.motion = NULL;
    options.like = still;
    assert_int_equal(posthoc_ema_design_make(&design, &options, &error), POSTHOC_EMA_ERR_INPUTS);
    assert_non_null(strstr(error.message, "how parameters move"));
    options.like = plan;
    assert_fine(posthoc_ema_design_make(&design, &options, &error), error);
    posthoc_ema_plan_free(still); /* a design does not need the plan */
    posthoc_ema_plan_free(plan);
    posthoc_ema_series_close(alone);
    posthoc_ema_series_close(series);
    assert_fine(posthoc_ema_design_info(design, &info, &error), error);
    double like = info.worst_error;
    posthoc_ema_design_free(design);
    options.like = NULL;
    assert_fine(posthoc_ema_design_make(&design, &options, &error), error);
    assert_fine(posthoc_ema_design_info(design, &info, &error), error);
    assert_true(like > 0 && like != info.worst_error);
    posthoc_ema_design_free(design);
    free(path);
}

static void a_series_describes_its_snapshots(void **state)
{
    (void)state;
    struct posthoc_ema_series *series = open_fixture();
    struct posthoc_ema_error error = {""};
    struct posthoc_ema_series_info info = {.size = sizeof(info)};
    assert_int_equal(posthoc_ema_series_info(series, &info, &error), POSTHOC_EMA_OK);
    assert_string_equal(info.layout, "edm2");
    assert_int_equal(info.n_snapshots, 8);
    assert_int_equal(info.n_tensors, 8);
    assert_int_equal(info.n_averaged, 6);
    struct posthoc_ema_snapshot snapshot = {.size = sizeof(snapshot)};
    assert_int_equal(posthoc_ema_series_snapshot(series, 7, &snapshot, &error), POSTHOC_EMA_OK);
    assert_string_equal(snapshot.file, "network-snapshot-0000016-0.100.pkl");
    assert_near(snapshot.named_time, 16, 0);
    assert_near(snapshot.time, 16384, 0); /* (16 * 1000 + 999) / 1024 * 1024 images */
    assert_near(snapshot.sigma_rel, 0.1, 0);
    assert_true(snapshot.bytes > 1000);
    assert_int_equal(posthoc_ema_series_snapshot(series, 8, &snapshot, &error),
                     POSTHOC_EMA_ERR_USAGE);
    assert_string_equal(error.message, "snapshot 8: there are 8, from 0");
    posthoc_ema_series_close(series);
    posthoc_ema_series_close(NULL);
}

static void a_series_says_what_was_recognised(void **state)
{
    (void)state;
    struct posthoc_ema_series *series = NULL;
    struct posthoc_ema_error error = {""};
    char *path = support_fixture("reports/diffusion_policy/run");
    static const char *const profiles[] = {"ema:decay=0.9"};
    const struct posthoc_ema_series_options options = {
        .size = sizeof(options), .input_profiles = profiles, .n_input_profiles = 1};
    assert_fine(posthoc_ema_series_open(&series, path, &options, &error), error);
    struct posthoc_ema_series_info info = {.size = sizeof(info)};
    assert_fine(posthoc_ema_series_info(series, &info, &error), error);
    assert_string_equal(info.times, "names");
    assert_string_equal(info.field, "^epoch=(?<time>[0-9]+)");
    assert_int_equal(info.n_sets, 2);
    struct posthoc_ema_set set = {.size = sizeof(set)};
    assert_fine(posthoc_ema_series_set(series, 1, &set, &error), error);
    assert_string_equal(set.name, "state_dicts.model");
    assert_string_equal(set.role, "raw");
    assert_string_equal(set.by, "data");
    assert_true(set.margin > 0.5 && set.margin < 1);
    assert_int_equal(posthoc_ema_series_set(series, 2, &set, &error), POSTHOC_EMA_ERR_USAGE);
    assert_string_equal(error.message, "set 2: there are 2, from 0");
    assert_int_equal(info.n_left_out, 1);
    struct posthoc_ema_left_out file = {.size = sizeof(file)};
    assert_fine(posthoc_ema_series_left_out(series, 0, &file, &error), error);
    assert_string_equal(file.file, "latest.ckpt");
    assert_non_null(file.reason);
    assert_int_equal(posthoc_ema_series_left_out(series, 1, &file, &error), POSTHOC_EMA_ERR_USAGE);
    posthoc_ema_series_close(series);
    free(path);
}

static void options_of_a_series_are_used(void **state)
{
    (void)state;
    struct posthoc_ema_series *series = NULL;
    struct posthoc_ema_error error = {""};
    char *path = support_fixture("edm2/snapshots"),
         *ema_pytorch = support_fixture("ema_pytorch/snapshots");
    const char *excludes[] = {"conv"};
    struct posthoc_ema_series_options options = {.size = sizeof(options),
                                                 .from = 8,
                                                 .to = 12,
                                                 .last = 1,
                                                 .excludes = excludes,
                                                 .n_excludes = 0};
    assert_int_equal(posthoc_ema_series_open(&series, path, &options, &error), POSTHOC_EMA_OK);
    struct posthoc_ema_series_info info = {.size = sizeof(info)};
    assert_int_equal(posthoc_ema_series_info(series, &info, &error), POSTHOC_EMA_OK);
    assert_int_equal(info.n_snapshots, 2);
    posthoc_ema_series_close(series);

    struct posthoc_ema_series *unopened = NULL;
    assert_int_equal(posthoc_ema_series_open(&unopened, ema_pytorch, NULL, &error),
                     POSTHOC_EMA_ERR_INPUTS); /* no file has their settings */
    assert_null(unopened);
    assert_non_null(strstr(error.message, "update_every"));
    static const double sigmas[] = {0.05, 0.28};
    options = (struct posthoc_ema_series_options){
        .size = sizeof(options), .input_sigmas = sigmas, .n_input_sigmas = 2, .update_every = 5};
    enum posthoc_ema_status status =
        posthoc_ema_series_open(&unopened, ema_pytorch, &options, &error);
    assert_fine(status, error);
    posthoc_ema_series_close(unopened);
    assert_int_equal(posthoc_ema_series_open(&unopened, "/nowhere", NULL, &error),
                     POSTHOC_EMA_ERR_FILE);
    assert_int_equal(posthoc_ema_series_open(&unopened, "/no\x1B[31m\xE2\x80\xAE", NULL, &error),
                     POSTHOC_EMA_ERR_FILE);
    assert_non_null(strstr(error.message, "/no\\x1b[31m\\u202e: "));
    assert_int_equal(posthoc_ema_series_open(&unopened, NULL, NULL, &error), POSTHOC_EMA_ERR_USAGE);
    free(path);
    free(ema_pytorch);
}

/* Each option of the command has an effect: on times, on snapshots, on what a profile is. */
static void options_tell_what_happened_to_the_averages(void **state)
{
    (void)state;
    struct posthoc_ema_series *series = NULL;
    struct posthoc_ema_error error = {""};
    char *path = support_fixture("edm2/snapshots"),
         *titan = support_fixture("trainers/titan/checkpoint");
    const char *resets[] = {"6"};
    struct posthoc_ema_series_options options = {
        .size = sizeof(options), .resets = resets, .n_resets = 1};
    assert_fine(posthoc_ema_series_open(&series, path, &options, &error), error);
    struct posthoc_ema_plan *plan = plan_for(series, 0.08, "profile");
    struct posthoc_ema_target target = {.size = sizeof(target)};
    assert_fine(posthoc_ema_plan_target(plan, 0, &target, &error), error);
    /* of: posthoc-ema weights --metric profile --sigma-rel 0.08 --reset-at 6; without -0.00097 */
    assert_near(target.weights[3], -0.0015387152856, 1e-10);
    posthoc_ema_plan_free(plan);
    posthoc_ema_series_close(series);
    resets[0] = "soon";
    assert_int_equal(posthoc_ema_series_open(&series, path, &options, &error),
                     POSTHOC_EMA_ERR_USAGE);

    struct posthoc_ema_snapshot snapshot = {.size = sizeof(snapshot)};
    options = (struct posthoc_ema_series_options){.size = sizeof(options), .time_offset = 1};
    assert_fine(posthoc_ema_series_open(&series, path, &options, &error), error);
    assert_fine(posthoc_ema_series_snapshot(series, 7, &snapshot, &error), error);
    assert_true(snapshot.time > 16384);
    posthoc_ema_series_close(series);
    options.time_offset = (double)NAN;
    assert_int_equal(posthoc_ema_series_open(&series, path, &options, &error),
                     POSTHOC_EMA_ERR_USAGE);

    static const char *const uses[] = {NULL, "averages", "raw"};
    size_t n[3];
    for (size_t i = 0; i < 3; i++) {
        static const char *const profile = "titan:fraction=0.1";
        options = (struct posthoc_ema_series_options){.size = sizeof(options),
                                                      .use = uses[i],
                                                      .input_profiles = &profile,
                                                      .n_input_profiles = 1};
        struct posthoc_ema_series_info info = {.size = sizeof(info)};
        assert_fine(posthoc_ema_series_open(&series, titan, &options, &error), error);
        assert_fine(posthoc_ema_series_info(series, &info, &error), error);
        n[i] = info.n_snapshots;
        posthoc_ema_series_close(series);
    }
    assert_true(n[1] > 0 && n[2] > 0);
    assert_int_equal(n[0], n[1] + n[2]);
    options.use = "both";
    assert_int_equal(posthoc_ema_series_open(&series, titan, &options, &error),
                     POSTHOC_EMA_ERR_USAGE);
    assert_string_equal(error.message, "use: 'both' is not one of all|averages|raw");
    free(path);
    free(titan);
}

static void a_plan_takes_checks_and_a_schedule(void **state)
{
    (void)state;
    static const double sigma_rel = 0.08;
    struct posthoc_ema_series *series = open_fixture();
    struct posthoc_ema_plan *plan = NULL;
    struct posthoc_ema_error error = {""};
    struct posthoc_ema_plan_options options = {
        .size = sizeof(options), .sigma_rels = &sigma_rel, .n_sigma_rels = 1, .checks = "off"};
    struct posthoc_ema_plan_info info = {.size = sizeof(info)};
    assert_fine(posthoc_ema_plan_make(&plan, series, &options, &error), error);
    assert_fine(posthoc_ema_plan_info(plan, &info, &error), error);
    assert_string_equal(info.verdict, "unknown");
    posthoc_ema_plan_free(plan);
    options.checks = "never";
    assert_int_equal(posthoc_ema_plan_make(&plan, series, &options, &error), POSTHOC_EMA_ERR_USAGE);
    assert_string_equal(error.message, "checks: 'never' is not one of warn|error|off");
    options.checks = NULL;
    options.schedule = "cosine";
    assert_fine(posthoc_ema_plan_make(&plan, series, &options, &error), error);
    posthoc_ema_plan_free(plan);
    options.schedule = "/nowhere/rates.csv";
    assert_int_equal(posthoc_ema_plan_make(&plan, series, &options, &error), POSTHOC_EMA_ERR_FILE);
    assert_non_null(strstr(error.message, "/nowhere/rates.csv"));
    options = (struct posthoc_ema_plan_options){.size = sizeof(options)};
    assert_int_equal(posthoc_ema_plan_make(&plan, series, &options, &error), POSTHOC_EMA_ERR_USAGE);
    assert_string_equal(error.message, "no target: give sigma_rel= or profile=");
    posthoc_ema_series_close(series);
}

static void a_plan_has_weights_and_their_errors(void **state)
{
    (void)state;
    struct posthoc_ema_series *series = open_fixture();
    struct posthoc_ema_plan *plan = plan_for(series, 0.1, "profile");
    posthoc_ema_series_close(series); /* the plan does not need it */
    struct posthoc_ema_error error = {""};
    struct posthoc_ema_plan_info info = {.size = sizeof(info)};
    struct posthoc_ema_target target = {.size = sizeof(target)};
    struct posthoc_ema_snapshot snapshot = {.size = sizeof(snapshot)};
    assert_int_equal(posthoc_ema_plan_info(plan, &info, &error), POSTHOC_EMA_OK);
    assert_string_equal(info.metric, "profile");
    assert_int_equal(info.n_targets, 1);
    assert_int_equal(posthoc_ema_plan_target(plan, 0, &target, &error), POSTHOC_EMA_OK);
    assert_int_equal(posthoc_ema_plan_snapshot(plan, 7, &snapshot, &error), POSTHOC_EMA_OK);
    for (size_t k = 0; k < info.n_snapshots; k++) /* the target is snapshot 7 */
        assert_near(target.weights[k], k == 7, 1e-9);
    assert_near(target.profile_error, 0, 1e-9);
    assert_true(target.predicted_error >= 0);
    assert_int_equal(posthoc_ema_plan_target(plan, 1, &target, &error), POSTHOC_EMA_ERR_USAGE);
    assert_null(posthoc_ema_output(plan, 0));
    posthoc_ema_plan_free(plan);
    posthoc_ema_plan_free(NULL);
}

static void a_plan_above_its_error_is_refused(void **state)
{
    (void)state;
    struct posthoc_ema_series *series = open_fixture();
    struct posthoc_ema_plan *plan = NULL;
    struct posthoc_ema_error error = {""};
    double sigma_rel = 0.2;
    struct posthoc_ema_plan_options options = {
        .size = sizeof(options), .sigma_rels = &sigma_rel, .n_sigma_rels = 1, .max_error = 1e-9};
    assert_int_equal(posthoc_ema_plan_make(&plan, series, &options, &error), POSTHOC_EMA_NO);
    assert_non_null(strstr(error.message, "is above max_error=1e-09"));
    assert_null(plan);
    options.max_error = 0;
    options.metric = "walks";
    assert_int_equal(posthoc_ema_plan_make(&plan, series, &options, &error), POSTHOC_EMA_ERR_USAGE);
    options.metric = NULL;
    sigma_rel = 0.3;
    assert_int_equal(posthoc_ema_plan_make(&plan, series, &options, &error),
                     POSTHOC_EMA_ERR_TARGET);
    posthoc_ema_series_close(series);
}

/* ---- Versions ---- */

static void unknown_options_are_refused_and_shorter_structs_accepted(void **state)
{
    (void)state;
    struct posthoc_ema_series *series = NULL;
    struct posthoc_ema_error error = {""};
    char *path = support_fixture("edm2/snapshots");
    struct {
        struct posthoc_ema_series_options known;
        int newer;
    } options = {.known = {.size = 0}, .newer = 0};
    assert_int_equal(posthoc_ema_series_open(&series, path, &options.known, &error),
                     POSTHOC_EMA_ERR_USAGE);
    assert_non_null(strstr(error.message, "expected size to be sizeof"));
    options.known.size = sizeof(options);
    options.newer = 1;
    assert_int_equal(posthoc_ema_series_open(&series, path, &options.known, &error),
                     POSTHOC_EMA_ERR_USAGE);
    assert_non_null(strstr(error.message, "newer version"));
    options.newer = 0;
    assert_int_equal(posthoc_ema_series_open(&series, path, &options.known, &error),
                     POSTHOC_EMA_OK);
    struct posthoc_ema_series_info info;
    memset(&info, 0x5a, sizeof(info));
    info.size = offsetof(struct posthoc_ema_series_info, n_snapshots); /* an older version */
    assert_int_equal(posthoc_ema_series_info(series, &info, &error), POSTHOC_EMA_OK);
    assert_string_equal(info.layout, "edm2");
    assert_int_equal(info.n_snapshots, (size_t)0x5a5a5a5a5a5a5a5a);
    posthoc_ema_series_close(series);
    free(path);
}

/* ---- Runs ---- */

struct seen {
    int n_reports, stops_at;
    uint64_t done_bytes, total_bytes;
    const struct posthoc_ema_plan *plan; /* describes itself during its run; or NULL */
};

static int note(void *context, const struct posthoc_ema_progress *progress)
{
    struct seen *seen = context;
    seen->done_bytes = progress->done_bytes;
    seen->total_bytes = progress->total_bytes;
    struct posthoc_ema_tensor tensor = {.size = sizeof(tensor)};
    struct posthoc_ema_target target = {.size = sizeof(target)};
    if (seen->plan) {
        assert_int_equal(posthoc_ema_plan_tensor(seen->plan, 0, "f32", &tensor, NULL), 0);
        assert_string_equal(tensor.dtype, "F32");
        assert_int_equal(posthoc_ema_plan_target(seen->plan, 0, &target, NULL), 0);
        assert_true(target.sigma_rel == 0.12);
    }
    return ++seen->n_reports == seen->stops_at;
}

static void a_run_replaces_outputs_only_on_request(void **state)
{
    (void)state;
    struct posthoc_ema_series *series = open_fixture();
    struct posthoc_ema_plan *plan = plan_for(series, 0.12, NULL);
    struct posthoc_ema_error error = {""};
    char *out = support_tmp_path("phema.safetensors");
    struct seen seen = {.plan = plan};
    struct posthoc_ema_run_options options = {
        .size = sizeof(options), .dtype = "f32", .progress = note, .context = &seen};
    struct posthoc_ema_result result = {.size = sizeof(result)};
    enum posthoc_ema_status status = posthoc_ema_run(plan, out, &options, &result, &error);
    assert_fine(status, error);
    assert_true(is_there(out));
    assert_string_equal(posthoc_ema_output(plan, 0), out);
    assert_true(seen.n_reports >= 1);
    assert_int_equal(seen.done_bytes, seen.total_bytes);
    assert_int_equal(result.read_bytes, seen.total_bytes);
    assert_int_equal(result.n_averaged + result.n_copied + result.n_constant, 8);
    assert_int_equal(posthoc_ema_run(plan, out, &options, NULL, &error), POSTHOC_EMA_ERR_OUTPUT);
    assert_non_null(strstr(error.message, out));
    options.replaces = 1;
    assert_int_equal(posthoc_ema_run(plan, out, &options, NULL, &error), POSTHOC_EMA_OK);
    options.dtype = "f8";
    assert_int_equal(posthoc_ema_run(plan, out, &options, NULL, &error), POSTHOC_EMA_ERR_USAGE);
    assert_string_equal(error.message, "dtype: 'f8' is not one of auto|same|f32|f16|bf16");
    (void)unlink(out);
    free(out);
    posthoc_ema_plan_free(plan);
    posthoc_ema_series_close(series);
}

static void a_run_that_is_cancelled_leaves_nothing(void **state)
{
    (void)state;
    struct posthoc_ema_series *series = open_fixture();
    struct posthoc_ema_plan *plan = plan_for(series, 0.12, NULL);
    struct posthoc_ema_error error = {""};
    char *out = support_tmp_path("cancelled/phema.safetensors");
    char *directory = support_tmp_path("cancelled"),
         *partial = support_tmp_path("cancelled/phema.safetensors.partial");
    assert_int_equal(mkdir(directory, 0777), 0);
    struct seen seen = {.stops_at = 1};
    struct posthoc_ema_run_options options = {
        .size = sizeof(options), .progress = note, .context = &seen};
    struct posthoc_ema_result result = {.size = sizeof(result)};
    assert_int_equal(posthoc_ema_run(plan, out, &options, &result, &error), POSTHOC_EMA_CANCELLED);
    assert_int_equal(seen.n_reports, 1);
    assert_false(is_there(out));
    assert_false(is_there(partial));
    assert_null(posthoc_ema_output(plan, 0));
    seen.stops_at = 0;
    assert_int_equal(posthoc_ema_run(plan, out, &options, &result, &error), POSTHOC_EMA_OK);
    assert_true(is_there(out));
    (void)unlink(out);
    (void)rmdir(directory);
    free(directory);
    free(partial);
    free(out);
    posthoc_ema_plan_free(plan);
    posthoc_ema_series_close(series);
}

/* ---- The process ---- */

static void run_both_ways(void)
{
    struct posthoc_ema_series *series = open_fixture();
    struct posthoc_ema_plan *plan = plan_for(series, 0.15, NULL);
    char *out = support_tmp_path("quiet.safetensors");
    assert_int_equal(posthoc_ema_run(plan, out, NULL, NULL, NULL), POSTHOC_EMA_OK);
    assert_int_equal(posthoc_ema_run(plan, out, NULL, NULL, NULL), POSTHOC_EMA_ERR_OUTPUT);
    (void)unlink(out);
    free(out);
    posthoc_ema_plan_free(plan);
    posthoc_ema_series_close(series);
}

static void nothing_is_printed_and_no_signal_is_handled(void **state)
{
    (void)state;
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGBUS, SIGXFSZ, SIGUSR1};
    struct sigaction before[ARRAY_LEN(signals)]; /* cmocka handles some signals itself */
    for (size_t i = 0; i < ARRAY_LEN(signals); i++)
        assert_int_equal(sigaction(signals[i], NULL, &before[i]), 0);
    char *log = support_tmp_path("streams");
    int file = open(log, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    (void)fflush(stdout);
    int streams[2] = {dup(1), dup(2)};
    assert_true(file >= 0 && dup2(file, 1) == 1 && dup2(file, 2) == 2);
    run_both_ways();
    (void)fflush(stdout);
    assert_true(dup2(streams[0], 1) == 1 && dup2(streams[1], 2) == 2);
    struct stat info;
    assert_int_equal(fstat(file, &info), 0);
    assert_int_equal(info.st_size, 0);
    for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
        struct sigaction action;
        assert_int_equal(sigaction(signals[i], NULL, &action), 0);
        assert_true(action.sa_handler == before[i].sa_handler);
    }
    (void)close(file);
    (void)close(streams[0]);
    (void)close(streams[1]);
    (void)unlink(log);
    free(log);
}

struct task {
    double sigma_rel;
    char *out;
    enum posthoc_ema_status status;
};

static void *execute(void *argument)
{
    struct task *task = argument;
    struct posthoc_ema_series *series = open_fixture();
    struct posthoc_ema_plan *plan = plan_for(series, task->sigma_rel, NULL);
    task->status = posthoc_ema_run(plan, task->out, NULL, NULL, NULL);
    posthoc_ema_plan_free(plan);
    posthoc_ema_series_close(series);
    return NULL;
}

static void runs_in_threads_are_independent(void **state)
{
    (void)state;
    struct task tasks[4];
    pthread_t threads[ARRAY_LEN(tasks)];
    for (size_t i = 0; i < ARRAY_LEN(tasks); i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "side-%zu.safetensors", i);
        tasks[i] =
            (struct task){.sigma_rel = 0.06 + 0.02 * (double)i, .out = support_tmp_path(name)};
        assert_int_equal(pthread_create(&threads[i], NULL, execute, &tasks[i]), 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(tasks); i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(tasks[i].status, POSTHOC_EMA_OK);
        assert_int_equal(unlink(tasks[i].out), 0);
        free(tasks[i].out);
    }
}

/* OpenBLAS solves for 704 snapshots. The threads, processors and environment of the process do not
 * change. */
static void a_large_solve_leaves_the_process_as_it_was(void **state)
{
    (void)state;
    enum { N = 704 };
    static struct posthoc_ema_profile snapshots[N];
    static double weights[N];
    for (size_t i = 0; i < N; i++)
        snapshots[i] = (struct posthoc_ema_profile){.gamma = i % 2 ? 6.94 : 16.97,
                                                    .t = 1000 * (double)(i / 2 + 1)};
    cpu_set_t before, after;
    size_t n_threads = support_count_threads();
    assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
    const char *const *variables = (const char *const *)environ;
    size_t n_variables = 0;
    while (variables[n_variables])
        n_variables++;
    struct posthoc_ema_error error = {""};
    assert_fine(posthoc_ema_weights(weights, snapshots, N, &snapshots[N - 1], 1, "profile", &error),
                error);
    assert_near(weights[N - 1], 1, 1e-15);
    support_assert_threads_become(n_threads);
    assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
    assert_true(CPU_EQUAL(&before, &after));
    assert_ptr_equal(environ, variables);
    assert_null(variables[n_variables]);
}

static void the_version_equals_that_of_the_header(void **state)
{
    (void)state;
    char wanted[32];
    (void)snprintf(wanted, sizeof(wanted), "%d.%d.%d", POSTHOC_EMA_VERSION_MAJOR,
                   POSTHOC_EMA_VERSION_MINOR, POSTHOC_EMA_VERSION_PATCH);
    assert_string_equal(posthoc_ema_version(), wanted);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(gammas_and_betas_match_the_paper),
    cmocka_unit_test(weights_without_files_sum_to_one),
    cmocka_unit_test(a_design_is_that_of_the_question),
    cmocka_unit_test(a_design_for_a_range_is_that_of_the_command),
    cmocka_unit_test(a_design_takes_the_motion_of_another_training),
    cmocka_unit_test(a_series_describes_its_snapshots),
    cmocka_unit_test(a_series_says_what_was_recognised),
    cmocka_unit_test(options_of_a_series_are_used),
    cmocka_unit_test(options_tell_what_happened_to_the_averages),
    cmocka_unit_test(a_plan_takes_checks_and_a_schedule),
    cmocka_unit_test(a_plan_has_weights_and_their_errors),
    cmocka_unit_test(a_plan_above_its_error_is_refused),
    cmocka_unit_test(unknown_options_are_refused_and_shorter_structs_accepted),
    cmocka_unit_test(a_run_replaces_outputs_only_on_request),
    cmocka_unit_test(a_run_that_is_cancelled_leaves_nothing),
    cmocka_unit_test(nothing_is_printed_and_no_signal_is_handled),
    cmocka_unit_test(runs_in_threads_are_independent),
    cmocka_unit_test(a_large_solve_leaves_the_process_as_it_was),
    cmocka_unit_test(the_version_equals_that_of_the_header),
};
TEST_GROUP(tests)
