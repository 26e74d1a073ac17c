// SPDX-License-Identifier: Apache-2.0
/* provenance_read.c - Parse the provenance of an output and compare it with a plan. Its contents
 * are unchecked input, and no file that it names is opened here. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "outputs.h"
#include "phema/json.h"
#include "phema/number.h"
#include "phema/setting.h"

/* A provenance has one line for each snapshot; larger files are no provenance. */
#define MAX_TEXT ((size_t)64 << 20)

/* ---- Reading ---- */

static const char *copy_string(struct phema_provenance *provenance, const struct phema_json *value)
{
    size_t size = 0;
    const char *text = phema_json_string(value, &size);
    if (!text || strlen(text) != size) /* a NUL inside */
        return NULL;
    return phema_arena_copy(&provenance->memory, text, size);
}

static double number_or_nan(const struct phema_json *value)
{
    double number = 0;
    return phema_json_number(&number, value) ? number : PHEMA_UNKNOWN;
}

static bool is_finite_number(double *out, const struct phema_json *value)
{
    return phema_json_number(out, value) && isfinite(*out);
}

static bool read_sum(struct phema_hash_sum *sum, const struct phema_json *value)
{
    size_t size = 0;
    const char *text = phema_json_string(value, &size);
    return text && strlen(text) == size && phema_hash_sum_read(sum, text);
}

static enum phema_status read_input(struct phema_provenance *provenance, size_t k,
                                    const struct phema_json *value, struct phema_error *err)
{
    struct phema_provenance_input *input = &provenance->inputs[k];
    input->file = phema_json_path(&provenance->memory, value, "file");
    input->digest = copy_string(provenance, phema_json_get(value, "xxh3"));
    bool is_whole =
        input->file && is_finite_number(&input->weight, phema_json_get(value, "weight")) &&
        (!input->digest || phema_json_u64(&input->bytes, phema_json_get(value, "bytes")));
    if (!is_whole)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "snapshot %zu: expected a file, its weight, its bytes and its xxh3",
                          k + 1);
    input->time = number_or_nan(phema_json_get(value, "time"));
    input->sigma_rel = number_or_nan(phema_json_get(value, "sigma_rel"));
    input->gamma = number_or_nan(phema_json_get(value, "gamma"));
    input->spec = phema_json_path(&provenance->memory, value, "profile");
    if (!phema_json_u64(&input->update_every, phema_json_get(value, "update_every")))
        input->update_every = 1;
    if (!is_finite_number(&input->reset, phema_json_get(value, "reset_at")))
        input->reset = 0;
    if (!is_finite_number(&input->origin, phema_json_get(value, "counted_from")))
        input->origin = 0;
    const struct phema_json *data = phema_json_get(value, PROVENANCE_DATA_DIGEST);
    input->has_data_sum = data != NULL;
    if ((data && !read_sum(&input->data_sum, data)) ||
        input->has_data_sum != provenance->inputs[0].has_data_sum)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "snapshot %zu: expected 32 hexadecimal digits as its %s", k + 1,
                          PROVENANCE_DATA_DIGEST);
    return PHEMA_OK;
}

static enum phema_status read_inputs(struct phema_provenance *provenance,
                                     const struct phema_json *list, struct phema_error *err)
{
    size_t n = phema_json_length(list);
    if (!list || phema_json_type(list) != PHEMA_JSON_ARRAY || n == 0)
        return phema_fail(err, PHEMA_ERR_FILE, "expected a list of snapshots");
    provenance->inputs = phema_arena_array(&provenance->memory, n, sizeof(*provenance->inputs));
    if (!provenance->inputs)
        return phema_fail_memory(err);
    provenance->n_inputs = n;
    enum phema_status status = PHEMA_OK;
    for (size_t k = 0; k < n && !status; k++)
        status = read_input(provenance, k, phema_json_at(list, k), err);
    return status;
}

