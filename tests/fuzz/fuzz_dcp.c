// SPDX-License-Identifier: Apache-2.0
/* fuzz_dcp.c - The bytes as the metadata of a distributed checkpoint, next to the files of a valid
 * one. */
#include <stdio.h>
#include <unistd.h>

#include "fuzz.h"
#include "phema/span.h"

static void link_files(void)
{
    static const char *const names[] = {"__0_0.distcp", "__1_0.distcp"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char target[4096];
        char path[4096 + 64];
        (void)snprintf(target, sizeof(target), PHEMA_FIXTURES "/dcp/two_ranks/%s", names[i]);
        (void)snprintf(path, sizeof(path), "%s/%s", fuzz_directory(), names[i]);
        fuzz_require(symlink(target, path) == 0, "a link can be made");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool is_ready;
    if (!is_ready)
        link_files();
    is_ready = true;
    (void)fuzz_store(".metadata", data, size);
    fuzz_open_path(fuzz_directory());
    return 0;
}
