// SPDX-License-Identifier: Apache-2.0
/* run.c - carries a plan out: outputs, or tensors in memory. */
#include "api.h"

#include <stdlib.h>

#include "phema/cpu.h"

/* ---- Progress ---- */

/* The caller's callback, which sees the progress of a run or of one tensor and may stop it. */
struct watch {
    int (*progress)(void *context, const struct posthoc_ema_progress *progress);
    void *context;
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
    watch->is_stopped = watch->progress(watch->context, &known) != 0;
    (void)uselocale(own);
}

static bool is_stopped(void *context)
{
    return ((const struct watch *)context)->is_stopped;
}

/* Makes a run with these options report to the callback, if there is one. The watch outlives it. */
static void watch_run(struct watch *watch,
                      int (*progress)(void *, const struct posthoc_ema_progress *), void *context,
                      struct phema_synth_options *options)
{
    if (!progress)
        return;
    watch->progress = progress;
    watch->context = context;
    options->report = report;
    options->is_stopped = is_stopped;
    options->context = watch;
}

/* The status of the public call: CANCELLED where the callback stopped the run. */
static enum posthoc_ema_status watch_end(const struct watch *watch, enum posthoc_ema_status status)
{
    return status == POSTHOC_EMA_NO && watch->is_stopped ? POSTHOC_EMA_CANCELLED : status;
}

/* ---- Options ---- */

/* The options that runs and single tensors share, as those of the modules. */
struct choices {
    struct phema_outputs_options outputs; /* the dtypes */
    struct phema_synth_options synth;     /* overflow, io, threads */
};

/* PHEMA_ERR_USAGE names the option. */
static enum phema_status choose(struct choices *out, const char *dtype, const char *overflow,
                                const char *io, unsigned threads, struct phema_error *err)
{
    static const char *const dtype_names[] = {"auto", "same", "f32", "f16", "bf16", NULL};
    static const enum phema_dtype dtypes[] = {PHEMA_F32, PHEMA_F32, PHEMA_F32, PHEMA_F16,
                                              PHEMA_BF16};
    static const char *const overflow_names[] = {[PHEMA_OVERFLOW_IS_ERROR] = "error",
                                                 [PHEMA_OVERFLOW_SATURATES] = "saturate",
                                                 [PHEMA_OVERFLOW_BECOMES_INF] = "inf",
                                                 NULL};
    static const char *const io_names[] = {[PHEMA_IO_AUTO] = "auto",
                                           [PHEMA_IO_MMAP] = "mmap",
                                           [PHEMA_IO_READ] = "read",
                                           [PHEMA_IO_DIRECT] = "direct",
                                           NULL};
    size_t of_dtype = 0, of_overflow = 0, of_io = 0;
    enum phema_status status = call_find_choice(&of_dtype, dtype, dtype_names, "dtype", err);
    if (!status)
        status = call_find_choice(&of_overflow, overflow, overflow_names, "overflow", err);
    if (!status)
        status = call_find_choice(&of_io, io, io_names, "io", err);
    if (!status && threads > PHEMA_MAX_THREADS)
        status = phema_fail(err, PHEMA_ERR_USAGE, "threads: at most %d, found %u",
                            PHEMA_MAX_THREADS, threads);
    *out = (struct choices){
        .outputs = {.has_dtype = of_dtype > 1,
                    .keeps_dtypes = of_dtype == 1,
                    .dtype = dtypes[of_dtype]},
        .synth = {.n_threads = threads ? threads : phema_cpu_threads(),
                  .sums = PHEMA_SUMS_AUTO,
                  .overflow = (enum phema_overflow_rule)of_overflow,
                  .io = (enum phema_io)of_io},
    };
    return status;
}

/* Fills all options of a run but the command. */
static enum phema_status choose_run(struct choices *out, const struct posthoc_ema_plan *plan,
                                    const struct posthoc_ema_run_options *o,
                                    struct phema_error *err)
{
    /* the first one is the default */
    static const char *const hash_names[] = {PHEMA_HASHES_INPUTS ? "full" : "sampled",
                                             PHEMA_HASHES_INPUTS ? "sampled" : "full", NULL};
    size_t hash = 0;
    enum phema_status status = choose(out, o->dtype, o->overflow, o->io, o->threads, err);
    if (!status)
        status = call_find_choice(&hash, o->input_hash, hash_names, "input_hash", err);
    if (status)
        return status;
    if (o->level < 0 || o->level > PHEMA_MAX_LEVEL)
        return phema_fail(err, PHEMA_ERR_USAGE, "level: from 1 to %d, found %d", PHEMA_MAX_LEVEL,
                          o->level);
    out->outputs.into = o->into;
    out->outputs.key = plan->series_options.options.key;
    out->outputs.shard_bytes = o->shard_bytes;
    out->outputs.level = o->level;
    out->outputs.checkpoint = plan->series_options.options.checkpoint;
    out->outputs.accumulator = "auto";
    out->outputs.hashes_inputs = PHEMA_HASHES_INPUTS == (hash == 0);
    out->synth.replaces = o->replaces != 0;
    out->synth.syncs = !o->skips_sync;
    out->synth.drops_cache = o->drops_cache != 0;
    out->synth.max_ram_bytes = plan->max_ram_bytes;
    out->synth.verifies = o->verifies != 0;
    out->synth.refuses_nan = o->refuses_nan != 0;
    return PHEMA_OK;
}

