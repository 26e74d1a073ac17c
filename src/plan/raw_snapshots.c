// SPDX-License-Identifier: Apache-2.0
/* raw_snapshots.c - what the distances of raw parameters contradict, however they move: a snapshot of
 * another training, two that were exchanged, a copy. A fit takes these for noise of the steps. */
#include <math.h>

#include "series_search.h"

#define LEAST_RAW ((size_t)4)
/* |x1 - x0|^2 + |x2 - x1|^2 is |x2 - x0|^2 for a walk, and twice that for noise around a place. */
#define MOST_AROUND 2.2
#define STRANGE     40.0
/* By so much faster than all other intervals, and without a relation to the others: |x1 - x0|^2 is
 * |x0|^2 + |x1|^2 where nothing relates them. */
#define JUMP      30.0
#define UNRELATED 0.5
#define RELATED   0.1
/* An exchange explains an order that makes the path this much longer. */
#define LEAST_ORDERED ((size_t)6)
#define SHORTER       0.75
#define MOST_MOVED    ((size_t)10) /* snapshots that may have been exchanged */
/* The motion beside a copy, to what rounding makes of two equal snapshots. */
#define BEYOND_ROUNDING 100.0
#define LEAST_INTERVAL  0.3 /* of a copy to its original, to those beside it */

/* The raw snapshots of a series by time. */
struct path {
    struct search *search;
    size_t *at; /* [n] of the series */
    size_t n;
};

static double distance(const struct path *path, size_t i, size_t j)
{
    return phema_sample_distance(path->search->sample, path->at[i], path->at[j]);
}

static double time_of(const struct path *path, size_t i)
{
    return path->search->snapshots[path->at[i]].time;
}

static const char *label_of(const struct path *path, size_t i)
{
    return path->search->snapshots[path->at[i]].label;
}

/* The sum of the squares of the rms sizes. */
static double sizes_of(const struct path *path, size_t i, size_t j)
{
    const double *sizes = path->search->sample->sizes;
    double a = sizes[path->at[i]], b = sizes[path->at[j]];
    return a * a + b * b;
}

static double rounding_of(const struct path *path, size_t i)
{
    double rounding = path->search->sample->rounding[path->at[i]];
    return rounding * rounding;
}

/* 1 of a walk; of noise around a place 2. */
static double around(const struct path *path, size_t i)
{
    double between = distance(path, i - 1, i + 1) + rounding_of(path, i);
    return (distance(path, i - 1, i) + distance(path, i, i + 1)) / between;
}

/* ---- A copy ---- */

static bool moves(const struct path *path, size_t i)
{
    return distance(path, i, i + 1) > BEYOND_ROUNDING * rounding_of(path, i);
}

/* Parameters do not stand still and move again. */
static bool explain_copy(const struct path *path)
{
    for (size_t i = 1; i + 2 < path->n; i++) {
        double interval = time_of(path, i + 1) - time_of(path, i);
        double others = fmax(time_of(path, i) - time_of(path, i - 1),
                             time_of(path, i + 2) - time_of(path, i + 1));
        if (distance(path, i, i + 1) > 0 || !(interval >= LEAST_INTERVAL * others) ||
            !moves(path, i - 1) || !moves(path, i + 1))
            continue;
        phema_strbuf_printf(search_explain(path->search, path->at[i + 1]),
                            "'%s' and '%s' hold the same numbers, so that one is a copy of the "
                            "other",
                            label_of(path, i), label_of(path, i + 1));
        return true;
    }
    return false;
}

/* ---- Another training ---- */

static bool explain_between(const struct path *path)
{
    for (size_t i = 1; i + 1 < path->n; i++) {
        double ratio = around(path, i);
        if (!(ratio > STRANGE))
            continue;
        phema_strbuf_printf(search_explain(path->search, path->at[i]),
                            "'%s' is %.2g times as far from its neighbours as these are from each "
                            "other: of another training, or damaged",
                            label_of(path, i), sqrt(ratio / 2));
        return true;
    }
    return false;
}

