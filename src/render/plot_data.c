// SPDX-License-Identifier: Apache-2.0
/* plot_data.c - from plans, and from files that other verbs have written, to pictures of them. */
#include <string.h>

#include "parts.h"
#include "phema/mapped_file.h"
#include "phema/sort.h"
#include "phema/writer.h"

/* What pictures are drawn from; is_failed when memory for a title or note ran out. */
struct names {
    struct phema_arena arena;
    bool is_failed;
};

static char *keep(struct names *names, struct phema_strbuf *text)
{
    char *kept = text->is_failed ? NULL : phema_arena_copy(&names->arena, text->data, text->size);
    names->is_failed = names->is_failed || !kept;
    phema_strbuf_clear(text);
    return kept;
}

static char *name_series(struct names *names, const struct phema_series *series)
{
    struct phema_strbuf text = {0};
    struct phema_name_buffer root, first, last;
    const char *begin = phema_number_format(&first, series->snapshots[0].time);
    const char *end = phema_number_format(&last, series->snapshots[series->n - 1].time);
    phema_strbuf_printf(&text, "%s: %zu snapshots, ", phema_name_show(&root, series->root),
                        series->n);
    if (series->snapshots[0].time == series->snapshots[series->n - 1].time)
        phema_strbuf_printf(&text, "%s %s", begin, series->unit);
    else
        phema_strbuf_printf(&text, "%s to %s %s", begin, end, series->unit);
    return keep(names, &text);
}

static char *name_kind(struct names *names, const struct phema_snapshot *snapshot)
{
    struct phema_strbuf text = {0};
    struct phema_name_buffer spec;
    if (!snapshot->kind)
        phema_strbuf_puts(&text, "of unknown width");
    else if (isnan(snapshot->sigma_rel))
        phema_strbuf_puts(&text, phema_name_show(&spec, snapshot->spec));
    else
        phema_strbuf_printf(&text, "sigma_rel %.6g", snapshot->sigma_rel);
    if (snapshot->kind && snapshot->profile.update_every > 1)
        phema_strbuf_printf(&text, " every %llu",
                            (unsigned long long)snapshot->profile.update_every);
    return keep(names, &text);
}

/* It minimises the profile error, which says little elsewhere. */
static bool is_metric_of_paper(const struct phema_plan *plan)
{
    return strcmp(plan->metric, "profile") == 0;
}

static char *note_target(struct names *names, const struct phema_plan *plan,
                         const struct phema_target *target)
{
    const struct phema_solution *solution = &target->solution;
    struct phema_strbuf text = {0};
    phema_strbuf_printf(&text, "metric %s", plan->metric);
    if (!isnan(solution->predicted.total))
        phema_strbuf_printf(&text, "; predicted error %.1e (profile %.0e, rounding %.0e)",
                            solution->predicted.total, solution->predicted.profile,
                            solution->predicted.rounding);
    if (!isnan(solution->profile_error) && is_metric_of_paper(plan))
        phema_strbuf_printf(&text, "; profile error %.2e", solution->profile_error);
    phema_strbuf_printf(&text, "; gain %.2f", solution->norm2);
    if (fabs(solution->sum - 1) > 1e-9)
        phema_strbuf_printf(&text, "; weights add up to %.6g",
                            fabs(solution->sum) > 1e-9 ? solution->sum : 0);
    return keep(names, &text);
}

/* ---- profiles, weights ---- */

static enum phema_status draw_targets(struct phema_picture **out, struct names *names,
                                      const struct phema_plan *plan, bool of_profiles,
                                      struct phema_error *err)
{
    const struct phema_series *series = plan->series;
    struct phema_profile *profiles = phema_arena_array(&names->arena, series->n, sizeof(*profiles));
    const char **kinds = phema_arena_array(&names->arena, series->n, sizeof(*kinds));
    struct phema_plot_target *targets = phema_arena_array(&names->arena, plan->m, sizeof(*targets));
    if (!profiles || !kinds || !targets)
        return phema_fail_memory(err);
    for (size_t k = 0; k < series->n; k++) {
        profiles[k] = series->snapshots[k].profile;
        profiles[k].t = series->snapshots[k].time; /* also where the rest is not known */
        kinds[k] = name_kind(names, &series->snapshots[k]);
    }
    for (size_t j = 0; j < plan->m; j++) {
        const struct phema_target *target = &plan->targets[j];
        struct phema_strbuf title = {0};
        phema_target_write_name(&title, target);
        phema_strbuf_printf(&title, " %s", report_named_unit(series));
        targets[j] = (struct phema_plot_target){.title = keep(names, &title),
                                                .note = note_target(names, plan, target),
                                                .mix = target->mix,
                                                .weights = target->solution.weights};
    }
    const struct phema_plot_series shown = {.title = name_series(names, series),
                                            .unit = series->unit,
                                            .snapshots = profiles,
                                            .kinds = kinds,
                                            .n = series->n};
    if (names->is_failed)
        return phema_fail_memory(err);
    return of_profiles ? phema_plot_profiles(out, &shown, targets, plan->m, err)
                       : phema_plot_weights(out, &shown, targets, plan->m, err);
}

