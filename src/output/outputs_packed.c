// SPDX-License-Identifier: Apache-2.0
/* outputs_packed.c - outputs as bytes for another process, and back. Its copies are those of the
 * templates that it opens again. */
#include <stdlib.h>
#include <string.h>

#include "outputs.h"
#include "phema/packed.h"

/* ---- Templates ---- */

/* A number of a checkpoint: snapshots first, then the templates of the outputs. 0: none. */
static uint64_t number_of(const struct phema_checkpoint *checkpoint, const struct phema_plan *plan,
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

static const struct phema_checkpoint *checkpoint_of(size_t number, const struct phema_plan *plan,
                                                    const struct phema_outputs *outputs)
{
    size_t n = plan->series->n;
    return !number       ? NULL
           : number <= n ? plan->series->snapshots[number - 1].checkpoint
                         : outputs->templates[number - n - 1];
}

/* ---- One output ---- */

static void pack_file(struct phema_strbuf *out, const struct phema_output_file *file)
{
    phema_pack_text(out, file->name);
    phema_pack_text(out, file->source);
    phema_pack_u64(out, file->header != NULL);
    if (file->header)
        phema_pack_bytes(out, file->header, file->header_size);
    phema_pack_u64(out, file->size_bytes);
}

static void unpack_file(struct phema_output_file *file, struct phema_unpacker *in)
{
    file->name = phema_unpack_owned(in, NULL);
    file->source = phema_unpack_text(in, NULL);
    if (phema_unpack_bool(in))
        file->header = (uint8_t *)phema_unpack_owned(in, &file->header_size);
    file->size_bytes = phema_unpack_u64(in);
}

/* Which table of locations the output has: 0 that of all outputs, k + 1 that of snapshot k. */
static size_t table_of(const struct phema_output *output, const struct phema_plan *plan,
                       const struct phema_outputs *outputs)
{
    for (size_t k = 0; k < plan->series->n && output->locations != outputs->locations; k++)
        if (plan->series->snapshots[k].locations == output->locations)
            return k + 1;
    return 0;
}

static void pack_output(struct phema_strbuf *out, const struct phema_output *output,
                        const struct phema_plan *plan, const struct phema_outputs *outputs)
{
    phema_pack_text(out, output->path);
    phema_pack_text(out, output->sidecar);
    phema_pack_u64(out, output->size_bytes);
    phema_pack_u64(out, output->shift);
    phema_pack_u64(out, table_of(output, plan, outputs));
    phema_pack_u64(out, number_of(output->template, plan, outputs));
    phema_pack_u64(out, output->provenance_file);
    phema_pack_u64(out, output->n_digests);
    for (size_t k = 0; k < output->n_digests; k++)
        phema_pack_u64(out, output->digest_offsets[k]);
    phema_pack_u64(out, output->n_files);
    for (size_t f = 0; f < output->n_files; f++)
        pack_file(out, &output->files[f]);
}

static void unpack_digests(struct phema_output *output, struct phema_unpacker *in)
{
    size_t n = phema_unpack_count(in, 8);
    output->digest_offsets = calloc(n + 1, sizeof(*output->digest_offsets));
    in->is_out_of_memory = in->is_out_of_memory || !output->digest_offsets;
    output->n_digests = output->digest_offsets ? n : 0;
    for (size_t k = 0; k < output->n_digests; k++)
        output->digest_offsets[k] = (size_t)phema_unpack_u64(in);
}

static void unpack_output(struct phema_output *output, struct phema_unpacker *in,
                          const struct phema_plan *plan, const struct phema_outputs *outputs)
{
    output->path = phema_unpack_owned(in, NULL);
    output->sidecar = phema_unpack_owned(in, NULL);
    output->size_bytes = phema_unpack_u64(in);
    output->shift = phema_unpack_u64(in);
    size_t table = phema_unpack_index(in, plan->series->n + 1);
    output->locations = table ? plan->series->snapshots[table - 1].locations : outputs->locations;
    size_t number = phema_unpack_index(in, plan->series->n + outputs->n_templates + 1);
    output->template = checkpoint_of(number, plan, outputs);
    output->provenance_file = (size_t)phema_unpack_u64(in);
    unpack_digests(output, in);
    size_t n_files = phema_unpack_count(in, 32);
    output->files = calloc(n_files + 1, sizeof(*output->files));
    in->is_out_of_memory = in->is_out_of_memory || !output->files;
    for (; output->files && output->n_files < n_files; output->n_files++)
        unpack_file(&output->files[output->n_files], in);
    bool has_provenance = !output->n_files || output->provenance_file < output->n_files;
    in->is_damaged = in->is_damaged || !output->path || !has_provenance;
}

/* ---- What outputs share ---- */

static void pack_side_files(struct phema_strbuf *out, const struct phema_outputs *outputs)
{
    phema_pack_u64(out, outputs->n_side_files);
    for (size_t f = 0; f < outputs->n_side_files; f++) {
        const struct phema_side_file *file = &outputs->side_files[f];
        phema_pack_text(out, file->name);
        phema_pack_text(out, file->source);
        phema_pack_u64(out, file->text != NULL);
        if (file->text)
            phema_pack_bytes(out, file->text, file->size);
        else
            phema_pack_u64(out, file->size);
        phema_pack_u64(out, file->is_last);
    }
}

static void unpack_side_files(struct phema_outputs *outputs, struct phema_unpacker *in)
{
    size_t n = phema_unpack_count(in, 40);
    outputs->side_files = calloc(n + 1, sizeof(*outputs->side_files));
    in->is_out_of_memory = in->is_out_of_memory || !outputs->side_files;
    for (; outputs->side_files && outputs->n_side_files < n; outputs->n_side_files++) {
        struct phema_side_file *file = &outputs->side_files[outputs->n_side_files];
        file->name = phema_unpack_owned(in, NULL);
        file->source = phema_unpack_owned(in, NULL);
        if (phema_unpack_bool(in))
            file->text = phema_unpack_owned(in, &file->size);
        else
            file->size = (size_t)phema_unpack_u64(in);
        file->is_last = phema_unpack_bool(in);
    }
}

static void pack_pieces(struct phema_strbuf *out, const struct phema_series *series,
                        const struct phema_outputs *outputs)
{
    phema_pack_u64(out, outputs->pieces != NULL);
    if (!outputs->pieces)
        return;
    size_t n = outputs->first_piece[series->n_tensors];
    phema_pack_u64(out, n);
    for (size_t p = 0; p < n; p++) {
        const struct phema_piece *piece = &outputs->pieces[p];
        unsigned rank = series->tensors[piece->tensor].tensor.rank;
        phema_pack_u64(out, piece->tensor);
        phema_pack_u64(out, piece->file);
        phema_pack_u64s(out, piece->start, rank);
        phema_pack_u64s(out, piece->size, rank);
        phema_pack_u64(out, piece->zip_at);
        phema_pack_u64(out, piece->zip_bytes);
        phema_pack_u64(out, piece->data_at);
        phema_pack_u64(out, piece->size_bytes);
    }
    for (size_t i = 0; i <= series->n_tensors; i++)
        phema_pack_u64(out, outputs->first_piece[i]);
}

static void unpack_pieces(struct phema_outputs *outputs, struct phema_unpacker *in,
                          const struct phema_series *series)
{
    if (!phema_unpack_bool(in))
        return;
    size_t n = phema_unpack_count(in, 48);
    outputs->pieces = calloc(n + 1, sizeof(*outputs->pieces));
    in->is_out_of_memory = in->is_out_of_memory || !outputs->pieces;
    for (size_t p = 0; outputs->pieces && p < n; p++) {
        struct phema_piece *piece = &outputs->pieces[p];
        piece->tensor = phema_unpack_index(in, series->n_tensors);
        piece->file = (size_t)phema_unpack_u64(in);
        unsigned rank = phema_unpack_is_failed(in) ? 0 : series->tensors[piece->tensor].tensor.rank;
        piece->start = phema_unpack_u64s(in, rank);
        piece->size = phema_unpack_u64s(in, rank);
        piece->zip_at = phema_unpack_u64(in);
        piece->zip_bytes = phema_unpack_u64(in);
        piece->data_at = phema_unpack_u64(in);
        piece->size_bytes = phema_unpack_u64(in);
    }
    outputs->first_piece =
        phema_unpack_array(in, series->n_tensors + 1, sizeof(*outputs->first_piece));
    for (size_t i = 0; outputs->first_piece && i <= series->n_tensors; i++)
        outputs->first_piece[i] = phema_unpack_index(in, n + 1);
}

void phema_outputs_pack(struct phema_strbuf *out, const struct phema_plan *plan,
                        const struct phema_outputs *outputs)
{
    const struct phema_series *series = plan->series;
    phema_pack_u64(out, outputs->form);
    phema_pack_u64(out, outputs->has_new_scales);
    phema_pack_u64(out, outputs->is_in_order);
    phema_pack_u64(out, (uint64_t)outputs->level);
    phema_pack_text(out, outputs->made_directory);
    for (size_t i = 0; i < series->n_tensors; i++)
        phema_pack_u64(out, outputs->dtypes[i]);
    phema_pack_u64(out, outputs->is_replaced != NULL);
    for (size_t i = 0; outputs->is_replaced && i < series->n_tensors; i++)
        phema_pack_u64(out, outputs->is_replaced[i]);
    phema_locations_pack(out, series, outputs->locations);
    phema_pack_u64(out, outputs->n_templates);
    for (size_t t = 0; t < outputs->n_templates; t++)
        phema_checkpoint_pack(out, outputs->templates[t]);
    pack_side_files(out, outputs);
    pack_pieces(out, series, outputs);
    phema_pack_u64(out, outputs->m);
    for (size_t j = 0; j < outputs->m; j++)
        pack_output(out, &outputs->items[j], plan, outputs);
}

static enum phema_status unpack_templates(struct phema_outputs *outputs, struct phema_unpacker *in,
                                          struct phema_error *err)
{
    size_t n = phema_unpack_count(in, 32);
    outputs->templates = phema_unpack_array(in, n, sizeof(struct phema_checkpoint *));
    enum phema_status status = phema_unpack_check(in, err);
    for (; !status && outputs->n_templates < n; outputs->n_templates += !status)
        status = phema_checkpoint_unpack(&outputs->templates[outputs->n_templates], in, err);
    return status;
}

static void unpack_tables(struct phema_outputs *outputs, struct phema_unpacker *in,
                          const struct phema_series *series)
{
    size_t n = series->n_tensors;
    outputs->dtypes = phema_unpack_array(in, n, sizeof(*outputs->dtypes));
    for (size_t i = 0; outputs->dtypes && i < n; i++)
        outputs->dtypes[i] = (enum phema_dtype)phema_unpack_index(in, PHEMA_N_DTYPES);
    if (phema_unpack_bool(in))
        outputs->is_replaced = phema_unpack_array(in, n, sizeof(*outputs->is_replaced));
    for (size_t i = 0; outputs->is_replaced && i < n; i++)
        outputs->is_replaced[i] = phema_unpack_bool(in);
    outputs->locations = phema_locations_unpack(in, series, SIZE_MAX);
}

static enum phema_status unpack(struct phema_outputs *outputs, struct phema_unpacker *in,
                                const struct phema_plan *plan, struct phema_error *err)
{
    outputs->form =
        (enum phema_output_form)phema_unpack_index(in, PHEMA_FORM_DISTRIBUTED_TEMPLATE + 1);
    outputs->has_new_scales = phema_unpack_bool(in);
    outputs->is_in_order = phema_unpack_bool(in);
    outputs->level = (int)phema_unpack_index(in, 100);
    outputs->made_directory = phema_unpack_text(in, NULL);
    unpack_tables(outputs, in, plan->series);
    enum phema_status status = unpack_templates(outputs, in, err);
    if (status)
        return status;
    unpack_side_files(outputs, in);
    unpack_pieces(outputs, in, plan->series);
    size_t m = phema_unpack_count(in, 64);
    outputs->items = phema_unpack_array(in, m, sizeof(*outputs->items));
    in->is_damaged = in->is_damaged || m != plan->m;
    for (; outputs->items && outputs->m < m && !phema_unpack_is_failed(in); outputs->m++)
        unpack_output(&outputs->items[outputs->m], in, plan, outputs);
    return phema_unpack_check(in, err);
}

PHEMA_FALLIBLE phema_outputs_unpack(struct phema_outputs *out, struct phema_unpacker *in,
                                    const struct phema_plan *plan, struct phema_error *err)
{
    *out = (struct phema_outputs){.form = PHEMA_FORM_FRESH};
    in->arena = &out->memory;
    enum phema_status status = unpack(out, in, plan, err);
    if (status)
        phema_outputs_clear(out);
    return status;
}
