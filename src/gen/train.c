// SPDX-License-Identifier: Apache-2.0
/* train.c - Parameters and averages, from stop to stop. Only + - * / and sqrt of IEEE doubles and
 * integer arithmetic, each written out, so that every machine makes the same bits. No fma: without
 * the instruction it is a slow call. The betas come from profile.h, correctly rounded. */
#include "train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* For parameters of scale 1 at the end of training. There, the random walk makes the averages of
 * sigma_rel 0.05 and 0.10 differ by 3 %. The integral of (Q_.05 - Q_.10)^2 dt is 0.0120 T; the
 * variance rate is 0.03^2 / 0.0120 T = 0.274^2 / T. Earlier motion is faster, as 1 / sqrt(t +
 * T/20), which moves parameters by 0.49 in total; they begin with the rest of 1. */
#define WALK_AT_END 0.274
#define EARLY_PART  0.05
#define START_SIZE  0.87
#define JITTER_SIZE 0.01

/* Noise of this variance for each step of the training makes EMA 0.05 and 0.10 differ by 3 %:
 * 0.03^2 / 2.0257, see src/design/filter.c. DRIFT_MEAN: of T/max(t, T/100), 1 + ln 100 */
#define WHITE_PER_STEP 4.4429e-4
#define DRIFT_FROM     0.01
#define DRIFT_MEAN     5.605170185988092

/* Parameters whose rows stay in the first-level cache. */
#define BLOCK 256

/* The finaliser of MurmurHash3. */
static inline uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 33) * 0xff51afd7ed558ccd;
    z = (z ^ z >> 33) * 0xc4ceb9fe1a85ec53;
    return z ^ z >> 33;
}

/* Standard normal numbers, one for each parameter: the sum of four uniform 16-bit numbers, stretched
 * by the polynomial that is nearest to the normal quantile of its rank, in least squares under its
 * distribution. The variance is 1 within 1e-15, the fourth moment 3 within 1e-4, and the distribution
 * function right within 2e-4. */
static void draw(double *restrict numbers, uint64_t key, uint64_t first_param, size_t n)
{
    const double unit = 1 / 37837.22723720648; /* the sum's deviation: sqrt((65536^2 - 1) / 3) */
    for (size_t i = 0; i < n; i++) {
        uint64_t bits = mix(key ^ (first_param + i + 1) * 0x9e3779b97f4a7c15);
        bits = (bits & 0xffff0000ffff) + (bits >> 16 & 0xffff0000ffff);
        numbers[i] = (int32_t)(bits & 0xfffff) + (int32_t)(bits >> 32) - 131070;
    }
    for (size_t i = 0; i < n; i++) {
        double x = numbers[i] * unit, x2 = x * x;
        double stretch = 3.8046821437016634e-05;
        stretch = stretch * x2 - 0.00036186116458059573;
        stretch = stretch * x2 + 0.0017919700086338258;
        stretch = stretch * x2 + 0.009270370990917714;
        stretch = stretch * x2 + 0.9623478810539187;
        numbers[i] = x * stretch;
    }
}

/* ---- The training ---- */

/* The betas of a shape with a beginning are the same for every end, shifted. */
static double *betas_of_like(const struct gen_average *averages, size_t i)
{
    const struct phema_profile *profile = &averages[i].profile;
    for (size_t j = 0; phema_shape_has_begin(profile->shape) && j < i; j++) {
        const struct phema_profile *other = &averages[j].profile;
        if (other->shape == profile->shape && other->length == profile->length)
            return averages[j].betas;
    }
    return NULL;
}

static bool fill_betas(const struct gen_training *training, size_t i)
{
    struct gen_average *averages = training->averages;
    struct gen_average *average = &averages[i];
    average->betas = betas_of_like(averages, i);
    average->borrows_betas = average->betas != NULL;
    if (average->borrows_betas)
        return true;
    average->betas = calloc(average->last - average->first + 1, sizeof(double));
    uint64_t origin = 0; /* of the step count */
    size_t n_resets = average->is_reset ? training->n_resets : 0, next = 0;
    for (uint64_t step = average->first; average->betas && step <= average->last; step++) {
        for (; next < n_resets && training->resets[next].at < (double)step; next++)
            if (training->resets[next].restarts_count)
                origin = (uint64_t)training->resets[next].at;
        average->betas[step - average->first] =
            phema_profile_beta(&average->profile, step - origin);
    }
    return average->betas != NULL;
}

