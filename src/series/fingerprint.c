// SPDX-License-Identifier: Apache-2.0
/* fingerprint.c - by what a snapshot is known again without reading all of it: its size, the names,
 * dtypes and shapes of its tensors, and the bytes of some of them, which are all of them where they
 * are few. Which ones follows from names, shapes and the form of the file, not from other snapshots
 * or options of a run: so that a later run sees the same. */
#include <stdlib.h>
#include <string.h>

#include "phema/checksum.h"
#include "phema/memory.h"
#include "phema/series.h"

/* Windows begin at multiples of as many elements of a tensor: on bytes, whatever the dtype. */
#define WINDOW_ELEMS ((uint64_t)1024)

/* So few are all looked at: half a MiB of F16, less than a millisecond. Of more, windows evenly
 * over the model: another training, another time or an edited tensor shows in any of them; each is
 * a seek where files are on a disk. */
#define ALL_ELEMS ((uint64_t)256 * WINDOW_ELEMS)
#define N_WINDOWS ((uint64_t)64)

/* For each one a block of 128 KiB is decompressed at least. */
#define N_DECODED_WINDOWS ((uint64_t)16)

/* Standard streams, and what else is open meanwhile. */
#define OTHER_DESCRIPTORS 32

struct window {
    size_t tensor;
    uint64_t first, n_elems;
};

struct windows {
    struct window *items;
    size_t n, capacity;
    bool is_all;
};

static enum phema_status add_window(struct windows *windows, size_t tensor, uint64_t first,
                                    uint64_t n_elems, struct phema_error *err)
{
    if (windows->n == windows->capacity) {
        size_t capacity = windows->capacity ? 2 * windows->capacity : (size_t)N_WINDOWS;
        struct window *items = realloc(windows->items, capacity * sizeof(*items));
        if (!items)
            return phema_fail_memory(err);
        windows->items = items;
        windows->capacity = capacity;
    }
    windows->items[windows->n++] = (struct window){
        tensor, first, n_elems - first < WINDOW_ELEMS ? n_elems - first : WINDOW_ELEMS};
    return PHEMA_OK;
}

/* Of the names of one storage the first one. */
static bool is_looked_at(const struct phema_series *series, size_t i)
{
    return series->tensors[i].same_as == i && series->tensors[i].tensor.n_elems;
}

static enum phema_status add_all(struct windows *windows, const struct phema_series *series,
                                 struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    windows->is_all = true;
    for (size_t i = 0; i < series->n_tensors && !status; i++) {
        uint64_t n = is_looked_at(series, i) ? series->tensors[i].tensor.n_elems : 0;
        for (uint64_t first = 0; first < n && !status; first += WINDOW_ELEMS)
            status = add_window(windows, i, first, n, err);
    }
    return status;
}

/* Around n_windows elements, from the first of all to the last. */
static enum phema_status add_some(struct windows *windows, const struct phema_series *series,
                                  uint64_t n_elems, uint64_t n_windows, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    uint64_t before = 0; /* elements of the tensors that were passed */
    uint64_t w = 0;
    for (size_t i = 0; i < series->n_tensors && !status; i++) {
        uint64_t n = is_looked_at(series, i) ? series->tensors[i].tensor.n_elems : 0;
        uint64_t last = UINT64_MAX; /* where two fall into one it is taken once */
        for (; w < n_windows && !status; w++) {
            uint64_t rest = (n_elems - 1) % (n_windows - 1);
            uint64_t at = (n_elems - 1) / (n_windows - 1) * w + rest * w / (n_windows - 1);
            if (at >= before + n)
                break;
            uint64_t first = (at - before) / WINDOW_ELEMS * WINDOW_ELEMS;
            if (first != last)
                status = add_window(windows, i, first, n, err);
            last = first;
        }
        before += n;
    }
    return status;
}

static enum phema_status choose(struct windows *windows, const struct phema_series *series,
                                uint64_t n_windows, struct phema_error *err)
{
    uint64_t n_elems = 0;
    for (size_t i = 0; i < series->n_tensors; i++)
        if (is_looked_at(series, i))
            n_elems += series->tensors[i].tensor.n_elems;
    *windows = (struct windows){0};
    return n_elems <= ALL_ELEMS ? add_all(windows, series, err)
                                : add_some(windows, series, n_elems, n_windows, err);
}

