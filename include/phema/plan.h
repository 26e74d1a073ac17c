/* plan.h - the targets of a series, their weights and the rule for every tensor. Only a sample of
 * the tensors is read. A plan does not change once made: synth executes it and decides nothing. */
#ifndef PHEMA_PLAN_H
#define PHEMA_PLAN_H

#include "phema/decays.h"
#include "phema/memory_profile.h"
#include "phema/record.h"
#include "phema/schedule.h"
#include "phema/series.h"
#include "phema/setting.h"
#include "phema/solver.h"

/* ---- Errors ---- */

/* Predicted errors of averages of these widths at the newest snapshot. No tensor is read; takes a
 * tenth of a second at most.
 *   errors  out: [m]
 *   motion  of the parameters; NULL: unknown, they wander evenly
 *   every   out: 1; above 256 snapshots only every every-th time is used, and all times would give
 *           smaller errors
 * PHEMA_NO  the profiles of the snapshots are unknown
 * and the failures of phema_weights_solve */
PHEMA_FALLIBLE phema_series_errors(double *errors, size_t *every, const struct phema_series *series,
                                   const struct phema_motion *motion, const double *sigma_rels,
                                   size_t m, struct phema_error *err);

/* ---- Checks of a series ---- */

/* Whether snapshots are what their labels say: each is compared with what all others predict (N25).
 * Wrong labels make predicted errors unknown. */
enum phema_series_verdict {
    PHEMA_SERIES_UNKNOWN,   /* not checked, or too few snapshots or elements */
    PHEMA_SERIES_UNCHECKED, /* no snapshot is odd; of a single average files do not tell the width */
    PHEMA_SERIES_FITS,      /* as far apart as the motion of the parameters says */
    PHEMA_SERIES_DOUBTFUL,  /* something happened in the training; errors are predicted */
    PHEMA_SERIES_WRONG      /* the snapshots are not what their labels say */
};

/* What follows where the labels are wrong. */
enum phema_checks {
    PHEMA_CHECKS_DEFAULT, /* a warning; a failure where a profile was assumed, or refuted by decays
                           * or by snapshots that are the same average, but differ */
    PHEMA_CHECKS_WARN,
    PHEMA_CHECKS_ERROR,
    PHEMA_CHECKS_OFF /* nothing is compared */
};

#define PHEMA_SUSPECT_Z    2.5 /* snapshots above it are listed */
#define PHEMA_CHECKS_VALUE 128 /* bytes of the value of a setting */

struct phema_series_checks {
    enum phema_series_verdict verdict;
    double *z;              /* [n] distance from the prediction over the expected one; NaN: unknown;
                             * NULL: no sample */
    double max_z, median_z; /* NaN: unknown */
    char *reason;   /* unchecked, doubtful, wrong: a part of a sentence that names the cause */
    size_t suspect; /* the snapshot it blames; SIZE_MAX: no single one */
    enum phema_setting setting; /* with the value makes the labels fit; or PHEMA_SET_NONE */
    char value[PHEMA_CHECKS_VALUE];
    bool is_contradicted; /* wrong: snapshots differ that are the same average by their labels */
    struct phema_decays decays; /* of averages with raw parameters beside them */
};

/* phema_series_open, where the one profile of the options may be "auto": it becomes the profile that the
 * files tell, from the raw parameters beside an average or from how alike its snapshots are, and a
 * note of the series says it. The profile lives as long as the series.
 * PHEMA_ERR_INPUTS  also where no profile fits, or others nearly as well */
PHEMA_FALLIBLE phema_series_open_auto(struct phema_series **out,
                                      struct phema_series_options *options,
                                      struct phema_error *err);

/* Checks a series from a sample of its tensors, whose measured rounding the snapshots get. The caller
 * clears the checks and the motion.
 *   motion   out: of the parameters, where it returns PHEMA_OK
 *   options  of the series; NULL: raw parameters that it leaves out are not looked at
 * PHEMA_NO            they cannot be made, and the message has the reason; the decays may be known
 * PHEMA_ERR_FILE      a file cannot be read
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE phema_series_check(struct phema_series_checks *out, struct phema_motion *motion,
                                  struct phema_series *series,
                                  const struct phema_series_options *options,
                                  struct phema_error *err);
void phema_series_checks_clear(struct phema_series_checks *checks); /* takes the half-built */

/* Writes "checks": {...}: the verdict, the largest and the median z, the reason, the suspects. */
struct phema_json_out;
void phema_series_checks_write(struct phema_json_out *out, const struct phema_series_checks *checks,
                               const struct phema_series *series);

