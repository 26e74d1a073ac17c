// SPDX-License-Identifier: Apache-2.0
/* fuzz.c - Opens input as a checkpoint and checks the promises of the library on it. */
#include "fuzz.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "phema/formats.h"

/* Limit of decompressed content. Beyond it, a few bytes of input make the fuzzer slow. */
#define MAX_DECODED_BYTES ((uint64_t)1 << 20)

void fuzz_require(bool is_kept, const char *promise)
{
    if (!is_kept) {
        (void)fprintf(stderr, "broken: %s\n", promise);
        abort();
    }
}

void fuzz_require_message(const struct phema_error *err, const char *path)
{
    fuzz_require(strncmp(err->message, path, strlen(path)) == 0, "messages name the file first");
    fuzz_require(!strchr(err->message, '\n'), "messages are one line");
    fuzz_require(strlen(err->message) > strlen(path), "messages say what is wrong");
}

/* ---- Files ---- */

static char directory[4096];
static pid_t owner;

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *walk)
{
    (void)st;
    (void)kind;
    (void)walk;
    return remove(path);
}

static void remove_directory(void)
{
    if (getpid() == owner)
        (void)nftw(directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* In memory if the machine offers such files: then an input takes a few microseconds. */
static const char *parent_directory(void)
{
    const char *chosen = getenv("TMPDIR");
    if (chosen && *chosen)
        return chosen;
    return access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
}

const char *fuzz_directory(void)
{
    if (!directory[0]) {
        (void)snprintf(directory, sizeof(directory), "%s/phema-fuzz-XXXXXX", parent_directory());
        fuzz_require(mkdtemp(directory) != NULL, "a directory for files");
        owner = getpid();
        fuzz_require(atexit(remove_directory) == 0, "files are removed at exit");
    }
    return directory;
}

const char *fuzz_store(const char *name, const uint8_t *data, size_t size)
{
    static char path[sizeof(directory) + 256];
    (void)snprintf(path, sizeof(path), "%s/%s", fuzz_directory(), name);
    int descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    fuzz_require(descriptor >= 0, "a file can be made");
    fuzz_require(write(descriptor, data, size) == (ssize_t)size, "a file can be written");
    (void)close(descriptor);
    return path;
}

/* ---- Checkpoints ---- */

static void touch(const uint8_t *byte)
{
    (void)*(const volatile uint8_t *)byte;
}

/* Decompressed data may turn out to be damaged. Mapped data were checked on opening, so an error
 * there aborts. */
static bool read_elements(struct phema_reader *reader, const struct phema_tensor *tensor,
                          uint64_t first, uint64_t n)
{
    uint8_t scratch[(64 + 7) * 16];
    const uint8_t *data = NULL;
    struct phema_error err = {0};
    enum phema_status status = phema_reader_read(&data, reader, tensor, first, n, scratch, &err);
    fuzz_require(!status || tensor->is_compressed, "mapped tensors can be read");
    fuzz_require(!status || (err.message[0] && !strchr(err.message, '\n')),
                 "messages are one line");
    if (status)
        return false;
    touch(data);
    touch(data + n * phema_dtype_bits(tensor->dtype) / 8 - 1);
    return true;
}

static void touch_tensor(const struct phema_checkpoint *checkpoint, struct phema_reader *reader,
                         const struct phema_tensor *tensor)
{
    const uint8_t *start = phema_tensor_start(checkpoint, tensor);
    fuzz_require((start != NULL) ==
                     (tensor->n_elems > 0 && !tensor->is_compressed && !tensor->chunks),
                 "only tensors that are empty, compressed or in chunks have no start");
    fuzz_require(strlen(tensor->name) <= tensor->name_size, "names end with a NUL");
    if (start && !tensor->stride) {
        touch(start);
        touch(start + tensor->size_bytes - 1);
    }
    if (!tensor->n_elems)
        return;
    uint64_t n = tensor->n_elems < 64 ? tensor->n_elems : 64;
    uint64_t last = (tensor->n_elems - n) / 8 * 8; /* on a byte also below 8 bits */
    uint64_t n_last = tensor->n_elems - last;
    /* read all chunks, because any of them may be damaged */
    for (uint64_t at = 0; tensor->chunks && at < tensor->n_elems && at < MAX_DECODED_BYTES;
         at += 64)
        (void)read_elements(reader, tensor, at,
                            tensor->n_elems - at < 64 ? tensor->n_elems - at : 64);
    /* a false petabyte is not decompressed */
    if (!tensor->is_compressed || tensor->offset + tensor->size_bytes <= MAX_DECODED_BYTES)
        (void)(read_elements(reader, tensor, last, n_last) && read_elements(reader, tensor, 0, n));
    if (tensor->scaling) {
        struct phema_tensor values = phema_tensor_values(tensor);
        (void)(read_elements(reader, &values, last, n_last) &&
               read_elements(reader, &values, 0, n));
    }
}

void fuzz_open_path(const char *path)
{
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    if (phema_checkpoint_open(&checkpoint, path, NULL, &err)) {
        fuzz_require(!checkpoint, "outputs change only on success");
        fuzz_require_message(&err, path);
        return;
    }
    struct phema_reader *reader = NULL;
    if (phema_reader_open(&reader, checkpoint, &err))
        abort(); /* no memory */
    bool is_long = false;
    for (size_t i = 0; i < phema_checkpoint_n_tensors(checkpoint); i++) {
        const struct phema_tensor *tensor = &phema_checkpoint_tensors(checkpoint)[i];
        fuzz_require(phema_checkpoint_find(checkpoint, tensor->name, tensor->name_size) == tensor,
                     "names are unique and found");
        touch_tensor(checkpoint, reader, tensor);
        is_long |= tensor->is_compressed && tensor->offset + tensor->size_bytes > MAX_DECODED_BYTES;
    }
    if (!is_long && phema_reader_finish(reader, &err))
        fuzz_require(phema_checkpoint_is_compressed(checkpoint),
                     "mapped files have nothing to finish");
    for (size_t i = 0; i < phema_checkpoint_n_warnings(checkpoint); i++)
        fuzz_require(!strchr(phema_checkpoint_warning(checkpoint, i), '\n'),
                     "warnings are one line");
    phema_reader_close(reader);
    phema_checkpoint_close(checkpoint);
}

void fuzz_open(const uint8_t *data, size_t size)
{
    static int descriptor = -1;
    static char path[64];
    if (descriptor < 0) {
        descriptor = memfd_create("fuzz", MFD_CLOEXEC);
        fuzz_require(descriptor >= 0, "a memory file");
        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", descriptor);
    }
    fuzz_require(ftruncate(descriptor, 0) == 0, "a memory file can be cut");
    fuzz_require(pwrite(descriptor, data, size, 0) == (ssize_t)size,
                 "a memory file can be written");
    fuzz_open_path(path);
}
