// SPDX-License-Identifier: Apache-2.0
/* sparse_read.c - reads of a few elements of a snapshot, for samples and fingerprints. */
#include "sparse_read.h"

#include "phema/file_reader.h"
#include "phema/parallel.h"

/* Threads that issue requests. They wait only where the kernel looks up the place of the data. */
#define N_PREFETCHING 16

/* Snapshots of a thread, at least. A thread takes 50 us to start, and a sample of one snapshot in
 * the page cache 40 to 80 us, or 10 to 30 ms where it is compressed. Each of two threads has a
 * decoder then, for the sample and for the fingerprints: no more than a run has, one for each
 * snapshot. */
#define LEAST_IN_PART            ((size_t)8)
#define LEAST_COMPRESSED_IN_PART ((size_t)2)

/* A bound for the memory of the threads. */
#define MOST_PARTS ((size_t)4)

size_t sparse_count_parts(const struct phema_series *series)
{
    size_t n = phema_parallel_threads(), least = LEAST_IN_PART;
    for (size_t k = 0; k < series->n; k++)
        if (series->snapshots[k].is_compressed)
            least = LEAST_COMPRESSED_IN_PART;
    n = n < series->n / least ? n : series->n / least;
    n = n < MOST_PARTS ? n : MOST_PARTS;
    return n ? n : 1;
}

struct prefetching {
    const struct phema_series *series;
    const struct tensor_run *runs;
    size_t n;
};

static void prefetch_snapshot(const struct phema_series *series, size_t k,
                              const struct tensor_run *runs, size_t n)
{
    const struct phema_checkpoint *checkpoint = series->snapshots[k].checkpoint;
    for (size_t i = 0; checkpoint && i < n; i++) {
        struct phema_tensor tensor = phema_series_tensor_in(series, k, runs[i].tensor);
        phema_tensor_prefetch(checkpoint, &tensor, runs[i].first, runs[i].n);
    }
}

static void prefetch_one(void *context, size_t k)
{
    const struct prefetching *prefetching = context;
    if (!prefetching->series->snapshots[k].is_compressed)
        prefetch_snapshot(prefetching->series, k, prefetching->runs, prefetching->n);
}

/* Looks at a run in the middle: the beginning was read when the file was opened. True also where
 * that is not known. */
static bool is_cached(const struct prefetching *prefetching, size_t k)
{
    const struct phema_checkpoint *checkpoint = prefetching->series->snapshots[k].checkpoint;
    const struct tensor_run *run = &prefetching->runs[prefetching->n / 2];
    struct phema_tensor values = phema_series_tensor_in(prefetching->series, k, run->tensor);
    struct phema_tensor tensor = phema_tensor_codes(&values);
    size_t file = 0;
    uint64_t offset = 0;
    return !checkpoint || !phema_tensor_find(&file, &offset, &tensor, run->first) ||
           phema_file_is_cached_at(phema_checkpoint_file(checkpoint, file), offset);
}

void sparse_prefetch(const struct phema_series *series, const struct tensor_run *runs, size_t n)
{
    struct prefetching prefetching = {series, runs, n};
    size_t last = series->n - 1;
    if (n > 0 && !(is_cached(&prefetching, 0) && is_cached(&prefetching, last / 2) &&
                   is_cached(&prefetching, last)))
        phema_parallel(series->n, N_PREFETCHING, prefetch_one, &prefetching);
}

/* Looks at the middle of the file, as above. */
bool sparse_is_compressed_and_cold(const struct phema_series *series, size_t k)
{
    if (k >= series->n || !series->snapshots[k].checkpoint || !series->snapshots[k].is_compressed)
        return false;
    const struct phema_file *file = phema_checkpoint_file(series->snapshots[k].checkpoint, 0);
    return !phema_file_is_cached_at(file, phema_file_span(file).size / 2);
}

void sparse_prefetch_compressed(const struct phema_series *series, size_t k,
                                const struct tensor_run *runs, size_t n)
{
    if (sparse_is_compressed_and_cold(series, k))
        prefetch_snapshot(series, k, runs, n);
}

/* ---- A reader ---- */

PHEMA_FALLIBLE sparse_reader_open(struct phema_reader **reader,
                                  const struct phema_checkpoint *checkpoint,
                                  struct phema_error *err)
{
    static const struct phema_reading reading = {.io = PHEMA_IO_READ, .is_sparse = true};
    uint64_t limit;
    enum phema_status status = phema_reader_open(reader, checkpoint, err);
    if (!status && phema_raise_fd_limit(
                       phema_checkpoint_n_files(checkpoint) + PHEMA_OTHER_DESCRIPTORS, &limit))
        status = phema_reader_use(*reader, &reading, err);
    return status;
}

void sparse_evict(const struct phema_checkpoint *checkpoint)
{
    for (size_t f = 0; f < phema_checkpoint_n_files(checkpoint); f++) {
        const struct phema_file *file = phema_checkpoint_file(checkpoint, f);
        phema_file_evict(file, 0, phema_file_span(file).size);
    }
}
