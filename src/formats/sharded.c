// SPDX-License-Identifier: Apache-2.0
/* sharded.c - *.index.json and its shards (docs/formats/sharded.md), files of safetensors or of
 * torch.save. The index may only name files below its own directory. Index and shards must agree on
 * every tensor. */
#include <stdlib.h>

#include "format.h"
#include "phema/json.h"
#include "phema/strbuf.h"

extern const struct phema_format torch_zip_format, torch_legacy_format, torch_sharded_format;

struct shard {
    const char *name; /* borrowed from the document */
    size_t name_size;
};

/* A tensor of the weight_map, by its name. */
struct row {
    const char *name; /* borrowed from the document */
    size_t name_size;
    size_t shard;
    bool is_found; /* in that shard */
};

struct shard_index {
    struct phema_json *document;
    struct row *rows; /* in the order of the weight_map */
    size_t n_rows, rows_capacity;
    struct shard *shards; /* in the order of their first mention */
    size_t n_shards, shards_capacity;
    struct name_table row_names, shard_names; /* values are indices */
};

static bool probe(struct phema_span content)
{
    for (size_t i = 0; i < content.size && i < 64; i++) {
        uint8_t c = content.data[i];
        if (c == '{')
            return true;
        if (c != ' ' && c != '\n' && c != '\t' && c != '\r')
            return false;
    }
    return false;
}

/* Finds or adds a shard; its number. */
static enum phema_status find_shard(size_t *out, struct shard_index *index, const char *name,
                                    size_t size, struct phema_error *err)
{
    if (name_table_find(out, &index->shard_names, name, size))
        return PHEMA_OK;
    const char *wrong = relative_path_fault(name, size);
    struct phema_name_buffer shown;
    if (wrong)
        return phema_fail(err, PHEMA_ERR_FILE, "the name of its shard, '%s', %s",
                          phema_name_escape(&shown, name, size), wrong);
    if (!phema_array_grow(&index->shards, &index->shards_capacity, index->n_shards,
                          sizeof(*index->shards)) ||
        name_table_add(&index->shard_names, name, size, index->n_shards) != NAME_ADDED)
        return phema_fail_memory(err);
    index->shards[index->n_shards] = (struct shard){name, size};
    *out = index->n_shards++;
    return PHEMA_OK;
}

static enum phema_status read_row(struct shard_index *index, struct phema_json_field *field,
                                  struct phema_error *err)
{
    struct row row = {0};
    size_t shard_size = 0;
    row.name = phema_json_key(field, &row.name_size);
    const char *shard = phema_json_string(phema_json_value(field), &shard_size);
    enum phema_status status =
        shard ? find_shard(&row.shard, index, shard, shard_size, err)
              : phema_fail(err, PHEMA_ERR_FILE, "expected the name of a shard, found no string");
    if (status)
        return fail_in_tensor(err, status, row.name, row.name_size);
    if (!phema_array_grow(&index->rows, &index->rows_capacity, index->n_rows,
                          sizeof(*index->rows)) ||
        name_table_add(&index->row_names, row.name, row.name_size, index->n_rows) != NAME_ADDED)
        return phema_fail_memory(err); /* the JSON reader has refused duplicate keys */
    index->rows[index->n_rows++] = row;
    return PHEMA_OK;
}

static enum phema_status read_index(struct shard_index *index, struct phema_span content,
                                    struct phema_error *err)
{
    if (content.size > PHEMA_MAX_INDEX_BYTES)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "expected an index of shards of at most %zu bytes, found JSON of %zu",
                          PHEMA_MAX_INDEX_BYTES, content.size);
    enum phema_status status = phema_json_parse(&index->document, content, err);
    if (status)
        return status;
    const struct phema_json *root = index->document;
    const struct phema_json *map =
        phema_json_type(root) == PHEMA_JSON_OBJECT ? phema_json_get(root, "weight_map") : NULL;
    if (!map || phema_json_type(map) != PHEMA_JSON_OBJECT)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "expected an index of shards, found JSON without an object weight_map");
    for (struct phema_json_field *field = phema_json_first(map); field;
         field = phema_json_next(map, field)) {
        status = read_row(index, field, err);
        if (status)
            return status;
    }
    if (!index->n_shards)
        return phema_fail(err, PHEMA_ERR_FILE, "the weight_map of the index is empty");
    return PHEMA_OK;
}

