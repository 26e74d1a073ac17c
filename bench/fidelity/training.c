// SPDX-License-Identifier: Apache-2.0
/* training.c - trainings of small networks: two hidden layers of SiLU, minibatches, and three
 * tasks with the optimizers that go with them. Plain loops; all in float64. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "regimes.h"

#define N_COORDINATES                                                                              \
    24             /* of an example; with few of them parameters would move in few directions      \
                    * only, and no rule for weights but the truth would find them */
#define WIDTH   96 /* of both hidden layers */
#define BATCH   32
#define MAX_OUT N_COORDINATES
#define LAYERS  3

struct task {
    size_t n_in, n_out;
    /* One example: the network's input and the wanted output. */
    void (*draw)(double *in, double *wanted, uint64_t *random);
    bool is_softmax; /* wanted: probabilities; otherwise the loss is the square */
    /* Adam with (0.9, 0.99), or SGD with momentum 0.9 */
    bool is_adam;
    double weight_decay;
    double (*rate)(double done, uint64_t step); /* the learning rate; done: share of the run */
};

struct training {
    const struct task *task;
    size_t sizes[LAYERS + 1];
    double *gradient, *first, *second;      /* [n] the gradient and its moments */
    double inputs[LAYERS][BATCH * WIDTH];   /* of every layer */
    double sums[LAYERS - 1][BATCH * WIDTH]; /* before SiLU */
    double out[BATCH * MAX_OUT];
    double back[2][BATCH * WIDTH];
    uint64_t random;
};

static size_t layer_params(const struct training *training, size_t layer)
{
    return (training->sizes[layer] + 1) * training->sizes[layer + 1]; /* a row for the bias */
}

/* out [BATCH x n_out] = in [BATCH x n_in] * weights [n_in x n_out] + bias [n_out] */
static void apply(double *out, const double *in, const double *weights, size_t n_in, size_t n_out)
{
    for (size_t b = 0; b < BATCH; b++) {
        double *row = out + b * n_out;
        memcpy(row, weights + n_in * n_out, n_out * sizeof(double));
        for (size_t i = 0; i < n_in; i++) {
            double x = in[b * n_in + i];
            for (size_t o = 0; o < n_out; o++)
                row[o] += x * weights[i * n_out + o];
        }
    }
}

/* Gradient of a layer's weights, and of its inputs unless before is NULL. */
static void apply_back(double *gradient, double *before, const double *after, const double *in,
                       const double *weights, size_t n_in, size_t n_out)
{
    memset(gradient, 0, (n_in + 1) * n_out * sizeof(double));
    for (size_t b = 0; b < BATCH; b++) {
        const double *row = after + b * n_out;
        for (size_t i = 0; i < n_in; i++) {
            double x = in[b * n_in + i], sum = 0;
            for (size_t o = 0; o < n_out; o++)
                gradient[i * n_out + o] += x * row[o];
            for (size_t o = 0; before && o < n_out; o++)
                sum += weights[i * n_out + o] * row[o];
            if (before)
                before[b * n_in + i] = sum;
        }
        for (size_t o = 0; o < n_out; o++)
            gradient[n_in * n_out + o] += row[o];
    }
}

static void go_forward(struct training *training, const double *params)
{
    for (size_t layer = 0; layer < LAYERS; layer++) {
        size_t n_in = training->sizes[layer], n_out = training->sizes[layer + 1];
        bool is_last = layer == LAYERS - 1;
        double *sums = is_last ? training->out : training->sums[layer];
        apply(sums, training->inputs[layer], params, n_in, n_out);
        for (size_t k = 0; !is_last && k < BATCH * n_out; k++)
            training->inputs[layer + 1][k] = sums[k] / (1 + exp(-sums[k]));
        params += layer_params(training, layer);
    }
}

