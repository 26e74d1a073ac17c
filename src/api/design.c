// SPDX-License-Identifier: Apache-2.0
/* design.c - what a training should store. */
#include "phema/design.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "phema/sort.h"
#include "plan.h"

/* Wanted averages by width. */
struct targets {
    struct phema_profile profiles[PHEMA_DESIGN_MAX_TARGETS];
    double sigma_rels[PHEMA_DESIGN_MAX_TARGETS];
    size_t n;
};

struct posthoc_ema_design {
    struct phema_design design;
    struct targets searched, shown; /* those of the search; those of the errors */
    double ends[PHEMA_DESIGN_MAX_ENDS], fixed[PHEMA_DESIGN_MAX_WIDTHS];
    double widths[PHEMA_DESIGN_MAX_WIDTHS], gammas[PHEMA_DESIGN_MAX_WIDTHS];
    enum phema_dtype dtypes[2];
};

static enum phema_status find_exponents(struct targets *targets, const char *option,
                                        struct phema_error *err)
{
    for (size_t i = 0; i < targets->n; i++) {
        enum phema_status status =
            phema_gamma_from_sigma_rel(&targets->profiles[i].gamma, targets->sigma_rels[i], err);
        if (status)
            return phema_fail_in(err, status, "%s", option);
    }
    return PHEMA_OK;
}

static enum phema_status set_range(struct posthoc_ema_design *out,
                                   const struct posthoc_ema_design_options *options,
                                   struct phema_error *err)
{
    if (!(options->from > 0 && options->to > options->from))
        return phema_fail(err, PHEMA_ERR_USAGE,
                          "from: expected a range from a lower to a higher width, found %g to %g",
                          options->from, options->to);
    if (options->n_sigma_rels)
        return phema_fail(err, PHEMA_ERR_USAGE, "sigma_rels: expected these or a range");
    out->searched.n = PHEMA_DESIGN_SEARCHED;
    out->shown.n = PHEMA_DESIGN_SHOWN;
    phema_design_spread(out->searched.sigma_rels, out->searched.n, options->from, options->to);
    phema_design_spread(out->shown.sigma_rels, out->shown.n, options->from, options->to);
    return PHEMA_OK;
}

static enum phema_status set_targets(struct posthoc_ema_design *out,
                                     struct phema_design_question *question,
                                     const struct posthoc_ema_design_options *options,
                                     struct phema_error *err)
{
    size_t n = options->n_sigma_rels;
    bool is_range = options->from != 0 || options->to != 0;
    enum phema_status status = PHEMA_OK;
    if (is_range)
        status = set_range(out, options, err);
    else if (n == 0 || n > PHEMA_DESIGN_MAX_TARGETS)
        return phema_fail(err, PHEMA_ERR_USAGE, "sigma_rels: expected 1 to %d widths, found %zu",
                          PHEMA_DESIGN_MAX_TARGETS, n);
    if (!status && !is_range) {
        memcpy(out->searched.sigma_rels, options->sigma_rels, n * sizeof(double));
        memcpy(out->shown.sigma_rels, options->sigma_rels, n * sizeof(double));
        out->searched.n = out->shown.n = n;
    }
    if (!status)
        status = find_exponents(&out->searched, is_range ? "to" : "sigma_rels", err);
    if (!status)
        status = find_exponents(&out->shown, is_range ? "to" : "sigma_rels", err);
    question->targets = out->searched.profiles;
    question->n_targets = out->searched.n;
    return status;
}

static enum phema_status set_fixed(struct posthoc_ema_design *out,
                                   struct phema_design_question *question,
                                   const struct posthoc_ema_design_options *options,
                                   struct phema_error *err)
{
    size_t n = options->n_input_sigmas;
    if (n > PHEMA_DESIGN_MAX_WIDTHS)
        return phema_fail(err, PHEMA_ERR_USAGE, "input_sigmas: expected at most %d, found %zu",
                          PHEMA_DESIGN_MAX_WIDTHS, n);
    if (n == 0)
        return PHEMA_OK;
    memcpy(out->fixed, options->input_sigmas, n * sizeof(double));
    qsort(out->fixed, n, sizeof(double), phema_compare_doubles);
    for (size_t k = 0; k < n; k++) {
        double unused = 0;
        enum phema_status status = phema_gamma_from_sigma_rel(&unused, out->fixed[k], err);
        if (status)
            return phema_fail_in(err, status, "input_sigmas");
        if (k && out->fixed[k] == out->fixed[k - 1])
            return phema_fail(err, PHEMA_ERR_USAGE, "input_sigmas: %g is there twice",
                              out->fixed[k]);
    }
    question->fixed = out->fixed;
    question->n_fixed = question->most_widths = n;
    return PHEMA_OK;
}

