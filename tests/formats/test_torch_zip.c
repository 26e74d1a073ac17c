// SPDX-License-Identifier: Apache-2.0
/* Archives with false record places, and edge cases that torch itself writes. */
#include "phema/formats.h"

#include "build.h"

/* {'w': 8 bytes} with storage '0' */
static const char pickle[] = "\x80\x02}X\1\0\0\0wctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0"
                             "storagectorch\nByteStorage\nX\1\0\0\0"
                             "0X\3\0\0\0cpuK\x08tQK\0K\x08\x85K\1\x85\x89NtRs.";
static const uint8_t storage[8] = {0, 1, 2, 3, 4, 5, 6, 7};

enum { DATA, VERSION, STORAGE, EXTRA, MAX_RECORDS };

/* Offsets in a file of put_zip. */
struct layout {
    size_t header[MAX_RECORDS], central[MAX_RECORDS], directory, end;
};

static struct layout put_archive(struct phema_strbuf *file, const struct zip_record *records,
                                 size_t n)
{
    struct layout layout = {0};
    put_zip(file, records, n, layout.header);
    layout.end = file->size - 22;
    layout.directory = phema_load_u32((const uint8_t *)file->data + layout.end + 16);
    size_t at = layout.directory;
    for (size_t i = 0; i < n; i++) {
        layout.central[i] = at;
        at += 46 + strlen(records[i].name);
    }
    return layout;
}

static const struct zip_record plain[] = {
    {"a/data.pkl", pickle, sizeof(pickle) - 1}, {"a/version", "3\n", 2}, {"a/data/0", storage, 8}};

/* A valid archive with `width` bytes at an offset set to a value. */
static void refuse_change(size_t (*where)(const struct layout *), size_t delta, uint64_t value,
                          unsigned width, const char *part)
{
    struct phema_strbuf file = {0};
    struct layout layout = put_archive(&file, plain, 3);
    for (unsigned i = 0; i < width; i++)
        file.data[where(&layout) + delta + i] = (char)(uint8_t)(value >> (8 * i));
    assert_refused(file.data, file.size, part);
    phema_strbuf_clear(&file);
}

static size_t at_end(const struct layout *layout)
{
    return layout->end;
}
static size_t at_first_entry(const struct layout *layout)
{
    return layout->central[DATA];
}
static size_t at_storage_entry(const struct layout *layout)
{
    return layout->central[STORAGE];
}
static size_t at_storage_header(const struct layout *layout)
{
    return layout->header[STORAGE];
}

/* A valid archive with other sizes in the directory and the local header of a record. */
static void refuse_sizes(size_t record, uint32_t stored_size, uint32_t size, const char *part)
{
    struct phema_strbuf file = {0};
    struct layout layout = put_archive(&file, plain, 3);
    const size_t at[] = {layout.central[record] + 20, layout.header[record] + 18};
    for (size_t i = 0; i < ARRAY_LEN(at); i++)
        for (unsigned byte = 0; byte < 4; byte++) {
            file.data[at[i] + byte] = (char)(uint8_t)(stored_size >> (8 * byte));
            file.data[at[i] + 4 + byte] = (char)(uint8_t)(size >> (8 * byte));
        }
    assert_refused(file.data, file.size, part);
    phema_strbuf_clear(&file);
}

static void refuse_records(const struct zip_record *records, size_t n, const char *part)
{
    struct phema_strbuf file = {0};
    (void)put_archive(&file, records, n);
    assert_refused(file.data, file.size, part);
    phema_strbuf_clear(&file);
}

static void accept_file(const struct phema_strbuf *file)
{
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    assert_ok(open_bytes(&checkpoint, file->data, file->size, &err), &err);
    assert_int_equal(phema_checkpoint_n_tensors(checkpoint), 1);
    const struct phema_tensor *tensor = phema_checkpoint_tensors(checkpoint);
    assert_memory_equal(phema_tensor_start(checkpoint, tensor), storage, 8);
    phema_checkpoint_close(checkpoint);
}

static void a_plain_archive_opens(void **state)
{
    (void)state;
    struct phema_strbuf file = {0};
    (void)put_archive(&file, plain, 3);
    accept_file(&file);
    /* a comment at the end of the file */
    file.data[file.size - 2] = 5;
    put_text(&file, "hello");
    accept_file(&file);
    put_text(&file, "!");
    assert_refused(file.data, file.size, "no end record");
    phema_strbuf_clear(&file);
}

