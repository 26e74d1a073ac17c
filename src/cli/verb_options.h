/* verb_options.h - verbs whose options are read in a file of their own: their values, and what
 * these ask for. */
#ifndef CLI_VERB_OPTIONS_H
#define CLI_VERB_OPTIONS_H

#include "phema/gen.h"
#include "phema/searching.h"
#include "shared_options.h"

/* ---- search_options.c ---- */

struct search_values {
    struct cli_common common;
    struct cli_run_values run;
    const char *sigma_rel, *line, *lambda, *exec, *score_regex;
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

/* ---- gen_options.c ---- */

struct gen_values {
    struct cli_common common;
    struct phema_gen_options options;
    const char *directory;
    struct cli_reals truth_at;
    struct cli_texts input_profile, truth_profile, reset_at;
    unsigned format; /* CLI_CHOICE */
    uint64_t threads;
    const char *design;
    struct phema_claims *claims; /* the files that are read; the caller frees it */
};

/* Sets the averages of snapshots and the exact ones, times and resets. */
PHEMA_FALLIBLE gen_read_options(struct gen_values *args, struct phema_error *err);

#endif
