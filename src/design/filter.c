// SPDX-License-Identifier: Apache-2.0
/* filter.c - the Kalman filter of filter.h. State: the parameters z and the stored averages; beside
 * them only the covariances of each target with the state, and its variance. Parameters before
 * training are unknown, which is the condition that weights add up to 1 (N7): the first snapshot is
 * what all else is measured from. */
#include "filter.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "phema/array.h"
#include "phema/design.h"
#include "phema/sort.h"

/* ---- How parameters are expected to move ---- */

const char *const phema_moving_names[PHEMA_N_MOVING + 1] = {"walk", "white", "drift", "fall", NULL};

/* |EMA 0.05 - EMA 0.10|^2 of white noise of rate 1 in a training of length 1: A^2/(2A-1) +
 * B^2/(2B-1) - 2AB/(A+B-1) with A = 17.972, B = 7.937 (N14); 0.03 as in (N24). */
#define WHITE_APART 2.0257
#define MOVED       0.03

/* phema_walk_rate(1), which is computed in quad; a test compares them. */
#define WALK_RATE 0.07496514830809689

/* A walk that slows down as 1/t has no rate at 0. */
#define DRIFT_FROM 0.01

/* Rates of another training at its time t. Behind its end they go on as powers of t. */
static void find_seen(double *wander, double *jitter, const struct phema_motion *seen, double t)
{
    size_t low = 0, high = seen->n_intervals - 1;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (seen->ends[middle] < t)
            low = middle + 1;
        else
            high = middle;
    }
    double end = seen->ends[low];
    double behind = t > end ? t / end : 1;
    *wander = seen->wander[low] * pow(behind, -seen->wander_power);
    *jitter = seen->jitter[low] * pow(behind, -seen->jitter_power);
}

void phema_design_rates(double *wander, double *jitter, const struct phema_design_motion *motion,
                        double until, double t)
{
    double rate = WALK_RATE / until, left = fmax(1 - t / until, 0);
    *wander = *jitter = 0;
    switch (motion->moving) {
    case PHEMA_MOVING_WALK:
        *wander = rate;
        break;
    case PHEMA_MOVING_WHITE:
        *jitter = MOVED * MOVED / WHITE_APART * until;
        break;
    case PHEMA_MOVING_DRIFT: /* the mean of 1/max(x, d) over [0, 1] is 1 + log(1/d) */
        *wander = rate / fmax(t / until, DRIFT_FROM) / (1 - log(DRIFT_FROM));
        break;
    case PHEMA_MOVING_FALL:
        *wander = 3 * rate * left * left;
        break;
    case PHEMA_MOVING_SEEN:
        find_seen(wander, jitter, motion->seen, t / motion->stretch);
        *wander /= motion->stretch;
        *jitter *= motion->stretch;
        break;
    }
}

/* ---- The filter ---- */

/* z, the widths with raw parameters, and other widths of snapshots that exist */
#define MAX_STATES (1 + 2 * (PHEMA_DESIGN_MAX_WIDTHS + 1))

/* An average between two snapshots gets better by those after it, but not for long. */
#define LATER_SNAPSHOTS 5

/* An improvement by a snapshot takes this share of an update by motion. */
#define SEEN_WORK 0.2

/* The mean that a search makes smaller: nearly the largest, but with a slope everywhere. */
#define SMOOTH_POWER 16 /* smooth_power() */

/* Gauss-Legendre on [0, 1]. Intervals are cut where a profile changes much within one. */
#define N_NODES 4
static const double nodes[N_NODES] = {0.069431844202973712, 0.33000947820757187,
                                      0.66999052179242813, 0.93056815579702629};
static const double node_weights[N_NODES] = {0.17392742256872693, 0.32607257743127307,
                                             0.32607257743127307, 0.17392742256872693};

struct follower { /* a target: its covariances */
    double with[MAX_STATES], self;
};

