/* series_search.h - how well labels fit the rows of a sample, and a search for labels that explain
 * a series. A hypothesis is another assignment of labels to rows of the sample. */
#ifndef PLAN_SERIES_SEARCH_H
#define PLAN_SERIES_SEARCH_H

#include "phema/arena.h"
#include "phema/plan.h"
#include "phema/strbuf.h"

/* ---- How well labels fit ---- */

/* The largest z of honest series is 0.96 to 2.5, and the median 0.7 to 1.3 (docs/numerics.md). Of
 * wrong ones, the largest is 3.6 to 4e6, or the median is above 2. */
#define WRONG_Z        3.5
#define WRONG_MEDIAN_Z 2.0
#define EVENT_Z        2.5

/* Labels explain a wrong series if they fit as well as those of honest ones. */
#define EXPLAINED_Z        2.0
#define EXPLAINED_MEDIAN_Z 1.5

struct labels {
    struct phema_profile *profiles; /* [n] by time */
    size_t *rows;                   /* [n] of the sample */
    size_t n;
};

enum comparison {
    COMPARE_LIKELIHOODS, /* under the simplest motion; z is unknown */
    COMPARE_ROUGHLY,     /* under the simplest motion */
    COMPARE_SNAPSHOTS,
    COMPARE_DRIFTING, /* parameters may keep their direction */
    COMPARE_AND_LEAVE_OUT
};

struct fit {
    struct phema_motion motion; /* the caller clears it */
    double *z;                  /* [n] of the fitting's memory */
    double *largest_without;    /* [n] likewise, of COMPARE_AND_LEAVE_OUT */
    double max_z, median_z;     /* NaN: nothing could be compared */
    double likelihood;          /* likewise, or of a fit that leaves out */
    struct phema_tensor_outlier outlier;
};

/* One set of labels, which several fits of different kinds share. */
struct fitting {
    struct phema_problem problem; /* without a motion */
    struct phema_sample_rows rows;
    struct phema_motion_fitting *motion;
    struct phema_arena memory;
};

/* Labels and sample are borrowed. schedule: of the learning rate; NULL: unknown. Without is_rough
 * comparisons may be of any kind. Close it also after a failure.
 * PHEMA_NO            no motion can be fitted; the message has the reason
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE fitting_open(struct fitting *fitting, const struct labels *labels,
                            const struct phema_sample *sample,
                            const struct phema_schedule *schedule, bool is_rough,
                            struct phema_error *err);
void fitting_close(struct fitting *fitting);

/* PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE fitting_compare(struct fit *fit, struct fitting *fitting, enum comparison comparison,
                               struct phema_error *err);
bool fit_explains(const struct fit *fit); /* a series that its own labels do not fit */
/* Whether snapshots are as far apart as those of a walk, which is little of what trainings do. */
bool fit_is_walk(const struct fit *fit);

/* ---- The search ---- */

/* After a failure, which is PHEMA_ERR_RESOURCE, no labels fit: check status at the end. */
struct search {
    const struct phema_series *series;
    const struct phema_snapshot *snapshots; /* of the series */
    const struct phema_sample *sample;
    const struct phema_schedule *schedule; /* of the learning rate; NULL: unknown */
    struct phema_series_checks
        *checks;   /* with suspect, setting and value of the best explanation */
    size_t *group; /* [n + 1] first snapshot of each time, then n */
    size_t n_groups;
    struct labels given;    /* the labels of the series */
    struct fitting fitting; /* of the given ones */
    struct labels tried;
    struct labels found; /* of the best explanation */
    double best;         /* the largest z of the best explanation so far */
    /* the likelihood of the best; NaN: labels are rated by their largest z */
    double likelihood;
    struct phema_strbuf text; /* of the best */
    bool is_sure;             /* the best holds however parameters moved */
    struct phema_arena memory;
    enum phema_status status;
    struct phema_error *err;
};

/* Labels the snapshots as the series does. Series, snapshots, sample, schedule, checks, likelihood and
 * err are set. checks->z is the caller's. Close it also after a failure, which is as of
 * fitting_open. */
PHEMA_FALLIBLE search_open(struct search *search);
void search_close(struct search *search);

size_t search_group_of(const struct search *search, size_t k);

