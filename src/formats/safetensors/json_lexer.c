// SPDX-License-Identifier: Apache-2.0
/* json_lexer.c - Streaming JSON lexer for headers of up to 100 MB (RFC 8259). */
#include "safetensors/safetensors.h"

#include <string.h>

static void skip_space(struct json_lexer *scan)
{
    while (scan->at < scan->text.size) {
        uint8_t c = scan->text.data[scan->at];
        if (c != ' ' && c != '\n' && c != '\t' && c != '\r')
            return;
        scan->at++;
    }
}

bool json_lexer_accept(struct json_lexer *scan, char wanted)
{
    skip_space(scan);
    if (scan->at >= scan->text.size || scan->text.data[scan->at] != (uint8_t)wanted)
        return false;
    scan->at++;
    return true;
}

bool json_lexer_accept_null(struct json_lexer *scan)
{
    skip_space(scan);
    if (scan->text.size - scan->at < 4 || memcmp(scan->text.data + scan->at, "null", 4) != 0)
        return false;
    scan->at += 4;
    return true;
}

enum phema_status json_lexer_fail(const struct json_lexer *scan, const char *wanted,
                                  struct phema_error *err)
{
    if (scan->at >= scan->text.size)
        return phema_fail(err, PHEMA_ERR_FILE, "byte %zu: expected %s, found the end", scan->at,
                          wanted);
    uint8_t c = scan->text.data[scan->at];
    if (c > ' ' && c < 0x7F)
        return phema_fail(err, PHEMA_ERR_FILE, "byte %zu: expected %s, found '%c'", scan->at,
                          wanted, c);
    return phema_fail(err, PHEMA_ERR_FILE, "byte %zu: expected %s, found byte 0x%02x", scan->at,
                      wanted, c);
}

static bool read_hex4(uint32_t *out, struct phema_span text, size_t *at)
{
    if (text.size - *at < 4)
        return false;
    uint32_t value = 0;
    for (int i = 0; i < 4; i++) {
        uint8_t c = text.data[(*at)++];
        uint8_t lower = c | 0x20;
        if (c >= '0' && c <= '9')
            value = value * 16 + (uint32_t)(c - '0');
        else if (lower >= 'a' && lower <= 'f')
            value = value * 16 + (uint32_t)(lower - 'a' + 10);
        else
            return false;
    }
    *out = value;
    return true;
}

/* Reads one code point after "\u": two units when the first is a high surrogate. */
static bool read_code_point(uint32_t *out, struct phema_span text, size_t *at)
{
    uint32_t high = 0;
    if (!read_hex4(&high, text, at))
        return false;
    *out = high;
    if (high < 0xD800 || high > 0xDFFF)
        return true;
    uint32_t low = 0;
    if (high > 0xDBFF || text.size - *at < 2 || text.data[*at] != '\\' || text.data[*at + 1] != 'u')
        return false;
    *at += 2;
    if (!read_hex4(&low, text, at) || low < 0xDC00 || low > 0xDFFF)
        return false;
    *out = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
    return true;
}

static size_t put_utf8(uint8_t *out, uint32_t c)
{
    static const uint8_t marks[] = {0, 0, 0xC0, 0xE0, 0xF0};
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; c >>= 6)
        out[i] = (uint8_t)(0x80 | (c & 0x3F));
    out[0] = (uint8_t)(marks[n] | c);
    return n;
}