static enum phema_status read_rule(struct phema_provenance *provenance, size_t r,
                                   const struct phema_json *value, struct phema_error *err)
{
    struct phema_provenance_rule *rule = &provenance->rules[r];
    const struct phema_json *weights = phema_json_get(value, "weights");
    rule->pattern = copy_string(provenance, phema_json_get(value, "pattern"));
    rule->is_copy = phema_json_boolean(phema_json_get(value, "copy"));
    rule->sigma_rel = number_or_nan(phema_json_get(value, "sigma_rel"));
    rule->gamma = number_or_nan(phema_json_get(value, "gamma"));
    bool is_whole = rule->pattern != NULL;
    if (is_whole && !rule->is_copy) {
        rule->weights =
            phema_arena_array(&provenance->memory, provenance->n_inputs, sizeof(double));
        if (!rule->weights)
            return phema_fail_memory(err);
        is_whole = weights && phema_json_type(weights) == PHEMA_JSON_ARRAY &&
                   phema_json_length(weights) == provenance->n_inputs;
        for (size_t k = 0; is_whole && k < provenance->n_inputs; k++)
            is_whole = is_finite_number(&rule->weights[k], phema_json_at(weights, k));
    }
    if (!is_whole)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "rule %zu: expected a pattern, and a weight for each snapshot", r + 1);
    return PHEMA_OK;
}

static enum phema_status read_rules(struct phema_provenance *provenance,
                                    const struct phema_json *list, struct phema_error *err)
{
    size_t n = phema_json_length(list);
    if (!list)
        return PHEMA_OK;
    if (phema_json_type(list) != PHEMA_JSON_ARRAY)
        return phema_fail(err, PHEMA_ERR_FILE, "expected a list of rules");
    provenance->rules = phema_arena_array(&provenance->memory, n + 1, sizeof(*provenance->rules));
    if (!provenance->rules)
        return phema_fail_memory(err);
    provenance->n_rules = n;
    enum phema_status status = PHEMA_OK;
    for (size_t r = 0; r < n && !status; r++)
        status = read_rule(provenance, r, phema_json_at(list, r), err);
    return status;
}

static enum phema_status read_record(struct phema_provenance *provenance,
                                     const struct phema_json *record, struct phema_error *err)
{
    uint64_t version = 0;
    const struct phema_json *target = phema_json_get(record, "target");
    if (!phema_json_u64(&version, phema_json_get(record, "version")) || version != 1)
        return phema_fail(err, PHEMA_ERR_FILE, "expected version 1");
    provenance->program = copy_string(provenance, phema_json_get(record, "program"));
    provenance->command = phema_json_path(&provenance->memory, record, "command");
    provenance->accumulator = copy_string(provenance, phema_json_get(record, "accumulate"));
    if (!provenance->program || !provenance->command || !provenance->accumulator)
        return phema_fail(err, PHEMA_ERR_FILE, "expected program, command and accumulate");
    const char *sums = provenance->accumulator;
    if (strcmp(sums, "auto") != 0 && strcmp(sums, "f64") != 0 && strcmp(sums, "f32") != 0)
        return phema_fail(err, PHEMA_ERR_FILE, "expected sums in auto, f64 or f32");
    provenance->time = number_or_nan(phema_json_get(target, "time"));
    provenance->sigma_rel = number_or_nan(phema_json_get(target, "sigma_rel"));
    provenance->gamma = number_or_nan(phema_json_get(target, "gamma"));
    provenance->spec = phema_json_path(&provenance->memory, target, "spec");
    provenance->unit = copy_string(provenance, phema_json_get(record, "unit"));
    const struct phema_json *checks = phema_json_get(record, "checks");
    provenance->verdict = copy_string(provenance, phema_json_get(checks, "verdict"));
    provenance->reason = copy_string(provenance, phema_json_get(checks, "reason"));
    enum phema_status status = read_inputs(provenance, phema_json_get(record, "snapshots"), err);
    if (!status)
        status = read_rules(provenance, phema_json_get(record, "rules"), err);
    return status;
}

static const char *const label_keys[PHEMA_N_LABELS] = {"posthoc_ema.time", "posthoc_ema.sigma_rel",
                                                       "posthoc_ema.gamma", "posthoc_ema.profile",
                                                       "posthoc_ema.unit"};

