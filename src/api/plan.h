/* plan.h - a plan and the outputs of its last run. */
#ifndef API_PLAN_H
#define API_PLAN_H

#include "options.h"
#include "phema/output.h"

struct posthoc_ema_plan {
    struct api_options series_options;
    struct phema_plan *plan;
    const char *metric, *const *rules; /* [n_rules] the caller's texts, for the provenance */
    size_t n_rules;
    uint64_t max_ram_bytes;
    struct phema_outputs outputs; /* of the last run that succeeded */
};

#endif
