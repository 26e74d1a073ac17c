// SPDX-License-Identifier: Apache-2.0
/* file_names.c - recognises the trainer's naming and reads time, width or index from each name. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "containers.h"
#include "phema/regex.h"
#include "phema/setting.h"

/* A decimal number from a name; NaN when the group is empty or not a plain number. */
static double read_number(struct phema_span text)
{
    char copy[64];
    if (text.size == 0 || text.size >= sizeof(copy))
        return PHEMA_UNKNOWN;
    memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
    if (strspn(copy, "0123456789.eE+-") != text.size)
        return PHEMA_UNKNOWN;
    char *end = NULL;
    double value = strtod(copy, &end);
    return *end ? PHEMA_UNKNOWN : value;
}

/* Half a unit of the last digit: "0.050" may be any width in 0.0495 .. 0.0505. */
static double half_last_digit(struct phema_span text)
{
    const uint8_t *point = memchr(text.data, '.', text.size);
    size_t decimals = point ? text.size - (size_t)(point - text.data) - 1 : 0;
    return 0.5 * pow(10, -(double)decimals) * (1 + 1e-9);
}

/* Fills in the facts of a name that the pattern fits. */
static enum phema_status read_name(struct phema_regex *pattern, struct candidate *candidate,
                                   bool *is_match, struct phema_error *err)
{
    const char *name = candidate->base;
    enum phema_status status = phema_regex_match(pattern, name, strlen(name), is_match, err);
    if (status || !*is_match)
        return status;
    double time = read_number(phema_regex_group(pattern, name, "time"));
    *is_match = !isnan(time) || !phema_regex_has_group(pattern, "time");
    if (!*is_match)
        return PHEMA_OK;
    candidate->named_time = time;
    struct phema_span sigma = phema_regex_group(pattern, name, "sigma");
    if (sigma.size) {
        candidate->sigma_rel = read_number(sigma);
        candidate->sigma_slack = half_last_digit(sigma);
    }
    double index = read_number(phema_regex_group(pattern, name, "index"));
    if (index >= 0 && index < 1e9)
        candidate->index = (uint64_t)index;
    candidate->prefix = phema_regex_group(pattern, name, "prefix");
    return PHEMA_OK;
}

static enum phema_status read_names(struct phema_regex *pattern, struct candidate_list *candidates,
                                    size_t *matched, struct phema_error *err)
{
    *matched = 0;
    for (size_t i = 0; i < candidates->n; i++) {
        bool is_match = false;
        enum phema_status status = read_name(pattern, &candidates->items[i], &is_match, err);
        if (status)
            return status;
        candidates->items[i].is_left_out = !is_match;
        *matched += is_match;
    }
    return PHEMA_OK;
}

/* Behind the parenthesis of the first group without a name; the end where there is none. */
static size_t find_group(const char *expression)
{
    for (size_t i = 0; expression[i]; i++) {
        if (expression[i] == '\\' && expression[i + 1])
            i++;
        else if (expression[i] == '(' && expression[i + 1] != '?' && expression[i + 1] != '*')
            return i + 1;
    }
    return strlen(expression);
}

/* is_option: the expression is that of --name-regex */
static enum phema_status read_by_pattern(struct candidate_list *candidates, const char *expression,
                                         bool is_option, size_t *matched, struct phema_error *err)
{
    struct phema_regex *pattern = NULL;
    enum phema_status status = phema_regex_compile(&pattern, expression, err);
    if (status)
        return is_option
                   ? phema_suggest(err, phema_fail_in_setting(err, status, PHEMA_SET_NAME_REGEX),
                                   PHEMA_SET_NAME_REGEX, "(?<time>[0-9]+)")
                   : status;
    if (!phema_regex_has_group(pattern, "time"))
        status = phema_blame(err,
                             phema_fail(err, PHEMA_ERR_USAGE,
                                        "%s'%s': has no group named time; write (?<time>[0-9]+), "
                                        "and (?<sigma>...) or (?<index>...) where names hold them",
                                        phema_setting_equals(PHEMA_SET_NAME_REGEX), expression),
                             PHEMA_SET_NAME_REGEX);
    if (status) {
        size_t group = find_group(expression);
        const char *named = phema_arena_printf(candidates->arena, "%.*s?<time>%s", (int)group,
                                               expression, expression + group);
        if (expression[group] && named)
            (void)phema_suggest(err, status, PHEMA_SET_NAME_REGEX, named);
    } else {
        status = read_names(pattern, candidates, matched, err);
    }
    phema_regex_free(pattern);
    return status;
}

