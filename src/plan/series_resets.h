/* series_resets.h - averages that were reset when a training was resumed. */
#ifndef PLAN_SERIES_RESETS_H
#define PLAN_SERIES_RESETS_H

#include "series_search.h"

/* Explains a series by a reset before the first time that does not fit those before it. fit: of the
 * given labels. PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE search_resets(struct search *search, const struct fit *fit, struct phema_error *err);

#endif
