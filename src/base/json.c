// SPDX-License-Identifier: Apache-2.0
/* json.c - JSON parsing (the only user of jansson), and streaming output, member by member. struct
 * phema_json is jansson's json_t and a field is its iterator; neither is defined anywhere else. */
#include "phema/json.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Reading ---- */

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

/* ---- Writing ---- */

/* true for nearly all characters of names. */
static bool is_plain(char c)
{
    return c >= 0x20 && c < 0x7F && c != '"' && c != '\\';
}

/* Escapes a code point as UTF-16 units. */
static void write_unit(struct phema_strbuf *text, uint32_t point)
{
    if (point > 0xFFFF)
        phema_strbuf_printf(text, "\\u%04x\\u%04x", 0xD7C0 + (point >> 10),
                            0xDC00 + (point & 0x3FF));
    else
        phema_strbuf_printf(text, "\\u%04x", point);
}

/* Escapes control and invisible characters too, since people read JSON on terminals. */
static void write_escaped(struct phema_strbuf *text, const char *data, size_t size)
{
    phema_strbuf_puts(text, "\"");
    for (size_t at = 0; at < size;) {
        size_t end = at;
        while (end < size && is_plain(data[end]))
            end++;
        phema_strbuf_append(text, data + at, end - at);
        at = end;
        if (at == size)
            break;
        unsigned char c = (unsigned char)data[at];
        uint32_t point = 0;
        size_t hidden = 0;
        if (c == '"' || c == '\\') {
            char pair[2] = {'\\', (char)c};
            phema_strbuf_append(text, pair, 2);
            at++;
        } else if (c < 0x20 || c == 0x7F) {
            write_unit(text, c);
            at++;
        } else if ((hidden = phema_hidden_length(&point, data + at, size - at))) {
            write_unit(text, point);
            at += hidden;
        } else {
            /* invalid UTF-8 becomes the replacement character */
            size_t length = c < 0x80 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
            if (length <= size - at && phema_is_utf8(data + at, length)) {
                phema_strbuf_append(text, data + at, length);
                at += length;
            } else {
                phema_strbuf_puts(text, "\xEF\xBF\xBD");
                at++;
            }
        }
    }
    phema_strbuf_puts(text, "\"");
}

static void begin_member(struct phema_json_out *out)
{
    if (out->needs_comma)
        phema_strbuf_puts(out->text, ",");
    if (out->is_pretty && out->depth > 0 && out->depth <= 2)
        phema_strbuf_printf(out->text, "\n%*s", (int)out->depth, "");
    else if (out->needs_comma && out->is_pretty)
        phema_strbuf_puts(out->text, " ");
}

void phema_json_out_key(struct phema_json_out *out, const char *key, size_t size)
{
    begin_member(out);
    write_escaped(out->text, key, size);
    phema_strbuf_puts(out->text, out->is_pretty ? ": " : ":");
    out->is_after_key = true;
}

static void begin_value(struct phema_json_out *out, const char *key)
{
    if (key)
        phema_json_out_key(out, key, strlen(key));
    else if (!out->is_after_key)
        begin_member(out);
    out->is_after_key = false;
    out->needs_comma = true;
}

void phema_json_out_open(struct phema_json_out *out, const char *key, char bracket)
{
    begin_value(out, key);
    phema_strbuf_append(out->text, &bracket, 1);
    out->needs_comma = false;
    out->depth++;
}

void phema_json_out_close(struct phema_json_out *out, char bracket)
{
    out->depth--;
    if (out->is_pretty && out->needs_comma && out->depth < 2)
        phema_strbuf_printf(out->text, "\n%*s", (int)out->depth, "");
    phema_strbuf_append(out->text, &bracket, 1);
    out->needs_comma = true;
}

void phema_json_out_bytes(struct phema_json_out *out, const char *key, const char *value,
                          size_t size)
{
    begin_value(out, key);
    write_escaped(out->text, value, size);
}

void phema_json_out_string(struct phema_json_out *out, const char *key, const char *value)
{
    if (value)
        phema_json_out_bytes(out, key, value, strlen(value));
    else
        phema_json_out_null(out, key);
}

