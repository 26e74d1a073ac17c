// SPDX-License-Identifier: Apache-2.0
/* test_pruning.c - exactly the deletable snapshots are listed. The advised number of save times is
 * enough, and one fewer is not. */
#include "support.h"

#include <math.h>
#include <stdlib.h>

#include "phema/solver.h"
#include "profiles.h"

#define N 24

struct series {
    struct phema_profile snapshots[N];
    double rounding[N];
    struct phema_profile targets[3];
    struct phema_mix mixes[3];
    double ends[2], wander[2], jitter[2];
    struct phema_motion motion;
    struct phema_problem problem;
};

/* Two widths at twelve times; the motion slows down half-way */
static void make(struct series *series, bool has_motion)
{
    for (size_t i = 0; i < N; i++) {
        series->snapshots[i] =
            (struct phema_profile){.gamma = i % 2 ? 6.937203937601809 : 16.97219860230345,
                                   .t = 100.0 * (double)(i / 2 + 1)};
        series->rounding[i] = 1e-6;
    }
    const double gammas[] = {12, 5, 1.5};
    for (size_t k = 0; k < 3; k++) {
        series->targets[k] = (struct phema_profile){.gamma = gammas[k], .t = 1200};
        series->mixes[k] = (struct phema_mix){.parts = &series->targets[k], .n_parts = 1};
    }
    series->ends[0] = 600;
    series->ends[1] = 1200;
    series->wander[0] = 1e-5;
    series->wander[1] = 1e-6;
    series->jitter[0] = series->jitter[1] = 1e-5;
    series->motion = (struct phema_motion){
        .n_intervals = 2, .ends = series->ends, .wander = series->wander, .jitter = series->jitter};
    series->problem = (struct phema_problem){.snapshots = series->snapshots,
                                             .rounding = series->rounding,
                                             .n = N,
                                             .targets = series->mixes,
                                             .m = 3,
                                             .motion = has_motion ? &series->motion : NULL};
}

static double worst_of(const struct series *series, const bool *is_out)
{
    struct phema_profile snapshots[N];
    double rounding[N];
    struct phema_problem problem = series->problem;
    problem.n = 0;
    for (size_t i = 0; i < N; i++) {
        if (is_out[i])
            continue;
        snapshots[problem.n] = series->snapshots[i];
        rounding[problem.n++] = series->rounding[i];
    }
    problem.snapshots = snapshots;
    problem.rounding = rounding;
    problem.run_end = 1200;
    const struct phema_solve_options options = {.metric = problem.motion ? PHEMA_METRIC_MOTION
                                                                         : PHEMA_METRIC_WALK};
    struct phema_solution solutions[3];
    struct phema_error err = {0};
    if (phema_weights_solve(solutions, &problem, &options, &err))
        return HUGE_VAL; /* the target's time is after the remaining snapshots */
    double worst = 0;
    for (size_t k = 0; k < 3; k++)
        worst = fmax(worst, solutions[k].predicted.total);
    phema_solutions_clear(solutions, 3);
    return worst;
}

static void check_advice(bool has_motion)
{
    struct series series;
    make(&series, has_motion);
    series.problem.run_end = 1200;
    bool is_out[N] = {false};
    double all = worst_of(&series, is_out);
    for (double allowance = 1.02; allowance < 200; allowance *= 5) {
        struct phema_advice advice;
        struct phema_error err = {0};
        double limit = all * allowance;
        assert_ok(phema_advice_find(&advice, &series.problem, limit, &err), &err);
        for (size_t i = 0; i < N; i++)
            is_out[i] = false;
        double before = all;
        for (size_t r = 0; r < advice.n_removed; r++) {
            assert_false(is_out[advice.removed[r]]);
            /* each removal is the one with the least worst error */
            double least = HUGE_VAL;
            for (size_t i = 0; i < N; i++) {
                if (is_out[i])
                    continue;
                is_out[i] = true;
                least = fmin(least, worst_of(&series, is_out));
                is_out[i] = false;
            }
            is_out[advice.removed[r]] = true;
            double now = worst_of(&series, is_out);
            assert_near(now, least, 1e-6 * least);
            assert_true(now >= before * (1 - 1e-9));
            before = now;
        }
        assert_near(advice.error_before, all, 1e-9 * all);
        assert_near(advice.error_after, before, 1e-9 * before);
        assert_true(before <= limit);
        for (size_t i = 0; i < N; i++) { /* and no other removal stays within the limit */
            if (is_out[i])
                continue;
            is_out[i] = true;
            assert_true(worst_of(&series, is_out) > limit);
            is_out[i] = false;
        }
        assert_true(advice.n_removed > 0 || allowance < 2);
        phema_advice_clear(&advice);
    }
}

