// SPDX-License-Identifier: Apache-2.0
/* find_snapshots.c - the candidates of a series: by the names of a layout, or where none knows them, or
 * knows only half of them, by the number in the names that can be the time. */
#include <string.h>
#include <sys/stat.h>

#include "twins.h"

static bool is_any_left(const struct candidate_list *candidates)
{
    for (size_t i = 0; i < candidates->n; i++)
        if (!candidates->items[i].is_left_out)
            return true;
    return false;
}

static struct phema_span stem_of(const struct candidate *candidate)
{
    const char *dot = strrchr(candidate->base, '.');
    size_t size = dot ? (size_t)(dot - candidate->base) : strlen(candidate->base);
    return (struct phema_span){(const uint8_t *)candidate->base, size};
}

static bool is_called_average(const struct candidate *candidate)
{
    return candidate->base && says_average(stem_of(candidate));
}

static bool begins_or_ends_with(struct phema_span name, struct phema_span part)
{
    return name.size >= part.size &&
           (memcmp(name.data, part.data, part.size) == 0 ||
            memcmp(name.data + name.size - part.size, part.data, part.size) == 0);
}

/* Whether names beside those of a layout are these and a word for average: "checkpoint-50-ema". */
static bool has_averages_beside(const struct candidate_list *candidates)
{
    for (size_t i = 0; i < candidates->n && candidates->layout->is_plain; i++) {
        const struct candidate *average = &candidates->items[i];
        if (!average->is_left_out || !is_called_average(average))
            continue;
        for (size_t j = 0; j < candidates->n; j++) {
            const struct candidate *raw = &candidates->items[j];
            if (!raw->is_left_out && !is_called_average(raw) &&
                begins_or_ends_with(stem_of(average), stem_of(raw)))
                return true;
        }
    }
    return false;
}

/* Whether a layout of one file a time may have taken the average beside its raw parameters. */
static bool has_averages_among(const struct candidate_list *candidates)
{
    size_t n_called = 0, n = 0;
    for (size_t i = 0; i < candidates->n; i++) {
        n += !candidates->items[i].is_left_out;
        n_called += !candidates->items[i].is_left_out && is_called_average(&candidates->items[i]);
    }
    return n_called && n_called < n;
}

static bool is_one_checkpoint(const char *path)
{
    return phema_directory_has_model(path, true) || phema_directory_has_parts(path) ||
           phema_directory_is_checkpoint(path, true);
}

/* Whether checkpoints are folders, and none of them is distributed: its parts are no twins. */
static bool has_folders(const struct candidate_list *candidates)
{
    bool is_any = false;
    for (size_t i = 0; i < candidates->n; i++) {
        const struct candidate *candidate = &candidates->items[i];
        if (candidate->is_left_out || !candidate->path || !phema_path_is_directory(candidate->path))
            continue;
        if (phema_directory_has_parts(candidate->path))
            return false;
        is_any = true;
    }
    return is_any;
}

/* Files beside the checkpoints that have their numbers, such as settings and logs. */
static void leave_out_others(struct candidate_list *candidates)
{
    struct stat st;
    for (size_t i = 0; i < candidates->n; i++) {
        const char *path = candidates->items[i].path;
        if (path && stat(path, &st) == 0 && S_ISREG(st.st_mode) &&
            !candidate_is_checkpoint(candidates, &candidates->items[i]))
            candidates->items[i].is_left_out = true;
    }
}

static void forget(struct candidate_list *candidates)
{
    candidates->n = 0;
    candidates_forget(candidates);
}

/* Raw parameters in one folder and averages in another, each with a file of every time. */
static enum phema_status find_twin_folders(struct candidate_list *candidates,
                                           struct phema_series_options *options,
                                           struct phema_error *err)
{
    bool is_found = false;
    enum phema_status status = twin_folders_find(&is_found, candidates, options, err);
    if (status || is_found)
        return status ? status : select_snapshots(candidates, options, err);
    options->name_regex = NULL;
    forget(candidates);
    status = discover_snapshots(candidates, options, err);
    return status ? status : select_snapshots(candidates, options, err);
}

