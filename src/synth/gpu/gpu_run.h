/* gpu_run.h - the GPUs of a run: which tensors they sum, their memory, their start, and a thread's
 * use of its lane. */
#ifndef SYNTH_GPU_GPU_RUN_H
#define SYNTH_GPU_GPU_RUN_H

#include "phema/gpu.h"
#include "run.h"

struct worker;

struct gpu_run {
    struct phema_gpus *gpus; /* NULL: a forecast for GPUs that are absent */
    unsigned n_gpus;
    uint64_t limit;          /* bytes of each GPU that may be used */
    uint64_t max_tile_elems; /* that fit into the memory of the GPUs */
    struct phema_gpu_fit fit;
    struct phema_memory_profile *memory_profile; /* where GPU memory is recorded, or NULL */
};

/* ---- gpu_fit.c ---- */

/* Whether the averages of a tensor are made on the GPU. */
bool gpu_can_sum(const struct run *run, size_t tensor);
/* Whether some averages are made by the CPU. */
bool gpu_leaves_tensors_to_cpu(const struct run *run);

/* Bytes of all snapshots that a GPU would sum. */
uint64_t gpu_work_bytes(const struct run *run);

/* Sizes the GPUs' memory for tiles of at most max_tile_elems elements. PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE gpu_fit(const struct run *run, uint64_t max_tile_elems, unsigned n_threads,
                       uint64_t n_slots, struct phema_error *err);

/* ---- gpu_setup.c ---- */

/* Sets run->gpu_run and the device of the result from the options.
 * PHEMA_ERR_RESOURCE  a requested GPU is unavailable */
PHEMA_FALLIBLE gpu_run_choose(struct run *run, struct phema_error *err);
void gpu_run_close(struct run *run);

/* Allocates GPU memory and compares the GPUs' sums with the CPU's. PHEMA_NO: there is too
 * little memory */
PHEMA_FALLIBLE gpu_run_start(struct run *run, struct phema_error *err);
void gpu_run_shrink(struct run *run);

/* Input bytes per second that one thread gets summed on the GPU, for all targets. Without a
 * GPU a typical rate is assumed. Devices are started and stopped. PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE gpu_run_rate(double *per_s, bool *is_assumed, struct run *run,
                            struct phema_error *err);

/* ---- gpu_worker.c: a worker whose tiles are summed on a GPU. It reads inputs into slots that the
 * GPU copies by itself, and writes the results. ---- */

struct gpu_worker;
struct gpu_worker *gpu_worker_open(const struct run *run, unsigned index); /* NULL: no memory */
void gpu_worker_close(struct gpu_worker *gpu);                             /* takes NULL */
/* [n_slots] of the budget's slot size, page-aligned; borrowed from the GPU */
uint8_t *gpu_worker_slots(const struct gpu_worker *gpu);

/* As tile_process, for a tensor that the GPU can sum. */
PHEMA_FALLIBLE gpu_worker_sum_tile(struct worker *worker, struct phema_error *err);

#endif
