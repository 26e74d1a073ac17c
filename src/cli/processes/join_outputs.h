/* join_outputs.h - publishes outputs that several processes have written in parts. All are checked
 * before the first is published. */
#ifndef CLI_JOIN_OUTPUTS_H
#define CLI_JOIN_OUTPUTS_H

#include "options.h"
#include "phema/render.h"
#include "phema/writer.h"

struct join_list {
    struct phema_writer_join **items; /* [n], NULL when committed */
    size_t n, capacity;
};

/* Failures of phema_writer_join_open. */
PHEMA_FALLIBLE join_list_add(struct join_list *list, const char *path,
                             const struct phema_writer_options *options, struct phema_error *err);

/* Publishes all. Appends their paths to text, or where json is given objects to json.
 *   common    shows stages that take longer than a second
 *   is_brief  does not report each output */
PHEMA_FALLIBLE join_list_commit(struct join_list *list, const struct cli_common *common,
                                bool is_brief, struct phema_strbuf *text,
                                struct phema_json_out *json, struct phema_error *err);
void join_list_clear(struct join_list *list);

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
    const struct cli_common *common;
    bool is_brief;     /* as of join_list_commit */
    bool says_waiting; /* names the process that is waited for longer than a second */
    /* Called with the lock where an output is there beside parts of it: removes parts that were
     * written after another team of processes had published the output (published_parts.h). */
    enum phema_status (*drop)(void *context, struct phema_error *err);
    void *context;
};

/* For --part auto, after this process has made its part: publishes all paths, if the parts of all
 * processes are done and no other process has published them. */
PHEMA_FALLIBLE join_when_done(enum join_result *result, const struct join_request *request,
                              struct phema_strbuf *text, struct phema_error *err);

/* Calls drop with the lock, whatever is there. */
PHEMA_FALLIBLE join_drop(const struct join_request *request, struct phema_error *err);

#endif
