// SPDX-License-Identifier: Apache-2.0
/* A simulated training whose averages are kept at every step: what happens in it and no label tells
 * is no wrong label, but times that are late are. */
#include "series_checks.h"

#include <stdio.h>
#include <string.h>

#include "support.h"

#define N_TIMES ((size_t)6)
#define N       (2 * N_TIMES)
#define N_ELEMS ((size_t)256)
#define APART   ((size_t)384) /* steps */

/* Of two widths at each time; the parameters walk. */
struct training {
    double values[N][N_ELEMS];
    struct phema_snapshot snapshots[N];
};

static double draw(uint64_t *random)
{
    double sum = 0;
    for (int i = 0; i < 12; i++) {
        *random = *random * 6364136223846793005U + 1442695040888963407U;
        sum += (double)(*random >> 11) * 0x1p-53;
    }
    return sum - 6;
}

/* From drop_at on, each step is an eighth as long. */
static void train(struct training *training, size_t drop_at, uint64_t seed)
{
    static const double sigma_rels[] = {0.05, 0.1};
    static char labels[N][32];
    double params[N_ELEMS], averages[2][N_ELEMS];
    struct phema_profile profiles[2] = {{.shape = PHEMA_SHAPE_POWER}, {.shape = PHEMA_SHAPE_POWER}};
    struct phema_error err = {0};
    memset(training, 0, sizeof(*training));
    for (size_t w = 0; w < 2; w++)
        assert_ok(phema_gamma_from_sigma_rel(&profiles[w].gamma, sigma_rels[w], &err), &err);
    for (size_t e = 0; e < N_ELEMS; e++)
        params[e] = averages[0][e] = averages[1][e] = draw(&seed);
    for (size_t step = 1; step <= N_TIMES * APART; step++) {
        for (size_t e = 0; e < N_ELEMS; e++)
            params[e] += 1e-3 * (step > drop_at ? 0.125 : 1) * draw(&seed);
        for (size_t w = 0; w < 2; w++) {
            double fresh = 1 - phema_profile_beta(&profiles[w], step);
            for (size_t e = 0; e < N_ELEMS; e++)
                averages[w][e] += fresh * (params[e] - averages[w][e]);
            if (step % APART)
                continue;
            size_t k = 2 * (step / APART - 1) + w;
            memcpy(training->values[k], averages[w], sizeof(averages[w]));
            (void)snprintf(labels[k], sizeof(labels[k]), "%zu-%g", step, sigma_rels[w]);
            training->snapshots[k] = (struct phema_snapshot){.label = labels[k],
                                                             .time = (double)step,
                                                             .named_time = (double)step,
                                                             .profile = profiles[w]};
            training->snapshots[k].profile.t = (double)step;
        }
    }
}

static void check(struct phema_series_checks *checks, struct training *training)
{
    static double rounding[N], sizes[N], spacings[N_ELEMS];
    static size_t tensors[N_ELEMS];
    const struct phema_series series = {.snapshots = training->snapshots, .n = N};
    for (size_t k = 0; k < N; k++)
        sizes[k] = 1;
    struct phema_sample sample = {.n = N,
                                  .n_elems = N_ELEMS,
                                  .values = &training->values[0][0],
                                  .tensors = tensors,
                                  .spacings = spacings,
                                  .rounding = rounding,
                                  .sizes = sizes,
                                  .mean_square = 1};
    struct phema_motion motion = {0};
    struct phema_error err = {0};
    assert_ok(series_checks_make(checks, &motion, &series, NULL, &sample, SERIES_FITS_LABELS, &err),
              &err);
    phema_motion_clear(&motion);
}

static void true_labels_fit(void **state)
{
    (void)state;
    struct training training;
    struct phema_series_checks checks = {0};
    train(&training, SIZE_MAX, 1);
    check(&checks, &training);
    assert_int_equal(checks.verdict, PHEMA_SERIES_FITS);
    phema_series_checks_clear(&checks);
}

static void a_step_of_the_learning_rate_is_no_wrong_label(void **state)
{
    (void)state;
    struct training training;
    struct phema_series_checks checks = {0};
    train(&training, 2 * APART + APART * 3 / 4, 1);
    check(&checks, &training);
    assert_int_equal(checks.verdict, PHEMA_SERIES_DOUBTFUL);
    assert_true(checks.max_z > 3.5); /* what makes others wrong */
    assert_ptr_equal(strstr(checks.reason, "something happened between times 768 and 1152"),
                     checks.reason);
    phema_series_checks_clear(&checks);
}

static void another_training_is_no_event(void **state)
{
    (void)state;
    struct training training, other;
    struct phema_series_checks checks = {0};
    train(&other, SIZE_MAX, 2);
    train(&training, SIZE_MAX, 1);
    memcpy(training.values[N - 1], other.values[N - 1], sizeof(other.values[N - 1]));
    check(&checks, &training);
    assert_int_equal(checks.verdict, PHEMA_SERIES_WRONG);
    phema_series_checks_clear(&checks);
}

/* by: APART to add or to take away; the first time that is left is the second one. */
static void times_are_moved(double by, const char *reason)
{
    struct training training;
    struct phema_series_checks checks = {0};
    train(&training, SIZE_MAX, 1);
    for (size_t k = 0; k < N; k++) {
        struct phema_snapshot *snapshot = &training.snapshots[k];
        snapshot->time = snapshot->named_time = snapshot->profile.t = snapshot->time + by;
    }
    check(&checks, &training);
    assert_int_equal(checks.verdict, PHEMA_SERIES_WRONG);
    assert_ptr_equal(strstr(checks.reason, reason), checks.reason);
    phema_series_checks_clear(&checks);
}

static void late_times_are_noticed(void **state)
{
    (void)state;
    times_are_moved(APART, "the snapshots fit times that are earlier by about 384");
}

static void early_times_are_noticed(void **state)
{
    (void)state;
    times_are_moved(-0.75 * APART, "the snapshots fit times that are later by about 384");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(true_labels_fit),
    cmocka_unit_test(a_step_of_the_learning_rate_is_no_wrong_label),
    cmocka_unit_test(another_training_is_no_event),
    cmocka_unit_test(late_times_are_noticed),
    cmocka_unit_test(early_times_are_noticed),
};
TEST_GROUP(tests)
