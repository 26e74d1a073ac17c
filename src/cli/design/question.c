// SPDX-License-Identifier: Apache-2.0
/* question.c - from the values of the command line to a question. */
#include <math.h>
#include <string.h>

#include "design/design.h"
#include "phema/claims.h"
#include "phema/number.h"
#include "phema/sort.h"
#include "remedy/remedy.h"

/* ---- Targets ---- */

static enum phema_status add_width(struct phema_profile *out, double sigma_rel,
                                   struct phema_error *err)
{
    *out = (struct phema_profile){0};
    enum phema_status status = phema_gamma_from_sigma_rel(&out->gamma, sigma_rel, err);
    return status ? cli_suggest(err, cli_fail_in_option(err, status, "sigma-rel"), "sigma-rel",
                                sigma_rel > 0.1 ? "0.02:0.25" : "0.05")
                  : PHEMA_OK;
}

/* All that a question needs and this one lacks, in one command that runs. */
static enum phema_status suggest_missing(struct phema_error *err, enum phema_status status,
                                         const struct design_values *values)
{
    if (isnan(values->until))
        (void)cli_suggest(err, status, "until", "1M");
    if (!values->model && !values->params)
        (void)cli_suggest(err, status, "params", "650M");
    if (!values->disk_bytes && isnan(values->max_error))
        (void)cli_suggest(err, status, "disk", "500G");
    if (!values->sigma_rel && !values->profiles.n)
        (void)cli_suggest(err, status, "sigma-rel", "0.02:0.25");
    return status;
}

/* "0.02:0.25" in equal ratios, or a list; the list is searched and shown. */
static enum phema_status read_widths(double **sigma_rels, size_t *n_searched, size_t *n_shown,
                                     struct design_values *values, struct phema_error *err)
{
    const char *text = values->sigma_rel, *colon = text ? strchr(text, ':') : NULL;
    struct cli_reals list = {0};
    *n_searched = *n_shown = 0;
    if (!text)
        return PHEMA_OK;
    bool is_range = colon && !strchr(colon + 1, ':') && !strchr(text, ',');
    if (!is_range) {
        enum phema_status status = cli_parse_reals(&list, &values->common.arena, text, err);
        *sigma_rels = list.items;
        *n_searched = *n_shown = list.n;
        return status ? cli_fail_in_option(err, status, "sigma-rel") : PHEMA_OK;
    }
    double first = 0, last = 0;
    const char *start = phema_arena_copy(&values->common.arena, text, (size_t)(colon - text));
    double *widths = phema_arena_array(&values->common.arena,
                                       PHEMA_DESIGN_SEARCHED + PHEMA_DESIGN_SHOWN, sizeof(*widths));
    if (!start || !widths)
        return phema_fail_memory(err);
    enum phema_status status = phema_number_parse(&first, start, err);
    if (!status)
        status = phema_number_parse(&last, colon + 1, err);
    if (status)
        return cli_fail_in_option(err, status, "sigma-rel");
    if (!(first > 0 && last > first))
        return cli_suggest(err,
                           cli_fail_option(err, PHEMA_ERR_USAGE, "sigma-rel",
                                           "expected a range from a lower to a higher "
                                           "width, found %g to %g",
                                           first, last),
                           "sigma-rel", "0.02:0.25");
    struct phema_profile unused;
    status = add_width(&unused, last, err);
    if (status)
        return status;
    phema_design_spread(widths, PHEMA_DESIGN_SEARCHED, first, last);
    phema_design_spread(widths + PHEMA_DESIGN_SEARCHED, PHEMA_DESIGN_SHOWN, first, last);
    *sigma_rels = widths;
    *n_searched = PHEMA_DESIGN_SEARCHED;
    *n_shown = PHEMA_DESIGN_SHOWN;
    return PHEMA_OK;
}

