// SPDX-License-Identifier: Apache-2.0
/* measure_rates.c - rates of reading, decoding, writing and syncing here. */
#include "forecast/measure_rates.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "phema/clock.h"
#include "phema/filesystem.h"
#include "phema/memory.h"
#include "phema/read_queue.h"
#include "phema/writer.h"

#define CHUNK_BYTES ((size_t)4 << 20)
#define STORE_BYTES ((uint64_t)64 << 20)
#define MAX_SECONDS 0.1

/* Read of a snapshot that is not in the page cache: as many requests in flight as a run makes, but
 * not much of each snapshot of a series. */
#define FETCH_SIZE         ((size_t)512 << 10)
#define MOST_FETCHES       ((size_t)16)
#define BYTES_PER_SNAPSHOT ((size_t)256 << 10)
#define DIRECT_ALIGN       ((size_t)4096)

/* ---- Outputs ---- */

/* Opens a nameless file in the directory of the outputs. */
static int open_nameless(const char *output, const char *made_directory)
{
    const char *path = made_directory ? made_directory : output;
    const char *slash = strrchr(path, '/');
    while (slash && slash > path && !slash[1]) /* a trailing slash */
        slash = memrchr(path, '/', (size_t)(slash - path));
    char *directory = slash == path ? strdup("/")
                      : slash       ? strndup(path, (size_t)(slash - path))
                                    : strdup(".");
    int descriptor = directory ? open(directory, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600) : -1;
    free(directory);
    return descriptor;
}

/* Starts write-back early, as the writer does. */
static double store_rate(int descriptor, const uint8_t *chunk, uint64_t wanted)
{
    double start = phema_clock_s();
    uint64_t bytes = 0;
    bool is_fine = true;
    while (is_fine && bytes < wanted && phema_clock_s() - start < MAX_SECONDS) {
        is_fine = write(descriptor, chunk, CHUNK_BYTES) == (ssize_t)CHUNK_BYTES;
        (void)sync_file_range(descriptor, (off_t)bytes, CHUNK_BYTES, SYNC_FILE_RANGE_WRITE);
        bytes += CHUNK_BYTES;
    }
    if (!is_fine || fsync(descriptor))
        return HUGE_VAL;
    return (double)bytes / (phema_clock_s() - start);
}

static void measure_writing(struct rates *rates, const struct run *run, const uint8_t *chunk)
{
    const struct phema_outputs *outputs = run->outputs;
    int descriptor = memfd_create("posthoc-ema-put", MFD_CLOEXEC);
    if (descriptor >= 0) {
        double start = phema_clock_s();
        uint64_t bytes = 0;
        while (bytes < STORE_BYTES / 4 && write(descriptor, chunk, CHUNK_BYTES) > 0)
            bytes += CHUNK_BYTES;
        rates->write = (double)bytes / (phema_clock_s() - start);
        (void)close(descriptor);
    }
    if (!run->options.syncs)
        return;
    descriptor = open_nameless(outputs->items[0].path, outputs->made_directory);
    if (descriptor < 0)
        return;
    uint64_t total = 0;
    for (size_t j = 0; j < outputs->m; j++)
        total += outputs->items[j].size_bytes;
    rates->store = store_rate(descriptor, chunk, total < STORE_BYTES ? total : STORE_BYTES);
    (void)close(descriptor);
}

/* Numbers around 0.02 in float16, as parameters are: their exponents compress well. */
static void fill_chunk(uint8_t *chunk)
{
    uint64_t state = 0x9E3779B97F4A7C15u;
    for (size_t i = 0; i < CHUNK_BYTES; i += 2) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        uint32_t bits = (uint32_t)(state >> 32);
        uint32_t half = (bits & 0x83FFu) | (8u + (bits >> 16 & 3u)) << 10;
        chunk[i] = (uint8_t)half;
        chunk[i + 1] = (uint8_t)(half >> 8);
    }
}

static enum phema_status measure_finishing(struct rates *rates, const struct run *run,
                                           const uint8_t *chunk, struct phema_error *err)
{
    if (!phema_output_traits(run->outputs)->has_finish)
        return PHEMA_OK;
    double start = phema_clock_s();
    enum phema_status status = sink_try_finish(run->outputs, chunk, CHUNK_BYTES, err);
    if (status)
        return status;
    double alone = (double)CHUNK_BYTES / (phema_clock_s() - start);
    rates->finish = alone * (run->budget.n_finishers ? run->budget.n_finishers : 1);
    return PHEMA_OK;
}

static enum phema_status measure_outputs(struct rates *rates, const struct run *run,
                                         struct phema_error *err)
{
    uint8_t *chunk = malloc(CHUNK_BYTES);
    if (!chunk)
        return phema_fail_memory(err);
    fill_chunk(chunk);
    measure_writing(rates, run, chunk);
    enum phema_status status = measure_finishing(rates, run, chunk, err);
    free(chunk);
    return status;
}

