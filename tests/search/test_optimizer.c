// SPDX-License-Identifier: Apache-2.0
/* test_optimizer.c - searches of functions with a known optimum, and the points they choose. */
#include "support.h"

#include <math.h>

#include "phema/search.h"

#define MOST 200

struct run {
    struct phema_search search;
    struct phema_search_score scores[MOST];
    size_t n;
};

typedef double (*function)(double x, double time, double optimum);

static double parabola(double x, double time, double optimum)
{
    (void)time;
    return 3 + 40 * (x - optimum) * (x - optimum);
}

static double distance(double x, double time, double optimum)
{
    (void)time;
    return hypot(x - optimum, 1e-3);
}

/* Steep on one side, nearly flat on the other, so parabolas do not help. */
static double cliff(double x, double time, double optimum)
{
    (void)time;
    return x < optimum ? exp((optimum - x) * 60) : 1 + 0.05 * (x - optimum);
}

/* In log sigma_rel steep above the optimum and flat below it, or the other way round. */
static double steep_above(double x, double time, double optimum)
{
    (void)time;
    return x * x * x / (3 * optimum * optimum * optimum) - log(x / optimum);
}

static double steep_below(double x, double time, double optimum)
{
    (void)time;
    return optimum / x + x * x / (2 * optimum * optimum);
}

static double log_parabola(double x, double time, double optimum)
{
    (void)time;
    return log(x / optimum) * log(x / optimum);
}

static double valley(double x, double time, double optimum)
{
    double shifted = optimum + (time - 2) * 0.03;
    return parabola(x, time, shifted) + (time - 2) * (time - 2);
}

/* Scores the chosen points, `batch` at a time, until the search is complete; checks the points. */
static void search_all(struct run *run, size_t batch, function score, double optimum)
{
    run->n = 0;
    for (;;) {
        struct phema_search_point points[MOST];
        size_t n = phema_search_next(points, batch, &run->search, run->scores, run->n);
        assert_true(n <= batch);
        if (!n)
            return;
        assert_true(run->n + n <= MOST);
        size_t before = run->n;
        for (size_t i = 0; i < n; i++) {
            double x = points[i].sigma_rel;
            assert_true(phema_search_includes(&run->search, points[i]));
            for (size_t k = 0; k < run->n; k++) /* no point twice */
                assert_false(run->scores[k].at.sigma_rel == x &&
                             run->scores[k].at.time == points[i].time);
            run->scores[run->n++] = (struct phema_search_score){
                .at = points[i], .score = score(x, points[i].time, optimum)};
        }
        assert_true(run->n > before);
    }
}

static struct phema_search range(double *widths, size_t n, double first, double last,
                                 double tolerance)
{
    static const double time = 1;
    phema_search_grid(widths, n, first, last, false);
    return (struct phema_search){
        .widths = widths, .n_widths = n, .times = &time, .n_times = 1, .tolerance = tolerance};
}

static void assert_found(const struct run *run, double optimum)
{
    struct phema_search_best best;
    assert_true(phema_search_find_best(&best, &run->search, run->scores, run->n));
    assert_true(best.is_settled);
    /* widths are decimals of four digits */
    assert_near(best.score->at.sigma_rel, optimum, run->search.tolerance + 1e-4);
}

static void the_grid_has_equal_ratios_and_four_digits(void **state)
{
    (void)state;
    double widths[6];
    phema_search_grid(widths, 6, 0.02, 0.25, false);
    /* 0.02 * 12.5^(i / 5) */
    static const double wanted[] = {0.02, 0.0331, 0.0549, 0.091, 0.1509, 0.25};
    for (size_t i = 0; i < 6; i++)
        assert_near(widths[i], wanted[i], 0); /* the doubles nearest to the decimals */
    phema_search_grid(widths, 2, 0.123456, 0.2, false);
    assert_near(widths[0], 0.123456, 0); /* the ends are exact */
}

