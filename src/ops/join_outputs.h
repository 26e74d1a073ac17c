/* join_outputs.h - publishes outputs that several processes have written in parts. All are checked
 * before the first is published. */
#ifndef OPS_JOIN_OUTPUTS_H
#define OPS_JOIN_OUTPUTS_H

#include "join_check.h"

/* *has: false also where another process has joined the parts of path. */
PHEMA_FALLIBLE join_has_parts(bool *has, const char *path, struct phema_error *err);

enum join_result {
    JOIN_NOTHING, /* another process has joined everything */
    JOIN_WAITS,   /* parts of other processes are not done */
    JOIN_DONE
};

struct join_request {
    const struct phema_synthesis *synthesis; /* of all its paths */
    const struct phema_listener *listener;
    /* Hears which process is waited for, after a second; NULL: nobody. */
    const struct phema_listener *waiting;
    struct join_check *check; /* of join_when_done */
    size_t n_current;         /* out: outputs that are there, up to date, and now without parts */
};

/* After this process has made its parts: publishes all paths, if the parts of all processes are done
 * and no other process has published them. */
PHEMA_FALLIBLE join_when_done(enum join_result *result, struct join_request *request,
                              struct phema_error *err);

/* After a failure, or where parts are missing: PHEMA_OK where all outputs are published and up to
 * date, and no part of them is left. Otherwise status, and err as it is. */
enum phema_status join_excuse(const struct phema_synthesis *synthesis,
                              const struct phema_listener *listener, enum phema_status status,
                              struct phema_error *err);
/* All outputs are there: none is left to be made. */
void join_forget(struct phema_prepared *prepared);

/* ---- The same command in many processes: each makes its part ---- */

/* Keeps the paths of all outputs. */
PHEMA_FALLIBLE auto_part_keep_paths(struct phema_synthesis *synthesis, struct phema_error *err);
/* The same, and removes those from the run whose part an earlier run has made. */
PHEMA_FALLIBLE auto_part_skip_done(struct phema_synthesis *synthesis,
                                   const struct phema_listener *listener, struct phema_error *err);
/* Joins all outputs, if all their parts are done. */
PHEMA_FALLIBLE auto_part_join(const struct phema_synthesis *synthesis,
                              const struct phema_listener *listener, struct phema_error *err);
/* Puts part and host before the message where one of many processes failed, and returns status. */
enum phema_status auto_part_name_process(const struct phema_synthesis *synthesis,
                                         enum phema_status status, struct phema_error *err);

#endif