/* The groups near one. */
size_t search_near_begin(size_t g);
size_t search_near_end(const struct search *search, size_t g);

/* Snapshots that a hypothesis about all looks at, the newest. */
#define SEARCH_NEWEST ((size_t)48)

/* Tries the labels given to the snapshots of some times: of these groups, of those near one, of the
 * newest that are at most so many. The caller changes some of them. Returns the first snapshot. */
size_t search_reset(struct search *search, size_t first_group, size_t end_group);
size_t search_reset_near(struct search *search, size_t g);
void search_reset_newest(struct search *search, size_t most);
/* Another profile for the tried snapshots, or for those whose own was assumed. Fails as
 * phema_spec_profile. */
PHEMA_FALLIBLE search_set_spec(struct search *search, struct phema_spec *spec, bool only_assumed,
                               struct phema_error *err);

/* Tries one profile for the newest snapshots, at most so many, from a text; false: no such average ends
 * at their times. */
bool search_set_newest(struct search *search, struct phema_specs *specs, const char *text,
                       size_t most);

/* Of the tried labels; -HUGE_VAL: no series can have them. */
double search_likelihood(struct search *search);
/* The same of a closed form for the newest, at most so many; for these groups. */
double search_rate_shape(struct search *search, struct phema_profile shape, size_t most);
double search_rate_shape_of(struct search *search, struct phema_profile shape, size_t first_group,
                            size_t end_group);
/* Without numbers and motion where no series can have the labels. */
struct fit search_fit(struct search *search, const struct labels *labels,
                      enum comparison comparison);

/* Whether the tried labels fit. Their likelihood is -HUGE_VAL if snapshots are still more alike than
 * these say. */
bool search_rate(struct fit *fit, struct search *search);
/* Whether the tried labels fit, and better than all before. */
bool search_try(struct search *search);

/* Begins the sentence of the best explanation, the tried labels. suspect: SIZE_MAX for no single snapshot */
struct phema_strbuf *search_explain(struct search *search, size_t suspect);
/* Then: a setting that gives these labels. A value that is too long is none. */
void search_set_remedy(struct search *search, enum phema_setting setting, const char *value);
/* The same, and adds it to the sentence. */
void search_suggest(struct search *search, enum phema_setting setting, const char *value);

/* ---- series_verdict.c ---- */

/* Sets the checks, and the fit of the given labels. Without judging labels it is wrong where a tensor
 * is damaged, and else unknown. PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE search_verdict(struct search *search, struct fit *fit, bool judges_labels,
                              struct phema_error *err);

/* ---- series_hypotheses.c: labels of some snapshots, or all widths ---- */

/* Explains a wrong series, of whose labels the fit is. */
void search_labels(struct search *search, const struct fit *fit);

/* Explains labels by averages that are updated every few steps. */
void search_updates(struct search *search);

/* Explains snapshots that are more alike than their labels say. */
void search_longer(struct search *search);

/* ---- raw_snapshots.c ---- */

/* Whether raw parameters contradict their labels by their distances alone; explains the series by
 * that. */
bool search_raw(struct search *search);
/* Whether the newest raw parameters are those of the time before, which a training that has ended leaves
 * as well; explains the series by that. */
bool search_newest_copy(struct search *search);

/* ---- class_labels.c ---- */

/* The time back from the end of an average in which half of its weight lies. */
double half_life_of(const struct phema_profile *profile);

/* Whether raw parameters beside the one average tell its decay, which is that of its label. They tell it
 * however the parameters move. */
bool search_knows_decay(const struct search *search);

/* Judges the label of one exponential average by the sample; explains a wrong or doubtful one by the
 * updates or the warm-up that fit. UNKNOWN: nothing speaks against it. fit: of the given labels */
enum phema_series_verdict search_classes(struct search *search, const struct fit *fit);

/* ---- series_alternatives.c: the same for all labels ---- */

/* Whether times that are earlier or later by one time make the snapshots much likelier; explains
 * the series by that. */
bool search_shifts(struct search *search);

/* Explains a series by a reset before the first time that does not fit those before it. fit: of the
 * given labels */
void search_resets(struct search *search, const struct fit *fit);

/* Explains a wrong series by one of the usual settings of its trainer. */
void search_assumption(struct search *search);

#endif
