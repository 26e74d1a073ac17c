// SPDX-License-Identifier: Apache-2.0
/* run_options.c - option rows of runs, and their values as a request: those of the command line, or
 * of the command that a provenance records. */
#include "shared_options.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "phema/cpu.h"
#include "phema/number.h"
#include "remedy/remedy.h"

#define FIELD(member) offsetof(struct cli_run_values, member)

const struct cli_opt cli_run_rows[] = {
    CLI_INCLUDE(cli_series_rows, FIELD(plan)),
    CLI_INCLUDE(cli_target_rows, FIELD(plan)),
    {"convert", TARGET, CLI_FLAG, FIELD(plan.options.is_conversion),
     .help =
         "no average: write SNAPSHOTS, one checkpoint, in\nthe format of OUT, as the verb convert",
     .flags = CLI_SHAPES_BYTES | CLI_RARE},
    {0},
};

const struct cli_opt cli_out_rows[] = {
    {"OUT", OUTPUT, CLI_OPERAND, FIELD(outputs.out),
     .help = "a file (.safetensors, .pt, ...), a directory, or\nnames like "
             "sweep/{time}-{sigma}.pt"},
    {0},
};

const struct cli_opt cli_file_rows[] = {
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
     .flags = CLI_SHAPES_BYTES | CLI_POSITIVE, .most = PHEMA_MAX_RANKS},
    {"level", OUTPUT, CLI_COUNT, FIELD(level), "N",
     .help = "compression level of .safetensors.zst: 1 to 22\n(default 3)",
     .flags = CLI_SHAPES_BYTES | CLI_POSITIVE, .initial = PHEMA_DEFAULT_LEVEL},
    {"dtype", OUTPUT, CLI_CHOICE, FIELD(dtype), "auto|same|f32|f16|bf16",
     .help =
         "dtype of the averages (default auto: same, but\nbf16 for scaled fp8); not for .pt, .pkl "
         "and --into",
     .flags = CLI_SHAPES_BYTES | CLI_EVERYDAY},
    {"overflow", OUTPUT, CLI_CHOICE, FIELD(synth.overflow), "error|saturate|inf",
     .help = "averages too large for the dtype (default error)",
     .flags = CLI_SHAPES_BYTES | CLI_RARE},
    {"force", OUTPUT, CLI_FLAG, FIELD(synth.replaces), .help = "replace existing outputs",
     .flags = CLI_EVERYDAY, .letter = 'f'},
    {"no-sync", OUTPUT, CLI_FLAG, FIELD(synth.syncs),
     .help = "do not wait until outputs are on disk", .flags = CLI_NEGATED | CLI_INITIALLY_TRUE},
    {"threads", RESOURCES, CLI_COUNT, FIELD(threads), "N",
     .help = "threads (default: the processors it may use)", .flags = CLI_POSITIVE, .letter = 'j',
     .most = PHEMA_MAX_THREADS},
    {"io", RESOURCES, CLI_CHOICE, FIELD(synth.io), CLI_IO_MODES,
     .help = "how to read snapshots (auto: read, past the page\ncache where they are not in it, "
             "mapped where there\nare too many; direct: past the page cache)"},
    {"io-depth", RESOURCES, CLI_COUNT, FIELD(synth.io_depth), "N",
     .help = "reads past the page cache at once (default: as\nmany as raise the rate)",
     .flags = CLI_POSITIVE | CLI_RARE, .most = PHEMA_READ_QUEUE_MAX_DEPTH},
    {"drop-cache", RESOURCES, CLI_FLAG, FIELD(synth.drops_cache),
     .help = "drop snapshots and outputs from the page cache", .flags = CLI_RARE},
    {"max-ram", RESOURCES, CLI_SIZE, FIELD(synth.max_ram_bytes), "SIZE",
     .help = "memory limit; tiles shrink, then targets are made\nin several passes; fails (7) when "
             "it is too small",
     .flags = CLI_POSITIVE | CLI_NEEDED},
    {0},
};

