// SPDX-License-Identifier: Apache-2.0
/* test_leave_one_out.c - scores of one inverse are those of solving for each snapshot from the
 * others; the likelihood is that of its definition; windows cover a long series; a foreign snapshot
 * stands out. */
#include "phema/solver.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "phema/quad.h"
#include "profiles.h"

#define N_ELEMS ((size_t)50)
#define ROUNDED 1e-4

struct series {
    size_t n;
    struct phema_profile *snapshots;
    double *rounding, *values;
    double ends[4], wander[4], jitter[4];
    struct phema_motion motion;
};

static double random_number(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) * 0x1p-52 - 1;
}

/* Two widths at each time; parameters that move a little from time to time. */
static void make_series(struct series *series, size_t n)
{
    uint64_t state = 7;
    *series = (struct series){.n = n,
                              .snapshots = calloc(n, sizeof(*series->snapshots)),
                              .rounding = calloc(n, sizeof(double)),
                              .values = calloc(n * N_ELEMS, sizeof(double)),
                              .wander = {3e-5, 1e-5, 2e-5, 1e-5},
                              .jitter = {1e-3, 1e-3, 0, 1e-3}};
    assert_true(series->snapshots && series->rounding && series->values);
    for (size_t k = 0; k < n; k++) {
        series->snapshots[k] =
            (struct phema_profile){.gamma = k % 2 ? 6.937203937601809 : 16.97219860230345,
                                   .t = 100.0 * (double)(k / 2 + 1)};
        series->rounding[k] = ROUNDED;
        for (size_t e = 0; e < N_ELEMS; e++)
            series->values[k * N_ELEMS + e] =
                (k ? series->values[(k - 1) * N_ELEMS + e] : random_number(&state)) +
                0.01 * random_number(&state);
    }
    for (size_t i = 0; i < 4; i++)
        series->ends[i] = series->snapshots[n - 1].t * (double)(i + 1) / 4;
    series->motion = (struct phema_motion){
        .n_intervals = 4, .ends = series->ends, .wander = series->wander, .jitter = series->jitter};
}

static void clear_series(struct series *series)
{
    free(series->snapshots);
    free(series->rounding);
    free(series->values);
}

/* Ten tensors of five elements, stored with these distances between numbers. */
static struct phema_leave_one_out score_tensors(const struct series *series, double spacing)
{
    struct phema_error err = {0};
    double z[200], spacings[N_ELEMS];
    size_t tensors[N_ELEMS];
    for (size_t e = 0; e < N_ELEMS; e++) {
        tensors[e] = 70 + e / 5;
        spacings[e] = spacing;
    }
    struct phema_leave_one_out out = {.z = z, .limit = HUGE_VAL};
    const struct phema_problem problem = {.snapshots = series->snapshots,
                                          .rounding = series->rounding,
                                          .n = series->n,
                                          .motion = &series->motion};
    const struct phema_sample_rows rows = {.values = series->values,
                                           .n_elems = N_ELEMS,
                                           .mean_square = 0.5,
                                           .tensors = tensors,
                                           .spacings = spacings};
    assert_ok(phema_leave_one_out(&out, &problem, &rows, &err), &err);
    return out;
}

/* Returns the likelihood. */
static double score(double *z, double *without, const struct series *series, const size_t *order,
                    double limit)
{
    struct phema_error err = {0};
    struct phema_leave_one_out out = {.z = z, .largest_without = without, .limit = limit};
    const struct phema_problem problem = {.snapshots = series->snapshots,
                                          .rounding = series->rounding,
                                          .n = series->n,
                                          .motion = &series->motion};
    const struct phema_sample_rows rows = {
        .values = series->values, .order = order, .n_elems = N_ELEMS, .mean_square = 0.5};
    assert_ok(phema_leave_one_out(&out, &problem, &rows, &err), &err);
    return out.likelihood;
}

/* The weights of all but one snapshot for the profile of that one, and their expected error, which
 * with its own rounding is the distance to expect. */
