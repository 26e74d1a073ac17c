// SPDX-License-Identifier: Apache-2.0
/* inspect_tensors.c - one checkpoint, its tensors and their places; sums over the tensors of a checkpoint or
 * a series, and its tied tensors: as text and as JSON. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"
#include "phema/cleanup.h"

/* ---- Sums ---- */

/* Longer lists are cut; JSON has all. */
#define MAX_COMPONENTS_SHOWN 20
#define MAX_TIES_SHOWN       8

static void write_heading(struct phema_strbuf *out, int width, const char *label,
                          const char *elements, bool has_buffers)
{
    phema_strbuf_printf(out, "\n  %-*s %9s %14s", width, label, "tensors", elements);
    if (has_buffers)
        phema_strbuf_printf(out, " %11s", "buffers");
    phema_strbuf_printf(out, " %10s\n", "size");
}

static void write_row(struct phema_strbuf *out, int width, const char *label,
                      const struct inspect_total *total, bool has_buffers)
{
    struct phema_name_buffer size;
    uint64_t n_buffers = has_buffers ? total->n_buffer_elems : 0;
    phema_strbuf_printf(out, "  %-*s %9llu %14llu", width, label,
                        (unsigned long long)total->n_tensors,
                        (unsigned long long)(total->n_elems - n_buffers));
    if (has_buffers)
        phema_strbuf_printf(out, " %11llu", (unsigned long long)n_buffers);
    phema_strbuf_printf(out, " %10s\n", phema_size_format(&size, total->size_bytes));
}

void inspect_show_component(struct phema_name_buffer *out, const struct inspect_total *component)
{
    if (component->label_size)
        (void)phema_name_escape(out, component->label, component->label_size);
    else
        (void)strcpy(out->text, "(no prefix)");
}

static void write_components(struct phema_strbuf *out, int width,
                             const struct inspect_summary *summary)
{
    const struct inspect_totals *components = &summary->components;
    if (components->n < 2)
        return;
    write_heading(out, width, "component", summary->knows_kinds ? "parameters" : "elements",
                  summary->knows_kinds);
    for (size_t i = 0; i < components->n && i < MAX_COMPONENTS_SHOWN; i++) {
        struct phema_name_buffer label;
        inspect_show_component(&label, &components->items[i]);
        write_row(out, width, label.text, &components->items[i], summary->knows_kinds);
    }
    struct inspect_total others = {0};
    for (size_t i = MAX_COMPONENTS_SHOWN; i < components->n; i++) {
        const struct inspect_total *component = &components->items[i];
        others.n_tensors += component->n_tensors;
        others.n_elems += component->n_elems;
        others.n_buffer_elems += component->n_buffer_elems;
        others.size_bytes += component->size_bytes;
    }
    char label[32];
    (void)snprintf(label, sizeof(label), "%zu others", components->n - MAX_COMPONENTS_SHOWN);
    if (others.n_tensors)
        write_row(out, width, label, &others, summary->knows_kinds);
}

void inspect_show_rule(struct phema_name_buffer *out, const struct inspect_total *rule)
{
    static const char *const done[] = {"averaged", "copied", "left out"};
    if (rule->label_size)
        (void)snprintf(out->text, sizeof(out->text), "%s (%.*s)", done[rule->rule],
                       (int)rule->label_size, rule->label);
    else
        (void)snprintf(out->text, sizeof(out->text), "%s", done[rule->rule]);
}

/* The snapshots that one checkpoint holds. */
static void write_sets(struct phema_strbuf *out, const struct phema_series *series)
{
    struct phema_name_buffer key, spec;
    struct phema_strbuf text = {0};
    for (size_t k = 0; k < series->n && series->snapshots[k].key; k++) {
        const struct phema_snapshot *snapshot = &series->snapshots[k];
        phema_strbuf_printf(&text, "%s%s", k ? ", " : "", phema_name_show(&key, snapshot->key));
        if (snapshot->spec && strcmp(snapshot->spec, snapshot->key) != 0)
            phema_strbuf_printf(&text, " (%s)", phema_name_show(&spec, snapshot->spec));
    }
    if (text.data && !text.is_failed)
        phema_strbuf_printf(out, "  snapshots: %s\n", text.data);
    phema_strbuf_clear_part(&text, out);
}

