// SPDX-License-Identifier: Apache-2.0
/* part_marker.c - markers of parts, PATH.part-I-of-N: names, contents and locks. The contents are
 * JSON. Incomplete JSON is that of a part that has just begun or was killed: it counts as not
 * done. */
#include "part.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "directory.h"
#include "partial.h"
#include "phema/array.h"
#include "phema/json.h"
#include "phema/path.h"
#include "phema/setting.h"
#include "write_error.h"
#include "writer_internal.h"

/* The marker of a directory of a hundred thousand files, or of a sidecar as long as those. Larger
 * files were not written by this program. */
#define MAX_MARKER_BYTES ((size_t)16 << 20)

/* ---- Names ---- */

static const char infix[] = ".part-", of[] = "-of-";

char *part_marker_path(const char *path, uint64_t part, uint64_t n_parts)
{
    char *out = NULL;
    if (asprintf(&out, "%s%s%llu%s%llu", path, infix, (unsigned long long)part, of,
                 (unsigned long long)n_parts) < 0)
        return NULL;
    return out;
}

/* Parses a number from 1 on, without leading zeros. Returns the text after it, or NULL. */
static const char *read_number(uint64_t *out, const char *text)
{
    uint64_t value = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9' && value <= PHEMA_MAX_PARTS; at++)
        value = 10 * value + (uint64_t)(*at - '0');
    if (at == text || *text == '0' || value > PHEMA_MAX_PARTS)
        return NULL;
    *out = value;
    return at;
}

/* The ".part-I-of-N" at the end of a name, or NULL. */
static const char *find_suffix(uint64_t *part, uint64_t *n_parts, const char *name)
{
    const char *found = NULL;
    for (const char *at = name; (at = strstr(at, infix)); at++)
        found = at;
    const char *after = found ? read_number(part, found + strlen(infix)) : NULL;
    if (!after || strncmp(after, of, strlen(of)) != 0)
        return NULL;
    after = read_number(n_parts, after + strlen(of));
    return after && !*after && found != name && *part <= *n_parts ? found : NULL;
}

static int compare_names(const void *a, const void *b)
{
    const struct part_marker_name *left = a, *right = b;
    int order = strcmp(left->base, right->base);
    if (order)
        return order;
    if (left->n_parts != right->n_parts)
        return left->n_parts < right->n_parts ? -1 : 1;
    return (left->part > right->part) - (left->part < right->part);
}

/* base: NULL for any */
static enum phema_status add_name(struct part_marker_list *list, size_t *capacity, const char *name,
                                  const char *base, struct phema_error *err)
{
    uint64_t part = 0, n_parts = 0;
    const char *end = find_suffix(&part, &n_parts, name);
    size_t size = end ? (size_t)(end - name) : 0;
    if (!end || (base && (strlen(base) != size || memcmp(base, name, size) != 0)))
        return PHEMA_OK;
    if (!phema_array_grow(&list->items, capacity, list->n, sizeof(*list->items)))
        return phema_fail_memory(err);
    struct part_marker_name *item = &list->items[list->n];
    *item = (struct part_marker_name){strndup(name, size), part, n_parts};
    if (!item->base)
        return phema_fail_memory(err);
    list->n++;
    return PHEMA_OK;
}

/* Adds the markers of base, or with base NULL all, in no order. */
static enum phema_status add_names(struct part_marker_list *list, DIR *stream,
                                   const char *directory, const char *base, struct phema_error *err)
{
    size_t capacity = 0;
    for (const char *name = NULL; (name = directory_next_name(stream));) {
        enum phema_status status = add_name(list, &capacity, name, base, err);
        if (status)
            return status;
    }
    return errno ? writer_fail_errno(err, directory, "cannot be listed", errno) : PHEMA_OK;
}

/* The markers of base, or with base NULL those of all outputs in the directory. Empty where the
 * directory does not exist. */
