// SPDX-License-Identifier: Apache-2.0
/* weights_file.c - see weights_file.h. Lines may have spaces in the file's name: the weight is what
 * stands behind the last one. */
#include "weights_file.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "phema/json.h"
#include "phema/mapped_file.h"
#include "phema/strbuf.h"
#include "targets.h"

/* Each has a weight for every snapshot, whatever little of it stands in the file: 10000 of them for
 * 8192 snapshots are 0.6 GiB. */
#define MAX_TARGETS ((size_t)10000)

/* The path of a file that is one snapshot; of several in one file, their keys stand behind it. */
static bool is_path_of(const struct phema_snapshot *snapshot, const char *name, size_t size)
{
    size_t path_size = snapshot->path ? strlen(snapshot->path) : 0;
    if (!path_size || size < path_size || memcmp(snapshot->path, name, path_size) != 0)
        return false;
    if (!snapshot->key)
        return size == path_size;
    return size == path_size + 1 + strlen(snapshot->key) && name[path_size] == ':' &&
           memcmp(name + path_size + 1, snapshot->key, size - path_size - 1) == 0;
}

/* Labels are relative to SNAPSHOTS; "./a" and "SNAPSHOTS/a" are accepted for "a". */
static size_t find_snapshot(const struct phema_series *series, const char *name, size_t size)
{
    if (size > 2 && name[0] == '.' && name[1] == '/') {
        name += 2;
        size -= 2;
    }
    for (size_t k = 0; k < series->n; k++) {
        const struct phema_snapshot *snapshot = &series->snapshots[k];
        if (strlen(snapshot->label) == size && memcmp(snapshot->label, name, size) == 0)
            return k;
        if (is_path_of(snapshot, name, size))
            return k;
    }
    return SIZE_MAX;
}

static enum phema_status resolve(size_t *out, const struct phema_series *series, const char *name,
                                 size_t size, struct phema_error *err)
{
    *out = find_snapshot(series, name, size);
    struct phema_name_buffer shown;
    if (*out == SIZE_MAX)
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "names '%s', which is not among the snapshots of %s",
                          phema_name_escape(&shown, name, size), series->root);
    return PHEMA_OK;
}

static enum phema_status add_targets(struct phema_plan *plan, size_t m, struct phema_error *err)
{
    plan->targets = calloc(m ? m : 1, sizeof(*plan->targets));
    if (!plan->targets)
        return phema_fail_memory(err);
    const struct phema_series *series = plan->series;
    for (size_t j = 0; j < m; j++) {
        struct phema_target *target = &plan->targets[j];
        *target = (struct phema_target){.named_time = series->snapshots[series->n - 1].named_time,
                                        .time = series->snapshots[series->n - 1].time,
                                        .sigma_rel = PHEMA_UNKNOWN,
                                        .gamma = PHEMA_UNKNOWN,
                                        .newest = series->n - 1,
                                        .label_profile_error = PHEMA_UNKNOWN,
                                        .label_predicted_error = PHEMA_UNKNOWN};
        target->solution.weights = calloc(series->n, sizeof(double));
        target->solution.solver = "given";
        plan->m = j + 1;
        if (!target->solution.weights)
            return phema_fail_memory(err);
    }
    return PHEMA_OK;
}

/* ---- "file weight" lines ---- */

static enum phema_status read_line(struct phema_plan *plan, bool *is_seen, const char *line,
                                   size_t size, size_t number, struct phema_error *err)
{
    while (size && isspace((unsigned char)line[size - 1]))
        size--;
    if (size == 0 || line[0] == '#')
        return PHEMA_OK;
    size_t cut = size;
    while (cut && !isspace((unsigned char)line[cut - 1]))
        cut--;
    char text[64] = "";
    if (size - cut < sizeof(text))
        memcpy(text, line + cut, size - cut);
    char *end = NULL;
    double weight = strtod(text, &end);
    size_t name_size = cut;
    while (name_size && isspace((unsigned char)line[name_size - 1]))
        name_size--;
    if (!*text || *end || !isfinite(weight) || !name_size)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "line %zu: expected a file and a number, or the JSON of weights --json",
                          number);
    size_t k = 0;
    enum phema_status status = resolve(&k, plan->series, line, name_size, err);
    if (!status && is_seen[k])
        status =
            phema_fail(err, PHEMA_ERR_INPUTS, "names '%s' twice", plan->series->snapshots[k].label);
    if (status)
        return phema_fail_in(err, status, "line %zu", number);
    is_seen[k] = true;
    plan->targets[0].solution.weights[k] = weight;
    return PHEMA_OK;
}

static enum phema_status read_list(struct phema_plan *plan, struct phema_span text,
                                   struct phema_error *err)
{
    enum phema_status status = add_targets(plan, 1, err);
    bool *is_seen = calloc(plan->series->n, sizeof(*is_seen));
    if (!status && !is_seen)
        status = phema_fail_memory(err);
    const char *data = (const char *)text.data;
    size_t number = 1;
    for (size_t at = 0; !status && at < text.size; number++) {
        const char *newline = memchr(data + at, '\n', text.size - at);
        size_t size = newline ? (size_t)(newline - (data + at)) : text.size - at;
        status = read_line(plan, is_seen, data + at, size, number, err);
        at += size + 1;
    }
    bool is_any = false;
    for (size_t k = 0; is_seen && k < plan->series->n; k++)
        is_any = is_any || is_seen[k];
    free(is_seen);
    if (!status && !is_any)
        status = phema_fail(err, PHEMA_ERR_FILE, "holds no weights");
    return status;
}

/* ---- the JSON of weights --json ---- */

