// SPDX-License-Identifier: Apache-2.0
/* fingerprint.c - a short hash that identifies a snapshot without reading all of it: names, dtypes
 * and shapes of its tensors, and some of their bytes, or all of a small model. The choice of bytes
 * follows from names, shapes and compression, not from other snapshots or options, so that every
 * run computes the same hash. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "phema/checksum.h"
#include "phema/parallel.h"
#include "phema/series.h"
#include "sparse_read.h"

/* Windows begin at multiples of this many elements: on a byte boundary for every dtype. */
#define WINDOW_ELEMS ((uint64_t)1024)

/* Up to this many elements are all read: half a MiB of F16, less than a millisecond. Larger models
 * are read in windows, evenly over the model: another training, another time or an edited tensor
 * shows in any of them. Each window is a seek on a disk. */
#define ALL_ELEMS ((uint64_t)256 * WINDOW_ELEMS)
#define N_WINDOWS ((uint64_t)64)

/* Each decompresses a block of 128 KiB at least. */
#define N_DECODED_WINDOWS ((uint64_t)16)

struct windows {
    struct tensor_run *items; /* [n] */
    size_t n;
    bool is_all;
};

static void add_window(struct windows *windows, size_t tensor, uint64_t first, uint64_t n_elems)
{
    windows->items[windows->n++] =
        (struct tensor_run){.tensor = tensor,
                            .first = first,
                            .n = n_elems - first < WINDOW_ELEMS ? n_elems - first : WINDOW_ELEMS};
}

/* Only the first name of a storage is read. */
static bool is_read(const struct phema_series *series, size_t i)
{
    return series->tensors[i].same_as == i && series->tensors[i].tensor.n_elems;
}

static bool is_frozen(const struct phema_series *series, size_t i)
{
    return series->tensors[i].tensor.kind == PHEMA_KIND_FROZEN;
}

/* Around n_windows of n_elems elements, from the first to the last of the frozen tensors, or of the
 * others, which may be much smaller. */
static void add_some(struct windows *windows, const struct phema_series *series, bool of_frozen,
                     uint64_t n_elems, uint64_t n_windows)
{
    uint64_t before = 0; /* elements of earlier tensors */
    uint64_t w = 0;
    for (size_t i = 0; i < series->n_tensors && n_elems; i++) {
        bool is_its = is_read(series, i) && is_frozen(series, i) == of_frozen;
        uint64_t n = is_its ? series->tensors[i].tensor.n_elems : 0;
        uint64_t last = UINT64_MAX; /* two elements may share a window, which is added once */
        for (; w < n_windows; w++) {
            uint64_t rest = (n_elems - 1) % (n_windows - 1);
            uint64_t at = (n_elems - 1) / (n_windows - 1) * w + rest * w / (n_windows - 1);
            if (at >= before + n)
                break;
            uint64_t first = (at - before) / WINDOW_ELEMS * WINDOW_ELEMS;
            if (first != last)
                add_window(windows, i, first, n);
            last = first;
        }
        before += n;
    }
}

static void choose_windows(struct windows *windows, const struct phema_series *series,
                           uint64_t n_windows, struct phema_arena *memory)
{
    uint64_t n_elems[2] = {0}; /* of the frozen tensors second */
    for (size_t i = 0; i < series->n_tensors; i++)
        if (is_read(series, i))
            n_elems[is_frozen(series, i)] += series->tensors[i].tensor.n_elems;
    windows->is_all = n_elems[0] + n_elems[1] <= ALL_ELEMS;
    size_t most = windows->is_all ? (size_t)(ALL_ELEMS / WINDOW_ELEMS) + series->n_tensors
                                  : 2 * (size_t)n_windows;
    windows->items = phema_arena_array(memory, most, sizeof(*windows->items));
    if (!windows->items)
        return;
    for (unsigned of_frozen = 0; of_frozen < 2 && !windows->is_all; of_frozen++)
        add_some(windows, series, of_frozen, n_elems[of_frozen], n_windows);
    for (size_t i = 0; windows->is_all && i < series->n_tensors; i++) {
        uint64_t n = is_read(series, i) ? series->tensors[i].tensor.n_elems : 0;
        for (uint64_t first = 0; first < n; first += WINDOW_ELEMS)
            add_window(windows, i, first, n);
    }
}

/* ---- A snapshot ---- */

struct fingerprinting {
    struct phema_series *series;
    _Atomic bool is_abandoned;
    struct windows mapped, decoded;
    char listing[PHEMA_DIGEST]; /* hash of names, dtypes and shapes, which all snapshots share */
    struct part *parts;         /* [n_parts] */
    size_t n_parts;
    struct phema_arena memory;
};

