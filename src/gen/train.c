// SPDX-License-Identifier: Apache-2.0
/* train.c - Parameters, averages and the tensors they fill. Only + - * / and sqrt of IEEE doubles
 * and integer arithmetic, each written out, so that every machine makes the same bits. No fma:
 * without the instruction it is a slow call. The betas come from profile.h, correctly rounded. */
#include "train.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
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
 * 0.03^2 / 2.0257, see src/design/motion.c. DRIFT_MEAN: of T/max(t, T/100), 1 + ln 100 */
#define WHITE_PER_STEP 4.4429e-4
#define DRIFT_FROM     0.01
#define DRIFT_MEAN     5.605170185988092

/* Noise is a sum of two uniform 16-bit numbers, centred: its standard deviation, 65536 / sqrt(6).
 */
#define NOISE_UNIT 26755.0

/* The finaliser of MurmurHash3. */
static inline uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 33) * 0xff51afd7ed558ccd;
    z = (z ^ z >> 33) * 0xc4ceb9fe1a85ec53;
    return z ^ z >> 33;
}

static uint64_t step_key(const struct gen_training *training, uint64_t step)
{
    return mix(mix(training->seed + 0x9e3779b97f4a7c15) + step);
}

/* Two noises of one parameter at one step, of standard deviation NOISE_UNIT. */
static inline void draw(double *first, double *second, uint64_t key, uint64_t param)
{
    uint64_t bits = mix(key ^ (param + 1) * 0x9e3779b97f4a7c15);
    *first = (double)((int32_t)(bits & 0xffff) + (int32_t)(bits >> 16 & 0xffff) - 65535);
    *second = (double)((int32_t)(bits >> 32 & 0xffff) + (int32_t)(bits >> 48) - 65535);
}

