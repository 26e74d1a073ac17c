// SPDX-License-Identifier: Apache-2.0
/* tensor_notes.c - notes on the tensors of a series: all of its files have the same. */
#include "series_builder.h"

#include <stdlib.h>
#include <string.h>

#include "phema/setting.h"

/* Notes name so many tensors and count the others. */
#define MOST_NAMED ((size_t)4)

/* Larger tensors come first: they are more likely parameters. */
static int compare_sizes(const void *a, const void *b)
{
    const struct phema_series_tensor *left = *(const struct phema_series_tensor *const *)a;
    const struct phema_series_tensor *right = *(const struct phema_series_tensor *const *)b;
    if (left->tensor.n_elems != right->tensor.n_elems)
        return left->tensor.n_elems > right->tensor.n_elems ? -1 : 1;
    return (left > right) - (left < right);
}

/* "'a', 'b' and 3 more"; of tied ones "'a' as 'b'".  entries: [n], are sorted */
static void append_tensors(struct phema_strbuf *out, const struct phema_series_tensor **entries,
                           size_t n)
{
    struct phema_name_buffer shown;
    if (n)
        qsort(entries, n, sizeof(struct phema_series_tensor *), compare_sizes);
    for (size_t i = 0; i < n && i < MOST_NAMED; i++) {
        const struct phema_tensor *tensor = &entries[i]->tensor;
        phema_strbuf_printf(out, "%s'%s'", i ? ", " : "",
                            phema_name_escape(&shown, tensor->name, tensor->name_size));
        const char *average = entries[i]->tied_to;
        if (average)
            phema_strbuf_printf(out, " as '%s'", phema_name_show(&shown, average));
    }
    if (n > MOST_NAMED)
        phema_strbuf_printf(out, " and %zu more", n - MOST_NAMED);
}

/* Sets the names of the tensors that a test chooses. Returns how many there are.
 *   names  "" where there are none; is_failed: no memory */
static size_t list_tensors(struct phema_strbuf *names, struct series_builder *builder,
                           bool (*is_chosen)(const struct phema_series_tensor *))
{
    const struct phema_series *series = builder->series;
    const struct phema_series_tensor **chosen = phema_arena_array(
        &builder->scratch, series->n_tensors + 1, sizeof(struct phema_series_tensor *));
    size_t n = 0;
    names->size = 0;
    names->is_failed = names->is_failed || !chosen;
    for (size_t i = 0; i < series->n_tensors && chosen; i++)
        if (is_chosen(&series->tensors[i]))
            chosen[n++] = &series->tensors[i];
    if (chosen)
        append_tensors(names, chosen, n);
    return names->is_failed ? 0 : n;
}

static bool is_copied_since(const struct phema_series_tensor *entry, const char *reason)
{
    return entry->rule == PHEMA_RULE_COPY && strcmp(entry->reason, reason) == 0;
}

static bool is_tied(const struct phema_series_tensor *entry)
{
    return entry->rule == PHEMA_RULE_AVERAGE && entry->tied_to;
}

static bool has_no_average(const struct phema_series_tensor *entry)
{
    return is_copied_since(entry, "no average");
}

/* By copied_buffers_find: files tell nothing of these. */
static bool is_copied_buffer(const struct phema_series_tensor *entry)
{
    return is_copied_since(entry, "buffer") && entry->tensor.kind != PHEMA_KIND_BUFFER;
}

static bool is_copied_statistic(const struct phema_series_tensor *entry)
{
    return is_copied_buffer(entry) && tensor_is_statistic(&entry->tensor);
}

static bool is_averaged_statistic(const struct phema_series_tensor *entry)
{
    return entry->rule == PHEMA_RULE_AVERAGE && tensor_is_statistic(&entry->tensor);
}

/* Tensors that the files have no average of: tied ones have that of another name. */
static enum phema_status note_without_average(struct series_builder *builder,
                                              struct phema_error *err)
{
    struct phema_strbuf names = {0};
    if (list_tensors(&names, builder, is_tied))
        candidates_note(&builder->candidates,
                        "tied, since the raw parameters are equal in every file, and averaged: %s",
                        names.data);
    size_t n_copied = list_tensors(&names, builder, has_no_average);
    if (n_copied)
        candidates_note(&builder->candidates,
                        "not averaged, since the files have no average of %s, but taken from the "
                        "newest raw parameters: %s",
                        n_copied == 1 ? "it" : "them", names.data);
    enum phema_status status = phema_strbuf_check(&names, err);
    phema_strbuf_clear(&names);
    return status;
}

