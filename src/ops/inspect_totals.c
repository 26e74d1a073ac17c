// SPDX-License-Identifier: Apache-2.0
/* inspect_totals.c - sums over tensors by dtype, component and rule; groups of tied tensors. */
#include "phema/inspect.h"

#include <stdlib.h>
#include <string.h>

/* At most this many components, so that the table stays readable. */
#define MANY_COMPONENTS 20
/* Deeper than modules are nested before their names differ; a name of a million dots costs nothing.
 */
#define MAX_COMMON_PARTS 16

enum inspect_rule inspect_rule_of(const struct inspect_summary *summary, size_t i,
                                  const char **reason)
{
    const struct phema_series *series = summary->series;
    size_t at = series->became ? series->became[i] : i + 1;
    *reason = NULL;
    if (!at) {
        enum phema_tensor_kind kind = summary->tensors[i].kind;
        *reason = kind == PHEMA_KIND_ATTRIBUTE ? "attribute"
                  : kind == PHEMA_KIND_SCALE   ? "scale, read with its codes"
                  : *series->key               ? "not in the subtree"
                                               : "not chosen";
        return INSPECT_LEFT_OUT;
    }
    const struct phema_series_tensor *entry = &series->tensors[at - 1];
    if (entry->rule == PHEMA_RULE_AVERAGE)
        return INSPECT_AVERAGE;
    *reason = entry->reason;
    return INSPECT_COPY;
}

static void add_tensor(struct inspect_total *total, const struct phema_tensor *tensor)
{
    total->n_tensors++;
    total->n_elems += tensor->n_elems;
    total->size_bytes += tensor->size_bytes;
    bool is_buffer = tensor->kind == PHEMA_KIND_BUFFER || tensor->kind == PHEMA_KIND_ATTRIBUTE;
    *(is_buffer ? &total->n_buffer_elems : &total->n_params) += tensor->n_elems;
}

/* ---- Dtypes ---- */

static bool make_dtypes(struct inspect_summary *summary)
{
    struct inspect_totals *dtypes = &summary->dtypes;
    struct inspect_total *items =
        phema_arena_array(&summary->arena, PHEMA_N_DTYPES, sizeof(*items));
    if (!items)
        return false;
    for (size_t i = 0; i < summary->n_tensors; i++)
        add_tensor(&items[summary->tensors[i].dtype], &summary->tensors[i]);
    for (int d = 0; d < PHEMA_N_DTYPES; d++) {
        if (!items[d].n_tensors)
            continue;
        items[d].label = phema_dtype_name((enum phema_dtype)d);
        items[d].label_size = strlen(items[d].label);
        items[dtypes->n++] = items[d];
    }
    dtypes->items = items;
    return true;
}

/* ---- Components ---- */

/* The first n_parts parts of a name, never including the last part, the tensor's own. */
static size_t prefix_size(const struct phema_tensor *tensor, size_t n_parts)
{
    size_t size = 0;
    for (size_t i = 0; i < tensor->name_size && n_parts; i++)
        if (tensor->name[i] == '.') {
            size = i;
            n_parts--;
        }
    return size;
}

/* Counts the leading parts that all names share: they distinguish nothing. */
static size_t common_parts(const struct phema_tensor *tensors, size_t n)
{
    size_t n_parts = 0;
    for (size_t i = 0; n && i < tensors[0].name_size && n_parts < MAX_COMMON_PARTS; i++)
        n_parts += tensors[0].name[i] == '.';
    for (size_t i = 1; i < n && n_parts; i++)
        for (; n_parts; n_parts--) {
            size_t size = prefix_size(&tensors[0], n_parts);
            if (tensors[i].name_size > size && tensors[i].name[size] == '.' &&
                memcmp(tensors[i].name, tensors[0].name, size) == 0)
                break;
        }
    return n_parts;
}

struct named {
    const char *prefix;
    size_t size, tensor;
};

static int compare_prefixes(const struct named *left, const struct named *right)
{
    size_t common = left->size < right->size ? left->size : right->size;
    int order = memcmp(left->prefix, right->prefix, common);
    return order ? order : (left->size > right->size) - (left->size < right->size);
}

static int compare_named(const void *a, const void *b)
{
    const struct named *left = a, *right = b;
    int order = compare_prefixes(left, right);
    return order ? order : (left->tensor > right->tensor) - (left->tensor < right->tensor);
}

/* Fills names, ordered by their prefixes of n_parts parts; returns the number of distinct
 * prefixes. */
static size_t sort_names(struct named *names, const struct inspect_summary *summary, size_t n_parts)
{
    size_t n = summary->n_tensors, n_distinct = 0;
    for (size_t i = 0; i < n; i++)
        names[i] =
            (struct named){summary->tensors[i].name, prefix_size(&summary->tensors[i], n_parts), i};
    qsort(names, n, sizeof(*names), compare_named);
    for (size_t i = 0; i < n; i++)
        n_distinct += i == 0 || compare_prefixes(&names[i - 1], &names[i]) != 0;
    return n_distinct;
}

