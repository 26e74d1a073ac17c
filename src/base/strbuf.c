// SPDX-License-Identifier: Apache-2.0
/* strbuf.c - growing strings; words quoted for a shell; escaping of names for messages. */
#include "phema/strbuf.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void phema_strbuf_clear(struct phema_strbuf *text)
{
    free(text->data);
    *text = (struct phema_strbuf){0};
}

void phema_strbuf_clear_part(struct phema_strbuf *part, struct phema_strbuf *whole)
{
    whole->is_failed |= part->is_failed;
    phema_strbuf_clear(part);
}

/* Reserves size more bytes and a NUL. */
static bool reserve(struct phema_strbuf *text, size_t size)
{
    if (text->is_failed)
        return false;
    if (size < text->capacity - text->size && text->data)
        return true;
    size_t capacity = text->capacity ? text->capacity : 256;
    while (capacity - text->size <= size) {
        if (capacity > SIZE_MAX / 4) {
            text->is_failed = true;
            return false;
        }
        capacity *= 2;
    }
    char *data = realloc(text->data, capacity);
    if (!data) {
        text->is_failed = true;
        return false;
    }
    text->data = data;
    text->capacity = capacity;
    return true;
}

void phema_strbuf_append(struct phema_strbuf *text, const char *data, size_t size)
{
    if (!reserve(text, size))
        return;
    if (size)
        memcpy(text->data + text->size, data, size);
    text->size += size;
    text->data[text->size] = '\0';
}

void phema_strbuf_append_u64(struct phema_strbuf *text, uint64_t number)
{
    uint8_t bytes[8];
    phema_store_u64(bytes, number);
    phema_strbuf_append(text, (const char *)bytes, sizeof(bytes));
}

void phema_strbuf_puts(struct phema_strbuf *text, const char *string)
{
    phema_strbuf_append(text, string, strlen(string));
}

void phema_strbuf_printf(struct phema_strbuf *text, const char *format, ...)
{
    if (!reserve(text, 0))
        return;
    va_list args;
    va_start(args, format);
    va_list again;
    va_copy(again, args);
    /* into the free bytes, and once more where they are too few */
    size_t n_free = text->capacity - text->size;
    int size = vsnprintf(text->data + text->size, n_free, format, args);
    va_end(args);
    if (size < 0)
        text->is_failed = true;
    else if ((size_t)size < n_free)
        text->size += (size_t)size;
    else if (reserve(text, (size_t)size)) {
        (void)vsnprintf(text->data + text->size, (size_t)size + 1, format, again);
        text->size += (size_t)size;
    }
    va_end(again);
    text->data[text->size] = '\0'; /* of a text that could not grow */
}

/* ---- Words of commands ---- */

/* At its beginning, '=' looks up a command in zsh, and %self is a number in fish. */
static bool is_plain_word(const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "@%+=:,./_-";
    return *word && !strchr("=%", *word) && word[strspn(word, plain)] == '\0';
}

/* True for a quote, and for a backslash that would escape a quote or a backslash within quotes in
 * fish. Such characters stand outside of the quotes, after a backslash. */
static bool is_outside_of_quotes(const char *at)
{
    return *at == '\'' || (*at == '\\' && (!at[1] || at[1] == '\'' || at[1] == '\\'));
}

void phema_strbuf_put_word(struct phema_strbuf *text, const char *word)
{
    if (is_plain_word(word)) {
        phema_strbuf_puts(text, word);
        return;
    }
    phema_strbuf_puts(text, "'");
    for (; *word; word++) {
        bool is_outside = is_outside_of_quotes(word);
        phema_strbuf_append(text, "'\\", is_outside ? 2 : 0);
        phema_strbuf_append(text, word, 1);
        phema_strbuf_append(text, "'", is_outside);
    }
    phema_strbuf_puts(text, "'");
}

void phema_strbuf_put_operand(struct phema_strbuf *text, const char *path)
{
    if (path[0] == '-')
        phema_strbuf_puts(text, "./");
    phema_strbuf_put_word(text, path);
}

void phema_strbuf_puts_markup(struct phema_strbuf *text, const char *string, const char *special)
{
    static const char all[] = "<>&\"'";
    static const char *const names[] = {"&lt;", "&gt;", "&amp;", "&quot;", "&#39;"};
    for (; *string; string++)
        if (strchr(special, *string))
            phema_strbuf_puts(text, names[strchr(all, *string) - all]);
        else
            phema_strbuf_append(text, string, 1);
}

