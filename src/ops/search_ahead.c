// SPDX-License-Identifier: Apache-2.0
/* search_ahead.c - makes the candidates of the next pass in another thread while the command scores
 * those of this one. The points follow from scores, some of which are missing: they are certain
 * where a good and a bad score lead to the same ones, as in the first grid. Otherwise they are a
 * guess, which costs time only while the command runs. */
#include "search_ahead.h"

#include <math.h>
#include <stdlib.h>

#include "phema/parallel.h"

/* A wrong guess costs more than a right one saves where commands are shorter. */
#define LEAST_COMMAND_S 0.9

struct search_ahead {
    struct searching *searching;
    struct search_pass pass;
    struct phema_search_point points[PHEMA_SEARCH_MOST_BATCH];
    size_t n;
    pthread_t thread;
    bool is_running;
    _Atomic bool is_unwanted;
    enum phema_status status;
    struct phema_error err;
};

/* ---- What will follow ---- */

/* Better than all scores, and not so much better that it would move a parabola far. */
static double good_score(const struct phema_search *search, const struct phema_search_score *scores,
                         size_t n)
{
    double sign = search->maximizes ? -1 : 1, best = HUGE_VAL, worst = -HUGE_VAL;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(scores[i].score))
            continue;
        best = fmin(best, sign * scores[i].score);
        worst = fmax(worst, sign * scores[i].score);
    }
    return best > worst ? 0 : sign * (best - (worst - best) / 16);
}

static double place_of(const struct phema_search *search, double width)
{
    return search->is_line ? width : log(width);
}

/* Of the parabola through the three scores of the same time nearest to a width, which the search
 * believes in as well. NaN: there are no three. */
static double expected_score(const struct phema_search *search,
                             const struct phema_search_score *scores, size_t n,
                             struct phema_search_point at)
{
    const struct phema_search_score *near[3] = {NULL, NULL, NULL};
    double x[3], to = place_of(search, at.sigma_rel), sum = 0;
    for (size_t i = 0; i < n; i++) {
        const struct phema_search_score *score = &scores[i];
        if (phema_search_is_newest(score->at) || score->at.time != at.time ||
            !isfinite(score->score))
            continue;
        for (size_t k = 0; k < 3; k++) {
            const struct phema_search_score *other = near[k];
            if (other && fabs(place_of(search, other->at.sigma_rel) - to) <=
                             fabs(place_of(search, score->at.sigma_rel) - to))
                continue;
            near[k] = score;
            score = other;
            if (!score)
                break;
        }
    }
    if (!near[2])
        return PHEMA_UNKNOWN;
    for (size_t k = 0; k < 3; k++)
        x[k] = place_of(search, near[k]->at.sigma_rel);
    for (size_t k = 0; k < 3; k++) {
        size_t a = (k + 1) % 3, b = (k + 2) % 3;
        sum += near[k]->score * (to - x[a]) * (to - x[b]) / ((x[k] - x[a]) * (x[k] - x[b]));
    }
    return sum;
}

/* Points of one time, as if all candidates of the pass had this score.
 *   scores  [n + the candidates without a score]; these are set */
static size_t guess(struct phema_search_point *out, const struct searching *searching,
                    const struct search_pass *pass, struct phema_search_score *scores, size_t n,
                    double score)
{
    size_t n_missing = pass->n - pass->n_scored, n_points = 0;
    for (size_t j = 0; j < n_missing; j++)
        scores[n + j] = (struct phema_search_score){.at = pass->candidates[pass->n_scored + j].at,
                                                    .score = score};
    uint64_t done = phema_journal_count(searching->journal, &searching->search) + n_missing;
    uint64_t most = searching->options->most > done ? searching->options->most - done : 0;
    most = most < searching->options->batch ? most : searching->options->batch;
    size_t n_found =
        phema_search_next(out, (size_t)most, &searching->search, scores, n + n_missing);
    while (n_points < n_found && out[n_points].time == out[0].time)
        n_points++;
    return n_points;
}

