// SPDX-License-Identifier: Apache-2.0
/* tensor_filter.c - --include, --exclude; average or copy. */
#include "tensor_table.h"

#include <string.h>

#include "phema/setting.h"
#include "phema/sort.h"
#include "sets.h"

static enum phema_status match_any(struct phema_regex *const *patterns, size_t n,
                                   const struct phema_set_member *member, bool *is_match,
                                   struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    *is_match = false;
    for (size_t i = 0; i < n && !status && !*is_match; i++)
        status = phema_regex_match(patterns[i], member->name, member->name_size, is_match, err);
    return status;
}

int tensor_names_compare(const void *a, const void *b, void *table)
{
    const struct phema_series_tensor *tensors = table;
    size_t i = *(const size_t *)a, j = *(const size_t *)b;
    const struct phema_tensor *left = &tensors[i].tensor, *right = &tensors[j].tensor;
    int order = phema_bytes_compare(left->name, left->name_size, right->name, right->name_size);
    return order ? order : (i > j) - (i < j);
}

PHEMA_FALLIBLE tensor_filter_set_like(struct tensor_filter *filter, const struct phema_series *like,
                                      struct phema_arena *arena, struct phema_error *err)
{
    filter->like = like;
    filter->like_by_name = phema_arena_array(arena, like->n_tensors + 1, sizeof(size_t));
    if (!filter->like_by_name)
        return phema_fail_memory(err);
    for (size_t i = 0; i < like->n_tensors; i++)
        filter->like_by_name[i] = i;
    phema_sort(filter->like_by_name, like->n_tensors, sizeof(size_t), tensor_names_compare,
               like->tensors);
    return PHEMA_OK;
}

size_t tensor_filter_place(const struct tensor_filter *filter, const char *name, size_t size)
{
    size_t low = 0, high = filter->like->n_tensors;
    while (low < high) {
        size_t middle = low + (high - low) / 2, at = filter->like_by_name[middle];
        const struct phema_tensor *tensor = &filter->like->tensors[at].tensor;
        int order = phema_bytes_compare(tensor->name, tensor->name_size, name, size);
        if (order == 0)
            return at;
        low = order < 0 ? middle + 1 : low;
        high = order < 0 ? high : middle;
    }
    return SIZE_MAX;
}

PHEMA_FALLIBLE tensor_filter_role(struct tensor_role *out, const struct tensor_filter *filter,
                                  const struct phema_tensor *tensor, struct phema_error *err)
{
    *out = (struct tensor_role){NULL, 0, false};
    if (tensor->kind == PHEMA_KIND_ATTRIBUTE && !filter->takes_attributes)
        return PHEMA_OK;
    if (tensor->kind == PHEMA_KIND_SCALE && !filter->keeps_codes &&
        !(filter->keeps_scales && !filter->sets->trainer)) /* read with its codes */
        return PHEMA_OK;
    const struct phema_set_member *member = member_of(filter->sets, tensor);
    bool is_beside = member->set && member->set->is_raw && filter->sets->has_raw;
    if (!member->set || (member->set != filter->set && !is_beside))
        return PHEMA_OK;
    *out = (struct tensor_role){member->name, member->name_size, member->set->is_raw};
    bool is_included, is_excluded;
    enum phema_status status =
        match_any(filter->includes, filter->n_includes, member, &is_included, err);
    if (status)
        return status;
    status = match_any(filter->excludes, filter->n_excludes, member, &is_excluded, err);
    bool is_other =
        filter->like && tensor_filter_place(filter, member->name, member->name_size) == SIZE_MAX;
    if ((filter->n_includes && !is_included) || is_excluded || is_other)
        out->name = NULL;
    return status;
}