PHEMA_FALLIBLE phema_provenance_parse(struct phema_provenance **out, struct phema_span text,
                                      struct phema_error *err)
{
    struct phema_json *root = NULL;
    struct phema_provenance *provenance = calloc(1, sizeof(*provenance));
    if (!provenance)
        return phema_fail_memory(err);
    enum phema_status status = phema_json_parse(&root, text, err);
    if (!status) {
        /* in PATH.json the provenance is a member */
        const struct phema_json *member = phema_json_get(root, "posthoc_ema.provenance");
        status = read_record(provenance, member ? member : root, err);
        for (size_t i = 0; member && i < PHEMA_N_LABELS; i++)
            provenance->labels[i] = phema_json_path(&provenance->memory, root, label_keys[i]);
    }
    phema_json_free(root);
    if (status) {
        phema_provenance_close(provenance);
        return phema_fail_in(err, status, "provenance");
    }
    *out = provenance;
    return PHEMA_OK;
}

/* Opens a file of provenance; NULL where it cannot be opened. */
static enum phema_status open_file(struct phema_file **out, const char *name,
                                   struct phema_error *err)
{
    struct phema_error ignored = {0};
    struct phema_file *file = NULL;
    if (phema_file_open(&file, name, &ignored) == PHEMA_OK &&
        phema_file_span(file).size > MAX_TEXT) {
        phema_file_close(file);
        return phema_fail(err, PHEMA_ERR_FILE, "%s: is larger than 64 MiB, which no provenance is",
                          name);
    }
    *out = file;
    return PHEMA_OK;
}

/* Reads the provenance of formats without metadata; out stays NULL where the file is not there. */
static enum phema_status read_file(struct phema_provenance **out, const char *path, const char *end,
                                   struct phema_error *err)
{
    char *name = NULL;
    struct phema_file *file = NULL;
    if (asprintf(&name, "%s%s", path, end) < 0)
        return phema_fail_memory(err);
    enum phema_status status = open_file(&file, name, err);
    if (!status && file) {
        status = phema_provenance_parse(out, phema_file_span(file), err);
        status = status ? phema_fail_in(err, status, "%s", name) : PHEMA_OK;
    }
    phema_file_close(file);
    free(name);
    return status;
}

static enum phema_status read_provenance(struct phema_provenance **out, const char *path,
                                         const struct phema_checkpoint *checkpoint,
                                         struct phema_error *err)
{
    enum phema_status status = read_file(out, path, "/" PHEMA_PROVENANCE_FILE, err);
    if (!status && !*out)
        status = read_file(out, path, ".json", err);
    if (status || *out)
        return status;
    const char *metadatum = phema_checkpoint_metadatum(checkpoint, "posthoc_ema.provenance");
    if (!metadatum)
        return phema_suggest(err,
                             phema_fail(err, PHEMA_ERR_INPUTS,
                                        "%s: has no provenance, inside or in %s.json; only outputs "
                                        "of synth have one",
                                        path, path),
                             PHEMA_SET_INSPECTED, path);
    status = phema_provenance_parse(
        out, (struct phema_span){(const uint8_t *)metadatum, strlen(metadatum)}, err);
    for (size_t i = 0; !status && i < PHEMA_N_LABELS; i++)
        (*out)->labels[i] = phema_checkpoint_metadatum(checkpoint, label_keys[i]);
    return status ? phema_fail_in(err, status, "%s", path) : PHEMA_OK;
}

PHEMA_FALLIBLE phema_provenance_open(struct phema_provenance **out, const char *path,
                                     const struct phema_checkpoint_options *options,
                                     struct phema_error *err)
{
    struct phema_checkpoint *checkpoint = NULL;
    struct phema_provenance *provenance = NULL;
    enum phema_status status = phema_checkpoint_open(&checkpoint, path, options, err);
    if (!status)
        status = read_provenance(&provenance, path, checkpoint, err);
    if (status) {
        phema_checkpoint_close(checkpoint);
        return status;
    }
    provenance->checkpoint = checkpoint;
    *out = provenance;
    return PHEMA_OK;
}

bool phema_provenance_exists(const char *path, const struct phema_checkpoint_options *options)
{
    struct phema_provenance *provenance = NULL;
    struct phema_error ignored = {0};
    bool exists = !phema_provenance_open(&provenance, path, options, &ignored);
    phema_provenance_close(provenance);
    return exists;
}

void phema_provenance_close(struct phema_provenance *provenance)
{
    if (!provenance)
        return;
    phema_checkpoint_close(provenance->checkpoint);
    phema_arena_clear(&provenance->memory);
    free(provenance);
}

/* ---- Comparison with a plan ---- */

