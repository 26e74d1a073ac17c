/* series_events.h - what happens in a training and no label tells: a loss spike, another learning
 * rate. */
#ifndef PLAN_SERIES_EVENTS_H
#define PLAN_SERIES_EVENTS_H

#include "series_search.h"

/* Whether the labels are true if the motion of the parameters jumps between two times; explains
 * the series by that. fit: of the given labels. Where the learning rate is known, jumps are not
 * looked for. PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE search_events(bool *is_found, struct search *search, const struct fit *fit,
                             struct phema_error *err);

/* Begins the sentence: something happened before a group. */
void search_explain_event(struct search *search, size_t g, size_t suspect);

#endif