/* Targets at a time without a snapshot, which later snapshots improve. */
struct frozen {
    double end;
    size_t n_left; /* snapshots still to come */
    struct follower followers[FILTER_MAX_TARGETS];
};

struct pass {
    const struct filter *filter;
    struct kernel kernels[MAX_STATES]; /* of the state; [0] is z */
    size_t n;
    double covariance[MAX_STATES][MAX_STATES];
    double now;
    bool is_begun;         /* some snapshot was seen */
    struct frozen *frozen; /* [n_frozen] of malloc */
    size_t n_frozen, frozen_capacity;
    struct filter_result *out;
    double sum; /* of the high powers */
    size_t n_summed;
    double *errors;
    struct follower followers[FILTER_MAX_TARGETS]; /* last: only those in use are cleared */
};

/* ---- Opening ---- */

static enum phema_status add_targets(struct filter *filter, size_t index, struct phema_error *err)
{
    const struct phema_design_question *question = filter->question;
    const struct phema_profile *profile = &question->targets[index];
    bool is_for_each = profile->length > 0;
    for (size_t e = is_for_each ? 0 : question->n_ends - 1; e < question->n_ends; e++) {
        struct filter_target target = {.index = index, .end = is_for_each ? question->ends[e] : 0};
        enum phema_status status = kernel_make(&target.kernel, profile, question->ends[e], err);
        if (status)
            return status;
        if (filter->n_targets == FILTER_MAX_TARGETS)
            return phema_fail(err, PHEMA_ERR_INPUTS,
                              "expected at most %d averages, windows counted at each time",
                              FILTER_MAX_TARGETS);
        filter->targets[filter->n_targets++] = target;
        if (target.kernel.origin > 0)
            filter->origins[filter->n_origins++] = target.kernel.origin;
    }
    return PHEMA_OK;
}

static double variance_of(double rounding, enum phema_shape shape)
{
    bool is_kept_in_float32 = shape != PHEMA_SHAPE_RAW && rounding > 1e-12;
    double noise = is_kept_in_float32 ? fmax(rounding, PHEMA_FLOAT32_FLOOR) : rounding;
    return noise * noise;
}

static enum phema_status add_kept(struct filter *filter, struct phema_error *err)
{
    const struct phema_design_question *question = filter->question;
    for (size_t k = 0; k < question->n_kept; k++) {
        struct filter_kept *kept = &filter->kept[k];
        enum phema_status status =
            kernel_make(&kept->kernel, &question->kept[k], question->kept[k].t, err);
        if (status)
            return status;
        kept->t = question->kept[k].t;
        kept->variance = variance_of(question->kept_rounding[k], question->kept[k].shape);
    }
    return PHEMA_OK;
}

PHEMA_FALLIBLE filter_open(struct filter *filter, const struct phema_design_question *question,
                           struct phema_error *err)
{
    *filter = (struct filter){.question = question, .motion = question->motion};
    struct phema_arena *memory = &filter->memory;
    filter->targets = phema_arena_array(memory, FILTER_MAX_TARGETS, sizeof(*filter->targets));
    filter->origins = phema_arena_array(memory, FILTER_MAX_TARGETS, sizeof(*filter->origins));
    filter->kept = phema_arena_array(memory, question->n_kept + 1, sizeof(*filter->kept));
    enum phema_status status = memory->is_failed ? phema_fail_memory(err) : PHEMA_OK;
    for (size_t i = 0; !status && i < question->n_targets; i++)
        status = add_targets(filter, i, err);
    if (!status)
        status = add_kept(filter, err);
    if (status)
        filter_close(filter);
    else
        qsort(filter->origins, filter->n_origins, sizeof(*filter->origins), phema_compare_doubles);
    return status;
}

void filter_close(struct filter *filter)
{
    phema_arena_clear(&filter->memory);
    *filter = (struct filter){0};
}

/* ---- Motion between two times ---- */