/* Checks that the index lists each tensor of a shard for that shard. */
static enum phema_status check_listed(struct shard_index *index,
                                      const struct phema_checkpoint *checkpoint, size_t first,
                                      size_t number, struct phema_error *err)
{
    for (size_t i = first; i < checkpoint->n_tensors; i++) {
        const struct phema_tensor *tensor = &checkpoint->tensors[i];
        size_t row = 0;
        bool is_listed = name_table_find(&row, &index->row_names, tensor->name, tensor->name_size);
        if (!is_listed || index->rows[row].shard != number) {
            (void)phema_fail(err, PHEMA_ERR_FILE, "is in this shard, but the index %s",
                             is_listed ? "says it is in another one" : "does not list it");
            return fail_in_tensor(err, PHEMA_ERR_FILE, tensor->name, tensor->name_size);
        }
        index->rows[row].is_found = true;
    }
    return PHEMA_OK;
}

/* Finds the tensors of a shard whose kinds are not read; whoever needs them refuses the checkpoint.
 * false: the index lists none of them for this shard. */
static bool find_unread(struct shard_index *index, const struct phema_checkpoint *checkpoint,
                        size_t first, size_t number)
{
    bool has_any = false;
    for (size_t i = first; i < checkpoint->n_unread; i++) {
        const struct phema_unread *unread = &checkpoint->unread[i];
        size_t row = 0;
        if (!name_table_find(&row, &index->row_names, unread->name, unread->name_size) ||
            index->rows[row].shard != number)
            continue;
        index->rows[row].is_found = has_any = true;
    }
    return has_any;
}

/* The format of a shard of torch.save; NULL: all others are read as safetensors. */
static const struct phema_format *torch_format(struct phema_span content)
{
    if (safetensors_header_end(content)) /* whose length may begin with PK */
        return NULL;
    return torch_zip_format.probe(content)      ? &torch_zip_format
           : torch_legacy_format.probe(content) ? &torch_legacy_format
                                                : NULL;
}

/* Lists the newest file of the checkpoint. The first shard decides what all of them are. */
static enum phema_status list_shard(struct phema_checkpoint *checkpoint, bool is_first,
                                    const struct phema_checkpoint_options *options,
                                    struct phema_error *err)
{
    size_t file = checkpoint->n_files - 1;
    const struct phema_format *torch = torch_format(checkpoint_content(checkpoint, file));
    if (is_first && torch)
        checkpoint->format = &torch_sharded_format;
    enum phema_status status = torch ? torch->read_shard(checkpoint, file, options, err)
                                     : safetensors_read(checkpoint, file, is_first, NULL, err);
    if (!status && (torch != NULL) != (checkpoint->format == &torch_sharded_format))
        return phema_fail(err, PHEMA_ERR_FILE, "is a file of %s, unlike the first shard",
                          torch ? "PyTorch" : "safetensors");
    return status;
}

static enum phema_status read_shard(struct phema_checkpoint *checkpoint, struct shard_index *index,
                                    size_t number, const struct phema_checkpoint_options *options,
                                    struct phema_error *err)
{
    const struct shard *shard = &index->shards[number];
    size_t first = checkpoint->n_tensors, first_unread = checkpoint->n_unread;
    enum phema_status status =
        checkpoint_add_relative(checkpoint, shard->name, shard->name_size, err);
    if (status)
        return status;
    status = list_shard(checkpoint, number == 0, options, err);
    /* else an index could have one file read once for each way to spell its name */
    if (!status && !find_unread(index, checkpoint, first_unread, number) &&
        checkpoint->n_tensors == first)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "holds no tensor, expected those that the index lists");
    return status ? status : check_listed(index, checkpoint, first, number, err);
}

