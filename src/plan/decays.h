/* decays.h - the decays of averages: what they are, and what happened. */
#ifndef PLAN_DECAYS_H
#define PLAN_DECAYS_H

#include "phema/decays.h"

/* The checkpoints of an average that have raw parameters beside it, by time. */
struct pairs {
    struct phema_decay_set set;
    size_t *averages, *raws;              /* [n] snapshots of the sources */
    const struct phema_snapshot **labels; /* [n] of the series, with its profiles */
    double *ends;                         /* [n] on the clock of the average */
    size_t n;
};

/* A series with a sample of it. */
struct source {
    const struct phema_series *series;
    const struct phema_sample *sample;
};

struct doctor {
    const struct phema_series *series; /* whose profiles are claimed */
    const struct phema_series_options *options;
    struct source averages, raws; /* the series, or others of the same tensors */
    struct pairs *pairs;          /* [n] */
    size_t n;
    struct phema_decays *out;
};

/* ---- decay_stories.c: what an average is, and what happened to it ---- */

/* By so much 1 - kept differs from what is claimed, at least: in one interval; in most of them. */
#define DECAY_ONE_DIFFERS  1.3
#define DECAY_MOST_DIFFER  1.15
#define DECAY_LEAST_FITTED ((size_t)3) /* for most of them */

/* Sets kind, half-life or gamma, and what happened.
 *   ends  [n + 1] on the clock of the average
 * PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE decay_set_explain(struct phema_decay_set *set, const double *ends,
                                 struct phema_arena *memory, struct phema_error *err);

/* Sets the refuted steps of a set and whether that contradicts its profile. */
void decay_set_judge(struct phema_decay_set *set);

/* Whether nothing of the average before it is left after a step. */
bool decay_keeps_none(const struct phema_decay_step *step);

/* True for most decided steps: then the decay is another one, not only in places. */
bool decay_set_is_other(const struct phema_decay_set *set);

/* ---- decay_profiles.c: profiles that fit ---- */

/* What a profile keeps of the same average as it was at an earlier time; NaN: of a window that
 * reaches back beyond it, which is no recurrence. */
double decay_kept_by(const struct phema_profile *profile, double begin);

/* The place of the new weight of a profile, as the fit defines it. */
double decay_place_of(const struct phema_profile *profile, double begin);

/* Other profiles are those of the labels changed, [pairs->n]. */

/* Whether no step from the first to the end contradicts other profiles. */
bool decays_fit(const struct pairs *pairs, const struct phema_profile *profiles, size_t first,
                size_t end);

/* How far these steps are from what other profiles say, all together, errors of the method
 * included. Two that differ by less are as likely. */
#define DECAY_AS_LIKELY 4.0 /* two standard deviations */
double decays_rate(const struct pairs *pairs, const struct phema_profile *profiles, size_t first,
                   size_t end);

/* The usual setting of the trainer that fits best. NULL: none fits.
 *   profiles  [pairs->n] scratch memory */
const char *decays_find_usual(const struct doctor *doctor, const struct pairs *pairs,
                              struct phema_profile *profiles);

/* In place of a claimed profile: another decay of its updates, its decay after a warm-up, or the
 * decay that was found where that fits far better. NULL: none fits.
 *   profiles  [pairs->n] scratch memory */
const char *decays_find_other(const struct doctor *doctor, const struct pairs *pairs,
                              struct phema_profile *profiles);

/* Sets the profile that fits a set without one. */
void decays_propose(const struct doctor *doctor, struct pairs *pairs);

/* ---- decay_remedies.c: what is wrong, and what would be right ---- */

/* Says what contradicts the profile of a set that is refuted, and what would be right.
 * PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE decays_accuse(const struct doctor *doctor, const struct pairs *pairs,
                             struct phema_error *err);

#endif
