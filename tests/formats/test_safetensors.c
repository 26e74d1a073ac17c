// SPDX-License-Identifier: Apache-2.0
/* False headers of every kind on the format page, and unusual legal headers. */
#include "phema/formats.h"

#include "build.h"

static void refuse(const char *json, size_t n_data, const char *part)
{
    struct phema_strbuf file = {0};
    put_safetensors(&file, json, n_data);
    assert_refused(file.data, file.size, part);
    phema_strbuf_clear(&file);
}

static struct phema_checkpoint *accept(const char *json, size_t n_data)
{
    struct phema_strbuf file = {0};
    put_safetensors(&file, json, n_data);
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    assert_ok(open_bytes(&checkpoint, file.data, file.size, &err), &err);
    phema_strbuf_clear(&file);
    return checkpoint;
}

#define T(name, offsets)                                                                           \
    "\"" name "\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":" offsets "}"
#define F(fields) "{\"w\":{" fields "}}"

static void legal_but_odd_headers_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        size_t n_data, n_tensors;
    } headers[] = {
        {"{}", 0, 0},
        {"{}   ", 0, 0},
        {"{\"__metadata__\":{}}", 0, 0},
        {"{\"__metadata__\":null}", 0, 0},
        {"{\"__metadata__\": null ," T("a", "[0,2]") "}", 2, 1},
        {"{" T("a", "[0,2]") ",\"__metadata__\":null}", 2, 1},
        {"{ \n\t\"w\" : { \"shape\" : [ 1 , 2 ] ,\"data_offsets\":[0 ,2],\r\"dtype\":\"U8\"} }", 2,
         1},
        {"{" T("b", "[2,4]") "," T("a", "[0,2]") "}", 4, 2},
        {F("\"dt\\u0079pe\":\"\\u0055\\u0038\",\"shape\":[],\"data_offsets\":[0,1]"), 1, 1},
        {F("\"dtype\":\"F64\",\"shape\":[0,18446744073709551615],\"data_offsets\":[0,0]"), 0, 1},
        {F("\"dtype\":\"F4\",\"shape\":[2,3],\"data_offsets\":[0,3]"), 3, 1},
        {F("\"dtype\":\"F6_E2M3\",\"shape\":[4],\"data_offsets\":[0,3]"), 3, 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
        struct phema_checkpoint *checkpoint = accept(headers[i].json, headers[i].n_data);
        assert_int_equal(phema_checkpoint_n_tensors(checkpoint), headers[i].n_tensors);
        assert_places_inside(checkpoint);
        phema_checkpoint_close(checkpoint);
    }
}

static void broken_json_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *json, *part;
    } headers[] = {
        {"{", "found the end"},
        {"{} x", "nothing but spaces"},
        {"{}\t", "nothing but spaces"},
        {"{}{}", "nothing but spaces"},
        {"{\"w\"}", "expected ':'"},
        {"{,}", "a string"},
        {"{" T("a", "[0,2]") ",}", "a string"},
        {"{\"a\xFF\":1}", "UTF-8"},
        {"{\"a\xED\xA0\x80\":1}", "UTF-8"},
        {"{\"\\ud800\":1}", "surrogates"},
        {"{\"\\udc00\\ud800\":1}", "surrogates"},
        {"{\"\\ud800\\udbff\":1}", "surrogates"}, /* after a high one: a high one, ... */
        {"{\"\\ud800\\ue000\":1}", "surrogates"}, /* ... the one after all low ones, ... */
        {"{\"\\ud800\\uffff\":1}", "surrogates"},
        {"{\"\\ud800\\u0041\":1}", "surrogates"}, /* ... and no surrogate */
        {"{\"\\u12g4\":1}", "hexadecimal"},
        {"{\"\\x41\":1}", "no such escape"},
        {"{\"a\nb\":1}", "control characters"},
        {"{\"w\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", "an object"},
        {"{\"w\":null}", "an object"},
        {"{\"w\":{}}", "lacks dtype"},
        {"{\"w\":{\"dtype\":\"U8\"}}", "lacks shape"},
        {"{\"w\":{\"dtype\":\"U8\",\"shape\":[]}}", "lacks data_offsets"},
        {"{\"w\":{\"dtype\":5}}", "a string"},
        {"{\"w\":{\"extra\":5}}", "'extra'"},
    };
    for (size_t i = 0; i < ARRAY_LEN(headers); i++)
        refuse(headers[i].json, 2, headers[i].part);
}

