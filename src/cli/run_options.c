// SPDX-License-Identifier: Apache-2.0
/* run_options.c - see run_options.h. */
#include "run_options.h"

#include <string.h>

#include "phema/cpu.h"
#include "phema/number.h"
#include "print_summary.h"

static bool is_choice(const char *value, const char *choice)
{
    return value && strcmp(value, choice) == 0;
}

static struct phema_outputs_options outputs_options(const struct cli_common *common,
                                                    const struct cli_run_values *values,
                                                    const char *out)
{
    struct phema_outputs_options options = {
        .out = out,
        .into = values->into,
        .key = values->series.key,
        .shard_bytes = values->shard_size,
        .level = (int)values->level,
        .is_conversion = values->is_conversion,
        .hashes_inputs =
            values->input_hash ? is_choice(values->input_hash, "full") : PHEMA_HASHES_INPUTS,
        .checkpoint = {.allow_globals = values->series.allow_global.items,
                       .n_allow_globals = values->series.allow_global.n},
        .accumulator = values->accumulate ? values->accumulate : "auto",
        .command_options = common->repeated_options,
    };
    static const struct {
        const char *name;
        enum phema_dtype dtype;
    } dtypes[] = {{"f32", PHEMA_F32}, {"f16", PHEMA_F16}, {"bf16", PHEMA_BF16}};
    for (size_t i = 0; i < ARRAY_LEN(dtypes); i++)
        if (is_choice(values->dtype, dtypes[i].name)) {
            options.has_dtype = true;
            options.dtype = dtypes[i].dtype;
        }
    return options;
}

static enum phema_io io_of(const struct cli_run_values *values)
{
    static const struct {
        const char *name;
        enum phema_io io;
    } ways[] = {{"mmap", PHEMA_IO_MMAP}, {"read", PHEMA_IO_READ}, {"direct", PHEMA_IO_DIRECT}};
    for (size_t i = 0; i < ARRAY_LEN(ways); i++)
        if (is_choice(values->io, ways[i].name))
            return ways[i].io;
    return PHEMA_IO_AUTO;
}

static enum phema_sums sum_dtype_of(const struct cli_run_values *values)
{
    if (is_choice(values->accumulate, "f64"))
        return PHEMA_SUMS_F64;
    return is_choice(values->accumulate, "f32") ? PHEMA_SUMS_F32 : PHEMA_SUMS_AUTO;
}

static struct phema_synth_options synth_options(const struct cli_run_values *values,
                                                struct phema_memory_profile *ledger)
{
    struct phema_synth_options options = {
        .n_threads = values->threads ? (unsigned)values->threads : phema_cpu_threads(),
        .sums = sum_dtype_of(values),
        .replaces = values->is_forced,
        .syncs = !values->skips_sync,
        .max_ram_bytes = values->max_ram,
        .io = io_of(values),
        .drops_cache = values->drops_cache,
        .ledger = ledger,
    };
    if (is_choice(values->overflow, "saturate"))
        options.overflow = PHEMA_OVERFLOW_SATURATES;
    if (is_choice(values->overflow, "inf"))
        options.overflow = PHEMA_OVERFLOW_BECOMES_INF;
    return options;
}

/* "8GiB"; or "0.5", of what is free: from 1 on numbers are bytes, of which no one means so few. */
static enum phema_status read_gpu_memory(struct phema_device_request *request, const char *text,
                                         struct phema_error *err)
{
    if (!text)
        return PHEMA_OK;
    double fraction = 0;
    struct phema_error ignored = {""};
    bool is_number = !phema_number_parse(&fraction, text, &ignored);
    if (is_number && fraction > 0 && fraction <= 1) {
        request->memory_fraction = fraction;
        return PHEMA_OK;
    }
    enum phema_status status = phema_size_parse(&request->memory_bytes, text, err);
    if (status || !request->memory_bytes)
        return phema_fail(err, PHEMA_ERR_USAGE,
                          "--gpu-memory: '%s' is neither a size such as 8GiB nor a part of what is "
                          "free, above 0 and at most 1",
                          text);
    return PHEMA_OK;
}

static enum phema_status read_device(struct cli_prepared *prepared,
                                     const struct cli_run_values *values, struct phema_error *err)
{
    struct phema_device_request *request = &prepared->options.device;
    enum phema_status status = phema_device_request_parse(request, values->device, err);
    if (!status)
        status = read_gpu_memory(request, values->gpu_memory, err);
    request->uses_blas = is_choice(values->gpu_sums, "cublas");
    if (!status && request->uses_blas && request->kind != PHEMA_DEVICE_CUDA)
        return phema_fail(err, PHEMA_ERR_USAGE,
                          "--gpu-sums cublas: results depend on who adds up; say --device cuda as "
                          "well");
    if (values->is_conversion) /* there is nothing to add up */
        request->kind = PHEMA_DEVICE_CPU;
    return status;
}

static enum phema_status make_plan(struct cli_prepared *prepared, const struct cli_common *common,
                                   const struct cli_run_values *values,
                                   struct phema_memory_profile *ledger, struct phema_error *err)
{
    struct phema_plan_options options;
    enum phema_status status =
        cli_plan_options(&options, common, &values->series, &values->target, err);
    if (status)
        return status;
    options.ledger = ledger;
    options.series.max_ram_bytes = values->max_ram;
    options.series.may_lack_key = values->into != NULL;
    if (values->is_conversion) {
        options.is_conversion = options.series.is_conversion = options.series.is_alone = true;
        options.series.needs_no_profiles = true;
        options.series.may_be_sampled = false;
        if (!options.series.key)
            options.series.key = "."; /* all of it */
    }
    return phema_plan_make(&prepared->plan, &options, err);
}

PHEMA_FALLIBLE cli_prepare_plan(struct cli_prepared *prepared, const struct cli_common *common,
                                const struct cli_run_values *values,
                                struct phema_memory_profile *ledger, struct phema_error *err)
{
    *prepared = (struct cli_prepared){.options = synth_options(values, ledger)};
    if (values->threads > 1024)
        return phema_fail(err, PHEMA_ERR_USAGE, "--threads: at most 1024");
    if (values->level > 22)
        return phema_fail(err, PHEMA_ERR_USAGE, "--level: from 1 to 22");
    enum phema_status status = read_device(prepared, values, err);
    if (!status)
        status = make_plan(prepared, common, values, ledger, err);
    if (status)
        return status;
    struct phema_outputs_options naming = outputs_options(common, values, NULL);
    if (values->is_conversion) {
        report_conversion(common, prepared->plan->series);
    } else {
        report_series(common, prepared->plan->series);
        report_plan(common, prepared->plan, naming.dtype, naming.has_dtype);
    }
    return cli_check_error(prepared->plan, values->target.max_error, err);
}

PHEMA_FALLIBLE cli_prepare_outputs(struct cli_prepared *prepared, const struct cli_common *common,
                                   const struct cli_run_values *values, const char *out,
                                   struct phema_error *err)
{
    struct phema_outputs_options naming = outputs_options(common, values, out);
    enum phema_status status = phema_outputs_make(&prepared->outputs, prepared->plan, &naming, err);
    if (!status)
        report_into(common, values->into, &prepared->outputs);
    return status;
}

void cli_prepared_clear(struct cli_prepared *prepared)
{
    phema_outputs_clear(&prepared->outputs);
    phema_plan_free(prepared->plan);
}
