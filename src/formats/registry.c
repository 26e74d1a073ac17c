// SPDX-License-Identifier: Apache-2.0
/* registry.c - the formats, in the order they are asked. Safetensors comes first: its test is the
 * sharpest, and a header of 640 bytes starts with 80 02, as a pickle does. */
#include "format.h"

static const struct phema_format *const formats[] = {
    &safetensors_format, &torch_zip_format,    &torch_legacy_format, &zstd_format,
    &distributed_format, &plain_pickle_format, &tar_format,          &shards_format,
};

const struct phema_format *format_of(struct phema_span content)
{
    for (size_t i = 0; i < ARRAY_LEN(formats); i++)
        if (formats[i]->probe(content))
            return formats[i];
    return &safetensors_format; /* its open says what is wrong with the header */
}
