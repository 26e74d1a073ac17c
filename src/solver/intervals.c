// SPDX-License-Identifier: Apache-2.0
/* intervals.c - goes through the intervals of a set: in closed form where time is continuous, else
 * step by step. */
#include "intervals.h"

#include <stdlib.h>

struct phema_intervals {
    const struct phema_profile_set *set;
    const struct phema_family_pair *pairs;
    size_t n_pairs;
    size_t next_time;
    struct phema_interval piece;
    struct phema_steps *steps;  /* NULL: time is continuous */
    struct phema_local *locals; /* [n_families] */
    struct phema_quadrature rule;
};

static bool alloc_piece(struct phema_interval *piece, size_t n_families, size_t n_pairs)
{
    piece->is_active = calloc(n_families + 1, sizeof(*piece->is_active));
    piece->decays = calloc(n_families + 1, sizeof(*piece->decays));
    piece->singles = calloc(n_families + 1, sizeof(*piece->singles));
    piece->open = calloc(n_families + 1, sizeof(*piece->open));
    piece->both = calloc(n_pairs + 1, sizeof(*piece->both));
    piece->densities = calloc(n_pairs + 1, sizeof(*piece->densities));
    return piece->is_active && piece->decays && piece->singles && piece->open && piece->both &&
           piece->densities;
}

enum phema_status phema_intervals_open(struct phema_intervals **out,
                                       const struct phema_profile_set *set,
                                       const struct phema_family_pair *pairs, size_t n_pairs,
                                       struct phema_error *err)
{
    struct phema_intervals *pieces = calloc(1, sizeof(*pieces));
    if (!pieces)
        return phema_fail_memory(err);
    pieces->set = set;
    pieces->pairs = pairs;
    pieces->n_pairs = n_pairs;
    pieces->locals = calloc(set->n_families, sizeof(*pieces->locals));
    enum phema_status status = PHEMA_OK;
    if (!pieces->locals || !alloc_piece(&pieces->piece, set->n_families, n_pairs))
        status = phema_fail_memory(err);
    if (!status && set->is_stepwise)
        status = phema_steps_open(&pieces->steps, set, pairs, n_pairs, err);
    if (status) {
        phema_intervals_close(pieces);
        return status;
    }
    *out = pieces;
    return PHEMA_OK;
}

void phema_intervals_close(struct phema_intervals *pieces)
{
    if (!pieces)
        return;
    free(pieces->piece.is_active);
    free(pieces->piece.decays);
    free(pieces->piece.singles);
    free(pieces->piece.open);
    free(pieces->piece.both);
    free(pieces->piece.densities);
    free(pieces->locals);
    phema_steps_close(pieces->steps);
    free(pieces);
}

static void fill_continuous(struct phema_intervals *pieces, phema_quad l, phema_quad u)
{
    const struct phema_profile_set *set = pieces->set;
    struct phema_interval *piece = &pieces->piece;
    for (size_t k = 0; k < set->n_families; k++) {
        if (!piece->is_active[k])
            continue;
        pieces->locals[k] = phema_family_local(&set->families[k], l, u);
        piece->decays[k] = pieces->locals[k].decay;
        piece->singles[k] = phema_local_single(&pieces->locals[k], &pieces->rule);
    }
    for (size_t i = 0; i < pieces->n_pairs; i++) {
        const struct phema_family_pair *pair = &pieces->pairs[i];
        if (!piece->is_active[pair->a] || !piece->is_active[pair->b])
            continue;
        const struct phema_local *a = &pieces->locals[pair->a];
        const struct phema_local *b = &pieces->locals[pair->b];
        piece->both[i] = phema_local_both(a, b, &pieces->rule);
        piece->densities[i] = phema_local_densities(a, b, &pieces->rule);
    }
}

const struct phema_interval *phema_intervals_next(struct phema_intervals *pieces)
{
    const struct phema_profile_set *set = pieces->set;
    struct phema_interval *piece = &pieces->piece;
    if (pieces->next_time == set->n_times)
        return NULL;
    piece->time = pieces->next_time++;
    phema_quad l = piece->time ? set->times[piece->time - 1] : 0;
    phema_quad u = set->times[piece->time];
    piece->length = u - l;
    for (size_t k = 0; k < set->n_families; k++)
        piece->is_active[k] = piece->time <= set->families[k].last_time;
    if (pieces->steps)
        phema_steps_fill(pieces->steps, piece);
    else
        fill_continuous(pieces, l, u);
    return piece;
}

phema_quad phema_intervals_open_bin(const struct phema_intervals *pieces,
                                    const struct phema_member *a, const struct phema_member *b,
                                    phema_quad decay)
{
    if (!pieces->steps)
        return 0;
    return phema_steps_open_bin(pieces->steps, &pieces->piece, a, b, decay);
}

phema_quad phema_intervals_bin_end(const struct phema_intervals *pieces)
{
    return pieces->steps ? (phema_quad)phema_steps_bin_end(pieces->steps)
                         : pieces->set->times[pieces->piece.time];
}
