/* hash_blocks.h - which kernels there are for sums over blocks (phema/checksum.h). */
#ifndef BASE_HASH_BLOCKS_H
#define BASE_HASH_BLOCKS_H

#include "phema/checksum.h"

void hash_blocks_anywhere(struct phema_hash_sum *sum, const struct phema_hash_blocks *blocks);
void hash_blocks_avx2(struct phema_hash_sum *sum, const struct phema_hash_blocks *blocks);
void hash_blocks_avx512(struct phema_hash_sum *sum, const struct phema_hash_blocks *blocks);

#endif