static enum phema_status check_profiles(const struct phema_plan *plan, struct phema_error *err)
{
    if (!plan->series->has_profiles)
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "plot profiles: nothing says how the snapshots were averaged; "
                          "--input-sigma or --input-profile does, and plot weights needs no "
                          "profiles");
    for (size_t j = 0; j < plan->m; j++)
        if (plan->targets[j].mix.n_parts == 0)
            return phema_fail(err, PHEMA_ERR_USAGE,
                              "plot profiles: nothing says what these weights are meant for; "
                              "--sigma-rel or --profile does");
    return PHEMA_OK;
}

PHEMA_FALLIBLE plot_targets(struct phema_picture **out, const struct phema_plan *plan,
                            bool of_profiles, struct phema_error *err)
{
    struct names names = {0};
    enum phema_status status = of_profiles ? check_profiles(plan, err) : PHEMA_OK;
    if (!status)
        status = draw_targets(out, &names, plan, of_profiles, err);
    phema_arena_clear(&names.arena);
    return status;
}

/* ---- error ---- */

/* Enough points for a curve that looks smooth; all widths share one factorisation. */
#define FIRST_WIDTH    5     /* thousandths */
#define LAST_WIDTH     287.5 /* below the widths that are rejected */
#define BETWEEN_WIDTHS 2.5

static bool is_asked_for(const struct phema_plan_options *asked, double sigma_rel)
{
    for (size_t i = 0; i < asked->n_sigma_rels; i++)
        if (asked->sigma_rels[i] == sigma_rel)
            return true;
    for (size_t i = 0; i < asked->n_gammas; i++)
        if (phema_sigma_rel_from_gamma(asked->gammas[i]) == sigma_rel)
            return true;
    return false;
}

PHEMA_FALLIBLE plot_error_widths(struct phema_plan_options *options, struct phema_arena *arena,
                                 struct phema_error *err)
{
    size_t n_even = (size_t)((LAST_WIDTH - FIRST_WIDTH) / BETWEEN_WIDTHS) + 1;
    size_t n = n_even + options->n_sigma_rels + options->n_gammas;
    double *all = phema_arena_array(arena, n, sizeof(*all));
    if (!all)
        return phema_fail_memory(err);
    for (size_t i = 0; i < n_even; i++)
        all[i] = (FIRST_WIDTH + (double)i * BETWEEN_WIDTHS) / 1000;
    for (size_t i = 0; i < options->n_sigma_rels; i++)
        all[n_even + i] = options->sigma_rels[i];
    for (size_t i = 0; i < options->n_gammas; i++)
        all[n_even + options->n_sigma_rels + i] = phema_sigma_rel_from_gamma(options->gammas[i]);
    options->sigma_rels = all;
    options->n_sigma_rels = phema_sort_distinct(all, n);
    options->n_gammas = 0;
    return PHEMA_OK;
}

/* The widths of the snapshots, ascending, each once. */
static size_t find_inputs(double *inputs, const struct phema_series *series)
{
    size_t n = 0;
    for (size_t k = 0; k < series->n; k++)
        if (!isnan(series->snapshots[k].sigma_rel))
            inputs[n++] = series->snapshots[k].sigma_rel;
    return phema_sort_distinct(inputs, n);
}

static char *note_errors(struct names *names, const struct phema_plan *plan)
{
    struct phema_strbuf text = {0};
    struct phema_name_buffer at;
    phema_strbuf_printf(&text,
                        "averages at %s %s, metric %s; errors are relative to the norm of the "
                        "parameters",
                        phema_number_format(&at, plan->targets[0].named_time),
                        report_named_unit(plan->series), plan->metric);
    return keep(names, &text);
}

