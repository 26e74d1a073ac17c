// SPDX-License-Identifier: Apache-2.0
/* read_back.c - what was written is read again before it is published: tile by tile, as it was
 * written, and what each put said of its bytes is held against what is there. */
#include "crew.h"

/* To the same places as tile.c puts it. */
static enum phema_status read_tile(const struct run *run, size_t output, const struct piece *piece,
                                   struct phema_error *err)
{
    struct sink *sink = run->sinks[output];
    if (piece->n_tensors > 1)
        return sink_put_stretch(sink, piece->tensors, piece->n_tensors, piece->first,
                                piece->n_elems, NULL, err);
    enum phema_status status = PHEMA_OK;
    for (size_t i = piece->tensor; i != SIZE_MAX && !status; i = run->next_alias[i])
        status = sink_put(sink, i, piece->first, piece->n_elems, NULL, err);
    return status;
}

PHEMA_FALLIBLE crew_read_back(struct run *run, struct phema_error *err)
{
    if (!run->options.verifies)
        return PHEMA_OK;
    enum phema_status status = PHEMA_OK;
    for (size_t j = 0; j < run->outputs->m && !status; j++) {
        size_t hint = 0;
        status = sink_begin_read_back(run->sinks[j], err);
        for (uint64_t t = 0; t < cut_n_tiles(&run->cut) && !status; t++) {
            struct piece piece = cut_tile(&run->cut, t, &hint);
            status = read_tile(run, j, &piece, err);
        }
        if (!status)
            status = sink_end_read_back(run->sinks[j], err);
    }
    return status;
}
