// SPDX-License-Identifier: Apache-2.0
/* subtree.c - which part of a checkpoint is the averaged model. Trainers store more than a model:
 * raw parameters next to their averages, several averages, an optimizer. A note reports a guess. */
#include "sets.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "phema/setting.h"
#include "twins.h"

/* ---- Several averages in one file: P.stds and P.emas ---- */

/* "P.emas.1.w" is average 1 of P, whose name is the first *key_size bytes; "emas.1.w" of "". */
static bool names_average(size_t *key_size, size_t *index, const char *name, size_t size)
{
    static const char list[] = "emas.";
    static const size_t list_size = sizeof(list) - 1;
    for (size_t at = 0; at + list_size < size; at++) {
        const char *found = memmem(name + at, size - at, list, list_size);
        if (!found)
            return false;
        at = (size_t)(found - name);
        size_t after = at + list_size, end = after;
        for (*index = 0; end < size && end < after + 9 && name[end] >= '0' && name[end] <= '9';)
            *index = 10 * *index + (size_t)(name[end++] - '0');
        if (end > after && end < size && name[end] == '.' && (at == 0 || name[at - 1] == '.')) {
            *key_size = at ? at - 1 : 0;
            return true;
        }
    }
    return false;
}

/* KEY.stds is a list or a tensor of numbers. */
static double width_at(const struct phema_checkpoint *checkpoint, const char *key, size_t key_size,
                       size_t index)
{
    return snapshot_metadata_item(checkpoint, key, key_size, key_size ? ".stds" : "stds", index);
}

/* The first key that holds averages and a width of the first average; {NULL, 0}: none. */
static struct phema_span find_bundle(const struct phema_checkpoint *checkpoint)
{
    const struct phema_tensor *tensors = phema_checkpoint_tensors(checkpoint);
    struct phema_span seen = {NULL, 0};
    for (size_t i = 0; i < phema_checkpoint_n_tensors(checkpoint); i++) {
        size_t size = 0, index = 0;
        const char *name = tensors[i].name;
        if (!names_average(&size, &index, name, tensors[i].name_size))
            continue;
        if (seen.data && phema_bytes_compare(seen.data, seen.size, name, size) == 0)
            continue; /* the same key again */
        seen = (struct phema_span){(const uint8_t *)name, size};
        if (!isnan(width_at(checkpoint, name, size, 0)))
            return seen;
    }
    return (struct phema_span){NULL, 0};
}

/* ---- The choice ---- */

/* The keys that the first state of an optimizer lies below, "state." of "state.optimizers.AdamW";
 * {NULL, 0}: there is none. */
static struct phema_span find_optimizer(const struct phema_checkpoint *checkpoint,
                                        bool needs_tensors)
{
    const struct phema_tensor *tensors = phema_checkpoint_tensors(checkpoint);
    size_t size = 0;
    for (size_t i = 0; i < phema_checkpoint_n_tensors(checkpoint); i++)
        if (optimizer_find(&size, tensors[i].name, tensors[i].name_size))
            return (struct phema_span){(const uint8_t *)tensors[i].name, size};
    const struct phema_value *values = phema_checkpoint_values(checkpoint);
    for (size_t i = 0; !needs_tensors && i < phema_checkpoint_n_values(checkpoint); i++)
        if (optimizer_find(&size, values[i].name, values[i].name_size))
            return (struct phema_span){(const uint8_t *)values[i].name, size};
    return (struct phema_span){NULL, 0};
}

/* Whether the rest of a tensor's name stands below a key as well: "generator.w" and KEY "model". */
static bool has_counterpart(const struct phema_checkpoint *checkpoint, const char *key,
                            const struct phema_tensor *tensor)
{
    const char *dot = memchr(tensor->name, '.', tensor->name_size);
    struct phema_strbuf twin = {0};
    phema_strbuf_printf(&twin, "%s", key);
    if (dot)
        phema_strbuf_append(&twin, dot, tensor->name_size - (size_t)(dot - tensor->name));
    bool is_there = !twin.is_failed && phema_checkpoint_find(checkpoint, twin.data, twin.size);
    phema_strbuf_clear(&twin);
    return is_there;
}

