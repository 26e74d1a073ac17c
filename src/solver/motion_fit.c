// SPDX-License-Identifier: Apache-2.0
/* motion_fit.c - fits the motion of the parameters to distances between snapshots
 * (docs/numerics.md, section 6): amplitudes of each interval, how v falls within the intervals, and
 * which kind of motion is the likeliest. */
#include "phema/solver.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "motion_work.h"

#define LEAST_DISTANCES 3
#define MOST_ROUNDING   0.75 /* of a squared distance */

/* Powers of time never fit a motion exactly, and jitter makes up for that where it can. The fitted
 * jitter is wrong then, by far for targets of which it is a large part. So jitter is used only
 * where it leaves less than this fraction of the misfit of a random walk alone, and where there are
 * more distances than unknowns of two powers of time. */
#define EARNED     0.8
#define N_UNKNOWNS 4 /* amplitude and power of both */

#define PIECES 8 /* of each interval; v is constant in a piece */

#define MARGIN  0.02         /* of likelihood an element, for a kind of motion to be preferred */
#define CLEAR   20.0         /* log likelihood that a steady drift gains */
#define FITTED  2.0          /* that the freedom of an interval gains */
#define N_RATED ((size_t)16) /* snapshots, the newest, that likelihoods are of */

/* ---- What is fitted ---- */

/* Of the distances those that are more than rounding, and their squares without it; returns how
 * many. */
static size_t choose(struct phema_distance *chosen, double *seen,
                     const struct phema_distance *distances, size_t n_distances,
                     const double *rounding)
{
    size_t n = 0;
    for (size_t d = 0; d < n_distances; d++) {
        const struct phema_distance *distance = &distances[d];
        double rounded = 0;
        if (rounding)
            rounded = rounding[distance->i] * rounding[distance->i] +
                      rounding[distance->j] * rounding[distance->j];
        bool is_usable = isfinite(distance->square) && distance->square > 0 &&
                         rounded <= MOST_ROUNDING * distance->square;
        if (!is_usable)
            continue;
        chosen[n] = *distance;
        seen[n++] = distance->square - rounded;
    }
    return n;
}

/* Keeps the snapshots that distances name, since intervals lie between their times. Returns how
 * many. places [n]: 1 + index among them, or 0 */
static size_t compact(struct phema_profile *kept, size_t *places,
                      const struct phema_profile *snapshots, size_t n,
                      const struct phema_distance *distances, size_t n_distances)
{
    size_t n_kept = 0;
    for (size_t d = 0; d < n_distances; d++)
        places[distances[d].i] = places[distances[d].j] = 1;
    for (size_t i = 0; i < n; i++) {
        if (!places[i])
            continue;
        kept[n_kept] = snapshots[i];
        places[i] = ++n_kept;
    }
    return n_kept;
}

static enum phema_status fail_unseen(struct phema_error *err, const struct phema_motion_data *data,
                                     size_t n_chosen)
{
    size_t n_equal = 0;
    for (size_t d = 0; d < data->n_distances; d++)
        n_equal += data->distances[d].square == 0;
    if (n_equal && n_equal == data->n_distances)
        return phema_fail(err, PHEMA_NO,
                          "the %zu snapshots hold the same data where they were compared", data->n);
    if (data->n < 3)
        return phema_fail(err, PHEMA_NO, "%zu snapshot%s too few to measure a motion", data->n,
                          data->n == 1 ? " is" : "s are");
    return phema_fail(err, PHEMA_NO,
                      "too few changes between the snapshots are larger than their rounding: %zu "
                      "of %zu",
                      n_chosen, data->n_distances);
}