static void a_single_optimum_is_found_in_few_evaluations(void **state)
{
    (void)state;
    static const struct {
        function score;
        size_t most;
    } cases[] = {{parabola, 14},    {log_parabola, 12}, {steep_above, 14},
                 {steep_below, 14}, {distance, 14},     {cliff, 18}};
    static const size_t batches[] = {1, 2, 3, 4, 8};
    for (size_t c = 0; c < ARRAY_LEN(cases); c++)
        for (size_t b = 0; b < ARRAY_LEN(batches); b++)
            for (int i = 0; i <= 230; i++) {
                double widths[6], optimum = 0.02 + i * 0.001;
                struct run run = {.search = range(widths, 6, 0.02, 0.25, 0.005)};
                search_all(&run, batches[b], cases[c].score, optimum);
                assert_found(&run, optimum);
                assert_true(run.n <= cases[c].most);
            }
}

/* former: means of a search that begins with 8 evenly spaced widths, and refines by a parabola in
 * sigma_rel and golden sections of both gaps at once. */
static void evaluations_are_no_more_than_those_of_golden_sections(void **state)
{
    (void)state;
    static const struct {
        function score;
        double tolerance, former;
    } cases[] = {
        {parabola, 0.005, 11.89},     {parabola, 0.001, 13.12},    {log_parabola, 0.005, 12.32},
        {log_parabola, 0.001, 15.36}, {steep_above, 0.005, 11.89}, {steep_above, 0.001, 13.23},
        {steep_below, 0.005, 12.13},  {steep_below, 0.001, 15.06}, {distance, 0.005, 12.12},
        {distance, 0.001, 15.52},     {cliff, 0.005, 14.65},       {cliff, 0.001, 21.41}};
    for (size_t c = 0; c < ARRAY_LEN(cases); c++) {
        size_t n = 0;
        for (int i = 0; i <= 230; i++) {
            double widths[6], optimum = 0.02 + i * 0.001;
            struct run run = {.search = range(widths, 6, 0.02, 0.25, cases[c].tolerance)};
            search_all(&run, 4, cases[c].score, optimum);
            assert_found(&run, optimum);
            n += run.n;
        }
        assert_true((double)n / 231 <= cases[c].former);
    }
}

static void the_optimum_is_within_the_tolerance(void **state)
{
    (void)state;
    static const double tolerances[] = {0.001, 0.0015, 0.01, 0.05, 0.5};
    for (size_t t = 0; t < ARRAY_LEN(tolerances); t++)
        for (int i = 0; i < 50; i++) {
            double widths[5], optimum = 0.05 + i * 0.00333;
            struct run run = {.search = range(widths, 5, 0.03, 0.28, tolerances[t])};
            search_all(&run, 3, distance, optimum);
            assert_found(&run, optimum);
        }
}

static double negated(double x, double time, double optimum)
{
    return -parabola(x, time, optimum);
}

static void maximising_equals_minimising_the_negated_score(void **state)
{
    (void)state;
    double widths[8];
    struct run low = {.search = range(widths, 8, 0.02, 0.25, 0.005)}, high = low;
    high.search.maximizes = true;
    search_all(&low, 4, parabola, 0.1234);
    search_all(&high, 4, negated, 0.1234);
    assert_found(&high, 0.1234);
    assert_int_equal(low.n, high.n);
    for (size_t i = 0; i < low.n; i++)
        assert_near(low.scores[i].at.sigma_rel, high.scores[i].at.sigma_rel, 0);
}

static double broken(double x, double time, double optimum)
{
    if (x > 0.16)
        return x > 0.2 ? PHEMA_UNKNOWN : HUGE_VAL;
    return parabola(x, time, optimum);
}

static void scores_that_are_not_finite_are_the_worst(void **state)
{
    (void)state;
    double widths[8];
    struct run run = {.search = range(widths, 8, 0.02, 0.25, 0.005)};
    search_all(&run, 4, broken, 0.155); /* its neighbour has no score */
    assert_found(&run, 0.155);
    run.search.maximizes = true;
    search_all(&run, 4, broken, 0.1);
    struct phema_search_best best;
    assert_true(phema_search_find_best(&best, &run.search, run.scores, run.n));
    assert_true(isfinite(best.score->score));
}