/* Some of the snapshots, by one thread. */
struct part {
    const struct fingerprinting *fingerprinting;
    struct phema_hash *hash;
    uint8_t *scratch; /* for a window */
};

static void hash_listing(struct fingerprinting *fingerprinting)
{
    const struct phema_series *series = fingerprinting->series;
    struct phema_hash *hash = fingerprinting->parts[0].hash;
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
    phema_hash_digest(fingerprinting->listing, hash);
}

static enum phema_status allocate(struct fingerprinting *fingerprinting, struct phema_error *err)
{
    const struct phema_series *series = fingerprinting->series;
    size_t size = (size_t)WINDOW_ELEMS * 16 + PHEMA_INPUT_ROOM; /* bytes of the widest dtype */
    struct phema_arena *memory = &fingerprinting->memory;
    fingerprinting->n_parts = sparse_count_parts(series);
    fingerprinting->parts =
        phema_arena_array(memory, fingerprinting->n_parts, sizeof(*fingerprinting->parts));
    choose_windows(&fingerprinting->mapped, series, N_WINDOWS, memory);
    choose_windows(&fingerprinting->decoded, series, N_DECODED_WINDOWS, memory);
    enum phema_status status = memory->is_failed ? phema_fail_memory(err) : PHEMA_OK;
    for (size_t p = 0; !status && p < fingerprinting->n_parts; p++) {
        struct part *part = &fingerprinting->parts[p];
        part->fingerprinting = fingerprinting;
        part->scratch = aligned_alloc(PHEMA_INPUT_ALIGNMENT, size);
        status = part->scratch ? phema_hash_new(&part->hash, err) : phema_fail_memory(err);
    }
    return status;
}

/* Frames are decompressed from their beginning. So the first window in a frame moves to the first
 * window of its tensor in that frame, or to the first earlier tensor in the frame.
 *   entry  in: the frame of the previous window; out: of this one */
static struct tensor_run move_window(const struct fingerprinting *fingerprinting, size_t k,
                                     struct tensor_run window, uint64_t *entry)
{
    const struct phema_series *series = fingerprinting->series;
    struct phema_tensor tensor = phema_series_tensor_in(series, k, window.tensor);
    uint64_t last = *entry, first = 0;
    if (!tensor.is_compressed)
        return window;
    *entry = phema_checkpoint_entry(series->snapshots[k].checkpoint,
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
        if (!is_read(series, i))
            continue;
        window.tensor = i;
        tensor = before;
    }
    uint64_t left = tensor.n_elems - first;
    return (struct tensor_run){
        .tensor = window.tensor, .first = first, .n = left < WINDOW_ELEMS ? left : WINDOW_ELEMS};
}

/* Requests the windows of a compressed snapshot. */
static void prefetch_windows(const struct fingerprinting *fingerprinting, size_t k)
{
    const struct phema_series *series = fingerprinting->series;
    const struct windows *windows = &fingerprinting->decoded;
    uint64_t entry = UINT64_MAX;
    if (windows->is_all || !sparse_is_compressed_and_cold(series, k) ||
        !phema_checkpoint_can_seek(series->snapshots[k].checkpoint))
        return;
    for (size_t w = 0; w < windows->n; w++) {
        struct tensor_run window = move_window(fingerprinting, k, windows->items[w], &entry);
        struct phema_tensor tensor = phema_series_tensor_in(series, k, window.tensor);
        phema_tensor_prefetch(series->snapshots[k].checkpoint, &tensor, window.first, window.n);
    }
}

static enum phema_status hash_windows(const struct part *part, size_t k, struct phema_error *err)
{
    const struct fingerprinting *fingerprinting = part->fingerprinting;
    const struct phema_snapshot *snapshot = &fingerprinting->series->snapshots[k];
    const struct windows *windows =
        snapshot->is_compressed ? &fingerprinting->decoded : &fingerprinting->mapped;
    struct phema_reader *reader = NULL;
    enum phema_status status = windows->is_all /* mapping reads a whole model faster */
                                   ? phema_reader_open(&reader, snapshot->checkpoint, err)
                                   : sparse_reader_open(&reader, snapshot->checkpoint, err);
    uint64_t entry = UINT64_MAX;
    for (size_t w = 0; w < windows->n && !status; w++) {
        struct tensor_run window = windows->items[w];
        if (!windows->is_all)
            window = move_window(fingerprinting, k, window, &entry);
        struct phema_tensor tensor =
            phema_series_tensor_in(fingerprinting->series, k, window.tensor);
        const uint8_t *data = NULL;
        status =
            phema_reader_read(&data, reader, &tensor, window.first, window.n, part->scratch, err);
        if (!status)
            phema_hash_add(part->hash, data, (size_t)phema_dtype_bytes(tensor.dtype, window.n));
    }
    phema_reader_close(reader);
    sparse_evict(snapshot->checkpoint);
    return status;
}

