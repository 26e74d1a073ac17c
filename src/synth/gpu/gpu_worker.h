/* gpu_worker.h - a worker whose tiles are summed on a GPU. It reads inputs into slots that the
 * GPU copies by itself, and writes the results. Tiles of the CPU are in tile_sum.c. */
#ifndef SYNTH_GPU_GPU_WORKER_H
#define SYNTH_GPU_GPU_WORKER_H

#include "worker.h"

struct gpu_worker;
struct gpu_worker *gpu_worker_open(const struct run *run, unsigned index); /* NULL: no memory */
void gpu_worker_close(struct gpu_worker *gpu);                             /* takes NULL */
/* [n_slots] of the budget's slot size, page-aligned; borrowed from the GPU */
uint8_t *gpu_worker_slots(const struct gpu_worker *gpu);

/* As tile_process, for a tensor that the GPU can sum. */
PHEMA_FALLIBLE gpu_worker_sum_tile(struct worker *worker, uint64_t tile,
                                   const struct tile_range *range, struct phema_error *err);

#endif
