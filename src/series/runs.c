// SPDX-License-Identifier: Apache-2.0
/* runs.c - lists the runs of candidates or snapshots, and chooses one by the beginning of its id.
 * The newest run is the one with the newest time. */
#include "candidates.h"

#include <stdlib.h>
#include <string.h>

#include "phema/setting.h"

/* Messages show so many characters of an id, or more where others begin alike. */
#define SHOWN_SIZE ((size_t)8)

/* Messages count further runs. */
#define MOST_NAMED ((size_t)4)

struct run_list {
    struct phema_training_run *items; /* [n] the newest first; the snapshots without an id last */
    size_t n, n_ids;
};

/* ---- The list ---- */

static int compare_ids(const void *a, const void *b)
{
    const struct phema_training_run *left = a, *right = b;
    if (!left->id || !right->id)
        return !left->id - !right->id;
    return strcmp(left->id, right->id);
}

static int compare_by_age(const void *a, const void *b)
{
    const struct phema_training_run *left = a, *right = b;
    bool is_known = left->id && right->id;
    if (is_known && (left->to < right->to || left->to > right->to))
        return left->to > right->to ? -1 : 1;
    return compare_ids(left, right);
}

/* runs: one entry for each snapshot; becomes one for each id */
static void sort_runs(struct run_list *runs)
{
    size_t n = 0;
    if (!runs->n)
        return;
    qsort(runs->items, runs->n, sizeof(*runs->items), compare_ids);
    for (size_t i = 1; i < runs->n; i++) {
        struct phema_training_run *run = &runs->items[n];
        const struct phema_training_run *other = &runs->items[i];
        if (compare_ids(run, other) != 0) {
            runs->items[++n] = *other;
            continue;
        }
        run->n += other->n;
        run->label = other->from < run->from ? other->label : run->label;
        run->from = other->from < run->from ? other->from : run->from;
        run->to = other->to > run->to ? other->to : run->to;
    }
    runs->n = n + 1;
    runs->n_ids = runs->n - !runs->items[n].id;
    qsort(runs->items, runs->n, sizeof(*runs->items), compare_by_age);
}

/* ---- Messages ---- */

/* The size of the shown beginning of an id, which no other run has. */
static size_t shown_size(const struct run_list *runs, const char *id)
{
    size_t size = strlen(id), most = SHOWN_SIZE;
    for (size_t r = 0; r < runs->n_ids; r++) {
        size_t alike = 0;
        while (id[alike] && runs->items[r].id[alike] == id[alike])
            alike++;
        if (alike < size && alike + 1 > most)
            most = alike + 1;
    }
    return most < size ? most : size;
}

static void append_run(struct phema_strbuf *out, const struct run_list *runs, size_t r)
{
    const struct phema_training_run *run = &runs->items[r];
    struct phema_name_buffer shown;
    phema_strbuf_printf(out, "%s'%s' has %zu snapshot%s, ", r ? "; " : "",
                        phema_name_escape(&shown, run->id, shown_size(runs, run->id)), run->n,
                        run->n == 1 ? "" : "s");
    phema_strbuf_printf(out, "%s %s", run->from < run->to ? "times" : "time",
                        phema_number_format(&shown, run->from));
    if (run->from < run->to)
        phema_strbuf_printf(out, " to %s", phema_number_format(&shown, run->to));
    phema_strbuf_printf(out, ", such as '%s'", phema_name_show(&shown, run->label));
}

/* Fails with the runs; the remedy is the newest one. Callers add a sentence in front. "'3f2a0b1c' has
 * 5 snapshots, times 1000 to 5000, such as 'a'; 2 snapshots name no run, such as 'b'" */
static enum phema_status fail_with_runs(const struct run_list *runs, struct phema_error *err)
{
    struct phema_strbuf text = {0};
    struct phema_name_buffer shown;
    const char *newest = runs->items[0].id;
    size_t n_named = runs->n_ids <= MOST_NAMED ? runs->n_ids : MOST_NAMED;
    for (size_t r = 0; r < n_named; r++)
        append_run(&text, runs, r);
    if (n_named < runs->n_ids)
        phema_strbuf_printf(&text, "; %zu more runs", runs->n_ids - n_named);
    if (runs->n_ids < runs->n) {
        const struct phema_training_run *without = &runs->items[runs->n_ids];
        phema_strbuf_printf(&text, "; %zu snapshot%s no run, such as '%s'", without->n,
                            without->n == 1 ? " names" : "s name",
                            phema_name_show(&shown, without->label));
    }
    enum phema_status status = phema_strbuf_check(&text, err);
    if (!status) {
        status = phema_fail(err, PHEMA_ERR_INPUTS, "%s", text.data);
        text.size = 0;
        phema_strbuf_append(&text, newest, shown_size(runs, newest));
        if (!text.is_failed)
            (void)phema_suggest(err, status, PHEMA_SET_RUN, text.data);
    }
    phema_strbuf_clear(&text);
    return status;
}

/* ---- --run ---- */

const char *run_id_of(const struct phema_checkpoint *checkpoint)
{
    const char *id = phema_checkpoint_metadatum(checkpoint, "posthoc_ema.run");
    return id && *id ? id : NULL;
}