PHEMA_FALLIBLE phema_strbuf_check(const struct phema_strbuf *text, struct phema_error *err)
{
    return text->is_failed ? phema_fail_memory(err) : PHEMA_OK;
}

/* Bytes of the UTF-8 character that begins at data; 0 for invalid UTF-8, such as overlong forms,
 * surrogates and code points beyond U+10FFFF (RFC 3629). */
static size_t utf8_length(const uint8_t *data, size_t size)
{
    uint8_t lead = data[0];
    if (lead < 0x80)
        return 1;
    size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (lead < 0xC2 || lead > 0xF4 || length > size)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((data[i] & 0xC0) != 0x80)
            return 0;
    if ((lead == 0xE0 && data[1] < 0xA0) || (lead == 0xED && data[1] > 0x9F) ||
        (lead == 0xF0 && data[1] < 0x90) || (lead == 0xF4 && data[1] > 0x8F))
        return 0;
    return length;
}

bool phema_is_utf8(const char *data, size_t size)
{
    const uint8_t *bytes = (const uint8_t *)data;
    for (size_t at = 0; at < size;) {
        if (size - at >= 8 && !(phema_load_u64(bytes + at) & 0x8080808080808080u)) {
            at += 8; /* headers are ASCII mostly, and may be 100 MB */
            continue;
        }
        size_t length = utf8_length(bytes + at, size - at);
        if (!length)
            return false;
        at += length;
    }
    return true;
}

/* Control characters beyond ASCII. Characters that are invisible or change the direction of text:
 * marks and overrides of direction, spaces without width, joiners, line separators, tags. */
static const struct {
    uint32_t first, last;
} hidden[] = {{0x80, 0x9F},     {0xAD, 0xAD},      {0x61C, 0x61C},   {0x180E, 0x180E},
              {0x200B, 0x200F}, {0x2028, 0x202E},  {0x2060, 0x206F}, {0xFEFF, 0xFEFF},
              {0xFFF9, 0xFFFB}, {0xE0000, 0xE007F}};

size_t phema_hidden_length(uint32_t *point, const char *data, size_t size)
{
    const uint8_t *bytes = (const uint8_t *)data;
    size_t length = utf8_length(bytes, size);
    if (length < 2)
        return 0;
    *point = bytes[0] & (0x7Fu >> length);
    for (size_t i = 1; i < length; i++)
        *point = *point << 6 | (bytes[i] & 0x3Fu);
    for (size_t i = 0; i < ARRAY_LEN(hidden); i++)
        if (*point >= hidden[i].first && *point <= hidden[i].last)
            return length;
    return 0;
}

#define SHOWN_CHARACTER 12 /* "\U000e0001" and a NUL */

/* Writes one character of a name to out. Returns the bytes that it has in the name. */
static size_t show_character(char out[SHOWN_CHARACTER], const uint8_t *bytes, size_t size,
                             const char *escaped)
{
    size_t length = utf8_length(bytes, size);
    uint32_t point = 0;
    if (phema_hidden_length(&point, (const char *)bytes, size)) {
        (void)snprintf(out, SHOWN_CHARACTER, point > 0xFFFF ? "\\U%08x" : "\\u%04x", point);
        return length;
    }
    if (length > 1) {
        memcpy(out, bytes, length);
        out[length] = '\0';
        return length;
    }
    if (length == 1 && bytes[0] >= ' ' && bytes[0] != 0x7F) {
        char *end = out;
        if (strchr(escaped, bytes[0]))
            *end++ = '\\';
        *end++ = (char)bytes[0];
        *end = '\0';
        return 1;
    }
    if (bytes[0] == '\n' || bytes[0] == '\t')
        (void)snprintf(out, SHOWN_CHARACTER, bytes[0] == '\n' ? "\\n" : "\\t");
    else
        (void)snprintf(out, SHOWN_CHARACTER, "\\x%02x", bytes[0]);
    return 1;
}

const char *phema_name_escape(struct phema_name_buffer *buffer, const char *name, size_t size)
{
    const uint8_t *bytes = (const uint8_t *)name;
    size_t used = 0;
    for (size_t at = 0; at < size;) {
        char shown[SHOWN_CHARACTER];
        size_t taken = show_character(shown, bytes + at, size - at, "\\'");
        size_t length = strlen(shown);
        if (used + length > PHEMA_NAME_SHOWN) {
            memcpy(buffer->text + used, "...", 4);
            return buffer->text;
        }
        memcpy(buffer->text + used, shown, length);
        used += length;
        at += taken;
    }
    buffer->text[used] = '\0';
    return buffer->text;
}

