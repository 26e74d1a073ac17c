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
    size_t index, below, above; /* SIZE_MAX: none */
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
    struct best best = {SIZE_MAX, SIZE_MAX, SIZE_MAX};
    for (size_t i = 0; i < n; i++) {
        if (!counts(search, scores[i].at, time) || !isfinite(scores[i].score))
            continue;
        double here = cost(search, scores[i].score);
        double there = best.index == SIZE_MAX ? HUGE_VAL : cost(search, scores[best.index].score);
        if (here < there ||
            (here == there && scores[i].at.sigma_rel < scores[best.index].at.sigma_rel))
            best.index = i;
    }
    for (size_t i = 0; i < n && best.index != SIZE_MAX; i++) {
        if (!counts(search, scores[i].at, time))
            continue;
        double here = scores[i].at.sigma_rel, at = scores[best.index].at.sigma_rel;
        if (here < at && (best.below == SIZE_MAX || here > scores[best.below].at.sigma_rel))
            best.below = i;
        if (here > at && (best.above == SIZE_MAX || here < scores[best.above].at.sigma_rel))
            best.above = i;
    }
    return best;
}

static double gap(const struct phema_search_score *scores, size_t best, size_t neighbour)
{
    if (neighbour == SIZE_MAX)
        return 0; /* the end of the range */
    return fabs(scores[neighbour].at.sigma_rel - scores[best].at.sigma_rel);
}

static bool is_settled(const struct phema_search *search, const struct phema_search_score *scores,
                       const struct best *best)
{
    double most = search->tolerance + ROUNDING_SLACK;
    return gap(scores, best->index, best->below) <= most &&
           gap(scores, best->index, best->above) <= most;
}

/* Vertex of the parabola through the best width and its neighbours, and its value there. false:
 * there are fewer than three points, or no minimum. */
static bool find_vertex(double *at, double *value, const struct phema_search *search,
                        const struct phema_search_score *scores, const struct best *best)
{
    if (best->below == SIZE_MAX || best->above == SIZE_MAX)
        return false;
    double x = scores[best->index].at.sigma_rel, f = cost(search, scores[best->index].score);
    double left = x - scores[best->below].at.sigma_rel;
    double right = scores[best->above].at.sigma_rel - x;
    double up_left = cost(search, scores[best->below].score) - f;
    double up_right = cost(search, scores[best->above].score) - f;
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

static bool is_near(const struct phema_search_point *points, size_t n, double time, double at,
                    double distance)
{
    for (size_t i = 0; i < n; i++)
        if (points[i].time == time && fabs(points[i].sigma_rel - at) < distance)
            return true;
    return false;
}

static bool is_scored(const struct phema_search_score *scores, size_t n, double time, double at,
                      double distance)
{
    for (size_t i = 0; i < n; i++)
        if (is_near(&scores[i].at, 1, time, at, distance))
            return true;
    return false;
}

static void choose(struct chosen *chosen, const struct phema_search_score *scores, size_t n,
                   struct phema_search_point point, double distance)
{
    if (chosen->n < chosen->most && !is_scored(scores, n, point.time, point.sigma_rel, distance) &&
        !is_near(chosen->out, chosen->n, point.time, point.sigma_rel, distance))
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
    double x = scores[best->index].at.sigma_rel, time = scores[best->index].at.time;
    double most = search->tolerance + ROUNDING_SLACK, apart = search->tolerance / 4;
    double below = gap(scores, best->index, best->below);
    double above = gap(scores, best->index, best->above);
    double vertex = x, value = 0;
    bool has_vertex = find_vertex(&vertex, &value, search, scores, best);
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

/* The time whose best width has the best score, as measured or as predicted by the parabola. false:
 * no score is finite. */
static bool choose_time(struct best *out, const struct phema_search *search,
                        const struct phema_search_score *scores, size_t n)
{
    double least = HUGE_VAL;
    for (size_t t = 0; t < search->n_times; t++) {
        struct best best = find_best(search, scores, n, search->times[t]);
        if (best.index == SIZE_MAX)
            continue;
        double predicted = cost(search, scores[best.index].score), vertex = 0, value = 0;
        if (!is_settled(search, scores, &best) &&
            find_vertex(&vertex, &value, search, scores, &best))
            predicted = fmin(predicted, value);
        if (predicted < least) {
            least = predicted;
            *out = best;
        }
    }
    return least < HUGE_VAL;
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
    struct best best = {SIZE_MAX, SIZE_MAX, SIZE_MAX};
    if (chosen.n || !choose_time(&best, search, scores, n))
        return chosen.n;
    if (!is_settled(search, scores, &best))
        refine(&chosen, search, scores, n, &best);
    return chosen.n;
}

bool phema_search_find_best(struct phema_search_best *out, const struct phema_search *search,
                            const struct phema_search_score *scores, size_t n)
{
    struct best best = {SIZE_MAX, SIZE_MAX, SIZE_MAX};
    for (size_t t = 0; t < search->n_times; t++) {
        struct best here = find_best(search, scores, n, search->times[t]);
        if (here.index != SIZE_MAX &&
            (best.index == SIZE_MAX ||
             cost(search, scores[here.index].score) < cost(search, scores[best.index].score)))
            best = here;
    }
    if (best.index == SIZE_MAX)
        return false;
    *out = (struct phema_search_best){
        .score = &scores[best.index],
        .below = best.below == SIZE_MAX ? PHEMA_UNKNOWN : scores[best.below].at.sigma_rel,
        .above = best.above == SIZE_MAX ? PHEMA_UNKNOWN : scores[best.above].at.sigma_rel,
        .is_settled = is_settled(search, scores, &best),
    };
    return true;
}
