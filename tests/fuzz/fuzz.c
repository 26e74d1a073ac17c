// SPDX-License-Identifier: Apache-2.0
/* fuzz.c - see fuzz.h. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "phema/formats.h"

/* Of content: beyond it a few bytes of input make the fuzzer slow. */
#define MAX_DECODED_BYTES ((uint64_t)1 << 20)

static void require(bool is_kept, const char *promise)
{
    if (!is_kept) {
        (void)fprintf(stderr, "broken: %s\n", promise);
        abort();
    }
}

static void touch(const uint8_t *byte)
{
    (void)*(const volatile uint8_t *)byte;
}

/* What is decompressed may turn out to be damaged; what is mapped was proved to be there. */
static bool read_elements(struct phema_reader *reader, const struct phema_tensor *tensor,
                          uint64_t first, uint64_t n)
{
    uint8_t scratch[64 * 16];
    const uint8_t *data = NULL;
    struct phema_error err = {""};
    enum phema_status status = phema_reader_read(&data, reader, tensor, first, n, scratch, &err);
    require(!status || tensor->is_decoded, "mapped tensors can be read");
    require(!status || (err.message[0] && !strchr(err.message, '\n')), "messages are one line");
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
    require((start != NULL) == (tensor->n_elems > 0 && !tensor->is_decoded),
            "only tensors that are empty or decompressed have no start");
    require(strlen(tensor->name) <= tensor->name_size, "names end with a NUL");
    if (start && !tensor->stride) {
        touch(start);
        touch(start + tensor->size_bytes - 1);
    }
    if (!tensor->n_elems)
        return;
    uint64_t n = tensor->n_elems < 64 ? tensor->n_elems : 64;
    uint64_t last = (tensor->n_elems - n) / 8 * 8; /* on a byte, also of sub-byte dtypes */
    if (last + n > tensor->n_elems)
        n = tensor->n_elems - last;
    /* a claimed petabyte is not to be decompressed here */
    if (!tensor->is_decoded || tensor->offset + tensor->size_bytes <= MAX_DECODED_BYTES)
        (void)(read_elements(reader, tensor, last, n) && read_elements(reader, tensor, 0, n));
}

void fuzz_open(const uint8_t *data, size_t size)
{
    static int descriptor = -1;
    static char path[64];
    if (descriptor < 0) {
        descriptor = memfd_create("fuzz", MFD_CLOEXEC);
        require(descriptor >= 0, "a memory file");
        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", descriptor);
    }
    require(ftruncate(descriptor, 0) == 0, "a memory file can be cut");
    require(pwrite(descriptor, data, size, 0) == (ssize_t)size, "a memory file can be written");

    struct phema_error err = {""};
    struct phema_checkpoint *checkpoint = NULL;
    if (phema_checkpoint_open(&checkpoint, path, NULL, &err)) {
        require(!checkpoint, "outputs change only on success");
        require(strncmp(err.message, path, strlen(path)) == 0, "messages name the file first");
        require(!strchr(err.message, '\n'), "messages are one line");
        return;
    }
    struct phema_reader *reader = NULL;
    if (phema_reader_open(&reader, checkpoint, &err))
        abort(); /* no memory */
    bool is_long = false;
    for (size_t i = 0; i < phema_checkpoint_n_tensors(checkpoint); i++) {
        const struct phema_tensor *tensor = &phema_checkpoint_tensors(checkpoint)[i];
        require(phema_checkpoint_find(checkpoint, tensor->name, tensor->name_size) == tensor,
                "names are unique and found");
        touch_tensor(checkpoint, reader, tensor);
        is_long |= tensor->is_decoded && tensor->offset + tensor->size_bytes > MAX_DECODED_BYTES;
    }
    if (!is_long && phema_reader_finish(reader, &err))
        require(phema_checkpoint_is_decoded(checkpoint), "mapped files have nothing to finish");
    phema_reader_close(reader);
    phema_checkpoint_close(checkpoint);
}
