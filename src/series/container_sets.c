// SPDX-License-Identifier: Apache-2.0
/* container_sets.c - the snapshots of a container as places for a new average. */
#include <string.h>

#include "containers.h"

#define MAX_SETS 64

static bool has_set(const struct phema_tensor_set *sets, size_t n, const struct member *member)
{
    for (size_t s = 0; s < n; s++)
        if (phema_bytes_are(member->set, member->set_size, sets[s].name))
            return true;
    return false;
}

/* All tensors of a set have the prefix and suffix of its first one. */
static enum phema_status add_set(struct phema_tensor_set *set, struct phema_arena *arena,
                                 const struct container_kind *kind,
                                 const struct phema_tensor *tensor, const struct member *member,
                                 struct phema_error *err)
{
    size_t prefix_size = (size_t)(member->name - tensor->name);
    size_t inner_size = prefix_size + member->name_size;
    *set = (struct phema_tensor_set){.name = phema_arena_copy(arena, member->set, member->set_size),
                                     .is_raw = member->is_raw,
                                     .prefix = phema_arena_copy(arena, tensor->name, prefix_size),
                                     .suffix = phema_arena_copy(arena, tensor->name + inner_size,
                                                                tensor->name_size - inner_size),
                                     .kind = kind};
    return set->name && set->prefix && set->suffix ? PHEMA_OK : phema_fail_memory(err);
}

PHEMA_FALLIBLE phema_tensor_sets_list(struct phema_tensor_set **out, size_t *n,
                                      struct phema_arena *arena,
                                      const struct phema_checkpoint *checkpoint,
                                      struct phema_error *err)
{
    const struct container_kind *kind = container_recognise(checkpoint);
    const struct phema_tensor *tensors = phema_checkpoint_tensors(checkpoint);
    *n = 0;
    if (!kind)
        return PHEMA_OK;
    *out = phema_arena_array(arena, MAX_SETS, sizeof(**out));
    if (!*out)
        return phema_fail_memory(err);
    for (size_t i = 0; i < phema_checkpoint_n_tensors(checkpoint); i++) {
        struct member member;
        if (tensors[i].kind == PHEMA_KIND_ATTRIBUTE ||
            !kind->split(&member, tensors[i].name, tensors[i].name_size) ||
            has_set(*out, *n, &member))
            continue;
        if (*n == MAX_SETS)
            return phema_fail(err, PHEMA_ERR_INPUTS, "%s: holds more than %d averages",
                              phema_checkpoint_path(checkpoint), MAX_SETS);
        enum phema_status status = add_set(&(*out)[*n], arena, kind, &tensors[i], &member, err);
        if (status)
            return status;
        ++*n;
    }
    return PHEMA_OK;
}

PHEMA_FALLIBLE phema_tensor_set_change(struct phema_set_change *out,
                                       const struct phema_tensor_set *set, const char *directory,
                                       double sigma_rel, double time, struct phema_arena *arena,
                                       struct phema_error *err)
{
    *out = (struct phema_set_change){0};
    if (set->is_raw || !set->kind || !set->kind->change)
        return PHEMA_OK;
    return set->kind->change(out, set, directory, sigma_rel, time, arena, err);
}