static enum phema_status read_profile(struct design_asked *asked, size_t at,
                                      struct design_values *values, const char *text,
                                      struct phema_profile *out, struct phema_error *err)
{
    struct phema_spec *spec = NULL;
    enum phema_status status = phema_spec_parse(&spec, &values->common.arena, text, err);
    if (status)
        return phema_spec_fail(err, status, PHEMA_SET_PROFILE, text);
    for (size_t e = 0; e < asked->question.n_ends; e++) {
        status = phema_spec_profile(out, spec, asked->question.ends[e], err);
        if (status)
            return cli_fail_in_option(err, PHEMA_ERR_USAGE, "profile");
    }
    if (out->shape == PHEMA_SHAPE_RAW && !asked->trainer->has_raw)
        return cli_fail_option(err, PHEMA_ERR_USAGE, "profile",
                               "raw parameters are no average of others; store them as they "
                               "are at each wanted time");
    if (values->after > 0 && out->length > 0)
        return cli_fail_option(err, PHEMA_ERR_USAGE, "after",
                               "averages over a window are planned for certain times; give "
                               "--at for '%s'",
                               text);
    out->length = out->shape == PHEMA_SHAPE_POWER ? 0 : out->length;
    asked->specs[at] = spec->canonical;
    asked->sigma_rels[at] = spec->sigma_rel;
    return PHEMA_OK;
}

static enum phema_status set_targets(struct design_asked *asked, struct design_values *values,
                                     struct phema_error *err)
{
    struct phema_arena *arena = &values->common.arena;
    double *sigma_rels = NULL;
    size_t n_searched, n_shown, n_profiles = values->profiles.n;
    enum phema_status status = read_widths(&sigma_rels, &n_searched, &n_shown, values, err);
    if (status)
        return status;
    if (n_shown + n_profiles == 0)
        return suggest_missing(
            err,
            phema_fail(err, PHEMA_ERR_USAGE,
                       "design: no average to plan for; give --sigma-rel, such as "
                       "0.02:0.25, or --profile"),
            values);
    if (n_shown + n_profiles > PHEMA_DESIGN_MAX_TARGETS)
        return cli_fail_option(err, PHEMA_ERR_USAGE, "sigma-rel",
                               "expected at most %d averages, found "
                               "%zu; give a range, such as 0.02:0.25",
                               PHEMA_DESIGN_MAX_TARGETS, n_shown + n_profiles);
    size_t n_finer = n_shown + n_profiles;
    struct phema_profile *finer = phema_arena_array(arena, n_finer, sizeof(*finer));
    struct phema_profile *searched =
        phema_arena_array(arena, n_searched + n_profiles, sizeof(*searched));
    asked->specs = phema_arena_array(arena, n_finer, sizeof(*asked->specs));
    asked->sigma_rels = phema_arena_array(arena, n_finer, sizeof(*asked->sigma_rels));
    if (!finer || !searched || !asked->specs || !asked->sigma_rels)
        return phema_fail_memory(err);
    const double *shown = n_shown > n_searched ? sigma_rels + n_searched : sigma_rels;
    for (size_t i = 0; !status && i < n_shown; i++) {
        status = add_width(&finer[i], shown[i], err);
        asked->sigma_rels[i] = shown[i];
    }
    for (size_t i = 0; !status && i < n_searched; i++)
        status = add_width(&searched[i], sigma_rels[i], err);
    for (size_t i = 0; !status && i < n_profiles; i++) {
        status = read_profile(asked, n_shown + i, values, values->profiles.items[i],
                              &finer[n_shown + i], err);
        searched[n_searched + i] = finer[n_shown + i];
    }
    asked->question.targets = searched;
    asked->question.n_targets = n_searched + n_profiles;
    asked->finer.targets = finer;
    asked->finer.n_targets = n_finer;
    return status;
}

/* ---- Times ---- */

static enum phema_status fail_time(const char *option, double time, double until,
                                   struct phema_error *err)
{
    struct phema_name_buffer shown, end;
    return cli_fail_option(
        err, PHEMA_ERR_USAGE, option,
        "expected a whole number from 1 to %s, the end of the training, found %s",
        phema_number_format(&end, until), phema_number_format(&shown, time));
}

static enum phema_status set_unit(struct design_asked *asked, const struct design_values *values,
                                  struct phema_error *err)
{
    const struct design_trainer *trainer = asked->trainer;
    asked->unit = values->unit ? values->unit : trainer->unit ? trainer->unit : "steps";
    return !trainer->unit || strcmp(asked->unit, trainer->unit) == 0
               ? PHEMA_OK
               : cli_fail_option(err, PHEMA_ERR_USAGE, "unit", "%s counts %s, found %s",
                                 trainer->name, trainer->unit, asked->unit);
}

