// SPDX-License-Identifier: Apache-2.0
/* layout_distributed.c - A new distributed checkpoint: boxes, files and .metadata. Each rank gets a
 * block of rows of every large tensor, as FSDP divides them; small tensors stay whole and go into
 * the smallest file so far. Blocks are contiguous runs of their tensor. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dcp.h"
#include "outputs.h"
#include "phema/array.h"
#include "phema/setting.h"

/* Larger boxes are divided: every zip then stays below 4 GiB, and needs no zip64 sizes. */
#define MAX_BOX_BYTES ((uint64_t)2 << 30)
/* Least size of a rank's block. The zip around it takes about 900 bytes. */
#define MIN_BLOCK_BYTES ((uint64_t)4096)
/* Longer names are not read (docs/formats/dcp.md). */
#define MAX_NAME_BYTES 4096u

struct distribution {
    struct draft *draft;
    uint64_t *file_bytes; /* [ranks] */
    size_t ranks;
    size_t n, capacity; /* pieces */
    struct dcp_frame frame;
};

/* Appends a box to a file. The arrays are copied. */
static enum phema_status add_piece(struct distribution *distribution, size_t tensor, size_t rank,
                                   const uint64_t *start, const uint64_t *size,
                                   struct phema_error *err)
{
    struct phema_outputs *outputs = distribution->draft->outputs;
    const struct phema_tensor *whole = &distribution->draft->tensors[tensor];
    struct dcp_frame *frame = &distribution->frame;
    uint64_t *bounds =
        phema_arena_array(distribution->draft->arena, (size_t)2 * whole->rank, sizeof(*bounds));
    if (!bounds || !phema_array_grow(&outputs->pieces, &distribution->capacity, distribution->n,
                                     sizeof(*outputs->pieces)))
        return phema_fail_memory(err);
    for (unsigned d = 0; d < whole->rank; d++) {
        bounds[d] = start[d];
        bounds[whole->rank + d] = size[d];
    }
    enum phema_status status = dcp_frame_make(frame, whole->dtype, size, whole->rank, 0, err);
    if (status)
        return status;
    uint64_t used = distribution->file_bytes[rank], zip_at = used + -used % DCP_ALIGNMENT;
    outputs->pieces[distribution->n++] =
        (struct phema_piece){.tensor = tensor,
                             .file = rank,
                             .start = bounds,
                             .size = bounds + whole->rank,
                             .zip_at = zip_at,
                             .zip_bytes = frame->zip_bytes,
                             .data_at = zip_at + frame->data_at,
                             .size_bytes = frame->zip_bytes - frame->bytes.size};
    distribution->file_bytes[rank] = zip_at + frame->zip_bytes;
    return PHEMA_OK;
}

static uint64_t box_bytes(const struct phema_tensor *tensor, const uint64_t *size)
{
    uint64_t n_elems = 1;
    for (unsigned d = 0; d < tensor->rank; d++)
        n_elems *= size[d];
    return phema_dtype_bytes(tensor->dtype, n_elems);
}

/* Divides boxes that are too large along their first dimension of more than one index, and again
 * along the next one. The recursion is at most PHEMA_MAX_RANK deep. */
static enum phema_status add_boxes(struct distribution *distribution, size_t tensor, size_t rank,
                                   const uint64_t *start, const uint64_t *size,
                                   struct phema_error *err)
{
    const struct phema_tensor *whole = &distribution->draft->tensors[tensor];
    uint64_t bytes = box_bytes(whole, size);
    unsigned d = 0;
    while (d < whole->rank && size[d] < 2)
        d++;
    if (bytes <= MAX_BOX_BYTES || d == whole->rank)
        return add_piece(distribution, tensor, rank, start, size, err);
    uint64_t begin[PHEMA_MAX_RANK], extent[PHEMA_MAX_RANK];
    memcpy(begin, start, whole->rank * sizeof(*begin));
    memcpy(extent, size, whole->rank * sizeof(*extent));
    uint64_t most = MAX_BOX_BYTES / (bytes / size[d]), end = start[d] + size[d];
    most = most ? most : 1;
    enum phema_status status = PHEMA_OK;
    for (; begin[d] < end && !status; begin[d] += most) {
        extent[d] = end - begin[d] < most ? end - begin[d] : most;
        status = add_boxes(distribution, tensor, rank, begin, extent, err);
    }
    return status;
}