/* flux_action's directories have usual names, and these files inside. */
static bool is_flux_action(const struct candidate_list *candidates)
{
    for (size_t i = 0; i < candidates->n; i++) {
        const struct candidate *candidate = &candidates->items[i];
        if (!candidate->is_left_out && (directory_has(candidate->path, "state.json") ||
                                        directory_has(candidate->path, "COMPLETE")))
            return true;
    }
    return false;
}

/* The layout whose pattern fits most names. Other safetensors are left to their metadata, all other
 * files are left out. */
static enum phema_status recognise(struct candidate_list *candidates, struct phema_error *err)
{
    static const struct layout *const tried[] = {
        &layout_own,   &layout_edm2,   &layout_ema_pytorch, &layout_lightning, &layout_hf,
        &layout_steps, &layout_cosmos, &layout_megatron,    &layout_edm2_pt,   &layout_mirai};
    const struct layout *best = &layout_own;
    size_t most = 0;
    for (size_t i = 0; i < ARRAY_LEN(tried); i++) {
        size_t matched = 0;
        enum phema_status status =
            read_by_pattern(candidates, tried[i]->pattern, false, &matched, err);
        if (status)
            return status;
        if (matched > most) {
            most = matched;
            best = tried[i];
        }
    }
    candidates->layout = best;
    candidates->is_numbered = best == &layout_ema_pytorch;
    /* fills in the facts of its names */
    enum phema_status status = read_by_pattern(candidates, best->pattern, false, &most, err);
    if (!status && best == &layout_steps && is_flux_action(candidates))
        candidates->layout = &layout_flux_action;
    return status;
}

/* Files of another series must not slip in unnoticed. */
static void note_left_out(struct candidate_list *candidates)
{
    size_t others = 0;
    const char *first = NULL;
    for (size_t i = 0; i < candidates->n; i++) {
        const struct candidate *candidate = &candidates->items[i];
        if (!candidate->is_left_out ||
            !phema_format_from_path(NULL, candidate->base, PHEMA_NAMES_SNAPSHOT))
            continue;
        first = first ? first : candidate->label;
        others++;
    }
    struct phema_name_buffer shown;
    if (others == 1)
        candidates_note(candidates, "left out: '%s', whose name says no time and width",
                        phema_name_escape(&shown, first, strlen(first)));
    else if (others)
        candidates_note(candidates,
                        "left out: %zu files whose names say no time and width, such as '%s'",
                        others, phema_name_escape(&shown, first, strlen(first)));
}

PHEMA_FALLIBLE file_names_read(struct candidate_list *candidates,
                               const struct phema_series_options *options, struct phema_error *err)
{
    bool is_named = options->layout && strcmp(options->layout, "auto") != 0;
    candidates->layout = is_named ? layout_find(options->layout) : NULL;
    if (is_named && (!candidates->layout || candidates->layout == &layout_manifest))
        return phema_blame(err,
                           phema_fail(err, PHEMA_ERR_USAGE, "%s'%s': %s",
                                      phema_setting_equals(PHEMA_SET_LAYOUT), options->layout,
                                      candidates->layout ? "SNAPSHOTS is no manifest (*.json)"
                                                         : "not known to this version"),
                           PHEMA_SET_LAYOUT);
    enum phema_status status;
    size_t matched = 0;
    if (options->name_regex) {
        status = read_by_pattern(candidates, options->name_regex, true, &matched, err);
        candidates->layout = candidates->layout ? candidates->layout : &layout_custom;
    } else if (is_named) {
        status = read_by_pattern(candidates, candidates->layout->pattern, false, &matched, err);
    } else {
        status = recognise(candidates, err);
    }
    if (status)
        return status;

    /* safetensors of unknown names may carry time and width inside */
    if (candidates->layout == &layout_own)
        for (size_t i = 0; i < candidates->n; i++)
            if (phema_format_from_path(NULL, candidates->items[i].base, PHEMA_NAMES_SELF_DESCRIBED))
                candidates->items[i].is_left_out = false;
    note_left_out(candidates);
    return PHEMA_OK;
}
