// SPDX-License-Identifier: Apache-2.0
/* test_motion.c - fits recover known motions from their distances, and the motion metric is the
 * expected squared error. */
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "motion_work.h"
#include "profiles.h"
#include "samples.h"

#define N 16

static void make_series(struct phema_profile *snapshots)
{
    for (size_t i = 0; i < N; i++)
        snapshots[i] =
            (struct phema_profile){.gamma = i % 2 ? 6.937203937601809 : 16.97219860230345,
                                   .t = 100.0 * (double)(i / 2 + 1)};
}

static double density(const struct phema_profile *p, double t)
{
    return t < p->t ? (p->gamma + 1) * pow(t / p->t, p->gamma) / p->t : 0;
}

static double after(const struct phema_profile *p, double t)
{
    return t < p->t ? 1 - pow(t / p->t, p->gamma + 1) : 0;
}

/* Midpoint sums over an interval: 4000 pieces of a smooth function give errors of 1e-6 */
static double integrate(double (*f)(const struct phema_profile *, double),
                        const struct phema_profile *a, const struct phema_profile *b, double l,
                        double u)
{
    double sum = 0;
    for (int i = 0; i < 4000; i++) {
        double t = l + (u - l) * (i + 0.5) / 4000;
        sum += pow(f(a, t) - f(b, t), 2);
    }
    return sum * (u - l) / 4000;
}

/* Without a sample. */
static enum phema_status fit(struct phema_motion *motion, const struct phema_profile *snapshots,
                             size_t n, const double *rounding,
                             const struct phema_distance *distances, size_t n_distances,
                             struct phema_error *err)
{
    const struct phema_motion_data data = {.snapshots = snapshots,
                                           .rounding = rounding,
                                           .n = n,
                                           .distances = distances,
                                           .n_distances = n_distances};
    return phema_motion_fit(motion, &data, PHEMA_MOTION_EVEN, err);
}

static void pairs_are_of_one_time_or_neighbours(void **state)
{
    (void)state;
    struct phema_profile snapshots[N];
    make_series(snapshots);
    struct phema_profile swapped = snapshots[0]; /* the order of the snapshots does not matter */
    snapshots[0] = snapshots[7];
    snapshots[7] = swapped;
    struct phema_distance *pairs = NULL;
    size_t n_pairs = 0;
    struct phema_error err = {0};
    assert_ok(phema_motion_pairs(&pairs, &n_pairs, snapshots, N, &err), &err);
    assert_int_equal(n_pairs, 8 + 7 * 4);
    for (size_t p = 0; p < n_pairs; p++) {
        assert_true(pairs[p].i != pairs[p].j);
        assert_true(fabs(snapshots[pairs[p].i].t - snapshots[pairs[p].j].t) <= 100);
    }
    free(pairs);
    assert_ok(phema_motion_pairs(&pairs, &n_pairs, snapshots, 1, &err), &err);
    assert_int_equal(n_pairs, 0);
    free(pairs);
}

/* Many times are thinned to a few, among them the first stretch and the last time. */
static void many_times_are_thinned(void **state)
{
    (void)state;
    enum { N_TIMES = 300 };
    static struct phema_profile many[2 * N_TIMES];
    for (size_t i = 0; i < ARRAY_LEN(many); i++)
        many[i] = (struct phema_profile){.gamma = i % 2 ? 3 : 9, .t = (double)(i / 2 + 1)};
    struct phema_distance *pairs = NULL;
    size_t n_pairs = 0;
    struct phema_error err = {0};
    assert_ok(phema_motion_pairs(&pairs, &n_pairs, many, ARRAY_LEN(many), &err), &err);
    assert_int_equal(n_pairs, 64 + 63 * 4);
    double first = HUGE_VAL, last = 0, widest = 0;
    for (size_t p = 0; p < n_pairs; p++) {
        double a = many[pairs[p].i].t, b = many[pairs[p].j].t;
        first = fmin(first, fmin(a, b));
        last = fmax(last, fmax(a, b));
        widest = fmax(widest, fabs(a - b));
        pairs[p].square = 1e-3 * (1 + fabs(a - b));
    }
    assert_true(first <= 5 && last == N_TIMES && widest <= 5);
    struct phema_motion motion;
    assert_ok(fit(&motion, many, ARRAY_LEN(many), NULL, pairs, n_pairs, &err), &err);
    assert_int_equal(motion.n_intervals, 64);
    assert_near(motion.ends[63], N_TIMES, 0);
    phema_motion_clear(&motion);
    free(pairs);
}

