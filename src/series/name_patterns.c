// SPDX-License-Identifier: Apache-2.0
/* name_patterns.c - the time, width or index in the names of candidates, by a pattern: that of the
 * layout that fits most of them, of --layout, or --name-regex. */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "phema/number.h"
#include "phema/path.h"
#include "phema/regex.h"
#include "phema/setting.h"
#include "sets.h"

/* A decimal number from a name; NaN when the group is empty or not a plain number. */
static double read_number(struct phema_span text)
{
    double value = 0;
    bool is_word = text.size && (memchr(text.data, 'n', text.size) || /* inf, nan */
                                 memchr(text.data, 'N', text.size));
    return !is_word && phema_decimal_parse(&value, text) ? value : PHEMA_UNKNOWN;
}

bool name_number_read(double *out, struct phema_span text)
{
    static const struct {
        char letter;
        double factor;
    } units[] = {{'k', 1e3}, {'m', 1e6}, {'b', 1e9}, {'g', 1e9}, {'t', 1e12}};
    double factor = 1;
    for (size_t i = 0; i < ARRAY_LEN(units) && text.size; i++)
        if (tolower(text.data[text.size - 1]) == units[i].letter)
            factor = units[i].factor;
    text.size -= factor > 1;
    *out = read_number(text);
    if (isnan(*out))
        return false;
    double scaled = *out * factor, whole = nearbyint(scaled);
    *out = factor > 1 && fabs(scaled - whole) < 1e-9 * scaled ? whole : scaled; /* 1.1k is 1100 */
    return true;
}

/* Fills in the facts of a name that the pattern fits. */
static enum phema_status read_name(struct phema_regex *pattern, struct candidate *candidate,
                                   bool *is_match, struct phema_error *err)
{
    const char *name = candidate->base;
    enum phema_status status = phema_regex_match(pattern, name, strlen(name), is_match, err);
    if (status || !*is_match)
        return status;
    double time = PHEMA_UNKNOWN;
    bool has_time = name_number_read(&time, phema_regex_group(pattern, name, "time"));
    *is_match = has_time || !phema_regex_has_group(pattern, "time");
    if (!*is_match)
        return PHEMA_OK;
    candidate->named_time = time;
    candidate->time_text = phema_regex_group(pattern, name, "time");
    struct phema_span sigma = phema_regex_group(pattern, name, "sigma");
    if (sigma.size) { /* "0.050" may be any width in 0.0495 .. 0.0505 */
        const uint8_t *point = memchr(sigma.data, '.', sigma.size);
        size_t decimals = point ? sigma.size - (size_t)(point - sigma.data) - 1 : 0;
        candidate->sigma_rel = read_number(sigma);
        candidate->sigma_slack = 0.5 * pow(10, -(double)decimals) * (1 + 1e-9);
    }
    double index = read_number(phema_regex_group(pattern, name, "index"));
    if (index >= 0 && index < 1e9)
        candidate->index = (uint64_t)index;
    candidate->prefix = phema_regex_group(pattern, name, "prefix");
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
        *matched = 0;
    }
    for (size_t i = 0; i < candidates->n && !status; i++) {
        bool is_match = false;
        status = read_name(pattern, &candidates->items[i], &is_match, err);
        candidates->items[i].is_left_out = !is_match || candidates->items[i].is_excluded;
        *matched += is_match;
    }
    phema_regex_free(pattern);
    return status;
}

static bool has_mark(const struct layout *layout, const char *folder)
{
    for (size_t i = 0; i < ARRAY_LEN(layout->mark) && layout->mark[i]; i++)
        if (directory_has(folder, layout->mark[i]))
            return true;
    return false;
}

/* Of layouts of the same names, the one whose mark is in some folder. */
static void choose_by_marks(struct candidate_list *candidates)
{
    const char *pattern = candidates->layout->pattern;
    for (size_t l = 0; layouts[l]; l++)
        for (size_t i = 0; layouts[l]->mark[0] && i < candidates->n; i++)
            if (!candidates->items[i].is_left_out && strcmp(layouts[l]->pattern, pattern) == 0 &&
                has_mark(layouts[l], candidates->items[i].path))
                candidates->layout = layouts[l];
}

/* The layout whose pattern fits most names. Other safetensors are left to their metadata, all other
 * files are left out. */
static enum phema_status recognise(struct candidate_list *candidates, struct phema_error *err)
{
    const struct layout *best = &layout_own;
    size_t most = 0;
    for (size_t i = 0; layouts[i]; i++) {
        size_t matched = 0;
        enum phema_status status = PHEMA_OK;
        if (layouts[i]->is_tried)
            status = read_by_pattern(candidates, layouts[i]->pattern, false, &matched, err);
        if (status)
            return status;
        if (matched > most) {
            most = matched;
            best = layouts[i];
        }
    }
    candidates->layout = best;
    candidates->is_numbered = best == &layout_ema_pytorch;
    /* fills in the facts of its names */
    enum phema_status status = read_by_pattern(candidates, best->pattern, false, &most, err);
    if (!status)
        choose_by_marks(candidates);
    return status;
}

/* Files of another series must not slip in unnoticed, and a renamed folder must not be missed so. */
static void give_reasons(struct candidate_list *candidates)
{
    for (size_t i = 0; i < candidates->n; i++) {
        struct candidate *candidate = &candidates->items[i];
        if (!candidate->is_left_out)
            continue;
        if (phema_format_from_path(NULL, candidate->base, PHEMA_NAMES_SNAPSHOT))
            candidate->reason = "without a time and width in the name";
        else if (candidate->path && phema_path_is_directory(candidate->path) &&
                 phema_directory_has_model(candidate->path, true))
            candidate->reason = "a checkpoint that is not named as the others";
    }
}

static void mark_excluded(struct candidate_list *candidates,
                          const struct phema_series_options *options)
{
    for (size_t e = 0; e < options->n_excluded_files; e++)
        for (size_t i = 0; i < candidates->n; i++)
            candidates->items[i].is_excluded |=
                candidate_is_called(&candidates->items[i], options->excluded_files[e]);
}

/* Reads each name by the requested layout, or by the one that fits most names. */
PHEMA_FALLIBLE names_read(struct candidate_list *candidates,
                          const struct phema_series_options *options, struct phema_error *err)
{
    bool is_named = options->layout && strcmp(options->layout, "auto") != 0;
    mark_excluded(candidates, options);
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
                candidates->items[i].is_left_out = candidates->items[i].is_excluded;
    give_reasons(candidates);
    return PHEMA_OK;
}

PHEMA_FALLIBLE names_read_again(struct candidate_list *candidates,
                                const struct phema_series_options *options, struct phema_error *err)
{
    for (size_t i = 0; i < candidates->n; i++)
        candidates->items[i].is_left_out = false;
    candidates_forget(candidates);
    return names_read(candidates, options, err);
}

PHEMA_FALLIBLE names_are_known(bool *out, struct candidate_list *candidates,
                               struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    *out = false;
    for (size_t i = 0; layouts[i] && !*out && !status; i++) {
        size_t matched = 0;
        if (layouts[i]->is_tried)
            status = read_by_pattern(candidates, layouts[i]->pattern, false, &matched, err);
        *out = matched > 0;
    }
    return status;
}
