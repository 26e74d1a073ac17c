// SPDX-License-Identifier: Apache-2.0
/* test_interval.c - trainings from stop to stop, held against the simulation of every step, which is
 * kept here. What both do is linear in their noises: unit noises give the covariances of all files,
 * which have to be equal. Real numbers have to have these covariances within sampling error. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "support.h"
#include "train.h"

#define N_STEPS   150
#define MAX_FILES 160
#define START     0.87 /* standard deviation of the parameters before training, as in train.c */

/* ---- Every step, for one parameter of scale 1 and mean 0 ---- */

struct noises {
    double start, walk[N_STEPS + 1], jitter[N_STEPS + 1];
};

static bool is_reset_at(const struct gen_training *training, uint64_t step)
{
    for (size_t i = 0; i < training->n_resets; i++)
        if (training->resets[i].at == (double)step)
            return true;
    return false;
}

/* files: [request->n_items] the values that files show. */
static void simulate(double *files, const struct gen_request *request,
                     const struct gen_training *training, const struct noises *noises)
{
    double drift = START * noises->start, parameter = drift, averages[MAX_FILES];
    for (size_t j = 0; j < training->n_averages; j++)
        averages[j] = drift;
    size_t next = 0;
    for (uint64_t step = 1; next < request->n_items; step++) {
        for (size_t j = 0; j < training->n_averages; j++)
            if (is_reset_at(training, step - 1) && training->averages[j].is_reset)
                averages[j] = parameter;
        drift += training->walk_sizes[step] * noises->walk[step];
        parameter = drift + training->jitter_size * noises->jitter[step];
        for (size_t j = 0; j < training->n_averages; j++) {
            const struct gen_average *at = &training->averages[j];
            if (step < at->first || step > at->last)
                continue;
            double beta = at->betas[step - at->first];
            averages[j] = beta * averages[j] + (1 - beta) * parameter;
        }
        for (; next < request->n_items && request->items[next].time == step; next++)
            files[next] = request->items[next].average == GEN_RAW
                              ? parameter
                              : averages[request->items[next].average];
    }
}

/* ---- The same with the intervals of gen: unit noise z of one column at one stop ---- */

static void advance(double *files, const struct gen_request *request,
                    const struct gen_training *training, size_t noisy_stop, size_t noisy_column,
                    double start)
{
    double values[MAX_FILES + 2] = {START * start}, *averages = values + 2;
    for (size_t j = 0; j < training->n_averages; j++)
        averages[j] = values[0];
    size_t next = 0;
    for (size_t s = 0; s < training->n_stops; s++) {
        const struct gen_interval *interval = &training->intervals[s];
        for (size_t j = 0; s && training->stops[s - 1].is_reset && j < training->n_averages; j++)
            if (training->averages[j].is_reset)
                averages[j] = values[1];
        for (size_t j = 0; j < interval->n_rows; j++) {
            const struct gen_row *row = &interval->rows[j];
            averages[row->average] = row->keeps * averages[row->average] + row->takes * values[0];
        }
        values[1] = 0;
        const double *number = interval->factor;
        for (size_t c = 0; c < interval->n_columns; c++)
            for (size_t i = interval->columns[c]; i < interval->n_moves + interval->n_rows; i++) {
                size_t at =
                    i < interval->n_moves ? i : 2 + interval->rows[i - interval->n_moves].average;
                values[at] += s == noisy_stop && c == noisy_column ? *number : 0;
                number++;
            }
        values[1] += values[0];
        for (; next < request->n_items && request->items[next].time == training->stops[s].step;
             next++)
            files[next] = request->items[next].average == GEN_RAW
                              ? values[1]
                              : averages[request->items[next].average];
    }
}

/* ---- Covariances of all files ---- */

static void add_products(double *covariances, const double *files, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            covariances[i * n + j] += files[i] * files[j];
}

