// SPDX-License-Identifier: Apache-2.0
/* layout_safetensors.c - One new file: header, provenance, places, digest placeholders. The digests
 * of the snapshots' data are known only when all snapshots have been read; until then zeros reserve
 * their space, in a header or in the sidecar of a copy. */
#include <stdlib.h>
#include <string.h>

#include "outputs.h"

/* ---- Metadata ---- */

static bool is_own(const struct phema_metadata *item)
{
    return phema_bytes_begin(item->key, item->key_size, "posthoc_ema.");
}

/* A digest of the tensors, as kohya's sshs_model_hash: the average has others. */
static bool is_hash(const struct phema_metadata *item)
{
    static const char *const words[] = {"hash", "sha256", "sha512",  "sha1",
                                        "md5",  "digest", "checksum"};
    size_t size = strspn(item->value, "0123456789abcdefABCDEF");
    bool is_named = false;
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        is_named = is_named || strstr(item->key, words[i]);
    bool is_of_code = strstr(item->key, "git") || strstr(item->key, "commit");
    return is_named && !is_of_code && size >= 8 &&
           (item->value[size] == '\0' || strncmp(item->value, "0x", 2) == 0);
}

/* Metadata of the newest snapshot describe the average too. Transformers, for example, loads only
 * files whose metadata name the framework. */
static size_t copy_metadata(struct phema_metadata *items, const struct draft *draft)
{
    static const char key[] = "format";
    size_t n = 0;
    bool has_format = false;
    for (size_t i = 0; i < phema_checkpoint_n_metadata(draft->newest); i++) {
        const struct phema_metadata *item = &phema_checkpoint_metadata(draft->newest)[i];
        has_format = has_format || strcmp(item->key, key) == 0;
        bool is_of_frozen = /* which are among the tensors of the output */
            strcmp(item->key, PHEMA_FROZEN_FILE) == 0 ||
            strcmp(item->key, PHEMA_FROZEN_DIGEST) == 0;
        if (!is_of_frozen && (draft->options->is_conversion || (!is_own(item) && !is_hash(item))))
            items[n++] = *item;
    }
    const char *format = phema_checkpoint_format(draft->newest);
    bool is_torch = strncmp(format, "safetensors", 11) != 0 && strcmp(format, "sharded") != 0;
    if (is_torch && !has_format)
        items[n++] = (struct phema_metadata){key, "pt", strlen(key), 2};
    return n;
}

/* ---- Digests ---- */

/* The placeholders are found by their text. The provenance is an object in OUT.json, and a string
 * in a header. Names of files and tensors, and metadata of others, are escaped once more there:
 * they cannot look like a placeholder. */
static const struct {
    const char *start, *member;
} placeholders[] = {
    {"\n \"posthoc_ema.provenance\": {", "\"" PROVENANCE_DATA_DIGEST "\":\""},
    {"\"posthoc_ema.provenance\":\"{", "\\\"" PROVENANCE_DATA_DIGEST "\\\":\\\""},
};

/* The end of the next occurrence from offset at on; NULL: there is no other. */
static const char *find_end_of(const char *text, size_t size, size_t at, const char *wanted)
{
    const char *found = memmem(text + at, size - at, wanted, strlen(wanted));
    return found ? found + strlen(wanted) : NULL;
}

PHEMA_FALLIBLE outputs_find_digests(const struct draft *draft, struct phema_output *output,
                                    size_t target, const char *text, size_t size,
                                    struct phema_error *err)
{
    if (!draft->options->hashes_inputs)
        return PHEMA_OK;
    size_t n = draft->plan->series->n - draft->plan->targets[target].n_left_out;
    const struct phema_output_traits *form = phema_output_traits(draft->outputs);
    bool is_header = !form->is_copy && !form->has_provenance_file;
    const char *at = find_end_of(text, size, 0, placeholders[is_header].start);
    output->digest_offsets = calloc(n + 1, sizeof(*output->digest_offsets));
    if (!output->digest_offsets)
        return phema_fail_memory(err);
    for (size_t k = 0; k < n && at; k++) {
        at = find_end_of(text, size, (size_t)(at - text), placeholders[is_header].member);
        output->digest_offsets[k] = at ? (size_t)(at - text) : 0;
    }
    if (!at)
        return phema_fail(err, PHEMA_BUG, "%s: no place for the digests of snapshots",
                          output->path);
    output->n_digests = n;
    return PHEMA_OK;
}

