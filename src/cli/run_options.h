/* run_options.h - the options that `synth`, `plan` and `search` share, and from them the plan, its
 * outputs and how the plan is carried out. */
#ifndef CLI_RUN_OPTIONS_H
#define CLI_RUN_OPTIONS_H

#include "phema/output.h"
#include "phema/synth.h"
#include "series_options.h"

#define CLI_DTYPE_SAME 1

/* The rows fill the options of output.h and synth.h where a value needs no conversion. */
struct cli_run_values {
    struct cli_plan_values plan;
    struct phema_outputs_options outputs;
    struct phema_synth_options synth;
    unsigned dtype;      /* CLI_CHOICE: auto, same (CLI_DTYPE_SAME), f32, f16, bf16 */
    unsigned accumulate; /* CLI_CHOICE of CLI_PRECISIONS */
    const char *device, *gpu_memory;
    uint64_t threads, level;
    bool hides_errors; /* the verb prints the errors to expect itself */
};

#define CLI_PRECISIONS "auto|f64|f32"

/* Rows of struct cli_run_values: snapshots, targets and --convert; OUT; how outputs are made,
 * whatever they are of. */
extern const struct cli_opt cli_run_rows[], cli_out_rows[], cli_make_rows[];

struct cli_synth_values {
    struct cli_common common;
    struct cli_run_values run;
    const char *profile_memory, *part;
    bool skips_existing;
    bool joins;        /* --part auto: the process that finds all parts done joins them */
    bool says_waiting; /* says for whom it waits: unless --quiet, processes of all parts */
};

/* From values to a plan and its outputs; each step is reported on stderr. */
struct cli_prepared {
    struct phema_plan *plan;
    struct phema_outputs outputs;
    struct phema_synth_options options;
};

/* Sets the options of the run alone. memory: NULL for none. */
PHEMA_FALLIBLE cli_prepare_run(struct cli_prepared *prepared, const struct cli_run_values *values,
                               struct phema_memory_profile *memory, struct phema_error *err);

/* Call both in this order. out: OUT, or a default for it. memory: NULL for none. Call
 * cli_prepared_clear after a failure as well. */
PHEMA_FALLIBLE cli_prepare_plan(struct cli_prepared *prepared, const struct cli_common *common,
                                const struct cli_run_values *values,
                                struct phema_memory_profile *memory, struct phema_error *err);
PHEMA_FALLIBLE cli_prepare_outputs(struct cli_prepared *prepared, const struct cli_common *common,
                                   const struct cli_run_values *values, const char *out,
                                   struct phema_error *err);
void cli_prepared_clear(struct cli_prepared *prepared);

#endif
