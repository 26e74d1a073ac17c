/* tool.h - what the program's solver makes of stored snapshots, through its door alone. */
#ifndef BENCH_FIDELITY_TOOL_H
#define BENCH_FIDELITY_TOOL_H

#include "stored.h"

#define N_METRICS 3 /* of enum phema_metric */

/* How one target came out. */
struct outcome {
    double oracle;
    double errors[N_METRICS]; /* by enum phema_metric */
    double predicted;         /* of the motion metric's weights */
    double predicted_paper;   /* of the profile metric's, where motion is known */
};

PHEMA_FALLIBLE tool_try(struct outcome outcomes[N_TARGETS], const struct stored *stored,
                        struct phema_error *err);

#endif