/* ---- A snapshot ---- */

struct identifying {
    const struct phema_series *series;
    struct windows mapped, decoded;
    struct phema_hash *hash;
    char listing[PHEMA_DIGEST]; /* of names, dtypes and shapes, which all snapshots share */
    uint8_t *scratch;           /* for a window */
};

static void hash_listing(struct identifying *identifying)
{
    const struct phema_series *series = identifying->series;
    struct phema_hash *hash = identifying->hash;
    phema_hash_start(hash);
    for (size_t i = 0; i < series->n_tensors; i++) {
        const struct phema_tensor *tensor = &series->tensors[i].tensor;
        const char *dtype = phema_dtype_name(tensor->dtype);
        phema_hash_add_u64(hash, tensor->name_size);
        phema_hash_add(hash, tensor->name, tensor->name_size);
        phema_hash_add(hash, dtype, strlen(dtype) + 1);
        phema_hash_add_u64(hash, tensor->rank);
        for (unsigned d = 0; d < tensor->rank; d++)
            phema_hash_add_u64(hash, tensor->shape[d]);
    }
    phema_hash_digest(identifying->listing, hash);
}

static enum phema_status allocate(struct identifying *identifying, struct phema_error *err)
{
    enum phema_status status = phema_hash_new(&identifying->hash, err);
    if (!status)
        status = choose(&identifying->mapped, identifying->series, N_WINDOWS, err);
    if (!status)
        status = choose(&identifying->decoded, identifying->series, N_DECODED_WINDOWS, err);
    size_t size = (size_t)WINDOW_ELEMS * 16; /* of the widest dtype, and more */
    identifying->scratch = aligned_alloc(PHEMA_INPUT_ALIGNMENT, size + PHEMA_INPUT_ROOM);
    if (!status && !identifying->scratch)
        return phema_fail_memory(err);
    return status;
}

/* Small reads bring no more than pages; where all is looked at, mapping is quicker. */
static enum phema_status open_reader(struct phema_reader **reader,
                                     const struct phema_checkpoint *checkpoint, bool is_all,
                                     struct phema_error *err)
{
    static const struct phema_reading reading = {.io = PHEMA_IO_READ};
    uint64_t limit;
    enum phema_status status = phema_reader_open(reader, checkpoint, err);
    if (!status && !is_all &&
        phema_raise_fd_limit(phema_checkpoint_n_files(checkpoint) + OTHER_DESCRIPTORS, &limit))
        status = phema_reader_use(*reader, &reading, err);
    return status;
}

/* As if nothing had been read. */
static void release(const struct phema_checkpoint *checkpoint)
{
    for (size_t f = 0; f < phema_checkpoint_n_files(checkpoint); f++) {
        const struct phema_file *file = phema_checkpoint_file(checkpoint, f);
        phema_file_evict(file, 0, phema_file_span(file).size);
    }
}

/* What is not in the page cache is asked for all at once, as disks and servers like it; whether
 * anything is missing a window in the middle tells. */
static void ask(const struct identifying *identifying, size_t k, const struct windows *windows,
                const struct phema_reader *reader)
{
    for (size_t w = 0; w < windows->n; w++) {
        const struct window *window = &windows->items[(windows->n / 2 + w) % windows->n];
        struct phema_tensor tensor = phema_series_tensor_in(identifying->series, k, window->tensor);
        if (tensor.is_compressed || tensor.stride || tensor.parts)
            continue;
        uint64_t first = tensor.offset + phema_dtype_bytes(tensor.dtype, window->first);
        if (w == 0 && phema_reader_is_cached(reader, tensor.file, first))
            return;
        phema_reader_ask(reader, tensor.file, first,
                         phema_dtype_bytes(tensor.dtype, window->n_elems));
    }
}

/* Frames are decompressed from their beginning: the first window in one moves to the first place in
 * it that holds a window of its tensor, or to the first tensor in it, of those listed before.
 *   entry   that of the window before, becomes that of this one */
