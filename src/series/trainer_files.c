// SPDX-License-Identifier: Apache-2.0
/* trainer_files.c - small files that trainers keep beside the tensors: marks of complete
 * directories, flux_action's state.json, Megatron's metadata.json, config.json with the rule of an
 * average. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "phema/json.h"
#include "phema/mapped_file.h"
#include "phema/number.h"
#include "phema/path.h"
#include "phema/setting.h"
#include "sets.h"

/* Real ones have some hundred bytes. */
#define MAX_JSON_BYTES ((size_t)1 << 20)

bool directory_has(const char *directory, const char *name)
{
    struct phema_strbuf path = {0};
    phema_strbuf_printf(&path, "%s/%s", directory, name);
    bool is_there = !path.is_failed && phema_path_exists(path.data);
    phema_strbuf_clear(&path);
    return is_there;
}

/* ---- JSON ---- */

/* The text is parsed into *root, which the caller frees. Messages begin with the path. */
static enum phema_status read_json(struct phema_json **root, const char *directory,
                                   const char *name, struct phema_error *err)
{
    struct phema_strbuf path = {0};
    struct phema_file *file = NULL;
    phema_strbuf_printf(&path, "%s/%s", directory, name);
    enum phema_status status = phema_strbuf_check(&path, err);
    if (!status)
        status = phema_file_open(&file, path.data, err);
    if (!status && phema_file_span(file).size > MAX_JSON_BYTES)
        status = phema_fail(err, PHEMA_ERR_FILE, "has %zu bytes, expected %zu at most",
                            phema_file_span(file).size, MAX_JSON_BYTES);
    if (!status)
        status = phema_json_parse(root, phema_file_span(file), err);
    phema_file_close(file);
    phema_strbuf_clear(&path);
    return status ? phema_fail_in(err, status, "%s", name) : PHEMA_OK;
}

/* The number of a member; false: it is missing or no number. */
static bool member_number(double *out, const struct phema_json *object, const char *key)
{
    const struct phema_json *value = phema_json_get(object, key);
    return value && phema_json_number(out, value);
}

/* ---- Megatron ---- */

bool megatron_has_backend(const char *directory, const char *wanted)
{
    struct phema_json *root = NULL;
    struct phema_error ignored = {0};
    if (!phema_path_is_directory(directory) ||
        read_json(&root, directory, "metadata.json", &ignored))
        return false;
    size_t size = 0;
    const struct phema_json *backend = phema_json_get(root, "sharded_backend");
    const char *text = backend ? phema_json_string(backend, &size) : NULL;
    bool is_wanted = text && phema_bytes_are(text, size, wanted);
    phema_json_free(root);
    return is_wanted;
}

/* Its name has seven digits or more. common.pt counts; versions without that file have the name
 * alone. */
PHEMA_FALLIBLE phema_tracker_find(struct phema_tracker *out, const char *directory,
                                  const struct phema_checkpoint_options *options,
                                  struct phema_error *err)
{
    *out = (struct phema_tracker){.file = NULL};
    if (!megatron_has_backend(directory, "torch_dist"))
        return PHEMA_OK;
    struct phema_checkpoint *common = NULL;
    enum phema_status status = PHEMA_OK;
    double iteration = PHEMA_UNKNOWN;
    char *path = NULL;
    if (asprintf(&path, "%s/common.pt", directory) < 0)
        return phema_fail_memory(err);
    if (phema_path_exists(path))
        status = phema_checkpoint_open(&common, path, options, err);
    if (common)
        iteration = snapshot_metadata_value(common, "iteration");
    phema_checkpoint_close(common);
    const char *base = strrchr(directory, '/'), *digits = base ? base + 1 : directory;
    bool is_named = !strncmp(digits, "iter_", 5) && !digits[5 + strspn(digits + 5, "0123456789")];
    double named = PHEMA_UNKNOWN;
    if (isnan(iteration) && is_named && phema_decimal_parse(&named, phema_span_of(digits + 5)))
        iteration = named;
    if (!status && !(iteration >= 0 && iteration < 1e15))
        status = phema_fail(err, PHEMA_ERR_FILE, "%s: has no iteration", path);
    free(path);
    if (status)
        return status;
    out->file = "latest_checkpointed_iteration.txt";
    (void)snprintf(out->text, sizeof(out->text), "%.0f", iteration);
    (void)snprintf(out->name, sizeof(out->name), "iter_%07.0f", iteration);
    return PHEMA_OK;
}

