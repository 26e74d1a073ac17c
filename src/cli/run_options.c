// SPDX-License-Identifier: Apache-2.0
/* run_options.c - option rows of runs, and from their values the plan, the outputs and how the plan
 * is carried out. */
#include "run_options.h"

#include <assert.h>
#include <string.h>

#include "phema/cpu.h"
#include "phema/number.h"
#include "phema/progress.h"
#include "phema/report.h"
#include "remedy/remedy.h"

#define FIELD(member) offsetof(struct cli_run_values, member)

const struct cli_opt cli_run_rows[] = {
    CLI_INCLUDE(cli_series_rows, FIELD(plan)),
    CLI_INCLUDE(cli_target_rows, FIELD(plan)),
    {"convert", TARGET, CLI_FLAG, FIELD(plan.options.is_conversion),
     .help = "no average: write SNAPSHOTS, one checkpoint, in\nthe format of OUT",
     .flags = CLI_SHAPES_BYTES},
    {0},
};

const struct cli_opt cli_out_rows[] = {
    {"OUT", OUTPUT, CLI_OPERAND, FIELD(outputs.out),
     .help = "a file, whose extension gives the format; a\ndirectory, in the format of the newest "
             "snapshot;\nor names like sweep/{time}-{sigma}.pt"},
    {0},
};

const struct cli_opt cli_make_rows[] = {
    {"into", OUTPUT, CLI_TEXT, FIELD(outputs.into), "FILE",
     .help = "replace the tensors in a copy of FILE, any\ncheckpoint of the model (default for "
             ".pt, .pth,\n.ckpt and .pkl: of the newest snapshot)",
     .flags = CLI_SHAPES_BYTES},
    {"shard-size", OUTPUT, CLI_SIZE, FIELD(outputs.shard_bytes), "SIZE",
     .help = "write a directory of safetensors files of at most\nthis size (512M, 1.5GiB, 1e9), "
             "and their index",
     .flags = CLI_SHAPES_BYTES | CLI_POSITIVE},
    {"ranks", OUTPUT, CLI_COUNT, FIELD(outputs.ranks), "N",
     .help = "write a distributed checkpoint of PyTorch: a\ndirectory of N files and .metadata",
     .flags = CLI_SHAPES_BYTES | CLI_POSITIVE},
    {"level", OUTPUT, CLI_COUNT, FIELD(level), "N",
     .help = "compression level of .safetensors.zst: 1 to 22\n(default 3)",
     .flags = CLI_SHAPES_BYTES | CLI_POSITIVE, .initial = 3},
    {"dtype", OUTPUT, CLI_CHOICE, FIELD(dtype), "auto|same|f32|f16|bf16",
     .help =
         "dtype of the averages (default auto: same, but\nbf16 for fp8 tensors with scales); not "
         "for .pt,\n.pth, .ckpt, .pkl and --into",
     .flags = CLI_SHAPES_BYTES | CLI_EVERYDAY},
    {"overflow", OUTPUT, CLI_CHOICE, FIELD(synth.overflow), "error|saturate|inf",
     .help = "averages too large for the dtype (default error)", .flags = CLI_SHAPES_BYTES},
    {"buffers", OUTPUT, CLI_EITHER, FIELD(plan.options.series.averages_buffers), "newest|average",
     .help = "source of buffers, where files distinguish them\nfrom parameters (default newest)",
     .flags = CLI_SHAPES_BYTES},
    {"input-hash", OUTPUT, CLI_EITHER, FIELD(outputs.hashes_inputs), "full|sampled",
     .help = "for the provenance: hash all data of the snapshots\n(default), or samples",
     .flags = CLI_SHAPES_BYTES | CLI_NEGATED | CLI_INITIALLY_TRUE},
    {"force", OUTPUT, CLI_FLAG, FIELD(synth.replaces), .help = "replace existing outputs",
     .flags = CLI_EVERYDAY, .letter = 'f'},
    {"no-sync", OUTPUT, CLI_FLAG, FIELD(synth.syncs),
     .help = "do not wait until outputs are on disk", .flags = CLI_NEGATED | CLI_INITIALLY_TRUE},
    {"accumulate", NUMBERS, CLI_CHOICE, FIELD(accumulate), CLI_PRECISIONS,
     .help = "precision of the sums (auto: f32 where rounding\nhides the difference)",
     .flags = CLI_SHAPES_BYTES},
    {"threads", RESOURCES, CLI_COUNT, FIELD(threads), "N",
     .help = "threads (default: the processors it may use)", .flags = CLI_POSITIVE | CLI_EVERYDAY,
     .letter = 'j'},
    {"device", RESOURCES, CLI_TEXT, FIELD(device), "DEVICE",
     .help = "where to compute: auto (default: a GPU where it is\nfaster), cpu, cuda, cuda:0,1 or "
             "cuda:all"},
    {"gpu-memory", RESOURCES, CLI_TEXT, FIELD(gpu_memory), "SIZE",
     .help = "memory limit of each GPU: 8GiB, or a share of the\nfree memory (default 0.9)"},
    {"gpu-sums", NUMBERS, CLI_EITHER, FIELD(synth.gpu.uses_blas), "exact|cublas",
     .help = "sums on a GPU: the bits of the CPU (default), or\ncuBLAS for more than 8 targets",
     .flags = CLI_SHAPES_BYTES},
    {"io", RESOURCES, CLI_CHOICE, FIELD(synth.io), "auto|mmap|read|direct",
     .help = "how to read snapshots (auto: read, past the page\ncache where they are not in it, "
             "mapped where there\nare too many; direct: past the page cache)"},
    {"io-depth", RESOURCES, CLI_COUNT, FIELD(synth.io_depth), "N",
     .help = "reads past the page cache at once (default: as\nmany as raise the rate)",
     .flags = CLI_POSITIVE},
    {"drop-cache", RESOURCES, CLI_FLAG, FIELD(synth.drops_cache),
     .help = "drop snapshots and outputs from the page cache"},
    {"max-ram", RESOURCES, CLI_SIZE, FIELD(synth.max_ram_bytes), "SIZE",
     .help = "memory limit; tiles shrink, then targets are made\nin several passes; fails (7) when "
             "it is too small",
     .flags = CLI_POSITIVE | CLI_EVERYDAY},
    {0},
};

