// SPDX-License-Identifier: Apache-2.0
/* test_filter.c - the filter predicts the errors that a solve in quad predicts. */
#include "support.h"

#include <math.h>

#include "phema/design.h"

#define N_TIMES 24

static const double gammas[] = {16.972198602303450, 6.9372039376018075, 2.2};

/* What phema_weights_solve predicts for the design and one target, in percent of it: exact to the
 * quadrature of the filter. */
static void compare(const struct phema_design *design, const struct phema_design_question *question,
                    const struct phema_motion *motion, double tolerance)
{
    struct phema_error err = {0};
    double errors[PHEMA_DESIGN_MAX_TARGETS * 4];
    struct phema_design rated = *design;
    assert_ok(phema_design_rate(&rated, errors, question, &err), &err);
    double worst = 0;
    for (size_t e = 0; e < question->n_ends; e++) {
        struct phema_profile snapshots[N_TIMES * 5];
        double rounding[N_TIMES * 5];
        size_t n = 0;
        bool is_stored = false;
        for (size_t i = 0; i < design->n_times; i++)
            is_stored = is_stored || design->times[i] == question->ends[e];
        for (size_t k = 0; k < question->n_kept; k++) {
            if (is_stored && question->kept[k].t > question->ends[e])
                continue;
            snapshots[n] = question->kept[k];
            rounding[n++] = question->kept_rounding[k];
        }
        for (size_t i = 0; i < design->n_times; i++)
            for (size_t k = 0; k < design->n_widths; k++) {
                if (is_stored && design->times[i] > question->ends[e])
                    continue;
                snapshots[n] = design->widths[k].profile;
                snapshots[n].t = design->times[i];
                rounding[n++] = phema_dtype_rounding(design->widths[k].dtype);
            }
        struct phema_profile targets[PHEMA_DESIGN_MAX_TARGETS];
        struct phema_mix mixes[PHEMA_DESIGN_MAX_TARGETS];
        for (size_t j = 0; j < question->n_targets; j++) {
            targets[j] = question->targets[j];
            targets[j].t = question->ends[e];
            mixes[j] = (struct phema_mix){.parts = &targets[j], .n_parts = 1};
        }
        const struct phema_problem problem = {.snapshots = snapshots,
                                              .rounding = rounding,
                                              .n = n,
                                              .targets = mixes,
                                              .m = question->n_targets,
                                              .run_end = question->until,
                                              .motion = motion};
        const struct phema_solve_options options = {.metric = motion ? PHEMA_METRIC_MOTION
                                                                     : PHEMA_METRIC_WALK};
        struct phema_solution solutions[PHEMA_DESIGN_MAX_TARGETS];
        assert_ok(phema_weights_solve(solutions, &problem, &options, &err), &err);
        for (size_t j = 0; j < question->n_targets; j++) {
            double wanted = solutions[j].predicted.total;
            assert_near(errors[j * question->n_ends + e], wanted, tolerance * wanted);
            worst = fmax(worst, errors[j * question->n_ends + e]);
        }
        phema_solutions_clear(solutions, question->n_targets);
    }
    assert_near(rated.worst_error, worst, 1e-12 * worst);
}

static double even_times[N_TIMES];

static struct phema_design make_design(size_t n_widths, enum phema_dtype dtype)
{
    struct phema_design design = {.n_widths = n_widths, .times = even_times, .n_times = N_TIMES};
    for (size_t i = 0; i < N_TIMES; i++)
        even_times[i] = 1000 * (double)(i + 1);
    for (size_t k = 0; k < n_widths; k++) {
        design.widths[k].profile = (struct phema_profile){.gamma = gammas[k]};
        design.widths[k].dtype = dtype;
    }
    return design;
}

static const struct phema_profile wanted[] = {
    {.gamma = 0.7},
    {.gamma = 4},
    {.gamma = 40},
    {.shape = PHEMA_SHAPE_EMA, .half_life = 900},
    {.shape = PHEMA_SHAPE_RAMPED, .half_life = 900, .ramp = 0.1},
    {.shape = PHEMA_SHAPE_WINDOW, .length = 3000},
    {.shape = PHEMA_SHAPE_COSINE, .length = 5000},
    {.shape = PHEMA_SHAPE_RAW}};
#define UNTIL (1000.0 * N_TIMES)
static const double ends[] = {8000, 11300, UNTIL};

static struct phema_design_question make_question(void)
{
    return (struct phema_design_question){.until = UNTIL,
                                          .targets = wanted,
                                          .n_targets = ARRAY_LEN(wanted),
                                          .ends = ends + 2,
                                          .n_ends = 1};
}

static void errors_are_those_of_a_solve(void **state)
{
    (void)state;
    static const enum phema_dtype dtypes[] = {PHEMA_F16, PHEMA_BF16, PHEMA_F32};
    for (size_t n_widths = 1; n_widths <= 3; n_widths++)
        for (size_t d = 0; d < ARRAY_LEN(dtypes); d++) {
            struct phema_design design = make_design(n_widths, dtypes[d]);
            struct phema_design_question question = make_question();
            compare(&design, &question, NULL, 5e-3);
        }
}

/* Later snapshots are left out at the time of a snapshot, and used between two. Four nodes on pieces
 * that double leave 2e-5 of the error; on pieces that grow faster, ten times as much. */
static void errors_at_earlier_ends_are_those_of_a_solve(void **state)
{
    (void)state;
    struct phema_design design = make_design(2, PHEMA_F16);
    struct phema_design_question question = make_question();
    question.ends = ends;
    question.n_ends = 3;
    compare(&design, &question, NULL, 5e-5);
}