/* The character that a backslash followed by this character means; 0: none. */
static uint8_t unescaped(uint8_t c)
{
    static const char escapes[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    const char *found = c ? strchr(escapes, c) : NULL;
    return found ? (uint8_t)meanings[found - escapes] : 0;
}

/* raw: the text between the quotes. No escape is shorter than its character. */
static enum phema_status unescape(struct phema_span *out, struct phema_span raw, size_t position,
                                  struct phema_arena *arena, struct phema_error *err)
{
    uint8_t *text = phema_arena_alloc(arena, raw.size);
    if (!text)
        return phema_fail_memory(err);
    size_t used = 0;
    for (size_t at = 0; at < raw.size;) {
        uint8_t c = raw.data[at++];
        if (c != '\\') {
            text[used++] = c;
            continue;
        }
        size_t escape = position + at - 1;
        uint32_t code_point = 0;
        c = raw.data[at++]; /* the closing quote was not the one after this backslash */
        if (c != 'u') {
            text[used] = unescaped(c);
            if (!text[used++])
                return phema_fail(err, PHEMA_ERR_FILE, "byte %zu: JSON has no such escape", escape);
            continue;
        }
        if (!read_code_point(&code_point, raw, &at))
            return phema_fail(err, PHEMA_ERR_FILE,
                              "byte %zu: expected \\u with four hexadecimal digits, surrogates in "
                              "pairs",
                              escape);
        used += put_utf8(text + used, code_point);
    }
    *out = (struct phema_span){text, used};
    return PHEMA_OK;
}

enum phema_status json_lexer_string(struct phema_span *out, struct json_lexer *scan,
                                    struct phema_error *err)
{
    if (!json_lexer_accept(scan, '"'))
        return json_lexer_fail(scan, "a string", err);
    const uint8_t *data = scan->text.data;
    size_t start = scan->at;
    bool is_escaped = false;
    while (scan->at < scan->text.size && data[scan->at] != '"') {
        if (data[scan->at] < ' ')
            return json_lexer_fail(scan, "control characters in strings to be escaped", err);
        if (data[scan->at] == '\\') {
            is_escaped = true;
            scan->at++;
            if (scan->at >= scan->text.size || data[scan->at] < ' ')
                return json_lexer_fail(scan, "an escape", err);
        }
        scan->at++;
    }
    if (scan->at >= scan->text.size)
        return json_lexer_fail(scan, "a closing quote", err);
    struct phema_span raw = {data + start, scan->at - start};
    scan->at++;
    if (is_escaped)
        return unescape(out, raw, start, scan->arena, err);
    *out = raw;
    return PHEMA_OK;
}

enum phema_status json_lexer_key(struct phema_span *out, struct json_lexer *scan,
                                 struct phema_error *err)
{
    enum phema_status status = json_lexer_string(out, scan, err);
    if (status)
        return status;
    return json_lexer_accept(scan, ':') ? PHEMA_OK : json_lexer_fail(scan, "':'", err);
}

enum phema_status json_lexer_items(struct json_lexer *scan, char open, const char *wanted,
                                   json_lexer_read *read, void *context, struct phema_error *err)
{
    bool is_object = open == '{';
    char close = is_object ? '}' : ']';
    if (!json_lexer_accept(scan, open))
        return json_lexer_fail(scan, wanted, err);
    bool is_end = json_lexer_accept(scan, close);
    while (!is_end) {
        enum phema_status status = read(context, err);
        if (status)
            return status;
        is_end = json_lexer_accept(scan, close);
        if (!is_end && !json_lexer_accept(scan, ','))
            return json_lexer_fail(scan, is_object ? "',' or '}'" : "',' or ']'", err);
    }
    return PHEMA_OK;
}

enum phema_status json_lexer_u64(uint64_t *out, struct json_lexer *scan, struct phema_error *err)
{
    static const char wanted[] = "a plain integer below 2^64";
    skip_space(scan);
    const uint8_t *data = scan->text.data;
    size_t start = scan->at;
    uint64_t value = 0;
    while (scan->at < scan->text.size && data[scan->at] >= '0' && data[scan->at] <= '9') {
        if (!phema_size_mul(&value, value, 10) ||
            !phema_size_add(&value, value, (uint64_t)(data[scan->at] - '0')))
            return json_lexer_fail(scan, wanted, err);
        scan->at++;
    }
    size_t n_digits = scan->at - start;
    if (n_digits == 0 || (n_digits > 1 && data[start] == '0'))
        return json_lexer_fail(scan, wanted, err);
    *out = value;
    return PHEMA_OK; /* the caller refuses a point or an exponent */
}
