// SPDX-License-Identifier: Apache-2.0
/* part_marker.c - contents and locks of markers. The contents are JSON. Incomplete JSON is that of a
 * part that has just begun or was killed: it counts as not done. Each field is named once, in a
 * function that reads and writes it. */
#include "part.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "phema/json.h"
#include "phema/setting.h"
#include "writer_internal.h"
#include "zstd_encoder.h"

/* The marker of a directory of a hundred thousand files, or of a sidecar as long as those. Larger
 * files were not written by this program. */
#define MAX_MARKER_BYTES ((size_t)16 << 20)

/* ---- Fields ---- */

/* A marker that is written, or else read. Once something is missing or out of bounds (PHEMA_NO), or
 * memory is, nothing more is read. */
struct marker_io {
    struct phema_json_out *out;  /* NULL: it is read */
    const struct phema_json *in; /* the object that is read */
    enum phema_status status;
    struct phema_error *err;
};

static void require(struct marker_io *io, bool is_met)
{
    if (!is_met && !io->status && !io->out)
        io->status = PHEMA_NO;
}

static void transfer_u64(struct marker_io *io, const char *key, uint64_t *value, uint64_t most)
{
    if (io->out)
        phema_json_out_u64(io->out, key, *value);
    else
        require(io, phema_json_u64(value, phema_json_get(io->in, key)) && *value <= most);
}

static void transfer_bool(struct marker_io *io, const char *key, bool *value)
{
    if (io->out)
        phema_json_out_bool(io->out, key, *value);
    else
        *value = phema_json_boolean(phema_json_get(io->in, key));
}

/* A text without NUL, or NULL; borrowed from the document. */
static const char *read_text_at(const struct marker_io *io, const char *key)
{
    size_t size = 0;
    const char *text = phema_json_string(phema_json_get(io->in, key), &size);
    return text && strlen(text) == size ? text : NULL;
}

static void transfer_sum(struct marker_io *io, const char *key, struct phema_hash_sum *sum)
{
    char digits[PHEMA_DIGEST];
    phema_hash_sum_show(digits, sum);
    const char *text = io->out ? NULL : read_text_at(io, key);
    if (io->out)
        phema_json_out_string(io->out, key, digits);
    else
        require(io, text && phema_hash_sum_read(sum, text));
}

/* Number of elements of an array. One that is read gets memory for them.
 *   array  address of its pointer, which stays NULL without memory
 *   n      of one that is written */
static size_t transfer_array(struct marker_io *io, const char *key, void *array, size_t n,
                             size_t size)
{
    if (io->out || io->status)
        return io->out ? n : 0;
    n = phema_json_length(phema_json_get(io->in, key));
    void *items = calloc(n + 1, size);
    memcpy(array, &items, sizeof(items));
    if (!items)
        io->status = phema_fail_memory(io->err);
    return items ? n : 0;
}

static void transfer_numbers(struct marker_io *io, const char *key, uint64_t *items, size_t n)
{
    const struct phema_json *array = io->out ? NULL : phema_json_get(io->in, key);
    if (io->out)
        phema_json_out_open(io->out, key, '[');
    for (size_t i = 0; i < n && !io->status; i++) {
        if (io->out)
            phema_json_out_u64(io->out, NULL, items[i]);
        else
            require(io, phema_json_u64(&items[i], phema_json_at(array, i)));
    }
    if (io->out)
        phema_json_out_close(io->out, ']');
}

typedef void transfer_one(struct marker_io *io, struct part_marker *marker, size_t i);

static void transfer_objects(struct marker_io *io, const char *key, struct part_marker *marker,
                             size_t n, transfer_one *transfer_item)
{
    const struct phema_json *outer = io->in;
    const struct phema_json *array = io->out ? NULL : phema_json_get(outer, key);
    if (io->out)
        phema_json_out_open(io->out, key, '[');
    for (size_t i = 0; i < n && !io->status; i++) {
        if (io->out)
            phema_json_out_open(io->out, NULL, '{');
        else
            io->in = phema_json_at(array, i);
        transfer_item(io, marker, i);
        if (io->out)
            phema_json_out_close(io->out, '}');
    }
    if (io->out)
        phema_json_out_close(io->out, ']');
    io->in = outer;
}

/* ---- Numbers of which most are absent ---- */