void phema_output_set_digests(struct phema_output *output, const struct phema_hash_sum *sums)
{
    char *text =
        output->sidecar ? output->sidecar : (char *)output->files[output->provenance_file].header;
    for (size_t k = 0; k < output->n_digests; k++) {
        char digits[PHEMA_DIGEST];
        phema_hash_sum_show(digits, &sums[k]);
        memcpy(text + output->digest_offsets[k], digits, PHEMA_DIGEST - 1);
    }
}

/* ---- Files ---- */

static enum phema_status lay_out_last_file(struct draft *draft, struct phema_output *output,
                                           const struct provenance_metadata *provenance,
                                           const size_t *index, size_t n, struct phema_error *err)
{
    struct phema_output_file *file = &output->files[output->n_files - 1];
    struct phema_tensor *tensors = calloc(n + 1, sizeof(*tensors));
    uint64_t *offsets = calloc(n + 1, sizeof(*offsets));
    size_t most = phema_checkpoint_n_metadata(draft->newest) + 1 + ARRAY_LEN(provenance->items);
    struct phema_metadata *metadata = calloc(most, sizeof(*metadata));
    enum phema_status status = PHEMA_OK;
    if (!tensors || !offsets || !metadata) {
        status = phema_fail_memory(err);
        goto done;
    }
    size_t n_metadata = copy_metadata(metadata, draft);
    for (size_t x = 0; x < provenance->n; x++)
        metadata[n_metadata++] = provenance->items[x];
    for (size_t x = 0; x < n; x++)
        tensors[x] = draft->tensors[index[x]];
    status = phema_safetensors_layout(&file->header, &file->header_size, offsets, &file->size_bytes,
                                      tensors, n, metadata, n_metadata, err);
    if (status)
        goto done;
    for (size_t x = 0; x < n; x++)
        draft->outputs->locations[index[x]] = (struct phema_tensor_location){
            .offset = offsets[x] - file->header_size, .file = output->n_files - 1};
done:
    free(tensors);
    free(offsets);
    free(metadata);
    return status;
}

static enum phema_status add_file(struct draft *draft, struct phema_output *output, size_t target,
                                  const char *name, const size_t *index, size_t n,
                                  struct phema_error *err)
{
    struct phema_output_file *files =
        realloc(output->files, (output->n_files + 1) * sizeof(*output->files));
    if (!files)
        return phema_fail_memory(err);
    output->files = files;
    struct phema_output_file *file = &files[output->n_files++];
    *file = (struct phema_output_file){.name = name ? strdup(name) : NULL};
    if (name && !file->name)
        return phema_fail_memory(err);

    struct provenance_metadata provenance = {0};
    enum phema_status status =
        target == SIZE_MAX ? PHEMA_OK : provenance_write(&provenance, draft, target, err);
    if (status)
        return status;
    status = lay_out_last_file(draft, output, &provenance, index, n, err);
    if (!status && provenance.n)
        status = outputs_find_digests(draft, output, target, (const char *)file->header,
                                      file->header_size, err);
    provenance_clear(&provenance);
    output->size_bytes += file->size_bytes;
    output->locations = draft->outputs->locations;
    return status;
}

PHEMA_FALLIBLE outputs_add_file(struct draft *draft, struct phema_output *output, size_t target,
                                const char *name, const size_t *index, size_t n,
                                struct phema_error *err)
{
    enum phema_status status = add_file(draft, output, target, name, index, n, err);
    return status ? phema_fail_in(err, status, "%s", output->path) : PHEMA_OK;
}

PHEMA_FALLIBLE outputs_lay_out_safetensors(struct draft *draft, struct phema_error *err)
{
    size_t n = draft->plan->series->n_tensors;
    size_t *index = calloc(n + 1, sizeof(*index));
    if (!index)
        return phema_fail_memory(err);
    for (size_t i = 0; i < n; i++)
        index[i] = i;
    enum phema_status status = PHEMA_OK;
    for (size_t j = 0; j < draft->outputs->m && !status; j++)
        status =
            outputs_add_file(draft, &draft->outputs->items[j],
                             draft->options->is_conversion ? SIZE_MAX : j, NULL, index, n, err);
    free(index);
    return status;
}