static void numbers_are_plain_integers(void **state)
{
    (void)state;
    static const char *const numbers[] = {"-0",   "-1",
                                          "+1",   "1.0",
                                          "1e0",  "01",
                                          "0x1",  "\"1\"",
                                          "null", "1.",
                                          "",     "true",
                                          "[1]",  "18446744073709551616",
                                          "1E2",  "99999999999999999999999999"};
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        char json[256];
        (void)snprintf(json, sizeof(json),
                       F("\"dtype\":\"U8\",\"shape\":[1,%s],\"data_offsets\":[0,1]"), numbers[i]);
        refuse(json, 1, "expected");
        (void)snprintf(json, sizeof(json),
                       F("\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[%s,1]"), numbers[i]);
        refuse(json, 1, "expected");
        (void)snprintf(json, sizeof(json),
                       F("\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,%s]"), numbers[i]);
        refuse(json, 1, "expected");
    }
    refuse(F("\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0]"), 1, "expected ','");
    refuse(F("\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1,1]"), 1, "after two offsets");
    refuse(F("\"dtype\":\"u8\",\"shape\":[1],\"data_offsets\":[0,1]"), 1, "no dtype 'u8'");
    refuse(F("\"dtype\":\"C128\",\"shape\":[1],\"data_offsets\":[0,16]"), 16, "no dtype 'C128'");
}

static void duplicates_are_refused_on_every_level(void **state)
{
    (void)state;
    refuse("{" T("a", "[0,2]") "," T("a", "[2,4]") "}", 4, "two tensors have this name");
    refuse("{" T("a", "[0,2]") "," T("\\u0061", "[2,4]") "}", 4, "two tensors have this name");
    refuse(F("\"dtype\":\"U8\",\"dtype\":\"I8\""), 0, "duplicate key 'dtype'");
    refuse(F("\"dtype\":\"U8\",\"\\u0064type\":\"I8\""), 0, "duplicate key 'dtype'");
    refuse("{\"__metadata__\":{},\"\\u005f_metadata__\":{}}", 0, "duplicate key '__metadata__'");
    refuse("{\"__metadata__\":{\"k\":\"1\",\"\\u006b\":\"2\"}}", 0, "duplicate key 'k'");
    refuse("{\"__metadata__\":{\"k\":1}}", 0, "a string");
    refuse("{\"__metadata__\":[]}", 0, "an object of strings or null");
    refuse("{\"__metadata__\":nul}", 0, "an object of strings or null");
    refuse("{\"__metadata__\":nulls}", 0, "found 's'");
    refuse("{\"__metadata__\":null,\"__metadata__\":null}", 0, "duplicate key '__metadata__'");
    refuse("{\"__metadata__\":{\"k\":null}}", 0, "a string");
}