static enum phema_status list_markers(struct part_marker_list *out, const char *directory,
                                      const char *base, struct phema_error *err)
{
    DIR *stream = opendir(directory);
    if (!stream && (errno == ENOENT || errno == ENOTDIR))
        return PHEMA_OK;
    if (!stream)
        return writer_fail_errno(err, directory, "cannot be listed", errno);
    enum phema_status status = add_names(out, stream, directory, base, err);
    (void)closedir(stream);
    if (status)
        part_marker_list_clear(out);
    else if (out->n)
        qsort(out->items, out->n, sizeof(*out->items), compare_names);
    return status;
}

PHEMA_FALLIBLE part_marker_list_make(struct part_marker_list *out, const char *path,
                                     struct phema_error *err)
{
    char *directory = phema_path_directory(path);
    if (!directory)
        return phema_fail_memory(err);
    enum phema_status status = list_markers(out, directory, phema_path_last_name(path), err);
    free(directory);
    return status;
}

void part_marker_list_clear(struct part_marker_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        free(list->items[i].base);
    free(list->items);
    *list = (struct part_marker_list){0};
}

/* ---- Outputs that have parts ---- */

PHEMA_FALLIBLE writer_check_no_parts(const char *path, struct phema_error *err)
{
    struct part_marker_list list = {0};
    enum phema_status status = part_marker_list_make(&list, path, err);
    if (status || !list.n)
        return status;
    const char *name = phema_path_last_name(path);
    status = phema_fail(err, PHEMA_ERR_OUTPUT,
                        "%s: parts are here, such as %s.part-%llu-of-%llu; publish them "
                        "with posthoc-ema join, or remove %s.partial and all %s.part-*",
                        path, name, (unsigned long long)list.items[0].part,
                        (unsigned long long)list.items[0].n_parts, name, name);
    part_marker_list_clear(&list);
    return status;
}

struct path_list {
    char **items;
    size_t n, capacity;
};

/* Owns path, NULL without memory, in any case. */
static enum phema_status add_path(struct path_list *list, char *path, struct phema_error *err)
{
    if (!path || !phema_array_grow(&list->items, &list->capacity, list->n, sizeof(*list->items))) {
        free(path);
        return phema_fail_memory(err);
    }
    list->items[list->n++] = path;
    return PHEMA_OK;
}

/* Markers are sorted by their output. */
static enum phema_status find_inside(struct path_list *found, const char *directory,
                                     struct phema_error *err)
{
    struct part_marker_list list = {0};
    enum phema_status status = list_markers(&list, directory, NULL, err);
    for (size_t i = 0; i < list.n && !status; i++) {
        if (i && strcmp(list.items[i].base, list.items[i - 1].base) == 0)
            continue;
        char *path = NULL;
        bool is_root = strcmp(directory, "/") == 0;
        if (asprintf(&path, "%s%s%s", directory, is_root ? "" : "/", list.items[i].base) < 0)
            path = NULL;
        status = add_path(found, path, err);
    }
    part_marker_list_clear(&list);
    return status;
}

static enum phema_status find(struct path_list *found, const char *path, struct phema_error *err)
{
    struct part_marker_list list = {0};
    enum phema_status status = part_marker_list_make(&list, path, err);
    if (status)
        return status;
    bool is_one = list.n > 0;
    part_marker_list_clear(&list);
    return is_one ? add_path(found, strdup(path), err) : find_inside(found, path, err);
}

PHEMA_FALLIBLE phema_writer_find_parts(char ***out, size_t *n, const char *path,
                                       struct phema_error *err)
{
    char *own = phema_path_trim(path);
    if (!own)
        return phema_fail_memory(err);
    struct path_list found = {0};
    enum phema_status status = find(&found, own, err);
    free(own);
    if (status) {
        for (size_t i = 0; i < found.n; i++)
            free(found.items[i]);
        free(found.items);
        return status;
    }
    *out = found.items;
    *n = found.n;
    return PHEMA_OK;
}

/* ---- Reading ---- */

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