static bool is_same_number(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

size_t phema_provenance_find_target(const struct phema_provenance *provenance,
                                    const struct phema_plan *plan)
{
    for (size_t j = 0; j < plan->m; j++) {
        const struct phema_target *target = &plan->targets[j];
        const char *spec = isnan(target->gamma) ? target->spec : NULL;
        if (is_same_number(target->time, provenance->time) &&
            is_same_number(target->sigma_rel, provenance->sigma_rel) &&
            is_same_number(target->gamma, provenance->gamma) && !spec == !provenance->spec &&
            (!spec || strcmp(spec, provenance->spec) == 0))
            return j;
    }
    return SIZE_MAX;
}

/* Snapshots that the provenance of a target lists. */
static size_t n_listed(const struct phema_plan *plan, size_t target)
{
    return plan->series->n - plan->targets[target].n_left_out;
}

/* Whether a snapshot has the name of an input. Its directory may be another one, as where SNAPSHOTS are
 * named in another way or have moved, if the digest says what it holds. */
static bool is_named(const struct phema_provenance_input *input, const char *label)
{
    return strcmp(input->file, label) == 0 ||
           (input->digest &&
            strcmp(phema_path_last_name(input->file), phema_path_last_name(label)) == 0);
}

static bool has_input(const struct phema_provenance *provenance, const char *label)
{
    for (size_t k = 0; k < provenance->n_inputs; k++)
        if (is_named(&provenance->inputs[k], label))
            return true;
    return false;
}

static enum phema_status check_input(const struct phema_provenance_input *input,
                                     const struct phema_snapshot *snapshot, struct phema_error *err)
{
    uint64_t bytes = phema_snapshot_bytes(snapshot);
    if (input->digest && bytes != input->bytes)
        return phema_fail(
            err, PHEMA_ERR_INPUTS, "snapshot '%s' has changed: it had %llu bytes, and has %llu",
            snapshot->label, (unsigned long long)input->bytes, (unsigned long long)bytes);
    if (input->digest && strcmp(input->digest, snapshot->digest) != 0)
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "snapshot '%s' has changed since this output was made: other tensors",
                          snapshot->label);
    return PHEMA_OK;
}

/* first: of the inputs that are none of the n snapshots */
static enum phema_status fail_missing(const struct phema_provenance *provenance,
                                      const struct phema_snapshot *snapshots, size_t n,
                                      size_t first, struct phema_error *err)
{
    const struct phema_provenance_input *inputs = provenance->inputs;
    size_t n_missing = 0;
    for (size_t i = first; i < provenance->n_inputs; i++) {
        size_t k = 0;
        while (k < n && !is_named(&inputs[i], snapshots[k].label))
            k++;
        n_missing += k == n;
    }
    if (n_missing < 2)
        return phema_fail(err, PHEMA_ERR_INPUTS, "snapshot '%s' is missing, or was renamed",
                          inputs[first].file);
    return phema_fail(err, PHEMA_ERR_INPUTS,
                      "%zu of its %zu snapshots are missing, or were renamed, such as '%s'",
                      n_missing, provenance->n_inputs, inputs[first].file);
}

PHEMA_FALLIBLE phema_provenance_check_inputs(const struct phema_provenance *provenance,
                                             const struct phema_plan *plan, size_t target,
                                             struct phema_error *err)
{
    const struct phema_snapshot *snapshots = plan->series->snapshots;
    const struct phema_provenance_input *inputs = provenance->inputs;
    size_t n = n_listed(plan, target);
    for (size_t k = 0; k < n || k < provenance->n_inputs; k++) {
        bool is_listed = k < n, is_input = k < provenance->n_inputs;
        if (is_listed && is_input && is_named(&inputs[k], snapshots[k].label)) {
            enum phema_status status = check_input(&inputs[k], &snapshots[k], err);
            if (status)
                return status;
        } else if (is_listed && !has_input(provenance, snapshots[k].label)) {
            return phema_fail(err, PHEMA_ERR_INPUTS,
                              "snapshot '%s' was added: it was not there when the average was made",
                              snapshots[k].label);
        } else if (is_input) {
            return fail_missing(provenance, snapshots, n, k, err);
        }
    }
    return PHEMA_OK;
}

/* A number of a row, and its value in the series. */
struct fact {
    const char *name;
    double recorded, actual;
};

