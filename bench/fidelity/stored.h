/* stored.h - snapshots of a recording at some of its times, as stored in files of a dtype. */
#ifndef BENCH_FIDELITY_STORED_H
#define BENCH_FIDELITY_STORED_H

#include "phema/dtype.h"
#include "recording.h"

/* A kind of series: the averages that it has at every time. */
struct series_kind {
    const char *name, *what;
    enum tracked tracked[N_TRACKED];
    size_t n_tracked;
};

enum {
    KIND_TWO_WIDTHS,
    KIND_ONE_WIDTH,
    KIND_RAW,
    KIND_EXPONENTIAL,
    KIND_THREE_WIDTHS,
    KIND_ONE_AND_RAW,
    KIND_LONG,
    KIND_COMB,
    N_KINDS
};
extern const struct series_kind series_kinds[N_KINDS];

#define MAX_SNAPSHOTS (MAX_TIMES * 3)

struct stored {
    const struct recording *recording;
    enum phema_dtype dtype;
    size_t n;
    double *values; /* [n x n_elems], rounded to nearest even */
    struct phema_profile profiles[MAX_SNAPSHOTS];
    double rounding[MAX_SNAPSHOTS]; /* relative rms, by the dtype alone */
};

/* At equal distances if n_times divides recording->n_times; 9 are irregular, 6 late. */
PHEMA_FALLIBLE stored_make(struct stored *stored, const struct recording *recording,
                           const struct series_kind *kind, size_t n_times, enum phema_dtype dtype,
                           struct phema_error *err);
void stored_clear(struct stored *stored);

/* Distance of a weighted sum of the snapshots from a target average, relative to its norm. buffer:
 * [n_elems] */
double stored_error(const struct stored *stored, const double *weights, size_t target,
                    double *buffer);

/* The smallest such error of any weights that sum to 1, for every target. */
PHEMA_FALLIBLE stored_oracle(double oracles[N_TARGETS], const struct stored *stored, double *buffer,
                             struct phema_error *err);

#endif
