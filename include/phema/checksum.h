/* checksum.h - CRC-32 of zip files, and XXH3 of 128 bits as the fingerprint of bytes.
 * Both guard against mistakes, not against malice. */
#ifndef PHEMA_CHECKSUM_H
#define PHEMA_CHECKSUM_H

#include "phema/error.h"
#include "phema/span.h"

#define PHEMA_DIGEST 33 /* 32 hexadecimal digits as XXH3 prints them, and a NUL */

/* A stream of bytes. */
struct phema_hash;
PHEMA_FALLIBLE phema_hash_new(struct phema_hash **out, struct phema_error *err);
void phema_hash_free(struct phema_hash *hash); /* takes NULL */

void phema_hash_start(struct phema_hash *hash);
void phema_hash_add(struct phema_hash *hash, const void *data, size_t size);
void phema_hash_add_u64(struct phema_hash *hash, uint64_t number); /* little-endian */
/* Digest of the bytes added since the start; more may be added. */
void phema_hash_digest(char digest[PHEMA_DIGEST], const struct phema_hash *hash);

/* 64 bits over bytes and their place: different where either differs. */
uint64_t phema_hash_at(const void *data, size_t size, uint64_t place);

/* ---- Data in any order ---- */

/* A sum of the hashes of all blocks modulo 2^128, whose order does not matter. Blocks have one
 * size, the last one may be shorter. The hash of a block is XXH3 of 32 bytes: the 128 bits of XXH3
 * of its data, its name and its number. */
struct phema_hash_sum {
    uint64_t low, high;
};

struct phema_hash_blocks {
    const void *data;
    size_t size, block_size;
    uint64_t name, first; /* of the data (phema_hash_name); number of the first block */
};

static inline void phema_hash_sum_add(struct phema_hash_sum *sum, const struct phema_hash_sum *more)
{
    sum->low += more->low;
    sum->high += more->high + (sum->low < more->low);
}

/* Adds blocks to a sum. All hashers give the same sum; phema_block_hasher_for_cpu returns the
 * fastest one on this processor (cpu.h). */
typedef void (*phema_block_hasher)(struct phema_hash_sum *sum,
                                   const struct phema_hash_blocks *blocks);
phema_block_hasher phema_block_hasher_for_cpu(void);

/* 64 bits of a name, for phema_hash_blocks. */
uint64_t phema_hash_name(const void *name, size_t size);

/* Sums as XXH3 prints them. false: text is not 32 of its hexadecimal digits. */
void phema_hash_sum_show(char digits[PHEMA_DIGEST], const struct phema_hash_sum *sum);
bool phema_hash_sum_read(struct phema_hash_sum *sum, const char *text);

/* CRC-32 of ISO 3309, as zlib computes it. For a stream: start with 0, then pass the result of the
 * last call. */
uint32_t phema_crc32(uint32_t crc, const void *data, size_t size);

/* The share of a block in the CRC-32 of a file, from the block's own CRC-32 and the number of bytes
 * behind it. The exclusive or of the shares of all blocks is the CRC-32 of the file, in any
 * order. */
uint32_t phema_crc32_share(uint32_t crc, uint64_t bytes_behind);

#endif
