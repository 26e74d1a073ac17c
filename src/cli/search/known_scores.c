// SPDX-License-Identifier: Apache-2.0
/* known_scores.c - the scores in the journal that belong to this search. */
#include "search/search_run.h"

bool search_has(const struct searching *searching, const struct phema_search_score *score)
{
    const struct phema_search *search = &searching->search;
    for (size_t t = 0; t < search->n_times; t++)
        if (phema_search_counts(search, score, search->times[t]))
            return true;
    return false;
}

size_t search_count(const struct searching *searching)
{
    size_t n = 0, count = 0;
    const struct phema_search_score *scores = phema_journal_scores(searching->journal, &n);
    for (size_t i = 0; i < n; i++)
        count += search_has(searching, &scores[i]);
    return count;
}
