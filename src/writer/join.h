/* join.h - private to writer/: parts of an output that become that output. */
#ifndef WRITER_JOIN_H
#define WRITER_JOIN_H

#include <sys/types.h>

#include "part.h"

struct phema_writer_join {
    char *path, *partial_path, *directory;
    struct phema_writer_options options;
    uint64_t n_parts, size_bytes;
    struct part_marker first; /* the first part that is done; the others agree with it */
    int descriptor;           /* of PATH.partial, or -1 */
    mode_t usual_write;       /* as of a writer */
    bool is_begun;            /* a part is being written, or was when its run ended */
    bool is_published;        /* an earlier join was stopped after the rename */
};

/* Finds the parts and locks PATH.partial. Fails unless all parts and files are complete, and no
 * other file is there. */
PHEMA_FALLIBLE join_check(struct phema_writer_join *join, struct phema_error *err);

#endif