/* ---- Inputs ---- */

static enum phema_status measure_decoder(double *per_s, const struct run *run, size_t k,
                                         uint8_t *scratch, struct phema_error *err)
{
    const struct phema_series *series = run->plan->series;
    struct phema_reader *reader = NULL;
    enum phema_status status = phema_reader_open(&reader, series->snapshots[k].checkpoint, err);
    double start = phema_clock_s();
    uint64_t bytes = 0;
    size_t hint = 0;
    for (uint64_t t = 0; t < tiling_n_tiles(&run->tiling) && !status; t++) {
        struct tile_range range = tiling_tile(&run->tiling, t, &hint);
        struct phema_tensor tensor = phema_series_tensor_in(series, k, range.tensor);
        const uint8_t *data = NULL;
        status =
            phema_reader_read(&data, reader, &tensor, range.first, range.n_elems, scratch, err);
        bytes += phema_dtype_bytes(tensor.dtype, range.n_elems);
        if (phema_clock_s() - start > MAX_SECONDS)
            break;
    }
    *per_s = (double)bytes / (phema_clock_s() - start);
    phema_reader_close(reader);
    return status;
}

static enum phema_status measure_decoding(struct rates *rates, const struct run *run,
                                          struct phema_error *err)
{
    const struct phema_series *series = run->plan->series;
    size_t n_decoded = 0, first = 0;
    for (size_t k = series->n; k-- > 0;)
        if (series->snapshots[k].is_compressed) {
            n_decoded++;
            first = k;
        }
    if (!n_decoded || tiling_n_tiles(&run->tiling) == 0)
        return PHEMA_OK;
    uint8_t *scratch = malloc(run->budget.buffers.copied + 64);
    if (!scratch)
        return phema_fail_memory(err);
    enum phema_status status = measure_decoder(&rates->decode, run, first, scratch, err);
    free(scratch);
    unsigned n_threads = run->budget.n_threads; /* at most one for each snapshot that is shared */
    rates->decode *= run->has_frame_jobs || n_decoded > n_threads ? n_threads : (double)n_decoded;
    return status;
}

/* Reads in flight at once, from the beginning of the file. Returns the bytes that arrived. */
static uint64_t fetch(int descriptor, uint8_t *buffer, size_t n)
{
    struct phema_read reads[MOST_FETCHES];
    struct phema_read_queue *queue = NULL;
    struct phema_error ignored;
    uint64_t bytes = 0;
    bool allows_uring = phema_filesystem_is_local(descriptor);
    if (phema_read_queue_open(&queue, (unsigned)n, PHEMA_READ_BY_ANY, &ignored))
        return 0;
    for (size_t i = 0; i < n; i++) {
        reads[i] = (struct phema_read){.descriptor = descriptor,
                                       .offset = i * FETCH_SIZE,
                                       .buffer = buffer + i * FETCH_SIZE,
                                       .size = FETCH_SIZE,
                                       .needed = FETCH_SIZE,
                                       .block = DIRECT_ALIGN,
                                       .allows_uring = allows_uring};
        phema_read_queue_submit(queue, &reads[i]);
    }
    for (struct phema_read *read; (read = phema_read_queue_wait(queue));)
        bytes += read->n_read;
    phema_read_queue_close(queue);
    return bytes;
}

/* Bypasses the page cache, so that measuring does not change it. */
static double fetch_rate(const char *path, size_t n_snapshots)
{
    size_t n = n_snapshots * BYTES_PER_SNAPSHOT / FETCH_SIZE;
    n = n < 1 ? 1 : n < MOST_FETCHES ? n : MOST_FETCHES;
    int descriptor = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC | O_NONBLOCK);
    uint8_t *buffer = aligned_alloc(DIRECT_ALIGN, n * FETCH_SIZE);
    double start = phema_clock_s();
    uint64_t bytes = descriptor >= 0 && buffer ? fetch(descriptor, buffer, n) : 0;
    double rate = bytes ? (double)bytes / (phema_clock_s() - start) : HUGE_VAL;
    free(buffer);
    if (descriptor >= 0)
        (void)close(descriptor);
    return rate;
}

PHEMA_FALLIBLE measure_rates(struct rates *out, const struct run *run, const char *cold_path,
                             struct phema_error *err)
{
    *out = (struct rates){HUGE_VAL, HUGE_VAL, HUGE_VAL, HUGE_VAL, HUGE_VAL, HUGE_VAL};
    if (!run->gpu_run) { /* gpu_run_rate measures GPUs */
        enum phema_status status = measure_sum_rate(&out->add, run, err);
        if (status)
            return status;
    }
    enum phema_status status = measure_outputs(out, run, err);
    if (status)
        return status;
    status = measure_decoding(out, run, err);
    if (!status && cold_path)
        out->fetch = fetch_rate(cold_path, run->plan->series->n);
    return status;
}