static void end_records_are_checked(void **state)
{
    (void)state;
    refuse_change(at_end, 4, 1, 2, "several disks");
    refuse_change(at_end, 8, 4, 2, "counts of entries differ");
    refuse_change(at_end, 8, 0x00040004, 4, "too small for its entries");
    refuse_change(at_end, 8, 0x00020002, 4, "continues behind the last entry");
    refuse_change(at_end, 8, 0xFFFFFFFF, 4, "too small for its entries");
    refuse_change(at_end, 12, 0xFFFFFFFF, 4, "does not end where");
    refuse_change(at_end, 16, 0xFFFFFFFF, 4, "does not end where");
    refuse_change(at_end, 16, 0, 4, "does not end where");
    refuse_change(at_end, 20, 1, 2, "no end record");
}

static void entries_are_checked(void **state)
{
    (void)state;
    refuse_change(at_first_entry, 0, 0, 1, "expected another entry");
    refuse_change(at_first_entry, 8, 1, 2, "encrypted");
    refuse_change(at_first_entry, 8, 0x40, 2, "encrypted");
    refuse_change(at_first_entry, 8, 0x2000, 2, "encrypted");
    refuse_change(at_first_entry, 8, 8, 2, "disagrees"); /* the local one lacks the bit */
    refuse_change(at_first_entry, 10, 8, 2, "disagrees");
    refuse_change(at_first_entry, 28, 0, 2, "without a name");
    refuse_change(at_first_entry, 28, 0xFFFF, 2, "runs out of its directory");
    refuse_change(at_first_entry, 30, 0xFFFF, 2, "runs out of its directory");
    refuse_change(at_first_entry, 34, 1, 2, "several disks");
    refuse_change(at_first_entry, 42, 1, 4, "no local header");
    refuse_change(at_first_entry, 42, 0x7FFFFFFF, 4, "no local header");
    refuse_change(at_first_entry, 42, 0xFFFFFFFF, 4, "saturated");
    refuse_change(at_first_entry, 20, 0xFFFFFFFF, 4, "saturated");
    refuse_change(at_first_entry, 46, '/', 1, "absolute");
    refuse_change(at_first_entry, 46, 0xFF, 1, "not UTF-8");
    refuse_change(at_first_entry, 46, 0, 1, "NUL");
    refuse_change(at_first_entry, 46, 'b', 1, "disagrees"); /* renamed only in the directory */
    refuse_change(at_storage_header, 30, 'b', 1, "disagrees");
    refuse_change(at_storage_header, 28, 0xFFFF, 2, "do not end before the directory");
    refuse_change(at_storage_header, 28, 1, 2, "do not end before the directory");
    refuse_change(at_storage_entry, 20, 0x7FFFFFFF, 4, "do not end before the directory");
    refuse_sizes(STORAGE, 7, 8, "compressed"); /* stored, with two different sizes */
    refuse_sizes(STORAGE, 8, 7, "compressed");
    refuse_sizes(STORAGE, 7, 7, "found a record of 7 bytes");
    refuse_sizes(DATA, sizeof(pickle) + 20, sizeof(pickle) + 20, "overlap");
}

/* Records without a descriptor after the data. */
static void local_headers_agree_with_the_directory(void **state)
{
    (void)state;
    static const char part[] =
        "record 'a/data/0': damaged zip file: the local header has another size or checksum";
    for (size_t delta = 0; delta < 12; delta++) { /* CRC, stored size, size */
        refuse_change(at_storage_header, 14 + delta, 1, 1, part);
        if (delta % 4 == 0 && delta) /* the sizes are 8, not 0 */
            refuse_change(at_storage_header, 14 + delta, 0, 4, part);
    }
    refuse_change(at_storage_entry, 16, 1, 4, part);
    refuse_change(at_storage_entry, 20, 7, 4, part);
    refuse_change(at_storage_entry, 24, 7, 4, part);
    refuse_change(at_storage_header, 18, UINT32_MAX, 4, "a saturated size without its zip64 field");
}

static void records_do_not_overlap(void **state)
{
    (void)state;
    /* a whole local header inside another record's data, and an entry for it */
    struct phema_strbuf inner = {0};
    size_t header = 0;
    put_zip(&inner, &plain[STORAGE], 1, &header);
    const struct zip_record records[] = {
        plain[DATA], plain[VERSION], {"a/data/9", inner.data, inner.size}, plain[STORAGE]};
    struct phema_strbuf file = {0};
    struct layout layout = put_archive(&file, records, 4);
    accept_file(&file);
    size_t planted = layout.header[STORAGE] + 30 + strlen("a/data/9");
    for (unsigned i = 0; i < 4; i++)
        file.data[layout.central[EXTRA] + 42 + i] = (char)(uint8_t)(planted >> (8 * i));
    assert_refused(file.data, file.size, "overlap");
    phema_strbuf_clear(&file);
    phema_strbuf_clear(&inner);
}

