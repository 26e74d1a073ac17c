/* gpu_selftest.h - compares a device's bits with the CPU's, and measures its speed. */
#ifndef SYNTH_GPU_GPU_SELFTEST_H
#define SYNTH_GPU_GPU_SELFTEST_H

#include "gpu/gpu_fit.h"

/* Checks that every started device gives the CPU's bits for a small tile of each dtype.
 * PHEMA_ERR_RESOURCE  names a device that does not, and the dtype */
PHEMA_FALLIBLE gpu_run_check(const struct gpu_run *gpu_run, const struct phema_backend *backend,
                             struct phema_error *err);

/* Input bytes per second, from the slots of one lane to sums of n targets and back. */
PHEMA_FALLIBLE gpu_selftest(double *per_s, const struct gpu_run *gpu_run, size_t n_targets,
                            struct phema_error *err);

#endif