static void terms_are_integrals(void **state)
{
    (void)state;
    struct phema_profile snapshots[N];
    make_series(snapshots);
    struct phema_distance *pairs = NULL;
    struct phema_motion_table *table = NULL;
    struct phema_motion_terms shares = {0};
    size_t n_pairs = 0;
    struct phema_error err = {0};
    assert_ok(phema_motion_pairs(&pairs, &n_pairs, snapshots, N, &err), &err);
    assert_ok(phema_motion_table_open(&table, snapshots, N, 1, pairs, n_pairs, 0, &err), &err);
    assert_ok(phema_motion_terms_find(&shares, table, pairs, n_pairs, &err), &err);
    phema_motion_table_close(table);
    assert_int_equal(shares.n_intervals, 8);
    for (size_t p = 0; p < n_pairs; p++) {
        const struct phema_profile *a = &snapshots[pairs[p].i];
        const struct phema_profile *b = &snapshots[pairs[p].j];
        for (size_t s = shares.starts[p]; s < shares.starts[p + 1]; s++) {
            const struct phema_motion_term *share = &shares.items[s];
            double u = shares.ends[share->interval];
            double walk = integrate(after, a, b, u - 100, u);
            double jitter = integrate(density, a, b, u - 100, u);
            assert_near(share->walk, walk, 1e-5 * walk);
            assert_near(share->jitter, jitter, 1e-5 * jitter);
        }
    }
    phema_motion_terms_clear(&shares);
    free(pairs);
}

/* The distances that a motion causes, computed from the definition. */
static double square_of(const struct phema_profile *a, const struct phema_profile *b,
                        double wander_of(double), double jitter_of(double))
{
    double sum = 0;
    for (int i = 0; i < 40000; i++) {
        double t = 800 * (i + 0.5) / 40000;
        double d = density(a, t) - density(b, t);
        double tail = after(a, t) - after(b, t);
        sum += wander_of(t) * tail * tail + jitter_of(t) * d * d;
    }
    return sum * 800 / 40000;
}

/* Constant within intervals of 100, so the model can represent it */
static double falling(double t)
{
    double middle = floor(t / 100) * 100 + 50;
    return 1e-6 * pow(800 / middle, 2);
}

static double even(double t)
{
    (void)t;
    return 1e-4;
}

static double dropping(double t)
{
    return t < 500 ? 1e-5 : 2e-7;
}

static struct phema_distance *distances_of(const struct phema_profile *snapshots, size_t *n_pairs,
                                           double wander_of(double), double jitter_of(double))
{
    struct phema_distance *pairs = NULL;
    struct phema_error err = {0};
    assert_ok(phema_motion_pairs(&pairs, n_pairs, snapshots, N, &err), &err);
    for (size_t p = 0; p < *n_pairs; p++)
        pairs[p].square =
            square_of(&snapshots[pairs[p].i], &snapshots[pairs[p].j], wander_of, jitter_of);
    return pairs;
}

/* The series, and its distances under a known motion. */
static struct phema_distance *make_known(struct phema_profile *snapshots, size_t *n_pairs,
                                         double wander_of(double), double jitter_of(double))
{
    make_series(snapshots);
    return distances_of(snapshots, n_pairs, wander_of, jitter_of);
}