/* ---- Noise ---- */

static uint64_t noise_state;

/* Normal to a few percent: the sum of 12 uniform numbers, of an LCG. */
static double draw_noise(void)
{
    double sum = -6;
    for (int i = 0; i < 12; i++) {
        noise_state = noise_state * 6364136223846793005u + 1442695040888963407u;
        sum += (double)(noise_state >> 11) / 9007199254740992.0;
    }
    return sum;
}

static double noisy_parabola(double x, double time, double optimum)
{
    return log_parabola(x, time, optimum) + 0.01 * draw_noise();
}

static double noisy_slope(double x, double time, double optimum)
{
    return steep_above(x, time, optimum) + 0.01 * draw_noise();
}

/* The width found is worse than the optimum by about the noise of one score, on average, and takes
 * at least two evaluations less than a search that does not know the noise. */
static void noise_ends_the_search(void **state)
{
    (void)state;
    static const function noisy[] = {noisy_parabola, noisy_slope};
    static const function exact[] = {log_parabola, steep_above};
    for (size_t c = 0; c < ARRAY_LEN(noisy); c++) {
        size_t n[2] = {0, 0};
        double loss[2] = {0, 0};
        for (int knows_noise = 0; knows_noise < 2; knows_noise++) {
            noise_state = 1;
            for (int i = 0; i <= 230; i++) {
                double widths[6], optimum = 0.02 + i * 0.001;
                struct run run = {.search = range(widths, 6, 0.02, 0.25, 0.001)};
                struct phema_search_best best;
                run.search.noise = knows_noise ? 0.01 : 0;
                search_all(&run, 4, noisy[c], optimum);
                assert_true(phema_search_find_best(&best, &run.search, run.scores, run.n));
                assert_true(best.is_settled);
                n[knows_noise] += run.n;
                loss[knows_noise] +=
                    exact[c](best.width->at.sigma_rel, 1, optimum) - exact[c](optimum, 1, optimum);
            }
        }
        assert_true(n[1] + (size_t)2 * 231 <= n[0]);
        assert_true(loss[1] / 231 <= 0.01);
    }
}

static void lambdas_are_searched_on_both_sides_of_0(void **state)
{
    (void)state;
    static const function all[] = {parabola, distance};
    for (size_t c = 0; c < ARRAY_LEN(all); c++)
        for (int i = 0; i <= 60; i++) {
            double lambdas[7], optimum = -1 + i * 0.05;
            struct run run = {.search = range(lambdas, 2, 0.1, 0.2, 0.05)};
            phema_search_grid(lambdas, 7, -1, 2, true);
            assert_true(lambdas[0] == -1 && lambdas[1] == -0.5 && lambdas[2] == 0);
            run.search.n_widths = 7;
            run.search.is_line = true;
            run.search.has_newest = true;
            search_all(&run, 4, all[c], optimum);
            assert_found(&run, optimum);
            assert_true(run.n <= 14);
        }
}

static void widths_equal_within_the_noise_are_contiguous(void **state)
{
    (void)state;
    double widths[2];
    struct phema_search search = range(widths, 2, 0.05, 0.25, 0.005);
    static const struct phema_search_score scores[] = {
        {.at = {0.05, 1}, .score = 1.02}, /* as good, but a worse one lies between */
        {.at = {0.08, 1}, .score = 1.03}, {.at = {0.1, 1}, .score = 1.028},
        {.at = {0.12, 1}, .score = 1},    {.at = {0.15, 1}, .score = 1.02},
        {.at = {0.25, 1}, .score = 1.5},  {.at = {PHEMA_SEARCH_NEWEST, 1}, .score = 1.025}};
    struct phema_search_best best;
    assert_true(phema_search_find_best(&best, &search, scores, ARRAY_LEN(scores)));
    assert_true(isnan(best.equal_from) && isnan(best.equal_to));
    assert_false(best.is_newest_equal || best.is_settled);
    assert_false(best.is_flat);
    search.noise = 0.01; /* 2 sqrt 2 of it is 0.0283 */
    search.has_newest = true;
    search.newest_time = 1;
    assert_true(phema_search_find_best(&best, &search, scores, ARRAY_LEN(scores)));
    assert_near(best.equal_from, 0.1, 0);
    assert_near(best.equal_to, 0.15, 0);
    assert_true(best.is_newest_equal && best.is_settled);
}

