// SPDX-License-Identifier: Apache-2.0
/* perceptrons.c - three tasks for networks of two hidden layers. */
#include <math.h>
#include <stdlib.h>

#include "network.h"
#include "random.h"
#include "training.h"

/* Of an example. With few of them parameters would move in few directions only, and no rule for
 * weights but the truth would find them. */
#define N_COORDINATES 24
#define N_LEVELS      4 /* inputs that tell the noise level */
#define N_CLASSES     8
#define N_WAVES       4

/* Draws one example, the network's input and the wanted output. */
typedef void draw_function(double *in, double *wanted, const struct batch *batch);

/* is_softmax: wanted are probabilities; otherwise the loss is the square. */
static void find_gradient(struct mlp *mlp, draw_function *draw, bool is_softmax, double *gradient,
                          const double *params, const struct batch *batch)
{
    size_t n_in = mlp->layers[0].n_in, n_out = mlp->layers[MLP_LAYERS - 1].n_out;
    double wanted[MLP_ROWS][MLP_WIDTH];
    for (size_t r = 0; r < MLP_ROWS; r++)
        draw(mlp->inputs[0] + r * n_in, wanted[r], batch);
    mlp_forward(mlp, params);
    for (size_t r = 0; r < MLP_ROWS; r++) {
        if (is_softmax)
            softmax(mlp->out + r * n_out, n_out);
        for (size_t o = 0; o < n_out; o++)
            mlp->back[r * n_out + o] = (mlp->out[r * n_out + o] - wanted[r][o]) / MLP_ROWS;
    }
    mlp_back(mlp, gradient, NULL, params);
}

static void *start(size_t n_in, size_t n_out, double *params, uint64_t *random)
{
    struct mlp *mlp = calloc(1, sizeof(*mlp));
    if (mlp)
        mlp_init(mlp, 0, n_in, n_out, params, random);
    return mlp;
}

/* A diffusion model of points about eight centres, with the preconditioning and the noise levels of
 * EDM (arXiv:2206.00364, table 1; sigma_data 0.5). The weighted loss is that of the network's own
 * output: (F - (y - c_skip x) / c_out)^2. */
static void draw_denoising(double *in, double *wanted, const struct batch *batch)
{
    uint64_t *random = batch->random;
    const double data = 0.5;
    double sigma = exp(1.2 * random_normal(random) - 1.2), level = log(sigma) / 4;
    double square = sigma * sigma + data * data;
    uint64_t centre = random_bits(random) % 8;
    for (uint64_t c = 0; c < N_COORDINATES; c++) {
        double point = 0.6 * cos((1.7 + batch->data) * (double)((centre + 1) * (c + 1))) +
                       0.2 * random_normal(random);
        double noised = point + sigma * random_normal(random);
        in[c] = noised / sqrt(square);
        wanted[c] = (point - data * data / square * noised) / (sigma * data / sqrt(square));
    }
    for (size_t c = 0; c < N_LEVELS; c++)
        in[N_COORDINATES + c] = cos((double)c * 2 * level);
}

static void *start_denoiser(double *params, uint64_t *random)
{
    return start(N_COORDINATES + N_LEVELS, N_COORDINATES, params, random);
}

static void find_denoiser(void *work, double *gradient, const double *params,
                          const struct batch *batch)
{
    find_gradient(work, draw_denoising, false, gradient, params, batch);
}

/* A sum of waves in many directions, with noise. */
static void draw_regression(double *in, double *wanted, const struct batch *batch)
{
    uint64_t *random = batch->random;
    for (size_t c = 0; c < N_COORDINATES; c++)
        in[c] = random_normal(random);
    for (size_t o = 0; o < N_WAVES; o++) {
        double sum = 0.5 * random_normal(random);
        for (size_t c = 0; c < N_COORDINATES; c++)
            sum += 0.3 * sin(in[c] + 3 * batch->data + (double)o * in[(c + 1 + o) % N_COORDINATES]);
        wanted[o] = sum;
    }
}

static void *start_regression(double *params, uint64_t *random)
{
    return start(N_COORDINATES, N_WAVES, params, random);
}

static void find_regression(void *work, double *gradient, const double *params,
                            const struct batch *batch)
{
    find_gradient(work, draw_regression, false, gradient, params, batch);
}

/* A rectified flow (arXiv:2209.03003) from noise to the points about the eight centres: the velocity
 * at a place of the straight path, from an even time. */
static void draw_flow(double *in, double *wanted, const struct batch *batch)
{
    uint64_t *random = batch->random, centre = random_bits(random) % 8;
    double time = random_unit(random);
    for (uint64_t c = 0; c < N_COORDINATES; c++) {
        double place = 0.6 * cos((1.7 + batch->data) * (double)((centre + 1) * (c + 1)));
        double point = place + 0.2 * random_normal(random), noise = random_normal(random);
        in[c] = (1 - time) * noise + time * point;
        wanted[c] = point - noise;
    }
    for (size_t c = 0; c < N_LEVELS; c++)
        in[N_COORDINATES + c] = cos((double)(c + 1) * time);
}

static void find_flow(void *work, double *gradient, const double *params, const struct batch *batch)
{
    find_gradient(work, draw_flow, false, gradient, params, batch);
}

/* Eight overlapping clouds. */
static void draw_classification(double *in, double *wanted, const struct batch *batch)
{
    uint64_t *random = batch->random;
    uint64_t class = random_bits(random) % N_CLASSES;
    for (uint64_t c = 0; c < N_COORDINATES; c++)
        in[c] = cos((2.3 + batch->data) * (double)((class + 1) * (c + 1))) + random_normal(random);
    for (size_t o = 0; o < N_CLASSES; o++)
        wanted[o] = o == class;
}

static void *start_classifier(double *params, uint64_t *random)
{
    return start(N_COORDINATES, N_CLASSES, params, random);
}

static void find_classifier(void *work, double *gradient, const double *params,
                            const struct batch *batch)
{
    find_gradient(work, draw_classification, true, gradient, params, batch);
}

const struct task task_denoiser = {.what = "EDM denoiser, Adam",
                                   .n_params = MLP_PARAMS(N_COORDINATES + N_LEVELS, N_COORDINATES),
                                   .n_layers = MLP_LAYERS,
                                   .start = start_denoiser,
                                   .find_gradient = find_denoiser,
                                   .optimizer = &optimizer_adam,
                                   .rate = 5e-3};
const struct task task_regression = {.what = "noisy regression, SGD with momentum",
                                     .n_params = MLP_PARAMS(N_COORDINATES, N_WAVES),
                                     .n_layers = MLP_LAYERS,
                                     .optimizer = &optimizer_sgd,
                                     .start = start_regression,
                                     .find_gradient = find_regression,
                                     .rate = 0.02};
const struct task task_classifier = {.what = "eight classes, AdamW",
                                     .n_params = MLP_PARAMS(N_COORDINATES, N_CLASSES),
                                     .n_layers = MLP_LAYERS,
                                     .start = start_classifier,
                                     .find_gradient = find_classifier,
                                     .optimizer = &optimizer_adam,
                                     .weight_decay = 0.02,
                                     .rate = 4e-3};
const struct task task_flow = {.what = "rectified flow, AdamW",
                               .n_params = MLP_PARAMS(N_COORDINATES + N_LEVELS, N_COORDINATES),
                               .n_layers = MLP_LAYERS,
                               .start = start_denoiser,
                               .find_gradient = find_flow,
                               .optimizer = &optimizer_adam,
                               .weight_decay = 0.01,
                               .rate = 4e-3};