static void names_of_records_are_unique_and_tame(void **state)
{
    (void)state;
    static const struct {
        const char *name, *part;
    } names[] = {{"a/data/0", "two records have this name"},
                 {"a/../b", "'..'"},
                 {"..", "'..'"},
                 {"a/..", "'..'"},
                 {"/a", "absolute"},
                 {"a/constants.pkl", "TorchScript"},
                 {"b/data.pkl", "2 records */data.pkl"}};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const struct zip_record records[] = {
            plain[DATA], plain[VERSION], plain[STORAGE], {names[i].name, "x", 1}};
        refuse_records(records, 4, names[i].part);
    }
}

static void records_of_torch_are_checked(void **state)
{
    (void)state;
    refuse_records(plain, 0, "without a record */data.pkl");
    refuse_records(plain + 1, 2, "without a record */data.pkl");
    const struct zip_record no_version[] = {plain[DATA], plain[STORAGE]};
    refuse_records(no_version, 2, "'version'");
    static const char *const versions[] = {"", "x", "3x", "3\n\n", "-1", "9999999999"};
    for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
        const struct zip_record records[] = {
            plain[DATA], {"a/version", versions[i], strlen(versions[i])}, plain[STORAGE]};
        refuse_records(records, 3, "'version'");
    }
    static const struct {
        const char *order, *part;
    } orders[] = {{"big", "big-endian"}, {"", "something else"}, {"little\n", "something else"}};
    for (size_t i = 0; i < ARRAY_LEN(orders); i++) {
        const struct zip_record records[] = {
            plain[DATA],
            plain[VERSION],
            plain[STORAGE],
            {"a/byteorder", orders[i].order, strlen(orders[i].order)}};
        refuse_records(records, 4, orders[i].part);
    }
    /* the storage is under another TOP */
    const struct zip_record elsewhere[] = {plain[DATA], plain[VERSION], {"b/data/0", storage, 8}};
    refuse_records(elsewhere, 3, "no record for it");
    /* bytes after the end of the pickle are ignored, as in torch */
    char longer[sizeof(pickle) + 4] = {0};
    memcpy(longer, pickle, sizeof(pickle) - 1);
    const struct zip_record trailing[] = {
        {"a/data.pkl", longer, sizeof(longer)}, plain[VERSION], plain[STORAGE]};
    struct phema_strbuf file = {0};
    (void)put_archive(&file, trailing, 3);
    accept_file(&file);
    phema_strbuf_clear(&file);
}

/* zip64 records, as for sizes beyond 4 GiB, but with small numbers in the wide fields. */
static void put_end64(struct phema_strbuf *file, uint64_t n, uint64_t size, uint64_t offset)
{
    uint64_t record = file->size;
    put_int(file, 0x06064b50, 4);
    put_int(file, 44, 8);
    put_int(file, 0, 12);
    put_int(file, n, 8);
    put_int(file, n, 8);
    put_int(file, size, 8);
    put_int(file, offset, 8);
    put_int(file, 0x07064b50, 4);
    put_int(file, 0, 4);
    put_int(file, record, 8);
    put_int(file, 1, 4);
}

static void put_plain_end(struct phema_strbuf *file, uint64_t n, uint64_t size, uint64_t offset)
{
    put_int(file, 0x06054b50, 4);
    put_int(file, 0, 4);
    put_int(file, n, 2);
    put_int(file, n, 2);
    put_int(file, size, 4);
    put_int(file, offset, 4);
    put_int(file, 0, 2);
}

/* The plain archive with a zip64 end. */
static struct layout put_wide(struct phema_strbuf *file, uint64_t n64, uint64_t n)
{
    struct layout layout = put_archive(file, plain, 3);
    uint64_t size = layout.end - layout.directory;
    file->size = layout.end;
    put_end64(file, n64, size, layout.directory);
    put_plain_end(file, n, UINT32_MAX, layout.directory);
    return layout;
}

