/* series_assumption.h - what users of a trainer set instead of its default, which was assumed. */
#ifndef PLAN_SERIES_ASSUMPTION_H
#define PLAN_SERIES_ASSUMPTION_H

#include "series_search.h"

/* Explains a wrong series by one of the usual settings of its trainer. PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE search_assumption(struct search *search, struct phema_error *err);

#endif
