/* hash.h - XXH3 of 128 bits: by which bytes are known again. Against mistakes, not against malice.
 */
#ifndef PHEMA_HASH_H
#define PHEMA_HASH_H

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

#endif
