// SPDX-License-Identifier: Apache-2.0
/* design_run.c - another training whose motion is expected, or the first part of this one: its motion, its
 * widths, and which of its snapshots to keep. */
#include <math.h>
#include <string.h>

#include "design_run.h"
#include "listener.h"
#include "phema/setting.h"

/* Shares of the snapshots of a run that are tried as those to delete. */
#define N_SHARES 5

static enum phema_status open_run(struct design_asked *asked, enum phema_setting setting,
                                  const char *path, const struct phema_listener *listener,
                                  struct phema_error *err)
{
    static const double any_width = 0.1; /* a plan is about some average */
    const struct phema_plan_options options = {.series = {.snapshots = path,
                                                          .from = PHEMA_UNKNOWN,
                                                          .to = PHEMA_UNKNOWN,
                                                          .needs_no_tensors = true,
                                                          .may_be_sampled = true},
                                               .sigma_rels = &any_width,
                                               .n_sigma_rels = 1,
                                               .solve = {.metric = PHEMA_METRIC_MOTION}};
    enum phema_status status = phema_plan_make_heard(&asked->run, &options, listener, err);
    if (status)
        return phema_fail_in_setting(err, status, setting);
    struct phema_strbuf doubts = {0};
    phema_series_write_warnings(&doubts, asked->run->series, &asked->run->checks);
    for (size_t at = 0; at < doubts.size; at += strlen(doubts.data + at) + 1)
        listener_warn(listener, "%s", doubts.data + at);
    phema_strbuf_clear(&doubts);
    return PHEMA_OK;
}

static double last_time(const struct phema_series *series)
{
    return series->snapshots[series->n - 1].time;
}

/* How parameters moved in a run. stretch: the new training takes so many times as long. */
static enum phema_status use_motion(struct design_asked *asked, enum phema_setting setting,
                                    const struct phema_plan *run, const char *path, double stretch,
                                    struct phema_error *err)
{
    if (!run->motion)
        return phema_fail_setting(err, PHEMA_ERR_INPUTS, setting,
                                  "%s: its snapshots do not show how parameters move: %s", path,
                                  run->unmoved ? run->unmoved : "unknown");
    asked->question.motion = (struct phema_design_motion){
        .moving = PHEMA_MOVING_SEEN, .seen = run->motion, .stretch = stretch};
    return PHEMA_OK;
}

/* ---- The first part of this training ---- */

/* The widths that the training keeps: those of the last time. */
static enum phema_status use_widths(struct design_asked *asked, struct phema_error *err)
{
    const struct phema_series *series = asked->run->series;
    double *fixed = phema_arena_array(&asked->arena, PHEMA_DESIGN_MAX_WIDTHS, sizeof(*fixed));
    size_t n = 0;
    if (!fixed)
        return phema_fail_memory(err);
    for (size_t k = 0; k < series->n; k++) {
        const struct phema_snapshot *snapshot = &series->snapshots[k];
        bool is_raw = snapshot->profile.shape == PHEMA_SHAPE_RAW;
        if (snapshot->time < last_time(series))
            continue;
        asked->question.has_raw = asked->question.has_raw || is_raw;
        if (!is_raw && (isnan(snapshot->sigma_rel) || n == PHEMA_DESIGN_MAX_WIDTHS))
            return phema_fail_setting(err, PHEMA_ERR_INPUTS, PHEMA_SET_KEEP_EXISTING,
                                      "the rest of a training is planned for up to %d power "
                                      "functions and raw parameters, found %s",
                                      PHEMA_DESIGN_MAX_WIDTHS, snapshot->spec);
        if (!is_raw)
            fixed[n++] = snapshot->sigma_rel;
    }
    asked->question.fixed = fixed;
    asked->question.n_fixed = asked->question.least_widths = asked->question.most_widths = n;
    return n ? PHEMA_OK
             : phema_fail_setting(err, PHEMA_ERR_INPUTS, PHEMA_SET_KEEP_EXISTING,
                                  "%s has raw parameters alone; expected an average", series->root);
}

static enum phema_status use_dtype(struct design_asked *asked, struct phema_error *err)
{
    const struct phema_series *series = asked->run->series;
    for (size_t i = 0; i < series->n_tensors; i++)
        if (series->tensors[i].rule == PHEMA_RULE_AVERAGE) {
            asked->dtypes[0] = series->tensors[i].tensor.dtype;
            asked->question.n_dtypes = 1;
            return PHEMA_OK;
        }
    return phema_fail_setting(err, PHEMA_ERR_INPUTS, PHEMA_SET_KEEP_EXISTING,
                              "%s: no tensor is averaged", series->root);
}

