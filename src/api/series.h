/* series.h - what plans need of a series. */
#ifndef API_SERIES_H
#define API_SERIES_H

#include "options.h"

struct posthoc_ema_series {
    struct api_options wishes;
    struct phema_series *series;
    size_t n_averaged;
};

/* Snapshot k of a series, as the caller's struct has it. */
PHEMA_FALLIBLE series_give_snapshot(struct posthoc_ema_snapshot *out,
                                    const struct phema_series *series, size_t k,
                                    struct phema_error *err);

#endif
