/* span.h - a view of bytes, comparison of bytes, and arithmetic on sizes that came from a file.
 * Sizes from a file are unchecked input: no other file adds or multiplies them. */
#ifndef PHEMA_SPAN_H
#define PHEMA_SPAN_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* An unknown number: the width of a file name without one, a prediction without a target. */
#define PHEMA_UNKNOWN ((double)NAN)

#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))

struct phema_span {
    const uint8_t *data;
    size_t size;
};

static inline struct phema_span phema_span_of(const char *text)
{
    return (struct phema_span){(const uint8_t *)text, strlen(text)};
}

/* false, and *out as it was, when the result does not fit 64 bits */
static inline bool phema_size_add(uint64_t *out, uint64_t a, uint64_t b)
{
    uint64_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return false;
    *out = sum;
    return true;
}

static inline bool phema_size_mul(uint64_t *out, uint64_t a, uint64_t b)
{
    uint64_t product;
    if (__builtin_mul_overflow(a, b, &product))
        return false;
    *out = product;
    return true;
}

/* Bytes [offset, offset + size) of a span; false when they are not all inside. */
static inline bool phema_span_part(struct phema_span *out, struct phema_span span, uint64_t offset,
                                   uint64_t size)
{
    if (offset > span.size || size > span.size - offset)
        return false;
    out->data = span.data ? span.data + offset : NULL;
    out->size = (size_t)size;
    return true;
}

/* true when size bytes are this text and no more */
static inline bool phema_bytes_are(const void *data, size_t size, const char *text)
{
    return size == strlen(text) && memcmp(data, text, size) == 0;
}

/* the same of one of n texts */
static inline bool phema_bytes_are_any(const void *data, size_t size, const char *const *texts,
                                       size_t n)
{
    size_t i = 0;
    while (i < n && !phema_bytes_are(data, size, texts[i]))
        i++;
    return i < n;
}

/* Order by bytes; a beginning comes before the whole. Below, equal to or above 0. */
static inline int phema_bytes_compare(const void *a, size_t a_size, const void *b, size_t b_size)
{
    size_t shorter = a_size < b_size ? a_size : b_size;
    int order = shorter ? memcmp(a, b, shorter) : 0;
    return order ? order : (a_size > b_size) - (a_size < b_size);
}

static inline int phema_spans_compare(struct phema_span a, struct phema_span b)
{
    return phema_bytes_compare(a.data, a.size, b.data, b.size);
}

/* true when data begin with the bytes of this text */
static inline bool phema_bytes_begin(const void *data, size_t size, const char *text)
{
    return size >= strlen(text) && memcmp(data, text, strlen(text)) == 0;
}

/* Removes the text before the first separator, or all of the text, from *rest; the separator
 * too. */
static inline struct phema_span phema_span_split(struct phema_span *rest, char separator)
{
    if (!rest->size)
        return *rest;
    const uint8_t *end = (const uint8_t *)memchr(rest->data, separator, rest->size);
    struct phema_span first = {rest->data, end ? (size_t)(end - rest->data) : rest->size};
    size_t removed = first.size + (end != NULL);
    rest->data += removed;
    rest->size -= removed;
    return first;
}

static inline bool phema_is_blank(uint8_t byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r';
}

/* Without blanks at its ends. */
static inline struct phema_span phema_span_trim(struct phema_span text)
{
    for (; text.size && phema_is_blank(text.data[0]); text.size--)
        text.data++;
    while (text.size && phema_is_blank(text.data[text.size - 1]))
        text.size--;
    return text;
}

/* Cuts off the first cell of a line of CSV, without blanks and quotes around it. Commas within quotes
 * that begin a cell are text. *line begins behind the cell's comma; of the last cell its data are
 * NULL. */
static inline struct phema_span phema_span_cut_cell(struct phema_span *line)
{
    const struct phema_span trimmed = phema_span_trim(*line);
    bool may_be_quoted = trimmed.size && trimmed.data[0] == '"', is_inside = false;
    size_t n = 0;
    for (; n < line->size && (is_inside || line->data[n] != ','); n++)
        is_inside ^= may_be_quoted && line->data[n] == '"';
    struct phema_span cell = phema_span_trim((struct phema_span){line->data, n});
    if (cell.size >= 2 && cell.data[0] == '"' && cell.data[cell.size - 1] == '"')
        cell = phema_span_trim((struct phema_span){cell.data + 1, cell.size - 2});
    *line = n < line->size ? (struct phema_span){line->data + n + 1, line->size - n - 1}
                           : (struct phema_span){NULL, 0};
    return cell;
}

/* Little-endian loads from any address; the caller has checked the length. */
static inline uint16_t phema_load_u16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t phema_load_u32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t phema_load_u64(const uint8_t *p)
{
    return phema_load_u32(p) | (uint64_t)phema_load_u32(p + 4) << 32;
}

static inline void phema_store_u32(uint8_t *p, uint32_t value)
{
    for (unsigned i = 0; i < 4; i++)
        p[i] = (uint8_t)(value >> 8 * i);
}

static inline void phema_store_u64(uint8_t *p, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        p[i] = (uint8_t)(value >> (8 * i));
}

#endif
