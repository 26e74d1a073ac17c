// SPDX-License-Identifier: Apache-2.0
/* All places of the checksums in torch's files are found. */
#include "phema/formats.h"

#include "build.h"
#include "phema/checksum.h"

static struct phema_checkpoint *open_path(const char *path)
{
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    assert_ok(phema_checkpoint_open(&checkpoint, path, NULL, &err), &err);
    return checkpoint;
}

static struct phema_record *list(size_t *n, const struct phema_checkpoint *checkpoint)
{
    struct phema_error err = {0};
    struct phema_record *records = NULL;
    assert_ok(phema_checkpoint_records(&records, n, checkpoint, &err), &err);
    return records;
}

static uint32_t crc_of(const struct phema_record *record, struct phema_span content)
{
    assert_true(record->offset <= content.size &&
                record->size_bytes <= content.size - record->offset);
    return phema_crc32(0, content.data + record->offset, record->size_bytes);
}

/* All places hold one number; with has_crcs, it is the checksum of the data. */
static void check_records(const struct phema_record *records, size_t n, struct phema_span content,
                          bool has_crcs)
{
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(records[i].n_crc, 2); /* torch leaves 0 in local headers */
        for (unsigned k = 0; k < records[i].n_crc; k++) {
            assert_true(records[i].crc_at[k] <= content.size - 4);
            assert_int_equal(phema_load_u32(content.data + records[i].crc_at[k]), records[i].crc);
        }
        assert_int_not_equal(records[i].crc_at[0], records[i].crc_at[1]);
        assert_int_equal(records[i].crc, has_crcs ? crc_of(&records[i], content) : 0);
        assert_int_equal(phema_record_is_switched_off(&records[i], content), !has_crcs);
        assert_true(i == 0 ||
                    records[i - 1].offset + records[i - 1].size_bytes <= records[i].offset);
    }
}

/* Each tensor with bytes lies in one of the records. */
static void check_covered(const struct phema_checkpoint *checkpoint,
                          const struct phema_record *records, size_t n)
{
    for (size_t i = 0; i < phema_checkpoint_n_tensors(checkpoint); i++) {
        const struct phema_tensor *tensor = &phema_checkpoint_tensors(checkpoint)[i];
        size_t n_found = 0;
        for (size_t k = 0; k < n; k++)
            n_found += tensor->offset >= records[k].offset &&
                       tensor->offset < records[k].offset + records[k].size_bytes;
        assert_true(!tensor->n_elems || n_found == 1);
    }
}

static void checksums_of_torch_are_those_of_the_data(void **state)
{
    (void)state;
    /* n: the records TOP/data/K, as listed by Python's zipfile */
    static const struct {
        const char *name;
        size_t n;
        bool has_crcs;
    } files[] = {
        {"torch/plain.pt", 2, true},           {"torch/bytesio.pt", 3, true},
        {"torch/views.pt", 4, true},           {"torch/no_crc32.pt", 1, false},
        {"torch/record_appended.pt", 1, true}, {"torch/lightning.ckpt", 51, true},
        {"torch/dtypes.pt", 20, true},         {"torch/name.with.dots and space.pt", 1, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        char *path = support_fixture(files[i].name);
        struct phema_checkpoint *checkpoint = open_path(path);
        size_t n = 0;
        struct phema_record *records = list(&n, checkpoint);
        struct phema_span content = phema_file_span(phema_checkpoint_file(checkpoint, 0));
        assert_int_equal(n, files[i].n);
        check_covered(checkpoint, records, n);
        check_records(records, n, content, files[i].has_crcs);
        free(records);

        phema_checkpoint_forget_listing(checkpoint);
        size_t n_again = 0;
        records = list(&n_again, checkpoint);
        assert_int_equal(n_again, n);
        check_records(records, n, content, files[i].has_crcs);
        free(records);
        phema_checkpoint_close(checkpoint);
        free(path);
    }
}

static void formats_without_checksums_have_no_records(void **state)
{
    (void)state;
    static const char *const files[] = {"torch/cuda_location_legacy.pt", "sharded",
                                        "edm2/snapshots/network-snapshot-0000004-0.050.pkl"};
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        char *path = support_fixture(files[i]);
        struct phema_checkpoint *checkpoint = open_path(path);
        size_t n = 1;
        assert_null(list(&n, checkpoint));
        assert_int_equal(n, 0);
        phema_checkpoint_close(checkpoint);
        free(path);
    }
}

