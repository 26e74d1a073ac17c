// SPDX-License-Identifier: Apache-2.0
/* dcp_safetensors.c - Distributed checkpoints in safetensors (docs/formats/dcp-safetensors.md;
 * HuggingFaceStorageWriter of torch with save_distributed). Each process writes its parts of the
 * tensors into files of its own. Only their headers say where the parts belong. */
#include <stdlib.h>

#include "assembly.h"
#include "phema/strbuf.h"
#include "safetensors/safetensors.h"

static bool probe_directory(bool *is_certain, const struct directory_names *names)
{
    *is_certain = true;
    struct shard_name shard;
    for (size_t i = 0; i < names->n; i++)
        if (names->at[i].is_checkpoint && shard_name_read(&shard, names->at[i].text))
            return true;
    return false;
}

static int by_rank(const void *a, const void *b)
{
    const struct shard_name *left = a, *right = b;
    if (left->rank != right->rank)
        return left->rank < right->rank ? -1 : 1;
    return (left->file > right->file) - (left->file < right->file);
}

static int by_file(const void *a, const void *b)
{
    const struct shard_name *left = a, *right = b;
    if (left->file != right->file)
        return left->file < right->file ? -1 : 1;
    return (left->rank > right->rank) - (left->rank < right->rank);
}

/* ---- Names of the shards ---- */

static enum phema_status find_shards(struct shard_name *shards, size_t *n,
                                     const struct directory_names *names, struct phema_error *err)
{
    struct phema_name_buffer shown;
    for (size_t i = 0; i < names->n; i++) {
        const char *name = names->at[i].text;
        if (!names->at[i].is_checkpoint)
            continue;
        if (shard_name_read(&shards[*n], name))
            ++*n;
        else
            return phema_fail(err, PHEMA_ERR_FILE,
                              "holds '%s' besides the shards of a distributed checkpoint, expected "
                              "one checkpoint; name the one that is meant",
                              phema_name_show(&shown, name));
    }
    return PHEMA_OK;
}

/* A process without data writes no file, but then nothing shows that its file is not lost. */
static enum phema_status check_ranks(struct shard_name *shards, size_t n, struct phema_error *err)
{
    qsort(shards, n, sizeof(*shards), by_rank);
    uint64_t last = 0;
    for (size_t i = 0; i < n; last = shards[i++].rank)
        if (shards[i].rank > last + 1 || shards[i].rank == 0)
            return phema_fail(err, PHEMA_ERR_FILE,
                              "file '%s': is of rank %llu, but no shard is of rank %llu: expected "
                              "all ranks from 1",
                              shards[i].name, (unsigned long long)shards[i].rank,
                              (unsigned long long)last + 1);
    return PHEMA_OK;
}

static enum phema_status check_files(struct shard_name *shards, size_t n, struct phema_error *err)
{
    qsort(shards, n, sizeof(*shards), by_file);
    uint64_t last = 0, n_files = shards[0].n_files;
    for (size_t i = 0; i < n; last = shards[i++].file) {
        if (shards[i].n_files != n_files)
            return phema_fail(err, PHEMA_ERR_FILE,
                              "file '%s': is of %llu files, but '%s' of %llu: expected shards of "
                              "one checkpoint",
                              shards[i].name, (unsigned long long)shards[i].n_files, shards[0].name,
                              (unsigned long long)n_files);
        if (shards[i].file > last + 1 || shards[i].file == 0)
            return phema_fail(
                err, PHEMA_ERR_FILE, "file '%s': is number %llu, but no shard is number %llu",
                shards[i].name, (unsigned long long)shards[i].file, (unsigned long long)last + 1);
    }
    if (last == n_files)
        return PHEMA_OK;
    return phema_fail(err, PHEMA_ERR_FILE,
                      "file '%s': is the last one found, but its name says that there are %llu",
                      shards[n - 1].name, (unsigned long long)n_files);
}

/* ---- Shards ---- */

static enum phema_status read_shard(struct assembly *assembly, const char *name,
                                    struct phema_error *err)
{
    struct phema_checkpoint *checkpoint = assembly->checkpoint;
    struct phema_span info = {NULL, 0};
    size_t file = checkpoint->n_files;
    enum phema_status status = checkpoint_add_member(checkpoint, name, err);
    if (!status)
        status = safetensors_read(checkpoint, file, file == 0, &info, err);
    if (status)
        return status;
    size_t n = checkpoint->n_tensors;
    const uint64_t **starts = phema_arena_array(&checkpoint->arena, n + 1, sizeof(*starts));
    if (!starts)
        return phema_fail_memory(err);
    if (!info.data)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "expected " SHARDING_INFO_KEY " in its metadata, as every shard has it");
    status = sharding_info_read(starts, &checkpoint->arena, checkpoint->tensors, n, info, err);
    assembly->source = file;
    for (size_t i = 0; i < n && !status; i++)
        status = assembly_add(assembly, &checkpoint->tensors[i], starts[i], NULL, err);
    checkpoint->n_tensors = 0; /* these were the parts */
    return status;
}

static enum phema_status read_shards(struct assembly *assembly, struct shard_name *shards, size_t n,
                                     struct phema_error *err)
{
    enum phema_status status = check_files(shards, n, err);
    if (!status)
        status = check_ranks(shards, n, err);
    if (status)
        return status;
    for (size_t i = 0; i < n; i++) {
        status = read_shard(assembly, shards[i].name, err);
        if (status)
            return phema_fail_in(err, status, "file '%s'", shards[i].name);
    }
    status = assembly_list(assembly, err);
    return status ? status
                  : checkpoint_warn(assembly->checkpoint, err,
                                    "no file says how many processes wrote this checkpoint: files "
                                    "of ranks above %llu would not be missed",
                                    (unsigned long long)shards[n - 1].rank);
}

static enum phema_status open_shards(struct phema_checkpoint *checkpoint,
                                     const struct directory_names *names,
                                     const struct phema_checkpoint_options *options,
                                     struct phema_error *err)
{
    (void)options;
    struct assembly assembly = {.checkpoint = checkpoint};
    struct shard_name *shards = calloc(names->n, sizeof(*shards));
    size_t n = 0;
    if (!shards)
        return phema_fail_memory(err);
    enum phema_status status = find_shards(shards, &n, names, err);
    if (!status)
        status = read_shards(&assembly, shards, n, err);
    assembly_clear(&assembly);
    free(shards);
    return status;
}

const struct phema_format dcp_safetensors_format = {
    .info = {.name = "dcp-safetensors", .extensions = (const struct phema_extension[]){{NULL, 0}}},
    .probe_directory = probe_directory,
    .open_directory = open_shards,
};