/* Names the first tensor that the index lists and its shard lacks. */
static enum phema_status find_missing(const struct shard_index *index, struct phema_error *err)
{
    for (size_t i = 0; i < index->n_rows; i++) {
        const struct row *row = &index->rows[i];
        const struct shard *shard = &index->shards[row->shard];
        if (row->is_found)
            continue;
        struct phema_name_buffer shown;
        (void)phema_fail(err, PHEMA_ERR_FILE, "the index lists it in '%s', which does not hold it",
                         phema_name_escape(&shown, shard->name, shard->name_size));
        return fail_in_tensor(err, PHEMA_ERR_FILE, row->name, row->name_size);
    }
    return PHEMA_OK;
}

/* Some real indices have a wrong total_size, or a float: a warning, not a failure. Those of PyTorch's
 * files are in MiB (ColossalAI), or count tied weights once: nothing is said. */
static enum phema_status check_total(struct phema_checkpoint *checkpoint,
                                     const struct shard_index *index, struct phema_error *err)
{
    const struct phema_json *metadata = phema_json_get(index->document, "metadata");
    if (checkpoint->format == &torch_sharded_format || !metadata ||
        phema_json_type(metadata) != PHEMA_JSON_OBJECT)
        return PHEMA_OK;
    double claimed = 0;
    if (!phema_json_number(&claimed, phema_json_get(metadata, "total_size")))
        return PHEMA_OK;
    double total = 0;
    for (size_t i = 0; i < checkpoint->n_tensors; i++)
        total += (double)checkpoint->tensors[i].size_bytes;
    if (claimed == total)
        return PHEMA_OK;
    return checkpoint_warn(checkpoint, err,
                           "the index says total_size %.0f, the tensors have %.0f bytes", claimed,
                           total);
}

static enum phema_status read_shards(struct phema_checkpoint *checkpoint, struct shard_index *index,
                                     const struct phema_checkpoint_options *options,
                                     struct phema_error *err)
{
    enum phema_status status = read_index(index, checkpoint_content(checkpoint, 0), err);
    if (status)
        return status;
    for (size_t i = 0; i < index->n_shards; i++) {
        const struct shard *shard = &index->shards[i];
        struct phema_name_buffer shown;
        status = read_shard(checkpoint, index, i, options, err);
        if (status)
            return phema_fail_in(err, status, "shard '%s'",
                                 phema_name_escape(&shown, shard->name, shard->name_size));
    }
    status = find_missing(index, err);
    return status ? status : check_total(checkpoint, index, err);
}

static enum phema_status open_shards(struct phema_checkpoint *checkpoint,
                                     const struct phema_checkpoint_options *options,
                                     struct phema_error *err)
{
    struct shard_index index = {0};
    enum phema_status status = read_shards(checkpoint, &index, options, err);
    name_table_clear(&index.row_names);
    name_table_clear(&index.shard_names);
    free(index.rows);
    free(index.shards);
    phema_json_free(index.document);
    return status;
}

const struct phema_format sharded_format = {
    .info = {.name = "sharded",
             .extensions = (const struct phema_extension[]){{".index.json", PHEMA_NAMES_CHECKPOINT},
                                                            {NULL, 0}},
             .is_index = true},
    .probe = probe,
    .open = open_shards,
};

/* The same of files of torch.save. An index says nothing of them: the first shard is looked at. */
const struct phema_format torch_sharded_format = {
    .info = {.name = "torch-sharded",
             .extensions = (const struct phema_extension[]){{NULL, 0}},
             .is_index = true},
    .open = open_shards,
};