/* ---- The rule of an average ---- */

/* Keys of config.json and of the SPEC, with its defaults. Those that are needed make the rule
 * unmistakable. */
static const struct {
    const char *member, *key;
    double otherwise;
    bool is_needed;
} rule_members[] = {
    {"inv_gamma", "inv-gamma", 1, true},
    {"power", "power", 2.0 / 3, true},
    {"update_after_step", "update-after", 0, true},
    {"min_decay", "min-decay", 0, false},
};

static bool describe_rule(struct described_profile *out, struct phema_arena *arena,
                          const struct phema_json *root)
{
    const struct phema_json *warmup = phema_json_get(root, "use_ema_warmup");
    struct phema_name_buffer shown;
    double value = 0;
    if (!member_number(&out->n_steps, root, "optimization_step") ||
        !member_number(&value, root, "decay"))
        return true;
    const char *spec =
        phema_arena_printf(arena, "diffusers:decay=%s%s", phema_number_format(&shown, value),
                           warmup && phema_json_boolean(warmup) ? ",warmup=yes" : "");
    for (size_t i = 0; i < ARRAY_LEN(rule_members) && spec; i++) {
        bool is_there = member_number(&value, root, rule_members[i].member);
        if (!is_there && rule_members[i].is_needed)
            return true;
        if (is_there && value != rule_members[i].otherwise)
            spec = phema_arena_printf(arena, "%s,%s=%s", spec, rule_members[i].key,
                                      phema_number_format(&shown, value));
    }
    out->spec = spec;
    return spec != NULL;
}

PHEMA_FALLIBLE described_profile_read(struct described_profile *out, const char *path,
                                      struct phema_arena *arena, struct phema_error *err)
{
    struct phema_json *root = NULL;
    struct phema_error ignored = {0};
    *out = (struct described_profile){.by = DESCRIPTION_FILE};
    const char *slash = strrchr(path, '/');
    const char *directory = phema_path_is_directory(path) ? path
                            : slash ? phema_arena_copy(arena, path, (size_t)(slash - path))
                                    : ".";
    if (!directory)
        return phema_fail_memory(err);
    if (!directory_has(directory, DESCRIPTION_FILE) ||
        read_json(&root, directory, DESCRIPTION_FILE, &ignored))
        return PHEMA_OK;
    bool has_memory = describe_rule(out, arena, root);
    phema_json_free(root);
    return has_memory ? PHEMA_OK : phema_fail_memory(err);
}

/* ---- Unfinished directories ---- */

void leave_out_unfinished(struct candidate_list *candidates)
{
    for (size_t i = 0; i < candidates->n; i++) {
        struct candidate *candidate = &candidates->items[i];
        if (candidate->is_left_out || !candidate->path || !phema_path_is_directory(candidate->path))
            continue;
        const char *fault = NULL;
        const char *last = candidates->layout->last;
        if (last && !directory_has(candidate->path, last)) {
            fault = phema_arena_printf(candidates->arena,
                                       "without %s: its trainer has not finished it", last);
            fault = fault ? fault : "its trainer has not finished it";
        } else if (phema_unfinished_directory(candidate->path)) {
            fault = "without .metadata: its trainer has not finished it";
        } else if (megatron_has_backend(candidate->path, "zarr")) {
            fault = "written by Megatron with the backend zarr; expected torch_dist";
        }
        if (!fault)
            continue;
        candidates_leave_out(candidates, candidate, fault);
        candidates->unreadable = candidate->label;
        candidates->fault = fault;
    }
}

/* ---- flux_action ---- */

/* The folder has the width with two decimals: ema_0p10. */
static double width_of_folder(const char *name)
{
    char text[16];
    size_t size = strlen(name) - strlen("ema_");
    if (size >= sizeof(text))
        return PHEMA_UNKNOWN;
    memcpy(text, name + strlen("ema_"), size + 1);
    for (size_t i = 0; i < size; i++)
        if (text[i] == 'p')
            text[i] = '.';
    double width = 0;
    struct phema_error ignored = {0};
    return phema_number_parse(&width, text, &ignored) ? PHEMA_UNKNOWN : width;
}