uint64_t phema_snapshot_bytes(const struct phema_snapshot *snapshot)
{
    uint64_t bytes = 0;
    size_t n_files = snapshot->checkpoint ? phema_checkpoint_n_files(snapshot->checkpoint) : 0;
    for (size_t f = 0; f < n_files; f++)
        if (!phema_checkpoint_shares_file(snapshot->checkpoint, f))
            bytes += phema_file_span(phema_checkpoint_file(snapshot->checkpoint, f)).size;
    return bytes;
}

static enum phema_status identify_part(void *context, size_t index, struct phema_error *err)
{
    const struct fingerprinting *fingerprinting = context;
    const struct part *part = &fingerprinting->parts[index];
    size_t n = fingerprinting->series->n, n_parts = fingerprinting->n_parts;
    enum phema_status status = PHEMA_OK;
    size_t first = index * n / n_parts;
    prefetch_windows(fingerprinting, first);
    for (size_t k = first; !status && k < (index + 1) * n / n_parts; k++) {
        struct phema_snapshot *snapshot = &fingerprinting->series->snapshots[k];
        if (atomic_load_explicit(&fingerprinting->is_abandoned, memory_order_relaxed))
            return PHEMA_OK;
        prefetch_windows(fingerprinting, k + 1);
        if (!snapshot->checkpoint)
            continue;
        phema_hash_start(part->hash);
        phema_hash_add(part->hash, fingerprinting->listing, sizeof(fingerprinting->listing));
        if (!snapshot->is_compressed || phema_checkpoint_can_seek(snapshot->checkpoint))
            status = hash_windows(part, k, err);
        if (!status)
            phema_hash_digest(snapshot->digest, part->hash);
    }
    return status;
}

static void clear(struct fingerprinting *fingerprinting)
{
    for (size_t p = 0; fingerprinting->parts && p < fingerprinting->n_parts; p++) {
        phema_hash_free(fingerprinting->parts[p].hash);
        free(fingerprinting->parts[p].scratch);
    }
    phema_arena_clear(&fingerprinting->memory);
}

static enum phema_status identify_all(struct fingerprinting *fingerprinting,
                                      struct phema_error *err)
{
    enum phema_status status = allocate(fingerprinting, err);
    if (status)
        return status;
    hash_listing(fingerprinting);
    sparse_prefetch(fingerprinting->series, fingerprinting->mapped.items, fingerprinting->mapped.n);
    return phema_parallel_try(fingerprinting->n_parts, (unsigned)fingerprinting->n_parts,
                              identify_part, fingerprinting, err);
}

PHEMA_FALLIBLE phema_series_identify(struct phema_series *series, struct phema_error *err)
{
    struct fingerprinting fingerprinting = {.series = series};
    enum phema_status status = identify_all(&fingerprinting, err);
    clear(&fingerprinting);
    return status;
}

/* ---- In the background ---- */

struct phema_identification {
    struct fingerprinting fingerprinting;
    pthread_t thread;
    bool has_thread;
    enum phema_status status;
    struct phema_error err;
};

static void *identify_in_background(void *argument)
{
    struct phema_identification *identification = argument;
    identification->status = identify_all(&identification->fingerprinting, &identification->err);
    return NULL;
}

PHEMA_FALLIBLE phema_series_identify_begin(struct phema_identification **out,
                                           struct phema_series *series, struct phema_error *err)
{
    struct phema_identification *identification = calloc(1, sizeof(*identification));
    if (!identification)
        return phema_fail_memory(err);
    identification->fingerprinting.series = series;
    identification->has_thread =
        sparse_count_parts(series) > 1 && /* of few snapshots a thread would cost more memory */
        phema_thread_start(&identification->thread, identify_in_background, identification) == 0;
    *out = identification;
    return PHEMA_OK;
}

static void free_identification(struct phema_identification *identification)
{
    clear(&identification->fingerprinting);
    free(identification);
}

PHEMA_FALLIBLE phema_series_identify_end(struct phema_identification *identification,
                                         struct phema_error *err)
{
    if (identification->has_thread)
        (void)pthread_join(identification->thread, NULL);
    else
        (void)identify_in_background(identification);
    enum phema_status status = identification->status;
    if (status)
        *err = identification->err;
    free_identification(identification);
    return status;
}

void phema_series_identify_abandon(struct phema_identification *identification)
{
    if (!identification)
        return;
    atomic_store(&identification->fingerprinting.is_abandoned, true);
    if (identification->has_thread)
        (void)pthread_join(identification->thread, NULL);
    free_identification(identification);
}
