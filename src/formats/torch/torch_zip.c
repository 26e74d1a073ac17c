// SPDX-License-Identifier: Apache-2.0
/* torch_zip.c - torch.save archives since 1.6: a zip of a pickle and one stored record for each
 * storage (docs/formats/torch-zip.md); the CRCs of the records, for copies with other data. */
#include <string.h>

#include "format.h"
#include "phema/checksum.h"
#include "phema/strbuf.h"
#include "torch/torch.h"

/* torch.save writes some seven records and a pickle of 200 bytes for one tensor. The bounds keep the
 * work for a file of many such archives proportional to their number, even if one archive is named
 * often. */
#define LONE_MAX_RECORDS      64u
#define LONE_MAX_PICKLE_BYTES ((size_t)64 << 10)

/* The archive while its pickle is read. */
struct archive {
    size_t file;    /* file of the checkpoint that holds the archive */
    uint64_t start; /* of its first byte there */
    bool is_lone;   /* the archive may hold one tensor only */
    struct zip_archive zip;
    struct phema_arena arena; /* nodes and storages */
    const char *top;          /* in the mapped file; every record is TOP/something */
    size_t top_size;
    struct phema_strbuf path;
    struct torch_storages storages;
    struct pickle_node *root; /* its object */
    size_t pickle_size;
};

static bool probe(struct phema_span content)
{
    /* PK\5\6: an archive without any entry */
    return content.size >= 4 && content.data[0] == 'P' && content.data[1] == 'K' &&
           ((content.data[2] == 3 && content.data[3] == 4) ||
            (content.data[2] == 5 && content.data[3] == 6));
}

static bool is_at_top(const struct zip_entry *entry, const char *name)
{
    size_t size = strlen(name);
    if (entry->name_size < size + 2)
        return false;
    size_t top_size = entry->name_size - size - 1;
    return entry->name[top_size] == '/' && memcmp(entry->name + top_size + 1, name, size) == 0 &&
           !memchr(entry->name, '/', top_size);
}

/* Finds TOP by the only TOP/data.pkl; constants.pkl and code/ mean TorchScript. */
static enum phema_status find_top(const char **top, size_t *top_size, const struct zip_archive *zip,
                                  struct phema_error *err)
{
    size_t n_found = 0;
    for (size_t i = 0; i < zip->n_entries; i++) {
        const struct zip_entry *entry = &zip->entries[i];
        if (is_at_top(entry, "constants.pkl"))
            return phema_fail(err, PHEMA_ERR_FILE,
                              "is a TorchScript archive, which is not read; save the state_dict "
                              "with torch.save");
        if (is_at_top(entry, "data.pkl")) {
            *top = entry->name;
            *top_size = entry->name_size - strlen("/data.pkl");
            n_found++;
        }
    }
    if (n_found == 1)
        return PHEMA_OK;
    for (size_t i = 0; i < zip->n_entries && n_found == 0; i++) {
        const char *foreign = foreign_zip(zip->entries[i].name, zip->entries[i].name_size);
        if (foreign)
            return phema_fail(err, PHEMA_ERR_FILE, "%s", foreign);
    }
    if (n_found == 0)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "is a zip archive without a record */data.pkl, which torch.save writes; "
                          "unpack it, and name the checkpoint inside");
    return phema_fail(
        err, PHEMA_ERR_FILE,
        "is a zip file with %zu records */data.pkl, expected one as torch.save writes "
        "it",
        n_found);
}

/* Finds TOP/name; *out is NULL when there is no such record. A record must be stored. */
static enum phema_status find_record(const struct zip_entry **out, struct archive *archive,
                                     const char *folder, const char *name, size_t size,
                                     struct phema_error *err)
{
    archive->path.size = 0;
    phema_strbuf_append(&archive->path, archive->top, archive->top_size);
    phema_strbuf_puts(&archive->path, folder);
    phema_strbuf_append(&archive->path, name, size);
    enum phema_status status = phema_strbuf_check(&archive->path, err);
    if (status)
        return status;
    *out = zip_find(&archive->zip, archive->path.data, archive->path.size);
    return *out ? zip_check_stored(*out, err) : PHEMA_OK;
}

static enum phema_status read_small(struct phema_span *out, struct archive *archive,
                                    const char *name, struct phema_error *err)
{
    const struct zip_entry *entry = NULL;
    *out = (struct phema_span){NULL, 0};
    enum phema_status status = find_record(&entry, archive, "/", name, strlen(name), err);
    if (!status && entry) /* inside the file: zip_open has checked it */
        *out = (struct phema_span){archive->zip.content.data + entry->offset, entry->size};
    return status;
}