/* Sets seen and pieces. */
static enum phema_status find_pieces(struct phema_motion_work *work,
                                     const struct phema_motion_data *data, struct phema_error *err)
{
    size_t n = data->n, n_distances = data->n_distances;
    struct phema_arena *memory = &work->memory;
    struct phema_distance *chosen = phema_arena_array(memory, n_distances, sizeof(*chosen));
    struct phema_profile *kept = phema_arena_array(memory, n, sizeof(*kept));
    size_t *places = phema_arena_array(memory, n, sizeof(*places));
    work->origins = phema_arena_array(memory, n, sizeof(*work->origins));
    work->seen = phema_arena_array(memory, n_distances, sizeof(double));
    if (memory->is_failed)
        return phema_fail_memory(err);
    size_t n_chosen = choose(chosen, work->seen, data->distances, n_distances, data->rounding);
    if (n_chosen < LEAST_DISTANCES)
        return fail_unseen(err, data, n_chosen);
    work->kept = kept;
    work->n_kept = compact(kept, places, data->snapshots, n, data->distances, n_distances);
    for (size_t i = 0; i < n; i++)
        if (places[i])
            work->origins[places[i] - 1] = i;
    for (size_t d = 0; d < n_chosen; d++) {
        chosen[d].i = places[chosen[d].i] - 1;
        chosen[d].j = places[chosen[d].j] - 1;
    }
    size_t reach = data->sample ? PHEMA_MOTION_REACH : 0;
    enum phema_status status = phema_motion_table_open(
        &work->table, kept, work->n_kept, work->n_pieces, chosen, n_chosen, reach, err);
    return status ? status
                  : phema_motion_terms_find(&work->pieces, work->table, chosen, n_chosen, err);
}

static void alloc_work(struct phema_motion_work *work)
{
    size_t n_pieces = work->pieces.n_intervals, n_pairs = work->pieces.n_pairs;
    struct phema_arena *memory = &work->memory;
    struct phema_motion_terms *terms = &work->terms;
    terms->n_pairs = n_pairs;
    terms->n_intervals = n_pieces / work->n_pieces;
    terms->ends = phema_arena_array(memory, terms->n_intervals, sizeof(double));
    terms->starts = phema_arena_array(memory, n_pairs + 1, sizeof(size_t));
    terms->items = phema_arena_array(memory, work->pieces.starts[n_pairs], sizeof(*terms->items));
    work->known = phema_arena_array(memory, n_pieces, sizeof(double));
    work->levels = phema_arena_array(memory, terms->n_intervals, sizeof(double));
    work->shape = phema_arena_array(memory, n_pieces, sizeof(double));
    work->slopes = phema_arena_array(memory, terms->n_intervals, sizeof(double));
    work->heights = phema_arena_array(memory, terms->n_intervals, sizeof(double));
    work->pulls = phema_arena_array(memory, terms->n_intervals, sizeof(double));
    work->loads = phema_arena_array(memory, terms->n_intervals, sizeof(double));
    work->parts = phema_arena_array(memory, terms->n_intervals, sizeof(double));
    work->walked = phema_arena_array(memory, n_pairs, sizeof(double));
    work->jittered = phema_arena_array(memory, n_pairs, sizeof(double));
    for (size_t k = 0; !memory->is_failed && k < terms->n_intervals; k++)
        terms->ends[k] = work->pieces.ends[(k + 1) * work->n_pieces - 1];
}

static void alloc_motion(struct phema_motion *motion, size_t n_intervals,
                         struct phema_arena *memory)
{
    motion->n_intervals = n_intervals;
    motion->wander = phema_arena_array(memory, n_intervals, sizeof(double));
    motion->jitter = phema_arena_array(memory, n_intervals, sizeof(double));
}

/* The motion of the pieces, with equal neighbours joined.
 *   speed  [pieces] of the coherent drift; NULL: none */
static enum phema_status keep(struct phema_motion *out, const struct phema_motion *motion,
                              const double *speed, const struct phema_motion_work *work,
                              struct phema_error *err)
{
    size_t n = work->pieces.n_intervals;
    *out = (struct phema_motion){.misfit = motion->misfit,
                                 .wander_power = motion->wander_power,
                                 .jitter_power = motion->jitter_power};
    out->ends = calloc(n, sizeof(double));
    out->wander = calloc(n, sizeof(double));
    out->jitter = calloc(n, sizeof(double));
    out->speed = speed ? calloc(n, sizeof(double)) : NULL;
    if (!out->ends || !out->wander || !out->jitter || (speed && !out->speed)) {
        phema_motion_clear(out);
        return phema_fail_memory(err);
    }
    for (size_t k = 0; k < n; k++) {
        size_t interval = k / work->n_pieces;
        double wander = motion->wander[interval] * work->shape[k];
        double jitter = motion->jitter[interval];
        size_t last = out->n_intervals - 1;
        if (!k || wander != out->wander[last] || jitter != out->jitter[last] ||
            (speed && speed[k] != out->speed[last]))
            last = out->n_intervals++;
        out->ends[last] = work->pieces.ends[k];
        out->wander[last] = wander;
        out->jitter[last] = jitter;
        if (speed)
            out->speed[last] = speed[k];
    }
    return PHEMA_OK;
}

