// SPDX-License-Identifier: Apache-2.0
/* checksum_avx2.c - sums over blocks by XXH3 with AVX2. Only the functions between the pragmas
 * carry the flags, so the program runs on machines without; checksum.c asks cpu.h first. xxhash.h
 * can be inlined once a file, hence one file for each instruction set. */
#include "phema/checksum.h"

#if defined(__x86_64__)
#include <immintrin.h> /* before the pragmas: its functions have targets of their own */
#include <string.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2")
#endif

#define XXH_INLINE_ALL
#define XXH_VECTOR XXH_AVX2
#include <xxhash.h>

#define HASH_BLOCKS checksum_blocks_avx2
#include "checksum_kernel.inc"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#endif