static enum phema_status draw_errors(struct phema_picture **out, struct names *names,
                                     const struct phema_plan *plan,
                                     const struct phema_plan_options *asked,
                                     struct phema_error *err)
{
    struct phema_plot_error *widths = phema_arena_array(&names->arena, plan->m, sizeof(*widths));
    double *inputs = phema_arena_array(&names->arena, plan->series->n, sizeof(*inputs));
    struct phema_plot_errors errors = {.title = name_series(names, plan->series),
                                       .note = note_errors(names, plan),
                                       .widths = widths,
                                       .n = plan->m,
                                       .inputs = inputs};
    if (!widths || !inputs || names->is_failed)
        return phema_fail_memory(err);
    bool is_paper = is_metric_of_paper(plan);
    for (size_t j = 0; j < plan->m; j++) {
        const struct phema_target *target = &plan->targets[j];
        const struct phema_solution *solution = &target->solution;
        widths[j] = (struct phema_plot_error){
            .sigma_rel = target->sigma_rel,
            .predicted = solution->predicted.total,
            .rounding = solution->predicted.rounding,
            .paper_weights = is_paper ? PHEMA_UNKNOWN : solution->predicted.paper_weights,
            .profile_error = is_paper ? solution->profile_error : PHEMA_UNKNOWN,
            .is_marked = is_asked_for(asked, target->sigma_rel)};
    }
    errors.n_inputs = find_inputs(inputs, plan->series);
    return phema_plot_errors(out, &errors, err);
}

PHEMA_FALLIBLE plot_errors(struct phema_picture **out, const struct phema_plan *plan,
                           const struct phema_plan_options *asked, struct phema_error *err)
{
    struct names names = {0};
    enum phema_status status = draw_errors(out, &names, plan, asked, err);
    phema_arena_clear(&names.arena);
    return status;
}

/* ---- Records: memory, sweep ---- */

/* Records of stages or scores take some KiB; larger files are rejected. */
#define MOST_RECORD ((size_t)16 << 20)

struct record {
    struct phema_file *file;
    struct phema_strbuf title;
};

static enum phema_status open_record(struct record *out, const char *path, const char *what,
                                     struct phema_error *err)
{
    enum phema_status status = phema_file_open(&out->file, path, err);
    if (status)
        return status;
    size_t size = phema_file_span(out->file).size;
    if (size > MOST_RECORD)
        return phema_fail(err, PHEMA_ERR_FILE, "expected at most %zu bytes, found %zu", MOST_RECORD,
                          size);
    struct phema_name_buffer name;
    phema_strbuf_printf(&out->title, "%s: %s", phema_name_show(&name, path), what);
    return phema_strbuf_check(&out->title, err);
}

static enum phema_status close_record(struct record *record, const char *path,
                                      enum phema_status status, struct phema_error *err)
{
    phema_file_close(record->file);
    phema_strbuf_clear(&record->title);
    return status ? phema_fail_in(err, status, "%s", path) : PHEMA_OK;
}

PHEMA_FALLIBLE plot_memory(struct phema_picture **out, const char *path, uint64_t max_ram,
                           struct phema_error *err)
{
    struct record record = {0};
    enum phema_status status = open_record(&record, path, "memory of a run", err);
    if (!status)
        status =
            phema_plot_memory(out, record.title.data, phema_file_span(record.file), max_ram, err);
    return close_record(&record, path, status, err);
}

PHEMA_FALLIBLE plot_design(struct phema_picture **out, const char *path, struct phema_error *err)
{
    struct record record = {0};
    enum phema_status status = open_record(&record, path, "what to store", err);
    if (!status)
        status = phema_plot_design(out, record.title.data, phema_file_span(record.file), err);
    return close_record(&record, path, status, err);
}

PHEMA_FALLIBLE plot_scores(struct phema_picture **out, struct phema_sweep_facts *facts,
                           const char *path, const char *label, bool maximizes, bool is_quiet,
                           struct phema_error *err)
{
    struct record record = {0};
    enum phema_status status = open_record(&record, path, "scores of averages", err);
    if (!status) {
        const struct phema_plot_sweep sweep = {.title = record.title.data,
                                               .csv = phema_file_span(record.file),
                                               .label = label,
                                               .maximizes = maximizes};
        status = phema_plot_sweep(out, facts, &sweep, err);
    }
    status = close_record(&record, path, status, err);
    if (!status && facts->n_left_out && !is_quiet)
        render_say("%s: %zu line%s without a finite score left out", path, facts->n_left_out,
                   facts->n_left_out == 1 ? "" : "s");
    return status;
}

