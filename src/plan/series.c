// SPDX-License-Identifier: Apache-2.0
/* series.c - from SNAPSHOTS to a series: scan the names, choose, open, agree.
 * Files are opened one after another and only their places are kept, so that memory does not depend
 * on the number of snapshots. */
#include "phema/plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agree.h"
#include "facts.h"
#include "scan.h"

/* What is needed while a series is opened, and freed after. */
struct opening {
    const struct phema_series_options *options;
    struct phema_series *series;
    struct phema_arena scratch;
    struct phema_text notes;
    struct scan scan;
    struct selection selection;
    struct agreement agreement;
};

/* ---- Widths ---- */

static enum phema_status fail_unsaid(const struct opening *opening, struct phema_error *err)
{
    const struct phema_series_options *options = opening->options;
    const struct layout *layout = opening->scan.layout;
    char every[64] = "";
    char sigmas[64] = "";
    if (!options->n_input_sigmas)
        (void)snprintf(sigmas, sizeof(sigmas), " --input-sigma %s", layout->default_sigmas);
    if (!options->update_every)
        (void)snprintf(every, sizeof(every), " --update-every %llu",
                       (unsigned long long)layout->default_update_every);
    return phema_fail(
        err, PHEMA_ERR_INPUTS,
        "%s: %s writes neither sigma_rel nor update_every into its files, and without "
        "them the weights would be wrong; if the training used that library's "
        "defaults, run: %s%s%s%s",
        options->snapshots, layout->library, options->command, sigmas, every,
        options->command_tail);
}

static enum phema_status find_width(const struct opening *opening, struct candidate *candidate,
                                    struct phema_error *err)
{
    const struct phema_series_options *options = opening->options;
    if (isnan(candidate->sigma_rel) && isnan(candidate->gamma) && options->n_input_sigmas) {
        uint64_t index = candidate->index == UINT64_MAX ? 0 : candidate->index;
        if (candidate->index == UINT64_MAX && options->n_input_sigmas > 1)
            return phema_fail(err, PHEMA_ERR_INPUTS,
                              "%s: its name has no index to choose among the %zu widths of "
                              "--input-sigma",
                              candidate->label, options->n_input_sigmas);
        if (index >= options->n_input_sigmas)
            return phema_fail(err, PHEMA_ERR_INPUTS,
                              "%s: has index %llu, but --input-sigma gives %zu width%s, from 0",
                              candidate->label, (unsigned long long)index, options->n_input_sigmas,
                              options->n_input_sigmas == 1 ? "" : "s");
        candidate->sigma_rel = options->input_sigmas[index];
    }
    enum phema_status status = PHEMA_OK;
    if (!isnan(candidate->sigma_rel)) {
        status = phema_gamma_from_sigma_rel(&candidate->gamma, candidate->sigma_rel, err);
        if (status == PHEMA_ERR_TARGET)
            status = PHEMA_ERR_INPUTS;
    } else if (!isnan(candidate->gamma)) {
        if (!(candidate->gamma > -0.5) || !(candidate->gamma < 1e9))
            status =
                phema_fail(err, PHEMA_ERR_INPUTS, "gamma %g is not above -0.5", candidate->gamma);
        else
            candidate->sigma_rel = phema_sigma_rel_from_gamma(candidate->gamma);
    } else if (!options->needs_no_profiles) {
        status = phema_fail(err, PHEMA_ERR_INPUTS,
                            "says no width, in its name or metadata; give --input-sigma");
    }
    if (!status && options->update_every) {
        if (candidate->update_every && candidate->update_every != options->update_every)
            status = phema_fail(err, PHEMA_ERR_INPUTS,
                                "says that it was updated every %llu steps, --update-every %llu",
                                (unsigned long long)candidate->update_every,
                                (unsigned long long)options->update_every);
        candidate->update_every = options->update_every;
    }
    return status ? phema_fail_in(err, status, "%s: %s", options->snapshots, candidate->label)
                  : PHEMA_OK;
}

/* ---- Files ---- */