/* Names whose numbers are equal, or in different orders: a counter inside decides. */
static enum phema_status find_counted(bool *is_found, struct candidate_list *candidates,
                                      struct phema_series_options *options, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    for (unsigned nth = 0; !status && !*is_found; nth++) {
        bool is_vague = true;
        enum vague_number kind = VAGUE_COUNT;
        struct phema_error ignored = {0}; /* files that are no checkpoints have no counter */
        status = name_times_find_vague(&options->name_regex, &kind, nth, candidates, err);
        if (status || !options->name_regex)
            return status;
        status = names_read_again(candidates, options, err);
        leave_out_others(candidates);
        enum phema_status counted =
            status ? status
                   : counters_apply(candidates, kind == VAGUE_PART, &is_vague, kind == VAGUE_DATE,
                                    &options->checkpoint, &ignored);
        if (counted == PHEMA_ERR_RESOURCE && !status) {
            *err = ignored;
            return counted;
        }
        if (counted)
            candidates->damaged = NULL;
        *is_found = !counted && !is_vague;
        if (*is_found && !status && kind == VAGUE_PART)
            status = candidates_tell_field(candidates, options->name_regex, err);
        options->name_regex = *is_found ? options->name_regex : NULL;
    }
    return status;
}

/* The snapshots whose names the expression of the options fits, one of each time. */
static enum phema_status read_again(struct candidate_list *candidates,
                                    const struct phema_series_options *options, bool counts_steps,
                                    struct phema_error *err)
{
    forget(candidates);
    enum phema_status status = discover_snapshots(candidates, options, err);
    leave_out_others(candidates);
    leave_out_unopened(candidates, options);
    if (!status)
        status = candidates_tell_field(candidates, options->name_regex, err);
    if (!status)
        status = twin_files_choose(candidates, options, err);
    if (!status)
        status = counters_apply(candidates, counts_steps, NULL, false, &options->checkpoint, err);
    return status ? status : select_snapshots(candidates, options, err);
}

/* Where no number is the time of all: several families of names, or two folders. */
static enum phema_status find_in_parts(struct candidate_list *candidates,
                                       struct phema_series_options *options,
                                       struct phema_error *err)
{
    enum phema_status status = name_families_find(&options->name_regex, candidates, err);
    candidates->has_families = !status && options->name_regex;
    if (status)
        return status;
    return candidates->has_families ? read_again(candidates, options, false, err)
                                    : find_twin_folders(candidates, options, err);
}

PHEMA_FALLIBLE find_snapshots(struct candidate_list *candidates,
                              const struct phema_series_options *asked, struct phema_error *err)
{
    struct phema_series_options options = *asked;
    candidates->takes_merged = asked->name_regex != NULL;
    enum phema_status status = discover_snapshots(candidates, &options, err);
    if (candidates->is_one_file)
        suggest_series_of_file(options.snapshots, err);
    if (!status)
        status = select_snapshots(candidates, &options, err);
    const struct layout *layout = candidates->layout;
    bool may_have_twins =
        !status &&
        (layout->names_folders ||
         (layout->is_plain && (has_folders(candidates) || has_averages_among(candidates))));
    if (may_have_twins)
        status = twin_files_choose(candidates, &options, err);
    bool is_layout_given = options.layout && strcmp(options.layout, "auto") != 0;
    if (status || options.name_regex || is_layout_given || candidates->n_outputs ||
        candidates->fault || candidates->is_out_of_range ||
        candidates->layout == &layout_manifest ||
        (is_any_left(candidates) && !has_averages_beside(candidates)) ||
        is_one_checkpoint(options.snapshots))
        return status;
    bool counts_steps = false;
    candidates->may_be_parts = phema_directory_is_checkpoint(options.snapshots, false);
    status = name_times_find(&options.name_regex, &counts_steps, candidates, err);
    bool is_found = false;
    if (!status && !options.name_regex)
        status = find_counted(&is_found, candidates, &options, err);
    if (is_found)
        return status ? status : select_snapshots(candidates, &options, err);
    if (!status && !options.name_regex)
        return find_in_parts(candidates, &options, err);
    return status ? status : read_again(candidates, &options, counts_steps, err);
}
