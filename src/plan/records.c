// SPDX-License-Identifier: Apache-2.0
/* records.c - what is told of snapshots, targets, solutions and rules, in the provenance and in the
 * JSON of every verb. */
#include "phema/plan.h"

#define FIELD(kind, rule, name, member) PHEMA_FIELD(kind, rule, name, struct phema_snapshot, member)

const struct phema_field phema_snapshot_fields[] = {
    FIELD(PATH, ALWAYS, "file", label),
    FIELD(NUMBER, ALWAYS, "time", time),
    FIELD(NUMBER, ALWAYS, "sigma_rel", sigma_rel),
    FIELD(NUMBER, ALWAYS, "gamma", gamma),
    FIELD(TEXT, ALWAYS, "profile", kind),
    FIELD(PATH, IF_KNOWN, "spec", spec),
    FIELD(COUNT, IF_ABOVE_1, "update_every", profile.update_every),
    FIELD(NUMBER, IF_ABOVE_0, "reset_at", profile.reset),
    FIELD(NUMBER, IF_ABOVE_0, "counted_from", profile.origin),
    FIELD(TEXT, IF_KNOWN, "run", run),
    {0},
};

#undef FIELD
#define FIELD(kind, rule, name, member)                                                            \
    PHEMA_FIELD(kind, rule, name, struct phema_prediction, member)

const struct phema_field phema_prediction_fields[] = {
    FIELD(NUMBER, ALWAYS, "total", total),
    FIELD(NUMBER, ALWAYS, "profile", profile),
    FIELD(NUMBER, ALWAYS, "rounding", rounding),
    FIELD(NUMBER, ALWAYS, "paper_weights", paper_weights),
    FIELD(NUMBER, IF_ABOVE_0, "initial", initial),
    {0},
};

#undef FIELD
#define FIELD(kind, rule, name, member) PHEMA_FIELD(kind, rule, name, struct phema_solution, member)

const struct phema_field phema_solution_fields[] = {
    FIELD(NUMBER, ALWAYS, "sum", sum),
    FIELD(NUMBER, ALWAYS, "profile_error", profile_error),
    FIELD(NUMBER, ALWAYS, "norm1", norm1),
    FIELD(NUMBER, ALWAYS, "norm2", norm2),
    FIELD(NUMBER, ALWAYS, "condition", condition),
    FIELD(NUMBER, ALWAYS, "ridge", ridge),
    FIELD(TEXT, ALWAYS, "solver", solver),
    PHEMA_FIELD_OF(phema_prediction_fields, "predicted_error", struct phema_solution, predicted),
    {0},
};

#undef FIELD
#define FIELD(kind, rule, name, member) PHEMA_FIELD(kind, rule, name, struct phema_target, member)

const struct phema_field phema_target_fields[] = {
    FIELD(NUMBER, ALWAYS, "sigma_rel", sigma_rel),
    FIELD(NUMBER, ALWAYS, "gamma", gamma),
    FIELD(NUMBER, ALWAYS, "time", time),
    FIELD(TEXT, ALWAYS, "profile", kind),
    FIELD(PATH, IF_KNOWN, "spec", spec),
    FIELD(NUMBER, ALWAYS, "label_profile_error", label_profile_error),
    FIELD(NUMBER, ALWAYS, "label_predicted_error", label_predicted_error),
    {0},
};
