// SPDX-License-Identifier: Apache-2.0
/* containers.c - the snapshots that a container holds. */
#include "containers.h"
#include "phema/setting.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "snapshot_metadata.h"

/* A checkpoint keeps a handful of averages. */
#define MAX_SETS 64

/* ---- Sets ---- */

static enum phema_status add_set(struct container *container, size_t *n_tensors,
                                 struct phema_arena *arena, const struct member *member,
                                 struct phema_error *err)
{
    for (size_t s = 0; s < container->n; s++)
        if (phema_bytes_are(member->set, member->set_size, container->sets[s].name)) {
            n_tensors[s]++;
            return PHEMA_OK;
        }
    if (container->n == MAX_SETS)
        return phema_fail(err, PHEMA_ERR_INPUTS, "holds more than %d averages", MAX_SETS);
    const char *name = phema_arena_copy(arena, member->set, member->set_size);
    if (!name)
        return phema_fail_memory(err);
    n_tensors[container->n] = 1;
    container->sets[container->n++] = (struct tensor_set){
        .name = name, .is_raw = member->is_raw, .sigma_rel = PHEMA_UNKNOWN, .time = PHEMA_UNKNOWN};
    container->has_raw = container->has_raw || member->is_raw;
    return PHEMA_OK;
}

static enum phema_status find_sets(struct container *container, size_t *n_tensors,
                                   struct phema_arena *arena,
                                   const struct phema_checkpoint *checkpoint,
                                   struct phema_error *err)
{
    const struct phema_tensor *tensors = phema_checkpoint_tensors(checkpoint);
    for (size_t i = 0; i < phema_checkpoint_n_tensors(checkpoint); i++) {
        struct member member;
        if (tensors[i].kind == PHEMA_KIND_ATTRIBUTE ||
            !container->kind->split(&member, tensors[i].name, tensors[i].name_size))
            continue;
        enum phema_status status = add_set(container, n_tensors, arena, &member, err);
        if (status)
            return status;
    }
    return PHEMA_OK;
}

bool container_has_set(const struct container_kind *kind, const struct phema_checkpoint *checkpoint,
                       const char *set)
{
    const struct phema_tensor *tensors = phema_checkpoint_tensors(checkpoint);
    for (size_t i = 0; i < phema_checkpoint_n_tensors(checkpoint); i++) {
        struct member member;
        if (tensors[i].kind != PHEMA_KIND_ATTRIBUTE &&
            kind->split(&member, tensors[i].name, tensors[i].name_size) &&
            phema_bytes_are(member.set, member.set_size, set))
            return true;
    }
    return false;
}

/* ---- Raw parameters beside averages ---- */

/* Whether each average has a raw parameter of its name. */
static bool raw_fits(const struct container_kind *kind, const struct phema_checkpoint *checkpoint)
{
    const struct phema_tensor *tensors = phema_checkpoint_tensors(checkpoint);
    struct phema_strbuf name = {0};
    bool fits = true;
    for (size_t i = 0; i < phema_checkpoint_n_tensors(checkpoint) && fits; i++) {
        struct member member;
        if (!kind->split(&member, tensors[i].name, tensors[i].name_size) || member.is_raw)
            continue;
        name.size = 0;
        phema_strbuf_puts(&name, "state_dict.");
        phema_strbuf_append(&name, member.name, member.name_size);
        fits = !name.is_failed && phema_checkpoint_find(checkpoint, name.data, name.size);
    }
    phema_strbuf_clear(&name);
    return fits;
}

/* Averages under other names than the model's are used alone. */
static void drop_other_raw(struct container *container, const struct phema_checkpoint *checkpoint)
{
    size_t n = 0;
    if (!container->has_raw || !container->kind->may_lack_raw ||
        raw_fits(container->kind, checkpoint))
        return;
    for (size_t s = 0; s < container->n; s++)
        if (!container->sets[s].is_raw)
            container->sets[n++] = container->sets[s];
    container->n = n;
    container->has_raw = false;
}