static void raw_parameters_beside_one_width(void **state)
{
    (void)state;
    struct phema_design design = make_design(2, PHEMA_F16);
    design.widths[1].profile = (struct phema_profile){.shape = PHEMA_SHAPE_RAW};
    struct phema_design_question question = make_question();
    compare(&design, &question, NULL, 5e-3);
}

/* Some at the times of averages, some between them. */
static void raw_checkpoints_that_exist_anyway(void **state)
{
    (void)state;
    struct phema_profile kept[N_TIMES / 2];
    double rounding[ARRAY_LEN(kept)];
    for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
        kept[i] = (struct phema_profile){.shape = PHEMA_SHAPE_RAW, .t = 1500 * (double)(i + 1)};
        rounding[i] = phema_dtype_rounding(PHEMA_BF16);
    }
    struct phema_design design = make_design(2, PHEMA_F16);
    struct phema_design_question question = make_question();
    question.kept = kept;
    question.kept_rounding = rounding;
    question.n_kept = ARRAY_LEN(kept);
    compare(&design, &question, NULL, 5e-3);
}

static void errors_in_a_motion_that_was_seen(void **state)
{
    (void)state;
    double motion_ends[] = {6000, UNTIL}, wander[] = {1e-6, 1e-7}, jitter[] = {1e-3, 1e-4};
    struct phema_motion motion = {
        .n_intervals = 2, .ends = motion_ends, .wander = wander, .jitter = jitter};
    struct phema_design design = make_design(2, PHEMA_F32);
    struct phema_design_question question = make_question();
    question.n_targets = 5; /* densities of windows begin and end with a step */
    question.motion =
        (struct phema_design_motion){.moving = PHEMA_MOVING_SEEN, .seen = &motion, .stretch = 1};
    compare(&design, &question, &motion, 1e-2);
}

static void a_stretched_training_has_the_same_errors(void **state)
{
    (void)state;
    double motion_ends[] = {6000, UNTIL}, wander[] = {1e-6, 1e-7}, jitter[] = {1e-3, 1e-4};
    struct phema_motion motion = {
        .n_intervals = 2, .ends = motion_ends, .wander = wander, .jitter = jitter};
    struct phema_error err = {0};
    struct phema_design design = make_design(2, PHEMA_F32);
    struct phema_design_question question = make_question();
    question.n_targets = 3;
    question.motion =
        (struct phema_design_motion){.moving = PHEMA_MOVING_SEEN, .seen = &motion, .stretch = 1};
    assert_ok(phema_design_rate(&design, NULL, &question, &err), &err);
    double before = design.worst_error, ten_times = 10 * UNTIL;
    for (size_t i = 0; i < N_TIMES; i++)
        even_times[i] *= 10;
    question.until = ten_times;
    question.ends = &ten_times;
    question.motion.stretch = 10;
    assert_ok(phema_design_rate(&design, NULL, &question, &err), &err);
    assert_near(design.worst_error, before, 1e-9 * before);
}

/* The motions are of one size: (N24) */
static void motions_are_scaled_alike(void **state)
{
    (void)state;
    double wander = 0, jitter = 0, mean[PHEMA_N_MOVING] = {0};
    for (int m = 0; m < PHEMA_N_MOVING; m++)
        for (int i = 0; i < 100000; i++) {
            const struct phema_design_motion motion = {.moving = (enum phema_design_moving)m};
            phema_design_rates(&wander, &jitter, &motion, 5000, 5000 * (i + 0.5) / 100000);
            mean[m] += (m == PHEMA_MOVING_WHITE ? jitter : wander) / 100000;
        }
    double rate = phema_walk_rate(5000);
    assert_near(mean[PHEMA_MOVING_WALK], rate, 1e-3 * rate);
    assert_near(mean[PHEMA_MOVING_DRIFT], rate, 1e-3 * rate);
    assert_near(mean[PHEMA_MOVING_FALL], rate, 1e-3 * rate);
    /* 0.03^2 = rate integral (p_.05 - p_.10)^2 over a training of 5000 steps, as a sum of steps */
    double apart = 0;
    for (int i = 0; i < 1000000; i++) {
        double x = (i + 0.5) / 1000000;
        double p = 17.97219860230345 * pow(x, 16.97219860230345) -
                   7.9372039376018075 * pow(x, 6.9372039376018075);
        apart += p * p / 1000000 / 5000;
    }
    assert_near(mean[PHEMA_MOVING_WHITE] * apart, 9e-4, 1e-6);
}

static void what_cannot_be_followed_is_refused(void **state)
{
    (void)state;
    struct phema_error err = {0};
    struct phema_design design = make_design(1, PHEMA_F32);
    struct phema_design_question question = make_question();
    const struct phema_profile table = {.shape = PHEMA_SHAPE_TABLE};
    question.targets = &table;
    question.n_targets = 1;
    assert_fails(phema_design_rate(&design, NULL, &question, &err), PHEMA_ERR_INPUTS, &err,
                 "a table of betas cannot be planned for");
    const struct phema_profile window = {.shape = PHEMA_SHAPE_WINDOW, .length = 2 * UNTIL};
    question.targets = &window;
    assert_fails(phema_design_rate(&design, NULL, &question, &err), PHEMA_ERR_INPUTS, &err,
                 "reaches back beyond");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(errors_are_those_of_a_solve),
    cmocka_unit_test(errors_at_earlier_ends_are_those_of_a_solve),
    cmocka_unit_test(raw_parameters_beside_one_width),
    cmocka_unit_test(raw_checkpoints_that_exist_anyway),
    cmocka_unit_test(errors_in_a_motion_that_was_seen),
    cmocka_unit_test(a_stretched_training_has_the_same_errors),
    cmocka_unit_test(motions_are_scaled_alike),
    cmocka_unit_test(what_cannot_be_followed_is_refused),
};
TEST_GROUP(tests)
