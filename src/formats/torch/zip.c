// SPDX-License-Identifier: Apache-2.0
/* zip.c - Central directory of a zip file, strict (APPNOTE.TXT 6.3; docs/formats/torch-zip.md).
 * Sizes come from the directory; local headers and descriptors must agree. Overlapping, renamed and
 * duplicated entries, which torch tolerates, are refused. */
#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "phema/strbuf.h"
#include "torch/torch.h"

enum {
    END_BYTES = 22,
    LOCATOR_BYTES = 20,
    END64_BYTES = 56,
    CENTRAL_BYTES = 46,
    LOCAL_BYTES = 30,
    MAX_COMMENT_BYTES = 65535
};

enum { CENTRAL_CRC = 16, LOCAL_CRC = 14 }; /* offset of the checksum in a header */

#define FLAG_DESCRIPTOR 0x0008u
#define FLAGS_ENCRYPTED 0x2041u /* bits 0, 6, 13 */

/* The content of the end records. */
struct directory {
    uint64_t n_entries, size, offset;
    uint64_t end; /* start of the end records */
};

static enum phema_status refuse(struct phema_error *err, const char *what)
{
    return phema_fail(err, PHEMA_ERR_FILE, "damaged zip file: %s", what);
}

/* Bytes [offset, offset + size), or NULL when some lie outside the file. */
static const uint8_t *bytes_at(struct phema_span content, uint64_t offset, uint64_t size)
{
    return offset <= content.size && size <= content.size - offset ? content.data + offset : NULL;
}

static bool has_signature(struct phema_span content, uint64_t offset, const char *two)
{
    const uint8_t *found = bytes_at(content, offset, 4);
    return found && found[0] == 'P' && found[1] == 'K' && found[2] == (uint8_t)two[0] &&
           found[3] == (uint8_t)two[1];
}

/* Finds the last end record whose comment ends the file. */
static bool find_end(size_t *out, struct phema_span content)
{
    if (content.size < END_BYTES)
        return false;
    size_t last = content.size - END_BYTES;
    size_t first = last > MAX_COMMENT_BYTES ? last - MAX_COMMENT_BYTES : 0;
    for (size_t at = last + 1; at-- > first;) {
        if (has_signature(content, at, "\5\6") &&
            phema_load_u16(content.data + at + 20) == content.size - at - END_BYTES) {
            *out = at;
            return true;
        }
    }
    return false;
}

static bool agrees(uint64_t plain, uint64_t saturated, uint64_t wide)
{
    return plain == saturated || plain == wide;
}

/* Reads the zip64 end record, found by the locator that ends at end. */
static enum phema_status read_end64(struct directory *directory, struct phema_span content,
                                    size_t locator, struct phema_error *err)
{
    const uint8_t *at = content.data + locator;
    uint64_t record = phema_load_u64(at + 8);
    const uint8_t *found = bytes_at(content, record, END64_BYTES);
    if (phema_load_u32(at + 4) != 0 || phema_load_u32(at + 16) > 1)
        return refuse(err, "it claims to have several disks");
    if (!found || record > locator || !has_signature(content, record, "\6\6"))
        return refuse(err, "its zip64 end record is not where the locator says");
    if (phema_load_u64(found + 4) != locator - record - 12)
        return refuse(err, "its zip64 end record does not end at the locator");
    if (phema_load_u32(found + 16) != 0 || phema_load_u32(found + 20) != 0)
        return refuse(err, "it claims to have several disks");
    struct directory wide = {phema_load_u64(found + 32), phema_load_u64(found + 40),
                             phema_load_u64(found + 48), record};
    if (phema_load_u64(found + 24) != wide.n_entries)
        return refuse(err, "its counts of entries differ");
    if (!agrees(directory->n_entries, UINT16_MAX, wide.n_entries) ||
        !agrees(directory->size, UINT32_MAX, wide.size) ||
        !agrees(directory->offset, UINT32_MAX, wide.offset))
        return refuse(err, "its end records disagree");
    *directory = wide;
    return PHEMA_OK;
}

