// SPDX-License-Identifier: Apache-2.0
/* sharding_info.c - Reads {NAME: {"saved_offsets": [...]}} and names of shards, as torch 2.15
 * writes them (torch/distributed/checkpoint/_hf_utils.py). */
#include "safetensors/safetensors.h"

#include <stdlib.h>

#include "phema/json.h"

/* The document by names, which may hold a NUL. */
struct sharding_info {
    struct phema_json *document;
    struct name_table names;          /* values are indices */
    const struct phema_json **values; /* [n] */
    size_t n, capacity;
};

static enum phema_status parse(struct sharding_info *info, struct phema_span text,
                               struct phema_error *err)
{
    if (text.size > PHEMA_MAX_INDEX_BYTES)
        return phema_fail(err, PHEMA_ERR_FILE, "expected at most %zu bytes, found %zu",
                          PHEMA_MAX_INDEX_BYTES, text.size);
    enum phema_status status = phema_json_parse(&info->document, text, err);
    if (status)
        return status;
    if (phema_json_type(info->document) != PHEMA_JSON_OBJECT)
        return phema_fail(err, PHEMA_ERR_FILE, "expected an object of the file's tensors");
    for (struct phema_json_field *field = phema_json_first(info->document); field;
         field = phema_json_next(info->document, field)) {
        size_t size = 0;
        const char *name = phema_json_key(field, &size);
        if (!phema_array_grow(&info->values, &info->capacity, info->n,
                              sizeof(const struct phema_json *)) ||
            name_table_add(&info->names, name, size, info->n) != NAME_ADDED)
            return phema_fail_memory(err); /* the JSON reader has refused duplicate keys */
        info->values[info->n++] = phema_json_value(field);
    }
    return PHEMA_OK;
}

static enum phema_status read_start(const uint64_t **out, const struct sharding_info *info,
                                    struct phema_arena *arena, const struct phema_tensor *tensor,
                                    struct phema_error *err)
{
    size_t at = 0;
    if (!name_table_find(&at, &info->names, tensor->name, tensor->name_size))
        return phema_fail(err, PHEMA_ERR_FILE, "does not say where the tensor begins");
    const struct phema_json *value = info->values[at];
    const struct phema_json *offsets =
        phema_json_type(value) == PHEMA_JSON_OBJECT ? phema_json_get(value, "saved_offsets") : NULL;
    if (!offsets || phema_json_type(offsets) != PHEMA_JSON_ARRAY)
        return phema_fail(err, PHEMA_ERR_FILE, "expected an object with a list saved_offsets");
    if (phema_json_length(offsets) != tensor->rank)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "expected %u offsets, one for each dimension, found %zu", tensor->rank,
                          phema_json_length(offsets));
    uint64_t *start = phema_arena_array(arena, tensor->rank, sizeof(*start));
    if (!start)
        return phema_fail_memory(err);
    for (unsigned d = 0; d < tensor->rank; d++)
        if (!phema_json_u64(&start[d], phema_json_at(offsets, d)))
            return phema_fail(err, PHEMA_ERR_FILE, "expected integers of 0 or more as offsets");
    *out = start;
    return PHEMA_OK;
}

static enum phema_status read_starts(const uint64_t **starts, struct sharding_info *info,
                                     struct phema_arena *arena, const struct phema_tensor *tensors,
                                     size_t n, struct phema_span text, struct phema_error *err)
{
    enum phema_status status = parse(info, text, err);
    if (status)
        return status;
    for (size_t i = 0; i < n; i++) {
        status = read_start(&starts[i], info, arena, &tensors[i], err);
        if (status)
            return fail_in_tensor(err, status, tensors[i].name, tensors[i].name_size);
    }
    if (info->n != n)
        return phema_fail(err, PHEMA_ERR_FILE, "describes %zu tensors, the file has %zu", info->n,
                          n);
    return PHEMA_OK;
}

PHEMA_FALLIBLE sharding_info_read(const uint64_t **starts, struct phema_arena *arena,
                                  const struct phema_tensor *tensors, size_t n,
                                  struct phema_span text, struct phema_error *err)
{
    struct sharding_info info = {0};
    enum phema_status status = read_starts(starts, &info, arena, tensors, n, text, err);
    name_table_clear(&info.names);
    free(info.values);
    phema_json_free(info.document);
    return status ? phema_fail_in(err, status, SHARDING_INFO_KEY) : PHEMA_OK;
}

PHEMA_FALLIBLE sharding_info_check_whole(struct phema_checkpoint *checkpoint, size_t first,
                                         struct phema_span text, struct phema_error *err)
{
    const struct phema_tensor *tensors = checkpoint->tensors + first;
    size_t n = checkpoint->n_tensors - first;
    const uint64_t **starts = phema_arena_array(&checkpoint->arena, n, sizeof(*starts));
    if (!starts)
        return phema_fail_memory(err);
    if (!n)
        return PHEMA_OK;
    enum phema_status status =
        sharding_info_read(starts, &checkpoint->arena, tensors, n, text, err);
    for (size_t i = 0; i < n && !status; i++)
        for (unsigned d = 0; d < tensors[i].rank && !status; d++)
            if (starts[i][d]) {
                (void)phema_fail(err, PHEMA_ERR_FILE,
                                 "is a part of a tensor, the others are in other files; name the "
                                 "directory of all shards of the checkpoint");
                status = fail_in_tensor(err, PHEMA_ERR_FILE, tensors[i].name, tensors[i].name_size);
            }
    return status;
}

/* ---- Names ---- */

/* At least five digits, as %05d prints them; moves *text behind them. */
static bool read_number(uint64_t *out, const char **text)
{
    size_t n = strspn(*text, "0123456789");
    if (n < 5 || n > 9 || (n > 5 && **text == '0'))
        return false;
    *out = 0;
    for (size_t i = 0; i < n; i++)
        *out = 10 * *out + (uint64_t)((*text)[i] - '0');
    *text += n;
    return true;
}

static bool skip(const char **text, const char *wanted)
{
    size_t size = strlen(wanted);
    bool is_there = strncmp(*text, wanted, size) == 0;
    *text += is_there ? size : 0;
    return is_there;
}

bool shard_name_read(struct shard_name *out, const char *name)
{
    const char *at = name;
    out->name = name;
    return skip(&at, "shard-") && read_number(&out->rank, &at) && skip(&at, "-model-") &&
           read_number(&out->file, &at) && skip(&at, "-of-") && read_number(&out->n_files, &at) &&
           *at == '.' && !strchr(at + 1, '.');
}