static enum phema_status check_version(struct archive *archive, struct phema_error *err)
{
    struct phema_span version = {NULL, 0};
    struct phema_span order = {NULL, 0};
    enum phema_status status = read_small(&version, archive, "version", err);
    if (status)
        return status;
    status = read_small(&order, archive, "byteorder", err);
    if (status)
        return status;
    size_t n_digits = 0;
    while (n_digits < version.size && version.data[n_digits] >= '0' &&
           version.data[n_digits] <= '9')
        n_digits++;
    if (n_digits == 0 || n_digits > 9 || version.size - n_digits > 1 ||
        (version.size > n_digits && version.data[n_digits] != '\n'))
        return phema_fail(err, PHEMA_ERR_FILE,
                          "expected a record 'version' that holds a number, as torch.save writes "
                          "it");
    if (order.data && !span_is(order, "little"))
        return phema_fail(err, PHEMA_ERR_FILE, "record 'byteorder': expected little, found %s",
                          span_is(order, "big") ? "big: files of big-endian machines are not read"
                                                : "something else");
    return PHEMA_OK;
}

/* The record TOP/data/KEY of a storage. */
static enum phema_status place_storage(struct pickle_storage *storage, void *context,
                                       struct phema_error *err)
{
    const struct zip_entry *entry = NULL;
    enum phema_status status = find_record(&entry, context, "/data/",
                                           (const char *)storage->key.data, storage->key.size, err);
    if (status)
        return status;
    if (!entry)
        return phema_fail(err, PHEMA_ERR_FILE, "the archive has no record for it");
    if (storage->size_bytes != entry->size)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "expected %llu elements of %s, found a record of %llu bytes",
                          (unsigned long long)storage->n_elems, phema_dtype_name(storage->dtype),
                          (unsigned long long)entry->size);
    const struct archive *archive = context;
    storage->file = archive->file;
    storage->offset = archive->start + entry->offset; /* inside the file, as the archive is */
    return PHEMA_OK;
}

static enum phema_status read_archive(struct archive *archive, struct phema_span content,
                                      const struct phema_checkpoint_options *options,
                                      struct phema_error *err)
{
    enum phema_status status =
        zip_open(&archive->zip, content, archive->is_lone ? LONE_MAX_RECORDS : UINT64_MAX, err);
    if (status)
        return status;
    status = find_top(&archive->top, &archive->top_size, &archive->zip, err);
    if (status)
        return status;
    status = check_version(archive, err);
    if (status)
        return status;
    struct phema_span pickle = {NULL, 0};
    status = read_small(&pickle, archive, "data.pkl", err);
    if (status)
        return status;
    if (archive->is_lone && pickle.size > LONE_MAX_PICKLE_BYTES)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "data.pkl: has %zu bytes, expected %zu at most for one tensor",
                          pickle.size, LONE_MAX_PICKLE_BYTES);

    archive->storages = (struct torch_storages){
        .arena = &archive->arena, .n_id_fields = 5, .place = place_storage, .context = archive};
    struct pickle_host host = {
        .options = options, .find_storage = torch_storages_find, .context = &archive->storages};
    size_t used = 0; /* torch ignores bytes after the end */
    archive->pickle_size = pickle.size;
    status = pickle_read(&archive->root, &used, pickle, &archive->arena, &host, err);
    return status ? phema_fail_in(err, status, "data.pkl") : PHEMA_OK;
}

static void clear(struct archive *archive)
{
    zip_close(&archive->zip);
    phema_arena_clear(&archive->arena);
    phema_strbuf_clear(&archive->path);
    torch_storages_clear(&archive->storages);
}

enum phema_status torch_zip_list(struct phema_checkpoint *checkpoint, size_t file,
                                 const struct torch_item *item,
                                 const struct phema_checkpoint_options *options,
                                 struct phema_error *err)
{
    struct archive archive = {.file = file};
    enum phema_status status =
        read_archive(&archive, checkpoint_content(checkpoint, file), options, err);
    if (!status)
        status = torch_list(checkpoint, archive.root, NULL, item, archive.pickle_size, err);
    clear(&archive);
    return status;
}

static enum phema_status read_shard(struct phema_checkpoint *checkpoint, size_t file,
                                    const struct phema_checkpoint_options *options,
                                    struct phema_error *err)
{
    return torch_zip_list(checkpoint, file, NULL, options, err);
}

static enum phema_status open_torch_zip(struct phema_checkpoint *checkpoint,
                                        const struct phema_checkpoint_options *options,
                                        struct phema_error *err)
{
    return read_shard(checkpoint, 0, options, err);
}

