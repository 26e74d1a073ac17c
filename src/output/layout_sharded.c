// SPDX-License-Identifier: Apache-2.0
/* layout_sharded.c - Shards, index and side files. The shards are those of the newest snapshot, or
 * new ones of a given size. Config and tokenizer files next to the newest snapshot are copied, so
 * that the directory loads like that snapshot. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "outputs.h"
#include "phema/json.h"
#include "phema/mapped_file.h"
#include "phema/path.h"
#include "phema/setting.h"

/* Limit for copied configurations and tokenizers. */
#define MAX_SIDE_FILE_BYTES ((off_t)64 << 20)

static const char default_index[] = "model.safetensors.index.json";

/* The assignment of tensors to shards. */
struct sharding {
    size_t *shard_of;   /* [n_tensors] */
    const char **names; /* [n] of the shards */
    size_t n;
    const char *index_name; /* NULL: one file, which needs none */
};

/* The shards of the newest snapshot: its file 0 is the index, and file f + 1 becomes shard f. */
static enum phema_status copy_sharding(struct sharding *sharding, const struct draft *draft,
                                       struct phema_error *err)
{
    const struct phema_series *series = draft->plan->series;
    const struct phema_snapshot *snapshot = &series->snapshots[series->n - 1];
    sharding->n = phema_checkpoint_n_files(draft->newest) - 1;
    sharding->names = phema_arena_array(draft->arena, sharding->n + 1, sizeof(char *));
    if (!sharding->names)
        return phema_fail_memory(err);
    for (size_t f = 0; f < sharding->n; f++) {
        const char *name = phema_path_last_name(phema_checkpoint_file_label(draft->newest, f + 1));
        for (size_t g = 0; g < f; g++)
            if (strcmp(sharding->names[g], name) == 0)
                return phema_fail(err, PHEMA_ERR_USAGE,
                                  "%s: two of its shards, in two folders, are called '%s'; give %s",
                                  snapshot->path, name, phema_setting_name(PHEMA_SET_SHARD_SIZE));
        sharding->names[f] = phema_arena_copy(draft->arena, name, strlen(name));
        if (!sharding->names[f])
            return phema_fail_memory(err);
    }
    for (size_t i = 0; i < series->n_tensors; i++)
        sharding->shard_of[i] = snapshot->locations[i].file - 1;
    const char *index = phema_path_last_name(phema_checkpoint_file_label(draft->newest, 0));
    sharding->index_name = phema_arena_copy(draft->arena, index, strlen(index));
    return sharding->index_name ? PHEMA_OK : phema_fail_memory(err);
}

/* The one file of the newest snapshot's folder, under its name where that is one of safetensors. */
static enum phema_status copy_single(struct sharding *sharding, const struct draft *draft,
                                     struct phema_error *err)
{
    const char *name = phema_path_last_name(phema_checkpoint_file_label(draft->newest, 0));
    const char *end = phema_format_extension("safetensors");
    if (!phema_ends_with(name, end))
        name = "model.safetensors";
    sharding->n = 1;
    sharding->names = phema_arena_array(draft->arena, 1, sizeof(char *));
    if (!sharding->names)
        return phema_fail_memory(err);
    sharding->names[0] = phema_arena_copy(draft->arena, name, strlen(name));
    return sharding->names[0] ? PHEMA_OK : phema_fail_memory(err);
}

/* Fills one shard after another, in the newest snapshot's order of tensors. A tensor that is larger
 * than a shard gets its own. */
static enum phema_status shard_by_size(struct sharding *sharding, const struct draft *draft,
                                       struct phema_error *err)
{
    const struct phema_series *series = draft->plan->series;
    uint64_t used = 0;
    sharding->n = series->n_tensors ? 1 : 0;
    for (size_t i = 0; i < series->n_tensors; i++) {
        uint64_t size = draft->tensors[i].size_bytes;
        if (used &&
            (size > draft->options->shard_bytes || used > draft->options->shard_bytes - size)) {
            sharding->n++;
            used = 0;
        }
        used += size;
        sharding->shard_of[i] = sharding->n - 1;
    }
    sharding->names = phema_arena_array(draft->arena, sharding->n + 1, sizeof(char *));
    if (!sharding->names)
        return phema_fail_memory(err);
    for (size_t f = 0; f < sharding->n; f++) {
        sharding->names[f] = phema_arena_printf(draft->arena, "model-%05zu-of-%05zu.safetensors",
                                                f + 1, sharding->n);
        if (!sharding->names[f])
            return phema_fail_memory(err);
    }
    sharding->index_name = default_index;
    return PHEMA_OK;
}

/* ---- Files that hold no tensors ---- */

