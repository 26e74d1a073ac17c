// SPDX-License-Identifier: Apache-2.0
/* gram_coherent.c - sums over intervals for velocities whose correlation falls with the ratio of
 * times. Like those of a walk, they are carried from one interval to the next. */
#include "gram_coherent.h"

struct phema_coherent {
    const struct phema_profile_set *set;
    const struct phema_motion *motion;
    const struct phema_family_pairs *pairs;
    phema_quad amplitude; /* c T */
    phema_quad middle;    /* of the interval of the motion that was reached */
    /* The path is the integral of the velocity so far. In a faded path each velocity counts by the
     * weight F of a family. Expected products of the present velocity: */
    phema_quad with_path;
    phema_quad *with_faded; /* [n_families] */
    /* expected products of paths: */
    phema_quad path;   /* its square */
    phema_quad *faded; /* [n_families] of the faded one and the path */
    phema_quad *both;  /* [pairs->n] of two faded ones */
    /* the path that a velocity of 1 at the time 1 is expected to lead to: */
    phema_quad onward;
    phema_quad *onward_faded; /* [n_families] */
    phema_quad *at_end;       /* [n + n_parts] middle times with_path, of the member at its end */
    phema_quad *onward_of;    /* [n + n_parts] onward, of the member at its end */
};

struct phema_coherent *phema_coherent_begin(const struct phema_profile_set *set,
                                            const struct phema_motion *motion,
                                            const struct phema_family_pairs *pairs,
                                            struct phema_arena *memory)
{
    size_t n_families = set->n_families, n_members = set->n + set->n_parts;
    struct phema_coherent *coherent = phema_arena_alloc(memory, sizeof(*coherent));
    if (!coherent)
        return NULL;
    coherent->set = set;
    coherent->motion = motion;
    coherent->pairs = pairs;
    coherent->amplitude =
        (phema_quad)motion->coherence * (phema_quad)motion->ends[motion->n_intervals - 1];
    coherent->with_faded = phema_arena_array(memory, n_families, sizeof(phema_quad));
    coherent->faded = phema_arena_array(memory, n_families, sizeof(phema_quad));
    coherent->both = phema_arena_array(memory, pairs->n, sizeof(phema_quad));
    coherent->onward_faded = phema_arena_array(memory, n_families, sizeof(phema_quad));
    coherent->at_end = phema_arena_array(memory, n_members, sizeof(phema_quad));
    coherent->onward_of = phema_arena_array(memory, n_members, sizeof(phema_quad));
    bool has_memory = coherent->with_faded && coherent->faded && coherent->both &&
                      coherent->onward_faded && coherent->at_end && coherent->onward_of;
    return has_memory ? coherent : NULL;
}

/* The velocity's standard deviation is sqrt(c T v) / t, its correlation from one interval of the
 * motion to another the ratio of their middles. */
void phema_coherent_add(struct phema_coherent *coherent, const struct phema_interval *interval,
                        size_t k)
{
    const struct phema_motion *motion = coherent->motion;
    phema_quad begin = k ? (phema_quad)motion->ends[k - 1] : 0;
    phema_quad middle = (begin + (phema_quad)motion->ends[k]) / 2;
    phema_quad wander = (phema_quad)motion->wander[k];
    phema_quad speed = phema_quad_sqrt(coherent->amplitude * wander) / middle;
    phema_quad kept = coherent->middle / middle; /* 0 at first */
    phema_quad step = speed * interval->length, before = kept * coherent->with_path;
    const struct phema_family_pairs *pairs = coherent->pairs;
    for (size_t i = 0; i < pairs->n; i++) {
        size_t a = pairs->items[i].a, b = pairs->items[i].b;
        if (!interval->is_active[a] || !interval->is_active[b])
            continue;
        phema_quad a_step = speed * interval->singles[a], b_step = speed * interval->singles[b];
        phema_quad a_before = kept * interval->decays[a] * coherent->with_faded[a];
        phema_quad b_before = kept * interval->decays[b] * coherent->with_faded[b];
        coherent->both[i] = interval->decays[a] * interval->decays[b] * coherent->both[i] +
                            a_step * b_before + b_step * a_before + a_step * b_step;
    }
    for (size_t a = 0; a < coherent->set->n_families; a++) {
        if (!interval->is_active[a])
            continue;
        phema_quad decay = interval->decays[a], a_step = speed * interval->singles[a];
        phema_quad a_before = kept * decay * coherent->with_faded[a];
        coherent->faded[a] =
            decay * coherent->faded[a] + a_step * (before + step) + step * a_before;
        coherent->with_faded[a] = a_before + a_step;
        coherent->onward_faded[a] = decay * coherent->onward_faded[a] + a_step / middle;
    }
    coherent->path += step * (2 * before + step);
    coherent->with_path = before + step;
    coherent->onward += step / middle;
    coherent->middle = middle;
}

void phema_coherent_read(struct phema_coherent *coherent, size_t i)
{
    size_t family = coherent->set->members[i].family;
    coherent->at_end[i] = coherent->middle * (coherent->with_path - coherent->with_faded[family]);
    coherent->onward_of[i] = coherent->onward - coherent->onward_faded[family];
}

void phema_coherent_line(const struct phema_coherent *coherent, size_t i, size_t family,
                         phema_quad *begun, phema_quad *lost)
{
    size_t own = coherent->set->members[i].family;
    size_t pair = coherent->pairs->at[own * coherent->pairs->n_families + family];
    phema_quad at_end = coherent->at_end[i];
    *begun += coherent->path - coherent->faded[own] - at_end * coherent->onward;
    *lost +=
        coherent->faded[family] - coherent->both[pair] - at_end * coherent->onward_faded[family];
}

void phema_coherent_finish(const struct phema_coherent *coherent, struct phema_products *products)
{
    const struct phema_profile_set *set = coherent->set;
    size_t n_members = set->n + set->n_parts;
    for (size_t at = 0; at < n_members; at++) {
        size_t i = set->by_time[at];
        for (size_t later = at; later < n_members; later++) {
            size_t j = set->by_time[later];
            if (!phema_product_is_wanted(products, set, i, j))
                continue;
            const phema_quad product[PHEMA_N_GRAMS] = {
                [PHEMA_GRAM_MOTION] = coherent->at_end[i] * coherent->onward_of[j]};
            phema_product_add(products, set, i, j, product);
        }
    }
}
