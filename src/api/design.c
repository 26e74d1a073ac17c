// SPDX-License-Identifier: Apache-2.0
/* design.c - what a training should store. */
#include "phema/design_question.h"

#include <stdlib.h>

#include "api.h"

struct posthoc_ema_design {
    struct design_wishes wishes;
    struct design_asked asked;
    struct phema_design design;
    double widths[PHEMA_DESIGN_MAX_WIDTHS], gammas[PHEMA_DESIGN_MAX_WIDTHS];
};

static double or_none(double value)
{
    return value != 0 ? value : PHEMA_UNKNOWN;
}

static enum phema_status read_wishes(struct design_wishes *out,
                                     const struct posthoc_ema_design_options *o,
                                     struct phema_error *err)
{
    static const enum phema_design_moving moving[] = {PHEMA_MOVING_WALK, PHEMA_MOVING_WHITE,
                                                      PHEMA_MOVING_DRIFT, PHEMA_MOVING_FALL};
    static const char *const names[] = {"f16", "f32", "bf16", NULL};
    static const enum phema_dtype dtypes[] = {PHEMA_F16, PHEMA_F32, PHEMA_BF16};
    size_t motion = 0, dtype = 0;
    enum phema_status status =
        call_find_choice(&motion, o->motion, phema_moving_names, "motion", err);
    if (!status)
        status = call_find_choice(&dtype, o->dtype, names, "dtype", err);
    if (status)
        return status;
    if (o->to != 0 && o->n_sigma_rels)
        return phema_fail(err, PHEMA_ERR_USAGE, "sigma_rels: expected these or a range");
    if (o->motion && o->like)
        return phema_fail(err, PHEMA_ERR_USAGE, "motion: expected this or like");
    *out = (struct design_wishes){
        .until = or_none(o->until),
        .params = o->model_elements,
        .sigma_rels = o->sigma_rels,
        .n_sigma_rels = o->n_sigma_rels,
        .from = o->from,
        .to = o->to,
        .ats = o->ats,
        .n_ats = o->n_ats,
        .after = o->after == o->until ? PHEMA_UNKNOWN : or_none(o->after), /* the end is wanted */
        .disk_bytes = o->disk_bytes,
        .max_error = or_none(o->max_error),
        .max_widths =
            o->max_widths < PHEMA_DESIGN_MAX_WIDTHS ? o->max_widths : PHEMA_DESIGN_MAX_WIDTHS,
        .input_sigmas = o->input_sigmas,
        .n_input_sigmas = o->n_input_sigmas,
        .raw_every = PHEMA_UNKNOWN,
        .is_even = o->is_even != 0,
        .dtype = o->dtype ? &dtypes[dtype] : NULL,
        .motion = o->motion ? &moving[motion] : NULL,
        .like_plan = o->like ? o->like->plan : NULL,
    };
    return PHEMA_OK;
}

/* The chosen one leaves the choices. Its errors are those of all widths of a range. */
static enum phema_status make_design(struct posthoc_ema_design *out,
                                     const struct posthoc_ema_design_options *given,
                                     struct phema_error *err)
{
    struct posthoc_ema_design_options options = {0};
    struct phema_design_choices choices = {0};
    enum phema_status status =
        call_read_struct(&options, sizeof(options), given, "posthoc_ema_design_options", err);
    if (!status)
        status = read_wishes(&out->wishes, &options, err);
    if (!status)
        status = design_ask(&out->asked, &out->wishes, &phema_nobody, err);
    if (!status)
        status = phema_design_choose(&choices, &out->asked.question, err);
    if (!status) {
        out->design = choices.items[choices.chosen];
        choices.items[choices.chosen].times = NULL;
    }
    phema_design_choices_clear(&choices);
    if (!status)
        status = phema_design_rate(&out->design, NULL, &out->asked.finer, err);
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
    if (design) {
        phema_design_clear(&design->design);
        design_asked_clear(&design->asked);
    }
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
        .worst_sigma_rel = design->asked.sigma_rels[found->worst_target],
        .worst_time = found->worst_end,
    };
    enum phema_status status =
        call_fill_struct(info, &known, sizeof(known), "posthoc_ema_design_info", &call.err);
    return call_end(&call, status, error);
}
