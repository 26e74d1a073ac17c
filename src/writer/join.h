/* join.h - private to writer/: an output that is joined. */
#ifndef WRITER_JOIN_H
#define WRITER_JOIN_H

#include <sys/types.h>

#include "part.h"

struct phema_writer_join {
    char *path, *partial_path;
    struct phema_writer_options options;
    uint64_t n_parts, size_bytes;
    struct part_marker first; /* the first part that is done; the others agree with it */
    int descriptor;           /* of PATH.partial, or -1 */
    bool is_begun;            /* a part is being written, or was when its run ended */
    bool is_published;        /* an earlier join was stopped after the rename */
};

/* ---- join_sums.c ---- */

/* Writes the sums over the data of all parts into the header that the first part has written. The
 * next join writes the same bytes when this one is stopped here; so it does below. */
PHEMA_FALLIBLE join_write_sums(const struct phema_writer_join *join, struct phema_error *err);

/* Writes the checksums of what several parts have written. */
PHEMA_FALLIBLE join_write_crcs(const struct phema_writer_join *join, struct phema_error *err);

/* Opens the sidecar, whose text is that of the first part with the sums of all. */
PHEMA_FALLIBLE join_open_sidecar(struct phema_writer **out, const struct phema_writer_join *join,
                                 struct phema_error *err);

#endif
