// SPDX-License-Identifier: Apache-2.0
/* outputs_packed.c - outputs as bytes for another process, and back. Its copies are those of the
 * templates that it opens again. */
#include "outputs.h"
#include "phema/packed.h"

/* ---- Templates ---- */

/* A number of a checkpoint: snapshots first, then the templates of the outputs. 0: none. */
static size_t number_of(const struct phema_checkpoint *checkpoint, const struct phema_plan *plan,
                        const struct phema_outputs *outputs)
{
    size_t n = plan->series->n;
    for (size_t k = 0; checkpoint && k < n; k++)
        if (plan->series->snapshots[k].checkpoint == checkpoint)
            return k + 1;
    for (size_t t = 0; checkpoint && t < outputs->n_templates; t++)
        if (outputs->templates[t] == checkpoint)
            return n + t + 1;
    return 0;
}

/* An array with its length, of items of at least so many bytes; no items where it has failed. */
static void *pack_items(struct phema_packer *packer, void *items, size_t *n, size_t least_bytes,
                        size_t size)
{
    phema_pack_count(packer, n, least_bytes);
    void *packed = phema_pack_owned_array(packer, items, *n, size);
    *n = packed ? *n : 0;
    return packed;
}

/* ---- One output ---- */

static void pack_file(struct phema_packer *packer, struct phema_output_file *file)
{
    char *header = (char *)file->header;
    phema_pack_owned_text(packer, &file->name);
    phema_pack_text(packer, &file->source);
    phema_pack_owned_bytes(packer, &header, &file->header_size);
    file->header = (uint8_t *)header;
    phema_pack_u64(packer, &file->size_bytes);
}

/* The table of locations is that of all outputs, 0, or that of snapshot k, k + 1. */
static void pack_places(struct phema_packer *packer, struct phema_output *output,
                        const struct phema_plan *plan, const struct phema_outputs *outputs)
{
    size_t n = plan->series->n, table = 0, template = 0;
    if (!phema_pack_receives(packer)) {
        for (size_t k = n; k-- > 0 && output->locations != outputs->locations;)
            if (plan->series->snapshots[k].locations == output->locations)
                table = k + 1;
        template = number_of(output->template, plan, outputs);
    }
    phema_pack_index(packer, &table, n + 1);
    phema_pack_index(packer, &template, n + outputs->n_templates + 1);
    if (!phema_pack_receives(packer))
        return;
    output->locations = table ? plan->series->snapshots[table - 1].locations : outputs->locations;
    output->template = !template       ? NULL
                       : template <= n ? plan->series->snapshots[template - 1].checkpoint
                                       : outputs->templates[template - n - 1];
}

static void pack_output(struct phema_packer *packer, struct phema_output *output,
                        const struct phema_plan *plan, const struct phema_outputs *outputs)
{
    phema_pack_owned_text(packer, &output->path);
    phema_pack_owned_text(packer, &output->sidecar);
    phema_pack_u64(packer, &output->size_bytes);
    phema_pack_u64(packer, &output->shift);
    pack_places(packer, output, plan, outputs);
    phema_pack_size(packer, &output->provenance_file);
    output->digest_offsets = pack_items(packer, output->digest_offsets, &output->n_digests, 8,
                                        sizeof(*output->digest_offsets));
    for (size_t k = 0; k < output->n_digests; k++)
        phema_pack_size(packer, &output->digest_offsets[k]);
    output->files = pack_items(packer, output->files, &output->n_files, 32, sizeof(*output->files));
    for (size_t f = 0; f < output->n_files; f++)
        pack_file(packer, &output->files[f]);
    bool has_provenance = !output->n_files || output->provenance_file < output->n_files;
    packer->is_damaged = packer->is_damaged || !output->path || !has_provenance;
}

/* ---- What outputs share ---- */

static void pack_side_file(struct phema_packer *packer, struct phema_side_file *file)
{
    phema_pack_owned_text(packer, &file->name);
    phema_pack_owned_text(packer, &file->source);
    if (phema_pack_presence(packer, file->text != NULL))
        phema_pack_owned_bytes(packer, &file->text, &file->size);
    else
        phema_pack_size(packer, &file->size);
    phema_pack_bool(packer, &file->is_last);
}

static void pack_piece(struct phema_packer *packer, struct phema_piece *piece,
                       const struct phema_series *series)
{
    phema_pack_index(packer, &piece->tensor, series->n_tensors);
    phema_pack_size(packer, &piece->file);
    unsigned rank = phema_pack_is_failed(packer) ? 0 : series->tensors[piece->tensor].tensor.rank;
    phema_pack_u64s(packer, &piece->start, rank);
    phema_pack_u64s(packer, &piece->size, rank);
    phema_pack_u64(packer, &piece->zip_at);
    phema_pack_u64(packer, &piece->zip_bytes);
    phema_pack_u64(packer, &piece->data_at);
    phema_pack_u64(packer, &piece->size_bytes);
}

