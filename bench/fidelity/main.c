// SPDX-License-Identifier: Apache-2.0
/* main.c - compares the weights with the best that the stored snapshots allow, and the predicted
 * error with the true one. Parameters move in several ways; their exact averages are kept next to
 * the snapshots. All in memory, one thread, the same figures on every run. */
#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "goals.h"
#include "phema/span.h"
#include "tables.h"

#define MAX_COUNTS 4

static const char usage[] =
    "usage: bench_fidelity [--quick] [--set tuning|held-out|all] [--regime NAME] [--csv]\n"
    "  --quick   a few regimes, a quarter of the steps, lower goals\n"
    "  --set     tuning: constants of the program may be chosen on it; held-out: only reported\n"
    "  --regime  this one alone, no goals\n"
    "  --csv     a line for each target instead of tables and goals\n"
    "Exit status 1: goals are missed.\n";

struct extent {
    uint64_t n_steps;
    size_t counts[MAX_COUNTS]; /* of times, ascending, each dividing the last one */
    size_t n_counts;
};

static const struct extent whole = {4096, {4, 8, 16, 32}, 4};
static const struct extent quick = {1024, {4, 16}, 2};

struct options {
    bool is_quick, is_csv;
    size_t set; /* or ANY */
    const char *regime;
};

static bool parse_set(size_t *set, const char *name)
{
    for (*set = 0; *set < N_SETS; ++*set)
        if (strcmp(name, set_names[*set]) == 0)
            return true;
    *set = ANY;
    return strcmp(name, "all") == 0;
}

static bool parse_options(struct options *options, int argc, char **argv)
{
    *options = (struct options){.set = ANY};
    for (int i = 1; i < argc; i++) {
        bool has_value = i + 1 < argc;
        if (strcmp(argv[i], "--quick") == 0)
            options->is_quick = true;
        else if (strcmp(argv[i], "--csv") == 0)
            options->is_csv = true;
        else if (strcmp(argv[i], "--regime") == 0 && has_value)
            options->regime = argv[++i];
        else if (strcmp(argv[i], "--set") == 0 && has_value &&
                 parse_set(&options->set, argv[i + 1]))
            i++;
        else
            return false;
    }
    return true;
}

static bool is_chosen(const struct options *options, const struct regime *regime)
{
    if (options->regime)
        return strcmp(options->regime, regime->name) == 0;
    return (options->set == ANY || options->set == regime->set) &&
           (!options->is_quick || regime->is_quick);
}

static enum phema_status study_series(struct study_case *one, const struct recording *recording,
                                      struct phema_error *err)
{
    struct stored stored;
    enum phema_status status = stored_make(&stored, recording, &series_kinds[one->kind],
                                           one->n_times, study_dtypes[one->dtype], err);
    if (!status)
        status = tool_try(one->outcomes, &one->check, &stored, err);
    for (size_t m = 0; !status && m < N_TARGETS; m++)
        if (!(one->outcomes[m].oracle > 0) || !isfinite(one->outcomes[m].oracle))
            status = phema_fail(err, PHEMA_ERR_INPUTS, "%s: a training that diverged",
                                regimes[one->regime].name);
    stored_clear(&stored);
    return status;
}

static enum phema_status study_recording(struct study *study, const struct recording *recording,
                                         size_t regime, const struct extent *extent, bool is_csv,
                                         struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    size_t n = extent->n_counts * N_DTYPES * N_KINDS;
    for (size_t i = 0; !status && i < n; i++) {
        struct study_case *one = &study->cases[study->n_cases++];
        *one = (struct study_case){.regime = regime,
                                   .kind = i / (N_DTYPES * extent->n_counts),
                                   .dtype = i / extent->n_counts % N_DTYPES,
                                   .n_times = extent->counts[i % extent->n_counts]};
        status = study_series(one, recording, err);
        if (!status && is_csv)
            tables_print_csv(one);
    }
    return status;
}

static void print_regime(const struct recording *recording)
{
    const struct regime *regime = recording->regime;
    printf("- *%s* (%s): ", regime->name, set_names[regime->set]);
    regime_print(regime);
    printf("; %zu parameters\n", recording->n_elems);
}

static enum phema_status study_all(struct study *study, const struct options *options,
                                   struct phema_error *err)
{
    const struct extent *extent = options->is_quick ? &quick : &whole;
    enum phema_status status = PHEMA_OK;
    for (size_t r = 0; !status && r < n_regimes; r++) {
        struct recording recording;
        if (!is_chosen(options, &regimes[r]))
            continue;
        status = recording_make(&recording, &regimes[r], extent->n_steps,
                                extent->counts[extent->n_counts - 1], err);
        if (!status && !options->is_csv)
            print_regime(&recording);
        if (!status)
            status = study_recording(study, &recording, r, extent, options->is_csv, err);
        (void)fflush(stdout);
        recording_clear(&recording);
    }
    return status;
}

static void print_extent(const struct extent *extent)
{
    printf("%llu steps; %d targets at the end and as many at %g of the run. Series, each with",
           (unsigned long long)extent->n_steps, N_AVERAGES, MID);
    for (size_t c = 0; c < extent->n_counts; c++)
        printf("%s %zu", c ? "," : "", extent->counts[c]);
    printf(" times:\n\n");
    for (size_t k = 0; k < N_KINDS; k++)
        printf("- `%s`: %s\n", series_kinds[k].name, series_kinds[k].what);
    printf("\nRegimes:\n\n");
}

static enum phema_status run(struct study *study, const struct options *options,
                             struct phema_error *err)
{
    size_t most = n_regimes * N_KINDS * N_DTYPES * MAX_COUNTS;
    study->cases = calloc(most, sizeof(*study->cases));
    study->buffer = calloc(most * N_TARGETS, sizeof(*study->buffer));
    if (!study->cases || !study->buffer)
        return phema_fail_memory(err);
    if (options->is_csv)
        tables_print_csv_header();
    else
        print_extent(options->is_quick ? &quick : &whole);
    enum phema_status status = study_all(study, options, err);
    if (!status && !study->n_cases)
        status = phema_fail(err, PHEMA_ERR_USAGE, "no regime is called '%s'", options->regime);
    if (status || options->is_csv)
        return status;
    tables_print(study);
    return options->regime || goals_check(study, options->is_quick) ? PHEMA_OK : PHEMA_NO;
}

int main(int argc, char **argv)
{
    struct options options;
    struct study study = {0};
    struct phema_error err = {""};
    if (!parse_options(&options, argc, argv)) {
        (void)fputs(usage, stderr);
        return PHEMA_ERR_USAGE;
    }
    openblas_set_num_threads(1);
    enum phema_status status = run(&study, &options, &err);
    if (status && status != PHEMA_NO)
        (void)fprintf(stderr, "bench_fidelity: %s\n", err.message);
    free(study.cases);
    free(study.buffer);
    return (int)status;
}