const struct cli_opt cli_make_rows[] = {
    CLI_INCLUDE(cli_file_rows, 0),
    {"buffers", OUTPUT, CLI_EITHER, FIELD(plan.options.series.averages_buffers), "newest|average",
     .help = "source of buffers, and of running statistics that\naverages hold as copies (default "
             "newest)",
     .flags = CLI_SHAPES_BYTES},
    {"input-hash", OUTPUT, CLI_EITHER, FIELD(outputs.hashes_inputs), "full|sampled",
     .help = "for the provenance: hash all data of the snapshots\n(default), or samples",
     .flags = CLI_SHAPES_BYTES | CLI_NEGATED | CLI_INITIALLY_TRUE | CLI_RARE},
    {"accumulate", NUMBERS, CLI_CHOICE, FIELD(accumulate), CLI_PRECISIONS,
     .help = "precision of the sums (auto: f32 where rounding\nhides the difference)",
     .flags = CLI_SHAPES_BYTES | CLI_RARE},
    {"device", RESOURCES, CLI_TEXT, FIELD(device), "DEVICE",
     .help = "where to compute: auto (default: a GPU where it is\nfaster), cpu, cuda, cuda:0,1 or "
             "cuda:all"},
    {"gpu-memory", RESOURCES, CLI_TEXT, FIELD(gpu_memory), "SIZE",
     .help = "memory limit of each GPU: 8GiB, or a share of the\nfree memory (default 0.9)"},
    {"gpu-sums", NUMBERS, CLI_EITHER, FIELD(synth.gpu.uses_blas), "exact|cublas",
     .help = "sums on a GPU: the bits of the CPU (default), or\ncuBLAS for more than 8 targets",
     .flags = CLI_SHAPES_BYTES | CLI_RARE},
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
    if (options->uses_blas && options->kind != PHEMA_DEVICE_CUDA) {
        (void)phema_fail(err, PHEMA_ERR_USAGE,
                         "--gpu-sums cublas: results depend on the device; say --device cuda as "
                         "well");
        return phema_error_set_about(err, PHEMA_ERR_USAGE, "gpu-sums");
    }
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
    if (values->level > PHEMA_MAX_LEVEL)
        return cli_fail_option(err, PHEMA_ERR_USAGE, "level", "expected 1 to %d, found %llu",
                               PHEMA_MAX_LEVEL, (unsigned long long)values->level);
    enum phema_status status = read_device(&out->synth.gpu, values, err);
    return status ? status : cli_plan_options(&out->plan, common, &values->plan, err);
}

PHEMA_FALLIBLE cli_check_last(const struct cli_common *common, const struct phema_request *request,
                              struct phema_error *err)
{
    const char *out = request->outputs.out;
    if (!request->plan.series.n_several || !out ||
        (!phema_file_is_checkpoint(out) && !phema_directory_has_model(out, true)) ||
        phema_provenance_exists(out, &request->plan.series.checkpoint))
        return PHEMA_OK;
    enum phema_status status =
        phema_fail(err, PHEMA_ERR_OUTPUT,
                   "%s: is a checkpoint that posthoc-ema has not made; of several arguments "
                   "the last one is OUT",
                   out);
    cli_suggest_words(err, &common->line, common->line.argc, 0, "averages/");
    return status;
}

/* ---- The command of a provenance ---- */

/* More words than any shell accepts. */
#define MAX_WORDS 65536

/* Copies one word from *at to *to, without its quotes. */
static void unquote(const char **at, char **to)
{
    bool is_quoted = false;
    for (; **at && (is_quoted || **at != ' '); (*at)++) {
        if (**at == '\'')
            is_quoted = !is_quoted;
        else if (**at == '\\' && !is_quoted && (*at)[1])
            *(*to)++ = *++*at;
        else
            *(*to)++ = **at;
    }
    *(*to)++ = '\0';
}

/* argv: out, in the arena, the words of a command, which phema_strbuf_put_word has quoted, then "--"
 * and OUT.
 * PHEMA_ERR_FILE  too many words */