/* present: a bit of all numbers that are there, or 0 where none of them is 0 */
static void read_run(struct marker_io *io, const struct phema_json *run, const char *key,
                     struct part_numbers *all, uint64_t present)
{
    const struct phema_json *numbers = phema_json_get(run, key);
    size_t n = phema_json_length(numbers);
    uint64_t first = 0;
    if (!phema_json_u64(&first, phema_json_get(run, "first")) || first < all->n ||
        first > PART_MOST_BLOCKS || n > PART_MOST_BLOCKS) {
        require(io, false);
        return;
    }
    uint64_t *grown = realloc(all->items, ((size_t)first + n + 1) * sizeof(*grown));
    if (!grown) {
        io->status = phema_fail_memory(io->err);
        return;
    }
    memset(&grown[all->n], 0, ((size_t)first + n + 1 - all->n) * sizeof(*grown));
    all->items = grown;
    all->n = (size_t)first + n;
    for (size_t x = 0; x < n && !io->status; x++) {
        uint64_t *item = &grown[first + x];
        require(io, phema_json_u64(item, phema_json_at(numbers, x)) && *item <= UINT32_MAX);
        *item |= present;
        require(io, *item);
    }
}

static void transfer_runs(struct marker_io *io, const char *key, struct part_numbers *all,
                          uint64_t present)
{
    const struct phema_json *runs = io->out ? NULL : phema_json_get(io->in, "runs");
    for (size_t r = 0; r < phema_json_length(runs) && !io->status; r++)
        read_run(io, phema_json_at(runs, r), key, all, present);
    if (!io->out)
        return;
    phema_json_out_open(io->out, "runs", '[');
    for (size_t i = 0; i < all->n; i++) {
        if (!all->items[i])
            continue;
        phema_json_out_open(io->out, NULL, '{');
        phema_json_out_u64(io->out, "first", i);
        phema_json_out_open(io->out, key, '[');
        for (; i < all->n && all->items[i]; i++)
            phema_json_out_u64(io->out, NULL, (uint32_t)all->items[i]);
        phema_json_out_close(io->out, ']');
        phema_json_out_close(io->out, '}');
    }
    phema_json_out_close(io->out, ']');
}

/* ---- Contents ---- */

static void transfer_file(struct marker_io *io, struct part_marker *marker, size_t f)
{
    struct phema_writer_part_file *file = &marker->files[f];
    if (io->out && file->name)
        phema_json_out_string(io->out, "name", file->name);
    const char *name = io->out ? NULL : read_text_at(io, "name");
    transfer_u64(io, "bytes", &file->size_bytes, UINT64_MAX);
    if (io->out || io->status)
        return;
    require(io, !marker->is_directory || (name && !strchr(name, '/')));
    file->name = name && !io->status ? strdup(name) : NULL;
    if (name && !io->status && !file->name)
        io->status = phema_fail_memory(io->err);
}

/* The first part alone has the text. */
static void transfer_sidecar(struct marker_io *io, struct part_marker *marker)
{
    if (io->out && marker->sidecar_bytes)
        phema_json_out_u64(io->out, "sidecar_bytes", marker->sidecar_bytes);
    if (io->out && marker->sidecar && marker->part == 1)
        phema_json_out_string(io->out, "sidecar", marker->sidecar);
    if (io->out || io->status)
        return;
    size_t size = 0;
    const char *text = phema_json_string(phema_json_get(io->in, "sidecar"), &size);
    if (phema_json_get(io->in, "sidecar_bytes"))
        transfer_u64(io, "sidecar_bytes", &marker->sidecar_bytes, UINT64_MAX);
    else if (!text)
        return;
    require(io, !marker->is_directory && marker->sidecar_bytes);
    require(io, !text || (size == marker->sidecar_bytes && strlen(text) == size));
    marker->sidecar = text && !io->status ? strdup(text) : NULL;
    if (text && !io->status && !marker->sidecar)
        io->status = phema_fail_memory(io->err);
}

static void transfer_part_sum(struct marker_io *io, struct part_marker *marker, size_t k)
{
    transfer_u64(io, "at", &marker->sums[k].offset, UINT64_MAX);
    transfer_sum(io, "sum", &marker->sums[k].sum);
}

