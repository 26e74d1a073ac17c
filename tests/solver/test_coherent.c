// SPDX-License-Identifier: Apache-2.0
/* test_coherent.c - inner products with a coherent drift are those of the paths, and a fit finds how
 * much of a motion is coherent. */
#include "support.h"

#include <math.h>
#include <stdlib.h>

#include "profiles.h"
#include "samples.h"

/* ---- Inner products ---- */

static const struct phema_profile series[] = {
    {.gamma = 16.97, .t = 100},
    {.gamma = 6.94, .t = 100},
    {.gamma = 6.94, .t = 250},
    {.shape = PHEMA_SHAPE_RAW, .t = 250},
    {.shape = PHEMA_SHAPE_EMA, .half_life = 30, .t = 400},
    {.gamma = 3, .t = 700},
};
static const struct phema_profile wanted[] = {
    {.gamma = 1.5, .t = 600},
    {.shape = PHEMA_SHAPE_WINDOW, .length = 150, .t = 400},
    {.gamma = 9, .t = 700},
    {.gamma = 3, .t = 250},
};
static const double factors[] = {1, -1};

#define N_SERIES ARRAY_LEN(series)
#define N_WANTED 3 /* the last one is a difference */
#define N_CELLS  8
#define N_POINTS 4000 /* of a cell; midpoint sums of kinked functions: errors of 1e-7 */

/* All ends, those of the motion, and the begin of the window. */
static const double cells[N_CELLS + 1] = {0, 50, 100, 250, 300, 400, 500, 600, 700};

struct path {
    double after[N_CELLS][N_POINTS]; /* Q at each point */
    double length[N_CELLS];          /* the integral of Q over each cell */
};

static void add_path(struct path *path, const struct phema_profile *profile, double factor)
{
    static double times[N_POINTS], before[N_POINTS];
    for (size_t m = 0; m < N_CELLS; m++) {
        double step = (cells[m + 1] - cells[m]) / N_POINTS;
        for (size_t i = 0; i < N_POINTS; i++)
            times[i] = cells[m] + step * ((double)i + 0.5);
        phema_profile_cumulative(before, profile, times, N_POINTS);
        for (size_t i = 0; i < N_POINTS; i++) {
            double after = times[i] < profile->t ? 1 - before[i] : 0;
            path->after[m][i] += factor * after;
            path->length[m] += factor * after * step;
        }
    }
}

static size_t interval_at(const struct phema_motion *motion, double t)
{
    size_t k = 0;
    while (k + 1 < motion->n_intervals && motion->ends[k] < t)
        k++;
    return k;
}

static double middle_of(const struct phema_motion *motion, size_t k)
{
    return ((k ? motion->ends[k - 1] : 0) + motion->ends[k]) / 2;
}

/* From the definition: a walk, and velocities that are constant within intervals of the motion. */
static double expected_product(const struct path *a, const struct path *b,
                               const struct phema_motion *motion)
{
    double sum = 0;
    for (size_t m = 0; m < N_CELLS; m++) {
        size_t k = interval_at(motion, cells[m + 1]);
        for (size_t i = 0; i < N_POINTS; i++)
            sum += motion->wander[k] * a->after[m][i] * b->after[m][i] * (cells[m + 1] - cells[m]) /
                   N_POINTS;
        for (size_t l = 0; l < N_CELLS; l++) {
            size_t other = interval_at(motion, cells[l + 1]);
            double one = middle_of(motion, k), two = middle_of(motion, other);
            sum += motion->speed[k] * motion->speed[other] * fmin(one, two) / fmax(one, two) *
                   a->length[m] * b->length[l];
        }
    }
    return sum;
}

