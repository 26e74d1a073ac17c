/* series_hypotheses.h - the labels that are tried for a series that does not fit its own. */
#ifndef PLAN_SERIES_HYPOTHESES_H
#define PLAN_SERIES_HYPOTHESES_H

#include "series_search.h"

/* Explains a wrong series, of whose labels the fit is. PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE search_labels(struct search *search, const struct fit *fit, struct phema_error *err);

/* Explains snapshots that are more alike than their labels say. PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE search_longer(struct search *search, struct phema_error *err);

/* ---- series_alternatives.c: the same for all labels ---- */

/* Whether times that are earlier or later by one time make the snapshots much likelier; explains
 * the series by that. PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE search_shifts(bool *is_found, struct search *search, struct phema_error *err);

/* Explains a series by a reset before the first time that does not fit those before it. fit: of the
 * given labels. PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE search_resets(struct search *search, const struct fit *fit, struct phema_error *err);

/* Explains a wrong series by one of the usual settings of its trainer. PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE search_assumption(struct search *search, struct phema_error *err);

#endif
