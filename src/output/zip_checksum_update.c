// SPDX-License-Identifier: Apache-2.0
/* zip_checksum_update.c - see zip_checksum_update.h. Records are taken from one counter; each is
 * read back once. */
#include "zip_checksum_update.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "phema/checksum.h"
#include "phema/output.h"
#include "phema/parallel.h"

#define CHUNK_BYTES ((size_t)1 << 20)

struct checksum_update {
    struct phema_writer *writer;
    const struct phema_record *records;
    const bool *is_changed; /* [n] */
    size_t n;
    _Atomic size_t next;
};

struct mender {
    struct checksum_update *checksum_update;
    enum phema_status status;
    struct phema_error err;
};

static enum phema_status mend(const struct checksum_update *checksum_update,
                              const struct phema_record *record, uint8_t *chunk,
                              struct phema_error *err)
{
    uint32_t crc = 0;
    for (uint64_t done = 0; done < record->size_bytes;) {
        uint64_t left = record->size_bytes - done;
        size_t size = left < CHUNK_BYTES ? (size_t)left : CHUNK_BYTES;
        enum phema_status status =
            phema_writer_read(checksum_update->writer, record->offset + done, chunk, size, err);
        if (status)
            return status;
        crc = phema_crc32(crc, chunk, size);
        done += size;
    }
    const uint8_t bytes[4] = {(uint8_t)crc, (uint8_t)(crc >> 8), (uint8_t)(crc >> 16),
                              (uint8_t)(crc >> 24)};
    enum phema_status status = PHEMA_OK;
    for (unsigned i = 0; i < record->n_crc && !status; i++)
        status =
            phema_writer_put(checksum_update->writer, record->crc_at[i], bytes, sizeof(bytes), err);
    return status;
}

static void *work(void *argument)
{
    struct mender *mender = argument;
    struct checksum_update *checksum_update = mender->checksum_update;
    uint8_t *chunk = malloc(CHUNK_BYTES);
    if (!chunk)
        mender->status = phema_fail_memory(&mender->err);
    while (!mender->status) {
        size_t i = atomic_fetch_add(&checksum_update->next, 1);
        if (i >= checksum_update->n)
            break;
        if (checksum_update->is_changed[i])
            mender->status =
                mend(checksum_update, &checksum_update->records[i], chunk, &mender->err);
    }
    free(chunk);
    return NULL;
}

/* The caller is the first of the menders; threads that cannot be had are done without. */
static enum phema_status update_all(struct checksum_update *checksum_update, unsigned n_threads,
                                    struct phema_error *err)
{
    struct mender *menders = calloc(n_threads, sizeof(*menders));
    pthread_t *threads = calloc(n_threads, sizeof(*threads));
    enum phema_status status = menders && threads ? PHEMA_OK : phema_fail_memory(err);
    unsigned n_started = 1;
    for (unsigned t = 0; t < n_threads && !status; t++)
        menders[t].checksum_update = checksum_update;
    while (!status && n_started < n_threads &&
           phema_thread_start(&threads[n_started], work, &menders[n_started]) == 0)
        n_started++;
    if (!status)
        (void)work(&menders[0]);
    for (unsigned t = 1; !status && t < n_started; t++)
        (void)pthread_join(threads[t], NULL);
    for (unsigned t = 0; !status && t < n_started; t++)
        if (menders[t].status) {
            status = menders[t].status;
            *err = menders[t].err;
        }
    free(menders);
    free(threads);
    return status;
}

/* The record that a place lies in, or NULL. */
static const struct phema_record *find(const struct phema_record *records, size_t n,
                                       uint64_t offset)
{
    size_t low = 0, high = n; /* the first that begins behind it */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (records[middle].offset <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    const struct phema_record *record = low ? &records[low - 1] : NULL;
    return record && offset - record->offset < record->size_bytes ? record : NULL;
}

PHEMA_FALLIBLE zip_checksums_update(struct phema_writer *writer,
                                    const struct phema_checkpoint *template,
                                    const struct phema_tensor_location *places, uint64_t shift,
                                    const bool *is_replaced, size_t n, unsigned n_threads,
                                    struct phema_error *err)
{
    struct phema_record *records = NULL;
    size_t n_records = 0;
    enum phema_status status = phema_checkpoint_records(&records, &n_records, template, err);
    if (status || n_records == 0)
        return status;
    struct phema_span content = phema_file_span(phema_checkpoint_file(template, 0));
    bool *is_changed = calloc(n_records, sizeof(*is_changed));
    if (!is_changed)
        status = phema_fail_memory(err);
    for (size_t i = 0; i < n && !status; i++) {
        const struct phema_record *record =
            is_replaced[i] ? find(records, n_records, places[i].offset + shift) : NULL;
        if (record)
            is_changed[record - records] = true;
    }
    for (size_t r = 0; r < n_records && !status; r++)
        is_changed[r] = is_changed[r] && !phema_record_is_switched_off(&records[r], content);
    struct checksum_update checksum_update = {writer, records, is_changed, n_records, 0};
    if (!status)
        status = update_all(&checksum_update, n_threads, err);
    free(is_changed);
    free(records);
    return status;
}

uint64_t sink_checksum_thread_bytes(void)
{
    return CHUNK_BYTES;
}

bool zip_has_checksums(const struct phema_checkpoint *template)
{
    return strcmp(phema_checkpoint_format(template), "torch-zip") == 0;
}

bool sink_has_checksums(const struct phema_outputs *outputs)
{
    return outputs->form == PHEMA_FORM_TEMPLATE && zip_has_checksums(outputs->items[0].template);
}