/* Whether tensors at this place would take part in the current set. */
static enum phema_status is_wanted(bool *out, const struct tensor_filter *filter,
                                   const struct phema_unread *unread, bool is_conversion,
                                   struct phema_error *err)
{
    const char *prefix = filter->set->prefix;
    size_t size = strlen(prefix);
    bool is_root =
        unread->name_size + 1 == size && prefix[unread->name_size] == '.'; /* of the set */
    size_t begin = is_root ? unread->name_size : size;
    *out = unread->name_size >= begin && memcmp(unread->name, prefix, begin) == 0;
    if (!*out || (!is_conversion && is_optimizer_state(unread->name, unread->name_size)))
        return *out = false, PHEMA_OK;
    const struct phema_set_member member = {filter->set, unread->name + begin,
                                            unread->name_size - begin};
    bool is_included = filter->n_includes == 0, is_excluded = false;
    enum phema_status status = PHEMA_OK;
    if (!is_included)
        status = match_any(filter->includes, filter->n_includes, &member, &is_included, err);
    if (!status)
        status = match_any(filter->excludes, filter->n_excludes, &member, &is_excluded, err);
    *out = is_included && !is_excluded;
    return status;
}

enum phema_status tensor_filter_check_read(const struct tensor_filter *filter, bool is_conversion,
                                           struct phema_error *err)
{
    size_t n = 0;
    const struct phema_unread *unread = phema_checkpoint_unread(filter->sets->checkpoint, &n);
    const struct phema_unread **wanted =
        phema_arena_array(filter->sets->arena, n, sizeof(struct phema_unread *));
    struct phema_name_buffer place, class;
    size_t n_wanted = 0;
    if (n && !wanted)
        return phema_fail_memory(err);
    for (size_t i = 0; i < n; i++) {
        bool is_one = false;
        enum phema_status status = is_wanted(&is_one, filter, &unread[i], is_conversion, err);
        if (status)
            return status;
        for (size_t k = 0; k < n_wanted && is_one; k++)
            is_one = strcmp(wanted[k]->class_name, unread[i].class_name) != 0;
        if (is_one)
            wanted[n_wanted++] = &unread[i];
    }
    if (n_wanted == 0)
        return PHEMA_OK;
    const struct phema_unread *first = wanted[0];
    (void)phema_name_escape(&place, first->name, first->name_size);
    (void)phema_name_show(&class, first->class_name);
    if (first->why)
        return phema_fail(err, PHEMA_ERR_FILE, "'%s' is made by '%s': %s", place.text, class.text,
                          first->why);
    struct phema_strbuf classes = {0};
    for (size_t k = 0; k < n_wanted; k++)
        if (!wanted[k]->why)
            phema_strbuf_printf(&classes, "%s'%s'", classes.size ? ", " : "",
                                phema_name_show(&class, wanted[k]->class_name));
    enum phema_status status = phema_strbuf_check(&classes, err);
    if (!status)
        status = phema_fail(err, PHEMA_ERR_FILE,
                            "'%s' holds tensors in objects of classes that are not read, %s; save "
                            "the state_dict, or leave out what they hide with %s for each",
                            place.text, classes.data, phema_setting_name(PHEMA_SET_ALLOW_GLOBAL));
    phema_strbuf_clear(&classes);
    for (size_t k = 0; k < n_wanted; k++)
        if (!wanted[k]->why)
            (void)phema_suggest(err, status, PHEMA_SET_ALLOW_GLOBAL, wanted[k]->class_name);
    return status;
}

PHEMA_FALLIBLE tensor_filter_is_used(bool *out, const struct tensor_filter *filter,
                                     struct phema_regex *const *pattern, struct phema_error *err)
{
    const struct phema_checkpoint *checkpoint = filter->sets->checkpoint;
    const struct phema_tensor *tensors = phema_checkpoint_tensors(checkpoint);
    size_t n_unread = 0;
    const struct phema_unread *unread = phema_checkpoint_unread(checkpoint, &n_unread);
    enum phema_status status = PHEMA_OK;
    *out = false;
    for (size_t i = 0; i < phema_checkpoint_n_tensors(checkpoint) && !*out && !status; i++)
        status = match_any(pattern, 1, member_of(filter->sets, &tensors[i]), out, err);
    for (size_t i = 0; i < n_unread && !*out && !status; i++)
        status = phema_regex_match(*pattern, unread[i].name, unread[i].name_size, out, err);
    return status;
}