/* Standard deviation of a step of the walk, scale 1. */
static double walk_size(enum phema_gen_motion motion, double step, double end)
{
    double early = EARLY_PART * end, even = WALK_AT_END / sqrt(end);
    switch (motion) {
    case PHEMA_GEN_WALK:
        return even;
    case PHEMA_GEN_WHITE:
        return 0;
    case PHEMA_GEN_DRIFT:
        return even * sqrt(1 / ((step / end > DRIFT_FROM ? step / end : DRIFT_FROM) * DRIFT_MEAN));
    case PHEMA_GEN_FALL:
        return even * sqrt(3.0) * (1 - step / end);
    default:
        return WALK_AT_END * sqrt((end + early) / ((step + early) * end));
    }
}

/* ---- Many steps in one ----
 * An average is a sum of the parameters of its steps, and these are sums of independent noises. So
 * every noise of every step adds a multiple of one vector to walk, parameters and averages; the
 * interval's covariance is the sum of the outer products. Its Cholesky factor is kept up to date by
 * plane rotations, which never subtract: averages that differ little keep their small difference to
 * full precision, and equal ones stay equal. */

/* L L' becomes L L' + v v' (Golub and Van Loan, Matrix Computations, 6.5.4). Destroys v. */
static void add_noise(double *factor, double *restrict v, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        if (v[k] == 0)
            continue;
        double *column = factor + k * n; /* of L: its rows from k on */
        double size = sqrt(column[k] * column[k] + v[k] * v[k]);
        if (size == 0) /* both are too small for a square */
            continue;
        double cosine = column[k] / size, sine = v[k] / size;
        column[k] = size;
        for (size_t i = k + 1; i < n; i++) {
            double old = column[i];
            column[i] = cosine * old + sine * v[i];
            v[i] = cosine * v[i] - sine * old;
        }
    }
}

static bool may_change(const struct gen_average *average, uint64_t begin, uint64_t end)
{
    return average->first <= end && average->last > begin;
}

static enum phema_status list_rows(struct gen_interval *interval,
                                   const struct gen_training *training, uint64_t begin,
                                   uint64_t end, struct phema_error *err)
{
    for (size_t j = 0; j < training->n_averages; j++)
        interval->n_rows += may_change(&training->averages[j], begin, end);
    struct gen_row *row = interval->rows = calloc(interval->n_rows + 1, sizeof(*row));
    if (!row)
        return phema_fail_memory(err);
    for (size_t j = 0; j < training->n_averages; j++)
        if (may_change(&training->averages[j], begin, end))
            *row++ = (struct gen_row){.average = j, .keeps = 1};
    return PHEMA_OK;
}

/* The part of the parameters of this step in the averages at the end; the steps are taken backwards. */
static void take_step(struct gen_interval *interval, const struct gen_average *averages,
                      uint64_t step, double *parts)
{
    for (size_t j = 0; j < interval->n_rows; j++) {
        struct gen_row *row = &interval->rows[j];
        const struct gen_average *average = &averages[row->average];
        bool changes = step >= average->first && step <= average->last;
        double beta = changes ? average->betas[step - average->first] : 1;
        parts[j] = (1 - beta) * row->keeps;
        row->keeps *= beta;
        row->takes += parts[j];
    }
}

/* factor: [n * n] by columns. work: [2 n] */
static void add_steps(struct gen_interval *interval, const struct gen_training *training,
                      uint64_t begin, uint64_t end, double *factor, double *work)
{
    size_t n_moves = interval->n_moves, n = n_moves + interval->n_rows;
    double *noise = work, *parts = work + n;
    for (uint64_t step = end; step > begin; step--) {
        take_step(interval, training->averages, step, parts);
        /* of the jitter: the parameters of this step alone */
        noise[0] = 0;
        if (n_moves > 1)
            noise[1] = step == end ? training->jitter_size : 0;
        for (size_t j = 0; j < interval->n_rows; j++)
            noise[n_moves + j] = training->jitter_size * parts[j];
        add_noise(factor, noise, n);
        /* of the walk: the parameters of this step and of all later ones */
        noise[0] = training->walk_sizes[step];
        if (n_moves > 1)
            noise[1] = 0;
        for (size_t j = 0; j < interval->n_rows; j++)
            noise[n_moves + j] = training->walk_sizes[step] * interval->rows[j].takes;
        add_noise(factor, noise, n);
    }
}