/* The betas of a shape with a beginning are the same for every end, shifted. */
static double *betas_of_like(const struct gen_average *averages, size_t i)
{
    const struct phema_profile *profile = &averages[i].profile;
    for (size_t j = 0; gen_has_begin(profile) && j < i; j++) {
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

bool gen_has_begin(const struct phema_profile *profile)
{
    return profile->shape == PHEMA_SHAPE_WINDOW || profile->shape == PHEMA_SHAPE_COSINE ||
           profile->shape == PHEMA_SHAPE_MINUS_SQRT;
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

enum phema_status gen_training_init(struct gen_training *training,
                                    const struct phema_gen_options *options,
                                    struct gen_average *averages, size_t n, struct phema_error *err)
{
    uint64_t steps = options->steps;
    *training = (struct gen_training){.seed = options->seed,
                                      .steps = steps,
                                      .resets = options->resets,
                                      .n_resets = options->n_resets,
                                      .averages = averages,
                                      .n_averages = n};
    training->walk_sizes = calloc(steps + 1, sizeof(double));
    bool is_complete = training->walk_sizes != NULL;
    for (size_t i = 0; is_complete && i < n; i++)
        is_complete = fill_betas(training, i);
    if (!is_complete) {
        gen_training_clear(training);
        return phema_fail(err, PHEMA_ERR_RESOURCE, "out of memory for %llu steps",
                          (unsigned long long)steps);
    }
    for (uint64_t step = 1; step <= steps; step++)
        training->walk_sizes[step] = walk_size(options->motion, (double)step, (double)steps);
    training->jitter_size = options->motion == PHEMA_GEN_SLOWING ? JITTER_SIZE
                            : options->motion == PHEMA_GEN_WHITE
                                ? sqrt(WHITE_PER_STEP * (double)steps)
                                : 0;
    return PHEMA_OK;
}

void gen_training_clear(struct gen_training *training)
{
    free(training->walk_sizes);
    training->walk_sizes = NULL;
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

void gen_run_start(struct gen_state *state, const struct gen_training *training,
                   const struct gen_run *run)
{
    uint64_t key = step_key(training, 0);
    double size = run->scale * (START_SIZE / NOISE_UNIT);
    for (size_t i = 0; i < run->n; i++) {
        double noise, unused;
        draw(&noise, &unused, key, run->first_param + i);
        state->drift[i] = run->mean + size * noise;
    }
    /* exponential averages include the parameters before training */
    for (size_t j = 0; j < training->n_averages; j++)
        memcpy(state->averages + j * GEN_RUN_ELEMS, state->drift, run->n * sizeof(double));
}

static void move(struct gen_state *state, const struct gen_run *run, uint64_t key, double walk,
                 double jitter_of_one)
{
    double *restrict drift = state->drift;
    double *restrict parameters = state->parameters;
    double walk_size = run->scale * walk / NOISE_UNIT;
    double jitter_size = run->scale * (jitter_of_one / NOISE_UNIT);
    for (size_t i = 0; i < run->n; i++) {
        double motion, jitter;
        draw(&motion, &jitter, key, run->first_param + i);
        drift[i] = drift[i] + walk_size * motion;
        parameters[i] = drift[i] + jitter_size * jitter;
    }
}

static void average(double *restrict average, const double *restrict parameters, size_t n,
                    double beta)
{
    double rest = 1 - beta;
    for (size_t i = 0; i < n; i++)
        average[i] = beta * average[i] + rest * parameters[i];
}

static bool is_reset_at(const struct gen_training *training, uint64_t step)
{
    for (size_t i = 0; i < training->n_resets; i++)
        if (training->resets[i].at == (double)step)
            return true;
    return false;
}

static void reset_averages(struct gen_state *state, const struct gen_training *training,
                           const struct gen_run *run)
{
    for (size_t j = 0; j < training->n_averages; j++)
        if (training->averages[j].is_reset)
            memcpy(state->averages + j * GEN_RUN_ELEMS, state->parameters, run->n * sizeof(double));
}

void gen_run_step(struct gen_state *state, const struct gen_training *training,
                  const struct gen_run *run, uint64_t step)
{
    if (is_reset_at(training, step - 1)) /* its files are written */
        reset_averages(state, training, run);
    move(state, run, step_key(training, step), training->walk_sizes[step], training->jitter_size);
    for (size_t j = 0; j < training->n_averages; j++) {
        const struct gen_average *at = &training->averages[j];
        if (step < at->first || step > at->last)
            continue;
        double beta = at->betas[step - at->first];
        if (beta != 1)
            average(state->averages + j * GEN_RUN_ELEMS, state->parameters, run->n, beta);
    }
}

/* ---- The tensors of the model ---- */

/* Tensors alternate between weight and bias; with three or more the last is the scalar. */
static bool is_scalar(const struct gen_model *model, size_t i)
{
    return model->n >= 3 && i == model->n - 1;
}

static uint64_t share_of(const struct gen_model *model, size_t i)
{
    if (is_scalar(model, i))
        return 0;
    return i % 2 ? 1 : 64 + 64 * (i / 2 % 3);
}

/* Every tensor gets one parameter and its share of the rest. Sizes of weights are multiples of 16,
 * so that they make matrices. The first bias gets the remainder. */
static void share_out(struct gen_model *model, uint64_t n_params)
{
    uint64_t rest = n_params - model->n, left = rest, shares = 0;
    for (size_t i = 0; i < model->n; i++)
        shares += share_of(model, i);
    for (size_t i = 0; i < model->n; i++) {
        /* below 2^50 * 2^8 */
        uint64_t more =
            rest / shares * share_of(model, i) + rest % shares * share_of(model, i) / shares;
        if (i % 2 == 0 && !is_scalar(model, i) && more >= 256)
            more = more / 16 * 16 - 1;
        model->tensors[i].n_elems = 1 + more;
        left -= more;
    }
    model->tensors[model->n > 1 ? 1 : 0].n_elems += left;
}

/* Makes the matrix as square as a side of at most 1024 allows; a vector when no side divides it. */
static void shape_matrix(struct gen_tensor *tensor)
{
    uint64_t rows = 1024;
    while (rows > 1 && (rows > tensor->n_elems / rows || tensor->n_elems % rows))
        rows--;
    tensor->rank = rows > 1 ? 2 : 1;
    tensor->shape[0] = rows > 1 ? rows : tensor->n_elems;
    tensor->shape[1] = rows > 1 ? tensor->n_elems / rows : 0;
}

static void fill_tensor(const struct gen_model *model, size_t i)
{
    struct gen_tensor *tensor = &model->tensors[i];
    if (is_scalar(model, i)) {
        (void)snprintf(tensor->name, sizeof(tensor->name), "gain");
        tensor->mean = 1;
        tensor->scale = 0.1;
        return;
    }
    bool is_bias = i % 2;
    (void)snprintf(tensor->name, sizeof(tensor->name), "blocks.%zu.%s", i / 2,
                   is_bias ? "bias" : "weight");
    if (is_bias) {
        tensor->rank = 1;
        tensor->shape[0] = tensor->n_elems;
        tensor->scale = 0.02;
        return;
    }
    shape_matrix(tensor);
    /* as in initialisations: 1 / sqrt(inputs of a neuron) */
    tensor->scale = 1 / sqrt((double)tensor->shape[tensor->rank - 1]);
}

enum phema_status gen_model_init(struct gen_model *model, uint64_t n, uint64_t n_params,
                                 struct phema_error *err)
{
    model->n = (size_t)n;
    model->tensors = calloc(n + 1, sizeof(*model->tensors));
    if (!model->tensors)
        return phema_fail(err, PHEMA_ERR_RESOURCE, "out of memory for %" PRIu64 " tensors", n);
    share_out(model, n_params);
    for (size_t i = 0; i < model->n; i++) {
        struct gen_tensor *tensor = &model->tensors[i];
        fill_tensor(model, i);
        uint64_t n_runs = (tensor->n_elems + GEN_RUN_ELEMS - 1) / GEN_RUN_ELEMS;
        tensor[1].first_param = tensor->first_param + tensor->n_elems;
        tensor[1].first_run = tensor->first_run + n_runs;
    }
    return PHEMA_OK;
}

void gen_model_clear(struct gen_model *model)
{
    free(model->tensors);
    model->tensors = NULL;
}
