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

/* largest_z: out: of the leave-one-out check */
PHEMA_FALLIBLE tool_try(struct outcome outcomes[N_TARGETS], double *largest_z,
                        const struct stored *stored, struct phema_error *err);

#endif
