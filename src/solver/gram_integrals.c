// SPDX-License-Identifier: Apache-2.0
/* gram_integrals.c - inner products of profiles of any shape, with any motion. Sums over the
 * intervals of a set are carried forward; the products of a profile follow from those at its end. */
#include "gram_closed_form.h"
#include "intervals.h"

/* ---- Coherent drift ---- */

/* Velocities keep their direction for as long as the training has lasted (docs/numerics.md, N33 to
 * N35): their correlation falls with the ratio of times. Each is constant within an interval of the
 * motion. Like the sums of a walk, these are carried from one interval to the next. */

struct phema_coherent {
    const struct phema_profile_set *set;
    const struct phema_motion *motion;
    const struct phema_family_pairs *pairs;
    phema_quad middle; /* of the interval of the motion that was reached */
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

/* Set, motion and pairs are borrowed; memory is the arena's, which says whether it failed. */
static struct phema_coherent *coherent_begin(const struct phema_profile_set *set,
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
    coherent->with_faded = phema_arena_array(memory, n_families, sizeof(phema_quad));
    coherent->faded = phema_arena_array(memory, n_families, sizeof(phema_quad));
    coherent->both = phema_arena_array(memory, pairs->n, sizeof(phema_quad));
    coherent->onward_faded = phema_arena_array(memory, n_families, sizeof(phema_quad));
    coherent->at_end = phema_arena_array(memory, n_members, sizeof(phema_quad));
    coherent->onward_of = phema_arena_array(memory, n_members, sizeof(phema_quad));
    return coherent;
}

/* The correlation of the velocity from one interval of the motion to another is the ratio of their
 * middles. */
/* Adds the next interval of the set, which lies in interval k of the motion. */
static void coherent_add(struct phema_coherent *coherent, const struct phema_interval *interval,
                         size_t k)
{
    const struct phema_motion *motion = coherent->motion;
    phema_quad begin = k ? (phema_quad)motion->ends[k - 1] : 0;
    phema_quad middle = (begin + (phema_quad)motion->ends[k]) / 2;
    phema_quad speed = (phema_quad)motion->speed[k];
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

/* Keeps what coherent_finish needs of member i, which ends with the interval added last. */
static void coherent_read(struct phema_coherent *coherent, size_t i)
{
    size_t family = coherent->set->members[i].family;
    coherent->at_end[i] = coherent->middle * (coherent->with_path - coherent->with_faded[family]);
    coherent->onward_of[i] = coherent->onward - coherent->onward_faded[family];
}

/* What is added to the line of that member with a family: begun - lost F(i's end; b's end). */
static void coherent_line(const struct phema_coherent *coherent, size_t i, size_t family,
                          phema_quad *begun, phema_quad *lost)
{
    size_t own = coherent->set->members[i].family;
    size_t pair = coherent->pairs->at[own * coherent->pairs->n_families + family];
    phema_quad at_end = coherent->at_end[i];
    *begun += coherent->path - coherent->faded[own] - at_end * coherent->onward;
    *lost +=
        coherent->faded[family] - coherent->both[pair] - at_end * coherent->onward_faded[family];
}

/* Several parts of one target are added to one product. */
static unsigned threads_to_store(const struct phema_profile_set *set)
{
    return set->n_parts == set->m ? phema_threads_for(set->n) : 1;
}

struct finishing {
    const struct phema_coherent *coherent;
    struct phema_products *products;
};

/* Of members [block ROWS, (block + 1) ROWS) with all later ones. */
#define ROWS ((size_t)16)

static void finish_rows(void *context, size_t block)
{
    const struct finishing *finishing = context;
    const struct phema_coherent *coherent = finishing->coherent;
    struct phema_products *products = finishing->products;
    const struct phema_profile_set *set = coherent->set;
    size_t n_members = set->n + set->n_parts;
    for (size_t at = block * ROWS; at < n_members && at < (block + 1) * ROWS; at++) {
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

/* Adds to the products what is not in lines: from the end of the earlier member on, its velocity
 * carries on until the later one ends. All members have been read. */
static void coherent_finish(const struct phema_coherent *coherent, struct phema_products *products)
{
    const struct phema_profile_set *set = coherent->set;
    struct finishing finishing = {coherent, products};
    phema_parallel((set->n + set->n_parts + ROWS - 1) / ROWS, threads_to_store(set), finish_rows,
                   &finishing);
}

/* ---- Profiles of any shape ---- */

struct sums { /* up to the current time */
    const struct phema_profile_set *set;
    const struct phema_motion *motion;
    bool has_white, has_walk; /* these are wanted, else their sums stay 0 */
    struct phema_family_pairs pairs;
    phema_quad *densities;           /* [pairs.n] integral of p_a p_b */
    phema_quad *both;                /* [pairs.n] integral of F_a F_b */
    phema_quad *moved;               /* [pairs.n] integral of jitter p_a p_b + wander F_a F_b */
    phema_quad *singles;             /* [n_families] integral of F */
    phema_quad *moved_single;        /* [n_families] integral of wander F */
    phema_quad wandered;             /* integral of wander */
    struct phema_coherent *coherent; /* or NULL: no coherent drift */
    size_t motion_at;                /* interval of the motion */
    size_t n_read;                   /* members, by time */
    size_t n_stored;                 /* of them all products of their lines */
    size_t n_batch;                  /* members whose lines are kept */
    struct phema_line *lines;        /* [n_batch x n_families] of those that are read, not stored */
    struct phema_arena memory;       /* of all arrays */
};

/* So many lines are kept before all threads store their products: 3 MB. */
#define MOST_LINES ((size_t)8192)

/* Products are wanted where one family is the snapshots', or both are of one target. */
static void want_pairs(struct phema_family_pairs *pairs, const struct phema_profile_set *set)
{
    for (size_t a = 0; a < set->n_families; a++)
        for (size_t b = 0; b <= a; b++)
            if (a == b || set->families[a].is_snapshots || set->families[b].is_snapshots)
                phema_family_pairs_want(pairs, a, b);
    for (size_t i = set->n; i < set->n + set->n_parts; i++)
        for (size_t j = i; j > set->n && set->owners[j - 1] == set->owners[i]; j--)
            phema_family_pairs_want(pairs, set->members[i].family, set->members[j - 1].family);
}

static bool alloc_sums(struct sums *sums, const struct phema_profile_set *set)
{
    size_t n_families = set->n_families, n_members = set->n + set->n_parts;
    struct phema_arena *memory = &sums->memory;
    if (!phema_family_pairs_begin(&sums->pairs, n_families, memory))
        return false;
    want_pairs(&sums->pairs, set);
    sums->densities = phema_arena_array(memory, sums->pairs.n, sizeof(phema_quad));
    sums->both = phema_arena_array(memory, sums->pairs.n, sizeof(phema_quad));
    sums->moved = phema_arena_array(memory, sums->pairs.n, sizeof(phema_quad));
    sums->singles = phema_arena_array(memory, n_families, sizeof(phema_quad));
    sums->moved_single = phema_arena_array(memory, n_families, sizeof(phema_quad));
    sums->n_batch =
        MOST_LINES / n_families + 1 < n_members ? MOST_LINES / n_families + 1 : n_members;
    sums->lines = phema_arena_array(memory, sums->n_batch * n_families, sizeof(*sums->lines));
    if (memory->is_failed || !phema_family_pairs_list(&sums->pairs, memory))
        return false;
    if (sums->motion && sums->motion->speed)
        sums->coherent = coherent_begin(sums->set, sums->motion, &sums->pairs, memory);
    return !memory->is_failed;
}

/* The interval of the motion at a time; after the last one its amplitudes continue. */
static size_t find_motion(const struct phema_motion *motion, size_t from, phema_quad t)
{
    size_t k = from;
    while (k + 1 < motion->n_intervals && (phema_quad)motion->ends[k] < t)
        k++;
    return k;
}

static void add_interval(struct sums *sums, const struct phema_interval *interval)
{
    const struct phema_motion *motion = sums->motion;
    phema_quad wander = 0, jitter = 0;
    if (motion) { /* an interval of the set lies within one of the motion */
        sums->motion_at = find_motion(motion, sums->motion_at, sums->set->times[interval->time]);
        wander = (phema_quad)motion->wander[sums->motion_at];
        jitter = (phema_quad)motion->jitter[sums->motion_at];
    }
    sums->wandered += wander * interval->length;
    if (sums->coherent)
        coherent_add(sums->coherent, interval, sums->motion_at);
    for (size_t k = 0; k < sums->set->n_families; k++) {
        if (!interval->is_active[k])
            continue;
        if (sums->has_walk)
            sums->singles[k] = interval->decays[k] * sums->singles[k] + interval->singles[k];
        if (motion)
            sums->moved_single[k] =
                interval->decays[k] * sums->moved_single[k] + wander * interval->singles[k];
    }
    for (size_t i = 0; i < sums->pairs.n; i++) {
        const struct phema_family_pair *pair = &sums->pairs.items[i];
        if (!interval->is_active[pair->a] || !interval->is_active[pair->b])
            continue;
        phema_quad decay = interval->decays[pair->a] * interval->decays[pair->b];
        if (sums->has_white)
            sums->densities[i] = decay * sums->densities[i] + interval->densities[i];
        if (sums->has_walk)
            sums->both[i] = decay * sums->both[i] + interval->both[i];
        if (motion)
            sums->moved[i] = decay * sums->moved[i] + wander * interval->both[i];
        if (jitter > 0)
            sums->moved[i] += jitter * interval->densities[i];
    }
}

/* <Q_a, Q_b> = integral (1 - F_a)(1 - F_b) up to the end of a; b ends there or later. */
static void find_line(struct phema_line *line, const struct sums *sums,
                      const struct phema_products *products, size_t i, size_t family)
{
    const struct phema_profile_set *set = sums->set;
    const struct phema_member *a = &set->members[i];
    size_t pair = sums->pairs.at[a->family * set->n_families + family];
    *line = (struct phema_line){
        .begun = {[PHEMA_GRAM_WALK] = set->times[a->time] - sums->singles[a->family],
                  [PHEMA_GRAM_MOTION] = sums->wandered - sums->moved_single[a->family]},
        .lost = {[PHEMA_GRAM_WHITE] = -sums->densities[pair],
                 [PHEMA_GRAM_WALK] = sums->singles[family] - sums->both[pair],
                 [PHEMA_GRAM_MOTION] = sums->moved_single[family] - sums->moved[pair]}};
    if (sums->coherent)
        coherent_line(sums->coherent, i, family, &line->begun[PHEMA_GRAM_MOTION],
                      &line->lost[PHEMA_GRAM_MOTION]);
    phema_line_scale(line, products, set, a, family);
}

/* Step by step a bin may be open where a ends. */
static void store_open_pair(struct phema_products *products, const struct sums *sums,
                            const struct phema_intervals *intervals, size_t i, size_t j,
                            const struct phema_line *line)
{
    const struct phema_profile_set *set = sums->set;
    const struct phema_motion *motion = sums->motion;
    const struct phema_member *a = &set->members[i], *b = &set->members[j];
    phema_quad decay = phema_profile_set_decay(set, b->family, a->time, b->time);
    phema_quad open = phema_intervals_open_bin(intervals, a, b, decay);
    phema_quad product[PHEMA_N_GRAMS] = {[PHEMA_GRAM_WHITE] = open};
    if (products->with[PHEMA_GRAM_MOTION]) {
        size_t at = find_motion(motion, sums->motion_at, phema_intervals_bin_end(intervals));
        product[PHEMA_GRAM_MOTION] = open * (phema_quad)motion->jitter[at];
    }
    for (size_t g = 0; g < PHEMA_N_GRAMS; g++)
        if (products->with[g])
            product[g] += line->begun[g] - decay * line->lost[g];
    phema_product_add(products, set, i, j, product);
}

struct storing {
    struct phema_products *products;
    const struct sums *sums;
};

/* Stores the products of a kept member with all that end then or later. */
static void store_row(void *context, size_t row)
{
    const struct storing *storing = context;
    const struct sums *sums = storing->sums;
    const struct phema_profile_set *set = sums->set;
    const struct phema_line *lines = sums->lines + row * set->n_families;
    size_t at = sums->n_stored + row, i = set->by_time[at];
    for (size_t later = at; later < set->n + set->n_parts; later++) {
        size_t j = set->by_time[later];
        if (phema_product_is_wanted(storing->products, set, i, j))
            phema_line_store(storing->products, set, i, j, &lines[set->members[j].family]);
    }
}

static void store_lines(struct phema_products *products, struct sums *sums)
{
    struct storing storing = {products, sums};
    phema_parallel(sums->n_read - sums->n_stored, threads_to_store(sums->set), store_row, &storing);
    sums->n_stored = sums->n_read;
}

/* Stores those of the member that was read last, whose bin is open. */
static void store_open_row(struct phema_products *products, struct sums *sums,
                           const struct phema_intervals *intervals)
{
    const struct phema_profile_set *set = sums->set;
    size_t i = set->by_time[sums->n_stored];
    for (size_t later = sums->n_stored; later < set->n + set->n_parts; later++) {
        size_t j = set->by_time[later];
        if (phema_product_is_wanted(products, set, i, j))
            store_open_pair(products, sums, intervals, i, j, &sums->lines[set->members[j].family]);
    }
    sums->n_stored = sums->n_read;
}

/* Reads the next member, which ends with this interval, and keeps its lines with families that go on. */
static void read_member(struct phema_products *products, struct sums *sums,
                        const struct phema_intervals *intervals,
                        const struct phema_interval *interval)
{
    const struct phema_profile_set *set = sums->set;
    size_t i = set->by_time[sums->n_read], own = set->members[i].family;
    if (sums->coherent)
        coherent_read(sums->coherent, i);
    struct phema_line *lines = sums->lines + (sums->n_read - sums->n_stored) * set->n_families;
    for (size_t family = 0; family < set->n_families; family++)
        if (interval->is_active[family] && phema_family_pairs_has(&sums->pairs, own, family))
            find_line(&lines[family], sums, products, i, family);
    sums->n_read++;
    if (set->is_stepwise)
        store_open_row(products, sums, intervals);
    else if (sums->n_read == sums->n_stored + sums->n_batch)
        store_lines(products, sums);
}

static enum phema_status sum_intervals(struct phema_products *products, struct sums *sums,
                                       struct phema_error *err)
{
    const struct phema_profile_set *set = sums->set;
    size_t n_members = set->n + set->n_parts;
    struct phema_intervals *intervals = NULL;
    enum phema_status status = phema_intervals_open(&intervals, set, &sums->pairs, err);
    if (status)
        return status;
    for (const struct phema_interval *interval; (interval = phema_intervals_next(intervals));) {
        add_interval(sums, interval);
        while (sums->n_read < n_members &&
               set->members[set->by_time[sums->n_read]].time == interval->time)
            read_member(products, sums, intervals, interval);
    }
    phema_intervals_close(intervals);
    store_lines(products, sums);
    if (sums->coherent)
        coherent_finish(sums->coherent, products);
    return PHEMA_OK;
}

enum phema_status phema_products_integrate(struct phema_products *products,
                                           const struct phema_profile_set *set,
                                           const struct phema_motion *motion,
                                           struct phema_error *err)
{
    struct sums sums = {.set = set,
                        .motion = motion,
                        .has_white = products->with[PHEMA_GRAM_WHITE] != NULL,
                        .has_walk = products->with[PHEMA_GRAM_WALK] != NULL};
    enum phema_status status =
        alloc_sums(&sums, set) ? sum_intervals(products, &sums, err) : phema_fail_memory(err);
    phema_arena_clear(&sums.memory);
    return status;
}
