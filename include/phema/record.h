/* record.h - the fields of a struct as one table, from which its JSON is written. Adding a field to
 * a record is a line of its table; a view says which fields are shown, in which order. */
#ifndef PHEMA_RECORD_H
#define PHEMA_RECORD_H

#include <stddef.h>

#include "phema/json.h"

/* The type of a member, and how it is written. */
enum phema_field_kind {
    PHEMA_FIELD_NUMBER, /* double; NaN is null */
    PHEMA_FIELD_COUNT,  /* uint64_t or size_t */
    PHEMA_FIELD_SMALL,  /* unsigned */
    PHEMA_FIELD_BOOL,
    PHEMA_FIELD_TEXT,  /* const char *, or NULL: null */
    PHEMA_FIELD_PATH,  /* const char *, a text that names files */
    PHEMA_FIELD_BYTES, /* const char *, before the member that is its size_t size: any bytes */
    PHEMA_FIELD_CHARS, /* char [] */
    PHEMA_FIELD_NAME,  /* an enum, as a text of names */
    PHEMA_FIELD_RECORD /* a struct of a table of its own */
};

/* When a field is left out. */
enum phema_field_rule {
    PHEMA_FIELD_ALWAYS,
    PHEMA_FIELD_IF_KNOWN,   /* not NaN, not NULL, not empty BYTES */
    PHEMA_FIELD_IF_ABOVE_0, /* or true */
    PHEMA_FIELD_IF_ABOVE_1
};

struct phema_field {
    const char *name; /* in JSON; NULL ends the table */
    enum phema_field_kind kind;
    size_t offset;
    enum phema_field_rule rule;
    const struct phema_field *fields; /* of a RECORD, all of which are written */
    const char *const *names;         /* of a NAME */
};

/* Rows of a table. */
#define PHEMA_FIELD(kind_, rule_, name_, type, member)                                             \
    {                                                                                              \
        .name = (name_), .kind = PHEMA_FIELD_##kind_, .offset = offsetof(type, member),            \
        .rule = PHEMA_FIELD_##rule_                                                                \
    }
#define PHEMA_FIELD_OF(fields_, name_, type, member)                                               \
    {                                                                                              \
        .name = (name_), .kind = PHEMA_FIELD_RECORD, .offset = offsetof(type, member),             \
        .fields = (fields_)                                                                        \
    }
#define PHEMA_FIELD_NAMED(names_, name_, type, member)                                             \
    {                                                                                              \
        .name = (name_), .kind = PHEMA_FIELD_NAME, .offset = offsetof(type, member),               \
        .names = (names_)                                                                          \
    }

/* Writes the fields that the view names, separated by spaces and in its order, as members of the
 * object that is open. view: NULL for all. A name that the table lacks marks the text as failed. */
void phema_record_write(struct phema_json_out *out, const struct phema_field *fields,
                        const char *view, const void *record);
/* The same as an object. key: NULL for an element of an array */
void phema_record_write_object(struct phema_json_out *out, const char *key,
                               const struct phema_field *fields, const char *view,
                               const void *record);
/* An array of n such objects; size: of one */
void phema_record_write_list(struct phema_json_out *out, const char *key,
                             const struct phema_field *fields, const char *view,
                             const void *records, size_t n, size_t size);

#endif