static void powers_of_time_are_found(void **state)
{
    (void)state;
    struct phema_profile snapshots[N];
    size_t n_pairs = 0;
    struct phema_distance *distances = make_known(snapshots, &n_pairs, falling, even);
    struct phema_motion motion;
    struct phema_error err = {0};
    assert_ok(fit(&motion, snapshots, N, NULL, distances, n_pairs, &err), &err);
    assert_int_equal(motion.n_intervals, 8);
    assert_int_equal(motion.wander_power, 2);
    assert_int_equal(motion.jitter_power, 0);
    assert_true(motion.misfit < 1e-4);
    for (size_t k = 0; k < 8; k++) {
        assert_near(motion.ends[k], 100.0 * (double)(k + 1), 0);
        double wander = falling(motion.ends[k] - 50);
        assert_near(motion.wander[k], wander, 1e-3 * wander);
        assert_near(motion.jitter[k], 1e-4, 1e-3 * 1e-4);
    }
    phema_motion_clear(&motion);

    /* the same with known rounding errors in every distance */
    double rounding[N];
    for (size_t i = 0; i < N; i++)
        rounding[i] = 1e-4 * (double)(1 + i % 3);
    for (size_t p = 0; p < n_pairs; p++)
        distances[p].square += pow(rounding[distances[p].i], 2) + pow(rounding[distances[p].j], 2);
    assert_ok(fit(&motion, snapshots, N, rounding, distances, n_pairs, &err), &err);
    assert_near(motion.wander[7], falling(750), 1e-3 * falling(750));
    phema_motion_clear(&motion);
    free(distances);
}

/* No power of time drops by a factor of 50 at once, but the factors of the intervals do. */
static void sudden_changes_are_found(void **state)
{
    (void)state;
    struct phema_profile snapshots[N];
    size_t n_pairs = 0;
    struct phema_distance *distances = make_known(snapshots, &n_pairs, dropping, even);
    for (size_t p = 0; p < n_pairs; p++)
        distances[p].square =
            square_of(&snapshots[distances[p].i], &snapshots[distances[p].j], dropping, dropping);
    struct phema_motion motion;
    struct phema_error err = {0};
    assert_ok(fit(&motion, snapshots, N, NULL, distances, n_pairs, &err), &err);
    for (size_t k = 2; k < 8; k++) {
        double ratio = motion.wander[k] / dropping(motion.ends[k] - 50);
        if (!(ratio > 0.6 && ratio < 1.6))
            fail_msg("interval %zu: %g times the truth", k, ratio);
    }
    phema_motion_clear(&motion);
    free(distances);
}

/* A walk whose rate is not a power of time, seen by averages of one width. Direct neighbours cannot
 * tell the walk from jitter, but pairs at twice the distance in time can. */
static double slowing(double t)
{
    return 1e-4 / (t + 40);
}

static double none(double t)
{
    (void)t;
    return 0;
}

static void a_walk_is_fitted_without_jitter(void **state)
{
    (void)state;
    struct phema_profile snapshots[N];
    for (size_t i = 0; i < N; i++)
        snapshots[i] =
            (struct phema_profile){.gamma = 16.97219860230345, .t = 50.0 * (double)(i + 1)};
    size_t n_pairs = 0;
    struct phema_distance *distances = distances_of(snapshots, &n_pairs, slowing, none);
    assert_int_equal(n_pairs, N - 1 + N - 2);
    struct phema_motion motion;
    struct phema_error err = {0};
    assert_ok(fit(&motion, snapshots, N, NULL, distances, n_pairs, &err), &err);
    for (size_t k = 2; k < N; k++) { /* the first ones have little effect */
        double ratio = motion.wander[k] / slowing(motion.ends[k] - 25);
        if (!(ratio > 0.7 && ratio < 1.4) || motion.jitter[k] != 0)
            fail_msg("interval %zu: %g times the truth, jitter %g", k, ratio, motion.jitter[k]);
    }
    phema_motion_clear(&motion);
    free(distances);
}

