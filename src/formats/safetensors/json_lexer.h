/* json_lexer.h - a walk through JSON text without building a tree of it: a safetensors header may
 * be 100 MB, and thousands of them are read in a row. Strict: RFC 8259, and less where the callers
 * need less (unsigned integers only). */
#ifndef FORMATS_SAFETENSORS_JSON_LEXER_H
#define FORMATS_SAFETENSORS_JSON_LEXER_H

#include <string.h>

#include "phema/arena.h"
#include "phema/error.h"
#include "phema/span.h"

/* The text must be valid UTF-8. */
struct json_lexer {
    struct phema_span text;
    size_t at;
};

/* Takes the character after any white space; false, and nothing but white space taken, if another
 * stands there. */
bool json_lexer_accept(struct json_lexer *scan, char wanted);

/* "byte N: expected WHAT, found ..." */
enum phema_status json_lexer_fail(const struct json_lexer *scan, const char *wanted,
                                  struct phema_error *err);

/* A string, unescaped: a view of the text where nothing is escaped, else a copy in the arena. */
PHEMA_FALLIBLE json_lexer_string(struct phema_span *out, struct json_lexer *scan,
                                 struct phema_arena *arena, struct phema_error *err);

/* An integer from 0 to 2^64 - 1: no sign, point, exponent or leading zero. */
PHEMA_FALLIBLE json_lexer_u64(uint64_t *out, struct json_lexer *scan, struct phema_error *err);

/* Whether a string that was read is this one. */
static inline bool span_is(struct phema_span span, const char *text)
{
    return span.size == strlen(text) && memcmp(span.data, text, span.size) == 0;
}

#endif
