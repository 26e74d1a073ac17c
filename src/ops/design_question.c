// SPDX-License-Identifier: Apache-2.0
/* design_question.c - from wishes to a question. */
#include <math.h>
#include <string.h>

#include "design_run.h"
#include "phema/number.h"
#include "phema/setting.h"
#include "phema/sort.h"
#include "phema/strbuf.h"

/* ---- What trainers can store ---- */

const struct design_trainer design_trainers[] = {
    {.name = "any", 1, 4, .dtypes = {PHEMA_F16, PHEMA_F32}, .n_dtypes = 2},
    /* the interval of train_edm2.py is a multiple of the batch, 2048 in all presets; pickles are F16,
     * the first ones of image 0, and names have three decimals of a width */
    {"edm2", 1, 4, .is_even = true, .grain = 2048, .n_useless = 1, .width_unit = 1e-3,
     .unit = "images", .dtypes = {PHEMA_F16}, .n_dtypes = 1},
    {"ema-pytorch", 2, 4, .is_even = true, .unit = "steps", .dtypes = {PHEMA_F16, PHEMA_F32},
     .n_dtypes = 2},
    {"posthoc-ema", 1, 4, .is_even = true, .unit = "steps", .dtypes = {PHEMA_F32}, .n_dtypes = 1},
    /* both save all that resumes a training; without the optimizer there is no average either */
    {"torchtitan", 1, 4, .has_raw = true, .is_even = true, .n_states = 2, .unit = "steps",
     .dtypes = {PHEMA_F32}, .n_dtypes = 1},
    {"lightning", 1, 1, PHEMA_SHAPE_EMA, .has_raw = true, .is_even = true, .n_states = 2,
     .unit = "steps", .dtypes = {PHEMA_F32}, .n_dtypes = 1},
};

/* ---- Targets ---- */

static enum phema_status add_width(struct phema_profile *out, double sigma_rel,
                                   struct phema_error *err)
{
    *out = (struct phema_profile){0};
    enum phema_status status = phema_gamma_from_sigma_rel(&out->gamma, sigma_rel, err);
    return status ? phema_suggest(err, phema_fail_in_setting(err, status, PHEMA_SET_SIGMA_REL),
                                  PHEMA_SET_SIGMA_REL, sigma_rel > 0.1 ? "0.02:0.25" : "0.05")
                  : PHEMA_OK;
}

/* All that a question needs and this one lacks, which the message says, in one command that runs. */
static enum phema_status suggest_missing(struct phema_error *err, enum phema_status status,
                                         const struct design_wishes *wishes)
{
    const struct {
        bool is_missing;
        enum phema_setting setting;
        const char *value;
    } needed[] = {{isnan(wishes->until), PHEMA_SET_UNTIL, "1M"},
                  {!wishes->model && !wishes->params, PHEMA_SET_PARAMS, "650M"},
                  {!wishes->disk_bytes && isnan(wishes->max_error), PHEMA_SET_DISK, "500G"},
                  {!wishes->n_sigma_rels && wishes->to == 0 && !wishes->n_profiles,
                   PHEMA_SET_SIGMA_REL, "0.02:0.25"}};
    struct phema_strbuf text = {0};
    phema_strbuf_puts(&text, err->message);
    for (size_t i = 0, n = 0; i < ARRAY_LEN(needed); i++) {
        const char *name = phema_setting_name(needed[i].setting);
        if (needed[i].is_missing && !strstr(err->message, name))
            phema_strbuf_printf(&text, "%s%s", n++ ? ", " : "; missing too: ", name);
    }
    status = text.is_failed ? status : phema_fail(err, status, "%s", text.data);
    phema_strbuf_clear(&text);
    for (size_t i = 0; i < ARRAY_LEN(needed); i++)
        if (needed[i].is_missing)
            (void)phema_suggest(err, status, needed[i].setting, needed[i].value);
    return status;
}