static_assert(PHEMA_HASHES_INPUTS, "CLI_INITIALLY_TRUE of --input-hash");

static const struct {
    const char *name;
    enum phema_sums sums;
} precisions[] = {{"auto", PHEMA_SUMS_AUTO}, {"f64", PHEMA_SUMS_F64}, {"f32", PHEMA_SUMS_F32}};

static struct phema_outputs_options outputs_options(const struct cli_common *common,
                                                    const struct cli_run_values *values,
                                                    const char *out)
{
    static const enum phema_dtype dtypes[] = {0, 0, PHEMA_F32, PHEMA_F16, PHEMA_BF16};
    struct phema_outputs_options options = values->outputs;
    options.out = out;
    options.key = values->plan.options.series.key;
    options.checkpoint = values->plan.options.series.checkpoint;
    options.is_conversion = values->plan.options.is_conversion;
    options.level = (int)values->level;
    options.has_dtype = values->dtype > CLI_DTYPE_SAME;
    options.keeps_dtypes = values->dtype == CLI_DTYPE_SAME;
    options.dtype = dtypes[values->dtype];
    options.accumulator = precisions[values->accumulate].name;
    options.command_options = common->repeated_options;
    return options;
}

/* "8GiB", or "0.5" of the free memory: numbers above 1 are bytes. */
static enum phema_status read_gpu_memory(struct phema_gpu_options *options, const char *text,
                                         struct phema_error *err)
{
    if (!text)
        return PHEMA_OK;
    double fraction = 0;
    struct phema_error ignored = {0};
    bool is_number = !phema_number_parse(&fraction, text, &ignored);
    if (is_number && fraction > 0 && fraction <= 1) {
        options->memory_fraction = fraction;
        return PHEMA_OK;
    }
    enum phema_status status = phema_size_parse(&options->memory_bytes, text, err);
    if (status || !options->memory_bytes)
        return cli_fail_option(err, PHEMA_ERR_USAGE, "gpu-memory",
                               "'%s' is neither a size such as 8GiB nor a part of what is "
                               "free, above 0 and at most 1",
                               text);
    return PHEMA_OK;
}

static enum phema_status read_device(struct phema_gpu_options *options,
                                     const struct cli_run_values *values, struct phema_error *err)
{
    enum phema_status status = phema_gpu_options_parse(options, values->device, err);
    if (status)
        return status;
    status = read_gpu_memory(options, values->gpu_memory, err);
    if (status)
        return status;
    options->uses_blas = values->synth.gpu.uses_blas;
    if (options->uses_blas && options->kind != PHEMA_DEVICE_CUDA)
        return phema_error_set_about(
            err,
            phema_fail(err, PHEMA_ERR_USAGE,
                       "--gpu-sums cublas: results depend on the device; say --device cuda as "
                       "well"),
            "gpu-sums");
    if (values->plan.options.is_conversion) /* there is nothing to sum */
        options->kind = PHEMA_DEVICE_CPU;
    return PHEMA_OK;
}

