// SPDX-License-Identifier: Apache-2.0
/* kernels.c - the simulated device's kernels as plain loops over the functions of scalar.h. */
#include "kernels.h"

#include "scalar.h"

static double get(const void *row, bool is_f64, uint64_t i)
{
    return is_f64 ? ((const double *)row)[i] : (double)((const float *)row)[i];
}

static void set(void *row, bool is_f64, uint64_t i, double value)
{
    if (is_f64)
        ((double *)row)[i] = value;
    else
        ((float *)row)[i] = (float)value;
}

static double add(bool is_f64, double weight, double x, double sum)
{
    return is_f64 ? scalar_add_f64(weight, x, sum)
                  : (double)scalar_add_f32((float)weight, (float)x, (float)sum);
}

static const uint8_t *input_of(const struct runtime_job *job, uint64_t k)
{
    return job->inputs + job->indices[k] * job->input_bytes;
}

static double sum_of(const struct runtime_job *job, uint64_t m, uint64_t i)
{
    uint64_t group = m / job->group_size;
    double sum = 0;
    for (uint64_t k = 0; k < job->n_inputs; k++) {
        uint64_t at = (group * job->n_inputs + k) * job->group_size + m % job->group_size;
        sum = add(job->is_f64, get(job->weights, job->is_f64, at),
                  scalar_load(job->input, input_of(job, k), i), sum);
    }
    return sum;
}

static void count(struct phema_cuda_counts *counts, enum scalar_rounding rounding)
{
    counts->n_overflow = (uint16_t)(counts->n_overflow + (rounding == SCALAR_OVERFLOWS));
    counts->n_nan = (uint16_t)(counts->n_nan + (rounding == SCALAR_IS_NAN));
    counts->n_inf = (uint16_t)(counts->n_inf + (rounding == SCALAR_IS_INFINITE));
}

/* Rounds all blocks of all rows. is_summed: the sums exist already; else they are computed here. */
static void finish(const struct runtime_job *job, bool is_summed, bool is_wrong)
{
    for (uint64_t m = 0; m < job->n_rows; m++) {
        uint8_t *row = job->rows + m * job->row_bytes;
        const uint8_t *sums = job->sums + m * job->sum_bytes;
        for (uint64_t b = 0; b < job->n_blocks; b++) {
            struct phema_cuda_block block = job->blocks[b];
            struct phema_cuda_counts found = {0};
            for (uint64_t i = block.first; i < (uint64_t)block.first + block.n; i++) {
                double sum = is_summed ? get(sums, job->is_f64, i) : sum_of(job, m, i);
                if (is_wrong)
                    sum *= 1 + 0x1p-7;
                count(&found, scalar_store(job->output, row, i, sum, job->saturates));
            }
            job->counts[m * job->n_blocks + b] = found;
        }
    }
}

void sim_average(const struct runtime_job *job, bool is_wrong)
{
    finish(job, false, is_wrong);
}

void sim_round(const struct runtime_job *job)
{
    finish(job, true, false);
}

void sim_widen(uint8_t *panel, const struct runtime_job *job, uint64_t first, uint64_t n,
               uint64_t n_numbers)
{
    for (uint64_t k = 0; k < n; k++)
        for (uint64_t i = 0; i < n_numbers; i++)
            set(panel + k * job->sum_bytes, job->is_f64, i,
                scalar_load(job->input, input_of(job, first + k), i));
}

void sim_multiply(const struct runtime_product *product)
{
    for (uint64_t m = 0; m < product->n_rows; m++) {
        uint8_t *row = product->sums + m * product->row_bytes;
        for (uint64_t i = 0; i < product->n_numbers; i++) {
            double sum = 0;
            for (uint64_t k = product->n_inputs; k-- > 0;)
                sum = add(product->is_f64,
                          get(product->weights, product->is_f64, k * product->n_rows + m),
                          get(product->panel + k * product->row_bytes, product->is_f64, i), sum);
            set(row, product->is_f64, i, product->adds ? get(row, product->is_f64, i) + sum : sum);
        }
    }
}
