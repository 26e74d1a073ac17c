// SPDX-License-Identifier: Apache-2.0
/* hash_blocks.c - sums over blocks: the kernel of the instructions that every processor has, the
 * choice of a better one, and sums as text. */
#include "hash_blocks.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define HASH_BLOCKS hash_blocks_anywhere
#include "checksum_kernel.inc"
#include "phema/cpu.h"

phema_block_hasher phema_block_hasher_for_cpu(void)
{
#if defined(__x86_64__)
    enum phema_cpu_level level = phema_cpu_level();
    if (level >= PHEMA_CPU_AVX512)
        return hash_blocks_avx512;
    if (level >= PHEMA_CPU_AVX2)
        return hash_blocks_avx2;
#endif
    return hash_blocks_anywhere;
}

uint64_t phema_hash_name(const void *name, size_t size)
{
    return XXH3_64bits(name, size);
}

void phema_hash_sum_show(char digits[PHEMA_DIGEST], const struct phema_hash_sum *sum)
{
    (void)snprintf(digits, PHEMA_DIGEST, "%016" PRIx64 "%016" PRIx64, sum->high, sum->low);
}

bool phema_hash_sum_read(struct phema_hash_sum *sum, const char *text)
{
    static const char digits[] = "0123456789abcdef";
    uint64_t halves[2] = {0, 0};
    size_t n = 0;
    for (; n < PHEMA_DIGEST - 1 && text[n]; n++) {
        const char *digit = strchr(digits, text[n]);
        if (!digit)
            return false;
        halves[n / 16] = halves[n / 16] << 4 | (uint64_t)(digit - digits);
    }
    if (n < PHEMA_DIGEST - 1 || text[n])
        return false;
    *sum = (struct phema_hash_sum){.low = halves[1], .high = halves[0]};
    return true;
}