/* ---- The kinds of motion ---- */

struct choice {
    const struct phema_motion_data *data;
    struct phema_motion best;
    double likelihood; /* of the best, of the newest snapshots, an element */
    bool is_compared;  /* else there is one kind to choose */
};

/* The likelihood of the newest snapshots; unknown where they depend on each other. */
static enum phema_status rate(double *likelihood, const struct phema_motion *motion,
                              const struct phema_motion_data *data, struct phema_error *err)
{
    size_t n = data->n < N_RATED ? data->n : N_RATED, first = data->n - n;
    struct phema_leave_one_out out = {.z = NULL};
    struct phema_sample_rows rows = *data->sample;
    rows.tensors = NULL;
    if (rows.order)
        rows.order += first;
    else
        rows.values += first * rows.n_elems;
    const struct phema_problem problem = {.snapshots = data->snapshots + first,
                                          .rounding =
                                              data->rounding ? data->rounding + first : NULL,
                                          .n = n,
                                          .motion = motion};
    enum phema_status status = phema_leave_one_out(&out, &problem, &rows, err);
    *likelihood = out.likelihood;
    return status;
}

/* Takes a motion in place of the best one if it is likelier by the margin, or if no likelihood is
 * known. */
static enum phema_status consider(struct choice *choice, const struct phema_motion *motion,
                                  const struct phema_motion_work *work, struct phema_error *err)
{
    struct phema_motion candidate;
    double likelihood = PHEMA_UNKNOWN;
    enum phema_status status = keep(&candidate, motion, NULL, work, err);
    if (status)
        return status;
    if (choice->is_compared)
        status = rate(&likelihood, &candidate, choice->data, err);
    bool is_first = choice->best.n_intervals == 0;
    if (status || (!is_first && likelihood <= choice->likelihood + MARGIN)) {
        phema_motion_clear(&candidate);
        return status;
    }
    struct phema_motion before = choice->best;
    choice->best = candidate;
    choice->likelihood = likelihood;
    phema_motion_clear(&before);
    return PHEMA_OK;
}

/* ---- Together ---- */

struct phema_motion_fitting {
    struct phema_motion_data data;
    struct phema_motion_work work;
    struct phema_motion walk, both; /* even within the intervals: a walk alone, with jitter */
    bool has_walk;                  /* else no walk alone fits */
    bool is_jittery;                /* the distances show jitter clearly */
    double *powers;                 /* [n_intervals] log of v in the power law of the walk */
    struct phema_motion sloped;     /* the walk, falling within the intervals */
    double *slopes;                 /* [n_intervals] of it */
    bool has_slopes;
};

/* Sets the walk, the slopes and the shape of the work to those of a walk that falls within the
 * intervals, without a power of the time that is left. */
static void take_slopes(struct phema_motion *walk, struct phema_motion_fitting *fitting)
{
    struct phema_motion_work *work = &fitting->work;
    size_t size = walk->n_intervals * sizeof(double);
    if (!fitting->has_slopes) {
        memcpy(fitting->sloped.wander, fitting->walk.wander, size);
        phema_motion_fit_shape(&fitting->sloped, work, 0);
        memcpy(fitting->slopes, work->slopes, size);
        fitting->has_slopes = true;
    }
    memcpy(walk->wander, fitting->sloped.wander, size);
    memcpy(work->slopes, fitting->slopes, size);
    phema_motion_set_shape(work, 0);
}

/* A walk whose shape follows the falling of v, and that ends as a power of the time that is
 * left. */
static enum phema_status consider_shapes(struct choice *choice, struct phema_motion *shaped,
                                         struct phema_motion_fitting *fitting,
                                         struct phema_error *err)
{
    static const int end_powers[] = {1, 2, 4};
    struct phema_motion_work *work = &fitting->work;
    size_t n_powers = choice->data->schedule ? 0 : ARRAY_LEN(end_powers);
    take_slopes(shaped, fitting);
    enum phema_status status = consider(choice, shaped, work, err);
    for (size_t p = 0; !status && p < n_powers; p++) {
        memcpy(shaped->wander, fitting->walk.wander, shaped->n_intervals * sizeof(double));
        phema_motion_fit_shape(shaped, work, end_powers[p]);
        status = consider(choice, shaped, work, err);
    }
    phema_motion_set_even(work);
    return status ? status : consider(choice, &fitting->walk, work, err);
}