/* A range in equal ratios, or a list; the list is searched and shown. */
static enum phema_status set_widths_wanted(const double **sigma_rels, size_t *n_searched,
                                           size_t *n_shown, struct design_asked *asked,
                                           struct phema_error *err)
{
    const struct design_wishes *wishes = asked->wishes;
    double first = wishes->from, last = wishes->to;
    *sigma_rels = wishes->sigma_rels;
    *n_searched = *n_shown = wishes->n_sigma_rels;
    if (first == 0 && last == 0)
        return PHEMA_OK;
    if (!(first > 0 && last > first))
        return phema_suggest(err,
                             phema_fail_setting(err, PHEMA_ERR_USAGE, PHEMA_SET_SIGMA_REL,
                                                "expected a range from a lower to a higher "
                                                "width, found %g to %g",
                                                first, last),
                             PHEMA_SET_SIGMA_REL, "0.02:0.25");
    struct phema_profile unused;
    double *widths = phema_arena_array(&asked->arena, PHEMA_DESIGN_SEARCHED + PHEMA_DESIGN_SHOWN,
                                       sizeof(*widths));
    if (!widths)
        return phema_fail_memory(err);
    enum phema_status status = add_width(&unused, last, err);
    if (status)
        return status;
    phema_design_spread(widths, PHEMA_DESIGN_SEARCHED, first, last);
    phema_design_spread(widths + PHEMA_DESIGN_SEARCHED, PHEMA_DESIGN_SHOWN, first, last);
    *sigma_rels = widths;
    *n_searched = PHEMA_DESIGN_SEARCHED;
    *n_shown = PHEMA_DESIGN_SHOWN;
    return PHEMA_OK;
}

static enum phema_status read_profile(struct design_asked *asked, size_t at, const char *text,
                                      struct phema_profile *out, struct phema_error *err)
{
    struct phema_spec *spec = NULL;
    enum phema_status status = phema_spec_parse(&spec, &asked->arena, text, err);
    if (status)
        return phema_spec_fail(err, status, PHEMA_SET_PROFILE, text);
    for (size_t e = 0; e < asked->question.n_ends; e++) {
        status = phema_spec_profile(out, spec, asked->question.ends[e], err);
        if (status)
            return phema_fail_in_setting(err, PHEMA_ERR_USAGE, PHEMA_SET_PROFILE);
    }
    if (out->shape == PHEMA_SHAPE_RAW && !asked->trainer->has_raw)
        return phema_fail_setting(err, PHEMA_ERR_USAGE, PHEMA_SET_PROFILE,
                                  "raw parameters are no average of others; store them as they "
                                  "are at each wanted time");
    if (asked->wishes->after > 0 && out->length > 0)
        return phema_fail_setting(err, PHEMA_ERR_USAGE, PHEMA_SET_AFTER,
                                  "averages over a window are planned for certain times; give "
                                  "%s for '%s'",
                                  phema_setting_name(PHEMA_SET_AT), text);
    out->length = out->shape == PHEMA_SHAPE_POWER ? 0 : out->length;
    asked->specs[at] = spec->canonical;
    asked->sigma_rels[at] = spec->sigma_rel;
    return PHEMA_OK;
}

static enum phema_status set_targets(struct design_asked *asked, struct phema_error *err)
{
    const struct design_wishes *wishes = asked->wishes;
    struct phema_arena *arena = &asked->arena;
    const double *sigma_rels = NULL;
    size_t n_searched, n_shown, n_profiles = wishes->n_profiles;
    enum phema_status status = set_widths_wanted(&sigma_rels, &n_searched, &n_shown, asked, err);
    if (status)
        return status;
    if (n_shown + n_profiles == 0)
        return suggest_missing(
            err,
            phema_fail(err, PHEMA_ERR_USAGE,
                       "design: no average to plan for; give %s, such as 0.02:0.25, or %s",
                       phema_setting_name(PHEMA_SET_SIGMA_REL),
                       phema_setting_name(PHEMA_SET_PROFILE)),
            wishes);
    if (n_shown + n_profiles > PHEMA_DESIGN_MAX_TARGETS)
        return phema_fail_setting(err, PHEMA_ERR_USAGE, PHEMA_SET_SIGMA_REL,
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
        status = read_profile(asked, n_shown + i, wishes->profiles[i], &finer[n_shown + i], err);
        searched[n_searched + i] = finer[n_shown + i];
    }
    asked->question.targets = searched;
    asked->question.n_targets = n_searched + n_profiles;
    asked->finer.targets = finer;
    asked->finer.n_targets = n_finer;
    return status;
}

