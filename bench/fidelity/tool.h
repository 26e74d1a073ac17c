/* tool.h - weights of the program's solver for stored snapshots, through its public header only. */
#ifndef BENCH_FIDELITY_TOOL_H
#define BENCH_FIDELITY_TOOL_H

#include "stored.h"

#define N_METRICS 3 /* of enum phema_metric */

/* Result for one target. */
struct outcome {
    double oracle;
    double errors[N_METRICS]; /* by enum phema_metric */
    double predicted;         /* error of the motion metric's weights */
    double predicted_paper;   /* error of the profile metric's weights, if motion is known */
};

/* The leave-one-out check; 0 without a known motion. */
struct check {
    double largest, median; /* score z (N26) */
    double outlier;         /* the largest ratio of a run of the sample, taken for a tensor */
};

PHEMA_FALLIBLE tool_try(struct outcome outcomes[N_TARGETS], struct check *check,
                        const struct stored *stored, struct phema_error *err);

#endif