static void note_frozen(struct series_builder *builder)
{
    const struct phema_checkpoint *checkpoint = builder->checkpoint;
    const char *file = NULL;
    size_t n = 0;
    uint64_t bytes = 0;
    for (size_t i = 0; i < phema_checkpoint_n_tensors(checkpoint); i++) {
        const struct phema_tensor *tensor = &phema_checkpoint_tensors(checkpoint)[i];
        if (tensor->kind != PHEMA_KIND_FROZEN)
            continue;
        file = phema_checkpoint_file_label(checkpoint, tensor->file);
        bytes += tensor->size_bytes;
        n++;
    }
    struct phema_name_buffer size;
    if (file && !builder->options->is_conversion)
        candidates_note(&builder->candidates,
                        "%zu frozen tensor%s, %s, in '%s' for all snapshots: averages have %s as "
                        "%s",
                        n, n == 1 ? "" : "s", phema_size_format(&size, bytes), file,
                        n == 1 ? "it" : "them", n == 1 ? "it is" : "they are");
}

/* Tensors in attributes, and codes with their scales. */
static void note_kinds(struct series_builder *builder)
{
    size_t n = builder->series->attributes.n_tensors;
    const struct phema_tensor *first = phema_checkpoint_tensors(builder->checkpoint);
    const struct phema_quantised *quantised = builder->series->quantised;
    struct phema_name_buffer shown;
    while (n && first->kind != PHEMA_KIND_ATTRIBUTE)
        first++;
    if (n)
        candidates_note(
            &builder->candidates,
            "%zu tensor%s in attributes of objects, such as '%s': no part of the model; a copy of "
            "the newest snapshot (.pt, .pkl) keeps %s as %s, other outputs are without",
            n, n == 1 ? "" : "s", phema_name_escape(&shown, first->name, first->name_size),
            n == 1 ? "it" : "them", n == 1 ? "it is" : "they are");
    /* inspect lists these tensors, synth refuses to average them */
    if (quantised && !builder->options->is_conversion)
        candidates_note(&builder->candidates,
                        "quantised tensors, such as '%s' with its scale '%s', are copied or left "
                        "out, never averaged (synth %s'RE=copy', %s'RE')",
                        quantised->codes, quantised->scale, phema_setting_equals(PHEMA_SET_RULE),
                        phema_setting_equals(PHEMA_SET_EXCLUDE));
}

/* patterns: [n] of the expressions of the option */
static enum phema_status note_unused(struct series_builder *builder,
                                     struct phema_regex *const *patterns, size_t n,
                                     const char *const *expressions, enum phema_setting setting,
                                     struct phema_error *err)
{
    const struct phema_series *series = builder->series;
    struct phema_name_buffer shown, name;
    for (size_t i = 0; i < n && series->n_tensors; i++) {
        const struct phema_tensor *first = &series->tensors[0].tensor;
        bool is_used = false;
        enum phema_status status =
            tensor_filter_is_used(&is_used, &builder->filter, &patterns[i], err);
        if (status)
            return status;
        if (!is_used)
            candidates_note(&builder->candidates,
                            "%s'%s' matches no tensor; names are like '%s' (inspect lists them)",
                            phema_setting_equals(setting), phema_name_show(&shown, expressions[i]),
                            phema_name_escape(&name, first->name, first->name_size));
    }
    return PHEMA_OK;
}

PHEMA_FALLIBLE tensor_notes_add(struct series_builder *builder, struct phema_error *err)
{
    const struct phema_series_options *options = builder->options;
    const struct tensor_filter *filter = &builder->filter;
    note_kinds(builder);
    note_frozen(builder);
    enum phema_status status = note_without_average(builder, err);
    if (!status)
        status = note_unused(builder, filter->includes, filter->n_includes, options->includes,
                             PHEMA_SET_INCLUDE, err);
    return status ? status
                  : note_unused(builder, filter->excludes, filter->n_excludes, options->excludes,
                                PHEMA_SET_EXCLUDE, err);
}

#define MEASURE "measure running statistics anew, as update_bn of PyTorch does"

PHEMA_FALLIBLE tensor_notes_add_buffers(struct series_builder *builder, bool is_told,
                                        struct phema_error *err)
{
    struct phema_strbuf names = {0};
    bool has_statistics = list_tensors(&names, builder, is_copied_statistic) > 0;
    if (list_tensors(&names, builder, is_copied_buffer))
        candidates_note(&builder->candidates,
                        "not averaged by their class, but copied, and taken from the newest: %s%s",
                        names.data, has_statistics ? "; " MEASURE : "");
    if (!is_told && builder->series->n > 1 && list_tensors(&names, builder, is_averaged_statistic))
        candidates_note(&builder->candidates,
                        "averaged as parameters are: %s; where their class copies them, " MEASURE,
                        names.data);
    enum phema_status status = phema_strbuf_check(&names, err);
    phema_strbuf_clear(&names);
    return status;
}