/* ---- Times ---- */

static enum phema_status fail_time(enum phema_setting setting, double time, double until,
                                   struct phema_error *err)
{
    struct phema_name_buffer shown, end;
    return phema_fail_setting(
        err, PHEMA_ERR_USAGE, setting,
        "expected a whole number from 1 to %s, the end of the training, found %s",
        phema_number_format(&end, until), phema_number_format(&shown, time));
}

static enum phema_status set_unit(struct design_asked *asked, struct phema_error *err)
{
    const struct design_trainer *trainer = asked->trainer;
    asked->unit = asked->wishes->unit ? asked->wishes->unit
                  : trainer->unit     ? trainer->unit
                                      : "steps";
    return !trainer->unit || strcmp(asked->unit, trainer->unit) == 0
               ? PHEMA_OK
               : phema_fail_setting(err, PHEMA_ERR_USAGE, PHEMA_SET_UNIT, "%s counts %s, found %s",
                                    trainer->name, trainer->unit, asked->unit);
}

static enum phema_status set_times(struct design_asked *asked, struct phema_error *err)
{
    const struct design_wishes *wishes = asked->wishes;
    double until = wishes->until;
    if (isnan(until))
        return suggest_missing(err,
                               phema_fail(err, PHEMA_ERR_USAGE,
                                          "design: %s is missing, the steps of the training",
                                          phema_setting_name(PHEMA_SET_UNTIL)),
                               wishes);
    if (!(until >= 2 && until < 0x1p53 && until == floor(until))) {
        (void)phema_fail_setting(err, PHEMA_ERR_USAGE, PHEMA_SET_UNTIL,
                                 "expected a training of 2 steps or more, a whole number, found %g",
                                 until);
        return phema_suggest(err, PHEMA_ERR_USAGE, PHEMA_SET_UNTIL, "1M");
    }
    size_t n = wishes->n_ats;
    if (n + 1 > PHEMA_DESIGN_MAX_ENDS)
        return phema_fail_setting(err, PHEMA_ERR_USAGE, PHEMA_SET_AT,
                                  "expected at most %d times, found %zu", PHEMA_DESIGN_MAX_ENDS - 1,
                                  n);
    double *ends = phema_arena_array(&asked->arena, n + 1, sizeof(*ends));
    if (!ends)
        return phema_fail_memory(err);
    for (size_t i = 0; i < n; i++) {
        ends[i] = wishes->ats[i];
        if (!(ends[i] >= 1 && ends[i] <= until && ends[i] == floor(ends[i])))
            return fail_time(PHEMA_SET_AT, ends[i], until, err);
    }
    ends[n] = until; /* the end is always wanted */
    if (!isnan(wishes->after) && !(wishes->after >= 1 && wishes->after < until))
        return fail_time(PHEMA_SET_AFTER, wishes->after, until, err);
    asked->question.until = until;
    asked->question.ends = ends;
    asked->question.n_ends = phema_sort_distinct(ends, n + 1);
    asked->question.after = isnan(wishes->after) ? 0 : wishes->after;
    return PHEMA_OK;
}

/* ---- The model ---- */

static enum phema_status count_elems(uint64_t *out, const char *path, struct phema_error *err)
{
    struct phema_checkpoint *checkpoint = NULL;
    enum phema_status status = phema_checkpoint_open(&checkpoint, path, NULL, err);
    if (status)
        return phema_fail_in_setting(err, status, PHEMA_SET_MODEL);
    *out = 0;
    const struct phema_tensor *tensors = phema_checkpoint_tensors(checkpoint);
    for (size_t i = 0; i < phema_checkpoint_n_tensors(checkpoint); i++)
        if (phema_dtype_is_float(tensors[i].dtype))
            *out += tensors[i].n_elems;
    phema_checkpoint_close(checkpoint);
    return *out ? PHEMA_OK
                : phema_fail_setting(err, PHEMA_ERR_INPUTS, PHEMA_SET_MODEL,
                                     "%s: has no floating-point tensor", path);
}

