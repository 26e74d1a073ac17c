/* tensor_entry.h - what a safetensors header says of one tensor. */
#ifndef FORMATS_SAFETENSORS_TENSOR_ENTRY_H
#define FORMATS_SAFETENSORS_TENSOR_ENTRY_H

#include "phema/formats.h"
#include "safetensors/json_lexer.h"

/* The object at hand: dtype, shape and data_offsets, whose length is that of the shape.
 *   tensor     out: the offset counts from the beginning of the data; name and file stay
 *   arena      for the shape
 *   data_size  of the file: what the offsets must lie in */
PHEMA_FALLIBLE safetensors_entry_read(struct phema_tensor *tensor, struct json_lexer *scan,
                                      struct phema_arena *arena, uint64_t data_size,
                                      struct phema_error *err);

#endif
