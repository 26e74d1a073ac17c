// SPDX-License-Identifier: Apache-2.0
/* minimal.c - the minimal work of an average: read, add, write. It knows only the header length of
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

/* Sums of a tile, half a megabyte, stay in the L2 cache. Pages are evicted after each job, 8 MiB of
 * every file: smaller steps cost more. */
enum { TILE_ELEMS = 128 * 1024, JOB_BYTES = 8 << 20, PIECE_BYTES = 1 << 20 };

struct run {
    const uint8_t **inputs; /* the data of each file */
    size_t n_inputs, size_bytes;
    enum dtype dtype;
    atomic_size_t next; /* the first byte that no thread has claimed */
    int out;            /* -1: nothing is written */
    bool has_failed;
};

static void fail(const char *what)
{
    (void)fprintf(stderr, "bench_minimal: %s: %s\n", what, strerror(errno));
    exit(6);
}

/* Maps a file and skips the header of a safetensors file. */
static const uint8_t *map(const char *path, size_t *size_bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat info;
    if (fd < 0 || fstat(fd, &info) != 0)
        fail(path);
    const uint8_t *data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED)
        fail(path);
    (void)close(fd);
    uint64_t header = 0;
    size_t length = strlen(path);
    if (length > 12 && strcmp(path + length - 12, ".safetensors") == 0) {
        memcpy(&header, data, sizeof(header));
        header += sizeof(header);
    }
    *size_bytes = (size_t)info.st_size - header;
    return data + header;
}

static void let_go(const struct run *run, size_t at, size_t size)
{
    const uintptr_t page = 4096;
    for (size_t k = 0; k < run->n_inputs; k++) {
        uintptr_t begin = ((uintptr_t)run->inputs[k] + at + page - 1) / page * page;
        uintptr_t end = ((uintptr_t)run->inputs[k] + at + size) / page * page;
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

static void average(struct run *run, size_t job, size_t job_end, float *sums, uint8_t *piece)
{
    size_t elem_bytes = run->dtype == F32 ? 4 : 2, tile_bytes = TILE_ELEMS * elem_bytes;
    size_t filled = 0, piece_at = job;
    for (size_t at = job; at < job_end; at += tile_bytes) {
        size_t n = (job_end - at < tile_bytes ? job_end - at : tile_bytes) / elem_bytes;
        memset(sums, 0, n * sizeof(*sums));
        for (size_t k = 0; k < run->n_inputs; k += AT_ONCE) {
            size_t left = run->n_inputs - k;
            add(sums, run->inputs + k, left < AT_ONCE ? left : AT_ONCE, at, n,
                1.0f / (float)run->n_inputs, run->dtype);
        }
        narrow(piece + filled, sums, n, run->dtype);
        filled += n * elem_bytes;
        if (filled == PIECE_BYTES || at + tile_bytes >= job_end) {
            write_piece(run, piece, piece_at, filled);
            piece_at += filled;
            filled = 0;
        }
    }
}

static void *work(void *run_of_all)
{
    struct run *run = run_of_all;
    float *sums = aligned_alloc(64, TILE_ELEMS * sizeof(*sums));
    uint8_t *piece = calloc(1, PIECE_BYTES);
    if (!sums || !piece)
        fail("memory");
    for (;;) {
        size_t job = atomic_fetch_add(&run->next, JOB_BYTES);
        if (job >= run->size_bytes)
            break;
        size_t job_end = run->size_bytes - job < JOB_BYTES ? run->size_bytes : job + JOB_BYTES;
        if (run->n_inputs > 0)
            average(run, job, job_end, sums, piece);
        for (size_t at = job; run->n_inputs == 0 && at < job_end; at += PIECE_BYTES)
            write_piece(run, piece, at, job_end - at < PIECE_BYTES ? job_end - at : PIECE_BYTES);
        let_go(run, job, job_end - job);
    }
    free(sums);
    free(piece);
    return NULL;
}

static void open_output(struct run *run, const char *path)
{
    run->out = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (run->out < 0 || fallocate(run->out, 0, 0, (off_t)run->size_bytes) != 0)
        fail(path);
}

static void run_threads(struct run *run, size_t n_threads)
{
    pthread_t *threads = calloc(n_threads, sizeof(*threads));
    for (size_t i = 0; threads && i < n_threads; i++) {
        errno = pthread_create(&threads[i], NULL, work, run);
        if (errno)
            fail("thread");
    }
    for (size_t i = 0; threads && i < n_threads; i++)
        (void)pthread_join(threads[i], NULL);
    free(threads);
}

int main(int argc, char **argv)
{
    struct run run = {.out = -1};
    const char *out = NULL;
    bool syncs = true;
    size_t n_threads = (size_t)sysconf(_SC_NPROCESSORS_ONLN);
    static const struct option options[] = {{"no-sync", no_argument, NULL, 's'}, {0}};
    for (int option; (option = getopt_long(argc, argv, "j:t:o:w:", options, NULL)) != -1;) {
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
        else
            return 2;
    }
    if (optind == argc && run.size_bytes == 0) {
        (void)fputs(
            "usage: bench_minimal [-j THREADS] [-t f16|bf16|f32] [-o OUT [--no-sync]] FILE...\n"
            "       bench_minimal -o OUT -w BYTES      writes zeros, reads nothing\n",
            stderr);
        return 2;
    }
    run.n_inputs = (size_t)(argc - optind);
    run.inputs = calloc(run.n_inputs + 1, sizeof(*run.inputs));
    for (size_t k = 0; run.inputs && k < run.n_inputs; k++) {
        size_t size = 0;
        run.inputs[k] = map(argv[(size_t)optind + k], &size);
        run.size_bytes = k == 0 || size < run.size_bytes ? size : run.size_bytes;
    }
    run.size_bytes = run.size_bytes / 32 * 32;
    if (out)
        open_output(&run, out);
    run_threads(&run, n_threads);
    if (out && (run.has_failed || (syncs && fsync(run.out) != 0) || close(run.out) != 0))
        fail(out);
    free(run.inputs);
    return 0;
}