static double score_by_solving(const struct series *series, size_t i)
{
    struct phema_profile *others = calloc(series->n, sizeof(*others));
    assert_non_null(others);
    for (size_t k = 0, x = 0; k < series->n; k++)
        if (k != i)
            others[x++] = series->snapshots[k];
    const struct phema_mix target = {.parts = &series->snapshots[i], .n_parts = 1};
    const struct phema_problem problem = {.snapshots = others,
                                          .rounding = series->rounding,
                                          .n = series->n - 1,
                                          .targets = &target,
                                          .m = 1,
                                          .motion = &series->motion};
    const struct phema_solve_options options = {.metric = PHEMA_METRIC_MOTION};
    struct phema_solution solution = {0};
    struct phema_error err = {0};
    assert_ok(phema_weights_solve(&solution, &problem, &options, &err), &err);
    double squares = 0;
    for (size_t e = 0; e < N_ELEMS; e++) {
        double left = series->values[i * N_ELEMS + e];
        for (size_t k = 0, x = 0; k < series->n; k++)
            if (k != i)
                left -= solution.weights[x++] * series->values[k * N_ELEMS + e];
        squares += left * left;
    }
    double expected = solution.predicted.total * solution.predicted.total + ROUNDED * ROUNDED;
    phema_solutions_clear(&solution, 1);
    free(others);
    return sqrt(squares / (double)N_ELEMS / 0.5 / expected);
}

static void scores_are_those_of_solving_without_each(void **state)
{
    (void)state;
    struct series series;
    make_series(&series, 12);
    double z[12], without[12];
    score(z, without, &series, NULL, HUGE_VAL);
    for (size_t i = 0; i < series.n; i++) {
        double expected = score_by_solving(&series, i);
        assert_near(z[i], expected, 1e-9 * expected);
        assert_true(isnan(without[i])); /* none is above the limit */
    }
    clear_series(&series);
}

/* Without one snapshot the scores of the others are those of a series that never had it. */
static void one_less_is_as_if_it_had_not_been(void **state)
{
    (void)state;
    struct series series, shorter;
    make_series(&series, 12);
    make_series(&shorter, 12);
    double z[12], without[12], left[12], ignored[12];
    score(z, without, &series, NULL, 0);
    for (size_t gone = 0; gone < series.n; gone++) {
        size_t x = 0;
        for (size_t k = 0; k < series.n; k++) {
            if (k == gone)
                continue;
            shorter.snapshots[x] = series.snapshots[k];
            memcpy(shorter.values + x * N_ELEMS, series.values + k * N_ELEMS,
                   N_ELEMS * sizeof(double));
            x++;
        }
        shorter.n = x;
        score(left, ignored, &shorter, NULL, HUGE_VAL);
        double largest = 0;
        for (size_t k = 0; k < x; k++)
            largest = fmax(largest, left[k]);
        assert_near(without[gone], largest, 1e-9 * largest);
    }
    clear_series(&series);
    clear_series(&shorter);
}

/* 420 snapshots are compared in windows, of three stretches; what lies far away changes little. */
static void windows_cover_long_series(void **state)
{
    (void)state;
    enum { LONG = 420 };
    struct series series;
    make_series(&series, LONG);
    double z[LONG], without[LONG], foreign[LONG];
    score(z, without, &series, NULL, HUGE_VAL);
    for (size_t k = 0; k < LONG; k++)
        assert_true(z[k] > 0 && isfinite(z[k]));
    static const size_t strange[] = {0, 1, 17, 18, 100, 193, 197, 198, 396, LONG - 1};
    for (size_t s = 0; s < ARRAY_LEN(strange); s++) {
        double *row = series.values + strange[s] * N_ELEMS, kept[N_ELEMS];
        memcpy(kept, row, sizeof(kept));
        for (size_t e = 0; e < N_ELEMS; e++)
            row[e] = -row[e];
        score(foreign, without, &series, NULL, 1e3);
        for (size_t k = 0; k < LONG; k++) {
            assert_true(foreign[k] <= foreign[strange[s]]);
            if (k > strange[s] + 24 || k + 24 < strange[s])
                assert_near(foreign[k], z[k], 1e-12 * z[k]);
        }
        memcpy(row, kept, sizeof(kept));
    }
    clear_series(&series);
}

static void rows_are_in_the_order_given(void **state)
{
    (void)state;
    struct series series;
    make_series(&series, 8);
    double z[8], turned[8], without[8];
    static const size_t order[] = {0, 1, 2, 6, 4, 5, 3, 7};
    score(z, without, &series, NULL, HUGE_VAL);
    double row[N_ELEMS], *third = series.values + 3 * N_ELEMS, *sixth = series.values + 6 * N_ELEMS;
    memcpy(row, third, sizeof(row));
    memcpy(third, sixth, sizeof(row));
    memcpy(sixth, row, sizeof(row));
    score(turned, without, &series, order, HUGE_VAL);
    assert_memory_equal(turned, z, sizeof(z));
    clear_series(&series);
}

