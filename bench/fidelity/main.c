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
#include "saved.h"
#include "tables.h"

#define MAX_COUNTS 6

static const char usage[] =
    "usage: bench_fidelity [--quick] [--set tuning|held-out|later-tuning|later-held-out|all] "
    "[--regime NAME] [--csv]\n"
    "                      [--steps N] [--seed N] [--save DIR]\n"
    "  --quick   a few regimes, a quarter of the steps, lower goals\n"
    "  --set     of tuning sets constants may be chosen, held-out ones only report\n"
    "  --regime  this one alone, no goals\n"
    "  --csv     a line for each target instead of tables and goals\n"
    "  --steps   in place of 4096, a multiple of 32; no goals\n"
    "  --seed    added to the seeds of all regimes; no goals\n"
    "  --save    writes all series into the directory, and studies none\n"
    "Exit status 1: goals are missed.\n";

struct extent {
    uint64_t n_steps;
    size_t counts[MAX_COUNTS]; /* of times, ascending (stored_make) */
    size_t n_counts;
};

static const struct extent whole = {4096, {4, 6, 8, 9, 16, 32}, 6};
static const struct extent quick = {1024, {4, 16}, 2};

struct options {
    bool is_quick, is_csv;
    size_t set; /* or ANY */
    const char *regime, *directory;
    uint64_t n_steps, seed; /* 0: as usual */
};

static const struct extent *extent_of(const struct options *options)
{
    return options->is_quick ? &quick : &whole;
}

static bool parse_set(size_t *set, const char *name)
{
    for (*set = 0; *set < N_SETS; ++*set)
        if (strcmp(name, set_names[*set]) == 0)
            return true;
    *set = ANY;
    return strcmp(name, "all") == 0;
}

static bool parse_whole(uint64_t *number, const char *text)
{
    char *end;
    *number = strtoull(text, &end, 10);
    return *number > 0 && !*end;
}

/* An option with a value; false: there is none of that name, or it takes no such value. */
static bool parse_value(struct options *options, const char *name, const char *value)
{
    if (strcmp(name, "--regime") == 0)
        return (options->regime = value) != NULL;
    if (strcmp(name, "--save") == 0)
        return (options->directory = value) != NULL;
    if (strcmp(name, "--set") == 0)
        return parse_set(&options->set, value);
    if (strcmp(name, "--seed") == 0)
        return parse_whole(&options->seed, value);
    return strcmp(name, "--steps") == 0 && parse_whole(&options->n_steps, value) &&
           options->n_steps % MAX_TIMES == 0;
}

static bool parse_options(struct options *options, int argc, char **argv)
{
    *options = (struct options){.set = ANY};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0)
            options->is_quick = true;
        else if (strcmp(argv[i], "--csv") == 0)
            options->is_csv = true;
        else if (i + 1 < argc && parse_value(options, argv[i], argv[i + 1]))
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

/* directory: where the series is saved; NULL: it is studied */
static enum phema_status study_series(struct study_case *one, const struct recording *recording,
                                      const char *directory, struct phema_error *err)
{
    struct stored stored;
    const struct series_kind *kind = &series_kinds[one->kind];
    enum phema_status status =
        stored_make(&stored, recording, kind, one->n_times, study_dtypes[one->dtype], err);
    if (!status)
        status = directory ? saved_write(directory, &stored, kind, err)
                           : tool_try(one->outcomes, &one->check, &stored, err);
    for (size_t m = 0; !status && !directory && m < N_TARGETS; m++)
        if (!(one->outcomes[m].oracle > 0) || !isfinite(one->outcomes[m].oracle))
            status = phema_fail(err, PHEMA_ERR_INPUTS, "%s: a training that diverged",
                                regimes[one->regime].name);
    stored_clear(&stored);
    return status;
}

static enum phema_status study_recording(struct study *study, const struct recording *recording,
                                         size_t regime, const struct extent *extent,
                                         const struct options *options, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    size_t n = extent->n_counts * N_DTYPES * N_KINDS;
    for (size_t i = 0; !status && i < n; i++) {
        struct study_case *one = &study->cases[study->n_cases++];
        *one = (struct study_case){.regime = regime,
                                   .kind = i / (N_DTYPES * extent->n_counts),
                                   .dtype = i / extent->n_counts % N_DTYPES,
                                   .n_times = extent->counts[i % extent->n_counts]};
        status = study_series(one, recording, options->directory, err);
        if (!status && options->is_csv)
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
    const struct extent *extent = extent_of(options);
    uint64_t n_steps = options->n_steps ? options->n_steps : extent->n_steps;
    enum phema_status status = PHEMA_OK;
    for (size_t r = 0; !status && r < n_regimes; r++) {
        struct recording recording;
        struct regime regime = regimes[r];
        if (!is_chosen(options, &regime))
            continue;
        regime.seed += options->seed;
        status =
            recording_make(&recording, &regime, n_steps, extent->counts[extent->n_counts - 1], err);
        if (!status && !options->is_csv)
            print_regime(&recording);
        if (!status)
            status = study_recording(study, &recording, r, extent, options, err);
        (void)fflush(stdout);
        recording_clear(&recording);
    }
    return status;
}

static void print_extent(const struct options *options)
{
    const struct extent *extent = extent_of(options);
    printf("%llu steps; %d targets at the end and as many at %g of the run. Series, each with",
           (unsigned long long)(options->n_steps ? options->n_steps : extent->n_steps), N_AVERAGES,
           MID);
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
        print_extent(options);
    enum phema_status status = study_all(study, options, err);
    if (!status && !study->n_cases)
        status = phema_fail(err, PHEMA_ERR_USAGE, "no regime is called '%s'", options->regime);
    if (status || options->is_csv || options->directory)
        return status;
    tables_print(study);
    bool has_goals = !options->regime && !options->n_steps && !options->seed;
    return !has_goals || goals_check(study, options->is_quick) ? PHEMA_OK : PHEMA_NO;
}

int main(int argc, char **argv)
{
    struct options options;
    struct study study = {0};
    struct phema_error err = {0};
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