static const char *fact_format(struct phema_name_buffer *buffer, double value)
{
    return isnan(value) ? "none" : phema_number_format(buffer, value);
}

static enum phema_status check_facts(const char *row, const char *name, const char *source,
                                     const struct fact *facts, size_t n, struct phema_error *err)
{
    for (size_t i = 0; i < n; i++) {
        struct phema_name_buffer recorded, actual;
        if (!is_same_number(facts[i].recorded, facts[i].actual))
            return phema_fail(err, PHEMA_NO, "%s '%s': the provenance gives %s %s, the %s gives %s",
                              row, name, facts[i].name, fact_format(&recorded, facts[i].recorded),
                              source, fact_format(&actual, facts[i].actual));
    }
    return PHEMA_OK;
}

static enum phema_status check_row(const struct phema_provenance_input *input,
                                   const struct phema_snapshot *snapshot, struct phema_error *err)
{
    uint64_t update_every = snapshot->profile.update_every;
    const struct fact facts[] = {
        {"time", input->time, snapshot->time},
        {"sigma_rel", input->sigma_rel, snapshot->sigma_rel},
        {"gamma", input->gamma, snapshot->gamma},
        {"update_every", (double)input->update_every, (double)(update_every ? update_every : 1)},
        {"reset_at", input->reset, snapshot->profile.reset},
        {"counted_from", input->origin, snapshot->profile.origin},
    };
    enum phema_status status =
        check_facts("snapshot", snapshot->label, "series", facts, ARRAY_LEN(facts), err);
    const char *spec = isnan(snapshot->gamma) ? snapshot->spec : NULL;
    bool is_same = !spec == !input->spec && (!spec || strcmp(spec, input->spec) == 0);
    if (status || is_same)
        return status;
    return phema_fail(err, PHEMA_NO,
                      "snapshot '%s': the provenance gives profile %s, the series gives %s",
                      snapshot->label, input->spec ? input->spec : "none", spec ? spec : "none");
}

/* A number may be written with other digits, as earlier versions did. */
static bool is_same_label(const char *label, const char *wanted)
{
    double a, b;
    if (!label || !wanted)
        return label == wanted;
    return strcmp(label, wanted) == 0 || (phema_decimal_parse(&a, phema_span_of(label)) &&
                                          phema_decimal_parse(&b, phema_span_of(wanted)) && a == b);
}

PHEMA_FALLIBLE phema_provenance_check_labels(const struct phema_provenance *provenance,
                                             struct phema_error *err)
{
    struct phema_name_buffer time, sigma_rel, gamma, shown;
    bool is_power = !isnan(provenance->gamma);
    const char *spec = provenance->spec;
    bool is_text = true; /* bytes of other paths are replaced in a label */
    for (size_t i = 0; spec && spec[i]; i++)
        is_text = is_text && (unsigned char)spec[i] < 0x80;
    const char *const wanted[PHEMA_N_LABELS] = {
        phema_number_format(&time, provenance->time),
        is_power ? phema_number_format(&sigma_rel, provenance->sigma_rel) : NULL,
        is_power ? phema_number_format(&gamma, provenance->gamma) : NULL,
        is_text ? spec : provenance->labels[3],
        provenance->unit ? provenance->unit : provenance->labels[4],
    };
    for (size_t i = 0; i < PHEMA_N_LABELS; i++) {
        const char *label = provenance->labels[i];
        if (!is_same_label(label, wanted[i]))
            return phema_fail(err, PHEMA_NO, "its metadata give %s %s, its provenance gives %s",
                              label_keys[i], label ? phema_name_show(&shown, label) : "none",
                              wanted[i] ? wanted[i] : "none");
    }
    return PHEMA_OK;
}

