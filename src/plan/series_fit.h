/* series_fit.h - how well labels fit the rows of a sample. */
#ifndef PLAN_SERIES_FIT_H
#define PLAN_SERIES_FIT_H

#include "phema/plan.h"

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

/* The snapshot with the largest of n z; SIZE_MAX: all are NaN. */
size_t find_worst(const double *z, size_t n);

#endif