static void data_are_covered_exactly(void **state)
{
    (void)state;
    refuse("{" T("a", "[0,2]") "}", 3, "the file holds 3");
    refuse("{" T("a", "[0,2]") "}", 1, "of which 1 are there");
    refuse("{}", 1, "the file holds 1");
    refuse("{" T("a", "[1,3]") "}", 3, "hole");
    refuse("{" T("a", "[0,2]") "," T("b", "[3,5]") "}", 5, "hole");
    refuse("{" T("a", "[0,2]") "," T("b", "[1,3]") "}", 3, "overlap");
    refuse("{" T("a", "[0,2]") "," T("b", "[0,2]") "}", 2, "overlap");
    refuse("{" T("a", "[2,0]") "}", 2, "in order");
    refuse("{" T("a", "[0,18446744073709551615]") "}", 2, "of which");
    refuse("{" T("a", "[18446744073709551614,0]") "}", 2, "in order");
    refuse(F("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,2]"), 2, "found 2 bytes");
    refuse(F("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,8]"), 8, "found 8 bytes");
    refuse(F("\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,1]"), 1, "of 4 bits");
    refuse(F("\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,2]"), 2, "of 4 bits");
    /* 2^32 * 2^32 and 2^61 * 64 bits are 0 modulo 2^64 */
    refuse(F("\"dtype\":\"U8\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]"), 0,
           "overflows");
    refuse(F("\"dtype\":\"F64\",\"shape\":[2305843009213693952],\"data_offsets\":[0,0]"), 0,
           "overflows");
    /* an empty tensor inside another one */
    refuse("{" T("a", "[0,2]") ",\"e\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[1,1]}}", 2,
           "overlap");
}

static void lengths_of_headers_are_checked(void **state)
{
    (void)state;
    static const uint64_t lengths[] = {
        3, 100000001, UINT64_MAX, UINT64_MAX - 7, UINT64_MAX - 8, (uint64_t)1 << 63, 0};
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        struct phema_strbuf file = {0};
        put_int(&file, lengths[i], 8);
        put_text(&file, "{}");
        assert_refused(file.data, file.size,
                       lengths[i] > 100000000 ? "no format that is read" : "header");
        phema_strbuf_clear(&file);
    }
    assert_refused("short", 5, "5 bytes are too few");
    refuse(" {}", 0, "'{' as the first byte");
}

static void a_header_of_640_bytes_is_no_pickle(void **state)
{
    (void)state;
    /* 640 is 0x280, so the file begins with 80 02, like a pickle of protocol 2 */
    char json[641];
    memset(json, ' ', 640);
    json[640] = '\0';
    memcpy(json, "{}", 2);
    struct phema_checkpoint *checkpoint = accept(json, 0);
    assert_string_equal(phema_checkpoint_format(checkpoint), "safetensors");
    phema_checkpoint_close(checkpoint);
}

static void names_are_any_utf8(void **state)
{
    (void)state;
    size_t size = 100000;
    struct phema_strbuf json = {0};
    put_text(&json, "{\"");
    for (size_t i = 0; i < size; i++)
        put_text(&json, "x");
    put_text(&json, "\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}");
    struct phema_checkpoint *checkpoint = accept(json.data, 1);
    const struct phema_tensor *tensor = phema_checkpoint_tensors(checkpoint);
    assert_int_equal(tensor->name_size, size);
    assert_int_equal(strlen(tensor->name), size);
    assert_ptr_equal(phema_checkpoint_find(checkpoint, json.data + 2, size), tensor);
    assert_null(phema_checkpoint_find(checkpoint, json.data + 2, size - 1));
    phema_checkpoint_close(checkpoint);
    phema_strbuf_clear(&json);

    checkpoint = accept(
        "{" T("a\\u0000\\u001b[31m\\n\\ud83d\\ude00\\/", "[0,2]") "," T("a", "[2,4]") "}", 4);
    static const char name[] = "a\0\x1b[31m\n\xF0\x9F\x98\x80/";
    tensor = phema_checkpoint_find(checkpoint, name, sizeof(name) - 1);
    assert_ptr_equal(tensor, phema_checkpoint_tensors(checkpoint));
    assert_int_equal(phema_checkpoint_find(checkpoint, "a", 1) - tensor, 1);
    phema_checkpoint_close(checkpoint);

    /* and messages escape them */
    refuse("{\"\\u001b[31m\":5}", 0, "tensor '\\x1b[31m'");
}

