// SPDX-License-Identifier: Apache-2.0
/* manifest.c - manifest.json to candidates: files, times, profiles. Unknown keys are errors, so
 * that a misspelt key does not go unnoticed. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "candidates.h"
#include "phema/json.h"
#include "phema/mapped_file.h"

struct manifest_reader {
    struct candidate_list *candidates;
    const char *path;
    int directory_size; /* of path, with the last slash */
};

/* A member of an object of the manifest. */
struct member {
    const char *where; /* the object, for messages */
    const char *key;
    size_t size; /* of the key */
    const struct phema_json *value;
};

static struct member member_of(const char *where, struct phema_json_field *field)
{
    struct member member = {.where = where, .value = phema_json_value(field)};
    member.key = phema_json_key(field, &member.size);
    return member;
}

static bool is_key(const struct member *member, const char *wanted)
{
    return phema_bytes_are(member->key, member->size, wanted);
}

static enum phema_status fail_unknown(const struct member *member, const char *known,
                                      struct phema_error *err)
{
    struct phema_name_buffer shown;
    return phema_fail(err, PHEMA_ERR_INPUTS, "%s: unknown key '%s'; known are %s", member->where,
                      phema_name_escape(&shown, member->key, member->size), known);
}

/* "the text '4096'", "null", "-3" */
static const char *describe(struct phema_name_buffer *out, const struct phema_json *value)
{
    static const char *const kinds[] = {[PHEMA_JSON_NULL] = "null",
                                        [PHEMA_JSON_BOOL] = "true or false",
                                        [PHEMA_JSON_ARRAY] = "a list",
                                        [PHEMA_JSON_OBJECT] = "an object"};
    struct phema_name_buffer escaped;
    size_t size = 0;
    double number = 0;
    const char *text = phema_json_string(value, &size);
    if (phema_json_number(&number, value))
        return phema_number_format(out, number);
    (void)snprintf(out->text, sizeof(out->text), text ? "the text '%.60s'" : "%s",
                   text ? phema_name_escape(&escaped, text, size) : kinds[phema_json_type(value)]);
    return out->text;
}

static enum phema_status fail_value(const struct member *member, const char *expected,
                                    struct phema_error *err)
{
    struct phema_name_buffer key, found;
    return phema_fail(err, PHEMA_ERR_INPUTS, "%s: '%s': expected %s, found %s", member->where,
                      phema_name_escape(&key, member->key, member->size), expected,
                      describe(&found, member->value));
}

static enum phema_status read_number(double *out, const struct member *member,
                                     struct phema_error *err)
{
    return phema_json_number(out, member->value) ? PHEMA_OK : fail_value(member, "a number", err);
}

static enum phema_status read_sigma_rel(struct candidate *candidate, const struct member *member,
                                        struct phema_error *err)
{
    if (!isnan(candidate->sigma_rel))
        return phema_fail(err, PHEMA_ERR_INPUTS, "%s: has two sigma_rel", member->where);
    return read_number(&candidate->sigma_rel, member, err);
}

/* A path relative to the manifest, unless it is absolute. It lives in the arena. */
static enum phema_status resolve_path(const char **out, const struct manifest_reader *reader,
                                      const char *name, size_t size, const char *where,
                                      struct phema_error *err)
{
    if (!name || size == 0 || memchr(name, '\0', size))
        return phema_fail(err, PHEMA_ERR_INPUTS, "%s: expected the path of a file in quotes",
                          where);
    *out = phema_arena_printf(reader->candidates->arena, "%.*s%s",
                              name[0] == '/' ? 0 : reader->directory_size, reader->path, name);
    return *out ? PHEMA_OK : phema_fail_memory(err);
}

/* ---- Profiles ---- */

static enum phema_status read_power(struct candidate *candidate, const struct member *member,
                                    struct phema_error *err)
{
    if (is_key(member, "gamma"))
        return read_number(&candidate->gamma, member, err);
    if (is_key(member, "sigma_rel"))
        return read_sigma_rel(candidate, member, err);
    if (!is_key(member, "update_every"))
        return fail_unknown(member, "kind, gamma, sigma_rel, update_every", err);
    if (!phema_json_u64(&candidate->update_every, member->value) || candidate->update_every == 0)
        return fail_value(member, "a whole number of steps from 1 on", err);
    return PHEMA_OK;
}

