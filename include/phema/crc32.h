/* crc32.h - the checksum of zip files: CRC-32 of ISO 3309, as zlib computes it. */
#ifndef PHEMA_CRC32_H
#define PHEMA_CRC32_H

#include "phema/span.h"

/* Of bytes that come piece by piece: starts with 0, takes what the last piece returned. */
uint32_t phema_crc32(uint32_t crc, const void *data, size_t size);

#endif