#define STEADY_ALONE ((size_t)1) /* kinds of drift that are asked */

/* The best walk so far, and the drift that it has. */
struct drifting {
    struct phema_motion motion;
    struct phema_motion_coherence coherence;
    bool is_steady; /* a steady drift was likelier than none with the first walk */
};

/* Takes the walk, with the likeliest of the first kinds of drift, if the sample is likelier so. */
static enum phema_status consider_drift(struct drifting *best, const struct phema_motion *walk,
                                        size_t n_kinds, const struct phema_motion_work *work,
                                        const struct phema_motion_data *data,
                                        struct phema_error *err)
{
    struct drifting tried = {.is_steady = best->is_steady};
    struct phema_motion_coherence kinds[PHEMA_N_DRIFTS];
    enum phema_status status = keep(&tried.motion, walk, NULL, work, err);
    if (!status)
        status = phema_motion_find_coherence(kinds, n_kinds, &tried.motion, work, data, err);
    bool is_first = !best->motion.n_intervals;
    tried.coherence.evidence = -HUGE_VAL;
    for (size_t k = 0; !status && k < n_kinds; k++)
        if (k == 0 || kinds[k].evidence > tried.coherence.evidence)
            tried.coherence = kinds[k];
    if (is_first)
        tried.is_steady = !status && kinds[PHEMA_DRIFT_STEADY].gain > 0;
    if (!status && (is_first || tried.coherence.evidence > best->coherence.evidence)) {
        struct drifting before = *best;
        *best = tried;
        tried = before;
    }
    phema_motion_clear(&tried.motion);
    return status;
}

/* The walk that is fitted to distances alone, with a steady drift: the likeliest walk makes up for
 * one that is not there. Its end may be a power of the time that is left. */
static enum phema_status consider_steady(struct drifting *best, struct phema_motion *walk,
                                         struct phema_motion_fitting *fitting,
                                         const struct phema_motion_data *data,
                                         struct phema_error *err)
{
    static const int end_powers[] = {1, 2, 4};
    struct phema_motion_work *work = &fitting->work;
    size_t n_powers = data->schedule ? 0 : ARRAY_LEN(end_powers);
    double before = best->coherence.evidence;
    if (best->coherence.kind == PHEMA_DRIFT_STEADY && best->coherence.gain > CLEAR)
        before = best->coherence.evidence -= FITTED * (double)walk->n_intervals;
    take_slopes(walk, fitting);
    enum phema_status status = consider_drift(best, walk, STEADY_ALONE, work, data, err);
    if (!(best->coherence.evidence > before))
        return status;
    for (size_t p = 0; !status && p < n_powers; p++) {
        memcpy(walk->wander, fitting->walk.wander, walk->n_intervals * sizeof(double));
        phema_motion_fit_shape(walk, work, end_powers[p]);
        status = consider_drift(best, walk, STEADY_ALONE, work, data, err);
    }
    return status;
}

/* The same alone, where the sample shows clearly that parameters keep their direction. */
static enum phema_status consider_drifting(struct choice *choice, struct phema_motion *walk,
                                           struct phema_motion_fitting *fitting,
                                           struct phema_error *err)
{
    struct drifting best = {.coherence.evidence = -HUGE_VAL};
    enum phema_status status = consider_steady(&best, walk, fitting, choice->data, err);
    bool is_clear = best.coherence.gain > CLEAR;
    if (!status && is_clear)
        status = phema_motion_set_coherence(&best.motion, &best.coherence, &fitting->work, err);
    if (status || !is_clear) {
        phema_motion_clear(&best.motion);
        return status ? status : consider_shapes(choice, walk, fitting, err);
    }
    choice->best = best.motion;
    phema_motion_set_even(&fitting->work);
    return PHEMA_OK;
}

/* Whether two snapshots end at one time: they show how a training leaves its beginning. */
static bool has_pair(const struct phema_motion_work *work)
{
    for (size_t i = 0; i + 1 < work->n_kept; i++)
        if (work->kept[i].t == work->kept[i + 1].t)
            return true;
    return false;
}