static enum phema_status use_like(struct design_asked *asked, const struct phema_listener *listener,
                                  struct phema_error *err)
{
    const struct design_wishes *wishes = asked->wishes;
    const struct phema_plan *run = wishes->like_plan;
    const char *path = wishes->like ? wishes->like : run->series->root;
    if (wishes->like) {
        enum phema_status status = open_run(asked, PHEMA_SET_LIKE, path, listener, err);
        if (status)
            return status;
        run = asked->run;
    }
    return use_motion(asked, PHEMA_SET_LIKE, run, path,
                      asked->question.until / last_time(run->series), err);
}

PHEMA_FALLIBLE design_use_run(struct design_asked *asked, const struct phema_listener *listener,
                              struct phema_error *err)
{
    const char *kept = asked->wishes->keep_existing;
    struct phema_design_question *question = &asked->question;
    if (!kept)
        return use_like(asked, listener, err);
    if (asked->wishes->like)
        return phema_fail_setting(err, PHEMA_ERR_USAGE, PHEMA_SET_LIKE,
                                  "%s shows how the parameters of this training move",
                                  phema_setting_name(PHEMA_SET_KEEP_EXISTING));
    enum phema_status status = open_run(asked, PHEMA_SET_KEEP_EXISTING, kept, listener, err);
    if (!status)
        status = use_motion(asked, PHEMA_SET_KEEP_EXISTING, asked->run, kept, 1, err);
    if (status)
        return status;
    double last = last_time(asked->run->series);
    if (!(last < question->until)) {
        struct phema_name_buffer later;
        return phema_suggest(err,
                             phema_fail_setting(err, PHEMA_ERR_USAGE, PHEMA_SET_UNTIL,
                                                "the training of %s is at %.17g already",
                                                phema_setting_name(PHEMA_SET_KEEP_EXISTING), last),
                             PHEMA_SET_UNTIL, phema_number_format(&later, 2 * last));
    }
    question->begun = last;
    if (question->after > 0) /* none before the first snapshot */
        question->after = fmax(question->after, asked->run->series->snapshots[0].time);
    question->n_useless = 0; /* they are there */
    size_t n_ends = 0;
    double *ends = phema_arena_array(&asked->arena, question->n_ends, sizeof(*ends));
    if (!ends)
        return phema_fail_memory(err);
    for (size_t e = 0; e < question->n_ends; e++)
        if (question->ends[e] > last)
            ends[n_ends++] = question->ends[e];
    question->ends = ends;
    question->n_ends = n_ends;
    status = use_widths(asked, err);
    return status ? status : use_dtype(asked, err);
}

/* ---- Which snapshots to keep ---- */

/* The snapshots of the run that are not deleted, as the question has them. */
static uint64_t list_kept(struct phema_design_question *question, const struct design_asked *asked,
                          struct phema_profile *profiles, double *rounding)
{
    const struct phema_series *series = asked->run->series;
    uint64_t bytes = phema_dtype_bytes(asked->dtypes[0], question->model_elems), used = 0;
    size_t n = 0;
    for (size_t k = 0; k < series->n; k++) {
        if (asked->is_deleted[k])
            continue;
        profiles[n] = series->snapshots[k].profile;
        profiles[n].t = series->snapshots[k].time;
        rounding[n++] = series->snapshots[k].rounding;
        used += bytes;
    }
    question->kept = profiles;
    question->kept_rounding = rounding;
    question->n_kept = n;
    return used;
}

/* The order in which weights --advise would delete the snapshots of the run if the rest of the
 * training were stored as planned: order [series->n], the least useful first. */