/* Backward pass from the gradient of the outputs, in back[0]. */
static void go_back(struct training *training, const double *params, size_t n)
{
    double *after = training->back[0], *before = training->back[1];
    size_t at = n;
    for (size_t layer = LAYERS; layer-- > 0;) {
        size_t n_in = training->sizes[layer], n_out = training->sizes[layer + 1];
        at -= layer_params(training, layer);
        apply_back(training->gradient + at, layer > 0 ? before : NULL, after,
                   training->inputs[layer], params + at, n_in, n_out);
        for (size_t k = 0; layer > 0 && k < BATCH * n_in; k++) {
            double x = training->sums[layer - 1][k], gate = 1 / (1 + exp(-x));
            before[k] *= gate * (1 + x * (1 - gate));
        }
        double *swap = after;
        after = before;
        before = swap;
    }
}

/* Gradient of the loss for one row of outputs. */
static void lose(double *back, const double *out, const double *wanted, const struct task *task)
{
    double total = 0;
    for (size_t o = 0; o < task->n_out; o++)
        total += exp(out[o]);
    for (size_t o = 0; o < task->n_out; o++)
        back[o] = (task->is_softmax ? exp(out[o]) / total : out[o]) - wanted[o];
}

static void find_gradient(struct training *training, const double *params, size_t n)
{
    const struct task *task = training->task;
    double wanted[BATCH][MAX_OUT];
    for (size_t b = 0; b < BATCH; b++)
        task->draw(training->inputs[0] + b * task->n_in, wanted[b], &training->random);
    go_forward(training, params);
    for (size_t b = 0; b < BATCH; b++) {
        double *back = training->back[0] + b * task->n_out;
        lose(back, training->out + b * task->n_out, wanted[b], task);
        for (size_t o = 0; o < task->n_out; o++)
            back[o] /= BATCH;
    }
    go_back(training, params, n);
}

static void step_training(struct movement *movement, uint64_t step)
{
    struct training *training = movement->state;
    const struct task *task = training->task;
    double rate = task->rate((double)step / (double)movement->n_steps, step);
    find_gradient(training, movement->params, movement->n);
    double grown[2] = {1 - pow(0.9, (double)step), 1 - pow(0.99, (double)step)};
    for (size_t i = 0; i < movement->n; i++) {
        double slope = training->gradient[i], *param = &movement->params[i];
        if (task->is_adam) {
            training->first[i] += 0.1 * (slope - training->first[i]);
            training->second[i] += 0.01 * (slope * slope - training->second[i]);
            double along = training->first[i] / grown[0];
            *param -= rate * task->weight_decay * *param;
            *param -= rate * along / (sqrt(training->second[i] / grown[1]) + 1e-8);
        } else {
            training->first[i] = 0.9 * training->first[i] + slope;
            *param -= rate * training->first[i];
        }
    }
}

static void end_training(struct movement *movement)
{
    struct training *training = movement->state;
    if (training) {
        free(training->gradient);
        free(training->first);
        free(training->second);
    }
    free(training);
    free(movement->params);
    *movement = (struct movement){0};
}

/* Weights of variance 1 / inputs, biases 0. */
static void draw_params(double *params, struct training *training)
{
    for (size_t layer = 0; layer < LAYERS; layer++) {
        size_t n_in = training->sizes[layer], n_out = training->sizes[layer + 1];
        for (size_t i = 0; i < n_in * n_out; i++)
            params[i] = random_normal(&training->random) / sqrt((double)n_in);
        params += layer_params(training, layer);
    }
}

static bool start_training(struct movement *movement, const struct task *task)
{
    struct training *training = calloc(1, sizeof(*training));
    movement->state = training;
    if (!training)
        return false;
    *training = (struct training){.task = task, .random = 7};
    size_t sizes[] = {task->n_in, WIDTH, WIDTH, task->n_out};
    memcpy(training->sizes, sizes, sizeof(sizes));
    for (size_t layer = 0; layer < LAYERS; layer++)
        movement->n += layer_params(training, layer);
    movement->params = calloc(movement->n, sizeof(double));
    training->gradient = calloc(movement->n, sizeof(double));
    training->first = calloc(movement->n, sizeof(double));
    training->second = calloc(movement->n, sizeof(double));
    if (!movement->params || !training->gradient || !training->first || !training->second)
        return false;
    draw_params(movement->params, training);
    return true;
}

