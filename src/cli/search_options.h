/* search_options.h - the values of the verb `search`, and what they ask for. */
#ifndef CLI_SEARCH_OPTIONS_H
#define CLI_SEARCH_OPTIONS_H

#include "phema/searching.h"
#include "shared_options.h"

struct search_values {
    struct cli_common common;
    struct cli_run_values run;
    const char *sigma_rel, *exec, *score_regex;
    enum search_keep keep;
    bool is_shell, minimizes, maximizes;
    uint64_t coarse, evaluations, batch;
    double tolerance, noise, timeout;
};

struct search_setup {
    const struct search_values *values;
    struct search_options options;
    struct cli_commands commands;
    struct searching searching;
};

/* Reads widths, numbers, OUT and the command. */
PHEMA_FALLIBLE search_read_options(struct search_setup *setup, struct phema_error *err);

#endif