static void too_few_distances_are_refused(void **state)
{
    (void)state;
    struct phema_profile snapshots[N];
    size_t n_pairs = 0;
    struct phema_distance *distances = make_known(snapshots, &n_pairs, falling, even);
    struct phema_motion motion;
    struct phema_error err = {0};
    double coarse[N];
    for (size_t i = 0; i < N; i++)
        coarse[i] = 0.5; /* large compared with distances of 1e-2 */
    assert_fails(fit(&motion, snapshots, N, coarse, distances, n_pairs, &err), PHEMA_NO, &err,
                 "0 of 36");
    assert_fails(fit(&motion, snapshots, N, NULL, distances, 2, &err), PHEMA_NO, &err, "2 of 2");
    for (size_t p = 0; p < n_pairs; p++)
        distances[p].square = p % 2 ? (double)NAN : 0; /* not finite, or of equal files */
    assert_fails(fit(&motion, snapshots, N, NULL, distances, n_pairs, &err), PHEMA_NO, &err,
                 "0 of 36");
    free(distances);
}

/* ---- Shapes within the intervals, with a sample ---- */

#define N_STEPS 800
#define N_ELEMS ((size_t)400)

/* Elements that walk with variance v at each step, and the averages of the series. */
static void walk_elements(double *values, const struct phema_profile *snapshots,
                          double variance_of(double))
{
    uint64_t state = 3;
    for (size_t e = 0; e < N_ELEMS; e++) {
        double x = 1, averages[N] = {0};
        for (int step = 1; step <= N_STEPS; step++) {
            x += coin(&state) * sqrt(variance_of(step - 0.5));
            for (size_t i = 0; i < N; i++) {
                double beta = pow(1 - 1.0 / step, snapshots[i].gamma + 1);
                if (step <= (int)snapshots[i].t)
                    averages[i] = beta * averages[i] + (1 - beta) * x;
            }
        }
        for (size_t i = 0; i < N; i++)
            values[i * N_ELEMS + e] = averages[i];
    }
}

static double falling_to_nothing(double t)
{
    return 1e-5 * pow(1 - t / N_STEPS, 2);
}

static double constant(double t)
{
    (void)t;
    return 1e-6;
}

static double falling_apace(double t)
{
    return 1e-5 * exp(-t / 100);
}

static double jumping(double t)
{
    return t > 400 && t <= 500 ? 1e-5 : 1e-6;
}

/* The amplitude of the walk at a time. */
static double wander_at(const struct phema_motion *motion, double t)
{
    size_t k = 0;
    while (k + 1 < motion->n_intervals && motion->ends[k] < t)
        k++;
    return motion->wander[k];
}

static void assert_equal_motions(const struct phema_motion *a, const struct phema_motion *b)
{
    size_t size = a->n_intervals * sizeof(double);
    assert_int_equal(a->n_intervals, b->n_intervals);
    assert_memory_equal(a->ends, b->ends, size);
    assert_memory_equal(a->wander, b->wander, size);
    assert_memory_equal(a->jitter, b->jitter, size);
    assert_true(!a->speed == !b->speed);
    if (a->speed)
        assert_memory_equal(a->speed, b->speed, size);
}

/* One fitting gives each kind as a fit of its own does, in any order. */
static void assert_kinds_are_shared(const struct phema_motion_data *data)
{
    static const enum phema_motion_kind kinds[] = {PHEMA_MOTION_SHAPED, PHEMA_MOTION_EVEN,
                                                   PHEMA_MOTION_LIKELIEST, PHEMA_MOTION_EVEN,
                                                   PHEMA_MOTION_SHAPED};
    struct phema_error err = {0};
    struct phema_motion_fitting *fitting = NULL;
    assert_ok(phema_motion_fitting_open(&fitting, data, &err), &err);
    for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
        struct phema_motion shared, alone;
        assert_ok(phema_motion_fitting_find(&shared, fitting, kinds[k], &err), &err);
        assert_ok(phema_motion_fit(&alone, data, kinds[k], &err), &err);
        assert_equal_motions(&shared, &alone);
        phema_motion_clear(&shared);
        phema_motion_clear(&alone);
    }
    phema_motion_fitting_close(fitting);
}