/* A diffusion model of points about eight centres in N_PLANES planes, with the preconditioning and
 * the noise levels of EDM (arXiv:2206.00364, table 1; sigma_data 0.5). The weighted loss is that of
 * the network's own output: (F - (y - c_skip x) / c_out)^2. */
static void draw_denoising(double *in, double *wanted, uint64_t *random)
{
    const double data = 0.5;
    double sigma = exp(1.2 * random_normal(random) - 1.2), level = log(sigma) / 4;
    double square = sigma * sigma + data * data;
    uint64_t centre = random_bits(random) % 8;
    for (uint64_t c = 0; c < N_COORDINATES; c++) {
        double point =
            0.6 * cos(1.7 * (double)((centre + 1) * (c + 1))) + 0.2 * random_normal(random);
        double noised = point + sigma * random_normal(random);
        in[c] = noised / sqrt(square);
        wanted[c] = (point - data * data / square * noised) / (sigma * data / sqrt(square));
    }
    for (size_t c = N_COORDINATES; c < N_COORDINATES + 4; c++)
        in[c] = cos((double)(c - N_COORDINATES) * 2 * level);
}

/* EDM2's learning rate: constant, then falling as 1/sqrt(t). */
static double rate_denoising(double done, uint64_t step)
{
    double rise = step < 50 ? (double)step / 50 : 1;
    return 5e-3 * rise / sqrt(done > 0.1 ? done / 0.1 : 1);
}

/* A sum of waves in many directions, with noise. */
static void draw_regression(double *in, double *wanted, uint64_t *random)
{
    for (size_t c = 0; c < N_COORDINATES; c++)
        in[c] = random_normal(random);
    for (size_t o = 0; o < 4; o++) {
        double sum = 0.5 * random_normal(random);
        for (size_t c = 0; c < N_COORDINATES; c++)
            sum += 0.3 * sin(in[c] + (double)o * in[(c + 1 + o) % N_COORDINATES]);
        wanted[o] = sum;
    }
}

static double rate_regression(double done, uint64_t step)
{
    (void)done;
    (void)step;
    return 0.02;
}

/* Eight overlapping clouds. */
static void draw_classification(double *in, double *wanted, uint64_t *random)
{
    uint64_t class = random_bits(random) % 8;
    for (uint64_t c = 0; c < N_COORDINATES; c++)
        in[c] = cos(2.3 * (double)((class + 1) * (c + 1))) + random_normal(random);
    for (size_t o = 0; o < 8; o++)
        wanted[o] = o == class;
}

static double rate_classification(double done, uint64_t step)
{
    double rise = step < 50 ? (double)step / 50 : 1;
    return 4e-3 * rise * (0.55 + 0.45 * cos(3.141592653589793 * done));
}

static bool start_denoiser(struct movement *movement)
{
    static const struct task task = {
        N_COORDINATES + 4, N_COORDINATES, draw_denoising, false, true, 0, rate_denoising};
    return start_training(movement, &task);
}

static bool start_regression(struct movement *movement)
{
    static const struct task task = {N_COORDINATES, 4, draw_regression, false,
                                     false,         0, rate_regression};
    return start_training(movement, &task);
}

static bool start_classifier(struct movement *movement)
{
    static const struct task task = {N_COORDINATES, 8,    draw_classification, true,
                                     true,          0.02, rate_classification};
    return start_training(movement, &task);
}

const struct regime regime_denoiser = {"denoiser", "training: EDM denoiser, Adam, rate 1/sqrt(t)",
                                       start_denoiser, step_training, end_training};
const struct regime regime_regression = {
    "regression", "training: noisy regression, SGD with momentum, constant rate", start_regression,
    step_training, end_training};
const struct regime regime_classifier = {
    "classifier", "training: eight classes, AdamW, cosine to a tenth of the rate", start_classifier,
    step_training, end_training};
