// SPDX-License-Identifier: Apache-2.0
/* run.c - runs a plan. */
#include "phema/setting.h"
#include "plan.h"

/* ---- Options ---- */

/* the first one is the default */
static const char *const hash_names[] = {PHEMA_HASHES_INPUTS ? "full" : "sampled",
                                         PHEMA_HASHES_INPUTS ? "sampled" : "full", NULL};

struct choices {
    struct api_choices of_tensors;
    size_t hash; /* index into hash_names */
};

static enum phema_status choose(struct choices *choices, const struct posthoc_ema_run_options *o,
                                struct phema_error *err)
{
    enum phema_status status =
        api_choose(&choices->of_tensors, o->dtype, o->overflow, o->io, o->threads, err);
    if (status)
        return status;
    status = call_find_choice(&choices->hash, o->input_hash, hash_names, "input_hash", err);
    if (status)
        return status;
    if (o->level < 0 || o->level > PHEMA_MAX_LEVEL)
        return phema_fail(err, PHEMA_ERR_USAGE, "level: from 1 to %d, found %d", PHEMA_MAX_LEVEL,
                          o->level);
    return PHEMA_OK;
}

/* The command that makes the same bytes, without its target. */
static void write_command(struct phema_strbuf *out, const struct posthoc_ema_plan *plan,
                          const struct posthoc_ema_run_options *o)
{
    phema_strbuf_puts(out, plan->series_options.command + 1); /* skips the leading space */
    api_options_add(out, PHEMA_SET_METRIC, plan->metric);
    api_options_add(out, PHEMA_SET_SCHEDULE, plan->schedule);
    for (size_t i = 0; i < plan->n_rules; i++)
        api_options_add(out, PHEMA_SET_RULE, plan->rules[i]);
    api_options_add(out, PHEMA_SET_INTO, o->into);
    api_options_add(out, PHEMA_SET_DTYPE, o->dtype);
    api_options_add(out, PHEMA_SET_OVERFLOW, o->overflow);
    api_options_add(out, PHEMA_SET_INPUT_HASH, o->input_hash);
    if (o->shard_bytes)
        phema_strbuf_printf(out, " %s %llu", phema_setting_dashed(PHEMA_SET_SHARD_SIZE),
                            (unsigned long long)o->shard_bytes);
    if (o->level)
        phema_strbuf_printf(out, " %s %d", phema_setting_dashed(PHEMA_SET_LEVEL), o->level);
}

static enum phema_status make_outputs(struct phema_outputs *outputs,
                                      const struct posthoc_ema_plan *plan, const char *out,
                                      const struct posthoc_ema_run_options *o,
                                      const struct choices *choices, struct phema_error *err)
{
    struct phema_strbuf command = {0};
    write_command(&command, plan, o);
    struct phema_outputs_options options = choices->of_tensors.outputs;
    options.out = out;
    options.into = o->into;
    options.key = plan->series_options.options.key;
    options.shard_bytes = o->shard_bytes;
    options.level = o->level;
    options.checkpoint = plan->series_options.options.checkpoint;
    options.accumulator = "auto";
    options.hashes_inputs = PHEMA_HASHES_INPUTS == (choices->hash == 0);
    options.command_options = command.data;
    enum phema_status status = phema_strbuf_check(&command, err);
    if (!status)
        status = phema_outputs_make(outputs, plan->plan, &options, err);
    phema_strbuf_clear(&command);
    return status;
}

/* ---- Running ---- */

static enum phema_status execute(struct posthoc_ema_plan *plan, struct phema_outputs *outputs,
                                 const struct posthoc_ema_run_options *o,
                                 const struct choices *choices, struct api_watch *watch,
                                 struct phema_synth_result *result, struct phema_error *err)
{
    struct phema_synth_options options = choices->of_tensors.synth;
    options.replaces = o->replaces != 0;
    options.syncs = !o->skips_sync;
    options.drops_cache = o->drops_cache != 0;
    options.max_ram_bytes = plan->max_ram_bytes;
    options.verifies = o->verifies != 0;
    options.refuses_nan = o->refuses_nan != 0;
    watch->progress = o->progress;
    watch->context = o->context;
    api_watch_run(watch, &options);
    return phema_synth_run(result, plan->plan, outputs, &options, err);
}

static enum phema_status fill_result(struct posthoc_ema_result *out,
                                     const struct phema_synth_result *r, struct phema_error *err)
{
    struct posthoc_ema_result known = {
        .read_bytes = r->read_bytes,
        .written_bytes = r->written_bytes,
        .elapsed_s = r->elapsed_s,
        .n_nan = r->n_nan,
        .n_inf = r->n_inf,
        .n_overflow = r->n_overflow,
        .n_averaged = r->n_averaged,
        .n_copied = r->n_copied,
        .n_constant = r->n_constant,
        .peak_anonymous_bytes = r->peak_anonymous_bytes,
    };
    return out ? call_fill_struct(out, &known, sizeof(known), "posthoc_ema_result", err) : PHEMA_OK;
}

static enum phema_status run(struct posthoc_ema_plan *plan, const char *out,
                             const struct posthoc_ema_run_options *o, struct api_watch *watch,
                             struct posthoc_ema_result *result, struct phema_error *err)
{
    struct choices choices;
    struct phema_outputs outputs = {0};
    struct phema_synth_result counts = {0};
    enum phema_status status = choose(&choices, o, err);
    if (status)
        return status;
    if (!out)
        return phema_fail(err, PHEMA_ERR_USAGE, "out: expected a path, found NULL");
    status = fill_result(result, &counts, err); /* refuses an invalid size before the run */
    if (status)
        return status;
    status = phema_series_identify(plan->plan->series, err);
    if (status)
        return status;
    status = make_outputs(&outputs, plan, out, o, &choices, err);
    if (!status)
        status = execute(plan, &outputs, o, &choices, watch, &counts, err);
    if (status) {
        phema_outputs_clear(&outputs);
        return status;
    }
    phema_outputs_clear(&plan->outputs);
    plan->outputs = outputs;
    return fill_result(result, &counts, err);
}

enum posthoc_ema_status posthoc_ema_run(struct posthoc_ema_plan *plan, const char *out,
                                        const struct posthoc_ema_run_options *options,
                                        struct posthoc_ema_result *result,
                                        struct posthoc_ema_error *error)
{
    struct call call = call_begin();
    struct posthoc_ema_run_options o;
    struct api_watch watch = {.callers = call.before};
    enum phema_status status =
        call_read_struct(&o, sizeof(o), options, "posthoc_ema_run_options", &call.err);
    if (!status)
        status = run(plan, out, &o, &watch, result, &call.err);
    return api_watch_end(&watch, call_end(&call, status, error));
}
