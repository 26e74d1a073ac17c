// SPDX-License-Identifier: Apache-2.0
/* gpu.c - rates of copying to a device and of summing there, from host memory that the device
 * accesses directly. Prints bytes of inputs per second: only copied, and summed for 1, 8, 25 and 64
 * targets, by our kernel and by cuBLAS. The target bench_gpu; the plug-in is in the same directory.
 * Slots are filled once, so only the device and the copies are measured. Usage: bench_gpu [LANES,
 * default 4] [MEBIBYTES of a tile, default 1] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "phema/gpu.h"

#define N_INPUTS ((uint64_t)32)
#define N_SLOTS  ((uint64_t)4)
#define MAX_ROWS ((uint64_t)64)
#define BLOCK    ((uint64_t)1024)
#define SECONDS  0.5
#define N_ROUNDS 5

struct bench {
    struct phema_gpus *gpus;
    struct phema_cuda_layout layout;
    uint64_t n_numbers; /* of a tile, in float16 */
    uint32_t inputs[N_INPUTS];
    double weights[N_INPUTS * MAX_ROWS];
    struct phema_cuda_block *blocks;
};

static double now(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void prepare(struct bench *bench, uint64_t n_lanes, uint64_t tile_bytes)
{
    bench->n_numbers = tile_bytes / 2;
    uint64_t n_blocks = (bench->n_numbers + BLOCK - 1) / BLOCK;
    bench->layout = (struct phema_cuda_layout){.n_lanes = n_lanes,
                                               .n_slots = N_SLOTS,
                                               .slot_bytes = tile_bytes,
                                               .n_inputs = N_INPUTS,
                                               .input_bytes = tile_bytes,
                                               .n_rows = MAX_ROWS,
                                               .row_bytes = tile_bytes,
                                               .n_blocks = n_blocks,
                                               .panel_inputs = N_INPUTS,
                                               .sum_bytes = bench->n_numbers * sizeof(double)};
    bench->blocks = calloc(n_blocks, sizeof(*bench->blocks));
    for (uint64_t b = 0; b < n_blocks && bench->blocks; b++) {
        uint64_t left = bench->n_numbers - b * BLOCK;
        bench->blocks[b].first = (uint32_t)(b * BLOCK);
        bench->blocks[b].n = (uint32_t)(left < BLOCK ? left : BLOCK);
    }
    for (uint32_t k = 0; k < N_INPUTS; k++)
        bench->inputs[k] = k;
    for (uint64_t i = 0; i < N_INPUTS * MAX_ROWS; i++)
        bench->weights[i] = 1.0 / (double)(i + 2);
}

/* Fills the slots once with numbers around 0.02. */
static void fill(const struct bench *bench)
{
    uint64_t state = 1;
    for (unsigned i = 0; i < bench->layout.n_lanes; i++) {
        struct phema_lane lane = phema_gpus_lane(bench->gpus, i);
        uint8_t *slots = phema_lane_slots(&lane);
        for (uint64_t at = 0; at < N_SLOTS * bench->layout.slot_bytes; at += 2) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            uint32_t bits = (uint32_t)(state >> 32);
            uint32_t half = (bits & 0x83FFu) | (8u + (bits >> 16 & 3u)) << 10;
            slots[at] = (uint8_t)half;
            slots[at + 1] = (uint8_t)(half >> 8);
        }
    }
}

/* The measured work: a tile of all inputs for this many targets; 0: only copied. */
struct work {
    uint64_t n_rows;
    bool is_f32, uses_blas;
};

static enum phema_status do_tile(const struct bench *bench, const struct phema_lane *lane,
                                 const struct work *work, struct phema_error *err)
{
    const struct phema_cuda_layout *layout = &bench->layout;
    struct phema_cuda_job job = {.input = PHEMA_CUDA_F16,
                                 .output = PHEMA_CUDA_F16,
                                 .is_f64 = !work->is_f32,
                                 .uses_blas = work->uses_blas,
                                 .inputs = bench->inputs,
                                 .weights = bench->weights,
                                 .stride = MAX_ROWS,
                                 .n_inputs = N_INPUTS,
                                 .n_rows = work->n_rows,
                                 .blocks = bench->blocks,
                                 .n_blocks = layout->n_blocks,
                                 .n_numbers = bench->n_numbers};
    enum phema_status status = PHEMA_OK;
    const uint8_t *slots = phema_lane_slots(lane);
    for (uint64_t k = 0; k < N_INPUTS && !status; k++) {
        uint64_t slot = k % N_SLOTS;
        status = phema_lane_wait(lane, slot, err);
        if (!status)
            status = phema_lane_feed(lane, slot, slots + slot * layout->slot_bytes,
                                     layout->input_bytes, k, err);
    }
    if (work->n_rows && !status)
        status = phema_lane_average(lane, &job, err);
    for (uint64_t m = 0; m < work->n_rows && !status; m++) {
        status = phema_lane_wait(lane, m % N_SLOTS, err);
        if (!status)
            status = phema_lane_fetch(lane, m, layout->row_bytes, m % N_SLOTS, err);
    }
    return status;
}

