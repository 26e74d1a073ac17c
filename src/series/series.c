// SPDX-License-Identifier: Apache-2.0
/* series.c - opens a series: discover, select, open, check that the snapshots match. */
#include "phema/series.h"
#include "phema/setting.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "series_builder.h"

/* ---- Steps ---- */

/* expressions: [n]; *n_compiled of them are compiled, also on failure */
static enum phema_status compile_patterns(struct phema_regex ***patterns, size_t *n_compiled,
                                          const char *const *expressions, size_t n,
                                          enum phema_setting setting, struct phema_arena *arena,
                                          struct phema_error *err)
{
    *patterns = phema_arena_array(arena, n + 1, sizeof(struct phema_regex *));
    if (!*patterns)
        return phema_fail_memory(err);
    for (; *n_compiled < n; ++*n_compiled) {
        enum phema_status status =
            phema_regex_compile(&(*patterns)[*n_compiled], expressions[*n_compiled], err);
        if (status)
            return phema_fail_in_setting(err, status, setting);
    }
    return PHEMA_OK;
}

static enum phema_status compile_filter(struct series_builder *builder, struct phema_error *err)
{
    const struct phema_series_options *options = builder->options;
    struct tensor_filter *filter = &builder->filter;
    filter->takes_attributes = options->is_conversion;
    filter->keeps_codes = options->keeps_codes;
    filter->keeps_scales = options->keeps_scales;
    enum phema_status status =
        compile_patterns(&filter->includes, &filter->n_includes, options->includes,
                         options->n_includes, PHEMA_SET_INCLUDE, &builder->scratch, err);
    if (!status)
        status = compile_patterns(&filter->excludes, &filter->n_excludes, options->excludes,
                                  options->n_excludes, PHEMA_SET_EXCLUDE, &builder->scratch, err);
    if (!status && options->like)
        status = tensor_filter_set_like(filter, options->like, &builder->scratch, err);
    return status;
}

static size_t count_sentences(const struct phema_strbuf *sentences)
{
    size_t n = 0;
    for (size_t at = 0; at < sentences->size; at += strlen(sentences->data + at) + 1)
        n++;
    return n;
}

/* What was recognised comes first; the note on an assumed profile, if there is one, is the last before
 * the warnings. */
static enum phema_status keep_notes(struct series_builder *builder, struct phema_error *err)
{
    struct phema_series *series = builder->series;
    const struct phema_strbuf *notes = &builder->candidates.notes;
    const struct phema_strbuf *warnings = &builder->candidates.warnings;
    struct phema_strbuf all = {.is_failed = notes->is_failed || warnings->is_failed};
    recognised_tell(&all, &builder->candidates);
    if (notes->size)
        phema_strbuf_append(&all, notes->data, notes->size);
    if (series->assumption)
        phema_strbuf_append(&all, series->assumption, strlen(series->assumption) + 1);
    size_t n = count_sentences(&all);
    series->n_warnings = count_sentences(warnings);
    series->n_notes = n + series->n_warnings;
    if (warnings->size)
        phema_strbuf_append(&all, warnings->data, warnings->size);
    series->notes = phema_arena_array(&series->memory, series->n_notes + 1, sizeof(char *));
    char *note = phema_arena_copy(&series->memory, all.data, all.size);
    enum phema_status status =
        series->notes && note ? phema_strbuf_check(&all, err) : phema_fail_memory(err);
    phema_strbuf_clear(&all);
    if (status)
        return status;
    for (size_t i = 0; i < series->n_notes; i++, note += strlen(note) + 1)
        series->notes[i] = note;
    if (series->assumption)
        series->assumption = series->notes[n - 1];
    return PHEMA_OK;
}

/* What the numbers in the names count, where words or a value inside say that it is no step; NULL: they
 * do not. */
static const char *find_named_unit(const struct candidate_list *candidates)
{
    const char *unit = NULL;
    if (candidates->has_counter || candidates->layout == &layout_manifest ||
        strcmp(candidates->layout->unit, "steps") != 0)
        return NULL;
    for (size_t i = 0; i < candidates->n && !unit; i++) {
        const struct candidate *candidate = &candidates->items[i];
        const uint8_t *text = candidate->time_text.data;
        if (!candidate->is_left_out && text)
            unit = name_unit(candidate->base, (size_t)(text - (const uint8_t *)candidate->base));
    }
    return unit ? unit : candidates->unit_inside;
}

#define FEW_STEPS 5.0 /* nobody stores checkpoints so often */
#define A_STEP    100.0

