// SPDX-License-Identifier: Apache-2.0
/* fuzz_pickle.c - The bytes as a file in torch's format before 1.6 or as a plain pickle. Bytes with
 * another beginning are appended to the head of a legacy file. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "phema/span.h"

/* magic number, protocol version, {'little_endian': True}, and the first bytes of the object */
static const uint8_t head[] = "\x80\x02\x8A\x0A\x6C\xFC\x9C\x46\xF9\x20\x6A\xA8\x50\x19."
                              "\x80\x02M\xE9\x03."
                              "\x80\x02}X\x0D\0\0\0little_endian\x88s."
                              "\x80\x02";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || data[0] == 0x80) {
        fuzz_open(data, size);
        return 0;
    }
    size_t head_size = sizeof(head) - 1;
    uint8_t *file = malloc(head_size + size);
    if (!file)
        return 0;
    memcpy(file, head, head_size);
    memcpy(file + head_size, data, size);
    fuzz_open(file, head_size + size);
    free(file);
    return 0;
}