static int compare_first(const void *a, const void *b)
{
    const struct inspect_total *left = a, *right = b;
    return (left->first > right->first) - (left->first < right->first);
}

/* One or two parts after the shared ones: two unless there are too many components. */
static bool make_components(struct inspect_summary *summary)
{
    size_t n = summary->n_tensors;
    struct named *names = phema_arena_array(&summary->arena, n + 1, sizeof(*names));
    if (!names)
        return false;
    size_t n_parts = common_parts(summary->tensors, n) + 2;
    size_t n_distinct = sort_names(names, summary, n_parts);
    if (n_distinct > MANY_COMPONENTS)
        n_distinct = sort_names(names, summary, n_parts - 1);
    struct inspect_totals *components = &summary->components;
    components->items =
        phema_arena_array(&summary->arena, n_distinct + 1, sizeof(*components->items));
    if (!components->items)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || compare_prefixes(&names[i - 1], &names[i]) != 0)
            components->items[components->n++] = (struct inspect_total){
                .label = names[i].prefix, .label_size = names[i].size, .first = names[i].tensor};
        add_tensor(&components->items[components->n - 1], &summary->tensors[names[i].tensor]);
    }
    qsort(components->items, components->n, sizeof(*components->items), compare_first);
    return true;
}

/* ---- Rules ---- */

static struct inspect_total *find_rule(struct inspect_totals *rules, enum inspect_rule rule,
                                       const char *reason, size_t tensor)
{
    size_t size = reason ? strlen(reason) : 0;
    for (size_t i = 0; i < rules->n; i++)
        if (rules->items[i].rule == rule && rules->items[i].label_size == size &&
            (!size || memcmp(rules->items[i].label, reason, size) == 0))
            return &rules->items[i];
    rules->items[rules->n] =
        (struct inspect_total){.label = reason, .label_size = size, .rule = rule, .first = tensor};
    return &rules->items[rules->n++];
}

static int compare_rules(const void *a, const void *b)
{
    const struct inspect_total *left = a, *right = b;
    if (left->rule != right->rule)
        return left->rule < right->rule ? -1 : 1;
    return (left->first > right->first) - (left->first < right->first);
}

static void add_left_out(struct inspect_totals *rules, const char *reason,
                         const struct phema_tensor_total *total)
{
    if (!total->n_tensors)
        return;
    struct inspect_total *left_out = find_rule(rules, INSPECT_LEFT_OUT, reason, 0);
    left_out->n_tensors = total->n_tensors;
    left_out->n_elems = total->n_elems;
    left_out->size_bytes = total->size_bytes;
}

static bool make_rules(struct inspect_summary *summary)
{
    const struct phema_series *series = summary->series;
    struct inspect_totals *rules = &summary->rules;
    if (!series)
        return true;
    /* no more than one for each tensor, and what is left out */
    rules->items =
        phema_arena_array(&summary->arena, summary->n_tensors + 2, sizeof(*rules->items));
    if (!rules->items)
        return false;
    for (size_t i = 0; i < summary->n_tensors; i++) {
        const char *reason = NULL;
        enum inspect_rule rule = inspect_rule_of(summary, i, &reason);
        add_tensor(find_rule(rules, rule, reason, i), &summary->tensors[i]);
    }
    if (!series->became) {
        add_left_out(rules, *series->key ? "not in the subtree" : "not chosen", &series->left_out);
        add_left_out(rules, "attribute", &series->attributes);
    }
    qsort(rules->items, rules->n, sizeof(*rules->items), compare_rules);
    return true;
}

/* ---- Ties ---- */

static int compare_dimensions(const uint64_t *a, const uint64_t *b, unsigned rank)
{
    if (!a || !b)
        return (a != NULL) - (b != NULL);
    return rank ? memcmp(a, b, rank * sizeof(*a)) : 0;
}

/* 0 when both are the same elements in the same order */
static int compare_places(const struct phema_tensor *left, const struct phema_tensor *right)
{
    if (left->file != right->file)
        return left->file < right->file ? -1 : 1;
    if (left->offset != right->offset)
        return left->offset < right->offset ? -1 : 1;
    if (left->dtype != right->dtype)
        return left->dtype < right->dtype ? -1 : 1;
    if (left->rank != right->rank)
        return left->rank < right->rank ? -1 : 1;
    int order = compare_dimensions(left->shape, right->shape, left->rank);
    return order ? order : compare_dimensions(left->stride, right->stride, left->rank);
}

static int compare_indices(const void *a, const void *b, void *summary)
{
    const struct phema_tensor *tensors = ((const struct inspect_summary *)summary)->tensors;
    size_t i = *(const size_t *)a, j = *(const size_t *)b;
    int order = compare_places(&tensors[i], &tensors[j]);
    return order ? order : (i > j) - (i < j);
}

/* Finds for each tensor the first with the same storage; in a series, the same in every snapshot.
 *   order  [n] scratch */