/* A walk that is likeliest within the intervals, from what the distances say. */
static enum phema_status consider_likeliest(struct choice *choice, struct phema_motion *walk,
                                            struct phema_motion_fitting *fitting,
                                            struct phema_error *err)
{
    const struct phema_motion_data *data = choice->data;
    struct phema_motion_work *work = &fitting->work;
    struct drifting best = {.motion = {0}};
    take_slopes(walk, fitting);
    enum phema_status status = phema_motion_find_likeliest(
        work, walk->wander, data->schedule ? work->levels : fitting->powers, data, err);
    for (size_t k = 0; !status && k < walk->n_intervals; k++)
        walk->wander[k] = 1;
    if (!status || status == PHEMA_NO)
        status = consider_drift(&best, walk, has_pair(work) ? PHEMA_N_DRIFTS : STEADY_ALONE, work,
                                data, err);
    if (!status && best.is_steady)
        status = consider_steady(&best, walk, fitting, data, err);
    choice->best = best.motion;
    if (!status)
        status = phema_motion_set_coherence(&choice->best, &best.coherence, work, err);
    if (!status && choice->is_compared)
        status = rate(&choice->likelihood, &choice->best, data, err);
    phema_motion_set_even(work);
    return status;
}

/* The best motion and another one count by their likelihoods: expected errors are linear in v.
 *   other  with the shape of the work; changed */
static enum phema_status mix(struct choice *choice, struct phema_motion *other,
                             double other_likelihood, struct phema_motion_work *work,
                             struct phema_error *err)
{
    struct phema_motion *best = &choice->best;
    double n_independent = phema_motion_independent(choice->data->sample->n_elems);
    double odds = phema_motion_exp(n_independent * (choice->likelihood - other_likelihood));
    double share = 1 / (1 + odds);
    double *speed = phema_arena_array(&work->memory, work->pieces.n_intervals, sizeof(*speed));
    if (!speed)
        return phema_fail_memory(err);
    for (size_t k = 0, at = 0; k < work->pieces.n_intervals; k++) {
        while (best->ends[at] < work->pieces.ends[k])
            at++;
        work->shape[k] *= share * other->wander[k / work->n_pieces];
        work->shape[k] += (1 - share) * best->wander[at];
        speed[k] = sqrt(1 - share) * (best->speed ? best->speed[at] : 0);
    }
    for (size_t k = 0; k < other->n_intervals; k++) {
        other->wander[k] = 1;
        other->jitter[k] *= share;
    }
    phema_motion_clear(best);
    return keep(best, other, speed, work, err);
}

/* Mixes in the motion with jitter if that is likelier by the margin. Its walk has the shape of the learning
 * rate, where that is known.
 *   memory  amplitudes that may be overwritten */
static enum phema_status consider_jitter(struct choice *choice, const struct phema_motion *memory,
                                         struct phema_motion_fitting *fitting,
                                         struct phema_error *err)
{
    struct phema_motion_work *work = &fitting->work;
    struct phema_motion shaped = fitting->both, candidate;
    size_t size = shaped.n_intervals * sizeof(double);
    double likelihood = PHEMA_UNKNOWN;
    shaped.wander = memcpy(memory->wander, shaped.wander, size);
    shaped.jitter = memcpy(memory->jitter, shaped.jitter, size);
    if (choice->data->schedule) {
        phema_motion_set_known_shape(work);
        (void)phema_motion_fit_intervals(&shaped, work);
    }
    enum phema_status status = keep(&candidate, &shaped, NULL, work, err);
    if (status)
        return status;
    status = rate(&likelihood, &candidate, choice->data, err);
    phema_motion_clear(&candidate);
    if (!status && likelihood > choice->likelihood + MARGIN)
        status = mix(choice, &shaped, likelihood, work, err);
    phema_motion_set_even(work);
    return status;
}

static enum phema_status choose_motion(struct choice *choice, struct phema_motion_fitting *fitting,
                                       enum phema_motion_kind kind, struct phema_error *err)
{
    struct phema_motion_work *work = &fitting->work;
    const struct phema_motion *both = &fitting->both, *walk = &fitting->walk;
    if (!fitting->has_walk)
        return consider(choice, both, work, err);
    if (kind == PHEMA_MOTION_EVEN)
        return consider(choice, fitting->is_jittery ? both : walk, work, err);
    struct phema_motion found = *walk;
    alloc_motion(&found, walk->n_intervals, &work->memory);
    if (work->memory.is_failed)
        return phema_fail_memory(err);
    bool is_likeliest = kind == PHEMA_MOTION_LIKELIEST;
    choice->is_compared = fitting->is_jittery || !is_likeliest;
    enum phema_status status = is_likeliest ? consider_likeliest(choice, &found, fitting, err)
                               : kind == PHEMA_MOTION_DRIFTING
                                   ? consider_drifting(choice, &found, fitting, err)
                                   : consider_shapes(choice, &found, fitting, err);
    if (status || !fitting->is_jittery || (kind == PHEMA_MOTION_DRIFTING && choice->best.speed))
        return status;
    return is_likeliest ? consider_jitter(choice, &found, fitting, err)
                        : consider(choice, both, work, err);
}

