// SPDX-License-Identifier: Apache-2.0
/* stored.c - snapshots as stored in files of a dtype, and the best weights for them. */
#include "stored.h"

#include <stdlib.h>

#include <lapacke.h>

#include "phema/span.h"

/* Columns below this fraction of the largest are rounding errors of float64. */
#define ORACLE_RANK 1e-14

const struct series_kind series_kinds[N_KINDS] = {
    {"two", "sigma_rel 0.05 and 0.10", {TRACKED_NARROW, TRACKED_WIDE}, 2},
    {"one", "sigma_rel 0.05", {TRACKED_NARROW}, 1},
    {"raw", "the parameters", {TRACKED_RAW}, 1},
    {"ema", "exponential, half-life 1.5 % of the run", {TRACKED_EXPONENTIAL}, 1},
    {"three", "sigma_rel 0.05, 0.10 and 0.20", {TRACKED_NARROW, TRACKED_WIDE, TRACKED_WIDEST}, 3},
    {"one-raw", "sigma_rel 0.10 and the parameters", {TRACKED_WIDE, TRACKED_RAW}, 2},
    {"long", "exponential, half-life 17 % of the run", {TRACKED_LONG}, 1},
    {"comb", "sigma_rel 0.05 updated every 10 steps", {TRACKED_COMB}, 1}};

/* Times of the recording's 32. */
static size_t time_index(const struct recording *recording, size_t n_times, size_t i)
{
    static const uint8_t irregular[] = {1, 4, 7, 9, 14, 15, 24, 28, 32},
                         late[] = {17, 20, 23, 26, 29, 32};
    size_t last = recording->n_times;
    if (last % n_times == 0)
        return (i + 1) * (last / n_times) - 1;
    return (n_times == ARRAY_LEN(irregular) ? irregular[i] : late[i]) * last / MAX_TIMES - 1;
}

static double rounded(double x, enum phema_dtype dtype)
{
    if (x == 0)
        return x;
    int least = dtype == PHEMA_F16 ? -14 : -126; /* exponent of the smallest normal number */
    int exponent = ilogb(x) > least ? ilogb(x) : least;
    int unit = exponent - (int)phema_dtype_mantissa_bits(dtype);
    return ldexp(rint(ldexp(x, -unit)), unit); /* to nearest even, like the processor */
}

void stored_clear(struct stored *stored)
{
    free(stored->values);
    stored->values = NULL;
}

enum phema_status stored_make(struct stored *stored, const struct recording *recording,
                              const struct series_kind *kind, size_t n_times,
                              enum phema_dtype dtype, struct phema_error *err)
{
    size_t n_elems = recording->n_elems, n_tracked = kind->n_tracked;
    *stored = (struct stored){.recording = recording, .dtype = dtype, .n = n_times * n_tracked};
    stored->values = malloc(stored->n * n_elems * sizeof(double));
    if (!stored->values)
        return phema_fail_memory(err);
    bool is_told = recording->regime->event == EVENT_TOLD_RESET;
    const struct phema_reset reset = {.at = (double)recording_reset(recording)};
    enum phema_status status = PHEMA_OK;
    for (size_t i = 0; !status && i < stored->n; i++) {
        size_t k = time_index(recording, n_times, i / n_tracked);
        uint64_t step = (k + 1) * (recording->n_steps / recording->n_times);
        enum tracked tracked = kind->tracked[i % n_tracked];
        const float *kept = recording->snapshots[k][tracked];
        for (size_t e = 0; e < n_elems; e++)
            stored->values[i * n_elems + e] = rounded((double)kept[e], dtype);
        stored->profiles[i] = recording->tracked[tracked];
        stored->profiles[i].t = (double)step;
        stored->rounding[i] = phema_dtype_rounding(dtype);
        if (is_told)
            status = phema_profile_reset(&stored->profiles[i], &reset, 1, err);
    }
    if (status)
        stored_clear(stored);
    return status;
}

double stored_error(const struct stored *stored, const double *weights, size_t target,
                    double *buffer)
{
    size_t n_elems = stored->recording->n_elems;
    const double *truth = stored->recording->truths[target];
    for (size_t e = 0; e < n_elems; e++)
        buffer[e] = -truth[e];
    for (size_t i = 0; i < stored->n; i++) {
        const double *values = stored->values + i * n_elems;
        for (size_t e = 0; e < n_elems; e++)
            buffer[e] += weights[i] * values[e];
    }
    double apart = 0, whole = 0;
    for (size_t e = 0; e < n_elems; e++) {
        apart += buffer[e] * buffer[e];
        whole += truth[e] * truth[e];
    }
    return sqrt(apart / whole);
}

/* All snapshots but the last, and the targets, as differences to the last, whose weight is 1 minus
 * the sum of the others. Columns of n_elems, for LAPACK. */
static void take_differences(double *snapshots, double *truths, const struct stored *stored)
{
    size_t n_elems = stored->recording->n_elems;
    const double *last = stored->values + (stored->n - 1) * n_elems;
    for (size_t i = 0; i < stored->n - 1; i++) {
        for (size_t e = 0; e < n_elems; e++)
            snapshots[i * n_elems + e] = stored->values[i * n_elems + e] - last[e];
    }
    for (size_t m = 0; m < N_TARGETS; m++) {
        for (size_t e = 0; e < n_elems; e++)
            truths[m * n_elems + e] = stored->recording->truths[m][e] - last[e];
    }
}

enum phema_status stored_oracle(double oracles[N_TARGETS], const struct stored *stored,
                                double *buffer, struct phema_error *err)
{
    size_t n_elems = stored->recording->n_elems, n = stored->n;
    double *snapshots = malloc((n - 1) * n_elems * sizeof(double));
    double *truths = malloc(N_TARGETS * n_elems * sizeof(double));
    lapack_int order[MAX_SNAPSHOTS] = {0}, rank = 0, info = -1;
    if (snapshots && truths) {
        take_differences(snapshots, truths, stored);
        info = LAPACKE_dgelsy(LAPACK_COL_MAJOR, (lapack_int)n_elems, (lapack_int)(n - 1), N_TARGETS,
                              snapshots, (lapack_int)n_elems, truths, (lapack_int)n_elems, order,
                              ORACLE_RANK, &rank);
    }
    for (size_t m = 0; !info && m < N_TARGETS; m++) {
        double weights[MAX_SNAPSHOTS], rest = 1;
        for (size_t i = 0; i < n - 1; i++) {
            weights[i] = truths[m * n_elems + i];
            rest -= weights[i];
        }
        weights[n - 1] = rest;
        oracles[m] = stored_error(stored, weights, m, buffer);
    }
    free(snapshots);
    free(truths);
    return info ? phema_fail_memory(err) : PHEMA_OK;
}
