/* array.h - growing arrays of malloc. */
#ifndef PHEMA_ARRAY_H
#define PHEMA_ARRAY_H

#include "phema/error.h"
#include "phema/span.h"

/* Grows the array, where it is full, for one element after the first n; the capacity doubles.
 *   array         the address of the caller's pointer, NULL at first; free() releases it
 *   capacity      in elements, 0 at first
 *   element_size  [bytes], > 0
 * false: out of memory, or the size overflows; the array is unchanged. */
bool phema_array_grow(void *array, size_t *capacity, size_t n, size_t element_size);

#endif
