// SPDX-License-Identifier: Apache-2.0
/* template_names.c - Names of the averaged tensors in the checkpoint that is copied. They may be
 * below a key, or between a prefix and a suffix next to the tensors of the training. */
#include <string.h>

#include "outputs.h"
#include "phema/setting.h"

/* The folder of one of flux_action's averages alone. */
static const struct phema_tensor_set tensors_alone = {.prefix = "tensors.", .suffix = ""};

const struct phema_tensor *template_find(const struct phema_checkpoint *template,
                                         const struct phema_tensor_set *set,
                                         const struct phema_tensor *tensor)
{
    struct phema_strbuf name = {0};
    phema_strbuf_puts(&name, set->prefix);
    phema_strbuf_append(&name, tensor->name, tensor->name_size);
    phema_strbuf_puts(&name, set->suffix);
    const struct phema_tensor *found =
        name.is_failed ? NULL
                       : phema_checkpoint_find(template, name.data ? name.data : "", name.size);
    phema_strbuf_clear(&name);
    return found;
}

/* Whether the template has a tied tensor in the place of tensor i, as checkpoints that keep tied
 * parameters under one name. */
static bool has_tied(const struct phema_checkpoint *template, const struct phema_tensor_set *set,
                     const struct phema_series *series, size_t i)
{
    bool is_found = false;
    for (size_t j = 0; j < series->n_tensors && !is_found; j++)
        is_found = series->tensors[j].same_as == series->tensors[i].same_as &&
                   template_find(template, set, &series->tensors[j].tensor);
    return is_found;
}

/* The first tensor that the template does not have; SIZE_MAX: it has all. A set of averages
 * has no tensors that are not averaged. */
static size_t find_missing(const struct phema_checkpoint *template,
                           const struct phema_tensor_set *set, bool are_averages,
                           const struct phema_series *series)
{
    for (size_t i = 0; i < series->n_tensors; i++) {
        const struct phema_series_tensor *entry = &series->tensors[i];
        bool is_needed =
            are_averages ? entry->rule == PHEMA_RULE_AVERAGE : !outputs_is_counter(entry);
        if (is_needed && !template_find(template, set, &entry->tensor) &&
            !has_tied(template, set, series, i))
            return i;
    }
    return SIZE_MAX;
}

static bool holds_averages(const struct phema_checkpoint *template,
                           const struct phema_tensor_set *set, const struct phema_series *series)
{
    bool is_any = false;
    for (size_t i = 0; i < series->n_tensors && !is_any; i++)
        is_any = series->tensors[i].rule == PHEMA_RULE_AVERAGE;
    return is_any && find_missing(template, set, true, series) == SIZE_MAX;
}

/* Sets into and into_key, or into_names of averages between a prefix and a suffix. */
static enum phema_status choose(struct draft *draft, const struct phema_tensor_set *set,
                                bool is_subtree, struct phema_error *err)
{
    struct phema_outputs *outputs = draft->outputs;
    draft->into = *set;
    outputs->into_key = is_subtree ? set->name : "";
    if (is_subtree)
        return PHEMA_OK;
    outputs->into_names = phema_arena_printf(draft->arena, "%sNAME%s", set->prefix, set->suffix);
    return outputs->into_names ? PHEMA_OK : phema_fail_memory(err);
}

static enum phema_status fail_missing(const struct draft *draft,
                                      const struct phema_checkpoint *template,
                                      const struct phema_tensor_set *set, bool are_averages,
                                      struct phema_error *err)
{
    const struct phema_series *series = draft->plan->series;
    const struct phema_tensor *missing =
        &series->tensors[find_missing(template, set, are_averages, series)].tensor;
    struct phema_name_buffer shown;
    return phema_fail(err, PHEMA_ERR_INPUTS,
                      "%s: has no tensor '%s%s%s', so it is no checkpoint of the same model; %s "
                      "names the subtree, %s what to replace",
                      phema_checkpoint_path(template), set->prefix,
                      phema_name_escape(&shown, missing->name, missing->name_size), set->suffix,
                      phema_setting_name(PHEMA_SET_KEY), phema_setting_name(PHEMA_SET_INCLUDE));
}

