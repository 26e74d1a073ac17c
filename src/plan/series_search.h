/* series_search.h - a search for labels that explain a series. A hypothesis is another assignment
 * of labels to rows of the sample. */
#ifndef PLAN_SERIES_SEARCH_H
#define PLAN_SERIES_SEARCH_H

#include "phema/strbuf.h"
#include "series_fit.h"

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
