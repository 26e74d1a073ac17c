// SPDX-License-Identifier: Apache-2.0
/* minimal.c - the minimal work of an average: read, add, write. It reads as synth does: mapped,
 * with pread, or past the page cache with many reads in flight. It knows only the header length of
 * the safetensors format and has no checks and no solver. It sums in float32 and skips up to 7
 * elements at the end. The reference for the speed of synth; the target bench_minimal. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "minimal_kernel.h"

/* Sums of a tile, half a megabyte, stay in the L2 cache. Mapped pages are evicted after each job:
 * windows below 8 MiB of every file cost more. */
enum {
    TILE_ELEMS = 128 * 1024,
    WINDOW_BYTES = 8 << 20,
    DIRECT_BYTES = 1 << 20,
    PIECE_BYTES = 1 << 20,
    BLOCK_BYTES = 4096,
    SLOTS_PER_THREAD = 2
};

enum pattern { MMAP, READ, DIRECT };

struct input {
    const char *path;
    int descriptor;
    size_t start;        /* of the data, after the header */
    const uint8_t *data; /* mapped */
};

/* A job of every file, filled by the readers for O_DIRECT. */
struct slot {
    size_t job;           /* that is or will be in it */
    size_t n_missing;     /* files that are not read yet */
    uint8_t *memory;      /* [n_inputs][room_bytes] */
    const uint8_t **data; /* [n_inputs] the first byte of the job */
};

struct run {
    enum pattern pattern;
    struct input *inputs;
    const uint8_t **data; /* [n_inputs] mapped */
    size_t n_inputs, size_bytes, job_bytes;
    enum dtype dtype;
    atomic_size_t next; /* the first byte that no thread has claimed */
    int out;            /* -1: nothing is written */
    bool has_failed;

    size_t n_readers, n_slots, room_bytes;
    pthread_mutex_t lock; /* of the slots and next_read */
    pthread_cond_t changed;
    struct slot *slots;
    size_t next_read; /* a file of a job */
};

/* What a thread works with. */
struct buffers {
    float *sums;
    uint8_t *piece;
    uint8_t *tiles[AT_ONCE]; /* for pread */
};

static void fail(const char *what)
{
    (void)fprintf(stderr, "bench_minimal: %s: %s\n", what, strerror(errno));
    exit(6);
}

static void *allocate(size_t size)
{
    void *memory = aligned_alloc(BLOCK_BYTES, (size + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES);
    if (!memory)
        fail("memory");
    return memory;
}

/* Opens a file and requests its first page, without waiting. */
static int open_file(const char *path)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        fail(path);
    (void)posix_fadvise(descriptor, 0, BLOCK_BYTES, POSIX_FADV_WILLNEED);
    return descriptor;
}

/* Skips the header of a safetensors file. Returns the size of the data. */
static size_t find_data(struct input *input, const char *path, enum pattern pattern)
{
    struct stat info;
    uint64_t header = 0;
    size_t length = strlen(path);
    int descriptor = input->descriptor;
    if (fstat(descriptor, &info) != 0)
        fail(path);
    if (length > 12 && strcmp(path + length - 12, ".safetensors") == 0) {
        if (pread(descriptor, &header, sizeof(header), 0) != sizeof(header))
            fail(path);
        header += sizeof(header);
    }
    *input = (struct input){.path = path, .descriptor = descriptor, .start = header};
    if (pattern == MMAP) {
        const uint8_t *data =
            mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_SHARED, descriptor, 0);
        if (data == MAP_FAILED)
            fail(path);
        input->data = data + header;
    }
    if (pattern == DIRECT) {
        (void)close(descriptor);
        input->descriptor = open(path, O_RDONLY | O_CLOEXEC | O_DIRECT);
        if (input->descriptor < 0)
            fail(path);
    }
    return (size_t)info.st_size - header;
}

/* ---- O_DIRECT: readers fill slots in the order of the jobs ---- */

