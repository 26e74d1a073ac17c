// SPDX-License-Identifier: Apache-2.0
/* manifest.c - manifest.json to candidates: files, times, profiles. Unknown keys are errors, so
 * that a misspelt key does not go unnoticed. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "discover.h"
#include "phema/json.h"
#include "phema/mapped_file.h"

struct manifest_reader {
    struct candidate_list *candidates;
    const char *path;
    size_t directory_size; /* of path, with the last slash */
};

static enum phema_status unknown_key(const char *where, const char *key, size_t size,
                                     const char *known, struct phema_error *err)
{
    struct phema_name_buffer shown;
    return phema_fail(err, PHEMA_ERR_INPUTS, "%s: unknown key '%s'; known are %s", where,
                      phema_name_escape(&shown, key, size), known);
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

/* ---- Profiles ---- */

/* A path relative to the manifest, unless it is absolute. It lives in the arena. */
static enum phema_status resolve_path(char **out, const struct manifest_reader *reader,
                                      const char *name, size_t size, const char *where,
                                      struct phema_error *err)
{
    struct phema_strbuf path = {0};
    if (!name || size == 0 || memchr(name, '\0', size))
        return phema_fail(err, PHEMA_ERR_INPUTS, "%s: 'file' is no path", where);
    if (name[0] != '/')
        phema_strbuf_append(&path, reader->path, reader->directory_size);
    phema_strbuf_append(&path, name, size);
    enum phema_status status = phema_strbuf_check(&path, err);
    *out = status ? NULL : phema_arena_copy(reader->candidates->arena, path.data, path.size);
    phema_strbuf_clear(&path);
    return status || *out ? status : phema_fail_memory(err);
}

static enum phema_status read_power(struct candidate *candidate, const char *key, size_t size,
                                    const struct phema_json *item, const char *where,
                                    struct phema_error *err)
{
    if (is_key(key, size, "gamma"))
        return read_number(&candidate->gamma, item, where, "gamma", err);
    if (is_key(key, size, "sigma_rel")) {
        if (!isnan(candidate->sigma_rel))
            return phema_fail(err, PHEMA_ERR_INPUTS, "%s: has two sigma_rel", where);
        return read_number(&candidate->sigma_rel, item, where, "sigma_rel", err);
    }
    if (!is_key(key, size, "update_every"))
        return unknown_key(where, key, size, "kind, gamma, sigma_rel, update_every", err);
    if (!phema_json_u64(&candidate->update_every, item) || candidate->update_every == 0)
        return phema_fail(err, PHEMA_ERR_INPUTS, "%s: 'update_every' is no whole number of steps",
                          where);
    return PHEMA_OK;
}

/* Appends a key and its value in the syntax of a SPEC, where half_life is half-life. */
static enum phema_status add_key(struct phema_strbuf *spec, const char *key, size_t size,
                                 const struct phema_json *item, const char *where,
                                 struct phema_error *err)
{
    struct phema_name_buffer shown;
    (void)phema_name_escape(&shown, key, size);
    if (strpbrk(shown.text, ",=:"))
        return phema_fail(err, PHEMA_ERR_INPUTS, "%s: unknown key '%s'", where, shown.text);
    bool has_keys = memchr(spec->data, ':', spec->size) != NULL;
    double number = 0;
    size_t at = spec->size + 1;
    phema_strbuf_printf(spec, "%c%s=", has_keys ? ',' : ':', shown.text);
    for (; !spec->is_failed && at < spec->size; at++)
        if (spec->data[at] == '_')
            spec->data[at] = '-';
    if (phema_json_type(item) == PHEMA_JSON_BOOL)
        phema_strbuf_puts(spec, phema_json_boolean(item) ? "yes" : "no");
    else if (phema_json_number(&number, item))
        phema_strbuf_puts(spec, phema_number_format(&shown, number));
    else
        return phema_fail(err, PHEMA_ERR_INPUTS, "%s: '%s' is no number", where, shown.text);
    return phema_strbuf_check(spec, err);
}

/* An average that does not exist is an error of the manifest here, not of a target. */
static enum phema_status use_spec(struct candidate *candidate, struct manifest_reader *reader,
                                  const char *text, const char *where, struct phema_error *err)
{
    struct phema_spec *spec = NULL;
    enum phema_status status = phema_specs_find(&spec, &reader->candidates->specs, text, err);
    if (!status && !spec->is_average)
        status = phema_fail(err, PHEMA_ERR_INPUTS,
                            "'%s': is made of several snapshots; a snapshot is one average",
                            spec->shown);
    if (status == PHEMA_ERR_USAGE || status == PHEMA_ERR_TARGET)
        status = PHEMA_ERR_INPUTS;
    if (status)
        return phema_fail_in(err, status, "%s: profile", where);
    if (strcmp(spec->kind, "power") != 0) {
        candidate->spec = spec;
        return PHEMA_OK;
    }
    if (!spec->is_by_gamma && !isnan(candidate->sigma_rel))
        return phema_fail(err, PHEMA_ERR_INPUTS, "%s: has two sigma_rel", where);
    if (spec->is_by_gamma)
        candidate->gamma = spec->gamma;
    else
        candidate->sigma_rel = spec->sigma_rel;
    candidate->update_every = spec->update_every;
    return PHEMA_OK;
}

static enum phema_status add_path(struct phema_strbuf *spec, struct manifest_reader *reader,
                                  const char *key, size_t size, const struct phema_json *item,
                                  const char *where, struct phema_error *err)
{
    char *path = NULL;
    if (!is_key(key, size, "file"))
        return unknown_key(where, key, size, "kind, file", err);
    size_t name_size = 0;
    const char *name = phema_json_string(item, &name_size);
    enum phema_status status = resolve_path(&path, reader, name, name_size, where, err);
    if (!status)
        phema_strbuf_printf(spec, ":%s", path);
    return status;
}

static enum phema_status read_kind(const char **out, const struct phema_json *profile,
                                   const char *where, struct phema_error *err)
{
    size_t size = 0;
    const struct phema_json *kind = phema_json_get(profile, "kind");
    if (!kind)
        return phema_fail(err, PHEMA_ERR_INPUTS, "%s: profile without a kind", where);
    *out = phema_json_string(kind, &size);
    if (!*out || strlen(*out) != size || strpbrk(*out, ": "))
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "%s: profile kind is none; expected one such as \"power\" or \"ema\"",
                          where);
    return PHEMA_OK;
}