/* kept: control characters that stay as they are */
static void append_escaped(struct phema_strbuf *text, const char *data, size_t size,
                           const char *kept)
{
    const uint8_t *bytes = (const uint8_t *)data;
    for (size_t at = 0; at < size;) {
        size_t end = at;
        while (end < size && ((bytes[end] >= ' ' && bytes[end] < 0x7F) ||
                              (bytes[end] && strchr(kept, bytes[end]))))
            end++;
        phema_strbuf_append(text, data + at, end - at);
        at = end;
        if (at == size)
            break;
        char shown[SHOWN_CHARACTER];
        at += show_character(shown, bytes + at, size - at, "");
        phema_strbuf_puts(text, shown);
    }
}

void phema_strbuf_puts_escaped(struct phema_strbuf *text, const char *string)
{
    append_escaped(text, string, strlen(string), "");
}

void phema_strbuf_append_lines(struct phema_strbuf *text, const char *data, size_t size)
{
    append_escaped(text, data, size, "\n\t");
}

/* true for characters that URLs hold unescaped and that mean nothing in JSON or to a shell. */
static bool is_plain_in_paths(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("-._~/:,+@=", c));
}

void phema_strbuf_puts_percent(struct phema_strbuf *text, const char *string)
{
    for (; *string; string++)
        phema_strbuf_printf(text, is_plain_in_paths(*string) ? "%c" : "%%%02X",
                            is_plain_in_paths(*string) ? *string : (uint8_t)*string);
}

static int hex_digit(char c)
{
    static const char digits[] = "0123456789ABCDEF0123456789abcdef";
    const char *found = c ? strchr(digits, c) : NULL;
    return found ? (int)(found - digits) % 16 : -1;
}

bool phema_percent_decode(char *out, const char *string)
{
    for (; *string; string++) {
        char c = *string;
        if (c == '%') {
            int high = hex_digit(string[1]), low = high < 0 ? -1 : hex_digit(string[2]);
            if (low < 0 || high * 16 + low == 0)
                return false;
            c = (char)(high * 16 + low);
            string += 2;
        }
        *out++ = c;
    }
    *out = '\0';
    return true;
}

const char *phema_number_format(struct phema_name_buffer *buffer, double value)
{
    if (value == floor(value) && fabs(value) < 1e15) {
        (void)snprintf(buffer->text, sizeof(buffer->text), "%.0f", value);
        return buffer->text;
    }
    for (int digits = 1; digits <= 17; digits++) {
        (void)snprintf(buffer->text, sizeof(buffer->text), "%.*g", digits, value);
        if (strtod(buffer->text, NULL) == value)
            break;
    }
    return buffer->text;
}

/* Three digits; is_enough: rounded up. */
static const char *show_size(struct phema_name_buffer *buffer, uint64_t size_bytes, bool is_enough)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)size_bytes;
    size_t unit = 0;
    while (value >= 999.5 && unit + 1 < ARRAY_LEN(units)) {
        value /= 1024;
        unit++;
    }
    int digits = unit == 0 || value >= 99.5 ? 0 : value >= 9.95 ? 1 : 2;
    double scale = digits == 0 ? 1 : digits == 1 ? 10 : 100;
    if (is_enough)
        value = ceil(value * scale) / scale;
    (void)snprintf(buffer->text, sizeof(buffer->text), "%.*f %s", digits, value, units[unit]);
    return buffer->text;
}

const char *phema_size_format(struct phema_name_buffer *buffer, uint64_t size_bytes)
{
    return show_size(buffer, size_bytes, false);
}

const char *phema_size_enough(struct phema_name_buffer *buffer, uint64_t size_bytes)
{
    return show_size(buffer, size_bytes, true);
}

const char *phema_name_show(struct phema_name_buffer *buffer, const char *name)
{
    return phema_name_escape(buffer, name, strlen(name));
}

bool phema_ends_with(const char *string, const char *end)
{
    size_t size = strlen(string), end_size = strlen(end);
    return size > end_size && memcmp(string + size - end_size, end, end_size) == 0;
}
