/* array.h - growing arrays of malloc. */
#ifndef PHEMA_ARRAY_H
#define PHEMA_ARRAY_H

#include "phema/error.h"
#include "phema/span.h"

/* Makes place for one more element behind the n that are there; the capacity doubles.
 *   array         the address of the caller's pointer, NULL at first; free() releases it
 *   capacity      in elements, 0 at first
 *   element_size  [bytes], > 0
 * false: out of memory, or the size overflows; nothing has changed then. */
bool phema_array_grow(void *array, size_t *capacity, size_t n, size_t element_size);

#endif
