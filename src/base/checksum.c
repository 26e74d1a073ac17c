// SPDX-License-Identifier: Apache-2.0
/* checksum.c - XXH3: streams by the library, sums over blocks by kernels that are inlined. */
#include "checksum_kernel.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "phema/cpu.h"

/* ---- Streams ---- */

struct phema_hash {
    XXH3_state_t *state; /* allocated by the library, aligned for it */
};

PHEMA_FALLIBLE phema_hash_new(struct phema_hash **out, struct phema_error *err)
{
    struct phema_hash *hash = calloc(1, sizeof(*hash));
    if (hash)
        hash->state = XXH3_createState();
    if (!hash || !hash->state) {
        phema_hash_free(hash);
        return phema_fail_memory(err);
    }
    phema_hash_start(hash);
    *out = hash;
    return PHEMA_OK;
}

void phema_hash_free(struct phema_hash *hash)
{
    if (hash)
        (void)XXH3_freeState(hash->state);
    free(hash);
}

void phema_hash_start(struct phema_hash *hash)
{
    (void)XXH3_128bits_reset(hash->state); /* fails only for NULL */
}

void phema_hash_add(struct phema_hash *hash, const void *data, size_t size)
{
    if (size)
        (void)XXH3_128bits_update(hash->state, data, size);
}

void phema_hash_add_u64(struct phema_hash *hash, uint64_t number)
{
    uint8_t bytes[8];
    phema_store_u64(bytes, number);
    phema_hash_add(hash, bytes, sizeof(bytes));
}

void phema_hash_digest(char digest[PHEMA_DIGEST], const struct phema_hash *hash)
{
    XXH128_hash_t found = XXH3_128bits_digest(hash->state);
    phema_hash_sum_show(digest, &(struct phema_hash_sum){found.low64, found.high64});
}

uint64_t phema_hash_at(const void *data, size_t size, uint64_t place)
{
    return XXH3_64bits_withSeed(data, size, place);
}

uint64_t phema_hash_name(const void *name, size_t size)
{
    return XXH3_64bits(name, size);
}

/* ---- Sums over blocks ---- */

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

/* From here on xxhash.h is inlined: calls of the library would cost a third of the time. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#define HASH_BLOCKS checksum_blocks_generic
#include "checksum_kernel.inc"

phema_block_hasher phema_block_hasher_for_cpu(void)
{
#if defined(__x86_64__)
    enum phema_cpu_level level = phema_cpu_level();
    if (level >= PHEMA_CPU_AVX512)
        return checksum_blocks_avx512;
    if (level >= PHEMA_CPU_AVX2)
        return checksum_blocks_avx2;
#endif
    return checksum_blocks_generic;
}