PHEMA_FALLIBLE outputs_add_side_file(struct draft *draft, const char *name, char *source,
                                     const struct phema_strbuf *text, bool is_last,
                                     struct phema_error *err)
{
    struct phema_outputs *outputs = draft->outputs;
    struct phema_side_file *files =
        realloc(outputs->side_files, (outputs->n_side_files + 1) * sizeof(*files));
    struct phema_side_file added = {strdup(name), source, text ? text->data : NULL,
                                    text ? text->size : 0, is_last};
    if (files)
        outputs->side_files = files;
    if (!files || !added.name) {
        free(added.name);
        free(added.source);
        free(added.text);
        return phema_fail_memory(err);
    }
    files[outputs->n_side_files++] = added;
    return PHEMA_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct phema_side_file *)a)->name,
                  ((const struct phema_side_file *)b)->name);
}

void outputs_sort_side_files(struct phema_outputs *outputs)
{
    if (outputs->n_side_files > 1)
        qsort(outputs->side_files, outputs->n_side_files, sizeof(*outputs->side_files), by_name);
}

static enum phema_status add_index(struct draft *draft, const struct sharding *sharding,
                                   struct phema_error *err)
{
    const struct phema_series *series = draft->plan->series;
    uint64_t total = 0;
    for (size_t i = 0; i < series->n_tensors; i++)
        total += draft->tensors[i].size_bytes;
    struct phema_strbuf text = {0};
    struct phema_json_out out = {.text = &text, .is_pretty = true};
    phema_json_out_open(&out, NULL, '{');
    phema_json_out_open(&out, "metadata", '{');
    phema_json_out_u64(&out, "total_size", total);
    phema_json_out_close(&out, '}');
    phema_json_out_open(&out, "weight_map", '{');
    for (size_t i = 0; i < series->n_tensors; i++) {
        phema_json_out_key(&out, draft->tensors[i].name, draft->tensors[i].name_size);
        phema_json_out_string(&out, NULL, sharding->names[sharding->shard_of[i]]);
    }
    phema_json_out_close(&out, '}');
    phema_json_out_close(&out, '}');
    phema_strbuf_puts(&text, "\n");
    enum phema_status status = phema_strbuf_check(&text, err);
    if (!status && text.size > PHEMA_MAX_INDEX_BYTES)
        status =
            phema_fail(err, PHEMA_ERR_OUTPUT,
                       "the index of the shards has %zu bytes, more than the %zu that are read; "
                       "write one file, or leave tensors out with %s",
                       text.size, PHEMA_MAX_INDEX_BYTES, phema_setting_name(PHEMA_SET_EXCLUDE));
    if (status) {
        phema_strbuf_clear(&text);
        return status;
    }
    return outputs_add_side_file(draft, sharding->index_name, NULL, &text, false, err);
}

/* Files of tensors, and hidden and unfinished files, are no side files. */
static bool is_side_file(const char *name)
{
    return name[0] != '.' && !phema_ends_with(name, ".partial") && !phema_path_names_tensors(name);
}

/* ---- The dtype in a configuration ---- */

/* As torch names it; NULL: libraries have no models of it. */
static const char *name_dtype(enum phema_dtype dtype)
{
    return dtype == PHEMA_F64    ? "float64"
           : dtype == PHEMA_F32  ? "float32"
           : dtype == PHEMA_F16  ? "float16"
           : dtype == PHEMA_BF16 ? "bfloat16"
                                 : NULL;
}

/* A member that says in which dtype the model is loaded. */
static bool says_dtype(struct phema_json_field *field)
{
    size_t size = 0;
    const char *key = phema_json_key(field, &size);
    return (phema_bytes_are(key, size, "dtype") || phema_bytes_are(key, size, "torch_dtype")) &&
           phema_json_type(phema_json_value(field)) == PHEMA_JSON_STRING;
}

/* The configuration with the dtype of the tensors; empty: it says none. Of invalid ones, too. */
static enum phema_status change_dtype(struct phema_strbuf *text, const char *path,
                                      enum phema_dtype dtype, struct phema_error *err)
{
    const char *name = name_dtype(dtype);
    struct phema_error ignored = {0};
    struct phema_file *file = NULL;
    struct phema_json *root = NULL;
    enum phema_status status = phema_file_open(&file, path, err);
    if (status)
        return status;
    bool is_any = name && phema_json_parse(&root, phema_file_span(file), &ignored) == PHEMA_OK &&
                  (phema_json_get(root, "dtype") || phema_json_get(root, "torch_dtype"));
    struct phema_json_out out = {.text = text, .is_pretty = true};
    if (is_any)
        phema_json_out_open(&out, NULL, '{');
    for (struct phema_json_field *field = is_any ? phema_json_first(root) : NULL; field;
         field = phema_json_next(root, field)) {
        size_t size = 0;
        const char *key = phema_json_key(field, &size);
        phema_json_out_key(&out, key, size);
        if (says_dtype(field))
            phema_json_out_string(&out, NULL, name);
        else
            phema_json_out_copy(&out, NULL, phema_json_value(field));
    }
    if (is_any) {
        phema_json_out_close(&out, '}');
        phema_strbuf_puts(text, "\n");
        status = phema_strbuf_check(text, err);
    }
    phema_json_free(root);
    phema_file_close(file);
    return status;
}

