// SPDX-License-Identifier: Apache-2.0
/* team_shares.c - into how many runs the processes of a team divide outputs. */
#include "team_synth.h"

/* Bytes of a run in one output. Runs of a large output take a second or so, and small outputs have
 * enough of them for a slow process to take fewer. */
#define RUN_BYTES  ((uint64_t)256 << 20)
#define LEAST_RUN  ((uint64_t)16 << 20)
#define FEW_RUNS   8
#define SMALL_RUNS 64

/* Headers and templates differ in size from output to output. */
static uint64_t tensor_bytes(const struct phema_series *series, const struct phema_outputs *outputs)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < series->n_tensors; i++)
        bytes += phema_dtype_bytes(outputs->dtypes[i], series->tensors[i].tensor.n_elems);
    return bytes;
}

uint64_t team_count_runs(const struct phema_plan *plan, const struct phema_outputs *outputs)
{
    uint64_t bytes = tensor_bytes(plan->series, outputs);
    uint64_t n = bytes / RUN_BYTES + (bytes % RUN_BYTES != 0), small = bytes / LEAST_RUN;
    small = small < FEW_RUNS ? FEW_RUNS : small > SMALL_RUNS ? SMALL_RUNS : small;
    n = n > small ? n : small;
    return n < PHEMA_MAX_PARTS ? n : PHEMA_MAX_PARTS;
}

/* Forms of outputs that one process writes as a whole: then each output is a run. */
bool team_has_whole_runs(const struct phema_plan *plan, const struct phema_outputs *outputs)
{
    struct phema_error ignored = {0};
    return phema_outputs_check_parts(plan, outputs, &ignored) != PHEMA_OK;
}

uint64_t phema_count_shares(const struct phema_plan *plan, const struct phema_outputs *outputs)
{
    if (!outputs->m)
        return 0;
    return team_has_whole_runs(plan, outputs) ? outputs->m : team_count_runs(plan, outputs);
}