static bool are_equal(const struct phema_search_point *a, size_t n_a,
                      const struct phema_search_point *b, size_t n_b)
{
    for (size_t i = 0; n_a == n_b && i < n_a; i++)
        if (!phema_search_point_equals(a[i], b[i]))
            return false;
    return n_a == n_b;
}

/* 0: nothing can be made ahead. */
static size_t choose_points(struct phema_search_point *out, const struct searching *searching,
                            const struct search_pass *pass)
{
    size_t n = 0, n_missing = pass->n - pass->n_scored;
    const struct phema_search_score *known = phema_journal_scores(searching->journal, &n);
    struct phema_search_score *scores = calloc(n + n_missing, sizeof(*scores));
    struct phema_search_point others[PHEMA_SEARCH_MOST_BATCH];
    if (!scores)
        return 0;
    for (size_t i = 0; i < n; i++)
        scores[i] = known[i];
    double good = good_score(&searching->search, scores, n);
    size_t n_points = guess(out, searching, pass, scores, n, PHEMA_UNKNOWN);
    size_t n_others = guess(others, searching, pass, scores, n, good);
    struct phema_search_point missing = pass->candidates[pass->n_scored].at;
    if (!are_equal(out, n_points, others, n_others)) {
        bool has_time = searching->command_s > fmax(searching->pass_s, LEAST_COMMAND_S);
        if (n_missing > 1 || !has_time)
            n_points = 0;
        else if (!phema_search_is_newest(missing)) /* that is rarely the best */
            n_points = guess(out, searching, pass, scores, n,
                             expected_score(&searching->search, scores, n, missing));
    }
    free(scores);
    return n_points;
}

/* ---- Making it ---- */

static void *make(void *argument)
{
    struct search_ahead *ahead = argument;
    ahead->status = search_pass_make(ahead->searching, &ahead->pass, ahead->points, ahead->n,
                                     &ahead->is_unwanted, &ahead->err);
    return NULL;
}

void search_ahead_begin(struct searching *searching, const struct search_pass *pass)
{
    struct search_ahead *ahead = calloc(1, sizeof(*ahead));
    if (!ahead)
        return;
    ahead->searching = searching;
    ahead->n = choose_points(ahead->points, searching, pass);
    ahead->is_running = ahead->n && phema_thread_start(&ahead->thread, make, ahead) == 0;
    if (ahead->is_running)
        searching->ahead = ahead;
    else
        free(ahead);
}

void search_ahead_wait(struct searching *searching)
{
    if (searching->ahead && searching->ahead->is_running)
        (void)pthread_join(searching->ahead->thread, NULL);
    if (searching->ahead)
        searching->ahead->is_running = false;
}

bool search_ahead_has(const struct searching *searching, struct phema_search_point at)
{
    for (size_t i = 0; searching->ahead && i < searching->ahead->n; i++)
        if (phema_search_point_equals(searching->ahead->points[i], at))
            return true;
    return false;
}

PHEMA_FALLIBLE search_ahead_take(bool *is_made, struct searching *searching,
                                 struct search_pass *pass, const struct phema_search_point *points,
                                 size_t n, struct phema_error *err)
{
    struct search_ahead *ahead = searching->ahead;
    *is_made = ahead && are_equal(ahead->points, ahead->n, points, n);
    if (!*is_made) {
        search_ahead_drop(searching);
        return PHEMA_OK;
    }
    enum phema_status status = ahead->status;
    if (status)
        *err = ahead->err;
    search_pass_tell(searching, &ahead->pass);
    *pass = ahead->pass; /* its request, which points into it, was used for the last time */
    searching->ahead = NULL;
    free(ahead);
    return status;
}

void search_ahead_drop(struct searching *searching)
{
    if (!searching->ahead)
        return;
    atomic_store(&searching->ahead->is_unwanted, true);
    search_ahead_wait(searching);
    search_pass_end(searching, &searching->ahead->pass);
    free(searching->ahead);
    searching->ahead = NULL;
}
