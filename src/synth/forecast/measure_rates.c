// SPDX-License-Identifier: Apache-2.0
/* measure_rates.c - rates of summing, reading, decoding, writing and syncing here. */
#include "forecast/measure_rates.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "input_digests.h"
#include "phema/clock.h"
#include "phema/filesystem.h"
#include "phema/memory.h"
#include "phema/parallel.h"
#include "phema/path.h"
#include "phema/read_queue.h"
#include "target_groups.h"
#include "worker.h"

#define CHUNK_BYTES ((size_t)4 << 20)
#define STORE_BYTES ((uint64_t)64 << 20)
#define MAX_SECONDS 0.1

/* Read of a snapshot that is not in the page cache: as many requests in flight as a run makes, but
 * not much of each snapshot of a series. */
#define FETCH_SIZE         ((size_t)512 << 10)
#define MOST_FETCHES       ((size_t)16)
#define BYTES_PER_SNAPSHOT ((size_t)256 << 10)
#define DIRECT_ALIGN       ((size_t)4096)

/* ---- Sums ----
 * The inputs are one file in memory. It is read, or mapped and released, tile by tile, like snapshots
 * in the page cache. The outputs go to another such file. */

/* Larger than caches, and filled in less than a tenth of a second. Outputs go to new pages, as
 * those of a run do. */
#define INPUT_BYTES  ((uint64_t)128 << 20)
#define OUTPUT_BYTES ((uint64_t)256 << 20)
#define MIN_BYTES    ((uint64_t)1 << 20)
#define MIN_SECONDS  0.1
#define PAGE_BYTES   ((size_t)4096)

struct trial {
    const struct run *run;
    int input, output;
    uint8_t *data;
    enum phema_dtype dtype;
    enum phema_accumulator accumulator;
    size_t n_inputs, n_targets;
    size_t tile_elems, tile_bytes;
    size_t n_tiles; /* of each input */
    uint64_t output_bytes;
    phema_block_hasher hash; /* of the inputs; NULL: they are not hashed */
    double *weights;
    double until_s;
    _Atomic uint64_t next;
    _Atomic uint64_t n_done;
    _Atomic bool has_failed;
};

/* The dtype of most bytes of averaged tensors. */
static enum phema_dtype main_dtype(const struct phema_series *series)
{
    uint64_t bytes[PHEMA_N_DTYPES] = {0};
    enum phema_dtype most = PHEMA_F16;
    for (size_t i = 0; i < series->n_tensors; i++) {
        const struct phema_series_tensor *entry = &series->tensors[i];
        if (entry->rule != PHEMA_RULE_AVERAGE || entry->same_as != i)
            continue;
        enum phema_dtype dtype = phema_dtype_of_parts(entry->tensor.dtype);
        bytes[dtype] += entry->tensor.size_bytes;
        if (bytes[dtype] > bytes[most])
            most = dtype;
    }
    return phema_can_accumulate(most) ? most : PHEMA_F16;
}

/* The precision of most targets, for a tensor of the dtype. */
static enum phema_accumulator main_accumulator(const struct run *run, enum phema_dtype dtype)
{
    const struct phema_series *series = run->plan->series;
    size_t n_fit = 0;
    for (size_t j = 0; j < run->plan->m; j++)
        n_fit +=
            sums_fit_float32(run->options.sums, run->plan->targets[j].solution.weights, series->n);
    for (size_t i = 0; i < series->n_tensors; i++)
        if (series->tensors[i].rule == PHEMA_RULE_AVERAGE &&
            phema_dtype_of_parts(series->tensors[i].tensor.dtype) == dtype)
            return sums_need_float64(run, i) || n_fit * 2 < run->plan->m ? PHEMA_ACCUMULATE_F64
                                                                         : PHEMA_ACCUMULATE_F32;
    return PHEMA_ACCUMULATE_F64;
}

