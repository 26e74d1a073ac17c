// SPDX-License-Identifier: Apache-2.0
/* checksum.c - xxHash's, of its library; what is hashed by the gigabyte is in hash_blocks.c. */
#include "phema/checksum.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>

struct phema_hash {
    XXH3_state_t *state; /* aligned as it has to be */
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
    (void)XXH3_128bits_reset(hash->state); /* fails for NULL alone, as below */
}

void phema_hash_add(struct phema_hash *hash, const void *data, size_t size)
{
    if (size)
        (void)XXH3_128bits_update(hash->state, data, size);
}

void phema_hash_add_u64(struct phema_hash *hash, uint64_t number)
{
    uint8_t bytes[8];
    for (unsigned i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(number >> 8 * i);
    phema_hash_add(hash, bytes, sizeof(bytes));
}

void phema_hash_digest(char digest[PHEMA_DIGEST], const struct phema_hash *hash)
{
    XXH128_hash_t sum = XXH3_128bits_digest(hash->state);
    (void)snprintf(digest, PHEMA_DIGEST, "%016" PRIx64 "%016" PRIx64, (uint64_t)sum.high64,
                   (uint64_t)sum.low64);
}

uint64_t phema_hash_at(const void *data, size_t size, uint64_t place)
{
    return XXH3_64bits_withSeed(data, size, place);
}
