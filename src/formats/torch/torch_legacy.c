// SPDX-License-Identifier: Apache-2.0
/* torch_legacy.c - torch.save files before 1.6, or without zip today (docs/formats/torch-legacy.md;
 * _legacy_save and _legacy_load of torch/serialization.py). */
#include <string.h>

#include "format.h"
#include "torch/torch.h"

#define PROTOCOL_VERSION 1001

/* 0x1950a86a20f9469cfc6c, little-endian */
static const uint8_t magic[] = {0x6C, 0xFC, 0x9C, 0x46, 0xF9, 0x20, 0x6A, 0xA8, 0x50, 0x19};

/* True when the bytes begin with torch's magic number, in a pickle of protocol 2 to 5. */
static bool probe(struct phema_span bytes)
{
    size_t at = 2;
    if (bytes.size < 2 || bytes.data[0] != 0x80 || bytes.data[1] < 2 || bytes.data[1] > 5)
        return false;
    if (bytes.size > at && bytes.data[at] == 0x95) /* FRAME, since protocol 4 */
        at += 9;
    if (bytes.size < at + 2 + sizeof(magic))
        return false;
    const uint8_t *number = bytes.data + at;
    return number[0] == 0x8A && number[1] == sizeof(magic) &&
           memcmp(number + 2, magic, sizeof(magic)) == 0;
}

/* Reads the next of the pickles. Each has its own memo. */
static enum phema_status read_next(struct pickle_node **root, struct torch_legacy *legacy,
                                   struct phema_span bytes, const struct pickle_host *host,
                                   const char *what, struct phema_error *err)
{
    struct phema_span rest = {bytes.data + legacy->used, bytes.size - legacy->used};
    size_t used = 0;
    enum phema_status status = pickle_read(root, &used, rest, &legacy->arena, host, err);
    if (status)
        return phema_fail_in(err, status, "%s", what);
    legacy->used += used;
    return PHEMA_OK;
}

static enum phema_status read_head(struct torch_legacy *legacy, struct phema_span bytes,
                                   const struct phema_checkpoint_options *options,
                                   struct phema_error *err)
{
    const struct pickle_host host = {.options = options};
    struct pickle_node *node = NULL;
    enum phema_status status = read_next(&node, legacy, bytes, &host, "magic number", err);
    if (status)
        return status;
    if (node->kind != PICKLE_BIGINT || node->span.size != sizeof(magic) ||
        memcmp(node->span.data, magic, sizeof(magic)) != 0)
        return phema_fail(err, PHEMA_ERR_FILE, "does not begin with the magic number of torch");
    status = read_next(&node, legacy, bytes, &host, "protocol version", err);
    if (status)
        return status;
    if (node->kind != PICKLE_INT || node->integer != PROTOCOL_VERSION)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "expected protocol version %d behind the magic "
                          "number",
                          PROTOCOL_VERSION);
    status = read_next(&node, legacy, bytes, &host, "system information", err);
    if (status)
        return status;
    const struct pickle_node *is_little =
        node->kind == PICKLE_DICT ? pickle_find(node, "little_endian") : NULL;
    if (!pickle_is(is_little, PICKLE_BOOL))
        return phema_fail(err, PHEMA_ERR_FILE,
                          "expected a dict that says whether the file is little_endian, as torch "
                          "writes it behind its magic number");
    if (!is_little->boolean)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "is of a big-endian machine, whose files are not read");
    return PHEMA_OK;
}

/* Reads the i64 length and skips the data of one storage, at the current end. */
static enum phema_status place_next(struct torch_legacy *legacy, struct phema_span key,
                                    struct phema_span bytes, uint64_t start,
                                    struct phema_error *err)
{
    struct pickle_storage *storage = torch_storages_named(&legacy->storages, key);
    if (!storage)
        return phema_fail(err, PHEMA_ERR_FILE, "is listed, and no tensor names it");
    if (storage->is_placed)
        return phema_fail(err, PHEMA_ERR_FILE, "is listed twice");
    if (bytes.size - legacy->used < 8)
        return phema_fail(err, PHEMA_ERR_FILE, "the file ends before its length");
    uint64_t n_elems = phema_load_u64(bytes.data + legacy->used);
    if (n_elems != storage->n_elems)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "expected %llu elements of %s, found a length of %lld",
                          (unsigned long long)storage->n_elems, phema_dtype_name(storage->dtype),
                          (long long)n_elems);
    size_t data = legacy->used + 8;
    if (bytes.size - data < storage->size_bytes)
        return phema_fail(err, PHEMA_ERR_FILE, "expected %llu bytes of data, found %zu",
                          (unsigned long long)storage->size_bytes, bytes.size - data);
    storage->offset = start + data;
    storage->is_placed = true;
    legacy->used = data + (size_t)storage->size_bytes;
    return PHEMA_OK;
}