static enum phema_status guess_key(struct opening *opening,
                                   const struct phema_checkpoint *checkpoint,
                                   struct phema_error *err)
{
    struct phema_series *series = opening->series;
    const char *key = opening->options->key;
    if (key && strcmp(key, ".") == 0)
        key = "";
    if (opening->scan.is_numbered) {
        bool is_ema_pytorch = facts_has_subtree(checkpoint, layout_ema_pytorch.subtree);
        opening->scan.layout = is_ema_pytorch ? &layout_ema_pytorch : &layout_posthoc_ema;
    }
    if (!key) {
        const char *subtree = opening->scan.layout->subtree;
        key = subtree && facts_has_subtree(checkpoint, subtree) ? subtree
              : facts_has_subtree(checkpoint, "state_dict")     ? "state_dict"
                                                                : "";
        if (*key)
            scan_note(&opening->scan,
                      "averaging the subtree '%s', whose names the output has without it (--key . "
                      "for all)",
                      key);
    }
    if (*key && !facts_has_subtree(checkpoint, key))
        return phema_fail(err, PHEMA_ERR_INPUTS, "has no subtree '%s'; see --key", key);
    series->key = strdup(key);
    opening->selection.key = series->key;
    opening->selection.key_size = strlen(key);
    return series->key ? PHEMA_OK : phema_fail_memory(err);
}

/* pytorch-posthoc-ema counts in 'step', which runs behind the STEP of the names by a constant. */
static enum phema_status read_clock(struct opening *opening, struct phema_snapshot *snapshot,
                                    bool is_first, struct phema_error *err)
{
    double step = facts_scalar(snapshot->checkpoint, "step");
    double ahead = snapshot->named_time - step;
    if (!(step >= 1) || !(ahead >= 0)) {
        if (opening->options->needs_no_profiles)
            return PHEMA_OK;
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "its tensor 'step', the clock of the average, is missing or no count");
    }
    if (is_first)
        opening->series->named_ahead = ahead;
    else if (ahead != opening->series->named_ahead)
        return phema_fail(
            err, PHEMA_ERR_INPUTS,
            "its name is %g steps ahead of the 'step' inside, elsewhere %g; these are "
            "files of two runs",
            ahead, opening->series->named_ahead);
    snapshot->time = step;
    return PHEMA_OK;
}

static enum phema_status open_snapshot(struct opening *opening, struct candidate *candidate,
                                       struct phema_snapshot *snapshot, bool *is_output,
                                       struct phema_error *err)
{
    struct phema_series *series = opening->series;
    bool is_first = series->n == 0;
    enum phema_status status = phema_checkpoint_open(&snapshot->checkpoint, candidate->path,
                                                     &opening->options->checkpoint, err);
    if (status)
        return status;
    const char *unit = NULL;
    status = facts_read(candidate, is_output, &unit, snapshot->checkpoint, err);
    if (status || *is_output)
        return status ? phema_fail_in(err, status, "%s", candidate->path) : PHEMA_OK;
    if (unit && !opening->scan.unit)
        opening->scan.unit = phema_arena_copy(&series->memory, unit, strlen(unit));
    for (size_t i = 0; i < phema_checkpoint_n_warnings(snapshot->checkpoint); i++)
        scan_note(&opening->scan, "%s: %s", candidate->label,
                  phema_checkpoint_warning(snapshot->checkpoint, i));
    if (is_first) {
        status = guess_key(opening, snapshot->checkpoint, err);
        if (status)
            return phema_fail_in(err, status, "%s", candidate->path);
        const struct phema_series_options *options = opening->options;
        if (opening->scan.layout->is_labelled_only && !options->needs_no_profiles &&
            (!options->n_input_sigmas || !options->update_every))
            return fail_unsaid(opening, err);
    }
    if (opening->scan.layout->has_step_inside) {
        status = read_clock(opening, snapshot, is_first, err);
        if (status)
            return phema_fail_in(err, status, "%s", candidate->path);
    }
    status = is_first ? agree_first(&opening->agreement, snapshot, err)
                      : agree_next(&opening->agreement, snapshot, err);
    snapshot->is_decoded = phema_checkpoint_is_decoded(snapshot->checkpoint);
    if (!status)
        phema_checkpoint_forget_listing(snapshot->checkpoint);
    return status;
}

/* EDM2's pickles hold no more than their names say; all others have headers that are quickly read,
 * and say what the weights depend on: dtypes, update_every. */
static bool needs_file(const struct opening *opening, const struct candidate *candidate)
{
    if (!candidate->path)
        return false;
    return !(opening->options->needs_no_tensors && opening->scan.layout == &layout_edm2 &&
             phema_ends_with(candidate->path, ".pkl"));
}