static void equal_scores_around_the_best_are_told(void **state)
{
    (void)state;
    double widths[2];
    struct phema_search search = range(widths, 2, 0.05, 0.25, 0.005);
    struct phema_search_score scores[] = {{.at = {0.05, 1}, .score = 2},
                                          {.at = {0.1, 1}, .score = 1},
                                          {.at = {0.12, 1}, .score = 1},
                                          {.at = {0.25, 1}, .score = 2},
                                          {.at = {PHEMA_SEARCH_NEWEST, 1}, .score = 1}};
    struct phema_search_best best;
    search.has_newest = true;
    search.newest_time = 1;
    assert_true(phema_search_find_best(&best, &search, scores, ARRAY_LEN(scores)));
    assert_true(best.score->at.sigma_rel == 0.1 && best.is_newest_equal && !best.is_flat);
    assert_true(best.equal_from == 0.1 && best.equal_to == 0.12);
    scores[0].score = scores[3].score = 1;
    assert_true(phema_search_find_best(&best, &search, scores, ARRAY_LEN(scores)));
    assert_true(best.equal_from == 0.05 && best.equal_to == 0.25 && best.is_flat);
    scores[4].score = 3;
    assert_true(phema_search_find_best(&best, &search, scores, ARRAY_LEN(scores)));
    assert_false(best.is_flat);
}

/* ---- The newest snapshot ---- */

static double better_as_it_is(double x, double time, double optimum)
{
    return x == PHEMA_SEARCH_NEWEST ? 2 : parabola(x, time, optimum);
}

static double worse_as_it_is(double x, double time, double optimum)
{
    return x == PHEMA_SEARCH_NEWEST ? 4 : parabola(x, time, optimum);
}

static void the_newest_snapshot_is_scored_once_and_may_win(void **state)
{
    (void)state;
    double widths[6];
    struct run run = {.search = range(widths, 6, 0.02, 0.25, 0.005)}, without = run;
    struct phema_search_best best;
    run.search.has_newest = true;
    run.search.newest_time = 0.5;
    search_all(&without, 4, parabola, 0.12);
    for (int wins = 0; wins < 2; wins++) {
        search_all(&run, 4, wins ? better_as_it_is : worse_as_it_is, 0.12);
        assert_int_equal(run.n, without.n + 1);
        assert_true(phema_search_find_best(&best, &run.search, run.scores, run.n));
        assert_true(phema_search_is_newest(run.scores[6].at)); /* after the grid */
        assert_ptr_equal(best.newest, &run.scores[6]);
        assert_near(best.newest->at.time, 0.5, 0);
        assert_ptr_equal(best.score, wins ? best.newest : best.width);
        assert_near(best.width->at.sigma_rel, 0.12, 0.005);
        assert_true(best.is_settled);
    }
    run.search.newest_time = 1; /* the score of another time is ignored */
    assert_true(phema_search_find_best(&best, &run.search, run.scores, run.n));
    assert_null(best.newest);
    assert_int_equal(
        phema_search_next(&(struct phema_search_point){0}, 1, &run.search, run.scores, run.n), 1);
}

static double nothing(double x, double time, double optimum)
{
    (void)x;
    (void)time;
    (void)optimum;
    return PHEMA_UNKNOWN;
}

static void without_a_finite_score_nothing_is_best(void **state)
{
    (void)state;
    double widths[4];
    struct run run = {.search = range(widths, 4, 0.02, 0.25, 0.005)};
    search_all(&run, 4, nothing, 0);
    assert_int_equal(run.n, 4); /* only the grid */
    struct phema_search_best best;
    assert_false(phema_search_find_best(&best, &run.search, run.scores, run.n));
}