static void unknown_rounding_counts_as_that_of_float32(void **state)
{
    (void)state;
    struct series series;
    make_series(&series, 8);
    double z[8], unknown[8], without[8];
    for (size_t k = 0; k < series.n; k++)
        series.rounding[k] = 1e-9; /* below what averages in float32 have */
    score(z, without, &series, NULL, HUGE_VAL);
    double *rounding = series.rounding;
    series.rounding = NULL;
    score(unknown, without, &series, NULL, HUGE_VAL);
    series.rounding = rounding;
    assert_memory_equal(unknown, z, sizeof(z));
    clear_series(&series);
}

/* <Q_a, Q_b> of power functions, t_a <= t_b (N15). */
static phema_quad walk_product(const struct phema_profile *a, const struct phema_profile *b)
{
    phema_quad x = (phema_quad)a->gamma + 1, y = (phema_quad)b->gamma + 1, t = (phema_quad)a->t;
    return t * (1 - 1 / (x + 1) -
                phema_quad_pow(t / (phema_quad)b->t, y) * (1 / (y + 1) - 1 / (x + y + 1)));
}

/* Solves K y = b in quad by elimination; returns log |K|. K is overwritten, b becomes y [n x m]. */
static double eliminate(phema_quad *matrix, phema_quad *b, size_t n, size_t m)
{
    phema_quad log_determinant = 0;
    for (size_t p = 0; p < n; p++) {
        phema_quad pivot = matrix[p * n + p];
        log_determinant += phema_quad_log(pivot);
        for (size_t i = 0; i < n; i++) {
            phema_quad factor = i == p ? 0 : matrix[i * n + p] / pivot;
            for (size_t j = p; j < n && i != p; j++)
                matrix[i * n + j] -= factor * matrix[p * n + j];
            for (size_t c = 0; c < m && i != p; c++)
                b[i * m + c] -= factor * b[p * m + c];
        }
    }
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < m; c++)
            b[i * m + c] /= matrix[i * n + i];
    return (double)log_determinant;
}

/* -(log |K| + log 1' K^-1 1 + tr(P X X') / elements) / 2 as it is written, in quad: the elements
 * differ by a millionth of their size, so that float64 would have few digits of the trace. */
static double likelihood_by_elimination(const struct series *series, double wander)
{
    enum { N_COLUMNS = N_ELEMS + 1 }; /* elements, then ones */
    size_t n = series->n, m = N_COLUMNS;
    phema_quad *matrix = calloc(n * n, sizeof(*matrix)), *solved = calloc(n * m, sizeof(*solved));
    assert_true(matrix && solved);
    for (size_t i = 0; i < n; i++) {
        for (size_t j = i; j < n; j++)
            matrix[i * n + j] = matrix[j * n + i] =
                (phema_quad)wander * walk_product(&series->snapshots[i], &series->snapshots[j]);
        matrix[i * n + i] += (phema_quad)series->rounding[i] * (phema_quad)series->rounding[i];
        for (size_t e = 0; e < N_ELEMS; e++)
            solved[i * m + e] = (phema_quad)series->values[i * N_ELEMS + e];
        solved[i * m + N_ELEMS] = 1;
    }
    double log_determinant = eliminate(matrix, solved, n, m);
    phema_quad total = 0, trace = 0;
    for (size_t i = 0; i < n; i++)
        total += solved[i * m + N_ELEMS];
    for (size_t e = 0; e < N_ELEMS; e++) {
        phema_quad sum = 0;
        for (size_t i = 0; i < n; i++) {
            trace += (phema_quad)series->values[i * N_ELEMS + e] * solved[i * m + e];
            sum += solved[i * m + e];
        }
        trace -= sum * sum / total;
    }
    free(matrix);
    free(solved);
    return -(log_determinant + log((double)total) + (double)trace / N_ELEMS / 0.5) / 2;
}