static void pack_pieces(struct phema_packer *packer, struct phema_outputs *outputs,
                        const struct phema_series *series)
{
    if (!phema_pack_presence(packer, outputs->pieces != NULL))
        return;
    size_t n = phema_pack_receives(packer) ? 0 : outputs->first_piece[series->n_tensors];
    phema_pack_count(packer, &n, 48);
    outputs->pieces = phema_pack_owned_array(packer, outputs->pieces, n, sizeof(*outputs->pieces));
    for (size_t p = 0; outputs->pieces && p < n; p++)
        pack_piece(packer, &outputs->pieces[p], series);
    outputs->first_piece = phema_pack_array(packer, outputs->first_piece, series->n_tensors + 1,
                                            sizeof(*outputs->first_piece));
    for (size_t i = 0; outputs->first_piece && i <= series->n_tensors; i++)
        phema_pack_index(packer, &outputs->first_piece[i], n + 1);
}

static enum phema_status pack_templates(struct phema_packer *packer, struct phema_outputs *outputs,
                                        struct phema_error *err)
{
    size_t n = outputs->n_templates;
    phema_pack_count(packer, &n, 32);
    outputs->templates =
        phema_pack_array(packer, outputs->templates, n, sizeof(struct phema_checkpoint *));
    enum phema_status status = phema_pack_check(packer, err);
    for (size_t t = 0; t < n && !status; t++) {
        status = phema_checkpoint_pack(&outputs->templates[t], packer, err);
        if (!status && phema_pack_receives(packer))
            outputs->n_templates = t + 1; /* closed with the outputs */
    }
    return status;
}

static void pack_tables(struct phema_packer *packer, struct phema_outputs *outputs,
                        const struct phema_series *series)
{
    size_t n = series->n_tensors;
    outputs->dtypes = phema_pack_array(packer, outputs->dtypes, n, sizeof(*outputs->dtypes));
    for (size_t i = 0; outputs->dtypes && i < n; i++)
        outputs->dtypes[i] =
            (enum phema_dtype)phema_pack_choice(packer, outputs->dtypes[i], PHEMA_N_DTYPES);
    if (phema_pack_presence(packer, outputs->is_replaced != NULL))
        outputs->is_replaced =
            phema_pack_array(packer, outputs->is_replaced, n, sizeof(*outputs->is_replaced));
    for (size_t i = 0; outputs->is_replaced && i < n; i++)
        phema_pack_bool(packer, &outputs->is_replaced[i]);
    outputs->locations = phema_locations_pack(outputs->locations, packer, series, SIZE_MAX);
}

static enum phema_status pack(struct phema_outputs *outputs, struct phema_packer *packer,
                              const struct phema_plan *plan, struct phema_error *err)
{
    outputs->form = (enum phema_output_form)phema_pack_choice(packer, outputs->form,
                                                              PHEMA_FORM_DISTRIBUTED_TEMPLATE + 1);
    phema_pack_bool(packer, &outputs->has_new_scales);
    phema_pack_bool(packer, &outputs->is_in_order);
    outputs->level = (int)phema_pack_choice(packer, (unsigned)outputs->level, 100);
    phema_pack_text(packer, &outputs->made_directory);
    pack_tables(packer, outputs, plan->series);
    enum phema_status status = pack_templates(packer, outputs, err);
    if (status)
        return status;
    outputs->side_files = pack_items(packer, outputs->side_files, &outputs->n_side_files, 40,
                                     sizeof(*outputs->side_files));
    for (size_t f = 0; f < outputs->n_side_files; f++)
        pack_side_file(packer, &outputs->side_files[f]);
    pack_pieces(packer, outputs, plan->series);
    size_t m = outputs->m;
    phema_pack_count(packer, &m, 64);
    outputs->items = phema_pack_array(packer, outputs->items, m, sizeof(*outputs->items));
    packer->is_damaged = packer->is_damaged || m != plan->m;
    for (size_t j = 0; outputs->items && j < m && !phema_pack_is_failed(packer); j++) {
        if (phema_pack_receives(packer))
            outputs->m = j + 1; /* cleared with the outputs */
        pack_output(packer, &outputs->items[j], plan, outputs);
    }
    return phema_pack_check(packer, err);
}

PHEMA_FALLIBLE phema_outputs_pack(struct phema_outputs *outputs, struct phema_packer *packer,
                                  const struct phema_plan *plan, struct phema_error *err)
{
    if (!phema_pack_receives(packer))
        return pack(outputs, packer, plan, err);
    *outputs = (struct phema_outputs){.form = PHEMA_FORM_FRESH};
    packer->arena = &outputs->memory;
    enum phema_status status = pack(outputs, packer, plan, err);
    if (status)
        phema_outputs_clear(outputs);
    return status;
}