enum phema_status torch_zip_read_tensor(struct phema_tensor *out, struct phema_arena *arena,
                                        struct phema_span content, size_t file, uint64_t start,
                                        const struct phema_checkpoint_options *options,
                                        struct phema_error *err)
{
    struct archive archive = {.file = file, .start = start, .is_lone = true};
    enum phema_status status = read_archive(&archive, content, options, err);
    if (!status && archive.root->kind != PICKLE_TENSOR)
        status = phema_fail(err, PHEMA_ERR_FILE,
                            "data.pkl: expected a tensor as its object, found something else");
    else if (!status && archive.root->tensor->is_packed)
        status = phema_fail(err, PHEMA_ERR_FILE, "packed float4 elements are not read here");
    if (!status)
        status = torch_place_tensor(out, arena, archive.root->tensor, err);
    clear(&archive);
    return status;
}

enum phema_status torch_zip_list_values(struct phema_checkpoint *checkpoint, const char *item,
                                        struct phema_span content, size_t file, uint64_t start,
                                        const struct phema_checkpoint_options *options,
                                        struct phema_error *err)
{
    struct archive archive = {.file = file, .start = start, .is_lone = true};
    enum phema_status status = read_archive(&archive, content, options, err);
    if (!status)
        status = torch_list_values(checkpoint, archive.root, item, archive.pickle_size, err);
    clear(&archive);
    return status;
}

const struct phema_extension torch_extensions[] = {
    {".pt", PHEMA_NAMES_FILE},
    {".pth", PHEMA_NAMES_FILE},
    {".pth.tar", PHEMA_NAMES_FILE}, /* as timm names it; no archive of tar */
    {".ckpt", PHEMA_NAMES_FILE},
    {"model.bin", PHEMA_NAMES_CHECKPOINT}, /* as transformers and diffusers name it */
    {".bin", PHEMA_NAMES_BY_CONTENT},
    {NULL, 0},
};

/* ---- Checksums of records ---- */

/* Of the storages below top. */
static enum phema_status add_records(struct torch_records *records, const struct zip_archive *zip,
                                     size_t file, uint64_t start, struct phema_error *err)
{
    static const char folder[] = "/data/"; /* TOP/data/KEY, never compressed */
    const size_t folder_size = sizeof(folder) - 1;
    const char *top = NULL;
    size_t top_size = 0;
    enum phema_status status = find_top(&top, &top_size, zip, err);
    for (size_t i = 0; i < zip->n_entries && !status; i++) {
        const struct zip_entry *entry = &zip->entries[i];
        if (entry->name_size <= top_size + folder_size || memcmp(entry->name, top, top_size) != 0 ||
            memcmp(entry->name + top_size, folder, folder_size) != 0 || !zip_is_stored(entry))
            continue;
        if (!phema_array_grow(&records->items, &records->capacity, records->n,
                              sizeof(*records->items)))
            return phema_fail_memory(err);
        struct phema_record *record = &records->items[records->n++];
        *record = (struct phema_record){.file = file,
                                        .offset = start + entry->offset,
                                        .size_bytes = entry->size,
                                        .crc = entry->crc};
        record->n_crc = zip_find_crcs(record->crc_at, zip, entry);
        for (unsigned c = 0; c < record->n_crc; c++)
            record->crc_at[c] += start;
    }
    return status;
}

enum phema_status torch_zip_add_records(struct torch_records *records, struct phema_span content,
                                        size_t file, uint64_t start, bool is_lone,
                                        struct phema_error *err)
{
    struct zip_archive zip;
    enum phema_status status =
        zip_open(&zip, content, is_lone ? LONE_MAX_RECORDS : UINT64_MAX, err);
    if (status)
        return status;
    status = add_records(records, &zip, file, start, err);
    zip_close(&zip);
    return status;
}

static enum phema_status list_records(struct phema_record **out, size_t *n,
                                      const struct phema_checkpoint *checkpoint,
                                      struct phema_error *err)
{
    struct torch_records records = {0};
    enum phema_status status =
        torch_zip_add_records(&records, checkpoint_content(checkpoint, 0), 0, 0, false, err);
    *out = records.items;
    *n = records.n;
    return status;
}

const struct phema_format torch_zip_format = {
    .info = {.name = "torch-zip",
             .extensions = torch_extensions,
             .output = PHEMA_OUTPUT_COPY,
             .can_be_template = true},
    .probe = probe,
    .open = open_torch_zip,
    .read_shard = read_shard,
    .list_records = list_records,
};

bool phema_record_is_switched_off(const struct phema_record *record, struct phema_span content)
{
    struct phema_span data = {NULL, 0};
    return record->crc == 0 &&
           phema_span_part(&data, content, record->offset, record->size_bytes) &&
           phema_crc32(0, data.data, data.size) != 0;
}
