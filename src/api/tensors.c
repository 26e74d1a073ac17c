// SPDX-License-Identifier: Apache-2.0
/* tensors.c - single tensors of averages, in memory. */
#include "phema/cpu.h"
#include "plan.h"

PHEMA_FALLIBLE api_choose(struct api_choices *out, const char *dtype, const char *overflow,
                          const char *io, unsigned threads, struct phema_error *err)
{
    static const char *const dtype_names[] = {"auto", "same", "f32", "f16", "bf16", NULL};
    static const enum phema_dtype dtypes[] = {PHEMA_F32, PHEMA_F32, PHEMA_F32, PHEMA_F16,
                                              PHEMA_BF16};
    static const char *const overflow_names[] = {"error", "saturate", "inf", NULL};
    static const enum phema_overflow_rule overflows[] = {
        PHEMA_OVERFLOW_IS_ERROR, PHEMA_OVERFLOW_SATURATES, PHEMA_OVERFLOW_BECOMES_INF};
    static const char *const io_names[] = {"auto", "mmap", "read", "direct", NULL};
    static const enum phema_io ios[] = {PHEMA_IO_AUTO, PHEMA_IO_MMAP, PHEMA_IO_READ,
                                        PHEMA_IO_DIRECT};
    size_t of_dtype = 0, of_overflow = 0, of_io = 0;
    enum phema_status status = call_find_choice(&of_dtype, dtype, dtype_names, "dtype", err);
    if (!status)
        status = call_find_choice(&of_overflow, overflow, overflow_names, "overflow", err);
    if (!status)
        status = call_find_choice(&of_io, io, io_names, "io", err);
    if (!status && threads > PHEMA_MAX_THREADS)
        status = phema_fail(err, PHEMA_ERR_USAGE, "threads: at most %d, found %u",
                            PHEMA_MAX_THREADS, threads);
    if (status)
        return status;
    *out = (struct api_choices){
        .outputs = {.has_dtype = of_dtype > 1,
                    .keeps_dtypes = of_dtype == 1,
                    .dtype = dtypes[of_dtype]},
        .synth = {.n_threads = threads ? threads : phema_cpu_threads(),
                  .sums = PHEMA_SUMS_AUTO,
                  .overflow = overflows[of_overflow],
                  .io = ios[of_io]},
    };
    return PHEMA_OK;
}

/* The tensor and the dtype of its averages. */
static enum phema_status find_tensor(const struct phema_series_tensor **out,
                                     enum phema_dtype *dtype, const struct posthoc_ema_plan *plan,
                                     size_t i, const struct phema_outputs_options *options,
                                     struct phema_error *err)
{
    const struct phema_series *series = plan->plan->series;
    if (i >= series->n_tensors)
        return phema_fail(err, PHEMA_ERR_USAGE, "tensor %zu: there are %zu, from 0", i,
                          series->n_tensors);
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
    struct api_choices choices;
    const struct phema_series_tensor *entry = NULL;
    enum phema_dtype dtype = PHEMA_F32;
    enum phema_status status = api_choose(&choices, word, NULL, NULL, 0, err);
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

static enum phema_status read_tensor(const struct posthoc_ema_plan *plan, size_t j, size_t i,
                                     const struct posthoc_ema_read_options *given,
                                     struct api_watch *watch, void *data, size_t size,
                                     struct phema_error *err)
{
    struct posthoc_ema_read_options o;
    struct api_choices choices;
    const struct phema_series_tensor *entry = NULL;
    enum phema_dtype dtype = PHEMA_F32;
    enum phema_status status =
        call_read_struct(&o, sizeof(o), given, "posthoc_ema_read_options", err);
    if (!status)
        status = api_choose(&choices, o.dtype, o.overflow, o.io, o.threads, err);
    if (!status)
        status = find_tensor(&entry, &dtype, plan, i, &choices.outputs, err);
    if (status)
        return status;
    if (j >= plan->plan->m)
        return phema_fail(err, PHEMA_ERR_USAGE, "target %zu: there are %zu, from 0", j,
                          plan->plan->m);
    uint64_t bytes = phema_dtype_bytes(dtype, entry->tensor.n_elems);
    if (size != bytes || (size && !data))
        return phema_fail(err, PHEMA_ERR_USAGE,
                          "size: expected %llu bytes for tensor %zu, found %zu",
                          (unsigned long long)bytes, i, data ? size : 0);
    choices.synth.max_ram_bytes = plan->max_ram_bytes;
    watch->progress = o.progress;
    watch->context = o.context;
    api_watch_run(watch, &choices.synth);
    return phema_synth_tensor(data, plan->plan, j, i, dtype, &choices.synth, err);
}

enum posthoc_ema_status posthoc_ema_read(const struct posthoc_ema_plan *plan, size_t j, size_t i,
                                         const struct posthoc_ema_read_options *options, void *data,
                                         size_t size, struct posthoc_ema_error *error)
{
    struct call call = call_begin();
    struct api_watch watch = {.callers = call.before};
    enum phema_status status = read_tensor(plan, j, i, options, &watch, data, size, &call.err);
    return api_watch_end(&watch, call_end(&call, status, error));
}