/* ---- Pictures of a page ---- */

PHEMA_FALLIBLE html_picture_embed(struct html_picture *out, struct phema_picture **picture,
                                  enum phema_status status, struct phema_error *err)
{
    if (!status)
        status = phema_picture_write(&out->wide, *picture, PHEMA_PICTURE_SVG, err);
    if (!status) {
        phema_picture_make_narrow(*picture);
        status = phema_picture_write(&out->narrow, *picture, PHEMA_PICTURE_SVG, err);
    }
    phema_picture_free(*picture);
    *picture = NULL;
    return status;
}

static bool can_draw_profiles(const struct phema_plan *plan)
{
    bool is_known = plan->series->has_profiles;
    for (size_t j = 0; j < plan->m && is_known; j++)
        is_known = plan->targets[j].mix.n_parts > 0;
    return is_known;
}

/* The first target is seen at once; the others unfold. */
static enum phema_status draw_profiles(struct html_report *report, const struct phema_plan *plan,
                                       struct phema_error *err)
{
    struct html_picture *const pictures[] = {&report->profiles, &report->more_profiles};
    enum phema_status status = PHEMA_OK;
    for (size_t i = 0; i < ARRAY_LEN(pictures) && i < plan->m && !status; i++) {
        struct phema_picture *picture = NULL;
        status = plot_targets(&picture, plan, true, err);
        if (!status)
            phema_picture_keep(picture, 2 * i, i ? SIZE_MAX : 2);
        status = html_picture_embed(pictures[i], &picture, status, err);
    }
    return status;
}

PHEMA_FALLIBLE html_report_draw_targets(struct html_report *report, struct phema_error *err)
{
    struct phema_plan first = *report->plan; /* the first targets: borrowed */
    struct phema_picture *picture = NULL;
    enum phema_status status = PHEMA_OK;
    report->is_cut = first.m > PHEMA_PLOT_MAX_TARGETS;
    first.m = report->is_cut ? PHEMA_PLOT_MAX_TARGETS : first.m;
    if (can_draw_profiles(&first))
        status = draw_profiles(report, &first, err);
    if (status)
        return status;
    return html_picture_embed(&report->weights, &picture,
                              plot_targets(&picture, &first, false, err), err);
}

/* ---- Files of pictures ---- */

PHEMA_FALLIBLE picture_files_claim(const struct picture_files *files, struct phema_claims *claims,
                                   struct phema_error *err)
{
    for (size_t i = 0; i < files->n; i++) {
        enum phema_status status = phema_claims_check(claims, files->paths[i], err);
        if (!status)
            status = phema_claims_add_output(claims, files->paths[i], err);
        if (status)
            return status;
    }
    return PHEMA_OK;
}

PHEMA_FALLIBLE picture_files_check(const struct picture_files *files, const char *path,
                                   struct phema_error *err)
{
    struct phema_claims *claims = NULL;
    enum phema_status status = phema_claims_new(&claims, err);
    if (!status)
        status = phema_claims_add_input(claims, path, "the file that is drawn", err);
    if (!status)
        status = picture_files_claim(files, claims, err);
    phema_claims_free(claims);
    return status;
}

static enum phema_status write_file(struct picture_files *files, size_t i,
                                    const struct phema_picture *picture, bool replaces,
                                    struct phema_error *err)
{
    struct phema_strbuf bytes = {0};
    struct phema_writer_options options = {.replaces = replaces, .syncs = true};
    enum phema_status status = phema_picture_write(&bytes, picture, files->formats[i], err);
    if (status)
        status = phema_fail_in(err, status, "%s", files->paths[i]);
    else
        status = phema_writer_open(&files->writers[i], files->paths[i], bytes.size, &options, err);
    if (!status)
        status = phema_writer_write(files->writers[i], 0, bytes.data, bytes.size, err);
    phema_strbuf_clear(&bytes);
    return status;
}

PHEMA_FALLIBLE picture_files_write(struct picture_files *files, const struct phema_picture *picture,
                                   bool replaces, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    for (size_t i = 0; i < files->n && !status; i++)
        status = write_file(files, i, picture, replaces, err);
    for (size_t i = 0; i < files->n; i++) {
        if (!status)
            status = phema_writer_commit(files->writers[i], err);
        else
            phema_writer_abandon(files->writers[i]);
    }
    return status;
}
