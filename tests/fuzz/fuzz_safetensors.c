// SPDX-License-Identifier: Apache-2.0
/* fuzz_safetensors.c - The bytes as a file. Bytes that begin with '{' become the JSON of a header,
 * so a change of their length keeps the file valid. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "phema/span.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || data[0] != '{') {
        fuzz_open(data, size);
        return 0;
    }
    enum { DATA_BYTES = 32 };
    uint8_t *file = calloc(1, 8 + size + DATA_BYTES);
    if (!file)
        return 0;
    phema_store_u64(file, size);
    memcpy(file + 8, data, size);
    fuzz_open(file, 8 + size + DATA_BYTES);
    fuzz_open(file, 8 + size);
    free(file);
    return 0;
}