/* Reads the blocks around [at, at + size) of the data. Returns the first byte of the data. */
static const uint8_t *read_blocks(const struct input *input, size_t at, size_t size,
                                  uint8_t *memory)
{
    size_t first = (input->start + at) / BLOCK_BYTES * BLOCK_BYTES;
    size_t before = input->start + at - first, wanted = before + size;
    size_t whole = (wanted + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
    for (size_t done = 0; done < wanted;) {
        ssize_t got = pread(input->descriptor, memory + done, whole - done, (off_t)(first + done));
        if (got <= 0)
            fail(input->path);
        done += (size_t)got;
    }
    return memory + before;
}

static void *read_jobs(void *run_of_all)
{
    struct run *run = run_of_all;
    (void)pthread_mutex_lock(&run->lock);
    for (;;) {
        size_t job = run->next_read / run->n_inputs, k = run->next_read % run->n_inputs;
        size_t at = job * run->job_bytes, left = run->size_bytes - at;
        if (at >= run->size_bytes)
            break;
        run->next_read++;
        struct slot *slot = &run->slots[job % run->n_slots];
        while (slot->job != job)
            (void)pthread_cond_wait(&run->changed, &run->lock);
        (void)pthread_mutex_unlock(&run->lock);
        slot->data[k] =
            read_blocks(&run->inputs[k], at, left < run->job_bytes ? left : run->job_bytes,
                        slot->memory + k * run->room_bytes);
        (void)pthread_mutex_lock(&run->lock);
        if (--slot->n_missing == 0)
            (void)pthread_cond_broadcast(&run->changed);
    }
    (void)pthread_mutex_unlock(&run->lock);
    return NULL;
}

static void make_slots(struct run *run, size_t n_threads)
{
    run->n_slots = SLOTS_PER_THREAD * n_threads;
    run->room_bytes = run->job_bytes + 2 * (size_t)BLOCK_BYTES;
    run->slots = allocate(run->n_slots * sizeof(*run->slots));
    for (size_t i = 0; i < run->n_slots; i++)
        run->slots[i] = (struct slot){.job = i,
                                      .n_missing = run->n_inputs,
                                      .memory = allocate(run->n_inputs * run->room_bytes),
                                      .data = allocate(run->n_inputs * sizeof(uint8_t *))};
}

static struct slot *wait_for_slot(struct run *run, size_t job)
{
    struct slot *slot = &run->slots[job % run->n_slots];
    (void)pthread_mutex_lock(&run->lock);
    while (slot->job != job || slot->n_missing > 0)
        (void)pthread_cond_wait(&run->changed, &run->lock);
    (void)pthread_mutex_unlock(&run->lock);
    return slot;
}

static void free_slot(struct run *run, struct slot *slot)
{
    (void)pthread_mutex_lock(&run->lock);
    slot->job += run->n_slots;
    slot->n_missing = run->n_inputs;
    (void)pthread_cond_broadcast(&run->changed);
    (void)pthread_mutex_unlock(&run->lock);
}

/* ---- Sums ---- */

static void let_go(const struct run *run, size_t at, size_t size)
{
    const uintptr_t page = 4096;
    for (size_t k = 0; k < run->n_inputs; k++) {
        uintptr_t begin = ((uintptr_t)run->data[k] + at + page - 1) / page * page;
        uintptr_t end = ((uintptr_t)run->data[k] + at + size) / page * page;
        if (begin < end)
            (void)madvise((void *)begin, end - begin, MADV_DONTNEED);
    }
}

/* Writes a range and starts its write-back, so that nothing is left for fsync. */
static void write_piece(struct run *run, const uint8_t *piece, size_t at, size_t size)
{
    if (run->out < 0 || size == 0)
        return;
    if (pwrite(run->out, piece, size, (off_t)at) != (ssize_t)size)
        run->has_failed = true;
    (void)sync_file_range(run->out, (off_t)at, (off_t)size, SYNC_FILE_RANGE_WRITE);
}

/* Adds bytes [at, at + size) of n files from the kth on. slot: holds the job that begins at job. */
static void add_files(const struct run *run, const struct buffers *buffers, const struct slot *slot,
                      size_t job, size_t k, size_t n, size_t at, size_t size)
{
    size_t n_elems = size / (run->dtype == F32 ? 4 : 2);
    float weight = 1.0f / (float)run->n_inputs;
    if (run->pattern == MMAP) {
        add(buffers->sums, run->data + k, n, at, n_elems, weight, run->dtype);
        return;
    }
    if (run->pattern == DIRECT) {
        add(buffers->sums, slot->data + k, n, at - job, n_elems, weight, run->dtype);
        return;
    }
    const uint8_t *tiles[AT_ONCE];
    for (size_t i = 0; i < n; i++) {
        const struct input *input = &run->inputs[k + i];
        tiles[i] = buffers->tiles[i];
        if (pread(input->descriptor, buffers->tiles[i], size, (off_t)(input->start + at)) !=
            (ssize_t)size)
            fail(input->path);
    }
    add(buffers->sums, tiles, n, 0, n_elems, weight, run->dtype);
}

static void average(struct run *run, const struct buffers *buffers, size_t job, size_t job_end)
{
    size_t elem_bytes = run->dtype == F32 ? 4 : 2, tile_bytes = TILE_ELEMS * elem_bytes;
    size_t filled = 0, piece_at = job;
    struct slot *slot = run->pattern == DIRECT ? wait_for_slot(run, job / run->job_bytes) : NULL;
    for (size_t at = job; at < job_end; at += tile_bytes) {
        size_t size = job_end - at < tile_bytes ? job_end - at : tile_bytes;
        size_t n = size / elem_bytes;
        memset(buffers->sums, 0, n * sizeof(*buffers->sums));
        for (size_t k = 0; k < run->n_inputs; k += AT_ONCE) {
            size_t left = run->n_inputs - k;
            add_files(run, buffers, slot, job, k, left < AT_ONCE ? left : AT_ONCE, at, size);
        }
        narrow(buffers->piece + filled, buffers->sums, n, run->dtype);
        filled += n * elem_bytes;
        if (filled == PIECE_BYTES || at + tile_bytes >= job_end) {
            write_piece(run, buffers->piece, piece_at, filled);
            piece_at += filled;
            filled = 0;
        }
    }
    if (slot)
        free_slot(run, slot);
    if (run->pattern == MMAP)
        let_go(run, job, job_end - job);
}

static void *work(void *run_of_all)
{
    struct run *run = run_of_all;
    struct buffers buffers = {allocate(TILE_ELEMS * sizeof(float)), allocate(PIECE_BYTES), {0}};
    memset(buffers.piece, 0, PIECE_BYTES);
    for (size_t i = 0; i < AT_ONCE; i++) /* and what the kernel prefetches */
        buffers.tiles[i] = allocate(TILE_ELEMS * sizeof(float) + BLOCK_BYTES);
    for (;;) {
        size_t job = atomic_fetch_add(&run->next, run->job_bytes);
        if (job >= run->size_bytes)
            break;
        size_t left = run->size_bytes - job;
        size_t job_end = job + (left < run->job_bytes ? left : run->job_bytes);
        if (run->n_inputs > 0)
            average(run, &buffers, job, job_end);
        for (size_t at = job; run->n_inputs == 0 && at < job_end; at += PIECE_BYTES)
            write_piece(run, buffers.piece, at,
                        job_end - at < PIECE_BYTES ? job_end - at : PIECE_BYTES);
    }
    for (size_t i = 0; i < AT_ONCE; i++)
        free(buffers.tiles[i]);
    free(buffers.sums);
    free(buffers.piece);
    return NULL;
}

static void open_output(struct run *run, const char *path)
{
    run->out = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (run->out < 0 || fallocate(run->out, 0, 0, (off_t)run->size_bytes) != 0)
        fail(path);
}

/* The first n_readers threads read, the others work. */
static void run_threads(struct run *run, size_t n_threads)
{
    size_t n = run->n_readers + n_threads;
    pthread_t *threads = allocate(n * sizeof(*threads));
    for (size_t i = 0; i < n; i++) {
        errno = pthread_create(&threads[i], NULL, i < run->n_readers ? read_jobs : work, run);
        if (errno)
            fail("thread");
    }
    for (size_t i = 0; i < n; i++)
        (void)pthread_join(threads[i], NULL);
    free(threads);
}

/* "mmap" or "mmap:MIB", the window of each file; "read"; "direct:N", reads in flight. */
static bool parse_pattern(struct run *run, const char *text)
{
    char *end = NULL;
    const char *number = strchr(text, ':');
    size_t value = number ? strtoul(number + 1, &end, 10) : 0;
    if (number && (*end || value == 0))
        return false;
    if (strcmp(text, "mmap") == 0 || strncmp(text, "mmap:", 5) == 0) {
        run->pattern = MMAP;
        run->job_bytes = number ? value << 20 : WINDOW_BYTES;
        return true;
    }
    run->pattern = strcmp(text, "read") == 0 ? READ : DIRECT;
    run->job_bytes = run->pattern == READ ? WINDOW_BYTES : DIRECT_BYTES;
    run->n_readers = value;
    return run->pattern == READ || (strncmp(text, "direct:", 7) == 0 && value > 0);
}

static int show_usage(void)
{
    (void)fputs(
        "usage: bench_minimal [-j THREADS] [-t f16|bf16|f32] [-p mmap[:MIB]|read|direct:N]\n"
        "                     [-o OUT [--no-sync]] FILE...\n"
        "       bench_minimal [-j THREADS] -o OUT -w BYTES      writes zeros, reads nothing\n",
        stderr);
    return 2;
}

int main(int argc, char **argv)
{
    struct run run = {.out = -1,
                      .job_bytes = WINDOW_BYTES,
                      .lock = PTHREAD_MUTEX_INITIALIZER,
                      .changed = PTHREAD_COND_INITIALIZER};
    const char *out = NULL;
    bool syncs = true;
    size_t n_threads = (size_t)sysconf(_SC_NPROCESSORS_ONLN);
    static const struct option options[] = {{"no-sync", no_argument, NULL, 's'}, {0}};
    for (int option; (option = getopt_long(argc, argv, "j:t:p:o:w:", options, NULL)) != -1;) {
        if (option == 'j')
            n_threads = strtoul(optarg, NULL, 10);
        else if (option == 't')
            run.dtype = strcmp(optarg, "bf16") == 0 ? BF16 : strcmp(optarg, "f32") == 0 ? F32 : F16;
        else if (option == 'o')
            out = optarg;
        else if (option == 'w')
            run.size_bytes = strtoul(optarg, NULL, 10);
        else if (option == 's')
            syncs = false;
        else if (option != 'p' || !parse_pattern(&run, optarg))
            return show_usage();
    }
    if (optind == argc && run.size_bytes == 0)
        return show_usage();
    run.n_inputs = (size_t)(argc - optind);
    run.inputs = allocate((run.n_inputs + 1) * sizeof(*run.inputs));
    run.data = allocate((run.n_inputs + 1) * sizeof(*run.data));
    for (size_t k = 0; k < run.n_inputs; k++)
        run.inputs[k].descriptor = open_file(argv[(size_t)optind + k]);
    for (size_t k = 0; k < run.n_inputs; k++) {
        size_t size = find_data(&run.inputs[k], argv[(size_t)optind + k], run.pattern);
        run.data[k] = run.inputs[k].data;
        run.size_bytes = k == 0 || size < run.size_bytes ? size : run.size_bytes;
    }
    run.size_bytes = run.size_bytes / 32 * 32;
    if (run.n_readers > 0)
        make_slots(&run, n_threads);
    if (out)
        open_output(&run, out);
    run_threads(&run, n_threads);
    if (out && (run.has_failed || (syncs && fsync(run.out) != 0) || close(run.out) != 0))
        fail(out);
    return 0;
}