static void zip64_records_are_read_and_must_agree(void **state)
{
    (void)state;
    struct phema_strbuf file = {0};
    (void)put_wide(&file, 3, 0xFFFF);
    accept_file(&file);
    phema_strbuf_clear(&file);
    struct layout layout = put_wide(&file, 3, 3);
    accept_file(&file);
    size_t record = layout.end;
    static const struct {
        size_t delta;
        char value;
        const char *part;
    } changes[] = {{0, 'Q', "not where the locator says"},
                   {4, 45, "does not end at the locator"},
                   {16, 1, "several disks"},
                   {20, 1, "several disks"},
                   {24, 2, "counts of entries differ"},
                   {40, 1, "does not end where"},
                   {48, 1, "disagree"},
                   {56 + 4, 1, "several disks"},
                   {56 + 8, 1, "not where the locator"},
                   {56 + 15, 1, "not where the locator"}};
    for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
        char before = file.data[record + changes[i].delta];
        file.data[record + changes[i].delta] = changes[i].value;
        assert_refused(file.data, file.size, changes[i].part);
        file.data[record + changes[i].delta] = before;
    }
    phema_strbuf_clear(&file);
    (void)put_wide(&file, 2, 3);
    assert_refused(file.data, file.size, "end records disagree");
    phema_strbuf_clear(&file);
}

/* One record with all sizes in the zip64 field and a 24-byte descriptor. torch writes records
 * beyond 4 GiB in this form. */
static void saturated_entries_take_their_zip64_field(void **state)
{
    (void)state;
    for (int is_wrong = 0; is_wrong < 3; is_wrong++) { /* 2: the field ends before the offset */
        struct phema_strbuf file = {0};
        size_t header = 0;
        struct zip_record others[] = {plain[DATA], plain[VERSION]};
        struct layout layout = put_archive(&file, others, 2);
        struct phema_strbuf central = {0};
        put(&central, file.data + layout.directory, layout.end - layout.directory);
        file.size = layout.directory;
        header = file.size;
        put_int(&file, 0x04034b50, 4);
        put_int(&file, 0, 2);
        put_int(&file, 0x0808, 2);
        put_int(&file, 0, 18);
        put_int(&file, 8, 2);
        put_int(&file, 12, 2);
        put_text(&file, "a/data/0");
        put_int(&file, 0x00080001, 4); /* the local field holds only the offset */
        put_int(&file, header, 8);
        put(&file, storage, 8);
        put_int(&file, 0x08074b50, 4);
        put_int(&file, 0, 4);
        put_int(&file, 8, 8);
        put_int(&file, is_wrong == 1 ? 9 : 8, 8);
        size_t directory = file.size;
        put(&file, central.data, central.size);
        put_int(&file, 0x02014b50, 4);
        put_int(&file, 0, 4);
        put_int(&file, 0x0808, 2);
        put_int(&file, 0, 10);
        put_int(&file, UINT32_MAX, 4);
        put_int(&file, UINT32_MAX, 4);
        put_int(&file, 8, 2);
        put_int(&file, 4 + 4 + 28, 2);
        put_int(&file, 0, 10);
        put_int(&file, UINT32_MAX, 4);
        put_text(&file, "a/data/0");
        put_int(&file, 0x00004246, 4); /* an empty field FB precedes it */
        put_int(&file, is_wrong == 2 ? 0x00100001 : 0x001C0001, 4);
        put_int(&file, 8, 8);
        put_int(&file, 8, 8);
        put_int(&file, header, 8);
        put_int(&file, 0, 4);
        put_plain_end(&file, 3, file.size - directory, directory);
        if (is_wrong)
            assert_refused(file.data, file.size,
                           is_wrong == 1 ? "descriptor behind the data disagrees"
                                         : "a saturated size without its zip64 field");
        else
            accept_file(&file);
        phema_strbuf_clear(&central);
        phema_strbuf_clear(&file);
    }
}

/* The last record ends at the start of the directory. The first header there reads as its
 * descriptor. Its signature becomes the CRC, and the versions 8 and 0 become the stored size. The
 * flags 8 and the method 0 become the size. */