static void fit_values(struct phema_motion *motion, const struct phema_profile *snapshots,
                       const double *values, const struct phema_schedule *schedule)
{
    struct phema_error err = {0};
    size_t n_pairs = 0;
    const struct phema_sample_rows rows = {.values = values, .n_elems = N_ELEMS, .mean_square = 1};
    struct phema_distance *pairs = compare_rows(&n_pairs, snapshots, N, &rows);
    const struct phema_motion_data data = {.snapshots = snapshots,
                                           .n = N,
                                           .distances = pairs,
                                           .n_distances = n_pairs,
                                           .sample = &rows,
                                           .schedule = schedule};
    assert_ok(phema_motion_fit(motion, &data, PHEMA_MOTION_LIKELIEST, &err), &err);
    assert_kinds_are_shared(&data);
    free(pairs);
}

static void fit_walk(struct phema_motion *motion, double variance_of(double),
                     const struct phema_schedule *schedule)
{
    struct phema_profile snapshots[N];
    double *values = calloc(N * N_ELEMS, sizeof(*values));
    assert_non_null(values);
    make_series(snapshots);
    walk_elements(values, snapshots, variance_of);
    fit_values(motion, snapshots, values, schedule);
    free(values);
}

/* The ratio to the truth at the middle of the first and the last eighth of an interval. */
static void assert_follows(const struct phema_motion *motion, double variance_of(double),
                           double begin, double most)
{
    const double times[] = {begin + 100 * 1.0 / 16, begin + 100 * 15.0 / 16};
    for (size_t i = 0; i < ARRAY_LEN(times); i++) {
        double ratio = wander_at(motion, times[i]) / variance_of(times[i]);
        if (!(ratio < most && ratio > 1 / most))
            fail_msg("at %g: %g of the truth", times[i], ratio);
    }
}

static void a_walk_that_falls_is_followed_within_intervals(void **state)
{
    (void)state;
    struct phema_motion motion;
    fit_walk(&motion, falling_apace,
             NULL); /* by exp(1/2) from the middle of an interval to its end */
    for (double begin = 300; begin <= 600; begin += 100)
        assert_follows(&motion, falling_apace, begin, 1.3);
    assert_follows(&motion, falling_apace, 700, 2); /* it might as well fall to nothing */
    phema_motion_clear(&motion);
}

static void a_walk_may_end_as_a_power_of_the_time_that_is_left(void **state)
{
    (void)state;
    struct phema_motion motion;
    fit_walk(&motion, falling_to_nothing, NULL);
    assert_follows(&motion, falling_to_nothing, 700, 10); /* even: 85 times the truth */
    phema_motion_clear(&motion);
}

/* The rate falls in the middle of an interval, as no slope can. */
static double stepping(double t)
{
    return t <= 650 ? 1e-5 : 1e-7;
}

/* No snapshot lies near the step, but both widths of the next ones remember it. */
static void a_step_within_an_interval_is_a_steep_slope(void **state)
{
    (void)state;
    struct phema_motion motion;
    fit_walk(&motion, stepping, NULL);
    double before = wander_at(&motion, 606), behind = wander_at(&motion, 694);
    assert_true(before > 10 * behind); /* without likelihood: the same */
    assert_follows(&motion, stepping, 500, 2);
    phema_motion_clear(&motion);
}

static struct phema_schedule *stepping_schedule(void)
{
    struct phema_schedule *schedule = NULL;
    struct phema_error err = {0};
    FILE *file = fopen("test_motion_schedule.csv", "w");
    assert_non_null(file);
    (void)fputs("step,lr\n0,1\n650,1\n651,0.1\n800,0.1\n", file);
    assert_int_equal(fclose(file), 0);
    assert_ok(phema_schedule_parse(&schedule, "test_motion_schedule.csv", N_STEPS, &err), &err);
    assert_int_equal(remove("test_motion_schedule.csv"), 0);
    return schedule;
}

static void a_known_learning_rate_is_followed(void **state)
{
    (void)state;
    struct phema_motion motion;
    struct phema_schedule *schedule = stepping_schedule();
    fit_walk(&motion, stepping, schedule);
    assert_follows(&motion, stepping, 600, 1.3);
    assert_follows(&motion, stepping, 700, 1.3);
    phema_motion_clear(&motion);
    phema_schedule_free(schedule);
}

