// SPDX-License-Identifier: Apache-2.0
/* other_version.c - a module such as a program of another version has. */
#include "phema/cuda_plugin.h"

extern const struct phema_cuda_module posthoc_ema_cuda;
const struct phema_cuda_module posthoc_ema_cuda = {.version = PHEMA_CUDA_VERSION + OTHER_VERSION,
                                                   .table_bytes =
                                                       sizeof(struct phema_cuda_module) + 8};
