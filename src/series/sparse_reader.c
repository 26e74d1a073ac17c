// SPDX-License-Identifier: Apache-2.0
/* sparse_reader.c - a reader of a few elements of a checkpoint. */
#include "sparse_read.h"

#include "phema/file_reader.h"

PHEMA_FALLIBLE sparse_reader_open(struct phema_reader **reader,
                                  const struct phema_checkpoint *checkpoint,
                                  struct phema_error *err)
{
    static const struct phema_reading reading = {.io = PHEMA_IO_READ, .is_sparse = true};
    uint64_t limit;
    enum phema_status status = phema_reader_open(reader, checkpoint, err);
    if (!status && phema_raise_fd_limit(
                       phema_checkpoint_n_files(checkpoint) + PHEMA_OTHER_DESCRIPTORS, &limit))
        status = phema_reader_use(*reader, &reading, err);
    return status;
}

void sparse_evict(const struct phema_checkpoint *checkpoint)
{
    for (size_t f = 0; f < phema_checkpoint_n_files(checkpoint); f++) {
        const struct phema_file *file = phema_checkpoint_file(checkpoint, f);
        phema_file_evict(file, 0, phema_file_span(file).size);
    }
}