/* F(from; to); log_ratio: of these times, for the profiles that are most common */
static double decay_of(const struct kernel *kernel, double from, double to, double log_ratio)
{
    bool is_plain = kernel->shape == PHEMA_SHAPE_POWER && kernel->origin == 0;
    return is_plain ? exp(kernel->power * log_ratio) : kernel_decay(kernel, from, to);
}

/* Motion at time t: each parameter's step there reaches the state and the targets by these shares.
 * at: the end of the interval */
static void add_motion(struct pass *pass, double t, double length, double at)
{
    double wander, jitter, moved[MAX_STATES], density[MAX_STATES];
    pass->out->work += (double)(pass->filter->n_targets + pass->n);
    phema_design_rates(&wander, &jitter, &pass->filter->motion, pass->filter->question->until, t);
    wander *= length;
    jitter *= length;
    moved[0] = 1;
    density[0] = 0;
    double log_ratio = log(t / at);
    for (size_t i = 1; i < pass->n; i++) {
        const struct kernel *kernel = &pass->kernels[i];
        double decay = decay_of(kernel, t, at, log_ratio);
        moved[i] = 1 - decay;
        density[i] = jitter > 0 ? kernel_density(kernel, t, decay) : 0;
    }
    for (size_t i = 0; i < pass->n; i++)
        for (size_t j = 0; j <= i; j++)
            pass->covariance[i][j] +=
                wander * moved[i] * moved[j] + jitter * density[i] * density[j];
    for (size_t k = 0; k < pass->filter->n_targets; k++) {
        const struct kernel *kernel = &pass->filter->targets[k].kernel;
        struct follower *follower = &pass->followers[k];
        double decay = decay_of(kernel, t, at, log_ratio);
        double own = 1 - decay, dense = jitter > 0 ? jitter * kernel_density(kernel, t, decay) : 0;
        follower->self += wander * own * own + (jitter > 0 ? dense * dense / jitter : 0);
        for (size_t i = 0; i < pass->n; i++)
            follower->with[i] += wander * own * moved[i] + dense * density[i];
    }
}

/* What averages keep of the time until pass->now: e <- F e + (1 - F) z */
static void keep(struct pass *pass, double at)
{
    double kept[MAX_STATES], log_ratio = log(pass->now / at);
    kept[0] = 0;
    for (size_t i = 1; i < pass->n; i++)
        kept[i] = decay_of(&pass->kernels[i], pass->now, at, log_ratio);
    double(*c)[MAX_STATES] = pass->covariance;
    for (size_t k = 0; k < pass->filter->n_targets; k++) {
        struct follower *follower = &pass->followers[k];
        double f = decay_of(&pass->filter->targets[k].kernel, pass->now, at, log_ratio);
        double g = 1 - f;
        follower->self = f * f * follower->self + 2 * f * g * follower->with[0] + g * g * c[0][0];
        double with_z = f * follower->with[0] + g * c[0][0];
        for (size_t i = 1; i < pass->n; i++)
            follower->with[i] =
                kept[i] * (f * follower->with[i] + g * c[i][0]) + (1 - kept[i]) * with_z;
        follower->with[0] = with_z;
    }
    for (size_t i = 1; i < pass->n; i++)
        for (size_t j = 1; j <= i; j++)
            c[i][j] = kept[i] * kept[j] * c[i][j] + kept[i] * (1 - kept[j]) * c[i][0] +
                      (1 - kept[i]) * kept[j] * c[j][0] + (1 - kept[i]) * (1 - kept[j]) * c[0][0];
    for (size_t i = 1; i < pass->n; i++)
        c[i][0] = kept[i] * c[i][0] + (1 - kept[i]) * c[0][0];
}

/* A target that ended keeps its covariances with the averages only by what these keep. */
static void keep_frozen(struct pass *pass, double at)
{
    double kept[MAX_STATES] = {0};
    for (size_t i = 1; i < pass->n; i++)
        kept[i] = kernel_decay(&pass->kernels[i], pass->now, at);
    for (size_t f = 0; f < pass->n_frozen; f++)
        for (size_t k = 0; k < pass->filter->n_targets; k++) {
            struct follower *follower = &pass->frozen[f].followers[k];
            for (size_t i = 1; i < pass->n; i++)
                follower->with[i] = kept[i] * follower->with[i] + (1 - kept[i]) * follower->with[0];
        }
}