/* Sizes of all snapshots fit 64 bits. */
#define MOST_ELEMS ((uint64_t)1 << 50)

static enum phema_status set_model(struct design_asked *asked, struct phema_error *err)
{
    const struct design_wishes *wishes = asked->wishes;
    struct phema_error ignored = {0};
    struct phema_name_buffer most;
    uint64_t size = 0;
    if (!wishes->model && !wishes->params)
        return suggest_missing(
            err,
            phema_fail(err, PHEMA_ERR_USAGE,
                       "design: %s is missing, the number of parameters; or give %s FILE",
                       phema_setting_name(PHEMA_SET_PARAMS), phema_setting_name(PHEMA_SET_MODEL)),
            wishes);
    if (wishes->model && wishes->params)
        return phema_fail_setting(err, PHEMA_ERR_USAGE, PHEMA_SET_PARAMS,
                                  "expected this or %s, found both",
                                  phema_setting_name(PHEMA_SET_MODEL));
    if (wishes->params > MOST_ELEMS)
        return phema_suggest(err,
                             phema_fail_setting(err, PHEMA_ERR_USAGE, PHEMA_SET_PARAMS,
                                                "expected at most 2^50, found %llu",
                                                (unsigned long long)wishes->params),
                             PHEMA_SET_PARAMS, "2.6B");
    if (wishes->params) {
        asked->question.model_elems = wishes->params;
        return PHEMA_OK;
    }
    if (phema_size_parse(&size, wishes->model, &ignored))
        return count_elems(&asked->question.model_elems, wishes->model, err);
    asked->question.model_elems = size / wishes->bytes_per_param;
    if (asked->question.model_elems > MOST_ELEMS)
        return phema_fail_setting(err, PHEMA_ERR_USAGE, PHEMA_SET_MODEL, "%s is more than %s",
                                  wishes->model, phema_size_format(&most, 4 * MOST_ELEMS));
    return asked->question.model_elems
               ? PHEMA_OK
               : phema_suggest(err,
                               phema_fail_setting(err, PHEMA_ERR_USAGE, PHEMA_SET_MODEL,
                                                  "%s is smaller than one number; it counts bytes, "
                                                  "%s parameters",
                                                  wishes->model,
                                                  phema_setting_name(PHEMA_SET_PARAMS)),
                               PHEMA_SET_MODEL, "2.6GB");
}

/* ---- What is allowed ---- */