/* Reads the entry of a set in "emas". */
static enum phema_status read_entry(struct phema_tensor_set *set, const struct phema_json *emas,
                                    double step, struct phema_error *err)
{
    const struct phema_json *value = emas ? phema_json_get(emas, set->name) : NULL;
    struct phema_name_buffer stated, found;
    double sigma_rel, last_step, n_tensors, named = width_of_folder(set->name);
    if (!value)
        return phema_fail(err, PHEMA_ERR_INPUTS, "has no '%s' in emas, which is a directory",
                          set->name);
    if (!member_number(&sigma_rel, value, "sigma_rel") ||
        !member_number(&last_step, value, "last_step") ||
        !member_number(&n_tensors, value, "n_tensors"))
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "'%s': expected sigma_rel, last_step and n_tensors", set->name);
    if (!isnan(named) && fabs(named - sigma_rel) > 0.005 * (1 + 1e-9))
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "has sigma_rel %s for '%s', expected the width in that name",
                          phema_number_format(&stated, sigma_rel), set->name);
    if (n_tensors != (double)set->n_tensors)
        return phema_fail(err, PHEMA_ERR_INPUTS, "has n_tensors %s for '%s', which holds %zu",
                          phema_number_format(&stated, n_tensors), set->name, set->n_tensors);
    if (last_step != floor(last_step) || last_step < 0 || last_step + 1 > step)
        return phema_fail(
            err, PHEMA_ERR_INPUTS, "has last_step %s for '%s', expected a whole number below %s",
            phema_number_format(&stated, last_step), set->name, phema_number_format(&found, step));
    set->sigma_rel = sigma_rel;
    set->time = last_step + 1; /* last_step counts from 0 */
    return PHEMA_OK;
}

static enum phema_status read_state(struct phema_tensor_sets *sets,
                                    const struct candidate *candidate,
                                    const struct phema_json *root, struct phema_error *err)
{
    struct phema_name_buffer found, named;
    double format = 0, step = 0;
    if (!member_number(&format, root, "format") || format != 1)
        return phema_fail(err, PHEMA_ERR_INPUTS, "is of format %s, expected 1",
                          phema_number_format(&found, format));
    if (!member_number(&step, root, "step"))
        return phema_fail(err, PHEMA_ERR_INPUTS, "expected a step");
    if (!isnan(candidate->named_time) && step != candidate->named_time)
        return phema_fail(err, PHEMA_ERR_INPUTS, "has step %s, its directory says %s",
                          phema_number_format(&found, step),
                          phema_number_format(&named, candidate->named_time));
    const struct phema_json *emas = phema_json_get(root, "emas");
    for (size_t s = 0; s < sets->n; s++) {
        struct phema_tensor_set *set = sets->items[s];
        enum phema_status status = set->is_raw ? PHEMA_OK : read_entry(set, emas, step, err);
        if (status)
            return status;
    }
    return PHEMA_OK;
}

PHEMA_FALLIBLE flux_state_read(struct phema_tensor_sets *sets, const struct candidate *candidate,
                               struct phema_error *err)
{
    static const char name[] = "state.json";
    const char *directory = candidate->path;
    if (!directory_has(directory, name)) {
        for (size_t s = 0; s < sets->n; s++)
            if (!sets->items[s]->is_raw)
                sets->items[s]->sigma_rel = width_of_folder(sets->items[s]->name);
        return PHEMA_OK;
    }
    struct phema_json *root = NULL;
    enum phema_status status = read_json(&root, directory, name, err);
    if (status)
        return status;
    status = read_state(sets, candidate, root, err);
    phema_json_free(root);
    return status ? phema_fail_in(err, status, "%s", name) : PHEMA_OK;
}

/* ---- flux_action: a new average ---- */

/* Copies a member, unless it has this name. */
static bool copy_other(struct phema_json_out *out, struct phema_json_field *field, const char *name)
{
    size_t size = 0;
    const char *key = phema_json_key(field, &size);
    if (phema_bytes_are(key, size, name))
        return false;
    phema_json_out_key(out, key, size);
    phema_json_out_copy(out, NULL, phema_json_value(field));
    return true;
}

