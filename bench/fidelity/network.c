// SPDX-License-Identifier: Apache-2.0
/* network.c - dense layers, SiLU, softmax. */
#include "network.h"

#include <math.h>
#include <string.h>

#include "random.h"

void dense_draw(const struct dense *dense, double *params, uint64_t *random)
{
    double *weights = params + dense->at;
    size_t n = dense->n_in * dense->n_out;
    for (size_t i = 0; i < n; i++)
        weights[i] = random_normal(random) / sqrt((double)dense->n_in);
    memset(weights + n, 0, dense->n_out * sizeof(double));
}

void dense_apply(const struct dense *dense, double *out, const double *in, const double *params,
                 size_t rows)
{
    size_t n_in = dense->n_in, n_out = dense->n_out;
    const double *weights = params + dense->at;
    for (size_t r = 0; r < rows; r++) {
        double *row = out + r * n_out;
        memcpy(row, weights + n_in * n_out, n_out * sizeof(double));
        for (size_t i = 0; i < n_in; i++) {
            double x = in[r * n_in + i];
            for (size_t o = 0; o < n_out; o++)
                row[o] += x * weights[i * n_out + o];
        }
    }
}

void dense_back(const struct dense *dense, double *gradient, double *before, const double *after,
                const double *in, const double *params, size_t rows)
{
    size_t n_in = dense->n_in, n_out = dense->n_out;
    const double *weights = params + dense->at;
    double *slopes = gradient + dense->at;
    memset(slopes, 0, DENSE_PARAMS(n_in, n_out) * sizeof(double));
    for (size_t r = 0; r < rows; r++) {
        const double *row = after + r * n_out;
        for (size_t i = 0; i < n_in; i++) {
            double x = in[r * n_in + i], sum = 0;
            for (size_t o = 0; o < n_out; o++)
                slopes[i * n_out + o] += x * row[o];
            for (size_t o = 0; before && o < n_out; o++)
                sum += weights[i * n_out + o] * row[o];
            if (before)
                before[r * n_in + i] = sum;
        }
        for (size_t o = 0; o < n_out; o++)
            slopes[n_in * n_out + o] += row[o];
    }
}

void silu_apply(double *out, const double *in, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = in[i] / (1 + exp(-in[i]));
}

void silu_back(double *back, const double *in, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double gate = 1 / (1 + exp(-in[i]));
        back[i] *= gate * (1 + in[i] * (1 - gate));
    }
}

void softmax(double *row, size_t n)
{
    double largest = row[0], total = 0;
    for (size_t i = 1; i < n; i++)
        largest = row[i] > largest ? row[i] : largest;
    for (size_t i = 0; i < n; i++)
        total += row[i] = exp(row[i] - largest);
    for (size_t i = 0; i < n; i++)
        row[i] /= total;
}

void mlp_init(struct mlp *mlp, size_t at, size_t n_in, size_t n_out, double *params,
              uint64_t *random)
{
    const size_t sizes[MLP_LAYERS + 1] = {n_in, MLP_WIDTH, MLP_WIDTH, n_out};
    for (size_t layer = 0; layer < MLP_LAYERS; layer++) {
        struct dense dense = {at, sizes[layer], sizes[layer + 1]};
        mlp->layers[layer] = dense;
        dense_draw(&dense, params, random);
        at += DENSE_PARAMS(dense.n_in, dense.n_out);
    }
}

void mlp_forward(struct mlp *mlp, const double *params)
{
    for (size_t layer = 0; layer + 1 < MLP_LAYERS; layer++) {
        dense_apply(&mlp->layers[layer], mlp->sums[layer], mlp->inputs[layer], params, MLP_ROWS);
        silu_apply(mlp->inputs[layer + 1], mlp->sums[layer], MLP_ROWS * MLP_WIDTH);
    }
    dense_apply(&mlp->layers[MLP_LAYERS - 1], mlp->out, mlp->inputs[MLP_LAYERS - 1], params,
                MLP_ROWS);
}

void mlp_back(struct mlp *mlp, double *gradient, double *before, const double *params)
{
    double other[MLP_ROWS * MLP_WIDTH], *after = mlp->back, *next = other;
    for (size_t layer = MLP_LAYERS - 1; layer > 0; layer--) {
        dense_back(&mlp->layers[layer], gradient, next, after, mlp->inputs[layer], params,
                   MLP_ROWS);
        silu_back(next, mlp->sums[layer - 1], MLP_ROWS * MLP_WIDTH);
        double *swap = after;
        after = next;
        next = swap;
    }
    dense_back(&mlp->layers[0], gradient, before, after, mlp->inputs[0], params, MLP_ROWS);
}
