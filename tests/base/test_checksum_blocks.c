// SPDX-License-Identifier: Apache-2.0
/* Sums over blocks at each instruction set of this processor, compared with sums of one-shot calls
 * of libxxhash. */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "phema/checksum.h"
#include "phema/cpu.h"
#include "support.h"

#define SIZE ((size_t)64 << 10)

static uint8_t *random_bytes(uint64_t seed)
{
    uint8_t *data = malloc(SIZE);
    assert_non_null(data);
    for (size_t i = 0; i < SIZE; i++)
        data[i] = (uint8_t)support_random(&seed);
    return data;
}

/* The definition of phema/checksum.h. */
static struct phema_hash_sum expected(const uint8_t *data, size_t size, size_t block_size,
                                      uint64_t name, uint64_t first)
{
    struct phema_hash_sum sum = {0, 0};
    for (size_t at = 0; at < size; at += block_size, first++) {
        size_t n = size - at < block_size ? size - at : block_size;
        XXH128_hash_t hash = XXH3_128bits(data + at, n);
        uint8_t marked[32];
        const uint64_t numbers[4] = {hash.low64, hash.high64, name, first};
        for (size_t i = 0; i < sizeof(marked); i++)
            marked[i] = (uint8_t)(numbers[i / 8] >> 8 * (i % 8));
        hash = XXH3_128bits(marked, sizeof(marked));
        uint64_t low = sum.low + hash.low64;
        sum.high += hash.high64 + (low < sum.low ? 1 : 0);
        sum.low = low;
    }
    return sum;
}

static struct phema_hash_sum sum_of(const uint8_t *data, size_t size, size_t block_size,
                                    uint64_t name, uint64_t first)
{
    struct phema_hash_sum sum = {0, 0};
    const struct phema_hash_blocks blocks = {data, size, block_size, name, first};
    phema_block_hasher_for_cpu()(&sum, &blocks);
    return sum;
}

static void assert_same(struct phema_hash_sum a, struct phema_hash_sum b)
{
    char left[PHEMA_DIGEST], right[PHEMA_DIGEST];
    phema_hash_sum_show(left, &a);
    phema_hash_sum_show(right, &b);
    assert_string_equal(left, right);
}

/* Blocks of every kind that XXH3 distinguishes, whole ones and tails, at any start byte. */
static void every_level_gives_the_sum_of_the_library(void **state)
{
    (void)state;
    static const char *const levels[] = {"ref", "avx2", "avx512", "neon"};
    static const size_t block_sizes[] = {1, 16, 128, 240, 512, 1024, 2048, 4096, 8192, 16384};
    static const size_t sizes[] = {0,    1,    3,    8,    16,   17,   129,       241,     1023,
                                   1025, 2047, 2049, 4097, 8191, 8200, 17 * 1024, SIZE - 7};
    uint8_t *data = random_bytes(3);
    for (size_t l = 0; l < ARRAY_LEN(levels); l++) {
        assert_int_equal(setenv("PHEMA_CPU", levels[l], 1), 0);
        for (size_t b = 0; b < ARRAY_LEN(block_sizes); b++)
            for (size_t s = 0; s < ARRAY_LEN(sizes); s++) {
                size_t from = s % 7;
                assert_same(sum_of(data + from, sizes[s], block_sizes[b], s + 1, b * 1000),
                            expected(data + from, sizes[s], block_sizes[b], s + 1, b * 1000));
            }
    }
    assert_int_equal(unsetenv("PHEMA_CPU"), 0);
    free(data);
}

static void blocks_may_come_in_any_order(void **state)
{
    (void)state;
    uint8_t *data = random_bytes(5);
    const size_t block = 2048, n = SIZE / block;
    struct phema_hash_sum whole = sum_of(data, SIZE - 100, block, 9, 40), sum = {0, 0};
    for (size_t x = 0; x < n;) { /* from the end, one or two blocks at a time */
        size_t n_here = x % 3 ? 1 : 2, at = (n - x - n_here) * block;
        size_t size = x ? n_here * block : n_here * block - 100;
        struct phema_hash_sum more = sum_of(data + at, size, block, 9, 40 + n - x - n_here);
        phema_hash_sum_add(&sum, &more);
        x += n_here;
    }
    assert_same(sum, whole);
    free(data);
}

static bool differs(struct phema_hash_sum a, struct phema_hash_sum b)
{
    return a.low != b.low || a.high != b.high;
}

static void a_bit_a_place_or_a_name_changes_the_sum(void **state)
{
    (void)state;
    uint8_t *data = random_bytes(7);
    const size_t block = 1024;
    struct phema_hash_sum whole = sum_of(data, 4 * block, block, 1, 0);
    assert_true(differs(whole, sum_of(data, 4 * block, block, 2, 0)));
    assert_true(differs(whole, sum_of(data, 4 * block, block, 1, 1)));
    uint8_t *other = random_bytes(7);
    memcpy(other, data + block, block); /* two blocks are swapped */
    memcpy(other + block, data, block);
    assert_true(differs(whole, sum_of(other, 4 * block, block, 1, 0)));
    memcpy(other, data, 2 * block);
    assert_same(whole, sum_of(other, 4 * block, block, 1, 0));
    other[4 * block - 1] ^= 1;
    assert_true(differs(whole, sum_of(other, 4 * block, block, 1, 0)));
    free(other);
    free(data);
}

static void sums_carry_and_are_printed_as_xxh3_prints_them(void **state)
{
    (void)state;
    struct phema_hash_sum sum = {UINT64_MAX, 1}, one = {1, 0}, read = {0, 0};
    char digits[PHEMA_DIGEST];
    phema_hash_sum_add(&sum, &one);
    phema_hash_sum_show(digits, &sum);
    assert_string_equal(digits, "00000000000000020000000000000000");
    sum = (struct phema_hash_sum){.low = 0x5716427681d5860eu, .high = 0x33119477ede5dcd5u};
    phema_hash_sum_show(digits, &sum);
    assert_string_equal(digits, "33119477ede5dcd55716427681d5860e");
    assert_true(phema_hash_sum_read(&read, digits));
    assert_same(read, sum);
    static const char *const others[] = {"",
                                         "0",
                                         "33119477ede5dcd55716427681d5860",
                                         "33119477ede5dcd55716427681d5860e0",
                                         "33119477ede5dcd55716427681d5860E",
                                         " 3119477ede5dcd55716427681d5860e"};
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        assert_false(phema_hash_sum_read(&read, others[i]));
    assert_same(read, sum);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_level_gives_the_sum_of_the_library),
    cmocka_unit_test(blocks_may_come_in_any_order),
    cmocka_unit_test(a_bit_a_place_or_a_name_changes_the_sum),
    cmocka_unit_test(sums_carry_and_are_printed_as_xxh3_prints_them),
};
TEST_GROUP(tests)
