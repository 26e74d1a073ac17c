// SPDX-License-Identifier: Apache-2.0
/* template_names.c - Names of the averaged tensors in the checkpoint that is copied. They may be
 * below a key, or between a prefix and a suffix next to the tensors of the training. */
#include <string.h>

#include "outputs.h"

/* Averages next to raw tensors: torchtitan, Cosmos, flux_action. */
static const struct phema_container containers[] = {
    {"ema.state.", ".ema_params"}, {"net_ema.", ""}, {"model.net_ema.", ""}, {"tensors.", ""}};

const struct phema_tensor *template_find(const struct phema_checkpoint *template,
                                         const struct phema_container *container,
                                         const struct phema_tensor *tensor)
{
    struct phema_strbuf name = {0};
    phema_strbuf_puts(&name, container->prefix);
    phema_strbuf_append(&name, tensor->name, tensor->name_size);
    phema_strbuf_puts(&name, container->suffix);
    const struct phema_tensor *found =
        name.is_failed ? NULL
                       : phema_checkpoint_find(template, name.data ? name.data : "", name.size);
    phema_strbuf_clear(&name);
    return found;
}

/* The first tensor that the template does not have; SIZE_MAX: it has all. A container of averages
 * has no tensors that are not averaged. */
static size_t find_missing(const struct phema_checkpoint *template,
                           const struct phema_container *container, bool are_averages,
                           const struct phema_series *series)
{
    for (size_t i = 0; i < series->n_tensors; i++) {
        const struct phema_series_tensor *entry = &series->tensors[i];
        bool is_needed =
            are_averages ? entry->rule == PHEMA_RULE_AVERAGE : !outputs_is_counter(entry);
        if (is_needed && !template_find(template, container, &entry->tensor))
            return i;
    }
    return SIZE_MAX;
}

static bool holds_averages(const struct phema_checkpoint *template,
                           const struct phema_container *container,
                           const struct phema_series *series)
{
    bool is_any = false;
    for (size_t i = 0; i < series->n_tensors && !is_any; i++)
        is_any = series->tensors[i].rule == PHEMA_RULE_AVERAGE;
    return is_any && find_missing(template, container, true, series) == SIZE_MAX;
}

/* Sets into_names, of averages between a prefix and a suffix. */
static enum phema_status choose_averages(struct phema_container *out, struct draft *draft,
                                         const struct phema_container *container,
                                         struct phema_error *err)
{
    struct phema_outputs *outputs = draft->outputs;
    outputs->into_key = "";
    outputs->into_names =
        phema_arena_printf(draft->arena, "%sNAME%s", container->prefix, container->suffix);
    *out = *container;
    return outputs->into_names ? PHEMA_OK : phema_fail_memory(err);
}

/* Sets into_key. */
static enum phema_status choose_key(struct phema_container *out, struct draft *draft,
                                    const char *key, struct phema_error *err)
{
    struct phema_outputs *outputs = draft->outputs;
    outputs->into_key = phema_arena_copy(draft->arena, key, strlen(key));
    const char *prefix = phema_arena_printf(draft->arena, "%s%s", key, *key ? "." : "");
    *out = (struct phema_container){prefix, ""};
    return outputs->into_key && prefix ? PHEMA_OK : phema_fail_memory(err);
}

static enum phema_status fail_missing(const struct draft *draft,
                                      const struct phema_checkpoint *template,
                                      const struct phema_container *container, bool are_averages,
                                      struct phema_error *err)
{
    const struct phema_series *series = draft->plan->series;
    const struct phema_tensor *missing =
        &series->tensors[find_missing(template, container, are_averages, series)].tensor;
    struct phema_name_buffer shown;
    return phema_fail(err, PHEMA_ERR_INPUTS,
                      "%s: has no tensor '%s%s%s', so it is no checkpoint of the same model; --key "
                      "names the subtree, --include what to replace",
                      phema_checkpoint_path(template), container->prefix,
                      phema_name_escape(&shown, missing->name, missing->name_size),
                      container->suffix);
}

/* The subtree that holds the model: --key, that of the snapshots, or a usual name. */
static enum phema_status find_key(struct phema_container *out, struct draft *draft,
                                  const struct phema_checkpoint *template, const char *asked,
                                  struct phema_error *err)
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
    bool is_for_file = asked && strcmp(asked, series->key) != 0;
    enum phema_status status = PHEMA_OK;
    for (size_t g = 0; g < (is_for_file ? 1 : ARRAY_LEN(guesses)) && !status; g++) {
        status = choose_key(out, draft, guesses[g], err);
        if (!status && find_missing(template, out, false, series) == SIZE_MAX)
            return PHEMA_OK;
    }
    if (!status)
        status = choose_key(out, draft, guesses[0], err);
    return status ? status : fail_missing(draft, template, out, false, err);
}

PHEMA_FALLIBLE template_find_container(struct phema_container *out, struct draft *draft,
                                       const struct phema_checkpoint *template,
                                       struct phema_error *err)
{
    const struct phema_series *series = draft->plan->series;
    const struct phema_container *given = &draft->options->container;
    const char *asked = draft->options->key;
    if (given->prefix && find_missing(template, given, true, series) != SIZE_MAX)
        return fail_missing(draft, template, given, true, err);
    if (given->prefix)
        return choose_averages(out, draft, given, err);
    for (size_t c = 0; c < ARRAY_LEN(containers) && !asked; c++)
        if (holds_averages(template, &containers[c], series))
            return choose_averages(out, draft, &containers[c], err);
    return find_key(out, draft, template, asked && strcmp(asked, ".") == 0 ? "" : asked, err);
}