static enum phema_status read_end(struct directory *directory, struct phema_span content,
                                  struct phema_error *err)
{
    size_t end = 0;
    if (!find_end(&end, content))
        return refuse(err, "no end record in the last 65557 bytes; the file is probably cut short");
    const uint8_t *at = content.data + end;
    if (phema_load_u16(at + 4) != 0 || phema_load_u16(at + 6) != 0)
        return refuse(err, "it claims to have several disks");
    if (phema_load_u16(at + 8) != phema_load_u16(at + 10))
        return refuse(err, "its counts of entries differ");
    *directory = (struct directory){phema_load_u16(at + 10), phema_load_u32(at + 12),
                                    phema_load_u32(at + 16), end};
    if (end >= LOCATOR_BYTES && has_signature(content, end - LOCATOR_BYTES, "\6\7")) {
        enum phema_status status = read_end64(directory, content, end - LOCATOR_BYTES, err);
        if (status)
            return status;
    }

    uint64_t directory_end = 0;
    if (!phema_size_add(&directory_end, directory->offset, directory->size) ||
        directory_end != directory->end)
        return refuse(err, "its directory does not end where the end records begin");
    if (directory->n_entries > directory->size / CENTRAL_BYTES)
        return refuse(err, "its directory is too small for its entries");
    return PHEMA_OK;
}

static const char *what_is_wrong_with_name(const char *name, size_t size)
{
    if (size == 0)
        return "an entry without a name";
    if (memchr(name, '\0', size))
        return "a name that holds a NUL";
    if (!phema_is_utf8(name, size))
        return "a name that is not UTF-8";
    if (name[0] == '/')
        return "an absolute name";
    return path_has_parent(name, size) ? "a name with '..'" : NULL;
}

/* Saturated fields are in the zip64 extra field, in this order. */
static enum phema_status read_extra64(uint64_t *const *fields, size_t n, struct phema_span extra,
                                      struct phema_error *err)
{
    size_t n_wanted = 0;
    uint64_t *wanted[3] = {NULL, NULL, NULL};
    for (size_t i = 0; i < n; i++)
        if (*fields[i] == UINT32_MAX)
            wanted[n_wanted++] = fields[i];
    if (!n_wanted)
        return PHEMA_OK;
    for (size_t at = 0; extra.size - at >= 4;) {
        uint16_t id = phema_load_u16(extra.data + at);
        size_t size = phema_load_u16(extra.data + at + 2);
        at += 4;
        if (size > extra.size - at)
            break;
        if (id == 1 && size >= 8 * n_wanted) {
            for (size_t i = 0; i < n_wanted; i++)
                *wanted[i] = phema_load_u64(extra.data + at + 8 * i);
            return PHEMA_OK;
        }
        at += size;
    }
    return refuse(err, "a saturated size without its zip64 field");
}

/* A descriptor: skip bytes of signature, the CRC, then the sizes of width bytes. */
static bool is_descriptor(const struct zip_entry *entry, struct phema_span content, size_t skip,
                          size_t width)
{
    /* data end inside: checked */
    const uint8_t *found =
        bytes_at(content, entry->offset + entry->stored_size, skip + 4 + 2 * width);
    if (!found || phema_load_u32(found + skip) != entry->crc)
        return false;
    const uint8_t *sizes = found + skip + 4;
    return load_number(sizes, width) == entry->stored_size &&
           load_number(sizes + width, width) == entry->size;
}

/* The descriptor after the data: its sizes have 4 or 8 bytes; the signature is optional. */
static bool find_descriptor(struct zip_entry *entry, struct phema_span content)
{
    uint64_t data_end = entry->offset + entry->stored_size;
    for (size_t skip = has_signature(content, data_end, "\7\10") ? 4 : 0;; skip = 0) {
        for (size_t width = 4; width <= 8; width += 4) {
            if (is_descriptor(entry, content, skip, width)) {
                entry->descriptor_crc = data_end + skip;
                entry->end = data_end + skip + 4 + 2 * width;
                return true;
            }
        }
        if (skip == 0)
            return false;
    }
}

/* With a descriptor, a local header has zeros: sizes and CRC were unknown when it was written.
 * Without one it equals the directory. */
static enum phema_status check_local_sizes(const struct zip_entry *entry, const uint8_t *local,
                                           struct phema_span extra, struct phema_error *err)
{
    uint32_t crc = phema_load_u32(local + LOCAL_CRC);
    uint64_t stored_size = phema_load_u32(local + 18);
    uint64_t size = phema_load_u32(local + 22);
    uint64_t *const wide[] = {&size, &stored_size};
    enum phema_status status = read_extra64(wide, ARRAY_LEN(wide), extra, err);
    if (status)
        return status;
    bool may_be_zero = entry->flags & FLAG_DESCRIPTOR;
    if ((size == entry->size || (may_be_zero && size == 0)) &&
        (stored_size == entry->stored_size || (may_be_zero && stored_size == 0)) &&
        (crc == entry->crc || (may_be_zero && crc == 0)))
        return PHEMA_OK;
    return refuse(err, "the local header has another size or checksum than the directory");
}