static void ranks_end_at_64(void **state)
{
    (void)state;
    for (int rank = 64; rank <= 65; rank++) {
        struct phema_strbuf json = {0};
        put_text(&json, "{\"w\":{\"dtype\":\"U8\",\"data_offsets\":[0,1],\"shape\":[1");
        for (int i = 1; i < rank; i++)
            put_text(&json, ",1");
        put_text(&json, "]}}");
        if (rank == 65)
            refuse(json.data, 1, "64 dimensions");
        else
            phema_checkpoint_close(accept(json.data, 1));
        phema_strbuf_clear(&json);
    }
}

static void no_change_of_a_byte_crashes(void **state)
{
    (void)state;
    struct phema_strbuf file = {0};
    put_safetensors(&file,
                    "{\"__metadata__\":{\"a\":\"b\"},\"w\":{\"dtype\":\"F16\",\"shape\":[2,1],"
                    "\"data_offsets\":[0,4]},\"\\u00e9\":{\"dtype\":\"U8\",\"shape\":[],"
                    "\"data_offsets\":[4,5]}} ",
                    5);
    size_t n_opened = survive((const uint8_t *)file.data, file.size, 0, file.size, 1);
    assert_true(n_opened > 1000); /* names and data may be anything */
    phema_strbuf_clear(&file);
}

/* ---- Headers with the same meaning as another one ---- */

#define ENTRIES                                                                                    \
    "\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"                               \
    "\"b\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[2,6]}}"
#define WITH_METADATA "{\"__metadata__\":{\"k\":\"v\"}," ENTRIES "  "

/* Opens a file with the option alike = other. NULL on refusal; err has the reason. */
static struct phema_checkpoint *open_beside(const struct phema_checkpoint *other, const char *json,
                                            size_t n_data, struct phema_error *err)
{
    struct phema_strbuf file = {0};
    struct phema_checkpoint *opened = NULL;
    put_safetensors(&file, json, n_data);
    char *path = support_tmp_path("beside.safetensors");
    (void)unlink(path); /* the other file may still be mapped */
    support_write(path, file.data, file.size);
    const struct phema_checkpoint_options options = {.alike = other};
    if (phema_checkpoint_open(&opened, path, &options, err))
        assert_null(opened);
    free(path);
    phema_strbuf_clear(&file);
    return opened;
}

static struct phema_checkpoint *open_first(const char *json)
{
    struct phema_error err = {0};
    struct phema_checkpoint *first = open_beside(NULL, json, 6, &err);
    assert_non_null(first);
    return first;
}

