// SPDX-License-Identifier: Apache-2.0
/* print.c - what inspect prints of a checkpoint and of a series. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/inspect.h"
#include "print_summary.h"
#include "series_options.h"

/* Snapshots of a series that fit a screen; more are listed when asked for. */
#define MOST_LISTED 12

/* ---- One checkpoint ---- */

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
    for (size_t i = 0; i < tensor->n_parts; i++) {
        const struct phema_chunk *part = &tensor->parts[i];
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
    if (tensor->parts) {
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
    static const char *const kinds[] = {NULL, "param", "buffer", "attribute"};
    if (kinds[tensor->kind])
        phema_json_out_string(out, "kind", kinds[tensor->kind]);
    if (summary->series) {
        const char *reason = NULL;
        enum inspect_rule rule = inspect_rule_of(summary, i, &reason);
        phema_json_out_string(out, "rule", inspect_rule_names[rule]);
        if (reason)
            phema_json_out_string(out, "reason", reason);
    }
    phema_json_out_close(out, '}');
}

/* A number that the metadata hold as text; null when they do not. */
static void write_fact(struct phema_json_out *out, const struct phema_checkpoint *checkpoint,
                       const char *name, const char *key)
{
    const char *text = phema_checkpoint_metadatum(checkpoint, key);
    char *end = NULL;
    double value = text ? strtod(text, &end) : PHEMA_UNKNOWN;
    phema_json_out_number(out, name, text && end != text && !*end ? value : PHEMA_UNKNOWN);
}

void inspect_write_checkpoint_json(struct phema_json_out *out,
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
    inspect_write_summary_json(out, summary);
    phema_json_out_close(out, '}');
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
        if (tensors[i].parts)
            phema_strbuf_printf(out, "  (in %zu pieces)", tensors[i].n_parts);
        phema_strbuf_puts(out, "\n");
        phema_strbuf_clear(&shape);
    }
    for (size_t i = 0; i < phema_checkpoint_n_warnings(checkpoint); i++)
        cli_say("%s: %s", phema_checkpoint_path(checkpoint),
                phema_checkpoint_warning(checkpoint, i));
}

/* ---- A series ---- */

/* A line for each snapshot. */
static void write_snapshots(struct phema_strbuf *out, const struct phema_series *series)
{
    int width = 4;
    for (size_t k = 0; k < series->n; k++)
        if ((int)strlen(series->snapshots[k].label) > width)
            width = (int)strlen(series->snapshots[k].label);
    /* names of EDM2 and pytorch-posthoc-ema count otherwise than the clock of the average */
    bool is_renamed = false;
    for (size_t k = 0; k < series->n; k++)
        is_renamed |= series->snapshots[k].time != series->snapshots[k].named_time;
    /* other shapes are said in words, and the widths beside them as well */
    int profile_width = 10;
    bool has_shapes = false;
    for (size_t k = 0; k < series->n; k++)
        has_shapes |= series->snapshots[k].kind && isnan(series->snapshots[k].gamma);
    for (size_t k = 0; k < series->n && has_shapes; k++)
        if (series->snapshots[k].spec && (int)strlen(series->snapshots[k].spec) > profile_width)
            profile_width = (int)strlen(series->snapshots[k].spec);
    phema_strbuf_printf(out, "%-*s %14s %*s%s\n", width, "file", series->unit, profile_width,
                        has_shapes ? "profile" : "sigma_rel", is_renamed ? "         named" : "");
    for (size_t k = 0; k < series->n; k++) {
        const struct phema_snapshot *snapshot = &series->snapshots[k];
        struct phema_name_buffer time, label;
        phema_strbuf_printf(out, "%-*s %14s ", width,
                            phema_name_escape(&label, snapshot->label, strlen(snapshot->label)),
                            phema_number_format(&time, snapshot->time));
        if (!snapshot->spec)
            phema_strbuf_printf(out, "%*s", profile_width, "unknown");
        else if (has_shapes)
            phema_strbuf_printf(out, "%*s", profile_width,
                                phema_name_escape(&label, snapshot->spec, strlen(snapshot->spec)));
        else
            phema_strbuf_printf(out, "%10.6g", snapshot->sigma_rel);
        if (is_renamed)
            phema_strbuf_printf(out, " %13s", phema_number_format(&time, snapshot->named_time));
        phema_strbuf_puts(out, "\n");
    }
}

void inspect_write_series(struct phema_strbuf *out, const struct inspect_summary *summary,
                          const struct inspect_times *times, const struct inspect_errors *errors,
                          bool lists_all)
{
    inspect_times_write(out, times, errors);
    if (lists_all || summary->series->n <= MOST_LISTED) {
        phema_strbuf_puts(out, "\n");
        write_snapshots(out, summary->series);
    }
    inspect_write_summary(out, summary);
}

void inspect_write_series_json(struct phema_json_out *out, const struct inspect_summary *summary,
                               const struct inspect_times *times,
                               const struct inspect_errors *errors, bool is_inner)
{
    const struct phema_series *series = summary->series;
    phema_json_out_open(out, NULL, '{');
    if (!is_inner)
        phema_json_out_u64(out, "version", 1);
    phema_json_out_path(out, "file", series->root);
    phema_json_out_string(out, "layout", series->layout);
    phema_json_out_string(out, "unit", series->unit);
    phema_json_out_open(out, "snapshots", '[');
    for (size_t k = 0; k < series->n; k++)
        report_snapshot_json(out, &series->snapshots[k]);
    phema_json_out_close(out, ']');
    inspect_times_write_json(out, times, errors);
    phema_json_out_u64(out, "tensors", series->n_tensors);
    inspect_write_summary_json(out, summary);
    phema_json_out_close(out, '}');
}
