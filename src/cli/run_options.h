/* run_options.h - the options that `synth`, `plan` and `search` share. */
#ifndef CLI_RUN_OPTIONS_H
#define CLI_RUN_OPTIONS_H

#include "phema/ops.h"
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
};

/* values -> what ops are asked for; borrowed from the values. */
PHEMA_FALLIBLE cli_read_request(struct phema_request *out, const struct cli_common *common,
                                const struct cli_run_values *values, struct phema_error *err);

#endif