static void write_rules(struct phema_strbuf *out, int width, const struct inspect_summary *summary)
{
    if (!summary->series) {
        phema_strbuf_puts(out, "\n  no snapshot for synth: ");
        phema_strbuf_puts_escaped(out, summary->refusal);
        phema_strbuf_puts(out, "\n");
        return;
    }
    write_heading(out, width, "by synth", "elements", false);
    for (size_t i = 0; i < summary->rules.n; i++) {
        struct phema_name_buffer label;
        inspect_show_rule(&label, &summary->rules.items[i]);
        write_row(out, width, label.text, &summary->rules.items[i], false);
    }
    if (*summary->series->key) {
        struct phema_name_buffer key;
        phema_strbuf_printf(out, "  subtree: '%s'\n", phema_name_show(&key, summary->series->key));
    }
    if (summary->series->became)
        write_sets(out, summary->series);
}

static void write_ties(struct phema_strbuf *out, const struct inspect_summary *summary)
{
    struct phema_name_buffer shown;
    if (summary->n_groups)
        phema_strbuf_puts(out, "\n");
    for (size_t g = 0, at = 0; g < summary->n_groups && g < MAX_TIES_SHOWN; g++) {
        phema_strbuf_puts(out, "  tied:");
        for (; at < summary->tie_ends[g]; at++) {
            const struct phema_tensor *tensor = &summary->tensors[summary->ties[at]];
            bool is_first = at == 0 || (g && at == summary->tie_ends[g - 1]);
            phema_strbuf_printf(out, "%s %s", is_first ? "" : " =",
                                phema_name_escape(&shown, tensor->name, tensor->name_size));
        }
        phema_strbuf_puts(out, "\n");
    }
    if (summary->n_groups > MAX_TIES_SHOWN)
        phema_strbuf_printf(out, "  and %zu more groups of tied tensors\n",
                            summary->n_groups - MAX_TIES_SHOWN);
}

/* A column wide enough for the labels, as long as lines fit 80 columns. */
static int choose_width(const struct inspect_summary *summary)
{
    struct phema_name_buffer label;
    size_t width = 9, most = summary->knows_kinds ? 29 : 40;
    size_t n =
        summary->components.n < MAX_COMPONENTS_SHOWN ? summary->components.n : MAX_COMPONENTS_SHOWN;
    for (size_t i = 0; i < n && n > 1; i++) {
        inspect_show_component(&label, &summary->components.items[i]);
        width = strlen(label.text) > width ? strlen(label.text) : width;
    }
    for (size_t i = 0; i < summary->rules.n; i++) {
        inspect_show_rule(&label, &summary->rules.items[i]);
        width = strlen(label.text) > width ? strlen(label.text) : width;
    }
    return (int)(width < most ? width : most);
}

void inspect_write_summary(struct phema_strbuf *out, const struct inspect_summary *summary)
{
    if (!summary->n_tensors)
        return;
    int width = choose_width(summary);
    write_heading(out, width, "dtype", "elements", false);
    for (size_t i = 0; i < summary->dtypes.n; i++)
        write_row(out, width, summary->dtypes.items[i].label, &summary->dtypes.items[i], false);
    write_components(out, width, summary);
    write_rules(out, width, summary);
    write_ties(out, summary);
}

#define FIELD(kind, rule, name, member) PHEMA_FIELD(kind, rule, name, struct inspect_total, member)

static const char *const rule_names[] = {"average", "copy", "left-out"};

const struct phema_field inspect_total_fields[] = {
    FIELD(BYTES, ALWAYS, "dtype", label),
    FIELD(BYTES, ALWAYS, "prefix", label),
    PHEMA_FIELD_NAMED(rule_names, "rule", struct inspect_total, rule),
    FIELD(BYTES, IF_KNOWN, "reason", label),
    FIELD(COUNT, ALWAYS, "parameters", n_params),
    FIELD(COUNT, ALWAYS, "buffers", n_buffer_elems),
    FIELD(COUNT, ALWAYS, "tensors", n_tensors),
    FIELD(COUNT, ALWAYS, "elements", n_elems),
    FIELD(COUNT, ALWAYS, "bytes", size_bytes),
    {0},
};