static struct window moved(const struct identifying *identifying, size_t k, struct window window,
                           uint64_t *entry)
{
    const struct phema_series *series = identifying->series;
    struct phema_tensor tensor = phema_series_tensor_in(series, k, window.tensor);
    uint64_t last = *entry, first = 0;
    if (!tensor.is_compressed)
        return window;
    *entry = phema_checkpoint_entry(series->snapshots[k].checkpoint, tensor.file,
                                    tensor.offset + phema_dtype_bytes(tensor.dtype, window.first));
    if (*entry == last)
        return window;
    if (*entry > tensor.offset) {
        uint64_t size = phema_dtype_bytes(tensor.dtype, WINDOW_ELEMS);
        first = (*entry - tensor.offset + size - 1) / size * WINDOW_ELEMS;
    }
    for (size_t i = window.tensor; i-- > 0 && *entry < tensor.offset;) {
        struct phema_tensor before = phema_series_tensor_in(series, k, i);
        if (before.offset < *entry || before.offset > tensor.offset)
            break;
        if (!is_looked_at(series, i))
            continue;
        window.tensor = i;
        tensor = before;
    }
    uint64_t left = tensor.n_elems - first;
    return (struct window){window.tensor, first, left < WINDOW_ELEMS ? left : WINDOW_ELEMS};
}

static enum phema_status hash_windows(struct identifying *identifying, size_t k,
                                      struct phema_error *err)
{
    const struct phema_snapshot *snapshot = &identifying->series->snapshots[k];
    const struct windows *windows =
        snapshot->is_compressed ? &identifying->decoded : &identifying->mapped;
    struct phema_reader *reader = NULL;
    enum phema_status status = open_reader(&reader, snapshot->checkpoint, windows->is_all, err);
    if (!status)
        ask(identifying, k, windows, reader);
    uint64_t entry = UINT64_MAX;
    for (size_t w = 0; w < windows->n && !status; w++) {
        struct window window = windows->items[w];
        if (!windows->is_all)
            window = moved(identifying, k, window, &entry);
        struct phema_tensor tensor = phema_series_tensor_in(identifying->series, k, window.tensor);
        const uint8_t *data = NULL;
        status = phema_reader_read(&data, reader, &tensor, window.first, window.n_elems,
                                   identifying->scratch, err);
        if (!status)
            phema_hash_add(identifying->hash, data,
                           (size_t)phema_dtype_bytes(tensor.dtype, window.n_elems));
    }
    phema_reader_close(reader);
    release(snapshot->checkpoint);
    return status;
}

uint64_t phema_snapshot_bytes(const struct phema_snapshot *snapshot)
{
    uint64_t bytes = 0;
    size_t n_files = snapshot->checkpoint ? phema_checkpoint_n_files(snapshot->checkpoint) : 0;
    for (size_t f = 0; f < n_files; f++)
        bytes += phema_file_span(phema_checkpoint_file(snapshot->checkpoint, f)).size;
    return bytes;
}

static enum phema_status identify(struct identifying *identifying, struct phema_snapshot *snapshot,
                                  size_t k, struct phema_error *err)
{
    const struct phema_checkpoint *checkpoint = snapshot->checkpoint;
    phema_hash_start(identifying->hash);
    phema_hash_add(identifying->hash, identifying->listing, sizeof(identifying->listing));
    enum phema_status status = PHEMA_OK;
    if (!snapshot->is_compressed || phema_checkpoint_can_seek(checkpoint))
        status = hash_windows(identifying, k, err);
    if (!status)
        phema_hash_digest(snapshot->digest, identifying->hash);
    return status;
}

PHEMA_FALLIBLE phema_series_identify(struct phema_series *series, struct phema_error *err)
{
    struct identifying identifying = {.series = series};
    enum phema_status status = allocate(&identifying, err);
    if (!status)
        hash_listing(&identifying);
    for (size_t k = 0; k < series->n && !status; k++)
        if (series->snapshots[k].checkpoint)
            status = identify(&identifying, &series->snapshots[k], k, err);
    phema_hash_free(identifying.hash);
    free(identifying.mapped.items);
    free(identifying.decoded.items);
    free(identifying.scratch);
    return status;
}