static enum phema_status check_form(void *context, const struct phema_series *series, size_t n,
                                    struct phema_error *err)
{
    return phema_outputs_check_form(context, series, n, err);
}

static enum phema_status make_plan(struct cli_prepared *prepared, const struct cli_common *common,
                                   const struct cli_run_values *values, struct phema_error *err)
{
    struct phema_plan_options options;
    enum phema_status status = cli_plan_options(&options, common, &values->plan, err);
    if (status)
        return status;
    options.memory_profile = prepared->options.memory_profile;
    struct phema_outputs_options naming = outputs_options(common, values, values->outputs.out);
    if (naming.out) {
        options.check = check_form;
        options.context = &naming;
    }
    options.series.max_ram_bytes = values->synth.max_ram_bytes;
    options.series.may_lack_key = values->outputs.into != NULL;
    options.series.compares_samples |=
        values->synth.part > 1; /* the first one compares all bytes */
    options.series.keeps_scales = values->dtype == CLI_DTYPE_SAME;
    if (options.is_conversion) {
        options.series.is_conversion = options.series.is_alone = true;
        options.series.needs_no_profiles = true;
        options.series.may_be_sampled = false;
        options.series.keeps_codes = values->dtype <= CLI_DTYPE_SAME;
        options.series.keeps_scales = false;
        if (!options.series.key)
            options.series.key = "."; /* all of it */
    }
    return watch_make_plan(&prepared->plan, &common->style, &options, err);
}

PHEMA_FALLIBLE cli_prepare_run(struct cli_prepared *prepared, const struct cli_run_values *values,
                               struct phema_memory_profile *memory, struct phema_error *err)
{
    *prepared = (struct cli_prepared){.options = values->synth};
    prepared->options.n_threads = values->threads ? (unsigned)values->threads : phema_cpu_threads();
    prepared->options.sums = precisions[values->accumulate].sums;
    prepared->options.memory_profile = memory;
    if (values->threads > 1024)
        return cli_fail_option(err, PHEMA_ERR_USAGE, "threads", "at most 1024");
    if (values->synth.io_depth > PHEMA_READ_QUEUE_MAX_DEPTH)
        return cli_fail_option(err, PHEMA_ERR_USAGE, "io-depth", "at most %u",
                               PHEMA_READ_QUEUE_MAX_DEPTH);
    if (values->outputs.ranks > PHEMA_MAX_RANKS)
        return cli_fail_option(err, PHEMA_ERR_USAGE, "ranks", "at most %d", PHEMA_MAX_RANKS);
    if (values->level > 22)
        return cli_fail_option(err, PHEMA_ERR_USAGE, "level", "expected 1 to 22, found %llu",
                               (unsigned long long)values->level);
    return read_device(&prepared->options.gpu, values, err);
}

PHEMA_FALLIBLE cli_prepare_plan(struct cli_prepared *prepared, const struct cli_common *common,
                                const struct cli_run_values *values,
                                struct phema_memory_profile *memory, struct phema_error *err)
{
    enum phema_status status = cli_prepare_run(prepared, values, memory, err);
    if (status)
        return status;
    status = make_plan(prepared, common, values, err);
    if (status)
        return status;
    struct phema_outputs_options naming = outputs_options(common, values, NULL);
    if (naming.is_conversion) {
        report_conversion(&common->style, prepared->plan->series);
    } else {
        report_series(&common->style, prepared->plan->series, &prepared->plan->checks);
        bool is_bf16 = !values->dtype && phema_series_n_scaled(prepared->plan->series) > 0;
        report_plan(&common->style, prepared->plan, is_bf16 ? PHEMA_BF16 : naming.dtype,
                    naming.has_dtype || is_bf16, !values->hides_errors);
    }
    return cli_check_error(prepared->plan, values->plan.max_error, err);
}

PHEMA_FALLIBLE cli_prepare_outputs(struct cli_prepared *prepared, const struct cli_common *common,
                                   const struct cli_run_values *values, const char *out,
                                   struct phema_error *err)
{
    struct phema_outputs_options naming = outputs_options(common, values, out);
    enum phema_status status = phema_outputs_make(&prepared->outputs, prepared->plan, &naming, err);
    if (status)
        return status;
    report_into(&common->style, naming.into, &prepared->outputs);
    report_scaled(&common->style, prepared->plan->series, &prepared->outputs);
    return status;
}

void cli_prepared_clear(struct cli_prepared *prepared)
{
    phema_outputs_clear(&prepared->outputs);
    phema_plan_free(prepared->plan);
}
