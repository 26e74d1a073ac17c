// SPDX-License-Identifier: Apache-2.0
/* inspect_checkpoint.c - one checkpoint, its tensors and their places, as text and as JSON. */
#include <stdlib.h>
#include <string.h>

#include "phema/render.h"
#include "phema/report.h"

static void write_shape(struct phema_strbuf *out, const struct phema_tensor *tensor)
{
    phema_strbuf_puts(out, "[");
    for (unsigned d = 0; d < tensor->rank; d++)
        phema_strbuf_printf(out, "%s%llu", d ? ", " : "", (unsigned long long)tensor->shape[d]);
    phema_strbuf_puts(out, "]");
}

static void write_integers(struct phema_json_out *out, const char *key, const uint64_t *values,
                           unsigned n)
{
    phema_json_out_open(out, key, '[');
    for (unsigned d = 0; d < n; d++)
        phema_json_out_u64(out, NULL, values[d]);
    phema_json_out_close(out, ']');
}

static void write_pieces_json(struct phema_json_out *out, const struct phema_checkpoint *checkpoint,
                              const struct phema_tensor *tensor)
{
    phema_json_out_open(out, "pieces", '[');
    for (size_t i = 0; i < tensor->n_chunks; i++) {
        const struct phema_chunk *part = &tensor->chunks[i];
        phema_json_out_open(out, NULL, '{');
        phema_json_out_path(out, "file", phema_checkpoint_file_label(checkpoint, part->file));
        phema_json_out_u64(out, "offset", part->offset);
        write_integers(out, "start", part->start, tensor->rank);
        write_integers(out, "shape", part->size, tensor->rank);
        if (part->stride)
            write_integers(out, "stride", part->stride, tensor->rank);
        phema_json_out_close(out, '}');
    }
    phema_json_out_close(out, ']');
}

static void write_place_json(struct phema_json_out *out, const struct phema_checkpoint *checkpoint,
                             const struct phema_tensor *tensor)
{
    if (tensor->chunks) {
        phema_json_out_null(out, "file");
        phema_json_out_null(out, "offset");
        write_pieces_json(out, checkpoint, tensor);
        return;
    }
    phema_json_out_path(out, "file", phema_checkpoint_file_label(checkpoint, tensor->file));
    if (tensor->is_compressed) {
        phema_json_out_null(out, "offset"); /* of the content, not of the file */
    } else if (tensor->stride) {
        phema_json_out_null(out, "offset");
        phema_json_out_u64(out, "first_element", tensor->offset);
        write_integers(out, "stride", tensor->stride, tensor->rank);
    } else {
        phema_json_out_u64(out, "offset", tensor->offset);
    }
}

static void write_scaling_json(struct phema_json_out *out, const struct phema_scaling *scaling)
{
    const uint64_t block[] = {scaling->block_rows, scaling->block_columns};
    phema_json_out_open(out, "scale", '{');
    phema_json_out_bytes(out, "name", scaling->name, scaling->name_size);
    write_integers(out, "block", block, 2);
    phema_json_out_close(out, '}');
}

static void write_tensor_json(struct phema_json_out *out, const struct phema_checkpoint *checkpoint,
                              const struct inspect_summary *summary, size_t i)
{
    const struct phema_tensor *tensor = &summary->tensors[i];
    phema_json_out_open(out, NULL, '{');
    phema_json_out_bytes(out, "name", tensor->name, tensor->name_size);
    phema_json_out_string(out, "dtype", phema_dtype_name(tensor->dtype));
    write_integers(out, "shape", tensor->shape, tensor->rank);
    write_place_json(out, checkpoint, tensor);
    phema_json_out_u64(out, "nbytes", tensor->size_bytes);
    if (tensor->scaling)
        write_scaling_json(out, tensor->scaling);
    static const char *const kinds[] = {NULL,        "param", "buffer",
                                        "attribute", "scale", "activation scale"};
    if (kinds[tensor->kind])
        phema_json_out_string(out, "kind", kinds[tensor->kind]);
    if (summary->series) {
        const char *reason = NULL;
        enum inspect_rule rule = inspect_rule_of(summary, i, &reason);
        phema_json_out_string(out, "rule", inspect_rule_name(rule));
        if (reason)
            phema_json_out_string(out, "reason", reason);
    }
    phema_json_out_close(out, '}');
}

/* A number stored as text in the metadata; null when it is absent. */
static void write_fact(struct phema_json_out *out, const struct phema_checkpoint *checkpoint,
                       const char *name, const char *key)
{
    const char *text = phema_checkpoint_metadatum(checkpoint, key);
    char *end = NULL;
    double value = text ? strtod(text, &end) : PHEMA_UNKNOWN;
    phema_json_out_number(out, name, text && end != text && !*end ? value : PHEMA_UNKNOWN);
}