/* Whatever times count, a step is short beside the time between two snapshots: the noise of raw
 * parameters is that of a step, not of a whole epoch. */
static void find_step(struct phema_series *series)
{
    size_t n_times = 1;
    for (size_t k = 1; k < series->n; k++)
        n_times += series->snapshots[k].time > series->snapshots[k - 1].time;
    double first = n_times > 1 ? series->snapshots[0].time : 0;
    double apart =
        (series->snapshots[series->n - 1].time - first) / (double)(n_times > 1 ? n_times - 1 : 1);
    bool counts_steps = strcmp(series->unit, "steps") == 0 && apart > FEW_STEPS;
    series->step = counts_steps ? 1 : fmin(1, apart / A_STEP);
    for (size_t k = 0; k < series->n; k++)
        if (series->snapshots[k].profile.shape == PHEMA_SHAPE_RAW)
            series->snapshots[k].profile.length = series->step;
}

static enum phema_status finish(struct series_builder *builder, struct phema_error *err)
{
    struct phema_series *series = builder->series;
    const struct phema_series_options *options = builder->options;
    series->layout = builder->candidates.layout->name;
    const char *unit = options->unit ? options->unit : builder->candidates.unit;
    const char *named_unit = unit ? NULL : find_named_unit(&builder->candidates);
    series->is_unit_of_names = named_unit != NULL;
    unit = unit ? unit : named_unit ? named_unit : builder->candidates.layout->unit;
    series->unit = phema_arena_copy(&series->memory, unit, strlen(unit));
    if (!series->unit)
        return phema_fail_memory(err);
    enum phema_status status = update_counts_check(builder, err);
    if (status)
        return status;
    series->has_profiles = true;
    const char *key = builder->candidates.key_to_choose;
    series->key_to_choose = key ? phema_arena_copy(&series->memory, key, strlen(key)) : NULL;
    if (key && !series->key_to_choose)
        return phema_fail_memory(err);
    series->leaves_out_raw = builder->candidates.leaves_out_raw;
    if (series->n_tensors)
        status = tensor_table_find_tied(&builder->tensor_table, err);
    if (!status)
        status = copied_buffers_find(builder, err);
    if (status)
        return status;
    size_t n = 0; /* raw parameters that were only compared leave */
    for (size_t k = 0; k < series->n; k++)
        if (!series->snapshots[k].is_only_compared)
            series->snapshots[n++] = series->snapshots[k];
    series->n = n;
    const struct phema_tensor_location *locations = NULL;
    double rounding = 0;
    for (size_t k = 0; k < series->n; k++) {
        struct phema_snapshot *snapshot = &series->snapshots[k];
        if (snapshot->checkpoint && snapshot->locations != locations) {
            locations = snapshot->locations;
            rounding = tensor_table_rounding(series, locations);
        }
        if (snapshot->checkpoint)
            snapshot->rounding = rounding;
        series->has_profiles = series->has_profiles && snapshot->kind;
    }
    find_step(series);
    status = profile_resets_apply(builder, err);
    if (!status)
        status = recognised_keep(builder, err);
    return status ? status : keep_notes(builder, err);
}

/* ---- Claims on the inputs ---- */

/* Snapshots come first: a message calls a file that is a snapshot and a list a snapshot. */
static enum phema_status claim_inputs(struct series_builder *builder, struct phema_error *err)
{
    static const char what[] = "one of the snapshots";
    struct phema_series *series = builder->series;
    const struct phema_series_options *options = builder->options;
    enum phema_status status = phema_claims_new(&series->claims, err);
    for (size_t k = 0; k < series->n && !status; k++) {
        const struct phema_snapshot *snapshot = &series->snapshots[k];
        const struct phema_checkpoint *checkpoint = snapshot->checkpoint;
        if (!checkpoint && snapshot->path) /* never opened */
            status = phema_claims_add_input(series->claims, snapshot->path, what, err);
        size_t n = checkpoint && !snapshot->is_checkpoint_shared
                       ? phema_checkpoint_n_files(checkpoint)
                       : 0;
        for (size_t f = 0; f < n && !status; f++)
            status = phema_claims_add_input(
                series->claims, phema_file_path(phema_checkpoint_file(checkpoint, f)), what, err);
    }
    for (const struct phema_spec *spec = builder->candidates.specs.first; spec && !status;
         spec = spec->next)
        status = phema_spec_claim(spec, series->claims, err);
    if (status || options->is_alone)
        return status;
    const char *const *lists = options->n_several ? options->several : &options->snapshots;
    size_t n_lists = options->n_several ? options->n_several : 1;
    for (size_t i = 0; i < n_lists && !status; i++)
        if (lists[i][0] == '@')
            status = phema_claims_add_input(series->claims, lists[i] + 1,
                                            "the list of the snapshots", err);
    if (!status && builder->candidates.layout == &layout_manifest)
        return phema_claims_add_input(series->claims, options->snapshots, "the manifest", err);
    return status;
}