/* Motion that is even within the intervals. */
static enum phema_status fit_even(struct phema_motion_fitting *fitting, struct phema_error *err)
{
    struct phema_motion_work *work = &fitting->work;
    struct phema_motion *walk = &fitting->walk, *both = &fitting->both;
    phema_motion_set_even(work);
    phema_motion_fit_powers(both, work, false);
    if (!isfinite(both->misfit))
        return phema_fail(err, PHEMA_NO,
                          "the distances between the snapshots do not say how parameters moved");
    phema_motion_fit_powers(walk, work, true);
    fitting->has_walk = isfinite(walk->misfit);
    if (!fitting->has_walk)
        return PHEMA_OK;
    for (size_t k = 0; k < walk->n_intervals; k++)
        fitting->powers[k] = phema_motion_log(walk->wander[k]);
    double misfit_of_both = phema_motion_fit_intervals(both, work);
    double misfit_of_walk = phema_motion_fit_intervals(walk, work);
    fitting->is_jittery =
        work->terms.n_pairs > N_UNKNOWNS && misfit_of_both < EARNED * misfit_of_walk;
    return PHEMA_OK;
}

static void alloc_fitting(struct phema_motion_fitting *fitting)
{
    struct phema_motion_work *work = &fitting->work;
    struct phema_arena *memory = &work->memory;
    alloc_work(work);
    size_t n = work->terms.n_intervals;
    fitting->powers = phema_arena_array(memory, n, sizeof(double));
    fitting->slopes = phema_arena_array(memory, n, sizeof(double));
    alloc_motion(&fitting->walk, n, memory);
    alloc_motion(&fitting->both, n, memory);
    alloc_motion(&fitting->sloped, n, memory);
}

PHEMA_FALLIBLE phema_motion_fitting_open(struct phema_motion_fitting **out,
                                         const struct phema_motion_data *data,
                                         struct phema_error *err)
{
    struct phema_motion_fitting *fitting = calloc(1, sizeof(*fitting));
    if (!fitting)
        return phema_fail_memory(err);
    fitting->data = *data;
    fitting->work.n_pieces = data->sample ? PIECES : 1;
    enum phema_status status = find_pieces(&fitting->work, data, err);
    if (!status)
        alloc_fitting(fitting);
    if (fitting->work.memory.is_failed)
        status = phema_fail_memory(err);
    if (!status) {
        phema_motion_set_known(&fitting->work, data->schedule);
        status = fit_even(fitting, err);
    }
    if (status)
        phema_motion_fitting_close(fitting);
    else
        *out = fitting;
    return status;
}

void phema_motion_fitting_close(struct phema_motion_fitting *fitting)
{
    if (!fitting)
        return;
    phema_motion_terms_clear(&fitting->work.pieces);
    phema_motion_table_close(fitting->work.table);
    phema_arena_clear(&fitting->work.memory);
    free(fitting);
}

PHEMA_FALLIBLE phema_motion_fitting_find(struct phema_motion *motion,
                                         struct phema_motion_fitting *fitting,
                                         enum phema_motion_kind kind, struct phema_error *err)
{
    struct choice choice = {.data = &fitting->data};
    enum phema_status status = choose_motion(&choice, fitting, kind, err);
    if (status)
        phema_motion_clear(&choice.best);
    else
        *motion = choice.best;
    return status;
}

PHEMA_FALLIBLE phema_motion_fit(struct phema_motion *motion, const struct phema_motion_data *data,
                                enum phema_motion_kind kind, struct phema_error *err)
{
    struct phema_motion_fitting *fitting = NULL;
    enum phema_status status = phema_motion_fitting_open(&fitting, data, err);
    if (!status)
        status = phema_motion_fitting_find(motion, fitting, kind, err);
    phema_motion_fitting_close(fitting);
    return status;
}

void phema_motion_clear(struct phema_motion *motion)
{
    free(motion->ends);
    free(motion->wander);
    free(motion->jitter);
    free(motion->speed);
    *motion = (struct phema_motion){0};
}
