// SPDX-License-Identifier: Apache-2.0
/* memory_fit.c - the largest tile and row count that fit --gpu-memory. Sums live in registers, so
 * only the rows of results grow with the number of targets, and a few rows at a time are copied
 * back. Most of the memory holds the input tiles of every thread. */
#include "phema/gpu.h"
#include "phema/setting.h"
#include "phema/strbuf.h"

/* Rows of results per lane: enough to copy back without stalling the next sums. */
#define MAX_ROWS ((uint64_t)64)
/* Tiles shrink to this size before threads are dropped, and threads are dropped to this number
 * before tiles shrink further: a few threads keep a GPU busy. */
#define GOOD_TILE_ELEMS ((uint64_t)128 << 10)
#define GOOD_THREADS    4
/* Inputs per cuBLAS panel. */
#define PANEL_INPUTS ((uint64_t)32)

bool phema_gpu_can_sum(enum phema_dtype dtype)
{
    return dtype == PHEMA_F16 || dtype == PHEMA_BF16 || dtype == PHEMA_F32 || dtype == PHEMA_F64 ||
           dtype == PHEMA_C64;
}

enum phema_cuda_dtype phema_gpu_dtype(enum phema_dtype dtype)
{
    return dtype == PHEMA_F16    ? PHEMA_CUDA_F16
           : dtype == PHEMA_BF16 ? PHEMA_CUDA_BF16
           : dtype == PHEMA_F64  ? PHEMA_CUDA_F64
                                 : PHEMA_CUDA_F32;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t round_up(uint64_t bytes, uint64_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

/* Bytes of the largest tile of any dtype. A dtype with few elements never fills a tile. */
static uint64_t max_tile_bytes(const uint64_t *n_elems, uint64_t tile_elems)
{
    uint64_t most = 1;
    for (int d = 0; d < PHEMA_N_DTYPES; d++) {
        uint64_t n = smaller(n_elems[d], tile_elems);
        uint64_t bytes = phema_dtype_bytes((enum phema_dtype)d, n + n % 2); /* F4: whole bytes */
        most = bytes > most ? bytes : most;
    }
    return most;
}

static void set_layout(struct phema_gpu_fit *fit, const struct phema_gpu_demand *demand)
{
    uint64_t n = fit->tile_elems;
    uint64_t scalar = demand->is_f64 ? sizeof(double) : sizeof(float);
    uint64_t n_rows = fit->layout.n_rows;
    bool has_blas = demand->uses_blas && demand->n_rows > PHEMA_CUDA_GROUP;
    fit->layout = (struct phema_cuda_layout){
        .n_lanes = (fit->n_threads + demand->n_gpus - 1) / demand->n_gpus,
        .n_slots = demand->n_slots,
        .slot_bytes = round_up(max_tile_bytes(demand->n_through, n) + demand->slot_extra_bytes,
                               PHEMA_CUDA_PAGE),
        .n_inputs = demand->n_inputs,
        .input_bytes = round_up(max_tile_bytes(demand->n_in, n), PHEMA_CUDA_ALIGNMENT),
        .n_rows = n_rows,
        .row_bytes = round_up(max_tile_bytes(demand->n_out, n), PHEMA_CUDA_ALIGNMENT),
        .n_blocks = (n + demand->block_elems - 1) / demand->block_elems + demand->n_more_blocks,
        .panel_inputs = has_blas ? smaller(PANEL_INPUTS, demand->n_inputs) : 0,
        .sum_bytes =
            has_blas ? round_up(n * demand->numbers_per_elem * scalar, PHEMA_CUDA_ALIGNMENT) : 0,
    };
    fit->n_tile_passes = n_rows ? (demand->n_rows + n_rows - 1) / n_rows : 1;
    fit->gpu_bytes = fit->layout.n_lanes * phema_cuda_offsets(&fit->layout).bytes;
}

static bool reduce_rows(struct phema_gpu_fit *fit)
{
    if (fit->layout.n_rows <= PHEMA_CUDA_GROUP)
        return false;
    uint64_t half = round_up(fit->layout.n_rows / 2, PHEMA_CUDA_GROUP);
    fit->layout.n_rows = half < fit->layout.n_rows ? half : PHEMA_CUDA_GROUP;
    return true;
}

static bool shrink_tiles(struct phema_gpu_fit *fit, uint64_t limit)
{
    if (fit->tile_elems <= limit)
        return false;
    fit->tile_elems /= 2;
    return true;
}

static bool reduce_threads(struct phema_gpu_fit *fit, const struct phema_gpu_demand *demand,
                           unsigned per_device)
{
    if (fit->n_threads <= per_device * demand->n_gpus || fit->n_threads < 2)
        return false;
    fit->n_threads = (fit->n_threads + 1) / 2;
    return true;
}

PHEMA_FALLIBLE phema_gpu_fit(struct phema_gpu_fit *out, const struct phema_gpu_demand *demand,
                             uint64_t limit_bytes, struct phema_error *err)
{
    struct phema_gpu_fit fit = {.n_threads = demand->n_threads,
                                .tile_elems = demand->max_tile_elems,
                                .layout = {.n_rows = smaller(demand->n_rows, MAX_ROWS)}};
    while (fit.tile_elems > GOOD_TILE_ELEMS &&
           (max_tile_bytes(demand->n_through, fit.tile_elems) > PHEMA_GPU_TILE_BYTES))
        fit.tile_elems /= 2;
    for (;;) {
        set_layout(&fit, demand);
        if (fit.gpu_bytes <= limit_bytes) {
            *out = fit;
            return PHEMA_OK;
        }
        if (!reduce_rows(&fit) && !shrink_tiles(&fit, GOOD_TILE_ELEMS) &&
            !reduce_threads(&fit, demand, GOOD_THREADS) &&
            !shrink_tiles(&fit, PHEMA_GPU_LEAST_TILE_ELEMS) && !reduce_threads(&fit, demand, 1))
            break;
    }
    struct phema_name_buffer given, wanted;
    return phema_fail_setting(err, PHEMA_ERR_RESOURCE, PHEMA_SET_GPU_MEMORY,
                              "of each device %s may be taken, and at least %s are needed: the "
                              "smallest tiles of %llu snapshots",
                              phema_size_format(&given, limit_bytes),
                              phema_size_format(&wanted, fit.gpu_bytes),
                              (unsigned long long)demand->n_inputs);
}