static enum phema_status check_time(const struct container_kind *kind,
                                    const struct candidate *candidate,
                                    const struct phema_checkpoint *checkpoint,
                                    struct phema_error *err)
{
    const char *counter = kind->counter ? kind->counter : "";
    struct phema_span name = {(const uint8_t *)counter, strlen(counter)};
    double inside = kind->counter ? snapshot_metadata_value(checkpoint, name) : PHEMA_UNKNOWN;
    struct phema_name_buffer named, found;
    if (isnan(inside) || isnan(candidate->named_time) || inside == candidate->named_time)
        return PHEMA_OK;
    return phema_fail(err, PHEMA_ERR_INPUTS, "its name says time %s, but '%s' inside is %s",
                      phema_number_format(&named, candidate->named_time), kind->counter,
                      phema_number_format(&found, inside));
}

/* ---- The list ---- */

static int compare_sets(const void *a, const void *b)
{
    const struct tensor_set *left = a, *right = b;
    if (left->time != right->time) /* none is NaN */
        return left->time < right->time ? -1 : 1;
    if (left->is_raw != right->is_raw)
        return left->is_raw ? -1 : 1;
    if (left->sigma_rel < right->sigma_rel || left->sigma_rel > right->sigma_rel)
        return left->sigma_rel < right->sigma_rel ? -1 : 1;
    return strcmp(left->name, right->name);
}

static bool are_alike(const struct tensor_set *a, const struct tensor_set *b)
{
    if (a->is_raw || b->is_raw || a->time < b->time || a->time > b->time)
        return false;
    if (a->spec && b->spec)
        return strcmp(a->spec, b->spec) == 0;
    return !a->spec && !b->spec && a->sigma_rel >= b->sigma_rel && a->sigma_rel <= b->sigma_rel;
}

static enum phema_status check_sets(const struct container *container, struct phema_error *err)
{
    bool has_single = false, has_keys = false;
    for (size_t s = 0; s < container->n; s++) {
        const struct tensor_set *set = &container->sets[s];
        has_single = has_single || (!set->is_raw && strcmp(set->name, "ema") == 0);
        has_keys = has_keys || set->spec;
        for (size_t other = 0; other < s; other++)
            if (are_alike(&container->sets[other], set))
                return phema_fail(
                    err, PHEMA_ERR_INPUTS,
                    "the averages '%s' and '%s' have the same profile; expected one of each",
                    container->sets[other].name, set->name);
    }
    if (has_single && has_keys)
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "holds averages whose names have a width, and others without; expected "
                          "one of these kinds");
    return PHEMA_OK;
}

static enum phema_status check_roles(const struct container *container, struct phema_error *err)
{
    if (container->n == 0)
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "holds no parameters under the names that %s gives them, which other "
                          "snapshots of the series have",
                          container->kind->trainer);
    if (!container->has_raw && !container->kind->may_lack_raw)
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "holds averages of %s, but no raw parameters, which frozen tensors come "
                          "from; name one set of tensors with %s",
                          container->kind->trainer, phema_setting_name(PHEMA_SET_KEY));
    return PHEMA_OK;
}

PHEMA_FALLIBLE container_list(struct container *out, const struct container_kind *kind,
                              struct phema_arena *arena, const struct candidate *candidate,
                              const struct phema_checkpoint *checkpoint, struct phema_error *err)
{
    size_t n_tensors[MAX_SETS] = {0};
    const struct container_source source = {candidate, checkpoint, n_tensors, arena};
    *out = (struct container){.kind = kind};
    out->sets = phema_arena_array(arena, MAX_SETS, sizeof(*out->sets));
    if (!out->sets)
        return phema_fail_memory(err);
    enum phema_status status = find_sets(out, n_tensors, arena, checkpoint, err);
    if (!status)
        status = check_roles(out, err);
    if (!status)
        status = check_time(kind, candidate, checkpoint, err);
    if (!status && kind->read_profiles)
        status = kind->read_profiles(out, &source, err);
    for (size_t s = 0; s < out->n && !status; s++)
        if (isnan(out->sets[s].time))
            out->sets[s].time = isnan(candidate->named_time) ? 0 : candidate->named_time;
    if (!status)
        status = check_sets(out, err);
    if (status)
        return status;
    drop_other_raw(out, checkpoint);
    qsort(out->sets, out->n, sizeof(*out->sets), compare_sets);
    for (size_t s = 0; s < out->n && !out->reference; s++)
        out->reference = out->sets[s].is_raw ? NULL : &out->sets[s];
    return PHEMA_OK;
}