static void an_equal_header_is_not_listed_again(void **state)
{
    (void)state;
    static const struct {
        const char *first, *second;
        uint64_t shift;
        const char *metadatum; /* of k */
    } pairs[] = {
        {WITH_METADATA, WITH_METADATA, 0, "v"},
        {WITH_METADATA, "{\"__metadata__\":{\"k\":\"longer\"}," ENTRIES, 3, "longer"},
        {WITH_METADATA, "{\"__metadata__\":{}," ENTRIES, (uint64_t)-9, NULL},
        {WITH_METADATA, "{\"__metadata__\":null," ENTRIES, (uint64_t)-7, NULL},
        {WITH_METADATA, "{ \"\\u005f_metadata__\" : { \"k\":\"\\u0061\"}," ENTRIES, 12, "a"},
        {"{" ENTRIES, "{" ENTRIES "    ", 4, NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        struct phema_error err = {0};
        struct phema_checkpoint *first = open_first(pairs[i].first);
        uint64_t shift = 0;
        assert_false(phema_checkpoint_is_alike(first, &shift));
        phema_checkpoint_forget_listing(first); /* the listing is not needed */
        struct phema_checkpoint *second = open_beside(first, pairs[i].second, 6, &err);
        assert_non_null(second);
        assert_true(phema_checkpoint_is_alike(second, &shift));
        assert_true(shift == pairs[i].shift);
        assert_int_equal(phema_checkpoint_n_tensors(second), 0);
        const char *metadatum = phema_checkpoint_metadatum(second, "k");
        if (pairs[i].metadatum)
            assert_string_equal(metadatum, pairs[i].metadatum);
        else
            assert_null(metadatum);
        phema_checkpoint_close(second);
        phema_checkpoint_close(first);
    }
}

static void a_header_that_differs_is_read(void **state)
{
    (void)state;
    static const char *const firsts[] = {
        WITH_METADATA, "{" ENTRIES,
        "{\"z\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},"
        "\"__metadata__\":{\"k\":\"v\"}," ENTRIES};
    static const struct {
        const char *json;
        size_t n_tensors;
    } others[] = {
        {"{\"__metadata__\":{\"k\":\"v\"},"
         "\"c\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
         "\"b\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[2,6]}}",
         2},
        {"{\"__metadata__\":{\"k\":\"v\"},"
         "\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[4,6]},"
         "\"b\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[0,4]}}",
         2},
        {"{\"x\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}," ENTRIES, 3},
        {"{\"__metadata__\":{\"k\":\"v\"},\"x\":{\"dtype\":\"U8\",\"shape\":[0],"
         "\"data_offsets\":[6,6]}," ENTRIES,
         3},
    };
    for (size_t f = 0; f < ARRAY_LEN(firsts); f++)
        for (size_t i = 0; i < ARRAY_LEN(others); i++) {
            struct phema_error err = {0};
            struct phema_checkpoint *first = open_first(firsts[f]);
            struct phema_checkpoint *other = open_beside(first, others[i].json, 6, &err);
            uint64_t shift = 0;
            assert_non_null(other);
            assert_false(phema_checkpoint_is_alike(other, &shift));
            assert_int_equal(phema_checkpoint_n_tensors(other), others[i].n_tensors);
            phema_checkpoint_close(other);
            phema_checkpoint_close(first);
        }
}

/* A header that is refused alone is also refused next to a valid one, with the same sentence. */
static void beside_another_the_same_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        size_t n_data;
    } bad[] = {
        {WITH_METADATA, 5},
        {WITH_METADATA, 7},
        {"{\"__metadata__\":{\"k\":\"v\",\"k\":\"w\"}," ENTRIES, 6},
        {"{\"__metadata__\":{\"k\":\"\xff\"}," ENTRIES, 6},
        {"{\"__metadata__\":{\"k\":1}," ENTRIES, 6},
        {"{\"__metadata__\":{\"k\":\"v\"},\"__metadata__\":{}," ENTRIES, 6},
        {"{\"__metadata__\":{\"DCP_SHARDING_INFO\":\"v\"}," ENTRIES, 6},
        {" {\"__metadata__\":{\"k\":\"v\"}," ENTRIES, 6},
        {"[{\"__metadata__\":{\"k\":\"v\"}," ENTRIES, 6},
        {"{\"__metadata__\":{\"k\":\"v\"}" ENTRIES, 6},
        {"{\"__metadata__\":{\"k\":\"v\"}," ENTRIES "\n", 6},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}," ENTRIES, 6},
        {"," ENTRIES, 6},
        {ENTRIES, 6},
    };
    static const char *const firsts[] = {WITH_METADATA, "{" ENTRIES};
    for (size_t f = 0; f < ARRAY_LEN(firsts); f++)
        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
            struct phema_error alone = {0}, beside = {0};
            struct phema_checkpoint *first = NULL, *other = NULL;
            other = open_beside(NULL, bad[i].json, bad[i].n_data, &alone);
            assert_null(other);
            first = open_first(firsts[f]);
            other = open_beside(first, bad[i].json, bad[i].n_data, &beside);
            assert_null(other);
            assert_string_equal(beside.message, alone.message);
            phema_checkpoint_close(first);
        }
}

/* Sets each byte of the header to each other value. The result next to the first file equals the
 * result alone. */
