// SPDX-License-Identifier: Apache-2.0
/* Digests compared with the output of xxhsum -H2, and streamed input with the whole input. */
#include <string.h>

#include "phema/checksum.h"
#include "support.h"

static struct phema_hash *new_hash(void)
{
    struct phema_hash *hash = NULL;
    struct phema_error err = {0};
    assert_ok(phema_hash_new(&hash, &err), &err);
    return hash;
}

static void digests_are_those_of_xxhsum(void **state)
{
    (void)state;
    char digest[PHEMA_DIGEST];
    struct phema_hash *hash = new_hash();
    phema_hash_digest(digest, hash);
    assert_string_equal(digest, "99aa06d3014798d86001c324468d497f"); /* of empty input */
    phema_hash_add(hash, "123456789", 9);
    phema_hash_digest(digest, hash);
    assert_string_equal(digest, "33119477ede5dcd5e9716427681d5860");
    phema_hash_free(hash);
    phema_hash_free(NULL);
}

static void streams_give_the_digest_of_the_whole_and_a_start_resets(void **state)
{
    (void)state;
    char whole[PHEMA_DIGEST], digest[PHEMA_DIGEST];
    uint8_t data[5000];
    uint64_t seed = 1;
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)support_random(&seed);
    struct phema_hash *hash = new_hash();
    phema_hash_add(hash, data, sizeof(data));
    phema_hash_digest(whole, hash);
    for (size_t cut = 0; cut <= sizeof(data); cut += 617) {
        phema_hash_start(hash);
        phema_hash_add(hash, data, cut);
        phema_hash_add(hash, NULL, 0);
        phema_hash_add(hash, data + cut, sizeof(data) - cut);
        phema_hash_digest(digest, hash);
        assert_string_equal(digest, whole);
    }
    data[4999] ^= 1;
    phema_hash_start(hash);
    phema_hash_add(hash, data, sizeof(data));
    phema_hash_digest(digest, hash);
    assert_string_not_equal(digest, whole);
    phema_hash_free(hash);
}

static void numbers_are_little_endian(void **state)
{
    (void)state;
    char of_number[PHEMA_DIGEST], of_bytes[PHEMA_DIGEST];
    struct phema_hash *hash = new_hash();
    phema_hash_add_u64(hash, 0x0807060504030201u);
    phema_hash_digest(of_number, hash);
    phema_hash_start(hash);
    phema_hash_add(hash, "\1\2\3\4\5\6\7\10", 8);
    phema_hash_digest(of_bytes, hash);
    assert_string_equal(of_number, of_bytes);
    phema_hash_free(hash);
}

static void the_place_changes_the_hash(void **state)
{
    (void)state;
    assert_true(phema_hash_at("abc", 3, 0) == 0x78af5f94892f3950u); /* 64-bit XXH3 */
    assert_true(phema_hash_at("abc", 3, 0) != phema_hash_at("abc", 3, 1));
    assert_true(phema_hash_at("abc", 3, 5) != phema_hash_at("abd", 3, 5));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(digests_are_those_of_xxhsum),
    cmocka_unit_test(streams_give_the_digest_of_the_whole_and_a_start_resets),
    cmocka_unit_test(numbers_are_little_endian),
    cmocka_unit_test(the_place_changes_the_hash),
};
TEST_GROUP(tests)
