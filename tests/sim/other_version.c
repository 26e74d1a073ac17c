// SPDX-License-Identifier: Apache-2.0
/* other_version.c - a plug-in of another version of the program. */
#include "phema/cuda_plugin.h"

extern const struct phema_cuda_plugin posthoc_ema_cuda;
const struct phema_cuda_plugin posthoc_ema_cuda = {.version = PHEMA_CUDA_VERSION + OTHER_VERSION,
                                                   .table_bytes =
                                                       sizeof(struct phema_cuda_plugin) + 8};
