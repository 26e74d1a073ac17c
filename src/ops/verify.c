// SPDX-License-Identifier: Apache-2.0
/* verify.c - recomputes an output from its provenance and compares them. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "listener.h"
#include "phema/path.h"
#include "phema/setting.h"
#include "team_runs.h"

/* Of a team the first process makes the plan. */
static bool is_first(const struct phema_verifying *verifying)
{
    return !verifying->options->team || verifying->options->team->rank == 0;
}

/* ---- The run again ---- */

static bool exists(const char *snapshots)
{
    return access(snapshots + (*snapshots == '@'), F_OK) == 0;
}

/* Looks for an operand as in the command, then relative to the directory of the output. */
static enum phema_status find_operand(const char **snapshots, struct phema_arena *arena,
                                      const char *out, struct phema_error *err)
{
    const char *name = *snapshots + (**snapshots == '@');
    if (exists(*snapshots))
        return PHEMA_OK;
    size_t size = phema_path_trimmed_size(out); /* "model/" as well */
    while (size && out[size - 1] != '/')
        size--;
    char *moved =
        phema_arena_printf(arena, "%s%.*s%s", **snapshots == '@' ? "@" : "", (int)size, out, name);
    if (!moved)
        return phema_fail_memory(err);
    if (*name == '/' || !exists(moved))
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "%s: was made of the snapshots in '%s', which are neither there nor "
                          "beside it; %s names them",
                          out, *snapshots, phema_setting_name(PHEMA_SET_MOVED_SNAPSHOTS));
    *snapshots = moved;
    return PHEMA_OK;
}

static enum phema_status find_snapshots(struct phema_verifying *verifying, struct phema_error *err)
{
    const struct phema_verify_options *options = verifying->options;
    struct phema_series_options *series = &verifying->request.plan.series;
    size_t n = series->n_several;
    if (options->snapshots) {
        series->snapshots = options->snapshots;
        series->n_several = 0;
        return PHEMA_OK;
    }
    if (!n)
        return find_operand(&series->snapshots, &verifying->memory, options->out, err);
    const char **several = phema_arena_array(&verifying->memory, n, sizeof(*several));
    enum phema_status status = several ? PHEMA_OK : phema_fail_memory(err);
    for (size_t i = 0; i < n && !status; i++) {
        several[i] = series->several[i];
        status = find_operand(&several[i], &verifying->memory, options->out, err);
    }
    if (status)
        return status;
    series->several = several;
    series->snapshots = several[0];
    return PHEMA_OK;
}

/* True when a message begins with the path of SNAPSHOTS or of a file in it. */
static bool is_about(const char *message, const char *snapshots)
{
    const char *path = snapshots + (*snapshots == '@');
    size_t size = phema_path_trimmed_size(path);
    return strncmp(message, path, size) == 0 && (message[size] == ':' || message[size] == '/');
}

/* Whether the text is the path, or a SPEC that ends with it ("table:FILE"). */
static bool ends_with_path(const char *text, const char *path)
{
    size_t size = strlen(text), path_size = strlen(path);
    if (size < path_size || strcmp(text + size - path_size, path) != 0)
        return false;
    return size == path_size || strchr(":=", text[size - path_size - 1]) != NULL;
}

/* Whether the recorded command itself names a file that is not there. */
static bool is_in_command(const struct phema_request *request, const char *path)
{
    const struct phema_plan_options *plan = &request->plan;
    const char *const texts[] = {plan->weights_file, plan->schedule};
    bool is_named = false;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        is_named |= texts[i] && ends_with_path(texts[i], path);
    for (size_t i = 0; i < plan->n_profiles; i++)
        is_named |= ends_with_path(plan->profiles[i], path);
    for (size_t i = 0; i < plan->series.n_input_profiles; i++)
        is_named |= ends_with_path(plan->series.input_profiles[i], path);
    return *path && is_named;
}

/* Finds the first path in a message; line numbers are skipped. One that is not there may be a word
 * of a file, a manifest for example, unless the command has it. */
