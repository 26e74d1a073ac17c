/* series_shifts.h - labels that are all too early, or all too late. */
#ifndef PLAN_SERIES_SHIFTS_H
#define PLAN_SERIES_SHIFTS_H

#include "series_search.h"

/* Whether times that are earlier or later by one time make the snapshots much likelier; explains
 * the series by that. PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE search_shifts(bool *is_found, struct search *search, struct phema_error *err);

#endif
