// SPDX-License-Identifier: Apache-2.0
/* fuzz_torch_checkpointing.c - The bytes as metadata.pkl beside safetensors of two processes, or,
 * if they begin with 'P' or a pickle of protocol 2, as the archive or the pickle of process 1. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"
#include "phema/span.h"

static void make_directory(const char *name)
{
    char path[4096 + 64];
    (void)snprintf(path, sizeof(path), "%s/%s", fuzz_directory(), name);
    fuzz_require(mkdir(path, 0700) == 0, "a directory can be made");
}

static void link_file(const char *fixture, const char *name)
{
    char target[4096], path[4096 + 64];
    (void)snprintf(target, sizeof(target), PHEMA_FIXTURES "/%s", fixture);
    (void)snprintf(path, sizeof(path), "%s/%s", fuzz_directory(), name);
    fuzz_require(symlink(target, path) == 0, "a link can be made");
}

static void make_directories(void)
{
    make_directory("pickles");
    make_directory("metadata");
    make_directory("metadata/weights");
    link_file("torch_checkpointing/step_20/model_0.pt", "pickles/model_0.pt");
    link_file("torch_checkpointing_safetensors/step_60/weights/model_0.safetensors",
              "metadata/weights/model_0.safetensors");
    link_file("torch_checkpointing_safetensors/step_60/weights/model_1.safetensors",
              "metadata/weights/model_1.safetensors");
}

static void put(uint8_t **out, const void *data, size_t size)
{
    memcpy(*out, data, size);
    *out += size;
}

static void put_number(uint8_t **out, uint64_t value, size_t size)
{
    uint8_t bytes[8];
    phema_store_u64(bytes, value);
    put(out, bytes, size);
}

/* The records of torch's archive of process 1: the pickle, then its storages. */
static void store_archive(const uint8_t *pickle, size_t size)
{
    static const uint8_t zeros[48];
    const struct {
        const char *name;
        const void *data;
        size_t size;
    } records[] = {{"a/data.pkl", pickle, size}, {"a/version", "3\n", 2}, {"a/data/0", zeros, 32},
                   {"a/data/1", zeros, 8},       {"a/data/2", zeros, 24}, {"a/data/3", zeros, 4},
                   {"a/data/4", zeros, 12},      {"a/data/5", zeros, 16}};
    uint64_t headers[ARRAY_LEN(records)];
    uint8_t *file = malloc(size + 4096), *at = file;
    if (!file)
        return;
    for (size_t i = 0; i < ARRAY_LEN(records); i++) {
        headers[i] = (uint64_t)(at - file);
        put_number(&at, 0x04034b50, 4);
        put_number(&at, 0, 8);
        put_number(&at, 0, 6);
        put_number(&at, records[i].size, 4);
        put_number(&at, records[i].size, 4);
        put_number(&at, strlen(records[i].name), 4);
        put(&at, records[i].name, strlen(records[i].name));
        if (records[i].size)
            put(&at, records[i].data, records[i].size);
    }
    uint64_t directory = (uint64_t)(at - file);
    for (size_t i = 0; i < ARRAY_LEN(records); i++) {
        put_number(&at, 0x02014b50, 4);
        put_number(&at, 0, 8);
        put_number(&at, 0, 8);
        put_number(&at, records[i].size, 4);
        put_number(&at, records[i].size, 4);
        put_number(&at, strlen(records[i].name), 8);
        put_number(&at, 0, 6);
        put_number(&at, headers[i], 4);
        put(&at, records[i].name, strlen(records[i].name));
    }
    uint64_t end = (uint64_t)(at - file);
    put_number(&at, 0x06054b50, 4);
    put_number(&at, 0, 4);
    put_number(&at, ARRAY_LEN(records), 2);
    put_number(&at, ARRAY_LEN(records), 2);
    put_number(&at, end - directory, 4);
    put_number(&at, directory, 4);
    put_number(&at, 0, 2);
    (void)fuzz_store("pickles/model_1.pt", file, (size_t)(at - file));
    free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool is_ready;
    if (!is_ready)
        make_directories();
    is_ready = true;
    bool is_archive = size && data[0] == 'P';
    bool is_pickle = size > 1 && data[0] == 0x80 && data[1] == 2;
    const char *name = is_archive || is_pickle ? "pickles" : "metadata";
    char path[4096 + 64];
    if (is_pickle)
        store_archive(data, size);
    else
        (void)fuzz_store(is_archive ? "pickles/model_1.pt" : "metadata/metadata.pkl", data, size);
    (void)snprintf(path, sizeof(path), "%s/%s", fuzz_directory(), name);
    fuzz_open_path(path);
    return 0;
}
