// SPDX-License-Identifier: Apache-2.0
/* kernels.c - rates at which the backends sum tiles in memory, as with mapped files, and tiles in
 * slots, as with files that are read. For comparison the same run measures a plain read of the same
 * bytes and a loop of fmas on registers. The target bench_kernels, linked with phema_accumulate;
 * one thread. Usage: bench_kernels [MEGABYTES of input, default 512] [RUNS, default 5] [BACKEND,
 * default all] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fma_peak.h"
#include "openblas.h"
#include "phema/accumulate.h"

#define N_INPUTS    32
#define MAX_RUNS    99
#define MAX_TARGETS 64

/* Tile sizes of the program (src/synth/memory_budget.c). */
#define TILE_ELEMS    ((size_t)64 << 10)
#define SLOT_BYTES    ((size_t)128 << 10)
#define MAX_SUM_BYTES ((size_t)2 << 20)
/* Slots begin at different places in their pages. */
#define SLOT_GAP_BYTES ((size_t)64)

struct bench {
    uint8_t *inputs[N_INPUTS];
    size_t input_bytes; /* of each; it may be read from its first or its second byte on */
    size_t n_runs;
    double read_rate; /* bytes per second */
    uint8_t *slots;
    uint8_t *out;
    void *sums;
};

static bool allocate(struct bench *bench)
{
    size_t slots_bytes = N_INPUTS * (SLOT_BYTES + SLOT_GAP_BYTES);
    bench->slots = aligned_alloc(4096, (slots_bytes + 4095) / 4096 * 4096);
    bench->out = malloc(TILE_ELEMS * 8);
    bench->sums = aligned_alloc(64, MAX_SUM_BYTES);
    bool is_complete = bench->slots && bench->out && bench->sums;
    if (bench->slots)
        memset(bench->slots, 0x20, slots_bytes);
    for (size_t k = 0; is_complete && k < N_INPUTS; k++) {
        bench->inputs[k] = aligned_alloc(4096, bench->input_bytes + 4096);
        is_complete = bench->inputs[k] != NULL;
        /* small numbers in every dtype */
        if (is_complete)
            memset(bench->inputs[k], (int)(0x20 + k % 8), bench->input_bytes + 4096);
    }
    return is_complete;
}

