/* checksum.h - CRC-32 of zip files, and XXH3 of 128 bits as the fingerprint of bytes.
 * Both guard against mistakes, not against malice. */
#ifndef PHEMA_CHECKSUM_H
#define PHEMA_CHECKSUM_H

#include "phema/error.h"
#include "phema/span.h"

#define PHEMA_DIGEST 33 /* 32 hexadecimal digits as XXH3 prints them, and a NUL */

/* Of bytes that come piece by piece. */
struct phema_hash;
PHEMA_FALLIBLE phema_hash_new(struct phema_hash **out, struct phema_error *err);
void phema_hash_free(struct phema_hash *hash); /* takes NULL */

void phema_hash_start(struct phema_hash *hash);
void phema_hash_add(struct phema_hash *hash, const void *data, size_t size);
void phema_hash_add_u64(struct phema_hash *hash, uint64_t number); /* little-endian */
/* Of what was added since the start; more may be added. */
void phema_hash_digest(char digest[PHEMA_DIGEST], const struct phema_hash *hash);

/* 64 bits of some bytes at a place: different where either differs. */
uint64_t phema_hash_at(const void *data, size_t size, uint64_t place);

/* ---- Of data that come in any order ---- */

/* Data are cut into blocks of one size, the last one shorter; of each block the 128 bits of XXH3,
 * its name and its number, as 32 bytes, are hashed by XXH3 again, and the results are added up
 * modulo 2^128: whoever adds which of them when. */
struct phema_hash_sum {
    uint64_t low, high;
};

struct phema_hash_blocks {
    const void *data;
    size_t size, block_size;
    uint64_t name, first; /* of what they are blocks; number of the first one */
};

static inline void phema_hash_sum_add(struct phema_hash_sum *sum, const struct phema_hash_sum *more)
{
    sum->low += more->low;
    sum->high += more->high + (sum->low < more->low);
}

/* Adds blocks to a sum. All give the same; the choice is that of this processor (cpu.h). */
typedef void (*phema_block_hasher)(struct phema_hash_sum *sum,
                                   const struct phema_hash_blocks *blocks);
phema_block_hasher phema_block_hasher_for_cpu(void);

/* 64 bits of a name, for phema_hash_blocks. */
uint64_t phema_hash_name(const void *name, size_t size);

/* As XXH3 prints them. false: text is not 32 of its hexadecimal digits. */
void phema_hash_sum_show(char digits[PHEMA_DIGEST], const struct phema_hash_sum *sum);
bool phema_hash_sum_read(struct phema_hash_sum *sum, const char *text);

/* CRC-32 of ISO 3309, as zlib computes it, of bytes that come piece by piece: starts with 0, takes
 * the result for the last piece. */
uint32_t phema_crc32(uint32_t crc, const void *data, size_t size);

#endif
