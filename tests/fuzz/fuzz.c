// SPDX-License-Identifier: Apache-2.0
/* fuzz.c - see fuzz.h. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "phema/formats.h"

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

static void touch_tensor(const struct phema_checkpoint *checkpoint,
                         const struct phema_tensor *tensor)
{
    const uint8_t *start = phema_tensor_start(checkpoint, tensor);
    require((start != NULL) == (tensor->n_elems > 0), "only empty tensors have no start");
    require(strlen(tensor->name) <= tensor->name_size, "names end with a NUL");
    if (start && !tensor->stride) {
        touch(start);
        touch(start + tensor->size_bytes - 1);
    } else if (start) {
        uint8_t scratch[64 * 16];
        uint64_t n = tensor->n_elems < 64 ? tensor->n_elems : 64;
        touch(phema_tensor_read(start, tensor, 0, n, scratch));
        touch(phema_tensor_read(start, tensor, tensor->n_elems - n, n, scratch));
    }
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
    for (size_t i = 0; i < phema_checkpoint_n_tensors(checkpoint); i++) {
        const struct phema_tensor *tensor = &phema_checkpoint_tensors(checkpoint)[i];
        require(phema_checkpoint_find(checkpoint, tensor->name, tensor->name_size) == tensor,
                "names are unique and found");
        touch_tensor(checkpoint, tensor);
    }
    phema_checkpoint_close(checkpoint);
}
