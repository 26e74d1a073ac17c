// SPDX-License-Identifier: Apache-2.0
/* kernels.c - how fast the backends add up tiles that come from memory, beside a plain read of the
 * same bytes in the same run. The target bench_kernels, linked with phema_accumulate; one thread.
 * Usage: bench_kernels [MEGABYTES of input, default 512] [RUNS, default 5] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "phema/accumulate.h"

#define N_INPUTS 32
#define MAX_RUNS 99

struct bench {
    uint8_t *inputs[N_INPUTS];
    size_t input_bytes;
    size_t n_runs;
    uint8_t *out;
    void *sums;
};

static bool allocate(struct bench *bench)
{
    bench->out = malloc((size_t)65536 * 8);
    bench->sums = aligned_alloc(64, (size_t)64 * 65536 * 8);
    bool is_complete = bench->out && bench->sums;
    for (size_t k = 0; is_complete && k < N_INPUTS; k++) {
        bench->inputs[k] = aligned_alloc(4096, bench->input_bytes);
        is_complete = bench->inputs[k] != NULL;
        /* small numbers in every dtype */
        if (is_complete)
            memset(bench->inputs[k], (int)(0x20 + k % 8), bench->input_bytes);
    }
    return is_complete;
}

static void clear(struct bench *bench)
{
    for (size_t k = 0; k < N_INPUTS; k++)
        free(bench->inputs[k]);
    free(bench->out);
    free(bench->sums);
}

