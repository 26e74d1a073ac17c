/* join.h - inside the writer room: parts of an output that become it. */
#ifndef WRITER_JOIN_H
#define WRITER_JOIN_H

#include <sys/stat.h>

#include "part.h"

struct phema_writer_join {
    char *path, *partial_path, *directory;
    struct phema_writer_options options;
    uint64_t n_parts, size_bytes;
    struct part_marker first; /* what all of them say */
    int descriptor;           /* of PATH.partial, or -1 */
    mode_t usual_write;       /* as of a writer */
    bool is_begun;            /* a part is being written, or was when its run ended */
    bool is_published;        /* an earlier join was stopped behind that */
};

/* Finds the parts and locks PATH.partial; fails unless all of it is there and nothing else. */
PHEMA_FALLIBLE join_check(struct phema_writer_join *join, struct phema_error *err);

#endif