/* Most intervals of few steps have fewer noises than averages. */
static enum phema_status keep_columns(struct gen_interval *interval, const double *factor, size_t n,
                                      struct phema_error *err)
{
    size_t n_numbers = 0;
    interval->columns = calloc(n, sizeof(*interval->columns));
    if (!interval->columns)
        return phema_fail_memory(err);
    for (size_t k = 0; k < n; k++) {
        size_t first = k;
        while (first < n && factor[k * n + first] == 0)
            first++;
        if (first == n)
            continue;
        interval->columns[interval->n_columns++] = k;
        n_numbers += n - k;
    }
    double *kept = interval->factor = calloc(n_numbers + 1, sizeof(*kept));
    if (!kept)
        return phema_fail_memory(err);
    for (size_t c = 0; c < interval->n_columns; c++) {
        size_t k = interval->columns[c];
        memcpy(kept, factor + k * n + k, (n - k) * sizeof(*kept));
        kept += n - k;
    }
    return PHEMA_OK;
}

/* The interval of steps begin + 1 to end. */
static enum phema_status init_interval(struct gen_interval *interval,
                                       const struct gen_training *training, uint64_t begin,
                                       uint64_t end, bool shows_parameters, struct phema_error *err)
{
    *interval = (struct gen_interval){.n_moves = shows_parameters ? 2 : 1};
    enum phema_status status = list_rows(interval, training, begin, end, err);
    size_t n = interval->n_moves + interval->n_rows;
    double *work = status ? NULL : calloc(n * n + 2 * n, sizeof(*work));
    if (!status && !work)
        status = phema_fail_memory(err);
    if (!status) {
        add_steps(interval, training, begin, end, work, work + n * n);
        status = keep_columns(interval, work, n, err);
    }
    free(work);
    return status;
}

enum phema_status gen_training_init(struct gen_training *training,
                                    const struct phema_gen_options *options,
                                    struct gen_average *averages, size_t n,
                                    const struct gen_stop *stops, size_t n_stops,
                                    struct phema_error *err)
{
    uint64_t steps = options->steps;
    *training = (struct gen_training){.seed = options->seed,
                                      .resets = options->resets,
                                      .n_resets = options->n_resets,
                                      .averages = averages,
                                      .n_averages = n,
                                      .stops = stops,
                                      .n_stops = n_stops};
    training->walk_sizes = calloc(steps + 1, sizeof(double));
    training->intervals = calloc(n_stops + 1, sizeof(*training->intervals));
    bool is_complete = training->walk_sizes && training->intervals;
    for (size_t i = 0; is_complete && i < n; i++)
        is_complete = fill_betas(training, i);
    if (!is_complete)
        return phema_fail(err, PHEMA_ERR_RESOURCE, "out of memory for %llu steps",
                          (unsigned long long)steps);
    for (uint64_t step = 1; step <= steps; step++)
        training->walk_sizes[step] = walk_size(options->motion, (double)step, (double)steps);
    training->jitter_size = options->motion == PHEMA_GEN_SLOWING ? JITTER_SIZE
                            : options->motion == PHEMA_GEN_WHITE
                                ? sqrt(WHITE_PER_STEP * (double)steps)
                                : 0;
    enum phema_status status = PHEMA_OK;
    for (size_t i = 0; i < n_stops && !status; i++)
        status = init_interval(&training->intervals[i], training, i ? stops[i - 1].step : 0,
                               stops[i].step, stops[i].shows_parameters, err);
    return status;
}

void gen_training_clear(struct gen_training *training)
{
    free(training->walk_sizes);
    training->walk_sizes = NULL;
    for (size_t i = 0; training->intervals && i < training->n_stops; i++) {
        free(training->intervals[i].rows);
        free(training->intervals[i].columns);
        free(training->intervals[i].factor);
    }
    free(training->intervals);
    training->intervals = NULL;
    for (size_t i = 0; i < training->n_averages; i++) {
        if (!training->averages[i].borrows_betas)
            free(training->averages[i].betas);
        training->averages[i].betas = NULL;
    }
}

