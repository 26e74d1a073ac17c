// SPDX-License-Identifier: Apache-2.0
/* main.c - compares the weights with the best that the stored snapshots allow, and the predicted
 * error with the true one. Parameters move in several ways; their exact averages are kept next to
 * the snapshots. All in memory, one thread, the same figures on every run.
 * Usage: bench_fidelity [--quick]
 * Exit status 1: the goals in tables.h are missed. */
#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tables.h"

#define MAX_COUNTS 3

struct extent {
    uint64_t n_steps;
    size_t counts[MAX_COUNTS]; /* of times, ascending, each dividing the last one */
    size_t n_counts;
};

static const struct extent whole = {4096, {8, 16, 64}, 3};
static const struct extent quick = {1024, {8, 16}, 2};

static const struct regime *const regimes[] = {
    &regime_white, &regime_walk,     &regime_drift,      &regime_drop,
    &regime_mixed, &regime_denoiser, &regime_regression, &regime_classifier};

static enum phema_status study_recording(struct study *study, const struct recording *recording,
                                         size_t regime, const struct extent *extent,
                                         struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    for (size_t d = 0; !status && d < N_DTYPES; d++) {
        for (size_t c = 0; !status && c < extent->n_counts; c++) {
            struct study_case *one = &study->cases[study->n_cases++];
            struct stored stored;
            *one = (struct study_case){
                .regime = regime, .dtype = study_dtypes[d], .n_times = extent->counts[c]};
            status = stored_make(&stored, recording, one->n_times, one->dtype, err);
            if (!status)
                status = tool_try(one->outcomes, &one->largest_z, &stored, err);
            stored_clear(&stored);
        }
    }
    return status;
}

static enum phema_status study_all(struct study *study, const struct extent *extent,
                                   struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    for (size_t r = 0; !status && r < ARRAY_LEN(regimes); r++) {
        struct recording recording;
        status = recording_make(&recording, regimes[r], extent->n_steps,
                                extent->counts[extent->n_counts - 1], err);
        if (!status)
            printf("- *%s*: %s; %zu parameters\n", regimes[r]->name, regimes[r]->what,
                   recording.n_elems);
        (void)fflush(stdout);
        if (!status)
            status = study_recording(study, &recording, r, extent, err);
        recording_clear(&recording);
    }
    return status;
}

int main(int argc, char **argv)
{
    bool is_quick = argc == 2 && strcmp(argv[1], "--quick") == 0;
    if (argc > 1 && !is_quick) {
        (void)fprintf(stderr, "usage: bench_fidelity [--quick]\n");
        return PHEMA_ERR_USAGE;
    }
    const struct extent *extent = is_quick ? &quick : &whole;
    struct phema_error err = {""};
    struct study study = {.regimes = regimes, .n_regimes = ARRAY_LEN(regimes)};
    study.cases = calloc(ARRAY_LEN(regimes) * N_DTYPES * MAX_COUNTS, sizeof(*study.cases));
    openblas_set_num_threads(1);
    printf("%llu steps; snapshots of sigma_rel 0.05 and 0.10 at",
           (unsigned long long)extent->n_steps);
    for (size_t c = 0; c < extent->n_counts; c++)
        printf("%s %zu", c ? "," : "", extent->counts[c]);
    printf(" times; %d targets from 0.01 to 0.28 at the last one\n\n", N_TARGETS);
    enum phema_status status =
        study.cases ? study_all(&study, extent, &err) : phema_fail_memory(&err);
    printf("\n");
    if (!status && !tables_print(&study))
        status = phema_fail_memory(&err);
    if (status)
        (void)fprintf(stderr, "bench_fidelity: %s\n", err.message);
    else if (!tables_check(&study))
        status = PHEMA_NO;
    free(study.cases);
    return (int)status;
}
