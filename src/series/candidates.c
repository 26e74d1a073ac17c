// SPDX-License-Identifier: Apache-2.0
/* candidates.c - the candidate list, its notes, and widths that a file holds inside. */
#include "candidates.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "phema/setting.h"

PHEMA_FALLIBLE candidate_open(struct phema_checkpoint **out, struct candidate_list *candidates,
                              const struct candidate *candidate,
                              const struct phema_checkpoint_options *options,
                              struct phema_error *err)
{
    enum phema_status status = phema_checkpoint_open(out, candidate->path, options, err);
    if (status == PHEMA_ERR_FILE)
        candidates->damaged = candidate;
    return status;
}

struct candidate *candidates_add(struct candidate_list *candidates)
{
    struct candidate *items =
        phema_arena_grow(candidates->arena, candidates->items, candidates->n, sizeof(*items));
    if (!items)
        return NULL;
    candidates->items = items;
    struct candidate *candidate = &candidates->items[candidates->n++];
    *candidate = (struct candidate){.named_time = PHEMA_UNKNOWN,
                                    .sigma_rel = PHEMA_UNKNOWN,
                                    .gamma = PHEMA_UNKNOWN,
                                    .index = UINT64_MAX};
    return candidate;
}

bool candidate_is_checkpoint(const struct candidate_list *candidates,
                             const struct candidate *candidate)
{
    return phema_format_from_path(NULL, candidate->base, PHEMA_NAMES_SNAPSHOT) ||
           (candidates->by_content ? phema_file_is_checkpoint(candidate->path)
                                   : phema_file_is_torch(candidate->path));
}

static void PHEMA_PRINTF(2, 0)
    add_sentence(struct phema_strbuf *out, const char *format, va_list args)
{
    char sentence[4096];
    (void)vsnprintf(sentence, sizeof(sentence), format, args);
    phema_strbuf_append(out, sentence, strlen(sentence) + 1);
}

void candidates_note(struct candidate_list *candidates, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add_sentence(&candidates->notes, format, args);
    va_end(args);
}

void candidates_warn(struct candidate_list *candidates, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add_sentence(&candidates->warnings, format, args);
    va_end(args);
}

void candidates_forget(struct candidate_list *candidates)
{
    candidates->notes.size = candidates->warnings.size = 0;
    candidates->recognised = (struct phema_recognised){.times = NULL};
    candidates->times_note = candidates->sets_note = NULL;
    candidates->layout = NULL;
    candidates->has_counter = false;
    candidates->unit_inside = NULL;
}

PHEMA_FALLIBLE candidates_tell_field(struct candidate_list *candidates, const char *expression,
                                     struct phema_error *err)
{
    candidates->recognised.field = expression;
    candidates->times_note =
        phema_arena_printf(candidates->arena, "times: %s'%s', by the names",
                           phema_setting_equals(PHEMA_SET_NAME_REGEX), expression);
    return candidates->times_note ? PHEMA_OK : phema_fail_memory(err);
}

bool candidates_add_set(struct candidate_list *candidates, const char *name, const char *role,
                        const char *by, double margin)
{
    struct phema_recognised *recognised = &candidates->recognised;
    struct phema_recognised_set *sets =
        phema_arena_grow(candidates->arena, recognised->sets, recognised->n_sets, sizeof(*sets));
    const char *copy = phema_arena_copy(candidates->arena, name, strlen(name));
    if (!sets || !copy)
        return false;
    recognised->sets = sets;
    sets[recognised->n_sets++] = (struct phema_recognised_set){copy, role, by, margin};
    return true;
}

void candidates_leave_out(struct candidate_list *candidates, struct candidate *candidate,
                          const char *reason)
{
    candidate->is_left_out = true;
    candidate->reason = reason;
    if (strcmp(reason, CANDIDATE_IS_OUTPUT) == 0 && candidates->n_outputs++ == 0)
        candidates->output = candidate->path;
}

bool candidate_is_called(const struct candidate *candidate, const char *name)
{
    return strcmp(candidate->label, name) == 0 ||
           (candidate->path && strcmp(candidate->path, name) == 0);
}

bool candidate_allows_width(const struct candidate *candidate, double width)
{
    double named = candidate->sigma_rel, slack = candidate->sigma_slack;
    if (isnan(named) && !isnan(candidate->gamma))
        named = phema_sigma_rel_from_gamma(candidate->gamma);
    slack += 1e-9 * fabs(width); /* of a conversion */
    return !candidate->spec && (isnan(named) || fabs(named - width) <= slack);
}

void candidate_set_width(struct candidate *candidate, double width)
{
    if (isnan(candidate->gamma))
        candidate->sigma_rel = width;
}

bool candidate_use_spec(struct candidate *candidate, struct phema_spec *spec)
{
    bool is_power = strcmp(spec->kind, "power") == 0;
    if (!is_power)
        candidate->spec = spec;
    else if (spec->is_by_gamma)
        candidate->gamma = spec->gamma;
    else
        candidate->sigma_rel = spec->sigma_rel;
    return is_power;
}

PHEMA_FALLIBLE candidate_fail_width(const struct candidate *candidate, const char *key,
                                    struct phema_error *err)
{
    struct phema_name_buffer shown;
    bool is_width = !isnan(candidate->sigma_rel);
    if (candidate->spec)
        return phema_fail(
            err, PHEMA_ERR_INPUTS,
            "%s: its label says %s, but the 'stds' of '%s' inside are widths of power "
            "functions; correct the wrong one",
            candidate->path, candidate->spec->canonical, key);
    return phema_fail(
        err, PHEMA_ERR_INPUTS,
        "%s: its name or manifest says %s %s, which is not in the 'stds' of '%s' "
        "inside; correct the wrong one",
        candidate->path, is_width ? "sigma_rel" : "gamma",
        phema_number_format(&shown, is_width ? candidate->sigma_rel : candidate->gamma), key);
}