static enum phema_status set_motion(struct phema_design_question *question,
                                    const struct posthoc_ema_design_options *options,
                                    struct phema_error *err)
{
    static const char *const motions[] = {"walk", "white", "drift", "fall", NULL};
    size_t motion = 0;
    enum phema_status status = call_find_choice(&motion, options->motion, motions, "motion", err);
    if (status)
        return status;
    question->motion.moving = (enum phema_design_moving)motion;
    if (!options->like)
        return PHEMA_OK;
    if (options->motion)
        return phema_fail(err, PHEMA_ERR_USAGE, "motion: expected this or like");
    const struct phema_plan *plan = options->like->plan;
    if (!plan->motion)
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "like: its snapshots do not show how parameters move: %s",
                          plan->unmoved ? plan->unmoved : "unknown");
    const struct phema_series *series = plan->series;
    question->motion = (struct phema_design_motion){
        .moving = PHEMA_MOVING_SEEN,
        .seen = plan->motion,
        .stretch = question->until / series->snapshots[series->n - 1].time};
    return PHEMA_OK;
}

static bool is_step(double time, double until)
{
    return time >= 1 && time <= until && time == floor(time);
}

static enum phema_status set_ends(struct posthoc_ema_design *out,
                                  struct phema_design_question *question,
                                  const struct posthoc_ema_design_options *options,
                                  struct phema_error *err)
{
    double until = options->until;
    size_t n = options->n_ats;
    if (!(until >= 2 && until < 0x1p53 && until == floor(until)))
        return phema_fail(err, PHEMA_ERR_USAGE, "until: expected whole steps, 2 or more, found %g",
                          until);
    if (n + 1 > PHEMA_DESIGN_MAX_ENDS)
        return phema_fail(err, PHEMA_ERR_USAGE, "ats: expected at most %d times, found %zu",
                          PHEMA_DESIGN_MAX_ENDS - 1, n);
    for (size_t i = 0; i <= n; i++) {
        out->ends[i] = i < n ? options->ats[i] : until;
        if (!is_step(out->ends[i], until))
            return phema_fail(err, PHEMA_ERR_USAGE, "ats: expected whole steps up to %g, found %g",
                              until, out->ends[i]);
    }
    if (options->after != 0 && !is_step(options->after, until))
        return phema_fail(err, PHEMA_ERR_USAGE, "after: expected a whole step up to %g, found %g",
                          until, options->after);
    qsort(out->ends, n + 1, sizeof(*out->ends), phema_compare_doubles);
    size_t kept = 0;
    for (size_t i = 0; i <= n; i++)
        if (kept == 0 || out->ends[i] > out->ends[kept - 1])
            out->ends[kept++] = out->ends[i];
    question->until = until;
    question->ends = out->ends;
    question->n_ends = kept;
    question->after = options->after;
    return PHEMA_OK;
}