static enum phema_status add_snapshot(struct opening *opening, struct candidate *candidate,
                                      struct phema_error *err)
{
    struct phema_series *series = opening->series;
    const struct layout *layout = opening->scan.layout;
    struct phema_snapshot *snapshot = &series->snapshots[series->n];
    *snapshot =
        (struct phema_snapshot){.named_time = candidate->named_time, .time = candidate->named_time};
    enum phema_status status = PHEMA_OK;
    bool is_output = false;
    snapshot->label = strdup(candidate->label);
    snapshot->path = candidate->path ? strdup(candidate->path) : NULL;
    if (!snapshot->label || (candidate->path && !snapshot->path)) {
        status = phema_fail_memory(err);
    } else if (needs_file(opening, candidate)) {
        status = open_snapshot(opening, candidate, snapshot, &is_output, err);
    } else if (!candidate->path && !opening->options->needs_no_tensors) {
        status = phema_fail(err, PHEMA_ERR_INPUTS, "%s: %s: has no 'file'",
                            opening->options->snapshots, candidate->label);
    } else if (candidate->path) {
        snapshot->rounding = phema_dtype_rounding(PHEMA_F16); /* EDM2 writes nothing else */
    }
    if (layout->clock)
        snapshot->time = layout->clock(candidate->named_time);
    if (!status && !is_output)
        status = find_width(opening, candidate, err);
    snapshot->sigma_rel = candidate->sigma_rel;
    snapshot->gamma = candidate->gamma;
    snapshot->update_every = candidate->update_every ? candidate->update_every : 1;
    series->n++; /* from here on close frees what it holds */
    if (is_output) {
        scan_note(&opening->scan, "left out: '%s', made by posthoc-ema", candidate->label);
        phema_checkpoint_close(snapshot->checkpoint);
        free(snapshot->label);
        free(snapshot->path);
        series->n--;
    }
    return status;
}

static int compare_snapshots(const void *a, const void *b)
{
    const struct candidate *left = a, *right = b;
    if (left->named_time != right->named_time)
        return left->named_time < right->named_time ? -1 : 1;
    if (left->index != right->index)
        return left->index < right->index ? -1 : 1;
    if (left->sigma_rel != right->sigma_rel)
        return left->sigma_rel < right->sigma_rel ? -1 : 1;
    if (left->gamma != right->gamma) /* a larger exponent is a narrower average */
        return left->gamma > right->gamma ? -1 : 1;
    return 0;
}

static enum phema_status fail_none(const struct opening *opening, struct phema_error *err)
{
    const struct phema_series_options *options = opening->options;
    if (options->from > -HUGE_VAL || options->to < HUGE_VAL)
        return phema_fail(err, PHEMA_ERR_INPUTS, "%s: no snapshots between --from and --to",
                          options->snapshots);
    return phema_fail(err, PHEMA_ERR_INPUTS,
                      "%s: no snapshots found; names like 'snapshot-0001000-0.050.safetensors', "
                      "'network-snapshot-0001000-0.050.pkl' or '0.1000.pt' are known, others need "
                      "--name-regex or a manifest",
                      options->snapshots);
}

static enum phema_status open_all(struct opening *opening, struct phema_error *err)
{
    struct phema_series *series = opening->series;
    struct scan *scan = &opening->scan;
    size_t n = 0;
    for (size_t i = 0; i < scan->n; i++)
        if (!scan->items[i].is_left_out)
            scan->items[n++] = scan->items[i];
    scan->n = n;
    if (n == 0)
        return fail_none(opening, err);
    qsort(scan->items, n, sizeof(*scan->items), compare_snapshots);
    series->snapshots = calloc(n, sizeof(*series->snapshots));
    if (!series->snapshots)
        return phema_fail_memory(err);
    for (size_t i = 0; i < n; i++) {
        enum phema_status status = add_snapshot(opening, &scan->items[i], err);
        if (status)
            return status;
    }
    if (series->n == 0)
        return phema_fail(err, PHEMA_ERR_INPUTS, "%s: %s", opening->options->snapshots,
                          opening->options->is_alone
                              ? "made by posthoc-ema; averages are no snapshots"
                              : "no snapshots found");
    return PHEMA_OK;
}

/* ---- Together ---- */

static enum phema_status compile_selection(struct opening *opening, struct phema_error *err)
{
    const struct phema_series_options *options = opening->options;
    struct selection *selection = &opening->selection;
    selection->includes =
        phema_arena_array(&opening->scratch, options->n_includes + 1, sizeof(struct pattern *));
    selection->excludes =
        phema_arena_array(&opening->scratch, options->n_excludes + 1, sizeof(struct pattern *));
    if (!selection->includes || !selection->excludes)
        return phema_fail_memory(err);
    enum phema_status status = PHEMA_OK;
    for (; !status && selection->n_includes < options->n_includes;) {
        status = pattern_compile(&selection->includes[selection->n_includes],
                                 options->includes[selection->n_includes], err);
        if (status)
            return phema_fail_in(err, status, "--include");
        selection->n_includes += !status;
    }
    for (; !status && selection->n_excludes < options->n_excludes;) {
        status = pattern_compile(&selection->excludes[selection->n_excludes],
                                 options->excludes[selection->n_excludes], err);
        if (status)
            return phema_fail_in(err, status, "--exclude");
        selection->n_excludes += !status;
    }
    return status;
}