static enum phema_status set_widths(struct design_asked *asked, struct phema_error *err)
{
    const struct design_wishes *wishes = asked->wishes;
    const struct design_trainer *trainer = asked->trainer;
    struct phema_design_question *question = &asked->question;
    /* without a wish 3, since each is a copy of the model in the trainer's memory */
    size_t most = wishes->max_widths ? (size_t)wishes->max_widths : 3;
    if (most > PHEMA_DESIGN_MAX_WIDTHS) {
        (void)phema_fail_setting(err, PHEMA_ERR_USAGE, PHEMA_SET_MAX_WIDTHS,
                                 "expected 1 to %d, found %zu", PHEMA_DESIGN_MAX_WIDTHS, most);
        return phema_suggest(err, PHEMA_ERR_USAGE, PHEMA_SET_MAX_WIDTHS, "4");
    }
    if (most < trainer->least_widths)
        return phema_fail_setting(err, PHEMA_ERR_USAGE, PHEMA_SET_MAX_WIDTHS,
                                  "%s keeps %zu widths or more, found %zu", trainer->name,
                                  trainer->least_widths, most);
    question->least_widths = trainer->least_widths;
    question->most_widths = most < trainer->most_widths ? most : trainer->most_widths;
    size_t n = wishes->n_input_sigmas;
    if (!n)
        return PHEMA_OK;
    if (trainer->most_widths == 1 && n != 1)
        return phema_fail_setting(err, PHEMA_ERR_USAGE, PHEMA_SET_INPUT_SIGMA,
                                  "%s keeps one width, found %zu", trainer->name, n);
    if (n < trainer->least_widths || n > trainer->most_widths)
        return phema_fail_setting(err, PHEMA_ERR_USAGE, PHEMA_SET_INPUT_SIGMA,
                                  "%s keeps from %zu to %zu widths, found %zu", trainer->name,
                                  trainer->least_widths, trainer->most_widths, n);
    double *fixed = phema_arena_array(&asked->arena, n, sizeof(*fixed));
    if (!fixed)
        return phema_fail_memory(err);
    memcpy(fixed, wishes->input_sigmas, n * sizeof(*fixed));
    qsort(fixed, n, sizeof(*fixed), phema_compare_doubles);
    for (size_t k = 0; k < n; k++) {
        double gamma = 0;
        enum phema_status status = phema_gamma_from_sigma_rel(&gamma, fixed[k], err);
        if (status)
            return phema_fail_in_setting(err, status, PHEMA_SET_INPUT_SIGMA);
        double unit = trainer->width_unit;
        if (unit > 0 && fabs(fixed[k] / unit - round(fixed[k] / unit)) > 1e-6)
            return phema_fail_setting(err, PHEMA_ERR_USAGE, PHEMA_SET_INPUT_SIGMA,
                                      "%s names files by multiples of %g, found %g", trainer->name,
                                      unit, fixed[k]);
        if (k && fixed[k] == fixed[k - 1])
            return phema_fail_setting(err, PHEMA_ERR_USAGE, PHEMA_SET_INPUT_SIGMA,
                                      "%g is there twice", fixed[k]);
    }
    question->fixed = fixed;
    question->n_fixed = question->most_widths = n;
    return PHEMA_OK;
}

static enum phema_status set_dtypes(struct design_asked *asked, struct phema_error *err)
{
    const struct design_wishes *wishes = asked->wishes;
    const struct design_trainer *trainer = asked->trainer;
    asked->question.dtypes = asked->dtypes;
    asked->question.n_dtypes = trainer->n_dtypes;
    memcpy(asked->dtypes, trainer->dtypes, sizeof(asked->dtypes));
    if (!wishes->dtype)
        return PHEMA_OK;
    bool is_able = strcmp(trainer->name, "any") == 0 || strcmp(trainer->name, "ema-pytorch") == 0 ||
                   trainer->dtypes[0] == *wishes->dtype;
    if (!is_able)
        return phema_fail_setting(err, PHEMA_ERR_USAGE, PHEMA_SET_DTYPE, "%s writes %s",
                                  trainer->name, phema_dtype_name(trainer->dtypes[0]));
    asked->dtypes[0] = *wishes->dtype;
    asked->question.n_dtypes = 1;
    return PHEMA_OK;
}

static enum phema_status set_limits(struct design_asked *asked, struct phema_error *err)
{
    const struct design_wishes *wishes = asked->wishes;
    struct phema_design_question *question = &asked->question;
    bool has_error = !isnan(wishes->max_error);
    if (!wishes->disk_bytes && !has_error)
        return suggest_missing(
            err,
            phema_fail(err, PHEMA_ERR_USAGE,
                       "design: %s is missing, the space for all snapshots; or give %s",
                       phema_setting_name(PHEMA_SET_DISK), phema_setting_name(PHEMA_SET_MAX_ERROR)),
            wishes);
    if (has_error && !(wishes->max_error > 0)) {
        (void)phema_fail_setting(err, PHEMA_ERR_USAGE, PHEMA_SET_MAX_ERROR,
                                 "expected an error above 0, found %g", wishes->max_error);
        return phema_suggest(err, PHEMA_ERR_USAGE, PHEMA_SET_MAX_ERROR, "1e-3");
    }
    question->disk_bytes = wishes->disk_bytes ? wishes->disk_bytes : UINT64_MAX;
    question->max_error = has_error ? wishes->max_error : 0;
    question->shape = asked->trainer->shape;
    question->has_raw = asked->trainer->has_raw;
    question->grain = asked->trainer->grain;
    question->n_useless = asked->trainer->n_useless;
    question->width_unit = asked->trainer->width_unit;
    question->other_bytes =
        phema_dtype_bytes(PHEMA_F32, asked->trainer->n_states * question->model_elems);
    question->spacing =
        asked->trainer->is_even || wishes->is_even ? PHEMA_SPACING_EVEN : PHEMA_SPACING_AUTO;
    enum phema_status status = set_widths(asked, err);
    return status ? status : set_dtypes(asked, err);
}