/* Bytes per second in the best round. Lanes take turns, so one computes while others are fed. */
static enum phema_status measure(double *per_s, const struct bench *bench, const struct work *work,
                                 struct phema_error *err)
{
    unsigned n_lanes = (unsigned)bench->layout.n_lanes;
    enum phema_status status = PHEMA_OK;
    *per_s = 0;
    for (int round = 0; round <= N_ROUNDS && !status; round++) { /* the first one warms up */
        double start = now(), elapsed = 0;
        uint64_t n_tiles = 0;
        while (!status && elapsed < SECONDS) {
            struct phema_lane lane = phema_gpus_lane(bench->gpus, (unsigned)(n_tiles++ % n_lanes));
            status = do_tile(bench, &lane, work, err);
            elapsed = now() - start;
        }
        for (unsigned i = 0; i < n_lanes && !status; i++) {
            struct phema_lane lane = phema_gpus_lane(bench->gpus, i);
            for (uint64_t slot = 0; slot < N_SLOTS && !status; slot++)
                status = phema_lane_wait(&lane, slot, err);
        }
        double rate = (double)(n_tiles * N_INPUTS * bench->layout.input_bytes) / (now() - start);
        if (round && rate > *per_s)
            *per_s = rate;
    }
    return status;
}

static enum phema_status run(struct bench *bench, struct phema_error *err)
{
    struct phema_gpu_options request = {.kind = PHEMA_DEVICE_CUDA, .n = 1};
    enum phema_status status = phema_gpus_open(&bench->gpus, &request, err);
    if (!status)
        status = phema_gpus_start(bench->gpus, &bench->layout, err);
    if (status)
        return status == PHEMA_NO ? PHEMA_ERR_RESOURCE : status;
    fill(bench);
    printf("%s, %llu lanes, tiles of %llu KiB, %llu inputs in float16\n\n",
           phema_gpus_format(bench->gpus), (unsigned long long)bench->layout.n_lanes,
           (unsigned long long)(bench->layout.input_bytes >> 10), (unsigned long long)N_INPUTS);
    double copied = 0, rate = 0;
    status = measure(&copied, bench, &(struct work){0}, err);
    printf("| targets | sums | by | GB/s of inputs | of copying |\n|---|---|---|---|---|\n");
    printf("| 0 | | copied only | %.1f | 1.00 |\n", copied / 1e9);
    static const uint64_t counts[] = {1, 8, 25, 64};
    for (size_t i = 0; i < ARRAY_LEN(counts) * 4 && !status; i++) {
        struct work work = {counts[i / 4], i % 2, i / 2 % 2};
        if (work.uses_blas && work.n_rows <= PHEMA_CUDA_GROUP)
            continue;
        status = measure(&rate, bench, &work, err);
        printf("| %llu | %s | %s | %.1f | %.2f |\n", (unsigned long long)work.n_rows,
               work.is_f32 ? "f32" : "f64", work.uses_blas ? "cuBLAS" : "own kernel", rate / 1e9,
               rate / copied);
    }
    return status;
}

int main(int argc, char **argv)
{
    struct phema_error err = {0};
    static struct bench bench;
    uint64_t n_lanes = argc > 1 ? strtoull(argv[1], NULL, 10) : 4;
    uint64_t mebibytes = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    if (n_lanes < 1 || n_lanes > 64 || mebibytes < 1 || mebibytes > 64) {
        (void)fprintf(stderr, "bench_gpu: expected 1 to 64 lanes and tiles of 1 to 64 MiB\n");
        return PHEMA_ERR_USAGE;
    }
    prepare(&bench, n_lanes, mebibytes << 20);
    enum phema_status status = bench.blocks ? run(&bench, &err) : phema_fail_memory(&err);
    if (status)
        (void)fprintf(stderr, "bench_gpu: %s\n", err.message);
    phema_gpus_close(bench.gpus);
    free(bench.blocks);
    return status;
}