/* The first or the last one. step: towards the others */
static bool explain_end(const struct path *path, size_t end, int step)
{
    size_t next = (size_t)((ptrdiff_t)end + step);
    double interval = fabs(time_of(path, next) - time_of(path, end)), fastest = 0;
    if (step > 0 && !(2 * time_of(path, end) >= interval))
        return false; /* parameters that are initial, nearly */
    bool are_related = true;
    for (size_t i = step > 0 ? 1 : 0; i + 1 < path->n - (step < 0); i++) {
        double moved = distance(path, i, i + 1);
        fastest = fmax(fastest, moved / (time_of(path, i + 1) - time_of(path, i)));
        are_related = are_related && moved < RELATED * sizes_of(path, i, i + 1);
    }
    double moved = distance(path, end, next);
    if (!are_related || !(moved > UNRELATED * sizes_of(path, end, next)) ||
        !(moved / interval > JUMP * fastest))
        return false;
    phema_strbuf_printf(search_explain(path->search, path->at[end]),
                        "'%s' has nothing in common with '%s', as the others have with their "
                        "neighbours: of another training, or damaged",
                        label_of(path, end), label_of(path, next));
    return true;
}

/* ---- An exchange ---- */

static double length_of(const struct path *path)
{
    double length = 0;
    for (size_t i = 0; i + 1 < path->n; i++)
        length += distance(path, i, i + 1);
    return length;
}

static bool is_ordered(const struct path *path)
{
    for (size_t i = 1; i + 1 < path->n; i++)
        if (around(path, i) > MOST_AROUND)
            return false;
    return true;
}

/* Those that may stand in a wrong place: all where the path turns back, and the ends. 0: none turns, or
 * too many do. */
static size_t list_moved(size_t moved[MOST_MOVED], const struct path *path)
{
    size_t n = 1, n_turns = 0;
    moved[0] = 0;
    for (size_t i = 1; i + 1 < path->n; i++) {
        if (!(around(path, i) > MOST_AROUND))
            continue;
        if (++n_turns + 2 > MOST_MOVED)
            return 0;
        moved[n++] = i;
    }
    moved[n++] = path->n - 1;
    return n_turns ? n : 0;
}

static void exchange(const struct path *path, size_t i, size_t j)
{
    size_t swapped = path->at[i];
    path->at[i] = path->at[j];
    path->at[j] = swapped;
}

static bool explain_exchange(const struct path *path)
{
    size_t moved[MOST_MOVED], best[2] = {0, 0};
    size_t n = path->n >= LEAST_ORDERED ? list_moved(moved, path) : 0;
    double given = n ? length_of(path) : 0, shortest = SHORTER * given;
    for (size_t a = 0; a < n; a++)
        for (size_t b = a + 1; b < n; b++) {
            exchange(path, moved[a], moved[b]);
            double length = length_of(path);
            if (length < shortest && is_ordered(path)) {
                shortest = length;
                best[0] = moved[a];
                best[1] = moved[b];
            }
            exchange(path, moved[a], moved[b]);
        }
    if (!best[1])
        return false;
    phema_strbuf_printf(search_explain(path->search, path->at[best[0]]),
                        "they would fit if '%s' and '%s' were exchanged", label_of(path, best[0]),
                        label_of(path, best[1]));
    return true;
}

bool search_raw(struct search *search)
{
    struct path path = {.search = search,
                        .at =
                            phema_arena_array(&search->memory, search->series->n, sizeof(size_t))};
    for (size_t k = 0; k < search->series->n && path.at; k++)
        if (search->snapshots[k].profile.shape == PHEMA_SHAPE_RAW &&
            (!path.n || search->snapshots[k].time > search->snapshots[path.at[path.n - 1]].time))
            path.at[path.n++] = k;
    return path.n >= LEAST_RAW &&
           (explain_copy(&path) || explain_between(&path) || explain_end(&path, 0, 1) ||
            explain_end(&path, path.n - 1, -1) || explain_exchange(&path));
}
