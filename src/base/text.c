// SPDX-License-Identifier: Apache-2.0
/* text.c - growing text; UTF-8; names for people. */
#include "phema/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void phema_text_clear(struct phema_text *text)
{
    free(text->data);
    *text = (struct phema_text){0};
}

/* Room for size more bytes and a NUL. */
static bool reserve(struct phema_text *text, size_t size)
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

void phema_text_append(struct phema_text *text, const char *data, size_t size)
{
    if (!reserve(text, size))
        return;
    if (size)
        memcpy(text->data + text->size, data, size);
    text->size += size;
    text->data[text->size] = '\0';
}

void phema_text_puts(struct phema_text *text, const char *string)
{
    phema_text_append(text, string, strlen(string));
}

void phema_text_printf(struct phema_text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    va_list again;
    va_copy(again, args);
    int size = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (size < 0)
        text->is_failed = true;
    else if (reserve(text, (size_t)size)) {
        (void)vsnprintf(text->data + text->size, (size_t)size + 1, format, again);
        text->size += (size_t)size;
    }
    va_end(again);
}

PHEMA_FALLIBLE phema_text_check(const struct phema_text *text, struct phema_error *err)
{
    return text->is_failed ? phema_fail_memory(err) : PHEMA_OK;
}

/* Bytes of the UTF-8 character that begins at data, 0 when it is none (overlong forms, surrogates
 * and what lies beyond U+10FFFF are none: RFC 3629). */
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

/* One character of a name into out (at most 8 bytes and a NUL), returning how many bytes were
 * taken. C1 controls are escaped as well: terminals obey them. */
static size_t show_character(char out[9], const uint8_t *bytes, size_t size, const char *escaped)
{
    size_t length = utf8_length(bytes, size);
    bool is_c1 = length == 2 && bytes[0] == 0xC2 && bytes[1] < 0xA0;
    if (length > 1 && !is_c1) {
        memcpy(out, bytes, length);
        out[length] = '\0';
        return length;
    }
    if (length == 1 && bytes[0] >= ' ' && bytes[0] != 0x7F) {
        (void)snprintf(out, 9, strchr(escaped, bytes[0]) ? "\\%c" : "%c", bytes[0]);
        return 1;
    }
    if (bytes[0] == '\n' || bytes[0] == '\t')
        (void)snprintf(out, 9, bytes[0] == '\n' ? "\\n" : "\\t");
    else
        (void)snprintf(out, 9, "\\x%02x", bytes[0]);
    return 1;
}

const char *phema_name_shown(struct phema_name_buffer *buffer, const char *name, size_t size)
{
    const uint8_t *bytes = (const uint8_t *)name;
    size_t used = 0;
    for (size_t at = 0; at < size;) {
        char shown[9];
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

void phema_text_puts_shown(struct phema_text *text, const char *string)
{
    const uint8_t *bytes = (const uint8_t *)string;
    size_t size = strlen(string);
    for (size_t at = 0; at < size;) {
        char shown[9];
        at += show_character(shown, bytes + at, size - at, "");
        phema_text_puts(text, shown);
    }
}

const char *phema_number_shown(struct phema_name_buffer *buffer, double value)
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

const char *phema_size_shown(struct phema_name_buffer *buffer, uint64_t size_bytes)
{
    return show_size(buffer, size_bytes, false);
}

const char *phema_size_enough(struct phema_name_buffer *buffer, uint64_t size_bytes)
{
    return show_size(buffer, size_bytes, true);
}

bool phema_ends_with(const char *string, const char *end)
{
    size_t size = strlen(string), end_size = strlen(end);
    return size > end_size && memcmp(string + size - end_size, end, end_size) == 0;
}