static double find_scale(const struct pass *pass, double at)
{
    double scale = at;
    for (size_t i = 1; i < pass->n; i++)
        scale = fmin(scale, kernel_scale(&pass->kernels[i], at));
    for (size_t k = 0; k < pass->filter->n_targets; k++)
        scale = fmin(scale, kernel_scale(&pass->filter->targets[k].kernel, at));
    return scale;
}

/* From pass->now to a time, in pieces that double from the end backwards. */
static void advance(struct pass *pass, double at)
{
    if (at <= pass->now)
        return;
    keep(pass, at);
    if (pass->n_frozen)
        keep_frozen(pass, at);
    double piece = find_scale(pass, at), end = at;
    while (end > pass->now) {
        double begin = end - piece > pass->now + 0.3 * piece ? end - piece : pass->now;
        for (size_t q = 0; q < N_NODES; q++)
            add_motion(pass, begin + (end - begin) * nodes[q], (end - begin) * node_weights[q], at);
        end = begin;
        piece *= 2;
    }
    pass->now = at;
}

/* ---- Snapshots ---- */

static double between(const struct pass *pass, size_t i, size_t j)
{
    return i < j ? pass->covariance[j][i] : pass->covariance[i][j];
}

/* The first snapshot: all else is measured from it. */
static void begin_with(struct pass *pass, size_t at, double variance)
{
    double own[MAX_STATES] = {0};
    for (size_t i = 0; i < pass->n; i++)
        own[i] = between(pass, i, at);
    double self = own[at] + variance;
    for (size_t k = 0; k < pass->filter->n_targets; k++) {
        struct follower *follower = &pass->followers[k];
        double with = follower->with[at];
        follower->self += self - 2 * with;
        for (size_t i = 0; i < pass->n; i++)
            follower->with[i] += self - with - own[i];
    }
    for (size_t i = 0; i < pass->n; i++)
        for (size_t j = 0; j <= i; j++)
            pass->covariance[i][j] += self - own[i] - own[j];
    pass->is_begun = true;
}

static void improve(struct follower *follower, const double *own, size_t n, size_t at, double total)
{
    double gain = follower->with[at] / total;
    follower->self -= gain * follower->with[at];
    for (size_t i = 0; i < n; i++)
        follower->with[i] -= gain * own[i];
}

static void see(struct pass *pass, size_t at, double variance)
{
    if (!pass->is_begun) {
        begin_with(pass, at, variance);
        return;
    }
    double own[MAX_STATES] = {0};
    for (size_t i = 0; i < pass->n; i++)
        own[i] = between(pass, i, at);
    double total = own[at] + variance;
    if (!(total > 0))
        return;
    pass->out->work += SEEN_WORK * (double)(pass->filter->n_targets * pass->n_frozen);
    for (size_t k = 0; k < pass->filter->n_targets; k++)
        improve(&pass->followers[k], own, pass->n, at, total);
    for (size_t f = 0; f < pass->n_frozen; f++)
        for (size_t k = 0; k < pass->filter->n_targets; k++)
            improve(&pass->frozen[f].followers[k], own, pass->n, at, total);
    for (size_t i = 0; i < pass->n; i++)
        for (size_t j = 0; j <= i; j++)
            pass->covariance[i][j] -= own[i] * own[j] / total;
}

/* ---- Results ---- */

static double smooth_power(double x)
{
    double second = x * x, fourth = second * second, eighth = fourth * fourth;
    return eighth * eighth;
}

