// SPDX-License-Identifier: Apache-2.0
/* optimizer.c - chooses the next widths to score. The scores are its only state: equal scores give
 * equal points. */
#include "phema/search.h"

#include <math.h>

/* Rounding of sums and differences of decimals, and of rounded widths a tolerance apart. */
#define SLACK          1e-9
#define ROUNDING_SLACK (0.51 * PHEMA_SEARCH_RESOLUTION)

/* Twice the standard deviation of the difference of two scores, over that of one. */
#define NOISE_FACTOR 2.8284271247461903

enum side { BELOW, ABOVE };

struct best {
    const struct phema_search_score *score;
    const struct phema_search_score *near[2], *far[2]; /* the next two on each side; NULL: none */
};

static double rounded(double sigma_rel)
{
    double steps = floor(sigma_rel / PHEMA_SEARCH_RESOLUTION + 0.5);
    return steps / (1 / PHEMA_SEARCH_RESOLUTION); /* the double nearest to that decimal */
}

/* How far a width is from another one as parabolas see it, and the width at such a distance. */
static double distance_of(bool is_line, double x, double from)
{
    return is_line ? x - from : log(x / from);
}

static double at_distance(bool is_line, double from, double distance)
{
    return is_line ? from + distance : from * exp(distance);
}

double phema_search_grid_gap(size_t n, double first, double last, bool is_line)
{
    return is_line ? (last - first) / (double)(n - 1)
                   : first * (pow(last / first, 1 / (double)(n - 1)) - 1);
}

size_t phema_search_grid_size(size_t n, double first, double last, double tolerance, bool is_line)
{
    while (n > 2 && phema_search_grid_gap(n, first, last, is_line) < tolerance)
        n--;
    return n;
}

