// SPDX-License-Identifier: Apache-2.0
/* run.c - runs a plan. */
#include <stdlib.h>
#include <string.h>

#include "phema/cpu.h"
#include "phema/synth.h"
#include "plan.h"

/* Progress and cancellation of a run. */
struct watch {
    const struct posthoc_ema_run_options *options;
    locale_t callers; /* callbacks run in it */
    bool is_stopped;
    struct posthoc_ema_progress read; /* the last report of reading; size 0: none yet */
};

static void report(void *context, const struct phema_progress *progress)
{
    struct watch *watch = context;
    if (watch->is_stopped)
        return;
    if (!progress->stage) /* afterwards what was read last is reported */
        watch->read = (struct posthoc_ema_progress){
            .size = sizeof(watch->read),
            .done_bytes = progress->done_bytes,
            .total_bytes = progress->total_bytes,
            .elapsed_s = progress->elapsed_s,
            .tensor = progress->tensor,
            .tensor_size = progress->tensor_size,
        };
    if (!watch->read.size)
        return;
    const struct posthoc_ema_progress known = watch->read;
    locale_t own = uselocale(watch->callers);
    watch->is_stopped = watch->options->progress(watch->options->context, &known) != 0;
    (void)uselocale(own);
}

static bool is_stopped(void *context)
{
    return ((const struct watch *)context)->is_stopped;
}

/* ---- Options ---- */

static const char *const dtype_names[] = {"auto", "same", "f32", "f16", "bf16", NULL};
static const enum phema_dtype dtypes[] = {PHEMA_F32, PHEMA_F32, PHEMA_F32, PHEMA_F16, PHEMA_BF16};
static const char *const overflow_names[] = {"error", "saturate", "inf", NULL};
static const enum phema_overflow_rule overflows[] = {
    PHEMA_OVERFLOW_IS_ERROR, PHEMA_OVERFLOW_SATURATES, PHEMA_OVERFLOW_BECOMES_INF};
static const char *const io_names[] = {"auto", "mmap", "read", "direct", NULL};
static const enum phema_io ios[] = {PHEMA_IO_AUTO, PHEMA_IO_MMAP, PHEMA_IO_READ, PHEMA_IO_DIRECT};

/* the first one is the default */
static const char *const hash_names[] = {PHEMA_HASHES_INPUTS ? "full" : "sampled",
                                         PHEMA_HASHES_INPUTS ? "sampled" : "full", NULL};

/* Indices into these tables. */
struct choices {
    size_t dtype, overflow, io, hash;
};

static enum phema_status choose(struct choices *choices, const struct posthoc_ema_run_options *o,
                                struct phema_error *err)
{
    const struct {
        size_t *index;
        const char *word, *const *names, *option;
    } options[] = {{&choices->dtype, o->dtype, dtype_names, "dtype"},
                   {&choices->overflow, o->overflow, overflow_names, "overflow"},
                   {&choices->io, o->io, io_names, "io"},
                   {&choices->hash, o->input_hash, hash_names, "input_hash"}};
    for (size_t i = 0; i < ARRAY_LEN(options); i++) {
        enum phema_status status = call_find_choice(options[i].index, options[i].word,
                                                    options[i].names, options[i].option, err);
        if (status)
            return status;
    }
    if (o->threads > 1024)
        return phema_fail(err, PHEMA_ERR_USAGE, "threads: at most 1024, found %u", o->threads);
    if (o->level < 0 || o->level > 22)
        return phema_fail(err, PHEMA_ERR_USAGE, "level: from 1 to 22, found %d", o->level);
    return PHEMA_OK;
}

/* The command that makes the same bytes, without its target. */
static void write_command(struct phema_strbuf *out, const struct posthoc_ema_plan *plan,
                          const struct posthoc_ema_run_options *o)
{
    phema_strbuf_puts(out, plan->series_options.command + 1); /* skips the leading space */
    api_options_add(out, "--metric", plan->metric);
    for (size_t i = 0; i < plan->n_rules; i++)
        api_options_add(out, "--rule", plan->rules[i]);
    api_options_add(out, "--into", o->into);
    api_options_add(out, "--dtype", o->dtype);
    api_options_add(out, "--overflow", o->overflow);
    api_options_add(out, "--input-hash", o->input_hash);
    if (o->shard_bytes)
        phema_strbuf_printf(out, " --shard-size %llu", (unsigned long long)o->shard_bytes);
}

static enum phema_status make_outputs(struct phema_outputs *outputs,
                                      const struct posthoc_ema_plan *plan, const char *out,
                                      const struct posthoc_ema_run_options *o,
                                      const struct choices *choices, struct phema_error *err)
{
    struct phema_strbuf command = {0};
    write_command(&command, plan, o);
    struct phema_outputs_options options = {
        .out = out,
        .into = o->into,
        .key = plan->series_options.options.key,
        .shard_bytes = o->shard_bytes,
        .level = o->level,
        .checkpoint = plan->series_options.options.checkpoint,
        .has_dtype = choices->dtype > 1,
        .keeps_dtypes = choices->dtype == 1,
        .dtype = dtypes[choices->dtype],
        .accumulator = "auto",
        .hashes_inputs = PHEMA_HASHES_INPUTS == (choices->hash == 0),
        .command_options = command.data,
    };
    enum phema_status status = phema_strbuf_check(&command, err);
    if (!status)
        status = phema_outputs_make(outputs, plan->plan, &options, err);
    phema_strbuf_clear(&command);
    return status;
}

/* ---- Running ---- */

static enum phema_status execute(struct posthoc_ema_plan *plan, struct phema_outputs *outputs,
                                 const struct posthoc_ema_run_options *o,
                                 const struct choices *choices, struct watch *watch,
                                 struct phema_synth_result *result, struct phema_error *err)
{
    struct phema_synth_options options = {
        .n_threads = o->threads ? o->threads : phema_cpu_threads(),
        .sums = PHEMA_SUMS_AUTO,
        .overflow = overflows[choices->overflow],
        .replaces = o->replaces != 0,
        .syncs = !o->skips_sync,
        .io = ios[choices->io],
        .drops_cache = o->drops_cache != 0,
        .max_ram_bytes = plan->max_ram_bytes,
        .verifies = o->verifies != 0,
        .refuses_nan = o->refuses_nan != 0,
        .report = o->progress ? report : NULL,
        .is_stopped = o->progress ? is_stopped : NULL,
        .context = watch,
    };
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
                             const struct posthoc_ema_run_options *o, struct watch *watch,
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
    struct watch watch = {.options = &o, .callers = call.before};
    enum phema_status status =
        call_read_struct(&o, sizeof(o), options, "posthoc_ema_run_options", &call.err);
    if (!status)
        status = run(plan, out, &o, &watch, result, &call.err);
    enum posthoc_ema_status given = call_end(&call, status, error);
    return given == POSTHOC_EMA_NO && watch.is_stopped ? POSTHOC_EMA_CANCELLED : given;
}
