// SPDX-License-Identifier: Apache-2.0
/* json_read.c - JSON parsing (the only user of jansson). struct phema_json is jansson's json_t and
 * a field is its iterator; neither is defined anywhere else. */
#include "phema/json.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static const json_t *inner(const struct phema_json *value)
{
    return (const json_t *)(const void *)value;
}

static const struct phema_json *outer(const json_t *value)
{
    return (const struct phema_json *)(const void *)value;
}

/* The library quotes the text at the error, which may hold any bytes, such as line breaks. */
static enum phema_status fail_invalid(const json_error_t *error, struct phema_error *err)
{
    struct phema_strbuf shown = {0};
    phema_strbuf_puts_escaped(&shown, error->text);
    enum phema_status status = phema_strbuf_check(&shown, err);
    if (!status)
        status = phema_fail(err, PHEMA_ERR_FILE, "JSON is not valid at byte %d: %s",
                            error->position, shown.data ? shown.data : "");
    phema_strbuf_clear(&shown);
    return status;
}

PHEMA_FALLIBLE phema_json_parse(struct phema_json **out, struct phema_span text,
                                struct phema_error *err)
{
    json_error_t error;
    const char *data = (const char *)text.data;
    json_t *root = json_loadb(data, text.size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    if (!root) /* the library reports some failed allocations as invalid text: try again */
        root = json_loadb(data, text.size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    if (!root) {
        if (json_error_code(&error) == json_error_out_of_memory)
            return phema_fail_memory(err);
        return fail_invalid(&error, err);
    }
    *out = (struct phema_json *)(void *)root;
    return PHEMA_OK;
}

void phema_json_free(struct phema_json *document)
{
    if (document)
        json_decref((json_t *)(void *)document);
}

enum phema_json_type phema_json_type(const struct phema_json *value)
{
    static const enum phema_json_type types[] = {
        [JSON_OBJECT] = PHEMA_JSON_OBJECT, [JSON_ARRAY] = PHEMA_JSON_ARRAY,
        [JSON_STRING] = PHEMA_JSON_STRING, [JSON_INTEGER] = PHEMA_JSON_INTEGER,
        [JSON_REAL] = PHEMA_JSON_REAL,     [JSON_TRUE] = PHEMA_JSON_BOOL,
        [JSON_FALSE] = PHEMA_JSON_BOOL,    [JSON_NULL] = PHEMA_JSON_NULL,
    };
    return types[json_typeof(inner(value))];
}

size_t phema_json_length(const struct phema_json *value)
{
    return json_is_array(inner(value)) ? json_array_size(inner(value))
                                       : json_object_size(inner(value));
}

const struct phema_json *phema_json_at(const struct phema_json *array, size_t index)
{
    return outer(json_array_get(inner(array), index));
}

const struct phema_json *phema_json_get(const struct phema_json *object, const char *key)
{
    json_t *value = json_object_get(inner(object), key);
    return json_is_null(value) ? NULL : outer(value);
}

/* jansson's iterators do not change the object, though their prototypes lack const. */
static json_t *walked(const struct phema_json *object)
{
    union {
        const struct phema_json *read;
        json_t *walked;
    } value = {.read = object};
    return value.walked;
}

struct phema_json_field *phema_json_first(const struct phema_json *object)
{
    return json_object_iter(walked(object));
}

struct phema_json_field *phema_json_next(const struct phema_json *object,
                                         struct phema_json_field *field)
{
    return json_object_iter_next(walked(object), field);
}

const char *phema_json_key(struct phema_json_field *field, size_t *size)
{
    *size = json_object_iter_key_len(field);
    return json_object_iter_key(field);
}

const struct phema_json *phema_json_value(struct phema_json_field *field)
{
    return outer(json_object_iter_value(field));
}

bool phema_json_boolean(const struct phema_json *value)
{
    return value && json_is_true(inner(value));
}

bool phema_json_u64(uint64_t *out, const struct phema_json *value)
{
    if (!value || !json_is_integer(inner(value)) || json_integer_value(inner(value)) < 0)
        return false;
    *out = (uint64_t)json_integer_value(inner(value));
    return true;
}

bool phema_json_number(double *out, const struct phema_json *value)
{
    if (!value || !json_is_number(inner(value)))
        return false;
    *out = json_number_value(inner(value));
    return true;
}

const char *phema_json_string(const struct phema_json *value, size_t *size)
{
    if (!value || !json_is_string(inner(value)))
        return NULL;
    if (size)
        *size = json_string_length(inner(value));
    return json_string_value(inner(value));
}

const char *phema_json_path(struct phema_arena *arena, const struct phema_json *object,
                            const char *key)
{
    char name[64];
    (void)snprintf(name, sizeof(name), "%s" PHEMA_JSON_BYTES, key);
    size_t size = 0, encoded_size = 0;
    const char *text = phema_json_string(phema_json_get(object, key), &size);
    const struct phema_json *bytes = phema_json_get(object, name);
    const char *encoded = phema_json_string(bytes, &encoded_size);
    if (!text || strlen(text) != size) /* a NUL inside */
        return NULL;
    if (!bytes)
        return phema_arena_copy(arena, text, size);
    if (!encoded || strlen(encoded) != encoded_size)
        return NULL;
    char *path = phema_arena_copy(arena, encoded, encoded_size);
    return path && phema_percent_decode(path, encoded) ? path : NULL;
}
