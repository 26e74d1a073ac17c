/* run_options.h - what `synth` and `plan` have in common: the options of a run, and from them the
 * plan, its outputs and how it will be carried out. */
#ifndef CLI_RUN_OPTIONS_H
#define CLI_RUN_OPTIONS_H

#include "phema/synth.h"
#include "series_options.h"

struct cli_run_values {
    struct cli_series_values series;
    struct cli_target_values target;
    const char *out, *into, *dtype, *overflow, *accumulate, *io, *input_hash;
    const char *device, *gpu_memory, *gpu_sums;
    bool is_forced, skips_sync, is_conversion, drops_cache;
    uint64_t threads, shard_size, level, max_ram;
};

/* How outputs are made, whatever they are of. */
#define CLI_MAKE_ROWS(type)                                                                         \
    {"into",                                                                                        \
     OUTPUT,                                                                                        \
     CLI_TEXT,                                                                                      \
     CLI_ROW(type, run.into),                                                                       \
     "FILE",                                                                                        \
     "replace the tensors in a copy of FILE, any\ncheckpoint of the model (default for .pt, "       \
     ".pth,\n.ckpt and .pkl: of the newest snapshot)",                                              \
     CLI_SHAPES_BYTES,                                                                              \
     0},                                                                                            \
        {"shard-size",                                                                              \
         OUTPUT,                                                                                    \
         CLI_SIZE,                                                                                  \
         CLI_ROW(type, run.shard_size),                                                             \
         "SIZE",                                                                                    \
         "write a directory of safetensors files of at most\nthis size (512M, 1.5GiB, 1e9), and "   \
         "their index",                                                                             \
         CLI_SHAPES_BYTES | CLI_POSITIVE,                                                           \
         0},                                                                                        \
        {"level",      OUTPUT,                                                                      \
         CLI_COUNT,    CLI_ROW(type, run.level),                                                    \
         "N",          "how far .safetensors.zst is compressed: 1 to 22\n(default 3)",              \
         CLI_POSITIVE, 0},                                                                          \
        {"dtype",                                                                                   \
         OUTPUT,                                                                                    \
         CLI_CHOICE,                                                                                \
         CLI_ROW(type, run.dtype),                                                                  \
         "same|f32|f16|bf16",                                                                       \
         "dtype of the averages (default same); not for\n.pt, .pth, .ckpt, .pkl and --into",        \
         CLI_SHAPES_BYTES,                                                                          \
         0},                                                                                        \
        {"overflow",           OUTPUT,                                                              \
         CLI_CHOICE,           CLI_ROW(type, run.overflow),                                         \
         "error|saturate|inf", "averages too large for the dtype (default error)",                  \
         CLI_SHAPES_BYTES,     0},                                                                  \
        {"buffers",        OUTPUT,                                                                  \
         CLI_CHOICE,       CLI_ROW(type, run.series.buffers),                                       \
         "newest|average", "buffers, where files tell them from parameters\n(default newest)",      \
         CLI_SHAPES_BYTES, 0},                                                                      \
        {"input-hash",                                                                              \
         OUTPUT,                                                                                    \
         CLI_CHOICE,                                                                                \
         CLI_ROW(type, run.input_hash),                                                             \
         "full|sampled",                                                                            \
         "by what the provenance knows snapshots again: all\ndata that were read (default), or "    \
         "windows of them",                                                                         \
         CLI_SHAPES_BYTES,                                                                          \
         0},                                                                                        \
        {"force", OUTPUT, CLI_FLAG, CLI_ROW(type, run.is_forced), NULL, "replace existing outputs", \
         0,       'f'},                                                                             \
        {"no-sync", OUTPUT,                                                                         \
         CLI_FLAG,  CLI_ROW(type, run.skips_sync),                                                  \
         NULL,      "do not wait until outputs are safe on disk",                                   \
         0,         0},                                                                             \
        {"accumulate",     NUMBERS,                                                                 \
         CLI_CHOICE,       CLI_ROW(type, run.accumulate),                                           \
         "auto|f64|f32",   "precision of the sums (auto: f32 where it hides)",                      \
         CLI_SHAPES_BYTES, 0},                                                                      \
        {"threads",    RESOURCES,                                                                   \
         CLI_COUNT,    CLI_ROW(type, run.threads),                                                  \
         "N",          "default: the processors this process may use",                              \
         CLI_POSITIVE, 'j'},                                                                        \
        {"device",                                                                                  \
         RESOURCES,                                                                                 \
         CLI_TEXT,                                                                                  \
         CLI_ROW(type, run.device),                                                                 \
         "DEVICE",                                                                                  \
         "who adds up: auto (default: a GPU where it wins),\ncpu, cuda, cuda:0,1 or cuda:all",      \
         0,                                                                                         \
         0},                                                                                        \
        {"gpu-memory",                                                                              \
         RESOURCES,                                                                                 \
         CLI_TEXT,                                                                                  \
         CLI_ROW(type, run.gpu_memory),                                                             \
         "SIZE",                                                                                    \
         "of each GPU that may be taken: 8GiB, or a part\nof what is free (default 0.9)",           \
         0,                                                                                         \
         0},                                                                                        \
        {"gpu-sums",                                                                                \
         NUMBERS,                                                                                   \
         CLI_CHOICE,                                                                                \
         CLI_ROW(type, run.gpu_sums),                                                               \
         "exact|cublas",                                                                            \
         "sums on a GPU: the processor's bits (default), or\ncuBLAS for more than 8 targets",       \
         CLI_SHAPES_BYTES,                                                                          \
         0},                                                                                        \
        {"io",                                                                                      \
         RESOURCES,                                                                                 \
         CLI_CHOICE,                                                                                \
         CLI_ROW(type, run.io),                                                                     \
         "auto|mmap|read|direct",                                                                   \
         "how snapshots are read (auto: read, mapped where\nthere are too many; direct: past "      \
         "the page cache)",                                                                         \
         0,                                                                                         \
         0},                                                                                        \
        {"drop-cache",                                                                              \
         RESOURCES,                                                                                 \
         CLI_FLAG,                                                                                  \
         CLI_ROW(type, run.drops_cache),                                                            \
         NULL,                                                                                      \
         "leave nothing of snapshots and outputs in the\npage cache",                               \
         0,                                                                                         \
         0},                                                                                        \
    {                                                                                               \
        "max-ram", RESOURCES, CLI_SIZE, CLI_ROW(type, run.max_ram), "SIZE",                         \
            "anonymous memory this process may have: tiles\nshrink to fit, then targets are made "  \
            "in several\npasses; status 7 where that does not do",                                  \
            CLI_POSITIVE, 0                                                                         \
    }

