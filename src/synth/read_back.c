// SPDX-License-Identifier: Apache-2.0
/* read_back.c - what was written is read again before it is published: tile by tile, as it was
 * written, and what each put said of its bytes is held against what is there. */
#include "read_back.h"

PHEMA_FALLIBLE tile_reread(const struct run *run, size_t output, const struct tile_range *piece,
                           uint64_t *sum, struct phema_error *err)
{
    struct sink *sink = run->sinks[output];
    if (piece->n_tensors > 1)
        return sink_write_run(sink, piece->tensors, piece->n_tensors, piece->first, piece->n_elems,
                              NULL, sum, err);
    enum phema_status status = PHEMA_OK;
    for (size_t i = piece->tensor; i != SIZE_MAX && !status; i = run->next_alias[i])
        status = sink_write(sink, i, piece->first, piece->n_elems, NULL, sum, err);
    return status;
}

PHEMA_FALLIBLE output_reread(struct run *run, size_t output, struct phema_error *err)
{
    if (!run->options.verifies)
        return PHEMA_OK;
    size_t hint = 0;
    enum phema_status status = sink_begin_verify(run->sinks[output], err);
    for (uint64_t t = 0; t < tiling_n_tiles(&run->cut) && !status; t++) {
        struct tile_range piece = tiling_tile(&run->cut, t, &hint);
        status = tile_reread(run, output, &piece, NULL, err);
    }
    return status ? status : sink_end_verify(run->sinks[output], err);
}