void phema_search_grid(double *out, size_t n, double first, double last, bool is_line)
{
    for (size_t i = 0; i < n; i++) {
        double part = (double)i / (double)(n - 1);
        out[i] = rounded(is_line ? first + (last - first) * part : first * pow(last / first, part));
    }
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

bool phema_search_is_newest(struct phema_search_point point)
{
    return point.sigma_rel == PHEMA_SEARCH_NEWEST;
}

static struct phema_search_point newest_point(const struct phema_search *search)
{
    return (struct phema_search_point){PHEMA_SEARCH_NEWEST, search->newest_time};
}

bool phema_search_includes(const struct phema_search *search, struct phema_search_point point)
{
    for (size_t t = 0; t < search->n_times; t++)
        if (counts(search, point, search->times[t]))
            return true;
    return search->has_newest && phema_search_point_equals(point, newest_point(search));
}

/* The next scored width on one side of a scored one; NULL: none. */
static const struct phema_search_score *find_next(const struct phema_search *search,
                                                  const struct phema_search_score *scores, size_t n,
                                                  const struct phema_search_score *from,
                                                  enum side side)
{
    const struct phema_search_score *next = NULL;
    double least = HUGE_VAL;
    for (size_t i = 0; i < n && from; i++) {
        double distance = scores[i].at.sigma_rel - from->at.sigma_rel;
        if (side == BELOW)
            distance = -distance;
        if (counts(search, scores[i].at, from->at.time) && distance > 0 && distance < least) {
            least = distance;
            next = &scores[i];
        }
    }
    return next;
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
    for (enum side side = BELOW; side <= ABOVE; side++) {
        best.near[side] = find_next(search, scores, n, best.score, side);
        best.far[side] = find_next(search, scores, n, best.near[side], side);
    }
    return best;
}

/* ---- The parabola, and the end of the search ---- */

/* The vertex of the parabola in log sigma_rel, or lambda, through the best width and two others, and how much
 * better than the best score it is there. false: a point is missing, or there is no minimum. */
static bool fit_parabola(double *vertex, double *gain, const struct phema_search *search,
                         const struct phema_search_score *best, const struct phema_search_score *a,
                         const struct phema_search_score *b)
{
    if (!a || !b)
        return false;
    double x_a = distance_of(search->is_line, a->at.sigma_rel, best->at.sigma_rel);
    double x_b = distance_of(search->is_line, b->at.sigma_rel, best->at.sigma_rel);
    double slope_a = (cost(search, a->score) - cost(search, best->score)) / x_a;
    double slope_b = (cost(search, b->score) - cost(search, best->score)) / x_b;
    double curvature = (slope_b - slope_a) / (x_b - x_a);
    if (!isfinite(curvature) || !(curvature > 0))
        return false;
    double step = (x_a - slope_a / curvature) / 2;
    *vertex = at_distance(search->is_line, best->at.sigma_rel, step);
    *gain = curvature * step * step;
    return isfinite(*vertex) && isfinite(*gain);
}

static bool find_vertex(double *vertex, double *gain, const struct phema_search *search,
                        const struct best *best)
{
    return fit_parabola(vertex, gain, search, best->score, best->near[BELOW], best->near[ABOVE]);
}

/* 0 at an end of the range. */
static double gap(const struct best *best, enum side side)
{
    const struct phema_search_score *near = best->near[side];
    return near ? fabs(near->at.sigma_rel - best->score->at.sigma_rel) : 0;
}

static bool is_equal_within_noise(const struct phema_search *search,
                                  const struct phema_search_score *a,
                                  const struct phema_search_score *b)
{
    return search->noise > 0 && fabs(a->score - b->score) <= NOISE_FACTOR * search->noise;
}

/* True if a score in the gap could still tell something: it is wider than the tolerance, and the
 * scores at its ends differ, or the parabola promises a better one, by more than the noise. */
static bool is_open(const struct phema_search *search, const struct best *best, enum side side)
{
    double vertex = 0, gain = 0;
    if (!best->near[side] || gap(best, side) <= search->tolerance + ROUNDING_SLACK)
        return false;
    if (!is_equal_within_noise(search, best->score, best->near[side]))
        return true;
    return find_vertex(&vertex, &gain, search, best) && gain > search->noise;
}

static bool is_settled(const struct phema_search *search, const struct best *best)
{
    return !is_open(search, best, BELOW) && !is_open(search, best, ABOVE);
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

/* Adds a point at this distance from the best width; false: it is too near to a known one. */
static bool step_from_best(struct chosen *chosen, const struct phema_search *search,
                           const struct phema_search_score *scores, size_t n,
                           const struct best *best, enum side side, double distance)
{
    size_t before = chosen->n;
    double at = best->score->at.sigma_rel + (side == ABOVE ? distance : -distance);
    choose(chosen, scores, n, (struct phema_search_point){rounded(at), best->score->at.time},
           search->tolerance / 4);
    return chosen->n > before;
}

/* Distance of a scored width from the best one as parabolas see it; infinite for none. */
static double distance_to(const struct phema_search *search, const struct best *best,
                          const struct phema_search_score *score)
{
    return score
               ? fabs(distance_of(search->is_line, score->at.sigma_rel, best->score->at.sigma_rel))
               : HUGE_VAL;
}

/* Replaces the farther of both neighbours by the one behind the nearer, if that is nearer. */
static void find_two_nearest(const struct phema_search_score *nearest[2],
                             const struct phema_search *search, const struct best *best)
{
    nearest[BELOW] = best->near[BELOW];
    nearest[ABOVE] = best->near[ABOVE];
    if (distance_to(search, best, best->far[BELOW]) < distance_to(search, best, nearest[ABOVE]))
        nearest[ABOVE] = best->far[BELOW];
    else if (distance_to(search, best, best->far[ABOVE]) <
             distance_to(search, best, nearest[BELOW]))
        nearest[BELOW] = best->far[ABOVE];
}

/* Distance from the best width to the vertex, negative below it: of the parabola through the two
 * nearest widths, which converges faster, unless its vertex is not between the neighbours; then of
 * that through the neighbours. At an end of the range there is only the first, and the end itself
 * replaces a vertex that is not in the gap. false: no parabola. */
static bool find_step(double *step, const struct phema_search *search, const struct best *best)
{
    const struct phema_search_score *nearest[2];
    double vertex = 0, gain = 0, x = best->score->at.sigma_rel;
    find_two_nearest(nearest, search, best);
    bool is_found =
        fit_parabola(&vertex, &gain, search, best->score, nearest[BELOW], nearest[ABOVE]);
    bool is_inside =
        is_found && (vertex < x ? x - vertex < gap(best, BELOW) : vertex - x < gap(best, ABOVE));
    bool is_end = !best->near[BELOW] || !best->near[ABOVE];
    if (!is_inside && !is_end && !find_vertex(&vertex, &gain, search, best))
        return false;
    *step = is_inside || !is_end ? vertex - x : 0;
    return true;
}

/* True if the best width and the two beside it on one side lie close together, compared with the
 * gap on the other side: on skewed curves parabolas creep along one side. */
static bool is_creeping(const struct best *best)
{
    for (enum side side = BELOW; side <= ABOVE; side++) {
        double other = gap(best, side == BELOW ? ABOVE : BELOW);
        if (best->far[side] &&
            fabs(best->far[side]->at.sigma_rel - best->score->at.sigma_rel) < other / 2)
            return true;
    }
    return false;
}

/* The distance from the best width to the middle of a gap, of widths in log sigma_rel, at least the tolerance
 * where the gap is wide enough. */
static double middle_of_gap(const struct phema_search *search, const struct best *best,
                            enum side side)
{
    double x = best->score->at.sigma_rel;
    double middle =
        search->is_line ? gap(best, side) / 2 : fabs(sqrt(x * best->near[side]->at.sigma_rel) - x);
    return fmax(middle, fmin(search->tolerance, gap(best, side) / 2));
}

/* The vertex of the parabola, if it is not near the best width. If it is, two more scores a
 * tolerance away settle the search. Without a parabola to trust, the wider gap is bisected. */
static void refine(struct chosen *chosen, const struct phema_search *search,
                   const struct phema_search_score *scores, size_t n, const struct best *best)
{
    double step = 0;
    bool is_believed = find_step(&step, search, best) && !is_creeping(best);
    enum side side = step > 0 ? ABOVE : BELOW;
    if (is_believed && fabs(step) >= search->tolerance && is_open(search, best, side) &&
        step_from_best(chosen, search, scores, n, best, side, fabs(step)))
        return;
    bool is_there = is_believed && fabs(step) < search->tolerance;
    for (side = BELOW; is_there && side <= ABOVE; side++)
        if (is_open(search, best, side))
            (void)step_from_best(chosen, search, scores, n, best, side,
                                 fmin(search->tolerance, gap(best, side) / 2));
    if (chosen->n)
        return;
    bool opens[2] = {is_open(search, best, BELOW), is_open(search, best, ABOVE)};
    bool is_above_wider =
        opens[BELOW] && opens[ABOVE] &&
        distance_to(search, best, best->near[ABOVE]) > distance_to(search, best, best->near[BELOW]);
    side = opens[BELOW] && !is_above_wider ? BELOW : ABOVE;
    if (opens[side])
        (void)step_from_best(chosen, search, scores, n, best, side,
                             middle_of_gap(search, best, side));
}

/* ---- Times ---- */

/* The best width of the time whose best width has the best score, as measured or as predicted by
 * the parabola. */
static struct best choose_time(const struct phema_search *search,
                               const struct phema_search_score *scores, size_t n)
{
    struct best chosen = {0};
    double least = HUGE_VAL;
    for (size_t t = 0; t < search->n_times; t++) {
        struct best best = find_best(search, scores, n, search->times[t]);
        if (!best.score)
            continue;
        double predicted = cost(search, best.score->score), vertex = 0, gain = 0;
        if (!is_settled(search, &best) && find_vertex(&vertex, &gain, search, &best))
            predicted -= gain;
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
    if (search->has_newest)
        choose(&chosen, scores, n, newest_point(search), SLACK);
    if (chosen.n)
        return chosen.n;
    const struct best best = choose_time(search, scores, n);
    if (best.score && !is_settled(search, &best))
        refine(&chosen, search, scores, n, &best);
    return chosen.n;
}

/* ---- The result ---- */

static const struct phema_search_score *
find_newest(const struct phema_search *search, const struct phema_search_score *scores, size_t n)
{
    for (size_t i = 0; i < n && search->has_newest; i++)
        if (phema_search_point_equals(scores[i].at, newest_point(search)) &&
            isfinite(scores[i].score))
            return &scores[i];
    return NULL;
}

/* Exactly, or within the noise. */
static bool is_as_good(const struct phema_search *search, const struct phema_search_score *a,
                       const struct phema_search_score *b)
{
    return a->score == b->score || is_equal_within_noise(search, a, b);
}

static bool are_all_equal(const struct phema_search *search,
                          const struct phema_search_score *scores, size_t n, double score)
{
    for (size_t i = 0; i < n; i++)
        if (phema_search_includes(search, scores[i].at) && scores[i].score != score)
            return false;
    return true;
}

/* The last width on one side of the best one up to which all scores are as good. */
static double find_end_of_equals(const struct phema_search *search,
                                 const struct phema_search_score *scores, size_t n,
                                 const struct phema_search_score *best, enum side side)
{
    const struct phema_search_score *end = best, *next = NULL;
    while ((next = find_next(search, scores, n, end, side)) && is_as_good(search, next, best))
        end = next;
    return end->at.sigma_rel;
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
    const struct phema_search_score *newest = find_newest(search, scores, n), *width = best.score;
    if (!newest && !width)
        return false;
    *out = (struct phema_search_best){.score = newest, .newest = newest};
    out->below = out->above = out->equal_from = out->equal_to = PHEMA_UNKNOWN;
    if (!width)
        return true;
    if (!newest || !(cost(search, newest->score) < cost(search, width->score)))
        out->score = width;
    out->width = width;
    if (best.near[BELOW])
        out->below = best.near[BELOW]->at.sigma_rel;
    if (best.near[ABOVE])
        out->above = best.near[ABOVE]->at.sigma_rel;
    out->equal_from = find_end_of_equals(search, scores, n, width, BELOW);
    out->equal_to = find_end_of_equals(search, scores, n, width, ABOVE);
    if (!(search->noise > 0) && out->equal_from == out->equal_to)
        out->equal_from = out->equal_to = PHEMA_UNKNOWN;
    out->is_newest_equal = newest && is_as_good(search, newest, width);
    out->is_flat = are_all_equal(search, scores, n, width->score);
    out->is_settled = is_settled(search, &best);
    return true;
}
