// SPDX-License-Identifier: Apache-2.0
/* fuzz_torch.c - A zip remains unchanged. Other bytes become the pickle of an archive with a
 * storage '0' of 8 bytes, because no fuzzer keeps the directory of a zip consistent. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "phema/span.h"

struct buffer {
    uint8_t *data;
    size_t size;
};

static void put(struct buffer *out, const void *data, size_t size)
{
    if (size)
        memcpy(out->data + out->size, data, size);
    out->size += size;
}

static void put_int(struct buffer *out, uint64_t value, size_t width)
{
    uint8_t bytes[8];
    phema_store_u64(bytes, value);
    put(out, bytes, width);
}

static const struct record {
    const char *name, *data;
    size_t size;
} others[] = {{"a/version", "3\n", 2}, {"a/data/0", "01234567", 8}};

static void put_local(struct buffer *out, const char *name, const void *data, size_t size)
{
    put_int(out, 0x04034b50, 4);
    put_int(out, 0, 8);
    put_int(out, 0, 6);
    put_int(out, size, 4);
    put_int(out, size, 4);
    put_int(out, strlen(name), 4);
    put(out, name, strlen(name));
    put(out, data, size);
}

static void put_central(struct buffer *out, const char *name, size_t size, size_t header)
{
    put_int(out, 0x02014b50, 4);
    put_int(out, 0, 8);
    put_int(out, 0, 8);
    put_int(out, size, 4);
    put_int(out, size, 4);
    put_int(out, strlen(name), 8);
    put_int(out, 0, 6);
    put_int(out, header, 4);
    put(out, name, strlen(name));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size >= 2 && data[0] == 'P' && data[1] == 'K') {
        fuzz_open(data, size);
        return 0;
    }
    struct buffer out = {malloc(size + 1024), 0};
    if (!out.data)
        return 0;
    size_t headers[3] = {0};
    put_local(&out, "a/data.pkl", data, size);
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        headers[i + 1] = out.size;
        put_local(&out, others[i].name, others[i].data, others[i].size);
    }
    size_t directory = out.size;
    put_central(&out, "a/data.pkl", size, 0);
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        put_central(&out, others[i].name, others[i].size, headers[i + 1]);
    size_t directory_size = out.size - directory;
    put_int(&out, 0x06054b50, 8);
    put_int(&out, 0x00030003, 4);
    put_int(&out, directory_size, 4);
    put_int(&out, directory, 6);
    fuzz_open(out.data, out.size);
    free(out.data);
    return 0;
}