static void products_are_those_of_paths(void **state)
{
    (void)state;
    double ends[] = {50, 100, 300, 500, 700}, none[5] = {0};
    double rates[] = {3e-3, 2e-3, 8e-4, 1e-4, 5e-4}, speeds[] = {0.02, 0.01, 3e-3, 0, 8e-4};
    const struct phema_motion motion = {
        .n_intervals = 5, .ends = ends, .wander = rates, .jitter = none, .speed = speeds};
    const struct phema_mix mixes[N_WANTED] = {
        {.parts = &wanted[0], .n_parts = 1},
        {.parts = &wanted[1], .n_parts = 1},
        {.parts = &wanted[2], .factors = factors, .n_parts = 2}};
    const struct phema_problem problem = {
        .snapshots = series, .n = N_SERIES, .targets = mixes, .m = N_WANTED, .motion = &motion};
    struct phema_grams grams;
    struct phema_error err = {0};
    assert_ok(phema_grams_build(&grams, &problem, false, &err), &err);
    struct path *paths = calloc(N_SERIES + N_WANTED, sizeof(*paths));
    assert_non_null(paths);
    for (size_t i = 0; i < N_SERIES; i++)
        add_path(&paths[i], &series[i], 1);
    for (size_t k = 0; k < N_WANTED; k++)
        for (size_t p = 0; p < mixes[k].n_parts; p++)
            add_path(&paths[N_SERIES + k], &mixes[k].parts[p],
                     mixes[k].factors ? mixes[k].factors[p] : 1);
    const struct phema_gram *gram = &grams.motion;
    for (size_t i = 0; i < N_SERIES + N_WANTED; i++) {
        double own = expected_product(&paths[i], &paths[i], &motion);
        assert_near((double)gram->lengths[i], sqrt(own), 1e-6 * sqrt(own));
        for (size_t j = 0; j < N_SERIES; j++) {
            phema_quad cosine = i < N_SERIES ? phema_quad_from_fixed(gram->matrix[i * N_SERIES + j])
                                             : gram->cosines[(i - N_SERIES) * N_SERIES + j];
            assert_near((double)(cosine * gram->lengths[i] * gram->lengths[j]),
                        expected_product(&paths[i], &paths[j], &motion), 1e-6 * own);
        }
    }
    free(paths);
    phema_grams_clear(&grams);
}

/* ---- How much of a motion is coherent ---- */

#define N_TIMES ((size_t)8)
#define N_STEPS 800
#define N_ELEMS ((size_t)400)
#define RATE    1e-6 /* of the walk */

/* Elements that walk, and drift with velocities of (N33); two widths, or only the first of them. */
static void move(double *values, const struct phema_profile *snapshots, size_t n, double coherence)
{
    uint64_t state = 3;
    for (size_t e = 0; e < N_ELEMS; e++) {
        double x = 1, velocity = 0, averages[2 * N_TIMES] = {0};
        for (int step = 1; step <= N_STEPS; step++) {
            double kept = (double)(step - 1) / step; /* of min / max from the step before */
            double spread = sqrt(coherence * N_STEPS * RATE) / step;
            velocity = kept * kept * velocity + coin(&state) * spread * sqrt(1 - kept * kept);
            x += coin(&state) * sqrt(RATE) + velocity;
            for (size_t i = 0; i < n; i++) {
                double beta = pow(1 - 1.0 / step, snapshots[i].gamma + 1);
                if (step <= (int)snapshots[i].t)
                    averages[i] = beta * averages[i] + (1 - beta) * x;
            }
        }
        for (size_t i = 0; i < n; i++)
            values[i * N_ELEMS + e] = averages[i];
    }
}

/* Of a series with so many widths. */
static double found_coherence(size_t n_widths, double coherence)
{
    struct phema_profile snapshots[2 * N_TIMES];
    size_t n = n_widths * N_TIMES, n_pairs = 0;
    double *values = calloc(n * N_ELEMS, sizeof(*values));
    assert_non_null(values);
    for (size_t i = 0; i < n; i++) {
        size_t time = i / n_widths + 1;
        snapshots[i] =
            (struct phema_profile){.gamma = i % n_widths ? 6.94 : 16.97, .t = 100.0 * (double)time};
    }
    move(values, snapshots, n, coherence);
    struct phema_error err = {0};
    const struct phema_sample_rows rows = {.values = values, .n_elems = N_ELEMS, .mean_square = 1};
    struct phema_distance *pairs = compare_rows(&n_pairs, snapshots, n, &rows);
    const struct phema_motion_data data = {.snapshots = snapshots,
                                           .n = n,
                                           .distances = pairs,
                                           .n_distances = n_pairs,
                                           .sample = &rows};
    struct phema_motion motion;
    assert_ok(phema_motion_fit(&motion, &data, PHEMA_MOTION_LIKELIEST, &err), &err);
    double found = 0; /* of the drift (N33), in the mean over the intervals */
    for (size_t k = 0; motion.speed && k < motion.n_intervals; k++) {
        double along = motion.speed[k] * middle_of(&motion, k);
        found += along * along / (N_STEPS * RATE) / (double)motion.n_intervals;
    }
    phema_motion_clear(&motion);
    free(values);
    free(pairs);
    return found;
}

static void a_coherent_drift_shows(void **state)
{
    (void)state;
    for (size_t n_widths = 1; n_widths <= 2; n_widths++) {
        double some = found_coherence(n_widths, 1), none = found_coherence(n_widths, 0);
        if (!(some > 0.05 && some < 4))
            fail_msg("%zu widths: found %g in place of 1", n_widths, some);
        if (!(none < 0.02))
            fail_msg("%zu widths: found %g in place of 0", n_widths, none);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(products_are_those_of_paths),
    cmocka_unit_test(a_coherent_drift_shows),
};
TEST_GROUP(tests)
