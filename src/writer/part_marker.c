// SPDX-License-Identifier: Apache-2.0
/* part_marker.c - contents and lock of a part's marker file. The contents are JSON. Incomplete JSON
 * is that of a part that has just begun or was killed: it counts as not done. */
#include "part.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "partial.h"
#include "phema/json.h"
#include "write_error.h"
#include "writer_internal.h"

/* The marker of a directory of a hundred thousand files. Larger files were not written by this
 * program. */
#define MAX_MARKER_BYTES ((size_t)16 << 20)

/* PHEMA_NO: incomplete. */
static enum phema_status read_files(struct part_marker *marker, const struct phema_json *files,
                                    struct phema_error *err)
{
    size_t n = phema_json_length(files);
    marker->files = calloc(n + 1, sizeof(*marker->files));
    if (!marker->files)
        return phema_fail_memory(err);
    for (size_t f = 0; f < n; f++) {
        const struct phema_json *item = phema_json_at(files, f);
        struct part_marker_file *file = &marker->files[marker->n_files++];
        size_t size = 0;
        const char *name = phema_json_string(phema_json_get(item, "name"), &size);
        if (!phema_json_u64(&file->size_bytes, phema_json_get(item, "bytes")) ||
            (marker->is_directory && (!name || strlen(name) != size || strchr(name, '/'))))
            return PHEMA_NO;
        file->name = name ? strdup(name) : NULL;
        if (name && !file->name)
            return phema_fail_memory(err);
    }
    return marker->is_directory || n == 1 ? PHEMA_OK : PHEMA_NO;
}

/* PHEMA_NO: incomplete, or an offset outside of the first file. */
static enum phema_status read_sums(struct part_marker *marker, const struct phema_json *sums,
                                   struct phema_error *err)
{
    size_t n = phema_json_length(sums);
    uint64_t end = 0, size_bytes = marker->n_files ? marker->files[0].size_bytes : 0;
    marker->sums = calloc(n + 1, sizeof(*marker->sums));
    if (!marker->sums)
        return phema_fail_memory(err);
    for (size_t k = 0; k < n; k++) {
        const struct phema_json *item = phema_json_at(sums, k);
        struct phema_writer_part_sum *sum = &marker->sums[marker->n_sums++];
        size_t size = 0;
        const char *digits = phema_json_string(phema_json_get(item, "sum"), &size);
        if (!phema_json_u64(&sum->offset, phema_json_get(item, "at")) || !digits ||
            strlen(digits) != size || !phema_hash_sum_read(&sum->sum, digits) ||
            sum->offset < end || size > size_bytes || sum->offset > size_bytes - size)
            return PHEMA_NO;
        end = sum->offset + size;
    }
    return PHEMA_OK;
}

static enum phema_status read_document(struct part_marker *marker,
                                       const struct phema_json *document, struct phema_error *err)
{
    size_t size = 0;
    const char *digest = phema_json_string(phema_json_get(document, "digest"), &size);
    if (!digest || size + 1 != PHEMA_PART_DIGEST || strlen(digest) != size)
        return PHEMA_NO;
    memcpy(marker->digest, digest, size + 1);
    marker->is_directory = phema_json_boolean(phema_json_get(document, "directory"));
    if (!phema_json_u64(&marker->inode, phema_json_get(document, "inode")))
        marker->inode = 0;
    enum phema_status status = read_files(marker, phema_json_get(document, "files"), err);
    if (!status)
        status = read_sums(marker, phema_json_get(document, "sums"), err);
    if (!status && phema_json_boolean(phema_json_get(document, "done")))
        marker->state = MARKER_DONE;
    return status;
}

/* PHEMA_NO: incomplete. */
static enum phema_status read_text(struct part_marker *marker, struct phema_span text,
                                   struct phema_error *err)
{
    struct phema_json *document = NULL;
    enum phema_status status = phema_json_parse(&document, text, err);
    if (!status)
        status = read_document(marker, document, err);
    phema_json_free(document);
    return status == PHEMA_ERR_FILE ? PHEMA_NO : status;
}

/* An incomplete text gives MARKER_UNFINISHED. */
static enum phema_status read_attempt(struct part_marker *marker, struct phema_span text,
                                      struct phema_error *err)
{
    part_marker_clear(marker);
    marker->state = MARKER_UNFINISHED;
    enum phema_status status = read_text(marker, text, err);
    if (status != PHEMA_NO)
        return status;
    part_marker_clear(marker);
    marker->state = MARKER_UNFINISHED;
    return PHEMA_OK;
}