/* Whether tensors outside of a key are parameters as well: a model that is saved in parts, such as a
 * generator beside it. In a single checkpoint, of which nothing says whether they are twins, tensors of
 * the same names are not.
 *   averages  the key of those that are left out; or NULL */
static bool has_other_part(const struct phema_checkpoint *checkpoint, const char *key,
                           const char *averages, bool is_alone)
{
    const struct phema_tensor *tensors = phema_checkpoint_tensors(checkpoint);
    for (size_t i = 0; i < phema_checkpoint_n_tensors(checkpoint); i++) {
        const struct phema_tensor *tensor = &tensors[i];
        size_t size = tensor->name_size, rest = size;
        if (averages && name_below_key(tensor->name, &rest, averages))
            continue;
        if (!name_below_key(tensor->name, &size, key) && memchr(tensor->name, '.', size) &&
            twin_is_parameter(tensor) && (!is_alone || !has_counterpart(checkpoint, key, tensor)))
            return true;
    }
    return false;
}

/* Whether matrices stand beside a key, as those of a projector, and nothing there that is called an
 * average, or that might be one by its names. */
static bool has_separate_part(const struct phema_checkpoint *checkpoint, const char *key)
{
    const struct phema_tensor *tensors = phema_checkpoint_tensors(checkpoint);
    bool has_matrix = false;
    for (size_t i = 0; i < phema_checkpoint_n_tensors(checkpoint); i++) {
        const struct phema_tensor *tensor = &tensors[i];
        const struct phema_span name = {(const uint8_t *)tensor->name, tensor->name_size};
        size_t size = tensor->name_size;
        if (name_below_key(tensor->name, &size, key) || !twin_is_parameter(tensor))
            continue;
        if (says_average(name) || has_counterpart(checkpoint, key, tensor))
            return false;
        has_matrix = has_matrix || tensor->rank >= 2;
    }
    return has_matrix;
}

/* A tensor at the root, of a kind that is not read: it matters in a model alone. NULL: none */
static const struct phema_unread *find_unread(const struct phema_checkpoint *checkpoint)
{
    size_t n = 0;
    const struct phema_unread *unread = phema_checkpoint_unread(checkpoint, &n);
    for (size_t i = 0; i < n; i++)
        if (unread[i].why && unread[i].name_size &&
            !memchr(unread[i].name, '.', unread[i].name_size))
            return &unread[i];
    return NULL;
}

static const char *const model_keys[] = {"model", "model_state_dict", "module", "net"};

static bool is_model_key(const char *key)
{
    const char *dot = strrchr(key, '.'), *last = dot ? dot + 1 : key;
    return phema_bytes_are_any(last, strlen(last), model_keys, ARRAY_LEN(model_keys));
}

/* The model beside the state of an optimizer, or beside tensors that are not read.
 *   out  NULL: there is none
 * false: no memory */
static bool guess_model(const char **out, struct phema_arena *arena,
                        const struct phema_checkpoint *checkpoint)
{
    struct phema_span beside = find_optimizer(checkpoint, false);
    bool is_training = beside.data || find_unread(checkpoint);
    *out = NULL;
    for (size_t i = 0; is_training && !*out && i < ARRAY_LEN(model_keys); i++) {
        const char *key =
            phema_arena_printf(arena, "%.*s%s", (int)beside.size,
                               beside.data ? (const char *)beside.data : "", model_keys[i]);
        if (!key)
            return false;
        *out = subtree_exists(checkpoint, key) ? key : NULL;
    }
    return true;
}

