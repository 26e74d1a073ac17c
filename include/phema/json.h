/* json.h - parsing of JSON documents and streaming output of JSON.
 * Reading refuses duplicate keys, anything after the document, invalid UTF-8, and objects nested
 * deeper than the reader's limit. Values are borrowed from their document. */
#ifndef PHEMA_JSON_H
#define PHEMA_JSON_H

#include "phema/arena.h"
#include "phema/error.h"
#include "phema/span.h"
#include "phema/strbuf.h"

struct phema_json;       /* one value of a document */
struct phema_json_field; /* position in an object, in document order */

/* PHEMA_ERR_FILE: the message names the fault and its byte; the caller adds the file. */
PHEMA_FALLIBLE phema_json_parse(struct phema_json **out, struct phema_span text,
                                struct phema_error *err);
void phema_json_free(struct phema_json *document); /* the root only; takes NULL */

enum phema_json_type {
    PHEMA_JSON_NULL,
    PHEMA_JSON_BOOL,
    PHEMA_JSON_INTEGER,
    PHEMA_JSON_REAL,
    PHEMA_JSON_STRING,
    PHEMA_JSON_ARRAY,
    PHEMA_JSON_OBJECT
};
enum phema_json_type phema_json_type(const struct phema_json *value);

size_t phema_json_length(const struct phema_json *value); /* of arrays and objects, else 0 */
const struct phema_json *phema_json_at(const struct phema_json *array, size_t index);
/* NULL: the object has no such key, or null as its value. */
const struct phema_json *phema_json_get(const struct phema_json *object, const char *key);

/* Walk an object: for (f = first(o); f; f = next(o, f)). */
struct phema_json_field *phema_json_first(const struct phema_json *object);
struct phema_json_field *phema_json_next(const struct phema_json *object,
                                         struct phema_json_field *field);
const char *phema_json_key(struct phema_json_field *field, size_t *size);
const struct phema_json *phema_json_value(struct phema_json_field *field);

bool phema_json_boolean(const struct phema_json *value); /* false unless true */
/* false when the value is of another type or, for u64, negative */
bool phema_json_u64(uint64_t *out, const struct phema_json *value);
bool phema_json_number(double *out, const struct phema_json *value);         /* also integers */
const char *phema_json_string(const struct phema_json *value, size_t *size); /* NULL: no string */
/* A path that phema_json_out_path has written; the arena's. NULL: not a string, holds a NUL, its
 * "KEY_bytes" is not percent-encoded, or there is no memory. */
const char *phema_json_path(struct phema_arena *arena, const struct phema_json *object,
                            const char *key);

/* Writing: appends to a text, with commas and quotes. key: of a member of an object; NULL for
 * members of arrays and the root. Numbers have the fewest digits that are read as the same
 * double; NaN and infinities become null. */
struct phema_json_out {
    struct phema_strbuf *text;
    bool needs_comma; /* a member precedes the next one */
    bool is_after_key;
    bool has_all_digits; /* 17 in each number, also where fewer say the same */
    bool is_pretty;      /* line breaks between the members of the outer two levels */
    unsigned depth;
};
void phema_json_out_open(struct phema_json_out *out, const char *key, char bracket); /* { or [ */
void phema_json_out_close(struct phema_json_out *out, char bracket);                 /* } or ] */
/* value: NULL becomes null, also for a path */
void phema_json_out_string(struct phema_json_out *out, const char *key, const char *value);
void phema_json_out_bytes(struct phema_json_out *out, const char *key, const char *value,
                          size_t size); /* invalid UTF-8 becomes U+FFFD */
/* A path, a command or another text that names files. Where its bytes are not UTF-8, a second
 * member "KEY_bytes" has all of them as phema_strbuf_puts_percent writes them. */
#define PHEMA_JSON_BYTES "_bytes"
void phema_json_out_path(struct phema_json_out *out, const char *key, const char *value);
void phema_json_out_number(struct phema_json_out *out, const char *key, double value);
/* A list of numbers. */
void phema_json_out_numbers(struct phema_json_out *out, const char *key, const double *values,
                            size_t n);
void phema_json_out_u64(struct phema_json_out *out, const char *key, uint64_t value);
void phema_json_out_bool(struct phema_json_out *out, const char *key, bool value);
void phema_json_out_null(struct phema_json_out *out, const char *key);
/* A value of a document with all that it holds. */
void phema_json_out_copy(struct phema_json_out *out, const char *key,
                         const struct phema_json *value);
/* Begins a member whose key is any UTF-8, such as the name of a tensor; write its value next, with
 * key NULL. */
void phema_json_out_key(struct phema_json_out *out, const char *key, size_t size);

#endif
