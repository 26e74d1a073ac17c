/* join_outputs.h - publishes outputs that several processes have written in parts. All are checked
 * before the first is published. */
#ifndef OPS_JOIN_OUTPUTS_H
#define OPS_JOIN_OUTPUTS_H

#include "phema/ops.h"

/* *has: false also where another process has joined the parts of path. */
PHEMA_FALLIBLE join_has_parts(bool *has, const char *path, struct phema_error *err);

enum join_result {
    JOIN_NOTHING, /* another process has joined everything */
    JOIN_WAITS,   /* parts of other processes are not done */
    JOIN_DONE
};

struct join_request {
    const char *const *paths; /* [n] */
    size_t n;
    struct phema_writer_options options;
    const struct phema_listener *listener;
    /* Hears which process is waited for, after a second; NULL: nobody. */
    const struct phema_listener *waiting;
    /* Called with the lock where an output is there beside parts of it: removes parts that were
     * written after another team of processes had published the output (published_parts.h). */
    enum phema_status (*drop)(void *context, struct phema_error *err);
    void *context;
};

/* For --part auto, after this process has made its part: publishes all paths, if the parts of all
 * processes are done and no other process has published them. */
PHEMA_FALLIBLE join_when_done(enum join_result *result, const struct join_request *request,
                              struct phema_error *err);

/* Calls drop with the lock, whatever is there. */
PHEMA_FALLIBLE join_drop(const struct join_request *request, struct phema_error *err);

#endif
