// SPDX-License-Identifier: Apache-2.0
/* Attributes as lustre_user.h lays them out, written by hand: no Lustre was at hand. */
#include "phema/filesystem.h"

#include <stdlib.h>

#include "support.h"

#define MiB 0x100000U

#define V1        0x0BD10BD0U
#define V3        0x0BD30BD0U
#define COMPOSITE 0x0BD60BD0U

#define RAID0    1
#define METADATA 0x100

static void store(uint8_t *at, uint64_t value, size_t size)
{
    for (size_t i = 0; i < size; i++)
        at[i] = (uint8_t)(value >> (8 * i));
}

/* The fixed part of lov_user_md; returns its size. */
static size_t put_plain(uint8_t *at, uint32_t magic, uint32_t pattern, uint32_t size_bytes,
                        uint16_t n)
{
    memset(at, 0xEE, 48); /* identity of the object, name of the pool */
    store(at, magic, 4);
    store(at + 4, pattern, 4);
    store(at + 24, size_bytes, 4);
    store(at + 28, n, 2);
    return magic == V3 ? 48 : 32;
}

/* A composite of three: the first MiB with the metadata, then 2 stripes, then 16. */
static size_t put_composite(uint8_t *at)
{
    static const struct {
        uint32_t magic, pattern, size_bytes;
        uint16_t n;
    } components[3] = {{V1, METADATA, MiB, 0}, {V1, RAID0, MiB, 2}, {V3, RAID0, 4 * MiB, 16}};
    size_t size = 32 + 3 * 48;
    memset(at, 0, size);
    for (size_t i = 0; i < 3; i++) {
        uint8_t *entry = at + 32 + i * 48;
        size_t bytes = put_plain(at + size, components[i].magic, components[i].pattern,
                                 components[i].size_bytes, components[i].n);
        store(entry + 24, size, 4);
        store(entry + 28, bytes, 4);
        size += bytes;
    }
    store(at, COMPOSITE, 4);
    store(at + 4, size, 4);
    store(at + 14, 3, 2);
    return size;
}

/* Decodes a copy that ends where its memory ends. */
static struct phema_stripes decode(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size + !size);
    assert_non_null(copy);
    memcpy(copy, data, size);
    struct phema_stripes stripes = phema_stripes_decode((struct phema_span){copy, size});
    free(copy);
    return stripes;
}

static void assert_shown(const uint8_t *data, size_t size, const char *expected)
{
    struct phema_stripes stripes = decode(data, size);
    struct phema_strbuf text = {0};
    phema_stripes_format(&text, &stripes);
    assert_string_equal(text.data, expected);
    phema_strbuf_clear(&text);
}

static void shows_number_and_size(void **state)
{
    (void)state;
    static const struct {
        uint32_t magic, pattern, size_bytes;
        uint16_t n;
        const char *shown;
    } cases[] = {
        {V1, RAID0, 4 * MiB, 8, "8 stripes of 4.00 MiB"},
        {V3, RAID0, MiB, 1, "1 stripe of 1.00 MiB"},
        {V1, RAID0 | 0x80000000U, MiB, 5, "5 stripes of 1.00 MiB"}, /* released to an archive */
        {V1, RAID0 | 0x200, MiB, 32, "32 stripes of 1.00 MiB"},     /* overstriped */
        {V1, 0, 0, 0, "the default number of stripes"},             /* a directory's default */
        {V1, RAID0, 16 * MiB, 0xFFFF, "a stripe on each server of 16.0 MiB"},
        {V1, METADATA, MiB, 0, "striped (layout not understood)"},
        {V1, 2, MiB, 4, "striped (layout not understood)"},              /* RAID1 was never made */
        {0x0BD70BD0U, RAID0, MiB, 4, "striped (layout not understood)"}, /* foreign */
        {0xD00BD10BU, RAID0, MiB, 4, "striped (layout not understood)"}, /* other byte order */
    };
    uint8_t data[48];
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        size_t size =
            put_plain(data, cases[i].magic, cases[i].pattern, cases[i].size_bytes, cases[i].n);
        assert_shown(data, size, cases[i].shown);
    }
}

static void shows_the_widest_component_of_a_composite(void **state)
{
    (void)state;
    uint8_t data[512];
    size_t size = put_composite(data);
    assert_shown(data, size, "3 components, at most 16 stripes of 4.00 MiB");
    store(data + 14, 2, 2);
    assert_shown(data, size, "2 components, at most 2 stripes of 1.00 MiB");
    store(data + 14, 1, 2); /* all with the metadata */
    assert_shown(data, size, "striped (layout not understood)");
    store(data + 14, 0, 2);
    assert_shown(data, size, "striped (layout not understood)");
}

static void is_not_fooled_by_a_cut_or_hostile_attribute(void **state)
{
    (void)state;
    uint8_t data[512];
    size_t size = put_plain(data, V3, RAID0, MiB, 4);
    for (size_t cut = 0; cut < size; cut++)
        assert_false(decode(data, cut).is_understood);
    size = put_composite(data);
    for (size_t cut = 0; cut < size; cut++)
        assert_false(decode(data, cut).is_understood);
    static const struct {
        size_t at;
        uint64_t value;
        size_t size;
    } faults[] = {
        {14, 0xFFFF, 2},     /* more entries than bytes */
        {56, 0xFFFFFFFF, 4}, /* a component past the end */
        {56, 300, 4},        /* begins within, ends outside */
        {60, 0xFFFFFFFF, 4}, /* endless */
        {60, 31, 4},         /* too short for v1 */
        {156, 47, 4},        /* too short for v3 */
        {56, 0, 4},          /* the composite itself */
    };
    for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
        size = put_composite(data);
        store(data + faults[i].at, faults[i].value, faults[i].size);
        assert_false(decode(data, size).is_understood);
    }
    for (size_t bit = 0; bit < size * 8; bit++) { /* whatever comes out, no byte outside is read */
        size = put_composite(data);
        data[bit / 8] ^= (uint8_t)(1U << bit % 8);
        struct phema_stripes stripes = decode(data, size);
        assert_true(stripes.n_components <= 3);
    }
}

static void a_file_elsewhere_has_none(void **state)
{
    (void)state;
    struct phema_stripes stripes;
    assert_false(phema_stripes_read(&stripes, PHEMA_FIXTURES));
    assert_false(phema_stripes_read(&stripes, PHEMA_FIXTURES "/absent"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(shows_number_and_size),
    cmocka_unit_test(shows_the_widest_component_of_a_composite),
    cmocka_unit_test(is_not_fooled_by_a_cut_or_hostile_attribute),
    cmocka_unit_test(a_file_elsewhere_has_none),
};
TEST_GROUP(tests)