/* The storages follow in the order of the list. The list has every storage of the object, once. */
static enum phema_status place_all(struct torch_legacy *legacy, const struct pickle_node *keys,
                                   struct phema_span bytes, uint64_t start, struct phema_error *err)
{
    if (keys->kind != PICKLE_LIST)
        return phema_fail(err, PHEMA_ERR_FILE, "expected a list of storages behind the object");
    for (size_t i = 0; i < keys->items.n; i++) {
        const struct pickle_node *key = keys->items.at[i];
        if (key->kind != PICKLE_TEXT)
            return phema_fail(err, PHEMA_ERR_FILE, "expected text as keys in the list of storages");
        enum phema_status status = place_next(legacy, key->span, bytes, start, err);
        if (status)
            return torch_storage_fail_in(err, status, key->span);
    }
    for (size_t i = 0; i < legacy->storages.n; i++) {
        const struct pickle_storage *storage = legacy->storages.all[i];
        if (storage->is_placed)
            continue;
        (void)phema_fail(err, PHEMA_ERR_FILE,
                         "is named by a tensor, and not in the list of "
                         "storages behind the object");
        return torch_storage_fail_in(err, PHEMA_ERR_FILE, storage->key);
    }
    return PHEMA_OK;
}

enum phema_status torch_legacy_read(struct torch_legacy *legacy, struct phema_span bytes,
                                    uint64_t start, const struct phema_checkpoint_options *options,
                                    struct phema_error *err)
{
    *legacy = (struct torch_legacy){.root = NULL};
    legacy->storages.arena = &legacy->arena;
    legacy->storages.n_id_fields = 6;
    enum phema_status status = read_head(legacy, bytes, options, err);
    if (status)
        return status;

    const struct pickle_host host = {
        .options = options, .find_storage = torch_storages_find, .context = &legacy->storages};
    size_t head_size = legacy->used;
    status = read_next(&legacy->root, legacy, bytes, &host, "object", err);
    if (status)
        return status;
    legacy->object_size = legacy->used - head_size;

    const struct pickle_host bare = {.options = options};
    struct pickle_node *keys = NULL;
    status = read_next(&keys, legacy, bytes, &bare, "list of storages", err);
    return status ? status : place_all(legacy, keys, bytes, start, err);
}

void torch_legacy_clear(struct torch_legacy *legacy)
{
    phema_arena_clear(&legacy->arena);
    torch_storages_clear(&legacy->storages);
}

/* Bytes after the last storage are ignored, as torch does. */
static enum phema_status read_shard(struct phema_checkpoint *checkpoint, size_t file,
                                    const struct phema_checkpoint_options *options,
                                    struct phema_error *err)
{
    struct torch_legacy legacy;
    enum phema_status status =
        torch_legacy_read(&legacy, checkpoint_content(checkpoint, file), 0, options, err);
    for (size_t i = 0; i < legacy.storages.n; i++)
        legacy.storages.all[i]->file = file;
    if (!status)
        status = torch_list(checkpoint, legacy.root, NULL, NULL, legacy.object_size, err);
    torch_legacy_clear(&legacy);
    return status;
}

static enum phema_status open_torch_legacy(struct phema_checkpoint *checkpoint,
                                           const struct phema_checkpoint_options *options,
                                           struct phema_error *err)
{
    return read_shard(checkpoint, 0, options, err);
}

const struct phema_format torch_legacy_format = {
    .info = {.name = "torch-legacy",
             .extensions = torch_extensions,
             .output = PHEMA_OUTPUT_COPY,
             .can_be_template = true},
    .probe = probe,
    .open = open_torch_legacy,
    .read_shard = read_shard,
};