static void find_first_ties(size_t *first, size_t *order, struct inspect_summary *summary)
{
    const struct phema_tensor *tensors = summary->tensors;
    size_t n_placed = 0;
    bool is_series = summary->series && !summary->series->became;
    for (size_t i = 0; i < summary->n_tensors; i++) {
        first[i] = is_series ? summary->series->tensors[i].same_as : i;
        if (!is_series && tensors[i].n_elems && !tensors[i].chunks)
            order[n_placed++] = i;
    }
    qsort_r(order, n_placed, sizeof(*order), compare_indices, summary);
    for (size_t i = 1; i < n_placed; i++)
        if (compare_places(&tensors[order[i - 1]], &tensors[order[i]]) == 0)
            first[order[i]] = first[order[i - 1]];
}

static int compare_ties(const void *a, const void *b, void *table)
{
    const size_t *first = table;
    size_t i = *(const size_t *)a, j = *(const size_t *)b;
    if (first[i] != first[j])
        return first[i] < first[j] ? -1 : 1;
    return (i > j) - (i < j);
}

static bool make_ties(struct inspect_summary *summary)
{
    size_t n = summary->n_tensors;
    size_t *first = phema_arena_array(&summary->arena, n + 1, sizeof(*first));
    size_t *order = phema_arena_array(&summary->arena, n + 1, sizeof(*order));
    summary->tie_ends = phema_arena_array(&summary->arena, n + 1, sizeof(size_t));
    if (!first || !order || !summary->tie_ends)
        return false;
    find_first_ties(first, order, summary);
    for (size_t i = 0; i < n; i++)
        order[i] = i;
    qsort_r(order, n, sizeof(*order), compare_ties, first);
    summary->ties = order; /* of which only the groups stay */
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && first[order[end]] == first[order[i]]; end++)
            ;
        if (end - i < 2)
            continue;
        memmove(order + summary->n_ties, order + i, (end - i) * sizeof(*order));
        summary->n_ties += end - i;
        summary->tie_ends[summary->n_groups++] = summary->n_ties;
    }
    return true;
}

/* Completes the summary and moves it to *out, with its arena. */
static enum phema_status fill(struct inspect_summary *out, struct inspect_summary *summary,
                              struct phema_error *err)
{
    for (size_t i = 0; i < summary->n_tensors; i++)
        summary->knows_kinds |= summary->tensors[i].kind == PHEMA_KIND_PARAMETER ||
                                summary->tensors[i].kind == PHEMA_KIND_BUFFER;
    if (!make_dtypes(summary) || !make_components(summary) || !make_rules(summary) ||
        !make_ties(summary)) {
        inspect_summary_clear(summary);
        return phema_fail_memory(err);
    }
    *out = *summary;
    return PHEMA_OK;
}

/* The message without the path that it begins with. */
static const char *copy_refusal(struct phema_arena *arena, const struct phema_error *refusal,
                                const char *path)
{
    size_t size = strlen(path);
    bool has_path =
        !strncmp(refusal->message, path, size) && !strncmp(refusal->message + size, ": ", 2);
    return phema_arena_printf(arena, "%s", refusal->message + (has_path ? size + 2 : 0));
}

PHEMA_FALLIBLE inspect_summarise_checkpoint(struct inspect_summary *out,
                                            struct phema_checkpoint *checkpoint,
                                            const struct phema_series_options *options,
                                            struct phema_error *err)
{
    struct inspect_summary summary = {.tensors = phema_checkpoint_tensors(checkpoint),
                                      .n_tensors = phema_checkpoint_n_tensors(checkpoint)};
    struct phema_series_options alone = *options;
    struct phema_error refusal = {0};
    alone.is_alone = true;
    alone.opened = checkpoint;
    enum phema_status status = phema_series_open_auto(&summary.own_series, &alone, &refusal);
    if (status == PHEMA_ERR_RESOURCE) {
        *err = refusal;
        return status;
    }
    summary.series = summary.own_series;
    summary.refusal = copy_refusal(&summary.arena, &refusal, phema_checkpoint_path(checkpoint));
    if (summary.refusal)
        return fill(out, &summary, err);
    inspect_summary_clear(&summary);
    return phema_fail_memory(err);
}

PHEMA_FALLIBLE inspect_summarise_series(struct inspect_summary *out,
                                        const struct phema_series *series, struct phema_error *err)
{
    struct inspect_summary summary = {.n_tensors = series->n_tensors, .series = series};
    struct phema_tensor *tensors =
        phema_arena_array(&summary.arena, series->n_tensors + 1, sizeof(*tensors));
    if (!tensors)
        return phema_fail_memory(err);
    for (size_t i = 0; i < series->n_tensors; i++)
        tensors[i] = phema_tensor_codes(&series->tensors[i].tensor);
    summary.tensors = tensors;
    return fill(out, &summary, err);
}

void inspect_summary_clear(struct inspect_summary *summary)
{
    phema_arena_clear(&summary->arena);
    phema_series_close(summary->own_series);
}
