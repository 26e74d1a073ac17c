// SPDX-License-Identifier: Apache-2.0
/* journal.c - PATH.journal: append-only records. A first line names the output. Each record has its
 * size before it, and after it a checksum over its bytes and its offset. The checksum reveals a
 * record that a kill or a power failure has torn. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "phema/checksum.h"
#include "phema/cleanup.h"
#include "phema/path.h"
#include "writer_internal.h"

static const char magic[] = "posthoc-ema journal 1 ";

#define MAGIC_BYTES  (sizeof(magic) - 1)
#define HEADER_BYTES (MAGIC_BYTES + PHEMA_PART_DIGEST) /* a newline instead of the digest's NUL */

#define SIZE_BYTES     ((size_t)8)
#define CHECKSUM_BYTES ((size_t)8)

struct phema_writer_journal {
    struct pending file; /* without a lock */
    uint64_t at;         /* offset of the next record */
    uint64_t size_bytes; /* of the file as it was opened */
    uint8_t *data;       /* [capacity] the current record with its size and checksum */
    size_t capacity;
};

/* ---- Existing journals ---- */

/* The first line of a journal of this digest. */
static void write_header(char header[HEADER_BYTES + 1], const char *digest)
{
    (void)snprintf(header, HEADER_BYTES + 1, "%s%-*.*s\n", magic, PHEMA_PART_DIGEST - 1,
                   PHEMA_PART_DIGEST - 1, digest);
}

static bool is_of_digest(const char *header, const char *digest)
{
    char wanted[HEADER_BYTES + 1];
    write_header(wanted, digest);
    return strcmp(header, wanted) == 0;
}

/* -1 where the file is absent or not a journal.
 *   header  out: its first line, which may be torn: shorter, or zeros
 * PHEMA_ERR_OUTPUT  it belongs to another user, or others may write it */
