/* strided.h - what copies elements together. */
#ifndef FORMATS_STRIDED_H
#define FORMATS_STRIDED_H

#include "phema/formats.h"

/* n elements of size bytes each that lie step bytes apart. */
void strided_row(uint8_t *out, const uint8_t *from, uint64_t n, uint64_t step, size_t size);

/* Elements [first, first + n) in C order of a tensor in parts: a view where one part has them so,
 * else a copy in scratch. */
const uint8_t *parts_read(const struct phema_checkpoint *checkpoint,
                          const struct phema_tensor *tensor, uint64_t first, uint64_t n,
                          void *scratch);

#endif