/* {"kind": "ema", "half_life": 2000} is the SPEC "ema:half-life=2000". */
static enum phema_status read_object(struct candidate *candidate, struct manifest_reader *reader,
                                     const struct phema_json *value, const char *where,
                                     struct phema_error *err)
{
    const char *kind = NULL;
    enum phema_status status = read_kind(&kind, value, where, err);
    if (status)
        return status;
    bool is_power = strcmp(kind, "power") == 0, is_table = strcmp(kind, "table") == 0;
    struct phema_strbuf spec = {0};
    phema_strbuf_puts(&spec, kind);
    status = phema_strbuf_check(&spec, err);
    for (struct phema_json_field *f = phema_json_first(value); f && !status;
         f = phema_json_next(value, f)) {
        size_t size = 0;
        const char *key = phema_json_key(f, &size);
        if (is_key(key, size, "kind"))
            continue;
        const struct phema_json *item = phema_json_value(f);
        status = is_power   ? read_power(candidate, key, size, item, where, err)
                 : is_table ? add_path(&spec, reader, key, size, item, where, err)
                            : add_key(&spec, key, size, item, where, err);
    }
    if (!status && !is_power)
        status = use_spec(candidate, reader, spec.data, where, err);
    phema_strbuf_clear(&spec);
    return status;
}

static const char table[] = "table:";

static enum phema_status use_table(struct candidate *candidate, struct manifest_reader *reader,
                                   const char *name, const char *where, struct phema_error *err)
{
    char *path = NULL;
    enum phema_status status = resolve_path(&path, reader, name, strlen(name), where, err);
    if (status)
        return status;
    struct phema_strbuf spec = {0};
    phema_strbuf_printf(&spec, "%s%s", table, path);
    status = phema_strbuf_check(&spec, err);
    if (!status)
        status = use_spec(candidate, reader, spec.data, where, err);
    phema_strbuf_clear(&spec);
    return status;
}

static enum phema_status read_profile(struct candidate *candidate, struct manifest_reader *reader,
                                      const struct phema_json *value, const char *where,
                                      struct phema_error *err)
{
    size_t size = 0;
    const char *text = phema_json_string(value, &size);
    if (text && strlen(text) == size && strncmp(text, table, strlen(table)) == 0)
        return use_table(candidate, reader, text + strlen(table), where, err);
    if (text && strlen(text) == size)
        return use_spec(candidate, reader, text, where, err);
    if (phema_json_type(value) != PHEMA_JSON_OBJECT)
        return phema_fail(err, PHEMA_ERR_INPUTS, "%s: 'profile' is no object and no SPEC", where);
    return read_object(candidate, reader, value, where, err);
}

/* ---- Snapshots ---- */

