// SPDX-License-Identifier: Apache-2.0
/* checksum.c - XXH3: streams by the library, sums over blocks by kernels that are inlined. CRC-32 of
 * zip files, the only user of zlib. */
#include "phema/checksum.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>
#include <zlib.h>

#include "phema/cpu.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* ---- Streams ---- */

/* A stream is the library's state; struct phema_hash is defined nowhere. */
static XXH3_state_t *state_of(struct phema_hash *hash)
{
    return (XXH3_state_t *)(void *)hash;
}

PHEMA_FALLIBLE phema_hash_new(struct phema_hash **out, struct phema_error *err)
{
    struct phema_hash *hash = (struct phema_hash *)(void *)XXH3_createState();
    if (!hash)
        return phema_fail_memory(err);
    phema_hash_start(hash);
    *out = hash;
    return PHEMA_OK;
}

void phema_hash_free(struct phema_hash *hash)
{
    (void)XXH3_freeState(state_of(hash));
}

void phema_hash_start(struct phema_hash *hash)
{
    (void)XXH3_128bits_reset(state_of(hash)); /* fails only for NULL */
}

void phema_hash_add(struct phema_hash *hash, const void *data, size_t size)
{
    if (size)
        (void)XXH3_128bits_update(state_of(hash), data, size);
}

void phema_hash_add_u64(struct phema_hash *hash, uint64_t number)
{
    uint8_t bytes[8];
    phema_store_u64(bytes, number);
    phema_hash_add(hash, bytes, sizeof(bytes));
}

void phema_hash_digest(char digest[PHEMA_DIGEST], const struct phema_hash *hash)
{
    XXH128_hash_t found = XXH3_128bits_digest((const XXH3_state_t *)(const void *)hash);
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

/* ---- CRC-32 ---- */

/* Where the processor multiplies polynomials, long data are folded to 16 bytes of the same remainder
 * first, which is about ten times faster (Gopal et al., "Fast CRC computation for generic polynomials
 * using PCLMULQDQ", Intel 2009). */
#if defined(__x86_64__)
#define FOLDED_BYTES 16
#define STEP_BYTES   64 /* four independent products hide their latency */

/* Remainders of x^(n + 32) and x^(n - 32) for a distance of n bits, modulo the polynomial of zip;
 * reflected and shifted by one, as products of reflected numbers need it. */
#define FAR_LOW   0x154442bd4 /* n = 512 */
#define FAR_HIGH  0x1c6e41596
#define NEAR_LOW  0x1751997d0 /* n = 128 */
#define NEAR_HIGH 0x0ccaa009e

__attribute__((target("pclmul,sse2"))) static __m128i fold(__m128i sum, __m128i by, __m128i next)
{
    __m128i low = _mm_clmulepi64_si128(sum, by, 0x00);
    __m128i high = _mm_clmulepi64_si128(sum, by, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

__attribute__((target("pclmul,sse2"))) static __m128i load(const uint8_t *at)
{
    return _mm_loadu_si128((const void *)at);
}

/* Folds the first size bytes, a multiple of FOLDED_BYTES from STEP_BYTES on. */
__attribute__((target("pclmul,sse2"))) static uint32_t fold_all(uint32_t crc, const uint8_t *data,
                                                                size_t size)
{
    const __m128i far = _mm_set_epi64x(FAR_HIGH, FAR_LOW);
    const __m128i near = _mm_set_epi64x(NEAR_HIGH, NEAR_LOW);
    const uint8_t *end = data + size;
    uint8_t folded[FOLDED_BYTES];
    __m128i sums[STEP_BYTES / FOLDED_BYTES];
    for (size_t i = 0; i < ARRAY_LEN(sums); i++)
        sums[i] = load(data + i * FOLDED_BYTES);
    sums[0] = _mm_xor_si128(sums[0], _mm_cvtsi32_si128((int)~crc));
    for (data += STEP_BYTES; end - data >= STEP_BYTES; data += STEP_BYTES)
        for (size_t i = 0; i < ARRAY_LEN(sums); i++)
            sums[i] = fold(sums[i], far, load(data + i * FOLDED_BYTES));
    __m128i sum = sums[0];
    for (size_t i = 1; i < ARRAY_LEN(sums); i++)
        sum = fold(sum, near, sums[i]);
    for (; data < end; data += FOLDED_BYTES)
        sum = fold(sum, near, load(data));
    _mm_storeu_si128((void *)folded, sum);
    return (uint32_t)crc32_z(UINT32_MAX, folded, sizeof(folded)); /* from a register of zeros */
}

static bool can_fold(void)
{
    return phema_cpu_level() >= PHEMA_CPU_AVX2 && __builtin_cpu_supports("pclmul");
}
#endif

uint32_t phema_crc32(uint32_t crc, const void *data, size_t size)
{
    const uint8_t *at = data;
#if defined(__x86_64__)
    if (size >= STEP_BYTES && can_fold()) {
        size_t folded = size / FOLDED_BYTES * FOLDED_BYTES;
        crc = fold_all(crc, at, folded);
        at += folded;
        size -= folded;
    }
#endif
    return size ? (uint32_t)crc32_z(crc, at, size) : crc;
}

uint32_t phema_crc32_share(uint32_t crc, uint64_t bytes_behind)
{
    return bytes_behind ? (uint32_t)crc32_combine(crc, 0, (z_off_t)bytes_behind) : crc;
}

/* ---- Kernels ---- */

/* From here on xxhash.h is inlined: calls of the library would cost a third of the time. */
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