/* "" where no key is known to hold the model. */
static const char *guess_key(const struct candidate_list *candidates,
                             const struct phema_checkpoint *checkpoint)
{
    const char *const own[] = {candidates->layout->subtree,
                               phema_checkpoint_format_info(checkpoint)->model};
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        if (own[i] && subtree_exists(checkpoint, own[i]))
            return own[i];
    bool is_raw = candidates->asks_for_raw; /* beside averages */
    struct phema_span bundle = find_bundle(checkpoint);
    if (bundle.data)
        return phema_arena_copy(candidates->arena, bundle.data, bundle.size);
    if (!is_raw && subtree_exists(checkpoint, "ema_state_dict"))
        return "ema_state_dict";
    const char *lit_ema = is_raw ? NULL : litema_find(checkpoint);
    if (lit_ema)
        return lit_ema;
    if (subtree_exists(checkpoint, "state_dict"))
        return "state_dict";
    const char *model = NULL;
    if (!guess_model(&model, candidates->arena, checkpoint) || model)
        return model;
    const char *root = phema_checkpoint_root_key(checkpoint);
    bool is_model =
        root && subtree_exists(checkpoint, root) && !is_optimizer_state(root, strlen(root));
    return is_model ? phema_arena_copy(candidates->arena, root, strlen(root)) : "";
}

/* "ema" of a file that holds {"ema": ...} alone. */
static bool all_say_average(const struct phema_checkpoint *checkpoint)
{
    const struct phema_tensor *tensors = phema_checkpoint_tensors(checkpoint);
    bool is_any = false;
    for (size_t i = 0; i < phema_checkpoint_n_tensors(checkpoint); i++) {
        const char *dot = memchr(tensors[i].name, '.', tensors[i].name_size);
        size_t size = dot ? (size_t)(dot - tensors[i].name) : 0;
        if (!twin_is_parameter(&tensors[i]))
            continue;
        if (!says_average((struct phema_span){(const uint8_t *)tensors[i].name, size}))
            return false;
        is_any = true;
    }
    return is_any;
}

static void note_guess(struct candidate_list *candidates, const struct subtree *subtree,
                       const struct phema_checkpoint *checkpoint)
{
    struct phema_name_buffer buffer, name;
    const char *key = phema_name_show(&buffer, subtree->key);
    const char *dot = *key ? "." : "";
    if (subtree->averages)
        candidates_note(candidates, "left out: '%s', averages of these parameters (%s%s)",
                        subtree->averages, phema_setting_equals(PHEMA_SET_KEY), subtree->averages);
    const struct phema_unread *unread = *key ? find_unread(checkpoint) : NULL;
    if (unread)
        candidates_note(candidates, "left out: '%s' beside the model: %s",
                        phema_name_escape(&name, unread->name, unread->name_size), unread->why);
    if (subtree->is_bundle)
        candidates_note(
            candidates,
            "each file holds several averages: those in '%s%semas' are averaged, of the widths in "
            "'%s%sstds' (a new file has their names without the key; %s. for all)",
            key, dot, key, dot, phema_setting_equals(PHEMA_SET_KEY));
    else if (subtree->n_names)
        candidates_note(candidates,
                        "averaging the subtree '%s' under the names that its tensors have in the "
                        "model (%s. for all)",
                        key, phema_setting_equals(PHEMA_SET_KEY));
    else if (*key && !subtree->is_usual)
        candidates_note(
            candidates,
            "averaging the subtree '%s'%s (a new file has its names without it; %s. for all)", key,
            subtree->has_parts ? " and the parameters beside it" : "",
            phema_setting_equals(PHEMA_SET_KEY));
    else if (find_optimizer(checkpoint, true).data)
        candidates_note(candidates,
                        "left out: the state of an optimizer (%s. copies it from the newest)",
                        phema_setting_equals(PHEMA_SET_KEY));
}

/* Names without dots at the root, each once. */
#define MOST_ROOTS ((size_t)8)