/* PHEMA_NO: incomplete. */
static enum phema_status read_sidecar(struct part_marker *marker, const struct phema_json *document,
                                      struct phema_error *err)
{
    size_t size = 0;
    const struct phema_json *bytes = phema_json_get(document, "sidecar_bytes");
    const char *text = phema_json_string(phema_json_get(document, "sidecar"), &size);
    if (!bytes)
        return text ? PHEMA_NO : PHEMA_OK;
    if (marker->is_directory || !phema_json_u64(&marker->sidecar_bytes, bytes) ||
        !marker->sidecar_bytes || (text && (size != marker->sidecar_bytes || strlen(text) != size)))
        return PHEMA_NO;
    marker->sidecar = text ? strdup(text) : NULL;
    return text && !marker->sidecar ? phema_fail_memory(err) : PHEMA_OK;
}

/* PHEMA_NO: incomplete, or an offset outside of the sidecar or the file. */
static enum phema_status read_sums(struct part_marker *marker, const struct phema_json *document,
                                   struct phema_error *err)
{
    const struct phema_json *sums = phema_json_get(document, "sums");
    size_t n = phema_json_length(sums);
    uint64_t end = 0, file = 0;
    if (n &&
        (!phema_json_u64(&file, phema_json_get(document, "sums_file")) || file >= marker->n_files))
        return PHEMA_NO;
    marker->sums_file = (size_t)file;
    uint64_t size_bytes = marker->sidecar_bytes ? marker->sidecar_bytes
                          : n                   ? marker->files[file].size_bytes
                                                : 0;
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

/* PHEMA_NO: incomplete, or outside of its file. */
static enum phema_status read_crcs(struct part_marker *marker, const struct phema_json *crcs,
                                   struct phema_error *err)
{
    size_t n = phema_json_length(crcs);
    marker->crcs = calloc(n + 1, sizeof(*marker->crcs));
    if (!marker->crcs)
        return phema_fail_memory(err);
    for (size_t k = 0; k < n; k++) {
        const struct phema_json *item = phema_json_at(crcs, k);
        struct phema_writer_part_crc *crc = &marker->crcs[marker->n_crcs++];
        const struct phema_json *places = phema_json_get(item, "at");
        size_t n_places = phema_json_length(places);
        uint64_t file = 0, value = 0;
        if (!phema_json_u64(&file, phema_json_get(item, "file")) || file >= marker->n_files ||
            n_places < 1 || n_places > ARRAY_LEN(crc->at) ||
            !phema_json_u64(&value, phema_json_get(item, "crc")) || value > UINT32_MAX)
            return PHEMA_NO;
        uint64_t size_bytes = marker->files[file].size_bytes;
        for (; crc->n_places < n_places; crc->n_places++) {
            uint64_t *at = &crc->at[crc->n_places];
            if (!phema_json_u64(at, phema_json_at(places, crc->n_places)) ||
                size_bytes < sizeof(crc->crc) || *at > size_bytes - sizeof(crc->crc))
                return PHEMA_NO;
        }
        crc->file = (size_t)file;
        crc->crc = (uint32_t)value;
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
        status = read_sidecar(marker, document, err);
    if (!status)
        status = read_sums(marker, document, err);
    if (!status)
        status = read_crcs(marker, phema_json_get(document, "crcs"), err);
    if (!status)
        status = part_blocks_read(&marker->blocks, phema_json_get(document, "blocks"), err);
    if (!status)
        status = part_frames_read(marker, phema_json_get(document, "frames"), err);
    if (status)
        return status;
    bool is_done = phema_json_boolean(phema_json_get(document, "done"));
    marker->state = is_done ? MARKER_DONE : MARKER_UNFINISHED;
    return PHEMA_OK;
}

/* An incomplete text gives MARKER_UNFINISHED. */
static enum phema_status read_text(struct part_marker *marker, struct phema_span text,
                                   struct phema_error *err)
{
    struct phema_json *document = NULL;
    part_marker_clear(marker);
    enum phema_status status = phema_json_parse(&document, text, err);
    if (!status)
        status = read_document(marker, document, err);
    phema_json_free(document);
    if (status != PHEMA_NO && status != PHEMA_ERR_FILE)
        return status;
    part_marker_clear(marker);
    marker->state = MARKER_UNFINISHED;
    return PHEMA_OK;
}

static enum phema_status read_contents(struct part_marker *marker, int descriptor, const char *path,
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
        status = read_text(marker, (struct phema_span){data, (size_t)size}, err);
    free(data);
    return status;
}

PHEMA_FALLIBLE part_marker_read(struct part_marker *out, const char *path, struct phema_error *err)
{
    int descriptor = -1;
    struct part_marker marker = {0};
    enum phema_status status =
        leftover_open(&descriptor, AT_FDCWD, path, path, O_RDONLY, S_IFREG, err);
    if (status || descriptor < 0)
        return status;
    status = read_contents(&marker, descriptor, path, err);
    if (!status && flock(descriptor, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK)
        marker.state = MARKER_RUNNING;
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
    free(marker->sidecar);
    free(marker->sums);
    free(marker->crcs);
    part_marker_blocks_clear(&marker->blocks);
    free(marker->frames.sizes);
    free(marker->all_frames.ends);
    *marker = (struct part_marker){0};
}

/* ---- Writing ---- */

static void write_sums(struct phema_json_out *out, const struct phema_writer_part_options *options,
                       bool is_done)
{
    if (!is_done || !options->n_sums)
        return;
    phema_json_out_u64(out, "sums_file", options->sums_file);
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

static void write_crcs(struct phema_json_out *out, const struct phema_writer_part_options *options,
                       bool is_done)
{
    if (!is_done || !options->n_crcs)
        return;
    phema_json_out_open(out, "crcs", '[');
    for (size_t k = 0; k < options->n_crcs; k++) {
        phema_json_out_open(out, NULL, '{');
        phema_json_out_u64(out, "file", options->crcs[k].file);
        phema_json_out_open(out, "at", '[');
        for (unsigned x = 0; x < options->crcs[k].n_places; x++)
            phema_json_out_u64(out, NULL, options->crcs[k].at[x]);
        phema_json_out_close(out, ']');
        phema_json_out_u64(out, "crc", options->crcs[k].crc);
        phema_json_out_close(out, '}');
    }
    phema_json_out_close(out, ']');
}

static void write_text(struct phema_strbuf *text, const struct phema_writer_part_options *options,
                       const struct part_blocks *blocks,
                       const struct phema_writer_part_frames *frames, uint64_t inode, bool is_done)
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
    if (options->sidecar) {
        phema_json_out_u64(&out, "sidecar_bytes", strlen(options->sidecar));
        if (options->part == 1)
            phema_json_out_string(&out, "sidecar", options->sidecar);
    }
    write_sums(&out, options, is_done);
    write_crcs(&out, options, is_done);
    if (is_done)
        part_blocks_write(&out, blocks);
    part_frames_write(&out, options, frames, is_done);
    phema_json_out_close(&out, '}');
    phema_strbuf_puts(text, "\n");
}

static enum phema_status replace_contents(int descriptor, const char *path,
                                          const struct phema_strbuf *text, bool syncs,
                                          struct phema_error *err)
{
    if (file_truncate(descriptor, 0))
        return writer_fail_errno(err, path, "cannot be emptied", errno);
    if (file_write_fully(descriptor, text->data, text->size, 0))
        return writer_fail_errno(err, path, "cannot be written", errno);
    if (syncs && file_sync(descriptor))
        return writer_fail_errno(err, path, "cannot be synced", errno);
    return PHEMA_OK;
}

PHEMA_FALLIBLE part_marker_write(int descriptor, const char *path,
                                 const struct phema_writer_part_options *options,
                                 const struct part_blocks *blocks,
                                 const struct phema_writer_part_frames *frames, uint64_t inode,
                                 bool is_done, struct phema_error *err)
{
    struct phema_strbuf text = {0};
    write_text(&text, options, blocks, frames, inode, is_done);
    enum phema_status status = phema_strbuf_check(&text, err);
    if (!status && text.size > MAX_MARKER_BYTES)
        status = phema_fail(
            err, PHEMA_ERR_OUTPUT,
            "%s: would hold %zu bytes, expected %zu at most; write the output without %s", path,
            text.size, MAX_MARKER_BYTES, phema_setting_name(PHEMA_SET_PART));
    if (!status)
        status = replace_contents(descriptor, path, &text, options->syncs, err);
    phema_strbuf_clear(&text);
    return status;
}
