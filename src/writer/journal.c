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

#include "partial.h"
#include "phema/checksum.h"
#include "phema/cleanup.h"
#include "phema/path.h"
#include "write_error.h"
#include "writer_internal.h"

static const char magic[] = "posthoc-ema journal 1 ";

#define MAGIC_BYTES  (sizeof(magic) - 1)
#define HEADER_BYTES (MAGIC_BYTES + PHEMA_PART_DIGEST) /* a newline instead of the digest's NUL */

#define SIZE_BYTES     ((size_t)8)
#define CHECKSUM_BYTES ((size_t)8)

struct phema_writer_journal {
    char *path;
    int descriptor;
    uint64_t at;         /* offset of the next record */
    uint64_t size_bytes; /* of the file as it was opened */
    uint8_t *data;       /* [capacity] the current record with its size and checksum */
    size_t capacity;
    bool is_kept;
    struct phema_cleanup_entry *entry;
};

/* ---- Existing journals ---- */

struct existing {
    int descriptor; /* -1 where the file is absent or not a plain file */
    bool is_ours;   /* a journal, perhaps torn */
    char header[HEADER_BYTES + 1];
};

/* The first line of a journal of this digest. */
static void write_header(char header[HEADER_BYTES + 1], const char *digest)
{
    (void)snprintf(header, HEADER_BYTES + 1, "%s%-*.*s\n", magic, PHEMA_PART_DIGEST - 1,
                   PHEMA_PART_DIGEST - 1, digest);
}

static bool is_of_digest(const struct existing *existing, const char *digest)
{
    char wanted[HEADER_BYTES + 1];
    write_header(wanted, digest);
    return existing->is_ours && strcmp(existing->header, wanted) == 0;
}

/* true also for a journal whose first line was torn: a shorter line, or zeros. */
static bool is_journal(const char *found, size_t n)
{
    size_t n_compared = n < MAGIC_BYTES ? n : MAGIC_BYTES;
    bool is_zero = true;
    for (size_t i = 0; i < n; i++)
        is_zero = is_zero && found[i] == 0;
    return is_zero || memcmp(found, magic, n_compared) == 0;
}

