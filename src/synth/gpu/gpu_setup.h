/* gpu_setup.h - decides whether a run uses devices, and starts them. A thread's use of its lane is
 * in gpu_worker.c. */
#ifndef SYNTH_GPU_GPU_SETUP_H
#define SYNTH_GPU_GPU_SETUP_H

#include "gpu/gpu_fit.h"

/* Sets run->gpu_run and run->device from the options.
 * PHEMA_ERR_RESOURCE  a requested device is unavailable */
PHEMA_FALLIBLE gpu_run_choose(struct run *run, struct phema_error *err);
void gpu_run_close(struct run *run);

/* Allocates device memory and compares the devices' sums with the CPU's. PHEMA_NO: there is too
 * little memory */
PHEMA_FALLIBLE gpu_run_start(struct run *run, struct phema_error *err);
bool gpu_run_may_shrink(const struct run *run);
void gpu_run_shrink(struct run *run);

/* Input bytes per second that one thread gets summed on the device, for all targets. Without a
 * device a typical rate is assumed. Devices are started and stopped. PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE gpu_run_rate(double *per_s, bool *is_assumed, struct run *run,
                            struct phema_error *err);

#endif