/* ---- Copies ---- */

static enum phema_status add_copy(struct draft *draft, const char *directory, const char *name,
                                  const struct sharding *sharding, struct phema_error *err)
{
    char *path = NULL;
    if (asprintf(&path, "%s/%s", directory, name) < 0)
        return phema_fail_memory(err);
    struct stat st;
    bool is_copied = is_side_file(name) && stat(path, &st) == 0 && S_ISREG(st.st_mode) &&
                     st.st_size <= MAX_SIDE_FILE_BYTES &&
                     (!sharding->index_name || strcmp(name, sharding->index_name) != 0);
    if (!is_copied) {
        free(path);
        return PHEMA_OK;
    }
    enum phema_status status =
        phema_claims_add_input(draft->plan->series->claims, path, "a file that is copied", err);
    if (status) {
        free(path);
        return status;
    }
    struct phema_strbuf text = {0};
    if (strcmp(name, OUTPUTS_CONFIG) == 0 && draft->options->has_dtype)
        status = change_dtype(&text, path, draft->options->dtype, err);
    if (status || text.data) {
        free(path);
        path = NULL;
    }
    return status ? status
                  : outputs_add_side_file(draft, name, path, path ? NULL : &text, false, err);
}

/* Those of the directory of the newest checkpoint, or of its index. */
static enum phema_status add_copies(struct draft *draft, const struct sharding *sharding,
                                    struct phema_error *err)
{
    const char *path = phema_file_path(phema_checkpoint_file(draft->newest, 0));
    if (!phema_path_is_directory(phema_checkpoint_path(draft->newest)))
        if (strcmp(phema_checkpoint_format(draft->newest), "sharded") != 0)
            return PHEMA_OK; /* files next to one of many snapshots are not its own */
    const char *slash = strrchr(path, '/');
    char *directory = slash ? strndup(path, (size_t)(slash - path)) : strdup(".");
    DIR *stream = directory ? opendir(directory) : NULL;
    enum phema_status status = PHEMA_OK;
    if (!directory) {
        status = phema_fail_memory(err);
    } else if (!stream) {
        status = phema_fail_errno(err, PHEMA_ERR_FILE, "cannot be opened", errno);
        status = phema_fail_in(err, status, "%s", directory);
    }
    for (const struct dirent *entry; !status && (entry = readdir(stream));)
        status = add_copy(draft, directory, entry->d_name, sharding, err);
    if (stream)
        (void)closedir(stream);
    free(directory);
    outputs_sort_side_files(draft->outputs);
    return status;
}

/* ---- All files ---- */

static enum phema_status add_shards(struct draft *draft, size_t output,
                                    const struct sharding *sharding, struct phema_error *err)
{
    size_t n_tensors = draft->plan->series->n_tensors;
    size_t *index = calloc(n_tensors + 1, sizeof(*index));
    if (!index)
        return phema_fail_memory(err);
    enum phema_status status = PHEMA_OK;
    bool is_first = true;
    for (size_t f = 0; f < sharding->n && !status; f++) {
        size_t n = 0;
        for (size_t i = 0; i < n_tensors; i++)
            if (sharding->shard_of[i] == f)
                index[n++] = i;
        if (n == 0) /* all of its tensors were left out */
            continue;
        bool has_provenance = is_first && !draft->options->is_conversion;
        status =
            outputs_add_file(draft, &draft->outputs->items[output],
                             has_provenance ? output : SIZE_MAX, sharding->names[f], index, n, err);
        is_first = false;
    }
    free(index);
    return status;
}

static enum phema_status lay_out(struct sharding *sharding, struct draft *draft,
                                 struct phema_error *err)
{
    bool is_sharded = strcmp(phema_checkpoint_format(draft->newest), "sharded") == 0;
    enum phema_status status = draft->options->shard_bytes ? shard_by_size(sharding, draft, err)
                               : is_sharded                ? copy_sharding(sharding, draft, err)
                                                           : copy_single(sharding, draft, err);
    for (size_t j = 0; j < draft->outputs->m && !status; j++)
        status = add_shards(draft, j, sharding, err);
    if (status)
        return status;
    if (sharding->index_name)
        status = add_index(draft, sharding, err);
    return status ? status : add_copies(draft, sharding, err);
}

PHEMA_FALLIBLE outputs_lay_out_sharded(struct draft *draft, struct phema_error *err)
{
    struct sharding sharding = {0};
    sharding.shard_of = calloc(draft->plan->series->n_tensors + 1, sizeof(*sharding.shard_of));
    enum phema_status status =
        sharding.shard_of ? lay_out(&sharding, draft, err) : phema_fail_memory(err);
    free(sharding.shard_of);
    return status;
}