/* ---- Raw checkpoints ---- */

/* They exist whatever is planned. A series has one dtype, so that they are rounded as snapshots
 * are; their rounding matters little beside the motion between them. */
static enum phema_status set_raw_checkpoints(struct design_asked *asked, struct phema_error *err)
{
    struct phema_design_question *question = &asked->question;
    double every = asked->wishes->raw_every, until = question->until;
    if (isnan(every))
        return PHEMA_OK;
    if (asked->wishes->keep_existing)
        return phema_fail_setting(err, PHEMA_ERR_USAGE, PHEMA_SET_RAW_EVERY,
                                  "%s lists what there is; give one of them",
                                  phema_setting_name(PHEMA_SET_KEEP_EXISTING));
    if (asked->trainer->has_raw)
        return phema_fail_setting(err, PHEMA_ERR_USAGE, PHEMA_SET_RAW_EVERY,
                                  "the files of %s hold the raw parameters already",
                                  asked->trainer->name);
    if (!(every >= 1 && every <= until && every == floor(every)))
        return fail_time(PHEMA_SET_RAW_EVERY, every, until, err);
    if (until / every > PHEMA_DESIGN_MAX_SNAPSHOTS)
        return phema_fail_setting(err, PHEMA_ERR_USAGE, PHEMA_SET_RAW_EVERY,
                                  "expected at most %d checkpoints, found %.0f; give a longer "
                                  "interval",
                                  PHEMA_DESIGN_MAX_SNAPSHOTS, floor(until / every));
    size_t n = (size_t)(until / every);
    struct phema_profile *kept = phema_arena_array(&asked->arena, n, sizeof(*kept));
    double *rounding = phema_arena_array(&asked->arena, n, sizeof(*rounding));
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

static enum phema_status set_motion(struct design_asked *asked,
                                    const struct phema_listener *listener, struct phema_error *err)
{
    const struct design_wishes *wishes = asked->wishes;
    bool has_run = wishes->like || wishes->keep_existing || wishes->like_plan;
    enum phema_status status = has_run ? design_use_run(asked, listener, err) : PHEMA_OK;
    if (status)
        return status;
    if (wishes->motion || !has_run)
        asked->question.motion = (struct phema_design_motion){
            .moving = wishes->motion ? *wishes->motion : PHEMA_MOVING_WALK};
    return wishes->keep_existing ? design_choose_kept(asked, err) : PHEMA_OK;
}

PHEMA_FALLIBLE design_ask(struct design_asked *out, const struct design_wishes *wishes,
                          const struct phema_listener *listener, struct phema_error *err)
{
    static enum phema_status (*const steps[])(struct design_asked *, struct phema_error *) = {
        set_unit, set_times, set_model, set_limits, set_targets, set_raw_checkpoints};
    *out = (struct design_asked){.wishes = wishes, .trainer = &design_trainers[wishes->trainer]};
    enum phema_status status = PHEMA_OK;
    for (size_t i = 0; i < ARRAY_LEN(steps) && !status; i++)
        status = steps[i](out, err);
    if (!status)
        status = set_motion(out, listener, err);
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
    phema_arena_clear(&asked->arena);
    *asked = (struct design_asked){.run = NULL};
}
