/* series_search.h - how well labels fit the rows of a sample, and a search for labels that explain a
 * series. A hypothesis is another assignment of labels to rows of the sample. */
#ifndef PLAN_SERIES_SEARCH_H
#define PLAN_SERIES_SEARCH_H

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

struct fit {
    struct phema_motion motion;
    double *z;
    double *largest_without; /* [n]; NULL: not asked for */
    double max_z, median_z;  /* NaN: nothing could be compared */
    double likelihood;       /* likewise, or of a fit that leaves out */
    struct phema_tensor_outlier outlier;
};

enum comparison {
    COMPARE_NOTHING,
    COMPARE_LIKELIHOODS, /* under the simplest motion; z is unknown */
    COMPARE_ROUGHLY,     /* under the simplest motion */
    COMPARE_SNAPSHOTS,
    COMPARE_AND_LEAVE_OUT
};

/* Space for n labels. False: no memory; clear all the same. */
bool labels_alloc(struct labels *labels, size_t n);
void labels_clear(struct labels *labels);

/* One set of labels, which several fits of different kinds share. */
struct fitting {
    const struct labels *labels;
    const struct phema_sample *sample;
    double *rounding; /* [n] */
    struct phema_sample_rows rows;
    struct phema_motion_fitting *motion;
};

/* Labels and sample are borrowed. schedule: of the learning rate; NULL: unknown. Without is_rough
 * comparisons may be of any kind.
 * PHEMA_NO            no motion can be fitted; the message has the reason
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE fitting_open(struct fitting *fitting, const struct labels *labels,
                            const struct phema_sample *sample,
                            const struct phema_schedule *schedule, bool is_rough,
                            struct phema_error *err);
void fitting_close(struct fitting *fitting); /* takes the empty */

/* Clear the fit, also after a failure. PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE fitting_fit(struct fit *fit, const struct fitting *fitting,
                           enum comparison comparison, struct phema_error *err);

/* All in one; failures of both. */
PHEMA_FALLIBLE fit_labels(struct fit *fit, const struct labels *labels,
                          const struct phema_sample *sample, const struct phema_schedule *schedule,
                          enum comparison comparison, struct phema_error *err);
void fit_clear(struct fit *fit);
bool fit_is_wrong(const struct fit *fit);
bool fit_explains(const struct fit *fit); /* a series that its own labels do not fit */

/* The snapshot with the largest of n z; SIZE_MAX: all are NaN. */
size_t find_worst(const double *z, size_t n);

/* ---- The search ---- */

struct search {
    const struct phema_series *series;
    const struct phema_sample *sample;
    const struct phema_schedule *schedule; /* of the learning rate; NULL: unknown */
    struct phema_series_checks *checks;
    size_t *group; /* [n + 1] first snapshot of each time, then n */
    size_t n_groups;
    struct labels given;    /* the labels of the series */
    struct fitting fitting; /* of the given ones */
    struct labels tried;
    double best; /* the largest z of the best explanation so far */
    /* the likelihood of the best; NaN: labels are rated by their largest z */
    double likelihood;
    struct phema_strbuf text;   /* of the best */
    size_t suspect;             /* of the best; SIZE_MAX: none alone */
    enum phema_setting setting; /* that makes the labels the best ones, or PHEMA_SET_NONE */
    char value[PHEMA_CHECKS_VALUE];
};

const char *search_label(const struct search *search, size_t k);
size_t search_group_of(const struct search *search, size_t k);

/* The groups near one, and the newest ones. */
size_t search_near_begin(size_t g);
size_t search_near_end(const struct search *search, size_t g);
size_t search_newest_begin(const struct search *search);

/* Tries the labels given to the snapshots of some times; the caller changes some of them. */
void search_reset(struct search *search, size_t first_group, size_t end_group);

/* fit: without numbers where no series can have the labels. PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE search_fit(struct fit *fit, const struct labels *labels, const struct search *search,
                          enum comparison comparison, struct phema_error *err);

/* *max_z and *likelihood of the tried labels; HUGE_VAL and -HUGE_VAL where they do not fit.
 * PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE search_rate(double *max_z, double *likelihood, struct search *search,
                           struct phema_error *err);

/* Whether the tried labels fit, and better than all before. PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE search_try(bool *is_better, struct search *search, struct phema_error *err);

/* Begins the sentence of the best explanation. */
struct phema_strbuf *search_explain(struct search *search, size_t suspect);
/* Then: a setting that gives these labels. A value that is too long is none. */
void search_set_remedy(struct search *search, enum phema_setting setting, const char *format, ...)
    PHEMA_PRINTF(3, 4);

#endif