/* Offsets ascend, and lie in the sidecar or the file. */
static void transfer_sums(struct marker_io *io, struct part_marker *marker)
{
    uint64_t end = 0;
    size_t size = PHEMA_DIGEST - 1;
    marker->n_sums =
        transfer_array(io, "sums", &marker->sums, marker->n_sums, sizeof(*marker->sums));
    if (!marker->n_sums)
        return;
    transfer_u64(io, "sums_file", &marker->sums_file, UINT64_MAX);
    require(io, marker->sums_file < marker->n_files);
    transfer_objects(io, "sums", marker, marker->n_sums, transfer_part_sum);
    for (size_t k = 0; k < marker->n_sums && !io->status && !io->out; k++) {
        uint64_t at = marker->sums[k].offset;
        uint64_t size_bytes = marker->sidecar_bytes ? marker->sidecar_bytes
                                                    : marker->files[marker->sums_file].size_bytes;
        require(io, at >= end && size <= size_bytes && at <= size_bytes - size);
        end = at + size;
    }
}

static void transfer_crc(struct marker_io *io, struct part_marker *marker, size_t k)
{
    struct phema_writer_part_crc *crc = &marker->crcs[k];
    uint64_t file = crc->file, value = crc->crc;
    size_t n = io->out ? crc->n_places : phema_json_length(phema_json_get(io->in, "at"));
    transfer_u64(io, "file", &file, UINT64_MAX);
    require(io, file < marker->n_files && n >= 1 && n <= ARRAY_LEN(crc->at));
    if (!io->status)
        transfer_numbers(io, "at", crc->at, n);
    transfer_u64(io, "crc", &value, UINT32_MAX);
    for (unsigned x = 0; x < n && !io->status && !io->out; x++) {
        uint64_t size_bytes = marker->files[file].size_bytes;
        require(io, size_bytes >= sizeof(crc->crc) && crc->at[x] <= size_bytes - sizeof(crc->crc));
    }
    if (io->out)
        return;
    crc->file = (size_t)file;
    crc->n_places = (unsigned)n;
    crc->crc = (uint32_t)value;
}

static void transfer_blocks(struct marker_io *io, struct part_marker *marker)
{
    transfer_u64(io, "block_bytes", &marker->block_bytes, UINT64_MAX);
    require(io, marker->block_bytes);
    transfer_runs(io, "crcs", &marker->blocks, PART_BLOCK_WRITTEN);
}

/* The frames that the part has compressed, and in the first part's marker where all frames end. */
static void transfer_frames(struct marker_io *io, struct part_marker *marker)
{
    struct phema_writer_frames *all = &marker->all_frames;
    uint64_t level = (uint64_t)all->level, library = all->library, sum = 0;
    bool is_done = marker->state == MARKER_DONE;
    transfer_u64(io, "level", &level, INT32_MAX);
    transfer_u64(io, "library", &library, UINT32_MAX);
    transfer_bool(io, "verify", &marker->verifies);
    all->level = (int)level;
    all->library = (unsigned)library;
    if (io->out ? is_done && marker->frames_bytes
                : phema_json_length(phema_json_get(io->in, "runs")) > 0) {
        struct phema_hash_sum hash = {.low = marker->frames_hash};
        transfer_u64(io, "bytes", &marker->frames_bytes, UINT64_MAX);
        transfer_sum(io, "hash", &hash);
        transfer_runs(io, "sizes", &marker->frames, 0);
        marker->frames_hash = hash.low;
        for (size_t f = 0; f < marker->frames.n; f++)
            sum += marker->frames.items[f];
        require(io, sum == marker->frames_bytes);
    }
    if (io->out && !(is_done && marker->part == 1))
        return;
    all->n = transfer_array(io, "ends", &all->ends, all->n, sizeof(*all->ends));
    if (io->out || all->n)
        transfer_numbers(io, "ends", all->ends, all->n);
    uint64_t end = 0; /* the frames cover the content, and none is too large */
    for (size_t f = 0; f < all->n && !io->out; f++) {
        require(io, all->ends[f] >= end && all->ends[f] - end <= ZSTD_FRAME_BYTES);
        end = all->ends[f];
    }
    require(io, !all->n || end == marker->files[0].size_bytes);
}

/* An object of its own. *is_there: whether it is written, or out: read */
static void transfer_object(struct marker_io *io, const char *key, bool *is_there,
                            struct part_marker *marker,
                            void (*transfer)(struct marker_io *io, struct part_marker *marker))
{
    const struct phema_json *outer = io->in;
    if (!io->out)
        *is_there = (io->in = phema_json_get(outer, key)) != NULL;
    if (*is_there && io->out)
        phema_json_out_open(io->out, key, '{');
    if (*is_there)
        transfer(io, marker);
    if (*is_there && io->out)
        phema_json_out_close(io->out, '}');
    io->in = outer;
}

