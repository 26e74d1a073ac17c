// SPDX-License-Identifier: Apache-2.0
/* fuzz_dcp_safetensors.c - The bytes as the first shard of a distributed checkpoint, beside the
 * second one of the fixtures. Bytes that begin with '{' become the JSON of a header. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"
#include "phema/span.h"

#define SHARD(rank) "shard-0000" #rank "-model-00001-of-00001.safetensors"

static void link_second(void)
{
    char path[4096 + 64];
    (void)snprintf(path, sizeof(path), "%s/" SHARD(2), fuzz_directory());
    fuzz_require(symlink(PHEMA_FIXTURES "/dcp_safetensors/step-30/" SHARD(2), path) == 0,
                 "a link can be made");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool is_ready;
    if (!is_ready)
        link_second();
    is_ready = true;
    enum { DATA_BYTES = 144 }; /* of the fixture */
    bool is_json = size && data[0] == '{';
    uint8_t *file = calloc(1, 8 + size + DATA_BYTES);
    if (!file)
        return 0;
    phema_store_u64(file, size);
    memcpy(file + 8, data, size);
    (void)fuzz_store(SHARD(1), is_json ? file : data, is_json ? 8 + size + DATA_BYTES : size);
    fuzz_open_path(fuzz_directory());
    free(file);
    return 0;
}