static enum phema_status read_open(struct part_marker *marker, int descriptor, const char *path,
                                   struct phema_error *err)
{
    struct stat st;
    if (fstat(descriptor, &st))
        return writer_fail_errno(err, path, "cannot be examined", errno);
    if ((uint64_t)st.st_size > MAX_MARKER_BYTES)
        return phema_fail(err, PHEMA_ERR_OUTPUT,
                          "%s: expected what a part of an output leaves, found something else; "
                          "remove it",
                          path);
    uint8_t *data = malloc((size_t)st.st_size + 1);
    if (!data)
        return phema_fail_memory(err);
    /* the marker may be written at this moment, and be larger or smaller than it was */
    ssize_t size = file_read_fully(descriptor, data, (size_t)st.st_size, 0);
    enum phema_status status =
        size < 0 ? writer_fail_errno(err, path, "cannot be read", errno) : PHEMA_OK;
    marker->state = MARKER_UNFINISHED;
    /* twice: where an allocation fails, the JSON library may silently lose a character */
    for (int attempt = 0; attempt < 2 && !status && size && marker->state != MARKER_DONE; attempt++)
        status = read_attempt(marker, (struct phema_span){data, (size_t)size}, err);
    free(data);
    if (!status && flock(descriptor, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK)
        marker->state = MARKER_RUNNING;
    return status;
}

PHEMA_FALLIBLE part_marker_read(struct part_marker *out, const char *path, struct phema_error *err)
{
    struct part_marker marker = {0};
    int descriptor = -1;
    enum phema_status status =
        leftover_open(&descriptor, AT_FDCWD, path, path, O_RDONLY, S_IFREG, err);
    if (!status && descriptor >= 0)
        status = read_open(&marker, descriptor, path, err);
    if (descriptor >= 0)
        (void)close(descriptor);
    if (status)
        part_marker_clear(&marker);
    else
        *out = marker;
    return status;
}

void part_marker_clear(struct part_marker *marker)
{
    for (size_t f = 0; f < marker->n_files; f++)
        free(marker->files[f].name);
    free(marker->files);
    free(marker->sums);
    *marker = (struct part_marker){0};
}

static void write_sums(struct phema_json_out *out, const struct phema_writer_part_options *options,
                       bool is_done)
{
    if (!is_done || !options->n_sums)
        return;
    phema_json_out_open(out, "sums", '[');
    for (size_t k = 0; k < options->n_sums; k++) {
        char digits[PHEMA_DIGEST];
        phema_hash_sum_show(digits, &options->sums[k].sum);
        phema_json_out_open(out, NULL, '{');
        phema_json_out_u64(out, "at", options->sums[k].offset);
        phema_json_out_string(out, "sum", digits);
        phema_json_out_close(out, '}');
    }
    phema_json_out_close(out, ']');
}

static void write_text(struct phema_strbuf *text, const struct phema_writer_part_options *options,
                       uint64_t inode, bool is_done)
{
    struct phema_json_out out = {.text = text, .is_pretty = true};
    phema_json_out_open(&out, NULL, '{');
    phema_json_out_u64(&out, "version", 1);
    phema_json_out_string(&out, "program", "posthoc-ema " PHEMA_VERSION);
    phema_json_out_u64(&out, "part", options->part);
    phema_json_out_u64(&out, "parts", options->n_parts);
    phema_json_out_bool(&out, "done", is_done);
    phema_json_out_string(&out, "digest", options->digest);
    phema_json_out_bool(&out, "directory", options->is_directory);
    if (inode <= INT64_MAX) /* the largest integer that readers of JSON accept */
        phema_json_out_u64(&out, "inode", inode);
    phema_json_out_open(&out, "files", '[');
    for (size_t f = 0; f < options->n_files; f++) {
        phema_json_out_open(&out, NULL, '{');
        if (options->files[f].name)
            phema_json_out_string(&out, "name", options->files[f].name);
        phema_json_out_u64(&out, "bytes", options->files[f].size_bytes);
        phema_json_out_close(&out, '}');
    }
    phema_json_out_close(&out, ']');
    write_sums(&out, options, is_done);
    phema_json_out_close(&out, '}');
    phema_strbuf_puts(text, "\n");
}

PHEMA_FALLIBLE part_marker_write(int descriptor, const char *path,
                                 const struct phema_writer_part_options *options, uint64_t inode,
                                 bool is_done, struct phema_error *err)
{
    struct phema_strbuf text = {0};
    write_text(&text, options, inode, is_done);
    enum phema_status status = phema_strbuf_check(&text, err);
    if (!status && file_truncate(descriptor, 0))
        status = writer_fail_errno(err, path, "cannot be emptied", errno);
    if (!status && file_write_fully(descriptor, text.data, text.size, 0))
        status = writer_fail_errno(err, path, "cannot be written", errno);
    if (!status && options->syncs && file_sync(descriptor))
        status = writer_fail_errno(err, path, "cannot be synced", errno);
    phema_strbuf_clear(&text);
    return status;
}
