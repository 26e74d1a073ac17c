// SPDX-License-Identifier: Apache-2.0
/* weights_file.c - weights that are used as given: --weights FILE (JSON or a plain list), and the
 * one of a conversion. */
#include "targets.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "phema/json.h"
#include "phema/mapped_file.h"
#include "phema/setting.h"
#include "phema/strbuf.h"
#include "series_checks.h"
#include "solver_input.h"

/* Each has a weight for every snapshot, however short the file: 10000 targets of 8192 snapshots are
 * 0.6 GiB. */
#define MAX_TARGETS ((size_t)10000)
#define MOST_PIPED  ((size_t)64 << 20)

/* The path of the snapshot's file, followed by ":KEY" where the file holds several snapshots. */
static bool is_path_of(const struct phema_snapshot *snapshot, const char *name, size_t size)
{
    size_t path = snapshot->path ? strlen(snapshot->path) : 0;
    if (!path || !snapshot->key)
        return path && phema_bytes_are(name, size, snapshot->path);
    return size > path && name[path] == ':' && phema_bytes_are(name, path, snapshot->path) &&
           phema_bytes_are(name + path + 1, size - path - 1, snapshot->key);
}

/* The label or path of the snapshot without its ":KEY". */
static bool is_file_of(const struct phema_snapshot *snapshot, const char *name, size_t size)
{
    size_t end = snapshot->key ? strlen(snapshot->key) + 1 : 0, label = strlen(snapshot->label);
    return end && label > end &&
           ((size == label - end && memcmp(snapshot->label, name, size) == 0) ||
            (snapshot->path && phema_bytes_are(name, size, snapshot->path)));
}

static enum phema_status fail_ambiguous(const struct phema_series *series, const char *name,
                                        size_t size, struct phema_error *err)
{
    struct phema_name_buffer shown;
    struct phema_strbuf choices = {0};
    for (size_t k = 0; k < series->n; k++) {
        const struct phema_snapshot *snapshot = &series->snapshots[k];
        if (is_file_of(snapshot, name, size))
            phema_strbuf_printf(&choices, "%s'%s'", choices.size ? ", " : "",
                                phema_name_show(&shown, snapshot->label));
    }
    enum phema_status status =
        choices.is_failed ? phema_fail_memory(err)
                          : phema_fail(err, PHEMA_ERR_INPUTS,
                                       "names '%s', which holds several snapshots; write one of %s",
                                       phema_name_escape(&shown, name, size), choices.data);
    phema_strbuf_clear(&choices);
    return status;
}

/* Labels are relative to SNAPSHOTS; "./a" and "SNAPSHOTS/a" are accepted for "a", and the file of a
 * snapshot where it holds no other. out: SIZE_MAX where no snapshot has the name. */
static enum phema_status find_snapshot(size_t *out, const struct phema_series *series,
                                       const char *name, size_t size, struct phema_error *err)
{
    *out = SIZE_MAX;
    if (size > 2 && name[0] == '.' && name[1] == '/') {
        name += 2;
        size -= 2;
    }
    size_t n_in_file = 0;
    for (size_t k = 0; k < series->n; k++) {
        const struct phema_snapshot *snapshot = &series->snapshots[k];
        if (phema_bytes_are(name, size, snapshot->label) || is_path_of(snapshot, name, size)) {
            *out = k;
            return PHEMA_OK;
        }
        if (is_file_of(snapshot, name, size)) {
            *out = k;
            n_in_file++;
        }
    }
    return n_in_file > 1 ? fail_ambiguous(series, name, size, err) : PHEMA_OK;
}

static enum phema_status add_targets(struct phema_plan *plan, size_t m, struct phema_error *err)
{
    const struct phema_series *series = plan->series;
    const struct phema_snapshot *last = &series->snapshots[series->n - 1];
    plan->targets = phema_arena_array(&plan->memory, m, sizeof(*plan->targets));
    for (size_t j = 0; plan->targets && j < m; j++)
        plan->targets[j] = (struct phema_target){
            .named_time = last->named_time,
            .time = last->time,
            .sigma_rel = PHEMA_UNKNOWN,
            .gamma = PHEMA_UNKNOWN,
            .newest = series->n - 1,
            .r_squared = PHEMA_UNKNOWN,
            .label_profile_error = PHEMA_UNKNOWN,
            .label_predicted_error = PHEMA_UNKNOWN,
            .solution = {.weights = phema_arena_array(&plan->memory, series->n, sizeof(double)),
                         .solver = "given"}};
    if (plan->memory.is_failed)
        return phema_fail_memory(err);
    plan->m = m;
    plan->metric = "given";
    plan->has_given_weights = true;
    return PHEMA_OK;
}