static double flat(double x, double time, double optimum)
{
    (void)x;
    (void)time;
    (void)optimum;
    return 7;
}

static void the_narrowest_of_equal_scores_is_best(void **state)
{
    (void)state;
    double widths[8];
    struct run run = {.search = range(widths, 8, 0.02, 0.25, 0.005)};
    search_all(&run, 4, flat, 0);
    struct phema_search_best best;
    assert_true(phema_search_find_best(&best, &run.search, run.scores, run.n));
    assert_near(best.score->at.sigma_rel, 0.02, 0);
    assert_true(isnan(best.below));
    assert_true(best.is_settled);
}

static void the_best_of_several_times_is_refined(void **state)
{
    (void)state;
    static const double times[] = {1, 2, 3};
    double widths[5];
    struct run run = {.search = range(widths, 5, 0.02, 0.25, 0.005)};
    run.search.times = times;
    run.search.n_times = 3;
    search_all(&run, 4, valley, 0.111);
    struct phema_search_best best;
    assert_true(phema_search_find_best(&best, &run.search, run.scores, run.n));
    assert_near(best.score->at.time, 2, 0);
    assert_near(best.score->at.sigma_rel, 0.111, 0.0051);
    assert_true(run.n <= 15 + 10);
}

static void next_points_depend_on_the_scores_alone(void **state)
{
    (void)state;
    double widths[8];
    struct run run = {.search = range(widths, 8, 0.02, 0.25, 0.005)};
    search_all(&run, 4, distance, 0.1);
    /* the same scores in another order give the same points */
    for (size_t n = 0; n < run.n; n++) {
        struct phema_search_score turned[MOST];
        for (size_t i = 0; i < n; i++)
            turned[i] = run.scores[n - 1 - i];
        struct phema_search_point a[MOST], b[MOST];
        size_t n_a = phema_search_next(a, 4, &run.search, run.scores, n);
        size_t n_b = phema_search_next(b, 4, &run.search, turned, n);
        assert_int_equal(n_a, n_b);
        for (size_t i = 0; i < n_a; i++)
            assert_near(a[i].sigma_rel, b[i].sigma_rel, 0);
    }
}

static void scores_outside_the_range_are_ignored(void **state)
{
    (void)state;
    double widths[3];
    struct phema_search search = range(widths, 3, 0.1, 0.2, 0.005);
    const struct phema_search_score scores[] = {{.at = {0.05, 1}, .score = -9},
                                                {.at = {0.1414, 2}, .score = -9},
                                                {.at = {0.1414, 1}, .score = 1}};
    struct phema_search_best best;
    assert_true(phema_search_find_best(&best, &search, scores, 3));
    assert_ptr_equal(best.score, &scores[2]);
    struct phema_search_point points[4];
    assert_int_equal(phema_search_next(points, 4, &search, scores, 3), 2); /* 0.1 and 0.2 */
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_grid_has_equal_ratios_and_four_digits),
    cmocka_unit_test(a_single_optimum_is_found_in_few_evaluations),
    cmocka_unit_test(evaluations_are_no_more_than_those_of_golden_sections),
    cmocka_unit_test(the_optimum_is_within_the_tolerance),
    cmocka_unit_test(maximising_equals_minimising_the_negated_score),
    cmocka_unit_test(scores_that_are_not_finite_are_the_worst),
    cmocka_unit_test(noise_ends_the_search),
    cmocka_unit_test(lambdas_are_searched_on_both_sides_of_0),
    cmocka_unit_test(widths_equal_within_the_noise_are_contiguous),
    cmocka_unit_test(equal_scores_around_the_best_are_told),
    cmocka_unit_test(the_newest_snapshot_is_scored_once_and_may_win),
    cmocka_unit_test(without_a_finite_score_nothing_is_best),
    cmocka_unit_test(the_narrowest_of_equal_scores_is_best),
    cmocka_unit_test(the_best_of_several_times_is_refined),
    cmocka_unit_test(next_points_depend_on_the_scores_alone),
    cmocka_unit_test(scores_outside_the_range_are_ignored),
};
TEST_GROUP(tests)