static void record(struct pass *pass, const struct follower *followers, double end)
{
    const struct phema_design_question *question = pass->filter->question;
    for (size_t k = 0; k < pass->filter->n_targets; k++) {
        const struct filter_target *target = &pass->filter->targets[k];
        if (target->end > 0 && target->end != end)
            continue;
        double error = pass->is_begun ? sqrt(fmax(followers[k].self, 0)) : HUGE_VAL;
        pass->sum += smooth_power(error * 1e3);
        pass->n_summed++;
        if (error > pass->out->worst) {
            pass->out->worst = error;
            pass->out->target = target->index;
            pass->out->end = end;
        }
        for (size_t e = 0; pass->errors && e < question->n_ends; e++)
            if (question->ends[e] == end)
                pass->errors[target->index * question->n_ends + e] = error;
    }
}

/* Records targets that no later snapshot improves any more. is_over: none of them is */
static void thaw(struct pass *pass, bool is_over)
{
    size_t n = 0;
    for (size_t f = 0; f < pass->n_frozen; f++) {
        struct frozen *frozen = &pass->frozen[f];
        frozen->n_left -= !is_over;
        if (is_over || frozen->n_left == 0)
            record(pass, frozen->followers, frozen->end);
        else if (n++ != f)
            memcpy(&pass->frozen[n - 1], frozen,
                   offsetof(struct frozen, followers) +
                       pass->filter->n_targets * sizeof(*frozen->followers));
    }
    pass->n_frozen = n;
}

/* Without memory the targets are recorded without what follows. */
static void freeze(struct pass *pass, double end)
{
    if (!phema_array_grow(&pass->frozen, &pass->frozen_capacity, pass->n_frozen,
                          sizeof(*pass->frozen))) {
        record(pass, pass->followers, end);
        return;
    }
    struct frozen *frozen = &pass->frozen[pass->n_frozen++];
    frozen->end = end;
    frozen->n_left = LATER_SNAPSHOTS;
    memcpy(frozen->followers, pass->followers, pass->filter->n_targets * sizeof(*pass->followers));
}

/* ---- The pass ---- */

static size_t find_state(struct pass *pass, const struct kernel *kernel)
{
    for (size_t i = 0; i < pass->n; i++)
        if (kernel_equals(&pass->kernels[i], kernel))
            return i;
    if (pass->n == MAX_STATES)
        return SIZE_MAX;
    pass->kernels[pass->n] = *kernel;
    return pass->n++;
}

/* The next of the times of an ascending list that is later than now; infinity at its end. */
static double next_of(const double *times, size_t n, size_t *at, double now)
{
    while (*at < n && times[*at] <= now)
        (*at)++;
    return *at < n ? times[*at] : HUGE_VAL;
}

/* Where averages at any time are wanted: the first of these times, and half-way from there or from
 * the last snapshot to the coming one. A design with fewer snapshots has no fewer demands. */
static double next_between(const struct pass *pass, double last_seen, double coming)
{
    double after = pass->filter->question->after;
    if (!(after > 0) || !isfinite(coming))
        return HUGE_VAL;
    if (after > pass->now)
        return after;
    double middle = floor((fmax(last_seen, after) + coming) / 2);
    return middle > pass->now ? middle : HUGE_VAL;
}

/* The snapshots of this time; false: none. */
static bool see_all(struct pass *pass, const struct filter_snapshots *snapshots, size_t time,
                    const size_t *states, const double *variances, size_t *next_kept)
{
    const struct filter *filter = pass->filter;
    bool has_any = false;
    for (; *next_kept < filter->question->n_kept && filter->kept[*next_kept].t <= pass->now;
         (*next_kept)++) {
        const struct filter_kept *kept = &filter->kept[*next_kept];
        size_t state = find_state(pass, &kept->kernel);
        if (state == SIZE_MAX)
            continue;
        see(pass, state, kept->variance);
        has_any = true;
    }
    if (time < snapshots->n_times && snapshots->times[time] == pass->now)
        for (size_t k = 0; k < snapshots->n_widths; k++) {
            see(pass, states[k], variances[k]);
            has_any = true;
        }
    return has_any;
}