#define CLI_RUN_ROWS(type, out_flags)                                                              \
    CLI_SERIES_ROWS(type, run.), CLI_TARGET_ROWS(type, run.),                                      \
        {"convert",                                                                                \
         TARGET,                                                                                   \
         CLI_FLAG,                                                                                 \
         CLI_ROW(type, run.is_conversion),                                                         \
         NULL,                                                                                     \
         "no average: SNAPSHOTS is one checkpoint, written\nas it is in the format of OUT",        \
         CLI_SHAPES_BYTES,                                                                         \
         0},                                                                                       \
        {"OUT",                                                                                    \
         OUTPUT,                                                                                   \
         CLI_OPERAND,                                                                              \
         CLI_ROW(type, run.out),                                                                   \
         NULL,                                                                                     \
         "a file, whose end says what is written; a\ndirectory, which takes the form of the "      \
         "newest\nsnapshot; or names like sweep/{time}-{sigma}.pt",                                \
         out_flags,                                                                                \
         0},                                                                                       \
        CLI_MAKE_ROWS(type)

struct cli_synth_values {
    struct cli_common common;
    struct cli_run_values run;
    const char *profile_memory, *part, *nan;
    bool skips_existing, verifies, resumes;
};

/* From values to a plan and its outputs, reported on stderr as they come to be. */
struct cli_prepared {
    struct phema_plan *plan;
    struct phema_outputs outputs;
    struct phema_synth_options options;
};

/* One after the other. out: OUT, or what stands for it. ledger: NULL for none. Clear after a
 * failure as well. */
PHEMA_FALLIBLE cli_prepare_plan(struct cli_prepared *prepared, const struct cli_common *common,
                                const struct cli_run_values *values,
                                struct phema_memory_profile *ledger, struct phema_error *err);
PHEMA_FALLIBLE cli_prepare_outputs(struct cli_prepared *prepared, const struct cli_common *common,
                                   const struct cli_run_values *values, const char *out,
                                   struct phema_error *err);
void cli_prepared_clear(struct cli_prepared *prepared);

#endif
