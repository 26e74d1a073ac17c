// SPDX-License-Identifier: Apache-2.0
/* reader.c - elements of tensors, wherever they lie: a view where they are mapped in C order, else
 * a copy in the caller's scratch. */
#include <stdlib.h>

#include "format.h"

struct phema_reader {
    const struct phema_checkpoint *checkpoint;
};

bool phema_checkpoint_is_decoded(const struct phema_checkpoint *checkpoint)
{
    (void)checkpoint;
    return false;
}

bool phema_checkpoint_can_seek(const struct phema_checkpoint *checkpoint)
{
    (void)checkpoint;
    return true;
}

enum phema_status phema_reader_open(struct phema_reader **out,
                                    const struct phema_checkpoint *checkpoint,
                                    struct phema_error *err)
{
    struct phema_reader *reader = calloc(1, sizeof(*reader));
    if (!reader)
        return fail_memory(err);
    reader->checkpoint = checkpoint;
    *out = reader;
    return PHEMA_OK;
}

void phema_reader_close(struct phema_reader *reader)
{
    free(reader);
}

enum phema_status phema_reader_read(const uint8_t **data, struct phema_reader *reader,
                                    const struct phema_tensor *tensor, uint64_t first, uint64_t n,
                                    void *scratch, struct phema_error *err)
{
    (void)err;
    *data = phema_tensor_read(phema_tensor_start(reader->checkpoint, tensor), tensor, first, n,
                              scratch);
    return PHEMA_OK;
}

enum phema_status phema_reader_finish(struct phema_reader *reader, struct phema_error *err)
{
    (void)reader;
    (void)err;
    return PHEMA_OK;
}
