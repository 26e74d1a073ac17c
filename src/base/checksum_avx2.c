// SPDX-License-Identifier: Apache-2.0
/* checksum_avx2.c - sums over blocks with AVX2. */
#include "phema/checksum.h"

#if defined(__x86_64__)
#define HASH_TARGET "avx2"
#define XXH_VECTOR  XXH_AVX2
#define HASH_BLOCKS checksum_blocks_avx2
#include "checksum_kernel.inc"
#endif