static size_t smallest_file(const struct distribution *distribution)
{
    size_t best = 0;
    for (size_t r = 1; r < distribution->ranks; r++)
        if (distribution->file_bytes[r] < distribution->file_bytes[best])
            best = r;
    return best;
}

static enum phema_status distribute_tensor(struct distribution *distribution, size_t i,
                                           struct phema_error *err)
{
    const struct phema_tensor *tensor = &distribution->draft->tensors[i];
    static const uint64_t zeros[PHEMA_MAX_RANK] = {0};
    bool is_divided = distribution->ranks > 1 && tensor->rank > 0 && tensor->shape[0] > 1 &&
                      tensor->size_bytes / distribution->ranks >= MIN_BLOCK_BYTES;
    if (!is_divided)
        return add_boxes(distribution, i, smallest_file(distribution), zeros, tensor->shape, err);
    uint64_t begin[PHEMA_MAX_RANK] = {0}, extent[PHEMA_MAX_RANK], n_rows = tensor->shape[0];
    uint64_t block = n_rows / distribution->ranks + (n_rows % distribution->ranks != 0);
    memcpy(extent, tensor->shape, tensor->rank * sizeof(*extent));
    enum phema_status status = PHEMA_OK;
    for (size_t r = 0; begin[0] < n_rows && !status; r++, begin[0] += block) {
        extent[0] = n_rows - begin[0] < block ? n_rows - begin[0] : block;
        status = add_boxes(distribution, i, r, begin, extent, err);
    }
    return status;
}

static enum phema_status check_tensor(const struct draft *draft, size_t i, struct phema_error *err)
{
    const struct phema_tensor *tensor = &draft->tensors[i];
    struct phema_name_buffer shown;
    (void)phema_name_escape(&shown, tensor->name, tensor->name_size);
    if (!dcp_dtype_name(tensor->dtype))
        return phema_fail(err, PHEMA_ERR_OUTPUT,
                          "tensor '%s': torch has no dtype for %s, so a distributed checkpoint "
                          "cannot hold it; leave out %s",
                          shown.text, phema_dtype_name(tensor->dtype),
                          phema_setting_name(PHEMA_SET_RANKS));
    if (tensor->name_size > MAX_NAME_BYTES)
        return phema_fail(err, PHEMA_ERR_OUTPUT,
                          "tensor '%s': its name has %zu bytes, and names in a distributed "
                          "checkpoint have %u at most",
                          shown.text, tensor->name_size, MAX_NAME_BYTES);
    return PHEMA_OK;
}

static enum phema_status distribute(struct distribution *distribution, struct phema_error *err)
{
    struct draft *draft = distribution->draft;
    struct phema_outputs *outputs = draft->outputs;
    size_t n = draft->plan->series->n_tensors;
    outputs->first_piece = phema_arena_array(draft->arena, n + 1, sizeof(size_t));
    if (!outputs->first_piece)
        return phema_fail_memory(err);
    for (size_t i = 0; i < n; i++) {
        outputs->first_piece[i] = distribution->n;
        enum phema_status status = check_tensor(draft, i, err);
        if (!status)
            status = distribute_tensor(distribution, i, err);
        if (status)
            return status;
    }
    outputs->first_piece[n] = distribution->n;
    return PHEMA_OK;
}

/* ---- Places ---- */

/* Where several boxes are one tensor, its chunks; else its place. The provenance, where there is
 * one, is file 0. */
static enum phema_status place_tensor(struct draft *draft, size_t i, struct phema_error *err)
{
    struct phema_outputs *outputs = draft->outputs;
    const struct phema_piece *pieces = &outputs->pieces[outputs->first_piece[i]];
    size_t n = outputs->first_piece[i + 1] - outputs->first_piece[i];
    struct phema_tensor_location *location = &outputs->locations[i];
    *location = (struct phema_tensor_location){.offset = pieces[0].data_at, .file = pieces[0].file};
    if (n == 1)
        return PHEMA_OK;
    struct phema_chunk *chunks = phema_arena_array(draft->arena, n, sizeof(*chunks));
    if (!chunks)
        return phema_fail_memory(err);
    for (size_t c = 0; c < n; c++)
        chunks[c] = (struct phema_chunk){.start = pieces[c].start,
                                         .size = pieces[c].size,
                                         .file = pieces[c].file,
                                         .offset = pieces[c].data_at};
    location->chunks = chunks;
    location->n_chunks = n;
    return PHEMA_OK;
}