static enum phema_status set_times(struct design_asked *asked, struct design_values *values,
                                   struct phema_error *err)
{
    double until = values->until;
    if (isnan(until))
        return suggest_missing(err,
                               phema_fail(err, PHEMA_ERR_USAGE,
                                          "design: --until is missing, the steps of the training"),
                               values);
    if (!(until >= 2 && until < 0x1p53 && until == floor(until)))
        return cli_suggest(
            err,
            cli_fail_option(err, PHEMA_ERR_USAGE, "until",
                            "expected a training of 2 steps or more, a whole number, found %g",
                            until),
            "until", "1M");
    size_t n = values->ats.n;
    if (n + 1 > PHEMA_DESIGN_MAX_ENDS)
        return cli_fail_option(err, PHEMA_ERR_USAGE, "at", "expected at most %d times, found %zu",
                               PHEMA_DESIGN_MAX_ENDS - 1, n);
    double *ends = phema_arena_array(&values->common.arena, n + 1, sizeof(*ends));
    if (!ends)
        return phema_fail_memory(err);
    for (size_t i = 0; i < n; i++) {
        ends[i] = values->ats.items[i];
        if (!(ends[i] >= 1 && ends[i] <= until && ends[i] == floor(ends[i])))
            return fail_time("at", ends[i], until, err);
    }
    ends[n] = until; /* the end is always wanted */
    qsort(ends, n + 1, sizeof(*ends), phema_compare_doubles);
    size_t kept = 0;
    for (size_t i = 0; i <= n; i++)
        if (kept == 0 || ends[i] > ends[kept - 1])
            ends[kept++] = ends[i];
    if (!isnan(values->after) && !(values->after >= 1 && values->after < until))
        return fail_time("after", values->after, until, err);
    asked->question.until = until;
    asked->question.ends = ends;
    asked->question.n_ends = kept;
    asked->question.after = isnan(values->after) ? 0 : values->after;
    return PHEMA_OK;
}

/* ---- The model ---- */

static enum phema_status count_elems(uint64_t *out, const char *path, struct phema_error *err)
{
    struct phema_checkpoint *checkpoint = NULL;
    enum phema_status status = phema_checkpoint_open(&checkpoint, path, NULL, err);
    if (status)
        return cli_fail_in_option(err, status, "model");
    *out = 0;
    const struct phema_tensor *tensors = phema_checkpoint_tensors(checkpoint);
    for (size_t i = 0; i < phema_checkpoint_n_tensors(checkpoint); i++)
        if (phema_dtype_is_float(tensors[i].dtype))
            *out += tensors[i].n_elems;
    phema_checkpoint_close(checkpoint);
    return *out ? PHEMA_OK
                : cli_fail_option(err, PHEMA_ERR_INPUTS, "model",
                                  "%s: has no floating-point tensor", path);
}

/* Sizes of all snapshots fit 64 bits. */
#define MOST_ELEMS ((uint64_t)1 << 50)

static enum phema_status set_model(struct design_asked *asked, const struct design_values *values,
                                   struct phema_error *err)
{
    static const unsigned bytes[] = {4, 2, 2}; /* of --model-dtype */
    struct phema_error ignored = {0};
    struct phema_name_buffer most;
    uint64_t size = 0;
    if (!values->model && !values->params)
        return suggest_missing(err,
                               phema_fail(err, PHEMA_ERR_USAGE,
                                          "design: --params is missing, the number of parameters; "
                                          "or give --model FILE"),
                               values);
    if (values->model && values->params)
        return cli_fail_option(err, PHEMA_ERR_USAGE, "params",
                               "expected this or --model, found both");
    if (values->params > MOST_ELEMS)
        return cli_suggest(err,
                           cli_fail_option(err, PHEMA_ERR_USAGE, "params",
                                           "expected at most 2^50, found %llu",
                                           (unsigned long long)values->params),
                           "params", "2.6B");
    if (values->params) {
        asked->question.model_elems = values->params;
        return PHEMA_OK;
    }
    if (phema_size_parse(&size, values->model, &ignored))
        return count_elems(&asked->question.model_elems, values->model, err);
    asked->question.model_elems = size / bytes[values->model_dtype];
    if (asked->question.model_elems > MOST_ELEMS)
        return cli_fail_option(err, PHEMA_ERR_USAGE, "model", "%s is more than %s", values->model,
                               phema_size_format(&most, 4 * MOST_ELEMS));
    return asked->question.model_elems
               ? PHEMA_OK
               : cli_suggest(err,
                             cli_fail_option(err, PHEMA_ERR_USAGE, "model",
                                             "%s is smaller than one number; it counts bytes, "
                                             "--params parameters",
                                             values->model),
                             "model", "2.6GB");
}

/* ---- What is allowed ---- */