static double *covariances_of_steps(const struct gen_request *request,
                                    const struct gen_training *training)
{
    size_t n = request->n_items;
    double files[MAX_FILES], *covariances = calloc(n * n, sizeof(*covariances));
    assert_non_null(covariances);
    for (size_t i = 0; i < 2 * N_STEPS + 1; i++) {
        struct noises noises = {0};
        *(i == 0 ? &noises.start : i % 2 ? &noises.walk[i / 2 + 1] : &noises.jitter[i / 2]) = 1;
        simulate(files, request, training, &noises);
        add_products(covariances, files, n);
    }
    return covariances;
}

static double *covariances_of_intervals(const struct gen_request *request,
                                        const struct gen_training *training)
{
    size_t n = request->n_items;
    double files[MAX_FILES], *covariances = calloc(n * n, sizeof(*covariances));
    assert_non_null(covariances);
    advance(files, request, training, SIZE_MAX, 0, 1);
    add_products(covariances, files, n);
    for (size_t s = 0; s < training->n_stops; s++)
        for (size_t c = 0; c < training->intervals[s].n_columns; c++) {
            advance(files, request, training, s, c, 0);
            add_products(covariances, files, n);
        }
    return covariances;
}

/* ---- Trainings ---- */

static const double sigmas[] = {0.05, 0.1}, truth_sigmas[] = {0.15, 0.05};
static const uint64_t table_steps[] = {2, 3, 5, 8, 13, 21, 34, 55, 89, 110};
static const double table_betas[] = {0.5, 0.25, 1, 0.75, 0.9, 0.95, 0, 0.3, 0.8, 0.125};
static const struct phema_betas table = {table_steps, table_betas, ARRAY_LEN(table_steps), NULL};
static const uint64_t even_times[] = {50, 100, 150}, odd_times[] = {1, 2, 7, 40, 41, 113, 150};
static const struct phema_reset resets[] = {{40, false}, {90, true}};

static const struct phema_gen_profile shapes[] = {
    {{.shape = PHEMA_SHAPE_EMA, .half_life = 12.5}, 0, "ema:half-life=12.5", "ema"},
    {{.shape = PHEMA_SHAPE_EMA, .half_life = 12.5}, 0, "ema:half-life=12.5", "the-same"},
    {{.shape = PHEMA_SHAPE_RAMPED, .half_life = 10, .ramp = 0.125}, 0, "edm-ema:10", "ramped"},
    {{.shape = PHEMA_SHAPE_TABLE, .betas = &table}, 0, "table:t", "table"},
    {{.shape = PHEMA_SHAPE_RAW}, 0, "raw", "parameters"},
    {{.shape = PHEMA_SHAPE_POWER, .gamma = 2.5}, (double)NAN, "power:gamma=2.5", "power"},
    {{.shape = PHEMA_SHAPE_WINDOW, .length = 25}, 0, "window:25", "window"},
    {{.shape = PHEMA_SHAPE_WINDOW, .length = 30.75}, 0, "window:30.75", "longer"},
    {{.shape = PHEMA_SHAPE_COSINE, .length = 20}, 0, "cosine:20", "cosine"},
    {{.shape = PHEMA_SHAPE_MINUS_SQRT, .length = 31}, 0, "minus-sqrt:31", "minus-sqrt"},
};
#define N_WITHOUT_BEGIN 6

static struct phema_gen_options training_of(enum phema_gen_motion motion, bool is_odd)
{
    struct phema_gen_options options = {.steps = N_STEPS,
                                        .motion = motion,
                                        .is_raw = true,
                                        .update_every = 1,
                                        .n_tensors = 1,
                                        .n_params = 1};
    options.times = is_odd ? odd_times : even_times;
    options.count = is_odd ? ARRAY_LEN(odd_times) : ARRAY_LEN(even_times);
    options.snapshots = (struct phema_gen_kinds){sigmas, 2, shapes, is_odd ? N_WITHOUT_BEGIN : 0};
    options.truths = (struct phema_gen_kinds){truth_sigmas, 2, NULL, 0};
    return options;
}

static void begin(struct gen_request *request, struct gen_training *training,
                  const struct phema_gen_options *options)
{
    struct phema_error err = {0};
    assert_ok(gen_request_init(request, options, &err), &err);
    assert_true(request->n_items <= MAX_FILES && request->n_averages <= MAX_FILES);
    assert_ok(gen_training_init(training, options, request->averages, request->n_averages,
                                request->stops, request->n_stops, &err),
              &err);
}

