// SPDX-License-Identifier: Apache-2.0
/* language.c - two models of a random text: the last symbols through an embedding and two hidden
 * layers, and one head of causal attention. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "network.h"
#include "random.h"
#include "training.h"

#define N_SYMBOLS ((size_t)32)

/* ---- The text ---- */

/* A fixed function of its input. */
static uint64_t scramble(uint64_t input)
{
    return random_bits(&input);
}

/* Often a function of the last two symbols, or of the last one, or the one of three places before;
 * else any, the first ones most. */
static size_t next_symbol(const size_t *last, const struct batch *batch)
{
    uint64_t *random = batch->random, data = (uint64_t)(1e6 * batch->data);
    double chance = random_unit(random);
    if (chance < 0.5)
        return scramble(1000 + data + last[0] * N_SYMBOLS + last[-1]) % N_SYMBOLS;
    if (chance < 0.75)
        return scramble(data + last[0]) % N_SYMBOLS;
    if (chance < 0.85)
        return last[-2];
    double even = random_unit(random);
    return (size_t)(even * even * N_SYMBOLS);
}

static void draw_text(size_t *text, size_t n, const struct batch *batch)
{
    for (size_t i = 0; i < n; i++)
        text[i] = i < 3 ? random_bits(batch->random) % N_SYMBOLS : next_symbol(&text[i - 1], batch);
}

static void draw_table(double *table, size_t n, uint64_t *random)
{
    for (size_t i = 0; i < n; i++)
        table[i] = 0.5 * random_normal(random);
}

/* Gradient of the logarithmic loss, in place of the outputs. */
static void lose(double *out, const size_t *wanted, size_t rows)
{
    for (size_t r = 0; r < rows; r++) {
        double *row = out + r * N_SYMBOLS;
        softmax(row, N_SYMBOLS);
        row[wanted[r]] -= 1;
        for (size_t o = 0; o < N_SYMBOLS; o++)
            row[o] /= (double)rows;
    }
}

/* ---- The last symbols ---- */

#define CONTEXT   ((size_t)4)
#define EMBEDDING ((size_t)12)

static void *start_language(double *params, uint64_t *random)
{
    struct mlp *mlp = calloc(1, sizeof(*mlp));
    draw_table(params, N_SYMBOLS * EMBEDDING, random);
    if (mlp)
        mlp_init(mlp, N_SYMBOLS * EMBEDDING, CONTEXT * EMBEDDING, N_SYMBOLS, params, random);
    return mlp;
}

static void find_language(void *work, double *gradient, const double *params,
                          const struct batch *batch)
{
    struct mlp *mlp = work;
    size_t texts[MLP_ROWS][CONTEXT + 1], wanted[MLP_ROWS];
    double before[MLP_ROWS * CONTEXT * EMBEDDING];
    for (size_t r = 0; r < MLP_ROWS; r++) {
        draw_text(texts[r], CONTEXT + 1, batch);
        wanted[r] = texts[r][CONTEXT];
        for (size_t c = 0; c < CONTEXT; c++)
            memcpy(mlp->inputs[0] + (r * CONTEXT + c) * EMBEDDING, params + texts[r][c] * EMBEDDING,
                   EMBEDDING * sizeof(double));
    }
    mlp_forward(mlp, params);
    memcpy(mlp->back, mlp->out, sizeof(mlp->back));
    lose(mlp->back, wanted, MLP_ROWS);
    mlp_back(mlp, gradient, before, params);
    memset(gradient, 0, sizeof(double) * N_SYMBOLS * EMBEDDING);
    for (size_t i = 0; i < MLP_ROWS * CONTEXT; i++) {
        size_t symbol = texts[i / CONTEXT][i % CONTEXT];
        for (size_t e = 0; e < EMBEDDING; e++)
            gradient[symbol * EMBEDDING + e] += before[i * EMBEDDING + e];
    }
}

/* ---- Attention ---- */