/* ---- Plan ---- */

struct phema_regex;

/* A separate width for the tensors whose names match. */
struct phema_plan_rule {
    char *expression; /* searched for in the names that the series gives its tensors */
    struct phema_regex *pattern;
    bool is_copy;            /* the newest snapshot's bytes, as for integers */
    double sigma_rel, gamma; /* NaN for copies */
    size_t n_tensors;        /* that follow it, 0 where the series has no tensors */
};

/* Among the SPECs of targets: the newest snapshot as it is. Its profile is that of the snapshot,
 * and nothing is solved for. */
#define PHEMA_TARGET_NEWEST "newest"

/* The snapshot that ends at this time; of several the raw one, or the narrowest. SIZE_MAX: none. */
size_t phema_series_find_newest(const struct phema_series *series, double time);

struct phema_target {
    double named_time, time;
    double sigma_rel, gamma; /* of a power function, else NaN */
    struct phema_mix mix;    /* the wanted profile; no parts: weights given without a target */
    const char *kind;        /* "power", "ema", "sma", "difference", ...; NULL: no target */
    const char *spec;        /* as text (profile.h); NULL: no target */
    const char *file_part;   /* for file names, of other shapes than power; else NULL */
    struct phema_solution solution; /* weights: [series->n], 0 for snapshots left out */
    /* [plan->n_rules] of the tensors that follow a rule, the same for all targets of one time;
     * weights: likewise, NULL for copies */
    struct phema_solution *ruled;
    /* errors of weights that believe the labels; PHEMA_UNKNOWN where the labels are true */
    double label_profile_error, label_predicted_error;
    /* of a least-squares line through snapshots: its R^2, else, and where it is unknown, NaN; and the
     * error that their scatter around it makes, relative to |theta| */
    double r_squared, scatter;
    size_t n_left_out; /* snapshots later than the target */
    size_t n_repeated; /* snapshots left out because another one is the same average */
    size_t newest;     /* the last snapshot that is not later: the source of copies */
    bool is_stored;    /* a snapshot as it is, of weight 1: PHEMA_TARGET_NEWEST */
    size_t stored;     /* that snapshot */
    /* for the provenance: the exponent was given; a file of weights has the width or SPEC, the time
     * */
    bool is_by_gamma, is_width_in_file, is_time_in_file;
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
    /* 'RE=SIGMA' and 'RE=copy', for averaged tensors: the first match replaces the target's width
     * */
    const char *const *rules;
    size_t n_rules;
    enum phema_checks checks;
    const char *schedule; /* of the learning rate: SPEC or path (schedule.h); NULL: unknown */
    bool is_conversion;   /* one checkpoint with the weight 1 */
    bool identifies;      /* sets the digests of the snapshots (phema_series_identify) */
    struct phema_solve_options solve;
    struct phema_memory_profile *memory_profile; /* NULL: no record */
    /* Called when the series is open and before anything is solved; NULL: none. A failure ends the
     * plan. n: targets, 0 where a file of weights says how many */
    enum phema_status (*check)(void *context, const struct phema_series *series, size_t n,
                               struct phema_error *err);
    void *context;
};

struct phema_plan {
    struct phema_series *series;
    struct phema_target *targets; /* [m]: all averages at the first time, then at the next */
    size_t m;
    struct phema_arena memory;       /* of targets, weights and rules */
    struct phema_schedule *schedule; /* of the learning rate; NULL: unknown */
    struct phema_motion *motion;     /* of the parameters; NULL: not sampled, or unknown */
    const char *unmoved; /* the reason why it is unknown and metric walk replaces motion */
    struct phema_series_checks checks;
    const char *metric; /* "motion", "walk", "profile", "given" */
    bool has_given_weights;
    const char *other_labels;      /* given weights are for snapshots of other labels; NULL: no */
    struct phema_plan_rule *rules; /* [n_rules] in the order of the options */
    size_t n_rules;
    /* The last rules are of variances that some targets would make negative. For these they have
     * the target's weights without the negative ones, for others the target's own. */
    size_t n_variance_rules;
    size_t *rule_of; /* [n_tensors] 1 + index of the rule it follows, 0 for none */
};

