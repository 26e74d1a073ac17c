/* series_hypotheses.h - the labels that are tried for a series that does not fit its own. */
#ifndef PLAN_SERIES_HYPOTHESES_H
#define PLAN_SERIES_HYPOTHESES_H

#include "series_search.h"

/* Explains a wrong series, of whose labels the fit is. PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE search_labels(struct search *search, const struct fit *fit, struct phema_error *err);

/* Explains snapshots that are more alike than their labels say. PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE search_longer(struct search *search, struct phema_error *err);

#endif