bool tensor_filter_takes(const struct tensor_filter *filter, const struct tensor_role *role,
                         const struct phema_series_tensor *entry)
{
    if (!filter->sets->has_raw)
        return true;
    bool needs_raw = filter->set->is_raw || entry->rule == PHEMA_RULE_COPY;
    return role->is_raw == needs_raw && (!entry->tied_to || entry->rule == PHEMA_RULE_COPY);
}

const struct tie *tensor_filter_ties(const struct tensor_filter *filter,
                                     const struct phema_tensor *listed, size_t *n)
{
    *n = 0;
    if (!filter->n_ties || listed->kind == PHEMA_KIND_ATTRIBUTE)
        return NULL;
    const struct phema_set_member *member = member_of(filter->sets, listed);
    if (member->set != filter->set)
        return NULL;
    size_t low = 0, high = filter->n_ties;
    while (low < high) { /* the first that is not before the name */
        size_t middle = low + (high - low) / 2;
        const struct phema_span *average = &filter->ties[middle].average;
        if (phema_bytes_compare((const char *)average->data, average->size, member->name,
                                member->name_size) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    while (low + *n < filter->n_ties) {
        const struct phema_span *average = &filter->ties[low + *n].average;
        if (phema_bytes_compare((const char *)average->data, average->size, member->name,
                                member->name_size) != 0)
            break;
        ++*n;
    }
    return *n ? &filter->ties[low] : NULL;
}

void tensor_filter_rule(struct phema_series_tensor *entry, const struct phema_tensor *listed,
                        bool averages_buffers)
{
    /* Counters among the parameters: step and initted of the EMA libraries at the root, and batch
     * norm's. Their dtype may be any: some trainers cast them. */
    static const char *const counters[] = {"step", "initted", "num_batches_tracked"};
    static const char inner[] = ".num_batches_tracked";
    const struct phema_tensor *tensor = &entry->tensor;
    size_t size = strlen(inner), name_size = tensor->name_size;
    bool is_counter =
        phema_bytes_are_any(tensor->name, name_size, counters, ARRAY_LEN(counters)) ||
        (name_size >= size && phema_bytes_are(tensor->name + name_size - size, size, inner));
    entry->rule = PHEMA_RULE_COPY;
    if (is_optimizer_state(listed->name, listed->name_size))
        entry->reason = "optimizer";
    else if (tensor->kind == PHEMA_KIND_ATTRIBUTE)
        entry->reason = "attribute";
    else if (tensor->kind == PHEMA_KIND_FROZEN)
        entry->reason = "frozen";
    else if (is_counter && tensor->rank == 0)
        entry->reason = "bookkeeping";
    else if (listed->kind == PHEMA_KIND_SCALE)
        entry->reason = "scale";
    else if (!phema_dtype_is_float(tensor->dtype) && tensor->dtype != PHEMA_C64)
        entry->reason = tensor->dtype == PHEMA_C128 ? "complex128" : "integer";
    else if (listed->kind == PHEMA_KIND_ACTIVATION_SCALE)
        entry->reason = "activation scale";
    else if (tensor->kind == PHEMA_KIND_BUFFER && !averages_buffers)
        entry->reason = "buffer";
    else
        entry->rule = PHEMA_RULE_AVERAGE;
}

bool tensor_is_statistic(const struct phema_tensor *tensor)
{
    static const char *const names[] = {"running_mean",     "running_var", "running_std",
                                        "running_variance", "moving_mean", "moving_var",
                                        "moving_variance"};
    return phema_tensor_is_called(tensor, names, ARRAY_LEN(names));
}