/* Reads or writes all of it. */
static bool transfer(bool writes, int descriptor, uint8_t *data, size_t size, uint64_t at)
{
    for (size_t done = 0; done < size;) {
        off_t place = (off_t)(at + done);
        ssize_t n = writes ? pwrite(descriptor, data + done, size - done, place)
                           : pread(descriptor, data + done, size - done, place);
        if (n <= 0 && !(n < 0 && errno == EINTR))
            return false;
        done += n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* Bytes that are small numbers in every dtype. Inputs differ from one another. */
static bool fill(const struct trial *trial)
{
    uint8_t *tile = malloc(trial->tile_bytes);
    bool is_filled = tile != NULL;
    for (size_t k = 0; k < trial->n_inputs && is_filled; k++) {
        memset(tile, (int)(0x20 + k % 8), trial->tile_bytes);
        for (size_t t = 0; t < trial->n_tiles && is_filled; t++)
            is_filled = transfer(true, trial->input, tile, trial->tile_bytes,
                                 (k * trial->n_tiles + t) * trial->tile_bytes);
    }
    free(tile);
    return is_filled;
}

/* Both files count against the memory of the control group; the mapped one also against the address
 * space of the process. */
static uint64_t within_limit(uint64_t bytes)
{
    uint64_t limit = phema_memory_limit();
    bytes = limit && limit / 8 < bytes ? limit / 8 + 1 : bytes;
    while (bytes > MIN_BYTES && !phema_memory_has_room(4 * bytes))
        bytes /= 2;
    return bytes;
}

static enum phema_status make(struct trial *trial, const struct run *run, struct phema_error *err)
{
    *trial = (struct trial){.run = run, .input = -1, .output = -1};
    trial->dtype = main_dtype(run->plan->series);
    trial->accumulator = main_accumulator(run, trial->dtype);
    trial->n_inputs = run->plan->series->n;
    trial->hash = input_digests_are_wanted(run) ? phema_block_hasher_for_cpu() : NULL;
    trial->n_targets = run->budget.targets_per_pass;
    trial->tile_elems = run->budget.tile_elems;
    unsigned bits = phema_dtype_bits(trial->dtype);
    uint64_t input_bytes = within_limit(INPUT_BYTES);
    trial->output_bytes = within_limit(OUTPUT_BYTES);
    while (trial->tile_elems > BLOCK_ELEMS &&
           trial->tile_elems * bits / 8 * trial->n_inputs > input_bytes)
        trial->tile_elems /= 2;
    trial->tile_bytes = trial->tile_elems * bits / 8;
    trial->n_tiles = input_bytes / trial->n_inputs / trial->tile_bytes;
    trial->n_tiles = trial->n_tiles ? trial->n_tiles : 1;
    trial->weights = calloc(trial->n_inputs * trial->n_targets, sizeof(*trial->weights));
    trial->input = memfd_create("posthoc-ema-inputs", MFD_CLOEXEC);
    trial->output = memfd_create("posthoc-ema-outputs", MFD_CLOEXEC);
    if (!trial->weights || trial->input < 0 || trial->output < 0 || !fill(trial))
        return phema_fail_memory(err);
    for (size_t i = 0; i < trial->n_inputs * trial->n_targets; i++)
        trial->weights[i] = 1.0 / (double)(i + 2);
    void *data = mmap(NULL, trial->n_inputs * trial->n_tiles * trial->tile_bytes, PROT_READ,
                      MAP_SHARED, trial->input, 0);
    if (data == MAP_FAILED)
        return phema_fail_memory(err);
    trial->data = data;
    return PHEMA_OK;
}

/* Buffers of one thread. */
struct trial_thread {
    uint8_t *sums, *written;
    uint8_t *slots;         /* tiles that are read; NULL: inputs are views */
    const uint8_t **inputs; /* [n_inputs] */
    size_t n_slots;
    struct phema_hash_sum digest;
};

/* Adds tile t of inputs [first, first + n) to the sums. */
static bool add_inputs(const struct trial *trial, struct trial_thread *thread, size_t t,
                       size_t first, size_t n, size_t row)
{
    for (size_t x = 0; x < n; x++) {
        size_t at = ((first + x) * trial->n_tiles + t) * trial->tile_bytes;
        thread->inputs[x] =
            thread->slots ? thread->slots + x * trial->tile_bytes : trial->data + at;
        if (thread->slots && !transfer(false, trial->input, thread->slots + x * trial->tile_bytes,
                                       trial->tile_bytes, at))
            return false;
        const struct phema_hash_blocks blocks = {
            thread->inputs[x], trial->tile_bytes,
            (size_t)phema_dtype_bytes(trial->dtype, BLOCK_ELEMS), t, 0};
        if (trial->hash)
            trial->hash(&thread->digest, &blocks);
    }
    struct phema_tile tile = {.inputs = thread->inputs,
                              .weights = trial->weights + first * trial->n_targets,
                              .n_inputs = n,
                              .n_targets = trial->n_targets,
                              .n_elems = trial->tile_elems,
                              .dtype = trial->dtype};
    phema_accumulate(trial->run->backend, trial->accumulator, thread->sums, row, &tile);
    for (size_t x = 0; x < n && !thread->slots; x++) {
        size_t at = ((first + x) * trial->n_tiles + t) * trial->tile_bytes;
        (void)madvise(trial->data + at / PAGE_BYTES * PAGE_BYTES, trial->tile_bytes, MADV_DONTNEED);
    }
    return true;
}

/* Sums and writes one tile of all targets. place: index of the tile in the output file */
static bool process_tile(const struct trial *trial, struct trial_thread *thread, size_t t,
                         uint64_t place)
{
    size_t row = trial->tile_elems * phema_accumulator_size(trial->accumulator);
    memset(thread->sums, 0, trial->n_targets * row);
    for (size_t k = 0; k < trial->n_inputs; k += thread->n_slots) {
        size_t n = trial->n_inputs - k < thread->n_slots ? trial->n_inputs - k : thread->n_slots;
        if (!add_inputs(trial, thread, t, k, n, row))
            return false;
    }
    struct phema_narrow_counts counts = {0, 0, 0};
    for (size_t m = 0; m < trial->n_targets; m++) {
        phema_narrow(trial->run->backend, thread->written, trial->dtype, trial->accumulator,
                     thread->sums + m * row, trial->tile_elems, PHEMA_OVERFLOW_INF, &counts);
        uint64_t at = (place * trial->n_targets + m) * trial->tile_bytes % trial->output_bytes;
        if (!transfer(true, trial->output, thread->written, trial->tile_bytes, at))
            return false;
    }
    return true;
}

static void work(void *context, size_t index)
{
    (void)index;
    struct trial *trial = context;
    const struct run *run = trial->run;
    bool reads = run->result->n_read + run->result->n_direct > 0;
    struct trial_thread thread = {
        .n_slots =
            reads && run->budget.buffers.n_slots ? run->budget.buffers.n_slots : trial->n_inputs,
        .sums = aligned_alloc(64, trial->n_targets * trial->tile_elems * sizeof(double)),
        .written = aligned_alloc(64, trial->tile_elems * sizeof(double)),
        .inputs = calloc(trial->n_inputs, sizeof(*thread.inputs))};
    thread.slots = reads ? malloc(thread.n_slots * trial->tile_bytes) : NULL;
    bool is_fine = thread.sums && thread.written && thread.inputs && (thread.slots || !reads);
    while (is_fine && phema_clock_s() < trial->until_s) {
        uint64_t n = atomic_fetch_add(&trial->next, 1);
        is_fine = process_tile(trial, &thread, n % trial->n_tiles, n);
        atomic_fetch_add(&trial->n_done, 1);
    }
    if (!is_fine)
        atomic_store(&trial->has_failed, true);
    free(thread.sums);
    free(thread.written);
    free(thread.inputs);
    free(thread.slots);
}

PHEMA_FALLIBLE measure_sum_rate(double *inputs_per_s, const struct run *run,
                                struct phema_error *err)
{
    struct trial trial;
    unsigned n_threads = run->budget.n_threads;
    enum phema_status status = make(&trial, run, err);
    uint64_t bytes = trial.n_inputs * trial.tile_bytes;
    double start = phema_clock_s();
    trial.until_s = start + MIN_SECONDS;
    if (!status)
        phema_parallel(n_threads, n_threads, work, &trial);
    *inputs_per_s = (double)trial.n_done * (double)bytes / (phema_clock_s() - start);
    if (trial.has_failed)
        status = phema_fail_memory(err);
    if (trial.data)
        (void)munmap(trial.data, bytes * trial.n_tiles);
    if (trial.input >= 0)
        (void)close(trial.input);
    if (trial.output >= 0)
        (void)close(trial.output);
    free(trial.weights);
    return status;
}

/* ---- Outputs ---- */

/* Opens a nameless file in the directory of the outputs. */
static int open_nameless(const char *output, const char *made_directory)
{
    char *directory = phema_path_directory(made_directory ? made_directory : output);
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

static enum phema_status measure_outputs(struct rates *rates, const struct run *run,
                                         struct phema_error *err)
{
    uint8_t *chunk = malloc(CHUNK_BYTES);
    if (!chunk)
        return phema_fail_memory(err);
    fill_chunk(chunk);
    measure_writing(rates, run, chunk);
    enum phema_status status = PHEMA_OK;
    if (phema_output_traits(run->outputs)->has_finish) {
        double start = phema_clock_s();
        status = sink_try_finish(run->outputs, chunk, CHUNK_BYTES, err);
        double alone = (double)CHUNK_BYTES / (phema_clock_s() - start);
        rates->finish = alone * (run->budget.n_finishers ? run->budget.n_finishers : 1);
    }
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
