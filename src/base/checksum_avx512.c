// SPDX-License-Identifier: Apache-2.0
/* checksum_avx512.c - sums over blocks with AVX-512. */
#include "phema/checksum.h"

#if defined(__x86_64__)
#define HASH_TARGET "avx512f,avx512bw,avx512dq,avx512vl,avx2"
#define XXH_VECTOR  XXH_AVX512
#define HASH_BLOCKS checksum_blocks_avx512
#include "checksum_kernel.inc"
#endif