static void find_place(struct phema_name_buffer *place, const char *message,
                       const struct phema_request *request)
{
    for (int i = 0; i < 3; i++) { /* "--profile: 'table:FILE': FILE: ..." */
        const char *colon = strstr(message, ": ");
        char *path = colon ? strndup(message, (size_t)(colon - message)) : NULL;
        struct stat st;
        bool is_path = path && (lstat(path, &st) == 0 || is_in_command(request, path));
        if (is_path)
            (void)phema_name_show(place, path);
        free(path);
        if (is_path || !colon)
            return;
        message = colon + 2;
    }
}

/* A provenance may come from anyone and may name any file: a list, a manifest, weights, a table.
 * Error messages quote such files where they are malformed. So only the path is shown when the
 * recorded command fails. Snapshots that the user has named are quoted. */
static enum phema_status hide_contents(const struct phema_verifying *verifying,
                                       enum phema_status status, struct phema_error *err)
{
    const struct phema_verify_options *options = verifying->options;
    static const char *const kinds[] = {
        [PHEMA_NO] = "the snapshots have other tensors",
        [PHEMA_ERR_USAGE] = "is not accepted by this version",
        [PHEMA_ERR_FILE] = "cannot be read, or is not of the kind that the command takes",
        [PHEMA_ERR_INPUTS] = "does not fit the command, or the other snapshots",
        [PHEMA_ERR_TARGET] = "the target cannot be reached from the snapshots",
    };
    bool is_of_user = strcmp(err->about, phema_setting_option(PHEMA_SET_THREADS)) == 0 ||
                      (options->snapshots && is_about(err->message, options->snapshots));
    if (is_of_user || (size_t)status >= ARRAY_LEN(kinds) || !kinds[status])
        return status;
    struct phema_name_buffer place = {"what its command names"};
    find_place(&place, err->message, &verifying->request);
    return phema_fail(err, status,
                      "%s: cannot be made again: %s: %s; the contents of files that a provenance "
                      "names are not shown, but with %s those of SNAPSHOTS",
                      options->out, place.text, kinds[status],
                      phema_setting_name(PHEMA_SET_MOVED_SNAPSHOTS));
}

static enum phema_status read_record(struct phema_verifying *verifying, struct phema_error *err)
{
    const struct phema_verify_options *options = verifying->options;
    struct phema_request *request = &verifying->request;
    enum phema_status status =
        phema_provenance_open(&verifying->recorded, options->out, &options->checkpoint, err);
    if (status)
        return status;
    status = options->commands->read(options->commands->context, &verifying->command, request,
                                     verifying->recorded->command, options->out, err);
    if (status == PHEMA_ERR_FILE || status == PHEMA_ERR_RESOURCE)
        return phema_fail_in(err, status, "%s: provenance", options->out);
    if (status)
        return hide_contents(verifying, status, err);
    const char *format = phema_checkpoint_format(verifying->recorded->checkpoint);
    if (request->outputs.shard_bytes && strcmp(format, "sharded") != 0)
        return phema_fail(
            err, PHEMA_ERR_FILE,
            "%s: is one shard of an output, which is compared as a whole, by the index "
            "beside it",
            options->out);
    request->plan.checks = PHEMA_CHECKS_WARN;
    request->plan.series.checkpoint = options->checkpoint;
    request->synth.n_threads = options->synth.n_threads;
    request->synth.max_ram_bytes = options->synth.max_ram_bytes;
    request->synth.io = options->synth.io;
    request->synth.io_depth = options->synth.io_depth;
    request->synth.sample = options->synth.sample;
    /* a few tiles do not cover all the data */
    request->outputs.hashes_inputs =
        verifying->recorded->inputs[0].has_data_sum && !options->synth.sample;
    phema_request_set_accumulator(request, verifying->recorded->accumulator);
    return is_first(verifying) ? find_snapshots(verifying, err) : PHEMA_OK;
}

/* Whether the directory of the snapshots lacks a file of the provenance. Labels may end in ":SET". */
static bool is_absent(const char *directory, const char *label)
{
    struct phema_strbuf path = {0};
    phema_strbuf_printf(&path, "%s/%s", directory, label);
    bool is_there = path.is_failed || phema_path_exists(path.data);
    char *set = is_there ? NULL : strrchr(path.data, ':');
    if (set) {
        *set = '\0';
        is_there = phema_path_exists(path.data);
    }
    phema_strbuf_clear(&path);
    return !is_there;
}

