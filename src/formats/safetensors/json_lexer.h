/* json_lexer.h - Reads JSON text without building a tree: a safetensors header may have 100 MB, and
 * a series has thousands of headers. Strict RFC 8259, restricted to unsigned integers. */
#ifndef FORMATS_SAFETENSORS_JSON_LEXER_H
#define FORMATS_SAFETENSORS_JSON_LEXER_H

#include "phema/arena.h"
#include "phema/error.h"
#include "phema/span.h"

struct json_lexer {
    struct phema_span text; /* valid UTF-8 */
    size_t at;
    struct phema_arena *arena; /* memory of strings with escapes */
};

/* Skips white space, then the given character. False when another character follows. */
bool json_lexer_accept(struct json_lexer *scan, char wanted);

/* The same with the word null. */
bool json_lexer_accept_null(struct json_lexer *scan);

/* "byte N: expected WHAT, found ..." */
enum phema_status json_lexer_fail(const struct json_lexer *scan, const char *wanted,
                                  struct phema_error *err);

/* Reads a string and unescapes it: a view of the text without escapes, else a copy in the arena. */
PHEMA_FALLIBLE json_lexer_string(struct phema_span *out, struct json_lexer *scan,
                                 struct phema_error *err);

/* Reads the key of a member and the colon after it. */
PHEMA_FALLIBLE json_lexer_key(struct phema_span *out, struct json_lexer *scan,
                              struct phema_error *err);

/* Reads an array or an object and calls read at the start of each item or member.
 *   open    [ or {
 *   wanted  for the message when another character comes */
typedef enum phema_status json_lexer_read(void *context, struct phema_error *err);
PHEMA_FALLIBLE json_lexer_items(struct json_lexer *scan, char open, const char *wanted,
                                json_lexer_read *read, void *context, struct phema_error *err);

/* Reads an integer from 0 to 2^64 - 1: no sign, point, exponent or leading zero. */
PHEMA_FALLIBLE json_lexer_u64(uint64_t *out, struct json_lexer *scan, struct phema_error *err);

#endif