static enum phema_status open_existing(int *out, char header[HEADER_BYTES + 1], const char *path,
                                       int flags, struct phema_error *err)
{
    struct stat st;
    *out = -1;
    memset(header, 0, HEADER_BYTES + 1);
    if (lstat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return PHEMA_OK;
    enum phema_status status = leftover_open(out, AT_FDCWD, path, path, flags, S_IFREG, err);
    if (status || *out < 0)
        return status;
    ssize_t n = -1;
    if (fstat(*out, &st) == 0 && st.st_nlink == 1)
        n = file_read_fully(*out, header, HEADER_BYTES, 0);
    bool is_zero = n >= 0;
    for (ssize_t i = 0; i < n; i++)
        is_zero = is_zero && header[i] == 0;
    size_t n_compared = n < (ssize_t)MAGIC_BYTES ? (size_t)n : MAGIC_BYTES;
    if (is_zero || (n >= 0 && memcmp(header, magic, n_compared) == 0))
        return PHEMA_OK;
    (void)close(*out);
    *out = -1;
    return PHEMA_OK;
}

PHEMA_FALLIBLE phema_writer_journal_look(enum phema_writer_journal_state *out, const char *path,
                                         const char *digest, struct phema_error *err)
{
    int descriptor = -1;
    char header[HEADER_BYTES + 1];
    enum phema_status status = open_existing(&descriptor, header, path, O_RDONLY, err);
    *out = PHEMA_WRITER_JOURNAL_ABSENT;
    if (descriptor < 0)
        return status;
    (void)close(descriptor);
    if (header[HEADER_BYTES - 1] == '\n')
        *out =
            is_of_digest(header, digest) ? PHEMA_WRITER_JOURNAL_OURS : PHEMA_WRITER_JOURNAL_OTHER;
    return status;
}

/* Removes a journal; any other file stays. */
static enum phema_status remove_ours(const char *path, struct phema_error *err)
{
    int descriptor = -1;
    char header[HEADER_BYTES + 1];
    enum phema_status status = open_existing(&descriptor, header, path, O_RDONLY, err);
    if (descriptor < 0)
        return status;
    (void)unlink(path);
    (void)close(descriptor);
    return status;
}

void phema_writer_journal_remove(const char *path)
{
    struct phema_error ignored;
    if (remove_ours(path, &ignored))
        return;
}

void phema_writer_journal_remove_of(const char *output)
{
    struct stat st;
    char *trimmed = phema_path_trim(output);
    char *path = path_add(trimmed, ".journal"), *partial = path_add(trimmed, ".partial");
    if (partial && path && lstat(partial, &st) && errno == ENOENT)
        phema_writer_journal_remove(path);
    free(trimmed);
    free(partial);
    free(path);
}

/* ---- Opening ---- */

static enum phema_status create(struct phema_writer_journal *journal, const char *digest,
                                struct phema_error *err)
{
    char header[HEADER_BYTES + 1];
    write_header(header, digest);
    enum phema_status status = remove_ours(journal->file.path, err);
    if (status)
        return status;
    struct pending *file = &journal->file;
    phema_cleanup_hold();
    file->lock = partial_create_file(AT_FDCWD, file->partial_path);
    if (file->lock < 0 && errno == EEXIST)
        status = phema_fail(err, PHEMA_ERR_OUTPUT,
                            "%s: expected a journal of this program, found something else; remove "
                            "it",
                            journal->file.path);
    else if (file->lock < 0)
        status = writer_fail_errno(err, journal->file.path, "cannot be made", errno);
    else
        status = pending_guard(file, err);
    file->is_ours = file->lock >= 0;
    phema_cleanup_resume();
    journal->size_bytes = HEADER_BYTES;
    if (!status && file_write_fully(file->lock, header, HEADER_BYTES, 0))
        status = writer_fail_errno(err, file->path, "cannot be written", errno);
    return status;
}

/* Opens a journal of this digest where one exists, or else creates it. */
static enum phema_status begin(struct phema_writer_journal *journal, const char *digest,
                               bool resumes, struct phema_error *err)
{
    struct stat st;
    char header[HEADER_BYTES + 1];
    struct pending *file = &journal->file;
    enum phema_status status =
        resumes ? open_existing(&file->lock, header, file->path, O_RDWR, err) : PHEMA_OK;
    if (file->lock >= 0 && is_of_digest(header, digest) && fstat(file->lock, &st) == 0) {
        file->is_ours = file->is_kept = true;
        journal->size_bytes = (uint64_t)st.st_size;
        return PHEMA_OK;
    }
    if (file->lock >= 0)
        (void)close(file->lock);
    file->lock = -1;
    return status ? status : create(journal, digest, err);
}

PHEMA_FALLIBLE phema_writer_journal_open(struct phema_writer_journal **out, const char *path,
                                         const char *digest, bool resumes, struct phema_error *err)
{
    struct phema_writer_journal *journal = calloc(1, sizeof(*journal));
    if (!journal)
        return phema_fail_memory(err);
    journal->at = HEADER_BYTES;
    enum phema_status status = pending_init(&journal->file, path, "")
                                   ? begin(journal, digest, resumes, err)
                                   : phema_fail_memory(err);
    if (status)
        phema_writer_journal_close(journal);
    else
        *out = journal;
    return status;
}

/* ---- Records ---- */

static enum phema_status reserve(struct phema_writer_journal *journal, size_t size,
                                 struct phema_error *err)
{
    if (size <= journal->capacity)
        return PHEMA_OK;
    uint8_t *data = realloc(journal->data, size);
    if (!data)
        return phema_fail_memory(err);
    journal->data = data;
    journal->capacity = size;
    return PHEMA_OK;
}

/* Where the file cannot be read it ends: the run then makes the tiles again. */
PHEMA_FALLIBLE phema_writer_journal_next(struct phema_span *out,
                                         struct phema_writer_journal *journal,
                                         struct phema_error *err)
{
    uint8_t head[SIZE_BYTES];
    int file = journal->file.lock;
    *out = (struct phema_span){NULL, 0};
    uint64_t left = journal->size_bytes - journal->at;
    if (left < SIZE_BYTES + CHECKSUM_BYTES ||
        file_read_fully(file, head, SIZE_BYTES, journal->at) != (ssize_t)SIZE_BYTES)
        return PHEMA_OK;
    uint64_t size = phema_load_u64(head);
    if (size > PHEMA_MAX_JOURNAL_RECORD || size > left - SIZE_BYTES - CHECKSUM_BYTES)
        return PHEMA_OK;
    enum phema_status status = reserve(journal, (size_t)size + CHECKSUM_BYTES, err);
    if (status)
        return status;
    size_t n = (size_t)size + CHECKSUM_BYTES;
    if (file_read_fully(file, journal->data, n, journal->at + SIZE_BYTES) != (ssize_t)n ||
        phema_load_u64(journal->data + size) !=
            phema_hash_at(journal->data, (size_t)size, journal->at))
        return PHEMA_OK;
    journal->at += SIZE_BYTES + size + CHECKSUM_BYTES;
    *out = (struct phema_span){journal->data, (size_t)size};
    return PHEMA_OK;
}

void phema_writer_journal_again(struct phema_writer_journal *journal)
{
    journal->at = HEADER_BYTES;
}

PHEMA_FALLIBLE phema_writer_journal_append(struct phema_writer_journal *journal,
                                           struct phema_span record, struct phema_error *err)
{
    if (record.size > PHEMA_MAX_JOURNAL_RECORD)
        return phema_fail(err, PHEMA_BUG, "%s: a record of %zu bytes", journal->file.path,
                          record.size);
    enum phema_status status = reserve(journal, SIZE_BYTES + record.size + CHECKSUM_BYTES, err);
    if (status)
        return status;
    phema_store_u64(journal->data, record.size);
    memcpy(journal->data + SIZE_BYTES, record.data, record.size);
    phema_store_u64(journal->data + SIZE_BYTES + record.size,
                    phema_hash_at(record.data, record.size, journal->at));
    size_t size = SIZE_BYTES + record.size + CHECKSUM_BYTES;
    /* a torn record may be longer than this one, and must not follow it */
    if (journal->size_bytes > journal->at && file_truncate(journal->file.lock, journal->at))
        return writer_fail_errno(err, journal->file.path, "cannot be cut", errno);
    if (file_write_fully(journal->file.lock, journal->data, size, journal->at))
        return writer_fail_errno(err, journal->file.path, "cannot be written", errno);
    journal->at += size;
    journal->size_bytes = journal->at;
    return PHEMA_OK;
}

void phema_writer_journal_keep(struct phema_writer_journal *journal, bool keeps)
{
    pending_keep(&journal->file, keeps);
}

void phema_writer_journal_close(struct phema_writer_journal *journal)
{
    if (!journal)
        return;
    pending_clear(&journal->file);
    free(journal->data);
    free(journal);
}