/* {'w': 8 bytes} with storage '0' */
static const char pickle[] = "\x80\x02}X\1\0\0\0wctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0"
                             "storagectorch\nByteStorage\nX\1\0\0\0"
                             "0X\3\0\0\0cpuK\x08tQK\0K\x08\x85K\1\x85\x89NtRs.";
static const uint8_t storage[8] = {0, 1, 2, 3, 4, 5, 6, 7};

/* The description of the last record of an archive. */
struct described {
    bool has_descriptor, has_signature, is_wide, is_local; /* is_local: also in the header */
    uint32_t crc;
};

static void put_local(struct phema_strbuf *out, const struct zip_record *record, unsigned flags,
                      uint32_t crc)
{
    size_t size = flags ? 0 : record->size;
    put_int(out, 0x04034b50, 4);
    put_int(out, 0, 2);
    put_int(out, flags, 2);
    put_int(out, 0, 6); /* method, time, date */
    put_int(out, crc, 4);
    put_int(out, size, 4);
    put_int(out, size, 4);
    put_int(out, strlen(record->name), 4); /* without an extra field */
    put_text(out, record->name);
    put(out, record->data, record->size);
}

static void put_central(struct phema_strbuf *out, const struct zip_record *record, unsigned flags,
                        uint32_t crc, size_t header)
{
    put_int(out, 0x02014b50, 4);
    put_int(out, 0, 4);
    put_int(out, flags, 2);
    put_int(out, 0, 6);
    put_int(out, crc, 4);
    put_int(out, record->size, 4);
    put_int(out, record->size, 4);
    put_int(out, strlen(record->name), 2);
    put_int(out, 0, 12);
    put_int(out, header, 4);
    put_text(out, record->name);
}

/* An archive of one storage. Returns the offset of the CRC next to the data. */
static size_t put_archive(struct phema_strbuf *out, const struct described *how)
{
    static const struct zip_record records[] = {{"a/data.pkl", pickle, sizeof(pickle) - 1},
                                                {"a/version", "3\n", 2},
                                                {"a/data/0", storage, sizeof(storage)}};
    unsigned flags[] = {0, 0, how->has_descriptor ? 8 : 0};
    size_t headers[3];
    for (size_t i = 0; i < 3; i++) {
        headers[i] = out->size;
        bool has_crc = i == 2 && (!flags[i] || how->is_local);
        put_local(out, &records[i], flags[i], has_crc ? how->crc : 0);
    }
    size_t place = headers[2] + 14;
    if (how->has_descriptor) {
        if (how->has_signature)
            put_int(out, 0x08074b50, 4);
        place = out->size;
        put_int(out, how->crc, 4);
        put_int(out, sizeof(storage), how->is_wide ? 8 : 4);
        put_int(out, sizeof(storage), how->is_wide ? 8 : 4);
    }
    size_t directory = out->size;
    for (size_t i = 0; i < 3; i++)
        put_central(out, &records[i], flags[i], i == 2 ? how->crc : 0, headers[i]);
    size_t size = out->size - directory;
    put_int(out, 0x06054b50, 4);
    put_int(out, 0, 4);
    put_int(out, 3 | 3 << 16, 4);
    put_int(out, size, 4);
    put_int(out, directory, 4);
    put_int(out, 0, 2);
    return place;
}