/* n: of roots [MOST_ROOTS]; false: there are more, or tensors without a root. */
static bool list_roots(struct phema_span *roots, size_t *n,
                       const struct phema_checkpoint *checkpoint)
{
    const struct phema_tensor *tensors = phema_checkpoint_tensors(checkpoint);
    *n = 0;
    for (size_t i = 0; i < phema_checkpoint_n_tensors(checkpoint); i++) {
        const char *dot = memchr(tensors[i].name, '.', tensors[i].name_size);
        if (!dot)
            return false;
        size_t size = (size_t)(dot - tensors[i].name), k = 0;
        while (k < *n && phema_bytes_compare(roots[k].data, roots[k].size, tensors[i].name, size))
            k++;
        if (k == MOST_ROOTS)
            return false;
        roots[k] = (struct phema_span){(const uint8_t *)tensors[i].name, size};
        *n += k == *n;
    }
    return true;
}

/* Names the subtrees that are there, and suggests the one whose letters differ in case alone. */
static enum phema_status fail_absent(const char *key, const struct phema_checkpoint *checkpoint,
                                     struct phema_error *err)
{
    struct phema_span roots[MOST_ROOTS];
    struct phema_name_buffer shown;
    struct phema_strbuf names = {0};
    char meant[64] = "";
    size_t n = 0;
    bool is_short = list_roots(roots, &n, checkpoint);
    for (size_t k = 0; k < n && is_short; k++) {
        const char *root = (const char *)roots[k].data;
        phema_strbuf_printf(&names, "%s'%s'", k ? ", " : "; it has ",
                            phema_name_escape(&shown, root, roots[k].size));
        if (roots[k].size < sizeof(meant) && strncasecmp(root, key, roots[k].size) == 0 &&
            !key[roots[k].size + (key[roots[k].size] == '.')])
            (void)snprintf(meant, sizeof(meant), "%.*s", (int)roots[k].size, root);
    }
    enum phema_status status = phema_strbuf_check(&names, err);
    if (!status)
        status =
            phema_suggest(err,
                          phema_fail(err, PHEMA_ERR_INPUTS, "has no subtree '%s'%s",
                                     phema_name_show(&shown, key), names.data ? names.data : ""),
                          PHEMA_SET_KEY, meant);
    phema_strbuf_clear(&names);
    return status;
}

PHEMA_FALLIBLE subtree_choose(struct subtree *out, struct candidate_list *candidates,
                              const char *asked, const struct phema_checkpoint *checkpoint,
                              struct phema_error *err)
{
    bool is_all = asked && strcmp(asked, ".") == 0;
    *out = (struct subtree){.key = is_all ? "" : asked ? asked : guess_key(candidates, checkpoint)};
    if (!out->key)
        return phema_fail_memory(err);
    if (*out->key && !subtree_exists(checkpoint, out->key))
        return fail_absent(out->key, checkpoint, err);
    out->keeps_module = candidates->n == 1;
    out->leaves_out_optimizer = !asked && !*out->key;
    const char *lit_ema = is_all ? NULL : litema_find(checkpoint);
    bool is_lit_ema = lit_ema && strcmp(lit_ema, out->key) == 0;
    candidates->leaves_out_raw |= is_lit_ema;
    if (!asked && candidates->asks_for_raw) {
        enum phema_status status =
            nameless_find(&out->averages, candidates->arena, checkpoint, err);
        if (status)
            return status;
        out->averages = lit_ema && !is_lit_ema ? lit_ema : out->averages;
    }
    if (!asked && is_model_key(out->key))
        out->has_parts = has_other_part(checkpoint, out->key, out->averages, candidates->n == 1);
    else if (!asked && strcmp(out->key, "state_dict") == 0 && !candidates->layout->subtree)
        out->has_parts = candidates->n > 1 && has_separate_part(checkpoint, out->key);
    const char *emas =
        phema_arena_printf(candidates->arena, "%s%semas", out->key, *out->key ? "." : "");
    if (!emas)
        return phema_fail_memory(err);
    out->is_bundle = !is_all && subtree_exists(checkpoint, emas) &&
                     !isnan(width_at(checkpoint, out->key, strlen(out->key), 0));
    if (is_lit_ema) {
        enum phema_status status = litema_list_names(out, candidates->arena, checkpoint, err);
        if (status)
            return status;
        litema_note_unmatched(candidates, out, checkpoint);
    }
    out->is_called_average = says_average(phema_span_of(out->key)) || all_say_average(checkpoint);
    const char *usual = candidates->layout->subtree;
    out->is_usual = usual && !out->has_parts && strcmp(usual, out->key) == 0;
    if (!asked)
        note_guess(candidates, out, checkpoint);
    return PHEMA_OK;
}