/* ---- "file weight" lines: the file may contain spaces ---- */

static enum phema_status read_line(struct phema_plan *plan, bool *is_seen, const char *line,
                                   size_t size, struct phema_error *err)
{
    const struct phema_series *series = plan->series;
    while (size && isspace((unsigned char)line[size - 1]))
        size--;
    if (size == 0 || line[0] == '#')
        return PHEMA_OK;
    size_t start = size;
    while (start && !isspace((unsigned char)line[start - 1]))
        start--;
    char text[64] = "";
    if (size - start < sizeof(text))
        memcpy(text, line + start, size - start);
    char *end = NULL;
    double weight = strtod(text, &end);
    size_t name_size = start;
    while (name_size && isspace((unsigned char)line[name_size - 1]))
        name_size--;
    if (!*text || *end || !isfinite(weight) || !name_size)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "expected a file and a number, or the JSON of weights %s",
                          phema_setting_name(PHEMA_SET_JSON));
    size_t k = 0;
    struct phema_name_buffer shown;
    enum phema_status status = find_snapshot(&k, series, line, name_size, err);
    if (status)
        return status;
    if (k == SIZE_MAX)
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "names '%s', which is not among the snapshots of %s",
                          phema_name_escape(&shown, line, name_size), series->root);
    if (is_seen[k])
        return phema_fail(err, PHEMA_ERR_INPUTS, "names '%s' twice", series->snapshots[k].label);
    is_seen[k] = true;
    plan->targets[0].solution.weights[k] = weight;
    return PHEMA_OK;
}

static enum phema_status read_list(struct phema_plan *plan, struct phema_span text,
                                   struct phema_error *err)
{
    bool *is_seen = phema_arena_array(&plan->memory, plan->series->n, sizeof(*is_seen));
    enum phema_status status = is_seen ? add_targets(plan, 1, err) : phema_fail_memory(err);
    if (status)
        return status;
    for (size_t number = 1; text.size; number++) {
        struct phema_span line = phema_span_split(&text, '\n');
        status = read_line(plan, is_seen, (const char *)line.data, line.size, err);
        if (status)
            return phema_fail_in(err, status, "line %zu", number);
    }
    return memchr(is_seen, true, plan->series->n * sizeof(*is_seen))
               ? PHEMA_OK
               : phema_fail(err, PHEMA_ERR_FILE, "holds no weights");
}

/* ---- The JSON of weights --json ---- */

/* The profile of a target: a width, or the SPEC of another shape. */
static enum phema_status read_profile(struct phema_target *target, struct phema_plan *plan,
                                      const struct phema_json *value, struct phema_error *err)
{
    const char *spec = phema_json_path(&plan->memory, value, "spec");
    double sigma_rel = 0;
    enum phema_status status = PHEMA_OK;
    if (phema_json_number(&sigma_rel, phema_json_get(value, "sigma_rel")))
        status = target_resolve_width(target, plan, sigma_rel, err);
    else if (spec)
        status = target_resolve_spec(target, plan, spec, err);
    target->is_width_in_file = target->kind != NULL;
    return status;
}