static void a_descriptor_does_not_lie_in_the_directory(void **state)
{
    (void)state;
    struct phema_strbuf file = {0};
    struct zip_record others[] = {plain[DATA], plain[VERSION]};
    struct layout layout = put_archive(&file, others, 2);
    struct phema_strbuf central = {0};
    put(&central, file.data + layout.directory, layout.end - layout.directory);
    file.size = layout.directory;
    size_t header = file.size;
    put_int(&file, 0x04034b50, 4);
    put_int(&file, 0, 2);
    put_int(&file, 0x0008, 2);
    put_int(&file, 0, 18);
    put_int(&file, 8, 2);
    put_int(&file, 0, 2);
    put_text(&file, "a/data/0");
    put(&file, storage, 8);
    size_t directory = file.size;
    put_int(&file, 0x02014b50, 4);
    put_int(&file, 8, 4);
    put_int(&file, 0x0008, 2);
    put_int(&file, 0, 6);
    put_int(&file, 0x02014b50, 4);
    put_int(&file, 8, 4);
    put_int(&file, 8, 4);
    put_int(&file, 8, 2);
    put_int(&file, 0, 12);
    put_int(&file, header, 4);
    put_text(&file, "a/data/0");
    put(&file, central.data, central.size);
    put_plain_end(&file, 3, file.size - directory, directory);
    assert_refused(file.data, file.size,
                   "'a/data/0': damaged zip file: the data do not end before");
    phema_strbuf_clear(&central);
    phema_strbuf_clear(&file);
}

/* The description of the storage in the local header, and after the data. */
struct described {
    uint32_t crc, stored_size, size;
    bool has_wide; /* a zip64 field with these sizes */
    uint64_t wide_size, wide_stored_size;
    bool has_descriptor;
    uint32_t descriptor_crc;
};

#define CRC 0x88AA689Fu /* of 0 ... 7, by Python's zlib */
#define ALL UINT32_MAX

static void put_described(struct phema_strbuf *file, const struct described *how)
{
    const struct zip_record others[] = {plain[DATA], plain[VERSION]};
    struct layout layout = put_archive(file, others, 2);
    struct phema_strbuf central = {0};
    put(&central, file->data + layout.directory, layout.end - layout.directory);
    file->size = layout.directory;
    unsigned flags = how->has_descriptor ? 8 : 0;
    size_t header = file->size;
    put_int(file, 0x04034b50, 4);
    put_int(file, 0, 2);
    put_int(file, flags, 2);
    put_int(file, 0, 6);
    put_int(file, how->crc, 4);
    put_int(file, how->stored_size, 4);
    put_int(file, how->size, 4);
    put_int(file, 8, 2);
    put_int(file, how->has_wide ? 20 : 0, 2);
    put_text(file, "a/data/0");
    if (how->has_wide) {
        put_int(file, 0x00100001, 4);
        put_int(file, how->wide_size, 8);
        put_int(file, how->wide_stored_size, 8);
    }
    put(file, storage, 8);
    if (how->has_descriptor) {
        put_int(file, 0x08074b50, 4);
        put_int(file, how->descriptor_crc, 4);
        put_int(file, 8, 4);
        put_int(file, 8, 4);
    }
    size_t directory = file->size;
    put(file, central.data, central.size);
    put_int(file, 0x02014b50, 4);
    put_int(file, 0, 4);
    put_int(file, flags, 2);
    put_int(file, 0, 6);
    put_int(file, CRC, 4);
    put_int(file, 8, 4);
    put_int(file, 8, 4);
    put_int(file, 8, 2);
    put_int(file, 0, 12);
    put_int(file, header, 4);
    put_text(file, "a/data/0");
    put_plain_end(file, 3, file->size - directory, directory);
    phema_strbuf_clear(&central);
}

/* APPNOTE 4.4.4: the fields are zero if a descriptor follows. APPNOTE 4.5.3: for sizes of
 * 0xFFFFFFFF the zip64 field has the values, the size before the stored size. Python's zipfile
 * writes such headers for small records. */
