// SPDX-License-Identifier: Apache-2.0
/* pieces.c - goes through the intervals of a set: in closed form where time is continuous, else
 * step by step. */
#include "intervals.h"

#include <stdlib.h>

struct phema_pieces {
    const struct phema_set *set;
    const struct phema_kind_pair *pairs;
    size_t n_pairs;
    size_t next_time;
    struct phema_piece piece;
    struct phema_steps *steps;  /* NULL: time is continuous */
    struct phema_local *locals; /* [n_kinds] */
    struct phema_quadrature rule;
};

static bool alloc_piece(struct phema_piece *piece, size_t n_kinds, size_t n_pairs)
{
    piece->is_active = calloc(n_kinds + 1, sizeof(*piece->is_active));
    piece->decays = calloc(n_kinds + 1, sizeof(*piece->decays));
    piece->singles = calloc(n_kinds + 1, sizeof(*piece->singles));
    piece->open = calloc(n_kinds + 1, sizeof(*piece->open));
    piece->both = calloc(n_pairs + 1, sizeof(*piece->both));
    piece->densities = calloc(n_pairs + 1, sizeof(*piece->densities));
    return piece->is_active && piece->decays && piece->singles && piece->open && piece->both &&
           piece->densities;
}

enum phema_status phema_pieces_open(struct phema_pieces **out, const struct phema_set *set,
                                    const struct phema_kind_pair *pairs, size_t n_pairs,
                                    struct phema_error *err)
{
    struct phema_pieces *pieces = calloc(1, sizeof(*pieces));
    if (!pieces)
        return phema_fail_memory(err);
    pieces->set = set;
    pieces->pairs = pairs;
    pieces->n_pairs = n_pairs;
    pieces->locals = calloc(set->n_kinds, sizeof(*pieces->locals));
    enum phema_status status = PHEMA_OK;
    if (!pieces->locals || !alloc_piece(&pieces->piece, set->n_kinds, n_pairs))
        status = phema_fail_memory(err);
    if (!status && set->is_stepwise)
        status = phema_steps_open(&pieces->steps, set, pairs, n_pairs, err);
    if (status) {
        phema_pieces_close(pieces);
        return status;
    }
    *out = pieces;
    return PHEMA_OK;
}

void phema_pieces_close(struct phema_pieces *pieces)
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

static void fill_continuous(struct phema_pieces *pieces, phema_quad l, phema_quad u)
{
    const struct phema_set *set = pieces->set;
    struct phema_piece *piece = &pieces->piece;
    for (size_t k = 0; k < set->n_kinds; k++) {
        if (!piece->is_active[k])
            continue;
        pieces->locals[k] = phema_kind_local(&set->kinds[k], l, u);
        piece->decays[k] = pieces->locals[k].decay;
        piece->singles[k] = phema_local_single(&pieces->locals[k], &pieces->rule);
    }
    for (size_t i = 0; i < pieces->n_pairs; i++) {
        const struct phema_kind_pair *pair = &pieces->pairs[i];
        if (!piece->is_active[pair->a] || !piece->is_active[pair->b])
            continue;
        const struct phema_local *a = &pieces->locals[pair->a];
        const struct phema_local *b = &pieces->locals[pair->b];
        piece->both[i] = phema_local_both(a, b, &pieces->rule);
        piece->densities[i] = phema_local_densities(a, b, &pieces->rule);
    }
}

const struct phema_piece *phema_pieces_next(struct phema_pieces *pieces)
{
    const struct phema_set *set = pieces->set;
    struct phema_piece *piece = &pieces->piece;
    if (pieces->next_time == set->n_times)
        return NULL;
    piece->time = pieces->next_time++;
    phema_quad l = piece->time ? set->times[piece->time - 1] : 0;
    phema_quad u = set->times[piece->time];
    piece->length = u - l;
    for (size_t k = 0; k < set->n_kinds; k++)
        piece->is_active[k] = piece->time <= set->kinds[k].last_time;
    if (pieces->steps)
        phema_steps_fill(pieces->steps, piece);
    else
        fill_continuous(pieces, l, u);
    return piece;
}

phema_quad phema_pieces_open_bin(const struct phema_pieces *pieces, const struct phema_member *a,
                                 const struct phema_member *b, phema_quad decay)
{
    if (!pieces->steps)
        return 0;
    return phema_steps_open_bin(pieces->steps, &pieces->piece, a, b, decay);
}

phema_quad phema_pieces_bin_end(const struct phema_pieces *pieces)
{
    return pieces->steps ? (phema_quad)phema_steps_bin_end(pieces->steps)
                         : pieces->set->times[pieces->piece.time];
}