static enum phema_status read_target(struct phema_target *target, const struct phema_json *value,
                                     const size_t *indices, size_t n, struct phema_plan *plan,
                                     struct phema_error *err)
{
    const struct phema_series *series = plan->series;
    const struct phema_json *weights = phema_json_get(value, "weights");
    if (!weights || phema_json_type(weights) != PHEMA_JSON_ARRAY || phema_json_length(weights) != n)
        return phema_fail(err, PHEMA_ERR_FILE, "expected %zu weights, one for each snapshot", n);
    if (phema_json_get(value,
                       "rules")) /* following one part of the file would give another average */
        return phema_fail(err, PHEMA_ERR_FILE,
                          "has rules, which %s does not follow; take out its \"rules\", or make "
                          "the average with synth %s",
                          phema_setting_name(PHEMA_SET_WEIGHTS),
                          phema_setting_name(PHEMA_SET_RULE));
    for (size_t i = 0; i < n; i++) {
        double weight = 0;
        if (!phema_json_number(&weight, phema_json_at(weights, i)))
            return phema_fail(err, PHEMA_ERR_FILE, "weight %zu: expected a number", i + 1);
        if (weight != 0 && indices[i] == SIZE_MAX)
            return phema_fail(err, PHEMA_ERR_INPUTS,
                              "snapshot %zu has a weight, but is not among those of %s", i + 1,
                              series->root);
        if (indices[i] != SIZE_MAX)
            target->solution.weights[indices[i]] = weight;
    }
    if (phema_json_number(&target->time, phema_json_get(value, "time"))) {
        target->is_time_in_file = true;
        target->named_time = target->time + series->named_ahead - series->time_offset;
        for (size_t k = 0; k < series->n; k++)
            if (series->snapshots[k].time == target->time)
                target->named_time = series->snapshots[k].named_time;
        /* between two snapshots the name does not follow from the time */
        (void)phema_json_number(&target->named_time, phema_json_get(value, "named_time"));
    }
    return read_profile(target, plan, value, err);
}

/* Notes the first snapshot that has another time or profile here than in the file: the weights would make
 * another average of it. */
static enum phema_status note_label(struct phema_plan *plan, const struct phema_snapshot *snapshot,
                                    const struct phema_json *value, struct phema_error *err)
{
    struct phema_name_buffer here, there, label, other;
    const char *spec = phema_json_path(&plan->memory, value, "spec");
    double time = snapshot->time;
    (void)phema_json_number(&time, phema_json_get(value, "time"));
    bool has_other_spec = spec && snapshot->spec && strcmp(spec, snapshot->spec) != 0;
    if (plan->other_labels || (time == snapshot->time && !has_other_spec))
        return PHEMA_OK;
    plan->other_labels = phema_arena_printf(
        &plan->memory,
        "the weights are for other labels: in their file '%s' has the time %s%s%s, and here %s%s%s",
        phema_name_show(&label, snapshot->label), phema_number_format(&there, time),
        has_other_spec ? " and " : "", has_other_spec ? phema_name_show(&other, spec) : "",
        phema_number_format(&here, snapshot->time), has_other_spec ? " and " : "",
        has_other_spec ? snapshot->spec : "");
    return plan->other_labels ? PHEMA_OK : phema_fail_memory(err);
}

/* indices: of each snapshot of the file in the series; SIZE_MAX: absent */
static enum phema_status find_snapshots(size_t *indices, bool *is_seen,
                                        const struct phema_json *snapshots, struct phema_plan *plan,
                                        struct phema_error *err)
{
    const struct phema_series *series = plan->series;
    bool is_any = false;
    for (size_t i = 0; i < phema_json_length(snapshots); i++) {
        const char *file = phema_json_path(&plan->memory, phema_json_at(snapshots, i), "file");
        if (!file)
            return phema_fail(err, PHEMA_ERR_FILE, "snapshot %zu has no 'file'", i + 1);
        enum phema_status status = find_snapshot(&indices[i], series, file, strlen(file), err);
        if (status)
            return status;
        if (indices[i] == SIZE_MAX)
            continue;
        if (is_seen[indices[i]])
            return phema_fail(err, PHEMA_ERR_INPUTS, "names '%s' twice",
                              series->snapshots[indices[i]].label);
        is_any = is_seen[indices[i]] = true;
        status = note_label(plan, &series->snapshots[indices[i]], phema_json_at(snapshots, i), err);
        if (status)
            return status;
    }
    if (!is_any)
        return phema_fail(err, PHEMA_ERR_INPUTS, "names none of the snapshots of %s", series->root);
    return PHEMA_OK;
}

