// SPDX-License-Identifier: Apache-2.0
/* manifest.c - a series written down as JSON: files, times, widths. Unknown keys are errors, so
 * that a misspelt one is not silently without effect. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "phema/file.h"
#include "phema/json.h"
#include "scan.h"

struct reading {
    struct scan *scan;
    const char *path;
    size_t directory_size; /* of path, with the last slash */
};

static enum phema_status unknown_key(const char *where, const char *key, size_t size,
                                     const char *known, struct phema_error *err)
{
    struct phema_name_buffer shown;
    return phema_fail(err, PHEMA_ERR_INPUTS, "%s: unknown key '%s'; known are %s", where,
                      phema_name_shown(&shown, key, size), known);
}

static bool is_key(const char *key, size_t size, const char *wanted)
{
    return strlen(wanted) == size && memcmp(key, wanted, size) == 0;
}

static enum phema_status read_number(double *out, const struct phema_json *value, const char *where,
                                     const char *key, struct phema_error *err)
{
    if (!phema_json_number(out, value))
        return phema_fail(err, PHEMA_ERR_INPUTS, "%s: '%s' is no number", where, key);
    return PHEMA_OK;
}

static enum phema_status read_profile(struct candidate *candidate, const struct phema_json *value,
                                      const char *where, struct phema_error *err)
{
    if (phema_json_type(value) != PHEMA_JSON_OBJECT)
        return phema_fail(err, PHEMA_ERR_INPUTS, "%s: 'profile' is no object", where);
    enum phema_status status = PHEMA_OK;
    bool has_kind = false;
    for (struct phema_json_field *f = phema_json_first(value); f && !status;
         f = phema_json_next(value, f)) {
        size_t size = 0;
        const char *key = phema_json_key(f, &size);
        const struct phema_json *item = phema_json_value(f);
        if (is_key(key, size, "kind")) {
            const char *kind = phema_json_string(item, NULL);
            has_kind = kind && strcmp(kind, "power") == 0;
            if (!has_kind)
                status = phema_fail(err, PHEMA_ERR_INPUTS,
                                    "%s: profile kind is not known to this version; expected "
                                    "\"power\"",
                                    where);
        } else if (is_key(key, size, "gamma")) {
            status = read_number(&candidate->gamma, item, where, "gamma", err);
        } else if (is_key(key, size, "sigma_rel") && isnan(candidate->sigma_rel)) {
            status = read_number(&candidate->sigma_rel, item, where, "sigma_rel", err);
        } else if (is_key(key, size, "sigma_rel")) {
            status = phema_fail(err, PHEMA_ERR_INPUTS, "%s: has two sigma_rel", where);
        } else if (is_key(key, size, "update_every")) {
            if (!phema_json_u64(&candidate->update_every, item) || candidate->update_every == 0)
                status = phema_fail(err, PHEMA_ERR_INPUTS,
                                    "%s: 'update_every' is no whole number of steps", where);
        } else {
            status = unknown_key(where, key, size, "kind, gamma, sigma_rel, update_every", err);
        }
    }
    if (!status && !has_kind)
        status = phema_fail(err, PHEMA_ERR_INPUTS, "%s: profile without a kind", where);
    return status;
}

static enum phema_status read_file_name(struct reading *reading, struct candidate *candidate,
                                        const struct phema_json *value, const char *where,
                                        struct phema_error *err)
{
    size_t size = 0;
    const char *name = phema_json_string(value, &size);
    if (!name || size == 0 || memchr(name, '\0', size))
        return phema_fail(err, PHEMA_ERR_INPUTS, "%s: 'file' is no path", where);
    struct phema_text path = {0};
    if (name[0] != '/')
        phema_text_append(&path, reading->path, reading->directory_size);
    phema_text_append(&path, name, size);
    enum phema_status status = phema_text_check(&path, err);
    if (!status) {
        candidate->path = phema_arena_copy(reading->scan->arena, path.data, path.size);
        candidate->label = phema_arena_copy(reading->scan->arena, name, size);
        candidate->base = candidate->label;
        if (!candidate->path || !candidate->label)
            status = phema_fail_memory(err);
    }
    phema_text_clear(&path);
    return status;
}