static enum phema_status split(int *argc, char ***argv, struct phema_arena *arena,
                               const char *command, const char *out, struct phema_error *err)
{
    size_t n_spaces = 0;
    for (const char *at = command; *at; at++)
        n_spaces += *at == ' ';
    if (n_spaces > MAX_WORDS)
        return phema_fail(err, PHEMA_ERR_FILE, "the command has more than %d words", MAX_WORDS);
    char *to = phema_arena_alloc(arena, strlen(command) + 2);
    char **words = phema_arena_array(arena, n_spaces + 4, sizeof(*words));
    char *dashes = phema_arena_copy(arena, "--", 2);
    char *path = phema_arena_copy(arena, out, strlen(out));
    if (arena->is_failed)
        return phema_fail_memory(err);
    *argc = 0;
    for (const char *at = command; *at;) {
        if (*at == ' ') {
            at++;
            continue;
        }
        words[(*argc)++] = to;
        unquote(&at, &to);
    }
    words[(*argc)++] = dashes;
    words[(*argc)++] = path;
    *argv = words;
    return PHEMA_OK;
}

static enum phema_status parse(struct cli_synth_values *values, const struct cli_verb *synth,
                               const char *command, const char *out, struct phema_error *err)
{
    char **argv = NULL;
    int argc = 0;
    enum phema_status status = split(&argc, &argv, &values->common.arena, command, out, err);
    if (status)
        return status;
    if (argc <= 3 || strcmp(argv[0], "posthoc-ema") != 0 || strcmp(argv[1], synth->name) != 0)
        return phema_fail(err, PHEMA_ERR_FILE, "its command is not one of posthoc-ema synth");
    status = cli_parse(synth, values, argc, argv, err);
    if (status == PHEMA_ERR_USAGE)
        return phema_fail_in(err, PHEMA_ERR_FILE, "its command");
    if (status)
        return status;
    if (values->common.is_help || !values->run.outputs.out ||
        values->run.plan.options.is_conversion)
        return phema_fail(err, PHEMA_ERR_FILE, "its command makes no average");
    values->run.plan.max_error = PHEMA_UNKNOWN; /* --max-error does not affect the bytes */
    return PHEMA_OK;
}

static void release(void *handle)
{
    struct cli_synth_values *values = handle;
    if (values)
        phema_arena_clear(&values->common.arena);
    free(values);
}

/* The bits are those of the processor, except for sums of cuBLAS, which only cuBLAS repeats. */
static enum phema_status read_command(void *context, void **handle, struct phema_request *request,
                                      const char *command, const char *path,
                                      struct phema_error *err)
{
    const struct cli_commands *commands = context;
    struct cli_synth_values *values = calloc(1, sizeof(*values));
    *handle = values;
    if (!values)
        return phema_fail_memory(err);
    enum phema_status status = parse(values, commands->synth, command, path, err);
    if (status) /* words of a stranger are no command to try */
        phema_error_clear_changes(err);
    if (status)
        return status;
    values->run.device = values->run.synth.gpu.uses_blas ? "cuda" : "cpu";
    return cli_read_request(request, &values->common, &values->run, err);
}

/* The first option that makes other bytes of the same weights and snapshots; NULL: no option. */
static const char *find_difference(struct phema_name_buffer *shown, void *context,
                                   const void *handle)
{
    const struct cli_run_values *mine = ((const struct cli_commands *)context)->values;
    const struct cli_run_values *recorded = &((const struct cli_synth_values *)handle)->run;
    const char *name = cli_find_difference(cli_run_rows, recorded, mine);
    if (!name)
        name = cli_find_difference(cli_make_rows, recorded, mine);
    if (!name)
        return NULL;
    (void)snprintf(shown->text, sizeof(shown->text), "--%s", name);
    return shown->text;
}

void cli_commands_init(struct cli_commands *out, const struct cli_verb *synth,
                       const struct cli_run_values *values)
{
    *out = (struct cli_commands){.commands = {.context = out,
                                              .read = read_command,
                                              .find_difference = find_difference,
                                              .release = release},
                                 .synth = synth,
                                 .values = values};
}
