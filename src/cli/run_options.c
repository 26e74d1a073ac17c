// SPDX-License-Identifier: Apache-2.0
/* run_options.c - option rows of runs, and their values as a request. */
#include "run_options.h"

#include <assert.h>
#include <string.h>

#include "phema/cpu.h"
#include "phema/number.h"
#include "phema/progress.h"
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
     .flags = CLI_SHAPES_BYTES | CLI_NEEDED},
    {"shard-size", OUTPUT, CLI_SIZE, FIELD(outputs.shard_bytes), "SIZE",
     .help = "write a directory of safetensors files of at most\nthis size (512M, 1.5GiB, 1e9), "
             "and their index",
     .flags = CLI_SHAPES_BYTES | CLI_POSITIVE},
    {"ranks", OUTPUT, CLI_COUNT, FIELD(outputs.ranks), "N",
     .help = "write a distributed checkpoint of PyTorch: a\ndirectory of N files and .metadata",
     .flags = CLI_SHAPES_BYTES | CLI_POSITIVE},
    {"level", OUTPUT, CLI_COUNT, FIELD(level), "N",
     .help = "compression level of .safetensors.zst: 1 to 22\n(default 3)",
     .flags = CLI_SHAPES_BYTES | CLI_POSITIVE, .initial = PHEMA_DEFAULT_LEVEL},
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
    {"io", RESOURCES, CLI_CHOICE, FIELD(synth.io), CLI_IO_MODES,
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
     .flags = CLI_POSITIVE | CLI_EVERYDAY | CLI_NEEDED},
    {0},
};

static_assert(PHEMA_HASHES_INPUTS, "CLI_INITIALLY_TRUE of --input-hash");

static void read_outputs(struct phema_outputs_options *out, const struct cli_common *common,
                         const struct cli_run_values *values)
{
    static const enum phema_dtype dtypes[] = {0, 0, PHEMA_F32, PHEMA_F16, PHEMA_BF16};
    *out = values->outputs;
    out->key = values->plan.options.series.key;
    out->checkpoint = values->plan.options.series.checkpoint;
    out->is_conversion = values->plan.options.is_conversion;
    out->level = (int)values->level;
    out->has_dtype = values->dtype > CLI_DTYPE_SAME;
    out->keeps_dtypes = values->dtype == CLI_DTYPE_SAME;
    out->dtype = dtypes[values->dtype];
    out->command_options = common->repeated_options;
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

PHEMA_FALLIBLE cli_read_request(struct phema_request *out, const struct cli_common *common,
                                const struct cli_run_values *values, struct phema_error *err)
{
    static const char *const sums[] = {"auto", "f64", "f32"};
    *out = (struct phema_request){.synth = values->synth, .max_error = values->plan.max_error};
    out->synth.n_threads = values->threads ? (unsigned)values->threads : phema_cpu_threads();
    read_outputs(&out->outputs, common, values);
    phema_request_set_accumulator(out, sums[values->accumulate]);
    if (values->threads > PHEMA_MAX_THREADS)
        return cli_fail_option(err, PHEMA_ERR_USAGE, "threads", "at most %d", PHEMA_MAX_THREADS);
    if (values->synth.io_depth > PHEMA_READ_QUEUE_MAX_DEPTH)
        return cli_fail_option(err, PHEMA_ERR_USAGE, "io-depth", "at most %u",
                               PHEMA_READ_QUEUE_MAX_DEPTH);
    if (values->outputs.ranks > PHEMA_MAX_RANKS)
        return cli_fail_option(err, PHEMA_ERR_USAGE, "ranks", "at most %d", PHEMA_MAX_RANKS);
    if (values->level > PHEMA_MAX_LEVEL)
        return cli_fail_option(err, PHEMA_ERR_USAGE, "level", "expected 1 to %d, found %llu",
                               PHEMA_MAX_LEVEL, (unsigned long long)values->level);
    enum phema_status status = read_device(&out->synth.gpu, values, err);
    return status ? status : cli_plan_options(&out->plan, common, &values->plan, err);
}