static void likelihood_is_that_of_its_definition(void **state)
{
    (void)state;
    struct series series;
    make_series(&series, 12);
    static const double moved[] = {1, 1e-3, 1e-6};
    for (size_t s = 0; s < ARRAY_LEN(moved); s++) {
        double wander = 2e-5 * moved[s] * moved[s], z[12];
        for (size_t i = 0; i < 4; i++) {
            series.wander[i] = wander;
            series.jitter[i] = 0;
        }
        for (size_t k = 1; k < series.n; k++) {
            series.rounding[k] = fmax(1e-3 * moved[s], PHEMA_FLOAT32_FLOOR);
            for (size_t e = 0; e < N_ELEMS; e++)
                series.values[k * N_ELEMS + e] =
                    series.values[e] +
                    (s ? 1e-3 : 1) * (series.values[k * N_ELEMS + e] - series.values[e]);
        }
        series.rounding[0] = series.rounding[1];
        double likelihood = score(z, NULL, &series, NULL, HUGE_VAL);
        assert_near(likelihood, likelihood_by_elimination(&series, wander), 1e-10);
        assert_near(score(NULL, NULL, &series, NULL, HUGE_VAL), likelihood, 1e-9); /* alone */
    }
    clear_series(&series);
}

/* A series is less likely with two snapshots exchanged. */
static void likelihood_prefers_the_labels_of_a_walk(void **state)
{
    (void)state;
    struct series series;
    make_series(&series, 100);
    double z[100];
    static const size_t n[] = {8, 32, 100};
    for (size_t i = 0; i < ARRAY_LEN(n); i++) {
        size_t order[100];
        for (size_t k = 0; k < n[i]; k++)
            order[k] = k;
        series.n = n[i];
        double labelled = score(z, NULL, &series, order, HUGE_VAL);
        order[n[i] - 1] = n[i] / 2;
        order[n[i] / 2] = n[i] - 1;
        assert_true(labelled > score(z, NULL, &series, order, HUGE_VAL) + 1);
    }
    series.n = 100;
    clear_series(&series);
}

/* A tensor zeroed in one snapshot is found, wherever that is, and nothing else. */
static void damaged_tensors_are_found(void **state)
{
    (void)state;
    struct series series;
    make_series(&series, 100);
    static const size_t n[] = {7, 12, 32, 100};
    for (size_t i = 0; i < ARRAY_LEN(n); i++) {
        series.n = n[i];
        assert_true(score_tensors(&series, 0).outlier.ratio < 5);
        for (size_t k = 0; k<n[i]; k += n[i]> 32 ? 7 : 1) {
            double *tensor = series.values + k * N_ELEMS + 15, kept[10];
            memcpy(kept, tensor, sizeof(kept));
            memset(tensor, 0, sizeof(kept));
            struct phema_tensor_outlier outlier = score_tensors(&series, 1e-4).outlier;
            assert_int_equal(outlier.snapshot, k);
            assert_true(outlier.tensor == 73 || outlier.tensor == 74);
            assert_int_equal(outlier.n_compared, 10);
            assert_int_equal(outlier.n_outliers, 2);
            assert_true(score_tensors(&series, 0.2).outlier.ratio < PHEMA_TENSOR_OUTLIER);
            memcpy(tensor, kept, sizeof(kept));
        }
    }
    series.n = 4; /* fifteen numbers in the others are too few to tell */
    assert_int_equal(score_tensors(&series, 0).outlier.n_compared, 0);
    series.n = 100;
    clear_series(&series);
}

static void fewer_than_three_say_nothing(void **state)
{
    (void)state;
    struct series series;
    make_series(&series, 4);
    series.n = 2;
    double z[2] = {0}, without[2] = {0};
    double likelihood = score(z, without, &series, NULL, 0);
    assert_true(isnan(z[0]) && isnan(z[1]) && isnan(likelihood));
    clear_series(&series);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(scores_are_those_of_solving_without_each),
    cmocka_unit_test(one_less_is_as_if_it_had_not_been),
    cmocka_unit_test(windows_cover_long_series),
    cmocka_unit_test(rows_are_in_the_order_given),
    cmocka_unit_test(likelihood_is_that_of_its_definition),
    cmocka_unit_test(likelihood_prefers_the_labels_of_a_walk),
    cmocka_unit_test(damaged_tensors_are_found),
    cmocka_unit_test(unknown_rounding_counts_as_that_of_float32),
    cmocka_unit_test(fewer_than_three_say_nothing),
};
TEST_GROUP(tests)
