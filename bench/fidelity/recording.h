/* recording.h - the record of a movement: snapshots of two averages at equal distances, and the
 * exact target averages, all in float64. */
#ifndef BENCH_FIDELITY_RECORDING_H
#define BENCH_FIDELITY_RECORDING_H

#include "phema/error.h"
#include "phema/profile.h"
#include "regimes.h"

#define N_WIDTHS  2
#define MAX_TIMES 64
#define N_TARGETS 12

extern const double snapshot_widths[N_WIDTHS], target_widths[N_TARGETS]; /* sigma_rel */

struct recording {
    const struct regime *regime;
    size_t n_elems, n_times;
    uint64_t n_steps;
    double gammas[N_WIDTHS], target_gammas[N_TARGETS];
    /* [n_elems]; those of time k were saved at step (k + 1) n_steps / n_times */
    double *snapshots[MAX_TIMES][N_WIDTHS];
    double *truths[N_TARGETS]; /* [n_elems], at the last step */
};

/* n_times divides n_steps */
PHEMA_FALLIBLE recording_make(struct recording *recording, const struct regime *regime,
                              uint64_t n_steps, size_t n_times, struct phema_error *err);
void recording_clear(struct recording *recording);

#endif
