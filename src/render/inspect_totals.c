// SPDX-License-Identifier: Apache-2.0
/* inspect_totals.c - sums over the tensors of a checkpoint or a series, and its tied tensors, as text
 * and as JSON. */
#include <stdio.h>
#include <string.h>

#include "phema/report.h"

/* Longer lists are cut; JSON has all. */
#define MAX_COMPONENTS_SHOWN 20
#define MAX_TIES_SHOWN       8

const char *inspect_rule_name(enum inspect_rule rule)
{
    static const char *const names[] = {"average", "copy", "left-out"};
    return names[rule];
}

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
        phema_strbuf_printf(&text, "%s%s", k ? ", " : "",
                            phema_name_escape(&key, snapshot->key, strlen(snapshot->key)));
        if (snapshot->spec && strcmp(snapshot->spec, snapshot->key) != 0)
            phema_strbuf_printf(&text, " (%s)",
                                phema_name_escape(&spec, snapshot->spec, strlen(snapshot->spec)));
    }
    if (text.data && !text.is_failed)
        phema_strbuf_printf(out, "  snapshots: %s\n", text.data);
    phema_strbuf_clear(&text);
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
        phema_strbuf_printf(
            out, "  subtree: '%s'\n",
            phema_name_escape(&key, summary->series->key, strlen(summary->series->key)));
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

/* The last members of an object. */
static void write_counts_json(struct phema_json_out *out, const struct inspect_total *total)
{
    phema_json_out_u64(out, "tensors", total->n_tensors);
    phema_json_out_u64(out, "elements", total->n_elems);
    phema_json_out_u64(out, "bytes", total->size_bytes);
    phema_json_out_close(out, '}');
}

static void write_components_json(struct phema_json_out *out, const struct inspect_summary *summary)
{
    phema_json_out_open(out, "components", '[');
    for (size_t i = 0; i < summary->components.n; i++) {
        const struct inspect_total *total = &summary->components.items[i];
        phema_json_out_open(out, NULL, '{');
        phema_json_out_bytes(out, "prefix", total->label, total->label_size);
        phema_json_out_u64(out, "parameters", total->n_elems - total->n_buffer_elems);
        if (summary->knows_kinds)
            phema_json_out_u64(out, "buffers", total->n_buffer_elems);
        else
            phema_json_out_null(out, "buffers");
        write_counts_json(out, total);
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
    phema_json_out_open(out, "rules", '[');
    for (size_t i = 0; i < summary->rules.n; i++) {
        const struct inspect_total *total = &summary->rules.items[i];
        phema_json_out_open(out, NULL, '{');
        phema_json_out_string(out, "rule", inspect_rule_name(total->rule));
        if (total->label_size)
            phema_json_out_bytes(out, "reason", total->label, total->label_size);
        write_counts_json(out, total);
    }
    phema_json_out_close(out, ']');
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
    phema_json_out_open(out, "dtypes", '[');
    for (size_t i = 0; i < summary->dtypes.n; i++) {
        phema_json_out_open(out, NULL, '{');
        phema_json_out_string(out, "dtype", summary->dtypes.items[i].label);
        write_counts_json(out, &summary->dtypes.items[i]);
    }
    phema_json_out_close(out, ']');
    write_components_json(out, summary);
    write_ties_json(out, summary);
    write_rules_json(out, summary);
}