/* Opens the series and solves for the weights. The caller frees the plan.
 * PHEMA_ERR_USAGE     no target, weights and a target that contradict each other, an invalid rule
 *                     or SPEC
 * PHEMA_ERR_FILE      a schedule that cannot be read
 * PHEMA_ERR_INPUTS    the snapshots do not fit their labels, and checks is PHEMA_CHECKS_ERROR, or
 *                     PHEMA_CHECKS_DEFAULT and a profile was assumed or is refuted
 * PHEMA_ERR_INPUTS    a rule that no averaged tensor follows, or that separates tensors of one
 *                     storage; a quantised tensor is averaged without its scale, or with it
 * PHEMA_ERR_TARGET    an average that does not exist, or a time outside the series
 * PHEMA_ERR_RESOURCE  more than max_ram_bytes would be needed
 * and the failures of series, profile and formats */
PHEMA_FALLIBLE phema_plan_make(struct phema_plan **out, const struct phema_plan_options *options,
                               struct phema_error *err);
void phema_plan_free(struct phema_plan *plan); /* takes NULL */

/* ---- Sentences on a plan ---- */

/* What the checks say against the snapshots, for a warning; false: nothing. */
bool phema_series_write_doubt(struct phema_strbuf *out, const struct phema_series *series,
                              const struct phema_series_checks *checks);
/* Fails with the same sentence, for a verdict that is wrong, and suggests the option that makes the
 * labels right where it is known. PHEMA_ERR_INPUTS, PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE phema_series_fail_wrong(const struct phema_series *series,
                                       const struct phema_series_checks *checks,
                                       struct phema_error *err);
/* Appends sentences, each ended by a NUL: the warnings of a series, those of its checks last. */
void phema_series_write_warnings(struct phema_strbuf *out, const struct phema_series *series,
                                 const struct phema_series_checks *checks);

/* "sigma_rel 0.1 at 4096" */
void phema_target_write_name(struct phema_strbuf *out, const struct phema_target *target);
/* A warning about the error or the weights of a target, with a remedy; false: no warning. */
bool phema_target_write_warning(struct phema_strbuf *out, const struct phema_plan *plan,
                                const struct phema_target *target);

/* Append sentences, each ended by a NUL: what is unusual about the targets; and the warnings of the
 * series, then those of the targets. Targets of wrong labels have no further warnings. */
void phema_plan_write_remarks(struct phema_strbuf *out, const struct phema_plan *plan);
void phema_plan_write_warnings(struct phema_strbuf *out, const struct phema_plan *plan);

/* Targets of one time share the solutions of the options' rules: true for the first of them. */
bool phema_plan_is_first_of_time(const struct phema_plan *plan, size_t j);

/* The rules that the options gave. */
static inline size_t phema_plan_n_given_rules(const struct phema_plan *plan)
{
    return plan->n_rules - plan->n_variance_rules;
}
/* The first rule by which a target changes the weights of variances; n_rules: none. */
size_t phema_target_variance_rule(const struct phema_plan *plan, const struct phema_target *target);

/* ---- Plans elsewhere ---- */

/* Weights and rules, and the series, for another process: what phema_synth_run needs of a plan. */
PHEMA_FALLIBLE phema_plan_pack(struct phema_plan **plan, struct phema_packer *packer,
                               struct phema_error *err);

/* Predicted distance of the exact averages of two targets of one time, relative to |theta|, in the
 * model of the predicted errors; NaN where these are unknown.
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE phema_plan_distance(double *out, const struct phema_plan *plan, size_t a, size_t b,
                                   struct phema_error *err);

/* Writes "motion": {...}: amplitudes by interval and the rounding of the snapshots. Nothing where
 * the motion is unknown. */
struct phema_json_out;
void phema_plan_write_motion(struct phema_json_out *out, const struct phema_plan *plan);

/* ---- Advice ---- */

struct phema_plan_advice {
    struct phema_advice found; /* of snapshots of the series */
    size_t n_considered;       /* snapshots, without those later than the targets */
    struct phema_saving saving;
};

/* Which snapshots could be deleted, and how often to save, for all targets together (solver.h). The
 * caller clears what is found (phema_advice_clear).
 *   max_error  > 0
 * PHEMA_ERR_USAGE   weights were given, targets of several times
 * PHEMA_ERR_INPUTS  the snapshots do not fit their labels
 * and the failures of phema_advice_find and phema_advice_saving */
PHEMA_FALLIBLE phema_plan_advise(struct phema_plan_advice *out, const struct phema_plan *plan,
                                 double max_error, struct phema_error *err);

/* ---- What is told of them (record.h) ---- */

extern const struct phema_field phema_snapshot_fields[], phema_target_fields[],
    phema_solution_fields[], phema_prediction_fields[], phema_rule_fields[];

#endif
