/* tensor_entry.h - One tensor's entry in a safetensors header. */
#ifndef FORMATS_SAFETENSORS_TENSOR_ENTRY_H
#define FORMATS_SAFETENSORS_TENSOR_ENTRY_H

#include "phema/formats.h"
#include "safetensors/json_lexer.h"

/* Reads the next object: dtype, shape and data_offsets, whose length must be that of the shape.
 *   tensor     out: the offset counts from the beginning of the data; name and file stay
 *   arena      memory of the shape
 *   data_size  of the file: upper limit of the offsets */
PHEMA_FALLIBLE safetensors_entry_read(struct phema_tensor *tensor, struct json_lexer *scan,
                                      struct phema_arena *arena, uint64_t data_size,
                                      struct phema_error *err);

#endif
