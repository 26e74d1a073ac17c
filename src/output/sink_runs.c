// SPDX-License-Identifier: Apache-2.0
/* sink_runs.c - Elements of a tensor, written to their places in the files of an output, or read from
 * them. What lies in a piece with a checksum is noted for it (sink_pieces.c). */
#include "sink_internal.h"

struct transfer {
    struct sink *sink;
    size_t tensor;
    uint64_t first; /* the element at data */
    const uint8_t *written;
    uint8_t *read; /* one of both */
    bool is_done;  /* what was read counts as written */
};

static enum phema_status transfer_run(void *context, const struct phema_run *run,
                                      struct phema_error *err)
{
    const struct transfer *transfer = context;
    struct sink *sink = transfer->sink;
    enum phema_dtype dtype = sink->outputs->dtypes[transfer->tensor];
    uint64_t at = phema_dtype_bytes(dtype, run->first - transfer->first);
    size_t size = (size_t)phema_dtype_bytes(dtype, run->n);
    struct phema_writer *writer = sink->writers[run->file];
    enum phema_status status =
        transfer->read ? phema_writer_read(writer, run->offset, transfer->read + at, size, err)
                       : phema_writer_write(writer, run->offset, transfer->written + at, size, err);
    if (!status && transfer->read && transfer->is_done)
        phema_writer_count(writer, run->offset, transfer->read + at, size);
    if (!status && (transfer->written || transfer->is_done))
        sink_note_run(sink, transfer->tensor, run,
                      transfer->read ? transfer->read + at : transfer->written + at, size);
    return status;
}

static enum phema_status transfer_range(struct transfer *transfer, uint64_t n,
                                        struct phema_error *err)
{
    const struct sink *sink = transfer->sink;
    size_t i = transfer->tensor;
    const struct phema_tensor_location *location = &sink->output->locations[i];
    struct phema_tensor tensor = sink->plan->series->tensors[i].tensor;
    tensor.dtype = sink->outputs->dtypes[i];
    tensor.chunks = location->chunks;
    tensor.n_chunks = location->n_chunks;
    if (location->chunks)
        return phema_tensor_visit_runs(&tensor, transfer->first, n, transfer_run, transfer, err);
    const struct phema_run all = {.file = location->file,
                                  .offset = sink_tensor_offset(sink, i) +
                                            phema_dtype_bytes(tensor.dtype, transfer->first),
                                  .first = transfer->first,
                                  .n = n};
    return transfer_run(transfer, &all, err);
}

PHEMA_FALLIBLE sink_write_runs(struct sink *sink, size_t i, uint64_t first, uint64_t n,
                               const void *data, struct phema_error *err)
{
    struct transfer transfer = {.sink = sink, .tensor = i, .first = first, .written = data};
    return transfer_range(&transfer, n, err);
}

PHEMA_FALLIBLE sink_read_runs(struct sink *sink, size_t i, uint64_t first, uint64_t n, bool is_done,
                              void *data, struct phema_error *err)
{
    struct transfer transfer = {
        .sink = sink, .tensor = i, .first = first, .read = data, .is_done = is_done};
    return transfer_range(&transfer, n, err);
}
