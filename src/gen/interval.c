// SPDX-License-Identifier: Apache-2.0
/* interval.c - Many steps of a training in one. An average is a sum of the parameters of its steps,
 * and these are sums of independent noises. So every noise of every step adds a multiple of one vector
 * to walk, parameters and averages; the interval's covariance is the sum of the outer products. Its
 * Cholesky factor is kept up to date by plane rotations, which never subtract: averages that differ
 * little keep their small difference to full precision, and equal ones stay equal. */
#include "train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

enum phema_status gen_interval_init(struct gen_interval *interval,
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
    if (status)
        gen_interval_clear(interval);
    return status;
}

void gen_interval_clear(struct gen_interval *interval)
{
    free(interval->rows);
    free(interval->columns);
    free(interval->factor);
    *interval = (struct gen_interval){0};
}