/* ---- Open and close ---- */

/* What messages call the series: the only operand, or "a.pt and 2 others". */
static char *name_series(struct phema_series *series, const struct phema_series_options *options)
{
    size_t n_others = options->n_several ? options->n_several - 1 : 0;
    if (!n_others)
        return phema_arena_copy(&series->memory, options->snapshots, strlen(options->snapshots));
    return phema_arena_printf(&series->memory, "%s and %zu other%s", options->snapshots, n_others,
                              n_others == 1 ? "" : "s");
}

static enum phema_status build_series(struct series_builder *builder, struct phema_error *err)
{
    enum phema_status status = compile_filter(builder, err);
    if (status)
        return status;
    status = input_profiles_read(builder, err);
    if (status)
        return status;
    const struct phema_series_options *options = builder->options;
    status = options->is_alone ? discover_checkpoint(&builder->candidates, options, err)
                               : find_snapshots(&builder->candidates, options, err);
    if (!status)
        status = check_excluded(&builder->candidates, options, err);
    if (status)
        return status;
    builder->candidates.has_times = true;
    builder->series->clock = builder->candidates.layout->clock;
    builder->series->time_offset = isnan(options->time_offset) ? 0 : options->time_offset;
    status = open_snapshots(builder, err);
    if (status)
        return status;
    status = claim_inputs(builder, err);
    return status ? status : finish(builder, err);
}

/* The remedy leaves out a file that cannot be read: with its time, which may still be written, where
 * that is the newest, else alone. are_shown: the other snapshots, by the caller */
static void explain_damaged(const struct candidate_list *candidates, bool are_shown,
                            struct phema_error *err)
{
    const struct candidate *damaged = candidates->damaged;
    double before = -HUGE_VAL, newest = -HUGE_VAL;
    size_t n_others = 0;
    for (size_t i = 0; i < candidates->n; i++) {
        const struct candidate *candidate = &candidates->items[i];
        if (candidate->is_left_out)
            continue;
        n_others += candidate != damaged;
        if (candidate->named_time > newest) {
            before = newest;
            newest = candidate->named_time;
        } else if (candidate->named_time < newest) {
            before = fmax(before, candidate->named_time);
        }
    }
    if (access(damaged->path, R_OK) || !n_others || phema_foreign_file(damaged->path))
        return; /* it is whole */
    bool is_newest = damaged->named_time == newest && isfinite(before);
    struct phema_name_buffer time;
    char message[sizeof(err->message)];
    memcpy(message, err->message, sizeof(message));
    if (is_newest) {
        (void)phema_fail(err, PHEMA_ERR_FILE,
                         "%s; it is of the newest time: it may still be written", message);
        if (candidates->has_times) {
            (void)phema_suggest(err, PHEMA_ERR_FILE, PHEMA_SET_TO,
                                phema_number_format(&time, before));
            return;
        }
    } else if (!are_shown) {
        (void)phema_fail(err, PHEMA_ERR_FILE, "%s; without it %zu snapshot%s", message, n_others,
                         n_others == 1 ? " remains" : "s remain");
    }
    (void)phema_suggest(err, PHEMA_ERR_FILE, PHEMA_SET_EXCLUDE_FILE, damaged->label);
}

