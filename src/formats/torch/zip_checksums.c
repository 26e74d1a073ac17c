// SPDX-License-Identifier: Apache-2.0
/* zip_checksums.c - Offsets of the CRCs of an archive, to update them in a copy with other data.
 * Only PyTorch zip has checksums (docs/formats/torch-zip.md). */
#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "phema/checksum.h"
#include "torch/torch_zip.h"

/* TOP/data/KEY, never compressed */
static bool holds_storage(const struct zip_entry *entry, size_t top_size, const char *top)
{
    static const char folder[] = "/data/";
    size_t folder_size = sizeof(folder) - 1;
    return entry->name_size > top_size + folder_size && memcmp(entry->name, top, top_size) == 0 &&
           memcmp(entry->name + top_size, folder, folder_size) == 0 && zip_is_stored(entry);
}

static int by_offset(const void *a, const void *b)
{
    const struct phema_record *left = a;
    const struct phema_record *right = b;
    return (left->offset > right->offset) - (left->offset < right->offset);
}

static enum phema_status list_records(struct phema_record *records, size_t *n,
                                      const struct zip_archive *zip, struct phema_error *err)
{
    const char *top = NULL;
    size_t top_size = 0;
    enum phema_status status = torch_zip_find_top(&top, &top_size, zip, err);
    *n = 0;
    for (size_t i = 0; i < zip->n_entries && !status; i++) {
        const struct zip_entry *entry = &zip->entries[i];
        if (!holds_storage(entry, top_size, top))
            continue;
        struct phema_record *record = &records[(*n)++];
        *record = (struct phema_record){
            .offset = entry->offset, .size_bytes = entry->size, .crc = entry->crc};
        record->n_crc = zip_find_crcs(record->crc_at, zip, entry);
    }
    if (!status && *n)
        qsort(records, *n, sizeof(*records), by_offset);
    return status;
}

enum phema_status phema_checkpoint_records(struct phema_record **out, size_t *n,
                                           const struct phema_checkpoint *checkpoint,
                                           struct phema_error *err)
{
    *out = NULL;
    *n = 0;
    if (checkpoint->format != &torch_zip_format)
        return PHEMA_OK;
    struct zip_archive zip;
    enum phema_status status = zip_open(&zip, checkpoint_content(checkpoint, 0), UINT64_MAX, err);
    if (status)
        return phema_fail_in(err, status, "%s", checkpoint->path);
    size_t n_records = 0;
    struct phema_record *records = calloc(zip.n_entries + 1, sizeof(*records));
    status = records ? list_records(records, &n_records, &zip, err) : phema_fail_memory(err);
    zip_close(&zip);
    if (status) {
        free(records);
        return phema_fail_in(err, status, "%s", checkpoint->path);
    }
    *out = records;
    *n = n_records;
    return PHEMA_OK;
}

bool phema_record_is_switched_off(const struct phema_record *record, struct phema_span content)
{
    struct phema_span data = {NULL, 0};
    return record->crc == 0 &&
           phema_span_part(&data, content, record->offset, record->size_bytes) &&
           phema_crc32(0, data.data, data.size) != 0;
}
