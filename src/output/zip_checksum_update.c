// SPDX-License-Identifier: Apache-2.0
/* zip_checksum_update.c - Recompute CRCs of changed zip records. Threads claim records from one
 * counter; each record is read back once. */
#include "sink_internal.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "phema/parallel.h"

struct checksum_update {
    struct phema_writer *const *writers; /* of the files */
    const struct phema_record *records;  /* [n] */
    size_t n;
    _Atomic size_t next;
};

static enum phema_status update_record(struct phema_writer *writer,
                                       const struct phema_record *record, uint8_t *chunk,
                                       struct phema_error *err)
{
    uint32_t crc = 0;
    enum phema_status status = PHEMA_OK;
    for (uint64_t done = 0; done < record->size_bytes && !status;) {
        uint64_t left = record->size_bytes - done;
        size_t size = left < ZIP_CHECKSUMS_THREAD_BYTES ? (size_t)left : ZIP_CHECKSUMS_THREAD_BYTES;
        status = phema_writer_read(writer, record->offset + done, chunk, size, err);
        if (!status)
            crc = phema_crc32(crc, chunk, size);
        done += size;
    }
    uint8_t bytes[4];
    phema_store_u32(bytes, crc);
    for (unsigned i = 0; i < record->n_crc && !status; i++)
        status = phema_writer_write(writer, record->crc_at[i], bytes, sizeof(bytes), err);
    return status;
}

static enum phema_status update_records(void *context, size_t thread, struct phema_error *err)
{
    (void)thread;
    struct checksum_update *update = context;
    uint8_t *chunk = malloc(ZIP_CHECKSUMS_THREAD_BYTES);
    if (!chunk)
        return phema_fail_memory(err);
    enum phema_status status = PHEMA_OK;
    while (!status) {
        size_t i = atomic_fetch_add(&update->next, 1);
        if (i >= update->n)
            break;
        status = update_record(update->writers[update->records[i].file], &update->records[i], chunk,
                               err);
    }
    free(chunk);
    return status;
}

PHEMA_FALLIBLE zip_checksums_update(const struct sink *sink, const struct phema_record *records,
                                    size_t n, unsigned n_threads, struct phema_error *err)
{
    struct checksum_update update = {sink->writers, records, n, 0};
    return phema_parallel_try(n_threads, n_threads, update_records, &update, err);
}

/* ---- Which records change ---- */

/* Keeps the records that hold one of the extents, and were written with checksums. Both lists are
 * sorted. Returns how many are left. */
static size_t keep_changed(struct phema_record *records, size_t n_records,
                           const struct phema_extent *extents, size_t n,
                           const struct phema_checkpoint *template)
{
    size_t x = 0, n_kept = 0;
    for (size_t r = 0; r < n_records; r++) {
        const struct phema_record *record = &records[r];
        while (x < n && (extents[x].file < record->file ||
                         (extents[x].file == record->file && extents[x].start < record->offset)))
            x++;
        bool is_changed = x < n && extents[x].file == record->file &&
                          extents[x].start - record->offset < record->size_bytes;
        if (is_changed &&
            !phema_record_is_switched_off(
                record, phema_file_span(phema_checkpoint_file(template, record->file))))
            records[n_kept++] = *record;
    }
    return n_kept;
}

PHEMA_FALLIBLE zip_changed_records(struct phema_record **out, size_t *n, const struct sink *sink,
                                   struct phema_error *err)
{
    const struct phema_checkpoint *template = sink->output->template;
    struct phema_extent *extents = NULL;
    struct phema_record *records = NULL;
    size_t n_extents = 0, n_records = 0, output = (size_t)(sink->output - sink->outputs->items);
    *n = 0;
    enum phema_status status = phema_checkpoint_records(&records, &n_records, template, err);
    if (status || n_records == 0) {
        *out = records;
        return status;
    }
    status = phema_output_extents(&extents, &n_extents, sink->plan, sink->outputs, output, err);
    if (!status)
        *n = keep_changed(records, n_records, extents, n_extents, template);
    free(extents);
    *out = records;
    return status;
}

bool zip_has_checksums(const struct phema_checkpoint *template)
{
    const char *format = phema_checkpoint_format(template);
    return strcmp(format, "torch-zip") == 0 || strcmp(format, "dcp") == 0;
}
