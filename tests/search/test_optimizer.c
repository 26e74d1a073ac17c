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
            assert_true(x >= run->search.widths[0]);
            assert_true(x <= run->search.widths[run->search.n_widths - 1]);
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
    phema_search_grid(widths, n, first, last);
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

static void the_grid_is_even_and_has_four_digits(void **state)
{
    (void)state;
    double widths[8];
    phema_search_grid(widths, 8, 0.02, 0.25);
    static const double wanted[] = {0.02, 0.0529, 0.0857, 0.1186, 0.1514, 0.1843, 0.2171, 0.25};
    for (size_t i = 0; i < 8; i++)
        assert_near(widths[i], wanted[i], 0); /* the doubles nearest to the decimals */
    phema_search_grid(widths, 2, 0.123456, 0.2);
    assert_near(widths[0], 0.123456, 0); /* the ends are exact */
}

static void a_single_optimum_is_found_in_few_evaluations(void **state)
{
    (void)state;
    static const struct {
        function score;
        size_t most;
    } cases[] = {{parabola, 16}, {distance, 19}, {cliff, 25}};
    static const size_t batches[] = {1, 2, 3, 4, 8};
    for (size_t c = 0; c < ARRAY_LEN(cases); c++)
        for (size_t b = 0; b < ARRAY_LEN(batches); b++)
            for (int i = 0; i <= 230; i++) {
                double widths[8], optimum = 0.02 + i * 0.001;
                struct run run = {.search = range(widths, 8, 0.02, 0.25, 0.005)};
                search_all(&run, batches[b], cases[c].score, optimum);
                assert_found(&run, optimum);
                assert_true(run.n <= cases[c].most);
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
                                                {.at = {0.15, 2}, .score = -9},
                                                {.at = {0.15, 1}, .score = 1}};
    struct phema_search_best best;
    assert_true(phema_search_find_best(&best, &search, scores, 3));
    assert_ptr_equal(best.score, &scores[2]);
    struct phema_search_point points[4];
    assert_int_equal(phema_search_next(points, 4, &search, scores, 3), 2); /* 0.1 and 0.2 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_grid_is_even_and_has_four_digits),
        cmocka_unit_test(a_single_optimum_is_found_in_few_evaluations),
        cmocka_unit_test(the_optimum_is_within_the_tolerance),
        cmocka_unit_test(maximising_equals_minimising_the_negated_score),
        cmocka_unit_test(scores_that_are_not_finite_are_the_worst),
        cmocka_unit_test(without_a_finite_score_nothing_is_best),
        cmocka_unit_test(the_narrowest_of_equal_scores_is_best),
        cmocka_unit_test(the_best_of_several_times_is_refined),
        cmocka_unit_test(next_points_depend_on_the_scores_alone),
        cmocka_unit_test(scores_outside_the_range_are_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
