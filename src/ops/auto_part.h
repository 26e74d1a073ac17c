/* auto_part.h - the same command in many processes: each makes its part, and the one that finds all
 * parts done joins them. */
#ifndef OPS_AUTO_PART_H
#define OPS_AUTO_PART_H

#include "phema/ops.h"

/* Keeps the paths of all outputs. */
PHEMA_FALLIBLE auto_part_keep_paths(struct phema_synthesis *synthesis, struct phema_error *err);

/* The same, and removes those from the run whose part an earlier run has made. */
PHEMA_FALLIBLE auto_part_skip_done(struct phema_synthesis *synthesis,
                                   const struct phema_listener *listener, struct phema_error *err);

/* Joins all outputs, if all their parts are done. */
PHEMA_FALLIBLE auto_part_join(const struct phema_synthesis *synthesis,
                              const struct phema_listener *listener, struct phema_error *err);

/* Puts part and host before the message of a failure, and returns status. */
enum phema_status auto_part_name_process(const struct phema_synth_options *options,
                                         enum phema_status status, struct phema_error *err);

#endif
