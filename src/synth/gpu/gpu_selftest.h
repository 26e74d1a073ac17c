/* gpu_selftest.h - a device tried out before it is trusted, and how fast it is. */
#ifndef SYNTH_GPU_GPU_SELFTEST_H
#define SYNTH_GPU_GPU_SELFTEST_H

#include "gpu/gpu_setup.h"

/* Whether every device that was started gives the bits of the processor for a small tile of each
 * dtype. PHEMA_ERR_RESOURCE names the device and the dtype where it does not. */
PHEMA_FALLIBLE gpu_run_check(const struct gpu_run *gpu_run, const struct phema_backend *backend,
                             struct phema_error *err);

/* Bytes of inputs in a second, from the slots of one lane to sums of n targets and back. */
PHEMA_FALLIBLE gpu_selftest(double *per_s, const struct gpu_run *gpu_run, size_t n_targets,
                            struct phema_error *err);

#endif
