/* plan.h - the targets of a series, their weights and the rule for every tensor.
 * No tensor is read but a sample. Plans do not change once made: synth executes them and decides
 * nothing. */
#ifndef PHEMA_PLAN_H
#define PHEMA_PLAN_H

#include "phema/memory_profile.h"
#include "phema/series.h"
#include "phema/solver.h"

/* ---- Errors ---- */

/* The predicted errors of averages of these widths at the newest snapshot, for parameters that
 * wander evenly: no tensor is read, and it takes a tenth of a second at most.
 *   errors  out: [m]
 *   every   out: 1, or of more than 256 snapshots every how many-th time was looked at; with all of
 *           them errors are smaller
 * PHEMA_NO  nothing says how the snapshots were averaged; and what the solver fails with */
PHEMA_FALLIBLE phema_series_errors(double *errors, size_t *every, const struct phema_series *series,
                                   const double *sigma_rels, size_t m, struct phema_error *err);

/* ---- Plan ---- */

struct phema_regex;

/* A width of their own for the tensors whose names match. */
struct phema_plan_rule {
    char *expression; /* searched for in the names that the series gives its tensors */
    struct phema_regex *pattern;
    bool is_copy;            /* no average: the newest snapshot's bytes, as of integers */
    double sigma_rel, gamma; /* NaN for copies */
    size_t n_tensors;        /* that follow it, 0 where no tensor is known */
};

struct phema_target {
    double named_time, time;
    double sigma_rel, gamma; /* of a power function, else NaN */
    struct phema_mix mix;    /* what is wanted; no parts when the weights came without a target */
    const char *kind;        /* "power", "ema", "sma", "difference", ...; NULL likewise */
    const char *spec;        /* as text (spec.h); NULL likewise */
    const char *file_part;   /* of names of files, of other shapes than power; else NULL */
    struct phema_solution solution; /* weights: [series->n], 0 for snapshots left out */
    /* [plan->n_rules] of the tensors that follow a rule, the same for all targets of one time;
     * weights: likewise, NULL for copies */
    const struct phema_solution *ruled;
    /* of the weights that believe the labels; PHEMA_UNKNOWN where those are true */
    double label_profile_error, label_predicted_error;
    size_t n_left_out; /* snapshots later than the target */
    size_t n_repeated; /* left out since another one is the same average */
    size_t newest;     /* the last snapshot that is not later: what copies come from */
    /* how the provenance says it again: the exponent was given; a file of weights says both */
    bool is_by_gamma, is_width_in_file, is_time_in_file; /* width: or SPEC */
};

struct phema_plan_options {
    struct phema_series_options series;
    const double *sigma_rels; /* [n] targets by width ... */
    size_t n_sigma_rels;
    const double *gammas; /* ... or by exponent */
    size_t n_gammas;
    const char *const *profiles; /* ... or as SPECs of any shape */
    size_t n_profiles;
    const double *ats; /* [n] named times; none: the newest snapshot */
    size_t n_ats;
    const char *weights_file; /* NULL: solve */
    /* 'RE=SIGMA' and 'RE=copy', for averaged tensors: the first one that matches a name is followed
     * instead of the target's width */
    const char *const *rules;
    size_t n_rules;
    bool is_conversion; /* no average: one checkpoint with the weight 1, as it is */
    struct phema_solve_options solve;
    struct phema_memory_profile *ledger; /* NULL: nothing is recorded */
};

struct phema_plan {
    struct phema_series *series;
    struct phema_target *targets; /* [m]: all averages at the first time, then at the next */
    size_t m;
    struct phema_arena memory;   /* what targets are */
    struct phema_motion *motion; /* how the parameters moved; NULL: not looked at, or unmoved */
    char *unmoved; /* why that cannot be known: the reason to use metric walk instead of motion */
    bool has_odd_snapshot; /* the reason is one that is zero, or far larger than the newest */
    char *doubts;          /* a sentence: the snapshots do not look like averages of update_every */
    const char *metric;    /* "motion", "walk", "profile", "given" */
    bool has_given_weights;
    struct phema_plan_rule *rules; /* [n_rules] in the order of the options */
    size_t n_rules;
    size_t *rule_of;              /* [n_tensors] 1 + index of the rule it follows, 0 for none */
    struct phema_solution *ruled; /* [n_ruled] behind the targets' */
    size_t n_ruled;
};

/* PHEMA_ERR_USAGE     no target, or weights and a target that do not go together; a rule or a SPEC
 *                     that is none
 * PHEMA_ERR_INPUTS    a rule that no averaged tensor follows, or that parts tensors of one storage;
 *                     a quantised tensor is averaged without its scale, or with it
 * PHEMA_ERR_RESOURCE  more than max_ram_bytes would be needed
 * and what series, profile and formats fail with */
PHEMA_FALLIBLE phema_plan_make(struct phema_plan **out, const struct phema_plan_options *options,
                               struct phema_error *err);
void phema_plan_free(struct phema_plan *plan); /* takes NULL */

/* "motion": {...}: amplitudes of the plan's motion by interval, and the rounding of its snapshots;
 * nothing where no motion is known. */
struct phema_json_out;
void phema_plan_write_motion(struct phema_json_out *out, const struct phema_plan *plan);

/* ---- Advice ---- */

struct phema_plan_advice {
    size_t *removed; /* [n_removed] snapshots of the series that may go, the least useful first */
    size_t n_removed, n_considered; /* of how many: later ones than the targets are not */
    double error_before, error_after;
    struct phema_saving saving;
};

/* What could be deleted, and how often to save, for all targets of the plan together (profile.h).
 * PHEMA_ERR_USAGE  weights were given, targets of several times, no max_error */
PHEMA_FALLIBLE phema_plan_advise(struct phema_plan_advice *out, const struct phema_plan *plan,
                                 double max_error, struct phema_error *err);
void phema_plan_advice_clear(struct phema_plan_advice *advice);

#endif