static void follow(struct pass *pass, const struct filter_snapshots *snapshots,
                   const size_t *states, const double *variances)
{
    const struct filter *filter = pass->filter;
    const struct phema_design_question *question = filter->question;
    size_t time = 0, end = 0, origin = 0, kept = 0;
    double last = snapshots->n_times ? snapshots->times[snapshots->n_times - 1] : 0;
    double last_seen = 0;
    if (question->n_kept)
        last = fmax(last, filter->kept[question->n_kept - 1].t);
    for (;;) {
        double snapshot = next_of(snapshots->times, snapshots->n_times, &time, pass->now);
        if (kept < question->n_kept)
            snapshot = fmin(snapshot, filter->kept[kept].t);
        double between = next_between(pass, last_seen, snapshot);
        double next = fmin(snapshot, next_of(question->ends, question->n_ends, &end, pass->now));
        next = fmin(next, next_of(filter->origins, filter->n_origins, &origin, pass->now));
        next = fmin(next, between);
        if (!isfinite(next))
            break;
        advance(pass, next);
        bool is_snapshot = see_all(pass, snapshots, time, states, variances, &kept);
        if (is_snapshot && pass->n_frozen)
            thaw(pass, false);
        if (is_snapshot)
            last_seen = next;
        bool is_end = next == between || (end < question->n_ends && question->ends[end] == next) ||
                      (is_snapshot && question->after > 0 && next >= question->after);
        if (!is_end)
            continue;
        if (is_snapshot || next >= last || !pass->is_begun) /* none before the first snapshot */
            record(pass, pass->followers, next);
        else
            freeze(pass, next);
    }
    thaw(pass, true);
}

/* Raw parameters have jitter: its variance within one unit of time, as in (N12). */
static double jitter_of(const struct filter *filter, const struct kernel *kernel)
{
    double wander = 0, jitter = 0;
    if (kernel->shape == PHEMA_SHAPE_RAW)
        phema_design_rates(&wander, &jitter, &filter->motion, filter->question->until,
                           filter->question->until);
    return jitter;
}

void filter_run(struct filter_result *out, double *errors, const struct filter *filter,
                const struct filter_snapshots *snapshots)
{
    struct pass pass;
    memset(&pass, 0, offsetof(struct pass, followers));
    pass.filter = filter;
    pass.n = 1;
    pass.out = out;
    pass.errors = errors;
    memset(pass.followers, 0, filter->n_targets * sizeof(*pass.followers));
    size_t states[PHEMA_DESIGN_MAX_WIDTHS + 1];
    double variances[PHEMA_DESIGN_MAX_WIDTHS + 1];
    struct phema_error ignored = {0};
    *out = (struct filter_result){0};
    pass.kernels[0] = (struct kernel){.shape = PHEMA_SHAPE_RAW};
    for (size_t k = 0; k < snapshots->n_widths; k++) {
        const struct phema_design_width *width = &snapshots->widths[k];
        struct kernel kernel;
        if (kernel_make(&kernel, &width->profile, filter->question->until, &ignored))
            continue; /* checked before */
        states[k] = find_state(&pass, &kernel);
        variances[k] = variance_of(phema_dtype_rounding(width->dtype), width->profile.shape) +
                       jitter_of(filter, &kernel);
    }
    for (size_t k = 0; k < filter->question->n_kept; k++)
        (void)find_state(&pass, &filter->kept[k].kernel);
    follow(&pass, snapshots, states, variances);
    free(pass.frozen);
    out->smooth =
        pass.n_summed ? 1e-3 * pow(pass.sum / (double)pass.n_summed, 1.0 / SMOOTH_POWER) : HUGE_VAL;
}

void filter_rate(struct phema_design *design, double *errors, const struct filter *filter)
{
    struct filter_result result;
    const struct filter_snapshots snapshots = {design->widths, design->n_widths, design->times,
                                               design->n_times};
    filter_run(&result, errors, filter, &snapshots);
    design->worst_error = result.worst;
    design->worst_target = result.target;
    design->worst_end = result.end;
}
