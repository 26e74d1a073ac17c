/* auto_part.h - the option --part of synth. With auto, a launcher starts the same command many
 * times: each process makes its part, and the one that finds all parts done joins them. */
#ifndef CLI_AUTO_PART_H
#define CLI_AUTO_PART_H

#include "phema/render.h"
#include "run_options.h"

struct auto_part {
    char **paths; /* [n] all outputs of the command, done or not */
    size_t n;
    bool is_team; /* MPI processes make them (team_synth.h) */
};

/* Sets the part, the number of parts and joins. PHEMA_ERR_USAGE: not I/N with I from 1 to N; no
 * launcher, or several that disagree; several processes without --part. */
PHEMA_FALLIBLE part_option_read(struct cli_synth_values *args, struct phema_error *err);

PHEMA_FALLIBLE auto_part_keep_paths(struct auto_part *out, const struct phema_outputs *outputs,
                                    struct phema_error *err);

/* Keeps the paths of all outputs, and removes those from the run whose part an earlier run has
 * made. */
PHEMA_FALLIBLE auto_part_skip_done(struct auto_part *out, struct cli_prepared *prepared,
                                   const struct cli_synth_values *args, struct phema_error *err);

/* Joins all outputs, if all their parts are done; appends their paths to text, unless that is
 * JSON. */
PHEMA_FALLIBLE auto_part_join(const struct auto_part *part, const struct cli_synth_values *args,
                              struct phema_strbuf *text, struct phema_error *err);
void auto_part_clear(struct auto_part *part);

/* Puts part and host before the message of a failure, and returns status. */
enum phema_status auto_part_name_process(const struct cli_synth_values *args,
                                         enum phema_status status, struct phema_error *err);

#endif
