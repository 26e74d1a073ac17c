/* gpu_worker.h - a worker whose tiles are added up on a device: it reads them into slots that the
 * device copies by itself, and puts what comes back. The other kind is in tile_average.c. */
#ifndef SYNTH_GPU_GPU_WORKER_H
#define SYNTH_GPU_GPU_WORKER_H

#include "worker.h"

struct feed;
struct feed *gpu_worker_open(const struct run *run, unsigned index); /* NULL: no memory */
void gpu_worker_close(struct feed *feed);
/* [n_slots] of the budget's size, on pages; the device's */
uint8_t *gpu_worker_slots(const struct feed *feed);

/* As tile_process. */
PHEMA_FALLIBLE gpu_worker_sum_tile(struct worker *worker, uint64_t tile,
                                   const struct tile_range *piece, struct phema_error *err);

#endif