static void write_totals_json(struct phema_json_out *out, const char *key, const char *view,
                              const struct inspect_totals *totals)
{
    phema_record_write_list(out, key, inspect_total_fields, view, totals->items, totals->n,
                            sizeof(*totals->items));
}

static void write_components_json(struct phema_json_out *out, const struct inspect_summary *summary)
{
    phema_json_out_open(out, "components", '[');
    for (size_t i = 0; i < summary->components.n; i++) {
        const struct inspect_total *total = &summary->components.items[i];
        phema_json_out_open(out, NULL, '{');
        phema_record_write(out, inspect_total_fields, "prefix parameters", total);
        if (summary->knows_kinds)
            phema_record_write(out, inspect_total_fields, "buffers", total);
        else
            phema_json_out_null(out, "buffers");
        phema_record_write(out, inspect_total_fields, "tensors elements bytes", total);
        phema_json_out_close(out, '}');
    }
    phema_json_out_close(out, ']');
}

static void write_rules_json(struct phema_json_out *out, const struct inspect_summary *summary)
{
    if (!summary->series) {
        phema_json_out_null(out, "rules");
        phema_json_out_string(out, "refusal", summary->refusal);
        return;
    }
    phema_json_out_string(out, "key", summary->series->key);
    write_totals_json(out, "rules", "rule reason tensors elements bytes", &summary->rules);
}

static void write_ties_json(struct phema_json_out *out, const struct inspect_summary *summary)
{
    phema_json_out_open(out, "ties", '[');
    for (size_t g = 0, at = 0; g < summary->n_groups; g++) {
        phema_json_out_open(out, NULL, '[');
        for (; at < summary->tie_ends[g]; at++) {
            const struct phema_tensor *tensor = &summary->tensors[summary->ties[at]];
            phema_json_out_bytes(out, NULL, tensor->name, tensor->name_size);
        }
        phema_json_out_close(out, ']');
    }
    phema_json_out_close(out, ']');
}

void inspect_write_summary_json(struct phema_json_out *out, const struct inspect_summary *summary)
{
    write_totals_json(out, "dtypes", "dtype tensors elements bytes", &summary->dtypes);
    write_components_json(out, summary);
    write_ties_json(out, summary);
    write_rules_json(out, summary);
}

