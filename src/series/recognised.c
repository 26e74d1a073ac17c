// SPDX-License-Identifier: Apache-2.0
/* recognised.c - what a series was taken to hold, as a struct and as sentences: where its times are,
 * which set is the average of which, and the files that are left out. */
#include <string.h>

#include "series_builder.h"

PHEMA_FALLIBLE recognised_leave_out(struct candidate_list *candidates, const char *label,
                                    const char *reason, struct phema_error *err)
{
    struct phema_recognised *recognised = &candidates->recognised;
    struct phema_recognised_file *files = phema_arena_grow(candidates->arena, recognised->left_out,
                                                           recognised->n_left_out, sizeof(*files));
    if (!files)
        return phema_fail_memory(err);
    recognised->left_out = files;
    files[recognised->n_left_out++] = (struct phema_recognised_file){label, reason};
    return PHEMA_OK;
}

PHEMA_FALLIBLE recognised_collect(struct candidate_list *candidates, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    for (size_t i = 0; i < candidates->n && !status; i++) {
        const struct candidate *candidate = &candidates->items[i];
        if (candidate->is_left_out && candidate->reason)
            status = recognised_leave_out(candidates, candidate->label, candidate->reason, err);
    }
    return status;
}

static void add_sentence(struct phema_strbuf *out, const char *sentence)
{
    if (sentence)
        phema_strbuf_append(out, sentence, strlen(sentence) + 1);
}

/* Later files of the same reason as file i. */
static size_t count_alike(const struct phema_recognised *recognised, size_t i)
{
    size_t n = 0;
    for (size_t j = i + 1; j < recognised->n_left_out; j++)
        n += strcmp(recognised->left_out[j].reason, recognised->left_out[i].reason) == 0;
    return n;
}

static bool was_told(const struct phema_recognised *recognised, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (strcmp(recognised->left_out[j].reason, recognised->left_out[i].reason) == 0)
            return true;
    return false;
}

/* "left out: 'a' and 2 others, made by posthoc-ema" */
static void tell_left_out(struct phema_strbuf *out, const struct phema_recognised *recognised)
{
    struct phema_name_buffer shown;
    for (size_t i = 0; i < recognised->n_left_out; i++) {
        const struct phema_recognised_file *file = &recognised->left_out[i];
        if (was_told(recognised, i))
            continue;
        size_t n = count_alike(recognised, i);
        phema_strbuf_printf(out, "left out: '%s'", phema_name_show(&shown, file->file));
        if (n)
            phema_strbuf_printf(out, " and %zu other%s", n, n == 1 ? "" : "s");
        phema_strbuf_printf(out, ", %s", file->reason);
        phema_strbuf_append(out, "", 1);
    }
}

void recognised_tell(struct phema_strbuf *out, const struct candidate_list *candidates)
{
    add_sentence(out, candidates->times_note);
    add_sentence(out, candidates->sets_note);
    tell_left_out(out, &candidates->recognised);
}

/* The one set of a series without others. */
static bool add_only_set(struct candidate_list *candidates, const struct phema_series *series)
{
    const char *role = series->n && series->has_profiles ? "raw" : NULL;
    for (size_t k = 0; k < series->n && role; k++)
        if (strcmp(series->snapshots[k].kind, "raw") != 0)
            role = "average";
    return candidates_add_set(candidates, series->key ? series->key : "", role, "labels",
                              PHEMA_UNKNOWN);
}

static void set_times(struct candidate_list *candidates, const struct phema_series_options *options)
{
    struct phema_recognised *recognised = &candidates->recognised;
    const struct layout *layout = candidates->layout;
    if (recognised->times)
        return;
    recognised->times = layout == &layout_manifest ? "manifest"
                        : layout->has_step_inside  ? "counter"
                                                   : "names";
    if (layout->has_step_inside)
        recognised->field = "step";
    else if (layout != &layout_manifest && !recognised->field)
        recognised->field = options->name_regex;
}

static const char *keep(struct phema_arena *memory, const char *text, bool *is_kept)
{
    const char *copy = text ? phema_arena_copy(memory, text, strlen(text)) : NULL;
    *is_kept = *is_kept && (copy || !text);
    return copy;
}

PHEMA_FALLIBLE phema_recognised_copy(struct phema_recognised *out,
                                     const struct phema_recognised *from,
                                     struct phema_arena *memory, struct phema_error *err)
{
    struct phema_recognised copy = *from;
    copy.sets = phema_arena_array(memory, from->n_sets + 1, sizeof(*copy.sets));
    copy.left_out = phema_arena_array(memory, from->n_left_out + 1, sizeof(*copy.left_out));
    if (!copy.sets || !copy.left_out)
        return phema_fail_memory(err);
    bool is_kept = true;
    copy.field = keep(memory, from->field, &is_kept);
    for (size_t i = 0; i < from->n_sets; i++) {
        copy.sets[i] = from->sets[i];
        copy.sets[i].name = keep(memory, from->sets[i].name, &is_kept);
    }
    for (size_t i = 0; i < from->n_left_out; i++)
        copy.left_out[i] =
            (struct phema_recognised_file){keep(memory, from->left_out[i].file, &is_kept),
                                           keep(memory, from->left_out[i].reason, &is_kept)};
    *out = copy;
    return is_kept ? PHEMA_OK : phema_fail_memory(err);
}

PHEMA_FALLIBLE recognised_keep(struct series_builder *builder, struct phema_error *err)
{
    struct phema_series *series = builder->series;
    struct candidate_list *candidates = &builder->candidates;
    enum phema_status status = recognised_collect(candidates, err);
    if (status)
        return status;
    if (!candidates->recognised.n_sets && !add_only_set(candidates, series))
        return phema_fail_memory(err);
    set_times(candidates, builder->options);
    return phema_recognised_copy(&series->recognised, &candidates->recognised, &series->memory,
                                 err);
}
