// SPDX-License-Identifier: Apache-2.0
/* array.c - growing arrays of malloc. */
#include "phema/array.h"

#include <stdlib.h>
#include <string.h>

bool phema_array_grow(void *array, size_t *capacity, size_t n, size_t element_size)
{
    if (n < *capacity)
        return true;
    size_t wanted = *capacity ? *capacity * 2 : 16;
    uint64_t size_bytes = 0;
    if (!phema_size_mul(&size_bytes, wanted, element_size) || size_bytes > SIZE_MAX / 2)
        return false;
    void *items; /* the caller's pointer may be of any type: no void ** without breaking aliasing */
    memcpy(&items, array, sizeof(items));
    items = realloc(items, (size_t)size_bytes);
    if (!items)
        return false;
    memcpy(array, &items, sizeof(items));
    *capacity = wanted;
    return true;
}
