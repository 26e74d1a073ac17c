// SPDX-License-Identifier: Apache-2.0
/* elements.c - the bytes of a tensor on standard output. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "phema/cleanup.h"
#include "phema/report.h"

PHEMA_FALLIBLE render_print_elements(const struct phema_checkpoint *checkpoint,
                                     const struct phema_tensor *tensor, struct phema_error *err)
{
    enum { CHUNK = 32768 }; /* elements; even, because two F4 elements share a byte */
    uint8_t scratch[CHUNK * 16];
    struct phema_reader *reader = NULL;
    enum phema_status status = phema_reader_open(&reader, checkpoint, err);
    for (uint64_t first = 0; !status && first < tensor->n_elems; first += CHUNK) {
        uint64_t n = tensor->n_elems - first < CHUNK ? tensor->n_elems - first : CHUNK;
        size_t size = (size_t)(n * phema_dtype_bits(tensor->dtype) / 8);
        const uint8_t *data = NULL;
        status = phema_reader_read(&data, reader, tensor, first, n, scratch, err);
        if (status)
            break;
        phema_cleanup_touch(data, size); /* reports a truncated file instead of an error of
                                          * standard output */
        if (fwrite(data, 1, size, stdout) != size)
            status = phema_fail(err, PHEMA_ERR_OUTPUT, "standard output: %s", strerror(errno));
    }
    phema_reader_close(reader);
    if (!status && fflush(stdout))
        status = phema_fail(err, PHEMA_ERR_OUTPUT, "standard output: %s", strerror(errno));
    return status ? status : phema_checkpoint_check_unchanged(checkpoint, err);
}
