// SPDX-License-Identifier: Apache-2.0
/* search_comparison.c - how far the average of the best candidate is from that of its neighbours, beside
 * their predicted errors. */
#include <math.h>

#include "search_candidates.h"

/* The best candidate, then those that it is compared with. */
static size_t list_neighbours(struct phema_search_point points[3],
                              const struct phema_search_best *best)
{
    const struct phema_search_score *width = best->width;
    const double beside[] = {best->below, best->above};
    size_t n = 0;
    if (!width)
        return 0;
    points[n++] = width->at;
    if (best->score != width && best->score->at.time == width->at.time)
        points[n++] = best->score->at;
    for (size_t i = 0; i < ARRAY_LEN(beside) && best->score == width; i++)
        if (!isnan(beside[i]))
            points[n++] = (struct phema_search_point){beside[i], width->at.time};
    return n;
}

static enum phema_status compare(struct comparison *compared, const struct phema_plan *plan,
                                 struct phema_error *err)
{
    const struct phema_target *targets = plan->targets;
    (void)phema_target_write_warning(&compared->warning, plan, &targets[0]);
    for (size_t j = 1; j < plan->m; j++) {
        double distance = 0;
        enum phema_status status = phema_plan_distance(&distance, plan, 0, j, err);
        if (status)
            return status;
        if (!(distance < compared->distance || isnan(compared->distance)))
            continue;
        compared->at = search_point_of(&targets[0]);
        compared->other = search_point_of(&targets[j]);
        compared->distance = distance;
        compared->predicted_error =
            fmax(targets[0].solution.predicted.total, targets[j].solution.predicted.total);
    }
    return PHEMA_OK;
}

PHEMA_FALLIBLE search_compare(struct searching *searching, struct phema_error *err)
{
    struct phema_search_point points[3];
    struct phema_search_best best;
    searching->compared.distance = PHEMA_UNKNOWN;
    if (!phema_journal_find_best(&best, searching->journal, &searching->search))
        return PHEMA_OK;
    size_t n = list_neighbours(points, &best);
    if (n < 2)
        return PHEMA_OK;
    struct search_pass pass;
    enum phema_status status = search_pass_plan(searching, &pass, points, n, err);
    if (!status)
        status = compare(&searching->compared, pass.prepared.plan, err);
    phema_prepared_clear(&pass.prepared);
    return status;
}