static void local_headers_may_leave_sizes_to_descriptor_and_zip64_field(void **state)
{
    (void)state;
    static const struct {
        struct described how;
        const char *part; /* NULL: opens */
    } rows[] = {
        {{CRC, 8, 8, false, 0, 0, false, 0}, NULL},
        {{0, 8, 8, false, 0, 0, false, 0}, "local header has another"},
        {{CRC, 0, 0, false, 0, 0, false, 0}, "local header has another"},
        {{CRC, ALL, ALL, true, 8, 8, false, 0}, NULL},
        {{CRC, ALL, ALL, true, 9, 8, false, 0}, "local header has another"},
        {{CRC, ALL, ALL, true, 8, 9, false, 0}, "local header has another"},
        {{CRC, ALL, ALL, true, 0, 0, false, 0}, "local header has another"},
        {{CRC, 8, 8, true, 9, 9, false, 0}, NULL}, /* an unused field */
        {{CRC, ALL, ALL, false, 0, 0, false, 0}, "saturated size"},
        {{0, 0, 0, false, 0, 0, true, CRC}, NULL},
        {{CRC, 8, 8, false, 0, 0, true, CRC}, NULL},
        {{0, ALL, ALL, true, 0, 0, true, CRC}, NULL},
        {{0, ALL, ALL, true, 8, 8, true, CRC}, NULL},
        {{0, ALL, ALL, true, 8, 9, true, CRC}, "local header has another"},
        {{CRC ^ 1, 0, 0, false, 0, 0, true, CRC}, "local header has another"},
        {{0, 7, 0, false, 0, 0, true, CRC}, "local header has another"},
        {{0, 0, 7, false, 0, 0, true, CRC}, "local header has another"},
        {{0, 0, 0, false, 0, 0, true, CRC ^ 1}, "descriptor behind the data disagrees"},
        {{0, 0, 0, false, 0, 0, true, 0}, "descriptor behind the data disagrees"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct phema_strbuf file = {0};
        put_described(&file, &rows[i].how);
        if (rows[i].part)
            assert_refused(file.data, file.size, rows[i].part);
        else
            accept_file(&file);
        phema_strbuf_clear(&file);
    }
}

/* A dict of n tensors, each with its own storage. */
static void put_many(struct phema_strbuf *file, size_t n)
{
    struct phema_strbuf program = {0};
    struct zip_record *records = calloc(n + 2, sizeof(*records));
    char(*names)[32] = calloc(n, sizeof(*names));
    size_t *headers = calloc(n + 2, sizeof(*headers));
    assert_non_null(records);
    assert_non_null(names);
    assert_non_null(headers);
    put(&program, "\x80\x02}(", 4);
    for (size_t i = 0; i < n; i++) {
        const char *name = names[i];
        (void)snprintf(names[i], sizeof(names[i]), "a/data/%05zu", i);
        records[i + 2] = (struct zip_record){name, storage, 8};
        put(&program, "X\5\0\0\0", 5);
        put_text(&program, name + 7);
        static const char before[] = "ctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0storage"
                                     "ctorch\nByteStorage\nX\5\0\0\0";
        put(&program, before, sizeof(before) - 1);
        put_text(&program, name + 7);
        static const char after[] = "X\3\0\0\0cpuK\x08tQK\0K\x08\x85K\1\x85\x89NtR";
        put(&program, after, sizeof(after) - 1);
    }
    put_text(&program, "u.");
    records[0] = (struct zip_record){"a/data.pkl", program.data, program.size};
    records[1] = plain[VERSION];
    put_zip(file, records, n + 2, headers);
    free(names);
    free(records);
    free(headers);
    phema_strbuf_clear(&program);
}

/* tests/growth counts the work of opening them. */
static void many_tensors_are_listed(void **state)
{
    (void)state;
    struct phema_strbuf file = {0};
    put_many(&file, 20000);
    const char *path = as_file(file.data, file.size);
    phema_strbuf_clear(&file);
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    assert_ok(phema_checkpoint_open(&checkpoint, path, NULL, &err), &err);
    assert_int_equal(phema_checkpoint_n_tensors(checkpoint), 20000);
    phema_checkpoint_close(checkpoint);
}

static void no_change_of_a_byte_crashes(void **state)
{
    (void)state;
    struct phema_strbuf file = {0};
    (void)put_wide(&file, 3, 3);
    (void)survive((const uint8_t *)file.data, file.size, 0, file.size, 13);
    phema_strbuf_clear(&file);

    char *path = support_fixture("torch/single_tensor.pt");
    size_t size = 0;
    uint8_t *data = support_read(path, &size);
    (void)survive(data, size, 0, size, 51);
    free(data);
    free(path);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_plain_archive_opens),
    cmocka_unit_test(end_records_are_checked),
    cmocka_unit_test(entries_are_checked),
    cmocka_unit_test(local_headers_agree_with_the_directory),
    cmocka_unit_test(local_headers_may_leave_sizes_to_descriptor_and_zip64_field),
    cmocka_unit_test(records_do_not_overlap),
    cmocka_unit_test(names_of_records_are_unique_and_tame),
    cmocka_unit_test(records_of_torch_are_checked),
    cmocka_unit_test(zip64_records_are_read_and_must_agree),
    cmocka_unit_test(saturated_entries_take_their_zip64_field),
    cmocka_unit_test(a_descriptor_does_not_lie_in_the_directory),
    cmocka_unit_test(many_tensors_are_listed),
    cmocka_unit_test(no_change_of_a_byte_crashes),
};
TEST_GROUP(tests)
