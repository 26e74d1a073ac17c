// SPDX-License-Identifier: Apache-2.0
/* fuzz_zstd.c - The bytes as a file. Bytes that do not begin like zstd become content in raw
 * blocks, so that the safetensors header inside is reached. Bytes that begin with '{' become the
 * JSON of that header. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "phema/span.h"

enum { BLOCK_BYTES = 1024, HEADER_BYTES = 14, DATA_BYTES = 32 };

static bool is_zstd(const uint8_t *data, size_t size)
{
    return size >= 4 && (phema_load_u32(data) == 0xFD2FB528u ||
                         (phema_load_u32(data) & 0xFFFFFFF0u) == 0x184D2A50u);
}

/* One frame of raw blocks, with its content size or without it, so that there is an index or
 * not. */
static size_t wrap(uint8_t *out, const uint8_t *content, size_t size, bool says_size)
{
    memcpy(out, "\x28\xB5\x2F\xFD", 4);
    out[4] = says_size ? 0xC0 : 0x00; /* content size of 8 bytes, or none */
    out[5] = 0;                       /* a window of 1 KiB */
    size_t at = 6;
    if (says_size) {
        phema_store_u64(out + at, size);
        at += 8;
    }
    for (size_t done = 0, n = 0; done < size; done += n) {
        n = size - done < BLOCK_BYTES ? size - done : BLOCK_BYTES;
        size_t block = n << 3 | (done + n == size);
        for (int i = 0; i < 3; i++)
            out[at++] = (uint8_t)(block >> (8 * i));
        memcpy(out + at, content + done, n);
        at += n;
    }
    return at;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (is_zstd(data, size) || size == 0) {
        fuzz_open(data, size);
        return 0;
    }
    bool is_json = data[0] == '{';
    size_t content_size = size + (is_json ? 8 + DATA_BYTES : 0);
    uint8_t *content = calloc(1, content_size);
    uint8_t *file = malloc(HEADER_BYTES + content_size + 3 * (content_size / BLOCK_BYTES + 1));
    if (content && file) {
        if (is_json)
            phema_store_u64(content, size);
        memcpy(content + (is_json ? 8 : 0), data, size);
        fuzz_open(file, wrap(file, content, content_size, true));
        fuzz_open(file, wrap(file, content, content_size, false));
    }
    free(content);
    free(file);
    return 0;
}