/* damaged: receives the path of a file that cannot be read, a copy, or NULL */
static enum phema_status open_series(struct phema_series **out, char **damaged,
                                     const struct phema_series_options *options,
                                     struct phema_error *err)
{
    struct phema_series *series = calloc(1, sizeof(*series));
    if (!series)
        return phema_fail_memory(err);
    struct phema_series_options named = *options;
    named.snapshots = series->root = name_series(series, options);
    struct series_builder builder = {
        .options = &named,
        .series = series,
        .candidates = {.arena = &builder.scratch, .specs = {.arena = &series->memory}},
        .filter = {.sets = &builder.sets},
        .tensor_table = {.options = &named, .filter = &builder.filter, .series = series},
        .names_behind = PHEMA_UNKNOWN,
    };
    enum phema_status status = series->root ? build_series(&builder, err) : phema_fail_memory(err);
    bool is_damaged = status == PHEMA_ERR_FILE && builder.candidates.damaged;
    *damaged = is_damaged ? strdup(builder.candidates.damaged->path) : NULL;
    if (is_damaged && !options->is_alone && !err->n_changes)
        explain_damaged(&builder.candidates, options->skips_damaged, err);
    for (size_t i = 0; i < builder.filter.n_includes; i++)
        phema_regex_free(builder.filter.includes[i]);
    for (size_t i = 0; i < builder.filter.n_excludes; i++)
        phema_regex_free(builder.filter.excludes[i]);
    phema_strbuf_clear(&builder.candidates.notes);
    phema_strbuf_clear(&builder.candidates.warnings);
    phema_arena_clear(&builder.scratch);
    phema_arena_clear(&builder.sets_memory);
    if (status) {
        phema_series_close(series);
        return status;
    }
    *out = series;
    return PHEMA_OK;
}

/* Each of them is one more attempt. */
#define MOST_DAMAGED ((size_t)64)

/* Files that cannot be read are left out. Where no snapshots stay, the first failure is told. */
static enum phema_status open_undamaged(struct phema_series **out,
                                        const struct phema_series_options *options,
                                        struct phema_error *err)
{
    struct phema_series_options others = *options;
    struct phema_recognised_file files[MOST_DAMAGED];
    struct phema_arena memory = {0};
    struct phema_error failure = {0};
    struct phema_series *series = NULL;
    enum phema_status status = PHEMA_OK, first = PHEMA_OK;
    others.damaged = files;
    for (size_t n = 0; !series && n < MOST_DAMAGED; n++) {
        char *path = NULL;
        others.n_damaged = n;
        status = open_series(&series, &path, &others, &failure);
        if (status && !first) {
            *err = failure;
            first = status;
        }
        size_t size = path ? strlen(path) : 0;
        bool has_path = path && strncmp(failure.message, path, size) == 0;
        files[n].file = path ? phema_arena_copy(&memory, path, size) : NULL;
        bool is_readable = path && access(path, R_OK) == 0;
        files[n].reason =
            phema_arena_printf(&memory, "%s%s", is_readable ? "damaged" : "unreadable",
                               has_path ? failure.message + size : "");
        free(path);
        bool is_new = files[n].file && files[n].reason;
        for (size_t i = 0; i < n && is_new; i++) /* one that cannot be left out */
            is_new = strcmp(files[i].file, files[n].file) != 0;
        if (status && !is_new)
            break;
    }
    if (series && first) {
        series->damage = phema_arena_array(&series->memory, 1, sizeof(*series->damage));
        status = series->damage ? PHEMA_OK : phema_fail_memory(err);
        if (series->damage)
            *series->damage = *err;
        if (series->damage && others.n_damaged > 1) {
            (void)phema_fail(series->damage, first, "%zu files cannot be read, among them %s",
                             others.n_damaged, err->message);
            phema_error_copy_changes(series->damage, err);
        }
    }
    phema_arena_clear(&memory);
    if (!series && others.n_damaged)
        phema_error_clear_changes(err); /* without the first file there are others */
    if (!series || status) {
        phema_series_close(series);
        return first ? first : status;
    }
    *out = series;
    return PHEMA_OK;
}

PHEMA_FALLIBLE phema_series_open(struct phema_series **out,
                                 const struct phema_series_options *options,
                                 struct phema_error *err)
{
    char *damaged = NULL;
    if (options->skips_damaged && !options->is_alone)
        return open_undamaged(out, options, err);
    enum phema_status status = open_series(out, &damaged, options, err);
    free(damaged);
    return status;
}

void phema_series_close(struct phema_series *series)
{
    if (!series)
        return;
    series_clear_snapshots(series);
    free(series->snapshots);
    phema_arena_clear(&series->memory);
    phema_claims_free(series->claims);
    free(series);
}

bool phema_series_is_raw(const struct phema_series *series)
{
    for (size_t k = 0; k < series->n; k++)
        if (!series->snapshots[k].kind || strcmp(series->snapshots[k].kind, "raw") != 0)
            return false;
    return series->n > 0;
}

size_t phema_series_n_scaled(const struct phema_series *series)
{
    size_t n = 0;
    for (size_t i = 0; i < series->n_tensors; i++)
        n += series->tensors[i].tensor.scaling != NULL;
    return n;
}
