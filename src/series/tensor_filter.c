// SPDX-License-Identifier: Apache-2.0
/* tensor_filter.c - --include, --exclude; average or copy. */
#include "tensor_table.h"

#include <string.h>

static enum phema_status match_any(struct phema_regex *const *patterns, size_t n, const char *name,
                                   size_t size, bool *is_match, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    *is_match = false;
    for (size_t i = 0; i < n && !status && !*is_match; i++)
        status = phema_regex_match(patterns[i], name, size, is_match, err);
    return status;
}

/* The name below the key of the subtree. */
static void read_subtree_role(struct tensor_role *out, const struct tensor_filter *filter,
                              const struct phema_tensor *tensor)
{
    const char *inner = tensor->name;
    size_t size = tensor->name_size;
    if (filter->subtree->leaves_out_optimizer && root_is_optimizer(inner, size))
        return;
    if (*filter->key)
        inner = subtree_inner_name(inner, &size, filter->key);
    if (!inner || (*filter->key && !size))
        return;
    const struct rename *rename =
        rename_find(filter->subtree->names, filter->subtree->n_names, inner, size);
    out->name = rename ? (const char *)rename->to.data : inner;
    out->size = rename ? rename->to.size : size;
}

/* Raw parameters take part beside the snapshot's own set. */
static void read_container_role(struct tensor_role *out, const struct tensor_filter *filter,
                                const struct phema_tensor *tensor)
{
    struct member member;
    if (!filter->container->kind->split(&member, tensor->name, tensor->name_size))
        return;
    if (member.is_raw && !filter->container->has_raw)
        return;
    if (!member.is_raw && !phema_bytes_are(member.set, member.set_size, filter->set->name))
        return;
    *out = (struct tensor_role){member.name, member.name_size, member.is_raw};
}

PHEMA_FALLIBLE tensor_filter_role(struct tensor_role *out, const struct tensor_filter *filter,
                                  const struct phema_tensor *tensor, struct phema_error *err)
{
    *out = (struct tensor_role){NULL, 0, false};
    if (tensor->kind == PHEMA_KIND_ATTRIBUTE && !filter->takes_attributes)
        return PHEMA_OK;
    if (tensor->kind == PHEMA_KIND_SCALE && !filter->keeps_codes &&
        !(filter->keeps_scales && !filter->container)) /* read with its codes */
        return PHEMA_OK;
    if (filter->container)
        read_container_role(out, filter, tensor);
    else
        read_subtree_role(out, filter, tensor);
    if (!out->name)
        return PHEMA_OK;
    bool is_included = true, is_excluded = false;
    enum phema_status status = PHEMA_OK;
    if (filter->n_includes)
        status = match_any(filter->includes, filter->n_includes, out->name, out->size, &is_included,
                           err);
    if (status)
        return status;
    status =
        match_any(filter->excludes, filter->n_excludes, out->name, out->size, &is_excluded, err);
    if (!is_included || is_excluded)
        out->name = NULL;
    return status;
}

PHEMA_FALLIBLE tensor_filter_name(const struct tensor_filter *filter,
                                  const struct phema_tensor *tensor, const char **name,
                                  size_t *size, struct phema_error *err)
{
    struct tensor_role role;
    enum phema_status status = tensor_filter_role(&role, filter, tensor, err);
    *name = role.name;
    *size = role.size;
    return status;
}

bool tensor_filter_takes(const struct tensor_filter *filter, const struct tensor_role *role,
                         const struct phema_series_tensor *entry)
{
    if (!filter->container || !filter->container->has_raw)
        return true;
    bool needs_raw = filter->set->is_raw || entry->rule == PHEMA_RULE_COPY;
    return role->is_raw == needs_raw && (!entry->tied_to || entry->rule == PHEMA_RULE_COPY);
}

const struct tie *tensor_filter_ties(const struct tensor_filter *filter,
                                     const struct phema_tensor *listed, size_t *n)
{
    struct member member;
    *n = 0;
    if (!filter->n_ties || listed->kind == PHEMA_KIND_ATTRIBUTE ||
        !filter->container->kind->split(&member, listed->name, listed->name_size) ||
        !phema_bytes_are(member.set, member.set_size, filter->set->name))
        return NULL;
    size_t low = 0, high = filter->n_ties;
    while (low < high) { /* the first that is not before the name */
        size_t middle = low + (high - low) / 2;
        const struct phema_span *average = &filter->ties[middle].average;
        if (phema_bytes_compare((const char *)average->data, average->size, member.name,
                                member.name_size) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    while (low + *n < filter->n_ties) {
        const struct phema_span *average = &filter->ties[low + *n].average;
        if (phema_bytes_compare((const char *)average->data, average->size, member.name,
                                member.name_size) != 0)
            break;
        ++*n;
    }
    return *n ? &filter->ties[low] : NULL;
}

/* Counters among the parameters: step and initted of the EMA libraries at the root, and batch
 * norm's. Their dtype may be any: some trainers cast them. */
static bool is_bookkeeping(const struct phema_tensor *tensor)
{
    static const char *const counters[] = {"step", "initted", "num_batches_tracked"};
    static const char inner[] = ".num_batches_tracked";
    if (tensor->rank != 0)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(counters); i++)
        if (phema_bytes_are(tensor->name, tensor->name_size, counters[i]))
            return true;
    size_t size = strlen(inner);
    return tensor->name_size >= size &&
           phema_bytes_are(tensor->name + tensor->name_size - size, size, inner);
}

void tensor_filter_rule(struct phema_series_tensor *entry, const struct phema_tensor *listed,
                        bool averages_buffers)
{
    const struct phema_tensor *tensor = &entry->tensor;
    entry->rule = PHEMA_RULE_COPY;
    if (root_is_optimizer(listed->name, listed->name_size))
        entry->reason = "optimizer";
    else if (tensor->kind == PHEMA_KIND_ATTRIBUTE)
        entry->reason = "attribute";
    else if (is_bookkeeping(tensor))
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