static enum phema_status read_json(struct phema_plan *plan, const struct phema_json *root,
                                   struct phema_error *err)
{
    const struct phema_json *snapshots = phema_json_get(root, "snapshots");
    const struct phema_json *targets = phema_json_get(root, "targets");
    if (!snapshots || !targets || phema_json_type(snapshots) != PHEMA_JSON_ARRAY ||
        phema_json_type(targets) != PHEMA_JSON_ARRAY || phema_json_length(targets) == 0)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "expected the JSON of weights %s, with snapshots and targets",
                          phema_setting_name(PHEMA_SET_JSON));
    if (phema_json_length(targets) > MAX_TARGETS)
        return phema_fail(err, PHEMA_ERR_FILE, "has %zu targets, expected at most %zu",
                          phema_json_length(targets), MAX_TARGETS);
    uint64_t version = 1;
    if (phema_json_get(root, "version") &&
        (!phema_json_u64(&version, phema_json_get(root, "version")) || version != 1))
        return phema_fail(err, PHEMA_ERR_FILE, "has a version that is not known; expected 1");
    size_t n = phema_json_length(snapshots);
    size_t *indices = phema_arena_array(&plan->memory, n, sizeof(*indices));
    bool *is_seen = phema_arena_array(&plan->memory, plan->series->n, sizeof(*is_seen));
    if (!indices || !is_seen)
        return phema_fail_memory(err);
    enum phema_status status = find_snapshots(indices, is_seen, snapshots, plan, err);
    if (!status)
        status = add_targets(plan, phema_json_length(targets), err);
    for (size_t j = 0; !status && j < plan->m; j++) {
        status = read_target(&plan->targets[j], phema_json_at(targets, j), indices, n, plan, err);
        if (status)
            return phema_fail_in(err, status, "target %zu", j + 1);
    }
    return status;
}

static enum phema_status read_text(struct phema_plan *plan, struct phema_span text,
                                   struct phema_error *err)
{
    size_t first = 0;
    while (first < text.size && isspace(text.data[first]))
        first++;
    if (first == text.size || text.data[first] != '{')
        return read_list(plan, text, err);
    struct phema_json *root = NULL;
    enum phema_status status = phema_json_parse(&root, text, err);
    if (!status)
        status = read_json(plan, root, err);
    phema_json_free(root);
    return status;
}

/* Appends what a pipe, as of --weights <(command), holds until its writers have closed it. Without a
 * writer it is empty: nothing waits for one. */
static enum phema_status drain_pipe(struct phema_strbuf *text, const char *path,
                                    struct phema_error *err)
{
    char part[4096];
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0)
        return phema_fail_errno(err, PHEMA_ERR_FILE, "cannot be opened", errno);
    enum phema_status status = PHEMA_OK;
    for (ssize_t n = 1; n != 0 && !status;) {
        n = read(descriptor, part, sizeof(part));
        if (n > 0) {
            phema_strbuf_append(text, part, (size_t)n);
        } else if (n < 0 && errno == EAGAIN) {
            struct pollfd waiting = {.fd = descriptor, .events = POLLIN};
            (void)poll(&waiting, 1, -1);
        } else if (n < 0 && errno != EINTR) {
            status = phema_fail_errno(err, PHEMA_ERR_FILE, "cannot be read", errno);
        }
        if (!status && text->size > MOST_PIPED)
            status = phema_fail(err, PHEMA_ERR_FILE, "a pipe may hold at most 64 MiB of weights");
    }
    (void)close(descriptor);
    return status ? status : phema_strbuf_check(text, err);
}

PHEMA_FALLIBLE weights_file_read(struct phema_plan *plan, const char *path, struct phema_error *err)
{
    struct phema_strbuf piped = {0};
    struct phema_file *file = NULL;
    struct stat st;
    bool is_pipe = stat(path, &st) == 0 && S_ISFIFO(st.st_mode);
    enum phema_status status =
        is_pipe ? drain_pipe(&piped, path, err) : phema_file_open(&file, path, err);
    const char *text = piped.data ? piped.data : "";
    if (!status)
        status = read_text(plan,
                           is_pipe ? (struct phema_span){(const uint8_t *)text, piped.size}
                                   : phema_file_span(file),
                           err);
    phema_file_close(file);
    phema_strbuf_clear(&piped);
    return status ? phema_fail_in(err, status, "%s", path) : PHEMA_OK;
}