void phema_json_out_path(struct phema_json_out *out, const char *key, const char *value)
{
    phema_json_out_string(out, key, value);
    if (!value || phema_is_utf8(value, strlen(value)))
        return;
    char name[64];
    struct phema_strbuf bytes = {0};
    (void)snprintf(name, sizeof(name), "%s" PHEMA_JSON_BYTES, key);
    phema_strbuf_puts_percent(&bytes, value);
    if (bytes.is_failed)
        out->text->is_failed = true;
    else
        phema_json_out_string(out, name, bytes.data);
    phema_strbuf_clear(&bytes);
}

/* Numbers of 15 digits and fewer come back from 15 digits as they were. */
void phema_json_out_number(struct phema_json_out *out, const char *key, double value)
{
    char text[32] = "null";
    for (int digits = out->has_all_digits ? 17 : 15; digits <= 17 && isfinite(value); digits++) {
        (void)snprintf(text, sizeof(text), "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    begin_value(out, key);
    phema_strbuf_puts(out->text, text);
}

void phema_json_out_numbers(struct phema_json_out *out, const char *key, const double *values,
                            size_t n)
{
    phema_json_out_open(out, key, '[');
    for (size_t i = 0; i < n; i++)
        phema_json_out_number(out, NULL, values[i]);
    phema_json_out_close(out, ']');
}

void phema_json_out_u64(struct phema_json_out *out, const char *key, uint64_t value)
{
    begin_value(out, key);
    char digits[20]; /* of 2^64 - 1; headers hold millions of numbers, for which printf is slow */
    size_t at = sizeof(digits);
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    phema_strbuf_append(out->text, digits + at, sizeof(digits) - at);
}

void phema_json_out_bool(struct phema_json_out *out, const char *key, bool value)
{
    begin_value(out, key);
    phema_strbuf_puts(out->text, value ? "true" : "false");
}

void phema_json_out_null(struct phema_json_out *out, const char *key)
{
    begin_value(out, key);
    phema_strbuf_puts(out->text, "null");
}

/* Numbers above 2^53 that are negative lose digits. */
static void copy_number(struct phema_json_out *out, const char *key, const struct phema_json *value)
{
    uint64_t whole = 0;
    double number = 0;
    if (phema_json_u64(&whole, value))
        phema_json_out_u64(out, key, whole);
    else if (phema_json_number(&number, value))
        phema_json_out_number(out, key, number);
}

static void copy_members(struct phema_json_out *out, const struct phema_json *value)
{
    for (size_t i = 0; phema_json_type(value) == PHEMA_JSON_ARRAY && i < phema_json_length(value);
         i++)
        phema_json_out_copy(out, NULL, phema_json_at(value, i));
    struct phema_json_field *field =
        phema_json_type(value) == PHEMA_JSON_OBJECT ? phema_json_first(value) : NULL;
    for (; field; field = phema_json_next(value, field)) {
        size_t size = 0;
        const char *key = phema_json_key(field, &size);
        phema_json_out_key(out, key, size);
        phema_json_out_copy(out, NULL, phema_json_value(field));
    }
}

/* As deep as the reader lets documents be. */
void phema_json_out_copy(struct phema_json_out *out, const char *key,
                         const struct phema_json *value)
{
    size_t size = 0;
    const char *text = NULL;
    switch (phema_json_type(value)) {
    case PHEMA_JSON_NULL:
        phema_json_out_null(out, key);
        break;
    case PHEMA_JSON_BOOL:
        phema_json_out_bool(out, key, phema_json_boolean(value));
        break;
    case PHEMA_JSON_INTEGER:
    case PHEMA_JSON_REAL:
        copy_number(out, key, value);
        break;
    case PHEMA_JSON_STRING:
        text = phema_json_string(value, &size);
        phema_json_out_bytes(out, key, text, size);
        break;
    case PHEMA_JSON_ARRAY:
        phema_json_out_open(out, key, '[');
        copy_members(out, value);
        phema_json_out_close(out, ']');
        break;
    case PHEMA_JSON_OBJECT:
        phema_json_out_open(out, key, '{');
        copy_members(out, value);
        phema_json_out_close(out, '}');
        break;
    }
}