/* Appends a key and its value in the syntax of a SPEC, where half_life is half-life. */
static enum phema_status add_key(struct phema_strbuf *spec, const struct member *member,
                                 struct phema_error *err)
{
    struct phema_name_buffer shown;
    (void)phema_name_escape(&shown, member->key, member->size);
    if (strpbrk(shown.text, ",=:"))
        return phema_fail(err, PHEMA_ERR_INPUTS, "%s: unknown key '%s'", member->where, shown.text);
    bool has_keys = memchr(spec->data, ':', spec->size) != NULL;
    double number = 0;
    size_t size = 0, at = spec->size + 1;
    /* small letters alone mean nothing else in a SPEC */
    const char *text = phema_json_string(member->value, &size);
    bool is_word = text && size > 0 && strspn(text, "abcdefghijklmnopqrstuvwxyz") == size;
    phema_strbuf_printf(spec, "%c%s=", has_keys ? ',' : ':', shown.text);
    for (; !spec->is_failed && at < spec->size; at++)
        if (spec->data[at] == '_')
            spec->data[at] = '-';
    if (phema_json_type(member->value) == PHEMA_JSON_BOOL)
        phema_strbuf_puts(spec, phema_json_boolean(member->value) ? "yes" : "no");
    else if (phema_json_number(&number, member->value))
        phema_strbuf_puts(spec, phema_number_format(&shown, number));
    else if (is_word)
        phema_strbuf_puts(spec, text);
    else
        return fail_value(member, "a number, true, false or a word", err);
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
                            spec->canonical);
    if (status == PHEMA_ERR_USAGE || status == PHEMA_ERR_TARGET)
        status = PHEMA_ERR_INPUTS;
    if (status)
        return phema_fail_in(err, status, "%s: profile", where);
    bool is_width = strcmp(spec->kind, "power") == 0 && !spec->is_by_gamma;
    if (is_width && !isnan(candidate->sigma_rel))
        return phema_fail(err, PHEMA_ERR_INPUTS, "%s: has two sigma_rel", where);
    if (candidate_use_spec(candidate, spec))
        candidate->update_every = spec->update_every;
    return PHEMA_OK;
}

static enum phema_status add_path(struct phema_strbuf *spec, struct manifest_reader *reader,
                                  const struct member *member, struct phema_error *err)
{
    if (!is_key(member, "file"))
        return fail_unknown(member, "kind, file", err);
    const char *path = NULL;
    size_t size = 0;
    const char *name = phema_json_string(member->value, &size);
    enum phema_status status = resolve_path(&path, reader, name, size, member->where, err);
    if (!status)
        phema_strbuf_printf(spec, ":%s", path);
    return status;
}

/* {"kind": "ema", "half_life": 2000} is the SPEC "ema:half-life=2000". */
static enum phema_status read_object(struct candidate *candidate, struct manifest_reader *reader,
                                     const struct phema_json *value, const char *where,
                                     struct phema_error *err)
{
    size_t size = 0;
    const struct phema_json *stated = phema_json_get(value, "kind");
    if (!stated)
        return phema_fail(err, PHEMA_ERR_INPUTS, "%s: profile without a kind", where);
    const char *kind = phema_json_string(stated, &size);
    if (!kind || strlen(kind) != size || strpbrk(kind, ": "))
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "%s: profile kind is none; expected one such as \"power\" or \"ema\"",
                          where);
    bool is_power = strcmp(kind, "power") == 0, is_table = strcmp(kind, "table") == 0;
    struct phema_strbuf spec = {0};
    phema_strbuf_puts(&spec, kind);
    enum phema_status status = phema_strbuf_check(&spec, err);
    for (struct phema_json_field *f = phema_json_first(value); f && !status;
         f = phema_json_next(value, f)) {
        const struct member member = member_of(where, f);
        if (!is_key(&member, "kind"))
            status = is_power   ? read_power(candidate, &member, err)
                     : is_table ? add_path(&spec, reader, &member, err)
                                : add_key(&spec, &member, err);
    }
    if (!status && !is_power)
        status = use_spec(candidate, reader, spec.data, where, err);
    phema_strbuf_clear(&spec);
    return status;
}

static enum phema_status read_profile(struct candidate *candidate, struct manifest_reader *reader,
                                      const struct member *member, struct phema_error *err)
{
    static const char table[] = "table:";
    size_t size = 0;
    const char *where = member->where, *text = phema_json_string(member->value, &size);
    if (!text || strlen(text) != size) {
        if (phema_json_type(member->value) == PHEMA_JSON_OBJECT)
            return read_object(candidate, reader, member->value, where, err);
        return fail_value(member, "an object, or a SPEC such as 'ema:half-life=2000'", err);
    }
    if (strncmp(text, table, strlen(table)) == 0) {
        const char *path = NULL, *name = text + strlen(table);
        enum phema_status status = resolve_path(&path, reader, name, strlen(name), where, err);
        if (status)
            return status;
        text = phema_arena_printf(reader->candidates->arena, "%s%s", table, path);
        if (!text)
            return phema_fail_memory(err);
    }
    return use_spec(candidate, reader, text, where, err);
}

