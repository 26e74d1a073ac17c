/* plan.h - a plan, and what its last run has made. */
#ifndef API_PLAN_H
#define API_PLAN_H

#include "options.h"
#include "phema/output.h"

struct posthoc_ema_plan {
    struct api_options wishes;
    struct phema_plan *plan;
    const char *metric, *const *rules; /* [n_rules] as given, for the provenance */
    size_t n_rules;
    uint64_t max_ram_bytes;
    struct phema_outputs outputs; /* of the last run that succeeded */
};

#endif
