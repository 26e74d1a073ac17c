// SPDX-License-Identifier: Apache-2.0
/* measure_sum_rate.c - rate of summing on synthetic tiles. The inputs are one file in memory. It is
 * read, or mapped and released, tile by tile, like snapshots in the page cache. The outputs go to
 * another such file. */
#include "forecast/measure_rates.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "input_digests.h"
#include "phema/clock.h"
#include "phema/memory.h"
#include "phema/parallel.h"
#include "target_groups.h"
#include "worker.h"

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
        enum phema_dtype dtype = entry->tensor.dtype == PHEMA_C64 ? PHEMA_F32 : entry->tensor.dtype;
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
            component_dtype(series->tensors[i].tensor.dtype) == dtype)
            return sums_need_float64(run, i) || n_fit * 2 < run->plan->m ? PHEMA_ACCUMULATE_F64
                                                                         : PHEMA_ACCUMULATE_F32;
    return PHEMA_ACCUMULATE_F64;
}

static void clear(struct trial *trial)
{
    if (trial->data)
        (void)munmap(trial->data, trial->n_inputs * trial->n_tiles * trial->tile_bytes);
    if (trial->input >= 0)
        (void)close(trial->input);
    if (trial->output >= 0)
        (void)close(trial->output);
    free(trial->weights);
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

static bool trial_thread_init(struct trial_thread *thread, const struct trial *trial)
{
    const struct run *run = trial->run;
    bool reads = run->n_read + run->n_direct > 0;
    thread->n_slots =
        reads && run->budget.buffers.n_slots ? run->budget.buffers.n_slots : trial->n_inputs;
    thread->sums = aligned_alloc(64, trial->n_targets * trial->tile_elems * sizeof(double));
    thread->written = aligned_alloc(64, trial->tile_elems * sizeof(double));
    thread->inputs = calloc(trial->n_inputs, sizeof(*thread->inputs));
    thread->slots = reads ? malloc(thread->n_slots * trial->tile_bytes) : NULL;
    return thread->sums && thread->written && thread->inputs && (thread->slots || !reads);
}

static void trial_thread_clear(struct trial_thread *thread)
{
    free(thread->sums);
    free(thread->written);
    free(thread->inputs);
    free(thread->slots);
}

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
    size_t row = trial->tile_elems * sum_bytes_of(trial->accumulator);
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
    struct trial_thread thread = {0};
    bool is_fine = trial_thread_init(&thread, trial);
    while (is_fine && phema_clock_s() < trial->until_s) {
        uint64_t n = atomic_fetch_add(&trial->next, 1);
        is_fine = process_tile(trial, &thread, n % trial->n_tiles, n);
        atomic_fetch_add(&trial->n_done, 1);
    }
    if (!is_fine)
        atomic_store(&trial->has_failed, true);
    trial_thread_clear(&thread);
}

static double measure(struct trial *trial)
{
    unsigned n_threads = trial->run->budget.n_threads;
    double start = phema_clock_s();
    trial->until_s = start + MIN_SECONDS;
    phema_parallel(n_threads, n_threads, work, trial);
    double bytes =
        (double)atomic_load(&trial->n_done) * (double)trial->n_inputs * (double)trial->tile_bytes;
    return bytes / (phema_clock_s() - start);
}

PHEMA_FALLIBLE measure_sum_rate(double *inputs_per_s, const struct run *run,
                                struct phema_error *err)
{
    struct trial trial;
    enum phema_status status = make(&trial, run, err);
    if (!status) {
        *inputs_per_s = measure(&trial);
        if (atomic_load(&trial.has_failed))
            status = phema_fail_memory(err);
    }
    clear(&trial);
    return status;
}