static enum phema_status set_widths(struct design_asked *asked, struct design_values *values,
                                    struct phema_error *err)
{
    const struct design_trainer *trainer = asked->trainer;
    struct phema_design_question *question = &asked->question;
    question->least_widths = trainer->least_widths;
    question->most_widths = trainer->most_widths;
    if (values->max_widths > PHEMA_DESIGN_MAX_WIDTHS)
        return cli_suggest(err,
                           cli_fail_option(err, PHEMA_ERR_USAGE, "max-widths",
                                           "expected 1 to %d, found %zu", PHEMA_DESIGN_MAX_WIDTHS,
                                           (size_t)values->max_widths),
                           "max-widths", "4");
    if (values->max_widths) {
        if (values->max_widths < trainer->least_widths)
            return cli_fail_option(err, PHEMA_ERR_USAGE, "max-widths",
                                   "%s keeps %zu widths or more, found %zu", trainer->name,
                                   trainer->least_widths, (size_t)values->max_widths);
        question->most_widths = values->max_widths < trainer->most_widths
                                    ? (size_t)values->max_widths
                                    : trainer->most_widths;
    } else if (question->most_widths > 3) {
        question->most_widths = 3; /* each is a copy of the model in the trainer's memory */
    }
    struct cli_reals *fixed = &values->input_sigmas;
    if (!fixed->n)
        return PHEMA_OK;
    if (trainer->most_widths == 1 && fixed->n != 1)
        return cli_fail_option(err, PHEMA_ERR_USAGE, "input-sigma", "%s keeps one width, found %zu",
                               trainer->name, fixed->n);
    if (fixed->n < trainer->least_widths || fixed->n > trainer->most_widths)
        return cli_fail_option(err, PHEMA_ERR_USAGE, "input-sigma",
                               "%s keeps from %zu to %zu widths, found %zu", trainer->name,
                               trainer->least_widths, trainer->most_widths, fixed->n);
    qsort(fixed->items, fixed->n, sizeof(*fixed->items), phema_compare_doubles);
    for (size_t k = 0; k < fixed->n; k++) {
        double gamma = 0;
        enum phema_status status = phema_gamma_from_sigma_rel(&gamma, fixed->items[k], err);
        if (status)
            return cli_fail_in_option(err, status, "input-sigma");
        double unit = trainer->width_unit;
        if (unit > 0 && fabs(fixed->items[k] / unit - round(fixed->items[k] / unit)) > 1e-6)
            return cli_fail_option(err, PHEMA_ERR_USAGE, "input-sigma",
                                   "%s names files by multiples of %g, found %g", trainer->name,
                                   unit, fixed->items[k]);
        if (k && fixed->items[k] == fixed->items[k - 1])
            return cli_fail_option(err, PHEMA_ERR_USAGE, "input-sigma", "%g is there twice",
                                   fixed->items[k]);
    }
    question->fixed = fixed->items;
    question->n_fixed = question->most_widths = fixed->n;
    return PHEMA_OK;
}

static enum phema_status set_dtypes(struct design_asked *asked, const struct design_values *values,
                                    struct phema_error *err)
{
    static const enum phema_dtype chosen[] = {0, PHEMA_F32, PHEMA_F16, PHEMA_BF16};
    const struct design_trainer *trainer = asked->trainer;
    asked->question.dtypes = asked->dtypes;
    asked->question.n_dtypes = trainer->n_dtypes;
    memcpy(asked->dtypes, trainer->dtypes, sizeof(asked->dtypes));
    if (!values->dtype)
        return PHEMA_OK;
    bool is_able = strcmp(trainer->name, "any") == 0 || strcmp(trainer->name, "ema-pytorch") == 0 ||
                   trainer->dtypes[0] == chosen[values->dtype];
    if (!is_able)
        return cli_fail_option(err, PHEMA_ERR_USAGE, "dtype", "%s writes %s", trainer->name,
                               phema_dtype_name(trainer->dtypes[0]));
    asked->dtypes[0] = chosen[values->dtype];
    asked->question.n_dtypes = 1;
    return PHEMA_OK;
}

