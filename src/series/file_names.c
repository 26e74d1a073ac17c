// SPDX-License-Identifier: Apache-2.0
/* file_names.c - which layout a directory has, and what each name says: time, width or index. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "discover.h"
#include "phema/regex.h"

/* A decimal number from a name; NaN when the group is empty or no plain number. */
static double number_in(struct phema_span text)
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

/* Half a unit of the last digit: "0.050" may stand for anything in 0.0495 .. 0.0505. */
static double slack_of(struct phema_span text)
{
    const uint8_t *point = memchr(text.data, '.', text.size);
    size_t decimals = point ? text.size - (size_t)(point - text.data) - 1 : 0;
    return 0.5 * pow(10, -(double)decimals) * (1 + 1e-9);
}

/* Fill in what the name says when the pattern fits it. */
static enum phema_status read_name(struct phema_regex *pattern, struct candidate *candidate,
                                   bool *is_match, struct phema_error *err)
{
    const char *name = candidate->base;
    enum phema_status status = phema_regex_match(pattern, name, strlen(name), is_match, err);
    if (status || !*is_match)
        return status;
    double time = number_in(phema_regex_group(pattern, name, "time"));
    *is_match = !isnan(time) || !phema_regex_has_group(pattern, "time");
    if (!*is_match)
        return PHEMA_OK;
    candidate->named_time = time;
    struct phema_span sigma = phema_regex_group(pattern, name, "sigma");
    if (sigma.size) {
        candidate->sigma_rel = number_in(sigma);
        candidate->sigma_slack = slack_of(sigma);
    }
    double index = number_in(phema_regex_group(pattern, name, "index"));
    if (index >= 0 && index < 1e9)
        candidate->index = (uint64_t)index;
    candidate->prefix = phema_regex_group(pattern, name, "prefix");
    return PHEMA_OK;
}

static enum phema_status read_names(struct phema_regex *pattern, struct discovery *scan,
                                    size_t *matched, struct phema_error *err)
{
    *matched = 0;
    enum phema_status status = PHEMA_OK;
    for (size_t i = 0; i < scan->n && !status; i++) {
        bool is_match = false;
        status = read_name(pattern, &scan->items[i], &is_match, err);
        scan->items[i].is_left_out = !is_match;
        *matched += is_match;
    }
    return status;
}

/* Names of checkpoints that no pattern fits: their metadata may say what they are. */
static bool is_checkpoint_name(const char *name)
{
    static const char *const ends[] = {".safetensors", ".pt", ".pth", ".ckpt", ".pkl", ".zst"};
    for (size_t i = 0; i < ARRAY_LEN(ends); i++)
        if (phema_ends_with(name, ends[i]))
            return true;
    return false;
}

static enum phema_status count_matches(struct discovery *scan, const struct layout *layout,
                                       size_t *matched, struct phema_error *err)
{
    struct phema_regex *pattern = NULL;
    enum phema_status status = phema_regex_compile(&pattern, layout->pattern, err);
    if (status)
        return status;
    status = read_names(pattern, scan, matched, err);
    phema_regex_free(pattern);
    return status;
}

/* The layout whose pattern fits most names; what it does not fit is left for its metadata, when it
 * is safetensors, or left out. */
static enum phema_status recognise(struct discovery *scan, struct phema_error *err)
{
    static const struct layout *const tried[] = {&layout_own, &layout_edm2, &layout_ema_pytorch,
                                                 &layout_lightning, &layout_hf};
    const struct layout *best = &layout_own;
    size_t most = 0;
    for (size_t i = 0; i < ARRAY_LEN(tried); i++) {
        size_t matched = 0;
        enum phema_status status = count_matches(scan, tried[i], &matched, err);
        if (status)
            return status;
        if (matched > most) {
            most = matched;
            best = tried[i];
        }
    }
    size_t matched = 0;
    enum phema_status status = count_matches(scan, best, &matched, err);
    scan->layout = best;
    scan->is_numbered = best == &layout_ema_pytorch;
    return status;
}

static enum phema_status use_pattern(struct discovery *scan, const char *expression,
                                     struct phema_error *err)
{
    struct phema_regex *pattern = NULL;
    size_t matched = 0;
    enum phema_status status = phema_regex_compile(&pattern, expression, err);
    if (status)
        return phema_fail_in(err, status, "--name-regex");
    if (!phema_regex_has_group(pattern, "time"))
        status = phema_fail(err, PHEMA_ERR_USAGE,
                            "--name-regex '%s': has no group named time; write (?<time>[0-9]+), "
                            "and (?<sigma>...) or (?<index>...) where names hold them",
                            expression);
    else
        status = read_names(pattern, scan, &matched, err);
    phema_regex_free(pattern);
    return status;
}

/* Files of another series, or what is no checkpoint, must not slip in: each is named. */
static void note_left_out(struct discovery *scan)
{
    size_t others = 0;
    const char *first = NULL;
    for (size_t i = 0; i < scan->n; i++) {
        const struct candidate *candidate = &scan->items[i];
        if (!candidate->is_left_out || !is_checkpoint_name(candidate->base))
            continue;
        first = first ? first : candidate->label;
        others++;
    }
    struct phema_name_buffer shown;
    if (others == 1)
        discover_note(scan, "left out: '%s', whose name says no time and width",
                      phema_name_escape(&shown, first, strlen(first)));
    else if (others)
        discover_note(scan, "left out: %zu files whose names say no time and width, such as '%s'",
                      others, phema_name_escape(&shown, first, strlen(first)));
}

PHEMA_FALLIBLE discover_names(struct discovery *scan, const struct phema_series_options *options,
                              struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    bool is_named = options->layout && strcmp(options->layout, "auto") != 0;
    scan->layout = is_named ? layout_named(options->layout) : NULL;
    if (is_named && (!scan->layout || scan->layout == &layout_manifest))
        return phema_fail(err, PHEMA_ERR_USAGE, "--layout '%s': %s", options->layout,
                          scan->layout ? "SNAPSHOTS is no manifest (*.json)"
                                       : "not known to this version");
    if (options->name_regex) {
        status = use_pattern(scan, options->name_regex, err);
        scan->layout = scan->layout ? scan->layout : &layout_custom;
    } else if (is_named) {
        size_t matched = 0;
        status = count_matches(scan, scan->layout, &matched, err);
    } else {
        status = recognise(scan, err);
    }
    if (status)
        return status;

    /* safetensors of unknown names may carry time and width inside */
    if (scan->layout == &layout_own)
        for (size_t i = 0; i < scan->n; i++) {
            const char *end = strrchr(scan->items[i].base, '.');
            if (scan->items[i].is_left_out && end && strcmp(end, ".safetensors") == 0)
                scan->items[i].is_left_out = false;
        }
    note_left_out(scan);
    return PHEMA_OK;
}