static void write_sets_json(struct phema_json_out *out, const struct phema_series *series)
{
    if (!series || !series->became || !series->n || !series->snapshots[0].key)
        return;
    phema_json_out_open(out, "snapshots", '[');
    for (size_t k = 0; k < series->n; k++) {
        const struct phema_snapshot *snapshot = &series->snapshots[k];
        phema_json_out_open(out, NULL, '{');
        phema_json_out_string(out, "key", snapshot->key);
        if (snapshot->spec)
            phema_json_out_string(out, "spec", snapshot->spec);
        phema_json_out_close(out, '}');
    }
    phema_json_out_close(out, ']');
}

void inspect_write_checkpoint_json(struct phema_json_out *out, const struct render_style *style,
                                   const struct phema_checkpoint *checkpoint,
                                   const struct inspect_summary *summary, bool is_inner)
{
    phema_json_out_open(out, NULL, '{');
    if (!is_inner)
        phema_json_out_u64(out, "version", 1);
    phema_json_out_path(out, "file", phema_checkpoint_path(checkpoint));
    phema_json_out_string(out, "format", phema_checkpoint_format(checkpoint));
    phema_json_out_open(out, "metadata", '{');
    for (size_t i = 0; i < phema_checkpoint_n_metadata(checkpoint); i++) {
        const struct phema_metadata *item = &phema_checkpoint_metadata(checkpoint)[i];
        phema_json_out_key(out, item->key, item->key_size);
        phema_json_out_bytes(out, NULL, item->value, item->value_size);
    }
    phema_json_out_close(out, '}');
    phema_json_out_open(out, "tensors", '[');
    for (size_t i = 0; i < summary->n_tensors; i++)
        write_tensor_json(out, checkpoint, summary, i);
    phema_json_out_close(out, ']');
    write_fact(out, checkpoint, "time", "posthoc_ema.time");
    write_fact(out, checkpoint, "sigma_rel", "posthoc_ema.sigma_rel");
    const char *profile = phema_checkpoint_metadatum(checkpoint, "posthoc_ema.profile");
    if (profile)
        phema_json_out_bytes(out, "profile", profile, strlen(profile));
    write_sets_json(out, summary->series);
    inspect_write_summary_json(out, summary);
    render_write_warnings(out, style);
    phema_json_out_close(out, '}');
}

/* "  (times weight_scale_inv, blocks of 128 x 128)" */
static void write_scaling(struct phema_strbuf *out, const struct phema_scaling *scaling)
{
    struct phema_name_buffer name;
    phema_strbuf_printf(out, "  (times %s",
                        phema_name_escape(&name, scaling->name, scaling->name_size));
    if (scaling->n_elems > 1)
        phema_strbuf_printf(out, ", blocks of %llu x %llu", (unsigned long long)scaling->block_rows,
                            (unsigned long long)scaling->block_columns);
    phema_strbuf_puts(out, ")");
}

void inspect_write_checkpoint(struct phema_strbuf *out, const struct phema_checkpoint *checkpoint,
                              const struct inspect_summary *summary)
{
    size_t n = summary->n_tensors;
    const struct phema_tensor *tensors = summary->tensors;
    uint64_t elems = 0, bytes = 0;
    for (size_t i = 0; i < n; i++) {
        elems += tensors[i].n_elems;
        bytes += tensors[i].size_bytes;
    }
    struct phema_name_buffer size, name;
    phema_strbuf_puts_escaped(out, phema_checkpoint_path(checkpoint));
    phema_strbuf_printf(out, ": %s, %zu tensor%s, %llu elements, %s\n",
                        phema_checkpoint_format(checkpoint), n, n == 1 ? "" : "s",
                        (unsigned long long)elems, phema_size_format(&size, bytes));
    for (size_t i = 0; i < phema_checkpoint_n_metadata(checkpoint); i++) {
        const struct phema_metadata *item = &phema_checkpoint_metadata(checkpoint)[i];
        phema_strbuf_printf(out, "  %s = ", phema_name_escape(&name, item->key, item->key_size));
        phema_strbuf_printf(out, "%s\n", phema_name_escape(&name, item->value, item->value_size));
    }
    inspect_write_summary(out, summary);
    if (n)
        phema_strbuf_puts(out, "\n");
    for (size_t i = 0; i < n; i++) {
        struct phema_strbuf shape = {0};
        write_shape(&shape, &tensors[i]);
        phema_strbuf_printf(out, "  %-11s %-22s %9s  %s%s", phema_dtype_name(tensors[i].dtype),
                            shape.data ? shape.data : "",
                            phema_size_format(&size, tensors[i].size_bytes),
                            phema_name_escape(&name, tensors[i].name, tensors[i].name_size),
                            tensors[i].stride ? "  (strided)" : "");
        if (tensors[i].chunks)
            phema_strbuf_printf(out, "  (in %zu pieces)", tensors[i].n_chunks);
        if (tensors[i].scaling)
            write_scaling(out, tensors[i].scaling);
        phema_strbuf_puts(out, "\n");
        phema_strbuf_clear(&shape);
    }
}