static enum phema_status set_limits(struct design_asked *asked, struct design_values *values,
                                    struct phema_error *err)
{
    struct phema_design_question *question = &asked->question;
    bool has_error = !isnan(values->max_error);
    if (!values->disk_bytes && !has_error)
        return suggest_missing(err,
                               phema_fail(err, PHEMA_ERR_USAGE,
                                          "design: --disk is missing, the space for all snapshots; "
                                          "or give --max-error"),
                               values);
    if (has_error && !(values->max_error > 0))
        return cli_suggest(err,
                           cli_fail_option(err, PHEMA_ERR_USAGE, "max-error",
                                           "expected an error above 0, found %g",
                                           values->max_error),
                           "max-error", "1e-3");
    question->disk_bytes = values->disk_bytes ? values->disk_bytes : UINT64_MAX;
    question->max_error = has_error ? values->max_error : 0;
    question->shape = asked->trainer->shape;
    question->has_raw = asked->trainer->has_raw;
    question->grain = asked->trainer->grain;
    question->n_useless = asked->trainer->n_useless;
    question->width_unit = asked->trainer->width_unit;
    question->other_bytes =
        phema_dtype_bytes(PHEMA_F32, asked->trainer->n_states * question->model_elems);
    question->spacing =
        asked->trainer->is_even || values->is_even ? PHEMA_SPACING_EVEN : PHEMA_SPACING_AUTO;
    enum phema_status status = set_widths(asked, values, err);
    return status ? status : set_dtypes(asked, values, err);
}

/* ---- Raw checkpoints ---- */

/* They exist whatever is planned. A series has one dtype, so that they are rounded as snapshots
 * are; their rounding matters little beside the motion between them. */
static enum phema_status set_raw_checkpoints(struct design_asked *asked,
                                             struct design_values *values, struct phema_error *err)
{
    struct phema_design_question *question = &asked->question;
    double every = values->raw_every, until = question->until;
    if (isnan(every))
        return PHEMA_OK;
    if (values->keep_existing)
        return cli_fail_option(err, PHEMA_ERR_USAGE, "raw-every",
                               "--keep-existing lists what there is; give one of them");
    if (asked->trainer->has_raw)
        return cli_fail_option(err, PHEMA_ERR_USAGE, "raw-every",
                               "the files of %s hold the raw parameters already",
                               asked->trainer->name);
    if (!(every >= 1 && every <= until && every == floor(every)))
        return fail_time("raw-every", every, until, err);
    if (until / every > PHEMA_DESIGN_MAX_SNAPSHOTS)
        return cli_fail_option(err, PHEMA_ERR_USAGE, "raw-every",
                               "expected at most %d checkpoints, found %.0f; give a longer "
                               "interval",
                               PHEMA_DESIGN_MAX_SNAPSHOTS, floor(until / every));
    size_t n = (size_t)(until / every);
    struct phema_profile *kept = phema_arena_array(&values->common.arena, n, sizeof(*kept));
    double *rounding = phema_arena_array(&values->common.arena, n, sizeof(*rounding));
    if (!kept || !rounding)
        return phema_fail_memory(err);
    for (size_t i = 0; i < n; i++) {
        kept[i] = (struct phema_profile){.shape = PHEMA_SHAPE_RAW, .t = every * (double)(i + 1)};
        rounding[i] = phema_dtype_rounding(question->dtypes[0]);
    }
    question->kept = kept;
    question->kept_rounding = rounding;
    question->n_kept = n;
    return PHEMA_OK;
}

PHEMA_FALLIBLE design_ask(struct design_asked *out, struct design_values *values,
                          struct phema_error *err)
{
    *out = (struct design_asked){.values = values, .trainer = design_find_trainer(values->trainer)};
    enum phema_status status = set_unit(out, values, err);
    if (!status)
        status = set_times(out, values, err);
    if (!status)
        status = set_model(out, values, err);
    if (!status)
        status = set_limits(out, values, err);
    if (!status)
        status = set_targets(out, values, err);
    if (!status)
        status = set_raw_checkpoints(out, values, err);
    if (status)
        return status;
    if (values->like || values->keep_existing)
        status = design_use_run(out, values, err);
    if (status)
        return status;
    if (cli_is_given(&values->common, "motion") || !out->run)
        out->question.motion =
            (struct phema_design_motion){.moving = (enum phema_design_moving)values->motion};
    if (values->keep_existing)
        status = design_choose_kept(out, err);
    if (status)
        return status;
    const struct phema_profile *finer = out->finer.targets;
    size_t n_finer = out->finer.n_targets;
    out->finer = out->question;
    out->finer.targets = finer;
    out->finer.n_targets = n_finer;
    return PHEMA_OK;
}

void design_asked_clear(struct design_asked *asked)
{
    phema_plan_free(asked->run);
    asked->run = NULL;
}