static void clear(struct bench *bench)
{
    for (size_t k = 0; k < N_INPUTS; k++)
        free(bench->inputs[k]);
    free(bench->slots);
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

static double median(double *seconds, size_t n_runs)
{
    qsort(seconds, n_runs, sizeof(*seconds), compare_doubles);
    return seconds[n_runs / 2];
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

static void measure_read(struct bench *bench)
{
    double seconds[MAX_RUNS];
    volatile uint64_t sink = 0;
    for (size_t run = 0; run < bench->n_runs; run++) {
        double start = now();
        for (size_t k = 0; k < N_INPUTS; k++)
            sink = sink + sum_words(bench->inputs[k], bench->input_bytes);
        seconds[run] = now() - start;
    }
    bench->read_rate = (double)(bench->input_bytes * N_INPUTS) / median(seconds, bench->n_runs);
    printf("memory read: %.1f GB/s\n", 1e-9 * bench->read_rate);
}

/* Gigaflop per second, the best of several: other load on the machine can only reduce it. */
static double measure_peak(const char *name, enum phema_accumulator accumulator)
{
    double best = 0;
    for (size_t run = 0; run < 5; run++) {
        double start = now();
        double rate = bench_fma_gigaflop(name, accumulator) / (now() - start);
        if (rate > best)
            best = rate;
    }
    return best;
}

struct row {
    const struct phema_backend *backend;
    enum phema_accumulator accumulator;
    enum phema_dtype dtype;
    size_t n_targets;
    size_t shift; /* of all inputs [bytes] */
    bool is_in_slots;
};

static size_t sum_bytes(const struct row *row)
{
    return row->accumulator == PHEMA_ACCUMULATE_F64 ? sizeof(double) : sizeof(float);
}

static size_t tile_elems_of(const struct row *row)
{
    size_t tile_elems = TILE_ELEMS;
    while (tile_elems * phema_dtype_bits(row->dtype) / 8 > SLOT_BYTES ||
           tile_elems * row->n_targets * sum_bytes(row) > MAX_SUM_BYTES)
        tile_elems /= 2;
    return tile_elems;
}

/* Processes all inputs once, tile by tile: zero, add, narrow, like the program. Returns the seconds
 * of adding alone. */
static double add_all(const struct bench *bench, const struct row *row, const double *weights,
                      size_t tile_elems)
{
    size_t elem_bytes = phema_dtype_bits(row->dtype) / 8;
    size_t n_elems = bench->input_bytes / elem_bytes;
    size_t row_bytes = tile_elems * sum_bytes(row);
    struct phema_narrow_counts counts = {0};
    double adding = 0;
    for (size_t first = 0; first < n_elems; first += tile_elems) {
        const uint8_t *inputs[N_INPUTS];
        for (size_t k = 0; k < N_INPUTS; k++)
            inputs[k] = row->is_in_slots
                            ? bench->slots + k * (tile_elems * elem_bytes + SLOT_GAP_BYTES)
                            : bench->inputs[k] + row->shift + first * elem_bytes;
        size_t n = n_elems - first < tile_elems ? n_elems - first : tile_elems;
        struct phema_tile tile = {inputs, weights, N_INPUTS, row->n_targets, n, row->dtype};
        memset(bench->sums, 0, row->n_targets * row_bytes);
        double start = now();
        phema_accumulate(row->backend, row->accumulator, bench->sums, row_bytes, &tile);
        adding += now() - start;
        for (size_t m = 0; m < row->n_targets; m++)
            phema_narrow(row->backend, bench->out, row->dtype, row->accumulator,
                         (char *)bench->sums + m * row_bytes, n, PHEMA_OVERFLOW_INF, &counts);
    }
    return adding;
}

static void measure(const struct bench *bench, const struct row *row, double peak)
{
    double weights[N_INPUTS * MAX_TARGETS];
    for (size_t i = 0; i < N_INPUTS * row->n_targets; i++)
        weights[i] = 1.0 / (double)(i + 2);
    size_t tile_elems = tile_elems_of(row);
    double seconds[MAX_RUNS], adding[MAX_RUNS];
    for (size_t run = 0; run < bench->n_runs; run++) {
        double start = now();
        adding[run] = add_all(bench, row, weights, tile_elems);
        seconds[run] = now() - start;
    }
    double middle = median(seconds, bench->n_runs), middle_adding = median(adding, bench->n_runs);
    double n_bytes = (double)(bench->input_bytes * N_INPUTS);
    double gigaflop = 2e-9 * 8 * n_bytes / phema_dtype_bits(row->dtype) * (double)row->n_targets;
    printf("%-8s %-7s %s %3zu%s %7.2f GB/s (%6.2f to %6.2f) %5.0f %% of read %7.1f GFLOP/s",
           phema_backend_name(row->backend), phema_dtype_name(row->dtype),
           row->accumulator == PHEMA_ACCUMULATE_F64 ? "f64" : "f32", row->n_targets,
           row->shift         ? " +1   "
           : row->is_in_slots ? " slots"
                              : "      ",
           1e-9 * n_bytes / middle, 1e-9 * n_bytes / seconds[bench->n_runs - 1],
           1e-9 * n_bytes / seconds[0], 100 * n_bytes / middle / bench->read_rate,
           gigaflop / middle_adding);
    if (peak > 0)
        printf(" %3.0f %% of fma", 100 * gigaflop / middle_adding / peak);
    printf("\n");
}

static void measure_backend(const struct bench *bench, const struct phema_backend *backend)
{
    static const enum phema_dtype dtypes[] = {PHEMA_F16, PHEMA_BF16, PHEMA_F32, PHEMA_F64,
                                              PHEMA_F8_E4M3};
    static const size_t targets[] = {1, 2, 4, 8, 16, 25, MAX_TARGETS};
    const char *name = phema_backend_name(backend);
    for (size_t a = 0; a < 2; a++) {
        struct row row = {.backend = backend, .accumulator = (enum phema_accumulator)a};
        double peak = measure_peak(name, row.accumulator);
        if (peak > 0)
            printf("%s, fma on registers, %s: %.1f GFLOP/s\n", name,
                   row.accumulator == PHEMA_ACCUMULATE_F64 ? "f64" : "f32", peak);
        for (size_t d = 0; d < ARRAY_LEN(dtypes); d++) {
            row.dtype = dtypes[d];
            for (size_t t = 0; t < ARRAY_LEN(targets); t++) {
                row.n_targets = targets[t];
                for (row.shift = 0; row.shift < 2; row.shift++)
                    /* odd addresses: few targets, where reading matters, and many */
                    if (row.shift == 0 || targets[t] == 1 || targets[t] == 25)
                        measure(bench, &row, peak);
                row.shift = 0;
                row.is_in_slots = true;
                measure(bench, &row, peak);
                row.is_in_slots = false;
            }
        }
    }
}

int main(int argc, char **argv)
{
    struct bench bench = {.n_runs = 5};
    size_t megabytes = argc > 1 ? strtoul(argv[1], NULL, 10) : 512;
    if (argc > 2)
        bench.n_runs = strtoul(argv[2], NULL, 10);
    if (megabytes < N_INPUTS || bench.n_runs < 1 || bench.n_runs > MAX_RUNS) {
        (void)fprintf(stderr, "usage: bench_kernels [MEGABYTES >= %d] [RUNS <= %d] [BACKEND]\n",
                      N_INPUTS, MAX_RUNS);
        return 2;
    }
    bench.input_bytes = megabytes * 1000000 / N_INPUTS / 4096 * 4096;
    if (!allocate(&bench)) {
        (void)fprintf(stderr, "bench_kernels: out of memory\n");
        clear(&bench);
        return 7;
    }
    printf("%d inputs of %zu bytes, median of %zu runs (slowest to fastest), one thread\n"
           "backend, dtype, sums, targets, +1: odd addresses, slots: inputs in the cache; GB/s of "
           "input with\n"
           "zeroing and rounding, GFLOP/s of the sums alone\n",
           N_INPUTS, bench.input_bytes, bench.n_runs);
    measure_read(&bench);
    static const char *const names[] = {"avx512", "avx2", "neon"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const struct phema_backend *backend = phema_backend_named(names[i]);
        if (backend && (argc < 4 || strcmp(argv[3], names[i]) == 0))
            measure_backend(&bench, backend);
    }
    if (argc < 4 || strcmp(argv[3], openblas_backend.name) == 0)
        measure_backend(&bench, &openblas_backend);
    measure_read(&bench);
    clear(&bench);
    return 0;
}
