// SPDX-License-Identifier: Apache-2.0
/* optimizers.c - the optimizers that trainers use. */
#include "optimizers.h"

#include <math.h>
#include <string.h>

#include <cblas.h>
#include <lapacke.h>

#define MAX_SIDE 65 /* of a layer's weights, with the bias */

/* ---- Adam, with (0.9, 0.99) ---- */

struct adam {
    double grown[2]; /* the weight of both moments so far */
};

static struct adam adam_at(uint64_t step)
{
    return (struct adam){{1 - pow(0.9, (double)step), 1 - pow(0.99, (double)step)}};
}

static double adam_direction(const struct adam *adam, struct stepping *s, size_t i, double slope)
{
    double *first = &s->moments[0][i], *second = &s->moments[1][i];
    *first += 0.1 * (slope - *first);
    *second += 0.01 * (slope * slope - *second);
    return *first / adam->grown[0] / (sqrt(*second / adam->grown[1]) + 1e-8);
}

static void step_adam_between(struct stepping *s, size_t from, size_t end)
{
    struct adam adam = adam_at(s->step);
    for (size_t i = from; i < end; i++) {
        double *param = &s->params[i];
        *param -= s->rate * s->weight_decay * *param;
        *param -= s->rate * adam_direction(&adam, s, i, s->gradient[i]);
    }
}

static void step_adam(struct stepping *s)
{
    step_adam_between(s, s->from, s->n);
}

/* ---- SGD, with momentum 0.9 ---- */

static void step_sgd(struct stepping *s)
{
    for (size_t i = s->from; i < s->n; i++) {
        s->moments[0][i] = 0.9 * s->moments[0][i] + s->gradient[i];
        s->params[i] -= s->rate * s->moments[0][i];
    }
}

/* ---- Lion (arXiv:2302.06675), with (0.9, 0.99) ---- */

static void step_lion(struct stepping *s)
{
    for (size_t i = s->from; i < s->n; i++) {
        double slope = s->gradient[i], *moment = &s->moments[0][i];
        double mixed = 0.9 * *moment + 0.1 * slope;
        s->params[i] -= s->rate * s->weight_decay * 5 * s->params[i];
        s->params[i] -= s->rate * (mixed > 0 ? 1 : mixed < 0 ? -1 : 0);
        *moment = 0.99 * *moment + 0.01 * slope;
    }
}

/* ---- Matrices of a layer ---- */

struct matrix {
    size_t at; /* offset of the parameters */
    int rows, columns;
};

/* The weights without the bias. */
static struct matrix weights_of(const struct dense *layer)
{
    return (struct matrix){layer->at, (int)layer->n_in, (int)layer->n_out};
}

/* out [n x m] = a [n x k] b [k x m], transposed where asked for */
static void multiply(double *out, const double *a, bool is_a_turned, const double *b,
                     bool is_b_turned, int n, int m, int k)
{
    cblas_dgemm(CblasRowMajor, is_a_turned ? CblasTrans : CblasNoTrans,
                is_b_turned ? CblasTrans : CblasNoTrans, n, m, k, 1, a, is_a_turned ? n : k, b,
                is_b_turned ? k : m, 0, out, m);
}

/* Parameters that belong to no matrix: before the first layer, and biases. */
static void step_others(struct stepping *s)
{
    size_t from = 0;
    for (size_t l = 0; l < s->n_layers; l++) {
        struct matrix matrix = weights_of(&s->layers[l]);
        step_adam_between(s, from, matrix.at);
        from = matrix.at + (size_t)matrix.rows * (size_t)matrix.columns;
    }
    step_adam_between(s, from, s->n);
}

/* ---- Muon (Keller Jordan, 2024): the momentum made orthogonal by Newton and Schulz ---- */

static void make_orthogonal(double *matrix, int rows, int columns)
{
    const double a = 3.4445, b = -4.7750, c = 2.0315;
    double square[MAX_SIDE * MAX_SIDE], fourth[MAX_SIDE * MAX_SIDE], out[MAX_SIDE * MAX_SIDE];
    int n = rows * columns;
    double norm = cblas_dnrm2(n, matrix, 1) + 1e-7;
    cblas_dscal(n, 1 / norm, matrix, 1);
    for (int round = 0; round < 5; round++) {
        multiply(square, matrix, false, matrix, true, rows, rows, columns);
        multiply(fourth, square, false, square, false, rows, rows, rows);
        cblas_dscal(rows * rows, c, fourth, 1);
        cblas_daxpy(rows * rows, b, square, 1, fourth, 1);
        multiply(out, fourth, false, matrix, false, rows, columns, rows);
        cblas_dscal(n, a, matrix, 1);
        cblas_daxpy(n, 1, out, 1, matrix, 1);
    }
}