/* Where the newest snapshots are gone, the target is later than all that are left. */
static enum phema_status fail_target(const struct phema_verifying *verifying,
                                     enum phema_status status, struct phema_error *err)
{
    const struct phema_provenance *recorded = verifying->recorded;
    const char *directory = verifying->request.plan.series.snapshots;
    size_t n = 0, first = 0;
    if (status == PHEMA_ERR_TARGET && phema_path_is_directory(directory))
        for (size_t i = recorded->n_inputs; i-- > 0;)
            if (is_absent(directory, recorded->inputs[i].file)) {
                first = i;
                n++;
            }
    struct phema_name_buffer shown;
    if (!n)
        return hide_contents(verifying, status, err);
    const char *name = recorded->inputs[first].file;
    return phema_fail(err, PHEMA_ERR_INPUTS,
                      "%s: %zu of its %zu snapshots %s not there, such as '%s'",
                      verifying->options->out, n, recorded->n_inputs, n == 1 ? "is" : "are",
                      phema_name_show(&shown, name));
}

/* Weights that differ are only reported: the comparison continues with those that are recorded. */
static enum phema_status check_weights(struct phema_verifying *verifying, size_t target,
                                       const struct phema_listener *listener,
                                       struct phema_error *err)
{
    struct phema_error why = {0};
    enum phema_status status =
        phema_provenance_check_weights(verifying->recorded, verifying->prepared.plan, target, &why);
    verifying->are_weights_same = !status;
    if (status)
        listener_warn(listener,
                      "%s: %s from newly solved ones; using those in the provenance, of %s",
                      verifying->options->out, why.message, verifying->recorded->program);
    return phema_provenance_apply(verifying->recorded, verifying->prepared.plan, target, err);
}

static enum phema_status make_plan(struct phema_verifying *verifying,
                                   const struct phema_listener *listener,
                                   const struct phema_listener *replay, struct phema_error *err)
{
    struct phema_prepared *prepared = &verifying->prepared;
    const struct phema_provenance *recorded = verifying->recorded;
    enum phema_status status = phema_prepare_plan(prepared, &verifying->request, NULL, replay, err);
    if (status)
        return fail_target(verifying, status, err);
    size_t target = phema_provenance_find_target(recorded, prepared->plan);
    if (target == SIZE_MAX)
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "%s: its provenance has another target than its command",
                          verifying->options->out);
    if (recorded->inputs[0].digest)
        status = phema_series_identify(prepared->plan->series, err);
    if (status)
        return hide_contents(verifying, status, err);
    status = phema_provenance_check_inputs(recorded, prepared->plan, target, err);
    if (!status)
        status = phema_provenance_check_labels(recorded, err);
    if (!status)
        status = phema_provenance_check_rows(recorded, prepared->plan, err);
    if (status)
        return phema_fail_in(err, status, "%s", verifying->options->out);
    if (!recorded->inputs[0].digest)
        listener_warn(listener, "%s: its provenance does not say what its inputs were like",
                      verifying->options->out);
    status = check_weights(verifying, target, listener, err);
    if (status)
        return status;
    status = phema_prepare_outputs(prepared, &verifying->request, verifying->request.outputs.out,
                                   replay, err);
    return status ? hide_contents(verifying, status, err) : PHEMA_OK;
}

/* ---- The comparison ---- */

static enum phema_status find_changed(struct phema_verifying *verifying, struct phema_error *err)
{
    const struct phema_verification *found = &verifying->found;
    const struct phema_provenance *recorded = verifying->recorded;
    if (!found->sums || found->n_sums != recorded->n_inputs)
        return PHEMA_OK;
    verifying->changed = calloc(recorded->n_inputs, sizeof(*verifying->changed));
    if (!verifying->changed)
        return phema_fail_memory(err);
    verifying->n_changed = phema_provenance_find_changed(verifying->changed, recorded, found->sums);
    return PHEMA_OK;
}