static void write_entry(struct phema_json_out *out, const struct phema_set_change *change,
                        const struct phema_json *old, double sigma_rel, double time)
{
    phema_json_out_open(out, change->new_folder, '{');
    phema_json_out_number(out, "sigma_rel", sigma_rel);
    phema_json_out_u64(out, "last_step", (uint64_t)time - 1);
    for (struct phema_json_field *field = phema_json_first(old); field;
         field = phema_json_next(old, field)) {
        size_t size = 0;
        const char *key = phema_json_key(field, &size);
        if (!phema_bytes_are(key, size, "sigma_rel"))
            (void)copy_other(out, field, "last_step");
    }
    phema_json_out_close(out, '}');
}

static void write_emas(struct phema_json_out *out, const struct phema_set_change *change,
                       const struct phema_json *emas, double sigma_rel, double time)
{
    phema_json_out_open(out, "emas", '{');
    for (struct phema_json_field *field = phema_json_first(emas); field;
         field = phema_json_next(emas, field))
        if (!copy_other(out, field, change->folder))
            write_entry(out, change, phema_json_value(field), sigma_rel, time);
    phema_json_out_close(out, '}');
}

static void write_state(struct phema_set_change *change, const struct phema_json *root,
                        double sigma_rel, double time)
{
    struct phema_json_out out = {.text = &change->text, .is_pretty = true};
    phema_json_out_open(&out, NULL, '{');
    for (struct phema_json_field *field = phema_json_first(root); field;
         field = phema_json_next(root, field))
        if (!copy_other(&out, field, "emas"))
            write_emas(&out, change, phema_json_value(field), sigma_rel, time);
    phema_json_out_close(&out, '}');
    phema_strbuf_puts(&change->text, "\n");
}

static enum phema_status check_change(const struct phema_set_change *change,
                                      const struct phema_json *root, double time,
                                      struct phema_error *err)
{
    double step = 0;
    const struct phema_json *emas = phema_json_get(root, "emas");
    const struct phema_json *entry = emas ? phema_json_get(emas, change->folder) : NULL;
    struct phema_name_buffer wanted, found;
    if (!entry || phema_json_type(entry) != PHEMA_JSON_OBJECT)
        return phema_fail(err, PHEMA_ERR_INPUTS, "has no '%s' in emas, which is a directory",
                          change->folder);
    if (!member_number(&step, root, "step") || time > step)
        return phema_fail(
            err, PHEMA_ERR_TARGET,
            "has step %s, and an average at %s would be later; choose a later checkpoint for %s",
            phema_number_format(&found, step), phema_number_format(&wanted, time),
            phema_setting_name(PHEMA_SET_INTO));
    if (strcmp(change->folder, change->new_folder) != 0 && phema_json_get(emas, change->new_folder))
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "has an average '%s' already, which the new one would be named; replace "
                          "that one with %s%s",
                          change->new_folder, phema_setting_equals(PHEMA_SET_KEY),
                          change->new_folder);
    return PHEMA_OK;
}

PHEMA_FALLIBLE flux_state_change(struct phema_set_change *out, const struct phema_tensor_set *set,
                                 const char *directory, double sigma_rel, double time,
                                 struct phema_arena *arena, struct phema_error *err)
{
    static const char name[] = "state.json";
    if (isnan(sigma_rel) || time != floor(time) || time < 1)
        return phema_fail(err, PHEMA_ERR_TARGET,
                          "%s: flux_action's checkpoints say a sigma_rel and a whole step of each "
                          "average, and this target has none; end OUT in .safetensors",
                          directory);
    out->folder = set->name;
    char *folder = phema_arena_printf(arena, "ema_%.2f", sigma_rel); /* ema_0p08 of 0.08 */
    if (!folder)
        return phema_fail_memory(err);
    char *point = strchr(folder, '.');
    if (point)
        *point = 'p';
    out->new_folder = folder;
    if (!directory_has(directory, name))
        return PHEMA_OK;
    struct phema_json *root = NULL;
    enum phema_status status = read_json(&root, directory, name, err);
    if (!status)
        status = check_change(out, root, time, err);
    if (!status) {
        out->file = name;
        write_state(out, root, sigma_rel, time);
        status = phema_strbuf_check(&out->text, err);
    }
    phema_json_free(root);
    return status ? phema_fail_in(err, status, "%s/%s", directory, name) : PHEMA_OK;
}