/* ---- Snapshots ---- */

static enum phema_status read_member(struct manifest_reader *reader, struct candidate *candidate,
                                     const struct member *member, struct phema_error *err)
{
    if (is_key(member, "file")) {
        size_t size = 0;
        const char *name = phema_json_string(member->value, &size);
        enum phema_status status =
            resolve_path(&candidate->path, reader, name, size, member->where, err);
        if (status)
            return status;
        candidate->label = phema_arena_copy(reader->candidates->arena, name, size);
        candidate->base = candidate->label;
        return candidate->label ? PHEMA_OK : phema_fail_memory(err);
    }
    if (is_key(member, "time"))
        return read_number(&candidate->named_time, member, err);
    if (phema_json_type(member->value) == PHEMA_JSON_NULL &&
        (is_key(member, "profile") || is_key(member, "sigma_rel")))
        return PHEMA_OK;
    if (is_key(member, "profile"))
        return read_profile(candidate, reader, member, err);
    if (is_key(member, "sigma_rel"))
        return read_sigma_rel(candidate, member, err);
    return fail_unknown(member, "file, time, sigma_rel, profile", err);
}

static enum phema_status read_snapshot(struct manifest_reader *reader,
                                       const struct phema_json *value, size_t number,
                                       struct phema_error *err)
{
    char where[64];
    struct phema_name_buffer found;
    (void)snprintf(where, sizeof(where), "snapshot %zu", number);
    if (phema_json_type(value) != PHEMA_JSON_OBJECT)
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "%s: expected an object such as "
                          "{\"file\": \"a.pt\", \"time\": 1000}, found %s",
                          where, describe(&found, value));
    struct candidate *candidate = candidates_add(reader->candidates);
    if (!candidate)
        return phema_fail_memory(err);
    candidate->label = candidate->base =
        phema_arena_printf(reader->candidates->arena, "#%zu", number);
    if (!candidate->label)
        return phema_fail_memory(err);

    for (struct phema_json_field *f = phema_json_first(value); f; f = phema_json_next(value, f)) {
        const struct member member = member_of(where, f);
        enum phema_status status = read_member(reader, candidate, &member, err);
        if (status)
            return status;
    }
    if (isnan(candidate->named_time))
        return phema_fail(err, PHEMA_ERR_INPUTS, "%s: has no 'time'", where);
    if (!isnan(candidate->sigma_rel) && !isnan(candidate->gamma))
        return phema_fail(err, PHEMA_ERR_INPUTS, "%s: has both sigma_rel and gamma", where);
    if (candidate->spec && !isnan(candidate->sigma_rel))
        return phema_fail(err, PHEMA_ERR_INPUTS, "%s: has both sigma_rel and the profile %s", where,
                          candidate->spec->canonical);
    return PHEMA_OK;
}

static enum phema_status read_document(struct manifest_reader *reader,
                                       const struct phema_json *root, struct phema_error *err)
{
    struct phema_name_buffer found;
    if (phema_json_type(root) != PHEMA_JSON_OBJECT)
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "expected a manifest {\"snapshots\": [...]}, found %s",
                          describe(&found, root));
    const struct phema_json *snapshots = NULL;
    for (struct phema_json_field *f = phema_json_first(root); f; f = phema_json_next(root, f)) {
        const struct member member = member_of("manifest", f);
        size_t size = 0;
        const char *unit = phema_json_string(member.value, &size);
        if (is_key(&member, "snapshots"))
            snapshots = member.value;
        else if (!is_key(&member, "unit"))
            return fail_unknown(&member, "unit, snapshots", err);
        else if (!unit && phema_json_type(member.value) != PHEMA_JSON_NULL)
            return fail_value(&member, "a text such as 'steps'", err);
        else if (unit)
            reader->candidates->unit = phema_arena_copy(reader->candidates->arena, unit, size);
    }
    if (!snapshots || phema_json_type(snapshots) != PHEMA_JSON_ARRAY)
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "expected a manifest {\"snapshots\": [...]}, found no such list");
    if (phema_json_length(snapshots) == 0)
        return phema_fail(err, PHEMA_ERR_INPUTS, "its list 'snapshots' is empty");
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
        struct manifest_reader reader = {candidates, path, slash ? (int)(slash - path) + 1 : 0};
        status = read_document(&reader, root, err);
    }
    phema_json_free(root);
    phema_file_close(file);
    return status ? phema_fail_in(err, status, "%s", path) : PHEMA_OK;
}