static enum phema_status read_snapshot(struct reading *reading, const struct phema_json *value,
                                       size_t number, struct phema_error *err)
{
    char where[64];
    (void)snprintf(where, sizeof(where), "snapshot %zu", number);
    if (phema_json_type(value) != PHEMA_JSON_OBJECT)
        return phema_fail(err, PHEMA_ERR_INPUTS, "%s: is no object", where);
    struct candidate *candidate = scan_add(reading->scan);
    if (!candidate)
        return phema_fail_memory(err);
    char label[32];
    (void)snprintf(label, sizeof(label), "#%zu", number);
    candidate->label = phema_arena_copy(reading->scan->arena, label, strlen(label));
    candidate->base = candidate->label;
    if (!candidate->label)
        return phema_fail_memory(err);

    enum phema_status status = PHEMA_OK;
    for (struct phema_json_field *f = phema_json_first(value); f && !status;
         f = phema_json_next(value, f)) {
        size_t size = 0;
        const char *key = phema_json_key(f, &size);
        const struct phema_json *item = phema_json_value(f);
        if (is_key(key, size, "file"))
            status = read_file_name(reading, candidate, item, where, err);
        else if (is_key(key, size, "time"))
            status = read_number(&candidate->named_time, item, where, "time", err);
        else if (is_key(key, size, "sigma_rel") && !isnan(candidate->sigma_rel))
            status = phema_fail(err, PHEMA_ERR_INPUTS, "%s: has two sigma_rel", where);
        else if (is_key(key, size, "sigma_rel"))
            status = read_number(&candidate->sigma_rel, item, where, "sigma_rel", err);
        else if (is_key(key, size, "profile"))
            status = read_profile(candidate, item, where, err);
        else
            status = unknown_key(where, key, size, "file, time, sigma_rel, profile", err);
    }
    if (!status && isnan(candidate->named_time))
        status = phema_fail(err, PHEMA_ERR_INPUTS, "%s: has no 'time'", where);
    if (!status && !isnan(candidate->sigma_rel) && !isnan(candidate->gamma))
        status = phema_fail(err, PHEMA_ERR_INPUTS, "%s: has both sigma_rel and gamma", where);
    return status;
}

static enum phema_status read_document(struct reading *reading, const struct phema_json *root,
                                       struct phema_error *err)
{
    if (phema_json_type(root) != PHEMA_JSON_OBJECT)
        return phema_fail(err, PHEMA_ERR_INPUTS, "is no manifest: expected an object");
    const struct phema_json *snapshots = NULL;
    for (struct phema_json_field *f = phema_json_first(root); f; f = phema_json_next(root, f)) {
        size_t size = 0;
        const char *key = phema_json_key(f, &size);
        const struct phema_json *item = phema_json_value(f);
        if (is_key(key, size, "snapshots")) {
            snapshots = item;
        } else if (is_key(key, size, "unit")) {
            size_t unit_size = 0;
            const char *unit = phema_json_string(item, &unit_size);
            reading->scan->unit =
                unit ? phema_arena_copy(reading->scan->arena, unit, unit_size) : NULL;
            if (!unit)
                return phema_fail(err, PHEMA_ERR_INPUTS, "'unit' is no string");
        } else {
            return unknown_key("manifest", key, size, "unit, snapshots", err);
        }
    }
    if (!snapshots || phema_json_type(snapshots) != PHEMA_JSON_ARRAY)
        return phema_fail(err, PHEMA_ERR_INPUTS, "is no manifest: expected a list 'snapshots'");
    for (size_t i = 0; i < phema_json_length(snapshots); i++) {
        enum phema_status status = read_snapshot(reading, phema_json_at(snapshots, i), i + 1, err);
        if (status)
            return status;
    }
    return PHEMA_OK;
}

PHEMA_FALLIBLE scan_manifest(struct scan *scan, const char *path, struct phema_error *err)
{
    struct phema_file *file = NULL;
    struct phema_json *root = NULL;
    enum phema_status status = phema_file_open(&file, path, err);
    if (!status)
        status = phema_json_parse(&root, phema_file_span(file), err);
    if (!status) {
        const char *slash = strrchr(path, '/');
        struct reading reading = {scan, path, slash ? (size_t)(slash - path) + 1 : 0};
        status = read_document(&reading, root, err);
    }
    phema_json_free(root);
    phema_file_close(file);
    return status ? phema_fail_in(err, status, "%s", path) : PHEMA_OK;
}
