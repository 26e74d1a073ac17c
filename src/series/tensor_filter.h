/* tensor_filter.h - which tensors of a file take part, by what name, and what becomes of them. */
#ifndef SERIES_TENSOR_FILTER_H
#define SERIES_TENSOR_FILTER_H

#include "phema/regex.h"
#include "phema/series.h"
#include "subtree.h"

struct tensor_filter {
    const char *key; /* subtree, "" for all; may change from one snapshot to the next */
    size_t key_size;
    bool leaves_out_optimizer;
    bool takes_attributes;      /* tensors that are no part of a state_dict, as they are */
    const struct rename *names; /* [n_names] of tensors that the series calls otherwise */
    size_t n_names;
    struct phema_regex **includes, **excludes;
    size_t n_includes, n_excludes;
};

/* The name that the series gives a tensor; NULL when it takes no part. */
PHEMA_FALLIBLE tensor_filter_name(const struct tensor_filter *selection,
                                  const struct phema_tensor *tensor, const char **name,
                                  size_t *size, struct phema_error *err);

/* Averaged, or copied and why. listed: the tensor with its whole name in the file */
void tensor_filter_rule(struct phema_series_tensor *entry, const struct phema_tensor *listed,
                        bool averages_buffers);

#endif