static double now(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_rate(const char *what, double *seconds, size_t n_runs, double gigabytes,
                       double gigaflop)
{
    qsort(seconds, n_runs, sizeof(*seconds), compare_doubles);
    printf("%-28s %7.2f GB/s  (%.2f to %.2f)", what, gigabytes / seconds[n_runs / 2],
           gigabytes / seconds[n_runs - 1], gigabytes / seconds[0]);
    if (gigaflop > 0)
        printf("  %7.1f GFLOP/s", gigaflop / seconds[n_runs / 2]);
    printf("\n");
}

static uint64_t sum_words(const uint8_t *data, size_t size)
{
    uint64_t sums[16] = {0}, words[16], total = 0;
    for (size_t i = 0; i + sizeof(words) <= size; i += sizeof(words)) {
        memcpy(words, data + i, sizeof(words));
        for (size_t j = 0; j < ARRAY_LEN(sums); j++)
            sums[j] += words[j];
    }
    for (size_t j = 0; j < ARRAY_LEN(sums); j++)
        total += sums[j];
    return total;
}

static void measure_read(const struct bench *bench)
{
    double seconds[MAX_RUNS];
    volatile uint64_t sink = 0;
    for (size_t run = 0; run < bench->n_runs; run++) {
        double start = now();
        for (size_t k = 0; k < N_INPUTS; k++)
            sink = sink + sum_words(bench->inputs[k], bench->input_bytes);
        seconds[run] = now() - start;
    }
    print_rate("memory read", seconds, bench->n_runs,
               1e-9 * (double)(bench->input_bytes * N_INPUTS), 0);
}

/* All inputs once, tile by tile: zero, add, narrow, as the program does. */
static void add_all(const struct bench *bench, const struct phema_backend *backend,
                    enum phema_accumulator accumulator, enum phema_dtype dtype, size_t n_targets,
                    const double *weights, size_t tile_elems)
{
    size_t elem_bytes = phema_dtype_bits(dtype) / 8;
    size_t n_elems = bench->input_bytes / elem_bytes;
    size_t row_bytes = tile_elems * sizeof(double);
    struct phema_narrow_counts counts = {0};
    for (size_t first = 0; first < n_elems; first += tile_elems) {
        const uint8_t *inputs[N_INPUTS];
        for (size_t k = 0; k < N_INPUTS; k++)
            inputs[k] = bench->inputs[k] + first * elem_bytes;
        size_t n = n_elems - first < tile_elems ? n_elems - first : tile_elems;
        struct phema_tile tile = {inputs, weights, N_INPUTS, n_targets, n, dtype};
        memset(bench->sums, 0, n_targets * row_bytes);
        phema_accumulate(backend, accumulator, bench->sums, row_bytes, &tile);
        for (size_t m = 0; m < n_targets; m++)
            phema_narrow(backend, bench->out, dtype, accumulator,
                         (char *)bench->sums + m * row_bytes, n, PHEMA_OVERFLOW_INF, &counts);
    }
}

static void measure(const struct bench *bench, const struct phema_backend *backend,
                    enum phema_accumulator accumulator, enum phema_dtype dtype, size_t n_targets)
{
    double weights[N_INPUTS * 64];
    for (size_t i = 0; i < N_INPUTS * n_targets; i++)
        weights[i] = 1.0 / (double)(i + 2);
    size_t tile_elems = 65536 / n_targets / 1024 * 1024;
    if (tile_elems < 4096)
        tile_elems = 4096;
    double seconds[MAX_RUNS];
    for (size_t run = 0; run < bench->n_runs; run++) {
        double start = now();
        add_all(bench, backend, accumulator, dtype, n_targets, weights, tile_elems);
        seconds[run] = now() - start;
    }
    char what[64];
    (void)snprintf(what, sizeof(what), "%-6s %-4s sums in %s K=%zu", phema_backend_name(backend),
                   phema_dtype_name(dtype), accumulator == PHEMA_ACCUMULATE_F64 ? "f64" : "f32",
                   n_targets);
    double n_elems = 8.0 * (double)bench->input_bytes * N_INPUTS / phema_dtype_bits(dtype);
    print_rate(what, seconds, bench->n_runs, 1e-9 * (double)(bench->input_bytes * N_INPUTS),
               2e-9 * n_elems * (double)n_targets);
}

int main(int argc, char **argv)
{
    struct bench bench = {.n_runs = 5};
    size_t megabytes = argc > 1 ? strtoul(argv[1], NULL, 10) : 512;
    if (argc > 2)
        bench.n_runs = strtoul(argv[2], NULL, 10);
    if (megabytes < N_INPUTS || bench.n_runs < 1 || bench.n_runs > MAX_RUNS) {
        (void)fprintf(stderr, "usage: bench_kernels [MEGABYTES >= %d] [RUNS <= %d]\n", N_INPUTS,
                      MAX_RUNS);
        return 2;
    }
    bench.input_bytes = megabytes * 1000000 / N_INPUTS / 4096 * 4096;
    if (!allocate(&bench)) {
        (void)fprintf(stderr, "bench_kernels: out of memory\n");
        clear(&bench);
        return 7;
    }
    printf("%d inputs of %zu bytes, median of %zu runs (slowest to fastest), one thread\n",
           N_INPUTS, bench.input_bytes, bench.n_runs);
    measure_read(&bench);
    static const enum phema_dtype dtypes[] = {PHEMA_F16, PHEMA_BF16, PHEMA_F32, PHEMA_F64,
                                              PHEMA_F8_E4M3};
    static const size_t targets[] = {1, 2, 4, 8, 25};
    static const char *const names[] = {"avx512", "avx2", "neon"};
    for (size_t b = 0; b < ARRAY_LEN(names); b++) {
        const struct phema_backend *backend = phema_backend_named(names[b]);
        for (size_t d = 0; backend && d < ARRAY_LEN(dtypes); d++) {
            for (size_t t = 0; t < ARRAY_LEN(targets); t++) {
                measure(&bench, backend, PHEMA_ACCUMULATE_F64, dtypes[d], targets[t]);
                measure(&bench, backend, PHEMA_ACCUMULATE_F32, dtypes[d], targets[t]);
            }
        }
    }
    measure_read(&bench);
    clear(&bench);
    return 0;
}