static void check_covariances(const struct phema_gen_options *options)
{
    struct gen_request request;
    struct gen_training training;
    begin(&request, &training, options);
    size_t n = request.n_items;
    double *wanted = covariances_of_steps(&request, &training);
    double *got = covariances_of_intervals(&request, &training);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            double size = sqrt(wanted[i * n + i] * wanted[j * n + j]);
            assert_near(got[i * n + j], wanted[i * n + j], 1e-14 * size + 1e-300);
        }
    free(wanted);
    free(got);
    gen_training_clear(&training);
    gen_request_clear(&request);
}

static void covariances_are_those_of_all_steps(void **state)
{
    (void)state;
    for (enum phema_gen_motion motion = PHEMA_GEN_SLOWING; motion <= PHEMA_GEN_FALL; motion++) {
        for (unsigned kind = 0; kind < 8; kind++) {
            struct phema_gen_options options = training_of(motion, kind & 1);
            options.update_every = kind & 2 ? 7 : 1;
            options.resets = resets;
            options.n_resets = kind & 4 ? ARRAY_LEN(resets) : 0;
            check_covariances(&options);
        }
        static const uint64_t truth_times[] = {32, 99, 101, 150};
        struct phema_gen_options options = training_of(motion, false);
        options.truths = (struct phema_gen_kinds){NULL, 0, shapes, ARRAY_LEN(shapes)};
        options.truth_times = truth_times;
        options.n_truth_times = ARRAY_LEN(truth_times);
        check_covariances(&options);
    }
}

/* ---- Numbers ---- */

#define N_PARAMS 40000

/* [items][N_PARAMS] what gen writes, of scale 1 and mean 0. */
static double *numbers_of_gen(const struct gen_request *request,
                              const struct gen_training *training)
{
    struct phema_error err = {0};
    struct gen_state state;
    double *numbers = calloc(request->n_items * N_PARAMS, sizeof(*numbers));
    assert_non_null(numbers);
    assert_ok(gen_state_init(&state, training, &err), &err);
    for (size_t first = 0; first < N_PARAMS; first += GEN_RUN_ELEMS) {
        struct gen_run run = {first, N_PARAMS - first, 0, 1};
        if (run.n > GEN_RUN_ELEMS)
            run.n = GEN_RUN_ELEMS;
        gen_run_start(&state, training, &run);
        size_t next = 0;
        for (size_t s = 0; s < training->n_stops; s++) {
            gen_run_advance(&state, training, &run, s);
            for (; next < request->n_items && request->items[next].time == training->stops[s].step;
                 next++) {
                size_t average = request->items[next].average;
                memcpy(numbers + next * N_PARAMS + first,
                       average == GEN_RAW ? state.parameters
                                          : state.averages + average * GEN_RUN_ELEMS,
                       run.n * sizeof(*numbers));
            }
        }
    }
    gen_state_clear(&state);
    return numbers;
}

/* The sum of 12 uniform numbers, as good as normal for second moments. */
static double noise(uint64_t *random)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += (double)(support_random(random) >> 11) * 0x1p-53;
    return sum;
}

static double *numbers_of_steps(const struct gen_request *request,
                                const struct gen_training *training)
{
    uint64_t random = 5;
    double files[MAX_FILES], *numbers = calloc(request->n_items * N_PARAMS, sizeof(*numbers));
    assert_non_null(numbers);
    for (size_t p = 0; p < N_PARAMS / 10; p++) {
        struct noises noises = {.start = noise(&random)};
        for (size_t step = 1; step <= N_STEPS; step++) {
            noises.walk[step] = noise(&random);
            noises.jitter[step] = noise(&random);
        }
        simulate(files, request, training, &noises);
        for (size_t i = 0; i < request->n_items; i++)
            numbers[i * N_PARAMS + p] = files[i];
    }
    return numbers;
}

