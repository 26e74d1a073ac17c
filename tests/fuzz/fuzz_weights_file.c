// SPDX-License-Identifier: Apache-2.0
/* fuzz_weights_file.c - The bytes as a file for --weights, with a series of four simulated
 * snapshots. */
#include "phema/plan.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "targets.h"

enum { N_SNAPSHOTS = 4 };

static void fill_snapshots(struct phema_snapshot *snapshots, char names[][16])
{
    static const char *const labels[N_SNAPSHOTS] = {"a", "b c", "run-20-0.05", "#4"};
    for (size_t k = 0; k < N_SNAPSHOTS; k++) {
        (void)strcpy(names[k], labels[k]);
        snapshots[k] = (struct phema_snapshot){
            .label = names[k],
            .named_time = 10 * (double)(k + 1),
            .time = 10 * (double)(k + 1) - 1,
            .profile = {.gamma = 6.94, .t = 10 * (double)(k + 1) - 1, .update_every = 1},
            .sigma_rel = 0.1,
            .gamma = 6.94,
            .kind = "power",
            .spec = "power:gamma=6.94"};
    }
}

static void check_target(const struct phema_target *target)
{
    fuzz_require(target->solution.weights != NULL, "every target has weights");
    for (size_t k = 0; k < N_SNAPSHOTS; k++)
        fuzz_require(isfinite(target->solution.weights[k]), "weights are finite");
    fuzz_require(isfinite(target->time) && isfinite(target->named_time), "times are finite");
    fuzz_require(isnan(target->gamma) || (isfinite(target->gamma) && target->gamma > -0.5),
                 "widths are possible");
    fuzz_require(target->is_width_in_file == (target->kind != NULL),
                 "what is wanted is in the file");
    fuzz_require(target->newest < N_SNAPSHOTS, "copies come from a snapshot");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = fuzz_store("weights", data, size);
    char names[N_SNAPSHOTS][16], root[] = "run";
    struct phema_snapshot snapshots[N_SNAPSHOTS];
    fill_snapshots(snapshots, names);
    struct phema_series series = {.root = root,
                                  .snapshots = snapshots,
                                  .n = N_SNAPSHOTS,
                                  .named_ahead = 1,
                                  .unit = "steps",
                                  .layout = "names"};
    struct phema_plan plan = {.series = &series};
    struct phema_error err = {0};
    if (weights_file_read(&plan, path, &err)) {
        fuzz_require_message(&err, path);
    } else {
        fuzz_require(plan.m > 0 && plan.m <= size, "some targets, no more than bytes");
        for (size_t j = 0; j < plan.m; j++)
            check_target(&plan.targets[j]);
    }
    phema_arena_clear(&plan.memory);
    return 0;
}