/* ---- Outputs ---- */

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
                                      struct choices *choices, struct phema_error *err)
{
    struct phema_strbuf command = {0};
    write_command(&command, plan, o);
    choices->outputs.out = out;
    choices->outputs.command_options = command.data;
    enum phema_status status = phema_strbuf_check(&command, err);
    if (!status)
        status = phema_outputs_make(outputs, plan->plan, &choices->outputs, err);
    phema_strbuf_clear(&command);
    return status;
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
    enum phema_status status = choose_run(&choices, plan, o, err);
    if (status)
        return status;
    if (!out)
        return phema_fail(err, PHEMA_ERR_USAGE, "out: expected a path, found NULL");
    status = fill_result(result, &counts, err); /* refuses an invalid size before the run */
    if (!status)
        status = phema_series_identify(plan->plan->series, err);
    if (status)
        return status;
    watch_run(watch, o->progress, o->context, &choices.synth);
    status = make_outputs(&outputs, plan, out, o, &choices, err);
    if (!status)
        status = phema_synth_run(&counts, plan->plan, &outputs, &choices.synth, err);
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
    struct watch watch = {.callers = call.before};
    enum phema_status status =
        call_read_struct(&o, sizeof(o), options, "posthoc_ema_run_options", &call.err);
    if (!status)
        status = run(plan, out, &o, &watch, result, &call.err);
    return watch_end(&watch, call_end(&call, status, error));
}

/* ---- Tensors in memory ---- */

/* The tensor and the dtype of its averages. */
static enum phema_status find_tensor(const struct phema_series_tensor **out,
                                     enum phema_dtype *dtype, const struct posthoc_ema_plan *plan,
                                     size_t i, const struct phema_outputs_options *options,
                                     struct phema_error *err)
{
    const struct phema_series *series = plan->plan->series;
    enum phema_status status = call_check_index("tensor", i, series->n_tensors, err);
    if (status)
        return status;
    const struct phema_series_tensor *entry = &series->tensors[i];
    struct phema_name_buffer shown;
    if (entry->tensor.scaling && options->keeps_dtypes)
        return phema_fail(
            err, PHEMA_ERR_USAGE,
            "dtype: tensor '%s' is fp8 with a scale, which only outputs get anew; leave out "
            "same, which makes bf16",
            phema_name_escape(&shown, entry->tensor.name, entry->tensor.name_size));
    *out = entry;
    const struct phema_outputs no_scales = {0};
    *dtype = phema_output_dtype(entry, &no_scales, options);
    return PHEMA_OK;
}

static enum phema_status describe(struct posthoc_ema_tensor *out,
                                  const struct posthoc_ema_plan *plan, size_t i, const char *word,
                                  struct phema_error *err)
{
    struct choices choices;
    const struct phema_series_tensor *entry = NULL;
    enum phema_dtype dtype = PHEMA_F32;
    enum phema_status status = choose(&choices, word, NULL, NULL, 0, err);
    if (!status)
        status = find_tensor(&entry, &dtype, plan, i, &choices.outputs, err);
    if (status)
        return status;
    const struct phema_tensor *tensor = &entry->tensor;
    struct posthoc_ema_tensor known = {
        .name = tensor->name,
        .name_size = tensor->name_size,
        .dtype = phema_dtype_name(dtype),
        .shape = tensor->shape,
        .rank = tensor->rank,
        .bytes = phema_dtype_bytes(dtype, tensor->n_elems),
        .is_averaged = entry->rule == PHEMA_RULE_AVERAGE,
        .same_as = entry->same_as,
    };
    return call_fill_struct(out, &known, sizeof(known), "posthoc_ema_tensor", err);
}

enum posthoc_ema_status posthoc_ema_plan_tensor(const struct posthoc_ema_plan *plan, size_t i,
                                                const char *dtype,
                                                struct posthoc_ema_tensor *tensor,
                                                struct posthoc_ema_error *error)
{
    struct call call = call_begin();
    enum phema_status status = describe(tensor, plan, i, dtype, &call.err);
    return call_end(&call, status, error);
}

/* size: of the caller's place for the tensor, at data */
static enum phema_status check_place(const struct phema_series_tensor *entry, size_t i,
                                     enum phema_dtype dtype, const void *data, size_t size,
                                     struct phema_error *err)
{
    uint64_t bytes = phema_dtype_bytes(dtype, entry->tensor.n_elems);
    if (size == bytes && (data || !size))
        return PHEMA_OK;
    return phema_fail(err, PHEMA_ERR_USAGE, "size: expected %llu bytes for tensor %zu, found %zu",
                      (unsigned long long)bytes, i, data ? size : 0);
}