/* PHEMA_ERR_OUTPUT: it belongs to another user, or others may write it. */
static enum phema_status open_existing(struct existing *out, const char *path, int flags,
                                       struct phema_error *err)
{
    struct stat st;
    *out = (struct existing){.descriptor = -1};
    if (lstat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return PHEMA_OK;
    enum phema_status status =
        leftover_open(&out->descriptor, AT_FDCWD, path, path, flags, S_IFREG, err);
    if (status || out->descriptor < 0)
        return status;
    ssize_t n = -1;
    if (fstat(out->descriptor, &st) == 0 && st.st_nlink == 1)
        n = file_read_fully(out->descriptor, out->header, HEADER_BYTES, 0);
    out->is_ours = n >= 0 && is_journal(out->header, (size_t)n);
    return PHEMA_OK;
}

PHEMA_FALLIBLE phema_writer_journal_look(enum phema_writer_journal_state *out, const char *path,
                                         const char *digest, struct phema_error *err)
{
    struct existing existing;
    enum phema_status status = open_existing(&existing, path, O_RDONLY, err);
    if (existing.descriptor >= 0)
        (void)close(existing.descriptor);
    *out = PHEMA_WRITER_JOURNAL_ABSENT;
    if (existing.is_ours && existing.header[HEADER_BYTES - 1] == '\n')
        *out = is_of_digest(&existing, digest) ? PHEMA_WRITER_JOURNAL_OURS
                                               : PHEMA_WRITER_JOURNAL_OTHER;
    return status;
}

/* Removes a journal; any other file stays. */
static enum phema_status remove_ours(const char *path, struct phema_error *err)
{
    struct existing existing;
    enum phema_status status = open_existing(&existing, path, O_RDONLY, err);
    if (existing.is_ours)
        (void)unlink(path);
    if (existing.descriptor >= 0)
        (void)close(existing.descriptor);
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
    char *trimmed = phema_path_trim(output), *path = NULL;
    char *partial = trimmed ? path_partial(trimmed) : NULL;
    if (!trimmed || asprintf(&path, "%s.journal", trimmed) < 0)
        path = NULL;
    if (partial && path && lstat(partial, &st) && errno == ENOENT)
        phema_writer_journal_remove(path);
    free(trimmed);
    free(partial);
    free(path);
}

/* ---- Opening ---- */

static enum phema_status write_bytes(const struct phema_writer_journal *journal, const void *data,
                                     size_t size, uint64_t offset, struct phema_error *err)
{
    return file_write_fully(journal->descriptor, data, size, offset)
               ? writer_fail_errno(err, journal->path, "cannot be written", errno)
               : PHEMA_OK;
}

/* Opens a journal of this digest; descriptor -1 where no such journal exists. */
static enum phema_status open_resumed(struct phema_writer_journal *journal, const char *digest,
                                      struct phema_error *err)
{
    struct stat st;
    struct existing existing;
    enum phema_status status = open_existing(&existing, journal->path, O_RDWR, err);
    if (status || existing.descriptor < 0)
        return status;
    if (!is_of_digest(&existing, digest) || fstat(existing.descriptor, &st)) {
        (void)close(existing.descriptor);
        return PHEMA_OK;
    }
    journal->descriptor = existing.descriptor;
    journal->size_bytes = (uint64_t)st.st_size;
    return PHEMA_OK;
}

static enum phema_status create(struct phema_writer_journal *journal, const char *digest,
                                struct phema_error *err)
{
    char header[HEADER_BYTES + 1];
    write_header(header, digest);
    enum phema_status status = remove_ours(journal->path, err);
    if (status)
        return status;
    phema_cleanup_hold();
    journal->descriptor = partial_create_file(AT_FDCWD, journal->path);
    if (journal->descriptor < 0 && errno == EEXIST)
        status = phema_fail(err, PHEMA_ERR_OUTPUT,
                            "%s: expected a journal of this program, found something else; remove "
                            "it",
                            journal->path);
    else if (journal->descriptor < 0)
        status = writer_fail_errno(err, journal->path, "cannot be made", errno);
    else
        status = phema_cleanup_add_partial(&journal->entry, journal->path, false, err);
    phema_cleanup_resume();
    if (status)
        return status;
    journal->size_bytes = HEADER_BYTES;
    return write_bytes(journal, header, HEADER_BYTES, 0, err);
}

static enum phema_status begin(struct phema_writer_journal *journal, const char *digest,
                               bool resumes, struct phema_error *err)
{
    enum phema_status status = resumes ? open_resumed(journal, digest, err) : PHEMA_OK;
    if (status)
        return status;
    journal->is_kept = journal->descriptor >= 0;
    return journal->is_kept ? PHEMA_OK : create(journal, digest, err);
}

PHEMA_FALLIBLE phema_writer_journal_open(struct phema_writer_journal **out, const char *path,
                                         const char *digest, bool resumes, struct phema_error *err)
{
    struct phema_writer_journal *journal = calloc(1, sizeof(*journal));
    if (!journal)
        return phema_fail_memory(err);
    *journal = (struct phema_writer_journal){.descriptor = -1, .at = HEADER_BYTES};
    journal->path = strdup(path);
    enum phema_status status =
        journal->path ? begin(journal, digest, resumes, err) : phema_fail_memory(err);
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

/* false at the end of the file, and where it cannot be read: the run then makes the tiles again. */
static bool read_bytes(const struct phema_writer_journal *journal, uint8_t *data, size_t size,
                       uint64_t offset)
{
    return file_read_fully(journal->descriptor, data, size, offset) == (ssize_t)size;
}

PHEMA_FALLIBLE phema_writer_journal_next(struct phema_span *out,
                                         struct phema_writer_journal *journal,
                                         struct phema_error *err)
{
    uint8_t head[SIZE_BYTES];
    *out = (struct phema_span){NULL, 0};
    uint64_t left = journal->size_bytes - journal->at;
    if (left < SIZE_BYTES + CHECKSUM_BYTES || !read_bytes(journal, head, SIZE_BYTES, journal->at))
        return PHEMA_OK;
    uint64_t size = phema_load_u64(head);
    if (size > PHEMA_MAX_JOURNAL_RECORD || size > left - SIZE_BYTES - CHECKSUM_BYTES)
        return PHEMA_OK;
    enum phema_status status = reserve(journal, (size_t)size + CHECKSUM_BYTES, err);
    if (status)
        return status;
    if (!read_bytes(journal, journal->data, (size_t)size + CHECKSUM_BYTES,
                    journal->at + SIZE_BYTES) ||
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
        return phema_fail(err, PHEMA_BUG, "%s: a record of %zu bytes", journal->path, record.size);
    enum phema_status status = reserve(journal, SIZE_BYTES + record.size + CHECKSUM_BYTES, err);
    if (status)
        return status;
    phema_store_u64(journal->data, record.size);
    memcpy(journal->data + SIZE_BYTES, record.data, record.size);
    phema_store_u64(journal->data + SIZE_BYTES + record.size,
                    phema_hash_at(record.data, record.size, journal->at));
    size_t size = SIZE_BYTES + record.size + CHECKSUM_BYTES;
    /* a torn record may be longer than this one, and must not follow it */
    if (journal->size_bytes > journal->at && file_truncate(journal->descriptor, journal->at))
        return writer_fail_errno(err, journal->path, "cannot be cut", errno);
    status = write_bytes(journal, journal->data, size, journal->at, err);
    if (status)
        return status;
    journal->at += size;
    journal->size_bytes = journal->at;
    return PHEMA_OK;
}

void phema_writer_journal_keep(struct phema_writer_journal *journal, bool keeps)
{
    journal->is_kept = keeps;
    if (!keeps)
        return;
    phema_cleanup_remove(journal->entry);
    journal->entry = NULL;
}

void phema_writer_journal_close(struct phema_writer_journal *journal)
{
    if (!journal)
        return;
    if (journal->descriptor >= 0) {
        if (!journal->is_kept)
            (void)unlink(journal->path);
        (void)close(journal->descriptor);
    }
    phema_cleanup_remove(journal->entry);
    free(journal->data);
    free(journal->path);
    free(journal);
}