static enum phema_status finish(struct opening *opening, struct phema_error *err)
{
    struct phema_series *series = opening->series;
    const struct phema_series_options *options = opening->options;
    series->layout = opening->scan.layout->name;
    series->clock = opening->scan.layout->clock;
    const char *unit = options->unit        ? options->unit
                       : opening->scan.unit ? opening->scan.unit
                                            : opening->scan.layout->unit;
    series->unit = phema_arena_copy(&series->memory, unit, strlen(unit));
    series->has_profiles = true;
    double rounding = agree_rounding(series);
    for (size_t k = 0; k < series->n; k++) {
        struct phema_snapshot *snapshot = &series->snapshots[k];
        if (snapshot->checkpoint)
            snapshot->rounding = rounding;
        series->has_profiles = series->has_profiles && !isnan(snapshot->gamma);
    }
    if (series->n_tensors) {
        enum phema_status status = agree_ties(&opening->agreement, err);
        if (status)
            return status;
    }
    for (size_t at = 0; at < opening->notes.size; at += strlen(opening->notes.data + at) + 1)
        series->n_notes++;
    series->notes = phema_arena_array(&series->memory, series->n_notes + 1, sizeof(char *));
    char *notes = phema_arena_copy(&series->memory, opening->notes.data, opening->notes.size);
    if (!series->unit || !series->notes || !notes)
        return phema_fail_memory(err);
    for (size_t i = 0; i < series->n_notes; i++, notes += strlen(notes) + 1)
        series->notes[i] = notes;
    return phema_text_check(&opening->notes, err);
}

static enum phema_status open_series(struct opening *opening, struct phema_error *err)
{
    const struct phema_series_options *options = opening->options;
    enum phema_status status = compile_selection(opening, err);
    if (!status)
        status = options->is_alone ? scan_alone(&opening->scan, options, err)
                                   : scan_snapshots(&opening->scan, options, err);
    if (!status && !options->is_alone)
        status = choose_candidates(&opening->scan, options, err);
    if (!status)
        status = open_all(opening, err);
    return status ? status : finish(opening, err);
}

PHEMA_FALLIBLE phema_series_open(struct phema_series **out,
                                 const struct phema_series_options *options,
                                 struct phema_error *err)
{
    struct phema_series *series = calloc(1, sizeof(*series));
    if (!series || !(series->root = strdup(options->snapshots))) {
        phema_series_close(series);
        return phema_fail_memory(err);
    }
    struct opening opening = {.options = options, .series = series};
    opening.scan.arena = &opening.scratch;
    opening.scan.notes = &opening.notes;
    opening.agreement.arena = &series->memory;
    opening.agreement.selection = &opening.selection;
    opening.agreement.series = series;
    opening.agreement.averages_buffers = options->averages_buffers;
    opening.agreement.is_alone = options->is_alone;

    enum phema_status status = open_series(&opening, err);

    for (size_t i = 0; i < opening.selection.n_includes; i++)
        pattern_free(opening.selection.includes[i]);
    for (size_t i = 0; i < opening.selection.n_excludes; i++)
        pattern_free(opening.selection.excludes[i]);
    phema_text_clear(&opening.notes);
    phema_arena_clear(&opening.scratch);
    if (status) {
        phema_series_close(series);
        return status;
    }
    *out = series;
    return PHEMA_OK;
}

void phema_series_close(struct phema_series *series)
{
    if (!series)
        return;
    for (size_t k = 0; k < series->n; k++) {
        phema_checkpoint_close(series->snapshots[k].checkpoint);
        free(series->snapshots[k].label);
        free(series->snapshots[k].path);
    }
    free(series->snapshots);
    free(series->root);
    free(series->key);
    phema_arena_clear(&series->memory);
    free(series);
}

double phema_series_clock(const struct phema_series *series, double named_time)
{
    return series->clock ? series->clock(named_time) : named_time - series->named_ahead;
}

struct phema_tensor phema_series_tensor_in(const struct phema_series *series, size_t k, size_t i)
{
    struct phema_tensor tensor = series->tensors[i].tensor;
    const struct phema_snapshot *snapshot = &series->snapshots[k];
    tensor.offset = snapshot->places[i].offset + snapshot->shift;
    tensor.stride = snapshot->places[i].stride;
    tensor.file = snapshot->places[i].file;
    tensor.parts = snapshot->places[i].parts;
    tensor.n_parts = snapshot->places[i].n_parts;
    tensor.is_decoded = snapshot->is_decoded;
    return tensor;
}
