// SPDX-License-Identifier: Apache-2.0
/* record.c - JSON from tables of fields. */
#include "phema/record.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static_assert(sizeof(size_t) == sizeof(uint64_t), "PHEMA_FIELD_COUNT");

static double number(const void *member)
{
    return *(const double *)member;
}

static const char *text(const void *member)
{
    return *(const char *const *)member;
}

struct bytes {
    const char *data;
    size_t size;
};

static bool is_shown(const struct phema_field *field, const void *member)
{
    double value = 0;
    if (field->rule == PHEMA_FIELD_ALWAYS)
        return true;
    if (field->kind == PHEMA_FIELD_TEXT || field->kind == PHEMA_FIELD_PATH)
        return text(member) != NULL;
    if (field->kind == PHEMA_FIELD_BYTES)
        return ((const struct bytes *)member)->size > 0;
    if (field->kind == PHEMA_FIELD_NUMBER)
        value = number(member);
    else if (field->kind == PHEMA_FIELD_COUNT)
        value = (double)*(const uint64_t *)member;
    else if (field->kind == PHEMA_FIELD_BOOL)
        value = *(const bool *)member;
    return field->rule == PHEMA_FIELD_IF_KNOWN ? !isnan(value)
                                               : value > (field->rule == PHEMA_FIELD_IF_ABOVE_1);
}

static void write_field(struct phema_json_out *out, const struct phema_field *field,
                        const void *member)
{
    struct bytes bytes;
    switch (field->kind) {
    case PHEMA_FIELD_NUMBER:
        phema_json_out_number(out, field->name, number(member));
        break;
    case PHEMA_FIELD_COUNT:
        phema_json_out_u64(out, field->name, *(const uint64_t *)member);
        break;
    case PHEMA_FIELD_SMALL:
        phema_json_out_u64(out, field->name, *(const unsigned *)member);
        break;
    case PHEMA_FIELD_BOOL:
        phema_json_out_bool(out, field->name, *(const bool *)member);
        break;
    case PHEMA_FIELD_TEXT:
        phema_json_out_string(out, field->name, text(member));
        break;
    case PHEMA_FIELD_PATH:
        phema_json_out_path(out, field->name, text(member));
        break;
    case PHEMA_FIELD_BYTES:
        bytes = *(const struct bytes *)member;
        phema_json_out_bytes(out, field->name, bytes.data ? bytes.data : "", bytes.size);
        break;
    case PHEMA_FIELD_NAME:
        phema_json_out_string(out, field->name, field->names[*(const unsigned *)member]);
        break;
    case PHEMA_FIELD_CHARS:
        phema_json_out_string(out, field->name, member);
        break;
    case PHEMA_FIELD_RECORD:
        phema_record_write_object(out, field->name, field->fields, NULL, member);
        break;
    }
}

static const struct phema_field *find_field(const struct phema_field *fields, const char *name,
                                            size_t size)
{
    for (; fields->name; fields++)
        if (strncmp(fields->name, name, size) == 0 && !fields->name[size])
            return fields;
    return NULL;
}

void phema_record_write(struct phema_json_out *out, const struct phema_field *fields,
                        const char *view, const void *record)
{
    const struct phema_field *next = fields;
    for (; view ? *view != '\0' : next->name != NULL; next++) {
        size_t size = view ? strcspn(view, " ") : 0;
        const struct phema_field *field = view ? find_field(fields, view, size) : next;
        if (!field) {
            out->text->is_failed = true;
            return;
        }
        const void *member = (const char *)record + field->offset;
        if (is_shown(field, member))
            write_field(out, field, member);
        if (view)
            view += size + (view[size] == ' ');
    }
}

void phema_record_write_object(struct phema_json_out *out, const char *key,
                               const struct phema_field *fields, const char *view,
                               const void *record)
{
    phema_json_out_open(out, key, '{');
    phema_record_write(out, fields, view, record);
    phema_json_out_close(out, '}');
}

void phema_record_write_list(struct phema_json_out *out, const char *key,
                             const struct phema_field *fields, const char *view,
                             const void *records, size_t n, size_t size)
{
    phema_json_out_open(out, key, '[');
    for (size_t i = 0; i < n; i++)
        phema_record_write_object(out, NULL, fields, view, (const char *)records + i * size);
    phema_json_out_close(out, ']');
}
