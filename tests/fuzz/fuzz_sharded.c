// SPDX-License-Identifier: Apache-2.0
/* fuzz_sharded.c - The bytes as the index of a sharded checkpoint. The shards of the fixtures are
 * next to it, two files of torch.save, and a copy of the first shard in a subdirectory. An index may
 * only open files of its own directory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz.h"
#include "phema/formats.h"

static void copy_fixture(const char *fixture, const char *name)
{
    char path[4096];
    uint8_t data[8192];
    (void)snprintf(path, sizeof(path), PHEMA_FIXTURES "/sharded/%s", fixture);
    FILE *file = fopen(path, "rb");
    fuzz_require(file != NULL, "the fixtures are there");
    size_t size = fread(data, 1, sizeof(data), file);
    fuzz_require(size > 0 && size < sizeof(data), "the fixtures are small");
    (void)fclose(file);
    (void)fuzz_store(name, data, size);
}

static void copy_shards(void)
{
    static const char *const shards[] = {"model-00001-of-00003.safetensors",
                                         "model-00002-of-00003.safetensors",
                                         "model-00003-of-00003.safetensors"};
    char below[4096];
    (void)snprintf(below, sizeof(below), "%s/below", fuzz_directory());
    fuzz_require(mkdir(below, 0700) == 0, "a directory below");
    copy_fixture(shards[0], "below/shard");
    for (size_t i = 0; i < ARRAY_LEN(shards); i++)
        copy_fixture(shards[i], shards[i]);
    copy_fixture("../torch/plain.pt", "zip.bin");
    copy_fixture("../legacy/plain.pt", "legacy.bin");
}

static void check_files(const struct phema_checkpoint *checkpoint)
{
    size_t size = strlen(fuzz_directory());
    for (size_t i = 0; i < phema_checkpoint_n_files(checkpoint); i++) {
        const char *path = phema_file_path(phema_checkpoint_file(checkpoint, i));
        fuzz_require(strncmp(path, fuzz_directory(), size) == 0 && path[size] == '/' &&
                         !strstr(path, "/../"),
                     "no path leads out of the directory");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool is_ready;
    if (!is_ready)
        copy_shards();
    is_ready = true;
    const char *path = fuzz_store("model.safetensors.index.json", data, size);
    fuzz_open_path(path);

    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    if (!phema_checkpoint_open(&checkpoint, path, NULL, &err))
        check_files(checkpoint);
    phema_checkpoint_close(checkpoint);
    return 0;
}