/* Five standard errors of a covariance of n pairs of normal numbers. */
static void check_sample(const double *numbers, size_t n_params, const double *wanted, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++) {
            double sum = 0, error = wanted[i * n + i] * wanted[j * n + j] +
                                    wanted[i * n + j] * wanted[i * n + j];
            for (size_t p = 0; p < n_params; p++)
                sum += numbers[i * N_PARAMS + p] * numbers[j * N_PARAMS + p];
            assert_near(sum / (double)n_params, wanted[i * n + j],
                        5 * sqrt(error / (double)n_params));
        }
}

/* Covariances of moves from one file to the next, which the parameters before training do not hide. */
static void take_differences(double *numbers, double *covariances, size_t n)
{
    for (size_t i = n - 1; i > 0; i--) {
        for (size_t p = 0; p < N_PARAMS; p++)
            numbers[i * N_PARAMS + p] -= numbers[(i - 1) * N_PARAMS + p];
        for (size_t j = 0; j < n; j++)
            covariances[i * n + j] -= covariances[(i - 1) * n + j];
    }
    for (size_t j = n - 1; j > 0; j--)
        for (size_t i = 0; i < n; i++)
            covariances[i * n + j] -= covariances[i * n + j - 1];
}

static void numbers_have_these_covariances(void **state)
{
    (void)state;
    static const enum phema_gen_motion motions[] = {PHEMA_GEN_SLOWING, PHEMA_GEN_WHITE,
                                                    PHEMA_GEN_FALL};
    for (size_t m = 0; m < ARRAY_LEN(motions); m++) {
        struct phema_gen_options options = training_of(motions[m], true);
        options.resets = resets;
        options.n_resets = m == 0 ? ARRAY_LEN(resets) : 0;
        struct gen_request request;
        struct gen_training training;
        begin(&request, &training, &options);
        double *wanted = covariances_of_steps(&request, &training);
        double *again = covariances_of_steps(&request, &training);
        double *gen = numbers_of_gen(&request, &training);
        double *steps = numbers_of_steps(&request, &training);
        check_sample(gen, N_PARAMS, wanted, request.n_items);
        check_sample(steps, N_PARAMS / 10, wanted, request.n_items);
        take_differences(gen, wanted, request.n_items);
        take_differences(steps, again, request.n_items);
        check_sample(gen, N_PARAMS, wanted, request.n_items);
        check_sample(steps, N_PARAMS / 10, again, request.n_items);
        free(wanted);
        free(again);
        free(gen);
        free(steps);
        gen_training_clear(&training);
        gen_request_clear(&request);
    }
}

static int compare_numbers(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Parameters after one step of a walk that begins at 0.87 z. */
static void numbers_are_normal(void **state)
{
    (void)state;
    static const uint64_t first[] = {1};
    struct phema_gen_options options = training_of(PHEMA_GEN_WALK, false);
    options.times = first;
    options.count = 1;
    options.truths.n_sigmas = 0;
    options.snapshots.n_sigmas = 0;
    struct gen_request request;
    struct gen_training training;
    begin(&request, &training, &options);
    double *numbers = numbers_of_gen(&request, &training);
    double deviation = sqrt(START * START + 0.274 * 0.274 / N_STEPS), m4 = 0, distance = 0;
    qsort(numbers, N_PARAMS, sizeof(*numbers), compare_numbers);
    for (size_t i = 0; i < N_PARAMS; i++) {
        double x = numbers[i] / deviation;
        m4 += x * x * x * x / N_PARAMS;
        double rank = erfc(-x / sqrt(2.0)) / 2;
        distance = fmax(distance, fabs(rank - ((double)i + 0.5) / N_PARAMS));
    }
    assert_near(m4, 3, 5 * sqrt(96.0 / N_PARAMS));
    assert_true(distance < 1.63 / sqrt(N_PARAMS)); /* Kolmogorov and Smirnov, 1 % */
    free(numbers);
    gen_training_clear(&training);
    gen_request_clear(&request);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(covariances_are_those_of_all_steps),
    cmocka_unit_test(numbers_have_these_covariances),
    cmocka_unit_test(numbers_are_normal),
};
TEST_GROUP(tests)
