/* checksum_kernel.h - private to base/: kernels of the sums over blocks (phema/checksum.h), one for
 * each instruction set. */
#ifndef BASE_CHECKSUM_KERNEL_H
#define BASE_CHECKSUM_KERNEL_H

#include "phema/checksum.h"

void checksum_blocks_generic(struct phema_hash_sum *sum, const struct phema_hash_blocks *blocks);
void checksum_blocks_avx2(struct phema_hash_sum *sum, const struct phema_hash_blocks *blocks);
void checksum_blocks_avx512(struct phema_hash_sum *sum, const struct phema_hash_blocks *blocks);

#endif