static enum phema_status order_snapshots(size_t *order, const struct design_asked *asked,
                                         const struct phema_design *rest, struct phema_error *err)
{
    const struct phema_series *series = asked->run->series;
    const struct phema_design_question *question = &asked->question;
    size_t n_rest = rest->n_times * rest->n_widths, n = series->n + n_rest;
    struct phema_arena *arena = &asked->run->memory;
    struct phema_profile *snapshots = phema_arena_array(arena, n, sizeof(*snapshots));
    struct phema_profile *targets = phema_arena_array(arena, question->n_targets, sizeof(*targets));
    struct phema_mix *mixes = phema_arena_array(arena, question->n_targets, sizeof(*mixes));
    double *rounding = phema_arena_array(arena, n, sizeof(*rounding));
    bool *is_ordered = phema_arena_array(arena, series->n, sizeof(*is_ordered));
    struct phema_advice advice = {0};
    size_t n_ordered = 0;
    if (!snapshots || !targets || !mixes || !rounding || !is_ordered)
        return phema_fail_memory(err);
    for (size_t k = 0; k < series->n; k++) {
        snapshots[k] = series->snapshots[k].profile;
        snapshots[k].t = series->snapshots[k].time;
        rounding[k] = series->snapshots[k].rounding;
    }
    for (size_t i = 0; i < n_rest; i++) {
        snapshots[series->n + i] = rest->widths[i % rest->n_widths].profile;
        snapshots[series->n + i].t = rest->times[i / rest->n_widths];
        rounding[series->n + i] = phema_dtype_rounding(rest->widths[0].dtype);
    }
    for (size_t m = 0; m < question->n_targets; m++) {
        targets[m] = question->targets[m];
        targets[m].t = question->until;
        mixes[m] = (struct phema_mix){.parts = &targets[m], .n_parts = 1};
    }
    const struct phema_problem problem = {.snapshots = snapshots,
                                          .rounding = rounding,
                                          .n = n,
                                          .targets = mixes,
                                          .m = question->n_targets,
                                          .run_end = question->until};
    enum phema_status status = phema_advice_find(&advice, &problem, 1, err);
    for (size_t r = 0; !status && r < advice.n_removed; r++)
        if (advice.removed[r] < series->n) {
            order[n_ordered++] = advice.removed[r];
            is_ordered[advice.removed[r]] = true;
        }
    for (size_t k = 0; !status && k < series->n; k++)
        if (!is_ordered[k])
            order[n_ordered++] = k;
    phema_advice_clear(&advice);
    return status;
}

static void mark_deleted(struct design_asked *asked, const size_t *order, size_t n_deleted)
{
    memset(asked->is_deleted, 0, asked->run->series->n * sizeof(*asked->is_deleted));
    for (size_t i = 0; i < n_deleted; i++)
        asked->is_deleted[order[i]] = true;
}

/* The best rest of the training where these snapshots are deleted; false: the disk is too small. */
static bool try_rest(struct phema_design *rest, struct design_asked *asked,
                     struct phema_profile *profiles, double *rounding, struct phema_error *err)
{
    struct phema_design_question question = asked->question;
    uint64_t used = list_kept(&question, asked, profiles, rounding);
    if (used >= question.disk_bytes)
        return false;
    question.disk_bytes -= used;
    return phema_design_find(rest, &question, err) == PHEMA_OK;
}

PHEMA_FALLIBLE design_choose_kept(struct design_asked *asked, struct phema_error *err)
{
    struct phema_arena *arena = &asked->run->memory;
    size_t n = asked->run->series->n, best = SIZE_MAX;
    struct phema_profile *profiles = phema_arena_array(arena, n + 1, sizeof(*profiles));
    double *rounding = phema_arena_array(arena, n + 1, sizeof(*rounding)), least = HUGE_VAL;
    size_t *order = phema_arena_array(arena, n + 1, sizeof(*order));
    asked->is_deleted = phema_arena_array(arena, n + 1, sizeof(*asked->is_deleted));
    if (!profiles || !rounding || !order || !asked->is_deleted)
        return phema_fail_memory(err);
    for (size_t k = 0; k < n; k++)
        order[k] = k;
    struct phema_design rest;
    for (size_t share = 0; share < N_SHARES; share++) {
        size_t n_deleted = n * share / (N_SHARES - 1);
        mark_deleted(asked, order, n_deleted);
        if (!try_rest(&rest, asked, profiles, rounding, err))
            continue;
        if (best == SIZE_MAX) { /* the first rest says which snapshots are of least use */
            enum phema_status status = order_snapshots(order, asked, &rest, err);
            if (status) {
                phema_design_clear(&rest);
                return phema_fail_in_setting(err, status, PHEMA_SET_KEEP_EXISTING);
            }
            mark_deleted(asked, order, n_deleted);
            phema_design_clear(&rest);
            if (!try_rest(&rest, asked, profiles, rounding, err))
                continue;
        }
        if (rest.worst_error < least) {
            least = rest.worst_error;
            best = n_deleted;
        }
        phema_design_clear(&rest);
    }
    if (best == SIZE_MAX)
        return phema_fail_in_setting(err, PHEMA_ERR_TARGET, PHEMA_SET_KEEP_EXISTING);
    mark_deleted(asked, order, best);
    asked->question.disk_bytes -= list_kept(&asked->question, asked, profiles, rounding);
    return PHEMA_OK;
}