/* The same message as when a snapshot is found changed on opening. */
static enum phema_status fail_changed(const struct phema_verifying *verifying,
                                      struct phema_error *err)
{
    const char *first = verifying->recorded->inputs[verifying->changed[0]].file;
    if (verifying->n_changed == 1)
        return phema_fail(
            err, PHEMA_ERR_INPUTS,
            "%s: snapshot '%s' has changed since this output was made: other tensor data",
            verifying->options->out, first);
    return phema_fail(
        err, PHEMA_ERR_INPUTS,
        "%s: %zu snapshots have changed since this output was made, '%s' is the first: "
        "other tensor data",
        verifying->options->out, verifying->n_changed, first);
}

/* One process compares all. */
static enum phema_status compare(struct phema_verifying *verifying,
                                 const struct phema_listener *listener, struct phema_error *err)
{
    struct phema_prepared *prepared = &verifying->prepared;
    listener_begin(listener, PHEMA_WRITES_NOTHING, &prepared->options);
    enum phema_status status =
        phema_synth_verify(&verifying->found, prepared->plan, &prepared->outputs,
                           &prepared->options, verifying->recorded->checkpoint, err);
    listener_end(listener, &prepared->options);
    return status;
}

bool phema_verification_is_equal(const struct phema_verification *found)
{
    return found->n == 0 && found->n_other_bytes == 0;
}

static enum phema_status judge(struct phema_verifying *verifying, enum phema_status status,
                               struct phema_error *err)
{
    const struct phema_verify_options *options = verifying->options;
    if (status && !verifying->recorded->inputs[0].digest && !options->snapshots)
        return hide_contents(verifying, status, err); /* their contents must not be shown */
    if (status)
        return status == PHEMA_NO ? phema_fail_in(err, status, "%s", options->out) : status;
    status = find_changed(verifying, err);
    if (status)
        return status;
    verifying->is_compared = true;
    if (verifying->n_changed)
        return fail_changed(verifying, err);
    return phema_verification_is_equal(&verifying->found) ? PHEMA_OK : PHEMA_NO;
}

static enum phema_status prepare(struct phema_verifying *verifying,
                                 const struct phema_listener *listener,
                                 const struct phema_listener *replay, struct phema_error *err)
{
    enum phema_status status = read_record(verifying, err);
    if (status)
        return status;
    if (is_first(verifying))
        return make_plan(verifying, listener, replay, err);
    verifying->prepared.options = verifying->request.synth;
    return PHEMA_OK;
}

/* The others open the output as rank 0 does, and take its plan. */
static enum phema_status verify_in_team(struct phema_verifying *verifying,
                                        const struct phema_team *team,
                                        const struct phema_listener *listener,
                                        const struct phema_listener *replay,
                                        struct phema_error *err)
{
    struct phema_prepared *prepared = &verifying->prepared;
    enum phema_status own = prepare(verifying, listener, replay, err);
    enum phema_status status = team_share_plan(prepared, team, own, err);
    if (status)
        return status;
    status = team->agree(team->context, own, err);
    if (status)
        return status;
    if (team_may_share_verify(prepared, verifying->recorded->checkpoint))
        status = team_verify(&verifying->found, team, listener, prepared,
                             verifying->recorded->checkpoint, err);
    else if (is_first(verifying))
        status = compare(verifying, listener, err);
    if (is_first(verifying))
        status = judge(verifying, status, err);
    return phema_team_share_status(team, status, err);
}

PHEMA_FALLIBLE phema_verify(struct phema_verifying *out, const struct phema_verify_options *options,
                            const struct phema_listener *listener,
                            const struct phema_listener *replay, struct phema_error *err)
{
    const struct phema_team *team = phema_team_of(options->team);
    *out = (struct phema_verifying){.options = options};
    if (team)
        return verify_in_team(out, team, listener, replay, err);
    enum phema_status status = prepare(out, listener, replay, err);
    return status ? status : judge(out, compare(out, listener, err), err);
}

void phema_verifying_clear(struct phema_verifying *verifying)
{
    phema_verification_clear(&verifying->found);
    free(verifying->changed);
    phema_prepared_clear(&verifying->prepared);
    if (verifying->command)
        verifying->options->commands->release(verifying->command);
    phema_provenance_close(verifying->recorded);
    phema_arena_clear(&verifying->memory);
}