PHEMA_FALLIBLE phema_provenance_check_rows(const struct phema_provenance *provenance,
                                           const struct phema_plan *plan, struct phema_error *err)
{
    if (provenance->unit && strcmp(provenance->unit, plan->series->unit) != 0)
        return phema_fail(err, PHEMA_NO, "its times are %s, those of the series are %s",
                          provenance->unit, plan->series->unit);
    enum phema_status status = PHEMA_OK;
    for (size_t k = 0; k < provenance->n_inputs && !status; k++)
        status = check_row(&provenance->inputs[k], &plan->series->snapshots[k], err);
    for (size_t r = 0; r < provenance->n_rules && r < plan->n_rules && !status; r++) {
        const struct phema_provenance_rule *recorded = &provenance->rules[r];
        const struct phema_plan_rule *rule = &plan->rules[r];
        const struct fact facts[] = {{"sigma_rel", recorded->sigma_rel, rule->sigma_rel},
                                     {"gamma", recorded->gamma, rule->gamma}};
        status = check_facts("rule", rule->expression, "command", facts, ARRAY_LEN(facts), err);
    }
    return status;
}

size_t phema_provenance_find_changed(size_t *changed, const struct phema_provenance *provenance,
                                     const struct phema_hash_sum *sums)
{
    size_t n = 0;
    for (size_t k = 0; k < provenance->n_inputs; k++) {
        const struct phema_hash_sum *before = &provenance->inputs[k].data_sum;
        if (before->low != sums[k].low || before->high != sums[k].high)
            changed[n++] = k;
    }
    return n;
}

/* Those of the options, and one for all variances that it changes. */
static enum phema_status check_rules(const struct phema_provenance *provenance,
                                     const struct phema_plan *plan,
                                     const struct phema_target *target, struct phema_error *err)
{
    size_t given = phema_plan_n_given_rules(plan);
    size_t variances = phema_target_variance_rule(plan, target);
    bool are_same = provenance->n_rules == given + (variances < plan->n_rules);
    for (size_t r = 0; are_same && r < provenance->n_rules; r++) {
        const struct phema_plan_rule *rule = &plan->rules[r < given ? r : variances];
        are_same = strcmp(rule->expression, provenance->rules[r].pattern) == 0 &&
                   rule->is_copy == provenance->rules[r].is_copy;
    }
    return are_same ? PHEMA_OK : phema_fail(err, PHEMA_NO, "its rules differ");
}

static bool are_same_weights(const struct phema_provenance *provenance, const double *weights,
                             const double *of_rule)
{
    for (size_t k = 0; k < provenance->n_inputs; k++)
        if (weights[k] != (of_rule ? of_rule[k] : provenance->inputs[k].weight))
            return false;
    return true;
}

PHEMA_FALLIBLE phema_provenance_check_weights(const struct phema_provenance *provenance,
                                              const struct phema_plan *plan, size_t target,
                                              struct phema_error *err)
{
    const struct phema_target *wanted = &plan->targets[target];
    enum phema_status status = check_rules(provenance, plan, wanted, err);
    if (!status && !are_same_weights(provenance, wanted->solution.weights, NULL))
        status = phema_fail(err, PHEMA_NO, "its weights differ");
    size_t given = phema_plan_n_given_rules(plan);
    size_t variances = phema_target_variance_rule(plan, wanted);
    for (size_t r = 0; r < provenance->n_rules && !status; r++) {
        const double *weights = wanted->ruled[r < given ? r : variances].weights;
        const struct phema_provenance_rule *rule = &provenance->rules[r];
        if (!rule->is_copy && !are_same_weights(provenance, weights, rule->weights))
            status =
                phema_fail(err, PHEMA_NO, "the weights of its rule '%s' differ", rule->pattern);
    }
    return status;
}

PHEMA_FALLIBLE phema_provenance_apply(const struct phema_provenance *provenance,
                                      struct phema_plan *plan, size_t target,
                                      struct phema_error *err)
{
    if (check_rules(provenance, plan, &plan->targets[target], err) ||
        provenance->n_inputs != n_listed(plan, target))
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "the provenance has other rules or snapshots than its command");
    struct phema_target wanted = plan->targets[target];
    plan->targets[0] = wanted;
    plan->m = 1;
    for (size_t k = 0; k < provenance->n_inputs; k++)
        wanted.solution.weights[k] = provenance->inputs[k].weight;
    size_t given = phema_plan_n_given_rules(plan);
    size_t variances = phema_target_variance_rule(plan, &wanted);
    for (size_t r = 0; r < provenance->n_rules; r++)
        for (size_t k = 0; !provenance->rules[r].is_copy && k < provenance->n_inputs; k++)
            wanted.ruled[r < given ? r : variances].weights[k] = provenance->rules[r].weights[k];
    return PHEMA_OK;
}