#define TEXTS  ((size_t)4)
#define LENGTH 12
#define ROWS   (TEXTS * LENGTH) /* each predicts the next symbol */
#define SIZE   ((size_t)24)
#define HIDDEN ((size_t)64)

/* Offsets of the tables of symbols and places, then the layers. */
#define AT_PLACES (N_SYMBOLS * SIZE)
#define AT_LAYERS (AT_PLACES + LENGTH * SIZE)

enum layer { QUERY, KEY, VALUE, MIX, WIDEN, PREDICT, N_ATTENTION_LAYERS };

struct attention {
    struct dense layers[N_ATTENTION_LAYERS];
    double in[ROWS * SIZE], heads[3][ROWS * SIZE]; /* query, key, value */
    double shares[ROWS * LENGTH];                  /* of each earlier place */
    double mean[ROWS * SIZE], mixed[ROWS * SIZE];
    double sums[ROWS * HIDDEN], hidden[ROWS * HIDDEN], out[ROWS * N_SYMBOLS];
    double back_heads[3][ROWS * SIZE], back_hidden[ROWS * HIDDEN];
    double back_in[ROWS * SIZE], back_mean[ROWS * SIZE], back[ROWS * SIZE];
};

static void *start_attention(double *params, uint64_t *random)
{
    static const size_t sizes[N_ATTENTION_LAYERS][2] = {{SIZE, SIZE},   {SIZE, SIZE},
                                                        {SIZE, SIZE},   {SIZE, SIZE},
                                                        {SIZE, HIDDEN}, {HIDDEN, N_SYMBOLS}};
    struct attention *model = calloc(1, sizeof(*model));
    size_t at = AT_LAYERS;
    draw_table(params, AT_LAYERS, random);
    for (size_t layer = 0; model && layer < N_ATTENTION_LAYERS; layer++) {
        model->layers[layer] = (struct dense){at, sizes[layer][0], sizes[layer][1]};
        dense_draw(&model->layers[layer], params, random);
        at += DENSE_PARAMS(sizes[layer][0], sizes[layer][1]);
    }
    return model;
}

static double dot(const double *a, const double *b)
{
    double sum = 0;
    for (size_t i = 0; i < SIZE; i++)
        sum += a[i] * b[i];
    return sum;
}

static void add(double *sum, double factor, const double *a)
{
    for (size_t i = 0; i < SIZE; i++)
        sum[i] += factor * a[i];
}

static const double scale = 0.20412414523193154; /* 1 / sqrt(SIZE) */

static void attend(struct attention *model)
{
    memset(model->mean, 0, sizeof(model->mean));
    for (size_t r = 0; r < ROWS; r++) {
        size_t first = r - r % LENGTH, n = r - first + 1;
        double *shares = model->shares + r * LENGTH;
        for (size_t k = 0; k < n; k++)
            shares[k] =
                scale * dot(model->heads[QUERY] + r * SIZE, model->heads[KEY] + (first + k) * SIZE);
        softmax(shares, n);
        for (size_t k = 0; k < n; k++)
            add(model->mean + r * SIZE, shares[k], model->heads[VALUE] + (first + k) * SIZE);
    }
}

static void attend_back(struct attention *model)
{
    memset(model->back_heads, 0, sizeof(model->back_heads));
    for (size_t r = 0; r < ROWS; r++) {
        size_t first = r - r % LENGTH, n = r - first + 1;
        const double *shares = model->shares + r * LENGTH, *after = model->back_mean + r * SIZE;
        double slopes[LENGTH], mean = 0;
        for (size_t k = 0; k < n; k++) {
            slopes[k] = dot(after, model->heads[VALUE] + (first + k) * SIZE);
            mean += shares[k] * slopes[k];
            add(model->back_heads[VALUE] + (first + k) * SIZE, shares[k], after);
        }
        for (size_t k = 0; k < n; k++) {
            double slope = scale * shares[k] * (slopes[k] - mean);
            size_t other = (first + k) * SIZE;
            add(model->back_heads[QUERY] + r * SIZE, slope, model->heads[KEY] + other);
            add(model->back_heads[KEY] + other, slope, model->heads[QUERY] + r * SIZE);
        }
    }
}