/* ---- The sets ---- */

/* The parts of a key like P.emas.1: the size of P, and 1. */
static bool split_key(size_t *size, size_t *index, const char *key)
{
    struct phema_strbuf name = {0}; /* of an imagined tensor below the key */
    phema_strbuf_printf(&name, "%s.w", key);
    bool is_average = !name.is_failed && names_average(size, index, name.data, name.size) &&
                      strlen(key) == *size + (*size ? 1 : 0) + strlen("emas.") +
                                         (size_t)snprintf(NULL, 0, "%zu", *index);
    phema_strbuf_clear(&name);
    return is_average;
}

bool subtree_is_average(const char *key)
{
    size_t size = 0, index = 0;
    return split_key(&size, &index, key);
}

bool phema_tensor_set_below(struct phema_tensor_set *out, const char *key,
                            struct phema_arena *arena)
{
    const char *dot = *key ? "." : "";
    *out = (struct phema_tensor_set){.name = phema_arena_copy(arena, key, strlen(key)),
                                     .prefix = phema_arena_printf(arena, "%s%s", key, dot),
                                     .suffix = "",
                                     .sigma_rel = PHEMA_UNKNOWN,
                                     .time = PHEMA_UNKNOWN};
    return out->name && out->prefix;
}

/* Puts tensor i into a set, if it lies below its key; false: no memory. */
static bool add_member(struct phema_tensor_sets *sets, const struct subtree *subtree, size_t i,
                       struct phema_tensor_set *set)
{
    const struct phema_tensor *tensor = &phema_checkpoint_tensors(sets->checkpoint)[i];
    const char *name = tensor->name;
    size_t size = tensor->name_size;
    size_t rest = size;
    if ((subtree->leaves_out_optimizer && is_optimizer_state(name, size)) ||
        (subtree->averages && name_below_key(name, &rest, subtree->averages)))
        return true;
    if (*set->name) {
        name = name_below_key(name, &size, set->name);
        bool is_part =
            !name && subtree->has_parts && !is_optimizer_state(tensor->name, tensor->name_size);
        name = is_part ? tensor->name : name;
        size = is_part ? tensor->name_size : size;
    }
    if (!name || (*set->name && !size))
        return true;
    const struct rename *rename = rename_find(subtree->names, subtree->n_names, name, size);
    struct phema_set_member member = {set, name, size};
    if (rename)
        member = (struct phema_set_member){set, (const char *)rename->to.data, rename->to.size};
    if (!member.name)
        return true;
    member.name = name_without_wrappers(&member.name_size, member.name, sets->arena);
    sets->members[i] = member;
    set->n_tensors++;
    return member.name != NULL;
}

