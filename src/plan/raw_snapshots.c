// SPDX-License-Identifier: Apache-2.0
/* raw_snapshots.c - what the distances of raw parameters contradict, however they move: a snapshot of
 * another training, two trainings, two snapshots that were exchanged, a copy. A fit takes these for noise of
 * the steps. Of averages two trainings are found alone. */
#include <math.h>

#include "series_search.h"

#define LEAST_RAW ((size_t)4)
/* |x1 - x0|^2 + |x2 - x1|^2 is |x2 - x0|^2 for a walk, and twice that for noise around a place. */
#define MOST_AROUND 2.2
#define STRANGE     40.0
/* By so much faster than all other intervals, and without a relation to the others: |x1 - x0|^2 is
 * |x0|^2 + |x1|^2 where nothing relates them. Of parameters that begin near 0 and grow evenly it is 0.2
 * of that while the time doubles, and 0.4 while it trebles. */
#define JUMP      10.0
#define UNRELATED 0.6
#define RELATED   0.25
/* A straight line is drawn ahead by so much of the time that it was followed. */
#define MOST_AHEAD 3.0
/* An exchange explains an order that makes the path this much longer. */
#define LEAST_ORDERED ((size_t)6)
#define SHORTER       0.75
#define MOST_MOVED    ((size_t)10) /* snapshots that may have been exchanged */
/* The motion beside a copy, to what rounding makes of two equal snapshots. */
#define BEYOND_ROUNDING 100.0
#define LEAST_INTERVAL  0.3 /* of a copy to its original, to those beside it */

/* Snapshots of a series by time, one at each. */
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

/* |x1 - x0|^2 behind snapshot i, to what it is where nothing relates them. */
static double strangeness(const struct path *path, size_t i)
{
    return distance(path, i, i + 1) / sizes_of(path, i, i + 1);
}

static double interval_of(const struct path *path, size_t i)
{
    return time_of(path, i + 1) - time_of(path, i);
}

/* Whether snapshot i moved that much more than all that are related, whether these walk or go straight.
 *   is_long  out: the interval is over twice as long as all others */
static bool is_jump(const struct path *path, size_t i, bool *is_long)
{
    bool is_faster = true;
    *is_long = true;
    for (size_t k = 0; k + 1 < path->n; k++) {
        double ratio = interval_of(path, i) / interval_of(path, k);
        *is_long = *is_long && (k == i || ratio > 2);
        if (strangeness(path, k) <= RELATED)
            is_faster = is_faster && distance(path, i, i + 1) > JUMP * distance(path, k, k + 1) *
                                                                    fmax(ratio, ratio * ratio);
    }
    return is_faster;
}

/* The distance behind snapshot i that a straight line through two earlier ones reaches. The least of several
 * counts, since trainings slow down; two of a short time tell nothing. */
static double reach(const struct path *path, size_t i)
{
    double least = HUGE_VAL;
    for (size_t k = 0; k < i; k++) {
        double ratio = interval_of(path, i) / (time_of(path, i) - time_of(path, k));
        if (ratio <= MOST_AHEAD)
            least = fmin(least, distance(path, k, i) * ratio * ratio);
    }
    return least;
}

/* Whether nothing relates snapshot i to the next one. */
static bool is_break(const struct path *path, size_t i, bool are_raw)
{
    bool may_be_initial = i == 0 && !(2 * time_of(path, 0) >= interval_of(path, 0));
    if (may_be_initial || !(strangeness(path, i) > UNRELATED))
        return false;
    bool is_long = false, is_faster = is_jump(path, i, &is_long);
    return (is_faster || (are_raw && is_long && distance(path, i, i + 1) > reach(path, i)));
}

/* Whether most neighbours are related, and no two are so by halves. */
static bool are_mostly_related(const struct path *path)
{
    size_t n_related = 0;
    for (size_t i = 0; i + 1 < path->n; i++) {
        if (strangeness(path, i) > RELATED && strangeness(path, i) <= UNRELATED)
            return false;
        n_related += strangeness(path, i) <= RELATED;
    }
    return 3 * n_related >= 2 * (path->n - 1);
}

/* Snapshots that have nothing in common with those before them, while all others have. */
static bool explain_break(const struct path *path, bool are_raw)
{
    size_t i = 0;
    if (!are_mostly_related(path))
        return false;
    while (i + 1 < path->n && !is_break(path, i, are_raw))
        i++;
    if (i + 1 == path->n)
        return false;
    bool is_last = i + 2 == path->n, is_end = i == 0 || is_last;
    size_t odd = i == 0 ? 0 : i + 1, other = i == 0 ? 1 : i;
    struct phema_strbuf *text = search_explain(path->search, path->at[odd]);
    if (is_end)
        phema_strbuf_printf(text,
                            "'%s' has nothing in common with '%s', as the others have with their "
                            "neighbours: of another training, or damaged",
                            label_of(path, odd), label_of(path, other));
    else
        phema_strbuf_printf(text,
                            "'%s' has nothing in common with '%s' before it, as the others have "
                            "with their neighbours: two trainings",
                            label_of(path, odd), label_of(path, other));
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

/* Those of raw parameters, or of any profile, one at each time; n = 0: there are several. */
static void list_path(struct path *path, bool is_raw)
{
    const struct phema_snapshot *snapshots = path->search->snapshots;
    path->n = 0;
    for (size_t k = 0; k < path->search->series->n && path->at; k++) {
        bool is_later = !path->n || snapshots[k].time > time_of(path, path->n - 1);
        if (!is_raw && !is_later) {
            path->n = 0;
            return;
        }
        if (is_later && (!is_raw || snapshots[k].profile.shape == PHEMA_SHAPE_RAW))
            path->at[path->n++] = k;
    }
}

static struct path open_path(struct search *search)
{
    struct path path = {.search = search,
                        .at =
                            phema_arena_array(&search->memory, search->series->n, sizeof(size_t))};
    list_path(&path, true);
    return path;
}

bool search_raw(struct search *search)
{
    struct path path = open_path(search);
    if (path.n == 0) {
        list_path(&path, false);
        return path.n >= LEAST_RAW && explain_break(&path, false);
    }
    return path.n >= LEAST_RAW && (explain_copy(&path) || explain_between(&path) ||
                                   explain_break(&path, true) || explain_exchange(&path));
}

bool search_newest_copy(struct search *search)
{
    struct path path = open_path(search);
    size_t n = path.n;
    if (n < LEAST_RAW || distance(&path, n - 2, n - 1) > 0 || !moves(&path, n - 3))
        return false;
    phema_strbuf_printf(search_explain(search, path.at[n - 1]),
                        "'%s' and '%s' hold the same numbers: one is a copy of the other, or the "
                        "training stood still",
                        label_of(&path, n - 2), label_of(&path, n - 1));
    return true;
}