/* What the weights are meant for: a width, or the SPEC of another shape. */
static enum phema_status read_wanted(struct phema_target *target, struct phema_plan *plan,
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
    double *taken = target->solution.weights;
    if (!taken)
        return phema_fail_memory(err);
    if (!weights || phema_json_type(weights) != PHEMA_JSON_ARRAY || phema_json_length(weights) != n)
        return phema_fail(err, PHEMA_ERR_FILE, "expected %zu weights, one for each snapshot", n);
    if (phema_json_get(value, "rules")) /* never an average other than was asked for */
        return phema_fail(err, PHEMA_ERR_FILE,
                          "has rules, which --weights does not follow; take out its \"rules\", or "
                          "solve again with --rule");
    for (size_t i = 0; i < n; i++) {
        double weight = 0;
        if (!phema_json_number(&weight, phema_json_at(weights, i)))
            return phema_fail(err, PHEMA_ERR_FILE, "weight %zu is no number", i + 1);
        if (weight != 0 && indices[i] == SIZE_MAX)
            return phema_fail(err, PHEMA_ERR_INPUTS,
                              "snapshot %zu has a weight, but is not among those of %s", i + 1,
                              series->root);
        if (indices[i] != SIZE_MAX)
            taken[indices[i]] = weight;
    }
    if (phema_json_number(&target->time, phema_json_get(value, "time"))) {
        target->is_time_in_file = true;
        target->named_time = target->time + series->named_ahead;
        for (size_t k = 0; k < series->n; k++)
            if (series->snapshots[k].time == target->time)
                target->named_time = series->snapshots[k].named_time;
        /* between two snapshots, where a name cannot be had from a time */
        (void)phema_json_number(&target->named_time, phema_json_get(value, "named_time"));
    }
    return read_wanted(target, plan, value, err);
}

/* Where each of the file's snapshots stands in the series, SIZE_MAX where it does not. */
static enum phema_status find_snapshots(size_t *indices, const struct phema_series *series,
                                        const struct phema_json *snapshots, size_t n,
                                        struct phema_arena *arena, struct phema_error *err)
{
    bool *is_seen = calloc(series->n, sizeof(*is_seen));
    if (!is_seen)
        return phema_fail_memory(err);
    enum phema_status status = PHEMA_OK;
    bool is_any = false;
    for (size_t i = 0; !status && i < n; i++) {
        const char *file = phema_json_path(arena, phema_json_at(snapshots, i), "file");
        if (!file) {
            status = phema_fail(err, PHEMA_ERR_FILE, "snapshot %zu has no 'file'", i + 1);
            break;
        }
        indices[i] = find_snapshot(series, file, strlen(file));
        if (indices[i] == SIZE_MAX)
            continue;
        is_any = true;
        if (is_seen[indices[i]])
            status = phema_fail(err, PHEMA_ERR_INPUTS, "names '%s' twice",
                                series->snapshots[indices[i]].label);
        is_seen[indices[i]] = true;
    }
    if (!status && !is_any)
        status =
            phema_fail(err, PHEMA_ERR_INPUTS, "names none of the snapshots of %s", series->root);
    free(is_seen);
    return status;
}

static enum phema_status read_json(struct phema_plan *plan, const struct phema_json *root,
                                   struct phema_error *err)
{
    const struct phema_json *snapshots = phema_json_get(root, "snapshots");
    const struct phema_json *targets = phema_json_get(root, "targets");
    if (!snapshots || !targets || phema_json_type(snapshots) != PHEMA_JSON_ARRAY ||
        phema_json_type(targets) != PHEMA_JSON_ARRAY || phema_json_length(targets) == 0)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "expected the JSON of weights --json, with snapshots and targets");
    if (phema_json_length(targets) > MAX_TARGETS)
        return phema_fail(err, PHEMA_ERR_FILE, "has %zu targets, expected at most %zu",
                          phema_json_length(targets), MAX_TARGETS);
    uint64_t version = 1;
    if (phema_json_get(root, "version") &&
        (!phema_json_u64(&version, phema_json_get(root, "version")) || version != 1))
        return phema_fail(err, PHEMA_ERR_FILE, "has a version that is not known; expected 1");
    size_t n = phema_json_length(snapshots);
    size_t *indices = calloc(n ? n : 1, sizeof(*indices));
    if (!indices)
        return phema_fail_memory(err);
    enum phema_status status =
        find_snapshots(indices, plan->series, snapshots, n, &plan->memory, err);
    if (!status)
        status = add_targets(plan, phema_json_length(targets), err);
    for (size_t j = 0; !status && j < plan->m; j++) {
        status = read_target(&plan->targets[j], phema_json_at(targets, j), indices, n, plan, err);
        if (status)
            (void)phema_fail_in(err, status, "target %zu", j + 1);
    }
    free(indices);
    return status;
}

PHEMA_FALLIBLE weights_file_read(struct phema_plan *plan, const char *path, struct phema_error *err)
{
    struct phema_file *file = NULL;
    struct phema_json *root = NULL;
    enum phema_status status = phema_file_open(&file, path, err);
    if (status)
        return phema_fail_in(err, status, "%s", path);
    struct phema_span text = phema_file_span(file);
    size_t first = 0;
    while (first < text.size && isspace(text.data[first]))
        first++;
    if (first < text.size && text.data[first] == '{') {
        status = phema_json_parse(&root, text, err);
        if (!status)
            status = read_json(plan, root, err);
    } else {
        status = read_list(plan, text, err);
    }
    phema_json_free(root);
    phema_file_close(file);
    return status ? phema_fail_in(err, status, "%s", path) : PHEMA_OK;
}
