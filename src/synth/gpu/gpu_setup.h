/* gpu_setup.h - the devices of a run: whether they shall add up, what memory that takes of them,
 * and whether they add up rightly. What a thread does with its lane is in feed.h. */
#ifndef SYNTH_GPU_GPU_SETUP_H
#define SYNTH_GPU_GPU_SETUP_H

#include "phema/gpu.h"
#include "run_state.h"

struct gpu_run {
    struct phema_devices *devices; /* NULL where a run is only foreseen for devices that are not */
    unsigned n_devices;
    uint64_t limit;          /* bytes of each device that may be taken */
    uint64_t max_tile_elems; /* that there turned out to be room for */
    struct phema_device_fit fit;
    struct phema_memory_profile *ledger; /* that knows of the devices, or NULL */
};

/* As the options ask: run->feeder, and run->device says what was chosen and why.
 * PHEMA_ERR_RESOURCE  the devices that are asked for cannot be had */
PHEMA_FALLIBLE gpu_run_choose(struct run *run, struct phema_error *err);
void gpu_run_close(struct run *run);

/* Whether the averages of a tensor are made on the device. */
bool gpu_can_sum(const struct run *run, size_t tensor);
/* Whether some are not. */
bool gpu_leaves_tensors_to_cpu(const struct run *run);

/* What the run needs of devices, with tiles of at most so many elements. PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE gpu_fit(struct gpu_run *gpu_run, const struct run *run, uint64_t max_tile_elems,
                       unsigned n_threads, uint64_t n_slots, struct phema_error *err);

/* Takes the memory and looks whether the devices add up as the processor does. PHEMA_NO when there
 * is not enough of it */
PHEMA_FALLIBLE gpu_run_start(struct run *run, struct phema_error *err);
bool gpu_run_may_shrink(const struct run *run);
void gpu_run_shrink(struct run *run);

/* Bytes of inputs that one thread gets summed on the device in a second, for all targets; a usual
 * rate where there is no device. Devices are started and stopped. PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE gpu_run_rate(double *per_s, bool *is_assumed, struct run *run,
                            struct phema_error *err);

#endif