static void transfer_marker(struct marker_io *io, struct part_marker *marker)
{
    bool is_done = marker->state == MARKER_DONE;
    if (io->out) {
        phema_json_out_u64(io->out, "version", 1);
        phema_json_out_string(io->out, "program", "posthoc-ema " PHEMA_VERSION);
        phema_json_out_u64(io->out, "part", marker->part);
        phema_json_out_u64(io->out, "parts", marker->n_parts);
    }
    transfer_bool(io, "done", &is_done);
    const char *digest = io->out ? marker->digest : read_text_at(io, "digest");
    if (io->out)
        phema_json_out_string(io->out, "digest", digest);
    require(io, digest && strlen(digest) + 1 == sizeof(marker->digest));
    if (!io->status)
        memmove(marker->digest, digest, sizeof(marker->digest));
    transfer_bool(io, "directory", &marker->is_directory);
    if (io->out && marker->inode <= INT64_MAX) /* the largest integer that readers of JSON accept */
        phema_json_out_u64(io->out, "inode", marker->inode);
    else if (!io->out && !phema_json_u64(&marker->inode, phema_json_get(io->in, "inode")))
        marker->inode = 0;
    marker->n_files =
        transfer_array(io, "files", &marker->files, marker->n_files, sizeof(*marker->files));
    transfer_objects(io, "files", marker, marker->n_files, transfer_file);
    require(io, marker->is_directory || marker->n_files == 1);
    transfer_sidecar(io, marker);
    if (!io->out || is_done) {
        transfer_sums(io, marker);
        marker->n_crcs =
            transfer_array(io, "crcs", &marker->crcs, marker->n_crcs, sizeof(*marker->crcs));
        if (marker->n_crcs)
            transfer_objects(io, "crcs", marker, marker->n_crcs, transfer_crc);
        /* markers of earlier versions have no checksums */
        transfer_object(io, "blocks", &marker->has_blocks, marker, transfer_blocks);
    }
    transfer_object(io, "frames", &marker->is_compressed, marker, transfer_frames);
    require(io, !marker->is_compressed || !marker->is_directory);
    marker->state = is_done ? MARKER_DONE : MARKER_UNFINISHED;
}

/* ---- Reading ---- */

/* An incomplete text gives MARKER_UNFINISHED. */
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
    for (int attempt = 0; attempt < 2 && !status && size && marker->state != MARKER_DONE;
         attempt++) {
        struct phema_json *document = NULL;
        struct marker_io io = {.err = err};
        part_marker_clear(marker);
        io.status = phema_json_parse(&document, (struct phema_span){data, (size_t)size}, err);
        io.in = document;
        if (!io.status)
            transfer_marker(&io, marker);
        phema_json_free(document);
        if (io.status == PHEMA_NO || io.status == PHEMA_ERR_FILE) {
            part_marker_clear(marker);
            marker->state = MARKER_UNFINISHED;
        } else {
            status = io.status;
        }
    }
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
        free(part_writable(marker->files[f].name));
    free(marker->files);
    free(marker->sidecar);
    free(marker->sums);
    free(marker->crcs);
    free(marker->blocks.items);
    free(marker->frames.items);
    free(marker->all_frames.ends);
    *marker = (struct part_marker){0};
}

/* ---- Writing ---- */

PHEMA_FALLIBLE part_marker_write(int descriptor, const char *path, struct part_marker *marker,
                                 bool syncs, struct phema_error *err)
{
    struct phema_strbuf text = {0};
    struct phema_json_out out = {.text = &text, .is_pretty = true};
    struct marker_io io = {.out = &out, .err = err};
    phema_json_out_open(&out, NULL, '{');
    transfer_marker(&io, marker);
    phema_json_out_close(&out, '}');
    phema_strbuf_puts(&text, "\n");
    enum phema_status status = phema_strbuf_check(&text, err);
    if (!status && text.size > MAX_MARKER_BYTES)
        status = phema_fail(
            err, PHEMA_ERR_OUTPUT,
            "%s: would hold %zu bytes, expected %zu at most; write the output without %s", path,
            text.size, MAX_MARKER_BYTES, phema_setting_name(PHEMA_SET_PART));
    if (!status && file_truncate(descriptor, 0))
        status = writer_fail_errno(err, path, "cannot be emptied", errno);
    if (!status && file_write_fully(descriptor, text.data, text.size, 0))
        status = writer_fail_errno(err, path, "cannot be written", errno);
    if (!status && syncs && file_sync(descriptor))
        status = writer_fail_errno(err, path, "cannot be synced", errno);
    phema_strbuf_clear(&text);
    return status;
}