static void all_kinds_of_descriptors_are_found(void **state)
{
    (void)state;
    /* a CRC equal to the signature is the hardest case */
    static const uint32_t crcs[] = {0x88AA689F /* of 0 ... 7, by Python's zlib */, 0, 0x08074b50};
    for (unsigned kind = 0; kind < 5 * ARRAY_LEN(crcs); kind++) {
        unsigned bits = kind % 5; /* 4: no descriptor */
        uint32_t crc = crcs[kind / 5];
        struct described how = {bits < 4, bits & 1, bits & 2, false, crc};
        struct phema_strbuf file = {0};
        size_t place = put_archive(&file, &how);
        struct phema_checkpoint *checkpoint = open_path(as_file(file.data, file.size));
        size_t n = 0;
        struct phema_record *records = list(&n, checkpoint);
        struct phema_span content = phema_file_span(phema_checkpoint_file(checkpoint, 0));
        assert_int_equal(n, 1);
        assert_int_equal(records[0].n_crc, 2);
        assert_int_equal(records[0].crc_at[1], place);
        assert_int_equal(records[0].crc, crc);
        assert_int_equal(phema_load_u32(content.data + records[0].crc_at[0]), crc);
        assert_memory_equal(content.data + records[0].crc_at[0] - 16, "PK\1\2", 4);
        assert_int_equal(records[0].size_bytes, 8);
        assert_memory_equal(content.data + records[0].offset, storage, 8);
        assert_int_equal(phema_record_is_switched_off(&records[0], content), crc == 0);
        free(records);
        phema_checkpoint_close(checkpoint);
        phema_strbuf_clear(&file);
    }
}

/* A writer that knows the checksum in advance may also store it in the local header, although a
 * descriptor follows. A change of the data must correct it there too. */
static void a_checksum_in_three_places_is_found(void **state)
{
    (void)state;
    struct described how = {true, true, false, true, 0x88AA689F};
    struct phema_strbuf file = {0};
    size_t place = put_archive(&file, &how);
    struct phema_checkpoint *checkpoint = open_path(as_file(file.data, file.size));
    size_t n = 0;
    struct phema_record *records = list(&n, checkpoint);
    assert_int_equal(n, 1);
    assert_int_equal(records[0].n_crc, 3);
    assert_int_equal(records[0].crc_at[1], place);
    assert_int_equal(records[0].crc_at[2], records[0].offset - strlen("a/data/0") - 30 + 14);
    for (unsigned k = 0; k < 3; k++)
        assert_int_equal(phema_load_u32((const uint8_t *)file.data + records[0].crc_at[k]),
                         0x88AA689F);
    free(records);
    phema_checkpoint_close(checkpoint);
    phema_strbuf_clear(&file);
}

/* The data of a copy are changed and their checksums corrected: everything is consistent again. */
static void a_mended_copy_is_whole(void **state)
{
    (void)state;
    char *path = support_fixture("torch/plain.pt");
    struct phema_checkpoint *checkpoint = open_path(path);
    size_t n = 0;
    struct phema_record *records = list(&n, checkpoint);
    size_t size = 0;
    uint8_t *copy = support_read(path, &size);
    for (size_t i = 0; i < n; i++) {
        copy[records[i].offset] ^= 0x55;
        uint32_t crc = phema_crc32(0, copy + records[i].offset, records[i].size_bytes);
        assert_int_not_equal(crc, records[i].crc);
        for (unsigned k = 0; k < records[i].n_crc; k++)
            for (unsigned byte = 0; byte < 4; byte++)
                copy[records[i].crc_at[k] + byte] = (uint8_t)(crc >> (8 * byte));
    }
    phema_checkpoint_close(checkpoint);
    free(records);

    checkpoint = open_path(as_file(copy, size));
    records = list(&n, checkpoint);
    check_records(records, n, phema_file_span(phema_checkpoint_file(checkpoint, 0)), true);
    phema_checkpoint_close(checkpoint);
    free(records);
    free(copy);
    free(path);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(checksums_of_torch_are_those_of_the_data),
    cmocka_unit_test(formats_without_checksums_have_no_records),
    cmocka_unit_test(all_kinds_of_descriptors_are_found),
    cmocka_unit_test(a_checksum_in_three_places_is_found),
    cmocka_unit_test(a_mended_copy_is_whole),
};
TEST_GROUP(tests)