enum phema_status gen_state_init(struct gen_state *state, const struct gen_training *training,
                                 struct phema_error *err)
{
    double *rows = aligned_alloc(64, GEN_RUN_ELEMS * sizeof(double) * (training->n_averages + 2));
    if (!rows)
        return phema_fail(err, PHEMA_ERR_RESOURCE, "out of memory for the simulation");
    *state = (struct gen_state){rows, rows + GEN_RUN_ELEMS, rows + (size_t)2 * GEN_RUN_ELEMS};
    return PHEMA_OK;
}

void gen_state_clear(struct gen_state *state)
{
    free(state->drift);
    *state = (struct gen_state){NULL, NULL, NULL};
}

/* The key of a normal number of each parameter. The walk has row 0, the parameters on top of it row
 * 1, average j row 2 + j: averages do not depend on those listed after them. */
static uint64_t key_of(const struct gen_training *training, uint64_t step, size_t row)
{
    return mix(mix(mix(training->seed + 0x9e3779b97f4a7c15) + step) + row);
}

void gen_run_start(struct gen_state *state, const struct gen_training *training,
                   const struct gen_run *run)
{
    draw(state->drift, key_of(training, 0, 0), run->first_param, run->n);
    for (size_t i = 0; i < run->n; i++)
        state->drift[i] = run->mean + run->scale * START_SIZE * state->drift[i];
    /* exponential averages include the parameters before training */
    for (size_t j = 0; j < training->n_averages; j++)
        memcpy(state->averages + j * GEN_RUN_ELEMS, state->drift, run->n * sizeof(double));
}

static void approach(double *restrict average, const double *restrict drift, size_t n,
                     const struct gen_row *row)
{
    for (size_t i = 0; i < n; i++)
        average[i] = row->keeps * average[i] + row->takes * drift[i];
}

static void add(double *restrict values, const double *restrict numbers, size_t n, double size)
{
    for (size_t i = 0; i < n; i++)
        values[i] = values[i] + size * numbers[i];
}

/* The values that a row of the interval's factor belongs to. */
static double *values_of(const struct gen_state *state, const struct gen_interval *interval,
                         size_t row)
{
    if (row >= interval->n_moves)
        return state->averages + interval->rows[row - interval->n_moves].average * GEN_RUN_ELEMS;
    return row ? state->parameters : state->drift;
}

/* The elements from begin on, n <= BLOCK of them. */
static void advance_block(struct gen_state *state, const struct gen_training *training,
                          const struct gen_run *run, size_t stop, size_t begin, size_t n)
{
    const struct gen_interval *interval = &training->intervals[stop];
    double *drift = state->drift + begin, *parameters = state->parameters + begin;
    size_t n_rows = interval->n_moves + interval->n_rows;
    for (size_t j = interval->n_moves; j < n_rows; j++)
        approach(values_of(state, interval, j) + begin, drift, n,
                 &interval->rows[j - interval->n_moves]);
    memset(parameters, 0, n * sizeof(*parameters));
    const double *sizes = interval->factor;
    for (size_t c = 0; c < interval->n_columns; c++) {
        double numbers[BLOCK];
        size_t row = interval->columns[c];
        size_t identity =
            row < interval->n_moves ? row : 2 + interval->rows[row - interval->n_moves].average;
        draw(numbers, key_of(training, training->stops[stop].step, identity),
             run->first_param + begin, n);
        for (; row < n_rows; row++)
            add(values_of(state, interval, row) + begin, numbers, n, run->scale * *sizes++);
    }
    for (size_t i = 0; i < n; i++)
        parameters[i] = drift[i] + parameters[i];
}

void gen_run_advance(struct gen_state *state, const struct gen_training *training,
                     const struct gen_run *run, size_t i)
{
    bool is_reset = i && training->stops[i - 1].is_reset; /* its files are written */
    for (size_t j = 0; is_reset && j < training->n_averages; j++)
        if (training->averages[j].is_reset)
            memcpy(state->averages + j * GEN_RUN_ELEMS, state->parameters, run->n * sizeof(double));
    for (size_t begin = 0; begin < run->n; begin += BLOCK)
        advance_block(state, training, run, i, begin,
                      run->n - begin < BLOCK ? run->n - begin : BLOCK);
}