/* Reads the options of a read, and makes it report to the caller's callback. */
static enum phema_status begin_read(struct choices *choices, struct watch *watch,
                                    const struct posthoc_ema_plan *plan,
                                    const struct posthoc_ema_read_options *given,
                                    struct phema_error *err)
{
    struct posthoc_ema_read_options o;
    enum phema_status status =
        call_read_struct(&o, sizeof(o), given, "posthoc_ema_read_options", err);
    if (!status)
        status = choose(choices, o.dtype, o.overflow, o.io, o.threads, err);
    if (status)
        return status;
    choices->synth.max_ram_bytes = plan->max_ram_bytes;
    watch_run(watch, o.progress, o.context, &choices->synth);
    return PHEMA_OK;
}

static enum phema_status read_tensor(const struct posthoc_ema_plan *plan, size_t j, size_t i,
                                     const struct posthoc_ema_read_options *options,
                                     struct watch *watch, void *data, size_t size,
                                     struct phema_error *err)
{
    struct choices choices;
    const struct phema_series_tensor *entry = NULL;
    enum phema_dtype dtype = PHEMA_F32;
    enum phema_status status = begin_read(&choices, watch, plan, options, err);
    if (!status)
        status = find_tensor(&entry, &dtype, plan, i, &choices.outputs, err);
    if (!status)
        status = call_check_index("target", j, plan->plan->m, err);
    if (!status)
        status = check_place(entry, i, dtype, data, size, err);
    return status ? status : phema_synth_tensor(data, plan->plan, j, i, dtype, &choices.synth, err);
}

enum posthoc_ema_status posthoc_ema_read(const struct posthoc_ema_plan *plan, size_t j, size_t i,
                                         const struct posthoc_ema_read_options *options, void *data,
                                         size_t size, struct posthoc_ema_error *error)
{
    struct call call = call_begin();
    struct watch watch = {.callers = call.before};
    enum phema_status status = read_tensor(plan, j, i, options, &watch, data, size, &call.err);
    return watch_end(&watch, call_end(&call, status, error));
}

/* Checks the places of n targets' tensors, and finds the dtypes of these. */
static enum phema_status check_places(enum phema_dtype *dtypes, const struct posthoc_ema_plan *plan,
                                      size_t n, const struct choices *choices, void *const *data,
                                      const size_t *sizes, struct phema_error *err)
{
    size_t n_tensors = plan->plan->series->n_tensors;
    for (size_t i = 0; i < n_tensors; i++) {
        const struct phema_series_tensor *entry = NULL;
        enum phema_status status = find_tensor(&entry, &dtypes[i], plan, i, &choices->outputs, err);
        for (size_t k = 0; k < n && !status; k++) {
            const void *place = data[k * n_tensors + i];
            if (place || entry->same_as == i)
                status = check_place(entry, i, dtypes[i], place, sizes[i], err);
        }
        if (status)
            return status;
    }
    return PHEMA_OK;
}

static enum phema_status read_all(const struct posthoc_ema_plan *plan, size_t j, size_t n,
                                  const struct posthoc_ema_read_options *options,
                                  struct watch *watch, void *const *data, const size_t *sizes,
                                  struct phema_error *err)
{
    struct choices choices;
    enum phema_status status = begin_read(&choices, watch, plan, options, err);
    if (!status && (!data || !sizes))
        status = phema_fail(err, PHEMA_ERR_USAGE, "%s: expected an array, found NULL",
                            data ? "sizes" : "data");
    size_t m = plan->plan->m;
    if (!status && (j > m || n > m - j))
        status =
            phema_fail(err, PHEMA_ERR_USAGE, "targets: there are %zu, found %zu from %zu", m, n, j);
    if (status || !n)
        return status;
    enum phema_dtype *dtypes = calloc(plan->plan->series->n_tensors + 1, sizeof(*dtypes));
    if (!dtypes)
        return phema_fail_memory(err);
    status = check_places(dtypes, plan, n, &choices, data, sizes, err);
    if (!status)
        status = phema_synth_tensors(data, plan->plan, j, n, dtypes, &choices.synth, err);
    free(dtypes);
    return status;
}

enum posthoc_ema_status posthoc_ema_read_all(const struct posthoc_ema_plan *plan, size_t j,
                                             size_t n,
                                             const struct posthoc_ema_read_options *options,
                                             void *const *data, const size_t *sizes,
                                             struct posthoc_ema_error *error)
{
    struct call call = call_begin();
    struct watch watch = {.callers = call.before};
    enum phema_status status = read_all(plan, j, n, options, &watch, data, sizes, &call.err);
    return watch_end(&watch, call_end(&call, status, error));
}