/* The averages of a bundle, one for each width. */
static enum phema_status list_averages(struct phema_tensor_sets *sets, const char *key,
                                       struct phema_error *err)
{
    /* each width is a stored value, or its average has a tensor */
    const struct phema_checkpoint *checkpoint = sets->checkpoint;
    size_t most = phema_checkpoint_n_values(checkpoint) + phema_checkpoint_n_tensors(checkpoint);
    double *widths = phema_arena_array(sets->arena, most + 1, sizeof(*widths));
    if (!widths)
        return phema_fail_memory(err);
    for (; sets->n < most; sets->n++) {
        widths[sets->n] = width_at(checkpoint, key, strlen(key), sets->n);
        if (isnan(widths[sets->n]))
            break;
    }
    if (sets->n == 0)
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "has no widths in 'stds' of '%s', which other files of the series have",
                          key);
    struct phema_tensor_set *averages = phema_arena_array(sets->arena, sets->n, sizeof(*averages));
    sets->items = phema_arena_array(sets->arena, sets->n, sizeof(struct phema_tensor_set *));
    if (!averages || !sets->items)
        return phema_fail_memory(err);
    for (size_t i = 0; i < sets->n; i++) {
        const char *name = phema_arena_printf(sets->arena, "%s%semas.%zu", key, *key ? "." : "", i);
        if (!name || !phema_tensor_set_below(&averages[i], name, sets->arena))
            return phema_fail_memory(err);
        averages[i].sigma_rel = widths[i];
        sets->items[i] = &averages[i];
    }
    return PHEMA_OK;
}

/* Averages of one width are in the order of their array. */
static int compare_widths(const void *a, const void *b)
{
    const struct phema_tensor_set *left = *(struct phema_tensor_set *const *)a;
    const struct phema_tensor_set *right = *(struct phema_tensor_set *const *)b;
    if (left->sigma_rel != right->sigma_rel)
        return left->sigma_rel < right->sigma_rel ? -1 : 1;
    return (left > right) - (left < right);
}

static enum phema_status list_bundle(struct phema_tensor_sets *sets, const struct subtree *subtree,
                                     struct phema_error *err)
{
    const struct phema_tensor *tensors = phema_checkpoint_tensors(sets->checkpoint);
    const char *key = subtree->key;
    enum phema_status status = list_averages(sets, key, err);
    if (status)
        return status;
    for (size_t i = 0; i < phema_checkpoint_n_tensors(sets->checkpoint); i++) {
        size_t size = 0, index = 0;
        if (!names_average(&size, &index, tensors[i].name, tensors[i].name_size) ||
            !phema_bytes_are(tensors[i].name, size, key))
            continue;
        if (index >= sets->n)
            return phema_fail(err, PHEMA_ERR_INPUTS,
                              "holds average %zu of '%s', but %zu width%s in 'stds' there, from 0",
                              index, key, sets->n, sets->n == 1 ? "" : "s");
        if (!add_member(sets, subtree, i, sets->items[index]))
            return phema_fail_memory(err);
    }
    for (size_t i = 0; i < sets->n; i++)
        if (!sets->items[i]->n_tensors)
            return phema_fail(err, PHEMA_ERR_INPUTS,
                              "has %zu widths in 'stds' of '%s', but no average %zu in 'emas'",
                              sets->n, key, i);
    qsort(sets->items, sets->n, sizeof(struct phema_tensor_set *), compare_widths);
    return PHEMA_OK;
}

PHEMA_FALLIBLE subtree_list(struct phema_tensor_sets *out, const struct subtree *subtree,
                            struct phema_error *err)
{
    size_t n = phema_checkpoint_n_tensors(out->checkpoint), size = 0, index = 0;
    const char *key = subtree->key;
    struct phema_tensor_set *set = phema_arena_alloc(out->arena, sizeof(*set));
    out->members = phema_arena_array(out->arena, n + 1, sizeof(*out->members));
    out->items = phema_arena_array(out->arena, 1, sizeof(struct phema_tensor_set *));
    if (!set || !out->members || !out->items || !phema_tensor_set_below(set, key, out->arena))
        return phema_fail_memory(err);
    if (subtree->is_bundle)
        return list_bundle(out, subtree, err);
    if (split_key(&size, &index, key))
        set->sigma_rel = width_at(out->checkpoint, key, size, index);
    for (size_t i = 0; i < n; i++)
        if (!add_member(out, subtree, i, set))
            return phema_fail_memory(err);
    out->items[out->n++] = set;
    return subtree->keeps_module || names_remove_module(out) ? PHEMA_OK : phema_fail_memory(err);
}
