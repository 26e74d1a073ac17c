// SPDX-License-Identifier: Apache-2.0
/* part_option.c - --part I/N and --part auto. */
#include "processes/part_option.h"

#include <string.h>

#include "processes/launcher.h"
#include "remedy/remedy.h"

/* "2/8" */
static enum phema_status read_numbers(uint64_t *part, uint64_t *n_parts, const char *text,
                                      struct phema_error *err)
{
    uint64_t numbers[2] = {0, 0};
    const char *at = text;
    for (int i = 0; i < 2; i++) {
        for (; *at >= '0' && *at <= '9' && numbers[i] <= PHEMA_MAX_PARTS; at++)
            numbers[i] = 10 * numbers[i] + (uint64_t)(*at - '0');
        if (i == 0 && *at++ != '/')
            break;
    }
    if (numbers[0] < 1 || numbers[0] > numbers[1] || numbers[1] > PHEMA_MAX_PARTS || *at)
        return cli_suggest(
            err,
            cli_fail_option(err, PHEMA_ERR_USAGE, "part",
                            "'%s' is not I/N with I from 1 to N and N up to %d, such as 2/8, "
                            "and not auto",
                            text, PHEMA_MAX_PARTS),
            "part", "1/2");
    *part = numbers[0];
    *n_parts = numbers[1];
    return PHEMA_OK;
}

PHEMA_FALLIBLE part_option_read(struct phema_synthesis *synthesis, const char *part,
                                const struct cli_common *common, struct phema_error *err)
{
    struct phema_synth_options *options = &synthesis->request.synth;
    if (!part)
        return common->team ? launcher_check_library(common->team->size, err)
                            : launcher_check_alone(err);
    synthesis->joins = strcmp(part, "auto") == 0;
    if (!synthesis->joins)
        return read_numbers(&options->part, &options->n_parts, part, err);
    struct launcher launcher;
    enum phema_status status = launcher_read(&launcher, err);
    if (status)
        return status;
    options->part = launcher.rank + 1;
    options->n_parts = launcher.size;
    return PHEMA_OK;
}

PHEMA_FALLIBLE team_check_options(const struct cli_synth_values *args, struct phema_error *err)
{
    if (args->part)
        return cli_fail_option(err, PHEMA_ERR_USAGE, "part",
                               "the processes of MPI share the work already; leave it out, or "
                               "start posthoc-ema without MPI");
    if (args->profile_memory)
        return cli_fail_option(err, PHEMA_ERR_USAGE, "profile-memory",
                               "is for a single process; start posthoc-ema");
    if (args->run.synth.gpu.uses_blas)
        return phema_error_set_about(
            err,
            phema_fail(err, PHEMA_ERR_USAGE,
                       "--gpu-sums cublas: is for a single process; start posthoc-ema"),
            "gpu-sums");
    return PHEMA_OK;
}