/* ---- Use ---- */

/* Errors are known where the target and all profiles are. */
static enum phema_status evaluate_weights(const struct phema_plan *plan,
                                          struct phema_target *target, struct phema_error *err)
{
    const struct phema_series *series = plan->series;
    struct phema_solution *solution = &target->solution;
    double squares = 0;
    for (size_t k = 0; k < series->n; k++) {
        solution->sum += solution->weights[k];
        solution->norm1 += fabs(solution->weights[k]);
        squares += solution->weights[k] * solution->weights[k];
    }
    solution->norm2 = sqrt(squares);
    solution->profile_error = solution->walk_error = solution->condition = PHEMA_UNKNOWN;
    solution->predicted = unknown_prediction;
    if (!target->mix.n_parts || !series->has_profiles)
        return PHEMA_OK;
    struct solver_input input;
    enum phema_status status =
        solver_input_build(&input, series, plan->motion, series->n, false, target, 1, err);
    if (!status)
        status = phema_weights_evaluate(solution, &input.problem, err);
    solver_input_clear(&input);
    return status;
}

/* --sigma-rel, --gamma, --profile and --at complete a plain list. */
static enum phema_status complete_target(struct phema_plan *plan,
                                         const struct phema_plan_options *options,
                                         struct phema_error *err)
{
    struct phema_target *target = &plan->targets[0];
    size_t n_wanted = targets_per_time(options);
    bool has_own = plan->m > 1 || target->kind;
    if (n_wanted > 0 && (has_own || n_wanted > 1))
        return phema_fail(
            err, PHEMA_ERR_USAGE, "%s: %s; %s says what a plain list of weights is meant for",
            options->weights_file, has_own ? "has targets of its own" : "is one target",
            phema_setting_name(PHEMA_SET_SIGMA_REL));
    if (options->n_ats > 1)
        return phema_fail_setting(err, PHEMA_ERR_USAGE, PHEMA_SET_AT,
                                  "one time goes with given weights");
    if (options->n_ats && target->is_time_in_file)
        return phema_fail_setting(err, PHEMA_ERR_USAGE, PHEMA_SET_AT,
                                  "the file of weights has times of its own");
    if (options->n_ats) {
        target->named_time = options->ats[0];
        target->time = phema_series_clock(plan->series, options->ats[0]);
    }
    return n_wanted > 0 ? target_resolve(target, plan, options, err) : PHEMA_OK;
}

PHEMA_FALLIBLE weights_file_use(struct phema_plan *plan, const struct phema_plan_options *options,
                                struct phema_error *err)
{
    const char *what =
        phema_arena_printf(&plan->memory, "the file of %s", phema_setting_name(PHEMA_SET_WEIGHTS));
    if (!what)
        return phema_fail_memory(err);
    enum phema_status status =
        phema_claims_add_input(plan->series->claims, options->weights_file, what, err);
    if (status)
        return status;
    status = weights_file_read(plan, options->weights_file, err);
    if (status)
        return status;
    status = complete_target(plan, options, err);
    if (status)
        return status;
    bool has_target = false;
    for (size_t j = 0; j < plan->m; j++)
        has_target |= plan->targets[j].kind != NULL;
    if (has_target) { /* the motion is for the predicted errors alone */
        status = motion_find(plan, options, err);
        if (status)
            return status;
    }
    for (size_t j = 0; j < plan->m; j++) {
        struct phema_target *target = &plan->targets[j];
        status = target_check_time(target, plan->series, err);
        if (status)
            return status;
        target->newest = solver_input_count_until(plan->series, target->time) - 1;
        status = evaluate_weights(plan, target, err);
        if (status)
            return status;
    }
    return PHEMA_OK;
}

PHEMA_FALLIBLE weights_use_one(struct phema_plan *plan, struct phema_error *err)
{
    enum phema_status status = add_targets(plan, 1, err);
    if (status)
        return status;
    plan->targets->solution.weights[0] = 1;
    plan->targets->named_time = plan->targets->time = PHEMA_UNKNOWN;
    return evaluate_weights(plan, plan->targets, err);
}
