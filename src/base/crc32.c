// SPDX-License-Identifier: Apache-2.0
/* crc32.c - zlib's, which is several times faster than a table of our own would be. */
#include "phema/checksum.h"

#include <zlib.h>

uint32_t phema_crc32(uint32_t crc, const void *data, size_t size)
{
    return size ? (uint32_t)crc32_z(crc, data, size) : crc;
}