/* The id that is the given one, or the only one that begins so. */
static enum phema_status choose_run(const char **id, const struct run_list *runs,
                                    const char *wanted, const char *path, struct phema_error *err)
{
    struct phema_name_buffer shown;
    size_t n = 0;
    for (size_t r = 0; r < runs->n_ids; r++) {
        if (strncmp(runs->items[r].id, wanted, strlen(wanted)) != 0)
            continue;
        *id = runs->items[r].id;
        n++;
        if (strcmp(*id, wanted) == 0)
            return PHEMA_OK;
    }
    if (n == 1)
        return PHEMA_OK;
    if (!runs->n_ids)
        return phema_suggest(
            err,
            phema_fail_setting(err, PHEMA_ERR_INPUTS, PHEMA_SET_RUN,
                               "no snapshot of %s names its run, as those of the recorder do",
                               path),
            PHEMA_SET_RUN, "");
    return phema_fail_in(
        err, fail_with_runs(runs, err), "%s: %s with '%s'", phema_setting_name(PHEMA_SET_RUN),
        n ? "several runs begin" : "no run begins", phema_name_show(&shown, wanted));
}

/* The runs of all candidates that are not left out.
 *   is_lenient  a file that cannot be read has no id */
static enum phema_status read_runs(struct run_list *out, struct candidate_list *candidates,
                                   const struct phema_series_options *options, bool is_lenient,
                                   struct phema_error *err)
{
    *out = (struct run_list){
        .items = phema_arena_array(candidates->arena, candidates->n + 1, sizeof(*out->items))};
    if (!out->items)
        return phema_fail_memory(err);
    for (size_t i = 0; i < candidates->n; i++) {
        struct candidate *candidate = &candidates->items[i];
        struct phema_checkpoint *checkpoint = NULL;
        struct phema_error ignored, *reason = is_lenient ? &ignored : err;
        if (candidate->is_left_out)
            continue;
        enum phema_status status =
            candidate->path
                ? candidate_open(&checkpoint, candidates, candidate, &options->checkpoint, reason)
                : PHEMA_OK;
        const char *id = checkpoint ? run_id_of(checkpoint) : NULL;
        candidate->run = id ? phema_arena_copy(candidates->arena, id, strlen(id)) : NULL;
        if (id && !candidate->run)
            status = phema_fail_memory(reason);
        phema_checkpoint_close(checkpoint);
        if (status && !is_lenient)
            return status;
        candidates->damaged = NULL;
        out->items[out->n++] = (struct phema_training_run){candidate->run, 1, candidate->named_time,
                                                           candidate->named_time, candidate->label};
    }
    sort_runs(out);
    return PHEMA_OK;
}

PHEMA_FALLIBLE runs_select(struct candidate_list *candidates,
                           const struct phema_series_options *options, struct phema_error *err)
{
    struct run_list runs;
    const char *id = "";
    if (!options->run)
        return PHEMA_OK;
    enum phema_status status = read_runs(&runs, candidates, options, false, err);
    if (!status)
        status = choose_run(&id, &runs, options->run, options->snapshots, err);
    const char *reason = phema_arena_printf(candidates->arena, "not of the run that %s chooses",
                                            phema_setting_name(PHEMA_SET_RUN));
    if (!status && !reason)
        status = phema_fail_memory(err);
    for (size_t i = 0; i < candidates->n && !status; i++) {
        struct candidate *candidate = &candidates->items[i];
        if (!candidate->is_left_out && !(candidate->run && strcmp(candidate->run, id) == 0))
            candidates_leave_out(candidates, candidate, reason);
    }
    return status;
}

/* ---- Several runs ---- */

static enum phema_status fail_several(const struct run_list *runs, const char *path,
                                      struct phema_error *err)
{
    return phema_fail_in(err, fail_with_runs(runs, err),
                         "%s: holds snapshots of %zu runs; %s chooses one", path, runs->n_ids,
                         phema_setting_name(PHEMA_SET_RUN));
}

void runs_explain(struct candidate_list *candidates, const struct phema_series_options *options,
                  struct phema_error *err)
{
    struct run_list runs;
    struct phema_error several;
    bool is_any = false;
    for (size_t i = 0; i < candidates->n && !is_any; i++)
        is_any = candidates->items[i].run != NULL;
    if (is_any && read_runs(&runs, candidates, options, true, &several) == PHEMA_OK &&
        runs.n_ids > 1 && fail_several(&runs, options->snapshots, &several) == PHEMA_ERR_INPUTS)
        *err = several;
}

PHEMA_FALLIBLE runs_find(struct phema_series *series, struct candidate_list *candidates,
                         struct phema_error *err)
{
    struct run_list runs = {
        .items = phema_arena_array(&series->memory, series->n + 1, sizeof(*runs.items))};
    if (!runs.items)
        return phema_fail_memory(err);
    for (size_t k = 0; k < series->n; k++) {
        const struct phema_snapshot *snapshot = &series->snapshots[k];
        runs.items[runs.n++] = (struct phema_training_run){snapshot->run, 1, snapshot->named_time,
                                                           snapshot->named_time, snapshot->label};
    }
    sort_runs(&runs);
    struct phema_name_buffer shown;
    if (runs.n_ids > 1)
        return fail_several(&runs, series->root, err);
    series->runs = runs.items;
    series->n_runs = runs.n_ids ? runs.n : 0;
    if (series->n_runs > 1) {
        const struct phema_training_run *without = &runs.items[1];
        candidates_note(
            candidates, "%zu snapshot%s, such as '%s', %s no run; the others are of run '%.64s'",
            without->n, without->n == 1 ? "" : "s", phema_name_show(&shown, without->label),
            without->n == 1 ? "names" : "name", runs.items[0].id);
    }
    return PHEMA_OK;
}
