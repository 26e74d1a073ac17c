/* search_ahead.h - the pass that follows is made while a command runs. */
#ifndef OPS_SEARCH_AHEAD_H
#define OPS_SEARCH_AHEAD_H

#include "search_candidates.h"

/* Starts with the pass that will follow this one: if it does not depend on the scores that are
 * still missing, or one score is missing and the pass ends before the command, as far as earlier
 * ones tell. It must not be called while another pass is ahead. */
void search_ahead_begin(struct searching *searching, const struct search_pass *pass);

/* Waits until it is made. Between the two calls the journal and the arena are in use. */
void search_ahead_wait(struct searching *searching);

/* Whether the candidate is made ahead: no earlier run has left it. */
bool search_ahead_has(const struct searching *searching, struct phema_search_point at);

/* Hands over the pass if it is of these points. Otherwise it is dropped, *is_made false.
 * Failures are those of search_pass_make. */
PHEMA_FALLIBLE search_ahead_take(bool *is_made, struct searching *searching,
                                 struct search_pass *pass, const struct phema_search_point *points,
                                 size_t n, struct phema_error *err);

void search_ahead_drop(struct searching *searching);

#endif
