/* gpu_fit.h - which tensors the GPU sums, and its memory demand. */
#ifndef SYNTH_GPU_GPU_FIT_H
#define SYNTH_GPU_GPU_FIT_H

#include "phema/gpu.h"
#include "run_state.h"

/* The devices of a run. */
struct gpu_run {
    struct phema_gpus *gpus; /* NULL: a forecast for devices that are absent */
    unsigned n_gpus;
    uint64_t limit;          /* bytes of each device that may be used */
    uint64_t max_tile_elems; /* that fit into the memory of the devices */
    struct phema_gpu_fit fit;
    struct phema_memory_profile *ledger; /* where device memory is recorded, or NULL */
};

/* Whether the averages of a tensor are made on the device. */
bool gpu_can_sum(const struct run *run, size_t tensor);
/* Whether some averages are made by the CPU. */
bool gpu_leaves_tensors_to_cpu(const struct run *run);

/* Bytes of all snapshots that a device would sum. */
uint64_t gpu_work_bytes(const struct run *run);

/* Sizes the devices' memory for tiles of at most max_tile_elems elements. PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE gpu_fit(struct gpu_run *gpu_run, const struct run *run, uint64_t max_tile_elems,
                       unsigned n_threads, uint64_t n_slots, struct phema_error *err);

#endif
