// SPDX-License-Identifier: Apache-2.0
/* optimizer.c - chooses the next widths to score. The scores are its only state: equal scores give
 * equal points. */
#include "phema/search.h"

#include <math.h>

/* 2 - golden ratio: position of the next point in a gap, as a fraction from the best width on */
#define GOLDEN 0.3819660112501051

/* Rounding of sums and differences of decimals, and of rounded widths a tolerance apart. */
#define SLACK          1e-9
#define ROUNDING_SLACK (0.51 * PHEMA_SEARCH_RESOLUTION)

struct best {
    const struct phema_search_score *score, *below, *above; /* NULL: none */
};

static double rounded(double sigma_rel)
{
    double steps = floor(sigma_rel / PHEMA_SEARCH_RESOLUTION + 0.5);
    return steps / (1 / PHEMA_SEARCH_RESOLUTION); /* the double nearest to that decimal */
}

void phema_search_grid(double *out, size_t n, double first, double last)
{
    for (size_t i = 0; i < n; i++)
        out[i] = rounded(first + (last - first) * (double)i / (double)(n - 1));
    out[0] = first;
    out[n - 1] = last;
}

static double cost(const struct phema_search *search, double score)
{
    if (!isfinite(score))
        return HUGE_VAL;
    return search->maximizes ? -score : score;
}

bool phema_search_point_equals(struct phema_search_point a, struct phema_search_point b)
{
    return a.sigma_rel == b.sigma_rel && a.time == b.time;
}

/* True for a point of this time within the range. */
static bool counts(const struct phema_search *search, struct phema_search_point point, double time)
{
    return point.time == time && point.sigma_rel >= search->widths[0] - SLACK &&
           point.sigma_rel <= search->widths[search->n_widths - 1] + SLACK;
}

bool phema_search_includes(const struct phema_search *search, struct phema_search_point point)
{
    for (size_t t = 0; t < search->n_times; t++)
        if (counts(search, point, search->times[t]))
            return true;
    return false;
}

/* The best width at a time, the narrowest of equal ones, and its neighbours. */
static struct best find_best(const struct phema_search *search,
                             const struct phema_search_score *scores, size_t n, double time)
{
    struct best best = {0};
    for (size_t i = 0; i < n; i++) {
        const struct phema_search_score *score = &scores[i];
        if (!counts(search, score->at, time) || !isfinite(score->score))
            continue;
        double here = cost(search, score->score);
        double there = best.score ? cost(search, best.score->score) : HUGE_VAL;
        if (here < there || (here == there && score->at.sigma_rel < best.score->at.sigma_rel))
            best.score = score;
    }
    for (size_t i = 0; i < n && best.score; i++) {
        const struct phema_search_score *score = &scores[i];
        double here = score->at.sigma_rel, at = best.score->at.sigma_rel;
        if (!counts(search, score->at, time))
            continue;
        if (here < at && (!best.below || here > best.below->at.sigma_rel))
            best.below = score;
        if (here > at && (!best.above || here < best.above->at.sigma_rel))
            best.above = score;
    }
    return best;
}

/* 0 at an end of the range. */
static double gap(const struct best *best, const struct phema_search_score *neighbour)
{
    return neighbour ? fabs(neighbour->at.sigma_rel - best->score->at.sigma_rel) : 0;
}

static bool is_settled(const struct phema_search *search, const struct best *best)
{
    double most = search->tolerance + ROUNDING_SLACK;
    return gap(best, best->below) <= most && gap(best, best->above) <= most;
}

/* Vertex of the parabola through the best width and its neighbours, and its value there. false:
 * there are fewer than three points, or no minimum. */
static bool find_vertex(double *at, double *value, const struct phema_search *search,
                        const struct best *best)
{
    if (!best->below || !best->above)
        return false;
    double x = best->score->at.sigma_rel, f = cost(search, best->score->score);
    double left = x - best->below->at.sigma_rel, right = best->above->at.sigma_rel - x;
    double up_left = cost(search, best->below->score) - f;
    double up_right = cost(search, best->above->score) - f;
    double bend = up_left * right + up_right * left;
    if (!isfinite(bend) || !(bend > 0))
        return false;
    double step = (up_left * right * right - up_right * left * left) / (2 * bend);
    double curvature = bend / (left * right * (left + right));
    *at = x + step;
    *value = f - curvature * step * step;
    return isfinite(*at) && isfinite(*value);
}

/* ---- Choosing points ---- */

struct chosen {
    struct phema_search_point *out;
    size_t n, most;
};