static void step_muon(struct stepping *s)
{
    for (size_t l = 0; l < s->n_layers; l++) {
        struct matrix matrix = weights_of(&s->layers[l]);
        size_t n = (size_t)matrix.rows * (size_t)matrix.columns;
        double *momentum = s->moments[0] + matrix.at, *params = s->params + matrix.at;
        double along[MAX_SIDE * MAX_SIDE];
        for (size_t i = 0; i < n; i++) {
            momentum[i] += 0.05 * (s->gradient[matrix.at + i] - momentum[i]);
            along[i] = 0.05 * s->gradient[matrix.at + i] + 0.95 * momentum[i];
        }
        make_orthogonal(along, matrix.rows, matrix.columns);
        double scale = 0.2 * sqrt(fmax(matrix.rows, matrix.columns));
        for (size_t i = 0; i < n; i++)
            params[i] -= s->rate * (scale * along[i] + s->weight_decay * params[i]);
    }
    step_others(s);
}

/* ---- SOAP (arXiv:2409.11321): Adam along the eigenvectors of Shampoo's two matrices ---- */

#define SOAP_EVERY 10

/* The eigenvectors, in columns, of a running mean of products. */
static void turn(double *axes, const double *mean, int n)
{
    double values[MAX_SIDE];
    memcpy(axes, mean, sizeof(double) * (size_t)n * (size_t)n);
    (void)LAPACKE_dsyev(LAPACK_ROW_MAJOR, 'V', 'U', n, axes, n, values);
}

static void add_products(double *mean, const double *matrix, bool is_turned, int n, int k)
{
    double square[MAX_SIDE * MAX_SIDE];
    multiply(square, matrix, is_turned, matrix, !is_turned, n, n, k);
    for (int i = 0; i < n * n; i++)
        mean[i] += 0.05 * (square[i] - mean[i]);
}

/* Of a layer. */
struct soap {
    double left[MAX_SIDE * MAX_SIDE], right[MAX_SIDE * MAX_SIDE];
    double rows[MAX_SIDE * MAX_SIDE], columns[MAX_SIDE * MAX_SIDE];
};

static void step_soap(struct stepping *s)
{
    struct soap *all = s->memory;
    struct adam adam = adam_at(s->step);
    for (size_t l = 0; l < s->n_layers; l++) {
        struct matrix matrix = weights_of(&s->layers[l]);
        struct soap *soap = &all[l];
        int rows = matrix.rows, columns = matrix.columns;
        double *gradient = s->gradient + matrix.at, *params = s->params + matrix.at;
        double half[MAX_SIDE * MAX_SIDE], along[MAX_SIDE * MAX_SIDE];
        add_products(soap->left, gradient, false, rows, columns);
        add_products(soap->right, gradient, true, columns, rows);
        if (s->step % SOAP_EVERY == 1) {
            turn(soap->rows, soap->left, rows);
            turn(soap->columns, soap->right, columns);
        }
        multiply(half, soap->rows, true, gradient, false, rows, columns, rows);
        multiply(along, half, false, soap->columns, false, rows, columns, columns);
        for (int i = 0; i < rows * columns; i++)
            along[i] = adam_direction(&adam, s, matrix.at + (size_t)i, along[i]);
        multiply(half, soap->rows, false, along, false, rows, columns, rows);
        multiply(along, half, false, soap->columns, true, rows, columns, columns);
        for (int i = 0; i < rows * columns; i++)
            params[i] -= s->rate * (along[i] + s->weight_decay * params[i]);
    }
    step_others(s);
}

/* ---- Schedule-free Adam (arXiv:2405.15682): z steps, its mean x is evaluated; gradients are of y
 * = 0.1 z + 0.9 x, which are the parameters of the training ---- */

static void step_schedule_free(struct stepping *s)
{
    double *z = s->moments[2], *x = s->moments[3], grown = 1 - pow(0.99, (double)s->step);
    if (s->step == 1) {
        memcpy(z, s->params, s->n * sizeof(*z));
        memcpy(x, s->params, s->n * sizeof(*x));
    }
    for (size_t i = s->from; i < s->n; i++) {
        double slope = s->gradient[i];
        s->moments[1][i] += 0.01 * (slope * slope - s->moments[1][i]);
        z[i] -= s->rate *
                (slope / (sqrt(s->moments[1][i] / grown) + 1e-8) + s->weight_decay * s->params[i]);
        x[i] += (z[i] - x[i]) / (double)s->step;
        s->params[i] = 0.1 * z[i] + 0.9 * x[i];
    }
}

const struct optimizer optimizer_adam = {"Adam", 1, step_adam, 0};
const struct optimizer optimizer_sgd = {"SGD with momentum", 1, step_sgd, 0};
const struct optimizer optimizer_lion = {"Lion", 0.2, step_lion, 0};
const struct optimizer optimizer_muon = {"Muon", 1, step_muon, 0};
const struct optimizer optimizer_soap = {"SOAP", 1, step_soap, sizeof(struct soap)};
const struct optimizer optimizer_schedule_free = {"schedule-free Adam", 1, step_schedule_free, 0};