static enum phema_status read_file_name(struct manifest_reader *reader, struct candidate *candidate,
                                        const struct phema_json *value, const char *where,
                                        struct phema_error *err)
{
    char *path = NULL;
    size_t size = 0;
    const char *name = phema_json_string(value, &size);
    enum phema_status status = resolve_path(&path, reader, name, size, where, err);
    if (status)
        return status;
    candidate->path = path;
    candidate->label = phema_arena_copy(reader->candidates->arena, name, size);
    candidate->base = candidate->label;
    return candidate->label ? PHEMA_OK : phema_fail_memory(err);
}

static enum phema_status read_field(struct manifest_reader *reader, struct candidate *candidate,
                                    const char *key, size_t size, const struct phema_json *item,
                                    const char *where, struct phema_error *err)
{
    if (is_key(key, size, "file"))
        return read_file_name(reader, candidate, item, where, err);
    if (is_key(key, size, "time"))
        return read_number(&candidate->named_time, item, where, "time", err);
    if (is_key(key, size, "profile"))
        return read_profile(candidate, reader, item, where, err);
    if (!is_key(key, size, "sigma_rel"))
        return unknown_key(where, key, size, "file, time, sigma_rel, profile", err);
    if (!isnan(candidate->sigma_rel))
        return phema_fail(err, PHEMA_ERR_INPUTS, "%s: has two sigma_rel", where);
    return read_number(&candidate->sigma_rel, item, where, "sigma_rel", err);
}

static enum phema_status read_snapshot(struct manifest_reader *reader,
                                       const struct phema_json *value, size_t number,
                                       struct phema_error *err)
{
    char where[64];
    (void)snprintf(where, sizeof(where), "snapshot %zu", number);
    if (phema_json_type(value) != PHEMA_JSON_OBJECT)
        return phema_fail(err, PHEMA_ERR_INPUTS, "%s: is no object", where);
    struct candidate *candidate = candidates_add(reader->candidates);
    if (!candidate)
        return phema_fail_memory(err);
    char label[32];
    (void)snprintf(label, sizeof(label), "#%zu", number);
    candidate->label = phema_arena_copy(reader->candidates->arena, label, strlen(label));
    candidate->base = candidate->label;
    if (!candidate->label)
        return phema_fail_memory(err);

    for (struct phema_json_field *f = phema_json_first(value); f; f = phema_json_next(value, f)) {
        size_t size = 0;
        const char *key = phema_json_key(f, &size);
        enum phema_status status =
            read_field(reader, candidate, key, size, phema_json_value(f), where, err);
        if (status)
            return status;
    }
    if (isnan(candidate->named_time))
        return phema_fail(err, PHEMA_ERR_INPUTS, "%s: has no 'time'", where);
    if (!isnan(candidate->sigma_rel) && !isnan(candidate->gamma))
        return phema_fail(err, PHEMA_ERR_INPUTS, "%s: has both sigma_rel and gamma", where);
    if (candidate->spec && !isnan(candidate->sigma_rel))
        return phema_fail(err, PHEMA_ERR_INPUTS, "%s: has both sigma_rel and the profile %s", where,
                          candidate->spec->shown);
    return PHEMA_OK;
}

static enum phema_status read_document(struct manifest_reader *reader,
                                       const struct phema_json *root, struct phema_error *err)
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
            reader->candidates->unit =
                unit ? phema_arena_copy(reader->candidates->arena, unit, unit_size) : NULL;
            if (!unit)
                return phema_fail(err, PHEMA_ERR_INPUTS, "'unit' is no string");
        } else {
            return unknown_key("manifest", key, size, "unit, snapshots", err);
        }
    }
    if (!snapshots || phema_json_type(snapshots) != PHEMA_JSON_ARRAY)
        return phema_fail(err, PHEMA_ERR_INPUTS, "is no manifest: expected a list 'snapshots'");
    for (size_t i = 0; i < phema_json_length(snapshots); i++) {
        enum phema_status status = read_snapshot(reader, phema_json_at(snapshots, i), i + 1, err);
        if (status)
            return status;
    }
    return PHEMA_OK;
}

PHEMA_FALLIBLE manifest_read(struct candidate_list *candidates, const char *path,
                             struct phema_error *err)
{
    struct phema_file *file = NULL;
    struct phema_json *root = NULL;
    enum phema_status status = phema_file_open(&file, path, err);
    if (status)
        return phema_fail_in(err, status, "%s", path);
    status = phema_json_parse(&root, phema_file_span(file), err);
    if (!status) {
        const char *slash = strrchr(path, '/');
        struct manifest_reader reader = {candidates, path, slash ? (size_t)(slash - path) + 1 : 0};
        status = read_document(&reader, root, err);
    }
    phema_json_free(root);
    phema_file_close(file);
    return status ? phema_fail_in(err, status, "%s", path) : PHEMA_OK;
}
