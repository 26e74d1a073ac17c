/* strided.h - Gathering of strided elements. */
#ifndef FORMATS_STRIDED_H
#define FORMATS_STRIDED_H

#include "phema/formats.h"

/* Copies n elements of size bytes each that lie step bytes apart. */
void strided_gather_row(uint8_t *out, const uint8_t *from, uint64_t n, uint64_t step, size_t size);

#endif
