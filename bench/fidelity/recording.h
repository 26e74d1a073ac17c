/* recording.h - the record of a movement: averages as a trainer keeps them, at equal distances, and
 * the exact target averages. */
#ifndef BENCH_FIDELITY_RECORDING_H
#define BENCH_FIDELITY_RECORDING_H

#include "phema/error.h"
#include "phema/profile.h"
#include "regimes.h"

#define MAX_TIMES 32

/* What the trainer saves. */
enum tracked {
    TRACKED_NARROW,
    TRACKED_WIDE,
    TRACKED_RAW,
    TRACKED_EXPONENTIAL,
    TRACKED_WIDEST,
    TRACKED_LONG, /* exponential */
    TRACKED_COMB, /* updated every 10 steps */
    N_TRACKED
};

/* Targets: each average at the end of the run, then each at MID of it. The first N_WIDTHS of both
 * are power functions, the others exponential. */
#define N_WIDTHS   10
#define N_AVERAGES (N_WIDTHS + 3)
#define N_ENDS     2
#define N_TARGETS  ((size_t)N_AVERAGES * N_ENDS)
#define MID        (5. / 8)

extern const char *const average_names[N_AVERAGES], *const end_names[N_ENDS];

struct recording {
    const struct regime *regime;
    size_t n_elems, n_times;
    uint64_t n_steps;
    struct phema_profile tracked[N_TRACKED]; /* t is not set */
    struct phema_profile targets[N_TARGETS];
    /* [n_elems]; those of time k were saved at step (k + 1) n_steps / n_times. The trainer keeps
     * its running averages in float32, whatever it stores. */
    float *snapshots[MAX_TIMES][N_TRACKED];
    double *truths[N_TARGETS]; /* [n_elems], kept in float64 */
};

/* The step at which the averages restart; 0: never. */
uint64_t recording_reset(const struct recording *recording);

/* n_times divides n_steps */
PHEMA_FALLIBLE recording_make(struct recording *recording, const struct regime *regime,
                              uint64_t n_steps, size_t n_times, struct phema_error *err);
void recording_clear(struct recording *recording);

#endif