/* Parameters themselves, with white noise of the size of 200 steps of the walk. */
static void shake_elements(double *values, const struct phema_profile *snapshots)
{
    uint64_t state = 5;
    for (size_t e = 0; e < N_ELEMS; e++) {
        double x = 1;
        for (int step = 1, i = 0; step <= N_STEPS; step++) {
            x += coin(&state) * sqrt(stepping(step - 0.5));
            if (step == (int)snapshots[i].t)
                values[(size_t)i++ * N_ELEMS + e] = x + coin(&state) * sqrt(200 * stepping(0));
        }
    }
}

static void a_known_learning_rate_is_followed_where_parameters_jitter(void **state)
{
    (void)state;
    struct phema_profile snapshots[N];
    double *values = calloc(N * N_ELEMS, sizeof(*values));
    assert_non_null(values);
    for (size_t i = 0; i < N; i++)
        snapshots[i] =
            (struct phema_profile){.shape = PHEMA_SHAPE_RAW, .t = 200 + 40.0 * (double)i};
    shake_elements(values, snapshots);
    struct phema_motion motion;
    struct phema_schedule *schedule = stepping_schedule();
    fit_values(&motion, snapshots, values, schedule);
    double seen = motion.jitter[0] / (200 * stepping(0)); /* each is one unit of time wide */
    if (!(seen > 0.5 && seen < 2))
        fail_msg("%g of the jitter", seen);
    double before = wander_at(&motion, 648), behind = wander_at(&motion, 660);
    assert_true(before > 50 * behind); /* even: the same */
    phema_motion_clear(&motion);
    phema_schedule_free(schedule);
    free(values);
}

static void an_even_walk_stays_even(void **state)
{
    (void)state;
    struct phema_motion motion;
    fit_walk(&motion, constant, NULL);
    for (double begin = 300; begin <= 700; begin += 100)
        assert_follows(&motion, constant, begin, 1.3);
    phema_motion_clear(&motion);
}

static void peaks_are_flat(void **state)
{
    (void)state;
    struct phema_motion motion;
    fit_walk(&motion, jumping, NULL);
    assert_follows(&motion, jumping, 400, 1.3);
    phema_motion_clear(&motion);
}

/* predicted.total^2 is E(w) for any weights, and the metric's own weights minimise it. */
static void the_metric_is_the_expected_error(void **state)
{
    (void)state;
    struct phema_profile snapshots[N];
    size_t n_pairs = 0;
    struct phema_distance *distances = make_known(snapshots, &n_pairs, falling, even);
    struct phema_motion motion;
    struct phema_error err = {0};
    assert_ok(fit(&motion, snapshots, N, NULL, distances, n_pairs, &err), &err);
    double rounding[N];
    for (size_t i = 0; i < N; i++)
        rounding[i] = 2e-4;
    const struct phema_profile wanted = {.gamma = 3.5, .t = 800};
    const struct phema_mix mix = {.parts = &wanted, .n_parts = 1};
    const struct phema_problem problem = {.snapshots = snapshots,
                                          .rounding = rounding,
                                          .n = N,
                                          .targets = &mix,
                                          .m = 1,
                                          .motion = &motion};
    const struct phema_solve_options options = {.metric = PHEMA_METRIC_MOTION};
    struct phema_solution solution;
    assert_ok(phema_weights_solve(&solution, &problem, &options, &err), &err);
    assert_near(solution.sum, 1, 1e-13);
    double best = solution.predicted.total;
    for (size_t change = 0; change <= N; change++) {
        struct phema_solution other = solution;
        double weights[N];
        for (size_t i = 0; i < N; i++)
            weights[i] = solution.weights[i];
        if (change < N) { /* the sum stays 1 */
            weights[change] += 1e-3;
            weights[(change + 5) % N] -= 1e-3;
        }
        other.weights = weights;
        assert_ok(phema_weights_evaluate(&other, &problem, &err), &err);
        double squared = 0;
        for (int i = 0; i < 40000; i++) {
            double t = 800 * (i + 0.5) / 40000;
            double d = density(&wanted, t), tail = after(&wanted, t);
            for (size_t k = 0; k < N; k++) {
                d -= weights[k] * density(&snapshots[k], t);
                tail -= weights[k] * after(&snapshots[k], t);
            }
            squared += (falling(t) * tail * tail + even(t) * d * d) * 800 / 40000;
        }
        double rounded = 0;
        for (size_t k = 0; k < N; k++)
            rounded = hypot(rounded, 2e-4 * weights[k]);
        double total = hypot(sqrt(squared), rounded);
        assert_near(other.predicted.total, total, 2e-3 * total);
        assert_near(other.predicted.rounding, rounded, 1e-12);
        assert_true(other.predicted.total >= best * (1 - 1e-12));
    }
    assert_true(solution.predicted.paper_weights > best);
    phema_solutions_clear(&solution, 1);
    phema_motion_clear(&motion);
    free(distances);
}