/* Checks the local header of the entry, and finds the start of its data. */
static enum phema_status read_local(struct zip_entry *entry, struct phema_span content,
                                    uint64_t directory_offset, struct phema_error *err)
{
    const uint8_t *local = bytes_at(content, entry->header, LOCAL_BYTES);
    if (!local || !has_signature(content, entry->header, "\3\4"))
        return refuse(err, "no local header where the directory says");
    uint64_t name_size = phema_load_u16(local + 26);
    uint64_t extra_size = phema_load_u16(local + 28);
    const uint8_t *name = bytes_at(content, entry->header + LOCAL_BYTES, name_size);
    if (!name || phema_load_u16(local + 6) != entry->flags ||
        phema_load_u16(local + 8) != entry->method || name_size != entry->name_size ||
        memcmp(name, entry->name, entry->name_size) != 0)
        return refuse(err, "the local header disagrees with the directory");
    entry->offset = entry->header + LOCAL_BYTES + name_size + extra_size;
    if (entry->offset > directory_offset || entry->stored_size > directory_offset - entry->offset)
        return refuse(err, "the data do not end before the directory");
    entry->end = entry->offset + entry->stored_size;
    if ((entry->flags & FLAG_DESCRIPTOR) && !find_descriptor(entry, content))
        return refuse(err, "the descriptor behind the data disagrees with the directory");
    if (entry->end > directory_offset)
        return refuse(err, "the data do not end before the directory");
    /* inside the file: the data follow */
    struct phema_span extra = {local + LOCAL_BYTES + name_size, (size_t)extra_size};
    return check_local_sizes(entry, local, extra, err);
}

enum phema_status zip_fail_in(struct phema_error *err, enum phema_status status,
                              const struct zip_entry *entry)
{
    struct phema_name_buffer shown;
    return phema_fail_in(err, status, "record '%s'",
                         phema_name_escape(&shown, entry->name, entry->name_size));
}

/* Reads the entry at *at of the directory and moves *at to its end. */
static enum phema_status read_entry(struct zip_entry *entry, struct phema_span central, size_t *at,
                                    struct phema_span content, uint64_t directory_offset,
                                    struct phema_error *err)
{
    const uint8_t *p = bytes_at(central, *at, CENTRAL_BYTES);
    if (!p || !has_signature(central, *at, "\1\2"))
        return refuse(err, "expected another entry in its directory");
    size_t name_size = phema_load_u16(p + 28);
    size_t extra_size = phema_load_u16(p + 30);
    size_t rest_size = name_size + extra_size + phema_load_u16(p + 32);
    const uint8_t *rest = bytes_at(central, *at + CENTRAL_BYTES, rest_size);
    if (!rest)
        return refuse(err, "an entry runs out of its directory");
    *at += CENTRAL_BYTES + rest_size;
    *entry = (struct zip_entry){
        .name = (const char *)rest,
        .name_size = name_size,
        .flags = phema_load_u16(p + 8),
        .method = phema_load_u16(p + 10),
        .crc = phema_load_u32(p + 16),
        .stored_size = phema_load_u32(p + 20),
        .size = phema_load_u32(p + 24),
        .header = phema_load_u32(p + 42),
        .central = (uint64_t)(p - content.data),
    };
    const char *wrong = what_is_wrong_with_name(entry->name, name_size);
    if (wrong)
        return refuse(err, wrong);
    if (phema_load_u16(p + 34) != 0)
        return refuse(err, "it claims to have several disks");
    struct phema_span extra = {rest + name_size, extra_size};
    uint64_t *const wide[] = {&entry->size, &entry->stored_size, &entry->header};
    enum phema_status status = entry->flags & FLAGS_ENCRYPTED
                                   ? refuse(err, "it is encrypted")
                                   : read_extra64(wide, ARRAY_LEN(wide), extra, err);
    if (!status)
        status = read_local(entry, content, directory_offset, err);
    return status ? zip_fail_in(err, status, entry) : PHEMA_OK;
}

