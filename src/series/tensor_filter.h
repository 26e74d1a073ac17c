/* tensor_filter.h - --include, --exclude and --key: the name of each tensor in the series; average
 * or copy. */
#ifndef SERIES_TENSOR_FILTER_H
#define SERIES_TENSOR_FILTER_H

#include "phema/regex.h"
#include "phema/series.h"
#include "subtree.h"

struct tensor_filter {
    const char *key; /* subtree, "" for all; differs between snapshots of one file */
    size_t key_size;
    bool leaves_out_optimizer;
    bool takes_attributes;      /* tensors outside of any state_dict take part */
    const struct rename *names; /* [n_names] of tensors that have another name in the series */
    size_t n_names;
    struct phema_regex **includes, **excludes;
    size_t n_includes, n_excludes;
};

/* The name of a tensor in the series; NULL when it takes no part.
 * PHEMA_ERR_USAGE  an expression meets the limits of the search */
PHEMA_FALLIBLE tensor_filter_name(const struct tensor_filter *filter,
                                  const struct phema_tensor *tensor, const char **name,
                                  size_t *size, struct phema_error *err);

/* Sets the rule, and the reason of a copy. listed: the tensor with its full name in the file */
void tensor_filter_rule(struct phema_series_tensor *entry, const struct phema_tensor *listed,
                        bool averages_buffers);

#endif
