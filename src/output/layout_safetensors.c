// SPDX-License-Identifier: Apache-2.0
/* layout_safetensors.c - new safetensors files: header, metadata, places. */
#include <stdlib.h>
#include <string.h>

#include "outputs.h"
#include "provenance_write.h"

static bool is_own(const struct phema_metadata *item)
{
    static const char prefix[] = "posthoc_ema.";
    return item->key_size >= strlen(prefix) && memcmp(item->key, prefix, strlen(prefix)) == 0;
}

/* What the newest snapshot's metadata say of the model stays true of an average: transformers, for
 * one, loads no file that does not say which framework wrote it. */
static size_t carry_metadata(struct phema_metadata *items, const struct draft *draft)
{
    static const char key[] = "format";
    size_t n = 0;
    bool has_format = false;
    for (size_t i = 0; i < phema_checkpoint_n_metadata(draft->newest); i++) {
        const struct phema_metadata *item = &phema_checkpoint_metadata(draft->newest)[i];
        has_format = has_format || strcmp(item->key, key) == 0;
        if (draft->options->is_conversion || !is_own(item))
            items[n++] = *item;
    }
    const char *format = phema_checkpoint_format(draft->newest);
    bool is_torch = strncmp(format, "safetensors", 11) != 0 && strcmp(format, "sharded") != 0;
    if (is_torch && !has_format)
        items[n++] = (struct phema_metadata){key, "pt", strlen(key), 2};
    return n;
}

PHEMA_FALLIBLE outputs_add_file(struct draft *draft, struct phema_output *output, size_t target,
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

    struct provenance provenance = {0};
    struct phema_tensor *tensors = calloc(n + 1, sizeof(*tensors));
    uint64_t *offsets = calloc(n + 1, sizeof(*offsets));
    struct phema_metadata *metadata =
        calloc(phema_checkpoint_n_metadata(draft->newest) + 1 + ARRAY_LEN(provenance.items),
               sizeof(*metadata));
    bool has_memory = tensors && offsets && metadata && (file->name || !name);
    enum phema_status status = has_memory ? PHEMA_OK : phema_fail_memory(err);
    if (!status && target != SIZE_MAX)
        status = provenance_make(&provenance, draft->plan, &draft->plan->targets[target],
                                 draft->options, err);
    if (!status) {
        size_t n_metadata = carry_metadata(metadata, draft);
        if (provenance.n)
            memcpy(metadata + n_metadata, provenance.items,
                   provenance.n * sizeof(*provenance.items));
        for (size_t x = 0; x < n; x++)
            tensors[x] = draft->tensors[index[x]];
        status =
            phema_safetensors_layout(&file->header, &file->header_size, offsets, &file->size_bytes,
                                     tensors, n, metadata, n_metadata + provenance.n, err);
    }
    if (!status && provenance.n)
        status = outputs_find_digests(draft, output, target, (const char *)file->header,
                                      file->header_size, err);
    for (size_t x = 0; x < n && !status; x++)
        draft->outputs->places[index[x]] = (struct phema_tensor_location){
            .offset = offsets[x] - file->header_size, .file = output->n_files - 1};
    output->size_bytes += file->size_bytes;
    output->places = draft->outputs->places;
    provenance_clear(&provenance);
    free(tensors);
    free(offsets);
    free(metadata);
    return status ? phema_fail_in(err, status, "%s", output->path) : PHEMA_OK;
}

PHEMA_FALLIBLE outputs_lay_out_fresh(struct draft *draft, struct phema_error *err)
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