static enum phema_status read_entries(struct zip_archive *zip, const struct directory *directory,
                                      struct phema_error *err)
{
    struct phema_span central = {NULL, 0};
    if (!phema_span_part(&central, zip->content, directory->offset, directory->size))
        return refuse(err, "its directory lies outside");
    zip->entries = calloc((size_t)directory->n_entries + 1, sizeof(*zip->entries));
    if (!zip->entries)
        return phema_fail_memory(err);
    size_t at = 0;
    for (size_t i = 0; i < directory->n_entries; i++) {
        struct zip_entry *entry = &zip->entries[i];
        enum phema_status status =
            read_entry(entry, central, &at, zip->content, directory->offset, err);
        if (status)
            return status;
        zip->n_entries = i + 1;
        enum name_added added = name_table_add(&zip->names, entry->name, entry->name_size, i);
        if (added == NAME_NO_MEMORY)
            return phema_fail_memory(err);
        if (added == NAME_EXISTS) {
            (void)refuse(err, "two records have this name");
            return zip_fail_in(err, PHEMA_ERR_FILE, entry);
        }
    }
    if (at != central.size)
        return refuse(err, "its directory continues behind the last entry");
    return PHEMA_OK;
}

static int by_header(const void *a, const void *b)
{
    const struct zip_entry *left = *(const struct zip_entry *const *)a;
    const struct zip_entry *right = *(const struct zip_entry *const *)b;
    return (left->header > right->header) - (left->header < right->header);
}

static enum phema_status check_overlaps(const struct zip_archive *zip, struct phema_error *err)
{
    const struct zip_entry **places = calloc(zip->n_entries + 1, sizeof(const struct zip_entry *));
    if (!places)
        return phema_fail_memory(err);
    for (size_t i = 0; i < zip->n_entries; i++)
        places[i] = &zip->entries[i];
    qsort(places, zip->n_entries, sizeof(const struct zip_entry *), by_header);
    enum phema_status status = PHEMA_OK;
    for (size_t i = 1; i < zip->n_entries && !status; i++) {
        if (places[i]->header < places[i - 1]->end) {
            status = refuse(err, "two records overlap");
            (void)zip_fail_in(err, status, places[i]);
        }
    }
    free(places);
    return status;
}

static enum phema_status read_zip(struct zip_archive *zip, uint64_t max_entries,
                                  struct phema_error *err)
{
    struct directory directory = {0};
    enum phema_status status = read_end(&directory, zip->content, err);
    if (status)
        return status;
    if (directory.n_entries > max_entries)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "is a zip file of %llu records, expected %llu at most",
                          (unsigned long long)directory.n_entries, (unsigned long long)max_entries);
    status = read_entries(zip, &directory, err);
    return status ? status : check_overlaps(zip, err);
}

enum phema_status zip_open(struct zip_archive *zip, struct phema_span content, uint64_t max_entries,
                           struct phema_error *err)
{
    *zip = (struct zip_archive){.content = content};
    enum phema_status status = read_zip(zip, max_entries, err);
    if (status)
        zip_close(zip);
    return status;
}

void zip_close(struct zip_archive *zip)
{
    free(zip->entries);
    name_table_clear(&zip->names);
    *zip = (struct zip_archive){0};
}

const struct zip_entry *zip_find(const struct zip_archive *zip, const char *name, size_t size)
{
    size_t index = 0;
    return name_table_find(&index, &zip->names, name, size) ? &zip->entries[index] : NULL;
}

unsigned zip_find_crcs(uint64_t places[PHEMA_RECORD_CRCS], const struct zip_archive *zip,
                       const struct zip_entry *entry)
{
    uint64_t local = entry->header + LOCAL_CRC;
    unsigned n = 0;
    places[n++] = entry->central + CENTRAL_CRC;
    if (entry->flags & FLAG_DESCRIPTOR)
        places[n++] = entry->descriptor_crc;
    /* inside: the header was read from there */
    if (!(entry->flags & FLAG_DESCRIPTOR) || phema_load_u32(zip->content.data + local) != 0)
        places[n++] = local;
    return n;
}

bool zip_is_stored(const struct zip_entry *entry)
{
    return entry->method == 0 && entry->stored_size == entry->size;
}

enum phema_status zip_check_stored(const struct zip_entry *entry, struct phema_error *err)
{
    if (zip_is_stored(entry))
        return PHEMA_OK;
    (void)phema_fail(err, PHEMA_ERR_FILE,
                     "is compressed, expected it stored as torch.save does; save it again with "
                     "torch.save");
    return zip_fail_in(err, PHEMA_ERR_FILE, entry);
}