static bool is_near(struct phema_search_point a, struct phema_search_point b, double distance)
{
    return a.time == b.time && fabs(a.sigma_rel - b.sigma_rel) < distance;
}

/* Adds the point, unless a point that is scored or chosen is this near. */
static void choose(struct chosen *chosen, const struct phema_search_score *scores, size_t n,
                   struct phema_search_point point, double distance)
{
    bool is_free = chosen->n < chosen->most;
    for (size_t i = 0; i < n && is_free; i++)
        is_free = !is_near(scores[i].at, point, distance);
    for (size_t i = 0; i < chosen->n && is_free; i++)
        is_free = !is_near(chosen->out[i], point, distance);
    if (is_free)
        chosen->out[chosen->n++] = point;
}

/* Distance of the next point in a gap from the best width. Where the parabola confirms the best
 * width, the distance is the tolerance, and two more scores settle the search. Otherwise it is the
 * golden section of the gap, also where the parabola was wrong before and one side is closed and
 * the other open. */
static double step_into_gap(const struct phema_search *search, double width, bool is_confident)
{
    double at = is_confident ? search->tolerance : GOLDEN * width;
    return at <= search->tolerance ? fmin(search->tolerance, width / 2) : at;
}

static void refine(struct chosen *chosen, const struct phema_search *search,
                   const struct phema_search_score *scores, size_t n, const struct best *best)
{
    double x = best->score->at.sigma_rel, time = best->score->at.time;
    double most = search->tolerance + ROUNDING_SLACK, apart = search->tolerance / 4;
    double below = gap(best, best->below), above = gap(best, best->above);
    double vertex = x, value = 0;
    bool has_vertex = find_vertex(&vertex, &value, search, best);
    bool is_there = has_vertex && fabs(vertex - x) < search->tolerance;
    if (has_vertex && !is_there)
        choose(chosen, scores, n, (struct phema_search_point){rounded(vertex), time}, apart);
    bool is_confident = is_there && below > most && above > most;
    double sides[2] = {above >= below ? above : -below, above >= below ? -below : above};
    for (size_t i = 0; i < 2; i++) {
        double width = fabs(sides[i]);
        if (width <= most)
            continue;
        double at = x + copysign(step_into_gap(search, width, is_confident), sides[i]);
        choose(chosen, scores, n, (struct phema_search_point){rounded(at), time}, apart);
    }
}

/* The best width of the time whose best width has the best score, as measured or as predicted by the
 * parabola. */
static struct best choose_time(const struct phema_search *search,
                               const struct phema_search_score *scores, size_t n)
{
    struct best chosen = {0};
    double least = HUGE_VAL;
    for (size_t t = 0; t < search->n_times; t++) {
        struct best best = find_best(search, scores, n, search->times[t]);
        if (!best.score)
            continue;
        double predicted = cost(search, best.score->score), vertex = 0, value = 0;
        if (!is_settled(search, &best) && find_vertex(&vertex, &value, search, &best))
            predicted = fmin(predicted, value);
        if (predicted < least) {
            least = predicted;
            chosen = best;
        }
    }
    return chosen;
}

size_t phema_search_next(struct phema_search_point *out, size_t most,
                         const struct phema_search *search, const struct phema_search_score *scores,
                         size_t n)
{
    struct chosen chosen = {.out = out, .most = most};
    for (size_t t = 0; t < search->n_times; t++)
        for (size_t i = 0; i < search->n_widths; i++)
            choose(&chosen, scores, n,
                   (struct phema_search_point){search->widths[i], search->times[t]}, SLACK);
    if (chosen.n)
        return chosen.n;
    const struct best best = choose_time(search, scores, n);
    if (best.score && !is_settled(search, &best))
        refine(&chosen, search, scores, n, &best);
    return chosen.n;
}

bool phema_search_find_best(struct phema_search_best *out, const struct phema_search *search,
                            const struct phema_search_score *scores, size_t n)
{
    struct best best = {0};
    for (size_t t = 0; t < search->n_times; t++) {
        struct best here = find_best(search, scores, n, search->times[t]);
        if (here.score &&
            (!best.score || cost(search, here.score->score) < cost(search, best.score->score)))
            best = here;
    }
    if (!best.score)
        return false;
    *out = (struct phema_search_best){
        .score = best.score,
        .below = best.below ? best.below->at.sigma_rel : PHEMA_UNKNOWN,
        .above = best.above ? best.above->at.sigma_rel : PHEMA_UNKNOWN,
        .is_settled = is_settled(search, &best),
    };
    return true;
}