static void a_changed_byte_is_seen(void **state)
{
    (void)state;
    size_t n = strlen(WITH_METADATA), n_alike = 0;
    for (size_t at = 0; at < n; at++)
        for (unsigned flip = 1; flip < 256; flip = flip < 8 ? flip + 1 : flip * 2) {
            char json[] = WITH_METADATA;
            json[at] = (char)(json[at] ^ (char)flip);
            if (!json[at])
                continue;
            struct phema_error alone = {0}, beside = {0};
            struct phema_checkpoint *first = open_first(WITH_METADATA);
            struct phema_checkpoint *second = open_beside(first, json, 6, &beside);
            struct phema_checkpoint *by_itself = open_beside(NULL, json, 6, &alone);
            assert_string_equal(beside.message, alone.message);
            assert_int_equal(second != NULL, by_itself != NULL);
            uint64_t shift = 0;
            if (second && phema_checkpoint_is_alike(second, &shift)) {
                n_alike++;
                assert_true(shift == 0);
                const struct phema_tensor *a = phema_checkpoint_tensors(by_itself);
                const struct phema_tensor *b = phema_checkpoint_tensors(first);
                assert_int_equal(phema_checkpoint_n_tensors(by_itself), 2);
                for (size_t i = 0; i < 2; i++) {
                    assert_string_equal(a[i].name, b[i].name);
                    assert_int_equal(a[i].offset, b[i].offset);
                    assert_int_equal(a[i].size_bytes, b[i].size_bytes);
                }
            }
            phema_checkpoint_close(first);
            phema_checkpoint_close(second);
            phema_checkpoint_close(by_itself);
        }
    assert_true(n_alike > 5); /* those inside the metadata */
}

/* The last tensor first. */
static void put_many(struct phema_strbuf *file, size_t n)
{
    struct phema_strbuf json = {0};
    put_text(&json, "{");
    for (size_t i = 0; i < n; i++)
        phema_strbuf_printf(&json,
                            "%s\"model.layers.%zu.weight\":{\"dtype\":\"U8\",\"shape\":[1,1],"
                            "\"data_offsets\":[%zu,%zu]}",
                            i ? "," : "", i, n - 1 - i, n - i);
    put_text(&json, "}");
    put_safetensors(file, json.data, n);
    phema_strbuf_clear(&json);
}

/* tests/growth counts the work of opening them. */
static void many_tensors_are_listed(void **state)
{
    (void)state;
    struct phema_strbuf file = {0};
    put_many(&file, 200000);
    const char *path = as_file(file.data, file.size);
    phema_strbuf_clear(&file);
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    assert_ok(phema_checkpoint_open(&checkpoint, path, NULL, &err), &err);
    assert_int_equal(phema_checkpoint_n_tensors(checkpoint), 200000);
    const struct phema_tensor *tensors = phema_checkpoint_tensors(checkpoint);
    for (size_t i = 0; i < 200000; i++) /* one byte each, from the last to the first */
        assert_true(tensors[i].offset == tensors[0].offset - i);
    phema_checkpoint_close(checkpoint);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(legal_but_odd_headers_are_read),
    cmocka_unit_test(broken_json_is_refused),
    cmocka_unit_test(numbers_are_plain_integers),
    cmocka_unit_test(duplicates_are_refused_on_every_level),
    cmocka_unit_test(data_are_covered_exactly),
    cmocka_unit_test(lengths_of_headers_are_checked),
    cmocka_unit_test(a_header_of_640_bytes_is_no_pickle),
    cmocka_unit_test(names_are_any_utf8),
    cmocka_unit_test(ranks_end_at_64),
    cmocka_unit_test(no_change_of_a_byte_crashes),
    cmocka_unit_test(an_equal_header_is_not_listed_again),
    cmocka_unit_test(a_header_that_differs_is_read),
    cmocka_unit_test(beside_another_the_same_is_refused),
    cmocka_unit_test(a_changed_byte_is_seen),
    cmocka_unit_test(many_tensors_are_listed),
};
TEST_GROUP(tests)
