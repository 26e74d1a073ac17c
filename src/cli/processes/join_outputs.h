/* join_outputs.h - publishes outputs that several processes have written in parts. All are checked
 * before the first is published. */
#ifndef CLI_JOIN_OUTPUTS_H
#define CLI_JOIN_OUTPUTS_H

#include "messages.h"
#include "options.h"
#include "phema/writer.h"

struct join_list {
    struct phema_writer_join **items; /* [n], NULL when committed */
    size_t n, capacity;
};

/* Failures of phema_writer_join_open. */
PHEMA_FALLIBLE join_list_add(struct join_list *list, const char *path,
                             const struct phema_writer_options *options, struct phema_error *err);

/* common: says each output and shows the stage; NULL: nothing. Publishes all. Appends their paths
 * to text, or where json is given objects to json. */
PHEMA_FALLIBLE join_list_commit(struct join_list *list, const struct cli_common *common,
                                struct phema_strbuf *text, struct phema_json_out *json,
                                struct phema_error *err);
void join_list_clear(struct join_list *list);

/* *has: false also where another process has joined the parts of path. */
PHEMA_FALLIBLE join_has_parts(bool *has, const char *path, struct phema_error *err);

enum join_result {
    JOIN_NOTHING, /* another process has joined everything */
    JOIN_WAITS,   /* parts of other processes are not done */
    JOIN_DONE
};

/* For --part auto, after this process has made its part: publishes all paths, if the parts of all
 * processes are done and no other process has published them. */
PHEMA_FALLIBLE join_when_done(enum join_result *result, const char *const *paths, size_t n,
                              const struct phema_writer_options *options,
                              const struct cli_common *common, struct phema_strbuf *text,
                              struct phema_error *err);

#endif