static enum phema_status place_tensors(struct draft *draft, struct phema_error *err)
{
    struct phema_outputs *outputs = draft->outputs;
    size_t n = draft->plan->series->n_tensors;
    bool has_provenance = !draft->options->is_conversion;
    for (size_t p = 0; p < outputs->first_piece[n]; p++)
        outputs->pieces[p].file += has_provenance;
    enum phema_status status = PHEMA_OK;
    for (size_t i = 0; i < n && !status; i++)
        status = place_tensor(draft, i, err);
    return status;
}

/* ---- Files ---- */

PHEMA_FALLIBLE outputs_add_provenance(struct draft *draft, struct phema_output *output, size_t f,
                                      struct phema_error *err)
{
    size_t target = (size_t)(output - draft->outputs->items);
    struct phema_strbuf text = {0};
    struct phema_output_file *file = &output->files[f];
    enum phema_status status = provenance_write_file(&text, draft, target, err);
    if (!status && !(file->name = strdup(PHEMA_PROVENANCE_FILE)))
        status = phema_fail_memory(err);
    if (status) {
        phema_strbuf_clear(&text);
        return status;
    }
    file->header = (uint8_t *)text.data;
    file->header_size = file->size_bytes = text.size;
    output->provenance_file = f;
    output->size_bytes += text.size;
    return outputs_find_digests(draft, output, target, text.data, text.size, err);
}

/* Files without pieces are the last ones, and are left out. */
static enum phema_status add_files(const struct distribution *distribution, size_t j,
                                   struct phema_error *err)
{
    struct draft *draft = distribution->draft;
    struct phema_output *output = &draft->outputs->items[j];
    output->locations = draft->outputs->locations;
    output->files = calloc(distribution->ranks + 1, sizeof(*output->files));
    if (!output->files)
        return phema_fail_memory(err);
    if (!draft->options->is_conversion) {
        output->n_files = 1; /* frees what a failure leaves */
        enum phema_status status = outputs_add_provenance(draft, output, 0, err);
        if (status)
            return status;
    }
    for (size_t r = 0; r < distribution->ranks && distribution->file_bytes[r]; r++) {
        struct phema_output_file *file = &output->files[output->n_files++];
        if (asprintf(&file->name, "__%zu_0.distcp", r) < 0) {
            file->name = NULL;
            return phema_fail_memory(err);
        }
        file->size_bytes = distribution->file_bytes[r];
        output->size_bytes += file->size_bytes;
    }
    return PHEMA_OK;
}

static enum phema_status add_metadata(struct draft *draft, struct phema_error *err)
{
    const struct phema_outputs *outputs = draft->outputs;
    struct phema_strbuf text = {0};
    dcp_metadata_write(&text, draft->tensors, draft->plan->series->n_tensors, outputs->pieces,
                       outputs->first_piece, outputs->items[0].files);
    enum phema_status status = phema_strbuf_check(&text, err);
    if (status) {
        phema_strbuf_clear(&text);
        return status;
    }
    for (size_t j = 0; j < outputs->m; j++)
        outputs->items[j].size_bytes += text.size;
    return outputs_add_side_file(draft, ".metadata", NULL, &text, true, err);
}

static enum phema_status lay_out(struct distribution *distribution, struct phema_error *err)
{
    struct draft *draft = distribution->draft;
    enum phema_status status = distribute(distribution, err);
    if (!status)
        status = place_tensors(draft, err);
    for (size_t j = 0; j < draft->outputs->m && !status; j++)
        status = add_files(distribution, j, err);
    return status || !draft->outputs->m ? status : add_metadata(draft, err);
}

PHEMA_FALLIBLE outputs_lay_out_distributed(struct draft *draft, struct phema_error *err)
{
    struct distribution distribution = {.draft = draft, .ranks = (size_t)draft->options->ranks};
    distribution.file_bytes = calloc(distribution.ranks, sizeof(*distribution.file_bytes));
    enum phema_status status =
        distribution.file_bytes ? lay_out(&distribution, err) : phema_fail_memory(err);
    free(distribution.file_bytes);
    phema_strbuf_clear(&distribution.frame.bytes);
    return status ? phema_fail_in(err, status, "%s", draft->options->out) : PHEMA_OK;
}