/* ---- Below a key ---- */

/* The subtree that holds the model: --key, that of the snapshots, or a usual name. */
static enum phema_status find_key(struct draft *draft, const struct phema_checkpoint *template,
                                  const char *asked, struct phema_error *err)
{
    const struct phema_series *series = draft->plan->series;
    const char *const guesses[] = {asked ? asked : series->key,
                                   series->key,
                                   "",
                                   "state_dict",
                                   "ema",
                                   "ema_model",
                                   "model",
                                   "model_state_dict",
                                   "module",
                                   "net",
                                   "state_dict.model"};
    /* a key that differs from that of the snapshots is meant for this file */
    size_t n = asked && strcmp(asked, series->key) != 0 ? 1 : ARRAY_LEN(guesses);
    struct phema_tensor_set first = {0};
    for (size_t g = 0; g < n; g++) {
        struct phema_tensor_set set;
        if (!phema_tensor_set_below(&set, guesses[g], draft->arena))
            return phema_fail_memory(err);
        if (find_missing(template, &set, false, series) == SIZE_MAX)
            return choose(draft, &set, true, err);
        first = g ? first : set;
    }
    return fail_missing(draft, template, &first, false, err);
}

/* ---- A set of a trainer's checkpoint ---- */

static enum phema_status fail_ambiguous(const struct phema_tensor_sets *sets,
                                        struct phema_error *err)
{
    struct phema_strbuf names = {0};
    for (size_t s = 0; s < sets->n; s++)
        phema_strbuf_printf(&names, "%s%s",
                            s == 0            ? ""
                            : s + 1 < sets->n ? ", "
                                              : " or ",
                            sets->items[s]->name);
    enum phema_status status = phema_strbuf_check(&names, err);
    if (!status)
        status = phema_fail(err, PHEMA_ERR_USAGE,
                            "%s: holds several averages; %s%s chooses the one to replace",
                            phema_checkpoint_path(sets->checkpoint),
                            phema_setting_equals(PHEMA_SET_KEY), names.data);
    phema_strbuf_clear(&names);
    return status;
}

/* The set that --key names, or the only average that has the averaged tensors. *found: NULL:
 * none */
static enum phema_status find_set(const struct phema_tensor_set **found, struct draft *draft,
                                  const struct phema_checkpoint *template, const char *asked,
                                  struct phema_error *err)
{
    const struct phema_series *series = draft->plan->series;
    struct phema_tensor_sets sets;
    size_t n_meant = 0;
    enum phema_status status = phema_tensor_sets_list(&sets, draft->arena, template, err);
    *found = NULL;
    for (size_t s = 0; !status && s < sets.n; s++) {
        const struct phema_tensor_set *set = sets.items[s];
        if (asked ? strcmp(set->name, asked) != 0
                  : set->is_raw || !holds_averages(template, set, series))
            continue;
        n_meant++;
        *found = set;
    }
    return status || n_meant < 2 ? status : fail_ambiguous(&sets, err);
}

PHEMA_FALLIBLE template_find_set(struct draft *draft, const struct phema_checkpoint *template,
                                 struct phema_error *err)
{
    const struct phema_series *series = draft->plan->series;
    const char *asked = draft->options->key;
    const struct phema_tensor_set *found = NULL;
    enum phema_status status = find_set(&found, draft, template, asked, err);
    if (status)
        return status;
    if (found && find_missing(template, found, true, series) != SIZE_MAX)
        return fail_missing(draft, template, found, true, err);
    if (!found && !asked && holds_averages(template, &tensors_alone, series))
        found = &tensors_alone;
    if (found)
        return choose(draft, found, false, err);
    return find_key(draft, template, asked && strcmp(asked, ".") == 0 ? "" : asked, err);
}