/* ---- One checkpoint ---- */

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
    static const char *const kinds[] = {
        NULL, "param", "buffer", "attribute", "scale", "activation scale", "frozen"};
    if (kinds[tensor->kind])
        phema_json_out_string(out, "kind", kinds[tensor->kind]);
    if (summary->series) {
        const char *reason = NULL;
        enum inspect_rule rule = inspect_rule_of(summary, i, &reason);
        phema_json_out_string(out, "rule", rule_names[rule]);
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
    static const struct phema_field fields[] = {
        PHEMA_FIELD(TEXT, ALWAYS, "key", struct phema_snapshot, key),
        PHEMA_FIELD(TEXT, IF_KNOWN, "spec", struct phema_snapshot, spec),
        {0},
    };
    phema_record_write_list(out, "snapshots", fields, NULL, series->snapshots, series->n,
                            sizeof(*series->snapshots));
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

/* Of an output of synth the command that made it, in place of all that verify reads. false: the
 * metadatum is something else. */
static bool write_provenance(struct phema_strbuf *out, const struct phema_metadata *item)
{
    static const char key[] = "posthoc_ema.provenance";
    const struct phema_span text = {(const uint8_t *)item->value, item->value_size};
    struct phema_json *root = NULL;
    struct phema_error ignored = {0};
    if (!phema_bytes_are(item->key, item->key_size, key) || phema_json_parse(&root, text, &ignored))
        return false;
    size_t n = phema_json_length(phema_json_get(root, "snapshots"));
    const char *command = phema_json_string(phema_json_get(root, "command"), NULL);
    if (command) {
        phema_strbuf_printf(out, "  made of %zu snapshot%s by: ", n, n == 1 ? "" : "s");
        phema_strbuf_puts_escaped(out, command);
        phema_strbuf_puts(out, "\n");
    }
    phema_json_free(root);
    return command != NULL;
}

void inspect_write_checkpoint(struct phema_strbuf *out, const struct phema_checkpoint *checkpoint,
                              const struct inspect_summary *summary)
{
    struct phema_strbuf text = {0};
    size_t n = summary->n_tensors;
    const struct phema_tensor *tensors = summary->tensors;
    uint64_t elems = 0, bytes = 0;
    for (size_t i = 0; i < n; i++) {
        elems += tensors[i].n_elems;
        bytes += tensors[i].size_bytes;
    }
    struct phema_name_buffer size, name;
    phema_strbuf_puts_escaped(&text, phema_checkpoint_path(checkpoint));
    phema_strbuf_printf(&text, ": %s, %zu tensor%s, %llu elements, %s\n",
                        phema_checkpoint_format(checkpoint), n, n == 1 ? "" : "s",
                        (unsigned long long)elems, phema_size_format(&size, bytes));
    for (size_t i = 0; i < phema_checkpoint_n_metadata(checkpoint); i++) {
        const struct phema_metadata *item = &phema_checkpoint_metadata(checkpoint)[i];
        if (write_provenance(&text, item))
            continue;
        phema_strbuf_printf(&text, "  %s = ", phema_name_escape(&name, item->key, item->key_size));
        phema_strbuf_printf(&text, "%s\n", phema_name_escape(&name, item->value, item->value_size));
    }
    inspect_write_summary(&text, summary);
    if (n)
        phema_strbuf_puts(&text, "\n");
    for (size_t i = 0; i < n; i++) {
        struct phema_strbuf shape = {0};
        phema_tensor_write_shape(&shape, &tensors[i]);
        phema_strbuf_printf(&text, "  %-11s %-22s %9s  %s%s", phema_dtype_name(tensors[i].dtype),
                            shape.data ? shape.data : "",
                            phema_size_format(&size, tensors[i].size_bytes),
                            phema_name_escape(&name, tensors[i].name, tensors[i].name_size),
                            tensors[i].stride ? "  (strided)" : "");
        if (tensors[i].chunks)
            phema_strbuf_printf(&text, "  (in %zu pieces)", tensors[i].n_chunks);
        if (tensors[i].scaling)
            write_scaling(&text, tensors[i].scaling);
        phema_strbuf_puts(&text, "\n");
        phema_strbuf_clear_part(&shape, &text);
    }
    render_write_lines(out, &text);
}

/* ---- The bytes of a tensor ---- */

PHEMA_FALLIBLE render_print_elements(const struct phema_checkpoint *checkpoint,
                                     const struct phema_tensor *tensor, struct phema_error *err)
{
    enum { CHUNK = 32768 }; /* elements; even, because two F4 elements share a byte */
    uint8_t scratch[CHUNK * 16];
    struct phema_reader *reader = NULL;
    enum phema_status status = phema_reader_open(&reader, checkpoint, err);
    for (uint64_t first = 0; !status && first < tensor->n_elems; first += CHUNK) {
        uint64_t n = tensor->n_elems - first < CHUNK ? tensor->n_elems - first : CHUNK;
        size_t size = (size_t)(n * phema_dtype_bits(tensor->dtype) / 8);
        const uint8_t *data = NULL;
        status = phema_reader_read(&data, reader, tensor, first, n, scratch, err);
        if (status)
            break;
        phema_cleanup_touch(data, size); /* reports a truncated file instead of an error of
                                          * standard output */
        if (fwrite(data, 1, size, stdout) != size)
            status = phema_fail(err, PHEMA_ERR_OUTPUT, "standard output: %s", strerror(errno));
    }
    phema_reader_close(reader);
    if (!status && fflush(stdout))
        status = phema_fail(err, PHEMA_ERR_OUTPUT, "standard output: %s", strerror(errno));
    return status ? status : phema_checkpoint_check_unchanged(checkpoint, err);
}