static void exactly_the_deletable_snapshots_are_removed(void **state)
{
    (void)state;
    check_advice(true);
    check_advice(false);
}

static void nothing_is_removed_above_the_error(void **state)
{
    (void)state;
    struct series series;
    make(&series, true);
    struct phema_advice advice;
    struct phema_error err = {0};
    assert_ok(phema_advice_find(&advice, &series.problem, 1e-12, &err), &err);
    assert_int_equal(advice.n_removed, 0);
    assert_true(advice.error_before > 1e-12);
    phema_advice_clear(&advice);
    series.problem.m = 0;
    assert_fails(phema_advice_find(&advice, &series.problem, 1, &err), PHEMA_ERR_INPUTS, &err,
                 "some target");
}

static double worst_of_times(const struct series *series, size_t n_times)
{
    struct phema_profile snapshots[400];
    double rounding[400];
    struct phema_problem problem = series->problem;
    problem.n = 2 * n_times;
    assert_true(problem.n <= ARRAY_LEN(snapshots));
    for (size_t i = 0; i < problem.n; i++) {
        size_t nth = i / 2 + 1;
        snapshots[i] = (struct phema_profile){.gamma = series->snapshots[i % 2].gamma,
                                              .t = 1200.0 * (double)nth / (double)n_times};
        rounding[i] = 1e-6;
    }
    problem.snapshots = snapshots;
    problem.rounding = rounding;
    const struct phema_solve_options options = {.metric = PHEMA_METRIC_MOTION};
    struct phema_solution solutions[3];
    struct phema_error err = {0};
    assert_ok(phema_weights_solve(solutions, &problem, &options, &err), &err);
    double worst = 0;
    for (size_t k = 0; k < 3; k++)
        worst = fmax(worst, solutions[k].predicted.total);
    phema_solutions_clear(solutions, 3);
    return worst;
}

static void the_advised_times_are_enough(void **state)
{
    (void)state;
    struct series series;
    make(&series, true);
    const double wanted[] = {1e-2, 1e-3, 1e-4, 2e-5};
    size_t before = 0;
    for (size_t w = 0; w < ARRAY_LEN(wanted); w++) {
        struct phema_saving saving;
        struct phema_error err = {0};
        assert_ok(phema_advice_saving(&saving, &series.problem, wanted[w], &err), &err);
        assert_true(saving.n_times > 0 && saving.n_times >= before);
        assert_int_equal(saving.n_per_time, 2);
        assert_near(saving.every, 1200.0 / (double)saving.n_times, 1e-9);
        assert_near(saving.error, worst_of_times(&series, saving.n_times), 1e-9 * saving.error);
        assert_true(saving.error <= wanted[w]);
        if (saving.n_times > 1)
            assert_true(worst_of_times(&series, saving.n_times - 1) > wanted[w]);
        before = saving.n_times;
    }
    assert_true(before > 4);
    struct phema_saving saving;
    struct phema_error err = {0}; /* below the rounding error: no number suffices */
    assert_ok(phema_advice_saving(&saving, &series.problem, 1e-9, &err), &err);
    assert_int_equal(saving.n_times, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(exactly_the_deletable_snapshots_are_removed),
    cmocka_unit_test(nothing_is_removed_above_the_error),
    cmocka_unit_test(the_advised_times_are_enough),
};
TEST_GROUP(tests)
