// SPDX-License-Identifier: Apache-2.0
/* gen_options.c - what a simulated training is asked for: averages, times, resets, or a design. */
#include <math.h>

#include "phema/design_question.h"
#include "phema/profile.h"
#include "remedy/remedy.h"
#include "verb_options.h"

/* Every profile must accept the last step as its end. */
static enum phema_status read_profile(struct phema_gen_profile *out, struct gen_values *args,
                                      const char *text, struct phema_error *err)
{
    struct phema_spec *spec = NULL;
    enum phema_status status = phema_spec_parse(&spec, &args->common.arena, text, err);
    if (status)
        return status;
    status = phema_spec_claim(spec, args->claims, err);
    if (status)
        return status;
    status = phema_spec_profile(&out->profile, spec, (double)args->options.steps, err);
    if (status)
        return status;
    out->profile.update_every = spec->update_every;
    out->sigma_rel = spec->is_by_gamma ? PHEMA_UNKNOWN : spec->sigma_rel;
    out->text = spec->canonical;
    out->name = spec->file_part;
    return PHEMA_OK;
}

/* Widths and profiles of snapshots, or of exact averages. */
struct kinds_option {
    const char *widths, *profiles;
    const double *usual; /* [n_usual] where neither is given */
    size_t n_usual;
    const struct cli_texts *texts; /* of profiles */
};

static enum phema_status read_kinds(struct phema_gen_kinds *kinds,
                                    const struct kinds_option *option, struct gen_values *args,
                                    struct phema_error *err)
{
    const struct cli_texts *texts = option->texts;
    struct phema_gen_profile *profiles =
        phema_arena_array(&args->common.arena, texts->n + 1, sizeof(*profiles));
    if (!profiles)
        return phema_fail_memory(err);
    kinds->profiles = profiles;
    kinds->n_profiles = texts->n;
    if (!kinds->n_sigmas && !texts->n) {
        kinds->sigmas = option->usual;
        kinds->n_sigmas = option->n_usual;
    }
    enum phema_status status =
        cli_check_widths(kinds->sigmas, kinds->n_sigmas, option->widths, err);
    if (status)
        return status;
    for (size_t i = 0; i < texts->n; i++) {
        status = read_profile(&profiles[i], args, texts->items[i], err);
        if (status)
            return cli_fail_in_option(err, status == PHEMA_ERR_INPUTS ? PHEMA_ERR_USAGE : status,
                                      option->profiles);
    }
    return PHEMA_OK;
}

static enum phema_status read_times(struct gen_values *args, struct phema_error *err)
{
    const struct cli_reals *given = &args->truth_at;
    uint64_t *times = phema_arena_array(&args->common.arena, given->n + 1, sizeof(*times));
    struct phema_name_buffer shown;
    if (!times)
        return phema_fail_memory(err);
    for (size_t i = 0; i < given->n; i++) {
        double time = given->items[i];
        if (!(time >= 1 && time < 0x1p53 && time == floor(time)))
            return cli_fail_option(err, PHEMA_ERR_USAGE, "truth-at",
                                   "expected whole steps, found %s",
                                   phema_number_format(&shown, time));
        times[i] = (uint64_t)time;
    }
    args->options.truth_times = times;
    args->options.n_truth_times = given->n;
    return PHEMA_OK;
}

/* --design: its times, widths and dtypes. */
static enum phema_status use_design(struct gen_values *args, struct phema_error *err)
{
    struct phema_gen_options *options = &args->options;
    static const char *const others[] = {"count",         "steps", "input-sigma",
                                         "input-profile", "dtype", "raw"};
    struct design_read design;
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (cli_is_given(&args->common, others[i]))
            return cli_fail_option(err, PHEMA_ERR_USAGE, others[i], "the design says it");
    enum phema_status status = design_read_file(&design, &args->common.arena, args->design, err);
    if (!status)
        status = phema_claims_add_input(args->claims, args->design, "the design", err);
    if (status)
        return cli_fail_in_option(err, status, "design");
    options->steps = (uint64_t)design.until;
    options->times = design.times;
    options->count = design.n_times;
    options->snapshots.sigmas = design.sigma_rels;
    options->snapshots.n_sigmas = design.n;
    options->is_raw = design.has_raw;
    options->dtype = design.dtype;
    options->raw_every = design.raw_every;
    if (!design.ema)
        return PHEMA_OK;
    args->input_profile.items = phema_arena_array(&args->common.arena, 1, sizeof(const char *));
    if (!args->input_profile.items)
        return phema_fail_memory(err);
    args->input_profile.items[0] = design.ema;
    args->input_profile.n = 1;
    return PHEMA_OK;
}

static enum phema_status read_resets(struct gen_values *args, struct phema_error *err)
{
    struct phema_reset *resets = NULL;
    enum phema_status status = phema_resets_parse(&resets, &args->common.arena,
                                                  args->reset_at.items, args->reset_at.n, err);
    args->options.resets = resets;
    args->options.n_resets = args->reset_at.n;
    return status ? cli_fail_in_option(err, status, "reset-at") : PHEMA_OK;
}

PHEMA_FALLIBLE gen_read_options(struct gen_values *args, struct phema_error *err)
{
    static const double usual[] = {0.05, 0.1};
    const struct kinds_option of_snapshots = {"input-sigma", "input-profile", usual,
                                              args->design ? 0 : ARRAY_LEN(usual),
                                              &args->input_profile};
    const struct kinds_option of_truths = {"truth", "truth-profile", &usual[1], 1,
                                           &args->truth_profile};
    enum phema_status status = phema_claims_new(&args->claims, err);
    args->options.claims = args->claims;
    if (!status && args->design)
        status = use_design(args, err);
    if (!status)
        status = read_kinds(&args->options.snapshots, &of_snapshots, args, err);
    if (!status)
        status = read_kinds(&args->options.truths, &of_truths, args, err);
    if (!status)
        status = read_times(args, err);
    return status ? status : read_resets(args, err);
}