static enum phema_status set_limits(struct posthoc_ema_design *out,
                                    struct phema_design_question *question,
                                    const struct posthoc_ema_design_options *options,
                                    struct phema_error *err)
{
    static const char *const names[] = {"f16", "f32", "bf16", NULL};
    static const enum phema_dtype dtypes[] = {PHEMA_F16, PHEMA_F32, PHEMA_BF16};
    size_t dtype = 0, most = options->max_widths ? options->max_widths : 3;
    enum phema_status status = call_find_choice(&dtype, options->dtype, names, "dtype", err);
    if (status)
        return status;
    if (options->model_elements == 0 || options->model_elements > (uint64_t)1 << 50)
        return phema_fail(err, PHEMA_ERR_USAGE, "model_elements: expected 1 to 2^50, found %llu",
                          (unsigned long long)options->model_elements);
    if (options->disk_bytes == 0 && !(options->max_error > 0))
        return phema_fail(err, PHEMA_ERR_USAGE, "disk_bytes or max_error: expected one above 0");
    out->dtypes[0] = options->dtype ? dtypes[dtype] : PHEMA_F16;
    out->dtypes[1] = PHEMA_F32;
    question->dtypes = out->dtypes;
    question->n_dtypes = options->dtype ? 1 : 2;
    question->model_elems = options->model_elements;
    question->disk_bytes = options->disk_bytes ? options->disk_bytes : UINT64_MAX;
    question->max_error = options->max_error;
    question->least_widths = 1;
    question->most_widths = most < PHEMA_DESIGN_MAX_WIDTHS ? most : PHEMA_DESIGN_MAX_WIDTHS;
    question->spacing = options->is_even ? PHEMA_SPACING_EVEN : PHEMA_SPACING_AUTO;
    return set_fixed(out, question, options, err);
}

/* The chosen one leaves the choices. Its errors are those of all widths of a range. */
static enum phema_status make_design(struct posthoc_ema_design *out,
                                     const struct posthoc_ema_design_options *given,
                                     struct phema_error *err)
{
    struct posthoc_ema_design_options options = {0};
    struct phema_design_question question = {0};
    struct phema_design_choices choices = {0};
    enum phema_status status =
        call_read_struct(&options, sizeof(options), given, "posthoc_ema_design_options", err);
    if (!status)
        status = set_ends(out, &question, &options, err);
    if (!status)
        status = set_targets(out, &question, &options, err);
    if (!status)
        status = set_limits(out, &question, &options, err);
    if (!status)
        status = set_motion(&question, &options, err);
    if (!status)
        status = phema_design_choose(&choices, &question, err);
    if (!status) {
        out->design = choices.items[choices.chosen];
        choices.items[choices.chosen].times = NULL;
    }
    phema_design_choices_clear(&choices);
    question.targets = out->shown.profiles;
    question.n_targets = out->shown.n;
    if (!status)
        status = phema_design_rate(&out->design, NULL, &question, err);
    for (size_t k = 0; !status && k < out->design.n_widths; k++) {
        out->widths[k] = out->design.widths[k].sigma_rel;
        out->gammas[k] = out->design.widths[k].profile.gamma;
    }
    return status;
}

enum posthoc_ema_status posthoc_ema_design_make(struct posthoc_ema_design **out,
                                                const struct posthoc_ema_design_options *options,
                                                struct posthoc_ema_error *error)
{
    struct call call = call_begin();
    struct posthoc_ema_design *design = calloc(1, sizeof(*design));
    enum phema_status status =
        design ? make_design(design, options, &call.err) : phema_fail_memory(&call.err);
    if (status)
        posthoc_ema_design_free(design);
    else
        *out = design;
    return call_end(&call, status, error);
}

void posthoc_ema_design_free(struct posthoc_ema_design *design)
{
    if (design)
        phema_design_clear(&design->design);
    free(design);
}

enum posthoc_ema_status posthoc_ema_design_info(const struct posthoc_ema_design *design,
                                                struct posthoc_ema_design_info *info,
                                                struct posthoc_ema_error *error)
{
    struct call call = call_begin();
    const struct phema_design *found = &design->design;
    const struct posthoc_ema_design_info known = {
        .n_widths = found->n_widths,
        .widths = design->widths,
        .gammas = design->gammas,
        .n_times = found->n_times,
        .times = found->times,
        .dtype = found->widths[0].dtype == PHEMA_F32   ? "f32"
                 : found->widths[0].dtype == PHEMA_F16 ? "f16"
                                                       : "bf16",
        .disk_bytes = found->disk_bytes,
        .worst_error = found->worst_error,
        .worst_sigma_rel = design->shown.sigma_rels[found->worst_target],
        .worst_time = found->worst_end,
    };
    enum phema_status status =
        call_fill_struct(info, &known, sizeof(known), "posthoc_ema_design_info", &call.err);
    return call_end(&call, status, error);
}