static void forward_attention(struct attention *model, const double *params)
{
    for (size_t h = QUERY; h <= VALUE; h++)
        dense_apply(&model->layers[h], model->heads[h], model->in, params, ROWS);
    attend(model);
    dense_apply(&model->layers[MIX], model->mixed, model->mean, params, ROWS);
    for (size_t i = 0; i < ROWS * SIZE; i++)
        model->mixed[i] += model->in[i];
    dense_apply(&model->layers[WIDEN], model->sums, model->mixed, params, ROWS);
    silu_apply(model->hidden, model->sums, ROWS * HIDDEN);
    dense_apply(&model->layers[PREDICT], model->out, model->hidden, params, ROWS);
}

/* From the gradient of the outputs, in out, to that of the inputs, in back_in. */
static void back_attention(struct attention *model, double *gradient, const double *params)
{
    dense_back(&model->layers[PREDICT], gradient, model->back_hidden, model->out, model->hidden,
               params, ROWS);
    silu_back(model->back_hidden, model->sums, ROWS * HIDDEN);
    dense_back(&model->layers[WIDEN], gradient, model->back_in, model->back_hidden, model->mixed,
               params, ROWS);
    dense_back(&model->layers[MIX], gradient, model->back_mean, model->back_in, model->mean, params,
               ROWS);
    attend_back(model);
    for (size_t h = QUERY; h <= VALUE; h++) {
        dense_back(&model->layers[h], gradient, model->back, model->back_heads[h], model->in,
                   params, ROWS);
        for (size_t i = 0; i < ROWS * SIZE; i++)
            model->back_in[i] += model->back[i];
    }
}

static void find_attention(void *work, double *gradient, const double *params,
                           const struct batch *batch)
{
    struct attention *model = work;
    size_t texts[TEXTS][LENGTH + 1], wanted[ROWS];
    for (size_t t = 0; t < TEXTS; t++)
        draw_text(texts[t], LENGTH + 1, batch);
    for (size_t r = 0; r < ROWS; r++) {
        wanted[r] = texts[r / LENGTH][r % LENGTH + 1];
        memcpy(model->in + r * SIZE, params + texts[r / LENGTH][r % LENGTH] * SIZE,
               SIZE * sizeof(double));
        add(model->in + r * SIZE, 1, params + AT_PLACES + r % LENGTH * SIZE);
    }
    forward_attention(model, params);
    lose(model->out, wanted, ROWS);
    back_attention(model, gradient, params);
    memset(gradient, 0, AT_LAYERS * sizeof(double));
    for (size_t r = 0; r < ROWS; r++) {
        add(gradient + texts[r / LENGTH][r % LENGTH] * SIZE, 1, model->back_in + r * SIZE);
        add(gradient + AT_PLACES + r % LENGTH * SIZE, 1, model->back_in + r * SIZE);
    }
}

const struct task task_language = {.what = "language, last four symbols, AdamW",
                                   .n_params = N_SYMBOLS * EMBEDDING +
                                               MLP_PARAMS(CONTEXT * EMBEDDING, N_SYMBOLS),
                                   .n_layers = MLP_LAYERS,
                                   .start = start_language,
                                   .find_gradient = find_language,
                                   .optimizer = &optimizer_adam,
                                   .weight_decay = 0.05,
                                   .rate = 4e-3};
const struct task task_attention = {.what = "language, attention, AdamW",
                                    .n_params = AT_LAYERS + 4 * DENSE_PARAMS(SIZE, SIZE) +
                                                DENSE_PARAMS(SIZE, HIDDEN) +
                                                DENSE_PARAMS(HIDDEN, N_SYMBOLS),
                                    .n_layers = N_ATTENTION_LAYERS,
                                    .start = start_attention,
                                    .find_gradient = find_attention,
                                    .optimizer = &optimizer_adam,
                                    .weight_decay = 0.05,
                                    .rate = 3e-3};