static void without_a_motion_there_is_no_such_metric(void **state)
{
    (void)state;
    const struct phema_profile one = {.gamma = 2, .t = 10};
    const struct phema_solve_options options = {.metric = PHEMA_METRIC_MOTION};
    struct phema_solution solution;
    struct phema_error err = {0};
    assert_fails(solve_profiles(&solution, &one, NULL, 1, &one, 1, 0, &options, &err),
                 PHEMA_ERR_USAGE, &err, "how the parameters moved");
}

/* Raw snapshots. The weights of a difference of two averages add up to 0, and a raw target has no
 * error. */
static void differences_and_raw_targets(void **state)
{
    (void)state;
    struct phema_profile snapshots[N];
    for (size_t i = 0; i < N; i++)
        snapshots[i] =
            (struct phema_profile){.shape = PHEMA_SHAPE_RAW, .t = 50.0 * (double)(i + 1)};
    const struct phema_profile raw = {.shape = PHEMA_SHAPE_RAW, .t = 400};
    const struct phema_profile parts[] = {{.shape = PHEMA_SHAPE_RAW, .t = 800}, raw};
    const double factors[] = {1, -1};
    const struct phema_mix mixes[] = {{.parts = &raw, .n_parts = 1},
                                      {.parts = parts, .factors = factors, .n_parts = 2}};
    const struct phema_problem problem = {.snapshots = snapshots, .n = N, .targets = mixes, .m = 2};
    for (int metric = 0; metric < 2; metric++) {
        const struct phema_solve_options options = {.metric = metric ? PHEMA_METRIC_PROFILE
                                                                     : PHEMA_METRIC_WALK};
        struct phema_solution solutions[2];
        struct phema_error err = {0};
        assert_ok(phema_weights_solve(solutions, &problem, &options, &err), &err);
        for (size_t i = 0; i < N; i++) {
            assert_near(solutions[0].weights[i], i == 7, 1e-15);
            assert_near(solutions[1].weights[i], i == 15 ? 1 : i == 7 ? -1 : 0, 1e-15);
        }
        assert_near(solutions[1].sum, 0, 1e-15);
        assert_true(solutions[1].predicted.total < 1e-12);
        phema_solutions_clear(solutions, 2);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(pairs_are_of_one_time_or_neighbours),
    cmocka_unit_test(many_times_are_thinned),
    cmocka_unit_test(terms_are_integrals),
    cmocka_unit_test(powers_of_time_are_found),
    cmocka_unit_test(sudden_changes_are_found),
    cmocka_unit_test(a_walk_is_fitted_without_jitter),
    cmocka_unit_test(too_few_distances_are_refused),
    cmocka_unit_test(a_walk_that_falls_is_followed_within_intervals),
    cmocka_unit_test(a_walk_may_end_as_a_power_of_the_time_that_is_left),
    cmocka_unit_test(a_step_within_an_interval_is_a_steep_slope),
    cmocka_unit_test(a_known_learning_rate_is_followed),
    cmocka_unit_test(a_known_learning_rate_is_followed_where_parameters_jitter),
    cmocka_unit_test(an_even_walk_stays_even),
    cmocka_unit_test(peaks_are_flat),
    cmocka_unit_test(the_metric_is_the_expected_error),
    cmocka_unit_test(without_a_motion_there_is_no_such_metric),
    cmocka_unit_test(differences_and_raw_targets),
};
TEST_GROUP(tests)
